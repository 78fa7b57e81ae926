"""The state of operators' subtasks in a checkpoint: backends, timers, and which watermarks have come to the inputs.

A job stops and resumes between two elements. A subtask resumes where it was. If there are more or fewer subtasks than
before, or of those that it reads, each resumes where the one with the least watermark was, so that no element becomes
late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.checkpoint import Checkpoint, OperatorBackends, OperatorSnapshot
from flinkcore.checkpoint.state_origin import StateOrigin
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.datastream.graph.element_transformations import Partitioning
from flinkcore.elements.tasks.operator_setup import OperatorSetup
from flinkcore.elements.tasks.stream_graph import StreamEdge, StreamNode, source_indices
from flinkcore.elements.tasks.stream_input_processor import StreamOneInputProcessor
from flinkcore.elements.tasks.stream_partitioners import CountingSelector
from flinkcore.errors import SchemaError
from flinkcore.operators.process_operators import UnkeyedFunctionOperator
from flinkcore.operators.state import DistributionMode, OperatorStateSnapshot
from flinkcore.operators.stream_operator import AbstractStreamOperator, TwoInputStreamOperator
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator

if TYPE_CHECKING:
    from flinkcore.elements.tasks.stream_task import Subtask

INPUTS: Final = "flinkcore.inputs"
"""For each input, its last watermark, and for each stream that comes to it how many subtasks send it, and of each that
sends to this one its index, watermark and idleness."""

COMBINED: Final = "flinkcore.combined"
"""State of an operator with two inputs: the watermarks of both, whether they are idle, and the combined watermark."""

ASSIGNER: Final = "flinkcore.assigner"
"""State of an assigner of watermarks: that of its generator, its last watermark, and whether it is idle."""

SENT: Final = "flinkcore.sent"
"""State of a subtask that deals out records by count: for each edge the number of channels and of records."""

_DEALS_OUT: Final = (Partitioning.REBALANCE, Partitioning.RESCALE, Partitioning.SHUFFLE)

Check = Callable[[OperatorSnapshot], None]

T = TypeVar("T")


@dataclass(frozen=True)
class RestoredSubtasks:
    """Restores the subtasks of a job from a checkpoint of flinkcore or a savepoint of Flink.

    Parameters
    ----------
    origin : StateOrigin
        The checkpoint, or the savepoint, which has no watermarks.
    uids : mapping of StreamNode to str
        By which the checkpoint names the operators.
    checks : mapping of StreamNode to callable
        Raises a SchemaError for a snapshot that the operator cannot have.
    next_tick_ms : int or None
        Time at which assigners of watermarks emit next: 0 without ticks, None for an interval from now.
    is_drained : bool
        Whether event time had come to its end, so that all watermarks begin again.
    """

    origin: StateOrigin
    uids: Mapping[StreamNode, str]
    checks: Mapping[StreamNode, Check]
    next_tick_ms: int | None
    is_drained: bool

    def restore(self, setup: OperatorSetup, operator: AbstractStreamOperator) -> None:
        """Restore what an operator holds, before it is opened.

        Raises
        ------
        CheckpointError
            If a file is damaged, or contradicts itself or the operator.
        """
        if setup.node.collects:
            return
        uid = self.uids[setup.node]
        watermark_ms = backends_of(setup, operator).restore(
            self.origin, uid, setup.index, setup.node.parallelism, self.checks.get(setup.node)
        )
        if self._begins_anew:
            return
        if isinstance(operator, UnkeyedFunctionOperator):
            operator.restore_watermark(watermark_ms)
        states, before = self._states(setup)
        index, parallelism = setup.index, setup.node.parallelism
        with refused_as(f"{self.origin.path}, operator {uid!r}"):
            watermarks_ms = [inputs[0].last_ms for inputs in _inputs_by_subtask(setup, states, before)]
            if isinstance(operator, TimestampsAndWatermarksOperator):
                assigners = [assigner_state(own) for own in elements_by_subtask(states, ASSIGNER, before)]
                watermarks_ms = [own_ms for _, own_ms, _ in assigners]
                held, last_ms, is_idle = where_it_was(assigners, index, parallelism, lambda own: own[1:])
                operator.restore_state(held, last_ms, is_idle, self.next_tick_ms, setup.job.downtime_ms)
            if isinstance(operator, TwoInputStreamOperator):
                combined = elements_by_subtask(states, COMBINED, before)
                watermarks_ms = restore_combined(operator, combined, index, parallelism)
            found_ms = self._checkpoint.watermarks_ms(uid)
            if found_ms != watermarks_ms:
                raise SchemaError(f"its subtasks have the watermarks {found_ms}, and got {watermarks_ms}")

    def restore_inputs(self, setup: OperatorSetup, inputs: Sequence[StreamOneInputProcessor]) -> None:
        """Restore which watermarks have come to the inputs of an operator at the head of a chain.

        Raises
        ------
        CheckpointError
            If what the checkpoint says is not of these inputs.
        """
        if setup.node.collects or self._begins_anew:
            return
        with refused_as(f"{self.origin.path}, operator {self.uids[setup.node]!r}"):
            found = _inputs_of(setup, *self._states(setup))
            for edges, processor, restored in zip(setup.node.inputs, inputs, found, strict=True):
                channels: list[tuple[int, bool]] = []
                for edge, stream in zip(edges, restored.streams, strict=True):
                    channels += stream.channels(edge, setup.index)
                processor.restore(channels, restored.last_ms)

    def restore_selectors(self, setup: OperatorSetup, selectors: Sequence[CountingSelector]) -> None:
        """Restore how many records a subtask has dealt out; at another parallelism counting begins again.

        Raises
        ------
        CheckpointError
            If the checkpoint does not say how many.
        """
        if setup.node.collects or not isinstance(self.origin, Checkpoint):
            return
        states, before = self._states(setup)
        if before != setup.node.parallelism or SENT not in states:
            return
        with refused_as(f"{self.origin.path}, operator {self.uids[setup.node]!r}"):
            own = [_numbers(each, 2) for each in elements_by_subtask(states, SENT, before)[setup.index]]
            if any(sent < 0 for _, sent in own):
                raise SchemaError(f"its state {SENT!r} has {own!r:.80} in place of counts")
            if [channels for channels, _ in own] == [selector.channels for selector in selectors]:
                for selector, (_, sent) in zip(selectors, own, strict=True):
                    selector.sent = sent

    def is_idle(self, subtask: Subtask) -> bool:
        """Return whether a restored operator is idle by itself, and not because the one before it in its chain is."""
        own = subtask.is_head or isinstance(
            subtask.operator, TimestampsAndWatermarksOperator | TwoInputStreamOperator
        )
        return own and stream_state(subtask, {})[1]

    @property
    def _begins_anew(self) -> bool:
        """Return whether watermarks begin again."""
        return self.is_drained or not isinstance(self.origin, Checkpoint)

    @property
    def _checkpoint(self) -> Checkpoint:
        assert isinstance(self.origin, Checkpoint)
        return self.origin

    def _states(self, setup: OperatorSetup) -> tuple[Mapping[str, OperatorStateSnapshot], int]:
        """Return the states of an operator's subtask, and how many subtasks it had."""
        uid = self.uids[setup.node]
        states = self._checkpoint.operator_states(uid, setup.node.parallelism)[setup.index]
        return states, self._checkpoint.parallelism(uid)


def backends_of(setup: OperatorSetup, operator: AbstractStreamOperator) -> OperatorBackends:
    """Return the timers and states of an operator, as far as it has asked for them."""
    found = setup.__dict__
    return OperatorBackends(
        found.get("keyed_state_backend"), operator.time_service_manager, found.get("operator_state_backend")
    )


def stream_state(subtask: Subtask, before: Mapping[StreamNode, tuple[int, bool]]) -> tuple[int, bool]:
    """Return the last watermark that an operator has emitted, and whether its output is idle.

    Parameters
    ----------
    subtask : Subtask
    before : mapping of StreamNode to (int, bool)
        The same of the operators before it in its chain.
    """
    operator = subtask.operator
    if isinstance(operator, TimestampsAndWatermarksOperator):
        return operator.watermark_ms, operator.is_idle
    if isinstance(operator, TwoInputStreamOperator):
        _, _, is_first_idle, is_second_idle, combined_ms = operator.watermarks()
        return combined_ms, is_first_idle and is_second_idle
    if subtask.is_head:
        channels, last_ms = subtask.input_processors[0].state()
        return last_ms, all(is_idle for _, is_idle in channels)
    return before[_chained_to(subtask)]


def _chained_to(subtask: Subtask) -> StreamNode:
    ((edge,),) = subtask.setup.node.inputs
    return edge.source


def without_end(watermark_ms: int) -> int:
    """Return the watermark of what has ended, which may be only for now: before the first one, if it is the last."""
    return MIN_TIMESTAMP if watermark_ms == MAX_TIMESTAMP else watermark_ms


def snapshot_of(
    subtask: Subtask,
    watermark_ms: int,
    before: Mapping[StreamNode, tuple[int, bool]],
    is_amid: bool = False,
) -> OperatorSnapshot:
    """Return what an operator holds, and what has come to its inputs.

    Parameters
    ----------
    subtask : Subtask
    watermark_ms : int
        Its last watermark.
    before : mapping of StreamNode to (int, bool)
        Last emissions of operators before it in its chain; at another parallelism they may be in other chains.
    is_amid : bool
        Whether the job is stopped during its sources; else those that have ended may have more in the next run, and
        then join again when they have caught up with the watermark. A maximum watermark that came otherwise stays.

    Raises
    ------
    UnsupportedOperationError
        If a generator of watermarks has no snapshots.
    """
    setup, operator = subtask.setup, subtask.operator
    snapshot = backends_of(setup, operator).snapshot(watermark_ms)
    states = dict(snapshot.operator_state)
    if subtask.is_head:
        inputs = [
            _input_state(setup, edges, processor, is_amid)
            for edges, processor in zip(setup.node.inputs, subtask.input_processors, strict=True)
        ]
    else:
        own_ms, is_idle = before[_chained_to(subtask)]
        inputs = [[own_ms, [[setup.node.parallelism, [setup.index, own_ms, int(is_idle)]]]]]
    states[INPUTS] = own_state(setup.index, inputs)
    if isinstance(operator, TimestampsAndWatermarksOperator):
        held, _, is_idle = operator.snapshot_state()
        states[ASSIGNER] = own_state(setup.index, (held, watermark_ms, is_idle))
    if isinstance(operator, TwoInputStreamOperator):
        *by_input_ms, is_first_idle, is_second_idle, _ = operator.watermarks()
        if not is_amid:
            by_input_ms = [
                without_end(own_ms) if _has_ended(processor) else own_ms
                for own_ms, processor in zip(by_input_ms, subtask.input_processors, strict=True)
            ]
        combined = *by_input_ms, is_first_idle, is_second_idle, watermark_ms
        states[COMBINED] = own_state(setup.index, combined)
    return replace(snapshot, operator_state=states)


def with_sent(
    snapshot: OperatorSnapshot, node: StreamNode, index: int, selectors: Sequence[CountingSelector]
) -> OperatorSnapshot:
    """Return a snapshot that also has the number of records that subtask `index` has dealt out."""
    if not any(edge.partitioning in _DEALS_OUT for edge in node.outputs):
        return snapshot
    sent = own_state(index, ([selector.channels, selector.sent] for selector in selectors))
    return replace(snapshot, operator_state={**snapshot.operator_state, SENT: sent})


def own_state(index: int, elements: Iterable[Any]) -> OperatorStateSnapshot:
    """Return the state of where subtask `index` was; in the next run, each subtask gets those of all."""
    return OperatorStateSnapshot(DistributionMode.UNION, [[index, *elements]])


def elements_by_subtask(
    states: Mapping[str, OperatorStateSnapshot], name: str, parallelism: int
) -> list[list[Any]]:
    """Return by subtask the elements of a state that `own_state` made.

    Raises
    ------
    SchemaError
        If there is no such state, or not one of each of so many subtasks.
    """
    state = states.get(name)
    if state is None or state.mode is not DistributionMode.UNION:
        raise SchemaError(f"it has no state {name!r}, which every subtask has")
    found = [list(own) if isinstance(own, list | tuple) else [] for own in state.elements]
    if [own[:1] for own in found] != [[index] for index in range(parallelism)]:
        raise SchemaError(f"its state {name!r} is not one for each of {parallelism} subtasks, in their order")
    return [own[1:] for own in found]


def where_it_was(
    by_subtask: Sequence[T], index: int, parallelism: int, watermark_of: Callable[[T], Sequence[Any]]
) -> T:
    """Return where a subtask resumes: where it was, or, at another parallelism, where the least watermark was.

    Parameters
    ----------
    by_subtask : sequence
        Where each subtask was.
    index : int
        Index of the subtask that resumes.
    parallelism : int
        Current number of subtasks.
    watermark_of : callable
        Returns the watermark of one of them, and whether it was idle; those that were do not count if others were not.
    """
    if len(by_subtask) == parallelism:
        return by_subtask[index]
    return min(by_subtask, key=lambda own: (watermark_of(own)[1], watermark_of(own)[0]))


def restore_combined(
    operator: TwoInputStreamOperator, by_subtask: Sequence[Any], index: int, parallelism: int
) -> list[int]:
    """Restore the watermarks of both inputs of an operator; return the combined ones of all subtasks.

    Parameters
    ----------
    operator : TwoInputStreamOperator
    by_subtask : sequence
        The elements of the state `COMBINED` of each subtask.
    index, parallelism : int
        Index of the subtask that resumes, and the number of subtasks.

    Raises
    ------
    SchemaError
        If they are not what `snapshot_of` makes.
    """
    combined = [_numbers(own, 5) for own in by_subtask]
    first_ms, second_ms, *idle, combined_ms = where_it_was(
        combined, index, parallelism, lambda own: (own[4], all(own[2:4]))
    )
    operator.restore_watermarks((first_ms, second_ms), [bool(each) for each in idle], combined_ms)
    return [own[4] for own in combined]


def broadcast_state(elements: Iterable[Any]) -> OperatorStateSnapshot:
    """Return a state that every subtask gets: a map from places to elements."""
    return OperatorStateSnapshot(DistributionMode.BROADCAST, list(enumerate(elements)))


def broadcast_elements(states: Mapping[str, OperatorStateSnapshot], name: str) -> list[Any]:
    """Return the elements of a state that `broadcast_state` made.

    Raises
    ------
    SchemaError
        If there is no such state.
    """
    state = states.get(name)
    if state is None or state.mode is not DistributionMode.BROADCAST:
        raise SchemaError(f"it has no state {name!r}, which every subtask has")
    entries = list(state.elements)
    if [place for place, _ in entries] != list(range(len(entries))):
        raise SchemaError(f"elements of its state {name!r} are left out or exchanged")
    return [element for _, element in entries]


class _Stream(NamedTuple):
    """Stream from the subtasks of one operator to those of another.

    Attributes
    ----------
    parallelism : int
        Number of subtasks that the other one had.
    by_source : dict of int to (int, bool)
        For each of them the last watermark, and whether it was idle.
    """

    parallelism: int
    by_source: dict[int, tuple[int, bool]]

    def channels(self, edge: StreamEdge, index: int) -> list[tuple[int, bool]]:
        """Return watermark and idleness of each channel of an edge to the subtask of an index."""
        if (
            sorted(self.by_source) != list(range(len(self.by_source)))
            or len(self.by_source) != self.parallelism
        ):
            raise SchemaError(
                f"it has watermarks of the subtasks {sorted(self.by_source)} of {self.parallelism}"
            )
        before = [self.by_source[source] for source in range(self.parallelism)]
        return [
            where_it_was(before, source, edge.source.parallelism, lambda own: own)
            for source in source_indices(edge, index)
        ]


class _InputState(NamedTuple):
    last_ms: int
    streams: list[_Stream]


def _inputs_of(
    setup: OperatorSetup, states: Mapping[str, OperatorStateSnapshot], parallelism: int
) -> list[_InputState]:
    """Return of each input of a subtask its last watermark, and what has come to it."""
    by_subtask = _inputs_by_subtask(setup, states, parallelism)
    found: list[_InputState] = []
    for edges, of_input in zip(setup.node.inputs, zip(*by_subtask, strict=True), strict=True):
        streams = [_of_all(streams) for streams in zip(*(own.streams for own in of_input), strict=True)]
        are_same = all(
            stream.parallelism == edge.source.parallelism for edge, stream in zip(edges, streams, strict=True)
        )
        last_ms = [own.last_ms for own in of_input]
        same_place = are_same and len(last_ms) == setup.node.parallelism
        found.append(_InputState(last_ms[setup.index] if same_place else min(last_ms), streams))
    return found


def _inputs_by_subtask(
    setup: OperatorSetup, states: Mapping[str, OperatorStateSnapshot], parallelism: int
) -> list[list[_InputState]]:
    by_subtask: list[list[_InputState]] = []
    for inputs in elements_by_subtask(states, INPUTS, parallelism):
        if len(inputs) != len(setup.node.inputs):
            raise SchemaError(
                f"it has watermarks of {len(inputs)} inputs, and the operator has {len(setup.node.inputs)}"
            )
        by_subtask.append(
            [
                _restored_input(found, len(edges))
                for edges, found in zip(setup.node.inputs, inputs, strict=True)
            ]
        )
    return by_subtask


def _restored_input(found: Any, n_streams: int) -> _InputState:
    if not isinstance(found, list | tuple) or len(found) != 2 or not isinstance(found[1], list | tuple):
        raise SchemaError(f"it has {found!r:.80} in place of an input")
    last_ms, streams = found
    if len(streams) != n_streams:
        raise SchemaError(f"it has watermarks of {len(streams)} streams, and the input has {n_streams}")
    return _InputState(_numbers([last_ms], 1)[0], [_restored_stream(stream) for stream in streams])


def _restored_stream(stream: Any) -> _Stream:
    if not isinstance(stream, list | tuple) or not stream:
        raise SchemaError(f"it has {stream!r:.80} in place of a stream")
    parallelism, *channels = stream
    by_source = {
        source: (watermark_ms, bool(idle))
        for source, watermark_ms, idle in (_numbers(channel, 3) for channel in channels)
    }
    if len(by_source) != len(channels):
        raise SchemaError(f"it has {stream!r:.80} in place of a stream, a channel of which is there twice")
    return _Stream(_numbers([parallelism], 1)[0], by_source)


def _of_all(streams: Sequence[_Stream]) -> _Stream:
    """Return what has come to all subtasks together: each gets the same from one that sends to it."""
    first, *others = streams
    by_source = dict(first.by_source)
    for other in others:
        if other.parallelism != first.parallelism:
            raise SchemaError("its subtasks disagree on how many subtasks send to them")
        for source, state in other.by_source.items():
            if by_source.setdefault(source, state) != state:
                raise SchemaError(f"its subtasks disagree on the watermark of subtask {source} before them")
    return _Stream(first.parallelism, by_source)


def _has_ended(processor: StreamOneInputProcessor) -> bool:
    """Return whether all channels of an input have ended."""
    return len(processor.ended) == len(processor.state()[0])


def _input_state(
    setup: OperatorSetup, edges: Sequence[StreamEdge], processor: StreamOneInputProcessor, is_amid: bool
) -> list[Any]:
    channels, last_ms = processor.state()
    if not is_amid:
        last_ms = without_end(last_ms) if _has_ended(processor) else last_ms
        channels = [
            (without_end(own_ms) if channel in processor.ended else own_ms, is_idle)
            for channel, (own_ms, is_idle) in enumerate(channels)
        ]
    streams, first = [], 0
    for edge in edges:
        sources = source_indices(edge, setup.index)
        own = channels[first : first + len(sources)]
        first += len(sources)
        streams.append(
            [
                edge.source.parallelism,
                *([source, own_ms, int(idle)] for source, (own_ms, idle) in zip(sources, own, strict=True)),
            ]
        )
    return [last_ms, streams]


def assigner_state(elements: Any) -> tuple[Any, int, bool]:
    """Return what the generator of an assigner held, its last watermark, and whether it was idle.

    Raises
    ------
    SchemaError
        If these are not the elements of an assigner's state.
    """
    if len(elements) != 3 or type(elements[2]) is not bool:
        raise SchemaError(
            "the state of an assigner of watermarks is not a generator's, a watermark and an idleness"
        )
    held, watermark_ms, is_idle = elements
    return held, _numbers([watermark_ms], 1)[0], is_idle


def _numbers(values: Any, count: int) -> list[int]:
    if not isinstance(values, list | tuple) or len(values) != count:
        raise SchemaError(f"it has {values!r:.80} in place of {count} numbers")
    for value in values:
        if type(value) not in (int, bool) or not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
            raise SchemaError(f"it has {value!r:.80} in place of a time")
    return list(values)

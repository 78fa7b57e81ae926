"""The state of operators' subtasks in a checkpoint: backends, timers, and which watermarks have come to the inputs.

A job is stopped, and goes on, between two elements. Its sources and assigners of watermarks have one subtask each, so
that all subtasks of an operator have seen the same watermarks: one tells for all of another parallelism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.errors import SchemaError
from flinkcore.runtime.checkpoint import Checkpoint, OperatorBackends, OperatorSnapshot
from flinkcore.runtime.checkpoint.table_file import refused_as
from flinkcore.runtime.operators import AbstractStreamOperator, TimestampsAndWatermarksOperator
from flinkcore.runtime.operators.process_operators import UnkeyedFunctionOperator
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.state import DistributionMode, OperatorStateSnapshot
from flinkcore.runtime.tasks.operator_setup import OperatorSetup
from flinkcore.runtime.tasks.stream_graph import StreamNode, source_indices
from flinkcore.runtime.tasks.stream_input_processor import StreamOneInputProcessor

if TYPE_CHECKING:
    from flinkcore.runtime.tasks.stream_task import Subtask

INPUTS: Final = "flinkcore.inputs"
"""For each input, its last watermark, and then watermark and idleness of each stream that comes to it."""

COMBINED: Final = "flinkcore.combined"
"""Of an operator with two inputs: the watermarks of both, whether they are idle, and the combined watermark."""

ASSIGNER: Final = "flinkcore.assigner"
"""Of an assigner of watermarks: what its generator holds, its last watermark, and whether it is idle."""

Check = Callable[[OperatorSnapshot], None]


@dataclass(frozen=True)
class RestoredSubtasks:
    """Restores the subtasks of a job from a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
    uids : mapping of StreamNode to str
        By which the checkpoint names the operators.
    checks : mapping of StreamNode to callable
        Raises a SchemaError for a snapshot that the operator cannot have.
    next_tick_ms : int
        When assigners of watermarks emit next; 0 where there are no ticks.
    """

    checkpoint: Checkpoint
    uids: Mapping[StreamNode, str]
    checks: Mapping[StreamNode, Check]
    next_tick_ms: int

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
            self.checkpoint, uid, setup.index, setup.node.parallelism, self.checks.get(setup.node)
        )
        if isinstance(operator, UnkeyedFunctionOperator):
            operator.restore_watermark(watermark_ms)
        states = self._states(setup)
        with refused_as(f"{self.checkpoint.storage.path}, operator {uid!r}"):
            _inputs_of(setup, states)
            if isinstance(operator, TimestampsAndWatermarksOperator):
                held, last_ms, is_idle = assigner_state(broadcast_elements(states, ASSIGNER))
                operator.restore_state(held, last_ms, is_idle, self.next_tick_ms)
            if isinstance(operator, TwoInputStreamOperator):
                first_ms, second_ms, *idle, combined_ms = _numbers(broadcast_elements(states, COMBINED), 5)
                operator.restore_watermarks((first_ms, second_ms), [bool(each) for each in idle], combined_ms)

    def restore_inputs(self, setup: OperatorSetup, inputs: Sequence[StreamOneInputProcessor]) -> None:
        """Restore which watermarks have come to the inputs of an operator at the head of a chain.

        Raises
        ------
        CheckpointError
            If what the checkpoint says is not of these inputs.
        """
        if setup.node.collects:
            return
        with refused_as(f"{self.checkpoint.storage.path}, operator {self.uids[setup.node]!r}"):
            found = _inputs_of(setup, self._states(setup))
            for edges, processor, (last_ms, *by_edge) in zip(setup.node.inputs, inputs, found, strict=True):
                channels: list[tuple[int, bool]] = []
                for edge, own_ms, idle in zip(edges, by_edge[::2], by_edge[1::2], strict=True):
                    channels += [(own_ms, bool(idle))] * len(source_indices(edge, setup.index))
                processor.restore(channels, last_ms)

    def is_idle(self, subtask: Subtask) -> bool:
        """Return whether a restored operator is idle by itself, and not because the one before it in its chain is."""
        own = subtask.is_head or isinstance(
            subtask.operator, TimestampsAndWatermarksOperator | TwoInputStreamOperator
        )
        return own and stream_state(subtask, {})[1]

    def _states(self, setup: OperatorSetup) -> Mapping[str, OperatorStateSnapshot]:
        return self.checkpoint.operator_states(self.uids[setup.node], setup.node.parallelism)[setup.index]


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


def snapshot_of(
    subtask: Subtask, watermark_ms: int, before: Mapping[StreamNode, tuple[int, bool]]
) -> OperatorSnapshot:
    """Return what an operator holds, and what has come to its inputs.

    Parameters
    ----------
    subtask : Subtask
    watermark_ms : int
        Its last watermark.
    before : mapping of StreamNode to (int, bool)
        What operators before it in its chain have emitted last; at another parallelism they may be in other chains.

    Raises
    ------
    UnsupportedOperationError
        If a generator of watermarks has no snapshots.
    """
    setup, operator = subtask.setup, subtask.operator
    snapshot = backends_of(setup, operator).snapshot(watermark_ms)
    states = dict(snapshot.operator_state)
    if subtask.is_head:
        states[INPUTS] = broadcast_state(
            _input_state([len(source_indices(edge, setup.index)) for edge in edges], processor)
            for edges, processor in zip(setup.node.inputs, subtask.input_processors, strict=True)
        )
    else:
        own_ms, is_idle = before[_chained_to(subtask)]
        states[INPUTS] = broadcast_state([[own_ms, own_ms, int(is_idle)]])
    if isinstance(operator, TimestampsAndWatermarksOperator):
        states[ASSIGNER] = broadcast_state(operator.snapshot_state())
    if isinstance(operator, TwoInputStreamOperator):
        states[COMBINED] = broadcast_state(operator.watermarks())
    return replace(snapshot, operator_state=states)


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


def _inputs_of(setup: OperatorSetup, states: Mapping[str, OperatorStateSnapshot]) -> list[list[int]]:
    """Return of each input its last watermark, and then watermark and idleness of each stream that comes to it."""
    inputs = broadcast_elements(states, INPUTS)
    if len(inputs) != len(setup.node.inputs):
        raise SchemaError(
            f"it has watermarks of {len(inputs)} inputs, and the operator has {len(setup.node.inputs)}"
        )
    return [
        _numbers(state, 1 + 2 * len(edges)) for edges, state in zip(setup.node.inputs, inputs, strict=True)
    ]


def _input_state(channels: Sequence[int], processor: StreamOneInputProcessor) -> list[int]:
    by_channel, last_ms = processor.state()
    state, first = [last_ms], 0
    for count in channels:
        own_ms, idle = by_channel[first]
        state += [own_ms, int(idle)]
        first += count
    return state


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

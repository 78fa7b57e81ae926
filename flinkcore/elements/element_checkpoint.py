"""Checkpoints of jobs that run element by element: how a job resumes and stops.

A job stops between two elements: when all elements that its sources have are done, before one of them comes to its end.
Timers of that moment wait, as more may arrive in it. The next run of the job takes what has arrived since, and does
what one run over all would have done.

Or it is stopped during its sources, as it must be if they have no end: the next run then reads the same sources, after
what they have emitted. Event time may be advanced to its end before, so that all windows fire; then watermarks begin
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final, NamedTuple

from flinkcore._internal.io.stores import stores_of
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.checkpoint import Checkpoint, OperatorPart, OperatorSnapshot, PendingCheckpoint
from flinkcore.checkpoint.state_origin import JobOperator, StateOrigin, savepoint_start
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.checkpoint.job_checkpoint import refuse_different_cuts
from flinkcore.columnar.plans.job_description import refuse_changes
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.connectors.base import Sink, Source, SourceSplit
from flinkcore.datastream.graph.element_transformations import (
    LegacySourceTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.pipeline_executor import CheckpointSettings, ElementJob
from flinkcore.datastream.graph.transformations import (
    Transformation,
)
from flinkcore.elements.arrivals.element_arrivals import CONTEXT, Origin, SourceSnapshot, arrival_times
from flinkcore.elements.arrivals.log_arrivals import SPLITS
from flinkcore.elements.arrivals.restored_sources import (
    ARRIVALS,
    ENDED,
    PLACE,
    WATERMARKS,
    RestoredFunction,
    RestoredSource,
    SourcePlace,
    Stop,
    splits_that_go_on,
    watermarks_that_go_on,
)
from flinkcore.elements.arrivals.split_watermarks import RestoredSplits, SplitWatermark
from flinkcore.elements.job_description import check_of, described, logs_of, uid_of
from flinkcore.elements.sources.source_contexts import checked_context_state
from flinkcore.elements.sources.source_watermarks import SourceWatermarks
from flinkcore.elements.tasks.stream_graph import (
    JobVertex,
    StreamNode,
    is_of_log,
    is_source_node,
)
from flinkcore.elements.tasks.stream_partitioners import ElementKeyGroups
from flinkcore.elements.tasks.stream_task import StreamTask
from flinkcore.elements.tasks.subtask_state import (
    SENT,
    RestoredSubtasks,
    assigner_state,
    backends_of,
    broadcast_elements,
    broadcast_state,
    elements_by_subtask,
    snapshot_of,
    stream_state,
    where_it_was,
    with_sent,
    without_end,
)
from flinkcore.elements.unsupported_checkpoints import (
    job_max_parallelism,
    refuse_source,
    refuse_what_has_none,
)
from flinkcore.errors import (
    ConfigurationError,
    DataError,
    SchemaError,
)
from flinkcore.operators.state import DistributionMode, OperatorStateSnapshot
from flinkcore.time_plane.time_cut import TimeCut, cuts_of_one_replay

CLOCK: Final = "job clock"
"""By which a checkpoint names the clock of a job, which is in it as an operator is."""

TIME: Final = "flinkcore.time"
"""State of the clock: when the job started, what the clock shows, which source the last element came from, and the
`Stop`."""

COMMITTABLES: Final = "flinkcore.committables"
"""State of a sink: what its writers have prepared, to be made visible when the checkpoint is complete."""

_OPERATOR_TABLES: Final = (TableKind.TIMERS, TableKind.KEYED_STATE, TableKind.OPERATOR_STATE)


class RestoredClock(NamedTuple):
    """Clock of a resumed job, and the way in which it was stopped.

    Attributes
    ----------
    start_ms : int
        When its first run started, in ms since the epoch.
    now_ms : int
        When the last element before arrived.
    last_origin : int
        Number of the origin that this came from.
    stop : Stop
    """

    start_ms: int
    now_ms: int
    last_origin: int
    stop: Stop


@dataclass(frozen=True)
class TaskCheckpoints:
    """Facts about the checkpoints of a job that its tasks need; picklable.

    Attributes
    ----------
    uids : tuple of str
        By which the checkpoints name the operators, in the order of `operators_of`.
    restored : StateOrigin or None
        Checkpoint or savepoint from which subtasks are restored, or None if they begin again.
    clock : RestoredClock or None
        The time at which it was taken.
    next_tick_ms : int or None
        Time at which assigners of watermarks emit next, or None for an interval from now.
    pending : PendingCheckpoint or None
        The checkpoint with which the job stops.
    stop_ms : int or None
        When it stops: what is due before has been done.
    stop_origin : int
        Number of the origin of the last element before.
    """

    uids: tuple[str, ...]
    restored: StateOrigin | None
    clock: RestoredClock | None
    next_tick_ms: int | None
    pending: PendingCheckpoint | None = None
    stop_ms: int | None = None
    stop_origin: int = -1

    def subtasks(self, vertices: Sequence[JobVertex]) -> RestoredSubtasks | None:
        """Return what restores subtasks of the job's operators, or None if they begin again."""
        if self.restored is None:
            return None
        uids = self._uids(vertices)
        checks = {node: check for node in uids if (check := check_of(node.transformation)) is not None}
        is_drained = self.clock is not None and self.clock.stop is Stop.DRAINED
        return RestoredSubtasks(self.restored, uids, checks, self.next_tick_ms, is_drained)

    def _uids(self, vertices: Sequence[JobVertex]) -> dict[StreamNode, str]:
        return dict(zip(operators_of(vertices), self.uids, strict=True))

    def check_goes_on(self, origins: Iterable[Origin]) -> None:
        """Check that nothing arrives before the last element of the run before.

        Raises
        ------
        DataError
            If something does.
        """
        if self.clock is None:
            return
        last = self.clock.now_ms, self.clock.last_origin
        for origin in origins:
            while origin.is_waiting and self.clock.stop is Stop.AT_END:
                origin.wait()
            if origin.is_waiting:  # a function resumes from its state, however long it takes to emit
                continue
            if origin.at_end or origin.next_arrival_ms is None:
                continue
            if (origin.next_arrival_ms, origin.number) < last:
                raise DataError(
                    f"a source has an element with the arrival {dated(origin.next_arrival_ms, ' ms')}, but the "
                    f"checkpoint was taken after the arrival {dated(last[0], ' ms')} of another one: what comes before "
                    "that is done, and is not done again. Let all sources of a run end together: logs at one arrival, "
                    "which until= of from_event_log gives, collections after as many elements"
                )

    def write(
        self,
        task: StreamTask,
        vertices: Sequence[JobVertex],
        source: SourceSnapshot | None,
        prepared: Mapping[StreamNode, Sequence[Any]],
        stop: Stop = Stop.AT_END,
    ) -> list[OperatorPart]:
        """Write what a task holds, and return what of the checkpoint that is.

        Parameters
        ----------
        task : StreamTask
        vertices : sequence of JobVertex
            Vertices of the whole job.
        source : SourceSnapshot or None
            Where what the task has read stands, if it is one of a source.
        prepared : mapping of StreamNode to sequence
            Committables that are in the checkpoint with this task.
        stop : Stop

        Raises
        ------
        SchemaError
            If a value is of a type that no checkpoint supports; names its state.
        CheckpointError
            If a file cannot be written.
        """
        assert self.pending is not None
        writer, uids = self.pending.writer(), self._uids(vertices)
        parts: list[OperatorPart] = []
        emitted: dict[StreamNode, tuple[int, bool]] = {}
        has_ended = task.has_ended if source is None else source.has_ended
        begins_anew = has_ended and stop is Stop.AT_END
        if source is not None:
            snapshot, head = source.snapshot, task.vertex.head
            own_ms = snapshot.watermark_ms
            emitted[head] = without_end(own_ms) if begins_anew else own_ms, source.is_idle
            if stop is Stop.DRAINED:
                snapshot = _without_watermarks(snapshot)
            snapshot = with_sent(snapshot, head, task.index, task.counting_selectors(head))
            parts.append(writer.write(uids[head], task.index, snapshot))
        for subtask in task.subtasks():
            node = subtask.setup.node
            if node.collects:
                continue
            if stop is Stop.DRAINED:
                snapshot = backends_of(subtask.setup, subtask.operator).snapshot(MIN_TIMESTAMP)
            else:
                own_ms, is_idle = stream_state(subtask, emitted)
                emitted[node] = without_end(own_ms) if begins_anew else own_ms, is_idle
                snapshot = snapshot_of(subtask, emitted[node][0], emitted, stop is Stop.AMID)
            if node in prepared:
                snapshot = _with_committables(snapshot, node, prepared[node])
            snapshot = with_sent(snapshot, node, task.index, task.counting_selectors(node))
            parts.append(writer.write(uids[node], task.index, snapshot))
        return parts


class ElementCheckpoints:
    """Checkpoint from which a job resumes, and the one with which it stops.

    Parameters
    ----------
    vertices : sequence of JobVertex
        Vertices of the whole job.
    job : ElementJob
    configuration : ExecutionConfig
    settings : CheckpointSettings

    Attributes
    ----------
    clock : RestoredClock or None
        Clock of the resumed job, or None if it begins again, or resumes before its first element.

    Raises
    ------
    ConfigurationError
        If something in the job has no checkpoints, or the job is not the one of the checkpoint.
    CheckpointError
        If there is no checkpoint, or it is damaged, of a newer version, or contradicts itself or the job.
    """

    def __init__(
        self,
        vertices: Sequence[JobVertex],
        job: ElementJob,
        configuration: ExecutionConfig,
        settings: CheckpointSettings,
    ) -> None:
        self._configuration = configuration
        self._stop_path = settings.stop_with_checkpoint
        self._savepoint = settings.savepoint
        self._stores = stores_of(settings.stores)
        self._time_characteristic = job.time_characteristic
        nodes = [node for vertex in vertices for node in vertex.nodes]
        refuse_what_has_none(nodes, configuration)
        refuse_different_cuts([log for node in nodes for log in logs_of(node)], settings)
        self._uids = {node: uid_of(node, number) for number, node in enumerate(nodes, start=1)}
        self._max_parallelism = job_max_parallelism(nodes, configuration)
        self._job = described(self._uids, configuration, job.time_characteristic)
        self._checkpoint: Checkpoint | None = None
        self._of_savepoint: StateOrigin | None = None
        self.clock: RestoredClock | None = None
        if settings.restore_from is None:
            return
        savepoint = savepoint_start(settings.restore_from, self._stores)
        if savepoint is None:
            self._open(settings.restore_from)
        else:
            self._of_savepoint = savepoint.origin(self._stateful_operators(), self._stores)

    def _stateful_operators(self) -> list[JobOperator]:
        """Return the operators of the job that a savepoint of Flink may have state of."""
        return [
            JobOperator(
                uid,
                _OPERATOR_TABLES,
                node.max_parallelism,
                key_groups_of=ElementKeyGroups(node.max_parallelism).of_all,
            )
            for node, uid in self._uids.items()
            if not node.collects and not is_source_node(node)
        ]

    def _open(self, path: Any) -> None:
        self._checkpoint = checkpoint = Checkpoint.open(path, self._stores)
        if checkpoint.max_parallelism != self._max_parallelism:
            raise ConfigurationError(
                f"the checkpoint {checkpoint.storage.path} has {checkpoint.max_parallelism} key groups, but the job "
                f"has max_parallelism {self._max_parallelism}: set it to {checkpoint.max_parallelism}, or start "
                "without the checkpoint"
            )
        refuse_changes(checkpoint.manifest.job, self._job, checkpoint.storage.path)
        with refused_as(checkpoint.storage.path):
            self._refuse_other_parts(checkpoint)
            of_clock = broadcast_elements(checkpoint.operator_states(CLOCK, 1)[0], TIME)
            least = [MIN_TIMESTAMP, MIN_TIMESTAMP, -1, Stop.AT_END]
            start_ms, now_ms, last_origin, stopped = checked_numbers(CLOCK, of_clock, least)
            stop = Stop(stopped)
            if last_origin >= 0:
                if start_ms > now_ms:
                    raise SchemaError(
                        f"the job started at {dated(start_ms, ' ms')}, after its last element at "
                        f"{dated(now_ms, ' ms')}"
                    )
                self.clock = RestoredClock(start_ms, now_ms, last_origin, stop)
            if stop is Stop.AT_END:
                self._refuse_another_time()

    def _refuse_other_parts(self, checkpoint: Checkpoint) -> None:
        """Accept the parts if their operators write such tables."""
        parts = checkpoint.manifest.parts_by_operator()
        expected: dict[str, tuple[TableKind, ...]] = {CLOCK: (TableKind.OPERATOR_STATE,)}
        for node, uid in self._uids.items():
            if node.collects:
                continue
            expected[uid] = _OPERATOR_TABLES
            if is_source_node(node):
                place = TableKind.TIME_PLANE if is_of_log(node.transformation) else TableKind.SPLITS
                expected[uid] = place, TableKind.OPERATOR_STATE
        if parts.keys() != expected.keys():
            raise SchemaError(f"it has the operators {sorted(parts)}, and the job has {sorted(expected)}")
        for uid, kinds in expected.items():
            for part in parts[uid]:
                for table in part.tables:
                    if table.kind not in kinds:
                        raise SchemaError(f"the operator {uid!r} has the {table}, and writes none")

    def _refuse_another_time(self) -> None:
        """Accept the clock if it shows the last arrival of all sources."""
        arrivals: list[int] = []
        for node in self._uids:
            if is_source_node(node) and is_of_log(node.transformation):
                cut = self.cut_of(node.transformation)
                arrivals += [] if cut is None or cut.last_arrival_ms is None else [cut.last_arrival_ms]
            elif isinstance(node.transformation, LegacySourceTransformation) and not node.collects:
                arrivals += [
                    last_ms for _, last_ms, _, _ in self._arrivals_of(self._uid(node.transformation))
                ]
            elif is_source_node(node) and _has_splits(node.transformation):
                arrivals += [place.last_ms for place in self._places_of(self._uid(node.transformation))]
            elif is_source_node(node) and (position := self.position_of(node.transformation)[0]):
                start_ms = 0 if self.clock is None else self.clock.start_ms
                arrivals.append(arrival_times(self._configuration.get_arrival_rate(), start_ms)(position))
        arrivals = [arrival_ms for arrival_ms in arrivals if arrival_ms != MIN_TIMESTAMP]
        now_ms = [] if self.clock is None else [self.clock.now_ms]
        if ([max(arrivals)] if arrivals else []) != now_ms:
            raise SchemaError(
                f"its clock shows {now_ms}, and the last elements of its sources arrived at {arrivals}"
            )

    @property
    def stops(self) -> bool:
        """Return whether the job stops with a checkpoint."""
        return self._stop_path is not None

    # ---- how the job resumes ----

    def of_tasks(
        self, pending: PendingCheckpoint | None = None, stop: tuple[int, int] | None = None
    ) -> TaskCheckpoints:
        """Return what tasks need to know.

        Parameters
        ----------
        pending : PendingCheckpoint, optional
            The checkpoint with which the job stops.
        stop : (int, int), optional
            When it stops, and the number of the origin of the last element.
        """
        stop_ms, stop_origin = (None, -1) if stop is None else stop
        goes_on = self.clock is not None
        return TaskCheckpoints(
            tuple(uid for node, uid in self._uids.items() if not node.collects),
            self._checkpoint if goes_on else self._of_savepoint,
            self.clock,
            self._next_tick_ms if goes_on else 0,
            pending,
            stop_ms,
            stop_origin,
        )

    @property
    def _next_tick_ms(self) -> int | None:
        """The first tick from the last element on: ticks at its moment come after what else arrives then."""
        assert self.clock is not None
        if self._configuration.get_clock() == "system":
            return None
        interval_ms = self._configuration.get_auto_watermark_interval()
        if interval_ms == 0:
            return 0
        since_start = self.clock.now_ms - self.clock.start_ms
        return self.clock.start_ms + interval_ms * max(1, -(-since_start // interval_ms))

    def position_of(self, step: Transformation) -> tuple[int, int]:
        """Return how many elements of a collection have gone in all runs, and how many are left out of what it has."""
        if self._checkpoint is None:
            return 0, 0
        uid = self._uid(step)
        found = self._checkpoint.splits(uid)
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            if len(found) != 1:
                raise SchemaError("it has no position")
            position, left_out = checked_numbers(uid, [found[0].position, found[0].state], [0, ENDED])
            if left_out != 0 and (self.clock is None or self.clock.stop is Stop.AT_END):
                raise SchemaError(f"it leaves out {left_out} elements, though it has come to the end of them")
            if left_out > position:
                raise SchemaError(f"it leaves out {left_out} elements of the {position} that it has emitted")
            return position, left_out

    @property
    def _is_drained(self) -> bool:
        return self.clock is not None and self.clock.stop is Stop.DRAINED

    def context_of(self, step: Transformation) -> tuple[int | None, ...] | None:
        """Return the state from which the context of a collection resumes, or None at its beginning."""
        if self._checkpoint is None or self._is_drained:
            return None
        return self._contexts_of(self._uid(step))[0]

    def _contexts_of(self, uid: str) -> list[tuple[int | None, ...]]:
        return [
            checked_context_state(state, self._time_characteristic)
            for state in self._by_subtask(uid, CONTEXT)
        ]

    def _by_subtask(self, uid: str, name: str) -> list[list[Any]]:
        """Return what each subtask of a source has of a state."""
        assert self._checkpoint is not None
        states = self._checkpoint.operator_states(uid, 1)[0]
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            return elements_by_subtask(states, name, self._checkpoint.parallelism(uid))

    def _places_of(self, uid: str) -> list[SourcePlace]:
        return [SourcePlace.of_elements(own) for own in self._by_subtask(uid, PLACE)]

    def source_of(
        self, step: Transformation, source: Source, parallelism: int
    ) -> tuple[int, list[tuple[Sequence[SourceSplit], RestoredSource]]] | None:
        """Return where a source with splits resumes, or None at its beginning.

        Parameters
        ----------
        step : Transformation
        source : Source
        parallelism : int
            Number of subtasks that read it.

        Returns
        -------
        (int, list of (sequence of SourceSplit, RestoredSource))
            The number of subtasks that its splits were created for, and for each subtask its splits, and where it goes
            on.
        """
        if self._checkpoint is None or self.clock is None:
            return None
        uid = self._uid(step)
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            places = self._places_of(uid)
            watermarks: list[SourceWatermarks | None] = [None] * len(places)
            if not self._is_drained:
                watermarks = [SourceWatermarks.of_elements(own) for own in self._by_subtask(uid, WATERMARKS)]
            splits = splits_that_go_on(source, parallelism, places, watermarks, self._checkpoint.splits(uid))
        furthest = max(places, key=lambda place: place.last_ms)
        is_of_arrivals = self._configuration.get_clock() == "arrival"
        last = (self.clock.now_ms, self.clock.last_origin) if is_of_arrivals else None
        known = {each[0] for held in watermarks if held is not None for each in held.splits}
        parts: list[tuple[Sequence[SourceSplit], RestoredSource]] = []
        for index, of_subtask in enumerate(splits):
            place = places[index] if len(places) == parallelism else furthest._replace(polls=0, turn=[])
            if not place.created_for:
                place = place.with_new(split.split_id for split in of_subtask if split.split_id not in known)
            held = where_it_was(watermarks, index, parallelism, _watermark_of_source)
            of_splits = watermarks_that_go_on(watermarks, held, of_subtask)
            parts.append((of_subtask, RestoredSource(place, of_splits, self._next_tick_ms, last)))
        return furthest.created_for or parallelism, parts

    def functions_of(self, step: Transformation, parallelism: int) -> list[RestoredFunction] | None:
        """Return where each subtask of a source function resumes, or None at the beginning."""
        if self._checkpoint is None:
            return None
        uid = self._uid(step)
        arrivals = self._arrivals_of(uid)
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            contexts = [] if self._is_drained else self._contexts_of(uid)
        if len(arrivals) != parallelism:
            furthest = max(arrivals, key=lambda own: own[1])
            have_ended = min(has_ended for *_, has_ended in arrivals)
            arrivals = [(*furthest[:3], have_ended)] * parallelism
        functions: list[RestoredFunction] = []
        for index, states in enumerate(self._checkpoint.operator_states(uid, parallelism)):
            own = {name: state for name, state in states.items() if name not in (ARRIVALS, CONTEXT, SENT)}
            context = None
            if contexts:
                context = where_it_was(contexts, index, parallelism, lambda state: state[:2] or (0, 0))
            position, last_ms, slept_ms, has_ended = arrivals[index]
            functions.append(RestoredFunction(position, last_ms, slept_ms, bool(has_ended), context, own))
        return functions

    def _arrivals_of(self, uid: str) -> list[tuple[int, int, int, int]]:
        assert self._checkpoint is not None
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            return [
                tuple(checked_numbers(uid, own, [0, MIN_TIMESTAMP, 0, 0]))  # type: ignore[misc]
                for own in self._by_subtask(uid, ARRIVALS)
            ]

    def cut_of(self, step: Transformation) -> TimeCut | None:
        """Return the cut at which a log resumes, or None at its beginning."""
        if self._checkpoint is None:
            return None
        with refused_as(self._checkpoint.storage.path):
            (cut,) = cuts_of_one_replay([TimeCut.of_table(self._checkpoint.time_plane(self._uid(step)))])
            return cut

    def splits_of(self, step: Transformation, split_values: Sequence[Any]) -> RestoredSplits | None:
        """Return the state from which the watermarks of a log's splits resume, or None at their beginning."""
        if self._checkpoint is None or self.clock is None:
            return None
        uid = self._uid(step)
        states = self._checkpoint.operator_states(uid, 1)[0]
        if SPLITS not in states:
            return None
        with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
            known = dict(_split_watermarks(broadcast_elements(states, SPLITS)))
        splits = [known.get(value) for value in split_values]
        assert self._next_tick_ms is not None  # logs have the clock of arrivals
        return RestoredSplits(splits, self._checkpoint.watermark_ms(uid), self._next_tick_ms)

    def commit_prepared(self) -> None:
        """Make visible what the run before had prepared, should it have ended before it could."""
        if self._checkpoint is None:
            return
        for node, uid in self._uids.items():
            sink = _sink_of(node)
            if sink is None:
                continue
            state = self._checkpoint.operator_states(uid, 1)[0].get(COMMITTABLES)
            committables = [] if state is None else list(state.elements)
            serializer = sink.committable_serializer()
            if serializer is not None:
                with refused_as(f"{self._checkpoint.storage.path}, operator {uid!r}"):
                    if not all(type(each) is bytes for each in committables):
                        raise SchemaError("it has committables that are not bytes")
                    committables = [serializer.deserialize(each) for each in committables]
            sink.commit(committables)

    def _uid(self, step: Transformation) -> str:
        return next(
            uid for node, uid in self._uids.items() if node.transformation is step and not node.collects
        )

    def last_origin(self, number: int) -> int:
        """Return the number of the origin of the last element: of this run, or else of the one before."""
        return self.clock.last_origin if number < 0 and self.clock is not None else number

    # ---- how the job stops ----

    def refuse_to_stop_amid(self) -> None:
        """Accept a job on the arrival clock if its sources can go on from any place: of an event log only the end can.

        Raises
        ------
        ConfigurationError
            If one cannot.
        """
        for node in self._uids:
            step = node.transformation
            if isinstance(step, SourceTransformation) and step.strategy is not None and not node.collects:
                refuse_source(node, step.source, step.strategy, is_stopped_amid=True)
            if is_source_node(node) and is_of_log(step):
                raise ConfigurationError(
                    f"a job with {node.name} cannot stop within that event log. Let it run to its end, with "
                    "stop_with_checkpoint and a log that ends where it is to stop; or cancel() it, which leaves no "
                    "checkpoint"
                )

    def refuse_functions_that_go_on(self) -> None:
        """Accept a job for a checkpoint during its run if no source function, which is ahead of its job, emits to it.

        Raises
        ------
        ConfigurationError
            If one does.
        """
        for node in self._uids:
            if isinstance(node.transformation, LegacySourceTransformation) and not node.collects:
                raise ConfigurationError(
                    f"cannot take a savepoint of a running job with {node.name}: the position of a source function is "
                    "known only after run() returns. Stop the job with stop_with_savepoint(False, ...); another run "
                    "resumes from there"
                )

    def begin(self, path: str | PathLike[str] | None = None) -> PendingCheckpoint:
        """Begin the checkpoint with which the job stops; as a context manager it is aborted by an error.

        Parameters
        ----------
        path : path, optional
            Its directory; by default the one that the job was started with.

        Raises
        ------
        ConfigurationError
            If something else is in the directory, or the job is to stop with a savepoint where there is one already.
        CheckpointError
            If the directory cannot be created or written.
        """
        found = self._stop_path if path is None else path
        assert found is not None
        if path is None and self._savepoint is not None:
            self._savepoint.check(self._stores)
        return PendingCheckpoint.begin(found, self._max_parallelism, self._stores)

    def complete(
        self,
        pending: PendingCheckpoint,
        parts: Sequence[OperatorPart],
        time: tuple[int, int, int],
        stop: Stop = Stop.AT_END,
    ) -> None:
        """Complete the checkpoint.

        Parameters
        ----------
        pending : PendingCheckpoint
        parts : sequence of OperatorPart
            Parts that all tasks have written.
        time : (int, int, int)
            When the job started, what its clock shows, and the number of the origin of its last element.
        stop : Stop

        Raises
        ------
        CheckpointError, ConfigurationError
            As of `PendingCheckpoint.commit`.
        """
        clock = OperatorSnapshot(operator_state={TIME: broadcast_state([*time, int(stop)])})
        pending.commit([pending.writer().write(CLOCK, 0, clock), *parts], self._job)
        # A checkpoint that a client asks for during the run is in another directory.
        if self._savepoint is not None and self._is_own(pending):
            self._savepoint.complete(pending.storage.path, self._stores)

    def _is_own(self, pending: PendingCheckpoint) -> bool:
        assert self._stop_path is not None
        return pending.storage.path == self._stores.locate(self._stop_path).name


def checked_numbers(name: str, values: Sequence[Any], least: Sequence[int]) -> list[int]:
    """Return numbers of a checkpoint, each of which has a least value.

    Raises
    ------
    SchemaError
        If they are not as many numbers, or one is less.
    """
    if len(values) != len(least) or any(
        type(value) is not int or not smallest <= value <= MAX_TIMESTAMP
        for value, smallest in zip(values, least, strict=False)
    ):
        raise SchemaError(f"the {name} of the checkpoint shows {list(values)!r:.80}")
    return list(values)


def _without_watermarks(snapshot: OperatorSnapshot) -> OperatorSnapshot:
    states = {
        name: state for name, state in snapshot.operator_state.items() if name not in (WATERMARKS, CONTEXT)
    }
    return replace(snapshot, watermark_ms=MIN_TIMESTAMP, operator_state=states)


def _watermark_of_source(watermarks: SourceWatermarks | None) -> tuple[int, bool]:
    return (MIN_TIMESTAMP, False) if watermarks is None else (watermarks.watermark_ms, watermarks.is_idle)


def _has_splits(step: Transformation) -> bool:
    return isinstance(step, SourceTransformation) and step.strategy is not None


def operators_of(vertices: Sequence[JobVertex]) -> list[StreamNode]:
    """Return what a checkpoint has parts of: all operators but those that collect elements, which hold nothing."""
    return [node for vertex in vertices for node in vertex.nodes if not node.collects]


def _with_committables(
    snapshot: OperatorSnapshot, node: StreamNode, committables: Sequence[Any]
) -> OperatorSnapshot:
    sink = _sink_of(node)
    assert sink is not None
    serializer = sink.committable_serializer()
    values = (
        list(committables) if serializer is None else [serializer.serialize(each) for each in committables]
    )
    state = OperatorStateSnapshot(DistributionMode.UNION, values)
    return OperatorSnapshot(
        snapshot.key_group_range,
        snapshot.watermark_ms,
        operator_state={**snapshot.operator_state, COMMITTABLES: state},
    )


def _split_watermarks(elements: Sequence[Any]) -> Iterator[tuple[Any, SplitWatermark]]:
    for element in elements:
        if not isinstance(element, list | tuple) or len(element) != 6:
            raise SchemaError(f"it has {element!r:.80} in place of a split")
        value, generator, watermark_ms, is_idle, channel_ms, is_channel_idle = element
        held = assigner_state([generator, watermark_ms, is_idle])
        _, own_ms, channel_idle = assigner_state([None, channel_ms, is_channel_idle])
        yield value, SplitWatermark(*held, (own_ms, channel_idle))


def _sink_of(node: StreamNode) -> Sink | None:
    step = node.transformation
    is_sink = isinstance(step, SinkTransformation) and not node.collects
    return step.sink if is_sink and isinstance(step.sink, Sink) else None  # type: ignore[attr-defined]

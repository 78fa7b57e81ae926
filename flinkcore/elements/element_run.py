"""Jobs that run element by element, in this process and thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flinkcore._internal.python.function_exits import exits_as_errors
from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.graph.element_transformations import (
    ChoiceTransformation,
    LegacySourceTransformation,
    MapTransformation,
    ReduceTransformation,
    SinkTransformation,
    SourceTransformation,
    VirtualTransformation,
)
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings, ElementJob
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    PartitionTransformation,
    TimestampsAndWatermarksTransformation,
    UnionTransformation,
)
from flinkcore.elements.arrivals.element_arrivals import Arrivals, OrderedArrivals, Origin, SourceSnapshot
from flinkcore.elements.arrivals.job_clock import JobClock
from flinkcore.elements.arrivals.restored_sources import Stop
from flinkcore.elements.job_sources import JobSources
from flinkcore.elements.pausable_call import PausableCall
from flinkcore.elements.started_job import StartedJob
from flinkcore.elements.tasks.operator_setup import JobContext
from flinkcore.elements.tasks.stream_graph import StreamGraphGenerator, StreamNode, is_async, job_vertices
from flinkcore.elements.tasks.stream_task import JobTasks
from flinkcore.errors import FlinkcoreError
from flinkcore.operators.late_records import LateRecords, late_records_by_operator
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.timers.processing_time import ProcessingTimeService

if TYPE_CHECKING:
    from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
    from flinkcore.elements.async_levels import AsyncLevels
    from flinkcore.elements.element_checkpoint import ElementCheckpoints
    from flinkcore.elements.system_clock import SystemJobClock
    from flinkcore.operators.async_wait_operator import AsyncElementQueue

MOST_COLLECTED = 8192
"""So many collected elements wait until the program takes them."""

COLLECTING_SECONDS = 0.02
"""After so long it gets those that there are: each change between the job's thread and the program's takes time."""

_OF_ONE_RESULT: Final = (
    EventLogSource,
    SourceTransformation,
    LegacySourceTransformation,
    TimestampsAndWatermarksTransformation,
    PartitionTransformation,
    UnionTransformation,
    VirtualTransformation,
    MapTransformation,
    ChoiceTransformation,
    ReduceTransformation,
    SinkTransformation,
)
"""Steps of whose functions no call gives more than one result: a job of these needs no thread, which costs time."""


class ElementRun(StartedJob):
    """A run of a job: its sources are read in the order of arrivals, and each element goes as far as it gets.

    The clock of the job shows when elements arrive, and does not depend on how fast the job runs. A record, and all
    that it leads to, is dealt with before the next one: whatever the parallelism, one thread opens, calls and closes
    all functions.
    Sinks get elements as they come; the program gets what it collects in parts, even during a call of a function that
    gives results without end.

    Parameters
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Working directory of its functions.
    checkpoints : CheckpointSettings
        Checkpoint from which the job resumes, and the one with which it stops.

    Raises
    ------
    ConfigurationError
        If the job has no meaning, or something in it has no checkpoints, and it takes one.
    SchemaError, SourceError, DataError
        If an event log cannot be read.
    Exception
        Error of a function as it opens.

    Notes
    -----
    Stands where Flink has ``MiniCluster``, ``StreamTask`` and ``MailboxProcessor``.
    """

    def __init__(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        directory: WorkingDirectory,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> None:
        self._directory = directory
        self._parts: Generator[list[Any], None, None] | None = None
        super().__init__(job.name, configuration)
        with directory.entered(), exits_as_errors():
            if job.collected is None or all(
                isinstance(step, _OF_ONE_RESULT) for step in job.transformations()
            ):
                self._tasks = RunningTasks(job, configuration, directory, checkpoints=checkpoints)
                self._tasks.open()
            else:
                collecting = PausableCall[list[Any]]()
                self._tasks = RunningTasks(
                    job, configuration, directory, collecting.give, checkpoints=checkpoints
                )
                self._parts = collecting.run(self._tasks.run)
                next(self._parts)

    def close(self) -> None:
        """Cancel the job if it has not come to its end; may be called again."""
        super().close()
        with self._directory.entered():
            if self._parts is None:
                self._tasks.close()
            else:
                self._parts.close()

    def _late_records(self) -> Mapping[StreamNode, LateRecords]:
        return self._tasks.late_records

    def _metrics(self) -> dict[str, Any]:
        return self._tasks.metrics()

    def _run(self) -> Generator[Any, None, None]:
        return self._directory.steps(self._emitted())

    def _emitted(self) -> Generator[Any, None, None]:
        tasks, parts = self._tasks, self._parts
        with exits_as_errors():
            if parts is None:
                with closing(tasks.steps()) as steps:
                    for _ in steps:
                        yield from tasks.collected()
                yield from tasks.collected()
            else:
                with closing(parts):
                    for elements in parts:
                        yield from elements


class RunningTasks:
    """The tasks of a job and what they read, all in one thread.

    Parameters
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    directory : WorkingDirectory
        Working directory of its functions.
    give : callable, optional
        Takes what is collected, in parts, from within the functions that give it.
    collect : callable, optional
        Takes each collected element by itself, instead.
    system_clock : SystemJobClock, optional
        The clock of the job; by default it shows the arrivals of elements.
    checkpoints : CheckpointSettings
        Checkpoint from which the job resumes, and the one with which it stops.
    check : callable, optional
        Raises an error if the job is to end at once; called where it waits.
    may_stop : bool
        Whether `stop` may be called.
    when_taken : callable, optional
        Waits until the program has taken what was collected, before a checkpoint says that it has.

    Attributes
    ----------
    has_stopped : bool
        Whether the tasks have ended by `stop`, with a checkpoint.
    late_records : dict of StreamNode to LateRecords
        The late records of each operator that drops such, once the tasks have ended.
    """

    def __init__(
        self,
        job: ElementJob,
        configuration: ExecutionConfig,
        directory: WorkingDirectory,
        give: Callable[[list[Any]], None] | None = None,
        *,
        collect: Callable[[Any], None] | None = None,
        system_clock: SystemJobClock | None = None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
        check: Callable[[], None] = lambda: None,
        may_stop: bool = False,
        when_taken: Callable[[], None] = lambda: None,
    ) -> None:
        self._job = job
        self._configuration = configuration
        self._may_stop = may_stop
        self._check = check
        self._when_taken = when_taken
        self._stop: _AskedStop | None = None
        self._savepoints: deque[_AskedSavepoint] = deque()
        self._prepared_before: dict[StreamNode, list[Any]] = {}
        self._in_savepoint: dict[StreamNode, int] = {}
        self.has_stopped = False
        self.late_records: dict[StreamNode, LateRecords] = {}
        self._elements: list[Any] = []
        self._give = give
        self._vertices = vertices = job_vertices(StreamGraphGenerator(job, configuration).generate())
        self._checkpoints = None if checkpoints == NO_CHECKPOINTS else self._checkpoints_of(checkpoints)
        self._sources = JobSources(
            vertices, configuration, job.time_characteristic, directory, self._checkpoints
        )
        self._levels: AsyncLevels | None = None
        self._system_clock = system_clock
        restored = None if self._checkpoints is None else self._checkpoints.clock
        now_ms = self._sources.start_ms if restored is None else restored.now_ms
        if system_clock is None and any(is_async(vertex.head) for vertex in vertices):
            from flinkcore.elements.async_levels import AsyncLevels  # loads asyncio

            self._levels = AsyncLevels(vertices, self._sources.start_ms, now_ms, check)
            self._clock = self._levels.clock
            clock_of_task: Callable[[int], ProcessingTimeService] = self._levels.clock_of_task
        else:
            self._clock = JobClock(self._sources.start_ms)
            self._clock.now_ms = now_ms
            clock_of_task = self._clock.of_task if system_clock is None else system_clock.of_task
        self._context = JobContext(
            configuration,
            clock_of_task,
            collect or self._collect(),
            copied_function,
            mailbox_of=None if system_clock is None else system_clock.mailbox_of,
            has_checkpoint=may_stop or self._checkpoints is not None,
            downtime_ms=0 if system_clock is None or restored is None else _since_ms(restored.now_ms),
            restored=None if self._checkpoints is None else self._checkpoints.of_tasks().subtasks(vertices),
            async_queue_of=self._async_queue_of,
            placed_channel=None if self._levels is None else self._levels.placed_channel,
        )
        self._tasks = JobTasks(vertices, self._context)
        self._arrivals: Arrivals = OrderedArrivals([])
        self._has_begun = False
        self._has_ended = False

    def _checkpoints_of(self, settings: CheckpointSettings) -> ElementCheckpoints:
        from flinkcore.elements.element_checkpoint import ElementCheckpoints  # loads pyarrow

        return ElementCheckpoints(self._vertices, self._job, self._configuration, settings)

    def stop(self, path: str | PathLike[str] | None = None, drains: bool = False) -> None:
        """Stop the tasks during their sources, with a checkpoint; may be called in any thread.

        Parameters
        ----------
        path : path, optional
            Its directory; by default the one that the job was started with.
        drains : bool
            Whether event time is advanced to its end before.

        Raises
        ------
        ConfigurationError
            If something in the job has no checkpoints, or none during the sources; the job continues.
        """
        self._stop = _AskedStop(self._checkpoints_amid(path), path, drains)
        self._wake()

    def trigger_savepoint(
        self, path: str | PathLike[str], done: Callable[[FlinkcoreError | None], object]
    ) -> None:
        """Let the tasks write a checkpoint to a directory, and go on; may be called in any thread.

        Parameters
        ----------
        path : path
        done : callable
            Called when the checkpoint is complete, with None, or with the error that prevented it.

        Raises
        ------
        ConfigurationError
            If something in the job has no checkpoints, or none during the sources.
        """
        checkpoints = self._checkpoints_amid(path)
        checkpoints.refuse_functions_that_go_on()
        self._savepoints.append(_AskedSavepoint(checkpoints, path, done))
        self._wake()

    def _checkpoints_amid(self, path: str | PathLike[str] | None) -> ElementCheckpoints:
        checkpoints = self._checkpoints
        if checkpoints is None:
            checkpoints = self._checkpoints_of(CheckpointSettings(stop_with_checkpoint=path))
        if self._system_clock is None:
            checkpoints.refuse_to_stop_amid()
        return checkpoints

    def _wake(self) -> None:
        self._arrivals.wake()
        if self._system_clock is not None:
            self._system_clock.mailbox.wake()

    def _async_queue_of(self, task: int, capacity: int, ordered: bool) -> AsyncElementQueue:
        if self._levels is not None:
            return self._levels.queue_of(task, capacity)
        from flinkcore.elements.tasks.stream_element_queues import MailboxQueue

        assert self._system_clock is not None
        return MailboxQueue(self._system_clock.mailbox_of(task), capacity, ordered)

    def open(self) -> None:
        """Open the functions; raises what one of them raises."""
        self._tasks.open()

    def _collect(self) -> Callable[[Any], None]:
        elements, append, most = self._elements, self._elements.append, MOST_COLLECTED
        if self._give is None:
            return append

        def collect(element: Any) -> None:
            append(element)
            if len(elements) >= most:
                self._give_collected()

        return collect

    def collected(self) -> list[Any]:
        """Take what has been collected."""
        taken = self._elements.copy()
        self._elements.clear()
        return taken

    def _give_collected(self) -> None:
        assert self._give is not None
        self._give(self.collected())

    def metrics(self) -> dict[str, Any]:
        return self._context.metrics.values()

    def steps(self) -> Generator[None, None, None]:
        """Run the tasks to their end, and stop now and then, the last time when only the end is to come."""
        self._has_begun = True
        checkpoints = self._checkpoints
        try:
            if checkpoints is not None:
                checkpoints.commit_prepared()
                if checkpoints.stops:
                    with checkpoints.begin() as pending:
                        yield from self._steps(pending)
                    return
            yield from self._steps(None)
        finally:
            self._cancel()

    def _steps(self, pending: PendingCheckpoint | None) -> Generator[None, None, None]:
        """Run the tasks to their end, or until they are stopped; a checkpoint was begun if their end is one."""
        origins = list[Origin]()
        arrivals = OrderedArrivals(origins, stops=pending is not None)
        self._arrivals = arrivals
        by_task = self._add_origins(origins)
        self._check()  # who has cancelled, or stopped, the job by now did not see all origins
        if self._stop is not None or self._savepoints:
            arrivals.wake()
        if len(origins) == 1 and not (self._system_clock or self._may_stop or pending or self._levels):
            self._arrivals = origins[0]
        for _ in self._emitted(origins, arrivals, pending is not None):
            if self._stop is None:
                self._write_savepoints(by_task, arrivals)
            yield
        yield
        if self._stop is not None and self._stop.path is not None:
            checkpoints, path, _ = self._stop
            if pending is not None:
                pending.abort()
            with checkpoints.begin(path) as begun:
                self._end_with_checkpoint(begun, checkpoints, by_task, arrivals.last_origin)
        elif pending is not None:
            assert self._checkpoints is not None
            self._end_with_checkpoint(pending, self._checkpoints, by_task, arrivals.last_origin)
        else:
            self._end()

    def _emitted(
        self, origins: Sequence[Origin], arrivals: OrderedArrivals, holds_ends: bool
    ) -> Iterator[None]:
        """Emit all elements, and pause between two of them now and then."""
        if self._system_clock is None:
            return self._steps_of_arrivals(arrivals)
        return self._system_clock.emit_all(origins, holds_ends, lambda: self._stop is not None)

    def _write_savepoints(self, by_task: Mapping[int, Origin], arrivals: OrderedArrivals) -> None:
        """Write the checkpoints that were asked for, between two elements."""
        while self._savepoints:
            checkpoints, path, done = self._savepoints.popleft()
            if self._levels is not None:
                self._levels.catch_up()
            now_ms, last_origin = self._clock.now_ms, arrivals.last_origin
            if self._system_clock is not None:
                self._system_clock.finish_calls(self._tasks.tasks())
                now_ms, last_origin = _since_ms(0), 0
            prepared = self._prepare()
            try:
                sources = {number: origin.snapshot(is_amid=True) for number, origin in by_task.items()}
                with checkpoints.begin(path) as pending:
                    parts = self._written(pending, checkpoints, sources, prepared, Stop.AMID)
                    last = checkpoints.last_origin(last_origin)
                    checkpoints.complete(pending, parts, (self._sources.start_ms, now_ms, last), Stop.AMID)
            except FlinkcoreError as failure:
                done(failure)
            else:
                self._in_savepoint = {node: len(committables) for node, committables in prepared.items()}
                done(None)

    def _written(
        self,
        pending: PendingCheckpoint,
        checkpoints: ElementCheckpoints,
        sources: Mapping[int, SourceSnapshot],
        prepared: Mapping[StreamNode, Sequence[Any]],
        stop: Stop,
    ) -> list[OperatorPart]:
        """Write what the tasks hold."""
        of_tasks = checkpoints.of_tasks(pending)
        parts: list[OperatorPart] = []
        for number, task in enumerate(self._tasks.tasks()):
            of_first = prepared if task.index == 0 else {}
            parts += of_tasks.write(task, self._vertices, sources.get(number), of_first, stop)
        return parts

    def _steps_of_arrivals(self, arrivals: OrderedArrivals) -> Iterator[None]:
        is_stopping = False
        for _ in self._arrivals.emit_all(self._clock):
            yield
            if self._stop is not None:
                if not is_stopping:
                    is_stopping = True
                    arrivals.stop()
                if arrivals.has_stopped:
                    break
        if self._levels is not None:
            if self._stop is not None or (self._checkpoints is not None and self._checkpoints.stops):
                self._levels.catch_up()
            else:
                self._levels.take_all()

    def _end_with_checkpoint(
        self,
        pending: PendingCheckpoint,
        checkpoints: ElementCheckpoints,
        by_task: Mapping[int, Origin],
        last_origin: int,
    ) -> None:
        """Write what the tasks hold, and make visible what the sinks have written."""
        stop = Stop.AT_END if self._stop is None and self._system_clock is None else Stop.AMID
        start_ms, now_ms = self._sources.start_ms, self._clock.now_ms
        if self._system_clock is not None:
            self._system_clock.finish_calls(self._tasks.tasks())
            now_ms, last_origin = _since_ms(0), 0
        sources = {number: origin.snapshot(stop is not Stop.AT_END) for number, origin in by_task.items()}
        if self._stop is not None and self._stop.drains:
            stop = Stop.DRAINED
            self._drain(by_task.values())
        self._when_taken()
        # Once the checkpoint is complete, the next run commits what this one cannot.
        with self._prepared(pending.may_be_complete) as prepared:
            parts = self._written(pending, checkpoints, sources, prepared, stop)
            self._close_tasks()
            self._has_ended = True
            last = checkpoints.last_origin(last_origin)
            checkpoints.complete(pending, parts, (start_ms, now_ms, last), stop)
        self.has_stopped = self._stop is not None
        commit(prepared)

    def _drain(self, origins: Iterable[Origin]) -> None:
        """Advance event time to its end: all windows and timers fire, as if the sources had ended."""
        for origin in origins:
            if origin.next_arrival_ms is None:
                continue
            if self._system_clock is None:
                end_ms = self._clock.now_ms + 1
                self._clock.fire_before(end_ms)
                self._clock.end(end_ms, origin.number)
            origin.end()
        if self._levels is not None:
            self._levels.take_all()

    def run(self) -> None:
        """Open the functions, give nothing, run the tasks to their end, and give what they have collected in time.

        All calls of a function are made here, in one thread: what it opens may belong to that thread.
        """
        self.open()
        try:
            self._give_collected()
            given_s = time.monotonic()
            with closing(self.steps()) as steps:
                for _ in steps:
                    if time.monotonic() >= given_s + COLLECTING_SECONDS:
                        self._give_collected()
                        given_s = time.monotonic()
        finally:
            self._cancel()
        self._give_collected()

    def cancel_sources(self) -> None:
        """Let what emits by itself come to an end soon; may be called in any thread."""
        self._arrivals.cancel()

    def close(self) -> None:
        """Cancel the tasks if they have not begun: else their steps do it."""
        if not self._has_begun:
            self._cancel()

    def _add_origins(self, origins: list[Origin]) -> dict[int, Origin]:
        """Add what arrives from all sources; return the last origin of each task of a source."""
        tasks = self._tasks.tasks()
        by_task: dict[int, Origin] = {}
        for number, source in self._sources.of_tasks().items():
            origins += source.origins(tasks[number])
            by_task[number] = origins[-1]
        if self._checkpoints is not None and self._system_clock is None:
            self._checkpoints.of_tasks().check_goes_on(origins)
        return by_task

    @contextmanager
    def _prepared(self, is_kept: Callable[[], bool] = lambda: False) -> Iterator[dict[StreamNode, list[Any]]]:
        """Let the writers of sinks prepare what they have written; an error discards that unless it is to be kept."""
        try:
            yield self._prepare()
        except BaseException:
            if not is_kept():
                self._discard_prepared()
            raise
        finally:
            self._prepared_before = {}

    def _prepare(self) -> dict[StreamNode, list[Any]]:
        """Let the writers of sinks prepare what they have written since, and return all that is not committed."""
        for task in self._tasks.tasks():
            for node, committables in task.prepare_commit():
                self._prepared_before.setdefault(node, []).extend(committables)
        return self._prepared_before

    def _discard_prepared(self) -> None:
        """Let go of what was prepared, but for what a run from a savepoint is to commit."""
        discard(
            {
                node: committables[self._in_savepoint.get(node, 0) :]
                for node, committables in self._prepared_before.items()
            }
        )

    def _end(self) -> None:
        """Close all operators, and make visible what the sinks have written."""
        with self._prepared() as prepared:
            self._close_tasks()
        commit(prepared)
        self._has_ended = True

    def _close_tasks(self) -> None:
        self.late_records = late_records_by_operator(
            late for task in self._tasks.tasks() for late in task.late_records()
        )
        self._tasks.close()

    def _cancel(self) -> None:
        with suppress(Exception):
            self._arrivals.close()
        if self._system_clock is not None:
            self._system_clock.close()
        if not self._has_ended:
            self._has_ended = True
            self._tasks.cancel()
            self._discard_prepared()


class _AskedSavepoint(NamedTuple):
    """Arguments of `RunningTasks.trigger_savepoint`, and the checkpoints of the job."""

    checkpoints: ElementCheckpoints
    path: str | PathLike[str]
    done: Callable[[FlinkcoreError | None], object]


class _AskedStop(NamedTuple):
    """Arguments of `RunningTasks.stop`, and the checkpoints of the job."""

    checkpoints: ElementCheckpoints
    path: str | PathLike[str] | None
    drains: bool


def _since_ms(time_ms: int) -> int:
    """Return how long a time of the system clock is ago."""
    return max(0, time.time_ns() // 1_000_000 - time_ms)


def commit(prepared: dict[StreamNode, list[Any]]) -> None:
    """Make visible what the writers of sinks have prepared."""
    for node, committables in prepared.items():
        _sink_of(node).commit(committables)


def discard(prepared: dict[StreamNode, list[Any]]) -> None:
    """Let go of what the writers of sinks have prepared, as the job was cancelled."""
    for node, committables in prepared.items():
        with suppress(Exception):
            _sink_of(node).discard(committables)


def _sink_of(node: StreamNode) -> Sink:
    step = node.transformation
    assert isinstance(step, SinkTransformation)
    assert isinstance(step.sink, Sink)
    return step.sink

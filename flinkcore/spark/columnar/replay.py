"""One plan on Spark: the first pass once, then the data plane for each output that is asked for."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flinkcore._internal.io.stores import Stores
from flinkcore._internal.python.replay_threads import cores_here
from flinkcore.checkpoint import OperatorPart, PendingCheckpoint
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints, StoppingJob
from flinkcore.columnar.planned_job import EmbeddedPlannedJob, TimesTask
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.exchange import Exchange
from flinkcore.columnar.results.late_events import LossWarning
from flinkcore.columnar.results.progress import ProgressListener, listener_of_run
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.stages.read_counts import ReadCounts
from flinkcore.datastream.graph.pipeline_executor import ProgressChoice
from flinkcore.errors import InternalError
from flinkcore.log.sources.chunks import Chunk, ChunkTask
from flinkcore.spark.columnar.chunks_task import GIVEN, ChunksTask
from flinkcore.spark.columnar.deal_state_task import DealStateTask
from flinkcore.spark.columnar.element_pass import run_element_pass
from flinkcore.spark.columnar.forward_task import ForwardTask, ForwardWay
from flinkcore.spark.columnar.late_counts import Counts, ExpectedCounts, LateSample, LateWarnings
from flinkcore.spark.columnar.map_task import MapTask, MapWay, MergingEvents
from flinkcore.spark.columnar.next_blocks import BlocksForNext, WayToNext
from flinkcore.spark.columnar.numbered_tasks import run_on_executors
from flinkcore.spark.columnar.operator_levels import PACKED, OperatorLevels, PartitionPacking
from flinkcore.spark.columnar.progress import ProgressAddress, progress_of, progress_of_times
from flinkcore.spark.columnar.reduce_task import ReduceOutput, ReduceStage, ReduceTask
from flinkcore.spark.columnar.task_outputs import TASK_ROWS
from flinkcore.spark.columnar.time_pass import SummariseTask, run_time_passes
from flinkcore.spark.exchange.block_sender import BLOCK_ROWS, BlockRoute
from flinkcore.spark.exchange.blocks import BLOCKS, BLOCKS_ORDER
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.partitioning import chooses_partitions, to_partitions
from flinkcore.spark.exchange.sent_bytes import INLINE_BYTES
from flinkcore.spark.exchange.sent_timeline import SentTime, SentTimeline
from flinkcore.spark.logs.log_input import FileInput, LogInput, ReadingTimes
from flinkcore.spark.logs.spark_log import (
    SparkLog,
    UnrankedFiles,
    UnreadDataFrame,
    UnreadLog,
    chunks_with_times_here,
)
from flinkcore.spark.logs.task_packing import TaskPacking
from flinkcore.spark.sessions.session import own_shuffles, short_job, spark_context
from flinkcore.spark.sessions.session_stores import SessionStores
from flinkcore.spark.sessions.spark_jobs import SparkJobs
from flinkcore.spark.shipping.shared_values import Shared
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.job_time import JobTime, ReplayTime
from flinkcore.time_plane.timeline import TimePlane

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

PASS_2: Final = "pass 2 of 2, events by key"

TASK_MODULES: Final = frozenset(
    task.__module__ for task in (SummariseTask, MapTask, DealStateTask, ReduceTask, ForwardTask)
)
"""Names of the modules that the tasks of a replay import."""


class SparkReplay:
    """A plan and the session that runs it.

    Parameters
    ----------
    spark
        The session.
    plan
        The job.
    logs
        Its logs, in the order of the plan.
    parallelism
        Number of partitions of each operator, as far as it has so many key groups.
    progress
        Receiver of the progress of the replay, while the driver waits for it.
    block_rows
        Most events of a block of the shuffle.
    inline_bytes
        Most bytes of a timeline that travels within each task.
    packing
        Rule by which partitions share tasks.
    checkpoints
        The one that it is restored from, and the one with which it stops.
    """

    def __init__(
        self,
        spark: Any,
        plan: JobPlan,
        logs: Sequence[SparkLog | UnreadLog],
        parallelism: int,
        progress: ProgressChoice = "off",
        block_rows: int = BLOCK_ROWS,
        inline_bytes: int = INLINE_BYTES,
        checkpoints: JobCheckpoints | None = None,
        packing: PartitionPacking = PACKED,
    ) -> None:
        self.plan = plan
        self.checkpoints = JobCheckpoints(plan) if checkpoints is None else checkpoints
        self._parallelism = parallelism
        self._levels = OperatorLevels.of(plan, parallelism)
        self._spark = spark
        self.jobs = SparkJobs(spark)
        self._given_logs = logs
        self._progress = progress
        self._block_rows = block_rows
        self._inline_bytes = inline_bytes
        self._packing = packing
        self._releases: list[weakref.finalize[Any, Any]] = []
        chunks = chunks_with_times_here(spark, logs)
        self._listener: ProgressListener | None = None
        self._times_here: EmbeddedPlannedJob | None = None
        if chunks is not None:
            self._times_here = EmbeddedPlannedJob(plan, cores_here(), self.checkpoints, chunks)

    @property
    def stores(self) -> Stores:
        """File systems of locations, with the settings of the session."""
        return SessionStores(self._spark)

    def files_of_dataframes(self) -> Iterator[str]:
        """Yield the URIs of the files that Spark reads for DataFrames."""
        for log in self._given_logs:
            if isinstance(log, UnreadDataFrame):
                yield from log.data.dataframe.inputFiles()

    @cached_property
    def _first_pass(self) -> list[tuple[TimePlane, SparkLog]]:
        if self._times_here is not None:
            self._times_here.show_progress(self._listener)
            logs = [log for log in self._given_logs if isinstance(log, SparkLog)]
            return list(zip(self._times_here.time_planes, logs, strict=True))
        cuts = self.checkpoints.cuts
        files = sum(
            len(chunk.parts)
            for (number, *_) in self.plan.ways
            for chunk in _chunks_of_files(self._given_logs[number])
        )
        with (
            self.jobs.described("pass 1 of 2, times of the log"),
            self._shortly(),
            progress_of_times(self._spark, files, self._listener),
        ):
            stops, ways, waiting = self.checkpoints.stops, self.plan.ways, self.checkpoints.waiting
            found = run_time_passes(self._spark, self._given_logs, cuts, stops, ways, waiting)
            self._release_with_this(log for _, log in found)
            return [
                (
                    run_element_pass(
                        self._spark,
                        log.plan,
                        time_plane,
                        log.log,
                        self._levels.partitions[0],
                        cut,
                    )
                    if log.plan.is_by_element
                    else time_plane,
                    log,
                )
                for (time_plane, log), cut in zip(found, cuts or [None] * len(found), strict=True)
            ]

    def _release_with_this(self, logs: Iterable[SparkLog]) -> None:
        """Let go of what Spark keeps of DataFrames when nobody can run this replay any more."""
        for log in logs:
            if log.kept is not None:
                self._releases.append(weakref.finalize(self, log.kept.release_later))
                self._releases[-1].atexit = False

    def again(self) -> Callable[[], SparkReplay]:
        """Return a callable that returns this replay while it is used, and afterwards a new one over the same logs."""
        this = weakref.ref(self)
        new = partial(
            SparkReplay,
            self._spark,
            self.plan,
            self._given_logs,
            self._parallelism,
            inline_bytes=self._inline_bytes,
            checkpoints=self.checkpoints,
        )
        return lambda: this() or new()

    def outlive(self) -> None:
        """Leave it to Spark to release what it keeps of DataFrames: its own DataFrames still need that."""
        _ = self._first_pass
        for release in self._releases:
            release.detach()

    def _shortly(self) -> AbstractContextManager[None]:
        """Settings for jobs that compute nothing of the user's and are over before compiled code would pay."""
        short = all(log.is_short for log in self._given_logs)
        return short_job(self._spark) if short else nullcontext()

    def _unchecked(self) -> AbstractContextManager[None]:
        """Settings for jobs whose tasks send the same rows each time, which nobody knows of process functions."""
        # Functions that SQL calls are refused if they are not deterministic.
        return nullcontext() if self.plan.calls_rows else own_shuffles(self._spark)

    @property
    def _logs(self) -> list[SparkLog]:
        """The logs as the second pass reads them."""
        return [log for _, log in self._first_pass]

    @property
    def time_planes(self) -> list[TimePlane]:
        """The time plane of each log; runs the first pass when first asked for."""
        return [time_plane for time_plane, _ in self._first_pass]

    def on_chunks(self, log: int, task: ChunkTask) -> Iterator[bytes]:
        """Run a task on each chunk of log `log`, and yield its results, chunk by chunk in log order."""
        shared = Shared(task)
        for read in [*self._waiting_input(log), self._logs[log].log]:
            given = read.for_tasks(self._spark)
            pieces = given.dataframe.mapInArrow(
                portable(self._spark, ChunksTask(given.source, shared)), GIVEN.struct_type
            )
            with (
                self.jobs.described("chunks of the log"),
                closing(collected_in_parts(pieces, "chunk", "piece")) as rows,
            ):
                for row in rows:
                    yield bytes(row.payload)

    def _waiting_input(self, number: int) -> list[LogInput]:
        """Return what waits in the checkpoint for paused splits of log `number`, if anything does."""
        chunks = self.checkpoints.waiting_of(number)
        return [FileInput(chunks, TaskPacking())] if chunks else []

    def keep_times(self) -> None:
        """Let the first pass keep the times of the only log for `on_times`, if the driver reads them."""
        if self._times_here is not None:
            self._times_here.keep_times()

    def on_times(self, task: TimesTask) -> Iterator[bytes]:
        """Run a task on the times of each chunk of the only log, as `on_chunks` does."""
        return self.on_chunks(0, task) if self._times_here is None else self._times_here.on_times(task)

    @cached_property
    def _job_time(self) -> JobTime:
        return JobTime(self.plan.streams, self.time_planes, self.checkpoints.cuts)

    @cached_property
    def _times(self) -> list[ReplayTime]:
        """As each operator sees it."""
        return self._job_time.replay_times()

    @cached_property
    def _sent_times(self) -> list[SentTime]:
        """The same, as tasks receive it; operators with one timeline share it."""
        context, sent = spark_context(self._spark), dict[int, SentTimeline]()
        for time in self._times:
            if id(time.timeline) not in sent:
                sent[id(time.timeline)] = SentTimeline.of(time.timeline, context, self._inline_bytes)
        return [
            SentTime(sent[id(time.timeline)], time.last_arrival_ms, time.second_from) for time in self._times
        ]

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress of the run in the block."""
        with listener_of_run(self._progress) as self._listener:
            try:
                yield
            finally:
                self._listener = None

    def begin(self) -> StoppingJob:
        """Begin the checkpoint of a run; see `JobCheckpoints.begin`."""
        stopping = self.checkpoints.begin()
        stopping.run_tasks = partial(run_on_executors, self._spark, self.jobs)
        with ExitStack() as failing:
            failing.push(stopping)
            if stopping.pending is not None:
                stopping.write_cuts(self._job_time.cuts())
            failing.pop_all()
        return stopping

    def dataframe(
        self,
        output: ReduceOutput,
        schema: Any,
        progress: ProgressAddress | None = None,
        stopping: StoppingJob | None = None,
        for_user: bool = False,
    ) -> Any:
        """Return a DataFrame of what the reduce tasks make of their results; it runs when it is used.

        Parameters
        ----------
        output
            Output of their results.
        schema
            Columns of that.
        progress
            Where tasks report how far they are.
        stopping
            The checkpoint with which the job stops.
        for_user
            Whether it is part of the user's queries, and not of this package's: then its tasks report late events.
        """
        if self._tasks_of_files:
            return self._where_read(output, schema, progress, for_user)
        context = spark_context(self._spark) if for_user else None
        late_counts = None if context is None else self._late_warnings().accumulator(context)
        pending = None if stopping is None else stopping.pending
        broadcasts = [each for time in self._sent_times for each in time.timeline.steps.broadcasts]
        mapped = [
            (
                level,
                dataframe.mapInArrow(portable(self._spark, task, for_user, broadcasts), BLOCKS.struct_type),
            )
            for level, dataframe, task in self._map_tasks(progress, stopping, late_counts)
        ]
        by_id = chooses_partitions(mapped[0][1])
        mapped += [
            (
                level,
                self._spark.range(0, task.n_ranges, 1, task.n_ranges).mapInArrow(
                    portable(self._spark, task, for_user), BLOCKS.struct_type
                ),
            )
            for level, operators in enumerate(self._levels.levels)
            for number in operators
            if (task := self._deal_state_task(number, level, by_id)) is not None
        ]
        levels = self._levels
        passed_on: list[Any] = []
        for level, operators in enumerate(levels.levels):
            is_last = level + 1 == len(levels.levels)
            slots = () if is_last else levels.slots(level + 1, self._tasks(level + 1), by_id)
            logs = [blocks for first, blocks in mapped if first == level]
            blocks = reduce(lambda some, more: some.union(more), [*logs, *passed_on])
            ordered = to_partitions(blocks, self._tasks(level), "slot").sortWithinPartitions(*BLOCKS_ORDER)
            tasks = [
                self._reduce_task(number, output, progress, pending, late_counts)
                if is_last
                else self._reduce_task(
                    number, self._blocks_for_next(number, slots), None, pending, late_counts
                )
                for number in operators
            ]
            first_partitions = tuple(levels.first_partitions[number] for number in operators)
            stage = ReduceStage(tuple(tasks), first_partitions, slots)
            passed_on = [
                ordered.mapInArrow(
                    portable(self._spark, stage, for_user, broadcasts),
                    schema if is_last else BLOCKS.struct_type,
                )
            ]
        (results,) = passed_on
        return results

    @cached_property
    def _tasks_of_files(self) -> dict[tuple[int, ...], int]:
        """For each log that is read, the number of its tasks, if they also run the operator; else nothing.

        They do if it is the only one and takes rows anywhere, each log is in files, and the job has no checkpoint. With
        a parallelism of 1, all rows come in total order.
        """
        (first, *others), checkpoints = self.plan.stages, self.checkpoints
        if others or not first.takes_rows_anywhere or self._parallelism == 1:
            return {}
        if checkpoints.stops or checkpoints.restored is not None:
            return {}
        inputs = {together: self._logs[together[0]].log for together in self.plan.ways}
        tasks = {together: len(log.tasks) for together, log in inputs.items() if isinstance(log, FileInput)}
        return tasks if len(tasks) == len(inputs) and all(tasks.values()) else {}

    def _where_read(
        self, output: ReduceOutput, schema: Any, progress: ProgressAddress | None, for_user: bool
    ) -> Any:
        """Return a DataFrame of the outputs of the tasks that read the logs, and run the operator."""
        (time,) = self._sent_times
        partitions, first = self._partitions(0), 0
        read = []
        for together, tasks in self._tasks_of_files.items():
            times = ReadingTimes.of(*(self.time_planes[number] for number in together))
            given = self._logs[together[0]].log.for_tasks(self._spark, times)
            ways = tuple(
                ForwardWay(self._logs[number].plan, number, self._times[0].first_splits[number])
                for number in together
            )
            task = ForwardTask(self.plan, ways, time, given.source, output, first, partitions, progress)
            shipped = portable(self._spark, task, for_user, time.timeline.steps.broadcasts)
            read.append(given.dataframe.mapInArrow(shipped, schema))
            first += tasks
        return reduce(lambda some, more: some.union(more), read)

    def _partitions(self, number: int) -> int:
        """Return the number of partitions of an operator."""
        return sum(self._tasks_of_files.values()) or self._levels.partitions[number]

    def _tasks(self, level: int) -> int:
        """Return the number of tasks that run the partitions of a level."""
        events = sum(time_plane.events for time_plane in self.time_planes)
        return self._levels.tasks(level, self.plan, events, self._packing)

    def _blocks_for_next(self, number: int, slots: tuple[int, ...]) -> BlocksForNext:
        """Return the output of an operator that others follow: blocks for these."""
        ways = []
        for following, stage in enumerate(self.plan.stages):
            first_sender = self._chunks
            for input_number, between in stage.results:
                if between.stage == number:
                    ways.append(WayToNext(self._route(following, input_number, slots), between, first_sender))
                first_sender += self._levels.partitions[between.stage]
        return BlocksForNext(self.plan, tuple(ways))

    def _route(self, operator: int, input_number: int, slots: tuple[int, ...]) -> BlockRoute:
        """Return the route to an input of an operator."""
        exchange = Exchange.of(self.plan.stages[operator], input_number, self._levels.partitions[operator])
        return BlockRoute(exchange, operator, input_number, self._levels.first_partitions[operator], slots)

    def _reduce_task(
        self,
        number: int,
        output: ReduceOutput,
        progress: ProgressAddress | None,
        pending: PendingCheckpoint | None = None,
        late_counts: Accumulator[Counts] | None = None,
    ) -> ReduceTask:
        return ReduceTask(
            self.plan,
            self._sent_times[number],
            self._levels.partitions[number],
            self._senders(number),
            output,
            progress,
            self.checkpoints.operator(number),
            pending,
            number,
            late_counts,
        )

    def _deal_state_task(self, number: int, level: int, by_id: bool) -> DealStateTask | None:
        """Return the task that deals out the state of an operator, or None if the operator finds it by itself."""
        restored, levels = self.checkpoints.operator(number), self._levels
        dealt = None if restored is None else restored.dealt
        if dealt is None:
            return None
        slots = levels.slots(level, self._tasks(level), by_id)
        max_parallelism = self.plan.stages[number].max_parallelism
        return DealStateTask(
            dealt, max_parallelism, levels.first_partitions[number], levels.partitions[number], slots
        )

    def _senders(self, number: int) -> int:
        """Return how many chunks, and partitions of other operators, send to each partition of an operator."""
        stage = self.plan.stages[number]
        chunks = sum(len(self.time_planes[log].starts.chunks) for log in stage.logs)
        return chunks + sum(self._levels.partitions[each.stage] for _, each in stage.results)

    def _map_tasks(
        self,
        progress: ProgressAddress | None,
        stopping: StoppingJob | None,
        late_counts: Accumulator[Counts] | None = None,
    ) -> Iterator[tuple[int, Any, MapTask]]:
        """Yield, for each log that is read, the first level that takes its events, the input of tasks, and the task."""
        windows = self.plan.partial_windows()
        merging = None
        if not isinstance(windows, str):
            merging = MergingEvents(windows, self._sent_times[0].timeline)
        numbers = range(len(self.plan.logs))
        first_chunks = [0, *accumulate(map(self._numbers_of_chunks, numbers))]
        levels = self._levels
        level_of = {number: level for level, operators in enumerate(levels.levels) for number in operators}
        waiting = [((number,), log) for number in numbers for log in self._waiting_input(number)]
        for together, log in [*waiting, *((each, self._logs[each[0]].log) for each in self.plan.ways)]:
            level = min(level_of[self.plan.stage_of_log(number)] for number in together)
            given = log.for_tasks(
                self._spark, ReadingTimes.of(*(self.time_planes[number] for number in together))
            )
            slots = levels.slots(level, self._tasks(level), chooses_partitions(given.dataframe))
            ways = [
                self._map_way(number, first_chunks[number], slots, merging, stopping, late_counts)
                for number in together
            ]
            yield level, given.dataframe, MapTask(tuple(ways), given.source, progress)

    def _map_way(
        self,
        number: int,
        first_chunk: int,
        slots: tuple[int, ...],
        merging: MergingEvents | None,
        stopping: StoppingJob | None,
        late_counts: Accumulator[Counts] | None,
    ) -> MapWay:
        time_plane, log = self._first_pass[number]
        operator = self.plan.stage_of_log(number)
        route = self._route(operator, self.plan.stages[operator].input_of_log(number), slots)
        return MapWay(
            plan=log.plan,
            route=replace(route, arrival_span_ms=_arrival_span_ms(time_plane), block_rows=self._block_rows),
            log=number,
            first_chunk=first_chunk,
            waiting_chunks=len(self.checkpoints.waiting_of(number)),
            first_split=self._times[0].first_splits[number],
            merging=merging,
            waiting=None if stopping is None else stopping.waiting_rows(number),
            late_sample=None if late_counts is None else self._late_samples[operator],
            late_counts=late_counts,
        )

    @cached_property
    def _late_samples(self) -> list[LateSample | None]:
        """The sample of the events of logs that come to each operator, or None."""
        stages = zip(self.plan.stages, self._times, strict=True)
        return [
            LateSample.of(number, stage.windows, time.timeline) for number, (stage, time) in enumerate(stages)
        ]

    def _late_warnings(self) -> LateWarnings:
        """Return what warns of late events in runs of a DataFrame."""
        plan, expected = self.plan, {}
        for number, stage in enumerate(plan.stages):
            is_sampled = bool(stage.logs) and not stage.results and self._late_samples[number] is not None
            chunks = sum(len(self.time_planes[log].starts.chunks) for log in stage.logs) if is_sampled else 0
            warning = LossWarning.of(plan, number, self.time_planes, 0, None)
            expected[number] = ExpectedCounts(warning, chunks, self._levels.partitions[number])
        return LateWarnings(expected, plan.late_share_warning)

    def collect(self, output: ReduceOutput, stopping: StoppingJob) -> list[Any]:
        """Run the data plane, and return the rows with which the reduce tasks report."""
        rows = sum(time_plane.rows_read for time_plane in self.time_planes)
        with (
            task_errors_raised(),
            self.jobs.described(PASS_2),
            self._unchecked(),
            self._shortly(),
            progress_of(
                self._spark,
                rows,
                self._partitions(len(self.plan.stages) - 1),
                1 if self._tasks_of_files else len(self._levels.levels) + 1,
                self._listener,
            ) as progress,
        ):
            rows_of_tasks = self.dataframe(output, TASK_ROWS.struct_type, progress, stopping)
            collected: list[Any] = rows_of_tasks.collect()
        return collected

    def _numbers_of_chunks(self, log: int) -> int:
        """Return how many numbers the chunks of a log take, with those of what waits in the checkpoint."""
        last = int(self.time_planes[log].starts.chunks.max(initial=-1))
        return last + 1 + len(self.checkpoints.waiting_of(log))

    @property
    def _chunks(self) -> int:
        return sum(len(time_plane.starts.chunks) for time_plane in self.time_planes)

    def parts_before(self, counts: Iterable[bytes], stopping: StoppingJob) -> list[OperatorPart]:
        """Return the parts of a checkpoint of all operators but the last, as reduce tasks reported them."""
        reported, passed = _flat([json.loads(count) for count in counts])
        parts = [OperatorPart.of_content(part) for each in passed for part in each.get("parts", ())]
        of_logs: dict[int, list[OperatorPart]] = {}
        for read in (read for each in reported for read in each["read"] if "part" in read):
            of_logs.setdefault(read["log"], []).append(OperatorPart.of_content(read["part"]))
        for log, written in of_logs.items():
            writer = stopping.waiting_rows(log)
            assert writer is not None
            parts += writer.parts(written, self._numbers_of_chunks(log))
        return parts

    def report(self, counts: Iterable[bytes]) -> ReplayReport:
        """The checked report of a replay that ran to its end.

        Parameters
        ----------
        counts
            Reports of the reduce tasks at their ends.

        Raises
        ------
        InternalError
            If not every event is accounted for.
        """
        report = ReplayReport.of(self.plan, self.time_planes, self._times[-1].timeline)
        partitions, passed = _flat([json.loads(count) for count in counts])
        for between in passed:
            report.add_results(ReadCounts.of_content(between["counts"]), between["to"])
        chunks = 0
        for number, own in enumerate(report.by_operator):
            for partition in self._partitions_of(number, partitions).values():
                own.add_counts(partition["counts"])
                for read in partition["read"]:
                    chunks += read["chunks"]
                    report.add_log(ReadCounts.of_content(read["counts"]), number)
        if chunks != self._chunks:
            raise InternalError(f"{chunks} of {self._chunks} chunks came back from Spark")
        report.complete(self.plan, self.time_planes, self.on_chunks)
        return report

    def _partitions_of(self, number: int, reported: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Return what each partition of an operator reported; each once."""
        by_partition = {each["partition"]: each for each in reported if each["operator"] == number}
        partitions = self._partitions(number)
        if len(by_partition) != partitions:
            raise InternalError(
                f"{len(by_partition)} of {partitions} partitions of operator {number + 1} came back from Spark"
            )
        return by_partition


def _chunks_of_files(log: SparkLog | UnreadLog) -> Sequence[Chunk]:
    """Return the chunks of a log in files; none of a DataFrame."""
    if isinstance(log, UnreadDataFrame):
        return ()
    read = log.files if isinstance(log, UnrankedFiles) else log.log
    return read.all_chunks if isinstance(read, FileInput) else ()


def _flat(reported: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the reports of all partitions, and what operators sent to each other, each sender once."""
    replays, passed = [], {}
    waiting = list(reported)
    while waiting:
        replay = waiting.pop()
        replays.append(replay)
        for before in replay["before"]:
            passed[replay["operator"], before["sender"]] = before
            if "replay" in before:
                waiting.append(before["replay"])
    return replays, list(passed.values())


def _arrival_span_ms(time_plane: TimePlane) -> float:
    splits = time_plane.splits
    live = splits.events > 0
    if not live.any():
        return 0.0
    span = float(np.max(splits.last_arrival_ms[live])) - float(np.min(splits.first_arrival_ms[live]))
    return span / time_plane.events

"""Replays in one process, without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from flinkcore._internal.python.function_exits import exits_as_errors
from flinkcore._internal.python.memory_errors import WHAT_HELPS, memory_errors_named
from flinkcore._internal.python.replay_threads import ReplayThreads, cores_here
from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore._internal.show.times import format_timestamp
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints
from flinkcore.columnar.local.log_merge import LogMerge
from flinkcore.columnar.local.stage_inputs import (
    SharedItems,
    linked,
    merged,
    passed_on,
    with_places,
    without_outputs,
)
from flinkcore.columnar.local.stage_run import StageRun, StageStep
from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.replay.partition_run import PartitionRun
from flinkcore.columnar.results.progress import (
    FilesMeter,
    ProgressListener,
    ProgressMeter,
    files_read,
    listener_of_run,
)
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.results.result import EmbeddedResult
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.restored_operator import dealt_out
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_link import StageLink
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import ExecutionConfig
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings, ProgressChoice
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.log.sources.chunks import Chunk, ChunkTask
from flinkcore.log.sources.packed_files import FirstReading, Packing
from flinkcore.time_plane.job_time import JobTime, ReplayTime
from flinkcore.time_plane.time_pass import time_planes_of
from flinkcore.time_plane.total_order import Events

_REMEDY: Final = (
    "Give the process more memory, or let it need less: a lower set_parallelism(), as each thread holds batches, "
    f"{WHAT_HELPS}"
)


class EmbeddedReplay:
    """One replay of a plan in this process: threads over ranges of key groups; the kernels hold no GIL.

    Each operator runs after those whose results it takes: their results for a batch of a log come to it before
    another batch is read.

    Parameters
    ----------
    plan
        The job.
    parallelism
        Number of threads of each operator, each with its range of key groups.
    progress
        Receiver of the progress of the replay.
    checkpoints
        The one that it is restored from, and the one with which it stops.
    directory
        Working directory of its functions.
    """

    def __init__(
        self,
        plan: JobPlan,
        parallelism: int,
        progress: ProgressChoice,
        checkpoints: JobCheckpoints,
        directory: WorkingDirectory,
    ) -> None:
        self._plan = plan
        self._parallelism = parallelism
        self._progress = progress
        self._checkpoints = checkpoints
        self._directory = directory
        self._threads = ReplayThreads()
        self._meter: ProgressMeter | None = None
        self._chunks, self._first_readings = _chunks(plan, parallelism)
        self.report = ReplayReport()
        self.stopping = checkpoints.begin()

    def run(self) -> Generator[StageOutput, None, None]:
        """Run the replay; results and side outputs as they come, `report` is complete at the end.

        The order of the rows depends on the parallelism alone.
        """
        with exits_as_errors(), memory_errors_named(self._doing, _REMEDY):
            yield from self._directory.steps(self._outputs())

    def _doing(self) -> str:
        """Return what the replay is doing, in words."""
        if self._meter is None:
            return "the job was reading the times of its logs"
        return (
            f"the job had read {self._meter.done:,} of {self._meter.total:,} events in {self._parallelism} threads, up "
            f"to the watermark {format_timestamp(self._meter.watermark_ms)}"
        )

    def _outputs(self) -> Generator[StageOutput, None, None]:
        with listener_of_run(self._progress) as listener:
            yield from self._passes(listener)

    def _passes(self, listener: ProgressListener | None) -> Generator[StageOutput, None, None]:
        plan = self._plan
        cuts, stops = self._checkpoints.cuts, self._checkpoints.stops
        time_planes = time_planes_of(
            plan.logs,
            self._chunks,
            self._parallelism,
            ways=plan.ways,
            cuts=cuts,
            waiting=self._checkpoints.waiting,
            stops=stops,
            read=FilesMeter(files_read(plan, self._chunks), listener).advance,
        )
        for first_reading in self._first_readings:
            first_reading.is_last = True
        time = JobTime(plan.streams, time_planes, cuts)
        times = time.replay_times()
        self.report = ReplayReport.of(plan, time.time_planes, times[-1].timeline)
        self.stopping.write_cuts(time.cuts())
        links = self._links()
        with ExitStack() as open_stages:
            runs = [self._stage_run(number, times[number], open_stages) for number in range(len(plan.stages))]
            yield StageOutput.no_results(plan.result_schema())
            *_, last_steps = self._steps(time, times, runs, links, open_stages)
            last = runs[-1].run(last_steps)
            open_stages.enter_context(self._threads.closing(last))
            meter = self._meter = ProgressMeter(sum(each.rows_read for each in time.time_planes), listener)
            for step, outputs, _ in last:
                yield from step.outputs
                yield from chain.from_iterable(outputs)
                if step.events_read:
                    meter.advance(step.events_read, runs[-1].current_watermark)
        for run, report in zip(runs, self.report.by_operator, strict=True):
            for partition in run.partitions:
                report.add_counts(partition.counts())
                self.stopping.add(partition.parts)
        for link in links:
            self.report.add_results(link.counts, link.number)
        self.report.complete(plan, time.time_planes, self._on_chunks)

    def _on_chunks(self, log: int, task: ChunkTask) -> Iterator[bytes]:
        """Run a task on each chunk of the log with a number, and yield its results."""
        for chunk in (*self._checkpoints.waiting_of(log), *self._chunks[log]):
            yield from task(chunk)

    def _links(self) -> list[StageLink]:
        """Return the links between operators, in the order of those that take results."""
        return [
            StageLink(stage, number, input_number, between)
            for number, stage in enumerate(self._plan.stages)
            for input_number, between in stage.results
        ]

    def _steps(
        self,
        time: JobTime,
        times: Sequence[ReplayTime],
        runs: Sequence[StageRun],
        links: Sequence[StageLink],
        open_stages: ExitStack,
    ) -> Iterator[Iterator[StageStep[Events]]]:
        """Yield, for each operator, the steps that come to it."""
        stages = self._plan.stages
        inputs = [run.context.inputs for run in runs]
        partitions = [len(run.partitions) for run in runs]
        reading = LogMerge(
            self._plan, time, self._chunks, inputs, partitions, self.report, self._checkpoints, self.stopping
        ).steps()
        open_stages.enter_context(self._threads.closing(reading))
        takers = [number for number, stage in enumerate(stages) if stage.logs]
        of_logs = SharedItems(reading, len(takers))
        given: dict[int, SharedItems[StageStep[PlacedEvents]]] = {}
        readers = Counter(link.between.stage for link in links)
        for number, (stage, run) in enumerate(zip(stages, runs, strict=True)):
            together: Iterator[StageStep[Events]] = iter(())
            if stage.logs:
                together = map(itemgetter(number), of_logs.reader(takers.index(number)))
            if stage.results:
                sources = [with_places(together, number, inputs[number])] if stage.logs else []
                for link in links:
                    if link.number == number:
                        before = link.between.stage
                        readers[before] -= 1
                        steps = given[before].reader(readers[before])
                        if readers[before] > 0:
                            steps = without_outputs(steps)
                        sources.append(linked(steps, link, run.context.inputs))
                # Results of a step that an event made may, in another partition, come after what follows the event.
                waits = times[number].timeline.has_steps_of_events and self._parallelism > 1
                together = merged(sources, stage.batch_bytes) if len(sources) > 1 or waits else sources[0]
            if number + 1 < len(stages):
                # Closed before the stages, whose threads it ends.
                passing = passed_on(
                    run, together, _goes_alone(links, stages, number), number + 2 == len(stages)
                )
                open_stages.enter_context(self._threads.closing(passing))
                given[number] = SharedItems(passing, readers[number])
            yield together

    def _stage_run(self, number: int, time: ReplayTime, open_stages: ExitStack) -> StageRun:
        stage = self._plan.stages[number]
        partitions = stage.partitions(self._parallelism)
        together = len(self._plan.stages) * partitions
        memory_bytes = self._plan.managed_memory.of_partitions(together)
        context = StageContext.of(self._plan, number, time, partitions, None, memory_bytes)
        restored = dealt_out(self._checkpoints.operator(number), stage.max_parallelism, partitions)
        runs = [
            open_stages.enter_context(
                PartitionRun.opened(replace(context, restored=each), partition, self.stopping.pending)
            )
            for partition, each in enumerate(restored)
        ]
        return StageRun(context, runs, self._threads)


def _goes_alone(links: Sequence[StageLink], stages: Sequence[StagePlan], number: int) -> bool:
    """Return whether the results of an operator go to one other alone, which takes nothing else."""
    takers = [link.number for link in links if link.between.stage == number]
    sources = [link for link in links if link.number in takers]
    return len(takers) == len(sources) == 1 and not stages[takers[0]].logs


def default_parallelism(configuration: ExecutionConfig, calls_rows: bool = False) -> int:
    """Return how many threads are set; by default one per core, and one where a function is called for rows."""
    parallelism = configuration.get_parallelism()
    if parallelism != ExecutionConfig.PARALLELISM_DEFAULT:
        return parallelism
    return 1 if calls_rows else cores_here()


def _chunks(plan: JobPlan, parallelism: int) -> tuple[list[Sequence[Chunk]], list[FirstReading]]:
    """Return the chunks of each log, and the memory that keeps the rows of small files for the second pass.

    Logs that are read together have the same chunks.
    """
    chunks: dict[int, Sequence[Chunk]] = {}
    first_readings = []
    for together in plan.ways:
        logs = [plan.logs[number] for number in together]
        columns = [name for log in logs for name in log.columns_of_both_passes()]
        first_reading = logs[0].log.first_reading(columns, logs[0].kept_bytes // len(plan.ways))
        of_logs = logs[0].log.chunks(parallelism, Packing(logs[0].packed_bytes, first_reading))
        chunks |= dict.fromkeys(together, of_logs)
        first_readings.append(first_reading)
    return [chunks[number] for number in range(len(plan.logs))], first_readings


def embedded_result(
    graph: StreamGraph,
    configuration: ExecutionConfig,
    directory: WorkingDirectory,
    progress: ProgressChoice = "off",
    checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    planned: Callable[[JobPlan, int, JobCheckpoints], Any] | None = None,
) -> EmbeddedResult:
    """Plan a job over columns; it runs when its result is asked for.

    Parameters
    ----------
    graph
        The job.
    configuration
        Parallelism (threads; by default one per core, and one for a process function, as Python runs in one thread at
        a time), number of key groups, auto-watermark interval.
    directory
        Working directory of its functions: the job runs in one thread if there is something in it.
    progress
        Receiver of the progress of the replay.
    checkpoints
        The one that the job is restored from, and the one with which it stops.
    planned
        Plans it once more, for the pictures of its report.
    """
    plan = make_plan(graph, configuration, checkpoints)
    parallelism = default_parallelism(configuration, plan.calls_rows)
    if directory.folder is not None:
        parallelism = 1  # other threads would run ahead while the program is in its own directory
    job = JobCheckpoints.of(plan, checkpoints)
    plan = job.plan
    return EmbeddedResult(
        plan,
        job,
        lambda choice: EmbeddedReplay(plan, parallelism, choice, job, directory),
        progress,
        None if planned is None else partial(planned, plan, parallelism, job),
    )

"""Replays in one process, without a JVM: threads over ranges of key groups; the kernels hold no GIL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, ExecutionConfig, OutputTag
from flinkcore.datastream.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.replay.job_checkpoint import JobCheckpoints
from flinkcore.replay.job_replay import JobReplay
from flinkcore.replay.partition_threads import ReplayThreads
from flinkcore.replay.plans.job_plan import JobPlan, make_job_plan
from flinkcore.replay.plans.replay_plan import ReplayPlan
from flinkcore.replay.results.progress import ProgressListener, ProgressMeter
from flinkcore.replay.results.report import ReplayReport
from flinkcore.replay.results.result import EmbeddedResult, Output
from flinkcore.replay.stages.keyed_stage import KeyedStage, keyed_stages, opened_stage
from flinkcore.replay.stages.map_stage import MapStage
from flinkcore.replay.stages.stage_run import StageRun, Step
from flinkcore.replay.time_plane.time_pass import time_plane_of
from flinkcore.replay.time_plane.timeline import TimePlane
from flinkcore.replay.time_plane.total_order import Events, TotalOrderMerge


@dataclass(frozen=True)
class ReadStep(Step):
    """What one batch of the log lets go on, and what became of its other rows.

    Attributes
    ----------
    watermark_ms
        In force at the last event of the batch.
    """

    watermark_ms: int = MAX_TIMESTAMP


class EmbeddedReplay:
    """One replay of a plan in this process.

    Parameters
    ----------
    plan
        The job.
    parallelism
        Number of threads, each with its range of key groups.
    progress
        Told how far the replay has come.
    checkpoints
        From which checkpoint it goes on, and with which it stops.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        parallelism: int,
        progress: ProgressListener | None,
        checkpoints: JobCheckpoints,
    ) -> None:
        self._plan = plan
        self._checkpoints = checkpoints
        self._parallelism = plan.partitions(parallelism)
        self._progress = progress
        self._chunks = plan.log.chunks(self._parallelism)
        self.report = ReplayReport()
        self.stopping = checkpoints.begin()

    def run(self) -> Iterator[Output]:
        """Run the replay; results and side outputs as they come, `report` is complete at the end.

        The order of the rows depends on the parallelism alone.
        """
        plan = self._plan
        checkpoints = self._checkpoints
        cut = checkpoints.cuts[0] if checkpoints.cuts else None
        time_plane = time_plane_of(
            plan.timed_log, self._chunks, self._parallelism, cut=cut, stops=checkpoints.stops
        )
        self.report = ReplayReport()
        self.report.add_time_plane(plan, time_plane)
        if time_plane.cut is not None:
            self.stopping.write_cuts([time_plane.cut])
        makes_stages = keyed_stages(
            plan,
            time_plane.timeline,
            time_plane.last_arrival_ms,
            self._parallelism,
            checkpoints.operator(),
        )
        with ExitStack() as open_stages:
            stages = [
                open_stages.enter_context(opened_stage(makes_stages, partition))
                for partition in range(self._parallelism)
            ]
            yield Output.no_results(makes_stages.schema)
            threads = ReplayThreads()
            run = StageRun(plan, None, makes_stages, stages, self._end, advances=False, threads=threads)
            # Closed before the stages, whose threads it ends.
            steps = run.run(self._read(time_plane))
            open_stages.enter_context(threads.closing(steps))
            meter = ProgressMeter(time_plane.rows_read, self._progress)
            for step, outputs in steps:
                if isinstance(step, ReadStep):
                    meter.advance(step.events_read, step.watermark_ms)
                yield from step.outputs
                yield from chain.from_iterable(outputs)
            for stage in stages:
                self.report.add_counts(stage.counts())
        self.report.check()

    def _end(self, partition: int, stage: KeyedStage) -> Iterator[Output]:
        if self._checkpoints.stops:
            yield from stage.stop()
            self.stopping.write(0, partition, stage.snapshot())
        else:
            yield from stage.finish()

    def _read(self, time_plane: TimePlane) -> Iterator[Step]:
        """The events of the log, in total order; what is still to come bounds what is held back."""
        stage = MapStage(self._plan, time_plane)
        merge = TotalOrderMerge()
        one_split = len(time_plane.split_values) == 1
        for chunk in self._chunks:
            rows_read = 0
            for mapped in stage.read(chunk):
                self.report.add_read(
                    events_read=mapped.events_read, filtered=mapped.filtered, rejected=mapped.rejected
                )
                rows_read += mapped.events_read
                merge.add(mapped.events)
                # Events of one split never go back: none that is still to come precedes those read.
                floor = None if one_split else time_plane.floors.after(chunk.index, rows_read)
                yield ReadStep(
                    list(merge.release(floor)),
                    floor,
                    self._refused(mapped.rejected_rows),
                    mapped.events_read,
                    self._event_time_reached(time_plane, mapped.events),
                )
        yield ReadStep(list(merge.release(None)), None)

    def _refused(self, rows: list[pa.RecordBatch]) -> list[Output]:
        if not rows:
            return []
        assert isinstance(self._plan.log.on_bad_row, OutputTag)
        return [Output(self._plan.log.on_bad_row, rows)]

    @staticmethod
    def _event_time_reached(time_plane: TimePlane, events: Events) -> int:
        if len(events.arrivals) == 0:
            return MIN_TIMESTAMP
        return int(time_plane.current_watermark(events.arrivals[-1]))


class EmbeddedExecutor:
    """Runs jobs in this process; the executor of `StreamExecutionEnvironment` unless another is asked for."""

    name = "embedded"
    makes_dataframes = False

    def execute(
        self,
        graph: StreamGraph,
        configuration: ExecutionConfig,
        progress: ProgressListener | None = None,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> EmbeddedResult:
        """Plan a job; it runs when its result is asked for.

        Parameters
        ----------
        graph
            The job.
        configuration
            Parallelism (threads; by default one per core, and one for a process function, as Python runs in one
            thread at a time), number of key groups, auto-watermark interval.
        progress
            Told how far the replay has come.
        checkpoints
            From which checkpoint the job goes on, and with which it stops.
        """
        plan = make_job_plan(graph, configuration)
        parallelism = configuration.get_parallelism()
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            parallelism = 1 if plan.calls_rows else os.cpu_count() or 1
        job = JobCheckpoints.of(plan, checkpoints)
        if isinstance(plan, JobPlan):
            return EmbeddedResult(plan, lambda: JobReplay(plan, parallelism, progress, job))
        return EmbeddedResult(plan, lambda: EmbeddedReplay(plan, parallelism, progress, job))

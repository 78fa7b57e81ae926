"""Replays of jobs with several logs or operators in one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from itertools import chain

from flinkcore.replay.job_checkpoint import JobCheckpoints
from flinkcore.replay.log_merge import LogMerge
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.results.progress import ProgressListener, ProgressMeter
from flinkcore.replay.results.report import ReplayReport
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.job_stages import opened_stage_of, stages_of
from flinkcore.replay.stages.keyed_stage import KeyedStage
from flinkcore.replay.stages.stage_link import StageLink
from flinkcore.replay.stages.stage_run import StageRun, Step, results_in_order
from flinkcore.replay.time_plane.job_time import JobTime, ReplayTime
from flinkcore.replay.time_plane.time_pass import time_planes_of


class JobReplay:
    """One replay of a job in this process.

    The operators run one behind the other: what one gives for a batch of a log comes to the next one before another
    batch is read.

    Parameters
    ----------
    plan
        The job.
    parallelism
        Number of threads of each operator, each with its range of key groups.
    progress
        Told how far the replay has come.
    checkpoints
        From which checkpoint it goes on, and with which it stops.
    """

    def __init__(
        self,
        plan: JobPlan,
        parallelism: int,
        progress: ProgressListener | None,
        checkpoints: JobCheckpoints,
    ) -> None:
        self._plan = plan
        self._parallelism = parallelism
        self._progress = progress
        self._checkpoints = checkpoints
        self._chunks = [log.log.chunks(parallelism) for log in plan.logs]
        self.report = ReplayReport()
        self.stopping = checkpoints.begin()

    def run(self) -> Iterator[Output]:
        """Run the replay; results and side outputs as they come, `report` is complete at the end.

        The order of the rows depends on the parallelism alone.
        """
        plan = self._plan
        cuts, stops = self._checkpoints.cuts, self._checkpoints.stops
        time_planes = time_planes_of(plan.logs, self._chunks, self._parallelism, cuts=cuts, stops=stops)
        time = JobTime(plan, time_planes, cuts)
        replay_time = time.replay_time()
        self.report = ReplayReport()
        self.report.add_logs(plan.logs, time.time_planes, replay_time.timeline)
        self.stopping.write_cuts(time.cuts())
        links = [StageLink(stage, number) for number, stage in enumerate(plan.stages)]
        with ExitStack() as open_stages:
            runs = [self._stage_run(number, replay_time, open_stages) for number in range(len(plan.stages))]
            yield Output.no_results(plan.stages[-1].result_schema())
            steps = self._read(time, runs[0])
            for run, link in zip(runs[:-1], links[1:], strict=True):
                # Closed before the stages, whose threads it ends.
                steps = open_stages.enter_context(closing(_linked(run, steps, link)))
            last = open_stages.enter_context(closing(runs[-1].run(steps)))
            meter = ProgressMeter(sum(each.rows_read for each in time.time_planes), self._progress)
            for step, outputs in last:
                yield from step.outputs
                yield from chain.from_iterable(outputs)
                if step.events_read:
                    meter.advance(step.events_read, runs[-1].current_watermark)
        for run, link in zip(runs, links, strict=True):
            report = self.report
            if link.number:
                report = ReplayReport.of_operator(plan.stages[link.number], link.rows, link.filtered)
                self.report.later_operators.append(report)
            for stage in run.stages:
                report.add_counts(stage.counts())
            report.check()

    def _stage_run(self, number: int, time: ReplayTime, open_stages: ExitStack) -> StageRun:
        plan = self._plan
        stage = plan.stages[number]
        partitions = stage.partitions(self._parallelism)
        restored = self._checkpoints.operator(number)
        makes_stages, inputs = stages_of(plan, time, partitions, number, restored)
        stages = [
            open_stages.enter_context(opened_stage_of(plan, makes_stages, partition, number))
            for partition in range(partitions)
        ]
        return StageRun(
            stage,
            inputs,
            makes_stages,
            stages,
            end=lambda partition, stage: self._end(number, partition, stage),
            advances=number + 1 < len(plan.stages),
        )

    def _end(self, number: int, partition: int, stage: KeyedStage) -> Iterator[Output]:
        if self._checkpoints.stops:
            yield from stage.stop()
            self.stopping.write(number, partition, stage.snapshot())
        else:
            yield from stage.finish()

    def _read(self, time: JobTime, first: StageRun) -> Iterator[Step]:
        for merged in LogMerge(self._plan, time, self._chunks, first.inputs).steps():
            events_read = 0
            outputs = []
            if merged.mapped is not None:
                mapped = merged.mapped
                events_read = mapped.events_read
                self.report.add_read(
                    events_read=events_read, filtered=mapped.filtered, rejected=mapped.rejected
                )
            if merged.rejected_rows:
                outputs.append(Output(merged.rejected_tag, merged.rejected_rows))
            until_ms = merged.until_ms
            if until_ms is not None and time.last_arrival_ms is not None:
                until_ms = min(until_ms, time.last_arrival_ms)  # the end has its own order
            yield Step(merged.ready, until_ms, outputs, events_read)


def _linked(run: StageRun, steps: Iterator[Step], link: StageLink) -> Generator[Step, None, None]:
    """The steps of the operator behind one."""
    for step, outputs in run.run(steps):
        results, others = results_in_order(outputs)
        ready = link.passed_on(results) if results is not None else None
        yield Step(
            [(ready, None)] if ready is not None and ready.batch.num_rows else [],
            step.until_ms,
            [*step.outputs, *others],
            step.events_read,
        )

"""The events of the logs of a job in one total order, read in one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints, StoppingJob, WaitingRowsPart
from flinkcore.columnar.local.stage_run import StageStep
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.stages.map_stage import MappedEvents, MapStage, mapped_together
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.timeline import ArrivalFloors
from flinkcore.time_plane.total_order import Events, TotalOrderMerge


@dataclass(frozen=True)
class ReadStep:
    """What one batch of a log lets go on.

    Attributes
    ----------
    ready_for
        By the number of each operator that takes logs, what is ready for it.
    until_ms, outputs, events_read
        As of :class:`StageStep`.
    """

    ready_for: dict[int, list[tuple[Events, RowNumbers | None]]]
    until_ms: int | None
    outputs: Sequence[StageOutput] = ()
    events_read: int = 0

    def coming_to(self, number: int) -> StageStep[Events]:
        """The step as it comes to the operator of a number."""
        return StageStep(self.ready_for[number], self.until_ms, self.outputs, self.events_read)


class _Reading:
    """Progress of reading a log, for all of its uses; without floors, arrivals still to come are unknown."""

    def __init__(
        self,
        logs: Sequence[int],
        stages: Sequence[MapStage],
        chunks: Sequence[Chunk],
        floors: Sequence[ArrivalFloors],
    ) -> None:
        self.logs = logs
        self.floor_ms = MIN_TIMESTAMP
        if floors:
            self.floor_ms = _least_floor(floors, chunks[0], 0) if chunks else MAX_TIMESTAMP
        self.batches = self._read(stages, chunks, floors)

    def _read(
        self, stages: Sequence[MapStage], chunks: Sequence[Chunk], floors: Sequence[ArrivalFloors]
    ) -> Iterator[tuple[MappedEvents, ...]]:
        for chunk in chunks:
            rows_read = 0
            for mapped in mapped_together(stages, chunk):
                rows_read += mapped[0].events_read
                if floors:
                    self.floor_ms = _least_floor(floors, chunk, rows_read)
                yield mapped


class LogMerge:
    """Reads the logs of a job, always the one that is least advanced; a log with several uses is read once.

    Parameters
    ----------
    plan
        The job.
    time
        Time of its logs.
    chunks
        Chunks of each log; those of logs that are read together are the same.
    inputs
        Columns of connected streams, for each operator; None for one with a single input.
    report
        Counts what is read.
    checkpoints
        The one that the replay is restored from, in which events of paused splits may wait.
    stopping
        The one with which it stops, which takes those that wait for the next run.
    """

    def __init__(
        self,
        plan: JobPlan,
        time: JobTime,
        chunks: Sequence[Sequence[Chunk]],
        inputs: Sequence[ConnectedInputs | None],
        report: ReplayReport,
        checkpoints: JobCheckpoints,
        stopping: StoppingJob,
    ) -> None:
        self._plan = plan
        self._time = time
        self._stopping = stopping
        self._waiting: dict[int, WaitingRowsPart] = {}
        self._inputs = inputs
        self._report = report
        # Events of one split never go back: none that is still to come precedes those read.
        self._is_in_order = time.first_splits[-1] == 1 and not any(log.by_arrival for log in time.time_planes)
        asks = not self._is_in_order or len(plan.logs) > 1 or len(plan.stages) > 1
        # What waits comes before the rest of its log.
        waiting = [
            ((log,), of_log) for log in range(len(plan.logs)) if (of_log := checkpoints.waiting_of(log))
        ]
        self._readings = [
            _Reading(
                logs,
                [MapStage(plan.logs[log], time.time_planes[log]) for log in logs],
                of_logs,
                [time.time_planes[log].floors for log in logs] if asks else (),
            )
            for logs, of_logs in [*waiting, *((logs, chunks[logs[0]]) for logs in plan.ways)]
        ]

    def steps(self) -> Generator[ReadStep, None, None]:
        """The events in total order; what is still to come bounds what is held back."""
        with ExitStack() as open_parts:
            yield from self._steps(open_parts)
            self._stopping.add(part.written() for part in self._waiting.values())

    def _steps(self, open_parts: ExitStack) -> Iterator[ReadStep]:
        merges = {
            number: TotalOrderMerge(self._time.timelines[number])
            for number, stage in enumerate(self._plan.stages)
            if stage.logs
        }
        last_arrival_ms = self._time.last_arrival_ms
        reading = list(self._readings)
        while reading:
            behind = min(reading, key=attrgetter("floor_ms"))
            mapped = next(behind.batches, None)
            if mapped is None:
                reading.remove(behind)
                continue
            rejected: list[StageOutput] = []
            for log, of_way in zip(behind.logs, mapped, strict=True):
                self._take(log, of_way, merges)
                self._leave_waiting(log, of_way, open_parts)
                rejected += self._rejected(log, of_way)
            until = min(each.floor_ms for each in reading)
            ready = _released(merges, None if self._is_in_order else until)
            if last_arrival_ms is not None:
                until = min(until, last_arrival_ms)  # the end has its own order
            yield ReadStep(ready, until, rejected, sum(of_way.events_read for of_way in mapped))
        yield ReadStep(_released(merges, None), None)

    def _take(self, log: int, mapped: MappedEvents, merges: dict[int, TotalOrderMerge]) -> None:
        taken_by = self._plan.stage_of_log(log)
        self._report.add_read(
            events_read=mapped.events_read,
            filtered=mapped.filtered,
            rejected=mapped.rejected,
            waiting=mapped.n_waiting,
        )
        self._report.add_passed_on(taken_by, mapped.events.batch.num_rows)
        events = self._time.placed(log, mapped.events)
        inputs = self._inputs[taken_by]
        if inputs is not None:
            events = inputs.widened(int(log in self._plan.stages[taken_by].inputs[1].logs), events)
        merges[taken_by].add(events)

    def _leave_waiting(self, log: int, mapped: MappedEvents, open_parts: ExitStack) -> None:
        if mapped.waiting is None:
            return
        if log not in self._waiting:
            writer = self._stopping.waiting_rows(log)
            assert writer is not None  # else no split is paused at the end
            self._waiting[log] = open_parts.enter_context(writer.part(0))
        self._waiting[log].add(mapped.waiting)

    def _rejected(self, log: int, mapped: MappedEvents) -> list[StageOutput]:
        if not mapped.rejected_rows:
            return []
        return [StageOutput(self._plan.logs[log].rejected_tag, mapped.rejected_rows)]


def _released(
    merges: dict[int, TotalOrderMerge], until_ms: int | None
) -> dict[int, list[tuple[Events, RowNumbers | None]]]:
    return {number: list(merge.release(until_ms)) for number, merge in merges.items()}


def _least_floor(floors: Sequence[ArrivalFloors], chunk: Chunk, rows_read: int) -> int:
    """Before what arrival nothing comes any more on any way of a log."""
    found = [of_way.after(chunk.index, rows_read) for of_way in floors]
    return min([floor_ms for floor_ms in found if floor_ms is not None], default=MAX_TIMESTAMP)

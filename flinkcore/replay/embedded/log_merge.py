"""The events of the logs of a job in one total order, read in one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.replay.embedded.stage_run import StageStep
from flinkcore.replay.log.arrays import RowNumbers
from flinkcore.replay.log.chunks import Chunk
from flinkcore.replay.plans.connected_inputs import ConnectedInputs
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.results.report import ReplayReport
from flinkcore.replay.stages.map_stage import MappedEvents, MapStage
from flinkcore.replay.stages.stage_output import StageOutput
from flinkcore.replay.time_plane.job_time import JobTime
from flinkcore.replay.time_plane.timeline import ArrivalFloors
from flinkcore.replay.time_plane.total_order import Events, TotalOrderMerge


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


class _Log:
    """How far a log has been read; without floors, nothing is known of what is still to come."""

    def __init__(self, stage: MapStage, chunks: Sequence[Chunk], floors: ArrivalFloors | None) -> None:
        self.floor_ms: int | None = MIN_TIMESTAMP
        if floors is not None:
            self.floor_ms = floors.after(chunks[0].index, 0) if chunks else None
        self.batches = self._read(stage, chunks, floors)

    def _read(
        self, stage: MapStage, chunks: Sequence[Chunk], floors: ArrivalFloors | None
    ) -> Iterator[MappedEvents]:
        for chunk in chunks:
            rows_read = 0
            for mapped in stage.read(chunk):
                rows_read += mapped.events_read
                if floors is not None:
                    self.floor_ms = floors.after(chunk.index, rows_read)
                yield mapped


class LogMerge:
    """Reads the logs of a job, always the one that is behind.

    Parameters
    ----------
    plan
        The job.
    time
        Of its logs.
    chunks
        Of each log.
    inputs
        The columns of connected streams, for each operator; None: it has one input.
    report
        Counts what is read.
    """

    def __init__(
        self,
        plan: JobPlan,
        time: JobTime,
        chunks: Sequence[Sequence[Chunk]],
        inputs: Sequence[ConnectedInputs | None],
        report: ReplayReport,
    ) -> None:
        self._plan = plan
        self._time = time
        self._inputs = inputs
        self._report = report
        # Events of one split never go back: none that is still to come precedes those read.
        self._is_in_order = time.first_splits[-1] == 1 and not any(log.by_arrival for log in time.time_planes)
        asks = not self._is_in_order or len(plan.logs) > 1 or len(plan.stages) > 1
        self._logs = [
            _Log(MapStage(log, time_plane), of_log, time_plane.floors if asks else None)
            for log, time_plane, of_log in zip(plan.logs, time.time_planes, chunks, strict=True)
        ]

    def steps(self) -> Generator[ReadStep, None, None]:
        """The events in total order; what is still to come bounds what is held back."""
        merges = {
            number: TotalOrderMerge(self._time.timelines[number])
            for number, stage in enumerate(self._plan.stages)
            if stage.logs
        }
        last_arrival_ms = self._time.last_arrival_ms
        reading = dict(enumerate(self._logs))
        while reading:
            number = min(reading, key=lambda number: _or_end(reading[number].floor_ms))
            mapped = next(reading[number].batches, None)
            if mapped is None:
                del reading[number]
                continue
            self._take(number, mapped, merges)
            until = min(_or_end(log.floor_ms) for log in reading.values())
            ready = _released(merges, None if self._is_in_order else until)
            if last_arrival_ms is not None:
                until = min(until, last_arrival_ms)  # the end has its own order
            yield ReadStep(ready, until, self._rejected(number, mapped), mapped.events_read)
        yield ReadStep(_released(merges, None), None)

    def _take(self, log: int, mapped: MappedEvents, merges: dict[int, TotalOrderMerge]) -> None:
        taken_by = self._plan.stage_of_log(log)
        self._report.add_read(
            events_read=mapped.events_read, filtered=mapped.filtered, rejected=mapped.rejected
        )
        self._report.add_passed_on(taken_by, mapped.events.batch.num_rows)
        events = self._time.placed(log, mapped.events)
        inputs = self._inputs[taken_by]
        if inputs is not None:
            events = inputs.widened(int(log in self._plan.stages[taken_by].inputs[1].logs), events)
        merges[taken_by].add(events)

    def _rejected(self, log: int, mapped: MappedEvents) -> list[StageOutput]:
        if not mapped.rejected_rows:
            return []
        return [StageOutput(self._plan.logs[log].rejected_tag, mapped.rejected_rows)]


def _released(
    merges: dict[int, TotalOrderMerge], until_ms: int | None
) -> dict[int, list[tuple[Events, RowNumbers | None]]]:
    return {number: list(merge.release(until_ms)) for number, merge in merges.items()}


def _or_end(floor_ms: int | None) -> int:
    return MAX_TIMESTAMP if floor_ms is None else floor_ms

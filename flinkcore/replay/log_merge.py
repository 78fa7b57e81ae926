"""The events of several logs in one total order, read in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, OutputTag
from flinkcore.replay.log.chunks import Chunk
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.stages.connected_inputs import ConnectedInputs
from flinkcore.replay.stages.map_stage import MappedEvents, MapStage
from flinkcore.replay.time_plane.job_time import JobTime
from flinkcore.replay.time_plane.timeline import ArrivalFloors
from flinkcore.replay.time_plane.total_order import Events, RowNumbers, TotalOrderMerge


@dataclass(frozen=True)
class MergedStep:
    """What one batch of a log lets go on, and what became of its other rows.

    Attributes
    ----------
    ready
        For each operator that takes logs, by its number: events, and their rows in total order (None: as they lie); in
        total order one after the other.
    until_ms
        All events that arrive before have been given; None: all there are.
    mapped
        The batch; None: there is none any more.
    stage
        Number of the operator to which it comes.
    rejected_tag
        Where its rejected rows go.
    """

    ready: dict[int, list[tuple[Events, RowNumbers | None]]]
    until_ms: int | None
    mapped: MappedEvents | None = None
    stage: int = 0
    rejected_tag: OutputTag | None = None

    @property
    def rejected_rows(self) -> list[pa.RecordBatch]:
        """Rejected rows of the batch, where its log has a side output for them."""
        return self.mapped.rejected_rows if self.mapped is not None else []


class _Log:
    """How far a log has been read."""

    def __init__(self, stage: MapStage, chunks: Sequence[Chunk], floors: ArrivalFloors, tag: Any) -> None:
        self.floor_ms: int | None = floors.after(chunks[0].index, 0) if chunks else None
        self.rejected_tag = tag if isinstance(tag, OutputTag) else None
        self.batches = self._read(stage, chunks, floors)

    def _read(
        self, stage: MapStage, chunks: Sequence[Chunk], floors: ArrivalFloors
    ) -> Iterator[MappedEvents]:
        for chunk in chunks:
            rows_read = 0
            for mapped in stage.read(chunk):
                rows_read += mapped.events_read
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
    """

    def __init__(
        self,
        plan: JobPlan,
        time: JobTime,
        chunks: Sequence[Sequence[Chunk]],
        inputs: Sequence[ConnectedInputs | None],
    ) -> None:
        self._plan = plan
        self._time = time
        self._inputs = inputs
        self._logs = [
            _Log(MapStage(log, time_plane), of_log, time_plane.floors, log.log.on_bad_row)
            for log, time_plane, of_log in zip(plan.logs, time.time_planes, chunks, strict=True)
        ]

    def steps(self) -> Iterator[MergedStep]:
        """The events in total order; what is still to come bounds what is held back."""
        stages = self._plan.stages
        merges = {number: TotalOrderMerge() for number, stage in enumerate(stages) if stage.logs}
        reading = dict(enumerate(self._logs))
        while reading:
            number = min(reading, key=lambda number: _or_end(reading[number].floor_ms))
            log = reading[number]
            mapped = next(log.batches, None)
            if mapped is None:
                del reading[number]
                continue
            taken_by = self._plan.stage_of_log(number)
            inputs = self._inputs[taken_by]
            events = self._time.placed(number, mapped.events)
            if inputs is not None:
                events = inputs.widened(int(number in stages[taken_by].inputs[1].logs), events)
            merges[taken_by].add(events)
            until = min(_or_end(log.floor_ms) for log in reading.values())
            yield MergedStep(_released(merges, until), until, mapped, taken_by, log.rejected_tag)
        yield MergedStep(_released(merges, None), None)


def _released(
    merges: dict[int, TotalOrderMerge], until_ms: int | None
) -> dict[int, list[tuple[Events, RowNumbers | None]]]:
    return {number: list(merge.release(until_ms)) for number, merge in merges.items()}


def _or_end(floor_ms: int | None) -> int:
    return MAX_TIMESTAMP if floor_ms is None else floor_ms

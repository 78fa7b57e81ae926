"""A log of events cut into chunks and batches, as the time plane reads them."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from equipment.timelines import steps_of
from models.watermarks import Event

from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.log.waiting_rows import WaitingBatch
from flinkcore.time_plane.chunk_times import (
    ArrivalRate,
    ChunkCounts,
    ChunkTimes,
    ChunkTimesBuilder,
    position_bases,
)
from flinkcore.time_plane.combine_times import combine
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.log_records import LogRecords
from flinkcore.time_plane.paused_spans import summary_interval_ms
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS, RecordLimits
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timeline import TimePlane

TINY_LIMITS = [
    DEFAULT_LIMITS,
    RecordLimits(1, 0, 0, 0, 0, window_emissions=1),
    RecordLimits(2, 100, 100, 0, 200, window_emissions=20),
    RecordLimits(5, 1_000, 0, 200, 100, window_emissions=7),
    RecordLimits(3, 0, 300, 1_000, 1_000),
]
"""In one window or many, from memory or by way of a file, in one range of time or many."""


def chunk_times(
    batches: Iterable[Any],
    generator: GeneratorSpec,
    interval_ms: int,
    *,
    index: int,
    records: LogRecords | None = None,
    **settings: Any,
) -> ChunkTimes:
    """The times of a chunk, summarised batch by batch, whose records are added to those of the log if they matter."""
    log = LogRecords(interval_ms, DEFAULT_LIMITS) if records is None else records
    builder = ChunkTimesBuilder(
        generator, interval_ms, index=index, records=lambda block: log.add(index, block), **settings
    )
    for batch in batches:
        builder.add(batch)
    return builder.finish()


@dataclass
class Batch:
    timestamp_ms: np.ndarray
    arrival_ms: np.ndarray | None
    split_codes: np.ndarray
    split_values: list[Any]
    positions: np.ndarray
    split_rows: np.ndarray
    rows_read: int
    by_cut: None = None


@dataclass
class Log:
    """Rows in log order, cut before the rows in `chunk_cuts`, and in each chunk further at `batch_cuts`."""

    rows: Sequence[Event]
    chunk_cuts: Iterable[int] = ()
    batch_cuts: Iterable[int] = ()

    def chunks(self) -> list[list[Batch]]:
        ends = sorted({0, len(self.rows), *(cut for cut in self.chunk_cuts if cut < len(self.rows))})
        return [list(self._batches(start, stop)) for start, stop in pairwise(ends)]

    def _batches(self, start: int, stop: int) -> Iterator[Batch]:
        positions: dict[Any, int] = {}
        for first, last in pairwise(
            sorted({start, stop, *(cut for cut in self.batch_cuts if start < cut < stop)})
        ):
            before = dict(positions)
            kept = []
            for row in self.rows[first:last]:
                position = positions.get(row.split, 0)
                positions[row.split] = position + 1
                if row.kept:
                    kept.append((row, position))
            # Codes in an order that is not that of the splits.
            values = sorted({row.split for row in self.rows[first:last]}, key=str, reverse=True)
            recorded = all(row.arrival_ms is not None for row in self.rows)
            yield Batch(
                timestamp_ms=np.array([row.timestamp_ms for row, _ in kept], np.int64),
                arrival_ms=np.array([row.arrival_ms for row, _ in kept], np.int64) if recorded else None,
                split_codes=np.array([values.index(row.split) for row, _ in kept], np.int32),
                split_values=values,
                positions=np.array([position for _, position in kept], np.int64),
                split_rows=np.array([positions[value] - before.get(value, 0) for value in values], np.int64),
                rows_read=last - first,
            )

    def time_plane(
        self,
        generator: GeneratorSpec,
        interval_ms: int,
        rate: ArrivalRate | None = None,
        limits: RecordLimits = DEFAULT_LIMITS,
        alignment: WatermarkAlignmentParams | None = None,
        cut: TimeCut | None = None,
        stops: bool = False,
        waiting: Sequence[WaitingBatch] = (),
    ) -> TimePlane:
        """Through all parts of the time plane, each sent as bytes; its own cut as a table.

        `waiting`: what waits for paused splits in the cut.
        """
        chunks = self.chunks()
        counts = [ChunkCounts.build(batches, index=index).to_ipc() for index, batches in enumerate(chunks)]
        before = dict(zip(cut.split_values, cut.columns["rows"].tolist(), strict=True)) if cut else {}
        bases = position_bases((ChunkCounts.from_ipc(data) for data in counts), before) if rate else {}
        summary_ms = summary_interval_ms(interval_ms, alignment)
        records = LogRecords(summary_ms, limits)
        times = [
            chunk_times(
                batches,
                generator,
                summary_ms,
                index=index,
                records=records,
                limits=limits,
                rate=rate,
                bases=bases.get(index) if index >= 0 else None,
                restored_arrival_ms=cut.last_arrival_ms if cut else None,
            ).to_ipc()
            for index, batches in [*([(-1, waiting)] if waiting else []), *enumerate(chunks)]
        ]
        summaries = (ChunkTimes.from_ipc(data) for data in reversed(times))
        with closing(records):
            plane = combine(
                summaries,
                records,
                generator,
                interval_ms,
                rate=rate,
                alignment=alignment,
                limits=limits,
                cut=cut,
                stops=stops,
            )
        own_cut = None if plane.cut is None else TimeCut.of_table(plane.cut.to_table())
        return replace(pickle.loads(pickle.dumps(plane)), cut=own_cut)


def steps(plane: TimePlane) -> list[tuple[int, int]]:
    columns = steps_of(plane.timeline)
    return list(zip(columns.clock_ms.tolist(), columns.watermark_ms.tolist(), strict=True))


def placed(plane: TimePlane, log: Log) -> list[tuple[int, int, int]]:
    """Where the rows of a log come in the total order: arrival, number of the split, position."""
    found: list[tuple[int, int, int]] = []
    for index, batches in enumerate(log.chunks()):
        clock = plane.enter(index)
        for batch in batches:
            found += zip(*(column.tolist() for column in clock.order(batch)), strict=True)
    return found


def check_floors(log: Log, plane: TimePlane, arrivals: Sequence[int]) -> None:
    """After each batch, no event of its chunk comes that arrives before the floor; nor before that of the chunk."""
    seen = 0
    for index, batches in enumerate(log.chunks()):
        rows = 0
        stop = seen + sum(len(batch.timestamp_ms) for batch in batches)
        (first_ms,), _ = plane.arrivals_of(np.array([index]))
        assert all(first_ms <= arrival for arrival in arrivals[seen:stop])
        for batch in batches:
            rows += batch.rows_read
            seen += len(batch.timestamp_ms)
            floor = plane.floors.after(index, rows)
            assert all(floor is not None and floor <= arrival for arrival in arrivals[seen:stop])


def watermarks_of(plane: TimePlane, arrivals: Sequence[int]) -> list[int]:
    """The watermarks in force before events with these arrivals, where no step was made by an event."""
    none = np.zeros(len(arrivals), np.int64)
    before = plane.timeline.steps_before(np.array(arrivals, np.int64), none.astype(np.int32), none)
    return plane.timeline.watermark_after(before).tolist()


def table_of(log: list[Event]) -> pa.Table:
    """The events as a job reads them: with keys, and their number in the log."""
    return pa.table(
        {
            "ts": [event.timestamp_ms for event in log],
            "arrival": [event.arrival_ms for event in log],
            "split": [event.split for event in log],
            "key": [f"k{i % 5}" for i in range(len(log))],
            "row": range(len(log)),
        }
    )

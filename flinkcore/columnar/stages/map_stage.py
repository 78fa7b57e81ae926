"""From a chunk of the log to events for the keyed operators: read, placed in the total order, transformed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.show.times import dated
from flinkcore.columnar.plans.log_plan import REASON, LogPlan
from flinkcore.common import OutputTag
from flinkcore.errors import DataError
from flinkcore.log.event_reader import TimedBatch, read_together
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.chunk_clock import ChunkClock
from flinkcore.time_plane.paused_spans import NOT_READ
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import LogEvents


@dataclass
class MappedEvents:
    """Events of one batch of a chunk, and what became of its other rows.

    Attributes
    ----------
    events
        What goes on to the keyed operator.
    arrivals, splits
        When all events arrived that move the watermark: also those that were read later, or that filters behind it
        took out.
    events_read
        Rows of the batch as read.
    filtered
        Rows that filters took out.
    rejected
        Rows refused because of a fault, by reason.
    rejected_rows
        Those rows, where the log has a side output for them.
    waiting
        Events of paused splits that wait for another log, with the arrivals that they had; None: there are none.
    """

    events: LogEvents
    arrivals: Int64s
    splits: Int32s
    events_read: int
    filtered: int
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_rows: list[pa.RecordBatch] = field(default_factory=list)
    waiting: LogEvents | None = None

    @property
    def n_waiting(self) -> int:
        """How many events wait."""
        return 0 if self.waiting is None else self.waiting.batch.num_rows


class MapStage:
    """The part of a plan before the key; the same in one process and in a Spark task.

    Parameters
    ----------
    plan
        The job.
    time_plane
        The result of the first pass.
    """

    def __init__(self, plan: LogPlan, time_plane: TimePlane) -> None:
        self._plan = plan
        self._time_plane = time_plane
        self._reader = plan.data_reader()
        self._rejected_schema = None if plan.rejected_tag is None else plan.rejected_schema()
        self._some_wait = time_plane.paused.outlast_log

    def read(self, chunk: Chunk) -> Iterator[MappedEvents]:
        """Events of a chunk, batch by batch, in the order of the log.

        Raises
        ------
        SourceError
            If the chunk has other rows than in the first pass.
        DataError
            If a row has a fault and the log's policy is to fail.
        """
        return (mapped for (mapped,) in mapped_together([self], chunk))

    def _mapped(self, chunk: Chunk, timed: TimedBatch, clock: ChunkClock) -> MappedEvents:
        events = LogEvents(timed.batch, timed.timestamp_ms, *clock.order(timed))
        splits, waiting = events.splits, None
        if self._some_wait:
            events, waiting = _parted(events, clock.arrived_ms)
        mapped = MappedEvents(
            events,
            clock.arrived_ms,
            splits,
            events_read=timed.rows_read,
            filtered=timed.filtered,
            rejected=Counter(timed.rejected.counts),
            waiting=waiting,
        )
        if timed.rejected.rows is not None:
            mapped.rejected_rows.append(self._refused(timed.rejected.rows))
        for operation in self._plan.after:
            batch, kept = operation.apply(mapped.events.batch)
            if kept is None:
                mapped.events = replace(mapped.events, batch=batch)
            else:
                mapped.filtered += mapped.events.batch.num_rows - batch.num_rows
                mapped.events = LogEvents(
                    batch,
                    mapped.events.timestamps[kept],
                    mapped.events.arrivals[kept],
                    mapped.events.splits[kept],
                    mapped.events.positions[kept],
                )
        self._reject_null_keys(chunk, mapped)
        return mapped

    def _refused(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rejected rows as their side output shows them; null where a row was refused before a column was made."""
        assert self._rejected_schema is not None
        *_, reason = rows.columns  # by place: the log may have a column of that name
        known = dict(zip(rows.schema.names[:-1], rows.columns[:-1], strict=True))
        columns = [
            known[field.name]
            if field.name in known and known[field.name].type == field.type
            else pa.nulls(rows.num_rows, field.type)
            for field in list(self._rejected_schema)[:-1]
        ]
        return pa.RecordBatch.from_arrays([*columns, reason], schema=self._rejected_schema)

    def _reject_null_keys(self, chunk: Chunk, mapped: MappedEvents) -> None:
        # Flink's keyBy refuses a null key; a part of a composite key may be null.
        if len(self._plan.keys) != 1:
            return
        (name,) = self._plan.keys
        column = mapped.events.batch.column(name)
        if column.null_count == 0:
            return
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        null_rows = np.flatnonzero(~valid).astype(np.uint32)
        policy = self._plan.log.on_bad_row
        if policy == "fail":
            row = int(null_rows[0])
            split = self._time_plane.split_values[mapped.events.splits[row]]
            position = None if self._time_plane.by_arrival else int(mapped.events.positions[row])
            place = (
                f"of an event that arrived at {dated(mapped.events.arrivals[row], ' ms')}"
                if position is None
                else f"at position {position:,}"
            )
            raise DataError(
                f"{chunk.label}: key column {name!r} is null {place}"
                f"{'' if split is None else f' of split {split!r}'}; filter such rows out before key_by, "
                'or set on_bad_row="drop" or to an OutputTag',
                file=chunk.path,
                split=split,
                position=position,
                column=name,
            )
        reason = f"null key {name!r}"
        mapped.rejected[reason] += len(null_rows)
        if isinstance(policy, OutputTag):
            refused = mapped.events.batch.take(pa.array(null_rows))
            columns = [*refused.columns, pa.array([reason] * len(null_rows))]
            names = [*refused.schema.names, REASON]
            mapped.rejected_rows.append(self._refused(pa.RecordBatch.from_arrays(columns, names)))
        mapped.events = mapped.events.take(np.flatnonzero(valid).astype(np.uint32))


def _parted(events: LogEvents, arrived_ms: Int64s) -> tuple[LogEvents, LogEvents | None]:
    """The events of a batch that are read, and those that wait for another log."""
    waits = events.arrivals == NOT_READ
    if not waits.any():
        return events, None
    waiting = replace(events, arrivals=arrived_ms).take(np.flatnonzero(waits).astype(np.uint32))
    return events.take(np.flatnonzero(~waits).astype(np.uint32)), waiting


def mapped_together(stages: Sequence[MapStage], chunk: Chunk) -> Iterator[tuple[MappedEvents, ...]]:
    """Events of a chunk of a log that is used on several ways, and is read once for all of them.

    Parameters
    ----------
    stages
        Of each way.
    chunk
        Of the log.

    Yields
    ------
    tuple of MappedEvents
        What becomes of a batch on each way; errors as of `MapStage.read`.
    """
    clocks = [stage._time_plane.enter(chunk.index) for stage in stages]
    rows_read = 0
    for batches in read_together([stage._reader for stage in stages], chunk):
        rows_read += batches[0].rows_read
        yield tuple(
            stage._mapped(chunk, timed, clock)
            for stage, timed, clock in zip(stages, batches, clocks, strict=True)
        )
    for stage, clock in zip(stages, clocks, strict=True):
        stage._time_plane.check_chunk(clock, chunk, rows_read)

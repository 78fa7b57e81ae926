"""From a chunk of a log to events for the operators: read, placed in the total order, transformed, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, Int64s, RowNumbers
from flinkcore._internal.show.times import dated
from flinkcore.columnar.checkpoint.job_checkpoint import WaitingRowsPart
from flinkcore.columnar.plans.log_plan import REASON, RECORD, LogPlan
from flinkcore.columnar.stages.read_counts import ReadCounts
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import OutputTag
from flinkcore.errors import DataError
from flinkcore.log.event_reader import RECORD_TYPE, TimedBatch, read_together
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.chunk_clock import ChunkClock
from flinkcore.time_plane.paused_spans import NOT_READ
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import LogEvents


@dataclass
class ReadEvents:
    """Events of one batch of a chunk, and what became of its other rows.

    Attributes
    ----------
    events
        Events that come to the operator, with numbers of splits over all logs of the job.
    arrivals, splits
        Arrivals and splits, numbered in the log, of all events that move the watermark: filters after the watermarks
        may take some out, and some are read later.
    rows_read
        Number of rows of the batch.
    least_ms
        Lower bound of the arrivals of later events of the chunk: no split goes back.
    side_outputs
        Rejected rows, where the log has a side output for them.
    """

    events: LogEvents
    arrivals: Int64s
    splits: Int32s
    rows_read: int
    least_ms: int
    side_outputs: list[StageOutput] = field(default_factory=list)


class ChunkReader:
    """Reads chunks of a log into events in their places, for one of the ways on which a job uses the log.

    Parameters
    ----------
    plan
        The log, and what is done with its rows before the key.
    time_plane
        Result of the first pass over the log.
    first_split
        Number of the first split of the log among those of all logs of the job.
    waiting
        Takes the events of paused splits that wait for another log, or None if they are not kept.

    Attributes
    ----------
    plan
        As given.
    counts
        Counts of all rows read so far, by what became of them.
    """

    def __init__(
        self,
        plan: LogPlan,
        time_plane: TimePlane,
        first_split: int = 0,
        waiting: WaitingRowsPart | None = None,
    ) -> None:
        self.counts = ReadCounts()
        self.plan = plan
        self._waiting = waiting
        self._time_plane = time_plane
        self._first_split = first_split
        self._reader = plan.data_reader()
        self._rejected_schema = None if plan.rejected_tag is None else plan.rejected_schema()
        self._some_wait = time_plane.paused.outlast_log

    def read(self, chunk: Chunk) -> Iterator[ReadEvents]:
        """Yield the events of a chunk, batch by batch, in the order of the log; events that wait are left out.

        Raises
        ------
        SourceError
            If the chunk has other rows than in the first pass.
        DataError
            If a row has a fault and the log's policy is to fail.
        """
        return (read for (read,) in read_on_all_ways([self], chunk))

    def arrivals_of(self, chunks: Int64s) -> tuple[Int64s, Int64s]:
        """Return the first and last arrivals of chunks of these numbers; see `TimePlane.arrivals_of`."""
        return self._time_plane.arrivals_of(chunks)

    def floor_after(self, chunk: Chunk, rows_read: int) -> int | None:
        """Return the least arrival to come once so many rows of a chunk are read, or None if no more events come."""
        return self._time_plane.floors.after(chunk.index, rows_read)

    def _read(self, chunk: Chunk, timed: TimedBatch, clock: ChunkClock) -> ReadEvents:
        events = LogEvents(timed.batch, timed.timestamp_ms, *clock.order(timed))
        self.counts.add(ReadCounts(timed.rows_read, timed.filtered, Counter(timed.rejected.counts)))
        read = ReadEvents(events, clock.arrived_ms, events.splits, timed.rows_read, clock.least_ms)
        taken = [kept] if self._some_wait and (kept := self._leave_waiting(read)) is not None else []
        if timed.rejected.rows is not None:
            self._add_rejected(read, timed.rejected.rows)
        for operation in self.plan.after:
            batch, kept = operation.apply(read.events.batch)
            if kept is None:
                read.events = read.events.with_batch(batch)
            else:
                self.counts.filtered += read.events.n_events - batch.num_rows
                read.events = read.events.with_rows(batch, kept)
                taken.append(kept)

        def rows_of(events: RowNumbers) -> Int64s:
            for rows in reversed(taken):
                events = rows[events]
            return timed.rows_of(events)

        self._reject_null_keys(chunk, read, rows_of)
        if self._first_split:
            read.events = replace(read.events, splits=read.events.splits + np.int32(self._first_split))
        return read

    def _leave_waiting(self, read: ReadEvents) -> RowNumbers | None:
        """Take the events out that wait for another log, and write them with the arrivals that they had.

        Returns the others, or None for all.
        """
        waits = read.events.arrivals == NOT_READ
        if not waits.any():
            return None
        left = replace(read.events, arrivals=read.arrivals).take(np.flatnonzero(waits).astype(np.uint32))
        kept = np.flatnonzero(~waits).astype(np.uint32)
        read.events = read.events.take(kept)
        self.counts.waiting += left.n_events
        if self._waiting is not None:
            self._waiting.add(left)
        return kept

    def _add_rejected(self, read: ReadEvents, rows: pa.RecordBatch) -> None:
        read.side_outputs.append(StageOutput(self.plan.rejected_tag, [self._refused(rows)]))

    def _refused(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rejected rows as their side output shows them; null where a row was refused before a column was made."""
        assert self._rejected_schema is not None
        *given, reason, record = rows.columns  # by place: the log may have columns of these names
        known = dict(zip(rows.schema.names[:-2], given, strict=True))
        columns = [
            known[field.name]
            if field.name in known and known[field.name].type == field.type
            else pa.nulls(rows.num_rows, field.type)
            for field in list(self._rejected_schema)[:-2]
        ]
        return pa.RecordBatch.from_arrays([*columns, reason, record], schema=self._rejected_schema)

    def _reject_null_keys(
        self, chunk: Chunk, read: ReadEvents, rows_of: Callable[[RowNumbers], Int64s]
    ) -> None:
        # Flink's keyBy refuses a null key.
        name = self.plan.key.never_null
        if name is None:
            return
        column = read.events.batch.column(name)
        if column.null_count == 0:
            return
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        null_rows = np.flatnonzero(~valid).astype(np.uint32)
        policy = self.plan.log.on_bad_row
        if policy == "fail":
            row = int(null_rows[0])
            split = self._time_plane.split_values[read.events.splits[row]]
            position = None if self._time_plane.by_arrival else int(read.events.positions[row])
            place = (
                f"of an event that arrived at {dated(read.events.arrivals[row], ' ms')}"
                if position is None
                else f"at position {position:,}"
            )
            (row_of_chunk,) = rows_of(null_rows[:1]).tolist()
            file, _ = chunk.part_of(row_of_chunk)
            why = file.why_null(name)
            last = name.rpartition(".")[2]
            given = "'none'" if pa.types.is_string(column.type) else "..."
            raise DataError(
                f"{file.label}: key column {name!r} is null {place}"
                f"{'' if split is None else f' of split {split!r}'}{'' if why is None else f': {why}'}; filter such "
                f"rows out before key_by, give nulls a value by with_columns({last if last.isidentifier() else 'key'}="
                f"pc.coalesce(pc.field({name!r}), {given})), take null as a key like others by key_by({name!r}, "
                f'null_keys=True), which functions in Python cannot, or set on_bad_row="drop" or to an OutputTag',
                file=file.path,
                split=split,
                position=position,
                column=name,
            )
        reason = f"null key {name!r}"
        self.counts.rejected[reason] += len(null_rows)
        if isinstance(policy, OutputTag):
            refused = read.events.batch.take(pa.array(null_rows))
            reasons = pa.repeat(pa.scalar(reason), len(null_rows))
            files, _ = chunk.files_of(rows_of(null_rows))
            records = [None if file is None else {"file": file} for file in files.to_pylist()]
            columns = [*refused.columns, reasons, pa.array(records, RECORD_TYPE)]
            names = [*refused.schema.names, REASON, RECORD]
            self._add_rejected(read, pa.RecordBatch.from_arrays(columns, names))
        read.events = read.events.take(np.flatnonzero(valid).astype(np.uint32))


def read_on_all_ways(
    readers: Sequence[ChunkReader], chunk: Chunk, batch_rows: int | None = None
) -> Generator[tuple[ReadEvents, ...], None, None]:
    """Read a chunk of a log once for all ways on which a job uses the log.

    Parameters
    ----------
    readers
        One for each way.
    chunk
        A chunk of the log.
    batch_rows
        Rows of a batch at most, or None for those of the plan.

    Yields
    ------
    tuple of ReadEvents
        Events of a batch on each way; errors as of `ChunkReader.read`.
    """
    if readers[0].plan.log.cut is not None and readers[0]._time_plane.has_no_rows(chunk.index):
        return  # all of it is outside the cut
    clocks = [reader._time_plane.enter(chunk.index) for reader in readers]
    rows_read = 0
    for batches in read_together([reader._reader for reader in readers], chunk, batch_rows=batch_rows):
        rows_read += batches[0].rows_read
        yield tuple(
            reader._read(chunk, timed, clock)
            for reader, timed, clock in zip(readers, batches, clocks, strict=True)
        )
    for reader, clock in zip(readers, clocks, strict=True):
        reader._time_plane.check_chunk(clock, chunk, rows_read)

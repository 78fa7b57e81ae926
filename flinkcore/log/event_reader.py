"""Chunks of an event log as batches with their times: the one reader of both planes of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import (
    HIDDEN_PREFIX,
    ColumnOp,
    Columns,
    WithColumns,
    apply_ops,
    narrow_ops,
    output_schema,
    shown_column,
    shown_names,
)
from flinkcore._internal.arrow.expressions import is_expression
from flinkcore._internal.arrow.milliseconds import check_time_type, no_time, to_milliseconds
from flinkcore._internal.arrow.plain_columns import narrowest, require_readable
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.memory_limits import BATCH_BYTES, BATCH_ROWS
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import MAX_ARRIVAL_MS
from flinkcore.common.output_tag import OutputTag
from flinkcore.errors import DataError, SchemaError
from flinkcore.log.arrival_cut import ChunkCutter, CutRows, ReadArrivals, SideOfCut
from flinkcore.log.event_log import EventLog
from flinkcore.log.formats.bad_records import BAD_RECORD
from flinkcore.log.order.content_order import content_numbers
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.split_rows import SplitCounter, SplitRows, check_split_type
from flinkcore.log.waiting_rows import WaitingBatch, WaitingRows

ARRIVAL: Final = f"{HIDDEN_PREFIX}arrival"
"""Hidden column with the arrival, where an expression gives it."""

_RUN_POSITIONS: Final = 1 << 56
"""More than the positions of a run, if columns give them: the next run counts again from 0, but comes later."""


RECORD_TYPE: Final = pa.struct(
    {"file": pa.string(), "row": pa.int64(), "line": pa.int64(), "text": pa.string()}
)
"""Place of a rejected row: its file, and its number there from 0, if it is known; null if it is not of a file. A record
of text that cannot be read also has the number of its line from 1, and the text; a message that cannot be decoded has
its text."""

_UNREADABLE: Final = "unreadable record"


@dataclass(frozen=True)
class RejectedRows:
    """The rows of a batch that ``on_bad_row`` took out.

    Parameters
    ----------
    counts : dict of str to int
        Reason ("unreadable record", "unreadable timestamp", "null timestamp", "timestamp out of range", "unreadable
        arrival", "null arrival", "arrival out of range", "null split") to rows; a row counts under the first that
        applies.
    rows : pyarrow.RecordBatch or None
        If ``on_bad_row`` is an OutputTag: the rows as they were read, then their reasons and `RECORD_TYPE`.
    """

    counts: dict[str, int]
    rows: pa.RecordBatch | None

    @property
    def total(self) -> int:
        """Return how many rows."""
        return sum(self.counts.values())

    def and_also(self, other: RejectedRows) -> RejectedRows:
        """Return these rows and others of the same batch, which have other reasons."""
        batches = [each.rows for each in (self, other) if each.rows is not None]
        rows = pa.concat_batches(batches) if len(batches) > 1 else next(iter(batches), None)
        return RejectedRows(self.counts | other.counts, rows)


class _Place(NamedTuple):
    """Place of the rows of a batch in their chunk."""

    chunk: Chunk
    first_row: int
    taken: npt.NDArray[np.uint32] | None = None
    """Numbers of the rows after the first one, or None if they follow each other."""

    def row_name(self, row: int) -> str:
        return self.chunk.row_name(self._number(row))

    def rows_of(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Return the numbers of rows in the chunk."""
        numbers: npt.NDArray[np.int64] = (rows if self.taken is None else self.taken[rows]).astype(np.int64)
        return numbers + self.first_row

    def file(self, row: int) -> Chunk:
        """Return a chunk of the file of a row."""
        return self.chunk.part_of(self._number(row))[0]

    def of(self, row: int) -> dict[str, Any]:
        """Return the attributes of an error about a row."""
        return self.chunk.place(self._number(row))

    def _number(self, row: int) -> int:
        return self.first_row + (row if self.taken is None else int(self.taken[row]))

    def records(
        self, rows: npt.NDArray[np.integer[Any]], line: pa.Array | None = None, text: pa.Array | None = None
    ) -> pa.StructArray:
        """Return `RECORD_TYPE` of some rows; null if they are neither of a file nor have a text."""
        n_rows = len(rows)
        files, in_files = self.chunk.files_of(self.rows_of(rows))
        if text is None and files.null_count == n_rows:
            return pa.nulls(n_rows, RECORD_TYPE)
        return pa.StructArray.from_arrays(
            [
                files,
                in_files,
                pa.nulls(n_rows, pa.int64()) if line is None else line,
                pa.nulls(n_rows, pa.string()) if text is None else text,
            ],
            fields=list(RECORD_TYPE),
        )


class Fault(NamedTuple):
    """Fault of rows of a batch.

    Parameters
    ----------
    reason : str
    column : str
        Name of the column in messages.
    rows : numpy.ndarray, shape (n,), bool, or None
        Rows with this fault, or None.
    unreadable : pyarrow.Array, optional
        The column, if the values are the fault.
    why_unreadable : callable, optional
        Returns why such a value is one.
    outside_ms : numpy.ndarray, shape (n,), int64, optional
        The column's times, if they are the fault.
    why_outside : callable, optional
        Says why such a time is one.
    is_null : bool
        Whether nulls are the fault: the file may lack the column.
    """

    reason: str
    column: str
    rows: npt.NDArray[np.bool_] | None
    unreadable: pa.Array | None = None
    why_unreadable: Callable[[pa.Scalar], str] = str
    outside_ms: npt.NDArray[np.int64] | None = None
    why_outside: Callable[[int], str] | None = None
    is_null: bool = False

    def describe(self, row: int, file: Chunk) -> str:
        """Say what is wrong with a row of a file."""
        if self.unreadable is not None:
            return self.why_unreadable(self.unreadable[row])
        why_null = file.why_null(self.column) if self.is_null else None
        if why_null is not None:
            return f"{self.reason}: {why_null}"
        fault = f"{self.reason} (column {self.column!r})"
        if self.outside_ms is None or self.why_outside is None:
            return fault
        time_ms = int(self.outside_ms[row])
        return f"{fault}: {dated(time_ms, ' ms')}, {self.why_outside(time_ms)}"


def _has_no_window(timestamp_range: tuple[int, int], timestamp_ms: int) -> str:
    if timestamp_ms == MIN_TIMESTAMP:
        return "by which Flink means that there is no timestamp"
    return _without_bounds(timestamp_range)


def _without_bounds(timestamp_range: tuple[int, int]) -> str:
    lowest, highest = timestamp_range
    return (
        "for which the job's windows have no bounds within 64 bits: they have for timestamps from "
        f"{lowest} to {highest} ms"
    )


def _why_too_far(_arrival_ms: int) -> str:
    return "which is further than 2**61 ms from the epoch: check the unit of the column"


@dataclass(frozen=True)
class TimedBatch:
    """A batch of events in log order, as both planes see it.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, n rows
        The columns asked for, with plain types, after the ``before`` operations; rejected rows are not in it.
    timestamp_ms : numpy.ndarray, shape (n,), int64
    arrival_ms : numpy.ndarray, shape (n,), int64, or None
        As recorded, not yet the running maximum; None if the position gives the arrival.
    split_codes : numpy.ndarray, shape (n,), int32
        Indices into ``split_values``.
    split_values : list, length k
        The distinct splits of the rows of the chunk so far, as Python values: [None] if the log is one split, the
        file's name for ``FILE``, its partition for ``PARTITION``. The same list as before if there is no new one.
    positions : numpy.ndarray, shape (n,), int64
        The row's position in its split within this chunk, or by its content. Filtered and rejected rows count, so that
        neither a filter nor ``on_bad_row`` shifts the arrival of other events.
    split_rows : numpy.ndarray, shape (k,), int64
        Rows of each split that were read in this batch, before filters and rejections; some may have none.
    rows_read : int
        ``n + filtered + rejected.total``.
    filtered : int
        Rows that the ``before`` operations took out.
    rejected : RejectedRows
    by_cut : CutRows or None
        All rows of the batch where the log has a cut; those outside it count nowhere else.
    place : _Place or None
        Where the rows that were read lie in the chunk; None for events that have waited in a checkpoint.
    kept : numpy.ndarray, shape (n,), uint32, or None
        Which of these rows the events are; None for all.
    """

    batch: pa.RecordBatch
    timestamp_ms: npt.NDArray[np.int64]
    arrival_ms: npt.NDArray[np.int64] | None
    split_codes: npt.NDArray[np.int32]
    split_values: list[Any]
    positions: npt.NDArray[np.int64]
    split_rows: npt.NDArray[np.int64]
    rows_read: int
    filtered: int
    rejected: RejectedRows
    by_cut: CutRows | None = None
    place: _Place | None = None
    kept: npt.NDArray[np.uint32] | None = None

    def rows_of(self, events: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Return the numbers in the chunk of the rows of events, given by their numbers in the batch."""
        rows = events if self.kept is None else self.kept[events]
        return rows.astype(np.int64) if self.place is None else self.place.rows_of(rows)


class EventReader:
    """Reads chunks of a log; picklable, and small: it holds names and operations, no files.

    Arrival and split are of the log as it was recorded: arrival a column, or an expression over its columns. The
    timestamp is taken after the ``before`` operations, like Flink's assigner, which sees the mapped element:
    they may compute it. Only rows that pass their filters
    can be bad rows.

    Parameters
    ----------
    log : EventLog
    before : sequence of ColumnOp
        Operations between the source and the timestamp assigner.
    columns : sequence of str, "all" or None
        Columns needed downstream, in this order, as they are after ``before``; "all" for every one, None for only
        the timestamp. The operations are narrowed to what gives these.
    timestamp_range : tuple of int
        Lowest and highest timestamp, in ms, that the job has windows for; other rows are bad rows, as are those with
        -2**63, which Flink's window operators refuse as no timestamp.

    content : sequence of str
        Columns of the log whose values give the position of a row, if rows have no others: that of the log's
        `position`, or any by `content_numbers`.
    doubtful : sequence of str
        Columns of the log in which a record may turn out not to be an event.
    batch_rows : int
        Rows of a batch at most; results do not depend on it.
    batch_bytes : int
        Bytes of a batch at most, unless it has only one row.

    Attributes
    ----------
    schema : pyarrow.Schema
        Schema of each batch.
    rejected_schema : pyarrow.Schema
        Columns of the rejected rows: those that are read, ``reason`` (string) and ``record`` (`RECORD_TYPE`), with
        underscores after them if the log has these names.

    Raises
    ------
    SchemaError
        If a column is missing, or is not a time or split.
    """

    def __init__(
        self,
        log: EventLog,
        before: Sequence[ColumnOp] = (),
        columns: Sequence[str] | Literal["all"] | None = None,
        timestamp_range: tuple[int, int] = (MIN_TIMESTAMP, MAX_TIMESTAMP),
        content: Sequence[str] = (),
        doubtful: Sequence[str] = (),
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._timestamp = log.timestamp
        self._arrival, self._arrival_ops = arrival_column(log)
        self._arrival_name, _ = shown_column(self._arrival or "", self._arrival_ops)
        self._split = log.split
        self._position = log.position
        self._cut = log.cut
        self._timestamp_unit, self._arrival_unit = log.timestamp_unit, log.arrival_unit
        self._on_bad_row = log.on_bad_row
        lowest, highest = timestamp_range
        self._timestamp_range = max(lowest, MIN_TIMESTAMP + 1), highest
        available = log.schema
        if self._arrival is not None:
            if not self._arrival_ops:
                log.require(self._arrival, "arrival=")
            arrival_type = output_schema(self._arrival_ops, available).field(self._arrival).type
            check_time_type(arrival_type, self._arrival_name, log.arrival_unit, "arrival_unit")
        if isinstance(self._split, str):
            check_split_type(log.require(self._split, "split="), self._split)
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._gives_columns = columns is not None
        names = None if columns is None or columns == "all" else list(columns)
        wanted = None if columns == "all" else frozenset([self._timestamp, *(names or [])])
        self._before, needed = narrow_ops(tuple(before), wanted)
        for name in sorted(needed or ()):
            log.require(name, "timestamp=" if name == self._timestamp else "the job")
        structure = {self._split} if isinstance(self._split, str) else set()
        arrival_reads: Columns = frozenset()
        if self._arrival is not None:
            _, arrival_reads = narrow_ops(self._arrival_ops, frozenset([self._arrival]))
        reads = set(available.names)
        if needed is not None and arrival_reads is not None:
            reads = structure | needed | arrival_reads | set(content) | set(doubtful)
        # A batch needs a column to have a number of rows.
        read = pa.schema([field for field in available if field.name in (reads or narrowest(available))])
        require_readable(read)
        self._read = read.names
        # By name: tables have the same rows in whatever order their columns are.
        self._content = sorted(content)
        # The operations run on no rows once, so that a wrong name or type is refused before any work starts.
        after = output_schema(self._before, read)
        self._columns = (after.names if columns == "all" else names) or [self._timestamp]
        for name in [*self._columns, self._timestamp]:
            if name not in after.names:
                raise SchemaError(
                    f"column {name!r} is neither in the log nor made by an expression before the timestamps "
                    f"are assigned; there are: {shown_names(after)}"
                )
        self._timestamp_name, _ = shown_column(self._timestamp, self._before)
        timestamp_type = after.field(self._timestamp).type
        check_time_type(timestamp_type, self._timestamp_name, log.timestamp_unit, "timestamp_unit")
        self.columns_of_nulls: dict[str, str] = {
            "null timestamp": self._timestamp_name,
            "null arrival": self._arrival_name,
            "null split": self._split if isinstance(self._split, str) else "",
        }
        """Name of the column in messages, by the reason for which its nulls are rejected."""
        self.schema = pa.schema([after.field(name) for name in self._columns])
        self.rejected_schema = read
        for name, kind in (("reason", pa.string()), ("record", RECORD_TYPE)):
            while name in available.names:
                name += "_"
            self.rejected_schema = self.rejected_schema.append(pa.field(name, kind))
        self._finds_bad_records = log.finds_bad_records
        # Files often hold strings as dictionaries, whose codes spare hashing them here.
        text = (pa.string(), pa.binary())
        encoded = isinstance(self._split, str) and read.field(self._split).type in text
        self._encoded = [str(self._split)] if encoded else []
        self._split_is_used = (
            self._split in self._columns or bool(self._before) or isinstance(self._on_bad_row, OutputTag)
        )

    @property
    def columns_read(self) -> list[str]:
        """The log's columns that reading takes, in their order there."""
        return list(self._read)

    def read(self, chunk: Chunk, warnings: list[str] | None = None) -> Iterator[TimedBatch]:
        """Stream a chunk in log order.

        Parameters
        ----------
        chunk : Chunk
            A chunk of the reader's log.
        warnings : list of str, optional
            As :meth:`Chunk.read`.

        Yields
        ------
        TimedBatch
            Perhaps of no rows, where all were filtered or rejected.

        Raises
        ------
        DataError
            With ``on_bad_row="fail"``: names the first bad row, its column, and what to do.
        SourceError, SchemaError
            As :meth:`Chunk.read`.
        """
        return (timed for (timed,) in read_together([self], chunk, warnings))

    def _batch(
        self,
        chunk: Chunk,
        counter: SplitCounter,
        first_row: int,
        read: pa.RecordBatch,
        by_cut: CutRows | None,
    ) -> TimedBatch:
        """The next batch of a chunk, which may have more columns than this reader takes."""
        taken = None if by_cut is None else by_cut.taken
        if taken is not None:
            read = read.take(pa.array(taken))
        bad_records = read.column(BAD_RECORD) if self._finds_bad_records else None
        if bad_records is not None and bad_records.null_count == len(bad_records):
            bad_records = None
        if read.schema.names != self._read:
            read = read.select(self._read)
        splits = self._number(chunk, counter, read)
        return self._timed(_Place(chunk, first_row, taken), self._plain(read), splits, bad_records, by_cut)

    def side_of(self, chunk: Chunk) -> SideOfCut | None:
        """Return the side of the cut on which all rows of a chunk are, or None if it is not known without reading."""
        cut = self._cut
        if cut is None or not chunk.rows or self._arrival is None or self._arrival_ops:
            return None
        is_known, split = chunk.only_split(self._split)
        extremes = chunk.extremes(self._arrival) if is_known else None
        if extremes is None:
            return None
        ends_ms, unreadable = to_milliseconds(extremes, self._arrival_unit)
        if unreadable is not None:
            return None
        least, greatest = cut.sides(ends_ms).tolist()
        if least != greatest or least == 0:
            return None
        return SideOfCut(least, split, chunk.rows, int(ends_ms[0]), int(ends_ms[1]))

    def _cutter(self, chunk: Chunk) -> ChunkCutter | None:
        """Return the cutter of a chunk's batches, or None if all rows are taken."""
        return None if self._cut is None else ChunkCutter(self._cut, chunk, self._read_arrivals)

    def _read_arrivals(self, chunk: Chunk) -> Iterator[ReadArrivals]:
        columns = [*self._read, BAD_RECORD] if self._finds_bad_records else self._read
        return map(self._arrivals, chunk.read(columns, self._batch_rows, batch_bytes=self._batch_bytes))

    def _rows_by_cut(
        self, cutter: ChunkCutter, chunk: Chunk, first_row: int, read: pa.RecordBatch
    ) -> CutRows:
        return cutter.rows(first_row, self._arrivals(read), lambda: self._number(chunk, SplitCounter(), read))

    def _arrivals(self, read: pa.RecordBatch) -> ReadArrivals:
        assert self._arrival is not None
        arrivals = apply_ops(self._arrival_ops, read)[0].column(self._arrival)
        arrivals_ms, unreadable = to_milliseconds(arrivals, self._arrival_unit)
        is_valid = _mask(arrivals.is_valid())
        return ReadArrivals(arrivals_ms, is_valid if unreadable is None else is_valid & ~unreadable)

    def _waiting(self, chunk: Chunk, waiting: WaitingBatch) -> TimedBatch:
        """Return a batch of events that were read before a checkpoint, and waited in it."""
        batch = waiting.batch
        if self._gives_columns:
            found = [(field.name, field.type) for field in batch.schema]
            for field in self.schema:
                if found.count((field.name, field.type)) != 1:
                    raise SchemaError(
                        f"{chunk.label} has {_shown(batch.schema)}, and lacks {field.name!r} of type {field.type}: "
                        "events of paused splits wait there, and the job takes other columns of them than when it "
                        "stopped. Resume it as it was"
                    )
            batch = batch.select(self._columns)
        lowest, highest = self._timestamp_range
        outside = _outside(waiting.timestamp_ms, lowest, highest)
        if outside is not None:
            row = int(np.argmax(outside))
            raise DataError(
                f"{chunk.row_name(row)} has the timestamp {waiting.timestamp_ms[row]} ms, "
                f"{_without_bounds(self._timestamp_range)}; resume the job with the windows that it had",
                column=self._timestamp_name,
                **chunk.place(row),
            )
        return TimedBatch(
            batch=batch,
            timestamp_ms=waiting.timestamp_ms,
            arrival_ms=waiting.arrival_ms,
            split_codes=waiting.split_codes,
            split_values=waiting.split_values,
            positions=waiting.positions if self._position is None else waiting.positions - _RUN_POSITIONS,
            split_rows=waiting.split_rows,
            rows_read=waiting.rows_read,
            filtered=0,
            rejected=RejectedRows({}, None),
        )

    def _number(self, chunk: Chunk, counter: SplitCounter, read: pa.RecordBatch) -> SplitRows:
        known, value = chunk.only_split(self._split)
        if known:
            return counter.one_split(value, read.num_rows)
        return counter.number(read.column(self._split))

    def _plain(self, read: pa.RecordBatch) -> pa.RecordBatch:
        if not self._encoded or not self._split_is_used:
            return read
        at = read.schema.get_field_index(self._split)
        if not pa.types.is_dictionary(read.schema.field(at).type):
            return read
        columns = read.columns
        columns[at] = columns[at].dictionary_decode()
        return pa.RecordBatch.from_arrays(columns, read.schema.names)

    def _positions(self, read: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if self._position is None:
            return content_numbers(read.select(self._content))
        positions: npt.NDArray[np.int64] = read.column(self._position).to_numpy()
        return positions

    def _timed(
        self,
        place: _Place,
        read: pa.RecordBatch,
        splits: SplitRows,
        bad_records: pa.StructArray | None,
        by_cut: CutRows | None,
    ) -> TimedBatch:
        sound = None if bad_records is None else np.flatnonzero(_mask(bad_records.is_null()))
        batch, kept = apply_ops(self._before, read if sound is None else read.take(pa.array(sound)))
        if sound is not None:
            kept = (sound if kept is None else sound[kept]).astype(np.uint32)
        codes = splits.codes
        positions = self._positions(read) if self._content else splits.positions
        arrivals = None
        if self._arrival is not None:
            arrivals = apply_ops(self._arrival_ops, read)[0].column(self._arrival)
        if kept is not None:
            codes, positions = codes[kept], positions[kept]
            arrivals = None if arrivals is None else arrivals.take(pa.array(kept))

        times = batch.column(self._timestamp)
        timestamp_ms, unreadable = to_milliseconds(times, self._timestamp_unit)
        arrival_ms = None
        name = self._timestamp_name
        why_no_time = partial(no_time, column=name, unit=self._timestamp_unit, setting="timestamp_unit")
        faults = [
            Fault("unreadable timestamp", name, unreadable, times, why_no_time),
            Fault("null timestamp", name, _nulls(times), is_null=True),
            Fault(
                "timestamp out of range",
                name,
                _outside(timestamp_ms, *self._timestamp_range),
                outside_ms=timestamp_ms,
                why_outside=partial(_has_no_window, self._timestamp_range),
            ),
        ]
        if self._arrival is not None:
            arrival_ms, unreadable = to_milliseconds(arrivals, self._arrival_unit)
            name = self._arrival_name
            why_no_time = partial(no_time, column=name, unit=self._arrival_unit, setting="arrival_unit")
            too_far = _outside(arrival_ms, -MAX_ARRIVAL_MS, MAX_ARRIVAL_MS)
            faults += [
                Fault("unreadable arrival", name, unreadable, arrivals, why_no_time),
                Fault("null arrival", name, _nulls(arrivals), is_null=True),
                Fault("arrival out of range", name, too_far, outside_ms=arrival_ms, why_outside=_why_too_far),
            ]
        if isinstance(self._split, str):
            nulls = codes < 0 if len(codes) and codes.min() < 0 else None
            faults.append(Fault("null split", self._split, nulls, is_null=True))
        batch = batch.select(self._columns)
        filtered = (read.num_rows if sound is None else len(sound)) - batch.num_rows
        rejected = RejectedRows({}, None)
        if bad_records is not None:
            rejected = self._rejected_records(place, read, bad_records)
        if any(fault.rows is not None for fault in faults):
            good, rows = self._reject(faults, batch.num_rows, read, kept, place)
            rejected = rejected.and_also(rows)
            batch = batch.filter(pa.array(good))
            kept = np.flatnonzero(good).astype(np.uint32) if kept is None else kept[good]
            timestamp_ms, codes, positions = timestamp_ms[good], codes[good], positions[good]
            arrival_ms = None if arrival_ms is None else arrival_ms[good]
        return TimedBatch(
            batch=batch,
            timestamp_ms=timestamp_ms,
            arrival_ms=arrival_ms,
            split_codes=codes,
            split_values=splits.values,
            positions=positions,
            split_rows=splits.rows,
            rows_read=read.num_rows,
            filtered=filtered,
            rejected=rejected,
            by_cut=by_cut,
            place=place,
            kept=kept,
        )

    def _reject(
        self,
        faults: list[Fault],
        rows: int,
        read: pa.RecordBatch,
        kept: npt.NDArray[np.uint32] | None,
        place: _Place,
    ) -> tuple[npt.NDArray[np.bool_], RejectedRows]:
        # 0 is a good row; the first fault that applies stays.
        fault_of = np.zeros(rows, np.int8)
        for number, fault in enumerate(faults, 1):
            if fault.rows is not None:
                fault_of[fault.rows & (fault_of == 0)] = number
        bad = np.flatnonzero(fault_of)
        if self._on_bad_row == "fail":
            fault, row = faults[fault_of[bad[0]] - 1], int(bad[0])
            number = row if kept is None else int(kept[row])
            raise DataError(
                f"{place.row_name(number)}: {fault.describe(row, place.file(number))}; repair the log, filter such "
                'rows out before timestamps are assigned, or let on_bad_row="drop" count them, or an OutputTag collect '
                "them",
                column=fault.column,
                **place.of(number),
            )
        counts = np.bincount(fault_of, minlength=len(faults) + 1)[1:]
        by_reason = {fault.reason: int(n) for fault, n in zip(faults, counts, strict=True) if n}
        rejected = None
        if isinstance(self._on_bad_row, OutputTag):
            reasons = pa.array([fault.reason for fault in faults]).take(pa.array(fault_of[bad] - 1))
            rejected = self._rejected_rows(place, read, bad if kept is None else kept[bad], reasons)
        return fault_of == 0, RejectedRows(by_reason, rejected)

    def _rejected_records(
        self, place: _Place, read: pa.RecordBatch, bad_records: pa.StructArray
    ) -> RejectedRows:
        rows = np.flatnonzero(_mask(bad_records.is_valid()))
        counts = {_UNREADABLE: len(rows)}
        if not isinstance(self._on_bad_row, OutputTag):
            return RejectedRows(counts, None)
        line, text, why = bad_records.take(pa.array(rows)).flatten()
        reasons = pc.binary_join_element_wise(pa.scalar(_UNREADABLE), why, ": ")
        return RejectedRows(counts, self._rejected_rows(place, read, rows, reasons, line, text))

    def _rejected_rows(
        self,
        place: _Place,
        read: pa.RecordBatch,
        rows: npt.NDArray[np.integer[Any]],
        reasons: pa.Array,
        line: pa.Array | None = None,
        text: pa.Array | None = None,
    ) -> pa.RecordBatch:
        columns = [*read.take(pa.array(rows)).columns, reasons, place.records(rows, line, text)]
        return pa.RecordBatch.from_arrays(columns, schema=self.rejected_schema)


def read_together(
    readers: Sequence[EventReader],
    chunk: Chunk,
    warnings: list[str] | None = None,
    batch_rows: int | None = None,
) -> Iterator[tuple[TimedBatch, ...]]:
    """Stream a chunk once for several readers of its log: of each batch, what every one of them makes of it.

    Parameters
    ----------
    readers : sequence of EventReader
        Readers of one log, with the same arrival, split, rate and batch size; timestamps and operations may differ.
    chunk, warnings
        As of :meth:`EventReader.read`, which also says what is raised.
    batch_rows : int, optional
        Rows of a batch at most, or None for those of the readers.
    """
    batch_rows, batch_bytes = batch_rows or readers[0]._batch_rows, readers[0]._batch_bytes
    if isinstance(chunk, WaitingRows):
        for waiting in chunk.batches(batch_rows, batch_bytes):
            yield tuple(reader._waiting(chunk, waiting) for reader in readers)
        return
    columns = list(dict.fromkeys(name for reader in readers for name in reader._read))
    if readers[0]._finds_bad_records:
        columns.append(BAD_RECORD)
    counters = [SplitCounter() for _ in readers]
    cutter = readers[0]._cutter(chunk)
    first_row = 0
    for read in chunk.read(columns, batch_rows, readers[0]._encoded, warnings, batch_bytes):
        by_cut = None if cutter is None else readers[0]._rows_by_cut(cutter, chunk, first_row, read)
        yield tuple(
            reader._batch(chunk, counter, first_row, read, by_cut)
            for reader, counter in zip(readers, counters, strict=True)
        )
        first_row += read.num_rows


def arrival_column(log: EventLog) -> tuple[str | None, tuple[ColumnOp, ...]]:
    """Return the column that holds the arrivals, if any does, and the ops on the log's columns that make it."""
    if is_expression(log.arrival):
        return ARRIVAL, (WithColumns(((ARRIVAL, log.arrival),)),)
    return log.arrival, ()


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name!r} of type {field.type}" for field in schema)


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return mask


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    return _mask(column.is_null()) if column.null_count else None


def _outside(times_ms: npt.NDArray[np.int64], lowest: int, highest: int) -> npt.NDArray[np.bool_] | None:
    """Return which times are beyond these; also where the column is null."""
    if len(times_ms) == 0 or (lowest <= times_ms.min() and times_ms.max() <= highest):
        return None
    mask: npt.NDArray[np.bool_] = (times_ms < lowest) | (times_ms > highest)
    return mask

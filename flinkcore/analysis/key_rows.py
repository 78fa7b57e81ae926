"""The rows of one key of a log: its events with their places in the total order, and what was taken out before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.arrow.column_ops import (
    HIDDEN_PREFIX,
    ColumnOp,
    Columns,
    Filter,
    Select,
    WithColumns,
    apply_ops,
)
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.joined_batches import empty_batch, empty_table
from flinkcore._internal.arrow.milliseconds import to_milliseconds
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.common.output_tag import OutputTag
from flinkcore.errors import ConfigurationError
from flinkcore.log.event_reader import EventReader, arrival_column
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.sql.plan.column_names import plain_name
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import LogEvents

TIMESTAMP: Final = f"{HIDDEN_PREFIX}timestamp"
ARRIVAL: Final = f"{HIDDEN_PREFIX}arrival"
SPLIT: Final = f"{HIDDEN_PREFIX}split"
POSITION: Final = f"{HIDDEN_PREFIX}position"
REASON: Final = f"{HIDDEN_PREFIX}reason"
"""Columns after those of the rows, null where a row never got a value. The reason says why it is not an event."""

PLACE_FIELDS: Final = (
    pa.field(TIMESTAMP, pa.int64()),
    pa.field(ARRIVAL, pa.int64()),
    pa.field(SPLIT, pa.int32()),
    pa.field(POSITION, pa.int64()),
    pa.field(REASON, pa.string()),
)

_REJECTED: Final = OutputTag("flinkcore rejected")


@dataclass(frozen=True)
class Key:
    """The key that is asked for.

    Attributes
    ----------
    values : pyarrow.RecordBatch
        One row: the columns of the key.
    """

    values: pa.RecordBatch

    @classmethod
    def of(cls, given: Any, fields: Sequence[pa.Field], null_keys: bool = False) -> Key:
        """Take a key as a user gives it.

        Parameters
        ----------
        given
            The value; of a key of several columns a tuple or list in their order, or a mapping by their names. Text
            stands for a value of any type.
        fields
            Names and types of the columns.
        null_keys
            Whether null is a key like others in a single column.

        Raises
        ------
        ConfigurationError
            If these are not values of the columns, or the only one is null and must not be; or there are no columns.
        """
        names = [field.name for field in fields]
        if isinstance(given, Mapping):  # streams of a plan of SQL have names of their own
            by_plain_name = {plain_name(name): name for name in names}
            given = {by_plain_name.get(name, name): value for name, value in given.items()}
        if not names:
            raise ConfigurationError(
                "the windows of window_all have no key, but why() explains the events of one. Call it on a stream "
                "with key_by(...) before the windows"
            )
        if isinstance(given, Mapping) and set(given) == set(names):
            values = [given[name] for name in names]
        elif len(names) == 1 and (not isinstance(given, Mapping) or pa.types.is_nested(fields[0].type)):
            values = [given]
        elif isinstance(given, tuple | list) and len(given) == len(names):
            values = list(given)
        else:
            shown = [plain_name(name) for name in names]
            raise ConfigurationError(
                f"the key is of the columns {', '.join(shown)}: give key=({', '.join(f'<{name}>' for name in shown)}) "
                f"or a mapping by these names, not {given!r}"
            )
        if values == [None] and not null_keys:
            raise ConfigurationError(
                f"no event has null as its key: rows whose {names[0]} is null are rejected; see on_bad_row=, or take "
                f"null as a key like others by key_by({names[0]!r}, null_keys=True)"
            )
        arrays = [_value(value, field) for value, field in zip(values, fields, strict=True)]
        return cls(pa.RecordBatch.from_arrays(arrays, names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(self.values.schema.names)

    def __str__(self) -> str:
        return ", ".join(
            f"{plain_name(name)} = {self.values.column(name)[0].as_py()!r}" for name in self.columns
        )

    def is_in(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which rows have this key; shape (n_rows,)."""
        return reduce(and_, [_equal(rows.column(name), self.values.column(name)) for name in self.columns])

    def is_near(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which rows have this key but for the case of text, and blanks around it; shape (n_rows,)."""
        return reduce(
            and_,
            [_equal(_loose(rows.column(name)), _loose(self.values.column(name))) for name in self.columns],
        )

    def has(self, name: str, value: Any) -> bool:
        """Return whether a column of the key has this value."""
        column = self.values.column(name)
        return bool(_equal(pa.array([value], column.type), column)[0])

    def conditions(self) -> list[Expression]:
        """Return conditions on rows with this key that partition values and statistics can decide."""
        return [
            pc.field(name) == column[0]
            for name, column in zip(self.columns, self.values.columns, strict=True)
            if column.null_count == 0
            and not pa.types.is_floating(column.type)
            and not pa.types.is_nested(column.type)
        ]


def _value(value: Any, field: pa.Field) -> pa.Array:
    try:
        if isinstance(value, str) and not (pa.types.is_string(field.type) or pa.types.is_binary(field.type)):
            return pa.array([value]).cast(field.type)
        return pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"{value!r} is not a value of the key column {field.name!r}, which is {field.type}: {error}"
        ) from error


def _loose(column: pa.Array) -> pa.Array:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return pc.utf8_lower(pc.utf8_trim_whitespace(column)) if is_text else column


def _equal(column: pa.Array, value: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values are that of an array of one, as keys are equal: any NaN to any, but 0.0 not to -0.0."""
    is_valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    if value.null_count:
        return ~is_valid
    if pa.types.is_struct(column.type):
        for part, own in zip(column.flatten(), value.flatten(), strict=True):
            is_valid = is_valid & _equal(part, own)
        return is_valid
    found: npt.NDArray[np.bool_]
    if pa.types.is_floating(column.type):
        values, sought = column.fill_null(0).to_numpy(), value.to_numpy()[0]
        same = (values == sought) & (np.signbit(values) == np.signbit(sought))
        found = is_valid & (np.isnan(values) if np.isnan(sought) else same)
        return found
    found = pc.fill_null(pc.equal(column, value[0]), False).to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True, eq=False)
class KeepKey:
    """Keeps the rows of a key: a ColumnOp."""

    key: Key

    @property
    def required_columns(self) -> Columns:
        return frozenset(self.key.columns)

    def apply(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, RowNumbers | None]:
        kept = np.flatnonzero(self.key.is_in(batch)).astype(np.uint32)
        return batch.take(pa.array(kept)), kept

    def narrowed(self, wanted: Columns) -> tuple[ColumnOp | None, Columns]:
        return self, None if wanted is None else wanted | frozenset(self.key.columns)


def are_untouched(columns: Iterable[str], ops: Sequence[ColumnOp]) -> bool:
    """Return whether ops pass these columns on unchanged, so that they can be read before the ops."""
    names = set(columns)
    for op in reversed(ops):
        if isinstance(op, Select | WithColumns) and names & {name for name, _ in op.expressions}:
            return False
    return True


@dataclass(frozen=True)
class ReadKeyRows:
    """Reads the rows of one key from a chunk: what an analysis does with each; picklable.

    A chunk that cannot have the key, by the values of its partition or by statistics, is not read; of one that has not,
    only the key is. Rows come as they are before `LogPlan.after`, unless that makes the key.

    Attributes
    ----------
    plan
        Plan of the log in the job.
    time_plane
        Time plane of the log.
    key
        By the names that its columns have in this log.
    """

    plan: LogPlan
    time_plane: TimePlane
    key: Key

    batch_rows: ClassVar[int] = 1 << 17

    @property
    def finds_lost_rows(self) -> bool:
        """Return whether the log itself has the key, so that removed rows have it, too."""
        return are_untouched(self.key.columns, (*self.plan.before, *self.plan.after))

    @property
    def comes_before_steps(self) -> bool:
        """Return whether the key is known before `LogPlan.after`, which are then left to the caller."""
        return are_untouched(self.key.columns, self.plan.after)

    @property
    def given(self) -> LogPlan:
        """The plan whose events are read: only those of the key."""
        if not self.comes_before_steps:
            return replace(self.plan, after=(*self.plan.after, KeepKey(self.key)), orders_ties=True)
        names = frozenset(self.plan.data_columns())
        return replace(self.plan, after=(KeepKey(self.key),), read=names, orders_ties=True)

    def schema(self) -> pa.Schema:
        """Columns of the rows, and of their places."""
        return pa.schema([*self.given.data_schema(), *PLACE_FIELDS])

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield the rows of a chunk as an Arrow IPC stream, if it has any."""
        chunk = chunk.held(self._columns_read)
        of_key = None
        if self.finds_lost_rows:
            of_key = self._rows_of_key(chunk)
            if not of_key:
                return
        reader = ChunkReader(self.given, self.time_plane)
        events = [placed_rows(read.events) for read in reader.read(chunk)]
        found = pa.concat_tables([empty_table(self.schema()), *events])
        if of_key is not None and found.num_rows < of_key:
            found = pa.concat_tables([found, self._lost(chunk)])
        if found.num_rows:
            yield _stream(found)

    @property
    def _columns_read(self) -> list[str]:
        columns = self.given.reader(self.given.data_columns()).columns_read
        return list(dict.fromkeys([*columns, *(self.key.columns if self.finds_lost_rows else ())]))

    def _rows_of_key(self, chunk: Chunk) -> int:
        for name in self.key.columns:
            known, value = chunk.constant(name)
            if known and not self.key.has(name, value):
                return 0
        batches = chunk.rows_where(self.key.conditions()).read(list(self.key.columns), self.batch_rows)
        return sum(int(np.count_nonzero(self.key.is_in(batch))) for batch in batches)

    # ---- rows that are not events ----

    def _lost(self, chunk: Chunk) -> pa.Table:
        """Return the rows of the key that a filter before the watermarks, or a fault, has taken out."""
        lost: list[pa.RecordBatch] = []
        for batch in chunk.read(self._columns_read, self.batch_rows):
            rows = batch.filter(pa.array(self.key.is_in(batch)))
            left = rows
            for op in self.plan.before:
                given, kept = op.apply(left)
                if kept is not None:
                    dropped = np.setdiff1d(np.arange(left.num_rows), kept)
                    lost.append(self._without_place(chunk, rows.take(pa.array(dropped)), filter_reason(op)))
                    rows = rows.take(pa.array(kept))
                left = given
            lost += self._rejected(chunk, rows)
        return pa.Table.from_batches(lost, self.schema())

    def _rejected(self, chunk: Chunk, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that have a fault, found by halving."""
        log = replace(self.plan.log, on_bad_row=_REJECTED, split=None)
        reader = EventReader(log, self.plan.before, None, self.plan.timestamp_range)
        looked_at = [rows]
        while looked_at:
            some = looked_at.pop()
            n_rows = some.num_rows
            table = TableChunk(0, "rows of the key", n_rows, None, 0, pa.Table.from_batches([some]))
            faults = [reason for timed in reader.read(table) for reason in timed.rejected.counts]
            if faults and n_rows == 1:
                yield self._without_place(chunk, some, f"rejected: {faults[0]}")
            elif faults:
                looked_at += [some.slice(n_rows // 2), some.slice(0, n_rows // 2)]

    def _without_place(self, chunk: Chunk, rows: pa.RecordBatch, reason: str) -> pa.RecordBatch:
        """Rows that are not events, with what the log says of their times and splits."""
        log, n_rows = self.plan.log, rows.num_rows
        name, ops = arrival_column(log)
        arrivals = pa.nulls(n_rows) if name is None else apply_ops(ops, rows)[0].column(name)
        timestamps = rows.column(log.timestamp) if log.timestamp in rows.schema.names else pa.nulls(n_rows)
        known, split = chunk.only_split(log.split)
        splits = [split] * n_rows if known else rows.column(log.split).to_pylist()
        numbers = {value: number for number, value in enumerate(self.time_plane.split_values)}
        places = [
            _times(timestamps, log.timestamp_unit),
            _times(arrivals, log.arrival_unit),
            pa.array([numbers.get(value) for value in splits], pa.int32()),
            pa.nulls(n_rows, pa.int64()),
            pa.array([reason] * n_rows, pa.string()),
        ]
        columns = [
            rows.column(field.name)
            if field.name in rows.schema.names and rows.schema.field(field.name).type == field.type
            else pa.nulls(n_rows, field.type)
            for field in list(self.schema())[: -len(PLACE_FIELDS)]
        ]
        return pa.RecordBatch.from_arrays([*columns, *places], schema=self.schema())


@dataclass(frozen=True)
class ReadNearKeys:
    """Reads the keys in a chunk that are near to one, as of `Key.is_near`: what an analysis does with each; picklable.

    Attributes
    ----------
    key
        By the names that its columns have in this log.
    """

    key: Key

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        """Yield the keys of a chunk, each once, as an Arrow IPC stream."""
        columns = list(self.key.columns)
        near = pa.Table.from_batches(
            [
                batch.filter(pa.array(self.key.is_near(batch)))
                for batch in chunk.held(columns).read(columns, ReadKeyRows.batch_rows)
            ],
            self.key.values.schema,
        )
        if near.num_rows:
            yield _stream(near.group_by(columns).aggregate([]).select(columns))


def _stream(rows: pa.Table) -> bytes:
    """Rows as an Arrow IPC stream, of which `rows_of_key` makes them again."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _times(column: pa.Array, unit: TimeUnit | None) -> pa.Array:
    """Return a column of times in ms; null where it holds none."""
    if pa.types.is_null(column.type):
        return column.cast(pa.int64())
    times, unreadable = to_milliseconds(column, unit)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(times, mask=missing if unreadable is None else missing | unreadable)


def rows_of_key(streams: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """Return the rows that were read, events and others.

    Parameters
    ----------
    streams : iterable of bytes
        As of `ReadKeyRows`.
    schema : pyarrow.Schema
        Theirs.
    """
    return pa.concat_tables(
        [empty_table(schema), *(pa.ipc.open_stream(stream).read_all() for stream in streams)]
    )


def log_events(rows: pa.Table) -> LogEvents:
    """Return rows that are events, and their places."""
    rows = rows.combine_chunks()
    batch = rows.drop_columns([field.name for field in PLACE_FIELDS])
    times, arrivals, splits, positions = (
        rows.column(name).to_numpy() for name in (TIMESTAMP, ARRIVAL, SPLIT, POSITION)
    )
    (whole,) = batch.to_batches() or [empty_batch(batch.schema)]
    return LogEvents(whole, times, arrivals, splits, positions)


def placed_rows(events: LogEvents, reason: str | None = None) -> pa.Table:
    """Return events as rows with their places, and a reason where they were taken out afterwards."""
    places = events.timestamps, events.arrivals, events.splits, events.positions
    columns = [
        *events.batch.columns,
        *map(pa.array, places),
        pa.array([reason] * events.batch.num_rows, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema([*events.batch.schema, *PLACE_FIELDS]))


def filter_reason(op: ColumnOp) -> str:
    """Return the reason why rows are not kept by an op."""
    return f"filtered: {op.predicate if isinstance(op, Filter) else type(op).__name__}"

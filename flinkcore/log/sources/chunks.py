"""Pieces of an event log that any worker can read alone: a file or a part of it, a slice of a table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import cut
from flinkcore._internal.arrow.column_ops import Filter, apply_ops, expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.joined_batches import compacted
from flinkcore._internal.arrow.nested_fields import (
    NestedField,
    column_of,
    field_values,
    named_columns,
    named_field,
    nested_field,
    nested_fields,
    struct_of_paths,
    with_nested_fields,
)
from flinkcore._internal.arrow.plain_columns import (
    fitting_pieces,
    narrowest,
    plain_column,
    plain_schema,
    plain_type,
)
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.locations import naming_file
from flinkcore._internal.show.tables import shown_value
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.common.split_origin import FILE, PARTITION, SplitOrigin
from flinkcore.errors import DataError, SourceError
from flinkcore.log.files.log_files import LogFile, check_unchanged
from flinkcore.log.formats.bad_records import BAD_RECORD, BAD_RECORD_TYPE
from flinkcore.log.formats.columnar_formats import ParquetFormat
from flinkcore.log.formats.file_format import ColumnsToRead, FileFormat
from flinkcore.log.schemas.given_schema import GivenSchema

_UNITS: Final = ("s", "ms", "us", "ns")

_NEAR_ROWS: Final = 1 << 12
"""Rows of a table that `Chunk.before` gives at once."""


@dataclass(frozen=True)
class LogSchema:
    """The columns of a log. A file may lack some, which are null there, and have others of narrower types.

    Parameters
    ----------
    schema : pyarrow.Schema
        Plain types; partition columns come last.
    origins : mapping of str to str
        Column name to the file that gave its type.
    given : GivenSchema
        The columns and fields whose types the user has given.
    changes : tuple of str
        Differences between the files that have been looked at, a sentence each.
    converted : frozenset of str
        Columns that have another type in some of these files.
    stored : StoredColumns or None
        Names and types of a table's columns in its files; None if these are the log's.
    of_conditions : pyarrow.Schema
        Columns of the table that only conditions read: the log does not have them.
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    given: GivenSchema = field(default_factory=GivenSchema)
    changes: tuple[str, ...] = ()
    converted: frozenset[str] = frozenset()
    stored: StoredColumns | None = None
    of_conditions: pa.Schema = field(default_factory=lambda: pa.schema([]))
    plans: dict[Any, "ReadPlan"] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Plans by which chunks of the log read columns; each process makes its own."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plans": {}}

    @property
    def given_columns(self) -> frozenset[str]:
        """The columns of which the user has given the type, or that of a field."""
        return frozenset(column_of(self.schema, name) for name in self.given.types)

    @property
    def read(self) -> pa.Schema:
        """The columns that reading may take: those of the log, and of conditions."""
        return pa.schema([*self.schema, *self.of_conditions])


@dataclass(frozen=True)
class Chunk(ABC):
    """A self-contained, picklable piece of an event log.

    Parameters
    ----------
    index : int
        Place in the log's order.
    label : str
        Names the file and the part of it in messages.
    rows : int or None
        If known without reading.
    size_bytes : int or None
        About how much is read, if known; a share of the file for a part of it.
    first_row : int or None
        Row number in the file (from 0) of the chunk's first row; None if not known without reading.
    """

    index: int
    label: str
    rows: int | None
    size_bytes: int | None
    first_row: int | None

    @property
    def is_columnar(self) -> bool:
        """Return whether some columns are read without decoding the others."""
        return True

    @property
    def is_checked(self) -> bool:
        """Return whether reading it again may give other rows unnoticed by `read`, so that a replay compares them."""
        return False

    def read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        dictionary_columns: Sequence[str] = (),
        warnings: list[str] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the chunk's rows in order.

        Parameters
        ----------
        columns : sequence of str or None
            Which columns, in which order; None for all. `BAD_RECORD` as the last one says which rows are not events.
        batch_rows : int
            Rows of a batch at most.
        dictionary_columns : sequence of str
            Columns that may stay dictionary-encoded.
        warnings : list of str, optional
            Takes what is suspicious of the file and yet no error, by the end of the reading.
        batch_bytes : int
            Bytes of a batch at most, unless it has only one row.

        Yields
        ------
        pyarrow.RecordBatch
            With plain types, except that a dictionary column may be a dictionary of a plain type.

        Raises
        ------
        SourceError
            If the file cannot be read to its end, or, after the last row, if a chunk that compares its rows itself has
            others than in the first pass.
        SchemaError
            If a column has values in the file that its type in the log does not hold.
        """
        is_asked = columns is not None and BAD_RECORD in columns
        knows = not is_asked or self.finds_bad_records
        names = columns if columns is None or knows else list(columns)[:-1]
        with naming_file(self.path):
            for batch in self._read(names, batch_rows, dictionary_columns, warnings, batch_bytes):
                if not knows:
                    batch = batch.append_column(BAD_RECORD, pa.nulls(batch.num_rows, BAD_RECORD_TYPE))
                yield from cut(batch, batch_bytes)
                if batch.num_rows < batch_rows and batch.nbytes > batch_bytes // 2:
                    # Arrow's allocator would keep as much of large buffers that come and go as is in use.
                    del batch
                    pa.default_memory_pool().release_unused()

    @property
    def finds_bad_records(self) -> bool:
        """Return whether `_read` knows the column `BAD_RECORD`."""
        return False

    @abstractmethod
    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        """As `read`, which has the defaults."""

    def constant(self, column: str) -> tuple[bool, Any]:
        """Return (True, value) if the column has one value in all rows, known without reading, else (False, None)."""
        return False, None

    def only_split(self, split: str | SplitOrigin | None) -> tuple[bool, Any]:
        """Return (True, value) if all rows are of one split, known without reading, else (False, None).

        Parameters
        ----------
        split : str, SplitOrigin or None
            As of `EventLog`.
        """
        if split is None:
            return True, None
        if split is FILE:
            return True, self.file_name
        if split is PARTITION:
            return True, self.path_partition
        known, value = self.constant(str(split))
        return known and value is not None, value

    @property
    def path_partition(self) -> int | str | None:
        """The partition that the file's path names, where the log is split so."""
        return None

    def looked_up_rows(self) -> int | None:
        """Return how many rows there are, as its file says if it does, or None."""
        return self.rows

    @property
    def growth(self) -> int:
        """Factor by which rows may be larger in memory than `size_bytes`."""
        return 8

    def why_null(self, column: str) -> str | None:
        """Return why a column is null in all rows of the file, which is looked up in it; None if that is not known."""
        return None

    def extremes(self, column: str) -> pa.Array | None:
        """Return the least and the greatest value of a column, as reading gives them, or None if that is not known."""
        return None

    def before(self) -> Iterator["Chunk"]:
        """Yield chunks of the rows that lie before it in its file, the nearest ones first."""
        return iter(())

    def after(self) -> Iterator["Chunk"]:
        """Yield chunks of the rows that lie after it in its file, the nearest ones first."""
        return iter(())

    def rows_where(self, conditions: Sequence[Expression]) -> "Chunk":
        """Return a chunk of those rows for which all conditions are true, read as far as statistics do not decide."""
        return self

    def held(self, columns: Sequence[str]) -> "Chunk":
        """Return a chunk of the same rows, with these columns at least, that can be read more than once."""
        return self

    def row_name(self, row: int) -> str:
        """Name a row, given by its number in the chunk, as a user would look for it."""
        if self.first_row is None:
            return f"row {row} (from 0) of {self.label}"
        return f"row {self.first_row + row} (from 0) of {self.file_name}"

    def part_of(self, row: int) -> tuple["Chunk", int]:
        """Return a chunk of the file of a row, given by its number in the chunk, and the row's number there."""
        return self, row

    @property
    def parts(self) -> "Sequence[Chunk]":
        """Chunks of its files, one after the other."""
        return (self,)

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        """Return the path of the file of each row, given by its number in the chunk, and the row's number there.

        Both are null where they are not known, or where cutting the file otherwise would make them unknown.
        """
        files = pa.repeat(pa.scalar(self.path, pa.string()), len(rows))
        return files, pa.nulls(len(rows), pa.int64())

    def place(self, row: int) -> dict[str, Any]:
        """Return the attributes of an error about a row, given by its number in the chunk."""
        return {"file": self.path, "row": None if self.first_row is None else self.first_row + row}

    @property
    def path(self) -> str | None:
        """Path or URI of the file, or None if the rows are not of a file."""
        return None

    @property
    def file_name(self) -> str:
        """Name of the file or of what else has the rows, for messages."""
        return self.path or self.label


@dataclass(frozen=True)
class ReadPlan:
    """Plan by which the chunks of a log read some columns.

    Attributes
    ----------
    names : list of str
        The columns that are asked for.
    taken : list of str
        These, and those that conditions read.
    nested : mapping of str to NestedField
        Columns of `taken` that are fields of other columns.
    fields : list of pyarrow.Field
        Columns that are made of what the format reads.
    to_read : ColumnsToRead
        Columns that the format reads; batch size and warnings are those of each reading.
    warns : bool
        Whether somebody takes the warnings.
    """

    names: list[str]
    taken: list[str]
    nested: Mapping[str, NestedField]
    fields: list[pa.Field]
    to_read: ColumnsToRead
    warns: bool = False

    def places_in(self, found: pa.Schema) -> list[int] | None:
        """Return where the columns lie in batches of a schema that has all of them as numbers of the log's types."""
        memory = self.to_read.memory
        if memory.places is None or not memory.places[0].equals(found):
            memory.places = found, self._places_in(found)
        return memory.places[1]

    def _places_in(self, found: pa.Schema) -> list[int] | None:
        names = [field.name for field in self.fields]
        places = [found.get_field_index(name) for name in names]
        if names != self.names or -1 in places:
            return None
        for place, wanted in zip(places, self.fields, strict=True):
            field = found.field(place)
            if field.type != wanted.type or not (field.nullable and pa.types.is_primitive(field.type)):
                return None
        return places


ChunkTask: TypeAlias = Callable[[Chunk], Iterable[bytes]]
"""Work on one chunk of a log; picklable, so that it runs anywhere."""


@dataclass(frozen=True)
class FileChunk(Chunk):
    """A file, or a run of its row groups or record batches (``pieces``, or None for all of it).

    ``where``: conditions over columns of the log, all of which are true of its rows; the file may have others.
    """

    file: LogFile
    format: FileFormat
    pieces: range | None
    log_schema: LogSchema
    where: tuple[Expression, ...] = ()

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        plan = self.plan(columns, batch_rows, encoded, warnings, batch_bytes)
        check_unchanged([self.file])
        try:
            read = even_batches(self._found(plan), batch_rows, batch_bytes, self.label)
            yield from self._in_log(read, plan)
        except SourceError:
            check_unchanged([self.file])  # which says more than what the reader stumbled over
            raise
        check_unchanged([self.file])

    def plan(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> "ReadPlan":
        """Return how to read columns of this file and of all files of the log; parameters as of `read`."""
        plan = self._plan(columns, encoded)
        reports_others = (
            warnings is not None and self.log_schema.stored is None and not self.log_schema.given.is_whole
        )
        to_read = replace(
            plan.to_read,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            warnings=[] if warnings is None else warnings,
            known=self.log_schema.schema if reports_others else None,
        )
        return replace(plan, to_read=to_read, warns=warnings is not None)

    def rows_by(self, plan: "ReadPlan") -> Iterator[pa.RecordBatch]:
        """Yield the rows as `read` does, of a small file of which it is not checked whether it has changed.

        Fields of the schema may have metadata.
        """
        if self.where or self.file.partition:
            yield from self._in_log(self._found(plan), plan)
            return
        row = 0
        for batch in self._found(plan):
            places = plan.places_in(batch.schema)
            if places is None:
                yield from self._in_log(iter([batch]), plan, row)
            else:
                yield batch.select(places)
            row += batch.num_rows

    def _found(self, plan: "ReadPlan") -> Iterator[pa.RecordBatch]:
        """Yield the rows as the format reads them."""
        rows = 0
        for batch in self.format.batches(self.file, self.pieces, plan.to_read):
            rows += batch.num_rows
            yield batch
        if self.file.offsets is not None and self.first_row is not None and plan.warns:
            overlap = self.file.offsets.overlap(self.file.name, self.first_row + rows)
            plan.to_read.warnings.extend([] if overlap is None else [overlap])

    def _in_log(
        self, found: Iterator[pa.RecordBatch], plan: "ReadPlan", first_row: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the file with the columns of the log that are asked for, as far as conditions are true."""
        conditions = [Filter(condition) for condition in self.where]
        for batch in self._batches(found, plan, first_row):
            given = named_columns(batch, plan.taken, plan.nested) if plan.nested else batch
            yield apply_ops(conditions, given)[0].select(plan.names) if conditions else given

    def _plan(self, columns: Sequence[str] | None, encoded: Sequence[str]) -> "ReadPlan":
        """Return how to read columns, which is the same in all files of a log that have the same partition columns."""
        partition = tuple(name for name, _ in self.file.partition)
        if self.where:
            return self._new_plan(columns, encoded, partition)
        key = None if columns is None else tuple(columns), tuple(encoded), partition
        plan = self.log_schema.plans.get(key)
        if plan is None:
            plan = self.log_schema.plans[key] = self._new_plan(columns, encoded, partition)
        return plan

    def _new_plan(
        self, columns: Sequence[str] | None, encoded: Sequence[str], partition: Collection[str]
    ) -> "ReadPlan":
        log_schema = self.log_schema
        expected = log_schema.read
        names = list(log_schema.schema.names if columns is None else columns)
        read = self._read_by_conditions()
        encoded = [name for name in encoded if name not in read]
        taken = list(dict.fromkeys([*names, *sorted(read)]))
        nested = nested_fields(expected, taken)
        whole = [name for name in taken if name not in nested]
        columns_in_part = _columns_in_part(expected, whole, nested.values())
        in_file = [
            name for name in [*whole, *columns_in_part] if name not in partition and name != BAD_RECORD
        ]
        if not in_file:
            # Only partition columns are asked for: any column of the file has as many rows.
            in_file = narrowest(pa.schema([field for field in expected if field.name not in partition]))
        to_read = ColumnsToRead(
            pa.schema([expected.field(name) for name in in_file]),
            log_schema.origins,
            dictionary_columns=tuple(name for name in encoded if name in in_file),
            batch_rows=0,
            given=log_schema.given_columns,
            stored=log_schema.stored,
            where=self.where,
            in_part=columns_in_part,
        )
        types = pa.schema({each.name: each for each in (*expected, *to_read.wanted)}.values())
        read_names = [*whole, *columns_in_part]
        if BAD_RECORD in read_names:
            types = types.append(pa.field(BAD_RECORD, BAD_RECORD_TYPE))
        return ReadPlan(names, taken, nested, [types.field(name) for name in read_names], to_read)

    def _read_by_conditions(self) -> frozenset[str]:
        read: frozenset[str] = frozenset()
        for condition in self.where:
            of_one = expression_columns(condition)
            read |= frozenset(self.log_schema.read.names) if of_one is None else of_one
        return read

    def _batches(
        self, batches: Iterator[pa.RecordBatch], plan: "ReadPlan", row: int
    ) -> Iterator[pa.RecordBatch]:
        fields, to_read = plan.fields, plan.to_read
        names = [field.name for field in fields]
        partition = dict(self.file.partition)
        decoded = [name for name in to_read.names if name not in to_read.dictionary_columns]
        for batch in _fitting(batches, decoded, self.label, to_read.batch_bytes):
            misfits: dict[int, str] = {}
            arrays = []
            found = batch.schema
            for name, wanted in zip(names, fields, strict=True):
                at = found.get_field_index(name)
                if name in partition:
                    arrays.append(pa.repeat(pa.scalar(self.constant(name)[1], wanted.type), batch.num_rows))
                elif at < 0:
                    arrays.append(pa.nulls(batch.num_rows, wanted.type))
                elif _stays(batch.column(at), name, to_read.dictionary_columns, wanted.type):
                    arrays.append(batch.column(at))
                else:
                    is_lenient = BAD_RECORD in names and name in self.log_schema.converted
                    arrays.append(
                        self._as_in_log(batch.column(at), wanted, row, misfits if is_lenient else None)
                    )
            if misfits:
                at = names.index(BAD_RECORD)
                arrays[at] = _with_reasons(arrays[at], misfits)
            yield _record_batch(arrays, names)
            row += batch.num_rows

    def _as_in_log(
        self, column: pa.Array, field: pa.Field, first_row: int, misfits: dict[int, str] | None
    ) -> pa.Array:
        """Return a column with the log's type. Values that it does not hold are null and in `misfits`, or an error."""
        try:
            return plain_column(column, field.type)
        except DataError as failure:
            stored = plain_type(column.type)
            if stored == field.type:
                raise
            rows = list(_misfits(column, field.type, 0, len(column)))
            if misfits is None:
                name, value, target = _field_that_does_not_fit(
                    field.name, column.slice(rows[0], 1), field.type
                )
                part = "column" if name == field.name else "field"
                raise DataError(
                    f"{self.row_name(first_row + rows[0])} has {shown_value(value[0])} in {part} {name!r}, which is "
                    f"{plain_type(value.type)} there. {target}, the type of the {part} in the log, does not hold it "
                    f"exactly. Give a type that holds all values, such as schema={{{name!r}: 'string'}}"
                ) from failure
        for row in rows:
            misfits.setdefault(
                row, f"{field.name!r} is {shown_value(column[row])}, which {field.type} does not hold"
            )
        indices = np.ma.array(np.arange(len(column)), mask=np.isin(np.arange(len(column)), rows))
        return plain_column(column.take(pa.array(indices)), field.type)

    @property
    def is_checked(self) -> bool:
        return True

    def looked_up_rows(self) -> int | None:
        if self.rows is not None or not isinstance(self.format, ParquetFormat):
            return self.rows
        rows = [each or 0 for each in self.format.pieces(self.file)]
        return sum(rows if self.pieces is None else rows[self.pieces.start : self.pieces.stop])

    def why_null(self, column: str) -> str | None:
        stored, names = self.log_schema.stored, self.log_schema.schema.names
        is_known = column in names or nested_field(self.log_schema.schema, column) is not None
        is_in_files = self.format.has_columns and is_known and not self.constant(column)[0]
        schema = self.format.schema(self.file, at_a_glance=True) if is_in_files and stored is None else None
        if schema is None or with_nested_fields(schema, [column]).get_all_field_indices(column):
            return None
        return f"the file lacks column {column!r}, which other files of the log have"

    def extremes(self, column: str) -> pa.Array | None:
        is_whole = not self.where and self.file.deleted is None and self.log_schema.stored is None
        if not isinstance(self.format, ParquetFormat) or not is_whole or self.constant(column)[0]:
            return None
        if "." in column and not self._means_the_same_in_the_file(column):
            return None
        found = self.format.extremes(self.file, self.pieces, column)
        return None if found is None else _in_order(found, named_field(self.log_schema.schema, column).type)

    def _means_the_same_in_the_file(self, column: str) -> bool:
        """Return whether a dotted name is in both, the file and the log, a column, or the same field of a struct."""
        stored = self.format.schema(self.file, at_a_glance=True)
        in_file, in_log = (
            None if schema is None or (found := nested_field(schema, column)) is None else found[:2]
            for schema in (stored, self.log_schema.schema)
        )
        return in_file == in_log

    def before(self) -> Iterator[Chunk]:
        return map(self._of_piece, reversed(range(0 if self.pieces is None else self.pieces.start)))

    def after(self) -> Iterator[Chunk]:
        if self.pieces is not None:
            yield from map(self._of_piece, range(self.pieces.stop, len(self.format.pieces(self.file))))

    def _of_piece(self, piece: int) -> Chunk:
        return replace(self, pieces=range(piece, piece + 1), rows=None, first_row=None)

    def rows_where(self, conditions: Sequence[Expression]) -> Chunk:
        return replace(self, where=(*self.where, *conditions))

    def constant(self, column: str) -> tuple[bool, Any]:
        for name, value in self.file.partition:
            if name == column:
                integer = value is not None and pa.types.is_int64(self.log_schema.read.field(name).type)
                return True, int(value) if integer and value is not None else value
        return False, None

    def row_name(self, row: int) -> str:
        name = super().row_name(row)
        if self.file.offsets is None or self.first_row is None:
            return name
        return f"{name} ({self.file.offsets.of_row(self.first_row + row)})"

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        files, numbers = super().files_of(rows)
        if self.format.counts_rows and self.first_row is not None:
            numbers = pa.array(self.first_row + rows, pa.int64())
        return files, numbers

    @property
    def path(self) -> str:
        return self.file.name

    @property
    def path_partition(self) -> int | str | None:
        return self.file.split

    @property
    def finds_bad_records(self) -> bool:
        return True

    @property
    def is_columnar(self) -> bool:
        return self.format.is_columnar


@dataclass(frozen=True)
class TableChunk(Chunk):
    """A slice of an in-memory table; ``whole``: the table, if `before` and `after` are asked for."""

    table: pa.Table
    whole: pa.Table | None = None

    @property
    def growth(self) -> int:
        is_plain = self.table.schema == plain_schema(self.table.schema)
        return 1 if is_plain else super().growth

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        names = list(self.table.column_names if columns is None else columns)
        nested = nested_fields(plain_schema(self.table.schema), names)
        holding = [nested[name].column if name in nested else name for name in names]
        table = self.table if columns is None else self.table.select(list(dict.fromkeys(holding)))
        batches: Iterator[pa.RecordBatch] = iter(table.to_batches(max_chunksize=batch_rows))
        if nested:
            batches = (named_columns(batch, names, nested) for batch in batches)
        decoded = [name for name in names if name not in encoded]
        even = even_batches(batches, batch_rows, batch_bytes, self.label)
        for batch in _fitting(even, decoded, self.label, batch_bytes):
            arrays = [
                column
                if _stays(column, name, encoded, plain_type(column.type))
                else plain_column(column, plain_type(column.type))
                for name, column in zip(names, batch.columns, strict=True)
            ]
            yield _record_batch(arrays, names)

    @property
    def file_name(self) -> str:
        return "the table"

    def before(self) -> Iterator[Chunk]:
        if self.whole is not None and self.first_row is not None:
            for stop in range(self.first_row, 0, -_NEAR_ROWS):
                start = max(0, stop - _NEAR_ROWS)
                yield replace(self, table=self.whole.slice(start, stop - start))

    def after(self) -> Iterator[Chunk]:
        if self.whole is not None and self.first_row is not None:
            yield replace(self, table=self.whole.slice(self.first_row + self.table.num_rows))

    def __getstate__(self) -> dict[str, Any]:
        # The IPC stream holds the slice only; pyarrow's own pickle takes the whole table's buffers along.
        whole = None if self.whole is None else _to_ipc(self.whole)
        return {**self.__dict__, "table": _to_ipc(self.table), "whole": whole}

    def __setstate__(self, state: dict[str, Any]) -> None:
        whole = None if state["whole"] is None else _from_ipc(state["whole"])
        self.__dict__.update(state, table=_from_ipc(state["table"]), whole=whole)


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _from_ipc(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _columns_in_part(
    schema: pa.Schema, whole: Collection[str], nested: Iterable[NestedField]
) -> dict[str, pa.StructType]:
    """Return the columns of which fields alone are read, with types that have only these."""
    paths: dict[str, list[tuple[str, ...]]] = {}
    for each in nested:
        if each.column not in whole:
            paths.setdefault(each.column, []).append(each.path)
    return {column: struct_of_paths(schema.field(column).type, each) for column, each in paths.items()}


def _in_order(extremes: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return extremes with the log's type, or None where reading may refuse or reorder values between them.

    Parameters
    ----------
    extremes : pyarrow.Array, shape (2,)
        Integers of 64 bits or timestamps.
    target : pyarrow.DataType
    """
    kind, is_time = extremes.type, pa.types.is_timestamp(target)
    is_coarser = (
        is_time and pa.types.is_timestamp(kind) and _UNITS.index(target.unit) < _UNITS.index(kind.unit)
    )
    if is_coarser or not (is_time or pa.types.is_int64(target)):
        return None
    try:
        return plain_column(extremes, target)
    except DataError:
        return None


def _field_that_does_not_fit(
    name: str, value: pa.Array, target: pa.DataType
) -> tuple[str, pa.Array, pa.DataType]:
    """Return the dotted name, the one value and the type in the log of the first field that this does not hold."""
    if pa.types.is_struct(value.type) and pa.types.is_struct(target):
        for field in target:
            if value.type.get_field_index(field.name) >= 0:
                within = field_values(value, [field.name])
                if list(_misfits(within, field.type, 0, 1)):
                    return _field_that_does_not_fit(f"{name}.{field.name}", within, field.type)
    return name, value, target


def _misfits(column: pa.Array, target: pa.DataType, start: int, stop: int) -> Iterator[int]:
    """Yield the rows, among some, whose values a plain type does not hold."""
    try:
        plain_column(column.slice(start, stop - start), target)
    except DataError:
        if stop - start == 1:
            yield start
            return
        half = (start + stop) // 2
        yield from _misfits(column, target, start, half)
        yield from _misfits(column, target, half, stop)


def _with_reasons(bad_records: pa.StructArray, reasons: Mapping[int, str]) -> pa.Array:
    """Return `BAD_RECORD` with further rows that are not events."""
    records = bad_records.to_pylist()
    for row, reason in reasons.items():
        records[row] = records[row] or {"line": None, "text": None, "reason": reason}
    return pa.array(records, BAD_RECORD_TYPE)


def _stays(column: pa.Array, name: str, encoded: Sequence[str], plain: pa.DataType) -> bool:
    return name in encoded and pa.types.is_dictionary(column.type) and column.type.value_type == plain


def _record_batch(arrays: list[pa.Array], names: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names)


def _fitting(
    batches: Iterable[pa.RecordBatch], decoded: Collection[str], label: str, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        there = frozenset(batch.schema.names)
        yield from fitting_pieces(batch, [name for name in decoded if name in there], label, most_bytes)


def even_batches(
    batches: Iterator[pa.RecordBatch], batch_rows: int, batch_bytes: int, label: str
) -> Iterator[pa.RecordBatch]:
    """Cut batches that are too long, join those that are much too short, drop those without rows.

    Columns whose dictionaries have no common one are plain where they are joined.
    """
    short: list[pa.RecordBatch] = []
    held = held_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        is_short = batch.num_rows < batch_rows // 4
        n_bytes = batch.nbytes if is_short else 0
        if held and (
            not is_short or held + batch.num_rows > batch_rows or held_bytes + n_bytes > batch_bytes
        ):
            yield from _joined(short, batch_bytes, label)
            short, held, held_bytes = [], 0, 0
        if is_short:
            short.append(batch)
            held, held_bytes = held + batch.num_rows, held_bytes + n_bytes
            continue
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)
    yield from _joined(short, batch_bytes, label)


def _joined(batches: list[pa.RecordBatch], most_bytes: int, label: str) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    table = compacted(pa.Table.from_batches(batches))
    apart = frozenset(name for name in table.column_names if table.column(name).num_chunks > 1)
    if apart:  # their dictionaries have no common one
        pieces = _fitting(table.to_batches(), apart, label, most_bytes)
        table = compacted(pa.Table.from_batches([_with_plain(piece, apart) for piece in pieces]))
    return table.to_batches()  # type: ignore[no-any-return]


def _with_plain(batch: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    arrays = [
        plain_column(column, plain_type(column.type)) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return _record_batch(arrays, batch.schema.names)

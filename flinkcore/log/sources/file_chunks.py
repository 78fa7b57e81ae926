"""Files of an event log, or parts of them, as pieces that any worker can read alone."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ops import Filter, apply_ops, expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.nested_fields import (
    NestedField,
    field_values,
    named_columns,
    named_field,
    nested_field,
    nested_fields,
    struct_of_paths,
    with_nested_fields,
)
from flinkcore._internal.arrow.plain_columns import (
    narrowest,
    plain_column,
    plain_type,
)
from flinkcore._internal.show.tables import shown_value
from flinkcore.errors import DataError, SourceError
from flinkcore.log.files.log_files import LogFile, check_unchanged
from flinkcore.log.formats.bad_records import BAD_RECORD, BAD_RECORD_TYPE
from flinkcore.log.formats.columnar_formats import ParquetFormat
from flinkcore.log.formats.file_format import ColumnsToRead, FileFormat
from flinkcore.log.sources.chunks import Chunk, LogSchema
from flinkcore.log.sources.even_batches import even_batches, fitting_batches, stays_encoded
from flinkcore.log.sources.read_plan import ReadPlan

_UNITS: Final = ("s", "ms", "us", "ns")


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
        for batch in fitting_batches(batches, decoded, self.label, to_read.batch_bytes):
            misfits: dict[int, str] = {}
            arrays = []
            found = batch.schema
            for name, wanted in zip(names, fields, strict=True):
                at = found.get_field_index(name)
                if name in partition:
                    arrays.append(pa.repeat(pa.scalar(self.constant(name)[1], wanted.type), batch.num_rows))
                elif at < 0:
                    arrays.append(pa.nulls(batch.num_rows, wanted.type))
                elif stays_encoded(batch.column(at), name, to_read.dictionary_columns, wanted.type):
                    arrays.append(batch.column(at))
                else:
                    is_lenient = BAD_RECORD in names and name in self.log_schema.converted
                    arrays.append(
                        self._as_in_log(batch.column(at), wanted, row, misfits if is_lenient else None)
                    )
            if misfits:
                at = names.index(BAD_RECORD)
                arrays[at] = _with_reasons(arrays[at], misfits)
            yield pa.RecordBatch.from_arrays(arrays, names)
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

"""Formats of rows in files that Arrow reads and writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from flinkcore._internal.values.row import Row, rows_of_columns
from flinkcore.common.serialization import BulkWriter, BulkWriterFactory
from flinkcore.common.time import Instant
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.connectors.file_system.file_source import BulkFormat
from flinkcore.errors import DataError, SchemaError
from flinkcore.table.types import ArrayType, DataType, DecimalType, MapType, RowType

_ROWS_AT_ONCE = 8192


def row_schema(declared: RowTypeInfo | RowType) -> Any:
    """Return the ``pyarrow.Schema`` of rows; raise ConfigurationError if a field has no Arrow type."""
    import pyarrow as pa

    if isinstance(declared, RowType):
        return pa.schema([(field.name, _arrow_type(field.data_type)) for field in declared])
    return pa.schema(list(declared.to_arrow_type()))


def _row_type_info(declared: RowTypeInfo | RowType) -> RowTypeInfo:
    return declared.type_info() if isinstance(declared, RowType) else declared


def _arrow_type(data_type: DataType) -> Any:
    import pyarrow as pa

    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, ArrayType):
        return pa.list_(_arrow_type(data_type.element_type))
    if isinstance(data_type, MapType):
        return pa.map_(_arrow_type(data_type.key_type), _arrow_type(data_type.value_type))
    if isinstance(data_type, RowType):
        return pa.struct([(field.name, _arrow_type(field.data_type)) for field in data_type])
    return data_type.type_info().to_arrow_type()


class ArrowRowFormat(BulkFormat):
    """Reads rows of files that Arrow reads as batches.

    Parameters
    ----------
    declared : RowTypeInfo or RowType
        Fields are read by name; other columns of the file are ignored.
    """

    def __init__(self, declared: RowTypeInfo | RowType) -> None:
        self._declared = declared
        self.row_type = _row_type_info(declared)

    def produced_type(self) -> RowTypeInfo:
        return self.row_type

    @abstractmethod
    def batches(self, file: Any, name: str) -> Iterator[Any]:
        """Yield the ``pyarrow.RecordBatch`` of a ``pyarrow.NativeFile``; `name` is for messages."""

    def read(self, file: BinaryIO, name: str) -> Iterator[Row]:
        """Yield the rows of a file.

        Raises
        ------
        DataError
            If the file has another format, or is damaged.
        SchemaError
            If a column is missing.
        """
        import pyarrow as pa

        schema = row_schema(self._declared)
        try:
            for batch in self.batches(file, name):
                missing = [field for field in schema.names if field not in batch.schema.names]
                if missing:
                    raise SchemaError(
                        f"{name} has no column {missing[0]!r}; it has {', '.join(batch.schema.names)}"
                    )
                table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
                yield from rows_of_columns(schema.names, [column.to_pylist() for column in table.columns])
        except (pa.ArrowException, UnicodeDecodeError) as failure:
            raise DataError(
                f"{name} does not have rows of {self.row_type!r}: {failure}", file=name
            ) from failure


class BatchWriter(BulkWriter):
    """Writes elements into a file as batches.

    Parameters
    ----------
    writer : object
        With ``write_batch`` and ``close``.
    misfit : str
        Text of the error for elements that do not fit the writer's schema.
    """

    def __init__(self, writer: Any, misfit: str) -> None:
        self._writer = writer
        self._misfit = misfit
        self._elements: list[Any] = []

    def add_element(self, element: Any) -> None:
        """Buffer an element, and write a batch when there are enough."""
        self._elements.append(self._checked(element))
        if len(self._elements) == _ROWS_AT_ONCE:
            self._write()

    def finish(self) -> None:
        try:
            self._write()
        finally:
            self._writer.close()

    def _write(self) -> None:
        import pyarrow as pa

        from flinkcore._internal.arrow.required_values import refused_null_of

        elements, self._elements = self._elements, []
        if not elements:
            return
        try:
            batch = self._batch(elements)
            place = refused_null_of(batch)
            if place is not None:
                raise ValueError(f"Column {place!r} is declared non-nullable but contains nulls")
            self._writer.write_batch(batch)
        except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError) as failure:
            raise DataError(f"{self._misfit}: {failure}") from failure

    @abstractmethod
    def _checked(self, element: Any) -> Any:
        """Return what is buffered of an element; a DataError if it does not fit."""

    @abstractmethod
    def _batch(self, elements: list[Any]) -> Any:
        """Return the batch of what is buffered of elements."""


class ArrowRowWriter(BatchWriter):
    """Writes rows into a file as batches.

    Parameters
    ----------
    declared : RowTypeInfo or RowType
        Decimals are rounded to a ``DecimalType``.
    open_writer : callable
        From the schema to an object with ``write_batch`` and ``close``.
    """

    def __init__(self, declared: RowTypeInfo | RowType, open_writer: Callable[[Any], Any]) -> None:
        self._row_type = _row_type_info(declared)
        self._conversion = self._row_type.conversion()
        self._schema = row_schema(declared)
        types = declared.field_types() if isinstance(declared, RowType) else []
        self._rounded = {
            index: each.rounded for index, each in enumerate(types) if isinstance(each, DecimalType)
        }
        super().__init__(open_writer(self._schema), f"rows are not of {self._row_type!r}")

    def _checked(self, element: Any) -> Row:
        row: Row | None = self._conversion(element)
        if row is None:
            raise DataError(f"None is not a row of {self._row_type!r}. Drop it before")
        return row

    def _batch(self, elements: list[Row]) -> Any:
        import pyarrow as pa

        columns: list[Any] = list(zip(*(map(plain, row) for row in elements), strict=True))
        for index, rounded in self._rounded.items():
            columns[index] = [None if value is None else rounded(value) for value in columns[index]]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class ArrowWriterFactory(BulkWriterFactory):
    """Creates the writers of files of rows.

    Parameters
    ----------
    declared : RowTypeInfo or RowType
    open_writer : callable
        From a file and the schema to an object with ``write_batch`` and ``close``.
    """

    def __init__(self, declared: RowTypeInfo | RowType, open_writer: Callable[[BinaryIO, Any], Any]) -> None:
        row_schema(declared)  # fails now if a field has no Arrow type
        self._declared = declared
        self._open_writer = open_writer

    def create(self, file: BinaryIO) -> BulkWriter:
        return ArrowRowWriter(self._declared, lambda schema: self._open_writer(file, schema))


def plain(value: Any) -> Any:
    """Return a value for Arrow: Rows and tuples as dictionaries by the names of their fields, instants as numbers."""
    if isinstance(value, Instant):
        return value.to_epoch_milli()
    if isinstance(value, Row):
        names = value._fields or [f"f{index}" for index in range(len(value))]
        return {name: plain(field) for name, field in zip(names, value, strict=True)}
    if isinstance(value, tuple):
        return {f"f{index}": plain(field) for index, field in enumerate(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return [(plain(key), plain(item)) for key, item in value.items()]
    return value

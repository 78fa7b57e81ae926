"""Formats of rows in files that Arrow reads and writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from flinkcore.common.row import Row, rows_of_columns
from flinkcore.common.serialization import BulkWriter, BulkWriterFactory
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.connectors.file_system.file_source import BulkFormat
from flinkcore.errors import DataError, SchemaError

ROWS_AT_ONCE = 8192


def row_schema(row_type: RowTypeInfo) -> Any:
    """Return the ``pyarrow.Schema`` of rows; raise ConfigurationError if a field has no Arrow type."""
    import pyarrow as pa

    return pa.schema(list(row_type.to_arrow_type()))


class ArrowRowFormat(BulkFormat):
    """Reads rows of files that Arrow reads as batches.

    Parameters
    ----------
    row_type : RowTypeInfo
        Fields are read by name; other columns of the file are ignored.
    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        self.row_type = row_type

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

        schema = row_schema(self.row_type)
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
            raise DataError(f"{name} does not have rows of {self.row_type!r}: {failure}") from failure


class ArrowRowWriter(BulkWriter):
    """Writes rows into a file as batches.

    Parameters
    ----------
    row_type : RowTypeInfo
    open_writer : callable
        From the schema to an object with ``write_batch`` and ``close``.
    """

    def __init__(self, row_type: RowTypeInfo, open_writer: Callable[[Any], Any]) -> None:
        self._row_type = row_type
        self._conversion = row_type.conversion()
        self._schema = row_schema(row_type)
        self._writer = open_writer(self._schema)
        self._rows: list[Row] = []

    def add_element(self, element: Any) -> None:
        """Buffer a row, and write a batch when there are enough."""
        self._rows.append(self._conversion(element))
        if len(self._rows) == ROWS_AT_ONCE:
            self._write()

    def finish(self) -> None:
        try:
            self._write()
        finally:
            self._writer.close()

    def _write(self) -> None:
        import pyarrow as pa

        rows, self._rows = self._rows, []
        if not rows:
            return
        columns = zip(*(map(plain, row) for row in rows), strict=True)
        try:
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)
            ]
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as failure:
            raise DataError(f"rows are not of {self._row_type!r}: {failure}") from failure
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))


class ArrowWriterFactory(BulkWriterFactory):
    """Creates the writers of files of rows.

    Parameters
    ----------
    row_type : RowTypeInfo
    open_writer : callable
        From a file and the schema to an object with ``write_batch`` and ``close``.
    """

    def __init__(self, row_type: RowTypeInfo, open_writer: Callable[[BinaryIO, Any], Any]) -> None:
        row_schema(row_type)  # fails now if a field has no Arrow type
        self._row_type = row_type
        self._open_writer = open_writer

    def create(self, file: BinaryIO) -> BulkWriter:
        return ArrowRowWriter(self._row_type, lambda schema: self._open_writer(file, schema))


def plain(value: Any) -> Any:
    """Return a value for Arrow: Rows and tuples as dictionaries by the names of their fields."""
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

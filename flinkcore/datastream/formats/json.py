"""The format of rows in files of JSON lines."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from flinkcore.common.missing_features import MISSING_FORMAT_NAMES, refuse_name
from flinkcore.common.serialization import BulkWriter, BulkWriterFactory
from flinkcore.common.text_files import MOST_LEVELS, empty_file, is_too_deep
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.formats.arrow_format import ArrowRowFormat, checked_row_type, row_schema
from flinkcore.errors import DataError


class JsonReaderFormat(ArrowRowFormat):
    """Reads rows of files with a JSON object in each line.

    Parameters
    ----------
    row_type : RowTypeInfo
        Any other type is a ConfigurationError.

    Notes
    -----
    PyFlink reads JSON from message queues only; there it is ``JsonRowDeserializationSchema``.
    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        super().__init__(checked_row_type(row_type, "JsonReaderFormat"))

    @staticmethod
    def for_row_type(row_type: RowTypeInfo) -> JsonReaderFormat:
        """Return the format of a type of rows."""
        return JsonReaderFormat(row_type)

    def batches(self, file: Any, name: str) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        content = file.read()
        if not content.strip():
            warnings.warn(empty_file(name), UserWarning, stacklevel=2)
            return iter(())
        if is_too_deep(content):
            raise DataError(f"{name} has arrays and objects that are more than {MOST_LEVELS} levels deep")
        options = arrow_json.ParseOptions(explicit_schema=row_schema(self.row_type))
        return iter(arrow_json.read_json(pa.BufferReader(content), parse_options=options).to_batches())


class JsonBulkWriters:
    """Creates the writers of files of JSON lines."""

    @staticmethod
    def for_row_type(row_type: RowTypeInfo) -> BulkWriterFactory:
        """Return the factory of writers for a type of rows; raise ConfigurationError for any other type."""
        return _JsonWriterFactory(checked_row_type(row_type, "JsonBulkWriters"))


class _JsonWriterFactory(BulkWriterFactory):
    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type

    def create(self, file: BinaryIO) -> BulkWriter:
        return _JsonWriter(file, self._row_type)


class _JsonWriter(BulkWriter):
    def __init__(self, file: BinaryIO, row_type: RowTypeInfo) -> None:
        self._file = file
        self._conversion = row_type.conversion()

    def add_element(self, element: Any) -> None:
        row = self._conversion(element)
        text = json.dumps(row.as_dict(True), default=str, ensure_ascii=False)
        self._file.write(f"{text}\n".encode())

    def finish(self) -> None:
        """Do nothing: elements are written at once."""


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name, MISSING_FORMAT_NAMES)

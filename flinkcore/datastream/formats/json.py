"""PyFlink's ``pyflink.datastream.formats.json`` names, rows in messages of JSON, and files of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from flinkcore._internal.io.text_files import empty_file, json_fault
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.values.row import Row
from flinkcore.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from flinkcore.common.typeinfo import RowTypeInfo, TypeInformation
from flinkcore.datastream.formats.arrow_format import ArrowRowFormat, row_schema
from flinkcore.datastream.formats.json_schema import type_of_json_schema
from flinkcore.datastream.formats.json_values import has_decimals, json_decoder, value_reader, value_writer
from flinkcore.datastream.formats.row_types import checked_row_type
from flinkcore.errors import ConfigurationError, DataError


class JsonReaderFormat(ArrowRowFormat):
    """Reads rows of files with a JSON object in each line.

    Parameters
    ----------
    row_type : RowTypeInfo
        Any other type is a ConfigurationError.

    Notes
    -----
    PyFlink reads no files of JSON.
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
            warn_user(empty_file(name))
            return iter(())
        if fault := json_fault(content):
            raise DataError(f"{name} has {fault}; each line holds one object", file=name)
        # In one block, for each is to begin with an object.
        read_options = arrow_json.ReadOptions(block_size=min(len(content) + 1, 2**31 - 1))
        options = arrow_json.ParseOptions(explicit_schema=row_schema(self.row_type))
        return iter(arrow_json.read_json(pa.BufferReader(content), read_options, options).to_batches())


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


class JsonRowDeserializationSchema(DeserializationSchema):
    """Reads a row from an object of JSON; made by :meth:`builder`.

    Notes
    -----
    Follows Flink's ``JsonRowDeserializationSchema``: fields are found by name, others are ignored; of a message the
    first value counts. Texts of numbers are numbers, and numbers texts, as Java prints them; fractions of whole
    numbers are dropped. Dates and times are those of ISO 8601, in UTC ("03:04:05Z").

    Examples
    --------
    >>> from flinkcore.common import Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(people).build()
    >>> schema.deserialize(b'{"age": "36", "name": "ada"}')
    Row(name='ada', age=36)
    """

    def __init__(self, row_type: RowTypeInfo, fails_on_missing: bool, ignores_errors: bool) -> None:
        self._row_type = row_type
        self._fails_on_missing = fails_on_missing
        self._ignores_errors = ignores_errors
        self._decode = json_decoder(has_decimals(row_type)).raw_decode
        self._row_of = value_reader("", row_type, fails_on_missing, ignores_errors)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Return a builder."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a message; None if it is null.

        Raises
        ------
        DataError
            If it is not JSON, or a field is not of its type or missing, unless that is ignored: a field that cannot be
            read is None then, and so is the row of a message that cannot.
        """
        try:
            value, _ = self._decode(message.decode().lstrip(" \t\r\n"))
            row: Row | None = self._row_of(value)
        except (ValueError, RecursionError) as failure:
            if self._ignores_errors:
                return None
            raise DataError(f"{message!r:.200} is not of type {self._row_type!r}: {failure}") from failure
        return row

    def get_produced_type(self) -> RowTypeInfo:
        return self._row_type

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self._row_type, self._fails_on_missing, self._ignores_errors)
        return JsonRowDeserializationSchema, settings

    class Builder:
        """Builds a :class:`JsonRowDeserializationSchema`."""

        def __init__(self) -> None:
            self._type_info: object = None
            self._fails_on_missing = False
            self._ignores_errors = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows by a JSON schema; raise ConfigurationError if it has no type of rows."""
            self._type_info = type_of_json_schema(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Refuse objects that lack a field, which is None otherwise."""
            self._fails_on_missing = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Let what cannot be read be None."""
            self._ignores_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Return the schema.

            Raises
            ------
            ConfigurationError
                If there is no type of rows, JSON has no values of a type, or both settings are made.
            """
            if self._fails_on_missing and self._ignores_errors:
                raise ConfigurationError("take fail_on_missing_field() or ignore_parse_errors(), not both")
            row_type = checked_row_type(self._type_info, "JsonRowDeserializationSchema")
            return JsonRowDeserializationSchema(row_type, self._fails_on_missing, self._ignores_errors)


class JsonRowSerializationSchema(SerializationSchema):
    """Writes a row as an object of JSON; made by :meth:`builder`.

    Notes
    -----
    Follows Flink's ``JsonRowSerializationSchema``.

    Examples
    --------
    >>> from flinkcore.common import Row, Types
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> JsonRowSerializationSchema.builder().with_type_info(people).build().serialize(Row("ada", 36))
    b'{"name":"ada","age":36}'
    """

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type
        self._conversion = row_type.conversion()
        self._json_of = value_writer("", row_type)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Return a builder."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Any) -> bytes:
        """Return the message of a row; raise DataError if a field is not of its type."""
        return self._json_of(self._conversion(element)).encode(errors="replace")

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRowSerializationSchema, (self._row_type,)

    class Builder:
        """Builds a :class:`JsonRowSerializationSchema`."""

        def __init__(self) -> None:
            self._type_info: object = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Return the schema; ConfigurationError if there is no type of rows, or JSON has no values of a type."""
            return JsonRowSerializationSchema(checked_row_type(self._type_info, "JsonRowSerializationSchema"))

"""PyFlink's ``pyflink.datastream.formats.avro`` names: records in files and messages of Avro."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from flinkcore._internal.io.avro_files import AvroFile, avro_library, parsed_schema, with_pyflinks_values
from flinkcore._internal.io.avro_types import AvroTypes
from flinkcore._internal.values.row import Row
from flinkcore.common.io import InputFormat
from flinkcore.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from flinkcore.common.typeinfo import (
    MapTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
)
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.datastream.connectors.file_system.file_source import StreamFormat
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, UnsupportedOperationError


class AvroSchema:
    """A schema of Avro.

    Parameters
    ----------
    json_schema : str
        As JSON.

    Raises
    ------
    ConfigurationError
        If it is not a schema, or has a type that has itself within it; or if the library fastavro is not installed.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.AvroSchema``.
    """

    def __init__(self, json_schema: str) -> None:
        try:
            self._definition = json.loads(json_schema)
        except (TypeError, ValueError, RecursionError) as failure:
            raise ConfigurationError(
                f"a schema of Avro is JSON, not {json_schema!r:.200}: {failure}"
            ) from failure
        self.parsed  # noqa: B018 - fails now

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Return the schema of a text; errors as of the class."""
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Return the schema of a file; errors as of the class, and an OSError if it cannot be read."""
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    @cached_property
    def parsed(self) -> Any:
        """The schema as the library takes it."""
        return parsed_schema(self._definition)

    @cached_property
    def read_as(self) -> Any:
        """The schema with whose values records are read; parsed."""
        return parsed_schema(with_pyflinks_values(self._definition))

    @cached_property
    def types(self) -> AvroTypes:
        """The types of records that are written."""
        return AvroTypes(self.parsed)

    @cached_property
    def types_read(self) -> AvroTypes:
        """The types of records that are read."""
        return AvroTypes(self.read_as)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroSchema, (str(self),)

    def __str__(self) -> str:
        return json.dumps(self._definition, separators=(",", ":"), ensure_ascii=False)

    def __repr__(self) -> str:
        return f"AvroSchema({str(self)!r})"


def _checked(schema: object, call: str) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise ArgumentTypeError(
            f"{call} takes an AvroSchema, such as AvroSchema.parse_string(...), not {schema!r}"
        )
    return schema


class GenericRecordAvroTypeInfo(TypeInformation):
    """Records of Avro: dictionaries, with the values that Avro's library for Python has for them.

    Parameters
    ----------
    schema : AvroSchema
        Anything else is a ConfigurationError.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.GenericRecordAvroTypeInfo``.
    """

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = _checked(schema, "GenericRecordAvroTypeInfo")

    def accepts(self, value: object) -> bool:
        valid: bool = avro_library().validate(value, self._schema.parsed, raise_errors=False)
        return valid

    def conversion(self) -> Conversion:
        library, schema = avro_library(), self._schema.parsed

        def convert(value: Any) -> Any:
            if value is not None:
                try:
                    library.validate(value, schema)
                except Exception as failure:  # the library's errors have no base
                    raise DataError(f"{value!r:.200} is not a record of the schema: {failure}") from failure
            return value

        return convert

    def text(self, value: Any) -> str:
        return "null" if value is None else json.dumps(value, default=str, ensure_ascii=False)

    def _parts(self) -> tuple[Any, ...]:
        return (str(self._schema),)

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo({self._schema})"


class AvroInputFormat(StreamFormat, InputFormat):
    """Reads the records of Avro files, for ``env.create_input``, or as the format of a ``FileSource``.

    Parameters
    ----------
    path : str
        Path of a file, or a directory of files.
    schema : AvroSchema
        Records are read as such, by Avro's rules of resolution. Anything else is a ConfigurationError.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.AvroInputFormat``. Records are dictionaries; dates and times are those of
    ``datetime``, timestamps in UTC with a time zone, decimals ``Decimal``, UUIDs texts; local timestamps are numbers.
    Files may be compressed by deflate, bzip2, xz, snappy or zstandard. Types that have themselves within them are
    refused.
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self.path = path
        self._schema = _checked(schema, "AvroInputFormat")

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        return GenericRecordAvroTypeInfo(self._schema)

    def produced_type(self) -> GenericRecordAvroTypeInfo:
        return self.get_produced_type()

    def read(self, file: BinaryIO, name: str) -> Iterator[Any]:
        """Yield the records of a file; raise DataError if it is damaged, or its records do not fit the schema."""
        try:
            opened = AvroFile(file)
            for records in opened.blocks(self._schema.read_as, with_pyflinks_values(opened.schema)):
                yield from records
        except (DataError, ConfigurationError) as failure:
            raise DataError(
                f"{name} does not have records of {self._schema!s:.200}: {failure}", file=name
            ) from failure


class AvroBulkWriters:
    """Creates the writers of Avro files.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.AvroBulkWriters``; files are not compressed, as Flink's.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return the factory of writers of dictionaries, or Rows with names, for a schema.

        Raises
        ------
        ConfigurationError
            If it is not a schema.
        """
        return _AvroWriterFactory(_checked(schema, "AvroBulkWriters.for_generic_record"))


class _AvroWriterFactory(BulkWriterFactory):
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def create(self, file: BinaryIO) -> BulkWriter:
        return _AvroWriter(file, self._schema)


class _AvroWriter(BulkWriter):
    def __init__(self, file: BinaryIO, schema: AvroSchema) -> None:
        self._schema = schema
        self._writer = avro_library().write.Writer(file, schema.parsed, validator=True)

    def add_element(self, element: Any) -> None:
        record = generic_record(element)
        try:
            self._writer.write(record)
        except OSError:
            raise
        except Exception as failure:  # of any kind: the library's errors have no base
            reason = " ".join(str(failure).split())
            raise DataError(
                f"{record!r:.200} is not a record of {self._schema!s:.200}: {reason}"
            ) from failure

    def finish(self) -> None:
        self._writer.flush()


def generic_record(element: Any) -> Any:
    """Return an element as a record of Avro: a Row as a dictionary, anything else as it is.

    Raises
    ------
    DataError
        If the values of a Row have no names.
    """
    try:
        return element.as_dict(True) if isinstance(element, Row) else element
    except TypeError as failure:
        raise DataError(f"{element!r:.200} is not a record of Avro: {failure}") from failure


# ---- messages


def _schema_of_messages(record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if record_class is not None:
        raise UnsupportedOperationError(
            f"{record_class} is a class of Java. Give its schema, avro_schema_string=..."
        )
    if avro_schema_string is None:
        raise ArgumentTypeError("a schema of messages needs avro_schema_string")
    return AvroSchema(avro_schema_string)


class AvroRowDeserializationSchema(DeserializationSchema):
    """Reads a row from a message of Avro, which is a record without a header.

    Parameters
    ----------
    record_class : str, optional
        A class of Java: an UnsupportedOperationError.
    avro_schema_string : str
        As JSON; errors as of :class:`AvroSchema`.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.AvroRowDeserializationSchema``: nested records are Rows, timestamps are in
    UTC without a time zone, enums and UUIDs texts, local timestamps numbers.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _schema_of_messages(record_class, avro_schema_string)
        self._rows = _RowValues(self._schema)

    def deserialize(self, message: bytes) -> Row:
        """Return the row of a message; raise DataError if it is truncated or damaged."""
        stream = BytesIO(message)
        try:
            record = avro_library().schemaless_reader(stream, self._schema.read_as, None)
        except Exception as failure:  # of any kind, as the library does not check all that it reads
            raise DataError(
                f"{message!r:.200} is not a record of {self._schema!s:.200}: {type(failure).__name__}: {failure}"
            ) from failure
        row: Row = self._rows.value_of(record, self._rows.type_info)
        return row

    def get_produced_type(self) -> RowTypeInfo:
        return self._rows.type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowDeserializationSchema, (None, str(self._schema))


class AvroRowSerializationSchema(SerializationSchema):
    """Writes a row as a message of Avro, which is a record without a header.

    Parameters
    ----------
    record_class : str, optional
        A class of Java: an UnsupportedOperationError.
    avro_schema_string : str
        As JSON; errors as of :class:`AvroSchema`.

    Notes
    -----
    Follows ``pyflink.datastream.formats.avro.AvroRowSerializationSchema``: fields of a Row without names are those of
    the schema, in its order.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema = _schema_of_messages(record_class, avro_schema_string)
        self._conversion = _RowValues(self._schema).type_info.conversion()

    def serialize(self, element: Any) -> bytes:
        """Return the message of a row; raise DataError if it does not fit the schema."""
        record = _in_utc(generic_record(self._conversion(element)))
        stream = BytesIO()
        library = avro_library()
        try:
            library.validate(record, self._schema.read_as)
            library.schemaless_writer(stream, self._schema.read_as, record)
        except Exception as failure:  # of any kind: the library's errors have no base
            reason = " ".join(str(failure).split())
            raise DataError(
                f"{element!r:.200} is not a record of {self._schema!s:.200}: {reason}"
            ) from failure
        return stream.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowSerializationSchema, (None, str(self._schema))


def _in_utc(value: Any) -> Any:
    """Return a value with a time zone for timestamps, which the library takes for local times otherwise."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.timezone.utc)
    if isinstance(value, dict):
        return {key: _in_utc(each) for key, each in value.items()}
    return [_in_utc(each) for each in value] if isinstance(value, list) else value


class _RowValues:
    """The types and values of Flink's rows for a schema of records."""

    def __init__(self, schema: AvroSchema) -> None:
        import pyarrow as pa

        self._arrow = pa.types
        self.type_info = self._row_type(AvroTypes(schema.read_as, takes_unions=False).arrow_schema())

    def _row_type(self, fields: Any) -> RowTypeInfo:
        names = [field.name for field in fields]
        return RowTypeInfo([self._type_of(field.type) for field in fields], names)

    def _type_of(self, arrow_type: Any) -> TypeInformation:
        types = self._arrow
        for holds, type_info in (
            (types.is_boolean, Types.BOOLEAN),
            (types.is_int32, Types.INT),
            (types.is_int64, Types.LONG),
            (types.is_float32, Types.FLOAT),
            (types.is_float64, Types.DOUBLE),
            (types.is_string, Types.STRING),
            (types.is_date, Types.SQL_DATE),
            (types.is_time, Types.SQL_TIME),
            (types.is_timestamp, Types.SQL_TIMESTAMP),
            (types.is_decimal, Types.BIG_DEC),
        ):
            if holds(arrow_type):
                return type_info()
        if types.is_struct(arrow_type):
            return self._row_type(list(arrow_type))
        if types.is_list(arrow_type):
            return Types.OBJECT_ARRAY(self._type_of(arrow_type.value_type))
        if types.is_map(arrow_type):
            return Types.MAP(Types.STRING(), self._type_of(arrow_type.item_type))
        if types.is_binary(arrow_type):
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        raise ConfigurationError(f"rows have no fields of the type {arrow_type}")

    def value_of(self, value: Any, type_info: TypeInformation) -> Any:
        """Return a value of the library as that of a row."""
        if value is None:
            return None
        if isinstance(type_info, RowTypeInfo):
            names, types = type_info.get_field_names(), type_info.get_field_types()
            values = [self.value_of(value[name], each) for name, each in zip(names, types, strict=True)]
            return type_info.conversion()(dict(zip(names, values, strict=True)))
        if isinstance(type_info, ObjectArrayTypeInfo):
            return [self.value_of(each, type_info.elem_type) for each in value]
        if isinstance(type_info, MapTypeInfo):
            return {key: self.value_of(each, type_info.value_type_info) for key, each in value.items()}
        if isinstance(value, datetime.datetime):
            return value.replace(tzinfo=None)
        return str(value) if type_info == Types.STRING() else value

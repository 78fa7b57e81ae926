"""Serializers of rows of Flink SQL that are written: with their logical types as Java serializes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.basic import snapshot_class
from flinkcore.savepoints.serializers.java_objects import JavaObject
from flinkcore.savepoints.serializers.sql import SqlSerializer, row_type, sql_type
from flinkcore.sql.types.logical_types import LogicalType, Root

_TYPES: Final = "org.apache.flink.table.types.logical."
_TYPEUTILS: Final = "org.apache.flink.table.runtime.typeutils."
_SNAPSHOT: Final = f"{_TYPEUTILS}RowDataSerializer$RowDataSerializerSnapshot"
_DELEGATE, _DELEGATE_VERSION = 1333245, 1
_CURRENT, _TIMESTAMP_VERSION = 3, 1

_CLASSES: Final[dict[Root, tuple[str, str, str]]] = {
    Root.BOOLEAN: ("BooleanType", "BOOLEAN", "Boolean"),
    Root.TINYINT: ("TinyIntType", "TINYINT", "Byte"),
    Root.SMALLINT: ("SmallIntType", "SMALLINT", "Short"),
    Root.INT: ("IntType", "INTEGER", "Int"),
    Root.BIGINT: ("BigIntType", "BIGINT", "Long"),
    Root.FLOAT: ("FloatType", "FLOAT", "Float"),
    Root.DOUBLE: ("DoubleType", "DOUBLE", "Double"),
    Root.DATE: ("DateType", "DATE", "Int"),
    Root.TIME: ("TimeType", "TIME_WITHOUT_TIME_ZONE", "Int"),
    Root.CHAR: ("CharType", "CHAR", "StringData"),
    Root.VARCHAR: ("VarCharType", "VARCHAR", "StringData"),
    Root.DECIMAL: ("DecimalType", "DECIMAL", "DecimalData"),
    Root.TIMESTAMP: ("TimestampType", "TIMESTAMP_WITHOUT_TIME_ZONE", "TimestampData"),
    Root.TIMESTAMP_LTZ: ("LocalZonedTimestampType", "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "TimestampData"),
}
"""By type, the class of Flink, the name of its root, and the serializer of its values."""
_WITH_LENGTH: Final = (Root.CHAR, Root.VARCHAR)
_WITH_PRECISION: Final = (Root.TIME, Root.DECIMAL, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
_WITH_KIND: Final = (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)

_OBJECT, _CLASS, _ENUM, _STRING, _END, _NULL = b"s", b"r", b"~", b"t", b"x", b"p"
_SERIALIZABLE, _SERIALIZABLE_ENUM = 2, 0x12
_ENUM_BASE: Final = b"q\x00\x7e\x00\x06"
"""Reference to the class of all enums, which is the seventh thing in the stream of a type with a kind."""


@dataclass(frozen=True)
class RowDataSerializer(SqlSerializer):
    """Serializer of rows that is made of the types of a plan.

    Attributes
    ----------
    fields : tuple of LogicalType
    """

    fields: tuple[LogicalType, ...] = ()

    def write_snapshot(self, writer: ByteWriter) -> None:
        """Append the snapshot with its class and version.

        Notes
        -----
        Flink's ``RowDataSerializer.RowDataSerializerSnapshot``.
        """
        writer.utf(_SNAPSHOT).integer(_CURRENT).integer(len(self.fields))
        for field in self.fields:
            _write_type(writer, field)
        writer.integer(_DELEGATE).integer(_DELEGATE_VERSION).integer(len(self.fields))
        for field in self.fields:
            _write_field_serializer(writer, field)


def row_data(types: Sequence[LogicalType]) -> RowDataSerializer:
    """Return the serializer of rows with fields of these types.

    Raises
    ------
    UnsupportedOperationError
        If a field is of a type that cannot be written, such as a row or an array.
    """
    for each in types:
        if each.root not in _CLASSES:
            raise UnsupportedOperationError(
                f"values of {each} in states of SQL cannot be written or restored yet"
            )
    names = tuple(f"f{number}" for number in range(len(types)))
    return RowDataSerializer(
        row_type(names, tuple(sql_type(_java_type(each)) for each in types)), tuple(types)
    )


def _java_type(field: LogicalType) -> JavaObject:
    return JavaObject(
        _TYPES + _CLASSES[field.root][0],
        {"precision": field.precision, "scale": field.scale, "length": field.precision},
    )


def _write_type(writer: ByteWriter, field: LogicalType) -> None:
    """Append a type as ``ObjectOutputStream`` writes it: its class, the classes above it, then the values of each."""
    name, root, _ = _CLASSES[field.root]
    numbers = []
    if field.root in _WITH_LENGTH:
        numbers = [("length", field.precision)]
    elif field.root in _WITH_PRECISION:
        numbers = [("precision", field.precision)]
    if field.root is Root.DECIMAL:
        numbers.append(("scale", field.scale))
    has_kind = field.root in _WITH_KIND
    writer.add(b"\xac\xed\x00\x05" + _OBJECT)
    _write_class(writer, _TYPES + name, 1, _SERIALIZABLE, len(numbers) + has_kind)
    for number, _ in numbers:
        writer.add(b"I").utf(number)
    if has_kind:
        writer.add(b"L").utf("kind").add(_STRING).utf(f"L{_TYPES.replace('.', '/')}TimestampKind;")
    writer.add(_END)
    _write_class(writer, f"{_TYPES}LogicalType", 1, _SERIALIZABLE, 2)
    writer.add(b"Z").utf("isNullable").add(b"L").utf("typeRoot").add(_STRING)
    writer.utf(f"L{_TYPES.replace('.', '/')}LogicalTypeRoot;").add(_END + _NULL)
    writer.flag(field.nullable).add(_ENUM)
    _write_class(writer, f"{_TYPES}LogicalTypeRoot", 0, _SERIALIZABLE_ENUM, 0)
    writer.add(_END)
    _write_class(writer, "java.lang.Enum", 0, _SERIALIZABLE_ENUM, 0)
    writer.add(_END + _NULL + _STRING).utf(root)
    for _, value in numbers:
        writer.integer(value)
    if has_kind:
        writer.add(_ENUM)
        _write_class(writer, f"{_TYPES}TimestampKind", 0, _SERIALIZABLE_ENUM, 0)
        writer.add(_END + _ENUM_BASE + _STRING).utf(field.time_attribute or "REGULAR")


def _write_class(writer: ByteWriter, name: str, version: int, flags: int, n_fields: int) -> None:
    writer.add(_CLASS).utf(name).integer(version, 8).integer(flags, 1).integer(n_fields, 2)


def _write_field_serializer(writer: ByteWriter, field: LogicalType) -> None:
    serializer = _CLASSES[field.root][2]
    if field.root is Root.DECIMAL:
        writer.utf(f"{_TYPEUTILS}DecimalDataSerializer$DecimalSerializerSnapshot").integer(_CURRENT)
        writer.integer(field.precision).integer(field.scale)
    elif field.root in _WITH_KIND:
        writer.utf(snapshot_class(serializer, _TYPEUTILS)).integer(_TIMESTAMP_VERSION).integer(
            field.precision
        )
    elif serializer == "StringData":
        writer.utf(snapshot_class(serializer, _TYPEUTILS)).integer(_CURRENT)
    else:
        writer.utf(snapshot_class(serializer)).integer(_CURRENT)

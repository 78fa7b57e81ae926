"""Types of SQL as Java's ``ObjectOutputStream`` writes them: classes, those above them, then the values of each."""

from __future__ import annotations

from typing import Final

from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.sql.types.logical_types import LogicalType, Root

TYPES: Final = "org.apache.flink.table.types.logical."

TYPE_CLASSES: Final[dict[Root, tuple[str, str, str]]] = {
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
WITH_KIND: Final = (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)

OBJECT, _CLASS, ENUM, STRING, END, NULL = b"s", b"r", b"~", b"t", b"x", b"p"
CLASS_ITSELF: Final = b"v"
_ARRAY: Final = b"u"
STREAM: Final = b"\xac\xed\x00\x05"
HAS_WRITE_METHOD, SERIALIZABLE, SERIALIZABLE_ENUM = 1, 2, 0x12
_ENUM_BASE: Final = b"q\x00\x7e\x00\x06"
"""Reference to the class of all enums, which is the seventh thing in the stream of a type with a kind."""


def write_type(writer: ByteWriter, field: LogicalType, *, begins: bool = True) -> None:
    """Append a type as ``ObjectOutputStream`` writes it: its class, the classes above it, then the values of each.

    If the stream begins with it, the class of all enums is referred to by its place, as Flink does.
    """
    name, root, _ = TYPE_CLASSES[field.root]
    numbers = []
    if field.root in _WITH_LENGTH:
        numbers = [("length", field.precision)]
    elif field.root in _WITH_PRECISION:
        numbers = [("precision", field.precision)]
    if field.root is Root.DECIMAL:
        numbers.append(("scale", field.scale))
    has_kind = field.root in WITH_KIND
    writer.add(OBJECT)
    write_class(writer, TYPES + name, 1, SERIALIZABLE, len(numbers) + has_kind)
    for number, _ in numbers:
        writer.add(b"I").utf(number)
    if has_kind:
        write_field(writer, "kind", f"{TYPES}TimestampKind")
    writer.add(END)
    write_common(writer, root, nullable=field.nullable)
    for _, value in numbers:
        writer.integer(value)
    if has_kind:
        writer.add(ENUM)
        write_class(writer, f"{TYPES}TimestampKind", 0, SERIALIZABLE_ENUM, 0)
        writer.add(END)
        if begins:
            writer.add(_ENUM_BASE)
        else:
            write_enums(writer)
        writer.add(STRING).utf(field.time_attribute or "REGULAR")


def write_field(writer: ByteWriter, name: str, kind: str) -> None:
    """Append the description of a field of objects, or of arrays, whose kind begins with a bracket."""
    slashed = kind.replace(".", "/")
    if kind.startswith("["):
        writer.add(b"[").utf(name).add(STRING).utf(slashed)
    else:
        writer.add(b"L").utf(name).add(STRING).utf(f"L{slashed};")


def write_array(writer: ByteWriter, kind: str, n: int) -> None:
    """Append an array up to its elements. Java does not compare the versions of the classes of arrays."""
    writer.add(_ARRAY)
    write_class(writer, kind, 0, SERIALIZABLE, 0)
    writer.add(END + NULL).integer(n)


def write_common(writer: ByteWriter, root: str, *, nullable: bool) -> None:
    """Append the class of all types, and the values of its fields."""
    write_class(writer, f"{TYPES}LogicalType", 1, SERIALIZABLE, 2)
    writer.add(b"Z").utf("isNullable")
    write_field(writer, "typeRoot", f"{TYPES}LogicalTypeRoot")
    writer.add(END + NULL)
    writer.flag(nullable).add(ENUM)
    write_class(writer, f"{TYPES}LogicalTypeRoot", 0, SERIALIZABLE_ENUM, 0)
    writer.add(END)
    write_enums(writer)
    writer.add(STRING).utf(root)


def write_enums(writer: ByteWriter) -> None:
    """Append the description of the class of all enums."""
    write_class(writer, "java.lang.Enum", 0, SERIALIZABLE_ENUM, 0)
    writer.add(END + NULL)


def write_class(writer: ByteWriter, name: str, version: int, flags: int, n_fields: int) -> None:
    """Append the description of a class, whose version are 64 bits, up to its fields."""
    writer.add(_CLASS).utf(name).add(version.to_bytes(8, "big")).integer(flags, 1).integer(n_fields, 2)

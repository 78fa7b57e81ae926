"""Serializers of Flink SQL: rows, arrays and maps in binary form, texts, decimals and timestamps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from flinkcore._native.binary_rows import (
    RowsColumn,
    SingleColumn,
    SizedColumn,
    SqlBooleanColumn,
    SqlColumn,
    SqlTextColumn,
    SqlValue,
)
from flinkcore._native.state_columns import BytesColumn, ChoiceColumn, ListColumn, MapColumn
from flinkcore.errors import UnsupportedSavepointError
from flinkcore.savepoints.byte_reader import ByteReader
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.basic import snapshot_class
from flinkcore.savepoints.serializers.java_objects import JavaObject, JavaObjectReader
from flinkcore.savepoints.serializers.serializer import SimpleSerializer, StateSerializer

_ONE, _TWO, _FOUR, _EIGHT, _TEXT, _BYTES, _DECIMAL, _LARGE_DECIMAL = range(8)
_TIMESTAMP, _LARGE_TIMESTAMP, _ROW, _ARRAY, _MAP = range(8, 13)
_COMPACT_DECIMAL, _COMPACT_TIMESTAMP = 18, 3
_TYPEUTILS: Final = "org.apache.flink.table.runtime.typeutils."
_DECIMAL_VERSION, _TIMESTAMP_VERSION = 3, 1
_ROW_KINDS: Final = [b"+I", b"-U", b"+U", b"-D"]
_MOST_NESTED: Final = 64

_FIXED: Final[dict[str, tuple[str, int, str, int]]] = {
    "TinyIntType": ("TINYINT", _ONE, "c", 1),
    "SmallIntType": ("SMALLINT", _TWO, "s", 2),
    "IntType": ("INT", _FOUR, "i", 4),
    "DateType": ("DATE", _FOUR, "tdD", 4),
    "TimeType": ("TIME", _FOUR, "ttm", 4),
    "YearMonthIntervalType": ("INTERVAL MONTH", _FOUR, "i", 4),
    "BigIntType": ("BIGINT", _EIGHT, "l", 8),
    "DayTimeIntervalType": ("INTERVAL SECOND", _EIGHT, "l", 8),
    "FloatType": ("FLOAT", _FOUR, "f", 4),
    "DoubleType": ("DOUBLE", _EIGHT, "g", 8),
}
_TEXTS: Final = {"VarCharType": "STRING", "CharType": "CHAR"}
_BINARIES: Final = {"VarBinaryType": "BYTES", "BinaryType": "BINARY", "RawType": "RAW"}
_TIMESTAMPS: Final = {"TimestampType": ("TIMESTAMP", ""), "LocalZonedTimestampType": ("TIMESTAMP_LTZ", "UTC")}


@dataclass(frozen=True)
class SqlType:
    """A logical type of SQL: its name, and how its values lie in a row.

    Parameters
    ----------
    name : str
    key : tuple
        Everything by which types differ.
    make : callable
        Returns the value of a slot, given whether it is exact.
    """

    name: str
    key: tuple[Any, ...]
    make: Callable[[bool], SqlValue]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SqlType) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class SqlSerializer(StateSerializer):
    """Rows, arrays and maps, written with their size."""

    type: SqlType

    @property
    def name(self) -> str:
        return self.type.name

    def column(self, exact: bool) -> SizedColumn:
        return SizedColumn(self.type.make(exact))


@dataclass(frozen=True)
class SingleSerializer(StateSerializer):
    """Decimals and timestamps that are not fields of rows, such as the values of a view.

    Attributes
    ----------
    type : SqlType
    numbers : tuple of int
        Precision, and scale of a decimal, which the snapshot has.

    Notes
    -----
    Flink's ``DecimalDataSerializer`` and ``TimestampDataSerializer``. The former knows no time zones.
    """

    type: SqlType
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{'DecimalData' if len(self.numbers) == 2 else 'TimestampData'}({', '.join(map(str, self.numbers))})"

    def column(self, exact: bool) -> SingleColumn:
        return SingleColumn(self.type.make(exact))

    def write_snapshot(self, writer: ByteWriter) -> None:
        """Append the snapshot with its class and version."""
        if len(self.numbers) == 2:
            writer.utf(f"{_TYPEUTILS}DecimalDataSerializer$DecimalSerializerSnapshot").integer(
                _DECIMAL_VERSION
            )
        else:
            writer.utf(snapshot_class("TimestampData", _TYPEUTILS)).integer(_TIMESTAMP_VERSION)
        for number in self.numbers:
            writer.integer(number)


def single_serializer(*numbers: int) -> SingleSerializer:
    """Return the serializer of decimals of a precision and scale, or of timestamps of a precision.

    Raises
    ------
    ValueError
        If the numbers are not those of a type.
    """
    fields = dict(zip(("precision", "scale"), numbers, strict=False))
    kind = "DecimalType" if len(numbers) == 2 else "TimestampType"
    return SingleSerializer(sql_type(JavaObject(kind, fields)), numbers)


def sql_type(logical: Any, depth: int = 0) -> SqlType:
    """Return the type of a logical type, as Java serialized it.

    Raises
    ------
    ValueError
        If it is not known.
    """
    if not isinstance(logical, JavaObject) or depth > _MOST_NESTED:
        raise ValueError("a logical type is not an object")
    kind, fields = logical.simple_name, logical.fields
    if kind in _FIXED:
        name, slot, format, size = _FIXED[kind]
        return SqlType(name, (kind,), lambda exact: SqlValue(slot, SqlColumn(format, size)))
    if kind == "BooleanType":
        return SqlType("BOOLEAN", (kind,), lambda exact: SqlValue(_ONE, SqlBooleanColumn()))
    if kind in _TEXTS:
        return SqlType(_TEXTS[kind], (kind,), lambda exact: SqlValue(_TEXT, SqlTextColumn(exact)))
    if kind in _BINARIES:
        return SqlType(_BINARIES[kind], (kind,), lambda exact: SqlValue(_BYTES, BytesColumn()))
    if kind == "DecimalType":
        precision, scale = _number(fields, "precision", 1, 38), _number(fields, "scale", 0, 38)
        slot = _DECIMAL if precision <= _COMPACT_DECIMAL else _LARGE_DECIMAL
        format = f"d:{precision},{scale}"
        return SqlType(
            f"DECIMAL({precision}, {scale})",
            (kind, precision, scale),
            lambda exact: SqlValue(slot, SqlColumn(format, 16)),
        )
    if kind in _TIMESTAMPS:
        (name, zone), precision = _TIMESTAMPS[kind], _number(fields, "precision", 0, 9)
        slot = _TIMESTAMP if precision <= _COMPACT_TIMESTAMP else _LARGE_TIMESTAMP
        unit, per_ms = ("m", 1) if precision <= 3 else ("u", 1_000) if precision <= 6 else ("n", 1_000_000)
        return SqlType(
            f"{name}({precision})",
            (kind, precision),
            lambda exact: SqlValue(slot, SqlColumn(f"ts{unit}:{zone}", 8, per_ms)),
        )
    if kind in ("RowType", "StructuredType"):
        row_fields = _elements(fields.get("fields" if kind == "RowType" else "attributes"))
        named = [(_text(each, "name"), sql_type(each.fields.get("type"), depth + 1)) for each in row_fields]
        return row_type(tuple(name for name, _ in named), tuple(each for _, each in named))
    if kind == "ArrayType":
        element = sql_type(fields.get("elementType"), depth + 1)
        return SqlType(f"ARRAY<{element.name}>", (kind, element.key), lambda exact: _array(element, exact))
    if kind in ("MapType", "MultisetType"):
        parts = (fields.get("keyType"), fields.get("valueType"))
        if kind == "MultisetType":
            parts = (fields.get("elementType"), JavaObject("IntType"))
        key, value = (sql_type(each, depth + 1) for each in parts)
        return SqlType(
            f"MAP<{key.name}, {value.name}>",
            (kind, key.key, value.key),
            lambda exact: _map(key, value, exact),
        )
    raise ValueError(f"the type {logical.class_name} of SQL is not known")


def row_type(names: tuple[str, ...], types: tuple[SqlType, ...], *, keeps_places: bool = False) -> SqlType:
    """Return the type of rows with these fields; `keeps_places` as of `RowsColumn`."""

    def make(exact: bool) -> SqlValue:
        fields = [each.make(exact) for each in types]
        return SqlValue(_ROW, RowsColumn(list(names), fields, ChoiceColumn(_ROW_KINDS), keeps_places), fields)

    text = ", ".join(f"{name} {each.name}" for name, each in zip(names, types, strict=True))
    return SqlType(f"ROW<{text}>", ("RowType", names, tuple(each.key for each in types)), make)


def _array(element: SqlType, exact: bool) -> SqlValue:
    part = element.make(exact)
    return SqlValue(_ARRAY, ListColumn(part.column), [part])


def _map(key: SqlType, value: SqlType, exact: bool) -> SqlValue:
    parts = [key.make(exact), value.make(exact)]
    return SqlValue(_MAP, MapColumn(parts[0].column, parts[1].column, exact), parts)


def _number(fields: dict[str, Any], name: str, least: int, greatest: int) -> int:
    number = fields.get(name)
    if not isinstance(number, int) or not least <= number <= greatest:
        raise ValueError(f"the {name} of a type is {number!r}")
    return number


def _text(found: Any, name: str) -> str:
    text = found.fields.get(name) if isinstance(found, JavaObject) else None
    if not isinstance(text, str):
        raise ValueError("a field of a row has no name")
    return text


def _elements(found: Any) -> list[Any]:
    """Return the elements of a list of Java, in whatever it may be wrapped."""
    for _ in range(_MOST_NESTED):
        if isinstance(found, list):
            return found
        if not isinstance(found, JavaObject):
            break
        if found.written or found.simple_name == "ArrayList":
            return found.written
        found = next((found.fields[name] for name in ("list", "c", "a") if name in found.fields), None)
    raise ValueError("the fields of a row are not a list")


def read_row_data(
    reader: ByteReader, read_nested: Callable[[], tuple[StateSerializer, ...]]
) -> StateSerializer:
    """Read the content of the snapshot of rows: the types of the fields as objects of Java, then their serializers.

    Notes
    -----
    Flink's ``RowDataSerializer.RowDataSerializerSnapshot``.
    """
    logical = [JavaObjectReader(reader).read() for _ in range(reader.count(6))]
    read_nested()
    types = tuple(_known(reader, each) for each in logical)
    return SqlSerializer(row_type(tuple(f"f{i}" for i in range(len(types))), types))


def read_array_data(reader: ByteReader) -> StateSerializer:
    """Read the content of the snapshot of arrays: the type and the serializer of the elements as objects of Java."""
    element, _ = JavaObjectReader(reader).read(), JavaObjectReader(reader).read()
    return SqlSerializer(_known(reader, JavaObject("ArrayType", {"elementType": element})))


def read_map_data(reader: ByteReader) -> StateSerializer:
    """Read the content of the snapshot of maps: types and serializers of keys and values as objects of Java."""
    key, value, _, _ = (JavaObjectReader(reader).read() for _ in range(4))
    return SqlSerializer(_known(reader, JavaObject("MapType", {"keyType": key, "valueType": value})))


def _known(reader: ByteReader, logical: Any) -> SqlType:
    try:
        return sql_type(logical)
    except ValueError as failure:
        raise UnsupportedSavepointError(
            f"{reader.file}, byte {reader.offset:,}: {failure}", file=reader.file, offset=reader.offset
        ) from None


SQL_TEXT: Final = SimpleSerializer(
    "STRING",
    lambda exact: SqlTextColumn(exact),
    None,
    snapshot_class("StringData", _TYPEUTILS),
)
"""Texts by themselves: their size, then UTF-8."""

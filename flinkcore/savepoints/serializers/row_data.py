"""Serializers of Flink SQL that are written: of rows and views, with their types as Java serializes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.serializers.basic import snapshot_class
from flinkcore.savepoints.serializers.composite import ExternalSerializer
from flinkcore.savepoints.serializers.java_objects import JavaObject
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.serializers.sql import (
    SQL_TEXT,
    SqlSerializer,
    row_type,
    single_serializer,
    sql_type,
)
from flinkcore.sql.types.logical_types import LogicalType, Root

_TYPES: Final = "org.apache.flink.table.types.logical."
_TYPEUTILS: Final = "org.apache.flink.table.runtime.typeutils."
_SNAPSHOT: Final = f"{_TYPEUTILS}RowDataSerializer$RowDataSerializerSnapshot"
_RAW_SNAPSHOT: Final = f"{_TYPEUTILS}RawValueDataSerializer$RawValueDataSerializerSnapshot"
_NULL_SNAPSHOT: Final = "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot"
_COMPOSITE: Final = 911108
_DELEGATE, _DELEGATE_VERSION = 1333245, 1
_CURRENT: Final = 3

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

_EXTERNAL: Final[dict[Root, tuple[str, int, str, StateSerializer]]] = {
    Root.BOOLEAN: ("java.lang.Boolean", 0xCD207280D59CFAEE, "Z", basic.BOOLEAN),
    Root.TINYINT: ("java.lang.Byte", 0x9C4E6084EE50F51C, "B", basic.BYTE),
    Root.SMALLINT: ("java.lang.Short", 0x684D37133460DA52, "S", basic.SHORT),
    Root.INT: ("java.lang.Integer", 0x12E2A0A4F7818738, "I", basic.INT),
    Root.DATE: ("java.lang.Integer", 0x12E2A0A4F7818738, "I", basic.INT),
    Root.BIGINT: ("java.lang.Long", 0x3B8BE490CC8F23DF, "J", basic.LONG),
    Root.CHAR: ("org.apache.flink.table.data.StringData", 0, "", SQL_TEXT),
    Root.VARCHAR: ("org.apache.flink.table.data.StringData", 0, "", SQL_TEXT),
    Root.FLOAT: ("java.lang.Float", 0xDAEDC9A2DB3CF0EC, "F", basic.FLOAT),
    Root.DOUBLE: ("java.lang.Double", 0x80B3C24A296BFB04, "D", basic.DOUBLE),
}
"""By type, the class of the values of views, its version, the letter of its field, and the serializer of its values."""

_OBJECT, _CLASS, _ENUM, _STRING, _END, _NULL = b"s", b"r", b"~", b"t", b"x", b"p"
_CLASS_ITSELF: Final = b"v"
_STREAM: Final = b"\xac\xed\x00\x05"
_HAS_WRITE_METHOD, _SERIALIZABLE, _SERIALIZABLE_ENUM = 1, 2, 0x12
_ENUM_BASE: Final = b"q\x00\x7e\x00\x06"
"""Reference to the class of all enums, which is the seventh thing in the stream of a type with a kind."""


@dataclass(frozen=True)
class ExtremeType:
    """Type of the accumulator of a least or greatest value from which values are taken back.

    Attributes
    ----------
    name : str
        ``min`` or ``max``.
    type : LogicalType
        Type of the values.

    Notes
    -----
    Flink's ``MinWithRetractAggFunction`` and ``MaxWithRetractAggFunction``.
    """

    name: str
    type: LogicalType

    @property
    def class_name(self) -> str:
        """Name of Flink's class."""
        kind = f"{self.name.title()}WithRetract"
        return f"org.apache.flink.table.runtime.functions.aggregate.{kind}AggFunction${kind}Accumulator"

    @property
    def arrow(self) -> pa.DataType:
        """Type of a column of them."""
        kinds = (self.type.arrow, pa.int64(), pa.binary(), pa.string())
        return pa.struct(list(zip((self.name, "mapSize", "map", "row_kind"), kinds, strict=True)))

    @property
    def content(self) -> RowDataSerializer:
        """Serializer of their fields."""
        return row_data([self.type, LogicalType(Root.BIGINT)], 1)


@dataclass(frozen=True)
class RowDataSerializer(SqlSerializer):
    """Serializer of rows that is made of the types of a plan.

    Attributes
    ----------
    fields : tuple of LogicalType or ExtremeType
    n_views : int
        Number of further fields that stand for the views of an accumulator, whose values are states of their own.
    """

    fields: tuple[LogicalType | ExtremeType, ...] = ()
    n_views: int = 0

    def write_snapshot(self, writer: ByteWriter) -> None:
        """Append the snapshot with its class and version.

        Notes
        -----
        Flink's ``RowDataSerializer.RowDataSerializerSnapshot``.
        """
        n = len(self.fields) + self.n_views
        writer.utf(_SNAPSHOT).integer(_CURRENT).integer(n)
        for field in self.fields:
            writer.add(_STREAM)
            if isinstance(field, ExtremeType):
                _write_extreme(writer, field)
            else:
                _write_type(writer, field)
        for _ in range(self.n_views):
            _write_type_of_view(writer.add(_STREAM))
        writer.integer(_DELEGATE).integer(_DELEGATE_VERSION).integer(n)
        for field in self.fields:
            if isinstance(field, ExtremeType):
                field.content.write_snapshot(writer)
            else:
                _write_field_serializer(writer, field)
        for _ in range(self.n_views):
            writer.utf(_RAW_SNAPSHOT).integer(_CURRENT).integer(_COMPOSITE).integer(0)
            writer.integer(_DELEGATE).integer(_DELEGATE_VERSION).integer(1).utf(_NULL_SNAPSHOT).integer(
                _CURRENT
            )


def row_data(types: Sequence[LogicalType | ExtremeType], n_views: int = 0) -> RowDataSerializer:
    """Return the serializer of rows with fields of these types, and of accumulators with views.

    Raises
    ------
    UnsupportedOperationError
        If a field is of a type that cannot be written, such as a row or an array.
    """
    for each in types:
        if isinstance(each, LogicalType) and each.root not in _CLASSES:
            raise UnsupportedOperationError(
                f"values of {each} in states of SQL cannot be written or restored yet"
            )
    names = tuple(f"f{number}" for number in range(len(types) + n_views))
    views = [sql_type(JavaObject(f"{_TYPES}RawType"))] * n_views
    kinds = [*(sql_type(_java_type(each)) for each in types), *views]
    return RowDataSerializer(row_type(names, tuple(kinds)), tuple(types), n_views)


def view_data(type: LogicalType) -> ExternalSerializer:
    """Return the serializer of keys or values of a view.

    Raises
    ------
    UnsupportedOperationError
        If values of this type cannot be written.

    Notes
    -----
    Flink's ``ExternalSerializer`` of an ``AtomicDataType``.
    """
    serializer: StateSerializer
    if type.root is Root.DECIMAL:
        serializer = single_serializer(type.precision, type.scale)
        name, version, letter = "org.apache.flink.table.data.DecimalData", 0, ""
    elif type.root in _WITH_KIND:
        serializer = single_serializer(type.precision)
        name, version, letter = "org.apache.flink.table.data.TimestampData", 0, ""
    elif type.root in _EXTERNAL:
        name, version, letter, serializer = _EXTERNAL[type.root]
    else:
        raise UnsupportedOperationError(
            f"values of {type} in views of SQL's aggregates cannot be written or restored yet"
        )
    writer = ByteWriter().add(_STREAM + _OBJECT)
    _write_class(writer, "org.apache.flink.table.types.AtomicDataType", 0x1A885329FA7A2332, _SERIALIZABLE, 0)
    writer.add(_END)
    _write_class(writer, "org.apache.flink.table.types.DataType", 0xC68FF3149E02836D, _SERIALIZABLE, 2)
    _write_field(writer, "conversionClass", "java/lang/Class")
    _write_field(writer, "logicalType", f"{_TYPES}LogicalType")
    writer.add(_END + _NULL + _CLASS_ITSELF)
    _write_class(writer, name, version, _SERIALIZABLE if letter else 0, len(letter))
    if letter:
        writer.add(letter.encode()).utf("value")
    writer.add(_END)
    if letter not in ("", "Z"):
        _write_class(writer, "java.lang.Number", 0x86AC951D0B94E08B, _SERIALIZABLE, 0)
        writer.add(_END)
    writer.add(_NULL)
    _write_type(writer, type, begins=False)
    return ExternalSerializer((serializer,), writer.flag(False).data())


def _java_type(field: LogicalType | ExtremeType) -> JavaObject:
    if isinstance(field, ExtremeType):
        parts = {
            field.name: _java_type(field.type),
            "mapSize": JavaObject(f"{_TYPES}BigIntType"),
            "map": JavaObject(f"{_TYPES}RawType"),
        }
        attributes = [JavaObject("", {"name": name, "type": type}) for name, type in parts.items()]
        return JavaObject(f"{_TYPES}StructuredType", {"attributes": attributes})
    return JavaObject(
        _TYPES + _CLASSES[field.root][0],
        {"precision": field.precision, "scale": field.scale, "length": field.precision},
    )


def _write_type(writer: ByteWriter, field: LogicalType, *, begins: bool = True) -> None:
    """Append a type as ``ObjectOutputStream`` writes it: its class, the classes above it, then the values of each.

    If the stream begins with it, the class of all enums is referred to by its place, as Flink does.
    """
    name, root, _ = _CLASSES[field.root]
    numbers = []
    if field.root in _WITH_LENGTH:
        numbers = [("length", field.precision)]
    elif field.root in _WITH_PRECISION:
        numbers = [("precision", field.precision)]
    if field.root is Root.DECIMAL:
        numbers.append(("scale", field.scale))
    has_kind = field.root in _WITH_KIND
    writer.add(_OBJECT)
    _write_class(writer, _TYPES + name, 1, _SERIALIZABLE, len(numbers) + has_kind)
    for number, _ in numbers:
        writer.add(b"I").utf(number)
    if has_kind:
        _write_field(writer, "kind", f"{_TYPES}TimestampKind")
    writer.add(_END)
    _write_common(writer, root, nullable=field.nullable)
    for _, value in numbers:
        writer.integer(value)
    if has_kind:
        writer.add(_ENUM)
        _write_class(writer, f"{_TYPES}TimestampKind", 0, _SERIALIZABLE_ENUM, 0)
        writer.add(_END)
        if begins:
            writer.add(_ENUM_BASE)
        else:
            _write_enums(writer)
        writer.add(_STRING).utf(field.time_attribute or "REGULAR")


def _write_extreme(writer: ByteWriter, field: ExtremeType) -> None:
    """Append a structured type, which describes its classes at each place, as Java allows."""
    structured = f"{_TYPES}StructuredType"
    writer.add(_OBJECT)
    _write_class(writer, structured, 1, _SERIALIZABLE, 6)
    writer.add(b"Z").utf("isInstantiable")
    for name, kind in (
        ("attributes", "java/util/List"),
        ("className", "java/lang/String"),
        ("comparison", f"{structured}$StructuredComparison"),
        ("implementationClass", "java/lang/Class"),
        ("superType", structured),
    ):
        _write_field(writer, name, kind)
    writer.add(_END)
    _write_class(writer, f"{_TYPES}UserDefinedType", 1, _SERIALIZABLE, 3)
    writer.add(b"Z").utf("isFinal")
    _write_field(writer, "description", "java/lang/String")
    _write_field(writer, "objectIdentifier", "org/apache/flink/table/catalog/ObjectIdentifier")
    writer.add(_END)
    _write_common(writer, "STRUCTURED_TYPE", nullable=True)
    writer.flag(True).add(_NULL + _NULL).flag(True)
    writer.add(_OBJECT)
    _write_class(writer, "java.util.CollSer", 0x578EABB63A1BA811, _SERIALIZABLE | _HAS_WRITE_METHOD, 1)
    writer.add(b"I").utf("tag").add(_END + _NULL)
    writer.integer(1).add(b"w\x04").integer(3)
    for name in (field.name, "mapSize", "map"):
        writer.add(_OBJECT)
        _write_class(writer, f"{structured}$StructuredAttribute", 1, _SERIALIZABLE, 3)
        _write_field(writer, "description", "java/lang/String")
        _write_field(writer, "name", "java/lang/String")
        _write_field(writer, "type", f"{_TYPES}LogicalType")
        writer.add(_END + _NULL + _NULL + _STRING).utf(name)
        if name == "map":
            _write_type_of_view(writer)
        else:
            _write_type(writer, field.type if name == field.name else LogicalType(Root.BIGINT), begins=False)
    writer.add(_END + _STRING).utf(field.class_name).add(_ENUM)
    _write_class(writer, f"{structured}$StructuredComparison", 0, _SERIALIZABLE_ENUM, 0)
    writer.add(_END)
    _write_enums(writer)
    writer.add(_STRING).utf("EQUALS").add(_CLASS_ITSELF)
    _write_class(writer, field.class_name, 0, 0, 0)
    writer.add(_END + _NULL + _NULL)


def _write_field(writer: ByteWriter, name: str, kind: str) -> None:
    """Append the description of a field of objects."""
    writer.add(b"L").utf(name).add(_STRING).utf(f"L{kind.replace('.', '/')};")


def _write_type_of_view(writer: ByteWriter) -> None:
    """Append the type of a view, which Java knows by the class of its values and their serializer."""
    writer.add(_OBJECT)
    _write_class(writer, f"{_TYPES}RawType", 1, _SERIALIZABLE, 2)
    _write_field(writer, "clazz", "java/lang/Class")
    _write_field(writer, "serializer", "org/apache/flink/api/common/typeutils/TypeSerializer")
    writer.add(_END)
    _write_common(writer, "RAW", nullable=True)
    writer.add(_CLASS_ITSELF)
    _write_class(writer, "org.apache.flink.table.api.dataview.MapView", 0, 0, 0)
    writer.add(_END + _NULL + _OBJECT)
    _write_class(
        writer, "org.apache.flink.table.dataview.NullSerializer", 0xB550BA4AB363AC5F, _SERIALIZABLE, 0
    )
    writer.add(_END)
    singleton = "org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton"
    _write_class(writer, singleton, 0x79A987AAC72E7745, _SERIALIZABLE, 0)
    writer.add(_END)
    _write_class(writer, "org.apache.flink.api.common.typeutils.TypeSerializer", 1, _SERIALIZABLE, 0)
    writer.add(_END + _NULL)


def _write_common(writer: ByteWriter, root: str, *, nullable: bool) -> None:
    """Append the class of all types, and the values of its fields."""
    _write_class(writer, f"{_TYPES}LogicalType", 1, _SERIALIZABLE, 2)
    writer.add(b"Z").utf("isNullable")
    _write_field(writer, "typeRoot", f"{_TYPES}LogicalTypeRoot")
    writer.add(_END + _NULL)
    writer.flag(nullable).add(_ENUM)
    _write_class(writer, f"{_TYPES}LogicalTypeRoot", 0, _SERIALIZABLE_ENUM, 0)
    writer.add(_END)
    _write_enums(writer)
    writer.add(_STRING).utf(root)


def _write_enums(writer: ByteWriter) -> None:
    """Append the description of the class of all enums."""
    _write_class(writer, "java.lang.Enum", 0, _SERIALIZABLE_ENUM, 0)
    writer.add(_END + _NULL)


def _write_class(writer: ByteWriter, name: str, version: int, flags: int, n_fields: int) -> None:
    """Append the description of a class, whose version are 64 bits, up to its fields."""
    writer.add(_CLASS).utf(name).add(version.to_bytes(8, "big")).integer(flags, 1).integer(n_fields, 2)


def _write_field_serializer(writer: ByteWriter, field: LogicalType) -> None:
    serializer = _CLASSES[field.root][2]
    if field.root is Root.DECIMAL:
        single_serializer(field.precision, field.scale).write_snapshot(writer)
    elif field.root in _WITH_KIND:
        single_serializer(field.precision).write_snapshot(writer)
    elif serializer == "StringData":
        writer.utf(snapshot_class(serializer, _TYPEUTILS)).integer(_CURRENT)
    else:
        writer.utf(snapshot_class(serializer)).integer(_CURRENT)

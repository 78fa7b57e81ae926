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
from flinkcore.savepoints.serializers.written_types import (
    CLASS_ITSELF,
    END,
    ENUM,
    HAS_WRITE_METHOD,
    NULL,
    OBJECT,
    SERIALIZABLE,
    SERIALIZABLE_ENUM,
    STREAM,
    STRING,
    TYPE_CLASSES,
    TYPES,
    WITH_KIND,
    write_class,
    write_common,
    write_enums,
    write_field,
    write_type,
)
from flinkcore.sql.types.logical_types import LogicalType, Root

_TYPEUTILS: Final = "org.apache.flink.table.runtime.typeutils."
_SNAPSHOT: Final = f"{_TYPEUTILS}RowDataSerializer$RowDataSerializerSnapshot"
_RAW_SNAPSHOT: Final = f"{_TYPEUTILS}RawValueDataSerializer$RawValueDataSerializerSnapshot"
_NULL_SNAPSHOT: Final = "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot"
_COMPOSITE: Final = 911108
_DELEGATE, _DELEGATE_VERSION = 1333245, 1
_CURRENT: Final = 3

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
            writer.add(STREAM)
            if isinstance(field, ExtremeType):
                _write_extreme(writer, field)
            else:
                write_type(writer, field)
        for _ in range(self.n_views):
            _write_type_of_view(writer.add(STREAM))
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


def row_data(
    types: Sequence[LogicalType | ExtremeType], n_views: int = 0, *, is_key: bool = False
) -> RowDataSerializer:
    """Return the serializer of rows with fields of these types, of accumulators with views, or of keys.

    Keys are all rows that Flink makes of some fields of another one.

    Raises
    ------
    UnsupportedOperationError
        If a field is of a type that cannot be written, such as a row or an array.
    """
    for each in types:
        if isinstance(each, LogicalType) and each.root not in TYPE_CLASSES:
            raise UnsupportedOperationError(
                f"values of {each} in states of SQL cannot be written or restored yet"
            )
    names = tuple(f"f{number}" for number in range(len(types) + n_views))
    views = [sql_type(JavaObject(f"{TYPES}RawType"))] * n_views
    kinds = [*(sql_type(_java_type(each)) for each in types), *views]
    return RowDataSerializer(row_type(names, tuple(kinds), keeps_places=is_key), tuple(types), n_views)


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
    elif type.root in WITH_KIND:
        serializer = single_serializer(type.precision)
        name, version, letter = "org.apache.flink.table.data.TimestampData", 0, ""
    elif type.root in _EXTERNAL:
        name, version, letter, serializer = _EXTERNAL[type.root]
    else:
        raise UnsupportedOperationError(
            f"values of {type} in views of SQL's aggregates cannot be written or restored yet"
        )
    writer = ByteWriter().add(STREAM + OBJECT)
    write_class(writer, "org.apache.flink.table.types.AtomicDataType", 0x1A885329FA7A2332, SERIALIZABLE, 0)
    writer.add(END)
    write_class(writer, "org.apache.flink.table.types.DataType", 0xC68FF3149E02836D, SERIALIZABLE, 2)
    write_field(writer, "conversionClass", "java/lang/Class")
    write_field(writer, "logicalType", f"{TYPES}LogicalType")
    writer.add(END + NULL + CLASS_ITSELF)
    write_class(writer, name, version, SERIALIZABLE if letter else 0, len(letter))
    if letter:
        writer.add(letter.encode()).utf("value")
    writer.add(END)
    if letter not in ("", "Z"):
        write_class(writer, "java.lang.Number", 0x86AC951D0B94E08B, SERIALIZABLE, 0)
        writer.add(END)
    writer.add(NULL)
    write_type(writer, type, begins=False)
    return ExternalSerializer((serializer,), writer.flag(False).data())


def _java_type(field: LogicalType | ExtremeType) -> JavaObject:
    if isinstance(field, ExtremeType):
        parts = {
            field.name: _java_type(field.type),
            "mapSize": JavaObject(f"{TYPES}BigIntType"),
            "map": JavaObject(f"{TYPES}RawType"),
        }
        attributes = [JavaObject("", {"name": name, "type": type}) for name, type in parts.items()]
        return JavaObject(f"{TYPES}StructuredType", {"attributes": attributes})
    return JavaObject(
        TYPES + TYPE_CLASSES[field.root][0],
        {"precision": field.precision, "scale": field.scale, "length": field.precision},
    )


def _write_extreme(writer: ByteWriter, field: ExtremeType) -> None:
    """Append a structured type, which describes its classes at each place, as Java allows."""
    structured = f"{TYPES}StructuredType"
    writer.add(OBJECT)
    write_class(writer, structured, 1, SERIALIZABLE, 6)
    writer.add(b"Z").utf("isInstantiable")
    for name, kind in (
        ("attributes", "java/util/List"),
        ("className", "java/lang/String"),
        ("comparison", f"{structured}$StructuredComparison"),
        ("implementationClass", "java/lang/Class"),
        ("superType", structured),
    ):
        write_field(writer, name, kind)
    writer.add(END)
    write_class(writer, f"{TYPES}UserDefinedType", 1, SERIALIZABLE, 3)
    writer.add(b"Z").utf("isFinal")
    write_field(writer, "description", "java/lang/String")
    write_field(writer, "objectIdentifier", "org/apache/flink/table/catalog/ObjectIdentifier")
    writer.add(END)
    write_common(writer, "STRUCTURED_TYPE", nullable=True)
    writer.flag(True).add(NULL + NULL).flag(True)
    writer.add(OBJECT)
    write_class(writer, "java.util.CollSer", 0x578EABB63A1BA811, SERIALIZABLE | HAS_WRITE_METHOD, 1)
    writer.add(b"I").utf("tag").add(END + NULL)
    writer.integer(1).add(b"w\x04").integer(3)
    for name in (field.name, "mapSize", "map"):
        writer.add(OBJECT)
        write_class(writer, f"{structured}$StructuredAttribute", 1, SERIALIZABLE, 3)
        write_field(writer, "description", "java/lang/String")
        write_field(writer, "name", "java/lang/String")
        write_field(writer, "type", f"{TYPES}LogicalType")
        writer.add(END + NULL + NULL + STRING).utf(name)
        if name == "map":
            _write_type_of_view(writer)
        else:
            write_type(writer, field.type if name == field.name else LogicalType(Root.BIGINT), begins=False)
    writer.add(END + STRING).utf(field.class_name).add(ENUM)
    write_class(writer, f"{structured}$StructuredComparison", 0, SERIALIZABLE_ENUM, 0)
    writer.add(END)
    write_enums(writer)
    writer.add(STRING).utf("EQUALS").add(CLASS_ITSELF)
    write_class(writer, field.class_name, 0, 0, 0)
    writer.add(END + NULL + NULL)


def _write_type_of_view(writer: ByteWriter) -> None:
    """Append the type of a view, which Java knows by the class of its values and their serializer."""
    writer.add(OBJECT)
    write_class(writer, f"{TYPES}RawType", 1, SERIALIZABLE, 2)
    write_field(writer, "clazz", "java/lang/Class")
    write_field(writer, "serializer", "org/apache/flink/api/common/typeutils/TypeSerializer")
    writer.add(END)
    write_common(writer, "RAW", nullable=True)
    writer.add(CLASS_ITSELF)
    write_class(writer, "org.apache.flink.table.api.dataview.MapView", 0, 0, 0)
    writer.add(END + NULL + OBJECT)
    write_class(writer, "org.apache.flink.table.dataview.NullSerializer", 0xB550BA4AB363AC5F, SERIALIZABLE, 0)
    writer.add(END)
    singleton = "org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton"
    write_class(writer, singleton, 0x79A987AAC72E7745, SERIALIZABLE, 0)
    writer.add(END)
    write_class(writer, "org.apache.flink.api.common.typeutils.TypeSerializer", 1, SERIALIZABLE, 0)
    writer.add(END + NULL)


def _write_field_serializer(writer: ByteWriter, field: LogicalType) -> None:
    serializer = TYPE_CLASSES[field.root][2]
    if field.root is Root.DECIMAL:
        single_serializer(field.precision, field.scale).write_snapshot(writer)
    elif field.root in WITH_KIND:
        single_serializer(field.precision).write_snapshot(writer)
    elif serializer == "StringData":
        writer.utf(snapshot_class(serializer, _TYPEUTILS)).integer(_CURRENT)
    else:
        writer.utf(snapshot_class(serializer)).integer(_CURRENT)

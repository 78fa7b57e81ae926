"""Maps of Flink SQL that are sorted by rows: their serializer, with the comparator that Flink's planner would make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from flinkcore.savepoints.byte_writer import ByteWriter
from flinkcore.savepoints.serializers.composite import MapSerializer
from flinkcore.savepoints.serializers.written_types import (
    END,
    NULL,
    OBJECT,
    SERIALIZABLE,
    STREAM,
    STRING,
    TYPES,
    write_array,
    write_class,
    write_field,
    write_type,
)
from flinkcore.sql.types.logical_types import LogicalType, Root

_RUNTIME: Final = "org.apache.flink.table.runtime."
_GENERATED: Final = f"{_RUNTIME}generated."
_NAME: Final = "SortedRowComparator"
_ROW: Final = "org.apache.flink.table.data.RowData"

_NUMBER: Final = "left > right ? 1 : left < right ? -1 : 0"
_BY_ITSELF: Final = "left.compareTo(right)"
_DATA: Final = "org.apache.flink.table.data."
_COMPARED: Final[dict[Root, tuple[str, str, str]]] = {
    Root.BOOLEAN: ("boolean", "getBoolean", "left == right ? 0 : left ? 1 : -1"),
    Root.TINYINT: ("byte", "getByte", _NUMBER),
    Root.SMALLINT: ("short", "getShort", _NUMBER),
    Root.INT: ("int", "getInt", _NUMBER),
    Root.DATE: ("int", "getInt", _NUMBER),
    Root.TIME: ("int", "getInt", _NUMBER),
    Root.BIGINT: ("long", "getLong", _NUMBER),
    Root.FLOAT: ("float", "getFloat", _NUMBER),
    Root.DOUBLE: ("double", "getDouble", _NUMBER),
    Root.CHAR: (f"{_DATA}StringData", "getString", _BY_ITSELF),
    Root.VARCHAR: (f"{_DATA}StringData", "getString", _BY_ITSELF),
    Root.DECIMAL: (f"{_DATA}DecimalData", "getDecimal", _BY_ITSELF),
    Root.TIMESTAMP: (f"{_DATA}TimestampData", "getTimestamp", _BY_ITSELF),
    Root.TIMESTAMP_LTZ: (f"{_DATA}TimestampData", "getTimestamp", _BY_ITSELF),
}
"""By type, Java's type of a field, the method that returns it, and how two of them compare."""


@dataclass(frozen=True)
class SortedMapSerializer(MapSerializer):
    """Maps in the order of their keys.

    Attributes
    ----------
    comparator : bytes
        The comparator of keys as Java serialized it.
    """

    comparator: bytes = field(default=b"", compare=False, repr=False)
    java_name = "SortedMap"
    snapshot_class = f"{_RUNTIME}typeutils.SortedMapSerializerSnapshot"
    outer_version = None

    def write_outer(self, writer: ByteWriter) -> None:
        writer.add(self.comparator)


@dataclass(frozen=True)
class SortedField:
    """A field that orders rows.

    Attributes
    ----------
    type : LogicalType
    descending : bool
    nulls_last : bool
    """

    type: LogicalType
    descending: bool
    nulls_last: bool


def written_comparator(fields: Sequence[SortedField]) -> bytes:
    """Return the comparator of rows that have these fields, in this order, as Java serializes it.

    Raises
    ------
    ValueError
        If its code is longer than Java writes a text.

    Notes
    -----
    Flink's ``ComparableRecordComparator``, which is equal to another one whatever the code. Flink compiles the code to
    read the maps, which then keep the comparator: rows compare as by the code of ``ComparatorCodeGenerator``.
    """
    writer = ByteWriter().add(STREAM + OBJECT)
    write_class(
        writer, f"{_RUNTIME}operators.rank.ComparableRecordComparator", 0x3CDF8B66D060956C, SERIALIZABLE, 5
    )
    for name, kind in (
        ("compareKeyPositions", "[I"),
        ("compareKeyTypes", f"[L{TYPES}LogicalType;"),
        ("compareOrders", "[Z"),
    ):
        write_field(writer, name, kind)
    write_field(writer, "generatedRecordComparator", f"{_GENERATED}GeneratedRecordComparator")
    write_field(writer, "nullsIsLast", "[Z")
    writer.add(END + NULL)
    write_array(writer, "[I", len(fields))
    for number in range(len(fields)):
        writer.integer(number)
    write_array(writer, f"[L{TYPES}LogicalType;", len(fields))
    for each in fields:
        write_type(writer, each.type, begins=False)
    write_array(writer, "[Z", len(fields))
    for each in fields:
        writer.flag(not each.descending)
    _write_generated(writer, _code(fields))
    write_array(writer, "[Z", len(fields))
    for each in fields:
        writer.flag(each.nulls_last)
    return writer.data()


def _write_generated(writer: ByteWriter, code: str) -> None:
    """Append a class whose code is given; it is compiled under its name for itself."""
    writer.add(OBJECT)
    write_class(writer, f"{_GENERATED}GeneratedRecordComparator", 2, SERIALIZABLE, 0)
    writer.add(END)
    write_class(writer, f"{_GENERATED}GeneratedClass", 0x6D9938FBA2F667E9, SERIALIZABLE, 4)
    for name, kind in (
        ("className", "java/lang/String"),
        ("code", "java/lang/String"),
        ("references", "[Ljava/lang/Object;"),
        ("splitCode", "java/lang/String"),
    ):
        write_field(writer, name, kind)
    writer.add(END + NULL)
    writer.add(STRING).utf(_NAME).add(STRING).utf(code)
    write_array(writer, "[Ljava.lang.Object;", 0)
    writer.add(STRING).utf(code)


def _code(fields: Sequence[SortedField]) -> str:
    lines = [
        f"public class {_NAME} implements {_GENERATED}RecordComparator {{",
        f"  public {_NAME}(Object[] references) {{}}",
        "  @Override",
        f"  public int compare({_ROW} one, {_ROW} other) {{",
        "    int order;",
    ]
    for number, each in enumerate(fields):
        java, method, compared = _COMPARED[each.type.root]
        place = str(number)
        if each.type.root is Root.DECIMAL:
            place = f"{number}, {each.type.precision}, {each.type.scale}"
        elif method == "getTimestamp":
            place = f"{number}, {each.type.precision}"
        of_null = 1 if each.nulls_last else -1
        lines += [
            f"    if (one.isNullAt({number}) || other.isNullAt({number})) {{",
            f"      if (!other.isNullAt({number})) return {of_null};",
            f"      if (!one.isNullAt({number})) return {-of_null};",
            "    } else {",
            f"      {java} left = one.{method}({place});",
            f"      {java} right = other.{method}({place});",
            f"      order = {compared};",
            f"      if (order != 0) return {'-order' if each.descending else 'order'};",
            "    }",
        ]
    return "\n".join([*lines, "    return 0;", "  }", "}", ""])

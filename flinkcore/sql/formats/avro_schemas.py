"""Schemas of Avro that Flink derives of the types of a table, for its format ``avro``."""

from __future__ import annotations

from typing import Any, Final

from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.types.logical_types import TEXTS, LogicalType, Root

_RECORD: Final = "org.apache.flink.avro.generated.record"
_PLAIN: Final = {
    Root.BOOLEAN: "boolean",
    **dict.fromkeys((Root.TINYINT, Root.SMALLINT, Root.INT), "int"),
    Root.BIGINT: "long",
    Root.FLOAT: "float",
    Root.DOUBLE: "double",
    **dict.fromkeys((Root.CHAR, Root.VARCHAR), "string"),
    **dict.fromkeys((Root.BINARY, Root.VARBINARY), "bytes"),
}
_UNITS: Final = {"ms": "millis", "us": "micros", "ns": "nanos"}


def derived_schema(row: LogicalType, is_legacy: bool) -> Any:
    """Return the schema of messages with the fields of a row.

    Parameters
    ----------
    row : LogicalType
        A ROW that is not null.
    is_legacy : bool
        The option ``timestamp_mapping.legacy``: a TIMESTAMP is written as an instant.

    Returns
    -------
    dict
        As JSON has it.

    Raises
    ------
    UnsupportedOperationError
        If Flink derives none.

    Notes
    -----
    Follows Flink's ``AvroSchemaConverter.convertToSchema``, which takes the legacy mapping within arrays and maps.
    """
    return _schema(row, _RECORD, is_legacy)


def _schema(kind: LogicalType, record: str, is_legacy: bool) -> Any:
    found = _of_type(kind, record, is_legacy)
    return ["null", found] if kind.nullable else found


def _of_type(kind: LogicalType, record: str, is_legacy: bool) -> Any:
    root = kind.root
    if root in _PLAIN:
        return _PLAIN[root]
    if root is Root.DATE:
        return {"type": "int", "logicalType": "date"}
    if root is Root.TIME and kind.precision <= 3:
        return {"type": "int", "logicalType": "time-millis"}
    if root is Root.TIMESTAMP and (kind.precision <= 3 or not is_legacy):
        of_local = "" if is_legacy else "local-"
        return {"type": "long", "logicalType": f"{of_local}timestamp-{_UNITS[kind.unit]}"}
    if root is Root.TIMESTAMP_LTZ and not is_legacy:
        return {"type": "long", "logicalType": f"timestamp-{_UNITS[kind.unit]}"}
    if root is Root.DECIMAL:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if root is Root.ROW:
        return {
            "type": "record",
            "name": record,
            "fields": [_field(*each, record, is_legacy) for each in kind.children],
        }
    if root is Root.ARRAY:
        return {"type": "array", "items": _schema(kind.children[0][1], record, True)}
    if root in (Root.MAP, Root.MULTISET) and kind.children[0][1].root in TEXTS:
        value = kind.children[1][1] if root is Root.MAP else LogicalType(Root.INT)
        return {"type": "map", "values": _schema(value, record, True)}
    raise UnsupportedOperationError(
        f"the type {kind} has none in messages of the format 'avro', in Flink, too. Declare TIME(3) or TIMESTAMP(3), a "
        "MAP with keys of STRING, or set 'avro.timestamp_mapping.legacy' = 'false' for a longer or a local timestamp"
    )


def _field(name: str, kind: LogicalType, record: str, is_legacy: bool) -> dict[str, Any]:
    default = {"default": None} if kind.nullable else {}
    return {"name": name, "type": _schema(kind, f"{record}_{name}", is_legacy), **default}

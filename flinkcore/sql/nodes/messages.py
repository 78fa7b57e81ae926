"""The messages of a table's connector: what its options declare about the records of its log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from flinkcore.datastream.graph.declared_messages import DeclaredMessages, format_options
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.formats.avro_schemas import derived_schema
from flinkcore.sql.types.logical_types import BINARIES, TEXTS, LogicalType, Root

_NOT_PLAIN: Final = frozenset((Root.TIME, Root.MAP, Root.MULTISET, Root.INTERVAL_MONTHS, Root.INTERVAL_MS))
_OF_CHANGES: Final = re.compile(r"(debezium|canal|maxwell|ogg)-")
_OF_JSON: Final = frozenset(
    (
        *(Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT),
        *(Root.FLOAT, Root.DOUBLE, Root.DECIMAL, *BINARIES),
    )
)


def has_changes(options: Mapping[str, str]) -> bool:
    """Return whether the records of a table are changes, by its connector or its format."""
    value = options.get("value.format", options.get("format", ""))
    return options.get("connector", "").endswith("-cdc") or _OF_CHANGES.match(value) is not None


def declared_messages(
    columns: Sequence[tuple[str, LogicalType]], options: Mapping[str, str]
) -> DeclaredMessages | None:
    """Return what a table declares about the messages of its log.

    Parameters
    ----------
    columns : sequence of (str, LogicalType)
        Physical columns of the table.
    options : mapping of str to str
        Options of the table.

    Returns
    -------
    DeclaredMessages or None
        None if the table has no format, or is one of files.
    """
    value = options.get("value.format", options.get("format"))
    if value is None or options.get("connector") == "filesystem":
        return None
    prefix = options.get("key.fields-prefix", "")
    keys = [name for name in options.get("key.fields", "").split(";") if name]
    leaves_keys_out = options.get("value.fields-include") == "EXCEPT_KEY"
    key = options.get("key.format") if leaves_keys_out else None
    fields = [
        (name, _message_type(name, kind, value))
        for name, kind in columns
        if not (leaves_keys_out and name in keys)
    ]
    return DeclaredMessages(
        value,
        pa.schema(fields),
        key,
        pa.schema(
            [
                (name.removeprefix(prefix), _message_type(name, kind, key or value))
                for name, kind in columns
                if name in keys
            ]
        ),
        prefix,
        dict(options),
        _avro_schema(
            [each for each in columns if not (leaves_keys_out and each[0] in keys)], value, options, "value"
        ),
        _avro_schema(
            [(name.removeprefix(prefix), kind) for name, kind in columns if name in keys], key, options, "key"
        ),
    )


def _avro_schema(
    columns: Sequence[tuple[str, LogicalType]], of_format: str | None, options: Mapping[str, str], column: str
) -> Any:
    """Return the schema of messages of the format ``avro``; None of another one."""
    if of_format != "avro":
        return None
    found = format_options(of_format, options, column)
    if found.get("encoding", "binary") != "binary":
        raise UnsupportedOperationError(
            f"messages of the format 'avro' are decoded with 'avro.encoding' = 'binary', not {found['encoding']!r}. "
            "Give a log with the columns of the table"
        )
    row = LogicalType(Root.ROW, False, children=tuple(columns))
    return derived_schema(row, found.get("timestamp_mapping.legacy", "true") == "true")


def _message_type(name: str, kind: LogicalType, of_format: str) -> pa.DataType:
    """Return the type as which the decoder of a format reads a column."""
    if of_format == "avro":
        return kind.arrow
    return _plain_type(name, kind, of_format) if of_format in ("csv", "raw") else _json_type(kind)


def _plain_type(name: str, kind: LogicalType, of_format: str) -> pa.DataType:
    """Return the type of a column or a field of it; a time has the unit of its precision."""
    if kind.root is Root.ROW:
        return pa.struct([(field, _plain_type(name, child, of_format)) for field, child in kind.children])
    if kind.root is Root.ARRAY:
        return pa.list_(_plain_type(name, kind.children[0][1], of_format))
    if kind.root is Root.TIME and kind.precision in (0, 3):
        return pa.time32("ms" if kind.precision else "s")
    if kind.root in _NOT_PLAIN:
        instead = "TIME(0) or TIME(3)" if kind.root is Root.TIME else "a STRING, and convert it in the query"
        raise UnsupportedOperationError(
            f"column {name!r} has the type {kind}, of which messages of the format {of_format!r} are not decoded. "
            f"Declare {instead}"
        )
    return kind.arrow


def _json_type(kind: LogicalType) -> pa.DataType:
    """Return the type as which JSON is read; dates and times are texts, which the scan converts."""
    if kind.root is Root.ROW:
        return pa.struct([(name, _json_type(child)) for name, child in kind.children])
    if kind.root is Root.ARRAY:
        return pa.list_(_json_type(kind.children[0][1]))
    if kind.root in (Root.MAP, Root.MULTISET):
        if kind.children[0][1].root not in TEXTS:
            raise UnsupportedOperationError(
                f"the type {kind} has keys that are not texts, and those of objects of JSON are, in Flink, too. "
                "Declare keys of STRING"
            )
        return pa.map_(pa.string(), _json_type(kind.children[1][1]) if kind.root is Root.MAP else pa.int32())
    return kind.arrow if kind.root in _OF_JSON else pa.string()

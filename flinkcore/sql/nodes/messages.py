"""The messages of a table's connector: what its options declare about the records of its log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from flinkcore.datastream.graph.declared_messages import DeclaredMessages
from flinkcore.sql.types.logical_types import BINARIES, LogicalType, Root

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
    fields = [(name, _message_type(kind)) for name, kind in columns if not (leaves_keys_out and name in keys)]
    return DeclaredMessages(
        value,
        pa.schema(fields),
        options.get("key.format") if leaves_keys_out else None,
        pa.schema(
            [(name.removeprefix(prefix), _message_type(kind)) for name, kind in columns if name in keys]
        ),
        prefix,
        dict(options),
    )


def _message_type(kind: LogicalType) -> pa.DataType:
    """Return the type as which a decoder reads a field; dates and times are texts, which the scan converts."""
    if kind.root is Root.ROW:
        return pa.struct([(name, _message_type(child)) for name, child in kind.children])
    if kind.root is Root.ARRAY:
        return pa.list_(_message_type(kind.children[0][1]))
    if kind.root in (Root.MAP, Root.MULTISET):
        return pa.map_(_message_type(kind.children[0][1]), pa.string())  # which formats of JSON refuse
    return kind.arrow if kind.root in _OF_JSON else pa.string()

"""What a manifest may say about a table, by its kind."""

import re
from collections.abc import Collection
from typing import Any

from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import DataError
from flinkcore.runtime.checkpoint.checkpoint_table import TableKind
from flinkcore.runtime.checkpoint.json_object import JsonObject
from flinkcore.runtime.checkpoint.table_file import TableFile
from flinkcore.runtime.checkpoint.value_shape import check_shape
from flinkcore.runtime.state import DistributionMode

DATA_FOLDER = re.compile(r"data-[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_MEMBERS = ("kind", "name", "file", "size", "sha256", "n_rows", "shapes", "attributes")
_SHAPES = {
    TableKind.TIMERS: ("key", "namespace"),
    TableKind.KEYED_STATE: ("key", "namespace", "value"),
    TableKind.OPERATOR_STATE: ("element",),
    TableKind.SPLITS: ("split", "position", "state"),
    TableKind.TIME_PLANE: ("split",),
    TableKind.WINDOWS: (),
}
_OPTIONAL_SHAPES = {TableKind.TIME_PLANE: ("generator",)}
_NAMED = (TableKind.TIMERS, TableKind.KEYED_STATE, TableKind.OPERATOR_STATE)


def table_of_content(content: Any, where: str) -> TableFile:
    """Return the entry of a manifest for a table.

    Parameters
    ----------
    content : object
        As `json.loads` gives it.
    where : str
        Names the entry in messages.

    Raises
    ------
    DataError
        If it is no such entry; names the member.
    """
    entry = JsonObject(content, where, _MEMBERS)
    kinds = {kind.value: kind for kind in TableKind}
    if entry.text("kind") not in kinds:
        raise entry.refused("kind", f"none of {', '.join(kinds)}")
    kind = kinds[entry.text("kind")]
    folder, _, name = entry.text("file").partition("/")
    if not DATA_FOLDER.fullmatch(folder) or not name or "/" in name:
        raise entry.refused("file", "which is outside of the checkpoint")
    if not _SHA256.fullmatch(entry.text("sha256")):
        raise entry.refused("sha256", "no SHA-256 in hexadecimal digits")
    if entry.text("name") and kind not in _NAMED:
        raise entry.refused("name", f"but a table of {kind.value} has no name")
    shapes = JsonObject(entry["shapes"], f"shapes of {where}", (), _shaped(kind))
    for column in _SHAPES[kind]:
        if column not in entry["shapes"]:
            raise DataError(f"{where} lacks the shape of its column {column!r}")
    for column in entry["shapes"]:
        check_shape(shapes[column], f"shape of {column} of {where}")
    n_rows = entry.integer("n_rows", 0)
    _check_attributes(kind, n_rows, entry["attributes"], f"attributes of {where}")
    return TableFile(
        kind,
        entry.text("name"),
        entry.text("file"),
        entry.integer("size", 0),
        entry.text("sha256"),
        n_rows,
        entry["shapes"],
        entry["attributes"],
    )


def _shaped(kind: TableKind) -> Collection[str]:
    return (*_SHAPES[kind], *_OPTIONAL_SHAPES.get(kind, ()))


def _check_attributes(kind: TableKind, n_rows: int, content: Any, where: str) -> None:
    if kind is TableKind.TIMERS:
        domains = JsonObject(content, where, ("event_time", "processing_time"))
        counts = [_count(domains[name], f"{name} of {where}") for name in ("event_time", "processing_time")]
        if sum(counts) != n_rows:
            raise DataError(f"{where} are of {sum(counts)} timers, and the table has {n_rows} rows")
    elif kind is TableKind.KEYED_STATE:
        state = JsonObject(content, where, ("type", "ttl_time"))
        if state["type"] not in [each.value for each in StateDescriptor.Type]:
            raise state.refused("type", "no kind known here of a keyed state")
        if state["ttl_time"] not in [None, *(each.name for each in StateTtlConfig.TtlTimeCharacteristic)]:
            raise state.refused("ttl_time", "no kind known here of a time to live")
    elif kind is TableKind.OPERATOR_STATE:
        mode = JsonObject(content, where, ("mode",))
        if mode["mode"] not in [each.value for each in DistributionMode]:
            raise mode.refused("mode", "no kind known here of an operator state")
    elif kind is TableKind.WINDOWS:
        windows = JsonObject(content, where, ("kind", "earliest_end_ms", "latest_end_ms"))
        windows.text("kind")
        ends = [windows.integer_or_none(name) for name in ("earliest_end_ms", "latest_end_ms")]
        if (n_rows > 0) != all(end is not None for end in ends):
            raise DataError(f"{where} have the ends {ends}, and the table has {n_rows} rows")
    elif kind is TableKind.TIME_PLANE:
        times = ("watermark_ms", "input_watermark_ms", "operator_watermark_ms")
        cut = JsonObject(content, where, ("last_arrival_ms", "opened_ms", *times))
        for name in times:
            cut.integer(name)
        if (cut.integer_or_none("last_arrival_ms") is None) != (cut.integer_or_none("opened_ms") is None):
            raise DataError(f"{where} have one of last_arrival_ms and opened_ms")
    else:
        JsonObject(content, where, ())


def _count(content: Any, where: str) -> int:
    if content == {"count": 0}:
        return 0
    extent = JsonObject(content, where, ("count", "earliest_ms", "latest_ms"))
    if extent.integer("earliest_ms") > extent.integer("latest_ms"):
        raise extent.refused("earliest_ms", "which is after latest_ms")
    return extent.integer("count", 1)

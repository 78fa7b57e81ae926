"""Names of lake tables in commands: delta:PATH@VERSION and iceberg:CATALOG.NAMESPACE.TABLE@SNAPSHOT."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from flinkcore._internal.io.locations import absolute_location
from flinkcore._internal.python.extras import library
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.graph.lake_tables import LakeTable

TABLES: Final = "delta:PATH[@VERSION] or iceberg:CATALOG.NAMESPACE.TABLE[@SNAPSHOT]"
"""Forms of a table's name, for help texts."""


def table_named(text: str) -> LakeTable | None:
    """Return the table that a text names, of which nothing is read; None if the text is a path.

    The version of a Delta table is a number or a time; the snapshot of an Iceberg table an id, a branch, a tag or a
    time. In place of its name, an Iceberg table may have the path of its directory or of a metadata file.

    Raises
    ------
    ConfigurationError
        If a name is incomplete, or the library of its format is not installed.
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("delta", "iceberg"):
        return None
    from flinkcore.datastream.graph.lake_tables import DeltaTable, IcebergTable

    location, version = _location_and_version(text, rest)
    if kind == "delta":
        library("deltalake", "delta", text)
        return DeltaTable(absolute_location(location), version=_number(version))
    library("pyiceberg", "iceberg", text)
    snapshot = _number_or_time(version)
    if "/" in location:
        return IcebergTable(absolute_location(location), snapshot=snapshot)
    catalog, _, table = location.partition(".")
    if not all([catalog, *table.split(".")]) or "." not in table:
        raise ConfigurationError(
            f"{text!r} does not name a catalog, a namespace and a table. Write {kind}:CATALOG.NAMESPACE.TABLE, such as "
            "iceberg:default.logs.clicks"
        )
    return IcebergTable(table, snapshot=snapshot, catalog=catalog)


def _location_and_version(text: str, rest: str) -> tuple[str, str | None]:
    """Split a name at the last @ of its last part: the host of a URI may have one, too."""
    location, at, version = rest.rpartition("@")
    if not at or "/" in version:
        return _required(text, rest), None
    return _required(text, location), _required(text, version)


def _required(text: str, part: str) -> str:
    if not part or part.startswith("//"):
        raise ConfigurationError(f"{text!r} is not the name of a table. Write {TABLES}")
    return part


def _number(version: str | None) -> int | str | None:
    return int(version) if version is not None and version.isdecimal() else version


def _number_or_time(snapshot: str | None) -> int | str | datetime | None:
    if snapshot is not None and "T" in snapshot:
        with suppress(ValueError):  # it is the name of a branch or tag
            return datetime.fromisoformat(snapshot.replace("Z", "+00:00"))
    return _number(snapshot)

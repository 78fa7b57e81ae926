"""The data files of a Delta table at a version, as the library `deltalake` finds them in the table's log."""

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from pyarrow import fs

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.stores import stores_of
from flinkcore._internal.python.extras import library
from flinkcore.datastream.graph.lake_tables import DeltaTable
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.log.files.log_files import LogFile

# The other features of readers change what the files of a table mean, or where they are.
_READ = frozenset(
    [
        *("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview"),
        *("v2Checkpoint", "vacuumProtocolCheck"),
    ]
)


def delta_files(table: DeltaTable) -> tuple[list[LogFile], pa.Schema, StoredColumns, DeltaTable]:
    """Return a table's files, its columns, how the files hold these, and the table at the version that is read.

    Files are in the order of their times of modification. Rows that a deletion vector removes are deleted from their
    file; columns of a table with column mapping are found by their ids or physical names.

    Raises
    ------
    ConfigurationError
        If deltalake is not installed.
    SourceError
        If deltalake cannot read the table's log, or the table has a feature that changes what its files mean.
    """
    opened = opened_table(table)
    _refuse_unknown_features(table, opened)
    fields = json.loads(opened.schema().to_json())["fields"]
    schema = pa.schema(opened.schema().to_arrow())
    stored = StoredColumns(_names_in_files(fields, opened.metadata().configuration))
    location = opened.table_uri.rstrip("/")
    place = stores_of(table.filesystem).locate(location)
    filesystem, root = place.filesystem, place.path
    deleted = _deleted_rows(opened)
    actions = pa.table(opened.get_add_actions())
    partitions = opened.metadata().partition_columns
    values: list[dict[str, Any]] = [{}] * actions.num_rows
    if partitions:
        values = actions.column("partition").to_pylist()
    files = []
    for path, size, modified, partition in zip(
        *(actions.column(name).to_pylist() for name in ("path", "size_bytes", "modification_time")),
        values,
        strict=True,
    ):
        if urlsplit(path).scheme or path.startswith("/"):
            raise SourceError(
                f"{table.name} has files elsewhere, as a shallow clone has, such as {path}: read it with Spark, and "
                "give from_event_log the DataFrame, or rewrite the table",
                file=path,
            )
        inside = f"{root.rstrip('/')}/{unquote(path)}"
        name = inside if isinstance(filesystem, fs.LocalFileSystem) else f"{location}/{path}"
        constants = tuple((column, partition[column]) for column in partitions)
        rows = deleted.pop(f"{location}/{path}", None)
        files.append((modified, LogFile(filesystem, inside, name, size, constants, None, rows)))
    if deleted:
        raise SourceError(
            f"{table.name} has deletion vectors of files that it does not list, such as {next(iter(deleted))}: read "
            "it with Spark, and give from_event_log the DataFrame",
            file=next(iter(deleted)),
        )
    files.sort(key=lambda each: (each[0], each[1].path))
    return [file for _, file in files], schema, stored, replace(table, version=opened.version())


def opened_table(table: DeltaTable) -> Any:
    """Return the table as deltalake has it.

    Raises
    ------
    ConfigurationError
        If deltalake is not installed, or the text of a version is not a time.
    SourceError
        If there is no such table or version, or its log cannot be read.
    """
    if not isinstance(table.table, str):
        return table.table
    deltalake = library("deltalake", "delta", table.name)
    version = _number_or_instant(table.version)
    newest = None
    options = stores_of(table.filesystem).deltalake_options(table.table) | dict(table.storage_options or {})
    try:
        opened = deltalake.DeltaTable(table.table, storage_options=options or None)
        newest = opened.version()
        if version is not None:
            opened.load_as_version(version)
    except (deltalake.exceptions.DeltaError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        remedy = "" if newest is None else f". The newest version is {newest}: name one that is kept"
        raise SourceError(f"{table.name} cannot be read: {reason}{remedy}") from error
    return opened


def _number_or_instant(version: Any) -> Any:
    """Return a version as deltalake takes it: a time with its zone, which is UTC if it has none."""
    if isinstance(version, str):
        try:
            version = datetime.fromisoformat(version.replace("Z", "+00:00"))
        except ValueError:
            raise ConfigurationError(
                f"{version!r} is not a version of a table. Give its number, or a time such as 2026-05-04T12:00:00Z"
            ) from None
    if isinstance(version, datetime) and version.tzinfo is None:
        return version.replace(tzinfo=timezone.utc)
    return version


def _refuse_unknown_features(table: DeltaTable, opened: Any) -> None:
    unknown = sorted(set(opened.protocol().reader_features or ()) - _READ)
    if unknown:
        raise SourceError(
            f"{table.name} has the feature {', '.join(unknown)}, with which its files cannot be read as they are: read "
            "it with Spark, and give from_event_log the DataFrame"
        )


def _names_in_files(fields: list[dict[str, Any]], configuration: dict[str, str]) -> dict[str, str | int]:
    mode = configuration.get("delta.columnMapping.mode", "none")
    if mode == "none":
        return {}
    key = "delta.columnMapping.id" if mode == "id" else "delta.columnMapping.physicalName"
    return {field["name"]: field["metadata"][key] for field in fields}


def _deleted_rows(opened: Any) -> dict[str, Int64s]:
    """Return the rows that deletion vectors remove, by the location of their file."""
    if "deletionVectors" not in (opened.protocol().reader_features or ()):
        return {}
    deleted = {}
    for batch in pa.RecordBatchReader.from_stream(opened.deletion_vectors()):
        for path, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            deleted[path.as_py()] = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False))
    return deleted

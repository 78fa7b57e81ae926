"""The data files of an Iceberg table in a snapshot, as the library `pyiceberg` finds them in the table's metadata."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.locations import absolute_location, is_local
from flinkcore._internal.io.stores import GivenFileSystem, Stores, stores_of
from flinkcore._internal.python.extras import library
from flinkcore.datastream.graph.lake_tables import IcebergTable
from flinkcore.errors import SourceError
from flinkcore.log.files.log_files import LogFile

_WITH_SPARK = "read it with Spark, and give from_event_log the DataFrame"
_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$")
_NUMBERED = re.compile(r"(v(?P<version>\d+)|(?P<number>\d+)-[^/]*?)(\.gz)?\.metadata\.json")


def iceberg_files(table: IcebergTable) -> tuple[list[LogFile], pa.Schema, StoredColumns, IcebergTable]:
    """Return a table's files and columns in a snapshot, how the files hold these, and the table at that snapshot.

    Files are in the order of their paths. Columns are found by their field ids; those by whose values the table is
    partitioned have the value that the metadata give. Rows of position deletes and deletion vectors are deleted from
    their file.

    Raises
    ------
    ConfigurationError
        If pyiceberg is not installed.
    SourceError
        If pyiceberg cannot plan to read the table, or it has what cannot be read right: equality deletes, other files
        than Parquet, default values of columns, changed columns of structs.
    """
    opened = opened_table(table)
    scan = _scan(table, opened)
    projected = scan.projection()
    _refuse_what_files_do_not_tell(table, opened, projected)
    try:
        tasks = sorted(scan.plan_files(), key=lambda task: str(task.file.file_path))
        schema = arrow_schema(projected)
    except Exception as error:
        way_out = "compact it, or " if "equality" in str(error) else ""
        raise SourceError(f"{table.name} cannot be read: {error}. {way_out}{_WITH_SPARK}".strip()) from error
    deleted = _deleted_rows(table, opened, [each for task in tasks for each in task.delete_files])
    constants = {
        number: _constant_columns(spec, projected, schema) for number, spec in opened.specs().items()
    }
    files = []
    for task in tasks:
        location = str(task.file.file_path)
        if task.file.file_format.value != "PARQUET":
            raise SourceError(
                f"{table.name} has a file that is not Parquet, {location}: rewrite its data files as Parquet, or "
                f"{_WITH_SPARK}",
                file=location,
            )
        if task.file.key_metadata is not None:
            raise SourceError(f"{table.name} has an encrypted file, {location}: {_WITH_SPARK}", file=location)
        filesystem, path = file_system_of_table(opened, location, table.filesystem)
        partition = tuple(
            (name, _value(task.file.partition[at], kind))
            for at, name, kind in constants[task.file.spec_id or 0]
        )
        size, rows = task.file.file_size_in_bytes, deleted.get(location)
        files.append(LogFile(filesystem, path, location, size, partition, None, rows))
    snapshot = scan.snapshot()
    read = table if snapshot is None else replace(table, snapshot=snapshot.snapshot_id)
    return files, schema, _stored_columns(opened, projected), read


def opened_table(table: IcebergTable) -> Any:
    """Return the table as pyiceberg has it.

    Raises
    ------
    ConfigurationError
        If pyiceberg is not installed.
    SourceError
        If there is no such table, or the newest metadata file of a directory is not certain.
    """
    if not isinstance(table.table, str):
        return table.table
    catalogs = _module("catalog", table.name)
    location = table.table
    if "/" in location and not _METADATA_FILE.search(location):
        location = _newest_metadata(table, location)
    try:
        if "/" in location:
            return _table_of_metadata(location, stores_of(table.filesystem))
        return catalogs.load_catalog(table.catalog).load_table(location)
    except Exception as error:
        raise SourceError(
            f"{table.name} cannot be opened: {error}. Give the path of a metadata file, the name of a table in the "
            "default catalog, or catalog.load_table(name)"
        ) from error


def _table_of_metadata(location: str, stores: Stores) -> Any:
    """The table of a metadata file, read with the settings of the stores.

    Not by `StaticTable.from_metadata`: it loads and calls whatever class a property in the metadata names, and a file
    of a stranger's may name one that runs a program.
    """
    io = _module("io").load_file_io(stores.pyiceberg_properties(location), location)
    return _module("table").StaticTable(
        identifier=("static-table", location),
        metadata=_module("serializers").FromInputFile.table_metadata(io.new_input(location)),
        metadata_location=location,
        io=io,
        catalog=_module("catalog.noop").NoopCatalog("static-table"),
    )


def _newest_metadata(table: IcebergTable, location: str) -> str:
    """Return the newest metadata file of a local directory, as version-hint.text or the numbers of the files say."""
    way_out = "Name the metadata file, or the table in its catalog: from_iceberg(catalog.load_table(name))"
    if not is_local(location):
        raise SourceError(
            f"{table.name} is not in a local directory, and only its catalog knows which metadata it has. {way_out}"
        )
    folder = Path(absolute_location(location), "metadata")
    try:
        names = sorted(name for name in os.listdir(folder) if _METADATA_FILE.search(name))
        hint = folder / "version-hint.text"
        hinted = hint.read_text().strip() if hint.exists() else None
    except OSError as error:
        raise SourceError(f"{table.name} cannot be opened: {error}. {way_out}") from error
    found = [(name, _NUMBERED.match(name)) for name in names]
    versions = {int(each["version"]): name for name, each in found if each and each["version"]}
    numbers = [(int(each["number"]), name) for name, each in found if each and each["number"]]
    newest = []
    if hinted is None and len(versions) == len(names) and names:
        newest = [versions[max(versions)]]
    elif hinted is None and len(numbers) == len(names):
        newest = [name for number, name in numbers if number == max(numbers)[0]]
    elif hinted is not None and hinted.isdecimal() and not numbers:
        # A commit writes the file first and the hint after it.
        later = [number for number in versions if number >= int(hinted)]
        newest = [versions[max(later)]] if int(hinted) in later else []
    if len(newest) == 1:
        return str(folder / newest[0])
    candidates = ", ".join(newest or names) or "there is none"
    says = "" if hinted is None else f", and version-hint.text says {hinted!r}"
    raise SourceError(
        f"the newest metadata file of {table.name} is not certain ({candidates}{says}). {way_out}"
    )


def _module(name: str, needed_by: str = "from_iceberg") -> Any:
    return library(f"pyiceberg.{name}", "iceberg", needed_by)


def file_system_of_table(opened: Any, location: str, given: Any) -> tuple[Any, str]:
    """Return the file system of a location in a table, and the path in it: with the settings of the table's catalog."""
    io = library("pyiceberg.io.pyarrow", "iceberg", "an Iceberg table")
    stores = stores_of(given)
    if not isinstance(stores, GivenFileSystem) and isinstance(opened.io, io.PyArrowFileIO):
        scheme, netloc, path = opened.io.parse_location(location)
        if scheme != "file":
            return opened.io.fs_by_scheme(scheme, netloc), path
        return fs.LocalFileSystem(), path
    place = stores.locate(location)
    return place.filesystem, place.path


def _scan(table: IcebergTable, opened: Any) -> Any:
    try:
        if isinstance(table.snapshot, str):
            return opened.scan().use_ref(table.snapshot)
        number = table.snapshot
        if isinstance(number, datetime):
            time = number if number.tzinfo else number.replace(tzinfo=timezone.utc)
            found = opened.snapshot_as_of_timestamp(math.floor(time.timestamp() * 1000))
            number = -1 if found is None else found.snapshot_id
        if number is not None and opened.snapshot_by_id(number) is None:
            raise ValueError("there is no such snapshot")
        return opened.scan(snapshot_id=number)
    except ValueError as error:
        known = ", ".join(str(each.snapshot_id) for each in opened.snapshots()) or "none"
        raise SourceError(
            f"{table.name} cannot be read: {error}; snapshots: {known}, branches and tags: {', '.join(opened.refs())}"
        ) from error


def _refuse_what_files_do_not_tell(table: IcebergTable, opened: Any, projected: Any) -> None:
    earlier: dict[int, set[str]] = {}
    for schema in opened.schemas().values():
        for field in schema.fields:
            earlier.setdefault(field.field_id, set()).add(str(field.field_type))
    for field in projected.fields:
        if getattr(field, "initial_default", None) is not None:
            raise SourceError(
                f"column {field.name!r} of {table.name} has a default value for files that were written before: "
                f"rewrite these, or {_WITH_SPARK}",
                column=field.name,
            )
        if len(earlier.get(field.field_id, ())) > 1 and not field.field_type.is_primitive:
            raise SourceError(
                f"column {field.name!r} of {table.name} is nested, and its fields have changed: {_WITH_SPARK}, or "
                "rewrite the table under another name",
                column=field.name,
            )


def arrow_schema(projected: Any) -> pa.Schema:
    """Return the columns in Arrow's types, with offsets of 32 bits, also in nested ones."""
    arrow = projected.as_arrow()
    return pa.schema([(field.name, _small(field.type)) for field in arrow])


def _small(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_large_string(kind):
        return pa.string()
    if types.is_large_binary(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_small(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_small(kind.key_type), _small(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, _small(field.type)) for field in kind])
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _stored_columns(opened: Any, projected: Any) -> StoredColumns:
    mapping = opened.name_mapping()
    names = None
    if mapping is not None:
        of_ids = {each.field_id: tuple(each.names) for each in mapping.root}
        names = {field.name: of_ids.get(field.field_id, ()) for field in projected.fields}
    return StoredColumns({field.name: field.field_id for field in projected.fields}, without_ids=names)


def _constant_columns(spec: Any, projected: Any, schema: pa.Schema) -> list[tuple[int, str, pa.DataType]]:
    """Return the columns whose value a partition of this spec has: its place there, the column's name and type."""
    names = {field.field_id: field.name for field in projected.fields}
    return [
        (at, names[field.source_id], schema.field(names[field.source_id]).type)
        for at, field in enumerate(spec.fields)
        if str(field.transform) == "identity" and field.source_id in names
    ]


def _value(value: Any, kind: pa.DataType) -> Any:
    """Return a value of a partition, as metadata have it, as its column has it."""
    if isinstance(value, int) and pa.types.is_temporal(kind):
        return pa.array([value], f"int{kind.bit_width}").view(kind)[0].as_py()
    return value


def _deleted_rows(table: IcebergTable, opened: Any, deletes: Iterable[Any]) -> Mapping[str, Int64s]:
    """Return the deleted rows by the location of their data file."""
    found: dict[str, list[Int64s]] = {}
    for location, delete in {str(each.file_path): each for each in deletes}.items():
        if delete.content.name != "POSITION_DELETES":
            raise SourceError(
                f"{table.name} has equality deletes, {location}: compact it, or {_WITH_SPARK}", file=location
            )
        for file, rows in _positions(table, opened, location, delete.file_format.value):
            found.setdefault(file, []).append(rows)
    return {file: np.unique(np.concatenate(rows)) for file, rows in found.items()}


def _positions(table: IcebergTable, opened: Any, location: str, form: str) -> list[tuple[str, Int64s]]:
    filesystem, path = file_system_of_table(opened, location, table.filesystem)
    try:
        if form == "PARQUET":
            rows = pq.read_table(path, filesystem=filesystem, columns=["file_path", "pos"], partitioning=None)
            grouped = rows.group_by("file_path").aggregate([("pos", "list")])
            return [
                (file.as_py(), positions.values.to_numpy().astype(np.int64))
                for file, positions in zip(grouped["file_path"], grouped["pos_list"], strict=True)
            ]
        if form == "PUFFIN":
            puffin, vectors = _module("table.puffin"), _module("table.deletion_vector")
            with filesystem.open_input_file(path) as file:
                stored = puffin.PuffinFile(file.read())
            return [
                (vector.referenced_data_file, vector.to_vector().to_numpy().astype(np.int64))
                for vector in vectors.deletion_vectors_from_puffin_file(stored)
            ]
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise SourceError(
            f"{location}, with deleted rows of {table.name}, cannot be read: {error}", file=location
        ) from error
    raise SourceError(
        f"{table.name} has deleted rows in a file of the format {form}, {location}: compact it, or {_WITH_SPARK}",
        file=location,
    )

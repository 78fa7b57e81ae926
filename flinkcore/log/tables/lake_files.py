"""The data files of a table of a lake, whichever its format, as those of a log."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import Filter, expression_columns, output_schema
from flinkcore._internal.arrow.nested_fields import with_nested_fields
from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.locations import is_local
from flinkcore._internal.io.stores import ENVIRONMENT, GivenFileSystem, Stores, stores_of
from flinkcore._internal.io.table_directories import DELTA, ICEBERG
from flinkcore.datastream.graph.lake_tables import DeltaTable, IcebergTable, LakeTable
from flinkcore.datastream.graph.transformations import EventLogSource, StreamGraph
from flinkcore.errors import ConfigurationError, FlinkcoreError
from flinkcore.log.files.log_files import LogFile, PathOfTable
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.log.tables.delta_files import delta_files
from flinkcore.log.tables.iceberg_files import iceberg_files


def table_files(table: LakeTable) -> LogFiles:
    """Return the data files that a table has now, or at the version that is asked for.

    Raises
    ------
    ConfigurationError
        If the library of the table's format is not installed.
    SourceError
        If there is no such table or version, or it has a feature that cannot be read right: names both.
    SchemaError
        If a condition does not fit the table's columns.
    """
    files: Sequence[LogFile]
    schema: pa.Schema
    stored: StoredColumns
    read: LakeTable
    if isinstance(table, DeltaTable):
        files, schema, stored, read = delta_files(table)
    elif isinstance(table, IcebergTable):
        files, schema, stored, read = iceberg_files(table)
    else:
        raise ConfigurationError(f"{table} is neither a Delta table nor an Iceberg table")
    named = [name for condition in table.where for name in expression_columns(condition) or ()]
    output_schema(map(Filter, table.where), with_nested_fields(plain_schema(schema), named))
    return LogFiles.of_table(files, schema, where=table.where, stored=stored, table_name=read.name)


def log_of_paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    format: str | None = None,
    stores: Stores = ENVIRONMENT,
    format_options: Mapping[str, Any] | None = None,
    schema: Any = None,
    is_lenient: bool = False,
) -> LogFiles | LakeTable:
    """Return the files that paths name, or the table, if they name the directory of one.

    Parameters
    ----------
    paths, format, stores, format_options, schema, is_lenient
        As of `LogFiles.discover`. Files of a table that a list names one by one are read as files if there is a format.

    Raises
    ------
    SourceError
        If the paths name files of a table, a table and files besides, or a table that cannot be read by its path.
    ConfigurationError
        If there is a format or a schema, and the paths name a table.
    """
    is_list = not isinstance(paths, str | os.PathLike)
    try:
        return LogFiles.discover(
            paths,
            format,
            stores,
            format_options,
            schema,
            of_tables=is_list and format is not None,
            is_lenient=is_lenient,
        )
    except PathOfTable as of_table:
        if format is not None or format_options or schema is not None:
            table = of_table.table
            raise ConfigurationError(
                f"format=, format_options= and schema= are of files, and {table.path!r} is {table.kind}. Leave them "
                "out to read the table. To read files of it as they are, give from_event_log a list of them and their "
                "format="
            ) from None
        return table_at(of_table, stores)


def table_at(of_table: PathOfTable, stores: Stores = ENVIRONMENT) -> LakeTable:
    """Return the table that paths name, at its current version.

    Parameters
    ----------
    of_table : PathOfTable
        The path of the table in whose files they were found.
    stores : Stores
        File systems of the paths.

    Raises
    ------
    PathOfTable
        If more than the path is needed to read it: a Hudi table, one of several formats, an Iceberg table that is not
        local, a Delta table in a file system that was given.
    """
    table = of_table.table
    found_anywhere = not isinstance(stores, GivenFileSystem)
    if table.formats == (DELTA,) and (found_anywhere or is_local(table.path)):
        return DeltaTable(table.path, stores if found_anywhere else None)
    if table.formats == (ICEBERG,) and is_local(table.path):
        return IcebergTable(table.path)
    raise of_table


def shown_tables(graph: StreamGraph) -> list[str]:
    """Return a line for each log of a job that is a table: which version or snapshot is read, and in which order."""
    lines = []
    for step in graph.transformations():
        if not isinstance(step, EventLogSource):
            continue
        data = step.data
        with suppress(FlinkcoreError):  # a log that is refused is not read at all
            if isinstance(data, str | list):
                stores = stores_of(step.filesystem)
                data = log_of_paths(data, step.format, stores, step.format_options, step.schema)
            if isinstance(data, LakeTable):
                order = "in order of arrival" if step.log.arrival is not None else f"in {data.order}"
                order = "" if step.log.ordered_by or data is step.data else f", {order}"
                lines.append(f"{step.shown_data}: read as {table_files(data).table_name}{order}")
    return lines

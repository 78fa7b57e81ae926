"""The data files of a table of a lake, whichever its format, as those of a log."""

from collections.abc import Sequence

import pyarrow as pa

from flinkcore.datastream.lake_tables import DeltaTable, IcebergTable, LakeTable
from flinkcore.errors import ConfigurationError
from flinkcore.replay.log.column_ops import Filter, output_schema
from flinkcore.replay.log.delta_files import delta_files
from flinkcore.replay.log.files import LogFile
from flinkcore.replay.log.iceberg_files import iceberg_files
from flinkcore.replay.log.log_sources import LogFiles
from flinkcore.replay.log.plain_columns import plain_schema
from flinkcore.replay.log.stored_columns import StoredColumns


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
    if isinstance(table, DeltaTable):
        files, schema, stored = delta_files(table)
    elif isinstance(table, IcebergTable):
        files, schema, stored = iceberg_files(table)
    else:
        raise ConfigurationError(f"{table} is neither a Delta table nor an Iceberg table")
    output_schema(map(Filter, table.where), plain_schema(schema))
    return LogFiles.of_table(files, schema, where=table.where, stored=stored)

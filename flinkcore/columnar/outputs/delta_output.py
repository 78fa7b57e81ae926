"""A Delta table as what a replay writes, through the library `deltalake`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from flinkcore._internal.io.locations import absolute_location
from flinkcore._internal.io.stores import ENVIRONMENT, Stores
from flinkcore._internal.io.table_directories import TableSearch
from flinkcore._internal.python.extras import library
from flinkcore.columnar.outputs.result_files import require_mode
from flinkcore.columnar.outputs.table_files import (
    PartitionField,
    TableFiles,
    WrittenFile,
    bounds,
    partition_text,
    partition_texts,
)
from flinkcore.columnar.outputs.table_outputs import (
    MODES,
    RUN,
    TableOutputs,
    new_folder,
    require_partition_columns,
    require_partition_types,
)
from flinkcore.columnar.outputs.table_types import delta_type, new_table_schema, require_fitting
from flinkcore.errors import ConfigurationError, SourceError

# The other features of writers ask for more than files; what some of these ask for is looked for in the columns.
_WRITTEN: Final = frozenset(
    [
        *(
            "appendOnly",
            "invariants",
            "checkConstraints",
            "generatedColumns",
            "identityColumns",
            "columnMapping",
        ),
        *("timestampNtz", "changeDataFeed", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"),
    ]
)
_OF_COLUMNS: Final = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
_WITH_SPARK: Final = "take write_parquet(path), and insert the files with Spark"


class DeltaOutput(TableOutputs):
    """A Delta table, new or one that takes the results.

    Parameters
    ----------
    location
        Path or URI.
    results
        Columns of the results.
    mode
        "error", "append", "overwrite" or "overwrite_partitions".
    partition_by
        Columns by which a new table is partitioned; of one that is there, those that it has, or none.
    storage_options
        Options of deltalake.
    stores
        File systems of the data files, and settings for deltalake.
    run
        Name of the run, which its repetition has, too; None if it has none.

    Raises
    ------
    ConfigurationError
        If there is a table, and the mode is "error"; or it is partitioned by other columns, or asks more of who writes
        to it than files.
    SchemaError
        If a column does not fit.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        results: pa.Schema,
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        stores: Stores = ENVIRONMENT,
        run: str | None = None,
    ) -> None:
        self._library = library("deltalake", "delta", "write_delta")
        require_mode(mode, MODES)
        if not isinstance(location, str | os.PathLike) or not os.fspath(location):
            raise ConfigurationError(f"write_delta takes the path of a table, not {location!r}")
        self._location = absolute_location(location)
        self._mode = mode
        self._options = stores.deltalake_options(self._location) | dict(storage_options or {}) or None
        name = f"Delta table {self._location}"
        by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        self._table: Any = None
        if self._library.DeltaTable.is_deltatable(self._location, self._options):
            self._table = self._library.DeltaTable(self._location, storage_options=self._options)
        place = stores.locate(self._location)
        filesystem, directory = place.filesystem, place.path
        if self._table is None:
            schema = new_table_schema(results, delta_type, name)
            require_partition_columns(by, schema)
            self._require_empty(filesystem, directory)
        else:
            if mode == "error":
                raise ConfigurationError(
                    f"{name} is there already: give mode='append', 'overwrite' or 'overwrite_partitions', or another "
                    "path"
                )
            columns = self._table.metadata().partition_columns
            if by and by != columns:
                raise ConfigurationError(
                    f"{name} is partitioned by {columns or 'nothing'}, and not by {by}: leave partition_by out"
                )
            by = columns
            self._require_files_suffice(name)
            schema = pa.schema(self._table.schema().to_arrow())
            require_fitting(results, schema, delta_type, name)
        if mode == "overwrite_partitions" and not by:
            raise ConfigurationError(f"{name} has no partitions: give mode='overwrite'")
        fields = tuple(PartitionField(column, column) for column in by)
        require_partition_types(fields, schema, name)
        folder = new_folder()
        files = TableFiles(name, filesystem, directory.rstrip("/"), folder, schema, fields, False)
        super().__init__(files, run if mode == "append" else None)

    def _require_empty(self, filesystem: Any, directory: str) -> None:
        around = TableSearch().around(filesystem, directory.rstrip("/"), is_file=False)
        if around is not None:
            raise ConfigurationError(
                f"{self._location} lies in {around.path}, which is {around.kind}. Give a path outside of it"
            )
        info = filesystem.get_file_info(directory)
        if info.type == fs.FileType.File or (
            info.type == fs.FileType.Directory and filesystem.get_file_info(fs.FileSelector(directory))
        ):
            raise ConfigurationError(
                f"{self._location} is neither a Delta table nor an empty directory: give another path"
            )

    def _require_files_suffice(self, name: str) -> None:
        features = sorted(set(self._table.protocol().writer_features or ()) - _WRITTEN)
        configuration = self._table.metadata().configuration
        if configuration.get("delta.columnMapping.mode", "none") != "none":
            features.append("columnMapping")
        features += sorted(key for key in configuration if key.startswith("delta.constraints."))
        for field in json.loads(self._table.schema().to_json())["fields"]:
            features += [f"{key} of {field['name']}" for key in _OF_COLUMNS if key in field["metadata"]]
        if features:
            raise ConfigurationError(f"{name} has {', '.join(features)}: {_WITH_SPARK}")
        if self._mode != "append" and configuration.get("delta.appendOnly") == "true":
            raise ConfigurationError(
                f"{name} takes appended rows only (delta.appendOnly): give mode='append'"
            )
        deletes = "deletionVectors" in (self._table.protocol().reader_features or ())
        if self._mode != "append" and deletes and any(True for _ in self._table.deletion_vectors()):
            raise ConfigurationError(
                f"{name} has deletion vectors, and its files cannot be replaced: optimize and purge it first, or "
                f"{_WITH_SPARK}"
            )

    def _commit(self, written: Sequence[WrittenFile]) -> None:
        transactions = library("deltalake.transaction", "delta", "write_delta")
        schema = self._library.Schema.from_arrow(self.files.schema)
        by = [field.column for field in self.files.partitions]
        added = [transactions.AddAction(**self._added(file)) for file in written]
        properties = None
        if self._appended_run is not None:
            properties = transactions.CommitProperties(custom_metadata={RUN: self._appended_run})
        if self._table is None:
            transactions.create_table_with_add_actions(
                self._location,
                schema,
                added,
                "error",
                by,
                storage_options=self._options,
                commit_properties=properties,
            )
        elif self._mode == "overwrite_partitions":
            removed = [transactions.RemoveAction(**each) for each in self._replaced(written)]
            self._replace([*added, *removed], "append", schema, by)
        elif self._mode == "overwrite":
            self._replace(added, "overwrite", schema, by)
        else:
            self._table.create_write_transaction(added, "append", schema, by, commit_properties=properties)

    def _has_run(self, name: str) -> bool:
        if not self._library.DeltaTable.is_deltatable(self._location, self._options):
            return False
        restored: int | None = None
        for commit in self._library.DeltaTable(self._location, storage_options=self._options).history():
            if restored is not None and int(commit["version"]) > restored:
                continue  # undone by a later commit
            if commit.get(RUN) == name:
                return True
            if commit.get("operation") == "RESTORE":
                version = commit.get("operationParameters", {}).get("version")
                restored = -1 if version is None else int(version)
        return False

    def _replace(self, *transaction: Any) -> None:
        """Commit only as the next version: rows that another one has added meanwhile would stay."""
        next_only = self._library.CommitProperties(max_commit_retries=0)
        try:
            self._table.create_write_transaction(*transaction, commit_properties=next_only)
        except Exception as error:
            now = self._library.DeltaTable(self._location, storage_options=self._options).version()
            if now == self._table.version():
                raise
            raise SourceError(
                f"version {self._table.version()} was to be replaced, and version {now} has been committed since"
            ) from error

    def _files_now(self) -> Iterable[str]:
        if not self._library.DeltaTable.is_deltatable(self._location, self._options):
            return []
        files: list[str] = self._library.DeltaTable(self._location, storage_options=self._options).file_uris()
        return files

    def _added(self, file: WrittenFile) -> dict[str, Any]:
        inside = f"{self.files.directory}/{file.path}"
        with self.files.writing():
            footer = pq.read_metadata(inside, filesystem=self.files.filesystem)
            info = self.files.filesystem.get_file_info(inside)
        return {
            "path": file.path,
            "size": info.size,
            "partition_values": {
                field.column: partition_text(value)
                for field, value in zip(self.files.partitions, file.partition, strict=True)
            },
            "modification_time": time.time_ns() // 1_000_000,
            "data_change": True,
            "stats": json.dumps(_statistics(footer)),
        }

    def _replaced(self, written: Iterable[WrittenFile]) -> list[dict[str, Any]]:
        names = [field.column for field in self.files.partitions]
        partitions = {tuple(map(partition_text, file.partition)) for file in written}
        actions = pa.table(self._table.get_add_actions())
        texts = [partition_texts(pc.struct_field(actions.column("partition"), name)) for name in names]
        return [
            {
                "path": unquote(path),
                "data_change": True,
                "deletion_timestamp": time.time_ns() // 1_000_000,
                "size": size,
                "partition_values": dict(zip(names, values, strict=True)),
            }
            for path, size, *values in zip(
                *(actions.column(name).to_pylist() for name in ("path", "size_bytes")), *texts, strict=True
            )
            if tuple(values) in partitions
        ]


def _statistics(footer: Any) -> dict[str, Any]:
    """Return a file's statistics for the log, by which readers skip it: rows, nulls, least and greatest values."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    schema = footer.schema.to_arrow_schema()
    for at, column in enumerate(map(footer.schema.column, range(footer.num_columns))):
        if column.path not in schema.names:
            continue  # of a nested column
        told = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if not all(each is not None and each.has_null_count for each in told):
            continue
        nulls[column.path] = sum(each.null_count for each in told)
        kind = schema.field(column.path).type
        if not pa.types.is_integer(kind) and not pa.types.is_date32(kind):
            continue
        ends = bounds(footer, at)
        if ends and len(ends) == len(told):
            least[column.path] = _told(min(low for low, _ in ends))
            greatest[column.path] = _told(max(high for _, high in ends))
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _told(value: Any) -> Any:
    return value if isinstance(value, int) else value.isoformat()

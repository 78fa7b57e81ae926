"""An Iceberg table as what a replay writes, through the library `pyiceberg`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from flinkcore._internal.python.extras import library
from flinkcore.columnar.outputs.result_files import require_mode
from flinkcore.columnar.outputs.table_files import PartitionField, TableFiles, WrittenFile, bounds
from flinkcore.columnar.outputs.table_outputs import (
    RUN,
    TableOutputs,
    new_folder,
    require_partition_types,
)
from flinkcore.columnar.outputs.table_types import iceberg_type, require_fitting
from flinkcore.datastream.graph.lake_tables import IcebergTable
from flinkcore.errors import ConfigurationError
from flinkcore.log.tables.iceberg_files import arrow_schema, file_system_of_table, opened_table

MODES: Final = ("append", "overwrite", "overwrite_partitions")
_FIELD_ID: Final = "PARQUET:field_id"
_TRANSFORMS: Final = ("identity", "year", "month", "day", "hour")


class IcebergOutput(TableOutputs):
    """An Iceberg table that takes the results.

    Parameters
    ----------
    table
        A `pyiceberg.table.Table`, or the name of a table in the default catalog.
    results
        Columns of the results.
    mode
        "append", "overwrite" or "overwrite_partitions".
    run
        Name of the run, which its repetition has, too; None if it has none.

    Raises
    ------
    ConfigurationError
        If it is not a table, or one that tasks cannot write to.
    SchemaError
        If a column does not fit.
    """

    def __init__(self, table: Any, results: pa.Schema, mode: str = "append", run: str | None = None) -> None:
        library("pyiceberg", "iceberg", "write_iceberg")
        require_mode(mode, MODES)
        if not (isinstance(table, str) and table) and not hasattr(table, "transaction"):
            raise ConfigurationError(
                f"write_iceberg takes a pyiceberg.table.Table, or the name of a table, not {table!r}"
            )
        if isinstance(table, str) and "/" in table:
            raise ConfigurationError(
                f"write_iceberg commits through a catalog, and {table!r} is a path. Give the name of the table in the "
                "default catalog, or catalog.load_table(name)"
            )
        named = IcebergTable(table)
        self._table = opened_table(named)
        self._mode = mode
        self._schema = self._table.schema()
        columns = pa.schema(
            [_with_ids(*each) for each in zip(arrow_schema(self._schema), self._schema.fields, strict=True)]
        )
        require_fitting(results, columns, iceberg_type, named.name)
        fields = tuple(self._partition_field(field, named.name) for field in self._table.spec().fields)
        require_partition_types(fields, columns, named.name)
        if mode == "overwrite_partitions" and not fields:
            raise ConfigurationError(f"{named.name} has no partitions. Give mode='overwrite'")
        if mode == "overwrite_partitions" and any(field.transform != "identity" for field in fields):
            raise ConfigurationError(
                f"{named.name} is partitioned by parts of times. Give mode='overwrite', or delete the partitions "
                "first, and append"
            )
        data = self._table.properties.get("write.data.path", f"{self._table.location().rstrip('/')}/data")
        self._data = data.rstrip("/")
        filesystem, directory = file_system_of_table(self._table, self._data, None)
        files = TableFiles(named.name, filesystem, directory, new_folder(), columns, fields, True)
        super().__init__(files, run if mode == "append" else None)

    def _partition_field(self, field: Any, name: str) -> PartitionField:
        transform = str(field.transform)
        column = self._schema.find_column_name(field.source_id)
        if transform not in _TRANSFORMS or "." in column:
            raise ConfigurationError(
                f"{name} is partitioned by {transform} of {column}. Take write_parquet(path), and insert the files "
                "with Spark"
            )
        return PartitionField(field.name, column, transform)

    def _commit(self, written: Sequence[WrittenFile]) -> None:
        files = [self._data_file(file) for file in written]
        with self._table.transaction() as transaction:
            if self._mode != "append":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # it says where there is nothing to delete
                    transaction.delete(self._replaced(written))
            properties = {} if self._appended_run is None else {RUN: self._appended_run}
            with transaction.update_snapshot(properties).fast_append() as append:
                for file in files:
                    append.append_data_file(file)

    def _has_run(self, name: str) -> bool:
        self._table.refresh()
        current = self._table.current_snapshot()
        history = _module("table.snapshots").ancestors_of(current, self._table.metadata)
        return any(each.summary is not None and each.summary.get(RUN) == name for each in history)

    def _files_now(self) -> Iterable[str]:
        self._table.refresh()
        return [str(task.file.file_path) for task in self._table.scan().plan_files()]

    def _data_file(self, file: WrittenFile) -> Any:
        manifest = _module("manifest")
        reading = _module("io.pyarrow")
        inside = f"{self.files.directory}/{file.path}"
        with self.files.writing():
            footer = pq.read_metadata(inside, filesystem=self.files.filesystem)
            info = self.files.filesystem.get_file_info(inside)
        ids = reading.parquet_path_to_id_mapping(self._schema)
        told = reading.data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer,
            stats_columns=self._statistics_plan(footer, ids),
            parquet_column_mapping=ids,
        )
        return manifest.DataFile.from_args(
            content=manifest.DataFileContent.DATA,
            file_path=f"{self._data}/{file.path}",
            file_format=manifest.FileFormat.PARQUET,
            partition=_module("typedef").Record(*(_stored(value) for value in file.partition)),
            file_size_in_bytes=info.size,
            sort_order_id=None,
            spec_id=self._table.spec().spec_id,
            equality_ids=None,
            key_metadata=None,
            **told.to_serialized_dict(),
        )

    def _statistics_plan(self, footer: Any, ids: Mapping[str, int]) -> Any:
        """Return the statistics of a file's columns for the metadata, without bounds that Python lacks."""
        reading = _module("io.pyarrow")
        plan = reading.compute_statistics_plan(self._schema, self._table.properties)
        columns = [plan[ids[footer.schema.column(at).path]] for at in range(footer.num_columns)]
        unbounded = {
            f"write.metadata.metrics.column.{column.column_name}": "counts"
            for at, column in enumerate(columns)
            if bounds(footer, at) is None and column.mode.type != "none"
        }
        return reading.compute_statistics_plan(self._schema, {**self._table.properties, **unbounded})

    def _replaced(self, written: Sequence[WrittenFile]) -> Any:
        """Return the condition of the rows that the results replace."""
        expressions = _module("expressions")
        if self._mode == "overwrite":
            return expressions.AlwaysTrue()
        conditions = []
        for values in {file.partition for file in written}:
            conditions.append(
                reduce(
                    expressions.And,
                    [
                        expressions.EqualTo(field.column, _stored(value))
                        if value.is_valid
                        else expressions.IsNull(field.column)
                        for field, value in zip(self.files.partitions, values, strict=True)
                    ],
                )
            )
        nothing = expressions.AlwaysFalse()
        return expressions.Or(nothing, nothing, *conditions)  # balanced, so that visits do not nest deeply


def _module(name: str) -> Any:
    return library(f"pyiceberg.{name}", "iceberg", "write_iceberg")


def _with_ids(column: pa.Field, field: Any) -> pa.Field:
    """Return the column with the field id that files have, and whether it takes nulls; also what is nested in it."""
    return pa.field(
        field.name,
        _with_nested_ids(column.type, field.field_type),
        not field.required,
        {_FIELD_ID: str(field.field_id)},
    )


def _with_nested_ids(kind: pa.DataType, of: Any) -> pa.DataType:
    if str(of) == "uuid":
        return pa.uuid()
    if pa.types.is_struct(kind):
        return pa.struct([_with_ids(*each) for each in zip(kind, of.fields, strict=True)])
    if pa.types.is_list(kind):
        return pa.list_(_with_ids(kind.value_field, of.element_field))
    if pa.types.is_map(kind):
        return pa.map_(_with_ids(kind.key_field, of.key_field), _with_ids(kind.item_field, of.value_field))
    return kind


def _stored(value: pa.Scalar) -> Any:
    """Return a value as Iceberg's metadata have it: dates and times as numbers."""
    if value.is_valid and pa.types.is_temporal(value.type):
        return pa.array([value]).view(f"int{value.type.bit_width}")[0].as_py()
    return value.as_py()

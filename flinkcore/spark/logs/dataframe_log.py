"""Spark DataFrames as logs: their columns, and what Spark computes of them before the replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as F
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_schema

from flinkcore._internal.arrow.column_ops import COMPUTED_PREFIX
from flinkcore._internal.arrow.nested_fields import column_of, nested_field
from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore.common.split_origin import PARTITION
from flinkcore.datastream.graph.transformations import LogData
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.decoding.known_shapes import RecordColumns
from flinkcore.log.files.topic_paths import COLUMNS, TOPIC, is_partition
from flinkcore.log.order.row_order import POSITION

# Spark 4 and later require a time zone for timestamps; their values do not depend on it.
_SCHEMA_ZONE: Final = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
_BY_BYTES: Final = "UTF8_BINARY"
_NEVER_TOLD_APART: Final = (
    types.FloatType,
    types.DoubleType,
    *([types.VariantType] if hasattr(types, "VariantType") else []),
)


class DataFrameLog(LogData):
    """A DataFrame as the data of an `EventLogSource`: as Arrow data it has columns, but no rows.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
    ordered_by : tuple of pyspark.sql.Column
        Columns that order its rows, before their content does; empty if they have no order of their own.
    """

    def __init__(self, dataframe: Any, ordered_by: tuple[Any, ...] = ()) -> None:
        self.dataframe = dataframe
        self.ordered_by = ordered_by

    @property
    def schema(self) -> pa.Schema:
        """Columns of the log as they come to Python."""
        schema = log_schema(self.dataframe)
        return schema.append(pa.field(POSITION, pa.int64())) if self.ordered_by else schema

    def rows(self, names: Iterable[str]) -> Any:
        """Return the DataFrame with columns of the log and nested fields; in its order, if it has one."""
        wanted = list(dict.fromkeys(names))
        schema = log_schema(self.dataframe)
        rows = self.dataframe.select(*(_column(schema, name) for name in wanted if name != POSITION))
        if not self.ordered_by:
            return rows
        # Rows that are equal in all columns that are read may come in any order.
        by_content = [_told_apart(F.col(quoted(field.name)), field.dataType) for field in rows.schema]
        ordered = rows.sort(*self.ordered_by, *by_content)
        return ordered.withColumn(POSITION, F.monotonically_increasing_id()).select(*map(quoted, wanted))

    def whole_columns(self, names: Iterable[str]) -> Any:
        """Return the DataFrame with columns of the log, and those that hold nested fields in place of these."""
        schema = log_schema(self.dataframe)
        return self.dataframe.select(*map(quoted, dict.fromkeys(column_of(schema, name) for name in names)))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.schema.empty_table().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return f"Spark DataFrame[{', '.join(self.dataframe.columns)}]"

    def has_rows_of(self, other: DataFrameLog) -> bool:
        """Return whether both have the same rows in the same order."""
        orders = zip(self.ordered_by, other.ordered_by, strict=False)
        return (
            self.dataframe is other.dataframe
            and len(self.ordered_by) == len(other.ordered_by)
            and all(own is its for own, its in orders)
        )

    @property
    def position(self) -> str | None:
        return POSITION if self.ordered_by else None

    @property
    def order(self) -> str:
        return "the order of their positions" if self.ordered_by else "Spark's order"

    def doubt_of_columns(self) -> str:
        files = [file for file in self.dataframe.inputFiles() if file.endswith(".parquet")]
        if len(files) < 2:
            return ""
        return (
            "Spark takes the columns of such a DataFrame from one of its Parquet files: if others have more, read the "
            "log by its path, from_event_log(path), or with spark.read.option('mergeSchema', True)"
        )

    def filter(self, condition: Any) -> DataFrameLog | None:
        """Return the log with the rows for which a condition of Spark, or one as text, is true."""
        if not isinstance(condition, str) and not is_spark_column(condition):
            return None
        return DataFrameLog(self.dataframe.filter(condition), self.ordered_by)

    def with_columns(self, expressions: Mapping[str, Any]) -> DataFrameLog | None:
        """Return the log with columns of Spark, new or in the place of others."""
        if not all(map(is_spark_column, expressions.values())):
            return None
        replaced = [name for name in expressions if name in self.dataframe.columns]
        if self.ordered_by and replaced:
            raise ConfigurationError(
                f"column {replaced[0]!r} is computed after position=, which orders the rows as they were recorded. "
                "Give the computed column another name"
            )
        return DataFrameLog(self.dataframe.withColumns(dict(expressions)), self.ordered_by)

    def with_column_of(self, setting: str, expression: Any) -> tuple[DataFrameLog, str]:
        """Return the log with the column that a setting names by `F.col` or computes, and that column's name.

        Parameters
        ----------
        setting : str
            "timestamp", "arrival" or "split".
        expression : pyspark.sql.Column
        """
        names = self.dataframe.select(expression).columns
        if len(names) != 1:
            raise ConfigurationError(f"{setting}= takes one column, and {expression} is {len(names)} of them")
        (name,) = names
        is_name = str(expression) == f"Column<'{name}'>" and self.dataframe.columns.count(name) == 1
        if is_name and not self._is_constant(expression, name):
            return self, name
        computed = f"{COMPUTED_PREFIX}{setting}: {name}"
        return DataFrameLog(self.dataframe.withColumns({computed: expression}), self.ordered_by), computed

    def partition_column(self) -> Any:
        """Return the partition that the directories of its files name (see `PARTITION`), or None.

        Returns
        -------
        str, pyspark.sql.Column or None
            A column; where directories ``topic=...`` name several topics, texts such as ``clicks/3``.
        """
        columns: list[str] = [name for name in self.dataframe.columns if name.lower() in COLUMNS]
        paths: list[str] = self.dataframe.inputFiles() if columns else []
        for column in columns:
            values = _directories(column, paths)
            if values and all(value is not None and is_partition(column, value) for value in values):
                for topic in self.dataframe.columns:
                    if topic.lower() == TOPIC and len(set(_directories(topic, paths))) > 1:
                        return _split_of(F.col(quoted(topic)), F.col(quoted(column)))
                return column
        return None

    def with_places(
        self, shape: RecordColumns, timestamp: Any, split: Any, position: Any
    ) -> tuple[DataFrameLog, Any, Any, Any]:
        """Return the log with columns of Kafka's records, and settings that name them as far as these are not given.

        Parameters
        ----------
        shape : RecordColumns
            Columns of the records.
        timestamp, split, position
            As given to :meth:`SparkExecutionEnvironment.from_event_log`.
        """
        data = self
        if timestamp is None:
            data, timestamp = data.with_column_of("timestamp", _field_at(shape.timestamp))
        if split is PARTITION:
            if position is None:
                position = _field_at(shape.offset)
            if shape.topic is not None:
                split = _split_of(_field_at(shape.topic), _field_at(shape.partition))
            else:
                split = data.partition_column()
                split = _field_at(shape.partition) if split is None else split
        return data, timestamp, split, position

    def with_order(self, position: Iterable[Any]) -> DataFrameLog:
        """Return the log in an order.

        Parameters
        ----------
        position : iterable of SortKey or pyspark.sql.Column
            The first one counts most.
        """
        schema = log_schema(self.dataframe)
        ordered_by = tuple(
            _sorted_by(schema, given) if isinstance(given, SortKey) else given for given in position
        )
        self.dataframe.sort(*ordered_by)  # which refuses columns that there are not
        return DataFrameLog(self.dataframe, ordered_by)

    def _is_constant(self, expression: Any, name: str) -> bool:
        """Return whether an expression written as a name is a literal, and not the column of that name.

        After an outer join columns may be null, and literals may not. Spark would log an error for an analysis that
        fails, as it does without the column.
        """
        one_row = self.dataframe.sparkSession.range(1).select()
        (field,) = one_row.join(self.dataframe, F.lit(True), "left").select(expression).schema
        return not field.nullable


def is_spark_column(value: object) -> bool:
    """Return whether it is a column expression of Spark, with or without Connect."""
    kind = type(value)
    return kind.__name__ == "Column" and kind.__module__.startswith("pyspark.sql.")


def log_schema(dataframe: Any) -> pa.Schema:
    """Return the schema of a Spark DataFrame as it comes to Python.

    Raises
    ------
    SchemaError
        If Spark gives values of a column to nobody outside, such as intervals of months.
    """
    return arrow_schema(dataframe.schema)


def arrow_schema(schema: types.StructType) -> pa.Schema:
    """Return a schema of Spark as columns come to Python; a SchemaError as of `log_schema`."""
    try:
        return plain_schema(to_arrow_schema(schema, **_SCHEMA_ZONE))
    except PySparkTypeError as error:
        raise SchemaError(_refused_columns(schema)) from error


def _refused_columns(schema: types.StructType) -> str:
    refused = []
    for field in schema:
        try:
            to_arrow_schema(types.StructType([field]), **_SCHEMA_ZONE)
        except PySparkTypeError:
            refused.append(field)
    told = ", ".join(f"{field.name!r} ({field.dataType.simpleString()})" for field in refused)
    names = ", ".join(repr(field.name) for field in refused)
    return f"Spark gives Python no values of the column {told}: leave it out with .drop({names}), or cast it before"


def _directories(column: str, paths: Iterable[str]) -> list[str | None]:
    """Return the values that directories of a column have in paths; None where there is no such directory."""
    found = map(re.compile(rf"/{re.escape(column)}=([^/]+)/", re.IGNORECASE).search, paths)
    return [None if match is None else match[1] for match in found]


def _split_of(topic: Any, partition: Any) -> Any:
    """Return the split of a topic and a partition, such as ``clicks/3``."""
    return F.concat(topic.cast("string"), F.lit("/"), partition.cast("string"))


def _field_at(path: str) -> Any:
    """Return a column, or a field of a column of structs."""
    return F.col(".".join(map(quoted, path.split("."))))


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def with_field_columns(dataframe: Any, names: Iterable[str]) -> Any:
    """Return a DataFrame with those of the names that mean nested fields as further columns."""
    dotted = [name for name in dict.fromkeys(names) if "." in name and name not in dataframe.columns]
    if not dotted:
        return dataframe
    schema = log_schema(dataframe)
    found = [name for name in dotted if nested_field(schema, name) is not None]
    return dataframe.select("*", *(_column(schema, name) for name in found)) if found else dataframe


def _column(schema: pa.Schema, name: str) -> Any:
    """Return a nested field as a column of its dotted name, or the name of a column, as Spark takes either."""
    found = nested_field(schema, name)
    if found is None:
        return quoted(name)
    column = F.col(quoted(found.column))
    for step in found.path:
        column = column.getField(step)
    return column.alias(name)


def _sorted_by(schema: pa.Schema, key: SortKey) -> Any:
    column = _column(schema, key.column)
    column = F.col(column) if isinstance(column, str) else column
    return column.desc() if key.is_descending else column


def _told_apart(column: Any, kind: types.DataType) -> Any:
    """Return a column by which Spark sorts all values apart that differ.

    Maps it cannot sort, zeros of both signs are one to it, and so are texts that a collation takes for equal.
    """
    if _are_told_apart(kind):
        return column
    if isinstance(kind, types.ArrayType):
        return F.transform(column, lambda item: _told_apart(item, kind.elementType))
    if isinstance(kind, types.StructType):
        parts = [_told_apart(column.getField(field.name), field.dataType) for field in kind]
        return F.when(column.isNotNull(), F.struct(*parts))
    if isinstance(kind, types.MapType):
        entry = types.StructType(
            [types.StructField("key", kind.keyType), types.StructField("value", kind.valueType)]
        )
        return _told_apart(F.map_entries(column), types.ArrayType(entry))
    if isinstance(kind, types.FloatType | types.DoubleType):
        return F.struct(column, F.when(column == 0, column.cast("string")))
    if isinstance(kind, types.StringType):
        return F.collate(column, _BY_BYTES)
    return column.cast("string")


def _are_told_apart(kind: types.DataType) -> bool:
    if isinstance(kind, types.ArrayType):
        return _are_told_apart(kind.elementType)
    if isinstance(kind, types.StructType):
        return all(_are_told_apart(field.dataType) for field in kind)
    if isinstance(kind, types.StringType):
        return getattr(kind, "collation", _BY_BYTES) == _BY_BYTES
    return isinstance(kind, types.AtomicType) and not isinstance(kind, _NEVER_TOLD_APART)

"""Jobs without an operator as columns of Spark: they need no watermark, so Spark computes their DataFrames alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from flinkcore._internal.arrow.column_ops import (
    HIDDEN_PREFIX,
    ColumnOp,
    Filter,
    Select,
    WithColumns,
    column_behind,
    shown_column,
)
from flinkcore._internal.arrow.expression_trees import FieldNode, expression_tree
from flinkcore._internal.arrow.expressions import ColumnExpression, Expression, is_expression
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.event_log import MAX_ARRIVAL_MS
from flinkcore.columnar.operator_plans.forward import Forward
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings
from flinkcore.datastream.graph.transformations import EventLogSource
from flinkcore.errors import SchemaError
from flinkcore.log.event_reader import arrival_column
from flinkcore.log.formats.columnar_formats import ParquetFormat
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.columns.arrow_expressions import spark_value
from flinkcore.spark.columns.function_calls import SessionSettings
from flinkcore.spark.columns.spark_types import SparkSchema
from flinkcore.spark.columns.spark_values import SparkValue
from flinkcore.spark.logs.dataframe_log import DataFrameLog, log_schema, quoted
from flinkcore.spark.logs.parquet_footers import lie_between
from flinkcore.spark.logs.parquet_scan import parquet_files
from flinkcore.spark.logs.plan_nodes import NotJustFiles
from flinkcore.spark.logs.spark_log import columns_read
from flinkcore.spark.sessions.session import is_classic

_ARRIVAL: Final = f"{HIDDEN_PREFIX}recorded_arrival"
_SPLIT: Final = f"{HIDDEN_PREFIX}recorded_split"
_IN_PATHS: Final = frozenset("*?[]{}\\")
"""Characters that are patterns to Spark."""


class NotJustColumns(Exception):
    """A job needs more than columns of Spark; says why."""


class _Times(NamedTuple):
    """Times that each row must have.

    Parameters
    ----------
    what : str
    column : str
        Column that has them after some steps.
    shown : str
        Name of it in messages.
    of_log : str or None
        Column of the log that it is, or None if it is computed.
    unit : str or None
        Unit of numbers.
    least, most : int
        Bounds of numbers.
    """

    what: str
    column: str
    shown: str
    of_log: str | None
    unit: str | None
    least: int
    most: int


class _RowsColumn(NamedTuple):
    """A column of the rows, whose column of Spark is made where it is needed: that takes about 20 calls of the JVM.

    Parameters
    ----------
    name : str
        Name that it has in the rows.
    type : pyarrow.DataType
        As of `SparkValue`.
    failing : frozenset of str
        As of `SparkValue`.
    """

    name: str
    type: pa.DataType
    failing: frozenset[str] = frozenset()

    @property
    def column(self) -> Column:
        """The column of Spark."""
        return F.col(quoted(self.name))

    @property
    def value(self) -> SparkValue:
        """The same as a value of expressions."""
        return SparkValue(self.column, self.type, self.failing)


class _Values(Mapping[str, SparkValue]):
    """The columns of the rows as values of expressions, each made where an expression has it."""

    def __init__(self, columns: Mapping[str, _RowsColumn]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> SparkValue:
        return self._columns[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def has_no_operator(plan: JobPlan) -> bool:
    """Return whether a job ends with logs and steps over their columns."""
    return len(plan.stages) == 1 and isinstance(plan.operator, Forward)


def job_columns(
    spark: Any,
    plan: JobPlan,
    sources: Sequence[EventLogSource],
    checkpoints: CheckpointSettings = NO_CHECKPOINTS,
) -> Any:
    """Return the results of a job as a DataFrame that Spark computes alone.

    It has the rows that a replay returns: rows that ``on_bad_row`` refuses are an error or left out.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    plan : JobPlan
        The job, as it is planned of its graph.
    sources : sequence of EventLogSource
        Source of each log.
    checkpoints : CheckpointSettings

    Raises
    ------
    NotJustColumns
        If the job has an operator, or Spark may give other rows; says why.
    """
    if not has_no_operator(plan):
        raise NotJustColumns("it has an operator")
    if checkpoints != NO_CHECKPOINTS:
        raise NotJustColumns("it has a checkpoint")
    if not is_classic(spark):
        raise NotJustColumns("Spark Connect does not show plans")
    if plan.stages[0].emitted_at is not None:
        raise NotJustColumns("its rows have the time of their emission")
    settings = SessionSettings.of(spark)
    schema = plan.tight_result_schema()
    wanted = SparkSchema(schema).struct_type
    parts = []
    try:
        for log, source in zip(plan.logs, sources, strict=True):
            rows = _LogColumns.of(spark, log, source, settings)
            parts.append(rows.results(schema.names))
    except NotJustFiles as reason:
        raise NotJustColumns(str(reason)) from reason
    except PySparkException as error:
        raise NotJustColumns(f"Spark refuses it: {str(error).splitlines()[0]}") from error
    for part in parts:
        if [each.dataType for each in part.schema] != [each.dataType for each in wanted]:
            raise NotJustColumns("its columns would be of other types")
    return reduce(lambda some, more: some.union(more), parts)


@dataclass
class _LogColumns:
    """The rows of a log after some steps.

    Attributes
    ----------
    plan : LogPlan
    rows : pyspark.sql.DataFrame
    columns : dict of str to _RowsColumn
        Their columns by the names that they have after the steps, hidden ones included.
    files : LogFiles or None
        The files that have the rows, where they are just these.
    settings : SessionSettings
    """

    plan: LogPlan
    rows: Any
    columns: dict[str, _RowsColumn]
    files: LogFiles | None
    settings: SessionSettings

    @classmethod
    def of(cls, spark: Any, plan: LogPlan, source: EventLogSource, settings: SessionSettings) -> _LogColumns:
        """Return the rows of a log, with hidden columns for its arrivals and splits."""
        log = plan.log
        for holds, why in (
            (log.cut is not None, "the log is cut at an arrival"),
            (plan.is_by_element, "its watermark generator is called event by event"),
            (bool(log.decoding), "values of the log are decoded"),
            (bool(log.ordered_by), "the rows of the log have positions"),
            (plan.timestamp_range != (MIN_TIMESTAMP, MAX_TIMESTAMP), "not all event times are allowed"),
        ):
            if holds:
                raise NotJustColumns(why)
        names = list(dict.fromkeys(columns_read(plan)))
        schema = pa.schema([log.schema.field(name) for name in names])
        _refuse_alike_names(names)
        files: LogFiles | None = None
        if isinstance(source.data, DataFrameLog):
            rows = source.data.dataframe.select(*map(quoted, names))
            try:
                files = parquet_files(rows).files
            except NotJustFiles:
                if not rows._jdf.queryExecution().analyzed().deterministic():
                    raise NotJustColumns("its DataFrame may have other rows each time") from None
        else:
            rows = _rows_of_files(spark, log.source, schema)
            files = parquet_files(rows).files
        if any("collate" in each.dataType.simpleString() for each in rows.schema):
            raise NotJustColumns("Spark compares text of the log by a collation")
        if log_schema(rows).types != list(SparkSchema(schema).arrow.types):
            raise NotJustColumns("Spark gives columns of the log other types")
        read = {field.name: _RowsColumn(field.name, field.type) for field in schema}
        columns = cls(plan, rows, read, files, settings)
        arrival, made = arrival_column(log)
        for op in made:
            columns.apply(op)
        if arrival is not None:
            columns.apply(WithColumns(((_ARRIVAL, pc.field(arrival)),)))
        if isinstance(log.split, str):
            columns.apply(WithColumns(((_SPLIT, pc.field(log.split)),)))
        return columns

    def results(self, names: Sequence[str]) -> Any:
        """Return the results that come of the log."""
        for op in self.plan.before:
            self.apply(op)
        self._take_bad_rows_out()
        for op in self.plan.after:
            self.apply(op)
        return self._selected({name: self.columns[name] for name in names})

    def apply(self, op: ColumnOp) -> None:
        """Do a step over columns."""
        if isinstance(op, Filter):
            condition = self._value(op.predicate)
            if condition.type != pa.bool_():
                raise NotJustColumns(f"{op.predicate} is not a condition")
            if any(each.failing - condition.failing for each in self.columns.values()):
                raise NotJustColumns("Spark may filter rows out before a column fails for them")
            self.rows = self.rows.where(condition.column)
            return
        if not isinstance(op, Select | WithColumns):
            raise NotJustColumns("its columns are decoded")
        made: dict[str, _RowsColumn | SparkValue] = {
            name: self._column(expression) for name, expression in op.expressions
        }
        if isinstance(op, Select):
            hidden = [name for name in self.columns if name.startswith(HIDDEN_PREFIX)]
            made = {**{name: self.columns[name] for name in (*hidden, *op.names)}, **made}
        else:
            made = {**self.columns, **made}
        _refuse_alike_names(made)
        if any(isinstance(each, SparkValue) for each in made.values()):
            self.rows = self._selected(made)
            made = {name: _RowsColumn(name, each.type, each.failing) for name, each in made.items()}
        self.columns = {name: each for name, each in made.items() if isinstance(each, _RowsColumn)}

    def _selected(self, made: Mapping[str, _RowsColumn | SparkValue]) -> Any:
        """Return rows of some columns."""
        return self.rows.select(
            *(
                quoted(name)
                if isinstance(each, _RowsColumn) and each.name == name
                else each.column.alias(name)
                for name, each in made.items()
            )
        )

    def _column(self, expression: Expression) -> _RowsColumn | SparkValue:
        """Return a column of the rows as it is, and else the value of an expression."""
        if not isinstance(expression, ColumnExpression):
            node = expression_tree(expression)
            if isinstance(node, FieldNode) and len(node.path) == 1 and node.path[0] in self.columns:
                found = self.columns[node.path[0]]
                if not pa.types.is_null(found.type):
                    return found
        return self._value(expression)

    def _value(self, expression: Expression) -> SparkValue:
        value = spark_value(expression, _Values(self.columns), self.settings)
        if value is None or pa.types.is_null(value.type):
            raise NotJustColumns(f"Spark may give another value of {expression}")
        return value

    def _take_bad_rows_out(self) -> None:
        """Treat the rows that a replay refuses as ``on_bad_row`` says."""
        for reason, shown, is_bad in self._faults():
            if self.plan.log.on_bad_row != "fail":
                self.rows = self.rows.where(~is_bad)
                continue
            message = (
                f"{reason} (column {shown!r}); repair the log, filter such rows out before timestamps are assigned, or "
                'let on_bad_row="drop" count them, or an OutputTag collect them. DataError: run execute().to_arrow() '
                "to see the row"
            )
            self.rows = self.rows.where(F.when(is_bad, F.raise_error(F.lit(message))).otherwise(F.lit(True)))

    def _faults(self) -> Iterator[tuple[str, str, Column]]:
        """Yield faults of rows, those left out of which no row is."""
        log, before = self.plan.log, self.plan.before
        shown, _ = shown_column(log.timestamp, before)
        behind = column_behind(log.timestamp, before)
        times = [
            _Times(
                "timestamp",
                log.timestamp,
                shown,
                behind,
                log.timestamp_unit,
                MIN_TIMESTAMP + 1,
                MAX_TIMESTAMP,
            )
        ]
        if log.arrival is not None:
            of_log = None if is_expression(log.arrival) else log.arrival
            times.append(
                _Times(
                    *("arrival", _ARRIVAL, str(log.arrival), of_log, log.arrival_unit),
                    *(-MAX_ARRIVAL_MS, MAX_ARRIVAL_MS),
                )
            )
        for time in times:
            column = self.columns[time.column]
            kind = column.type
            is_number = pa.types.is_signed_integer(kind) and time.unit in (None, "ms")
            if not is_number and not pa.types.is_timestamp(kind) and not pa.types.is_date32(kind):
                raise NotJustColumns(f"the {time.what} is {kind}")
            if self._is_proven(time.of_log, (time.least, time.most) if is_number else None):
                continue
            yield f"null {time.what}", time.shown, column.column.isNull()
            if is_number:
                outside = (column.column < time.least) | (column.column > time.most)
                yield f"{time.what} out of range", time.shown, F.coalesce(outside, F.lit(False))
        if isinstance(log.split, str) and not self._is_proven(log.split, None):
            yield "null split", log.split, self.columns[_SPLIT].column.isNull()

    def _is_proven(self, name: str | None, within: tuple[int, int] | None) -> bool:
        """Return whether statistics of the files say that no value of a column of the log is null or out of range."""
        return self.files is not None and name is not None and lie_between(self.files, name, within)


def _refuse_alike_names(names: Any) -> None:
    """To Spark, names that differ in case are one."""
    if len({name.lower() for name in names}) < len(list(names)):
        raise NotJustColumns("names of columns differ only in case")


def _has_half_floats(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_half_floats(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_float16(kind))


def _rows_of_files(spark: Any, source: Any, schema: pa.Schema) -> Any:
    """Return the columns of files as Spark reads them."""
    if not isinstance(source, LogFiles) or not isinstance(source.format, ParquetFormat):
        raise NotJustColumns("the log is not in Parquet files")
    if source.table is not None or source.where or source.given.types:
        raise NotJustColumns("the files are those of a table, or their columns have given types")
    if not source.files:
        raise NotJustColumns("the log has no files")
    of_paths = {name for file in source.files for name, _ in file.partition}
    if of_paths & set(schema.names):
        raise NotJustColumns("a column is in the paths of the files")
    paths = [file.path for file in source.files]
    if any(file.filesystem.type_name != "local" for file in source.files):
        raise NotJustColumns("the files are not local")
    if any(_IN_PATHS & set(path) for path in paths):
        raise NotJustColumns("paths of files have patterns in them")
    first = source.files[0]
    written = pq.read_schema(first.path, filesystem=first.filesystem)
    if any(_has_half_floats(field.type) for field in written if field.name in schema.names):
        raise NotJustColumns("Spark reads no float16")
    try:
        struct = SparkSchema(schema).struct_type
    except SchemaError as error:
        raise NotJustColumns(str(error)) from error
    rows = spark.read.schema(struct).parquet(*paths).select(*map(quoted, schema.names))
    if len(rows.inputFiles()) != len(paths):
        raise NotJustColumns("Spark takes other files")
    return rows

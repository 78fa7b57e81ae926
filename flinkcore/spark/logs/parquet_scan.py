"""DataFrames that are Parquet files: their plans select, rename and filter what Spark would read from these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow import fs
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from flinkcore._internal.arrow.column_ops import expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.errors import SourceError
from flinkcore.log.files.log_files import LogFile, files_now
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.logs.dataframe_log import log_schema
from flinkcore.spark.logs.parquet_footers import ParquetFooters, RebaseModes
from flinkcore.spark.logs.plan_expressions import (
    NotJustFiles,
    PlanColumn,
    attribute_id,
    conditions_of,
    kind_of,
    literal_of,
    python_value,
    single_type,
)

_PACKAGE: Final = "org.apache.spark.sql.execution.datasources"
_PARQUET: Final = f"{_PACKAGE}.parquet.ParquetFileFormat"
_LISTINGS: Final = (f"{_PACKAGE}.InMemoryFileIndex", f"{_PACKAGE}.CatalogFileIndex")
_OPTIONS: Final = frozenset(
    {
        "basepath",
        "compression",
        "datetimerebasemode",
        "int96rebasemode",
        "mergeschema",
        "modifiedafter",
        "modifiedbefore",
        "path",
        "pathglobfilter",
        "paths",
        "recursivefilelookup",
        "serialization.format",
    }
)
"""Options that determine which files are read and what columns they have, and the modes that `RebaseModes` has."""

_IGNORED: Final = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.int96TimestampConversion",
)
"""Settings with which Spark reads other rows, columns or values."""

_OF_FILES: Final = "of files: "
"""Begins what conditions call a column of the files where the log has another one of that name."""


def parquet_files(dataframe: Any) -> LogFiles:
    """Return the files of a DataFrame as a log: the same rows and columns, in another order.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame

    Raises
    ------
    NotJustFiles
        If it is not certain that Arrow reads from files what Spark does; says why.
    """
    if not hasattr(dataframe, "_jdf"):
        raise NotJustFiles("Spark Connect does not show plans")
    try:
        return _Scan.of(dataframe).files()
    except Py4JError as error:  # a vendor's Spark may have plans of its own
        raise NotJustFiles(f"its plan cannot be read: {str(error).splitlines()[0]}") from error


@dataclass
class _Scan:
    """A plan that selects and filters columns of files.

    Attributes
    ----------
    dataframe : pyspark.sql.DataFrame
    relation
        Spark's ``HadoopFsRelation``.
    columns : dict of str to str
        Columns of the files by the ids of attributes.
    values : dict of str to (value, pyarrow.DataType)
        Constants by the ids of attributes.
    computed : dict of str to str
        Expressions that Spark computes, as SQL, by the ids of attributes.
    filters : list
        Conditions over attributes.
    output : list of (str, str)
        Names of the DataFrame's columns, and their attributes' ids.
    """

    dataframe: Any
    relation: Any
    columns: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[Any, pa.DataType]] = field(default_factory=dict)
    computed: dict[str, str] = field(default_factory=dict)
    filters: list[Any] = field(default_factory=list)
    output: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, dataframe: Any) -> _Scan:
        """Take the optimised plan of a DataFrame apart."""
        plan = dataframe._jdf.queryExecution().optimizedPlan()
        output = [(attribute.name(), attribute_id(attribute)) for attribute in _items(plan.output())]
        steps = []
        while kind_of(plan) in ("Project", "Filter"):
            steps.append(plan)
            plan = plan.child()
        if kind_of(plan) != "LogicalRelation":
            raise NotJustFiles(f"its plan has the step {kind_of(plan)}")
        scan = cls(dataframe, plan.relation(), output=output)
        scan._check_relation()
        in_files = set(plan.relation().schema().fieldNames())
        for attribute in _items(plan.output()):
            if attribute.name() in in_files:
                scan.columns[attribute_id(attribute)] = attribute.name()
            else:
                scan.computed[attribute_id(attribute)] = "it tells of the files"
        for step in reversed(steps):
            if kind_of(step) == "Filter":
                scan.filters.append(step.condition())
            else:
                for expression in _items(step.projectList()):
                    scan._add(expression)
        return scan

    def _check_relation(self) -> None:
        relation = self.relation
        if not reads_plain_parquet(relation):
            raise NotJustFiles("it is not read from Parquet files")
        if _class(relation.location()) not in _LISTINGS:
            raise NotJustFiles(f"its files are listed by {_class(relation.location())}")
        data, partition = (
            {name.lower() for name in schema.fieldNames()}
            for schema in (relation.dataSchema(), relation.partitionSchema())
        )
        if data & partition:
            raise NotJustFiles(f"the files have columns that are partitions, too: {sorted(data & partition)}")
        unknown = sorted(self._options().keys() - _OPTIONS)
        if unknown:
            raise NotJustFiles(f"the files are read with the option {unknown[0]}")
        for setting in _IGNORED:
            if self._setting(setting) != "false":
                raise NotJustFiles(f"{setting} is set")

    def _options(self) -> dict[str, str]:
        return {option._1().lower(): option._2() for option in _items(self.relation.options().toSeq())}

    def _setting(self, name: str) -> str:
        return str(self.dataframe.sparkSession.conf.get(name))

    def _add(self, expression: Any) -> None:
        """Note what an item of a projection gives."""
        name = attribute_id(expression)
        if kind_of(expression) == "AttributeReference":
            return
        given = expression.child() if kind_of(expression) == "Alias" else expression
        if kind_of(given) == "Literal":
            self.values[name] = literal_of(given)
        elif kind_of(given) == "AttributeReference" and attribute_id(given) in self.columns:
            self.columns[name] = self.columns[attribute_id(given)]
        elif kind_of(given) == "AttributeReference" and attribute_id(given) in self.values:
            self.values[name] = self.values[attribute_id(given)]
        else:
            self.computed[name] = str(given.sql())

    def files(self) -> LogFiles:
        """Return the files as a log."""
        log = log_schema(self.dataframe)
        if len(set(log.names)) < len(log.names):
            raise NotJustFiles("it has several columns of one name")
        values = {name: self.values[each][0] for name, each in self.output if each in self.values}
        read = {name: self._column(name, each) for name, each in self.output if name not in values}
        where, of_conditions = self._conditions(read, values)
        types = {name: self._arrow_type(column) for name, column in of_conditions.items()}
        schema = pa.schema([*log, *(each for each in types.items() if each[0] not in log.names)])
        read.update(of_conditions)
        for column in _spark_schema(self.relation.schema()):
            if column.name in read.values():
                _check_column(column)
        partitions = list(self.relation.partitionSchema().fieldNames())
        stored = {name: column for name, column in read.items() if column not in partitions}
        if not stored:
            raise NotJustFiles("the job reads none of the columns that lie in the files")
        constant = {name: column for name, column in read.items() if column in partitions}
        files = [
            LogFile(
                fs.LocalFileSystem(),
                path,
                path,
                None,
                (*values.items(), *((name, partition[column]) for name, column in constant.items())),
                None,
            )
            for path, partition in self._listed()
        ]
        columns = StoredColumns(stored, ignores_case=self._setting("spark.sql.caseSensitive") != "true")
        log_files = LogFiles.of_table(files, schema, columns=log.names, where=where, stored=columns)
        return replace(log_files, files=self._checked(log_files))

    def _column(self, name: str, attribute: str) -> str:
        if attribute not in self.columns:
            raise NotJustFiles(
                f"Spark computes the column {name!r}: {self.computed.get(attribute, attribute)}"
            )
        return self.columns[attribute]

    def _arrow_type(self, column: str) -> pa.DataType:
        return single_type(self.relation.schema().apply(column).dataType().catalogString())

    def _conditions(
        self, read: dict[str, str], values: dict[str, Any]
    ) -> tuple[list[Expression], dict[str, str]]:
        """Return the conditions on rows, and the columns of the files that they name."""
        names = {
            column: column
            if column not in values and read.get(column, column) == column
            else _OF_FILES + column
            for column in self.columns.values()
        }
        attributes = {
            each: PlanColumn(names[column], self._arrow_type(column)) for each, column in self.columns.items()
        }
        conditions = [each for condition in self.filters for each in conditions_of(condition, attributes)]
        used = set().union(*(expression_columns(condition) or names.values() for condition in conditions))
        return conditions, {name: column for column, name in names.items() if name in used}

    def _listed(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Paths of the files, and the values of their partitions."""
        schema = self.relation.partitionSchema()
        fields = [(each.name(), each.dataType()) for each in _items(schema)]
        location = self.relation.location()
        if not fields:
            yield from ((_local_path(uri, unquote), {}) for uri in location.inputFiles())
            return
        none = getattr(getattr(_jvm(self.dataframe).scala.collection.immutable, "Nil$"), "MODULE$")
        for directory in _items(location.listFiles(none, none)):
            row, values = directory.values(), {}
            for at, (name, spark_type) in enumerate(fields):
                arrow_type = single_type(spark_type.catalogString())
                if arrow_type is None:
                    raise NotJustFiles(f"partitions {name!r} are of type {spark_type.catalogString()}")
                values[name] = python_value(row.get(at, spark_type), arrow_type)
            for file in _items(directory.files()):
                yield _local_path(file.getPath().toString(), str), values

    def _checked(self, log: LogFiles) -> tuple[LogFile, ...]:
        """Return the files as they are now, of which Arrow reads what Spark does."""
        if not log.files:
            return ()
        schema = log.log_schema.read
        assert log.log_schema.stored is not None
        wanted = pa.schema([schema.field(name) for name in log.log_schema.stored.names])
        options = self._options()
        modes = [
            options.get(option, self._setting(setting)).upper()
            for option, setting in (
                ("datetimerebasemode", "spark.sql.parquet.datetimeRebaseModeInRead"),
                ("int96rebasemode", "spark.sql.parquet.int96RebaseModeInRead"),
            )
        ]
        try:
            files = tuple(files_now(log.files))
        except SourceError as error:
            raise NotJustFiles(str(error)) from error
        ParquetFooters(wanted, log.log_schema.stored, RebaseModes(*modes)).check(files)
        return files


def reads_plain_parquet(relation: Any) -> bool:
    """Return whether Spark reads a relation as Parquet files, and not as a table of another format in such files."""
    return hasattr(relation, "fileFormat") and _class(relation.fileFormat()) == _PARQUET


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _class(instance: Any) -> str:
    return str(instance.getClass().getName())


def _jvm(dataframe: Any) -> Any:
    return dataframe.sparkSession._jvm


def _spark_schema(schema: Any) -> StructType:
    return StructType.fromJson(json.loads(schema.json()))


def _check_column(column: StructField) -> None:
    """Values must be those that the files have: not padded text or default values."""
    if "EXISTS_DEFAULT" in column.metadata:
        raise NotJustFiles(f"column {column.name!r} has a default value in older files")
    if "__CHAR_VARCHAR_TYPE_STRING" in column.metadata or not _is_plain(column.dataType):
        raise NotJustFiles(f"column {column.name!r} is of type {column.dataType.simpleString()}")


def _is_plain(spark_type: DataType) -> bool:
    """Return whether a type has the values that its Arrow type has."""
    if type(spark_type) is ArrayType:
        return _is_plain(spark_type.elementType)
    if type(spark_type) is MapType:
        return _is_plain(spark_type.keyType) and _is_plain(spark_type.valueType)
    if type(spark_type) is StructType:
        return all(_is_plain(each.dataType) for each in spark_type)
    return single_type(spark_type.simpleString()) is not None


def _local_path(uri: str, decoded: Callable[[str], str]) -> str:
    scheme, separator, path = uri.partition(":")
    if scheme != "file" or not separator:
        raise NotJustFiles(f"its files are not local: {uri}")
    return decoded("/" + path.lstrip("/"))

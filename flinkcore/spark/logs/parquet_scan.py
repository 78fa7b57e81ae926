"""DataFrames that are Parquet files: their plans select, compute and filter what Spark would read from these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyarrow import fs
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from flinkcore._internal.arrow.column_ops import NamedExpressions, expression_columns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore.errors import SchemaError, SourceError
from flinkcore.log.decoding.computed_columns import ComputedColumns
from flinkcore.log.files.log_files import LogFile, files_now
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.spark.logs.dataframe_log import arrow_schema, log_schema
from flinkcore.spark.logs.parquet_footers import ParquetFooters, RebaseModes
from flinkcore.spark.logs.plan_expressions import Attributes, conditions_of, value_of
from flinkcore.spark.logs.plan_functions import PlanValue
from flinkcore.spark.logs.plan_nodes import (
    NotJustFiles,
    attribute_id,
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
"""Begins what expressions call a column of the files where the log has another one of that name."""


@dataclass(frozen=True)
class ScannedFiles:
    """Files, and what makes the rows of a DataFrame of them.

    Attributes
    ----------
    files : LogFiles
    decoding : tuple of ComputedColumns
        The step that computes columns, if any are computed.
    """

    files: LogFiles
    decoding: tuple[ComputedColumns, ...] = ()

    @property
    def computed(self) -> list[str]:
        """Names of the columns that are computed."""
        return [name for step in self.decoding for name, _ in step.expressions]

    def without_computed_columns(self) -> LogFiles:
        """Return the files; raise NotJustFiles if a column is computed of theirs."""
        if self.computed:
            raise NotJustFiles(
                f"Spark computes the column {self.computed[0]!r} for jobs over single elements"
            )
        return self.files


def parquet_files(dataframe: Any) -> ScannedFiles:
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
    computed : dict
        Other expressions by the ids of attributes.
    filters : list
        Conditions over attributes.
    output : list of (str, str)
        Names of the DataFrame's columns, and their attributes' ids.
    """

    dataframe: Any
    relation: Any
    columns: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[Any, pa.DataType]] = field(default_factory=dict)
    computed: dict[str, Any] = field(default_factory=dict)
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
            if attribute.name() in in_files:  # the others are metadata of the files
                scan.columns[attribute_id(attribute)] = attribute.name()
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
            self.computed[name] = given

    def files(self) -> ScannedFiles:
        """Return the files as a log."""
        log = log_schema(self.dataframe)
        if len(set(log.names)) < len(log.names):
            raise NotJustFiles("it has several columns of one name")
        values = {name: self.values[each][0] for name, each in self.output if each in self.values}
        read = {name: self.columns[each] for name, each in self.output if each in self.columns}
        names = {
            column: column if read.get(column) == column or column not in log.names else _OF_FILES + column
            for column in self.columns.values()
        }
        attributes = self._attributes(names)
        where = [each for condition in self.filters for each in conditions_of(condition, attributes)]
        expressions = self._expressions(log, attributes)
        of_log = [each for each in log if each.name in values or each.name in read]
        of_expressions = _columns_read((expression for _, expression in expressions), names)
        of_conditions = _columns_read(where, names)
        others = {
            name: column for name, column in (of_expressions | of_conditions).items() if name not in read
        }
        read |= others
        of_files = {each.name: each for each in self._whole_schema()}
        for column in set(read.values()):
            _check_column(of_files[column])
        arrow = _arrow_schema([of_files[column] for column in others.values()])
        of_log += [each.with_name(name) for name, each in zip(others, arrow, strict=True)]
        schema = pa.schema(of_log)
        columns = [name for name in schema.names if name in log.names or name in of_expressions]
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
        located = StoredColumns(stored, ignores_case=self._setting("spark.sql.caseSensitive") != "true")
        log_files = LogFiles.of_table(files, schema, columns=columns, where=where, stored=located)
        checked = replace(log_files, files=self._checked(log_files))
        return ScannedFiles(checked, (ComputedColumns(log, expressions),) if expressions else ())

    def _whole_schema(self) -> StructType:
        """Return the columns of the files, whose structs have also the fields that the plan does not read."""
        leaves = self.dataframe._jdf.queryExecution().analyzed().collectLeaves()
        leaf = leaves.apply(0)
        is_only = leaves.size() == 1 and kind_of(leaf) == "LogicalRelation"
        return _spark_schema((leaf.relation() if is_only else self.relation).schema())

    def _attributes(self, names: dict[str, str]) -> Attributes:
        """Return what gives the values of attributes, for columns of the files that have these names."""

        def value(attribute: str) -> PlanValue | None:
            if attribute in self.columns:
                column = self.columns[attribute]
                kind = self.relation.schema().apply(column).dataType().catalogString()
                return PlanValue(pc.field(names[column]), single_type(kind))
            if attribute in self.values:
                return PlanValue.of_literal(*self.values[attribute])
            given = self.computed.get(attribute)
            return None if given is None else value_of(given, value)

        return value

    def _expressions(self, log: pa.Schema, attributes: Attributes) -> NamedExpressions:
        """Return the columns of the log that are computed."""
        found = []
        for name, attribute in self.output:
            if attribute in self.columns or attribute in self.values:
                continue
            if attribute not in self.computed:
                raise NotJustFiles(f"Spark computes the column {name!r}: it is metadata of the files")
            value = attributes(attribute)
            if value is None or value.type != log.field(name).type or not expression_columns(value.value):
                raise NotJustFiles(f"Spark computes the column {name!r}: {self.computed[attribute].sql()}")
            found.append((name, value.value))
        return tuple(found)

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


def _columns_read(expressions: Iterable[Expression], names: dict[str, str]) -> dict[str, str]:
    """Return the names by which expressions read columns of the files, and those columns."""
    used = set().union(*(expression_columns(each) or names.values() for each in expressions))
    return {name: column for column, name in names.items() if name in used}


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


def _arrow_schema(columns: list[StructField]) -> pa.Schema:
    try:
        return arrow_schema(StructType(columns))
    except SchemaError as error:
        raise NotJustFiles(str(error)) from error


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

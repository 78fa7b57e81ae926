"""Nodes without state: calc, exchange, union, values and sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression, RowFailure
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.transformations import ForwardTransformation
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.sql.expressions.evaluation import Evaluation, nulls, require_times_of_day
from flinkcore.sql.nodes.rows import EMITTED_AT, Program, Rows, unique_names
from flinkcore.sql.nodes.scans import RequiredRowtime
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import Rex
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of

_NO_KEYS: Final = frozenset((Root.ARRAY, Root.MAP, Root.MULTISET))
NODE_COLUMN: Final = "values#row"


def calc(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the rows for which a condition is true, with computed columns."""
    condition = node.json.get("condition")
    projection = [program.rex(node, each, rows) for each in node.json["projection"]]
    return program.project(
        rows, node, projection, None if condition is None else program.rex(node, condition, rows)
    )


def exchange(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the rows as they are: the next node has the keys of an exchange."""
    for written in node.json.get("inputProperties") or ():
        for number in written.get("requiredDistribution", {}).get("keys") or ():
            kind = rows.types[number]
            if kind.root in _NO_KEYS:
                raise node.refuse(f"a key of {kind} is not supported", "CAST it to STRING before")
    return rows


def union(program: Program, node: PlanNode, *inputs: Rows) -> Rows:
    """Return the rows of all inputs; the watermark is the least of theirs."""
    if not all(rows.has_emitted_at for rows in inputs):
        inputs = tuple(replace(rows, has_emitted_at=False) for rows in inputs)
    if not all(rows.has_arrival for rows in inputs):
        inputs = tuple(replace(rows, has_arrival=False, arrivals=frozenset()) for rows in inputs)
    changes = frozenset().union(*(rows.changes for rows in inputs))
    first, *others = (
        program.project(with_kinds(rows) if changes else rows, node, rows.refs()) for rows in inputs
    )
    return replace(
        first,
        stream=first.stream.union(*(rows.stream for rows in others)),
        of_windows=all(rows.of_windows for rows in inputs),
        changes=changes,
        times=frozenset.intersection(*(rows.times for rows in inputs)),
        arrivals=frozenset.intersection(*(rows.arrivals for rows in inputs)),
    )


def with_kinds(rows: Rows) -> Rows:
    """Return rows with the column ``row_kind``, where all are inserted."""
    if rows.changes:
        return rows
    stream = rows.stream.select(*rows.columns, *rows.carried, **{ROW_KIND: pc.scalar("+I")})
    return replace(rows, stream=stream, changes=frozenset(("+I",)))


def drop_update_before(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return rows of which an update is a ``+U`` alone."""
    if "-U" not in rows.changes:
        return rows
    return replace(rows, stream=rows.stream.filter(pc.field(ROW_KIND) != "-U"), changes=rows.changes - {"-U"})


def values(program: Program, node: PlanNode) -> Rows:
    """Return constant rows."""
    rows = [[program.rex(node, each) for each in row] for row in node.json["tuples"]]
    numbered = pa.table({NODE_COLUMN: pa.array(range(len(rows)), pa.int64())})
    log = program.environment.from_event_log(numbered, timestamp=pc.scalar(0), timestamp_unit="ms")
    columns = []
    for number, (_, kind) in enumerate(node.fields):
        literals = [row[number] for row in rows]
        columns.append(ConstantColumn(tuple(literals), kind))
    names = unique_names(node)
    stream = log.select(**dict(zip(names, columns, strict=True)))
    return Rows(stream, names, tuple(kind for _, kind in node.fields))


@dataclass(frozen=True, eq=False)
class ConstantColumn(ColumnExpression):
    """A column of constants by the number of the row; picklable."""

    literals: tuple[Rex, ...]
    type: LogicalType

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([NODE_COLUMN])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        one = Evaluation((), 1)
        kind = self.type.arrow
        found = [one(literal).cast(kind) for literal in self.literals] or [pa.nulls(0, kind)]
        return pa.concat_arrays(found).take(batch.column(NODE_COLUMN))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.literals))}]"


def sink(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the rows that go into a sink, with the names of its columns; those of changes have ``row_kind`` last."""
    if node.json.get("inputChangelogMode") not in (None, ["INSERT"]):
        rows = with_kinds(rows)
    names, emitted_at = _sink_columns(node), program.emitted_at
    named = {name: pc.field(column) for name, column in zip(names, rows.columns, strict=True)}
    if rows.changes:
        if ROW_KIND in names:
            raise node.refuse(f"its rows are changes, and it has a column {ROW_KIND!r}", "Rename the column")
        named[ROW_KIND] = pc.field(ROW_KIND)
    if emitted_at is not None and emitted_at in names:
        raise node.refuse(f"it has a column {emitted_at!r}", "Give another name for emitted_at")
    if emitted_at is not None and rows.has_emitted_at:
        named[emitted_at] = pc.field(EMITTED_AT)
    stream = _enforced(program, node, rows)
    for column, (_, kind) in zip(rows.columns, node.fields, strict=True):
        if kind.time_attribute == "ROWTIME" and kind.nullable:  # it becomes the timestamp of the record
            stream = stream.filter(RequiredRowtime(column))
    for column, kind in zip(rows.columns, rows.types, strict=True):
        if kind.contains(Root.TIME):
            stream = stream.filter(TimesOfDay(column, kind))
    stream = stream.select(**named)
    if emitted_at is not None and not rows.has_emitted_at:
        forward = ForwardTransformation(stream._transformation)
        stream = stream._then(forward).with_emitted_at(emitted_at)
    return Rows(stream, names, rows.types, changes=rows.changes)


def _sink_columns(node: PlanNode) -> tuple[str, ...]:
    """Return the names of the columns of the table that a sink writes, into which rows go by position."""
    names = tuple(each["name"] for each in _declared_columns(node))
    return names if len(names) == len(node.names) else node.names


def _declared_columns(node: PlanNode) -> list[Mapping[str, Any]]:
    """Return the columns of the table of a sink that are written: those of metadata last, as the plan orders them."""
    sink = node.json.get("dynamicTableSink", {})
    columns = sink.get("table", {}).get("resolvedTable", {}).get("schema", {}).get("columns", ())
    stored = [each for each in columns if "dataType" in each]
    metadata = {each.get("metadataKey") or each["name"]: each for each in stored if _is_metadata(each)}
    keys = (
        key
        for ability in sink.get("abilities") or ()
        if ability["type"] == "WritingMetadata"
        for key in ability["metadataKeys"]
    )
    return [*(each for each in stored if not _is_metadata(each)), *(metadata[key] for key in keys)]


def _is_metadata(column: Mapping[str, Any]) -> bool:
    return column.get("kind") == "METADATA"


# ---- constraints of sinks

_NOT_NULL: Final = "table.exec.sink.not-null-enforcer"
_IGNORED: Final = ("table.exec.sink.type-length-enforcer", "table.exec.sink.nested-constraint-enforcer")


def _enforced(program: Program, node: PlanNode, rows: Rows) -> LogStream:
    """Return rows without nulls in columns that are NOT NULL, as Flink's ConstraintEnforcer."""
    configuration = {**program.settings, **node.json.get("configuration", {})}
    for option in _IGNORED:
        value = configuration.get(option, "IGNORE")
        if value.upper() != "IGNORE":
            raise node.refuse(f"{option} = {value} is not supported", "Set IGNORE, and CAST in the query")
    # Columns of metadata come last in rows of sinks, and are not checked.
    physical = [each for each in _declared_columns(node) if each.get("kind", "PHYSICAL") == "PHYSICAL"]
    required = {
        column: each["name"]
        for each, column, (_, given) in zip(physical, rows.columns, node.fields, strict=False)
        if given.nullable and not type_of(each["dataType"]).nullable
    }
    if not required:
        return rows.stream
    if configuration.get(_NOT_NULL, "ERROR").upper() == "DROP":
        return rows.stream.filter(reduce(and_, (pc.field(column).is_valid() for column in required)))
    return rows.stream.filter(RequiredValues(tuple(required.items())))


@dataclass(frozen=True, eq=False)
class RequiredValues(ColumnExpression):
    """True for every row; fails for a null in a column of a sink that is NOT NULL. Picklable.

    Attributes
    ----------
    names : tuple of tuples of str
        Columns of rows, each with its name in the table.
    """

    names: tuple[tuple[str, str], ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(column for column, _ in self.names)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        for column, name in self.names:
            array = batch.column(column)
            if array.null_count:
                raise RowFailure(
                    int(nulls(array).argmax()),
                    f"the column {name!r} of the sink is NOT NULL, and its value is null. Filter the rows, or leave "
                    f"such rows out: SET '{_NOT_NULL}' = 'DROP'",
                )
        return pa.repeat(pa.scalar(True), batch.num_rows)

    def __str__(self) -> str:
        return f"{', '.join(name for _, name in self.names)} NOT NULL"


@dataclass(frozen=True, eq=False)
class TimesOfDay(ColumnExpression):
    """True for every row; fails for a TIME that is not of a day. Picklable."""

    column: str
    type: LogicalType

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset((self.column,))

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        require_times_of_day(batch.column(self.column), self.type)
        return pa.repeat(pa.scalar(True), batch.num_rows)

    def __str__(self) -> str:
        return f"times of a day in {self.column}"

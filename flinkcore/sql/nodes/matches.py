"""MATCH_RECOGNIZE: patterns of rows, their conditions and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.graph.row_patterns import (
    ALL_ROWS,
    MATCH_TIME,
    ColumnOfRow,
    Measure,
    NativeStep,
    PatternExpression,
    PatternVariable,
    RowOf,
    RowPattern,
    Skip,
    VariableAggregates,
)
from flinkcore.datastream.graph.transformations import MatchTransformation
from flinkcore.sql.expressions.conditions import can_fail
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.native_conditions import is_native, native_steps
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, built_in_name
from flinkcore.sql.types.logical_types import INTEGERS, LogicalType, Root, type_of

_AGGREGATES: Final = frozenset(
    (
        *("COUNT", "SUM", "$SUM0", "AVG", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "LISTAGG", "COLLECT"),
        *("ARRAY_AGG", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"),
    )
)


_NATIVE: Final = frozenset(("SUM", "MIN", "MAX"))


def match(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return a row for each match of a pattern."""
    rows.require_inserts(node, "Take rows that do not change, such as those of a table or a window aggregate")
    spec = node.json["matchSpec"]
    if spec["allRows"]:
        raise node.refuse(
            "ALL ROWS PER MATCH is not supported, nor is it by Flink", "Write ONE ROW PER MATCH"
        )
    order = spec["orderBy"]["fields"]
    if not order or not order[0]["isAscending"]:
        raise node.refuse(
            "rows are not ordered by the rowtime", "Write ORDER BY the rowtime first, ascending"
        )
    rows.require_time(node, order[0]["index"])
    pattern = _pattern(node, spec)
    pattern.check()
    conditions = tuple(
        _value(program, node, rows, pattern, spec["patternDefinitions"][name], name)
        if name in spec["patternDefinitions"]
        else None
        for name in pattern.names
    )
    keys = spec["partition"]["fields"]
    names = [name for name in node.names[len(keys) :] if name in spec["measures"]]
    measures = tuple(
        Measure(f"measure#{number}", _value(program, node, rows, pattern, spec["measures"][name], None))
        for number, name in enumerate(names)
    )
    step = MatchTransformation(
        rows.keyed(keys)._input(),
        pattern,
        conditions,
        measures,
        tuple(rows.columns[each["index"]] for each in order[1:]),
        tuple(not each["isAscending"] for each in order[1:]),
        tuple(each["nullIsLast"] for each in order[1:]),
    )
    columns = [
        *(pc.field(rows.columns[number]) for number in keys),
        *(pc.field(measure.name) for measure in measures),
    ]
    times = {
        len(keys) + number
        for number, name in enumerate(names)
        if _function(_without_final(spec["measures"][name])) == "MATCH_ROWTIME"
    }
    return program.of_operator(node, rows.keyed(keys)._then(step), columns, times=times)


# ---- the pattern


def _pattern(node: PlanNode, spec: Mapping[str, Any]) -> RowPattern:
    interval = spec["interval"]
    within_ms = None
    if interval is not None:
        if interval["kind"] != "LITERAL" or type_of(interval["type"]).root is not Root.INTERVAL_MS:
            raise node.refuse("WITHIN takes a constant interval", "Write WITHIN INTERVAL '1' HOUR")
        within_ms = int(interval["value"]) or None  # as in Flink, 0 does not bound matches
    skip, skip_to = _skip(node, spec["after"])
    return RowPattern(tuple(_variables(node, spec["pattern"])), skip, skip_to, within_ms)


def _skip(node: PlanNode, after: Mapping[str, Any]) -> tuple[Skip, str | None]:
    if after["kind"] == "LITERAL":
        return Skip(after["value"].removeprefix("SKIP_").replace("_", " ").lower()), None
    target = after["operands"][0]["value"]
    if _function(after) not in ("SKIP TO FIRST", "SKIP TO LAST"):
        raise node.refuse(f"AFTER MATCH {_function(after)} is not supported")
    return Skip(_function(after).removeprefix("SKIP ").lower()), target


def _variables(node: PlanNode, written: Mapping[str, Any]) -> Iterator[PatternVariable]:
    if written["kind"] == "LITERAL":
        yield PatternVariable(written["value"])
        return
    kind = written.get("sqlKind") or _function(written)
    if kind == "PATTERN_CONCAT":
        for operand in written["operands"]:
            yield from _variables(node, operand)
        return
    if kind != "PATTERN_QUANTIFIER":
        raise node.refuse(
            f"{kind} in a pattern is not supported, nor is it by Flink", "Write a sequence of variables"
        )
    variable, least, most, is_reluctant = written["operands"]
    if variable["kind"] != "LITERAL":
        raise node.refuse(
            "a quantifier of a group of variables is not supported, nor is it by Flink", "Quantify variables"
        )
    bound = int(most["value"])
    yield PatternVariable(
        variable["value"], int(least["value"]), None if bound < 0 else bound, not is_reluctant["value"]
    )


def _function(written: Mapping[str, Any]) -> str:
    return built_in_name(written.get("internalName") or "")


def _without_final(written: Mapping[str, Any]) -> Mapping[str, Any]:
    inner: Mapping[str, Any] = written["operands"][0] if _function(written) == "FINAL" else written
    return inner


# ---- conditions and measures


def _value(
    program: Program,
    node: PlanNode,
    rows: Rows,
    pattern: RowPattern,
    written: Mapping[str, Any],
    variable: str | None,
) -> PatternExpression:
    """Return a measure, or the condition of a variable."""
    reader = _Reader(program, node, rows, pattern, variable)
    rex = program.rex(node, reader.read(written, RowOf(ALL_ROWS, False)))
    expression = SqlExpression(rex, tuple(reader.names), program.zone)
    native = native_steps(rex, reader.leaves()) if variable is not None else None
    return PatternExpression(
        expression, tuple(reader.columns), reader.aggregates(), can_fail(rex), reader.time_type, native
    )


@dataclass(eq=False)
class _Reader:
    """Replaces what an expression reads of a match by columns.

    Attributes
    ----------
    program : Program
    node : PlanNode
    rows : Rows
    pattern : RowPattern
    variable : str or None
        Variable of the condition, or None for a measure.
    names : list of str
        The columns, by their number in the expression.
    columns : list of ColumnOfRow
    native : dict of str to _Aggregates
        Aggregates by variable.
    time_type : pyarrow.DataType or None
        Type of the time of the match, if it is read.
    """

    program: Program
    node: PlanNode
    rows: Rows
    pattern: RowPattern
    variable: str | None
    names: list[str] = field(default_factory=list)
    columns: list[ColumnOfRow] = field(default_factory=list)
    native: dict[str, _Aggregates] = field(default_factory=dict)
    time_type: pa.DataType | None = None

    def read(self, written: Mapping[str, Any], row: RowOf) -> dict[str, Any]:
        """Return an expression over columns in place of one over a row of each variable."""
        if written["kind"] == "PATTERN_INPUT_REF":
            place = RowOf(self._known(written["alpha"]), row.is_first, row.offset)
            column = self.rows.columns[written["inputIndex"]]
            name = f"{column} of the {place}".replace(".", "_")
            if name not in self.names:
                self.columns.append(ColumnOfRow(name, place, column))
            return self._column(name, written["type"])
        if written["kind"] != "CALL":
            return dict(written)
        name, operands = _function(written), written.get("operands", ())
        if name == "FINAL" and self.variable is None:
            return self.read(operands[0], row)
        if name in ("PREV", "NEXT"):
            if int(operands[1]["value"]):
                raise self.node.refuse(
                    f"{name} is not supported, nor is it by Flink", "Write LAST(variable.column, 1)"
                )
            return self.read(operands[0], RowOf(ALL_ROWS, False))
        if name in ("FIRST", "LAST"):
            return self.read(operands[0], RowOf(ALL_ROWS, name == "FIRST", int(operands[1]["value"])))
        if name == "MATCH_ROWTIME" and self.variable is None:
            self.time_type = type_of(written["type"]).arrow
            return self._column(MATCH_TIME, written["type"])
        if name in _AGGREGATES:
            return self._aggregate(name, written)
        return {**written, "operands": [self.read(each, row) for each in operands]}

    def _known(self, alpha: str) -> str:
        if alpha != ALL_ROWS and alpha not in self.pattern.names:
            raise self.node.refuse(f"SUBSET {alpha} is not supported", "Name the variables themselves")
        return alpha

    def _column(self, name: str, kind: Any) -> dict[str, Any]:
        if name not in self.names:
            self.names.append(name)
        return {"kind": "INPUT_REF", "inputIndex": self.names.index(name), "type": kind}

    def _aggregate(self, name: str, written: Mapping[str, Any]) -> dict[str, Any]:
        if written.get("distinct"):
            raise self.node.refuse(f"{name}(DISTINCT) of a variable is not supported, nor is it by Flink")
        variable = next((alpha for each in written["operands"] for alpha in _alphas(each)), None)
        if variable is None:
            raise self.node.refuse(
                f"{name} without a variable is not supported, nor is it by Flink", "Write COUNT(A.column)"
            )
        known = self._known(variable)
        if known not in self.native:
            self.native[known] = _Aggregates(self, known)
        return self._column(self.native[known].add(name, written), written["type"])

    def leaves(self) -> dict[int, NativeStep]:
        """Return native steps for the columns that have numbers of 64 bits."""
        found = {
            self.names.index(each.name): NativeStep("look", each.row, each.column)
            for each in self.columns
            if is_native(self.rows.types[self.rows.columns.index(each.column)])
        }
        for each in self.native.values():
            found |= {self.names.index(name): step for name, step in each.leaves().items()}
        return found

    def aggregates(self) -> tuple[VariableAggregates, ...]:
        """Return the aggregates that have been read."""
        return tuple(each.planned() for each in self.native.values())


@dataclass(eq=False)
class _Aggregates:
    """Aggregates over the rows of a variable."""

    reader: _Reader
    variable: str
    calls: dict[str, str] = field(default_factory=dict)
    inner: list[tuple[str, SqlExpression, LogicalType]] = field(default_factory=list)
    written: list[AggregateCall] = field(default_factory=list)

    def add(self, name: str, written: Mapping[str, Any]) -> str:
        """Take in a call; return the name of its result."""
        text = str(written)
        if text not in self.calls:
            numbers = tuple(self._argument(each) for each in written["operands"])
            self.written.append(AggregateCall(name, numbers, -1, False, type_of(written["type"])))
            self.calls[text] = f"{name}#{len(self.calls)} of {self.variable}"
        return self.calls[text]

    def _argument(self, written: Mapping[str, Any]) -> int:
        reader = self.reader
        rex = reader.program.rex(reader.node, _plain(written))
        expression = SqlExpression(rex, reader.rows.columns, reader.program.zone)
        name = f"inner#{expression}".replace(".", "_")
        names = [each for each, _, _ in self.inner]
        if name not in names:
            self.inner.append((name, expression, rex.type))
            names.append(name)
        return names.index(name)

    def leaves(self) -> dict[str, NativeStep]:
        """Return native steps for calls of integer columns, by the names of their results."""
        found = {}
        for name, call in zip(self.calls.values(), self.written, strict=True):
            if len(call.arguments) != 1:
                continue
            _, expression, kind = self.inner[call.arguments[0]]
            bits = INTEGERS.get(call.type.root)
            can_be = call.name == "COUNT" or (call.name in _NATIVE and kind.root in INTEGERS and bits)
            if can_be and isinstance(expression.rex, InputRef) and is_native(kind):
                column = self.reader.rows.columns[expression.rex.index]
                row = RowOf(self.variable, False)
                found[name] = NativeStep(call.name.lower(), row, column, bits or 64)
        return found

    def planned(self) -> VariableAggregates:
        """Return the calls as native aggregates."""
        names = [name for name, _, _ in self.inner]
        native = NativeAggregates(self.reader.node, names, [kind for _, _, kind in self.inner])
        for call in self.written:
            native.add(call)
        inner = {name: expression for name, expression, _ in self.inner}
        arguments = tuple(
            (
                name,
                _ArgumentOf(
                    argument, tuple((each, inner[each]) for each in sorted(argument.required_columns))
                ),
            )
            for name, argument in native.arguments.items()
        )
        results = tuple(zip(self.calls.values(), native.results, strict=True))
        return VariableAggregates(self.variable, arguments, tuple(native.aggregates.items()), results)


@dataclass(frozen=True, eq=False)
class _ArgumentOf(ColumnExpression):
    """An argument of an aggregate, of expressions over the rows. Picklable."""

    argument: ColumnExpression
    inner: tuple[tuple[str, SqlExpression], ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset().union(*(expression.required_columns for _, expression in self.inner))

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [expression.evaluate(batch) for _, expression in self.inner]
        return self.argument.evaluate(pa.RecordBatch.from_arrays(columns, [name for name, _ in self.inner]))

    def __str__(self) -> str:
        return str(self.argument)


def _alphas(written: Mapping[str, Any]) -> Iterator[str]:
    if written["kind"] == "PATTERN_INPUT_REF":
        yield written["alpha"]
    for operand in written.get("operands", ()):
        yield from _alphas(operand)


def _plain(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return an expression over the columns of a row of a variable."""
    if written["kind"] == "PATTERN_INPUT_REF":
        return {"kind": "INPUT_REF", "inputIndex": written["inputIndex"], "type": written["type"]}
    if written["kind"] != "CALL":
        return dict(written)
    return {**written, "operands": [_plain(each) for each in written.get("operands", ())]}

"""Aggregate calls of windows: columns that are aggregated natively, and what a result is made of.

Where a native aggregate is not Flink's to the bit, the call becomes several of them, or the list of the values, from
which an expression computes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.aggregates import Aggregate, count
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate
from flinkcore.sql.expressions.decimals import added, fit_one, quotient
from flinkcore.sql.expressions.evaluation import column, missing_function, numbers, truth, valid
from flinkcore.sql.expressions.numeric_casts import cast_number, wrapped_one
from flinkcore.sql.expressions.user_functions import UserFunction, UserFunctions
from flinkcore.sql.nodes.expiring_values import ExpiringDistinct
from flinkcore.sql.nodes.function_aggregates import Arguments, WindowResult, called
from flinkcore.sql.nodes.panes import Panes
from flinkcore.sql.plan.column_names import plain_name
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import function_name
from flinkcore.sql.types.logical_types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    NUMERIC,
    TEXTS,
    LogicalType,
    Root,
    type_of,
)

_DOUBLE: Final = LogicalType(Root.DOUBLE)
_BIGINT: Final = LogicalType(Root.BIGINT)


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate call of a plan.

    Attributes
    ----------
    name : str
        Name of the function, such as ``SUM``.
    arguments : tuple of int
        Numbers of its columns.
    filter : int
        Number of the boolean column of its FILTER, or -1.
    is_distinct : bool
    type : LogicalType
        Type of its result.
    ignores_nulls : bool
        Whether ARRAY_AGG leaves out nulls; other functions always do.
    function : UserFunction or None
        The function of the user that it calls, or None of a built-in one.
    """

    name: str
    arguments: tuple[int, ...]
    filter: int
    is_distinct: bool
    type: LogicalType
    ignores_nulls: bool = True
    function: UserFunction | None = None

    @classmethod
    def of(cls, written: Mapping[str, Any], functions: UserFunctions) -> AggregateCall:
        """Return a call as a plan writes it."""
        name = function_name(written)
        return cls(
            name,
            tuple(written["argList"]),
            written["filterArg"],
            written["distinct"],
            type_of(written["type"]),
            bool(written.get("ignoreNulls")) or name != "ARRAY_AGG",
            functions.find(name),
        )


@dataclass(frozen=True, eq=False)
class Argument(ColumnExpression):
    """The values that an aggregate takes; null where it takes none. Picklable.

    Attributes
    ----------
    column : str or None
        Column of the values, or None for a count of rows.
    given : LogicalType
        Type of the column.
    condition : str or None
        Boolean column; values are null where it is not true.
    form : str
        "as it is", or the form of the values: see `_FORMS`.
    panes : Panes or None
        Panes by which the values are ordered, for values that are wrapped.
    separator : str or None
        Column with the separators of LISTAGG, or None for a comma.
    """

    column: str | None
    given: LogicalType
    condition: str | None = None
    form: str = "as it is"
    panes: Panes | None = None
    separator: str | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        rowtime = None if self.panes is None else self.panes.column
        read = (self.column, self.condition, rowtime, self.separator)
        return frozenset(name for name in read if name is not None)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        if self.column is None:
            array = pa.repeat(pa.scalar(1, pa.int8()), batch.num_rows)
        else:
            array = _FORMS[self.form](batch.column(self.column), self.given)
        if self.form == "wrapped":
            pane = pa.nulls(batch.num_rows, pa.int64()) if self.panes is None else self.panes.numbers(batch)
            separators = pa.repeat(pa.scalar(","), batch.num_rows)
            if self.separator is not None:
                separators = batch.column(self.separator)
            array = pa.StructArray.from_arrays([array, pane, separators], ["value", "pane", "separator"])
        if self.condition is None:
            return array
        return _where(batch.column(self.condition), array)

    def __str__(self) -> str:
        condition = f" where {self.condition}" if self.condition is not None else ""
        form = "" if self.form == "as it is" else f", {self.form}"
        separator = f", separated by {self.separator}" if self.separator is not None else ""
        return f"{self.column or 'rows'}{condition}{form}{separator}"


def _where(condition: pa.Array, array: pa.Array) -> pa.Array:
    """Return values where a condition is true, and null elsewhere."""
    is_number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if not is_number or array.null_count or condition.null_count or array.offset != condition.offset:
        return pc.if_else(condition, array, pa.scalar(None, array.type))
    # The bits of the condition are those of validity.
    buffers = [condition.buffers()[1], array.buffers()[1]]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


def _comparable(array: pa.Array, given: LogicalType) -> pa.Array:
    """Return floats without NaN, which no other value replaces, and with -0.0 as 0.0."""
    values = numbers(array)
    return column(values + 0.0, valid(array) & ~np.isnan(values), array.type)


_FORMS: Final[dict[str, Callable[[pa.Array, LogicalType], pa.Array]]] = {
    "as it is": lambda array, given: array,
    "present": lambda array, given: pc.if_else(
        pc.is_valid(array), pa.scalar(1, pa.int8()), pa.scalar(None, pa.int8())
    ),
    "comparable": _comparable,
    "double": lambda array, given: cast_number(array, given, _DOUBLE),
    "wrapped": lambda array, given: array,
    "wide decimal": lambda array, given: array.cast(pa.decimal128(38, given.scale)),
}


@dataclass(frozen=True, eq=False)
class AggregateResult(ColumnExpression):
    """The result of a call, from the columns of native aggregates. Picklable.

    Attributes
    ----------
    call : AggregateCall
    given : LogicalType
        Type of the argument.
    parts : tuple of str
        Columns of the native aggregates.
    form : str
        Kind of computation: see `_RESULTS`.
    """

    call: AggregateCall
    given: LogicalType
    parts: tuple[str, ...]
    form: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(self.parts)

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        found = _RESULTS[self.form](self, *(batch.column(name) for name in self.parts))
        wanted = self.call.type.arrow
        return found if found.type.equals(wanted) else found.cast(wanted)

    def __str__(self) -> str:
        return f"{self.call.name} of {', '.join(self.parts)}: {self.form}"


def _whole(result: AggregateResult, array: pa.Array) -> pa.Array:
    kind = result.call.type
    if kind.root in INTEGERS and pa.types.is_integer(array.type):
        return cast_number(array, _BIGINT, kind)
    if kind.root is Root.FLOAT:
        return cast_number(array, _DOUBLE, kind)
    return array


def _sum_or_zero(result: AggregateResult, array: pa.Array) -> pa.Array:
    return _whole(result, array.fill_null(pa.scalar(0).cast(array.type)))


def _mean(result: AggregateResult, total: pa.Array, count: pa.Array) -> pa.Array:
    kind = result.call.type
    if kind.root is Root.DECIMAL:
        return pa.array(
            [
                None if value is None else fit_one(quotient(value, Decimal(rows)), kind)
                for value, rows in zip(total.to_pylist(), count.to_pylist(), strict=True)
            ],
            kind.arrow,
        )
    if kind.root in INTEGERS:
        # The quotient is truncated, as in Java.
        means = pc.divide(total, pc.max_element_wise(count, pa.scalar(1, pa.int64())))
        return cast_number(means, _BIGINT, kind)
    is_valid = valid(total)
    # Flink adds the values to 0.0, so that the sum is never -0.0.
    floats = (numbers(total) + 0.0) / np.where(is_valid, numbers(count), 1)
    return cast_number(column(floats, is_valid, pa.float64()), _DOUBLE, kind)


def _moment(result: AggregateResult, variance: pa.Array, count: pa.Array) -> pa.Array:
    return column(numbers(variance) * numbers(count), valid(variance), pa.float64())


def _extreme(result: AggregateResult, first: pa.Array, extreme: pa.Array) -> pa.Array:
    is_nan = truth(pc.is_nan(first))
    return pc.if_else(pa.array(is_nan), first, extreme)


def _of_values(result: AggregateResult, values: pa.Array) -> pa.Array:
    made: Callable[[list[Any], AggregateResult], Any] = _OF_VALUES.get(result.call.name, _multiset)
    distinct = result.call.is_distinct
    found = []
    for each in values.to_pylist():
        wrapped = [value for value in each if value is not None]
        if wrapped and wrapped[0]["pane"] is not None:
            wrapped.sort(key=itemgetter("pane"))
        if result.call.name == "LISTAGG":
            found.append(_joined(wrapped, distinct))
            continue
        given = [value["value"] for value in wrapped]
        if result.call.ignores_nulls:
            given = [value for value in given if value is not None]
        found.append(made(list(dict.fromkeys(given)) if distinct else given, result))
    return pa.array(found, result.call.type.arrow)


def _joined(wrapped: list[dict[str, Any]], distinct: bool) -> str | None:
    """Return LISTAGG: each value but the first has its own separator before it."""
    given = [(each["separator"], each["value"]) for each in wrapped if each["value"] is not None]
    if distinct:
        given = list(dict.fromkeys(given))
    if not given:
        return None
    return str(given[0][1]) + "".join(f"{separator}{value}" for separator, value in given[1:])


def _sum_of(values: list[Any], result: AggregateResult) -> Any:
    kind = result.call.type
    if not values:
        return 0 if result.call.name == "$SUM0" else None
    if kind.root is Root.FLOAT:
        total = np.float32(0)
        for value in values:
            total = np.float32(total + np.float32(value))
        return float(total)
    if kind.root in INTEGERS:
        return wrapped_one(sum(values), kind)
    if kind.root is Root.DECIMAL:
        return reduce(lambda total, value: added(total, value, kind), values)
    return float(np.add.accumulate(values)[-1])


def _multiset(values: list[Any], result: AggregateResult) -> list[tuple[Any, int]]:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return list(counts.items())


_OF_VALUES: Final[dict[str, Callable[[list[Any], AggregateResult], Any]]] = {
    "SUM": _sum_of,
    "$SUM0": _sum_of,
    "COLLECT": _multiset,
    "ARRAY_AGG": lambda values, result: values or None,
    "FIRST_VALUE": lambda values, result: values[0] if values else None,
    "LAST_VALUE": lambda values, result: values[-1] if values else None,
}

_RESULTS: Final[dict[str, Callable[..., pa.Array]]] = {
    "given": lambda result, array: array,
    "as it is": _whole,
    "sum or zero": _sum_or_zero,
    "mean": _mean,
    "moment": _moment,
    "extreme": _extreme,
    "of values": _of_values,
}


_COUNTED: Final = frozenset((Root.BOOLEAN, Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
"""Types beside numbers, texts and binaries whose distinct values are counted."""


@dataclass(eq=False)
class NativeAggregates:
    """Native aggregates of the calls of a node, each computed once.

    Attributes
    ----------
    node : PlanNode
    columns : sequence of str
        Columns of the input.
    types : sequence of LogicalType
    panes : Panes or None
        Panes of the windows, if they overlap.
    withdraws : bool
        Whether rows are withdrawn.
    is_running : bool
        Whether there is a result after each row, and not one of a window.
    ttl_ms : int
        Time to live of distinct values, in ms of processing time; 0 if they do not expire.
    needed : str or None
        Method that functions of the user need: "retract" if rows are taken back or leave a frame, "merge" if windows
        share rows or merge.
    arguments : dict of str to Argument or Arguments
        Columns that are computed before the windows.
    aggregates : dict of str to Aggregate
    results : list of AggregateResult or WindowResult
        One for each call.
    """

    node: PlanNode
    columns: Sequence[str]
    types: Sequence[LogicalType]
    panes: Panes | None = None
    withdraws: bool = False
    is_running: bool = False
    needed: str | None = None
    ttl_ms: int = 0
    arguments: dict[str, Argument | Arguments] = field(default_factory=dict)
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    results: list[AggregateResult | WindowResult] = field(default_factory=list)

    def add(self, call: AggregateCall) -> None:
        """Take in a call; raise UnsupportedOperationError if it does not run."""
        if call.function is not None:
            self._add_function(call, call.function)
            return
        if len(call.arguments) > 1 and call.name != "LISTAGG" and not call.name.startswith("`"):
            raise self.node.refuse(
                f"{call.name} of several columns is not supported", "Join them to one column before"
            )
        given = self.types[call.arguments[0]] if call.arguments else LogicalType(Root.TINYINT, False)
        form, *parts = self._expiring(call, given) if self._expires(call) else self._parts(call, given)
        self.results.append(AggregateResult(call, given, tuple(parts), form))

    def _add_function(self, call: AggregateCall, function: UserFunction) -> None:
        if not function.is_aggregate:
            raise self.node.refuse(
                f"{function.name} is not an aggregate function", "Give an AggregateFunction in functions="
            )
        if call.is_distinct:
            raise self.node.refuse(
                f"{function.name} with DISTINCT is not supported", "Select distinct rows before"
            )
        if self.needed is not None and not function.supports(self.needed):
            raise self.node.refuse(
                f"the function {function.name} has no {self.needed}(), which is called here",
                "Write that method",
            )
        calls = called(function, [self.types[number] for number in call.arguments], call.type)
        argument = Arguments(
            tuple(self.columns[number] for number in call.arguments),
            None if call.filter < 0 else self.columns[call.filter],
            None if function.columns else self.panes,
        )
        text = f"arguments#{argument}".replace(".", "_")
        self.arguments[text] = argument
        name = f"{plain_name(function.name)}#{self.node.id}_{len(self.aggregates)}".replace(".", "_")
        if self.is_running:
            self.aggregates[name] = FunctionAggregate("collect", text, calls=calls)
            self.results.append(AggregateResult(call, call.type, (name,), "given"))
        else:
            self.aggregates[name] = Aggregate("collect", text)
            self.results.append(WindowResult(calls, name))

    def _expires(self, call: AggregateCall) -> bool:
        return self.ttl_ms > 0 and call.is_distinct

    def _expiring(self, call: AggregateCall, given: LogicalType) -> list[str]:
        """Return the form of a call over distinct values that expire, and the column of its aggregate."""
        self._check_distinct(call, given)
        others = (
            result.call
            for result in self.results
            if isinstance(result, AggregateResult) and result.call.is_distinct
        )
        if any(each.arguments == call.arguments and each.filter != call.filter for each in others):
            raise self.node.refuse(
                "distinct values of one column with several conditions expire together, which is not supported",
                "Write CASE WHEN in place of FILTER for one of them",
            )
        number = call.arguments[0]
        condition = None if call.filter < 0 else self.columns[call.filter]
        argument = Arguments((self.columns[number],), condition)
        text = f"arguments#{argument}".replace(".", "_")
        self.arguments[text] = argument
        calls = ExpiringDistinct(call.name, given, call.type, self.ttl_ms, self.withdraws)
        name = f"{call.name}({plain_name(self.columns[number])})#{self.node.id}_{len(self.aggregates)}"
        self.aggregates[name] = FunctionAggregate("collect", text, calls=calls)
        return ["given", name]

    def _check_distinct(self, call: AggregateCall, given: LogicalType) -> None:
        """Refuse types whose distinct values are not told apart."""
        counted = {*NUMERIC, *TEXTS, *BINARIES, *_COUNTED}
        if given.root not in (counted if call.name == "COUNT" else {*INTEGERS, Root.DECIMAL, Root.DOUBLE}):
            raise self.node.refuse(
                f"{call.name}(DISTINCT) of {given} is not supported",
                f"CAST its argument to {'STRING' if call.name == 'COUNT' else 'DOUBLE'}",
            )

    def wrapped(self, call: AggregateCall) -> str:
        """Return the column of a native aggregate that is the list of a call's values, of structs, nulls included."""
        return self._native("collect", call, "wrapped")

    def _parts(self, call: AggregateCall, given: LogicalType) -> list[str]:
        """Return the form of a call's result, and the columns of native aggregates that it is made of."""
        name, root = call.name, given.root
        if name == "COUNT":
            if not call.is_distinct:
                return ["as it is", self._native("count", call)]
            self._check_distinct(call, given)
            return ["as it is", self._native("count_distinct", call)]
        if name in ("MIN", "MAX"):
            kernel = name.lower()
            if root not in FLOATS or self.withdraws or self.needed == "retract":
                # If values are withdrawn, or leave a frame, Flink's order is Java's: NaN is the greatest.
                return ["as it is", self._native(kernel, call)]
            first = self._native("min", call, by="present")
            return ["extreme", first, self._native(kernel, call, by="comparable")]
        if name in ("SUM", "$SUM0") and not call.is_distinct and root is not Root.FLOAT:
            form = "as it is" if name == "SUM" else "sum or zero"
            return [form, self._native("sum", call, "wide decimal" if root is Root.DECIMAL else "as it is")]
        if name == "AVG" and not call.is_distinct:
            wide = {Root.DECIMAL: "wide decimal", Root.FLOAT: "double"}.get(root, "as it is")
            return ["mean", self._native("sum", call, wide), self._native("count", call)]
        if name == "$WELFORD_M2$1":
            return ["moment", self._native("var_pop", call, "double"), self._native("count", call)]
        if name == "FIRST_VALUE" and not self.withdraws:
            return ["as it is", self._native("min", call, by="present")]
        if name == "ARRAY_AGG" and call.is_distinct:
            raise self.node.refuse("ARRAY_AGG(DISTINCT) is not supported")
        if (
            name == "LISTAGG"
            and call.is_distinct
            and (self.needed or self.node.kind == "global-window-aggregate")
        ):
            raise self.node.refuse(
                "LISTAGG(DISTINCT) of values that Flink merges or withdraws is not supported, for their order is that "
                "of a hash map",
                "Take COLLECT, or LISTAGG of the results of SELECT DISTINCT",
            )
        if name in _OF_VALUES or name == "LISTAGG":
            return ["of values", self.wrapped(call)]
        if name == "SINGLE_VALUE":
            raise self.node.refuse(
                "SINGLE_VALUE is not supported", "Write a join in place of the scalar subquery"
            )
        if name.startswith("`"):
            raise self.node.refuse(missing_function(name))
        raise self.node.refuse(
            f"the aggregate {name}{' DISTINCT' if call.is_distinct else ''} is not supported"
        )

    def _native(
        self, function: str, call: AggregateCall, form: str = "as it is", by: str | None = None
    ) -> str:
        if self.is_running and function == "count" and not call.arguments and call.filter < 0:
            aggregate = count()  # of windows without keys, at least one column is needed
        elif by is None:
            aggregate = Aggregate(function, self._argument(call, form))
        else:
            aggregate = Aggregate(f"{function}_by", self._argument(call, form), self._argument(call, by))
        for name, known in self.aggregates.items():
            if known == aggregate:
                return name
        column = plain_name(self.columns[call.arguments[0]]) if call.arguments else "*"
        name = f"{call.name.lstrip('$')}({column})#{self.node.id}_{len(self.aggregates)}"
        self.aggregates[name] = aggregate
        return name

    def _argument(self, call: AggregateCall, form: str) -> str:
        number = call.arguments[0] if call.arguments else None
        condition = None if call.filter < 0 else self.columns[call.filter]
        if number is None:
            argument = Argument(None, LogicalType(Root.TINYINT, False), condition)
        else:
            panes = self.panes if form == "wrapped" else None
            separator = self.columns[call.arguments[1]] if len(call.arguments) > 1 else None
            argument = Argument(self.columns[number], self.types[number], condition, form, panes, separator)
        text = f"argument#{argument}".replace(".", "_")
        self.arguments[text] = argument
        return text

"""Native aggregates of the aggregate calls of a node, and the columns that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from flinkcore.datastream.aggregates import Aggregate, count
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate
from flinkcore.sql.expressions.evaluation import missing_function
from flinkcore.sql.expressions.user_functions import UserFunction
from flinkcore.sql.nodes.aggregate_calls import AggregateCall, Argument
from flinkcore.sql.nodes.aggregate_results import OF_VALUES, AggregateResult
from flinkcore.sql.nodes.expiring_values import ExpiringDistinct
from flinkcore.sql.nodes.function_aggregates import Arguments, WindowResult, called
from flinkcore.sql.nodes.panes import Panes
from flinkcore.sql.plan.column_names import plain_name
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import (
    BINARIES,
    FLOATS,
    INTEGERS,
    NUMERIC,
    TEXTS,
    LogicalType,
    Root,
)

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
        if name in OF_VALUES:
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

"""Aggregates without windows: of the rows before each row (OVER), and of all rows of a key (GROUP BY)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common.time import Time
from flinkcore.datastream.aggregates import RETRACTABLE, max_
from flinkcore.datastream.graph.transformations import GroupAggregateTransformation
from flinkcore.sql.nodes.aggregates import AggregateCall, NativeAggregates
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import Literal, rex_of

_PRESENT: Final = "present#"
"""A constant whose maximum a key without aggregates has: it changes only for the first row and the last one."""


def over_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return each row with aggregates of the rows before it."""
    rows.require_inserts(node, "Take rows that do not change, such as those of a table or a window aggregate")
    spec = node.json["overSpec"]
    if len(spec["groups"]) != 1:
        raise node.refuse("several frames are not supported", "Write a query for each frame")
    (group,) = spec["groups"]
    fields = group["orderBy"]["fields"]
    if len(fields) != 1 or not fields[0]["isAscending"]:
        raise node.refuse("frames are ordered by the rowtime, ascending", "Write ORDER BY the rowtime")
    rows.require_time(node, fields[0]["index"])
    if group["upperBound"]["kind"] != "CURRENT_ROW":
        raise node.refuse("frames end with the current row", "Write AND CURRENT ROW")
    native = NativeAggregates(node, rows.columns, rows.types)
    for call in map(AggregateCall.of, group["aggCalls"]):
        if any(number >= len(rows.columns) for number in call.arguments):
            raise node.refuse(f"{call.name} with a constant is not supported", "Write a join of two rows")
        native.add(call)
    keyed = rows.keyed(spec["partition"]["fields"], **native.arguments)
    unit: Any = "rows" if group["isRows"] else "range"
    preceding = _preceding(node, spec, group)
    results = keyed.over(preceding, unit=unit).aggregate(**native.aggregates)
    columns = [*map(pc.field, rows.columns), *native.results]
    return program.of_operator(node, results, columns, times=rows.times)


def _preceding(node: PlanNode, spec: Mapping[str, Any], group: Mapping[str, Any]) -> int | Time | None:
    """Return how many rows before its row, or how long, a frame goes back, or None if to the first row."""
    bound = group["lowerBound"]
    if bound["kind"] == "UNBOUNDED_PRECEDING":
        return None
    if bound["kind"] == "CURRENT_ROW":
        back = 0
    elif bound["kind"] == "BOUNDED_WINDOW" and bound["isPreceding"]:
        constant = rex_of(spec["constants"][bound["offset"]["inputIndex"] - spec["originalInputFields"]])
        assert isinstance(constant, Literal)
        back = int(constant.value)
    else:
        raise node.refuse(
            "frames begin before the current row", "Write BETWEEN ... PRECEDING AND CURRENT ROW"
        )
    return back if group["isRows"] else Time.milliseconds(back)


def group_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the changes of aggregates of all rows of a key."""
    withdrawn = rows.changes & {"-U", "-D"}
    native = NativeAggregates(node, rows.columns, rows.types, withdraws=bool(withdrawn))
    for call in map(AggregateCall.of, node.json["aggCalls"]):
        native.add(call)
    for aggregate in native.aggregates.values():
        if withdrawn and aggregate.function not in RETRACTABLE:
            raise node.refuse(
                f"its input withdraws rows ({', '.join(sorted(withdrawn))}), and not all of its aggregates can",
                "Take others than STDDEV and VAR",
            )
    if rows.changes and not withdrawn:
        raise node.refuse(
            "its input has updates without the rows before them",
            "Take rows that do not change, or insert into a sink of all changes",
        )
    aggregates = dict(native.aggregates)
    arguments: dict[str, Any] = dict(native.arguments)
    if not aggregates:
        arguments[_PRESENT] = pc.scalar(pa.scalar(1, pa.int8()))
        aggregates[_PRESENT] = max_(_PRESENT)
    keyed = rows.keyed(node.json["grouping"], **arguments)
    step = GroupAggregateTransformation(
        keyed._input(), tuple(aggregates.items()), True, tuple(native.results)
    )
    columns = [*(pc.field(rows.columns[number]) for number in node.json["grouping"]), *native.results]
    kinds = ("-U", "+U", "-D") if withdrawn else ("-U", "+U") if native.results else ()
    results = keyed._then(step)
    return program.of_operator(node, results, columns, times=(), changes=kinds, drops_kind=not kinds)

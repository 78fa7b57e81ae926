"""Aggregates of all rows of a key: GROUP BY without windows."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.datastream.aggregates import RETRACTABLE, count, max_
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate
from flinkcore.datastream.graph.transformations import GroupAggregateTransformation
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.flink_states import group_state
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.state_ttl import STATE_TTL

_PRESENT: Final = "present#"
"""A constant whose maximum a key without aggregates has: it changes only for the first row and the last one."""


_IN_VIEWS: Final = frozenset(("COLLECT", "ARRAY_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG"))
"""Aggregates whose accumulators have values in states of their own."""

_IN_VIEWS_IF_WITHDRAWN: Final = frozenset(("MIN", "MAX", "FIRST_VALUE", "LAST_VALUE", "LISTAGG"))


_EXPIRING: Final = frozenset(("COUNT", "SUM"))
"""Aggregates whose distinct values expire one by one here, too."""


def require_one_state(
    node: PlanNode, call: AggregateCall, withdraws: bool, *, is_of_frames: bool = False
) -> None:
    """Raise UnsupportedOperationError for an aggregate whose values expire in Flink one by one."""
    is_in_view = call.name in _IN_VIEWS or (withdraws and call.name in _IN_VIEWS_IF_WITHDRAWN)
    is_distinct = call.is_distinct and (is_of_frames or call.name not in _EXPIRING)
    if is_distinct or is_in_view:
        shown = f"{call.name}(DISTINCT)" if call.is_distinct else call.name
        raise node.refuse(
            f"the values of {shown} are kept in a state of their own, in which they expire one by one; that is not "
            "supported",
            f"Write another aggregate, or plan the query with SET '{STATE_TTL.key()}' = '0 ms'",
        )


def group_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the changes of aggregates of all rows of a key."""
    withdrawn = rows.changes & {"-U", "-D"}
    (ttl_ms,) = program.ttls(node) or (0,)
    native = NativeAggregates(
        node,
        rows.columns,
        rows.types,
        withdraws=bool(withdrawn),
        is_running=True,
        needed="retract" if withdrawn else None,
        ttl_ms=ttl_ms,
    )
    for written in node.json["aggCalls"]:
        call = AggregateCall.of(written, program.functions)
        if call.function is not None and call.function.columns:
            raise node.refuse(
                f"the function {call.function.name} is vectorized, and Flink calls those for windows alone",
                "Write an AggregateFunction with an accumulator",
            )
        if ttl_ms:
            require_one_state(node, call, bool(withdrawn))
        native.add(call)
    for aggregate in native.aggregates.values():
        if withdrawn and aggregate.function not in RETRACTABLE:
            raise node.refuse(
                f"its input withdraws rows ({', '.join(sorted(withdrawn))}), and not all of its aggregates can",
                "Take others than STDDEV and VAR",
            )
        is_kept = aggregate.function == "collect" and not isinstance(aggregate, FunctionAggregate)
        if ttl_ms and withdrawn and is_kept:
            raise node.refuse(
                "a SUM of FLOAT over rows that are withdrawn is made of all its values, which do not expire here",
                f"CAST its argument to DOUBLE, or plan the query with SET '{STATE_TTL.key()}' = '0 ms'",
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
    # A count of all rows differs after each row, and is compared without the results that are made of aggregates.
    compared = () if count() in aggregates.values() else tuple(native.results)
    step = GroupAggregateTransformation(keyed._input(), tuple(aggregates.items()), True, compared, ttl_ms)
    columns = [*(pc.field(rows.columns[number]) for number in node.json["grouping"]), *native.results]
    kinds = ("-U", "+U", "-D") if withdrawn else ("-U", "+U") if native.results or ttl_ms else ()
    results = keyed._then(step)
    only = None if kinds else pc.field(ROW_KIND) == "+I"  # each key comes once, and never changes
    key = [(rows.columns[number], rows.types[number]) for number in node.json["grouping"]]
    state = group_state(node, native, key)
    return program.of_operator(node, results, columns, changes=kinds, only=only, state=state)

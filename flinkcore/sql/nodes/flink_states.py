"""States of nodes as Flink's operators keep them: which can be exchanged by savepoints, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flinkcore.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows, WindowAssigner
from flinkcore.sql.nodes.aggregates import NativeAggregates
from flinkcore.sql.nodes.function_aggregates import WindowResult
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.flink_state import EXTREME, OR_ZERO, PRESENT, VALUE, AccumulatorField, FlinkState
from flinkcore.sql.types.logical_types import FLOATS, LogicalType, Root

_BIGINT: Final = LogicalType(Root.BIGINT)
_STRING: Final = LogicalType(Root.VARCHAR, precision=2**31 - 1)

_EXCHANGED: Final = frozenset(
    (
        *(("COUNT", "as it is"), ("SUM", "as it is"), ("AVG", "mean")),
        *((name, form) for name in ("MIN", "MAX") for form in ("as it is", "extreme")),
    )
)
"""Calls whose accumulators in Flink hold what the native aggregates do."""


def group_state(
    node: PlanNode, native: NativeAggregates, keys: Sequence[tuple[str, LogicalType]]
) -> FlinkState:
    """Return the state of an aggregate of all rows of a key."""
    fields, refusal = _accumulator_fields(native)
    if native.withdraws:
        refusal = "its input withdraws rows, and such accumulators are not exchanged with Flink"
    return FlinkState.of(node, keys, fields, refusal=refusal)


def window_state(
    node: PlanNode,
    assigner: WindowAssigner[Any, Any],
    native: NativeAggregates,
    keys: Sequence[tuple[str, LogicalType]],
    *,
    is_utc: bool,
) -> FlinkState:
    """Return the state of an aggregate over windows of rowtimes: accumulators of slices by their ends.

    Parameters
    ----------
    node : PlanNode
    assigner : WindowAssigner
    native : NativeAggregates
    keys : sequence of (str, LogicalType)
    is_utc : bool
        Whether windows are cut by UTC.
    """
    if node.kind == "group-window-aggregate":
        return FlinkState.refused(node)
    is_hop = isinstance(assigner, SlidingEventTimeWindows)
    fields, refusal = _accumulator_fields(native, counts_rows=is_hop)
    if not isinstance(assigner, TumblingEventTimeWindows | SlidingEventTimeWindows):
        refusal = (
            f"the state of {type(assigner).__name__} is not exchanged with Flink, that of TUMBLE and HOP is"
        )
    elif isinstance(assigner, SlidingEventTimeWindows) and assigner.size_ms % assigner.slide_ms:
        refusal = "windows whose size is not a multiple of their slide are not exchanged with Flink"
    elif not is_utc:
        refusal = "windows that are cut by another local time than UTC are not exchanged with Flink"
    return FlinkState.of(node, keys, fields, refusal=refusal)


def deduplicated_state(node: PlanNode, rows: Rows) -> FlinkState:
    """Return the state of a deduplication: the row of each key, or that it has been emitted."""
    times = [number for number, kind in enumerate(rows.types) if kind.time_attribute == "ROWTIME"]
    keeps_last = node.json["keepLastRow"]
    if not node.json["isRowtime"] or len(times) != 1 or keeps_last == node.json["outputInsertOnly"]:
        return FlinkState.of(
            node,
            refusal="of deduplications the last row, and the first row without changes, by the only rowtime of "
            "their rows are exchanged with Flink",
        )
    columns = list(zip(rows.columns, rows.types, strict=True))
    keys = [columns[number] for number in node.json["uniqueKeys"]]
    return FlinkState.of(node, keys, rows=columns, rowtime=times[0], waits=not keeps_last)


def _accumulator_fields(
    native: NativeAggregates, *, counts_rows: bool = False
) -> tuple[list[AccumulatorField], str]:
    """Return the fields of the accumulator that Flink has for the calls, and why it cannot be exchanged, if so.

    Parameters
    ----------
    native : NativeAggregates
    counts_rows : bool
        Whether Flink adds a ``COUNT(*)`` to calls without one, as for windows that may be empty.

    Notes
    -----
    ``AggregateUtil.transformToStreamAggregateInfoList``, and the buffers of ``SumAggFunction``, ``CountAggFunction``,
    ``AvgAggFunction``, ``MinAggFunction`` and ``MaxAggFunction``.
    """
    fields: list[AccumulatorField] = []
    for result in native.results:
        if isinstance(result, WindowResult):
            return [], f"the accumulators of the function {result.calls.name} are not exchanged with Flink"
        call = result.call
        type = _STRING if call.type.root in (Root.CHAR, Root.VARCHAR) else call.type.with_nullable(True)
        if call.is_distinct or (call.name, result.form) not in _EXCHANGED:
            what = f"{call.name}(DISTINCT)" if call.is_distinct else call.name
            return [], f"the accumulators of {what} of {result.given} are not exchanged with Flink"
        if call.name == "AVG":
            total, count = result.parts
            fields.append(AccumulatorField(OR_ZERO, _sum_type(result.given), (total,)))
            fields.append(AccumulatorField(VALUE, _BIGINT, (count,)))
        else:
            role = EXTREME if result.form == "extreme" else VALUE
            fields.append(AccumulatorField(role, type, result.parts))
    calls = [result.call for result in native.results if not isinstance(result, WindowResult)]
    has_count = any(call.name == "COUNT" and not call.arguments and call.filter < 0 for call in calls)
    if counts_rows and not has_count:
        fields.append(AccumulatorField(PRESENT, _BIGINT))
    return fields, ""


def _sum_type(given: LogicalType) -> LogicalType:
    """Return the type of the sum in the accumulator of AVG."""
    if given.root is Root.DECIMAL:
        return LogicalType(Root.DECIMAL, precision=38, scale=given.scale)
    return LogicalType(Root.DOUBLE) if given.root in FLOATS else _BIGINT

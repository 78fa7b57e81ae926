"""States of nodes as Flink's operators keep them: which can be exchanged by savepoints, and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.sql.nodes.aggregates import AggregateCall, Argument, NativeAggregates
from flinkcore.sql.nodes.function_aggregates import WindowResult
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.flink_state import (
    COUNTED,
    CUMULATE,
    EXTREME,
    HOP,
    OR_ZERO,
    PRESENT,
    ROWS,
    SESSION,
    TUMBLE,
    VALUE,
    ZERO,
    AccumulatorField,
    Columns,
    FlinkState,
    Layout,
    StateWindows,
)
from flinkcore.sql.types.logical_types import FLOATS, LogicalType, Root

if TYPE_CHECKING:
    from flinkcore.sql.nodes.windows import SqlWindow

_BIGINT: Final = LogicalType(Root.BIGINT)
_STRING: Final = LogicalType(Root.VARCHAR, precision=2**31 - 1)

_EXCHANGED: Final = frozenset(
    (
        *(("COUNT", "as it is"), ("SUM", "as it is"), ("$SUM0", "sum or zero"), ("AVG", "mean")),
        *((name, form) for name in ("MIN", "MAX") for form in ("as it is", "extreme")),
    )
)
"""Calls whose accumulators in Flink hold what the native aggregates do."""

_WINDOWINGS: Final = ("windowing", "leftWindowing", "rightWindowing")

_TAKEN_BACK: Final = ("COUNT", "SUM", "AVG")
"""Those that do so if values are taken back; Flink's others have views of all values."""


def group_state(
    node: PlanNode, native: NativeAggregates, keys: Sequence[tuple[str, LogicalType]]
) -> FlinkState:
    """Return the state of an aggregate of all rows of a key."""
    taken_back = node.json["aggCallNeedRetractions"]
    count = ROWS if node.json["needRetraction"] else None
    fields, refusal = _accumulator_fields(native, taken_back, count=count)
    return FlinkState.of(node, keys=tuple(keys), fields=tuple(fields), refusal=refusal)


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
    windows = _windows(assigner, by_window=node.kind == "group-window-aggregate")
    # Flink knows by a count which of the windows that have begun are empty.
    is_counted = windows is not None and windows.kind == HOP and not windows.by_window
    fields, refusal = _accumulator_fields(native, count=PRESENT if is_counted else None)
    if windows is None:
        refusal = f"the state of {type(assigner).__name__} is not exchanged with Flink"
    elif windows.kind == HOP and windows.size_ms % windows.slide_ms:
        refusal = "windows whose size is not a multiple of their slide are not exchanged with Flink"
    elif not is_utc:
        refusal = "windows that are cut by another local time than UTC are not exchanged with Flink"
    return FlinkState.of(node, keys=tuple(keys), fields=tuple(fields), windows=windows, refusal=refusal)


def _windows(assigner: WindowAssigner[Any, Any], *, by_window: bool) -> StateWindows | None:
    if isinstance(assigner, EventTimeSessionWindows):
        return StateWindows(SESSION, by_window=by_window)
    if isinstance(assigner, TumblingEventTimeWindows):
        return StateWindows(TUMBLE, assigner.size_ms, assigner.size_ms, assigner.offset_ms, by_window)
    if isinstance(assigner, SlidingEventTimeWindows):
        return StateWindows(HOP, assigner.size_ms, assigner.slide_ms, assigner.offset_ms, by_window)
    if isinstance(assigner, CumulativeEventTimeWindows):
        return StateWindows(CUMULATE, assigner.size_ms, assigner.step_ms, assigner.offset_ms)
    return None


def deduplicated_state(node: PlanNode, rows: Rows) -> FlinkState:
    """Return the state of a deduplication: the row of each key, or that it has been emitted."""
    keeps_last = node.json["keepLastRow"]
    keys, columns = _chosen(rows, node.json["uniqueKeys"]), _columns(rows)
    if not node.json["isRowtime"]:
        layout = Layout.LAST_ROW if keeps_last else Layout.EMITTED_KEY
        return FlinkState.of(node, keys=keys, layout=layout, inputs=(columns,))
    times = _rowtimes(rows)
    if len(times) != 1 or keeps_last == node.json["outputInsertOnly"]:
        return FlinkState.of(
            node,
            refusal="of deduplications by rowtime the last row, and the first row without changes, by the only "
            "rowtime of their rows are exchanged with Flink",
        )
    layout = Layout.LAST_ROW if keeps_last else Layout.FIRST_ROW
    return FlinkState.of(node, keys=keys, layout=layout, inputs=(columns,), rowtimes=tuple(times))


def rank_state(node: PlanNode, rows: Rows) -> FlinkState:
    """Return the state of a rank: the highest rows of each key."""
    strategy, ranks = node.json["rankStrategy"], node.json["rankRange"]
    if ranks["type"] == "Variable":
        return FlinkState.of(
            node, refusal="the last ranks that keys have of a column are not exchanged with Flink"
        )
    is_first = ranks["start"] == ranks["end"] == 1
    by_strategy = {"AppendFast": Layout.TOP_OF_INSERTS, "UpdateFast": Layout.TOP_OF_UPDATES}
    if strategy["type"] not in by_strategy:
        return FlinkState.of(
            node,
            refusal=f"the sorted maps of a rank of the strategy {strategy['type']}, over rows that are withdrawn, are "
            "not exchanged with Flink",
        )
    return FlinkState.of(
        node,
        keys=_chosen(rows, node.json["partition"]["fields"]),
        layout=Layout.TOP_ROW if is_first else by_strategy[strategy["type"]],
        inputs=(_columns(rows),),
        order=tuple(
            (each["index"], not each["isAscending"], each["nullIsLast"])
            for each in node.json["orderBy"]["fields"]
        ),
        unique=tuple(strategy.get("primaryKeys", ())),
        last_rank=ranks["end"],
    )


def limit_state(node: PlanNode, rows: Rows) -> FlinkState:
    """Return the state of a limit: the first rows, as a rank of all rows has them."""
    return FlinkState.of(
        node, layout=Layout.TOP_OF_INSERTS, inputs=(_columns(rows),), last_rank=node.json["rankRange"]["end"]
    )


def window_rank_state(
    node: PlanNode, rows: Rows, window: SqlWindow, keys: Sequence[int], *, is_utc: bool
) -> FlinkState:
    """Return the state of a rank of windows: the highest rows of each window of a key."""
    ranks, order = node.json["rankRange"], node.json["sortSpec"]["fields"]
    return FlinkState.of(
        node,
        keys=_chosen(rows, keys),
        layout=Layout.WINDOW_TOP,
        inputs=(_columns(rows),),
        order=tuple((each["index"], not each["isAscending"], each["nullIsLast"]) for each in order),
        last_rank=ranks["end"],
        **_of_windows(node, (rows,), window, is_utc=is_utc),
    )


def window_deduplicated_state(
    node: PlanNode, rows: Rows, window: SqlWindow, keys: Sequence[int], *, is_utc: bool
) -> FlinkState:
    """Return the state of a deduplication of windows: one row of each window of a key."""
    return FlinkState.of(
        node,
        keys=_chosen(rows, keys),
        layout=Layout.WINDOW_ROW,
        inputs=(_columns(rows),),
        rowtimes=(node.json["orderKey"],),
        **_of_windows(node, (rows,), window, is_utc=is_utc),
    )


def window_join_state(
    node: PlanNode, left: Rows, right: Rows, window: SqlWindow, *, is_utc: bool
) -> FlinkState:
    """Return the state of a join of windows: the rows of both inputs."""
    state = _join_state(node, node.json["joinSpec"], Layout.WINDOW_JOIN, left, right)
    if node.json["joinSpec"]["joinType"] in ("SEMI", "ANTI"):
        return FlinkState.of(node, refusal="the state of semi and anti joins is not exchanged with Flink")
    return (
        state if state.refusal else replace(state, **_of_windows(node, (left, right), window, is_utc=is_utc))
    )


def _of_windows(node: PlanNode, inputs: Sequence[Rows], window: SqlWindow, *, is_utc: bool) -> dict[str, Any]:
    """Return the windows of rows of a table function, with the columns of their bounds."""
    windows = _windows(window.assigner, by_window=False)
    refusal = ""
    if windows is None or any(rows.windows is None for rows in inputs):
        refusal = (
            "of operators of windows, those over rows of a window table function are exchanged with Flink, and not "
            "those over results of windows"
        )
    elif any(not node.json.get(each, {}).get("isRowtime", True) for each in _WINDOWINGS):
        refusal = "windows of processing time are not exchanged with Flink"
    elif window.is_instant and not is_utc:
        refusal = "windows that are cut by another local time than UTC are not exchanged with Flink"
    bounds = tuple(tuple(rows.windows.bounds.items()) if rows.windows is not None else () for rows in inputs)
    return {"windows": windows, "bounds": bounds, "refusal": refusal}


def over_state(
    node: PlanNode, rows: Rows, native: NativeAggregates, calls: Sequence[AggregateCall]
) -> FlinkState:
    """Return the state of OVER: rows that wait for the watermark, and accumulators of keys."""
    spec = node.json["overSpec"]
    (group,) = spec["groups"]
    order = group["orderBy"]["fields"][0]["index"]
    fields, refusal = _accumulator_fields(native)
    of_earlier_rows = [call.name for call in calls if call.name in ("RANK", "DENSE_RANK", "LAG")]
    if rows.types[order].time_attribute != "ROWTIME" or group["lowerBound"]["kind"] != "UNBOUNDED_PRECEDING":
        refusal = "of OVER, frames by rowtime that begin with the first row are exchanged with Flink"
    elif of_earlier_rows:
        refusal = f"the accumulators of {of_earlier_rows[0]} are not exchanged with Flink"
    computed = []
    for name, argument in native.arguments.items():
        if not isinstance(argument, Argument) or argument.column not in (None, *rows.columns):
            refusal = refusal or "aggregates of constants and functions are not exchanged with Flink"
            continue
        number = -1 if argument.column is None else rows.columns.index(argument.column)
        computed.append((name, number, argument.form))
    return FlinkState.of(
        node,
        keys=_chosen(rows, spec["partition"]["fields"]),
        fields=tuple(fields),
        layout=Layout.PENDING_ROWS,
        inputs=(_columns(rows),),
        computed=tuple(computed),
        refusal=refusal,
    )


def interval_join_state(node: PlanNode, left: Rows, right: Rows) -> FlinkState:
    """Return the state of a join of rows whose times are close."""
    spec = node.json["intervalJoinSpec"]
    if not spec["windowBounds"]["isEventTime"]:
        return FlinkState.of(node, refusal="of interval joins, those by rowtime are exchanged with Flink")
    return _join_state(node, spec["joinSpec"], Layout.INTERVAL_JOIN, left, right)


def join_state(node: PlanNode, left: Rows, right: Rows) -> FlinkState:
    """Return the state of a regular join."""
    spec = node.json["joinSpec"]
    if spec["joinType"] in ("SEMI", "ANTI") or left.changes or right.changes:
        return FlinkState.of(
            node,
            refusal="of joins without a time, inner and outer ones of rows that do not change are exchanged with Flink",
        )
    if node.json.get("leftUpsertKeys") or node.json.get("rightUpsertKeys"):
        return FlinkState.of(
            node, refusal="the state of a join whose rows have a unique key is not exchanged with Flink"
        )
    return _join_state(node, spec, Layout.REGULAR_JOIN, left, right)


def _join_state(
    node: PlanNode, spec: Mapping[str, Any], layout: Layout, left: Rows, right: Rows
) -> FlinkState:
    keys = spec["leftKeys"]
    if len(set(keys)) < len(keys):
        return FlinkState.of(
            node, refusal="the state of a join that compares a column twice is not exchanged with Flink"
        )
    filtered = spec["filterNulls"]
    return FlinkState.of(
        node,
        keys=_chosen(left, keys),
        layout=layout,
        inputs=(_columns(left), _columns(right)),
        outer=(spec["joinType"] in ("LEFT", "FULL"), spec["joinType"] in ("RIGHT", "FULL")),
        nulls_equal=bool(filtered) and not filtered[0],
    )


def _rowtimes(rows: Rows) -> list[int]:
    return [number for number, kind in enumerate(rows.types) if kind.time_attribute == "ROWTIME"]


def _columns(rows: Rows) -> Columns:
    return tuple(zip(rows.columns, rows.types, strict=True))


def _chosen(rows: Rows, numbers: Sequence[int]) -> Columns:
    return tuple((rows.columns[number], rows.types[number]) for number in numbers)


def _accumulator_fields(
    native: NativeAggregates, taken_back: Sequence[bool] = (), *, count: str | None = None
) -> tuple[list[AccumulatorField], str]:
    """Return the fields of the accumulator that Flink has for the calls, and why it cannot be exchanged, if so.

    Parameters
    ----------
    native : NativeAggregates
    taken_back : sequence of bool
        For each call, whether Flink's aggregate can take values back; by default none can.
    count : str, optional
        Role of the ``COUNT(*)`` that Flink adds to calls without one: `PRESENT`, as for windows that may be empty, or
        `ROWS`, if rows are withdrawn.

    Notes
    -----
    ``AggregateUtil.transformToStreamAggregateInfoList``, and the buffers of ``SumAggFunction``,
    ``SumWithRetractAggFunction``, ``Sum0AggFunction``, ``CountAggFunction``, ``RowNumberAggFunction``,
    ``AvgAggFunction``, ``MinAggFunction`` and ``MaxAggFunction``.
    """
    fields: list[AccumulatorField] = []
    for number, result in enumerate(native.results):
        if isinstance(result, WindowResult):
            return [], f"the accumulators of the function {result.calls.name} are not exchanged with Flink"
        call = result.call
        type = _STRING if call.type.root in (Root.CHAR, Root.VARCHAR) else call.type.with_nullable(True)
        if call.is_distinct or (call.name, result.form) not in _EXCHANGED:
            what, instead = call.name, ""
            if call.is_distinct:
                what, instead = f"{call.name}(DISTINCT)", f"; those of {call.name} over SELECT DISTINCT are"
            return [], f"the accumulators of {what} of {result.given} are not exchanged with Flink{instead}"
        can_take_back = bool(taken_back) and taken_back[number]
        if call.name not in _TAKEN_BACK and (can_take_back or native.withdraws):
            return [], (
                f"the accumulators of {call.name} of {result.given} over rows that are withdrawn are not exchanged "
                "with Flink"
            )
        if call.name == "AVG":
            total, n_values = result.parts
            fields.append(AccumulatorField(OR_ZERO, _sum_type(result.given), (total,)))
            fields.append(AccumulatorField(VALUE, _BIGINT, (n_values,)))
        else:
            role = {"extreme": EXTREME, "sum or zero": ZERO}.get(result.form, VALUE)
            if count == ROWS and _is_count_of_rows(call):
                role = ROWS
            fields.append(AccumulatorField(role, type, result.parts))
            if can_take_back and call.name == "SUM":
                fields.append(AccumulatorField(COUNTED, _BIGINT, result.parts))
    calls = [result.call for result in native.results if not isinstance(result, WindowResult)]
    if count is not None and not any(map(_is_count_of_rows, calls)):
        fields.append(AccumulatorField(count, _BIGINT))
    return fields, ""


def _is_count_of_rows(call: AggregateCall) -> bool:
    return call.name == "COUNT" and not call.arguments and call.filter < 0


def _sum_type(given: LogicalType) -> LogicalType:
    """Return the type of the sum in the accumulator of AVG."""
    if given.root is Root.DECIMAL:
        return LogicalType(Root.DECIMAL, precision=38, scale=given.scale)
    return LogicalType(Root.DOUBLE) if given.root in FLOATS else _BIGINT

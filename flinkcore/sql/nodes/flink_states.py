"""States of nodes as Flink's operators keep them: which can be exchanged by savepoints, and their types."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.sql.nodes.accumulator_fields import accumulator_fields
from flinkcore.sql.nodes.aggregate_calls import AggregateCall, Argument
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.flink_state import (
    CUMULATE,
    HOP,
    PRESENT,
    ROWS,
    SESSION,
    TUMBLE,
    Columns,
    FlinkState,
    Layout,
    StateWindows,
)
from flinkcore.sql.types.logical_types import LogicalType

if TYPE_CHECKING:
    from flinkcore.sql.nodes.windows import SqlWindow


_WINDOWINGS: Final = ("windowing", "leftWindowing", "rightWindowing")


def group_state(
    node: PlanNode, native: NativeAggregates, keys: Sequence[tuple[str, LogicalType]]
) -> FlinkState:
    """Return the state of an aggregate of all rows of a key."""
    taken_back = node.json["aggCallNeedRetractions"]
    count = ROWS if node.json["needRetraction"] else None
    fields, views, refusal = accumulator_fields(native, taken_back, count=count)
    return FlinkState.of(node, keys=tuple(keys), fields=fields, views=views, refusal=refusal)


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
    fields, views, refusal = accumulator_fields(native, count=PRESENT if is_counted else None)
    if windows is None:
        refusal = f"the state of {type(assigner).__name__} is not exchanged with Flink"
    elif windows.kind == HOP and windows.size_ms % windows.slide_ms:
        refusal = "windows whose size is not a multiple of their slide are not exchanged with Flink"
    elif not is_utc:
        refusal = "windows that are cut by another local time than UTC are not exchanged with Flink"
    return FlinkState.of(
        node,
        keys=tuple(keys),
        fields=fields,
        views=views,
        windows=windows,
        refusal=refusal,
    )


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
    by_strategy = {
        "AppendFast": Layout.TOP_OF_INSERTS,
        "UpdateFast": Layout.TOP_OF_UPDATES,
        "Retract": Layout.RANKED_ROWS,
    }
    layout = by_strategy[strategy["type"]]
    is_ranked = layout is Layout.RANKED_ROWS
    return FlinkState.of(
        node,
        keys=_chosen(rows, node.json["partition"]["fields"]),
        layout=Layout.TOP_ROW if is_first and not is_ranked else layout,
        inputs=(_columns(rows),),
        order=tuple(
            (each["index"], not each["isAscending"], each["nullIsLast"])
            for each in node.json["orderBy"]["fields"]
        ),
        unique_keys=(tuple(strategy.get("primaryKeys", ())),),
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
    node: PlanNode, left: Rows, right: Rows, window: SqlWindow, read: Collection[int], *, is_utc: bool
) -> FlinkState:
    """Return the state of a join of windows: the rows of both inputs; `read` as of `join_state`."""
    state = _join_state(node, node.json["joinSpec"], Layout.WINDOW_JOIN, left, right, read)
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
    node: PlanNode,
    rows: Rows,
    native: NativeAggregates,
    calls: Sequence[AggregateCall],
    constants: Columns,
    frame_rows: int | None,
    frame_ms: int | None,
) -> FlinkState:
    """Return the state of OVER: rows that wait for the watermark, and accumulators of keys or rows of their frames."""
    spec = node.json["overSpec"]
    (group,) = spec["groups"]
    order = group["orderBy"]["fields"][0]["index"]
    of_earlier_rows = [call.name for call in calls if call.name in ("RANK", "DENSE_RANK", "LAG")]
    is_bounded = frame_rows is not None or frame_ms is not None
    only_read = ""
    if is_bounded:  # Accumulators are made of the rows again when they are read.
        fields, views, only_read = accumulator_fields(native, [True] * len(native.results), count=ROWS)
        refusal = ""
    else:
        fields, views, refusal = accumulator_fields(native)
    if rows.types[order].time_attribute != "ROWTIME":
        refusal = "of OVER, frames by rowtime are exchanged with Flink"
    elif of_earlier_rows:
        refusal = f"the accumulators of {of_earlier_rows[0]} are not exchanged with Flink"
    elif views and not is_bounded:
        refusal = "the accumulators of DISTINCT over frames are not exchanged with Flink"
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
        fields=fields,
        views=views,
        layout=Layout.FRAME_ROWS if is_bounded else Layout.PENDING_ROWS,
        constants=constants,
        frame_rows=frame_rows,
        frame_ms=frame_ms,
        only_read=only_read,
        inputs=(_columns(rows),),
        computed=tuple(computed),
        refusal=refusal,
    )


def sorted_state(node: PlanNode, rows: Rows) -> FlinkState:
    """Return the state of a sort by rowtime: rows that wait for the watermark."""
    return FlinkState.of(node, layout=Layout.SORTED_ROWS, inputs=(_columns(rows),))


def interval_join_state(node: PlanNode, left: Rows, right: Rows) -> FlinkState:
    """Return the state of a join of rows whose times are close."""
    spec = node.json["intervalJoinSpec"]
    if not spec["windowBounds"]["isEventTime"]:
        return FlinkState.of(node, refusal="of interval joins, those by rowtime are exchanged with Flink")
    return _join_state(node, spec["joinSpec"], Layout.INTERVAL_JOIN, left, right)


def join_state(
    node: PlanNode,
    left: Rows,
    right: Rows,
    unique_keys: Sequence[tuple[int, ...] | None],
    read: Collection[int],
) -> FlinkState:
    """Return the state of a regular join.

    Parameters
    ----------
    node : PlanNode
    left, right : Rows
    unique_keys : sequence of (tuple of int or None)
        Columns by which Flink finds a row of each input.
    read : collection of int
        Columns of right rows that the join reads.
    """
    state = _join_state(node, node.json["joinSpec"], Layout.REGULAR_JOIN, left, right, read)
    return state if state.refusal else replace(state, unique_keys=tuple(unique_keys))


def _join_state(
    node: PlanNode,
    spec: Mapping[str, Any],
    layout: Layout,
    left: Rows,
    right: Rows,
    read: Collection[int] | None = None,
) -> FlinkState:
    keys, how = spec["leftKeys"], spec["joinType"]
    left_alone = how in ("SEMI", "ANTI")
    if left_alone and read is not None and not set(range(len(right.columns))) <= set(read):
        return FlinkState.of(
            node,
            refusal="of semi and anti joins, those that read all columns of their right rows are exchanged with Flink",
        )
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
        outer=(left_alone or how in ("LEFT", "FULL"), how in ("RIGHT", "FULL")),
        left_alone=left_alone,
        nulls_equal=bool(filtered) and not filtered[0],
    )


def _rowtimes(rows: Rows) -> list[int]:
    return [number for number, kind in enumerate(rows.types) if kind.time_attribute == "ROWTIME"]


def _columns(rows: Rows) -> Columns:
    return tuple(zip(rows.columns, rows.types, strict=True))


def _chosen(rows: Rows, numbers: Sequence[int]) -> Columns:
    return tuple((rows.columns[number], rows.types[number]) for number in numbers)

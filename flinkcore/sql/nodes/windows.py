"""Aggregates over windows: window-aggregate, its two-phase form, and group-window-aggregate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from math import gcd
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.common.time import Time
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.sql.expressions.casts import local_time
from flinkcore.sql.nodes.aggregate_calls import AggregateCall
from flinkcore.sql.nodes.flink_states import window_state
from flinkcore.sql.nodes.native_aggregates import NativeAggregates
from flinkcore.sql.nodes.panes import Panes
from flinkcore.sql.nodes.rows import Program, Rows, by_key, zone_named
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of
from flinkcore.sql.types.times import MS_OF_DAY

_DURATION: Final = re.compile(
    r"(-?)P(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,9}))?S)?)?"
)


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration as ``java.time.Duration`` writes it, such as ``PT5S``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    sign, days, hours, minutes, minus, seconds, fraction = match.groups()
    of_second = int(seconds or 0) * 1000 + int((fraction or "0").ljust(3, "0")[:3])
    millis = int(days or 0) * MS_OF_DAY + int(hours or 0) * 3_600_000 + int(minutes or 0) * 60_000
    millis += -of_second if minus else of_second
    return -millis if sign else millis


@dataclass(frozen=True, eq=False)
class WindowBound(ColumnExpression):
    """A bound of a window as a column of SQL; picklable.

    Attributes
    ----------
    column : str
        ``window_start`` or ``window_end``, in milliseconds.
    type : LogicalType
    minus_ms : int
        1 for the rowtime of the window. A session of processing time ends 1 ms after the column says.
    zone : str
        Zone of whose local time a TIMESTAMP is.
    is_instant : bool
        Whether the windows' times are instants.
    clock : LocalClock or None
        Clock by whose local times the windows are cut, which then are their bounds.
    """

    column: str
    type: LogicalType
    minus_ms: int
    zone: str
    is_instant: bool
    clock: LocalClock | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.column])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        bound = batch.column(self.column).cast(pa.int64())
        if self.minus_ms:
            bound = pc.subtract(bound, self.minus_ms)
        if self.clock is not None:
            return _of_clock(bound, self.type, self.clock)
        instant = bound.cast(pa.timestamp("ms", "UTC"))
        if self.type.root is Root.TIMESTAMP_LTZ or not self.is_instant:
            return instant.cast(self.type.arrow)
        return local_time(instant, self.zone).cast(self.type.arrow)

    def __str__(self) -> str:
        minus = f" - {self.minus_ms} ms" if self.minus_ms else ""
        return f"{self.column}{minus} as {self.type}{f' of {self.zone}' if self.is_instant else ''}"


def _of_clock(local: pa.Array, kind: LogicalType, clock: LocalClock) -> pa.Array:
    """Return local times of a clock in ms as a column of a type."""
    if kind.root is not Root.TIMESTAMP_LTZ:
        return local.cast(pa.timestamp("ms")).cast(kind.arrow)
    instants = clock.first_instants(local.fill_null(0).to_numpy())
    return (
        pa.array(instants, mask=local.is_null().to_numpy(zero_copy_only=False))
        .cast(pa.timestamp("ms", "UTC"))
        .cast(kind.arrow)
    )


@dataclass(frozen=True, eq=False)
class NoTime(ColumnExpression):
    """The processing time of a window, which nothing reads."""

    type: LogicalType

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset()

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.nulls(batch.num_rows, self.type.arrow)

    def __str__(self) -> str:
        return "no processing time"


@dataclass(frozen=True)
class SqlWindow:
    """Windows of a node.

    Attributes
    ----------
    assigner : WindowAssigner
    is_instant : bool
        Whether the time attribute is a TIMESTAMP_LTZ.
    rowtime : int
        Number of the column of the time attribute, or -1.
    is_latest_first : bool
        Whether the panes of windows are merged from the last one to the first.
    clock : LocalClock or None
        Clock by whose local times they are cut.
    """

    assigner: WindowAssigner[Any, Any]
    is_instant: bool
    rowtime: int = -1
    is_latest_first: bool = False
    clock: LocalClock | None = None

    def of_clock(self, results: LogStream) -> LogStream:
        """Return the results of an operator over these windows, cut by the clock."""
        results._transformation.settings.clock = self.clock
        return results

    def panes(self, columns: Sequence[str]) -> Panes | None:
        """Return the panes of windows that overlap, or None of others."""
        assigner = self.assigner
        if not 0 <= self.rowtime < len(columns):
            return None
        if isinstance(assigner, SlidingEventTimeWindows):
            size = gcd(assigner.size_ms, assigner.slide_ms)
        elif isinstance(assigner, CumulativeEventTimeWindows):
            size = assigner.step_ms
        else:
            return None
        return Panes(columns[self.rowtime], size, assigner.offset_ms % size, self.is_latest_first)


def fixed_offset_ms(zone: str) -> int | None:
    """Return the offset of a zone, or None if it has had several since 1970."""
    if zone == "UTC":
        return 0
    info = ZoneInfo(zone)
    # Transitions lie months apart.
    moments = (datetime.fromtimestamp(day * 86_400, timezone.utc) for day in range(0, 25_000, 20))
    offsets = {info.utcoffset(moment) for moment in moments}
    (first, *others) = offsets
    return None if others or first is None else int(first.total_seconds() * 1000)


def assigner_of(
    program: Program, node: PlanNode, kind: str, sizes: Mapping[str, int], is_instant: bool
) -> tuple[WindowAssigner[Any, Any], LocalClock | None]:
    """Return the windows of these sizes in ms; those of instants are cut by the local time of the zone."""
    offset, zone = sizes.get("offset", 0), zone_of(program, node)
    local = fixed_offset_ms(zone) if is_instant else 0
    if local is None and kind == "tumble" and sizes["size"] == MS_OF_DAY and not offset:
        return TumblingEventTimeWindows.of_local_days(zone), None
    assigner = _of_sizes(program, node, kind, sizes, offset - (local or 0))
    return assigner, None if local is not None else LocalClock.of(zone)


def _of_sizes(
    program: Program, node: PlanNode, kind: str, sizes: Mapping[str, int], offset: int
) -> WindowAssigner[Any, Any]:
    if kind == "session" and program.by_arrival:
        return _sessions_of_arrivals(node, sizes["gap"])
    if kind == "session":
        return EventTimeSessionWindows.with_gap(Time.milliseconds(sizes["gap"]))
    size = Time.milliseconds(sizes["size"])
    if kind == "tumble":
        return TumblingEventTimeWindows.of(size, Time.milliseconds(offset % sizes["size"]))
    step = sizes["slide"]
    within = Time.milliseconds(offset % (step if kind == "hop" else sizes["size"]))
    if kind == "hop":
        return SlidingEventTimeWindows.of(size, Time.milliseconds(step), within)
    return CumulativeEventTimeWindows.of(size, Time.milliseconds(step), within)


def _sessions_of_arrivals(node: PlanNode, gap_ms: int) -> WindowAssigner[Any, Any]:
    """Return sessions that have ended when a row arrives after the gap: they do not merge if they touch.

    So the gap is a millisecond less, and their end a millisecond before that of the session.
    """
    before = node
    while before.inputs:
        before = before.inputs[0]
        if before.kind == "watermark-assigner" and node.kind != "group-window-aggregate":
            raise node.refuse(
                "Flink loses rows of sessions of processing time if their table has watermarks",
                "Leave WATERMARK FOR out of the table",
            )
    if gap_ms < 2:
        raise node.refuse(
            "a gap of 1 ms is not supported for sessions of processing time", "Take a longer gap"
        )
    return EventTimeSessionWindows.with_gap(Time.milliseconds(gap_ms - 1))


_KINDS: Final = {
    "TumblingWindow": "tumble",
    "HoppingWindow": "hop",
    "CumulativeWindow": "cumulate",
    "SessionWindow": "session",
}
_SIZES: Final = {
    "size": "size",
    "maxSize": "size",
    "slide": "slide",
    "step": "slide",
    "offset": "offset",
    "gap": "gap",
}


_SLICES: Final = ("size", "slide", "step")


def window_of(program: Program, node: PlanNode, windowing: Mapping[str, Any]) -> SqlWindow:
    """Return the windows over a time attribute that a node describes."""
    time = type_of(windowing["timeAttributeType"])
    window = windowing["window"]
    sizes = {_SIZES[name]: duration_ms(text) for name, text in window.items() if name in _SIZES}
    is_instant = time.root is Root.TIMESTAMP_LTZ
    kind = _KINDS[window["type"]]
    assigner, clock = assigner_of(program, node, kind, sizes, is_instant)
    return SqlWindow(assigner, is_instant, windowing["timeAttributeIndex"], kind == "hop", clock)


def is_range_of_processing_time(node: PlanNode) -> bool:
    """Return whether the frames of an over-aggregate are ranges of processing time."""
    (group,) = node.json["overSpec"]["groups"]
    (order, *_) = group["orderBy"]["fields"]
    _, kind = node.input.fields[order["index"]]
    is_bounded = group["lowerBound"]["kind"] != "UNBOUNDED_PRECEDING" and not group["isRows"]
    return is_bounded and kind.time_attribute == "PROCTIME"


def needs_one_clock(node: PlanNode) -> bool:
    """Return whether a node has rows that come by the processing time alone, whichever input the last row is of."""
    if node.kind != "interval-join":
        return False
    spec = node.json["intervalJoinSpec"]
    return not spec["windowBounds"]["isEventTime"] and spec["joinSpec"]["joinType"] != "INNER"


def is_of_processing_time(node: PlanNode) -> bool:
    """Return whether a node waits for the processing time: for the end of its windows, ranges, intervals or ties."""
    if node.kind == "temporal-sort":
        first, *others = node.json["orderBy"]["fields"]
        return bool(others) and node.input.fields[first["index"]][1].time_attribute == "PROCTIME"
    if node.kind == "over-aggregate":
        return is_range_of_processing_time(node)
    if node.kind == "interval-join":
        return not node.json["intervalJoinSpec"]["windowBounds"]["isEventTime"]
    if node.kind == "group-window-aggregate":
        field = node.json["window"]["timeField"]
        return type_of(field.get("fieldType", field.get("type"))).time_attribute == "PROCTIME"
    windowings = (node.json.get(name) for name in ("windowing", "leftWindowing", "rightWindowing"))
    return any(not each.get("isRowtime", True) for each in windowings if each is not None)


def zone_of(program: Program, node: PlanNode) -> str:
    """Return the time zone by whose local time a node cuts windows."""
    zone = node.json.get("configuration", {}).get("table.local-time-zone", program.zone)
    return program.zone if zone == "default" else zone_named(str(zone))


def is_utc(program: Program, node: PlanNode) -> bool:
    """Return whether the local time by which a node cuts windows is that of UTC."""
    return fixed_offset_ms(zone_of(program, node)) == 0


def window_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the results of aggregates over windows, in one phase."""
    windowing = node.json["windowing"]
    calls = node.json["aggCalls"]
    if windowing["strategy"] == "TimeAttribute":
        window = _sliced_window(program, node, windowing)
        return aggregated(program, node, rows, window, node.json["grouping"], calls)
    if windowing["strategy"] == "WindowAttached":
        return _of_attached_windows(program, node, rows, windowing, node.json["grouping"], calls)
    raise node.refuse(f"windows of the strategy {windowing['strategy']} are not supported")


def _sliced_window(program: Program, node: PlanNode, windowing: Mapping[str, Any]) -> SqlWindow:
    """Return the windows of an aggregate that Flink cuts into slices, with a warning where it loses rows of them."""
    window = window_of(program, node, windowing)
    sizes = [duration_ms(text) for name, text in windowing["window"].items() if name in _SLICES]
    if window.is_instant and windowing["isRowtime"] and sizes:
        # TimeWindowUtil.getNextTriggerWatermark: in a zone without daylight saving, buffered rows are written when a
        # slice ends in UTC. A window that has ended before gets no timer, or has been emitted without them.
        zone = zone_of(program, node)
        if (fixed_offset_ms(zone) or 0) % gcd(*sizes):
            warn_user(
                f"{node.description}: Flink loses rows of such windows in the zone {zone}, where they begin between "
                "full multiples of their length in UTC. Here these rows are kept, as in a zone with daylight saving"
            )
    return window


def local_window_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the rows as they are: both phases are done as one by the global aggregate, with the same results."""
    return rows


def global_window_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the results of aggregates over windows; `rows` are those before the local aggregate."""
    local = node
    while local.kind != "local-window-aggregate":
        if len(local.inputs) != 1:
            raise node.refuse("there is no local-window-aggregate before it")
        local = local.input
    windowing = local.json["windowing"]
    grouping, calls = local.json["grouping"], node.json["aggCalls"]
    if windowing["strategy"] == "TimeAttribute":
        return aggregated(program, node, rows, _sliced_window(program, local, windowing), grouping, calls)
    return _of_attached_windows(program, node, rows, windowing, grouping, calls)


_BOUNDS: Final = {
    "WindowStart": ("window_start", 0),
    "WindowEnd": ("window_end", 0),
    "Rowtime": ("window_end", 1),
}


def window_properties(
    program: Program,
    node: PlanNode,
    is_instant: bool,
    columns: Callable[[str], str] = lambda name: name,
    later_ms: int = 0,
    clock: LocalClock | None = None,
) -> list[ColumnExpression]:
    found: list[ColumnExpression] = []
    kinds = dict(node.fields)
    for each in node.json.get("namedWindowProperties") or ():
        kind = each["property"]["kind"]
        if kind == "Proctime":  # is there, but of no use: an expression that reads it is refused
            found.append(NoTime(kinds[each["name"]]))
            continue
        if kind not in _BOUNDS:
            raise node.refuse(f"the window property {kind} is not supported")
        name, minus = _BOUNDS[kind]
        minus -= later_ms if name == "window_end" else 0
        found.append(
            WindowBound(columns(name), kinds[each["name"]], minus, zone_of(program, node), is_instant, clock)
        )
    return found


def aggregated(
    program: Program,
    node: PlanNode,
    rows: Rows,
    window: SqlWindow,
    grouping: Sequence[int],
    calls: Sequence[Mapping[str, Any]],
    attached: tuple[int, int] | None = None,
) -> Rows:
    """Return the results of aggregates by keys and windows.

    Parameters
    ----------
    program : Program
    node : PlanNode
        Node whose columns the results have.
    rows : Rows
    window : SqlWindow
    grouping : sequence of int
        Numbers of the key columns.
    calls : sequence of mapping
        Aggregate calls of the plan.
    attached : (int, int), optional
        Numbers of the columns with the start and the end of a row's window, where they are keys, too.
    """
    rows.require_inserts(node, "Aggregate rows that do not change, such as those of a table")
    if attached is None and window.rowtime >= 0:
        rows.require_time(node, window.rowtime)
    panes = window.panes(rows.columns)
    merges = panes is not None or isinstance(window.assigner, EventTimeSessionWindows)
    native = NativeAggregates(node, rows.columns, rows.types, panes, needed="merge" if merges else None)
    for call in calls:
        native.add(AggregateCall.of(call, program.functions))
    if not native.aggregates:
        native.add(AggregateCall("COUNT", (), -1, False, LogicalType(Root.BIGINT, False)))
        native.results.clear()
    keys = list(dict.fromkeys(rows.columns[number] for number in (*grouping, *(attached or ()))))
    windowed = by_key(rows.stream.select(*keys, **native.arguments), keys).window(window.assigner)
    results = window.of_clock(windowed.aggregate(**native.aggregates))
    if attached is None:
        later_ms = int(program.by_arrival and isinstance(window.assigner, EventTimeSessionWindows))
        properties = window_properties(
            program, node, window.is_instant, later_ms=later_ms, clock=window.clock
        )
    else:
        by_name = {"window_start": rows.columns[attached[0]], "window_end": rows.columns[attached[1]]}
        properties = window_properties(program, node, False, by_name.__getitem__)
    expressions: list[Any] = [pc.field(rows.columns[number]) for number in grouping]
    expressions += [*native.results, *properties]
    times = [
        number
        for number, each in enumerate(expressions)
        if isinstance(each, WindowBound) and each.column == "window_end" and each.minus_ms == 1
    ]
    # A window that only the end of the log fires has not ended yet by the clock.
    only = pc.field("watermark") != MAX_TIMESTAMP if program.by_arrival else None
    key = [(rows.columns[number], rows.types[number]) for number in grouping]
    state = None
    if attached is None and window.rowtime >= 0 and not program.by_arrival:
        by_utc = not window.is_instant or is_utc(program, node)
        state = window_state(node, window.assigner, native, key, is_utc=by_utc)
    return program.of_operator(
        node, results, expressions, times=times, of_windows=True, only=only, state=state
    )


def _of_attached_windows(
    program: Program,
    node: PlanNode,
    rows: Rows,
    windowing: Mapping[str, Any],
    grouping: Sequence[int],
    calls: Sequence[Mapping[str, Any]],
) -> Rows:
    """Return aggregates of rows by the windows that they have as columns.

    Results of windows have the last millisecond of theirs as time, and so are in a window of a millisecond.
    """
    if rows.windows is not None:
        # Flink does not share the slices of these windows: it merges none.
        window = replace(rows.windows.window, rowtime=-1)
        return aggregated(program, node, rows, window, grouping, calls)
    if not rows.of_windows:
        raise node.refuse(
            "aggregates by the windows of a window table function whose bounds are computed with before are not "
            "supported",
            "Compute with window_start and window_end after it",
        )
    window = SqlWindow(TumblingEventTimeWindows.of(Time.milliseconds(1)), False)
    attached = (windowing["windowStart"], windowing["windowEnd"])
    return aggregated(program, node, rows, window, grouping, calls, attached)

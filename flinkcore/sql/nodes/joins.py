"""Joins of two inputs: of intervals, of windows, of versions, and regular ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.join_operations import RegularJoin, TemporalJoin, TimeIntervalJoin
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.sql.expressions.sql_expression import SqlExpression
from flinkcore.sql.nodes.attached_windows import attached_window
from flinkcore.sql.nodes.flink_states import interval_join_state, join_state, window_join_state
from flinkcore.sql.nodes.rows import Program, Rows, by_key
from flinkcore.sql.nodes.window_extremes import ExtremeJoin
from flinkcore.sql.nodes.windows import WindowBound, is_utc, needs_one_clock, zone_of
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import input_refs
from flinkcore.sql.plan.settings import MIN_CLEANUP_INTERVAL, duration_ms

_LEFT: Final = "left#"
_RIGHT: Final = "right#"
_SUFFIX: Final = "#2"
_OF_CHANGES: Final = "Join rows that do not change, such as those of a table or a window aggregate"


@dataclass(frozen=True, eq=False)
class _WherePresent(ColumnExpression):
    """A column of one side's rows; null where a row is missing. Picklable."""

    inner: ColumnExpression
    side: str

    @property
    def required_columns(self) -> frozenset[str]:
        return self.inner.required_columns | {self.side}

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        array = self.inner.evaluate(batch)
        return pc.if_else(batch.column(self.side).is_valid(), array, pa.scalar(None, array.type))

    def __str__(self) -> str:
        return f"{self.inner} where there is a row of {self.side}"


@dataclass(frozen=True)
class _Sides:
    """Both inputs of a join.

    Attributes
    ----------
    program : Program
    node : PlanNode
    spec : mapping
        The plan's ``joinSpec``.
    left, right : Rows
    """

    program: Program
    node: PlanNode
    spec: Mapping[str, Any]
    left: Rows
    right: Rows

    @property
    def how(self) -> str:
        return str(self.spec["joinType"]).lower()

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of a pair, as the results of the join name them."""
        taken = set(self.left.columns)
        right = (f"{name}{_SUFFIX}" if name in taken else name for name in self.right.columns)
        return (*self.left.columns, *right)

    @property
    def nulls_equal(self) -> bool:
        """Return whether keys with nulls match each other."""
        filtered = self.spec["filterNulls"]
        if len(set(filtered)) > 1:
            raise self.node.refuse(
                "a condition with both = and IS NOT DISTINCT FROM is not supported", "Write one of them"
            )
        return bool(filtered) and not filtered[0]

    @property
    def read_of_right(self) -> set[int]:
        """Columns of right rows that the join keeps even if they do not come out, and bounds of windows, by number."""
        written, n = self.spec.get("nonEquiCondition"), len(self.left.columns)
        refs = () if written is None else input_refs(self.program.rex(self.node, written))
        bounds = () if self.right.windows is None else self.right.windows.bounds
        return {*self.spec["rightKeys"], *(number - n for number in refs if number >= n), *bounds}

    def settings(self) -> dict[str, Any]:
        """Return the arguments that all joins have, except for `nulls_equal`."""
        written = self.spec.get("nonEquiCondition")
        where = None
        if written is not None:
            where = SqlExpression(self.program.rex(self.node, written), self.names, self.program.zone)
        return {
            "how": self.how,
            "where": where,
            "suffix": _SUFFIX,
        }

    def keyed(self, further: Sequence[Sequence[int]] = ((), ())) -> tuple[KeyedLogStream, KeyedLogStream]:
        """Return both streams by key; `further` has numbers of columns of each that are part of the key, too."""
        keys = [*self.spec["leftKeys"], *further[0]], [*self.spec["rightKeys"], *further[1]]
        left, right = (
            _keyed(rows, numbers, side)
            for rows, numbers, side in zip((self.left, self.right), keys, (_LEFT, _RIGHT), strict=True)
        )
        return left, right

    def columns(self) -> list[Any]:
        """Return the columns of the node from those of the results."""
        n = len(self.left.columns)
        names = self.names[:n] if self.how in ("semi", "anti") else self.names
        found: list[Any] = []
        for number, name in enumerate(names):
            rows, own, side = (self.left, number, _LEFT) if number < n else (self.right, number - n, _RIGHT)
            bound = None if rows.windows is None else rows.windows.bounds.get(own)
            if bound is None:
                found.append(pc.field(name))
                continue
            assert rows.windows is not None
            column, minus = ("window_end", 1) if bound == "window_time" else (bound, 0)
            zone = zone_of(self.program, self.node)
            window = rows.windows.window
            of_all = WindowBound(column, rows.types[own], minus, zone, window.is_instant, window.clock)
            found.append(_WherePresent(of_all, side))
        return found


def _keyed(rows: Rows, numbers: Sequence[int], side: str) -> KeyedLogStream:
    """Return rows by key; with windows, they have a constant that is null where a row is missing."""
    computed: dict[str, Any] = {} if rows.windows is None else {side: pc.scalar(0)}
    keys: list[str] = []
    for number in numbers:
        name = rows.columns[number]
        if name in keys:  # one column equals several of the other side
            computed[f"{name}{side}{number}.{len(keys)}".replace(".", "_")] = pc.field(name)
            name = list(computed)[-1]
        keys.append(name)
    kinds = (ROW_KIND,) if rows.changes else ()
    return by_key(rows.stream.select(*rows.own_columns, *kinds, **computed), keys)


def interval_join(program: Program, node: PlanNode, left: Rows, right: Rows) -> Rows:
    """Return pairs of rows whose times are close."""
    spec = node.json["intervalJoinSpec"]
    bounds = spec["windowBounds"]
    for rows, field in ((left, "leftTimeIndex"), (right, "rightTimeIndex")):
        rows.require_inserts(node, _OF_CHANGES)
        rows.require_time(node, bounds[field])
    lower, upper = -bounds["leftUpperBound"], -bounds["leftLowerBound"]
    if lower > upper:
        raise node.refuse("no times are in its interval", "Exchange the bounds")
    sides = _Sides(program, node, spec["joinSpec"], left, right)
    streams = sides.keyed()
    if sides.how != "inner" and duration_ms(MIN_CLEANUP_INTERVAL, program.settings):
        raise node.refuse(
            f"{MIN_CLEANUP_INTERVAL.key()} is not supported, which delays the rows without a match",
            "Leave it out: they then come as soon as no match is expected",
        )
    by_clock = not bounds["isEventTime"]
    if needs_one_clock(node) and program.environment.get_config().get_auto_watermark_interval() != 1:
        raise node.refuse(
            "rows without a match in an interval of processing time come by one clock, and a log without rows learns "
            "the time at the ticks of watermarks alone",
            "Write SET 'pipeline.auto-watermark-interval' = '1 ms' before the query, or --set",
        )
    operation = TimeIntervalJoin(
        **sides.settings(), nulls_equal=sides.nulls_equal, lower_ms=lower, upper_ms=upper, by_clock=by_clock
    )
    results = streams[0]._joined(streams[1], operation)
    # The timestamp of a pair is the later one of both.
    times = set()
    if upper <= 0 and sides.how in ("inner", "left"):
        times.add(bounds["leftTimeIndex"])
    if lower >= 0 and sides.how in ("inner", "right"):
        times.add(len(left.columns) + bounds["rightTimeIndex"])
    state = interval_join_state(node, left, right)
    return program.of_operator(node, results, sides.columns(), times=times, state=state)


def window_join(program: Program, node: PlanNode, left: Rows, right: Rows) -> Rows:
    """Return pairs of rows of the same window, when it ends."""
    written = node.json["leftWindowing"], node.json["rightWindowing"]
    windows = [
        attached_window(program, node, rows, windowing)
        for rows, windowing in zip((left, right), written, strict=True)
    ]
    if (left.windows is None) is not (right.windows is None):
        raise node.refuse(
            "a join of rows of a window table function with results of windows is not supported",
            "Aggregate both sides, or none",
        )
    sides = _Sides(program, node, node.json["joinSpec"], left, right)
    state = window_join_state(
        node, left, right, windows[0], sides.read_of_right, is_utc=is_utc(program, node)
    )
    extreme = None if program.by_arrival or left.windows is not None else ExtremeJoin.of(node)
    if extreme is not None:
        highest = extreme.results(left, windows[0].assigner)
        return program.of_operator(node, highest, extreme.of_pairs(left), of_windows=True, state=state)
    further = [
        [] if left.windows is not None else [windowing["windowStart"], windowing["windowEnd"]]
        for windowing in written
    ]
    streams = sides.keyed(further)
    joined = streams[0].join_window(
        streams[1], windows[0].assigner, nulls_equal=sides.nulls_equal, **sides.settings()
    )
    results = windows[0].of_clock(joined)
    return program.of_operator(node, results, sides.columns(), of_windows=True, state=state)


def temporal_join(program: Program, node: PlanNode, left: Rows, right: Rows) -> Rows:
    """Return rows with the version that is valid at their time."""
    if node.json.get("isTemporalFunctionJoin"):
        raise node.refuse("a temporal table function is not supported", "Write FOR SYSTEM_TIME AS OF")
    if node.json["rightTimeAttributeIndex"] < 0:
        raise node.refuse(
            "a join by processing time is not supported", "Write FOR SYSTEM_TIME AS OF a rowtime"
        )
    left.require_inserts(node, _OF_CHANGES)
    left.require_time(node, node.json["leftTimeAttributeIndex"])
    if right.changes - {"+U"}:  # a new version is the same as a first one
        right.require_inserts(node, "Take versions of which none is withdrawn")
    right = replace(right, changes=frozenset())
    right.require_time(node, node.json["rightTimeAttributeIndex"])
    sides = _Sides(program, node, node.json["joinSpec"], left, right)
    streams = sides.keyed()
    # TemporalRowTimeJoinOperator looks a version up by its key alone, and null is a key.
    (ttl_ms,) = program.ttls(node)
    # BaseTwoInputStreamOperatorWithStateRetention sets no timer for a time to live of 1 ms.
    operation = TemporalJoin(**sides.settings(), nulls_equal=True, ttl_ms=ttl_ms if ttl_ms > 1 else 0)
    results = streams[0]._joined(streams[1], operation)
    return program.of_operator(node, results, sides.columns(), times=left.times)


def join(program: Program, node: PlanNode, left: Rows, right: Rows) -> Rows:
    """Return pairs of rows whenever they come, and changes of those without a match."""
    sides = _Sides(program, node, node.json["joinSpec"], left, right)
    streams = sides.keyed()
    given = left.changes | right.changes
    gives_padded = sides.how not in ("inner", "semi")
    kinds = given | {"-D"} if gives_padded else given
    ttls = program.ttls(node) or (0, 0)
    unique_keys = (
        _unique_key(node.json.get("leftUpsertKeys"), sides.spec["leftKeys"]),
        _unique_key(node.json.get("rightUpsertKeys"), sides.spec["rightKeys"]),
    )
    named_keys = (_names_of_key(left, ttls[0], unique_keys[0]), _names_of_key(right, ttls[1], unique_keys[1]))
    with_changes = bool(kinds) or any(ttls)
    operation = RegularJoin(
        **sides.settings(),
        nulls_equal=sides.nulls_equal,
        with_changes=with_changes,
        unique_keys=named_keys,
        ttl_ms=(ttls[0], ttls[1]),
    )
    results = streams[0]._joined(streams[1], operation)
    state = join_state(node, left, right, unique_keys, sides.read_of_right)
    return program.of_operator(node, results, sides.columns(), changes=kinds, state=state)


def _unique_key(
    upsert_keys: Sequence[Sequence[int]] | None, join_keys: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the columns by which Flink's state of a side finds a row of a key, or None if by all of them."""
    if not upsert_keys:
        return None
    if any(set(each) <= set(join_keys) for each in upsert_keys):
        return ()
    shortest: Sequence[int] = min(upsert_keys, key=len)
    return tuple(shortest)


def _names_of_key(rows: Rows, ttl_ms: int, numbers: Sequence[int] | None) -> tuple[str, ...] | None:
    """Return the columns by which rows that change or expire are found; rows that stay are not looked for."""
    if numbers is None or not (rows.changes or ttl_ms):
        return None
    return tuple(rows.columns[number] for number in numbers)

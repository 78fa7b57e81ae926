"""Joins of the results of a window with their own highest or lowest value, which are ranks with ties.

Flink plans the hottest items of each window as a join of counts with their maximum::

    counts ──────────────────────────▶ window-join, n >= most ──▶ ...
       └──▶ MAX(n) of each window ──────▶

A row has a match if no other row of its window and key has a higher value: it is of the first rank. So all rows of the
first rank come out, in the order of their arrival and when the window ends, as Flink's WindowJoinOperator emits the
pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import WindowAssigner
from flinkcore.sql.nodes.rows import Rows, by_key
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, RexCall, rex_of
from flinkcore.sql.types.logical_types import INTEGERS, TIMESTAMPS, Root

_AGGREGATES: Final = ("window-aggregate", "global-window-aggregate")
_BOUNDS: Final = {"WindowStart": "windowStart", "WindowEnd": "windowEnd"}
_HIGHEST: Final = "$MAX$1"
_LOWEST: Final = "$MIN$1"
_MATCHING: Final = {"=": "=", ">=": "<=", "<=": ">="}
"""Comparisons by which only the extreme matches, and the same with the operands exchanged."""

_EXTREME: Final = -1
"""Stands for the column of the maximum or minimum."""


@dataclass(frozen=True)
class ExtremeJoin:
    """A join of the results of a window with their highest or lowest value.

    Attributes
    ----------
    keys : tuple of int
        Columns of the left rows by which the extreme is taken, with the bounds of their window.
    value : int
        Column of the left rows whose extreme it is.
    is_highest : bool
        Whether the extreme is the maximum.
    columns : tuple of int
        For each column of the right rows the one of the left rows that is equal to it.
    """

    keys: tuple[int, ...]
    value: int
    is_highest: bool
    columns: tuple[int, ...]

    @classmethod
    def of(cls, node: PlanNode) -> ExtremeJoin | None:
        """Return what a window join is, or None if it joins anything else."""
        spec = node.json["joinSpec"]
        if str(spec["joinType"]).lower() != "inner":
            return None
        left, right = node.inputs
        origin, of_left = _origin(left)
        extreme = _Extreme.of(right)
        if extreme is None or extreme.rows is not origin:
            return None
        places: dict[int | None, int] = {}
        for place, number in enumerate(of_left):
            if number is not None:
                places.setdefault(number, place)
        same = [extreme.value if each == _EXTREME else each for each in extreme.columns]
        compared = _compared(node, extreme.columns)
        if compared is None or not places.keys() >= set(same):
            return None
        value, comparison = compared
        if of_left[value] != extreme.value or comparison not in ("=", ">=" if extreme.is_highest else "<="):
            return None
        pairs = [
            pair
            for pair in zip(spec["leftKeys"], spec["rightKeys"], strict=True)
            if extreme.columns[pair[1]] != _EXTREME
        ]
        windows = node.json["leftWindowing"], node.json["rightWindowing"]
        pairs += [tuple(each.get(name, -1) for each in windows) for name in _BOUNDS.values()]
        if min(map(min, pairs)) < 0 or any(of_left[own] != same[other] for own, other in pairs):
            return None
        if {same[other] for _, other in pairs} != extreme.keys:
            return None
        kinds = [kind for _, kind in left.fields]
        # No extreme is null, and a null key, by which Flink aggregates, matches nothing in a join.
        if any(kinds[own].nullable for own in (value, *(own for own, _ in pairs))):
            return None
        if kinds[value].root not in (*INTEGERS, *TIMESTAMPS, Root.DATE):
            return None
        return cls(
            tuple(own for own, _ in pairs),
            value,
            extreme.is_highest,
            tuple(places[number] for number in same),
        )

    def results(self, left: Rows, assigner: WindowAssigner[Any, Any]) -> LogStream:
        """Return the rows of the first rank, with all columns of both sides by the names of the left ones."""
        keys = list(dict.fromkeys(left.columns[number] for number in self.keys))
        keyed = by_key(left.stream.select(*left.own_columns), keys)
        value = left.columns[self.value]
        return keyed.window(assigner).top(
            1, by=value, descending=self.is_highest, rank="rank", rank_column=None
        )

    def of_pairs(self, left: Rows) -> list[Any]:
        """Return the columns of the pairs from those of the results."""
        return [pc.field(left.columns[number]) for number in (*range(len(left.columns)), *self.columns)]


@dataclass(frozen=True)
class _Extreme:
    """The highest or lowest value of the rows of a node by their windows.

    Attributes
    ----------
    rows : PlanNode
    keys : frozenset of int
        Columns of its rows by which the value is aggregated, with the bounds of the window.
    value : int
        Column of its rows.
    is_highest : bool
    columns : tuple of int or None
        For each column after the aggregate the one of the rows that it is, `_EXTREME`, or None for any other.
    """

    rows: PlanNode
    keys: frozenset[int]
    value: int
    is_highest: bool
    columns: tuple[int | None, ...]

    @classmethod
    def of(cls, node: PlanNode) -> _Extreme | None:
        """Return the extreme that a node has the columns of, or None."""
        aggregate, passed = _origin(node)
        if aggregate.kind not in _AGGREGATES or len(aggregate.json["aggCalls"]) != 1:
            return None
        local = aggregate
        if aggregate.kind == "global-window-aggregate":
            while local.kind != "local-window-aggregate":
                local = local.input
        windowing, grouping = local.json["windowing"], local.json["grouping"]
        (call,) = aggregate.json["aggCalls"]
        is_plain = call["filterArg"] < 0 and call["internalName"] in (_HIGHEST, _LOWEST)
        if not is_plain or windowing["strategy"] != "WindowAttached":
            return None
        rows, of_rows = _origin(local.input)
        bounds = {name: windowing.get(field, -1) for name, field in _BOUNDS.items()}
        (argument,) = call["argList"]
        read = [*grouping, argument, *bounds.values()]
        if min(read) < 0 or any(of_rows[number] is None for number in read):
            return None
        value = of_rows[argument]
        assert value is not None
        kinds = [each["property"]["kind"] for each in aggregate.json.get("namedWindowProperties") or ()]
        given = [
            *(of_rows[number] for number in grouping),
            _EXTREME,
            *(of_rows[bounds[kind]] if kind in bounds else None for kind in kinds),
        ]
        keys = (of_rows[number] for number in (*grouping, *bounds.values()))
        return cls(
            rows,
            frozenset(key for key in keys if key is not None),
            value,
            call["internalName"] == _HIGHEST,
            tuple(None if number is None else given[number] for number in passed),
        )


def _origin(node: PlanNode) -> tuple[PlanNode, Sequence[int | None]]:
    """Return the node whose rows a node passes on, all of them, and for each column the one that it is there."""
    columns: Sequence[int | None] = range(len(node.fields))
    while node.kind in ("exchange", "calc"):
        if node.kind == "calc":
            if node.json.get("condition") is not None:
                break
            projection = [rex_of(each) for each in node.json["projection"]]
            passed = [each.index if isinstance(each, InputRef) else None for each in projection]
            columns = [None if number is None else passed[number] for number in columns]
        node = node.input
    return node, columns


def _compared(node: PlanNode, of_right: Sequence[int | None]) -> tuple[int, str] | None:
    """Return the left column that a join compares with the extreme among its right ones, and how, or None.

    None also stands for further conditions, except for those that keys are equal.
    """
    spec, n_left = node.json["joinSpec"], len(node.inputs[0].fields)
    keys = zip(spec["leftKeys"], spec["rightKeys"], strict=True)
    found = [(own, "=") for own, other in keys if of_right[other] == _EXTREME]
    if spec.get("nonEquiCondition") is not None:
        condition = rex_of(spec["nonEquiCondition"])
        if not isinstance(condition, RexCall) or condition.name not in _MATCHING:
            return None
        first, second = condition.operands
        comparison = condition.name
        if isinstance(first, InputRef) and first.index >= n_left:
            first, second, comparison = second, first, _MATCHING[comparison]
        if not isinstance(first, InputRef) or not isinstance(second, InputRef):
            return None
        if first.index >= n_left or second.index < n_left or of_right[second.index - n_left] != _EXTREME:
            return None
        found.append((first.index, comparison))
    return found[0] if len(found) == 1 else None

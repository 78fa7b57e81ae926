"""Windows of the rows of a window table function, or of results of windows, for the operators that take them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from flinkcore.common.time import Time
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.windows import SqlWindow, WindowBound, window_of, zone_of
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, Rex, input_refs, rex_of

_AGGREGATES: Final = ("window-aggregate", "local-window-aggregate")
_OPERATORS: Final = ("window-deduplicate", "window-rank", "window-join")


@dataclass(frozen=True, eq=False)
class TableWindows:
    """The windows of a table function, until an operator assigns its rows to them.

    Attributes
    ----------
    window : SqlWindow
    bounds : mapping of int to str
        Columns of the rows that are ``window_start``, ``window_end`` or ``window_time``.
    """

    window: SqlWindow
    bounds: Mapping[int, str]

    def projected(self, passed: Mapping[int, int]) -> TableWindows:
        """Return the windows after a projection, by the numbers of the columns that it passes on."""
        bounds = {number: self.bounds[index] for number, index in passed.items() if index in self.bounds}
        return TableWindows(self.window, bounds)


def are_assigned_later(node: PlanNode, bounds: Collection[int]) -> bool:
    """Return whether all that read the rows of a node are operators of windows, and nothing computes with the bounds.

    Such operators assign the rows to windows themselves, so that each row is there once, and not once for each window.
    """
    return bool(node.readers) and all(_are_assigned_by(reader, bounds) for reader in node.readers)


def _are_assigned_by(node: PlanNode, bounds: Collection[int]) -> bool:
    if node.kind == "calc":
        projection = [rex_of(each) for each in node.json["projection"]]
        condition = node.json.get("condition")
        computed: list[Rex] = [each for each in projection if not isinstance(each, InputRef)]
        computed += [] if condition is None else [rex_of(condition)]
        if any(number in bounds for rex in computed for number in input_refs(rex)):
            return False
        passed = [
            number
            for number, rex in enumerate(projection)
            if isinstance(rex, InputRef) and rex.index in bounds
        ]
        return are_assigned_later(node, passed)
    if node.kind in _AGGREGATES and node.json["windowing"]["strategy"] == "WindowAttached":
        calls = node.json["aggCalls"]
        read = {number for call in calls for number in (*call["argList"], call["filterArg"])}
        return not read.union(node.json["grouping"]).intersection(bounds)
    return node.kind in _OPERATORS or (node.kind == "exchange" and are_assigned_later(node, bounds))


def attached_window(program: Program, node: PlanNode, rows: Rows, windowing: Mapping[str, Any]) -> SqlWindow:
    """Return the windows of the rows of an operator of windows.

    Results of windows have the last millisecond of theirs as time, and so are in a window of a millisecond.
    """
    rows.require_inserts(node, "Take rows that do not change, such as those of a table")
    if windowing["strategy"] == "TimeAttribute":
        window = window_of(program, node, windowing)
        rows.require_time(node, window.rowtime)
        return window
    if rows.windows is not None:
        return rows.windows.window
    if not rows.of_windows:
        raise node.refuse(
            "its rows do not come from windows, or their bounds are computed with before",
            "Compute with window_start and window_end after it",
        )
    return SqlWindow(TumblingEventTimeWindows.of(Time.milliseconds(1)), False)


def columns_of_windows(program: Program, node: PlanNode, rows: Rows) -> list[Any]:
    """Return the columns of rows after an operator of windows, with the bounds of a table function."""
    if rows.windows is None:
        return [pc.field(name) for name in rows.columns]
    window, zone = rows.windows.window, zone_of(program, node)
    found: list[Any] = []
    for number, (name, kind) in enumerate(zip(rows.columns, rows.types, strict=True)):
        bound = rows.windows.bounds.get(number)
        if bound is None:
            found.append(pc.field(name))
        elif bound == "window_time":
            found.append(WindowBound("window_end", kind, 1, zone, window.is_instant, window.clock))
        else:
            found.append(WindowBound(bound, kind, 0, zone, window.is_instant, window.clock))
    return found

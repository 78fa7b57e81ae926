"""Aggregates over the windows of GROUP BY TUMBLE, HOP and SESSION: group-window-aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flinkcore.sql.nodes.emit_strategy import EmitStrategy
from flinkcore.sql.nodes.emitting_windows import emitting_windows
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.windows import SqlWindow, aggregated, assigner_of, duration_ms
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import Root, type_of

_KINDS: Final = {"TUMBLING": "tumble", "SLIDING": "hop", "SESSION": "session"}


def group_window_aggregate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the results of aggregates over the windows of GROUP BY TUMBLE, HOP or SESSION."""
    strategy = EmitStrategy.of(program.settings)
    window = node.json["window"]
    if not window.get("isTimeWindow", True):
        raise node.refuse("windows of rows are not supported", "Write an OVER aggregate")
    field: Mapping[str, Any] = window["timeField"]
    time = type_of(field["fieldType"] if "fieldType" in field else field["type"])
    sizes = {name: _millis(window[name]) for name in ("size", "slide", "gap") if window.get(name) is not None}
    is_instant = time.root is Root.TIMESTAMP_LTZ
    assigner, clock = assigner_of(program, node, _KINDS[window["kind"]], sizes, is_instant)
    # A processing time is not a column, whatever number the plan writes.
    rowtime = -1 if program.by_arrival else field["fieldIndex"]
    found = SqlWindow(assigner, is_instant, rowtime, clock=clock)
    if not strategy.is_plain:
        return emitting_windows(program, node, rows, found, strategy)
    return aggregated(program, node, rows, found, node.json["grouping"], node.json["aggCalls"])


def _millis(written: Any) -> int:
    return duration_ms(written) if isinstance(written, str) else int(written)

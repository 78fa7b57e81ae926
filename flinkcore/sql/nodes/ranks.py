"""Deduplication and Top-N, of keys and of windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import pyarrow.compute as pc

from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.top_rows import MOST_ROWS, top_step
from flinkcore.datastream.graph.transformations import (
    DeduplicateTransformation,
    OverTransformation,
    TopTransformation,
)
from flinkcore.sql.nodes.attached_windows import attached_window, columns_of_windows
from flinkcore.sql.nodes.flink_states import (
    deduplicated_state,
    limit_state,
    rank_state,
    sorted_state,
    window_deduplicated_state,
    window_rank_state,
)
from flinkcore.sql.nodes.plain import with_kinds
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.windows import is_utc
from flinkcore.sql.plan.compiled_plan import PlanNode

RANK: Final = "rank#"
_SAME: Final = "order#"
_OF_ONE_ROW: Final = "rows#"
_OF_CHANGES: Final = "Take the first rows of a query whose rows do not change, such as a window aggregate"


def deduplicate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return one row of each key."""
    rows.require_inserts(node, _OF_CHANGES)
    changes = node.json["keepLastRow"] or not node.json["outputInsertOnly"]
    keyed = rows.keyed(node.json["uniqueKeys"])
    keep = "last" if node.json["keepLastRow"] else "first"
    by = "event_time" if node.json["isRowtime"] else "arrival"
    (ttl_ms,) = program.ttls(node) or (0,)
    results = keyed._then(DeduplicateTransformation(keyed._input(), keep, by, changes, ttl_ms))
    columns = [pc.field(name) for name in rows.columns]
    kinds = ("-U", "+U") if changes else ()
    state = deduplicated_state(node, rows)
    return program.of_operator(node, results, columns, times=rows.times, changes=kinds, state=state)


def changelog_normalize(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the changes of the last row of each unique key, whole and each once."""
    if node.json.get("filterCondition") is not None:
        raise node.refuse(
            "a condition that was pushed into it is not supported", "Filter in a query after it"
        )
    keyed = with_kinds(rows).keyed(node.json["uniqueKeys"])
    (ttl_ms,) = program.ttls(node) or (0,)
    results = keyed._then(DeduplicateTransformation(keyed._input(), "last", "arrival", True, ttl_ms))
    columns = [pc.field(name) for name in rows.columns]
    return program.of_operator(node, results, columns, times=rows.times, changes=("-U", "+U", "-D"))


def rank(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the changes of the highest rows of each key."""
    arguments = _top_arguments(node, rows, node.json["orderBy"])
    strategy = node.json["rankStrategy"]
    if strategy["type"] == "UpdateFast":
        arguments["unique_key"] = tuple(rows.columns[number] for number in strategy["primaryKeys"])
        if arguments["n"] == 1 and not arguments["skip"]:
            # Flink's FastTop1Function: an update counts as a new row, and replaces only one that is lower.
            del arguments["unique_key"]
            rows = replace(rows, changes=frozenset())
    keyed = rows.keyed(node.json["partition"]["fields"])
    results = keyed._then(top_step(keyed._input(), **arguments, rank="row_number", changes=True))
    columns = [pc.field(name) for name in (*rows.columns, *_rank_columns(node))]
    state = rank_state(node, rows)
    return program.of_operator(
        node, results, columns, times=rows.times, changes=("-U", "+U", "-D"), state=state
    )


def limit(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the first rows by arrival."""
    rows.require_inserts(node, _OF_CHANGES)
    ranks = node.json["rankRange"]
    keyed = rows.keyed((), **{_SAME: pc.scalar(0)})
    results = keyed.top(ranks["end"] - ranks["start"] + 1, by=_SAME, skip=ranks["start"] - 1, changes=True)
    # Equal rows are ranked by their arrival, so that none is replaced.
    columns = [pc.field(name) for name in rows.columns]
    only, state = pc.field(ROW_KIND) == "+I", limit_state(node, rows)
    return program.of_operator(node, results, columns, times=rows.times, only=only, state=state)


def temporal_sort(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return rows in the order of a time and of further columns, each when the watermark or the clock comes to it."""
    rows.require_inserts(node, _OF_CHANGES)
    time, *others = node.json["orderBy"]["fields"]
    if rows.types[time["index"]].time_attribute == "PROCTIME" and not others:
        return rows
    rows.require_time(node, time["index"])
    # A frame of one row waits and is late as a row that is sorted.
    keyed = rows.keyed(())
    step = OverTransformation(
        keyed._input(),
        preceding_rows=0,
        preceding_ms=None,
        unit="rows",
        by="event_time",
        aggregates=((_OF_ONE_ROW, count()),),
        order_by=tuple(rows.columns[each["index"]] for each in others),
        descending=tuple(not each["isAscending"] for each in others),
        nulls_last=tuple(each["nullIsLast"] for each in others),
    )
    results = keyed._then(step)
    state = None if rows.types[time["index"]].time_attribute == "PROCTIME" else sorted_state(node, rows)
    columns = [pc.field(name) for name in rows.columns]
    return program.of_operator(node, results, columns, times=rows.times, state=state)


def window_deduplicate(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return one row of each window of a key, when the window ends."""
    window = attached_window(program, node, rows, node.json["windowing"])
    if not rows.of_windows:
        rows.require_time(node, node.json["orderKey"])
    keep: Literal["first", "last"] = "last" if node.json["keepLastRow"] else "first"
    keys = _keys(node, rows, "partitionKeys")
    results = window.of_clock(rows.keyed(keys).window(window.assigner).deduplicate(keep))
    step = results._transformation
    if window.clock is not None and isinstance(step, TopTransformation):
        # The hour that passes twice has the same local times, but not the same rowtimes.
        step.by, step.descending, step.nulls_last = (
            (rows.columns[node.json["orderKey"]],),
            (keep == "last",),
            (None,),
        )
        step.by_time = False
    state = window_deduplicated_state(node, rows, window, keys, is_utc=is_utc(program, node))
    columns = columns_of_windows(program, node, rows)
    return program.of_operator(node, results, columns, of_windows=True, state=state)


def window_rank(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return the highest rows of each window of a key, when the window ends."""
    window = attached_window(program, node, rows, node.json["windowing"])
    arguments = _top_arguments(node, rows, node.json["sortSpec"])
    keys = _keys(node, rows, "partitionSpec")
    keyed = rows.keyed(keys).window(window.assigner)
    columns = [*columns_of_windows(program, node, rows), *map(pc.field, _rank_columns(node))]
    state = window_rank_state(node, rows, window, keys, is_utc=is_utc(program, node))
    return program.of_operator(
        node, window.of_clock(keyed.top(**arguments)), columns, of_windows=True, state=state
    )


def _keys(node: PlanNode, rows: Rows, field: str) -> list[int]:
    """Return the columns of the key: with the bounds of windows that rows have as columns."""
    written = node.json[field]
    keys = list(written["fields"] if isinstance(written, Mapping) else written)
    if rows.windows is not None:
        return [number for number in keys if number not in rows.windows.bounds]
    windowing = node.json["windowing"]
    return [*keys, *(windowing[name] for name in ("windowStart", "windowEnd") if name in windowing)]


def _rank_columns(node: PlanNode) -> tuple[str, ...]:
    return (RANK,) if node.json["outputRowNumber"] else ()


def _top_arguments(node: PlanNode, rows: Rows, order: Mapping[str, Any]) -> dict[str, Any]:
    if node.json["rankType"] != "ROW_NUMBER":
        raise node.refuse(f"{node.json['rankType']} is not supported", "Write ROW_NUMBER()")
    ranks = node.json["rankRange"]
    if ranks["type"] == "Variable":
        if node.json["rankStrategy"]["type"] == "UpdateFast":
            raise node.refuse(
                "ranks up to a column are not supported of rows that only rise", "Write a number"
            )
        limits = {"n": MOST_ROWS, "skip": 0, "limit_column": rows.columns[ranks["endIndex"]]}
    else:
        limits = {"n": ranks["end"] - ranks["start"] + 1, "skip": ranks["start"] - 1}
    by: dict[int, Mapping[str, Any]] = {}
    for each in order["fields"]:
        by.setdefault(each["index"], each)
    bounds = () if rows.windows is None else rows.windows.bounds
    fields = [
        each for number, each in by.items() if number not in bounds
    ]  # all rows of a window have its bounds
    if not fields:
        raise node.refuse(
            "an order by the bounds of windows alone is not supported", "Order by another column"
        )
    return {
        **limits,
        "by": [rows.columns[each["index"]] for each in fields],
        "descending": [not each["isAscending"] for each in fields],
        "nulls_last": [each["nullIsLast"] for each in fields],
        "rank_column": RANK if node.json["outputRowNumber"] else None,
    }

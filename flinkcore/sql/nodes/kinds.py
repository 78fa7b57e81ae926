"""The kinds of nodes, by their names in plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from flinkcore.sql.nodes.expansions import correlate, expand
from flinkcore.sql.nodes.group_aggregates import group_aggregate
from flinkcore.sql.nodes.group_windows import group_window_aggregate
from flinkcore.sql.nodes.joins import interval_join, join, temporal_join, window_join
from flinkcore.sql.nodes.lookups import lookup_join
from flinkcore.sql.nodes.matches import match
from flinkcore.sql.nodes.over import over_aggregate
from flinkcore.sql.nodes.plain import calc, drop_update_before, exchange, sink, union, values
from flinkcore.sql.nodes.ranks import (
    changelog_normalize,
    deduplicate,
    limit,
    rank,
    temporal_sort,
    window_deduplicate,
    window_rank,
)
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.nodes.scans import table_scan, watermark_assigner
from flinkcore.sql.nodes.window_functions import window_table_function
from flinkcore.sql.nodes.windows import (
    global_window_aggregate,
    local_window_aggregate,
    window_aggregate,
)
from flinkcore.sql.plan.compiled_plan import PlanNode

Builder: TypeAlias = Callable[..., Rows]
"""Takes the program, the node and the rows of its inputs."""

NODES: Final[Mapping[str, Builder]] = {
    "table-source-scan": table_scan,
    "watermark-assigner": watermark_assigner,
    "calc": calc,
    "exchange": exchange,
    "union": union,
    "values": values,
    "drop-update-before": drop_update_before,
    "changelog-normalize": changelog_normalize,
    "expand": expand,
    "correlate": correlate,
    "window-table-function": window_table_function,
    "window-aggregate": window_aggregate,
    "local-window-aggregate": local_window_aggregate,
    "global-window-aggregate": global_window_aggregate,
    "group-window-aggregate": group_window_aggregate,
    "deduplicate": deduplicate,
    "rank": rank,
    "sort-limit": rank,
    "limit": limit,
    "temporal-sort": temporal_sort,
    "window-deduplicate": window_deduplicate,
    "window-rank": window_rank,
    "interval-join": interval_join,
    "window-join": window_join,
    "temporal-join": temporal_join,
    "join": join,
    "lookup-join": lookup_join,
    "over-aggregate": over_aggregate,
    "group-aggregate": group_aggregate,
    "match": match,
    "sink": sink,
}
"""Functions that build the steps of nodes; a new operator is an entry here."""

_STATELESS: Final = frozenset(
    (
        *("table-source-scan", "watermark-assigner", "calc", "exchange", "union", "values", "expand"),
        *(
            "drop-update-before",
            "changelog-normalize",
            "window-table-function",
            "correlate",
            "lookup-join",
            "sink",
        ),
    )
)


EXPIRING: Final = frozenset(
    ("group-aggregate", "deduplicate", "changelog-normalize", "join", "over-aggregate", "temporal-join")
)
"""Nodes whose state may have a time to live."""

WITHOUT_TTL: Final = (
    "Plan the query with SET 'table.exec.state.ttl' = '0 ms', or write that as the ttl of its state"
)
EXPIRY_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("rank", "sort-limit", "limit"),
        "Flink may keep rows longer than that, in a cache whose content depends on the parallelism, restarts and "
        "the clock of the system "
        f"(table.exec.rank.topn-cache-size). {WITHOUT_TTL}",
    ),
}
"""Advice for other nodes whose state has one."""


def needs_watermarks(node: PlanNode) -> bool:
    """Return whether a node needs watermarks."""
    if node.kind == "window-table-function":
        return bool(node.json["windowing"]["window"]["type"] == "SessionWindow")
    return node.kind not in _STATELESS


_OF_PYTHON: Final = (
    "Give the script to from_sql or execute_sql with functions=, where nodes are those of other functions"
)
REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            *("python-calc", "python-async-calc", "python-correlate", "python-over-aggregate"),
            *("python-group-aggregate", "python-group-window-aggregate", "python-group-table-aggregate"),
        ),
        _OF_PYTHON,
    ),
    "sort": "Sort the results",
}
"""Advice for nodes that do not run."""

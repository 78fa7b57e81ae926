"""The kinds of nodes, by their names in plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from flinkcore.sql.nodes.plain import calc, expand, same_rows, sink, union, values
from flinkcore.sql.nodes.rows import Rows
from flinkcore.sql.nodes.scans import table_scan, watermark_assigner
from flinkcore.sql.nodes.window_functions import window_table_function
from flinkcore.sql.nodes.windows import (
    global_window_aggregate,
    group_window_aggregate,
    local_window_aggregate,
    window_aggregate,
)

Builder: TypeAlias = Callable[..., Rows]
"""Takes the program, the node and the rows of its inputs."""

NODES: Final[Mapping[str, Builder]] = {
    "table-source-scan": table_scan,
    "watermark-assigner": watermark_assigner,
    "calc": calc,
    "exchange": same_rows,
    "union": union,
    "values": values,
    "expand": expand,
    "window-table-function": window_table_function,
    "window-aggregate": window_aggregate,
    "local-window-aggregate": local_window_aggregate,
    "global-window-aggregate": global_window_aggregate,
    "group-window-aggregate": group_window_aggregate,
    "sink": sink,
}
"""Functions that build the steps of nodes; a new operator is an entry here."""

STATELESS: Final = frozenset(
    (
        *("table-source-scan", "watermark-assigner", "calc", "exchange", "union", "values", "expand"),
        *("window-table-function", "sink"),
    )
)
"""Nodes that need no watermarks."""

REFUSED: Final[Mapping[str, str]] = {
    "window-rank": "Take the first rows of each window from a query of all rows",
    "window-deduplicate": "Take the first rows of each window from a query of all rows",
    "window-join": "Write join() of two streams of the DataStream API",
    "interval-join": "Write interval_join() of the DataStream API",
    "join": "Write a function of two streams of the DataStream API",
    "temporal-join": "Write a function of two streams of the DataStream API",
    "lookup-join": "Give the looked up table as a log, and join it",
    "over-aggregate": "Write a function of the DataStream API",
    "rank": "Take the first rows of each window, or write a function of the DataStream API",
    "deduplicate": "Write a function of the DataStream API",
    "group-aggregate": "Group by a window, too",
    "match": "Write a function of the DataStream API",
    "changelog-normalize": "Read a log of changes as from_event_log(decode='debezium')",
    "sort": "Sort the results",
    "temporal-sort": "Sort the results",
    "limit": "Take the first rows of the results",
    "sort-limit": "Take the first rows of the results",
    "correlate": "Compute the rows before they are read",
}
"""Advice for nodes that do not run."""

"""The layout of the rows of each operator of Flink SQL."""

from __future__ import annotations

from typing import Final

from flinkcore.savepoints.sql.deduplicated_rows import EmittedKey, FirstRow, LastRow
from flinkcore.savepoints.sql.frame_rows import FrameRows
from flinkcore.savepoints.sql.joined_rows import IntervalJoinRows, RegularJoinRows, WindowJoinRows
from flinkcore.savepoints.sql.pending_rows import PendingRows, SortedRows
from flinkcore.savepoints.sql.row_layout import RowLayout
from flinkcore.savepoints.sql.top_rows import (
    ChangingTopRows,
    InsertedTopRows,
    RankedRows,
    TopRow,
    WindowRow,
    WindowTopRows,
)
from flinkcore.sql.plan.flink_state import FlinkState, Layout

_LAYOUTS: Final[dict[Layout, type[RowLayout]]] = {
    Layout.LAST_ROW: LastRow,
    Layout.FIRST_ROW: FirstRow,
    Layout.EMITTED_KEY: EmittedKey,
    Layout.TOP_ROW: TopRow,
    Layout.TOP_OF_INSERTS: InsertedTopRows,
    Layout.TOP_OF_UPDATES: ChangingTopRows,
    Layout.RANKED_ROWS: RankedRows,
    Layout.PENDING_ROWS: PendingRows,
    Layout.FRAME_ROWS: FrameRows,
    Layout.SORTED_ROWS: SortedRows,
    Layout.WINDOW_TOP: WindowTopRows,
    Layout.WINDOW_ROW: WindowRow,
    Layout.WINDOW_JOIN: WindowJoinRows,
    Layout.INTERVAL_JOIN: IntervalJoinRows,
    Layout.REGULAR_JOIN: RegularJoinRows,
}


def layout_of(state: FlinkState) -> RowLayout:
    """Return the layout of an operator that keeps rows.

    Raises
    ------
    UnsupportedOperationError
        If a column of its rows is of a type that cannot be written or restored.
    """
    return _LAYOUTS[state.layout](state)

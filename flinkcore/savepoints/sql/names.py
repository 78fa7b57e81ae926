"""Names of the states of Flink SQL's operators, and of the table of timers in a checkpoint."""

from typing import Final

ACCUMULATORS: Final = "accState"
"""Accumulators of ``GroupAggFunction``."""
WINDOW_ACCUMULATORS: Final = "window-aggs"
"""Accumulators of ``WindowAggOperator``, by the end of a slice, and of sessions and ``WindowOperator``, by window."""
SESSIONS: Final = "session-window-mapping"
"""Sessions of a key, each with the window that names its accumulators."""
WATERMARK: Final = "watermark"
"""Watermark of ``WindowAggOperator``, by which it knows late rows."""
KEPT_ROW: Final = "deduplicate-state"
"""Row of each key of ``RowTimeDeduplicateFunction``, or a mark of ``ProcTimeDeduplicateKeepFirstRowFunction``."""
WAITING_ROW: Final = "waiting-to-emit-on-timer"
"""Row of each key of ``RowTimeDeduplicateKeepFirstRowFunction`` that waits for the watermark."""
EMITTED: Final = "already-emitted-state-boolean"
"""Mark of a key of that function whose row has been emitted."""
TOP_OF_INSERTS: Final = "data-state-with-append"
"""Rows of ``AppendOnlyTopNFunction`` by what orders them."""
TOP_ROW: Final = "Top1-Rank-State"
"""Row of each key of ``FastTop1Function``."""
TOP_OF_UPDATES: Final = "data-state-with-update"
"""Rows of ``UpdatableTopNFunction`` by their unique key, each with its place among those that are ordered alike."""
INTERVAL_CACHES: Final = ("IntervalJoinLeftCache", "IntervalJoinRightCache")
"""Rows of each input of ``RowTimeIntervalJoin`` by their time."""
INTERVAL_TIMERS: Final = ("IntervalJoinRightTimerState", "IntervalJoinLeftTimerState")
"""Time at which that join cleans up the rows of each input, which has the name of the other one."""
JOINED_RECORDS: Final = ("left-records", "right-records")
"""Rows of each input of ``StreamingJoinOperator`` and ``WindowJoinOperator``."""
PENDING_ROWS: Final = "inputState"
"""Rows by their time of the functions of OVER, which wait or are in a frame."""
WINDOW_TOP: Final = "window_rank"
"""Rows of ``WindowRankProcessor`` by what orders them."""
WINDOW_ROW: Final = "window_deduplicate"
"""Row of each key and window of ``RowTimeWindowDeduplicateProcessor``."""

OF_TIMERS: Final = "_timer_state/"
"""Beginning of the names of timers."""
USER_TIMERS: Final = f"{OF_TIMERS}event_user-timers"
WINDOW_TIMERS: Final = f"{OF_TIMERS}event_window-timers"

TIMERS: Final = "timers"
"""Table of a checkpoint with the timers of an operator."""

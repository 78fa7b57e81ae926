"""Names of the states of Flink SQL's operators, and of the table in a checkpoint that one of them has."""

from typing import Final

ACCUMULATORS: Final = "accState"
"""Accumulators of ``GroupAggFunction``."""
WINDOW_ACCUMULATORS: Final = "window-aggs"
"""Accumulators of ``WindowAggOperator``, by the end of a slice."""
WATERMARK: Final = "watermark"
"""Watermark of ``WindowAggOperator``, by which it knows late rows."""
KEPT_ROW: Final = "deduplicate-state"
"""Row of each key of ``RowTimeDeduplicateFunction``."""
WAITING_ROW: Final = "waiting-to-emit-on-timer"
"""Row of each key of ``RowTimeDeduplicateKeepFirstRowFunction`` that waits for the watermark."""
EMITTED: Final = "already-emitted-state-boolean"
"""Mark of a key of that function whose row has been emitted."""

KEPT_TABLE: Final = "kept"
"""Table of a checkpoint with the rows that a deduplication keeps."""

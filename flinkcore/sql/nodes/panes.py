"""Panes of windows: the parts that windows share."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from flinkcore.sql.expressions.evaluation import numbers


@dataclass(frozen=True)
class Panes:
    """Parts of windows that overlap, whose aggregates Flink merges: values come pane by pane.

    Attributes
    ----------
    column : str
        Column of the rowtime.
    size_ms, offset_ms : int
    is_latest_first : bool
        Whether the last pane of a window comes first.
    """

    column: str
    size_ms: int
    offset_ms: int
    is_latest_first: bool

    def numbers(self, batch: pa.RecordBatch) -> pa.Array:
        """Return numbers of the panes of rows, in the order in which their values come."""
        time = batch.column(self.column)
        millis = numbers(time.cast(pa.timestamp("ms", time.type.tz), safe=False).cast(pa.int64()))
        found = (millis - self.offset_ms) // self.size_ms
        return pa.array(-found if self.is_latest_first else found)

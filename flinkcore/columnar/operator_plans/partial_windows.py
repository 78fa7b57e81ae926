"""Windows that are aggregated in part where events are read, before the exchange by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.time_windows import time_windows
from flinkcore._native.window_operator import WindowKernel
from flinkcore.columnar.operator_plans.native_windows import WindowsByTime, slide_of
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.window import LocalEventTimeWindows

if TYPE_CHECKING:
    from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation


@dataclass(frozen=True)
class PartialWindows:
    """The windows of an operator that takes in partial results; picklable.

    A partial result is what events of one key and one pane add up to, of those that one task reads and that come before
    the pane fires for the first time. It stands where the first of them does: in this order, operators merge them. So a
    job gives the same rows, in the same order and to the last bit, and the same counts.

    Parameters
    ----------
    operator : WindowAggregation
    events : pyarrow.Schema
        Columns of the events that come to it.
    key : KeyColumns
    """

    operator: WindowAggregation
    events: pa.Schema
    key: KeyColumns

    @property
    def panes(self) -> dict[str, Any]:
        """Tumbling windows, or the slides of windows that share slices, as `rows_before_firing` takes them."""
        window = self._window
        if isinstance(window, LocalEventTimeWindows):
            return {"calendar": window.calendar}
        return {"width": slide_of(window), "offset": window.offset_ms}

    @property
    def pane(self) -> str:
        """Length of a pane in words."""
        window = self._window
        if isinstance(window, LocalEventTimeWindows):
            return f"local {window.period}"
        return f"{slide_of(window)} ms"

    def pane_kernel(self) -> WindowKernel:
        """Return native windows that are the panes."""
        window = self._window
        if isinstance(window, LocalEventTimeWindows):
            return time_windows(calendar=window.calendar, allowed_lateness=0)
        pane_ms = slide_of(window)
        return time_windows(size=pane_ms, slide=pane_ms, offset=window.offset_ms, allowed_lateness=0)

    @property
    def _window(self) -> WindowsByTime:
        window = self.operator.window
        assert isinstance(window, WindowsByTime)
        return window

    def native(self) -> tuple[WindowKernel, Accumulators]:
        """Return native windows and accumulators of the operator."""
        return self.operator.native(self.events)

    @property
    def fires_late(self) -> bool:
        """Return whether late events have results or go to a side output."""
        return self.operator.allowed_lateness_ms > 0 or self.operator.late_tag is not None

    @property
    def key_fields(self) -> list[pa.Field]:
        """Names and types of the key columns."""
        return [self.events.field(key) for key in self.key.names]

"""Watermark generators of Flink SQL: the rowtime minus a delay, without the 1 ms that DataStream subtracts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import WatermarkGenerator, WatermarkOutput

_MAX: Final = 2**63 - 1


class RowtimeWatermarks(WatermarkGenerator[Any]):
    """The watermark is the largest rowtime minus a delay.

    It is emitted right after an event if it has risen by more than the interval since the last one, and otherwise at
    the next tick.

    Parameters
    ----------
    delay_ms : int
        May be negative.
    interval_ms : int or None
        The auto-watermark interval in ms, or None if it is emitted at ticks alone.
    lowest_ms : int
        No watermark up to this one is emitted: 0 for a table's ``WATERMARK`` in SQL, and -2**63 where the source of the
        table generates it.

    Notes
    -----
    Flink's ``WatermarkAssignerOperator``; with `interval_ms` None the generator of ``WatermarkPushDownSpec``. A replay
    runs it natively, whole columns at a time.
    """

    changes_at_events_only = True

    def __init__(self, delay_ms: int, interval_ms: int | None, lowest_ms: int = 0) -> None:
        self.delay_ms = delay_ms
        self.interval_ms = interval_ms
        self.current_ms = lowest_ms
        self.last_ms = lowest_ms

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = min(max(event_timestamp - self.delay_ms, MIN_TIMESTAMP), _MAX)
        self.current_ms = max(self.current_ms, watermark)
        if self.interval_ms is not None and self.current_ms - self.last_ms > self.interval_ms:
            self.on_periodic_emit(output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.current_ms > self.last_ms:
            self.last_ms = self.current_ms
            output.emit_watermark(Watermark(self.current_ms))

    def snapshot_state(self) -> list[int]:
        return [self.current_ms, self.last_ms]

    def restore_state(self, state: list[int]) -> None:
        self.current_ms, self.last_ms = state


@dataclass(frozen=True)
class RowtimeWatermarksSupplier:
    """Returns a generator for each split, all with the same parameters; can be compared and pickled.

    Parameters are those of :class:`RowtimeWatermarks`.
    """

    delay_ms: int
    interval_ms: int | None
    lowest_ms: int = 0

    def __call__(self) -> RowtimeWatermarks:
        return RowtimeWatermarks(self.delay_ms, self.interval_ms, self.lowest_ms)

    def __str__(self) -> str:
        rule = "at ticks" if self.interval_ms is None else f"after rises of more than {self.interval_ms} ms"
        start = "" if self.lowest_ms == MIN_TIMESTAMP else f", above {self.lowest_ms}"
        return f"rowtime - {self.delay_ms} ms, {rule}{start}"

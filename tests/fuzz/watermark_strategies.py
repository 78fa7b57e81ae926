"""Random watermark strategies: all built-in ones, and generators that do what a generator should not."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from flinkcore.common import (
    MAX_TIMESTAMP,
    Duration,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)


class Odd(WatermarkGenerator[Any]):
    """Emits at events and periodically, by a drawn habit; goes into checkpoints."""

    def __init__(self, habit: str) -> None:
        self.habit = habit
        self.seen = 0
        self.last = 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.seen += 1
        self.last = event_timestamp
        if self.habit == "punctuated":
            self._emit(event_timestamp - 3, output)
        elif self.habit == "goes back":
            self._emit(event_timestamp - 40 * (self.seen % 3), output)
        elif self.habit == "even" and event_timestamp % 2 == 0:
            self._emit(event_timestamp, output)
        elif self.habit == "maximum" and self.seen % 6 == 5:
            output.emit_watermark(Watermark(MAX_TIMESTAMP))
        elif self.habit == "maximum":
            self._emit(event_timestamp - 2, output)
        elif self.habit == "idle by itself" and self.seen % 4 == 3:
            output.mark_idle()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self.habit == "periodic maximum" and self.seen % 5 == 4:
            output.emit_watermark(Watermark(MAX_TIMESTAMP))
        elif self.habit in ("periodic", "idle by itself", "periodic maximum") and self.seen:
            self._emit(self.last - 5, output)
        elif self.habit == "periodic goes back" and self.seen:
            self._emit(self.last - 30 * (self.seen % 2), output)
        elif self.habit == "stands still":
            self._emit(17, output)

    def _emit(self, timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(max(timestamp, -(2**63))))

    def snapshot_state(self) -> list[int]:
        return [self.seen, self.last]

    def restore_state(self, state: list[int]) -> None:
        self.seen, self.last = state


HABITS = [
    "punctuated",
    "goes back",
    "even",
    "idle by itself",
    "periodic",
    "periodic goes back",
    "stands still",
    "maximum",
    "periodic maximum",
]


@dataclass(frozen=True)
class Strategy:
    """A watermark strategy that can be printed.

    Attributes
    ----------
    kind
        A built-in one, or the habit of a generator.
    bound, idleness
        In ms.
    alignment
        Most ms that a split may be ahead.
    """

    kind: str
    bound: int = 0
    idleness: int | None = None
    alignment: int | None = None

    def build(self) -> WatermarkStrategy:
        """The strategy."""
        bound = Duration.of_millis(self.bound)
        if self.kind == "bounded":
            strategy = WatermarkStrategy.for_bounded_out_of_orderness(bound)
        elif self.kind == "monotonous":
            strategy = WatermarkStrategy.for_monotonous_timestamps()
        elif self.kind == "none":
            strategy = WatermarkStrategy.no_watermarks()
        elif self.kind == "percentile":
            strategy = WatermarkStrategy.for_percentile_out_of_orderness(bound, 0.8, 6)
        else:
            habit = self.kind
            strategy = WatermarkStrategy.for_generator(lambda: Odd(habit))
        if self.idleness is not None:
            strategy = strategy.with_idleness(Duration.of_millis(self.idleness))
        if self.alignment is not None:
            strategy = strategy.with_watermark_alignment(
                "group", Duration.of_millis(self.alignment), Duration.of_millis(10)
            )
        return strategy


ALIGNED = {"bounded", "monotonous", "none"}
kinds = st.one_of(
    st.sampled_from(["bounded", "bounded", "monotonous", "none", "percentile"]), st.sampled_from(HABITS)
)
strategies = st.builds(
    Strategy,
    kinds,
    st.sampled_from([0, 2, 15]),
    st.sampled_from([None, None, None, 3, 40]),
    st.sampled_from([None] * 4 + [0, 5]),
).map(lambda drawn: drawn if drawn.kind in ALIGNED else replace(drawn, alignment=None))
"""Generators that are called event by event are not aligned."""

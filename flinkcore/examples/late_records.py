"""Handling of late records: eleven records in windows of three seconds, one after the other.

Events may be ten seconds out of order, and the allowed lateness is two seconds. For each record the walk-through shows
the watermark after it, and the firings: a window fires when the watermark reaches its largest timestamp, fires again
for each record within the allowed lateness, and is dropped after that; a later record goes to the side output. Run it
with ``python -m flinkcore.examples.late_records``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from flinkcore.common import (
    MAX_TIMESTAMP,
    Duration,
    OutputTag,
    Time,
    TimestampAssigner,
    Watermark,
    WatermarkStrategy,
)
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.window import TimeWindow, TumblingEventTimeWindows, WindowOperation
from flinkcore.testing import StreamRecord, for_watermark_strategy, for_window_operation

OUT_OF_ORDERNESS = Duration.of_seconds(10)
WINDOWS = TumblingEventTimeWindows.of(Time.seconds(3))
ALLOWED_LATENESS_MS = 2_000
LATE = OutputTag("late")
EVERY_MS = 200
"""Interval of periodic watermarks, in processing time: one after each record."""

START_MS = 1_461_756_840_000
SECONDS = (22, 26, 32, 33, 34, 23, 21, 35, 21, 36, 21)
"""Event times of the records, in seconds after the start."""

Element = tuple[int, int]
"""Number and event time of a record."""


@dataclass(frozen=True)
class WindowFiring:
    """A firing of a window, with the numbers of its records."""

    window: TimeWindow
    numbers: list[int]


@dataclass(frozen=True)
class Outcome:
    """The effects of a record, or of the end of the input.

    Parameters
    ----------
    element : (int, int) or None
        Number and event time in ms; None at the end.
    watermark_ms : int
        Watermark after it; -2**63 before the first one.
    at_once : list of WindowFiring
        Fired by the record itself, which was late for a window that had fired before.
    by_watermark : list of WindowFiring
        Fired by the watermark after it.
    is_late : bool
        Whether it went to the side output.
    """

    element: Element | None
    watermark_ms: int
    at_once: list[WindowFiring]
    by_watermark: list[WindowFiring]
    is_late: bool


class EventTime(TimestampAssigner):
    """Reads the event time of a record."""

    def extract_timestamp(self, value: Element, record_timestamp: int) -> int:
        return value[1]


class Numbers(ProcessWindowFunction[Element, WindowFiring, str, TimeWindow]):
    """Emits a firing with the numbers of the window's records."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Element]
    ) -> Iterator[WindowFiring]:
        yield WindowFiring(context.window(), [number for number, _ in elements])


def walk_through() -> Iterator[Outcome]:
    """Yield the outcome of each record, and of the end of the input."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(OUT_OF_ORDERNESS)
    operation = WindowOperation(
        WINDOWS,
        WINDOWS.get_default_trigger(),
        allowed_lateness_ms=ALLOWED_LATENESS_MS,
        late_tag=LATE,
        window_function=Numbers(),
    )
    with (
        for_watermark_strategy(strategy.with_timestamp_assigner(EventTime()), EVERY_MS) as watermarks,
        for_window_operation(operation, lambda element: "one key") as windows,
    ):
        for number, seconds in enumerate(SECONDS):
            element = number, START_MS + seconds * 1000
            watermarks.process_element(element)
            n_late = len(windows.get_side_output(LATE))
            windows.process_element(StreamRecord(element, element[1]))
            at_once = _firings(windows.take_output())
            watermarks.advance_time(EVERY_MS)
            for given in watermarks.take_output():
                if isinstance(given, Watermark):
                    windows.process_watermark(given)
            watermark_ms = windows.get_current_watermark()
            is_late = len(windows.get_side_output(LATE)) > n_late
            yield Outcome(element, watermark_ms, at_once, _firings(windows.take_output()), is_late)
        windows.process_watermark(MAX_TIMESTAMP)
        yield Outcome(None, MAX_TIMESTAMP, [], _firings(windows.take_output()), is_late=False)


def _firings(output: Iterable[Any]) -> list[WindowFiring]:
    return [given.value for given in output if isinstance(given, StreamRecord)]


def _clock(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, timezone.utc):%H:%M:%S.%f}"[:-3]


def _shown(firing: WindowFiring) -> str:
    start, end = firing.window
    return f"[{_clock(start)[:-4]}, {_clock(end)[:-4]}) with {', '.join(map(str, firing.numbers))}"


def lines() -> Iterator[str]:
    """Yield the walk-through as text."""
    yield "record  event time    watermark after it"
    for step in walk_through():
        if step.element is None:
            yield "the input ends:"
        else:
            number, time_ms = step.element
            yield f"{number:>6}  {_clock(time_ms)}  {_clock(step.watermark_ms)}"
        happened = [f"fires again, for the late record: {_shown(firing)}" for firing in step.at_once]
        happened += [f"fires: {_shown(firing)}" for firing in step.by_watermark]
        if step.is_late:
            happened.append("too late for its window, which is gone: to the side output")
        yield from (f"{'':22}{what}" for what in happened)


def main() -> None:
    """Print the walk-through."""
    for line in lines():
        print(line)


if __name__ == "__main__":
    main()

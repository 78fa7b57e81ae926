"""A keyed event-time window operator, row by row with timers: the model for the native ones.

Follows WindowOperator, MergingWindowSet, EventTimeTrigger, CountTrigger, ContinuousEventTimeTrigger and PurgingTrigger,
with one list of elements per key and window; and EvictingWindowOperator with CountTrigger and CountEvictor, or
CountSlidingWindowAssigner, with one list of elements per key.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

MIN, MAX = -(2**63), 2**63 - 1


@dataclass
class Firing:
    key: object
    start: int | None
    end: int | None
    elements: list[object]
    late: bool
    watermark: int
    time: int | None = None
    """Of the timer that fired; None: a row did."""


@dataclass
class Window:
    start: int
    end: int
    elements: list[object] = field(default_factory=list)
    timers: set[int] = field(default_factory=set)
    state: int | None = None
    """Of the trigger: rows counted, or when it fires next."""

    @property
    def last(self) -> int:
        return MAX if self.end == MAX else self.end - 1


@dataclass
class WindowModel:
    """`size`/`slide`/`offset` for aligned windows, also `cumulative` ones; `gap` for sessions; global without these.

    `bounds` for windows of unequal lengths, between each two of these that follow each other.
    `elements` for windows of so many, at every `elements_slide`; all those that fire are full where `full_only`.
    """

    size: int = 0
    slide: int = 0
    offset: int = 0
    cumulative: bool = False
    gap: int = 0
    bounds: tuple[int, ...] = ()
    elements: int = 0
    elements_slide: int = 0
    full_only: bool = False
    lateness: int = 0
    trigger: str = "event_time"
    every: int = 0
    purges: bool = False
    watermark: int = MIN
    windows: dict[object, list[Window]] = field(default_factory=dict)
    firings: list[Firing] = field(default_factory=list)
    results: dict[tuple[object, int | None, int | None], list[object]] = field(default_factory=dict)
    """What holds in the end: the last result of every window that has not become a part of another."""
    late: list[object] = field(default_factory=list)
    in_no_window: int = 0
    windowed: int = 0
    counted: dict[object, list[object]] = field(default_factory=dict)

    @property
    def is_global(self) -> bool:
        return not self.size and not self.gap and not self.bounds

    def _cleanup(self, window: Window) -> int:
        return min(window.last + self.lateness, MAX)

    def _is_over(self, window: Window) -> bool:
        return not self.is_global and self._cleanup(window) <= self.watermark

    def _assigned(self, timestamp: int) -> list[tuple[int, int]]:
        if self.is_global:
            return [(MIN, MAX)]
        if self.gap:
            return [(timestamp, timestamp + self.gap)]
        if self.bounds:
            return [(a, b) for a, b in pairwise(self.bounds) if a <= timestamp < b]
        if self.cumulative:
            start = timestamp - (timestamp - self.offset) % self.size
            ends = range(start + self.slide, start + self.size + 1, self.slide)
            return [(start, end) for end in ends if end > timestamp]
        start = timestamp - (timestamp - self.offset) % self.slide
        found = []
        while start > timestamp - self.size:
            found.append((start, start + self.size))
            start -= self.slide
        return found

    def _merged(self, key: object, live: list[Window], start: int, end: int) -> Window:
        """The session that a new one becomes a part of."""
        touching = sorted((w for w in live if w.start <= end and w.end >= start), key=lambda w: w.start)
        start, end = min([start, *(w.start for w in touching)]), max([end, *(w.end for w in touching)])
        for window in touching:
            if (window.start, window.end) == (start, end):
                return window
        merged = Window(start, end, [element for w in touching for element in w.elements])
        for window in touching:
            live.remove(window)
            self.results.pop((key, window.start, window.end), None)
        states = [w.state for w in touching if w.state is not None]
        if self.trigger == "event_time":
            if merged.last > self.watermark:
                merged.timers.add(merged.last)
        elif states:
            merged.state = sum(states) if self.trigger == "count" else min(states)
            if self.trigger == "continuous_event_time":
                merged.timers.add(merged.state)
        live.append(merged)
        return merged

    def _window_for(self, key: object, start: int, end: int) -> Window | None:
        """The live window, merged where it must be; None if it is late."""
        live = self.windows.setdefault(key, [])
        if self.gap:
            window = self._merged(key, live, start, end)
        else:
            window = next((w for w in live if w.end == end), Window(start, end))
            if window not in live:
                live.append(window)
        if self._is_over(window):
            live.remove(window)
            return None
        return window

    def _next(self, window: Window, time: int) -> None:
        window.state = min(time + self.every, window.last)
        window.timers.add(window.state)

    def _on_element(self, window: Window, timestamp: int) -> bool:
        if self.trigger == "count":
            window.state = (window.state or 0) + 1
            if window.state >= self.every:
                window.state = None
                return True
            return False
        if self.trigger == "end_of_stream":
            window.timers.add(window.last)
            return False
        if window.last <= self.watermark:
            return True
        window.timers.add(window.last)
        if self.trigger == "continuous_event_time" and window.state is None:
            self._next(window, timestamp - int(math.fmod(timestamp, self.every)))
        return False

    def _on_event_time(self, window: Window, time: int) -> bool:
        if self.trigger == "count":
            return False
        if time == window.last:
            return True
        if self.trigger == "event_time" or window.state != time:
            return False
        if self.is_global and self.watermark == MAX:  # here Flink goes on nearly without end
            window.timers.clear()
        else:
            self._next(window, time)
        return True

    def _counted_element(self, key: object, value: object) -> None:
        elements = self.counted.setdefault(key, [])
        elements.append(value)
        n = len(elements)
        if self.full_only:
            fires = n >= self.elements and (n - self.elements) % self.elements_slide == 0
            is_between = (n - 1) % self.elements_slide >= self.elements
        else:
            fires, is_between = n % self.elements_slide == 0, False
        self.in_no_window += is_between
        self.windowed += not is_between
        if fires:
            last = elements[-self.elements :]
            self.firings.append(Firing(key, None, None, last, self.watermark == MAX, self.watermark))

    @property
    def open_counted(self) -> int:
        """How many windows of elements have some and are not full; those that start with the same one are one."""
        found = 0
        for elements in self.counted.values():
            n = len(elements)
            ends = range(n + 1, n + self.elements + 1)
            phase = self.elements % self.elements_slide if self.full_only else 0
            starts = {max(end - self.elements, 0) for end in ends if end % self.elements_slide == phase}
            found += sum(start < n for start in starts)
        return found

    def element(self, key: object, timestamp: int, value: object) -> None:
        if self.elements:
            self._counted_element(key, value)
            return
        skipped = True
        for start, end in self._assigned(timestamp):
            window = self._window_for(key, start, end)
            if window is None:
                continue
            skipped = False
            window.elements.append(value)
            if self._on_element(window, timestamp):
                self._fire(key, window, None)
        if not skipped:
            self.windowed += 1
        elif min(timestamp + self.lateness, MAX) <= self.watermark:
            self.late.append(value)
        else:
            self.in_no_window += 1

    def _fire(self, key: object, window: Window, time: int | None) -> None:
        if window.elements:
            late = time is None and window.last <= self.watermark
            start, end = (None, None) if self.is_global else (window.start, window.end)
            self.firings.append(Firing(key, start, end, list(window.elements), late, self.watermark, time))
            self.results[key, start, end] = list(window.elements)
        if self.purges:
            window.elements.clear()

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        while due := [
            (time, number, key, window)
            for number, (key, live) in enumerate(self.windows.items())
            for window in live
            for time in window.timers
            if time <= watermark
        ]:
            time, _, key, window = min(due, key=lambda item: item[:2])
            window.timers.remove(time)
            if self._on_event_time(window, time):
                self._fire(key, window, time)
        for key, live in self.windows.items():
            self.windows[key] = [w for w in live if not self._is_over(w)]

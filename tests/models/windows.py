"""A keyed event-time window operator with the default trigger, row by row: the model for the native ones.

Follows WindowOperator, MergingWindowSet and EventTimeTrigger, with one list of elements per key and window.
"""

from dataclasses import dataclass, field

MIN, MAX = -(2**63), 2**63 - 1


@dataclass
class Firing:
    key: object
    start: int
    end: int
    elements: list[object]
    late: bool
    watermark: int


@dataclass
class Window:
    start: int
    end: int
    elements: list[object] = field(default_factory=list)
    timer: int | None = None

    @property
    def last(self) -> int:
        return self.end - 1


@dataclass
class WindowModel:
    """`size`/`slide`/`offset` for aligned windows, or `gap` for sessions."""

    size: int = 0
    slide: int = 0
    offset: int = 0
    gap: int = 0
    lateness: int = 0
    watermark: int = MIN
    windows: dict[object, list[Window]] = field(default_factory=dict)
    firings: list[Firing] = field(default_factory=list)
    late: list[object] = field(default_factory=list)
    in_no_window: int = 0
    windowed: int = 0

    def _cleanup(self, window: Window) -> int:
        return min(window.last + self.lateness, MAX)

    def _assigned(self, timestamp: int) -> list[tuple[int, int]]:
        if self.gap:
            return [(timestamp, timestamp + self.gap)]
        start = timestamp - (timestamp - self.offset) % self.slide
        found = []
        while start > timestamp - self.size:
            found.append((start, start + self.size))
            start -= self.slide
        return found

    def _window_for(self, key: object, start: int, end: int) -> Window | None:
        """The live window, merged where it must be; None if it is late."""
        live = self.windows.setdefault(key, [])
        if self.gap:
            touching = sorted((w for w in live if w.start <= end and w.end >= start), key=lambda w: w.start)
            window = Window(
                min([start, *(w.start for w in touching)]), max([end, *(w.end for w in touching)])
            )
            window.elements = [element for w in touching for element in w.elements]
            replaced = touching
        else:
            same = [w for w in live if w.start == start]
            window, replaced = (same[0], same) if same else (Window(start, end), [])
        if self._cleanup(window) <= self.watermark:
            return None
        self.windows[key] = [w for w in live if w not in replaced] + [window]
        return window

    def element(self, key: object, timestamp: int, value: object) -> None:
        skipped = True
        for start, end in self._assigned(timestamp):
            window = self._window_for(key, start, end)
            if window is None:
                continue
            skipped = False
            window.elements.append(value)
            if window.last <= self.watermark:
                self._fire(key, window, late=True)
                window.timer = None
            else:
                window.timer = window.last
        if not skipped:
            self.windowed += 1
        elif timestamp + self.lateness <= self.watermark:
            self.late.append(value)
        else:
            self.in_no_window += 1

    def _fire(self, key: object, window: Window, late: bool) -> None:
        self.firings.append(
            Firing(key, window.start, window.end, list(window.elements), late, self.watermark)
        )

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        due = sorted(
            (
                (w.timer, key, w)
                for key, live in self.windows.items()
                for w in live
                if w.timer is not None and w.timer <= watermark
            ),
            key=lambda item: item[0],
        )
        for _, key, window in due:
            self._fire(key, window, late=False)
            window.timer = None
        for key, live in list(self.windows.items()):
            self.windows[key] = [w for w in live if self._cleanup(w) > watermark]

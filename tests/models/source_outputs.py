"""A plain model of a source with several splits: the least watermark of the active ones, and both idlenesses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from models.watermarks import Generator

MIN_TIMESTAMP = -(2**63)
Output = tuple[str, int | str]


@dataclass
class SplitModel:
    generator: Generator
    watermark: int = MIN_TIMESTAMP
    idle: bool = False


class SourceModel:
    def __init__(
        self, new_generator: Callable[[], Generator], splits: list[str], start_ms: int, interval_ms: int
    ) -> None:
        self.new_generator = new_generator
        self.main = new_generator()
        self.splits: dict[str, SplitModel] = {}
        for split in splits:
            self.add(split)
        self.combined = self.emitted = MIN_TIMESTAMP
        self.all_splits_idle = False
        self.splits_vacant = self.main_vacant = True
        self.idle = False
        self.clock_ms = start_ms
        self.timers: list[tuple[int, int, int, Callable[[], None]]] = []
        self.registrations = 0
        self.every(interval_ms, self.tick)
        self.out: list[tuple[Any, ...]] = []

    def add(self, split: str) -> None:
        self.splits[split] = SplitModel(self.new_generator())

    def release(self, split: str) -> None:
        del self.splits[split]

    def collect(self, split: str | None, timestamp: int | None) -> None:
        timestamp = MIN_TIMESTAMP if timestamp is None else timestamp
        self.out.append(("record", timestamp, "v"))
        generator = self.main if split is None else self.splits[split].generator
        for output in generator.on_event(timestamp):
            self.put(split, output)

    def put(self, split: str | None, output: Output) -> None:
        """A watermark or status that counts at once."""
        if split is None:
            self._put_main(output)
        elif self._record(split, output):
            self._combine()

    def every(self, interval_ms: int, callback: Callable[[], None]) -> None:
        self.registrations += 1
        self.timers.append((self.clock_ms + interval_ms, self.registrations, interval_ms, callback))

    def advance_to(self, clock_ms: int) -> None:
        self.clock_ms = clock_ms
        while min(self.timers)[0] <= clock_ms:
            timer = min(self.timers)
            self.timers.remove(timer)
            timer[3]()
            self.every(*timer[2:])

    def tick(self) -> None:
        for name, split in self.splits.items():
            for output in split.generator.on_periodic_emit(self.split_clock_ms(name)):
                self._record(name, output)
        self._combine()
        for output in self.main.on_periodic_emit(self.main_clock_ms()):
            self._put_main(output)

    # ---- what alignment has to know

    def split_clock_ms(self, split: str) -> int:
        return self.clock_ms

    def main_clock_ms(self) -> int:
        return self.clock_ms

    def on_split_idle(self, split: str) -> None: ...
    def on_split_watermark(self, split: str) -> None: ...
    def on_watermark(self) -> None: ...

    # ----

    def _record(self, split: str, output: Output) -> bool:
        kind, value = output
        model = self.splits[split]
        was_idle, model.idle = model.idle, output == ("status", "idle")
        if was_idle != model.idle:
            self.on_split_idle(split)
        if kind == "status":
            return True
        assert isinstance(value, int)
        if value <= model.watermark:
            return False
        model.watermark = value
        self.on_split_watermark(split)
        return value > self.combined

    def _combine(self) -> None:
        if self.splits:
            active = [split.watermark for split in self.splits.values() if not split.idle]
            self.all_splits_idle = not active
            watermark = min(active) if active else max(split.watermark for split in self.splits.values())
            if watermark > self.combined:
                self.combined = watermark
                self.splits_vacant = False
                self._emit(watermark)
        if self.all_splits_idle:
            self.splits_vacant = True
            self._mark_idle()

    def _put_main(self, output: Output) -> None:
        kind, value = output
        if kind == "watermark":
            assert isinstance(value, int)
            self.main_vacant = False
            self._emit(value)
        elif value == "idle":
            self.main_vacant = True
            self._mark_idle()
        else:
            self.main_vacant = False
            self._mark_active()

    def _emit(self, watermark: int) -> None:
        if watermark > self.emitted:
            self.emitted = watermark
            self.on_watermark()
            self._mark_active()
            self.out.append(("watermark", watermark))

    def _mark_idle(self) -> None:
        if self.splits_vacant and self.main_vacant and not self.idle:
            self.idle = True
            self.out.append(("status", "idle"))

    def _mark_active(self) -> None:
        if self.idle:
            self.idle = False
            self.out.append(("status", "active"))

"""A plain model of a source that is aligned with others: who is paused, and what is reported."""

from collections.abc import Callable

from models.source_outputs import MIN_TIMESTAMP, SourceModel
from models.watermarks import Generator

MAX_TIMESTAMP = 2**63 - 1


class AlignedSourceModel(SourceModel):
    """Keeps all samples ever taken of each watermark, and the times of all pauses."""

    def __init__(
        self,
        new_generator: Callable[[], Generator],
        splits: list[str],
        start_ms: int,
        interval_ms: int,
        update_interval_ms: int,
        buffer_size: int,
    ) -> None:
        self.samples: dict[str, list[int]] = {}
        self.source_samples: list[int] = []
        self.paused: dict[str, int] = {}
        self.blocked_ms: dict[str, int] = {}
        self.waiting_since_ms: int | None = None
        self.main_blocked_ms = 0
        self.max_desired = MAX_TIMESTAMP
        self.buffer_size = buffer_size
        self.reported: list[int] = []
        self.pauses: list[tuple[list[str], list[str]]] = []
        super().__init__(new_generator, splits, start_ms, interval_ms)
        self.every(update_interval_ms, self.update)

    def add(self, split: str) -> None:
        super().add(split)
        self.samples[split] = []
        self.blocked_ms[split] = 0

    def release(self, split: str) -> None:
        super().release(split)
        self.paused.pop(split, None)

    def announce(self, max_desired: int) -> None:
        self.max_desired = max_desired
        self.check()

    def update(self) -> None:
        for split, model in self.splits.items():
            self.samples[split].append(model.watermark)
        self.source_samples.append(self.emitted)
        self.check()
        if self.emitted != MIN_TIMESTAMP:
            self.reported.append(MAX_TIMESTAMP if self.idle else self.emitted)

    def check(self) -> None:
        self.on_watermark()
        active = [split for split, model in self.splits.items() if not model.idle]
        to_pause = [split for split in active if self.too_far(split) and split not in self.paused]
        to_resume = [split for split in active if not self.too_far(split) and split in self.paused]
        self.pause(to_pause, to_resume)

    def too_far(self, split: str) -> bool:
        return self.seen(self.samples[split], self.splits[split].watermark) > self.max_desired

    def seen(self, samples: list[int], latest: int) -> int:
        if self.buffer_size == 0:
            return latest
        return samples[-self.buffer_size] if len(samples) >= self.buffer_size else MIN_TIMESTAMP

    def pause(self, to_pause: list[str], to_resume: list[str]) -> None:
        if to_pause or to_resume:
            self.pauses.append((to_pause, to_resume))
        for split in to_pause:
            self.paused[split] = self.clock_ms
        for split in to_resume:
            self.blocked_ms[split] += self.clock_ms - self.paused.pop(split)

    def on_split_idle(self, split: str) -> None:
        self.on_split_watermark(split)

    def on_split_watermark(self, split: str) -> None:
        if not self.splits[split].idle and self.too_far(split) and split not in self.paused:
            self.pause([split], [])

    def on_watermark(self) -> None:
        too_far = self.seen(self.source_samples, self.emitted) > self.max_desired
        if too_far and self.waiting_since_ms is None:
            self.waiting_since_ms = self.clock_ms
        elif not too_far and self.waiting_since_ms is not None:
            self.main_blocked_ms += self.clock_ms - self.waiting_since_ms
            self.waiting_since_ms = None

    def split_clock_ms(self, split: str) -> int:
        return self.paused.get(split, self.clock_ms) - self.blocked_ms[split]

    def main_clock_ms(self) -> int:
        now_ms = self.clock_ms if self.waiting_since_ms is None else self.waiting_since_ms
        return now_ms - self.main_blocked_ms

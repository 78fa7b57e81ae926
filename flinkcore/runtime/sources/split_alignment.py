"""Which splits of a source are too far ahead, and therefore paused."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.watermark_generators import RelativeClock
from flinkcore.runtime.sources.source_split_metrics import SourceSplitMetrics
from flinkcore.runtime.sources.watermark_sampler import WatermarkSampler

PauseOrResume = Callable[[Collection[str], Collection[str]], bool]
"""Pauses the first and resumes the second splits; False: that is not supported, and need not be."""


class SplitAlignment:
    """Pauses each split whose watermark is beyond the maximum desired, and resumes it when that has caught up.

    A split is paused when its watermark advances, when it turns active, or when the maximum is announced or a sample
    taken; it is resumed at an announcement or a sample. Idle splits are left as they are.

    Parameters
    ----------
    clock : callable
        Gives the processing time in ms, for the metrics.
    watermark_buffer_size : int
        What is compared is the watermark as it was this many samples ago; 0: the latest.
    pause_or_resume : callable
        Does it.

    Attributes
    ----------
    max_desired_watermark : int
        In ms since the epoch; 2**63 - 1 until one is announced.

    Notes
    -----
    What Flink's ``SourceOperator`` does in ``checkSplitWatermarkAlignment``, ``maybePauseSplit`` and the methods of
    its ``WatermarkUpdateListener`` for splits. Deliberate difference: a split that ends while it is paused is
    forgotten, so that it can be read and paused anew.
    """

    def __init__(
        self, clock: RelativeClock, watermark_buffer_size: int, pause_or_resume: PauseOrResume
    ) -> None:
        self.max_desired_watermark = MAX_TIMESTAMP
        self._clock = clock
        self._buffer_size = watermark_buffer_size
        self._pause_or_resume = pause_or_resume
        self._metrics: dict[str, SourceSplitMetrics] = {}
        self._watermarks: dict[str, WatermarkSampler] = {}
        self._paused: set[str] = set()
        self._idle: set[str] = set()

    @property
    def metrics(self) -> Mapping[str, SourceSplitMetrics]:
        """What each split has gathered, by id, including splits that have ended."""
        return MappingProxyType(self._metrics)

    def __contains__(self, split_id: str) -> bool:
        return split_id in self._watermarks

    def add(self, split_id: str) -> None:
        """Begin with a split; no effect if it is read already."""
        if split_id in self._watermarks:
            return
        self._watermarks[split_id] = WatermarkSampler(self._buffer_size)
        if split_id not in self._metrics:
            self._metrics[split_id] = SourceSplitMetrics(self._clock)
        self._metrics[split_id].mark_split_start()

    def finished(self, split_id: str) -> None:
        """Forget a split, but for its metrics."""
        if self._watermarks.pop(split_id, None) is not None:
            self._metrics[split_id].on_split_finished()
        self._paused.discard(split_id)
        self._idle.discard(split_id)

    def all_finished(self) -> None:
        """Forget every split, but for the metrics."""
        for split_id in list(self._watermarks):
            self.finished(split_id)

    def update_watermark(self, split_id: str, watermark: int) -> None:
        """Take the watermark of a split, in ms since the epoch, and pause the split if it is too far ahead."""
        self.add(split_id)
        self._watermarks[split_id].add_latest(watermark)
        self._metrics[split_id].watermark_gauge.set_current_watermark(watermark)
        if split_id not in self._idle:
            self._maybe_pause(split_id)

    def update_idle(self, split_id: str, is_idle: bool) -> None:
        """Take the idleness of a split; one that turns active is paused if it is too far ahead."""
        self.add(split_id)
        if is_idle == (split_id in self._idle):
            return
        if is_idle:
            self._idle.add(split_id)
            self._metrics[split_id].mark_idle()
        else:
            self._idle.remove(split_id)
            self._metrics[split_id].mark_not_idle()
            self._maybe_pause(split_id)

    def sample(self) -> None:
        """Take a sample of each watermark."""
        for watermark in self._watermarks.values():
            watermark.sample()

    def check(self) -> None:
        """Pause the splits that are too far ahead, and resume those that are so no longer."""
        to_pause, to_resume = [], []
        for split_id, watermark in self._watermarks.items():
            if split_id in self._idle:
                continue
            paused = split_id in self._paused
            if watermark.oldest_sample > self.max_desired_watermark:
                if not paused:
                    to_pause.append(split_id)
            elif paused:
                to_resume.append(split_id)
        if to_pause or to_resume:
            self._apply(to_pause, to_resume)

    def _maybe_pause(self, split_id: str) -> None:
        ahead = self._watermarks[split_id].oldest_sample > self.max_desired_watermark
        if ahead and split_id not in self._paused:
            self._apply([split_id], [])

    def _apply(self, to_pause: list[str], to_resume: list[str]) -> None:
        if self._pause_or_resume(to_pause, to_resume):
            for split_id in to_resume:
                self._metrics[split_id].mark_not_paused()
            for split_id in to_pause:
                self._metrics[split_id].mark_paused()
        self._paused.update(to_pause)
        self._paused.difference_update(to_resume)

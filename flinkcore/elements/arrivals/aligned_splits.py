"""Watermark alignment of the splits of a log in a job that runs element by element.

The rules are those of `flinkcore.time_plane.paused_spans`. Sources of one group wait for each other, besides, where one
process runs them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.elements.arrivals.split_watermarks import SplitWatermarks
from flinkcore.elements.sources.watermark_alignment import WatermarkAggregator, WatermarkSampler
from flinkcore.elements.tasks.task_output import ElementCall
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer


class AlignedSplits:
    """Holds the records of splits back that are ahead of others.

    Parameters
    ----------
    name : str
        Name of the source, unique in the job.
    parameters : WatermarkAlignmentParams
    group : WatermarkAggregator
        The watermarks of the sources of the group.
    watermarks : SplitWatermarks
        Makes the watermarks of the splits, and pauses their clocks.
    n_splits : int
    clock : ProcessingTimeService
    samples : int
        The watermark so many updates ago is compared.
    """

    def __init__(
        self,
        name: str,
        parameters: WatermarkAlignmentParams,
        group: WatermarkAggregator[str],
        watermarks: SplitWatermarks,
        n_splits: int,
        clock: ProcessingTimeService,
        samples: int,
    ) -> None:
        self._name = name
        self._interval_ms = parameters.update_interval_ms
        self._drift_ms = parameters.max_allowed_watermark_drift_ms
        self._group = group
        self._watermarks = watermarks
        self._clock = clock
        self._processes = [watermarks.process(split) for split in range(n_splits)]
        self._samplers = [WatermarkSampler(samples) for _ in range(n_splits)]
        self._paused: set[int] = set()
        self._held: deque[tuple[int, Any, int | None]] = deque()
        self._timer: ScheduledTimer | None = None
        self._schedule(clock.current_processing_time())

    def process(self, split: int) -> ElementCall:
        """Return what takes the records of a split."""
        process, held, paused = self._processes[split], self._held, self._paused

        def take(record: StreamRecord[Any]) -> None:
            if split in paused:
                held.append((split, record.value, record.timestamp))
            else:
                process(record)

        return take

    def finish(self) -> None:
        """Read all that waits, since the log has ended."""
        self.close()
        for split in sorted(self._paused):
            self._watermarks.resume(split)
        self._paused.clear()
        self._group.aggregate(self._name, MAX_TIMESTAMP)
        self._read(self._held)

    def close(self) -> None:
        """Cancel the updates."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self, now_ms: int) -> None:
        update_ms = (now_ms // self._interval_ms + 1) * self._interval_ms
        # Twice, so that watermarks of the very time, which were scheduled meanwhile, come before.
        self._timer = self._clock.register_timer(update_ms, lambda _: self._reschedule(update_ms))

    def _reschedule(self, update_ms: int) -> None:
        self._timer = self._clock.register_timer(update_ms, lambda _: self._update(update_ms))

    def _update(self, update_ms: int) -> None:
        """Pause the splits that are ahead, and resume the others."""
        self._schedule(update_ms)
        current = self._watermarks.current
        for sampler, (watermark_ms, _) in zip(self._samplers, current, strict=True):
            sampler.add_latest(watermark_ms)
            sampler.sample()
        active = [
            watermark_ms for watermark_ms, is_idle in current if not is_idle and watermark_ms > MIN_TIMESTAMP
        ]
        self._group.aggregate(self._name, min(active, default=MAX_TIMESTAMP))
        limit_ms = min(MAX_TIMESTAMP, self._group.aggregated_watermark + self._drift_ms)
        ahead = {split for split, sampler in enumerate(self._samplers) if sampler.oldest_sample > limit_ms}
        for split in sorted(ahead - self._paused):
            self._watermarks.pause(split)
        resumed = self._paused - ahead
        self._paused |= ahead
        if resumed:
            self._clock.register_timer(update_ms + 1, lambda _: self._resume(resumed))

    def _resume(self, splits: set[int]) -> None:
        """Read the records that came while splits were paused."""
        for split in sorted(splits & self._paused):
            self._watermarks.resume(split)
        self._paused -= splits
        waiting = deque(each for each in self._held if each[0] in splits)
        left = [each for each in self._held if each[0] not in splits]
        self._held.clear()
        self._held.extend(left)
        self._read(waiting)

    def _read(self, waiting: deque[tuple[int, Any, int | None]]) -> None:
        while waiting:
            split, value, timestamp = waiting.popleft()
            self._processes[split](StreamRecord(value, timestamp))

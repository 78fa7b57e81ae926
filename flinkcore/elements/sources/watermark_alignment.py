"""Watermark alignment: sources, and splits of a source, that are too far ahead wait for others."""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark_generators import RelativeClock
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.operators.metrics.gauges import TimerGauge, WatermarkGauge
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer

K = TypeVar("K", bound=Hashable)


class WatermarkAggregator(Generic[K]):
    """The last watermark of each key, and the least of them.

    Complexity: a report costs O(log n) amortised over n keys.

    Notes
    -----
    Flink's ``SourceCoordinator.WatermarkAggregator``. A key counts from its first report, and its watermark may go
    back.
    """

    def __init__(self) -> None:
        self._watermarks: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._reports = 0

    def aggregate(self, key: K, watermark: int) -> int | None:
        """Set the watermark of a key.

        Parameters
        ----------
        key : hashable
        watermark : int
            In ms since the epoch.

        Returns
        -------
        int or None
            The least watermark if it has changed, else None.
        """
        before = self.aggregated_watermark
        self._watermarks[key] = watermark
        # The number keeps keys, which may have no order, from being compared.
        self._reports += 1
        heappush(self._heap, (watermark, self._reports, key))
        if len(self._heap) > 2 * len(self._watermarks) + 16:
            self._heap = [(mark, at, k) for at, (k, mark) in enumerate(self._watermarks.items())]
            self._reports = len(self._heap)
            heapify(self._heap)
        while self._watermarks[self._heap[0][2]] != self._heap[0][0]:
            heappop(self._heap)
        after = self.aggregated_watermark
        return after if after != before else None

    @property
    def keys(self) -> Iterable[K]:
        """The keys that have reported, in the order of their first reports."""
        return self._watermarks.keys()

    @property
    def aggregated_watermark(self) -> int:
        """The least watermark in ms since the epoch; -2**63 if none was reported."""
        return self._heap[0][0] if self._heap else MIN_TIMESTAMP


class WatermarkSampler:
    """The watermark at the last samplings.

    Alignment compares the oldest sample with the maximum allowed watermark, which was computed from watermarks of about
    that age.

    Parameters
    ----------
    capacity : int
        The number of samples; 0: the latest watermark counts.

    Raises
    ------
    ConfigurationError
        If the capacity is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.source.WatermarkSampler``.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ConfigurationError(
                "pipeline.watermark-alignment.buffer-size must be 0 or more samples, it is "
                f"{capacity}; 3 is Flink's default"
            )
        self._samples = deque([MIN_TIMESTAMP] * capacity, maxlen=capacity)
        self._latest = MIN_TIMESTAMP

    def add_latest(self, watermark: int) -> None:
        """Set the watermark, in ms since the epoch."""
        self._latest = watermark

    def sample(self) -> None:
        """Add the current watermark as a sample, in place of the oldest one."""
        self._samples.append(self._latest)

    @property
    def latest(self) -> int:
        """The last watermark, in ms since the epoch; -2**63 before the first."""
        return self._latest

    @property
    def oldest_sample(self) -> int:
        """The watermark `capacity` samplings ago, in ms since the epoch; -2**63 before the first."""
        return self._samples[0] if self._samples else self._latest


class WatermarkAlignmentReceiver(Protocol):
    """The reading side of alignment: a :class:`SourceOperator`."""

    def update_max_desired_watermark(self, max_watermark: int) -> None:
        """Read no further than this watermark, in ms since the epoch."""


class WatermarkAlignmentGroups:
    """The alignment groups of a job by name; sources of a group wait for each other.

    Notes
    -----
    Flink's ``SourceCoordinator`` keeps them in its ``CoordinatorStore``.
    """

    def __init__(self) -> None:
        self._groups: dict[str, WatermarkAggregator[str]] = {}

    def group(self, watermark_group: str) -> WatermarkAggregator[str]:
        """Return the watermarks of a group by source; the first call creates it."""
        return self._groups.setdefault(watermark_group, WatermarkAggregator())


class SourceCoordinator:
    """Announces to the readers of a source how far they may read, once per update interval.

    The limit is the least watermark that the sources of the group have reported plus the source's maximum drift, or
    none if the sum exceeds 2**63 - 1. A source's watermark is the least of its subtasks; an idle subtask reports 2**63
    - 1, and holds none back. Subtasks and sources count from their first report; before it a subtask gets no
    announcement.

    Announcements and reports run on processing time; of those at the same time, the one that was scheduled first comes
    first.

    Parameters
    ----------
    source_name : str
        Unique in the job.
    alignment_parameters : WatermarkAlignmentParams
    groups : WatermarkAlignmentGroups
        The groups of the job.
    processing_time_service : ProcessingTimeService

    Notes
    -----
    The part of Flink's ``org.apache.flink.runtime.source.coordinator.SourceCoordinator`` that aligns watermarks. Its
    executor, too, catches up on missed announcements (``ScheduledExecutorService.scheduleAtFixedRate``).
    """

    def __init__(
        self,
        source_name: str,
        alignment_parameters: WatermarkAlignmentParams,
        groups: WatermarkAlignmentGroups,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        self._source_name = source_name
        self._parameters = alignment_parameters
        self._group = groups.group(alignment_parameters.watermark_group)
        self._time_service = processing_time_service
        self._combined_watermark: WatermarkAggregator[int] = WatermarkAggregator()
        self._receivers: dict[int, WatermarkAlignmentReceiver] = {}
        self._announcements: ScheduledTimer | None = None

    def start(self) -> None:
        """Announce once per interval from now.

        Announcements are not left out when the clock passes several intervals at once, as reports may come between
        them: start when the clock shows the time of the first arrival, not 0.

        Raises
        ------
        LifecycleError
            If it was started before.
        """
        if self._announcements is not None:
            raise LifecycleError(f"the coordinator of the source {self._source_name!r} was started before")
        interval_ms = self._parameters.update_interval_ms
        self._announcements = self._time_service.schedule_at_fixed_rate(
            lambda _: self.announce_combined_watermark(), interval_ms, interval_ms
        )

    def close(self) -> None:
        """Stop the announcements."""
        if self._announcements is not None:
            self._announcements.cancel()

    def reporter(self, subtask_index: int) -> Callable[[int], None]:
        """Return the callable by which a subtask's operator reports its watermarks."""
        return lambda watermark: self.handle_reported_watermark(subtask_index, watermark)

    def subtask_ready(self, subtask_index: int, receiver: WatermarkAlignmentReceiver) -> None:
        """Announce to this receiver of a subtask, instead of a previous one."""
        self._receivers[subtask_index] = receiver

    def handle_reported_watermark(self, subtask_index: int, watermark: int) -> None:
        """Take the watermark of a subtask, in ms since the epoch; 2**63 - 1 if it is idle or has ended."""
        combined = self._combined_watermark.aggregate(subtask_index, watermark)
        if combined is not None:
            self._group.aggregate(self._source_name, combined)

    def announce_combined_watermark(self) -> None:
        """Announce to each subtask that has reported how far it may read."""
        max_allowed = min(
            MAX_TIMESTAMP,
            self._group.aggregated_watermark + self._parameters.max_allowed_watermark_drift_ms,
        )
        for subtask_index in list(self._combined_watermark.keys):
            receiver = self._receivers.get(subtask_index)
            if receiver is not None:
                receiver.update_max_desired_watermark(max_allowed)


class SourceCoordinators:
    """The coordinators of the aligned sources of a job.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
    """

    def __init__(self, processing_time_service: ProcessingTimeService) -> None:
        self._time_service = processing_time_service
        self._groups = WatermarkAlignmentGroups()
        self._coordinators: dict[str, SourceCoordinator] = {}

    def group(self, watermark_group: str) -> WatermarkAggregator[str]:
        """Return the watermarks of a group by source."""
        return self._groups.group(watermark_group)

    def of_source(
        self, source_name: str, alignment_parameters: WatermarkAlignmentParams
    ) -> SourceCoordinator:
        """Return the coordinator of a source, whose name is unique in the job; the first call starts it."""
        coordinator = self._coordinators.get(source_name)
        if coordinator is None:
            coordinator = SourceCoordinator(
                source_name, alignment_parameters, self._groups, self._time_service
            )
            self._coordinators[source_name] = coordinator
            coordinator.start()
        return coordinator


class SourceSplitMetrics:
    """The watermark of a split, and how long it was paused, idle and active.

    Parameters
    ----------
    clock : callable
        Returns the processing time in ms since the epoch.

    Attributes
    ----------
    watermark_gauge : WatermarkGauge
        The split's own watermark.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.metrics.groups.InternalSourceSplitMetricGroup``. Deliberate differences: there
    are not times per second; the metrics of a split are kept after its end, for a report.
    """

    def __init__(self, clock: RelativeClock) -> None:
        self.watermark_gauge = WatermarkGauge()
        self._lifetime = TimerGauge(clock)
        self._paused = TimerGauge(clock)
        self._idle = TimerGauge(clock)
        self._pauses = 0

    def mark_split_start(self) -> None:
        """The split is added to the reader, perhaps again; its watermark is reset."""
        self._lifetime.mark_start()
        self.watermark_gauge.set_current_watermark(MIN_TIMESTAMP)

    def mark_paused(self) -> None:
        """The split is paused; it is not idle."""
        self._idle.mark_end()
        self._paused.mark_start()
        self._pauses += 1

    def mark_not_paused(self) -> None:
        """The split is read again."""
        self._paused.mark_end()

    def mark_idle(self) -> None:
        """The split is idle; it is no longer paused."""
        self._paused.mark_end()
        self._idle.mark_start()

    def mark_not_idle(self) -> None:
        """The split is no longer idle."""
        self._idle.mark_end()

    def on_split_finished(self) -> None:
        """The split has ended; its times stand still."""
        self._paused.mark_end()
        self._idle.mark_end()
        self._lifetime.mark_end()

    @property
    def current_watermark(self) -> int:
        """The split's watermark in ms since the epoch; -2**63 before the first."""
        return self.watermark_gauge.value

    @property
    def is_paused(self) -> bool:
        """Return whether the split is paused."""
        return self._paused.is_measuring

    @property
    def is_idle(self) -> bool:
        """Return whether the split is idle."""
        return self._idle.is_measuring

    @property
    def pauses(self) -> int:
        """Return how often the split was paused."""
        return self._pauses

    @property
    def paused_time_ms(self) -> int:
        """Return how long the split was paused, until now."""
        return self._paused.accumulated_time_ms

    @property
    def idle_time_ms(self) -> int:
        """Return how long the split was idle, until now."""
        return self._idle.accumulated_time_ms

    @property
    def active_time_ms(self) -> int:
        """Return how long the split was neither paused nor idle, until now or its end."""
        return max(0, self._lifetime.accumulated_time_ms - self.paused_time_ms - self.idle_time_ms)

    def register(self, group: TaskMetricGroup) -> None:
        """Register the metrics by the names that Flink has for them."""
        group.gauge("currentWatermark", lambda: self.current_watermark)
        group.gauge("accumulatedActiveTimeMs", lambda: self.active_time_ms)
        group.gauge("accumulatedPausedTimeMs", lambda: self.paused_time_ms)
        group.gauge("accumulatedIdleTimeMs", lambda: self.idle_time_ms)


PauseOrResume = Callable[[Collection[str], Collection[str]], bool]
"""Pauses the first and resumes the second splits; returns False if the reader cannot, and need not."""


class SplitAlignment:
    """Pauses each split whose watermark exceeds the maximum desired one, and resumes it when the maximum has caught up.

    A split is paused when its watermark advances, when it turns active, when a maximum is announced, or at a sample; it
    is resumed at an announcement or a sample. Idle splits are left as they are.

    Parameters
    ----------
    clock : callable
        Returns the processing time in ms since the epoch, for the metrics.
    watermark_buffer_size : int
        The watermark this many samples ago is compared; 0: the latest.
    pause_or_resume : callable
        Pauses and resumes splits of the reader.

    Attributes
    ----------
    max_desired_watermark : int
        In ms since the epoch; 2**63 - 1 until one is announced.

    Notes
    -----
    ``checkSplitWatermarkAlignment``, ``maybePauseSplit`` and the ``WatermarkUpdateListener`` methods for splits of
    Flink's ``SourceOperator``. Deliberate difference: a split that ends while it is paused is forgotten, so that it can
    be read and paused again.
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
        """The metrics of all splits by id, including those that have ended."""
        return MappingProxyType(self._metrics)

    def __contains__(self, split_id: str) -> bool:
        return split_id in self._watermarks

    def __iter__(self) -> Iterator[str]:
        return iter(self._watermarks)

    @property
    def readable_splits(self) -> int:
        """The number of splits that have neither ended nor been paused."""
        return len(self._watermarks) - len(self._paused)

    def add(self, split_id: str) -> None:
        """Add a split, unless it is being read already."""
        if split_id in self._watermarks:
            return
        self._watermarks[split_id] = WatermarkSampler(self._buffer_size)
        if split_id not in self._metrics:
            self._metrics[split_id] = SourceSplitMetrics(self._clock)
        self._metrics[split_id].mark_split_start()

    def finished(self, split_id: str) -> None:
        """Drop a split, except for its metrics."""
        if self._watermarks.pop(split_id, None) is not None:
            self._metrics[split_id].on_split_finished()
        self._paused.discard(split_id)
        self._idle.discard(split_id)

    def all_finished(self) -> None:
        """Drop all splits, except for their metrics."""
        for split_id in list(self._watermarks):
            self.finished(split_id)

    def update_watermark(self, split_id: str, watermark: int) -> None:
        """Set the watermark of a split, which is active, in ms since the epoch; pause it if it is too far ahead."""
        self.add(split_id)
        self._watermarks[split_id].add_latest(watermark)
        self._metrics[split_id].watermark_gauge.set_current_watermark(watermark)
        self._maybe_pause(split_id)

    def update_idle(self, split_id: str, is_idle: bool) -> None:
        """Set the idleness of a split; one that turns active is paused if it is too far ahead."""
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
        """Sample each watermark."""
        for watermark in self._watermarks.values():
            watermark.sample()

    def check(self) -> None:
        """Pause the splits that are too far ahead, and resume those that no longer are."""
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

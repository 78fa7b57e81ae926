"""The side of watermark alignment that hears of all readers: groups, and a coordinator per source."""

from collections.abc import Callable
from typing import Protocol

from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.errors import LifecycleError
from flinkcore.runtime.processing_time import ProcessingTimeService, ScheduledTimer
from flinkcore.runtime.sources.watermark_aggregator import WatermarkAggregator


class WatermarkAlignmentReceiver(Protocol):
    """The reading side of alignment: a :class:`SourceOperator`."""

    def update_max_desired_watermark(self, max_watermark: int) -> None:
        """Read no further than to this watermark, in ms since the epoch."""


class WatermarkAlignmentGroups:
    """The groups of a job by name; sources of a group wait for each other.

    Notes
    -----
    What Flink's ``SourceCoordinator`` keeps in its ``CoordinatorStore``.
    """

    def __init__(self) -> None:
        self._groups: dict[str, WatermarkAggregator[str]] = {}

    def group(self, watermark_group: str) -> WatermarkAggregator[str]:
        """Return the watermarks of a group by source, a new one at the first call."""
        return self._groups.setdefault(watermark_group, WatermarkAggregator())


class SourceCoordinator:
    """Tells the readers of a source how far they may go, once per update interval.

    That is the least watermark that the sources of the group have reported, and the source's maximum drift; no
    limit, if the sum is beyond 2**63 - 1. A source's watermark is the least that its subtasks have reported; an
    idle subtask reports 2**63 - 1, and so holds nobody back. Subtasks and sources count from their first report;
    a subtask is told nothing before.

    Announcements and reports run on processing time. Which comes first of both at the same time is fixed, too: the
    one that was scheduled first.

    Parameters
    ----------
    source_name : str
        Unique in the job.
    alignment_parameters : WatermarkAlignmentParams
    groups : WatermarkAlignmentGroups
        Those of the job.
    processing_time_service : ProcessingTimeService

    Notes
    -----
    The part of Flink's ``org.apache.flink.runtime.source.coordinator.SourceCoordinator`` that aligns watermarks. Its
    executor, too, makes up for announcements that it missed (``ScheduledExecutorService.scheduleAtFixedRate``).
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

        No announcement is left out, not even where the clock passes several intervals at once, because reports may
        come between them: start when the clock shows the time of the first arrival, not 0.

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
        """Announce no more."""
        if self._announcements is not None:
            self._announcements.cancel()

    def reporter(self, subtask_index: int) -> Callable[[int], None]:
        """Return what a subtask's operator reports its watermarks by."""
        return lambda watermark: self.handle_reported_watermark(subtask_index, watermark)

    def subtask_ready(self, subtask_index: int, receiver: WatermarkAlignmentReceiver) -> None:
        """Announce to this receiver as the subtask, instead of one before it."""
        self._receivers[subtask_index] = receiver

    def subtask_failed(self, subtask_index: int) -> None:
        """Announce to the subtask no more; what it has reported still counts, until it reports anew."""
        self._receivers.pop(subtask_index, None)

    def handle_reported_watermark(self, subtask_index: int, watermark: int) -> None:
        """Take the watermark of a subtask, in ms since the epoch; 2**63 - 1 if it is idle or has ended."""
        combined = self._combined_watermark.aggregate(subtask_index, watermark)
        if combined is not None:
            self._group.aggregate(self._source_name, combined)

    def announce_combined_watermark(self) -> None:
        """Tell each subtask that has reported how far it may go."""
        max_allowed = min(
            MAX_TIMESTAMP,
            self._group.aggregated_watermark + self._parameters.max_allowed_watermark_drift_ms,
        )
        for subtask_index in list(self._combined_watermark.keys):
            receiver = self._receivers.get(subtask_index)
            if receiver is not None:
                receiver.update_max_desired_watermark(max_allowed)

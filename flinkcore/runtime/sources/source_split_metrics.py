"""What there is to tell about a split while it is read."""

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.watermark_generators import RelativeClock
from flinkcore.runtime.gauges import TimerGauge, WatermarkGauge


class SourceSplitMetrics:
    """The watermark of a split, and how long it was paused, idle and active.

    Parameters
    ----------
    clock : callable
        Gives the processing time in ms.

    Attributes
    ----------
    watermark_gauge : WatermarkGauge
        The split's own watermark.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.metrics.groups.InternalSourceSplitMetricGroup``. Deliberate differences: there
    are no times per second; what a split has gathered is kept after its end, for a report.
    """

    def __init__(self, clock: RelativeClock) -> None:
        self.watermark_gauge = WatermarkGauge()
        self._lifetime = TimerGauge(clock)
        self._paused = TimerGauge(clock)
        self._idle = TimerGauge(clock)
        self._pauses = 0

    def mark_split_start(self) -> None:
        """The split is given to the reader, maybe again; its watermark is none, then."""
        self._lifetime.mark_start()
        self.watermark_gauge.set_current_watermark(MIN_TIMESTAMP)

    def mark_paused(self) -> None:
        """The split is read no more; it is not idle, then."""
        self._idle.mark_end()
        self._paused.mark_start()
        self._pauses += 1

    def mark_not_paused(self) -> None:
        """The split is read again."""
        self._paused.mark_end()

    def mark_idle(self) -> None:
        """The split is idle; its time counts as paused no longer."""
        self._paused.mark_end()
        self._idle.mark_start()

    def mark_not_idle(self) -> None:
        """The split is not idle any more."""
        self._idle.mark_end()

    def on_split_finished(self) -> None:
        """The split has ended: no time passes for it any more."""
        self._paused.mark_end()
        self._idle.mark_end()
        self._lifetime.mark_end()

    @property
    def current_watermark(self) -> int:
        """The split's own watermark in ms since the epoch; -2**63 if there was none."""
        return self.watermark_gauge.value

    @property
    def is_paused(self) -> bool:
        """Whether the split is paused now."""
        return self._paused.is_measuring

    @property
    def is_idle(self) -> bool:
        """Whether the split is idle now."""
        return self._idle.is_measuring

    @property
    def pauses(self) -> int:
        """How often the split was paused."""
        return self._pauses

    @property
    def paused_time_ms(self) -> int:
        """How long the split was paused, until now."""
        return self._paused.accumulated_time_ms

    @property
    def idle_time_ms(self) -> int:
        """How long the split was idle, until now."""
        return self._idle.accumulated_time_ms

    @property
    def active_time_ms(self) -> int:
        """How long the split was neither paused nor idle, until now or until its end."""
        return max(0, self._lifetime.accumulated_time_ms - self.paused_time_ms - self.idle_time_ms)

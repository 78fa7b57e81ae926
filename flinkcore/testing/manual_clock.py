"""A clock that a test moves."""

from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.runtime.processing_time import DrivenProcessingTimeService


class ManualClock(DrivenProcessingTimeService):
    """Processing time that stands still until a test moves it; callbacks that are due run then.

    Parameters
    ----------
    start_ms : int, default 0
        What it shows at first, in ms since the epoch.

    Notes
    -----
    Flink's ``TestProcessingTimeService``, under a name that pytest does not take for a class of tests.

    Examples
    --------
    >>> clock = ManualClock()
    >>> timer = clock.register_timer(60_000, lambda timestamp: print("called at", timestamp))
    >>> clock.advance_by(59_999)
    >>> clock.advance_by(Duration.of_seconds(1))
    called at 60000
    """

    def advance_by(self, interval: int | Time | Duration) -> None:
        """Move the clock on; see `advance_to`.

        Parameters
        ----------
        interval : int, Time or Duration
            An int is in ms.

        Raises
        ------
        ConfigurationError
            If it is no interval of time.
        TimerError, LifecycleError
            As `advance_to`.
        """
        self.advance_to(self.now_ms + interval_or_ms(interval, "interval"))

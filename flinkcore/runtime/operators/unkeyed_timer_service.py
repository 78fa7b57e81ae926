"""The timer service of functions on streams without keys."""

from typing import NoReturn

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import ConfigurationError
from flinkcore.runtime.processing_time import ProcessingTimeService


class UnkeyedTimerService(TimerService):
    """Tells the time, and refuses timers.

    Attributes
    ----------
    watermark : int
        Set by the operator, in ms since the epoch.

    Notes
    -----
    Flink's ``ProcessOperator.ContextImpl``, which is its own timer service.
    """

    __slots__ = ("_processing_time_service", "watermark")

    def __init__(self, processing_time_service: ProcessingTimeService) -> None:
        self._processing_time_service = processing_time_service
        self.watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""
        return self._processing_time_service.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark that came last."""
        return self.watermark

    def register_processing_time_timer(self, timestamp: int) -> NoReturn:
        """Raise a ConfigurationError: timers belong to keys."""
        self._refuse(timestamp)

    def register_event_time_timer(self, timestamp: int) -> NoReturn:
        """Raise a ConfigurationError: timers belong to keys."""
        self._refuse(timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> NoReturn:
        """Raise a ConfigurationError: timers belong to keys."""
        self._refuse(timestamp)

    def delete_event_time_timer(self, timestamp: int) -> NoReturn:
        """Raise a ConfigurationError: timers belong to keys."""
        self._refuse(timestamp)

    def _refuse(self, timestamp: int) -> NoReturn:
        raise ConfigurationError(
            f"the timer at {timestamp!r} has no key: timers need a keyed stream, so use key_by before process, and a "
            "KeyedProcessFunction or KeyedCoProcessFunction"
        )

"""The timer services that functions get: of the current key on keyed streams, without timers on others."""

from __future__ import annotations

from typing import NoReturn

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.timers import FunctionTimers
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import ConfigurationError
from flinkcore.operators.timers.internal_timer_service import InternalTimerService
from flinkcore.operators.timers.processing_time import ProcessingTimeService


class SimpleTimerService(FunctionTimers, TimerService):
    """Timers of the void namespace of an internal timer service.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.SimpleTimerService``.
    """

    def __new__(cls, internal_timer_service: InternalTimerService) -> SimpleTimerService:
        return super().__new__(cls, internal_timer_service.event_time_timers)

    def __init__(self, internal_timer_service: InternalTimerService) -> None:
        self._internal_timer_service = internal_timer_service

    def current_processing_time(self) -> int:
        return self._internal_timer_service.current_processing_time()

    def current_watermark(self) -> int:
        return self._internal_timer_service.current_watermark()

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._internal_timer_service.register_processing_time_timer(None, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._internal_timer_service.delete_processing_time_timer(None, timestamp)


class UnkeyedTimerService(TimerService):
    """Timer service without keys: returns processing time and watermark, and refuses timers.

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
        return self._processing_time_service.current_processing_time()

    def current_watermark(self) -> int:
        return self.watermark

    def register_processing_time_timer(self, timestamp: int) -> NoReturn:
        """Raise a ConfigurationError: timers belong to keys; so do the three methods below."""
        raise ConfigurationError(
            f"the timer at {timestamp!r} has no key: timers need a keyed stream, so use key_by before process, and a "
            "KeyedProcessFunction or KeyedCoProcessFunction"
        )

    register_event_time_timer = register_processing_time_timer
    delete_processing_time_timer = register_processing_time_timer
    delete_event_time_timer = register_processing_time_timer

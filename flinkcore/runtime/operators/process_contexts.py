"""The contexts that process functions are called with, one object for all calls of an operator."""

from typing import Any

from flinkcore.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
from flinkcore.runtime.key_context import KeyContext


class ElementContext(ProcessFunction.Context, CoProcessFunction.Context):
    """Context of an element of a stream without keys.

    Parameters
    ----------
    timer_service : TimerService

    Attributes
    ----------
    element_timestamp : int or None
        Set by the operator before each call.
    """

    def __init__(self, timer_service: TimerService) -> None:
        self._timer_service = timer_service
        self.element_timestamp: int | None = None

    def timestamp(self) -> int | None:
        """Return the element's timestamp, None if it has none."""
        return self.element_timestamp

    def timer_service(self) -> TimerService:
        """Return the service that tells the time."""
        return self._timer_service


class KeyedElementContext(KeyedProcessFunction.Context, KeyedCoProcessFunction.Context):
    """Context of an element of a keyed stream.

    Parameters
    ----------
    timer_service : TimerService
    key_context : KeyContext

    Attributes
    ----------
    element_timestamp : int or None
        Set by the operator before each call.
    """

    def __init__(self, timer_service: TimerService, key_context: KeyContext) -> None:
        self._key_context = key_context
        self._timer_service = timer_service
        self.element_timestamp: int | None = None

    def get_current_key(self) -> Any:
        """Return the element's key."""
        return self._key_context.current_key

    def timestamp(self) -> int | None:
        """Return the element's timestamp, None if it has none."""
        return self.element_timestamp

    def timer_service(self) -> TimerService:
        """Return the service for timers of the key."""
        return self._timer_service


class KeyedTimerContext(KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext):
    """Context of a timer that fires.

    Parameters
    ----------
    timer_service : TimerService
    key_context : KeyContext

    Attributes
    ----------
    timer_timestamp : int
        Set by the operator before each call.
    timer_domain : TimeDomain
        Likewise.
    """

    def __init__(self, timer_service: TimerService, key_context: KeyContext) -> None:
        self._key_context = key_context
        self._timer_service = timer_service
        self.timer_timestamp = 0
        self.timer_domain = TimeDomain.EVENT_TIME

    def get_current_key(self) -> Any:
        """Return the timer's key."""
        return self._key_context.current_key

    def timestamp(self) -> int:
        """Return the timer's timestamp, of a processing-time timer, too."""
        return self.timer_timestamp

    def timer_service(self) -> TimerService:
        """Return the service for timers of the key."""
        return self._timer_service

    def time_domain(self) -> TimeDomain:
        """Return the timer's domain."""
        return self.timer_domain

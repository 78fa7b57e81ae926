"""The contexts that process functions are called with, one object for all calls of an operator.

A context has its element or timer during the call only: one that was kept refuses to answer outside of a call, as in
Flink. Its timer service may be kept.
"""

from typing import Any

from flinkcore.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import LifecycleError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.timers import InternalTimer


def kept_context(method: str) -> LifecycleError:
    """Return the error to raise where a context is asked outside of a call."""
    return LifecycleError(
        f"{method}() is asked of a context outside of the call that it was passed to: before and after it, a context "
        "has no element, timer or window; keep what it tells during the call instead"
    )


class ContextOfElements:
    """A context of elements.

    Attributes
    ----------
    element : StreamRecord or None
        Set by the operator during each call.
    """

    element: StreamRecord[Any] | None = None

    def timestamp(self) -> int | None:
        """Return the element's timestamp, None if it has none; a LifecycleError outside of a call."""
        if self.element is None:
            raise kept_context("timestamp")
        return self.element.timestamp


class ContextOfTimers:
    """A context of timers.

    Attributes
    ----------
    timer : InternalTimer or None
        Set by the operator during each call.
    timer_domain : TimeDomain
        Likewise.
    """

    timer: InternalTimer | None = None
    timer_domain: TimeDomain  # a default would make it slow to set

    def timestamp(self) -> int:
        """Return the timer's timestamp, of a processing-time timer, too; a LifecycleError outside of a call."""
        if self.timer is None:
            raise kept_context("timestamp")
        return self.timer.timestamp_ms

    def time_domain(self) -> TimeDomain:
        """Return the timer's domain; a LifecycleError outside of a call."""
        if self.timer is None:
            raise kept_context("time_domain")
        return self.timer_domain


class ElementContext(ContextOfElements, ProcessFunction.Context, CoProcessFunction.Context):
    """Context of an element of a stream without keys."""

    def __init__(self, timer_service: TimerService) -> None:
        self._timer_service = timer_service

    def timer_service(self) -> TimerService:
        """Return the service that tells the time."""
        return self._timer_service


class KeyedElementContext(ContextOfElements, KeyedProcessFunction.Context, KeyedCoProcessFunction.Context):
    """Context of an element of a keyed stream."""

    def __init__(self, timer_service: TimerService, key_context: KeyContext) -> None:
        self._key_context = key_context
        self._timer_service = timer_service

    def get_current_key(self) -> Any:
        """Return the element's key; a LifecycleError outside of a call."""
        if self.element is None:
            raise kept_context("get_current_key")
        return self._key_context.current_key

    def timer_service(self) -> TimerService:
        """Return the service for timers of the key."""
        return self._timer_service


class KeyedTimerContext(
    ContextOfTimers, KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext
):
    """Context of a timer that fires."""

    def __init__(self, timer_service: TimerService, key_context: KeyContext) -> None:
        self._key_context = key_context
        self._timer_service = timer_service

    def get_current_key(self) -> Any:
        """Return the timer's key; a LifecycleError outside of a call."""
        if self.timer is None:
            raise kept_context("get_current_key")
        return self._key_context.current_key

    def timer_service(self) -> TimerService:
        """Return the service for timers of the key."""
        return self._timer_service

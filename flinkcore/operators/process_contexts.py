"""The contexts that process functions are called with, one object for all calls of an operator.

A context has its element or timer during the call only: outside of a call it raises a LifecycleError, as in Flink. Its
timer service may be kept.
"""

from typing import Any, TypeVar

from flinkcore._native.element_calls import CallContext, kept_context
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from flinkcore.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import OperatorStateBackend

K = TypeVar("K")
V = TypeVar("V")


class ContextOfTimers(CallContext):
    """A context of timers.

    Attributes
    ----------
    timer_domain : TimeDomain
        Time domain of the timer; set by the operator during each call.
    """

    timer_domain: TimeDomain  # a default would make it slow to set

    def time_domain(self) -> TimeDomain:
        """Return the time domain of the timer."""
        if self.subject is None:
            raise kept_context("time_domain")
        return self.timer_domain


class _KeyedContext:
    subject: Any

    def __init__(self, timer_service: TimerService, key_context: KeyContext) -> None:
        self._key_context = key_context

    def get_current_key(self) -> Any:
        if self.subject is None:
            raise kept_context("get_current_key")
        return self._key_context.current_key


class ElementContext(CallContext, ProcessFunction.Context, CoProcessFunction.Context):
    """Context of an element of a stream without keys."""


class KeyedElementContext(
    _KeyedContext, CallContext, KeyedProcessFunction.Context, KeyedCoProcessFunction.Context
):
    """Context of an element of a keyed stream."""


class KeyedTimerContext(
    _KeyedContext, ContextOfTimers, KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext
):
    """Context of a timer that fires."""


class _BroadcastContext:
    _operator_state_backend: OperatorStateBackend
    _timer_service: TimerService

    def __init__(self, timer_service: TimerService, operator_state_backend: OperatorStateBackend) -> None:
        self._operator_state_backend = operator_state_backend

    def current_processing_time(self) -> int:
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        return self._timer_service.current_watermark()


class _ReadOnlyBroadcastContext(_BroadcastContext):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        return self._operator_state_backend.declared_broadcast_state(state_descriptor).read_only()


class BroadcastElementContext(
    _BroadcastContext,
    CallContext,
    BroadcastProcessFunction.Context,
    KeyedBroadcastProcessFunction.Context,
):
    """Context of an element of the broadcast stream."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        return self._operator_state_backend.declared_broadcast_state(state_descriptor)


class ReadOnlyElementContext(
    _ReadOnlyBroadcastContext, CallContext, BroadcastProcessFunction.ReadOnlyContext
):
    """Context of an element of a stream without keys, beside a broadcast one."""


class _KeyedBroadcastContext(_KeyedContext, _ReadOnlyBroadcastContext):
    def __init__(
        self,
        timer_service: TimerService,
        operator_state_backend: OperatorStateBackend,
        key_context: KeyContext,
    ) -> None:
        _KeyedContext.__init__(self, timer_service, key_context)
        self._operator_state_backend = operator_state_backend


class KeyedReadOnlyElementContext(
    _KeyedBroadcastContext, CallContext, KeyedBroadcastProcessFunction.ReadOnlyContext
):
    """Context of an element of a keyed stream, beside a broadcast one."""


class KeyedBroadcastTimerContext(
    _KeyedBroadcastContext, ContextOfTimers, KeyedBroadcastProcessFunction.OnTimerContext
):
    """Context of a timer that fires, beside a broadcast stream."""

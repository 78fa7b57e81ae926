"""The contexts that broadcast process functions are called with, one object for all calls of an operator."""

from typing import Any, TypeVar

from flinkcore.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flinkcore.datastream.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState
from flinkcore.datastream.timerservice import TimerService
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators.process_contexts import ContextOfElements, ContextOfTimers, kept_context
from flinkcore.runtime.state import OperatorStateBackend

K = TypeVar("K")
V = TypeVar("V")


class _Times(ContextOfElements):
    """The current times of a context."""

    def __init__(self, timer_service: TimerService, operator_state_backend: OperatorStateBackend) -> None:
        self._timer_service = timer_service
        self._operator_state_backend = operator_state_backend

    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""
        return self._timer_service.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark, in ms since the epoch."""
        return self._timer_service.current_watermark()


class BroadcastElementContext(
    _Times, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context
):
    """Context of an element of the broadcast stream."""

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return a broadcast state, to be read and changed."""
        return self._operator_state_backend.declared_broadcast_state(state_descriptor)


class ReadOnlyElementContext(_Times, BroadcastProcessFunction.ReadOnlyContext):
    """Context of an element of a stream without keys.

    Parameters
    ----------
    timer_service, operator_state_backend
        As of :class:`BroadcastElementContext`.
    """

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """Return a broadcast state, to be read."""
        return self._operator_state_backend.declared_broadcast_state(state_descriptor).read_only()


class KeyedReadOnlyElementContext(_Times, KeyedBroadcastProcessFunction.ReadOnlyContext):
    """Context of an element of a keyed stream.

    Parameters
    ----------
    timer_service, operator_state_backend
        As of :class:`BroadcastElementContext`.
    key_context : KeyContext
    """

    def __init__(
        self,
        timer_service: TimerService,
        operator_state_backend: OperatorStateBackend,
        key_context: KeyContext,
    ) -> None:
        super().__init__(timer_service, operator_state_backend)
        self._key_context = key_context

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
        """Return a broadcast state, to be read."""
        return self._operator_state_backend.declared_broadcast_state(state_descriptor).read_only()

    def timer_service(self) -> TimerService:
        """Return the service for timers of the key."""
        return self._timer_service

    def get_current_key(self) -> Any:
        """Return the key of the element; a LifecycleError outside of a call."""
        if self.element is None:
            raise kept_context("get_current_key")
        return self._key_context.current_key


class KeyedBroadcastTimerContext(
    ContextOfTimers, KeyedReadOnlyElementContext, KeyedBroadcastProcessFunction.OnTimerContext
):
    """Context of a timer that fires.

    Parameters
    ----------
    timer_service, operator_state_backend, key_context
        As of :class:`KeyedReadOnlyElementContext`.
    """

    def get_current_key(self) -> Any:
        """Return the key of the timer; a LifecycleError outside of a call."""
        if self.timer is None:
            raise kept_context("get_current_key")
        return self._key_context.current_key

"""How operators on keyed streams call their function: for an element of a key, and for a timer."""

from collections.abc import Callable, Hashable
from typing import Any

from flinkcore.datastream.functions import Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.errors import UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators.function_results import FunctionResults, shown
from flinkcore.runtime.operators.process_contexts import KeyedElementContext, KeyedTimerContext
from flinkcore.runtime.output import Output
from flinkcore.runtime.timers import InternalTimer, InternalTimeServiceManager, SimpleTimerService

KeySelector = Callable[[Any], Hashable]
"""Returns the key of an element."""

TIMER_SERVICE_NAME = "user-timers"


class KeyedCalls:
    """Calls a function with the key set, and emits what it gives; the :class:`Triggerable` of its timers.

    Parameters
    ----------
    function : KeyedProcessFunction or KeyedCoProcessFunction
    output : Output
    key_context : KeyContext
    time_service_manager : InternalTimeServiceManager
        The function's timers are its service "user-timers", as in Flink.

    Notes
    -----
    What ``KeyedProcessOperator`` and ``KeyedCoProcessOperator`` of Flink have in common.
    """

    def __init__(
        self,
        function: Any,
        output: Output,
        key_context: KeyContext,
        time_service_manager: InternalTimeServiceManager,
    ) -> None:
        self._function = function
        self._key_context = key_context
        self._results = FunctionResults(function, output, key_context)
        timer_service = SimpleTimerService(
            time_service_manager.get_internal_timer_service(TIMER_SERVICE_NAME, self)
        )
        self._element_context = KeyedElementContext(key_context, timer_service)
        self._timer_context = KeyedTimerContext(key_context, timer_service)

    def element_call(
        self, method: Callable[[Any, Any], Results], key_selector: KeySelector
    ) -> Callable[[StreamRecord[Any]], None]:
        """Return what processes the records of an input.

        Parameters
        ----------
        method : callable
            The function's method for the input.
        key_selector : callable
            From an element of the input to its key.

        Returns
        -------
        callable
            Raises a UserCodeError if method or key selector raise, a DataError for a key that cannot be one.
        """
        context = self._element_context
        set_current_key = self._key_context.set_current_key
        results = self._results

        def process(record: StreamRecord[Any]) -> None:
            value, timestamp = record.value, record.timestamp
            try:
                key = key_selector(value)
            except Exception as failure:
                raise UserCodeError(
                    f"the key selector failed at the element {shown(value)} with the timestamp {timestamp}: "
                    f"{type(failure).__name__}: {failure}"
                ) from failure
            set_current_key(key)
            context.element_timestamp = timestamp
            try:
                given = method(value, context)
            except Exception as failure:
                raise results.failed(method.__name__, record, failure) from failure
            if given is not None:
                results.emit(given, timestamp, timestamp, method.__name__, record)

        return process

    def on_event_time(self, timer: InternalTimer) -> None:
        """Call `on_timer`; its results carry the timer's timestamp."""
        self._fire(timer, TimeDomain.EVENT_TIME, timer.timestamp_ms)

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Call `on_timer`; its results carry no timestamp, in side outputs the timer's."""
        self._fire(timer, TimeDomain.PROCESSING_TIME, None)

    def _fire(self, timer: InternalTimer, domain: TimeDomain, result_timestamp: int | None) -> None:
        context = self._timer_context
        context.timer_timestamp = timer.timestamp_ms
        context.timer_domain = domain
        try:
            given = self._function.on_timer(timer.timestamp_ms, context)
        except Exception as failure:
            raise self._results.failed("on_timer", timer, failure) from failure
        if given is not None:
            self._results.emit(given, result_timestamp, timer.timestamp_ms, "on_timer", timer)

"""Calls of process functions by operators: for an element, with a key or without one, and for a timer."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from flinkcore._native.element_calls import CallContext, KeyedCall
from flinkcore.datastream.functions import Results
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import TimerService
from flinkcore.errors import UserCodeError, in_words
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.process_contexts import ContextOfTimers
from flinkcore.operators.records.output import Output, OutputFullError
from flinkcore.operators.records.shown_values import shown, shown_time
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.stream_operator import ElementCall
from flinkcore.operators.timers import InternalTimer, InternalTimeServiceManager, SimpleTimerService

KeySelector = Callable[[Any], Hashable]
"""Returns the key of an element."""

KeyedElementCall = Callable[[Hashable, StreamRecord[Any]], None]
"""Processes a record of a key."""

TIMER_SERVICE_NAME = "user-timers"


def call_for_element(
    method: Callable[[Any, Any], Results],
    context: CallContext,
    results: FunctionResults,
    record: StreamRecord[Any],
    given: Results = None,
) -> None:
    """Call a function's method for a record, and emit its results with the record's timestamp.

    Parameters
    ----------
    method : callable
    context : CallContext
        Passed to the method, with the record as its `subject`.
    results : FunctionResults
    record : StreamRecord
    given : iterable, optional
        The remaining results of a call whose output was full: nothing is called.

    Raises
    ------
    UserCodeError
        If the method raises, or its result is not iterable.
    OutputFullError
        If the output is full.
    """
    context.subject = record
    try:
        if given is None:
            try:
                given = method(record.value, context)
            except Exception as failure:
                raise results.failed(method.__name__, record, failure) from failure
        if given is not None:
            results.emit(given, record.timestamp, record.timestamp, method.__name__, record)
    except OutputFullError as full:
        full.then(partial(call_for_element, method, context, results, record, results.waiting))
        raise
    finally:
        context.subject = None


class KeyedCalls:
    """Calls a function with the current key set, and emits its results; the :class:`Triggerable` of its timers.

    Parameters
    ----------
    function : KeyedProcessFunction, KeyedCoProcessFunction or KeyedBroadcastProcessFunction
    output : Output
    keyed_state_backend : KeyedStateBackend
    time_service_manager : InternalTimeServiceManager
        Its service "user-timers", as in Flink, has the function's timers.
    make_timer_context : callable
        From the function's timer service to the context that `on_timer` is called with.

    Notes
    -----
    Common part of Flink's ``KeyedProcessOperator``, ``KeyedCoProcessOperator`` and
    ``CoBroadcastWithKeyedOperator``.
    """

    def __init__(
        self,
        function: Any,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        time_service_manager: InternalTimeServiceManager,
        make_timer_context: Callable[[TimerService], ContextOfTimers],
    ) -> None:
        self._function = function
        self._keyed_state_backend = keyed_state_backend
        self._results = FunctionResults(function, output, keyed_state_backend.key_context)
        self._timer_service = SimpleTimerService(
            time_service_manager.get_internal_timer_service(TIMER_SERVICE_NAME, self)
        )
        self._timer_context = make_timer_context(self._timer_service)

    @property
    def timer_service(self) -> TimerService:
        """The function's timers."""
        return self._timer_service

    def keyed_element_call(
        self, method: Callable[[Any, Any], Results], context: CallContext
    ) -> KeyedElementCall:
        """Return the call that processes the records of an input whose keys are known.

        Parameters
        ----------
        method : callable
            The function's method for the input.
        context : CallContext
            Passed to the method, with the record as its `subject`.

        Returns
        -------
        callable
            Raises a UserCodeError if the method raises, a DataError for an unsupported key.
        """
        return self._native_call(method, None, context).process_of_key

    def element_call(
        self, method: Callable[[Any, Any], Results], key_selector: KeySelector, context: CallContext
    ) -> ElementCall:
        """Return the call that processes the records of an input.

        Parameters
        ----------
        method, context
            As of :meth:`keyed_element_call`.
        key_selector : callable
            From an element of the input to its key.

        Returns
        -------
        callable
            Raises a UserCodeError if the method or the key selector raises, a DataError for an unsupported key.
        """
        return self._native_call(method, key_selector, context).process

    def _native_call(
        self, method: Callable[[Any, Any], Results], key_selector: KeySelector | None, context: CallContext
    ) -> KeyedCall:
        results, name = self._results, method.__name__

        def emit(given: Iterable[Any], record: StreamRecord[Any]) -> None:
            try:
                results.emit(given, record.timestamp, record.timestamp, name, record)
            except OutputFullError as full:
                full.then(partial(call_for_element, method, context, results, record, results.waiting))
                raise

        def failed(record: StreamRecord[Any], failure: Exception) -> UserCodeError:
            return results.failed(name, record, failure)

        backend = self._keyed_state_backend
        return KeyedCall(
            backend.key_context,
            backend.cleanups_per_record,
            key_selector,
            key_selector_failed,
            method,
            context,
            emit,
            failed,
        )

    def on_event_time(self, timer: InternalTimer) -> None:
        """Call `on_timer`; its results carry the timer's timestamp."""
        self._fire(timer, TimeDomain.EVENT_TIME, timer.timestamp_ms)

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Call `on_timer`; its results carry no timestamp, those for side outputs the timer's."""
        self._fire(timer, TimeDomain.PROCESSING_TIME, None)

    def _fire(
        self,
        timer: InternalTimer,
        domain: TimeDomain,
        result_timestamp: int | None,
        given: Results = None,
    ) -> None:
        context = self._timer_context
        context.subject = timer
        context.timer_domain = domain
        try:
            if given is None:
                try:
                    given = self._function.on_timer(timer.timestamp_ms, context)
                except Exception as failure:
                    raise self._results.failed("on_timer", timer, failure) from failure
            if given is not None:
                self._results.emit(given, result_timestamp, timer.timestamp_ms, "on_timer", timer)
        except OutputFullError as full:
            full.then(partial(self._fire, timer, domain, result_timestamp, self._results.waiting))
            raise
        finally:
            context.subject = None


def selected_key(key_selector: KeySelector, record: StreamRecord[Any]) -> Hashable:
    """Return the key of a record.

    Raises
    ------
    UserCodeError
        If the key selector raises.
    """
    try:
        return key_selector(record.value)
    except Exception as failure:
        raise key_selector_failed(record, failure) from failure


def key_selector_failed(record: StreamRecord[Any], failure: Exception) -> UserCodeError:
    """Return the error to raise after an exception of a key selector."""
    return UserCodeError(
        f"the key selector failed at the element {shown(record.value)} {shown_time(record)}: "
        f"{in_words(failure)}"
    )

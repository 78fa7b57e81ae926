"""The operator that runs a KeyedProcessFunction."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.errors import LifecycleError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeyedElementCall, KeySelector
from flinkcore.runtime.operators.keyed_function_operator import KeyedFunctionOperator, refuse_before_open
from flinkcore.runtime.operators.process_contexts import KeyedElementContext, KeyedTimerContext
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend


class KeyedProcessOperator(KeyedFunctionOperator[KeyedProcessFunction], OneInputStreamOperator):
    """Calls a function for every element of a keyed stream, and for the timers that it registers.

    A watermark fires the timers that it reaches, and is then passed on.

    Parameters
    ----------
    function : KeyedProcessFunction
    key_selector : callable or None
        From an element to its key. None: elements come with their keys, to `process_element_of_key` only.
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.KeyedProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedProcessFunction,
        key_selector: KeySelector | None,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(function, output, keyed_state_backend, processing_time_service, latency_stats)
        self._key_selector = key_selector
        self._process: Callable[[StreamRecord[Any]], None] = refuse_before_open
        self._process_of_key: KeyedElementCall | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers and open the function; before anything is processed."""
        key_context = self._keyed_state_backend.key_context
        calls = self._keyed_calls(partial(KeyedTimerContext, key_context=key_context))
        context = KeyedElementContext(calls.timer_service, key_context)
        process_element = self._function.process_element
        self._process_of_key = calls.keyed_element_call(process_element, context)
        if self._key_selector is not None:
            self._process = calls.element_call(process_element, self._key_selector, context)
        self._function.open(runtime_context)

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Call the function with the element's key as the current key.

        Raises
        ------
        UserCodeError
            If the function or the key selector raises, or the function gives what is no iterable.
        DataError
            If the key has no key group, or one that is not this operator's.
        """
        self._process(record)

    @property
    def element_call(self) -> Callable[[StreamRecord[Any]], None]:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._process

    @property
    def process_element_of_key(self) -> KeyedElementCall:
        """What processes a record whose key is known, as `process_element` does.

        Raises
        ------
        LifecycleError
            If the operator is not open.
        """
        if self._process_of_key is None:
            raise LifecycleError("the operator of a keyed function is to be opened before elements come")
        return self._process_of_key

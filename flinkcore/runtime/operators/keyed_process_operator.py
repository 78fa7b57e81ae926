"""The operator that runs a KeyedProcessFunction."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.errors import LifecycleError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeyedCalls, KeyedElementCall, KeySelector
from flinkcore.runtime.operators.process_contexts import KeyedElementContext, KeyedTimerContext
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.timers import InternalTimeServiceManager


class KeyedProcessOperator(OneInputStreamOperator):
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
        super().__init__(output, latency_stats)
        self._function = function
        self._key_selector = key_selector
        self._keyed_state_backend = keyed_state_backend
        self._time_service_manager = InternalTimeServiceManager(
            keyed_state_backend.key_context, processing_time_service, keyed_state_backend.set_current_key_id
        )
        self._process: Callable[[StreamRecord[Any]], None] = refuse_before_open
        self._process_of_key: KeyedElementCall | None = None

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        """The operator's timers, for snapshots, and for restoring them before `open`."""
        return self._time_service_manager

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers and open the function; before anything is processed."""
        backend = self._keyed_state_backend
        calls = KeyedCalls(
            self._function,
            self._output,
            backend,
            self._time_service_manager,
            partial(KeyedTimerContext, key_context=backend.key_context),
        )
        context = KeyedElementContext(calls.timer_service, backend.key_context)
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

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers, and pass the watermark on."""
        self._keyed_state_backend.advance_watermark(watermark.timestamp)
        self._time_service_manager.advance_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()


def refuse_before_open(record: StreamRecord[Any]) -> None:
    """Raise a LifecycleError."""
    raise LifecycleError(f"the element {record.value!r} comes before the operator was opened")

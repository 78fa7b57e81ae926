"""The operator that runs a KeyedProcessFunction."""

from collections.abc import Callable
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.errors import LifecycleError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeyedCalls, KeySelector
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.timers import InternalTimeServiceManager


class KeyedProcessOperator(OneInputStreamOperator):
    """Calls a function for every element of a keyed stream, and for the timers that it registers.

    A watermark fires the timers that it reaches, and is then passed on.

    Parameters
    ----------
    function : KeyedProcessFunction
    key_selector : callable
        From an element to its key.
    output : Output
    key_context : KeyContext
        The operator's own, which its keyed state shares.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.KeyedProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedProcessFunction,
        key_selector: KeySelector,
        output: Output,
        key_context: KeyContext,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(output, latency_stats)
        self._function = function
        self._key_selector = key_selector
        self._key_context = key_context
        self._time_service_manager = InternalTimeServiceManager(key_context, processing_time_service)
        self._process: Callable[[StreamRecord[Any]], None] = refuse_before_open

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        """The operator's timers, for snapshots, and for restoring them before `open`."""
        return self._time_service_manager

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers and open the function; before anything is processed."""
        calls = KeyedCalls(self._function, self._output, self._key_context, self._time_service_manager)
        self._process = calls.element_call(self._function.process_element, self._key_selector)
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

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers, and pass the watermark on."""
        self._time_service_manager.advance_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()


def refuse_before_open(record: StreamRecord[Any]) -> None:
    """Raise a LifecycleError."""
    raise LifecycleError(f"the element {record.value!r} comes before the operator was opened")

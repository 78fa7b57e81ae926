"""The operator that runs a KeyedCoProcessFunction."""

from collections.abc import Callable
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.keyed_calls import KeyedCalls, KeySelector
from flinkcore.runtime.operators.keyed_process_operator import refuse_before_open
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.timers import InternalTimeServiceManager


class KeyedCoProcessOperator(TwoInputStreamOperator):
    """Calls a function for every element of two keyed streams, and for the timers that it registers.

    Timers follow the combined watermark of both inputs, which is passed on after them.

    Parameters
    ----------
    function : KeyedCoProcessFunction
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    output : Output
    key_context : KeyContext
        The operator's own, which its keyed state shares.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.KeyedCoProcessOperator``.
    """

    def __init__(
        self,
        function: KeyedCoProcessFunction,
        key_selector1: KeySelector,
        key_selector2: KeySelector,
        output: Output,
        key_context: KeyContext,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        super().__init__(output, latency_stats)
        self._function = function
        self._key_selectors = (key_selector1, key_selector2)
        self._key_context = key_context
        self._time_service_manager = InternalTimeServiceManager(key_context, processing_time_service)
        self._process1: Callable[[StreamRecord[Any]], None] = refuse_before_open
        self._process2: Callable[[StreamRecord[Any]], None] = refuse_before_open

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        """The operator's timers, for snapshots, and for restoring them before `open`."""
        return self._time_service_manager

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers and open the function; before anything is processed."""
        calls = KeyedCalls(self._function, self._output, self._key_context, self._time_service_manager)
        key_selector1, key_selector2 = self._key_selectors
        self._process1 = calls.element_call(self._function.process_element1, key_selector1)
        self._process2 = calls.element_call(self._function.process_element2, key_selector2)
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Call the function for the first input; errors as of `KeyedProcessOperator.process_element`."""
        self._process1(record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        """Call the function for the second input; errors as of `KeyedProcessOperator.process_element`."""
        self._process2(record)

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers up to the combined watermark, and pass it on."""
        self._time_service_manager.advance_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def close(self) -> None:
        """Close the function."""
        self._function.close()

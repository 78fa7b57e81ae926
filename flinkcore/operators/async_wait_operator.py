"""The operator of an AsyncFunction, and what its queues do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import AsyncFunction, AsyncRetryStrategy, RuntimeContext
from flinkcore.operators.async_calls import AsyncCall, AsyncCalls
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator

MOST_WAITING: Final = 8192
"""So much that is not a call waits for calls at most."""

Emit = Callable[[], None]
"""Emits what has waited."""


class AsyncElementQueue(ABC):
    """Queue of an operator: elements wait for the results of their calls, all others for their turn."""

    @abstractmethod
    def make_room(self) -> None:
        """Wait, and emit what is ready, until there is room for the call of another element."""

    @abstractmethod
    def add_call(self, call: AsyncCall, emit: Emit) -> None:
        """Add a call; its results are emitted, or its error is raised, by `emit` in the thread of the job."""

    @abstractmethod
    def add_other(self, emit: Emit) -> None:
        """Add what waits for the calls before it alone; wait first if :data:`MOST_WAITING` of these are there."""

    @abstractmethod
    def done(self, call: AsyncCall) -> None:
        """Note that a call is done; comes in another thread."""

    @abstractmethod
    def finish(self) -> None:
        """See to it that all that waits is emitted before anything that comes after the end of the input."""


class AsyncWaitOperator(OneInputStreamOperator):
    """Emits the results of an AsyncFunction, whose calls for several elements run at the same time.

    Parameters
    ----------
    function : AsyncFunction
    strategy : AsyncRetryStrategy
    timeout_ms : int
        After so long a call is timed out; 0 or less: never.
    output : Output
    make_queue : callable
        Makes the queue as the operator opens.

    Notes
    -----
    Flink's ``AsyncWaitOperator``. Deliberate difference: statuses and latency markers wait as watermarks do, where
    Flink lets them overtake.
    """

    def __init__(
        self,
        function: AsyncFunction[Any, Any],
        strategy: AsyncRetryStrategy[Any],
        timeout_ms: int,
        output: Output,
        make_queue: Callable[[], AsyncElementQueue],
    ) -> None:
        super().__init__(output)
        self._function = function
        self._strategy = strategy
        self._timeout_ms = timeout_ms
        self._make_queue = make_queue
        self._results = FunctionResults(function, output)
        self._calls: AsyncCalls | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._queue = self._make_queue()
        self._function.open(runtime_context)
        self._calls = AsyncCalls(self._function, self._strategy, self._timeout_ms, self._queue.done)
        self._calls.start()

    def process_element(self, record: StreamRecord[Any]) -> None:
        assert self._calls is not None
        self._queue.make_room()
        call = self._calls.call(StreamRecord(record.value, record.timestamp))
        self._queue.add_call(call, partial(self._emit, call))

    def _emit(self, call: AsyncCall) -> None:
        if call.failure is not None:
            raise self._results.failed(call.failed_method, call.record, call.failure) from call.failure
        assert call.results is not None
        timestamp, collect = call.record.timestamp, self._output.collect
        for result in call.results:
            collect(StreamRecord(result, timestamp))

    def process_watermark(self, watermark: Watermark) -> None:
        self._queue.add_other(partial(super().process_watermark, watermark))

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self._queue.add_other(partial(super().process_watermark_status, status))

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self._queue.add_other(partial(super().process_latency_marker, latency_marker))

    def finish(self) -> None:
        self._queue.finish()

    def close(self) -> None:
        if self._calls is not None:
            self._calls.stop()
        self._function.close()

"""The operator that joins elements of two keyed streams whose timestamps are close."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.element_calls import kept_context
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import ProcessJoinFunction, Results, RuntimeContext
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.errors import DataError
from flinkcore.operators.function_calls import KeySelector, selected_key
from flinkcore.operators.function_results import FunctionResults
from flinkcore.operators.late_records import LateRecords
from flinkcore.operators.process_operators import KeyedFunctionOperator
from flinkcore.operators.records.output import Output, OutputFullError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.state.heap_states import HeapMapState
from flinkcore.operators.stream_operator import TwoInputStreamOperator, refuse_before_open
from flinkcore.operators.timers import InternalTimer
from flinkcore.operators.timers.processing_time import ProcessingTimeService

LEFT_BUFFER = "LEFT_BUFFER"
RIGHT_BUFFER = "RIGHT_BUFFER"
CLEANUP_TIMER_NAME = "CLEANUP_TIMER"
CLEANUP_NAMESPACE_LEFT = "CLEANUP_LEFT"
CLEANUP_NAMESPACE_RIGHT = "CLEANUP_RIGHT"


class JoinContext(ProcessJoinFunction.Context):
    """Context of a pair; all methods raise a LifecycleError outside of a call.

    Attributes
    ----------
    timestamps : (int, int) or None
        Timestamps of the left and the right element, in ms since the epoch; set by the operator during each call.
    """

    timestamps: tuple[int, int] | None = None

    def get_left_timestamp(self) -> int:
        if self.timestamps is None:
            raise kept_context("get_left_timestamp")
        return self.timestamps[0]

    def get_right_timestamp(self) -> int:
        if self.timestamps is None:
            raise kept_context("get_right_timestamp")
        return self.timestamps[1]

    def get_timestamp(self) -> int:
        if self.timestamps is None:
            raise kept_context("get_timestamp")
        return max(self.timestamps)


@dataclass(frozen=True)
class _Side:
    """One input, as seen from an element of it.

    Attributes
    ----------
    own, other : HeapMapState
        Buffered elements by timestamp, of this input and of the other one.
    least_ms, greatest_ms : int
        Bounds of the other element's timestamp minus this one's.
    namespace : str
        Namespace of the timers that drop the buffered elements.
    late_tag : OutputTag or None
    """

    is_left: bool
    own: HeapMapState[int, list[Any]]
    other: HeapMapState[int, list[Any]]
    least_ms: int
    greatest_ms: int
    namespace: str
    late_tag: OutputTag | None

    @cached_property
    def kept_ms(self) -> int:
        """Return how long after its timestamp an element may still join with another one."""
        return max(self.greatest_ms, 0)


class IntervalJoinOperator(KeyedFunctionOperator[ProcessJoinFunction[Any, Any]], TwoInputStreamOperator):
    """Calls a function for every pair of a left and a right element of a key whose timestamps are close.

    Elements of either input are buffered until the watermark excludes that an element of the other input joins with
    them. Results for a pair carry the greater of both timestamps.

    Parameters
    ----------
    operation : IntervalJoinOperation
    key_selector1, key_selector2 : callable
        From an element of either input to its key.
    output, keyed_state_backend, processing_time_service
        As of :class:`KeyedFunctionOperator`.

    Attributes
    ----------
    num_late_records : int
        Elements behind the watermark, which are not joined.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.co.IntervalJoinOperator``. An element joins with others in
    order of their timestamps, where Flink's order is that of a hash table. Deliberate difference: nothing wraps around
    at 64 bits; an element that would be dropped after the last timestamp stays.
    """

    def __init__(
        self,
        operation: IntervalJoinOperation,
        key_selector1: KeySelector,
        key_selector2: KeySelector,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
    ) -> None:
        super().__init__(operation.function, output, keyed_state_backend, processing_time_service)
        self._operation = operation
        self._key_selectors = (key_selector1, key_selector2)
        self._sides: tuple[_Side, _Side] | None = None
        self.num_late_records = 0
        self._num_dropped = 0
        self._missed_ms = 0

    @property
    def late_records(self) -> LateRecords:
        records = self._keyed_state_backend.key_context.lookups
        return LateRecords(self._num_dropped, records, self._missed_ms)

    def open(self, runtime_context: RuntimeContext) -> None:
        backend, operation = self._keyed_state_backend, self._operation
        self._timers = self._time_service_manager.get_internal_timer_service(CLEANUP_TIMER_NAME, self)
        left, right = (
            backend.get_or_create_keyed_state(MapStateDescriptor(name))
            for name in (LEFT_BUFFER, RIGHT_BUFFER)
        )
        least, greatest = operation.least_difference_ms, operation.greatest_difference_ms
        self._sides = (
            _Side(True, left, right, least, greatest, CLEANUP_NAMESPACE_LEFT, operation.left_late_tag),
            _Side(False, right, left, -greatest, -least, CLEANUP_NAMESPACE_RIGHT, operation.right_late_tag),
        )
        self._context = JoinContext()
        self._results = FunctionResults(self._function, self._output, backend.key_context)
        self._function.open(runtime_context)

    def process_element1(self, record: StreamRecord[Any]) -> None:
        """Join a left element with the buffered right ones, and buffer it; one without a timestamp is a DataError."""
        self._process(0, record)

    def process_element2(self, record: StreamRecord[Any]) -> None:
        self._process(1, record)

    def _process(self, number: int, record: StreamRecord[Any]) -> None:
        if self._sides is None:
            refuse_before_open(record)
        assert self._sides is not None
        side = self._sides[number]
        self._keyed_state_backend.set_current_key(selected_key(self._key_selectors[number], record))
        timestamp = record.timestamp
        if timestamp is None or timestamp == MIN_TIMESTAMP:
            raise DataError(
                f"{self._results.described(record)}, of the {'left' if side.is_left else 'right'} input, cannot be "
                "joined by time. Give elements timestamps, with assign_timestamps_and_watermarks"
            )
        watermark_ms = self._timers.current_watermark()
        if timestamp < watermark_ms:
            self.num_late_records += 1
            if side.late_tag is not None:
                self._output.collect_side(side.late_tag, record)
            else:
                self._num_dropped += 1
                self._missed_ms = max(self._missed_ms, watermark_ms - timestamp)
            return
        value = record.value
        waiting: dict[int, list[Any]] | None = side.own.get_internal()
        if waiting is None:
            side.own.update_internal({timestamp: [value]})
        else:  # lists in the state are not changed: a snapshot may hold them
            waiting[timestamp] = [*waiting.get(timestamp, ()), value]
        others: dict[int, list[Any]] | None = side.other.get_internal()
        if others is not None:
            try:
                self._join(side, others, value, timestamp)
            except OutputFullError as full:
                full.then(partial(self._register_cleanup, side, timestamp))
                raise
        self._register_cleanup(side, timestamp)

    def _register_cleanup(self, side: _Side, timestamp: int) -> None:
        cleanup_time = timestamp + side.kept_ms
        if cleanup_time <= MAX_TIMESTAMP:
            self._timers.register_event_time_timer(side.namespace, cleanup_time)

    def _join(self, side: _Side, others: dict[int, list[Any]], value: Any, timestamp: int) -> None:
        least, greatest = timestamp + side.least_ms, timestamp + side.greatest_ms
        if greatest - least < len(others):  # many elements are buffered, and the interval is short
            joined = [other for other in range(least, greatest + 1) if other in others]
        else:
            joined = sorted([other for other in others if least <= other <= greatest])
        times = iter(joined)
        try:
            for other_timestamp in times:
                elements = iter(others[other_timestamp])
                for other in elements:
                    if side.is_left:
                        self._collect(value, other, timestamp, other_timestamp)
                    else:
                        self._collect(other, value, other_timestamp, timestamp)
        except OutputFullError as full:
            left = {other_timestamp: list(elements), **{time: others[time] for time in times}}
            full.then(partial(self._join, side, left, value, timestamp))
            raise

    def _collect(
        self, left: Any, right: Any, left_timestamp: int, right_timestamp: int, given: Results = None
    ) -> None:
        self._context.timestamps = left_timestamp, right_timestamp
        timestamp = max(left_timestamp, right_timestamp)
        pair = StreamRecord((left, right), timestamp)
        try:
            if given is None:
                try:
                    given = self._function.process_element(left, right, self._context)
                except Exception as failure:
                    raise self._results.failed("process_element", pair, failure) from failure
            if given is not None:
                self._results.emit(given, timestamp, timestamp, "process_element", pair)
        except OutputFullError as full:
            waiting = self._results.waiting
            full.then(partial(self._collect, left, right, left_timestamp, right_timestamp, waiting))
            raise
        finally:
            self._context.timestamps = None

    def on_event_time(self, timer: InternalTimer) -> None:
        """Drop the buffered elements that can no longer be joined."""
        assert self._sides is not None
        side = self._sides[0 if timer.namespace == CLEANUP_NAMESPACE_LEFT else 1]
        side.own.remove(timer.timestamp_ms - side.kept_ms)

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Do nothing: a join registers no such timers."""

"""The operators that group the elements of a key by windows."""

from collections.abc import Callable, Collection, Hashable, Iterator
from functools import partial
from typing import Any, Final

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import AggregateFunction, Results, RuntimeContext
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from flinkcore.datastream.window import (
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimestampedValue,
    TimeWindow,
    TriggerResult,
    Window,
    WindowOperation,
)
from flinkcore.errors import ConfigurationError, DataError, FlinkcoreError, UserCodeError
from flinkcore.operators.function_calls import KeyedElementCall, KeySelector, selected_key
from flinkcore.operators.function_results import FunctionResults, Subject
from flinkcore.operators.late_records import LateRecords
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.process_operators import KeyedFunctionOperator
from flinkcore.operators.records.output import Output, OutputFullError
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.stream_operator import (
    ElementCall,
    OneInputStreamOperator,
    refuse_before_open,
)
from flinkcore.operators.timers import InternalTimer
from flinkcore.operators.timers.processing_time import ProcessingTimeService
from flinkcore.operators.windowing.merging_windows import MergingWindows
from flinkcore.operators.windowing.open_panes import has_open_panes, open_panes
from flinkcore.operators.windowing.window_calls import (
    TriggerCalls,
    WindowFunctions,
    aggregated,
    clear_call,
    reduced,
    window_call,
)
from flinkcore.operators.windowing.window_cleanup import WindowCleanup
from flinkcore.operators.windowing.window_contexts import (
    OperatorAssignerContext,
    OperatorTriggerContext,
    OperatorWindowContext,
)

TIMER_SERVICE_NAME = "window-timers"
CONTENTS = "window-contents"
_BUILT_IN_WINDOWS: Final = frozenset((TimeWindow, CountWindow, GlobalWindow))


class WindowOperator(KeyedFunctionOperator[WindowFunctions], OneInputStreamOperator):
    """Adds each element to its windows, and emits the results of a function for a window that fires.

    Parameters
    ----------
    operation : WindowOperation
        Without an evictor.
    key_selector : callable or None
        Function from an element to its key, or None if elements come with their keys, to `process_element_of_key` only.
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context; windows are its namespaces.
    processing_time_service : ProcessingTimeService
    as_in_pyflink : bool
        Whether an element on which a window fires without a result leaves the window as it is, as in PyFlink: its
        contents are not purged, and the timer that drops it is not set. By default both are done, as in Java.

    Attributes
    ----------
    num_late_records : int
        Elements that were late for all their windows.
    num_records_in_no_window : int
        Elements in no window that were not late, such as between windows whose slide is longer than their size.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.WindowOperator``. Deliberate difference: a window
    beyond 64 bits is a DataError, where Flink wraps around; lateness ends at the maximum timestamp.
    """

    def __init__(
        self,
        operation: WindowOperation,
        key_selector: KeySelector | None,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
        as_in_pyflink: bool = False,
    ) -> None:
        functions = WindowFunctions(operation)
        super().__init__(functions, output, keyed_state_backend, processing_time_service)
        self._operation = operation
        self._as_in_pyflink = as_in_pyflink
        self._key_selector = key_selector
        self._assigner = operation.assigner
        self._is_event_time = operation.assigner.is_event_time()
        self._merging: MergingWindows | None = None
        self._process: ElementCall = refuse_before_open
        self._process_known_key: KeyedElementCall = _refuse_before_open
        self._pass_watermark: Callable[[int], None] = _pass_nothing
        self._forget_panes: Callable[[], None] = _forget_nothing
        self.num_late_records = 0
        self.num_records_in_no_window = 0
        self._missed_ms = 0

    @property
    def operation(self) -> WindowOperation:
        """The windows, their trigger and functions."""
        return self._operation

    @property
    def num_late_records_dropped(self) -> int:
        """Elements that were late for all their windows and had no side output (Flink's metric of this name)."""
        return self.num_late_records if self._operation.late_tag is None else 0

    @property
    def late_records(self) -> LateRecords:
        records = self._keyed_state_backend.key_context.lookups
        return LateRecords(self.num_late_records_dropped, records, self._missed_ms)

    def register_metrics(self, group: TaskMetricGroup) -> None:
        group.total("numLateRecordsDropped", lambda: self.num_late_records_dropped)

    def open(self, runtime_context: RuntimeContext) -> None:
        backend, operation = self._keyed_state_backend, self._operation
        timers = self._time_service_manager.get_internal_timer_service(TIMER_SERVICE_NAME, self)
        self._cleanup = WindowCleanup(operation, timers)
        self._state = backend.get_or_create_keyed_state(self._contents_descriptor())
        self._assigner_context = OperatorAssignerContext(timers, runtime_context, backend)
        self._trigger_context = OperatorTriggerContext(timers, backend, runtime_context)
        windows_merge = isinstance(operation.assigner, MergingWindowAssigner)
        self._window_context = OperatorWindowContext(timers, backend, windows_merge)
        aggregation = operation.pre_aggregation
        self._get_result = aggregation.get_result if isinstance(aggregation, AggregateFunction) else None
        function = operation.window_function or aggregation
        assert function is not None
        self._results = FunctionResults(called_function(function), self._output, backend.key_context)
        self._trigger_calls = TriggerCalls(operation.trigger, self._trigger_context, self._results)
        if isinstance(operation.assigner, MergingWindowAssigner):
            self._merging = MergingWindows(
                operation.assigner,
                backend,
                self._state,
                self._trigger_calls,
                self._cleanup,
                self._results,
                self._aggregation_failed,
            )
        self._call, self._method = None, "process"
        if operation.window_function is not None:
            self._call, self._method = window_call(
                operation.window_function, self._window_context, backend.key_context
            )
        self._clear_function = clear_call(operation.window_function, self._window_context)
        self._process, self._process_known_key = self._process_by_key, self._process_of_key
        self._fire = self._on_event_time
        if has_open_panes(operation):
            panes = open_panes(
                operation,
                self._key_selector,
                backend,
                self._state,
                timers,
                self._process_of_key,
                self._aggregation_failed,
            )
            self._process, self._process_known_key = panes.call.process, panes.call.process_of_key
            self._pass_watermark = panes.pass_watermark
            self._forget_panes = panes.forget
            if not operation.allowed_lateness_ms:
                self._fire = self._fire_at_end
        self._function.open(runtime_context)

    def _contents_descriptor(self) -> StateDescriptor:
        aggregation = self._operation.pre_aggregation
        if aggregation is None:
            return ListStateDescriptor(CONTENTS)
        if isinstance(aggregation, AggregateFunction):
            return AggregatingStateDescriptor(CONTENTS, aggregation)
        return ReducingStateDescriptor(CONTENTS, aggregation)

    # ---- elements ----

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Add an element to its windows, with its key as the current key.

        Raises
        ------
        UserCodeError
            If a function, the trigger, the assigner or the key selector raises, or gives an unsupported result.
        DataError
            If the key has no key group, or one of another subtask; or the element lacks the timestamp that its windows
            need, or would be in a window beyond 64 bits.
        """
        if self._key_selector is None:
            raise ConfigurationError(
                "this operator has no key selector: its elements come to process_element_of_key"
            )
        self._process(record)

    @property
    def element_call(self) -> ElementCall:
        return self.process_element if self._key_selector is None else self._process

    @property
    def process_element_of_key(self) -> KeyedElementCall:
        """Return what processes a record whose key is known, as `process_element` does."""
        return self._process_known_key

    def _process_by_key(self, record: StreamRecord[Any]) -> None:
        assert self._key_selector is not None
        self._process_of_key(selected_key(self._key_selector, record), record)

    def _process_of_key(
        self, key: Hashable, record: StreamRecord[Any], left: Iterator[Window] | None = None
    ) -> None:
        timestamp = MIN_TIMESTAMP if record.timestamp is None else record.timestamp
        if left is None:
            self._keyed_state_backend.set_current_key(key)
            windows, is_skipped = iter(self._assigned(record, timestamp)), True
        else:  # resumed after the output was full
            windows, is_skipped = left, False
        merging = self._merging
        for window in windows:
            if merging is not None:
                added = merging.add(window, record)
            else:
                added = None if self._cleanup.is_past(window) else (window, window)
            if added is not None:
                is_skipped = False
                actual, state_window = added
                self._state.set_current_namespace(state_window)
                try:
                    self._add(actual, record, timestamp)
                except OutputFullError as full:
                    full.then(partial(self._process_of_key, key, record, windows))
                    raise
        if not is_skipped:
            return
        if not self._cleanup.is_element_late(timestamp):
            self.num_records_in_no_window += 1
            return
        self.num_late_records += 1
        late_tag = self._operation.late_tag
        if late_tag is not None:
            self._output.collect_side(late_tag, record)
        else:
            self._missed_ms = max(self._missed_ms, self._cleanup.missed_ms(timestamp))

    def _assigned(self, record: StreamRecord[Any], timestamp: int) -> Collection[Window]:
        try:
            windows = self._assigner.assign_windows(record.value, timestamp, self._assigner_context)
            if type(windows) is not list:
                windows = list(windows)
            for window in windows:
                if type(window) is TimeWindow:
                    _check_bounds(window, self._assigner)
                elif type(window) not in _BUILT_IN_WINDOWS:
                    _check_window(window)
        except (DataError, UserCodeError) as failure:
            raise type(failure)(f"{failure} (at {self._results.described(record)})") from failure
        except Exception as failure:
            raise self._results.failed("assign_windows", record, failure, self._assigner) from failure
        return windows

    def _add(self, window: Window, record: StreamRecord[Any], timestamp: int) -> None:
        """Add an element to a window whose state is selected."""
        self._append(record)
        result = self._trigger_calls.on_element(record, timestamp, window)
        if result is not TriggerResult.CONTINUE:
            try:
                if self._act(result, window, self._as_in_pyflink):
                    return
            except OutputFullError as full:
                full.then(partial(self._cleanup.register, window))
                raise
        self._cleanup.register(window)

    def _append(self, record: StreamRecord[Any]) -> None:
        try:
            self._state.add(record.value)
        except Exception as failure:
            raise self._aggregation_failed(record, failure) from failure

    # ---- timers ----

    def process_watermark(self, watermark: Watermark) -> None:
        self._pass_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def end_key(self) -> None:
        super().end_key()
        self._forget_panes()

    def on_event_time(self, timer: InternalTimer) -> None:
        """Call the trigger, and drop the window if this is its cleanup time."""
        self._fire(timer)

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Call the trigger, and drop the window if this is its cleanup time."""
        self._on_timer(timer, self._trigger_calls.on_processing_time, not self._is_event_time)

    def _on_event_time(self, timer: InternalTimer) -> None:
        self._on_timer(timer, self._trigger_calls.on_event_time, self._is_event_time)

    def _fire_at_end(self, timer: InternalTimer) -> None:
        """Fire and drop a window without lateness that fires at its end only: all its timers are there."""
        window = timer.namespace
        contents = self._state.table.remove(window, self._keyed_state_backend.key_context.current_key_id)
        if contents is not None:
            if self._get_result is not None:
                try:
                    contents = self._get_result(contents)
                except Exception as failure:
                    raise self._aggregation_failed(window, failure) from failure
            try:
                self._give_contents(window, contents)
            except OutputFullError as full:
                full.then(partial(self._clear_for_function, window))
                raise
        self._clear_for_function(window)

    def _on_timer(
        self, timer: InternalTimer, ask: Callable[[int, Window], TriggerResult], may_clean_up: bool
    ) -> None:
        window = timer.namespace
        state_window = window if self._merging is None else self._merging.state_window(window)
        if state_window is None:
            return  # the trigger did not delete this timer when it cleared the window
        self._state.set_current_namespace(state_window)
        result = ask(timer.timestamp_ms, window)
        is_last = may_clean_up and timer.timestamp_ms == self._cleanup.time_of(window)
        if result is not TriggerResult.CONTINUE:
            try:
                self._act(result, window)
            except OutputFullError as full:
                if is_last:
                    full.then(partial(self._clear_all, window))
                raise
        if is_last:
            self._clear_all(window)

    def _clear_all(self, window: Window) -> None:
        self._state.clear()
        self._trigger_calls.clear(window)
        self._clear_for_function(window)
        if self._merging is not None:
            self._merging.retire(window)

    def _clear_for_function(self, window: Window) -> None:
        if self._clear_function is not None:
            self._window_context.current_window = window
            try:
                self._clear_function()
            except Exception as failure:
                raise self._results.failed("clear", window, failure) from failure
            finally:
                self._window_context.current_window = None

    # ---- firing ----

    def _act(self, result: TriggerResult, window: Window, keeps_without_result: bool = False) -> bool:
        """Fire or purge a window whose state is selected, as its trigger says.

        Returns
        -------
        bool
            Whether the window was to fire, had no result, and is kept for that reason.
        """
        if result.is_fire():
            try:
                has_result = self._emit_contents(window)
                if keeps_without_result and not has_result:
                    return True
            except OutputFullError as full:
                if result.is_purge():
                    full.then(self._state.clear)
                raise
        if result.is_purge():
            self._state.clear()
        return False

    def _emit_contents(self, window: Window) -> bool:
        """Emit the results of a window, and return whether its contents have any: an aggregate may be None."""
        try:
            contents = self._state.get()
        except Exception as failure:
            raise self._aggregation_failed(window, failure) from failure
        self._give_contents(window, contents)
        return contents is not None

    def _give_contents(self, window: Window, contents: Any) -> None:
        if self._operation.pre_aggregation is None:
            if contents:
                self._emit(window, contents)
        elif contents is not None:
            if self._call is None:
                self._output.collect(StreamRecord(contents, window.max_timestamp()))
            else:
                self._emit(window, [contents])

    def _emit(self, window: Window, elements: list[Any], given: Results = None) -> None:
        assert self._call is not None
        self._window_context.current_window = window
        try:
            if given is None:
                try:
                    given = self._call(elements)
                except Exception as failure:
                    raise self._results.failed(self._method, window, failure) from failure
            if given is not None:
                timestamp = window.max_timestamp()
                self._results.emit(given, timestamp, timestamp, self._method, window)
        except OutputFullError as full:
            full.then(partial(self._emit, window, elements, self._results.waiting))
            raise
        finally:
            self._window_context.current_window = None

    # ---- failures ----

    def _aggregation_failed(self, subject: Subject, failure: Exception) -> UserCodeError:
        """Return the error to raise from a failure of the function; one of flinkcore's own is raised as it is."""
        if isinstance(failure, FlinkcoreError):
            raise failure
        aggregation = self._operation.pre_aggregation
        method = (
            "reduce"
            if not isinstance(aggregation, AggregateFunction)
            else "create_accumulator, add, merge or get_result"
        )
        return self._results.failed(method, subject, failure, aggregation)


def _check_window(window: Window) -> None:
    """Raise an error for what cannot be a window, where a user's assigner gives it."""
    if not isinstance(window, Window):
        raise TypeError(f"{shown(window)} is not a Window")
    hash(window)  # it is the namespace of its state
    if as_timestamp(window.max_timestamp()) is None:
        raise TypeError(
            f"max_timestamp of {shown(window)} gave {window.max_timestamp()!r}: it is to return an int of 64 bits, in "
            "milliseconds since the epoch"
        )


def _check_bounds(window: TimeWindow, assigner: object) -> None:
    if window.start < MIN_TIMESTAMP or window.end > MAX_TIMESTAMP:
        raise DataError(
            f"assign_windows of {type(assigner).__name__} gave {shown(window)}: its bounds are to be of 64 bits, in "
            "milliseconds since the epoch; filter such timestamps out, or let the assigner keep to these bounds"
        )


def _refuse_before_open(key: Hashable, record: StreamRecord[Any]) -> None:
    refuse_before_open(record)


def _forget_nothing() -> None:
    pass


def _pass_nothing(watermark_ms: int) -> None:
    pass


class EvictingWindowOperator(WindowOperator):
    """Holds all elements of a window with their timestamps, and lets an evictor remove some at each firing.

    The functions, including a reduce or aggregate function, see at each firing the elements that the evictor leaves;
    these stay for the next firing. A window that the evictor has emptied still fires once.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.EvictingWindowOperator``.
    """

    def _contents_descriptor(self) -> StateDescriptor:
        return ListStateDescriptor(CONTENTS)

    def _append(self, record: StreamRecord[Any]) -> None:
        self._state.add((record.value, record.timestamp))

    def _emit_contents(self, window: Window) -> bool:
        contents = self._state.get()
        if not contents:
            return True  # PyFlink has no evictors, so windows are dropped as in Java
        elements = [TimestampedValue(value, timestamp) for value, timestamp in contents]
        self._evict("evict_before", elements, window)
        try:
            self._give([element.value for element in elements], window)
        except OutputFullError as full:
            full.then(partial(self._keep, elements, window))
            raise
        self._keep(elements, window)
        return True

    def _keep(self, elements: list[TimestampedValue], window: Window) -> None:
        """Keep the elements that the evictor leaves after the functions."""
        self._evict("evict_after", elements, window)
        self._state.update([(element.value, element.timestamp) for element in elements])

    def _evict(self, method: str, elements: list[TimestampedValue], window: Window) -> None:
        evictor = self._operation.evictor
        before = len(elements)
        try:
            given = getattr(evictor, method)(elements, before, window, self._trigger_context)
        except Exception as failure:
            raise self._results.failed(method, window, failure, evictor) from failure
        if isinstance(given, list):  # meant as the elements to keep, which Flink would ignore
            raise self._misused(method, f"gave {shown(given)} at", window)
        for element in elements:
            if type(element) is not TimestampedValue:
                raise self._misused(method, f"left {shown(element)} in", window)

    def _misused(self, method: str, what: str, window: Window) -> UserCodeError:
        return UserCodeError(
            f"{type(self._operation.evictor).__qualname__}.{method} {what} {self._results.described(window)}: it is to "
            "remove elements from the list that it is given, to put nothing else in, and to return no list"
        )

    def _give(self, values: list[Any], window: Window) -> None:
        aggregation = self._operation.pre_aggregation
        if aggregation is None:
            self._emit(window, values)
            return
        try:
            if isinstance(aggregation, AggregateFunction):
                result = aggregated(aggregation, values)
            else:
                result = reduced(aggregation, values)
        except Exception as failure:
            raise self._aggregation_failed(window, failure) from failure
        if self._call is None:
            self._output.collect(StreamRecord(result, window.max_timestamp()))
        else:
            self._emit(window, [result])


def make_window_operator(
    operation: WindowOperation,
    key_selector: KeySelector | None,
    output: Output,
    keyed_state_backend: KeyedStateBackend,
    processing_time_service: ProcessingTimeService,
    as_in_pyflink: bool = False,
) -> WindowOperator:
    """Return the operator of an operation, with an evictor or without; parameters as of :class:`WindowOperator`.

    Notes
    -----
    Flink's ``WindowOperatorBuilder``.
    """
    kind = WindowOperator if operation.evictor is None else EvictingWindowOperator
    return kind(operation, key_selector, output, keyed_state_backend, processing_time_service, as_in_pyflink)

"""The operator that groups the elements of a key by windows."""

from collections.abc import Callable, Collection, Hashable
from typing import Any

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import AggregateFunction, RuntimeContext
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
)
from flinkcore.datastream.window import (
    MergingWindowAssigner,
    TriggerResult,
    Window,
    WindowOperation,
)
from flinkcore.errors import ConfigurationError, DataError, FlinkcoreError, UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.latency import LatencyStats
from flinkcore.runtime.operators.function_results import FunctionResults, Subject, shown
from flinkcore.runtime.operators.keyed_calls import KeyedElementCall, KeySelector, selected_key
from flinkcore.runtime.operators.keyed_function_operator import KeyedFunctionOperator, refuse_before_open
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.timers import InternalTimer
from flinkcore.runtime.windowing.merging_window_set import MergingWindowSet
from flinkcore.runtime.windowing.open_panes import OpenPaneCalls, has_open_panes, open_pane_calls
from flinkcore.runtime.windowing.window_calls import WindowFunctions, clear_call, window_call
from flinkcore.runtime.windowing.window_cleanup import WindowCleanup
from flinkcore.runtime.windowing.window_contexts import (
    OperatorAssignerContext,
    OperatorTriggerContext,
    OperatorWindowContext,
)

TIMER_SERVICE_NAME = "window-timers"
CONTENTS = "window-contents"
MERGING_WINDOW_SET = "merging-window-set"


class WindowOperator(KeyedFunctionOperator[WindowFunctions], OneInputStreamOperator):
    """Puts each element into its windows, and gives what a function makes of a window when that fires.

    Parameters
    ----------
    operation : WindowOperation
        Without an evictor.
    key_selector : callable or None
        From an element to its key. None: elements come with their keys, to `process_element_of_key` only.
    output : Output
    keyed_state_backend : KeyedStateBackend
        The operator's own, with its key context; windows are its namespaces.
    processing_time_service : ProcessingTimeService
    latency_stats : LatencyStats, optional

    Attributes
    ----------
    num_late_records : int
        Elements that were late for all their windows.
    num_records_in_no_window : int
        Elements that no live window took, and were not late, as between windows whose slide is longer than their size.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.WindowOperator``. Deliberate difference: a window
    beyond 64 bits is a DataError, where Flink wraps around.
    """

    def __init__(
        self,
        operation: WindowOperation,
        key_selector: KeySelector | None,
        output: Output,
        keyed_state_backend: KeyedStateBackend,
        processing_time_service: ProcessingTimeService,
        latency_stats: LatencyStats | None = None,
    ) -> None:
        functions = WindowFunctions(operation)
        super().__init__(functions, output, keyed_state_backend, processing_time_service, latency_stats)
        self._operation = operation
        self._key_selector = key_selector
        self._assigner = operation.assigner
        self._trigger = operation.trigger
        self._is_event_time = operation.assigner.is_event_time()
        self._merging = operation.assigner if isinstance(operation.assigner, MergingWindowAssigner) else None
        self._window_types: set[type] = set()
        self._open_panes = OpenPaneCalls(_refuse_before_open, _pass_nothing)
        self.num_late_records = 0
        self.num_records_in_no_window = 0

    @property
    def num_late_records_dropped(self) -> int:
        """Elements that were late for all their windows and had no side output (Flink's metric of this name)."""
        return self.num_late_records if self._operation.late_tag is None else 0

    def open(self, runtime_context: RuntimeContext) -> None:
        """Start the timers, ask for the state and open the functions; before anything is processed."""
        backend, operation = self._keyed_state_backend, self._operation
        timers = self._time_service_manager.get_internal_timer_service(TIMER_SERVICE_NAME, self)
        self._timers = timers
        self._cleanup = WindowCleanup(operation, timers)
        self._state = backend.get_or_create_keyed_state(self._contents_descriptor())
        if self._merging is not None:
            self._merging_sets = backend.get_or_create_keyed_state(MapStateDescriptor(MERGING_WINDOW_SET))
        self._assigner_context = OperatorAssignerContext(timers, runtime_context, backend)
        self._trigger_context = OperatorTriggerContext(timers, backend)
        self._window_context = OperatorWindowContext(timers, backend, self._merging is not None)
        aggregation = operation.pre_aggregation
        self._get_result = aggregation.get_result if isinstance(aggregation, AggregateFunction) else None
        function = operation.window_function or aggregation
        assert function is not None
        self._results = FunctionResults(function, self._output, backend.key_context)
        self._call, self._method = None, "process"
        if operation.window_function is not None:
            self._call, self._method = window_call(
                operation.window_function, self._window_context, backend.key_context
            )
        self._clear_function = clear_call(operation.window_function, self._window_context)
        self._open_panes = OpenPaneCalls(self._process_of_key, _pass_nothing)
        self._fire = self._on_event_time
        if has_open_panes(operation):
            self._open_panes = open_pane_calls(
                operation, backend, self._state, timers, self._process_of_key, self._aggregation_failed
            )
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
        """Put an element into its windows, with its key as the current key.

        Raises
        ------
        UserCodeError
            If a function, the trigger, the assigner or the key selector raises, or gives what it must not give.
        DataError
            If the key has no key group, or one that is not this operator's; or the element has no timestamp, but its
            windows need one, or would be in a window beyond 64 bits.
        """
        if self._key_selector is None:
            raise ConfigurationError(
                "this operator has no key selector: its elements come to process_element_of_key"
            )
        self._open_panes.process(selected_key(self._key_selector, record), record)

    @property
    def process_element_of_key(self) -> KeyedElementCall:
        """What processes a record whose key is known, as `process_element` does."""
        return self._open_panes.process

    def _process_of_key(self, key: Hashable, record: StreamRecord[Any]) -> None:
        self._keyed_state_backend.set_current_key(key)
        timestamp = MIN_TIMESTAMP if record.timestamp is None else record.timestamp
        windows = self._assigned(record, timestamp)
        is_skipped = True
        if self._merging is not None:
            is_skipped = self._add_to_merging(windows, record, timestamp)
        else:
            for window in windows:
                if not self._cleanup.is_past(window):
                    is_skipped = False
                    self._state.set_current_namespace(window)
                    self._add(window, record, timestamp)
        if not is_skipped:
            return
        if not self._cleanup.is_element_late(timestamp):
            self.num_records_in_no_window += 1
            return
        self.num_late_records += 1
        late_tag = self._operation.late_tag
        if late_tag is not None:
            self._output.collect_side(late_tag, record)

    def _assigned(self, record: StreamRecord[Any], timestamp: int) -> Collection[Window]:
        try:
            windows = self._assigner.assign_windows(record.value, timestamp, self._assigner_context)
            if type(windows) is not list:
                windows = list(windows)
            for window in windows:
                if type(window) not in self._window_types:
                    self._admit_window(window)
        except (DataError, UserCodeError) as failure:
            raise type(failure)(f"{failure} (at {self._results.described(record)})") from failure
        except Exception as failure:
            raise self._failed_at(self._assigner, "assign_windows", record, failure) from failure
        return windows

    def _admit_window(self, window: Window) -> None:
        if not isinstance(window, Window):
            raise TypeError(f"{shown(window)} is no Window")
        hash(window)  # the namespace of its state
        self._window_types.add(type(window))

    def _add(self, window: Window, record: StreamRecord[Any], timestamp: int) -> None:
        """Add an element to a window whose state is selected."""
        self._append(record)
        context = self._trigger_context
        context.window = window
        try:
            result = self._trigger.on_element(record.value, timestamp, window, context)
        except Exception as failure:
            raise self._failed_at(self._trigger, "on_element", record, failure) from failure
        if result is not TriggerResult.CONTINUE:
            self._act(result, "on_element", window)
        self._cleanup.register(window)

    def _append(self, record: StreamRecord[Any]) -> None:
        try:
            self._state.add(record.value)
        except Exception as failure:
            raise self._aggregation_failed(record, failure) from failure

    # ---- windows that merge ----

    def _add_to_merging(self, windows: Collection[Window], record: StreamRecord[Any], timestamp: int) -> bool:
        """Return whether all windows were late."""
        is_skipped = True
        held: dict[Window, Window] | None = self._merging_sets.get_internal()
        state_windows = {} if held is None else held
        assert self._merging is not None
        merging_windows = MergingWindowSet(self._merging, state_windows)
        for window in windows:
            actual = self._merged(merging_windows, window, record)
            if self._cleanup.is_past(actual):
                merging_windows.retire_window(actual)
                continue
            is_skipped = False
            self._state.set_current_namespace(state_windows[actual])
            self._add(actual, record, timestamp)
        self._persist(state_windows)
        return is_skipped

    def _merged(
        self, merging_windows: MergingWindowSet[Window], window: Window, record: StreamRecord[Any]
    ) -> Window:
        try:
            return merging_windows.add_window(window, self._merge)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise self._failed_at(self._assigner, "merge_windows", record, failure) from failure

    def _merge(
        self, result: Window, merged: list[Window], state_window: Window, merged_state: list[Window]
    ) -> None:
        late_for = self._cleanup.is_merge_late(result)
        if late_for is not None:
            raise UserCodeError(
                f"{type(self._assigner).__qualname__}.merge_windows has made {result!r}, which ended before "
                f"{late_for}: merging cannot make a window late"
            )
        context = self._trigger_context
        context.window = result
        context.merged_windows = merged
        try:
            self._trigger.on_merge(result, context)
        except Exception as failure:
            raise self._failed_at(self._trigger, "on_merge", result, failure) from failure
        for window in merged:
            context.window = window
            self._clear_trigger(window)
            self._cleanup.delete(window)
        try:
            self._state.merge_namespaces(state_window, merged_state)
        except Exception as failure:
            raise self._aggregation_failed(result, failure) from failure

    def _persist(self, state_windows: dict[Window, Window]) -> None:
        if state_windows:
            self._merging_sets.update_internal(state_windows)
        else:
            self._merging_sets.clear()

    # ---- timers ----

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers, and pass the watermark on."""
        self._open_panes.pass_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def on_event_time(self, timer: InternalTimer) -> None:
        """Ask the trigger, and drop the window if it is time."""
        self._fire(timer)

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Ask the trigger, and drop the window if it is time."""
        self._on_timer(timer, self._trigger.on_processing_time, not self._is_event_time)

    def _on_event_time(self, timer: InternalTimer) -> None:
        self._on_timer(timer, self._trigger.on_event_time, self._is_event_time)

    def _fire_at_end(self, timer: InternalTimer) -> None:
        """Fire and drop a window without lateness that only its end fires: all its timers are at its end."""
        window = timer.namespace
        contents = self._state.table.remove(window, self._keyed_state_backend.key_context.current_key_id)
        if contents is not None:
            if self._get_result is not None:
                try:
                    contents = self._get_result(contents)
                except Exception as failure:
                    raise self._aggregation_failed(window, failure) from failure
            self._give_contents(window, contents)
        self._clear_for_function(window)

    def _on_timer(
        self,
        timer: InternalTimer,
        method: Callable[[int, Window, OperatorTriggerContext], TriggerResult],
        may_clean_up: bool,
    ) -> None:
        window = timer.namespace
        state_windows: dict[Window, Window] | None = None
        if self._merging is None:
            self._state.set_current_namespace(window)
        else:
            state_windows = self._merging_sets.get_internal() or {}
            state_window = state_windows.get(window)
            if state_window is None:
                return  # a timer that the trigger did not delete when it cleared the window
            self._state.set_current_namespace(state_window)
        context = self._trigger_context
        context.window = window
        try:
            result = method(timer.timestamp_ms, window, context)
        except Exception as failure:
            raise self._failed_at(self._trigger, method.__name__, window, failure) from failure
        if result is not TriggerResult.CONTINUE:
            self._act(result, method.__name__, window)
        if may_clean_up and timer.timestamp_ms == self._cleanup.time_of(window):
            self._clear_all(window, state_windows)

    def _clear_all(self, window: Window, state_windows: dict[Window, Window] | None) -> None:
        self._state.clear()
        self._clear_trigger(window)
        self._clear_for_function(window)
        if state_windows is not None:
            assert self._merging is not None
            MergingWindowSet(self._merging, state_windows).retire_window(window)
            self._persist(state_windows)

    def _clear_for_function(self, window: Window) -> None:
        if self._clear_function is not None:
            self._window_context.current_window = window
            try:
                self._clear_function()
            except Exception as failure:
                raise self._results.failed("clear", window, failure) from failure

    def _clear_trigger(self, window: Window) -> None:
        try:
            self._trigger.clear(window, self._trigger_context)
        except Exception as failure:
            raise self._failed_at(self._trigger, "clear", window, failure) from failure

    # ---- firing ----

    def _act(self, result: TriggerResult, method: str, window: Window) -> None:
        """Do what a trigger wants done with a window whose state is selected."""
        if type(result) is not TriggerResult:
            raise UserCodeError(
                f"{type(self._trigger).__qualname__}.{method} gave {shown(result)} at "
                f"{self._results.described(window)}: it is to return a TriggerResult"
            )
        if result.is_fire():
            self._emit_contents(window)
        if result.is_purge():
            self._state.clear()

    def _emit_contents(self, window: Window) -> None:
        try:
            contents = self._state.get()
        except Exception as failure:
            raise self._aggregation_failed(window, failure) from failure
        self._give_contents(window, contents)

    def _give_contents(self, window: Window, contents: Any) -> None:
        if self._operation.pre_aggregation is None:
            if contents:
                self._emit(window, contents)
        elif contents is not None:
            if self._call is None:
                self._output.collect(StreamRecord(contents, window.max_timestamp()))
            else:
                self._emit(window, [contents])

    def _emit(self, window: Window, elements: list[Any]) -> None:
        assert self._call is not None
        self._window_context.current_window = window
        try:
            given = self._call(elements)
        except Exception as failure:
            raise self._results.failed(self._method, window, failure) from failure
        if given is not None:
            timestamp = window.max_timestamp()
            self._results.emit(given, timestamp, timestamp, self._method, window)

    # ---- failures ----

    def _failed_at(self, culprit: object, method: str, subject: Subject, failure: Exception) -> UserCodeError:
        return UserCodeError(
            f"{type(culprit).__qualname__}.{method} failed at {self._results.described(subject)}: "
            f"{type(failure).__name__}: {failure}"
        )

    def _aggregation_failed(self, subject: Subject, failure: Exception) -> Exception:
        if isinstance(failure, FlinkcoreError):
            return failure
        aggregation = self._operation.pre_aggregation
        method = "reduce" if not isinstance(aggregation, AggregateFunction) else "add, merge or get_result"
        return self._failed_at(aggregation, method, subject, failure)


def _refuse_before_open(key: Hashable, record: StreamRecord[Any]) -> None:
    refuse_before_open(record)


def _pass_nothing(watermark_ms: int) -> None:
    pass

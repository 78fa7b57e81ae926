"""The contexts that assigners, triggers, evictors and window functions are called with, one object for all calls."""

from typing import Any, Final

from flinkcore._native.element_calls import kept_context
from flinkcore.datastream.functions import (
    KeyedStateStore,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from flinkcore.datastream.state import StateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import Evictor, GlobalWindow, Trigger, Window, WindowAssigner, WindowStagger
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.metrics import MetricGroup
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.timers import InternalTimerService

STAGGER: Final[ValueStateDescriptor[int]] = ValueStateDescriptor("window-stagger")


class OperatorAssignerContext(WindowAssigner.WindowAssignerContext):
    """Context of an assigner."""

    def __init__(
        self, timers: InternalTimerService, runtime_context: RuntimeContext, backend: KeyedStateBackend
    ) -> None:
        self._timers = timers
        self._runtime_context = runtime_context
        self._backend = backend
        self._stagger_offsets: dict[int, int] | None = None

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context

    def get_stagger_offset(self, window_stagger: WindowStagger, size_ms: int) -> int:
        """Return the offset of the current key group in ms, which its first element decides; the state holds it."""
        state = self._backend.get_or_create_keyed_state(STAGGER)
        key_context = self._backend.key_context
        if self._stagger_offsets is None:
            restored = state.table.entries()
            self._stagger_offsets = {
                key_context.key_group_of_id(key_id): offset for _, key_id, offset in restored
            }
        offset = self._stagger_offsets.get(key_context.current_key_group)
        if offset is None:
            now_ms = self._timers.current_processing_time()
            offset = window_stagger.get_stagger_offset(now_ms, size_ms, key_context.current_key_group)
            self._stagger_offsets[key_context.current_key_group] = offset
            state.update(offset)
        return offset


class OperatorTriggerContext(Trigger.OnMergeContext, Evictor.EvictorContext):
    """Context of a trigger, and of an evictor.

    Attributes
    ----------
    window : Window
        The current window; set by the operator before each call.
    merged_windows : list of Window
        The windows that were merged into `window`; set before `on_merge`.

    Notes
    -----
    Flink's ``WindowOperator.Context``.
    """

    __slots__ = ("_backend", "_metrics", "_timers", "merged_windows", "window")

    def __init__(
        self, timers: InternalTimerService, backend: KeyedStateBackend, runtime_context: RuntimeContext
    ) -> None:
        self._timers = timers
        self._backend = backend
        self._metrics = runtime_context.get_metrics_group
        self.window: Window = GlobalWindow.get()
        self.merged_windows: list[Window] = []

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_current_watermark(self) -> int:
        return self._timers.current_watermark()

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time_timer(self.window, time)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time_timer(self.window, time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time_timer(self.window, time)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time_timer(self.window, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._backend.get_partitioned_state(self.window, state_descriptor)

    def get_metric_group(self) -> MetricGroup:
        return self._metrics()

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Merge a state of the merged windows into that of the new one.

        Raises
        ------
        ConfigurationError
            If the state is of a kind that does not merge.
        """
        state = self._backend.get_or_create_keyed_state(state_descriptor)
        merge_namespaces = getattr(state, "merge_namespaces", None)
        if merge_namespaces is None:
            raise ConfigurationError(
                f"the state {state_descriptor.name!r} is a {state_descriptor.type.value} state, which does not merge: "
                "a trigger of windows that merge takes a reducing, aggregating or list state"
            )
        merge_namespaces(self.window, self.merged_windows)


class OperatorWindowContext(ProcessWindowFunction.Context[Window], ProcessAllWindowFunction.Context[Window]):
    """Context of a window function.

    Parameters
    ----------
    timers : InternalTimerService
    backend : KeyedStateBackend
    windows_merge : bool
        If true, there is no per-window state.

    Attributes
    ----------
    current_window : Window or None
        Set by the operator during each call; outside of one, `window` and `window_state` raise a LifecycleError.

    Notes
    -----
    Flink's ``WindowOperator.WindowContext``.
    """

    def __init__(self, timers: InternalTimerService, backend: KeyedStateBackend, windows_merge: bool) -> None:
        self._timers = timers
        self._global_state = DefaultKeyedStateStore(backend)
        self._window_state = (
            MergingWindowStateStore(backend) if windows_merge else DefaultKeyedStateStore(backend)
        )
        self.current_window: Window | None = None

    def window(self) -> Window:
        if self.current_window is None:
            raise kept_context("window")
        return self.current_window

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def window_state(self) -> KeyedStateStore:
        if self.current_window is None:
            raise kept_context("window_state")
        self._window_state.namespace = self.current_window
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state


class MergingWindowStateStore(DefaultKeyedStateStore):
    """Refuses all states of windows that merge.

    Notes
    -----
    Flink's ``WindowOperator.MergingWindowStateStore``.
    """

    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        raise UnsupportedOperationError(
            f"the per-window state {descriptor.name!r} is not possible with windows that merge; use global_state()"
        )

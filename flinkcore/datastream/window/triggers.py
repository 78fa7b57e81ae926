"""Triggers: when a window fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from operator import add
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore.common.time import Interval, interval_ms, timeout_ms
from flinkcore.common.typeinfo import Types
from flinkcore.datastream.state import (
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.datastream.window.delta_function import Delta, delta_call
from flinkcore.datastream.window.window_settings import require_count, require_milliseconds
from flinkcore.datastream.window.windows import Window
from flinkcore.errors import ArgumentTypeError, ConfigurationError, UnsupportedOperationError
from flinkcore.metrics import MetricGroup

T = TypeVar("T", contravariant=True)
W = TypeVar("W", bound=Window, contravariant=True)


class TriggerResult(Enum):
    """Action on a window: whether its function is called, and whether its elements are dropped.

    Notes
    -----
    Follows ``pyflink.datastream.window.TriggerResult``. A window without elements does not fire.
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the function is called."""
        return self is TriggerResult.FIRE or self is TriggerResult.FIRE_AND_PURGE

    def is_purge(self) -> bool:
        """Return whether the elements are dropped."""
        return self is TriggerResult.PURGE or self is TriggerResult.FIRE_AND_PURGE


class Trigger(ABC, Generic[T, W]):
    """Decides, for each element and each timer of a window of a key, whether the window fires.

    One trigger serves all windows of all keys, so it keeps nothing in its attributes: its state is the one that its
    context gives it.

    Notes
    -----
    Follows ``pyflink.datastream.window.Trigger``. Deliberate difference: `on_merge` need not be defined where
    `can_merge` is False, as in Flink.
    """

    class TriggerContext(ABC):
        """Time, timers and state of the current key and window; valid during the call only."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in ms since the epoch."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the watermark, in ms since the epoch; -2**63 before the first one."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Register a timer: `on_processing_time` is called when processing time reaches `time` (ms, epoch)."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Register a timer: `on_event_time` is called when the watermark reaches `time` (ms, epoch)."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a timer if it is registered."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete a timer if it is registered."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return the state that a descriptor declares, of the current key and window."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the metrics of the operator."""

    class OnMergeContext(TriggerContext):
        """The context of `on_merge`: it belongs to the merged window."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge a reducing, aggregating or list state of the source windows into that of the merged window."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Handle an element that was added to a window.

        Parameters
        ----------
        element : object
        timestamp : int
            In ms since the epoch; -2**63 if the element has none.
        window : Window
        ctx : Trigger.TriggerContext

        Returns
        -------
        TriggerResult
        """

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Handle a processing-time timer of a window, registered for `time` (ms since the epoch)."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Handle an event-time timer of a window, registered for `time` (ms since the epoch)."""

    def can_merge(self) -> bool:
        """Return whether the trigger works with merging windows; it must define `on_merge` then."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Handle a merge: merge the state of the source windows, and register the timers of the merged one.

        Parameters
        ----------
        window : Window
            The merged window.
        ctx : Trigger.OnMergeContext

        Raises
        ------
        UnsupportedOperationError
            If the trigger does not define this.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} does not support merging")

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Clear the state and delete the timers of a window that is dropped, or merged into another one."""


TriggerContext: TypeAlias = Trigger.TriggerContext


@dataclass(frozen=True)
class _BuiltInTrigger(Trigger[Any, Window]):
    """Ignores timers and holds nothing, unless a subclass says otherwise."""

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        pass


def _require_trigger(owner: str, trigger: Trigger[Any, Any]) -> None:
    if not isinstance(trigger, Trigger):
        raise ArgumentTypeError(f"{owner} takes a trigger, not {trigger!r}")


class EventTimeTrigger(_BuiltInTrigger):
    """Fires when the watermark passes the end of a window, and for every element that arrives after that.

    Notes
    -----
    Follows ``pyflink.datastream.window.EventTimeTrigger``.
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return a trigger by event time."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_BuiltInTrigger):
    """Fires when processing time passes the end of a window.

    Notes
    -----
    Follows ``pyflink.datastream.window.ProcessingTimeTrigger``.
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return a trigger by processing time."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class NeverTrigger(_BuiltInTrigger):
    """Never fires; the default trigger of global windows.

    Notes
    -----
    Follows ``pyflink.datastream.window.NeverTrigger``. It does not work with merging windows.
    """

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


class EndOfStreamTrigger(_BuiltInTrigger):
    """Fires and purges when the watermark reaches the largest timestamp: at the end of the input.

    Notes
    -----
    Flink's ``GlobalWindows.EndOfStreamTrigger``.
    """

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE


_COUNT: Final[ReducingStateDescriptor[int]] = ReducingStateDescriptor("count", add, Types.LONG())


@dataclass(frozen=True)
class CountTrigger(_BuiltInTrigger):
    """Fires when a number of elements has arrived since the last firing; the elements stay in the window.

    Parameters
    ----------
    window_size : int
        Number of elements, not negative; at 0 every element fires.

    Raises
    ------
    ConfigurationError
        If the number is negative. (Flink takes that for 0.)

    Notes
    -----
    Follows ``pyflink.datastream.window.CountTrigger``. It replaces a time window's own trigger: elements that have not
    fired when the window ends are dropped.
    """

    window_size: int

    def __post_init__(self) -> None:
        require_count("CountTrigger", "count", self.window_size, least=0)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger for a number of elements."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        count = ctx.get_partitioned_state(_COUNT)
        count.add(1)
        if count.get() < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        ctx.get_partitioned_state(_COUNT).clear()


_FIRE_TIME: Final[ReducingStateDescriptor[int]] = ReducingStateDescriptor("fire-time", min, Types.LONG())
"""Time at which the window fires next."""


@dataclass(frozen=True)
class _ContinuousTrigger(_BuiltInTrigger):
    """Keeps the time of a window's next firing, and a timer for it, in either time domain."""

    _by_event_time: ClassVar[bool]

    interval: int

    def __post_init__(self) -> None:
        require_milliseconds(type(self).__name__, "interval", self.interval)
        if self.interval <= 0:
            raise ConfigurationError(
                f"{type(self).__name__}: the interval must be at least 1 ms, it is {self.interval} ms"
            )

    def _register(self, time: int, ctx: TriggerContext) -> None:
        (ctx.register_event_time_timer if self._by_event_time else ctx.register_processing_time_timer)(time)

    def _delete(self, time: int, ctx: TriggerContext) -> None:
        (ctx.delete_event_time_timer if self._by_event_time else ctx.delete_processing_time_timer)(time)

    def _set_first(
        self, time: int, window: Window, ctx: TriggerContext, fire_time: ReducingState[int]
    ) -> None:
        truncated = abs(time) // self.interval * self.interval
        self.register_next_fire_timestamp(truncated if time >= 0 else -truncated, window, ctx, fire_time)

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Let the window fire an interval after a time, or at its end if that is earlier."""
        next_time = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_time)
        self._register(next_time, ctx)

    def _fire_if_due(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        if time < window.max_timestamp():
            self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        next_time = ctx.get_partitioned_state(_FIRE_TIME).get()
        if next_time is not None:
            self._register(next_time, ctx)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        next_time = fire_time.get()
        if next_time is not None:
            self._delete(next_time, ctx)
            fire_time.clear()


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever the watermark has advanced by an interval, and at the end of the window.

    The first firing is at the first multiple of the interval after the first element's timestamp; where that timestamp
    is negative and no multiple itself, at the second one.

    Parameters
    ----------
    interval : int
        In ms, at least 1.

    Raises
    ------
    ConfigurationError
        If the interval is below 1.

    Notes
    -----
    Follows ``pyflink.datastream.window.ContinuousEventTimeTrigger``, but truncates negative timestamps as Java's
    remainder does, which Python's does not. Deliberate difference: at the end of the log it fires once for a window
    without end, where Flink fires for every interval up to 2**63 - 1.
    """

    _by_event_time = True

    @staticmethod
    def of(interval: Interval) -> ContinuousEventTimeTrigger:
        """Return a trigger that fires at every interval of event time."""
        return ContinuousEventTimeTrigger(timeout_ms(interval, "the interval of ContinuousEventTimeTrigger"))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(end)
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            self._set_first(timestamp, window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        result = self._fire_if_due(time, window, ctx)
        if (
            result is TriggerResult.FIRE
            and window.max_timestamp() == MAX_TIMESTAMP == ctx.get_current_watermark()
        ):
            self.clear(window, ctx)
            ctx.delete_event_time_timer(MAX_TIMESTAMP)
        return result


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires at every multiple of an interval of processing time, from the first element on.

    Parameters and errors are those of :class:`ContinuousEventTimeTrigger`.

    Notes
    -----
    Follows ``pyflink.datastream.window.ContinuousProcessingTimeTrigger``. Deliberate difference: a window of event
    time whose largest timestamp is less than processing time fires once for it; Flink fires without end.
    """

    _by_event_time = False

    @staticmethod
    def of(interval: Interval) -> ContinuousProcessingTimeTrigger:
        """Return a trigger that fires at every interval of processing time."""
        setting = "the interval of ContinuousProcessingTimeTrigger"
        return ContinuousProcessingTimeTrigger(timeout_ms(interval, setting))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            self._set_first(ctx.get_current_processing_time(), window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return self._fire_if_due(time, window, ctx)


_LAST_ELEMENT: Final[ValueStateDescriptor[Any]] = ValueStateDescriptor("last-element")


@dataclass(frozen=True)
class DeltaTrigger(_BuiltInTrigger):
    """Fires when an element differs by more than a threshold from that of the last firing, at first from the first.

    Parameters
    ----------
    threshold : float
    delta_function : DeltaFunction or callable
        Function of the old element and the new one.

    Raises
    ------
    ConfigurationError
        If `delta_function` cannot be called.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.triggers.DeltaTrigger``. It does not work with merging windows.
    """

    threshold: float
    delta_function: Delta

    def __post_init__(self) -> None:
        delta_call("DeltaTrigger", self.delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Delta) -> DeltaTrigger:
        """Return a trigger with a threshold."""
        return DeltaTrigger(threshold, delta_function)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        last_element = ctx.get_partitioned_state(_LAST_ELEMENT)
        last = last_element.value()
        if last is None:
            last_element.update(element)
            return TriggerResult.CONTINUE
        if delta_call("DeltaTrigger", self.delta_function)(last, element) > self.threshold:
            last_element.update(element)
            return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        ctx.get_partitioned_state(_LAST_ELEMENT).clear()


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Window]):
    """Fires when another trigger does, and purges the window then.

    Parameters
    ----------
    nested_trigger : Trigger

    Raises
    ------
    ConfigurationError
        If it is not a trigger.

    Notes
    -----
    Follows ``pyflink.datastream.window.PurgingTrigger``.
    """

    nested_trigger: Trigger[Any, Any]

    def __post_init__(self) -> None:
        _require_trigger("PurgingTrigger", self.nested_trigger)

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Return a trigger that purges whenever the nested one fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


_TIMEOUT: Final[ValueStateDescriptor[int]] = ValueStateDescriptor("timeout")


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger[Any, Window]):
    """Fires when another trigger does, and when a timeout in processing time has passed since an element.

    Parameters
    ----------
    nested_trigger : Trigger
    timeout_ms : int
        Not negative.
    reset_timer_on_new_record : bool
        True: the timeout counts from the last element; False: from the first one after a firing.
    should_clear_on_timeout : bool
        Whether the timeout clears the state of the nested trigger.

    Raises
    ------
    ConfigurationError
        If the nested trigger is not a trigger, or the timeout is negative.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.triggers.ProcessingTimeoutTrigger``: it does not work with
    merging windows, and fires at every timer of the nested trigger, too.
    """

    nested_trigger: Trigger[Any, Any]
    timeout_ms: int
    reset_timer_on_new_record: bool = False
    should_clear_on_timeout: bool = True

    def __post_init__(self) -> None:
        _require_trigger("ProcessingTimeoutTrigger", self.nested_trigger)
        require_milliseconds("ProcessingTimeoutTrigger", "timeout", self.timeout_ms)
        if self.timeout_ms < 0:
            raise ConfigurationError(
                f"ProcessingTimeoutTrigger: the timeout cannot be negative, it is {self.timeout_ms} ms"
            )

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Interval,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Return a trigger that adds a timeout to a nested one."""
        return ProcessingTimeoutTrigger(
            nested_trigger,
            interval_ms(timeout, "the timeout of ProcessingTimeoutTrigger"),
            reset_timer_on_new_record,
            should_clear_on_timeout,
        )

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if isinstance(result, TriggerResult) and result.is_fire():
            self.clear(window, ctx)
            return result
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        set_time = timeout.value()
        if set_time is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(set_time)
            set_time = None
        if set_time is None:
            next_time = ctx.get_current_processing_time() + self.timeout_ms
            timeout.update(next_time)
            ctx.register_processing_time_timer(next_time)
        return result

    def on_processing_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return self._timed_out(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def on_event_time(self, time: int, window: Window, ctx: TriggerContext) -> TriggerResult:
        return self._timed_out(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _timed_out(self, result: TriggerResult, window: Window, ctx: TriggerContext) -> TriggerResult:
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: Window, ctx: TriggerContext) -> None:
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        set_time = timeout.value()
        if set_time is not None:
            ctx.delete_processing_time_timer(set_time)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)

"""Watermark generators: their interface, and those that Flink has built in.

Built-in generators never compute a value beyond 64 bits: each starts as if it had seen the smallest timestamp from
which its delay can be subtracted, so that no watermark lies below -2**63.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.element_calls import LargestTimestamp
from flinkcore.common.time import Duration, Interval, bound_ms, timeout_ms
from flinkcore.common.watermark import Watermark
from flinkcore.errors import UnsupportedOperationError

T = TypeVar("T", contravariant=True)


class WatermarkOutput(Protocol):
    """The output of a generator: watermarks and idleness.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkOutput``.
    """

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark, which has no effect unless it advances; implicitly marks the output active."""

    def mark_idle(self) -> None:
        """Mark this output idle: no downstream operator waits for its watermark."""

    def mark_active(self) -> None:
        """Mark this output active again."""


class WatermarkGenerator(ABC, Generic[T]):
    """Generates the watermarks of one split, at each event or periodically.

    In a replay a generator is called for every event, with None in place of the event: the time plane reads only the
    columns with times. It is also called at every tick of the replay clock, from the first tick of the log to the last,
    even if there is no event for months. What it emits must depend on nothing but these calls.

    A job that stops with a checkpoint stores the state of each split's generator, and a job that is restored from it
    passes that state to a new one: `snapshot_state` and `restore_state`, which other jobs do not need.

    Attributes
    ----------
    changes_at_events_only : bool, default False
        A class may set this to True to declare that a periodic call has no effect if there was no event since the
        previous one. A replay then skips such calls, so that long gaps cost nothing; otherwise a year of ticks at
        200 ms takes about half a minute per split. A subclass that overrides `on_periodic_emit` declares it again.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkGenerator``. Deliberate difference: Flink's generators are
    not in its checkpoints, and start again after a restore.

    Examples
    --------
    A punctuated generator:

    >>> from flinkcore.common import Watermark, WatermarkStrategy
    >>> class EvenTimestamps(WatermarkGenerator):
    ...     changes_at_events_only = True
    ...
    ...     def on_event(self, event, event_timestamp, output):
    ...         if event_timestamp % 2 == 0:
    ...             output.emit_watermark(Watermark(event_timestamp))
    ...
    ...     def on_periodic_emit(self, output):
    ...         pass
    >>> str(WatermarkStrategy.for_generator(EvenTimestamps))
    'watermarks by EvenTimestamps'
    """

    changes_at_events_only: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "on_periodic_emit" in vars(cls) and "changes_at_events_only" not in vars(cls):
            cls.changes_at_events_only = False

    @abstractmethod
    def on_event(self, event: T, event_timestamp: int, output: WatermarkOutput) -> None:
        """Handle an event; a punctuated generator emits its watermarks here.

        Parameters
        ----------
        event : object
            None in a replay.
        event_timestamp : int
            Event time in ms since the epoch.
        output : WatermarkOutput
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Handle a tick, once per auto-watermark interval of the (replay) clock; a periodic generator emits here."""

    def snapshot_state(self) -> Any:
        """Return the state of this generator for a checkpoint; None if it has none.

        A subclass with more state than its base class overrides this and `restore_state`.

        Returns
        -------
        object
            State of the types that a state can hold: numbers, text, bytes, times, None, and lists, tuples and dicts of
            them.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define snapshot_state")

    def restore_state(self, state: Any) -> None:
        """Restore the state that `snapshot_state` returned for another generator of this class; called before all else.

        Raises
        ------
        UnsupportedOperationError
            If the class does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__qualname__} does not define restore_state")


class BoundedOutOfOrdernessWatermarks(LargestTimestamp, WatermarkGenerator[Any]):
    """The watermark is the largest timestamp minus a bound minus 1 ms; emitted at every periodic call.

    Before the first event the watermark is -2**63. A watermark that has not advanced is emitted again, without effect.

    Parameters
    ----------
    max_out_of_orderness : Time, Duration, datetime.timedelta or int (ms)
        Not negative; counted in whole milliseconds.

    Raises
    ------
    ConfigurationError
        If the bound is negative.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.BoundedOutOfOrdernessWatermarks``.

    Examples
    --------
    >>> from flinkcore.common import Duration
    >>> generator = BoundedOutOfOrdernessWatermarks(Duration.of_seconds(4))
    """

    changes_at_events_only = True

    def __init__(self, max_out_of_orderness: Interval) -> None:
        self._out_of_orderness_ms = bound_ms(max_out_of_orderness, "max_out_of_orderness")
        self._max_timestamp = MIN_TIMESTAMP + self._out_of_orderness_ms + 1

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self._max_timestamp - self._out_of_orderness_ms - 1))

    def snapshot_state(self) -> int:
        return self._max_timestamp

    def restore_state(self, state: int) -> None:
        self._max_timestamp = state


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """The watermark is the largest timestamp minus 1 ms, for timestamps that do not go back.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.AscendingTimestampsWatermarks``: a bound of 0.
    """

    def __init__(self) -> None:
        super().__init__(Duration.of_millis(0))


class NoWatermarksGenerator(WatermarkGenerator[Any]):
    """Emits no watermarks.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.NoWatermarksGenerator``.
    """

    changes_at_events_only = True

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass

    def snapshot_state(self) -> None:
        pass

    def restore_state(self, state: None) -> None:
        pass


RelativeClock = Callable[[], int]
"""Returns a time in ms that never goes back; only differences count, so it may start anywhere."""


class IdlenessTimer:
    """Detects that there was no activity for longer than a timeout.

    Parameters
    ----------
    clock : callable
        Returns the time in ms.
    max_idle_time_ms : int

    Notes
    -----
    Flink's ``WatermarksWithIdleness.IdlenessTimer``. As there, a start of 0 means that no inactivity was seen yet: a
    check while the clock shows 0 does not start the timeout. Deliberate difference: milliseconds, not nanoseconds.
    """

    def __init__(self, clock: RelativeClock, max_idle_time_ms: int) -> None:
        self._clock = clock
        self._max_idle_time_ms = max_idle_time_ms
        self._active = False
        self._start_of_inactivity_ms = 0

    def activity(self) -> None:
        """Record activity."""
        self._active = True

    @property
    def state(self) -> tuple[bool, int]:
        """Activity since the last check, and the time at which inactivity began."""
        return self._active, self._start_of_inactivity_ms

    def restore(self, state: tuple[bool, int]) -> None:
        """Restore the state of another timer on the same clock."""
        self._active, self._start_of_inactivity_ms = state

    def check_if_idle(self) -> bool:
        """Return True exactly if the timeout has passed since the first check without activity before it."""
        if self._active:
            self._active = False
            self._start_of_inactivity_ms = 0
            return False
        if self._start_of_inactivity_ms == 0:
            self._start_of_inactivity_ms = self._clock()
            return False
        return self._clock() - self._start_of_inactivity_ms > self._max_idle_time_ms


class WatermarksWithIdleness(WatermarkGenerator[Any]):
    """Marks the output idle, once, when no event has arrived for longer than a timeout.

    The timeout starts at the first periodic call without an event since the previous one. While idle, the wrapped
    generator gets no periodic calls; an event resumes them, and the next watermark that advances marks the output
    active.

    Parameters
    ----------
    watermarks : WatermarkGenerator
        The wrapped generator.
    idle_timeout : Time, Duration, datetime.timedelta or int (ms)
        At least 1 ms; counted in whole milliseconds.
    clock : callable
        Returns the time in ms, such as ``ProcessingTimeService.current_processing_time``.

    Raises
    ------
    ConfigurationError
        If the timeout is not above zero.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarksWithIdleness``. Deliberate difference: a timeout
    below 1 ms is refused.
    """

    def __init__(
        self, watermarks: WatermarkGenerator[Any], idle_timeout: Interval, clock: RelativeClock
    ) -> None:
        self._watermarks = watermarks
        self._idleness_timer = IdlenessTimer(clock, timeout_ms(idle_timeout, "idle_timeout"))
        self._is_idle_now = False

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._watermarks.on_event(event, event_timestamp, output)
        self._idleness_timer.activity()
        self._is_idle_now = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if not self._idleness_timer.check_if_idle():
            self._watermarks.on_periodic_emit(output)
        elif not self._is_idle_now:
            output.mark_idle()
            self._is_idle_now = True

    @property
    def start_of_inactivity_ms(self) -> int:
        """Time at which inactivity began, by the clock; 0 if it has not."""
        return self._idleness_timer.state[1]

    def snapshot_state(self) -> tuple[Any, bool, int, bool]:
        return self._watermarks.snapshot_state(), *self._idleness_timer.state, self._is_idle_now

    def restore_state(self, state: tuple[Any, bool, int, bool]) -> None:
        within, is_active, since_ms, self._is_idle_now = state
        self._watermarks.restore_state(within)
        self._idleness_timer.restore((is_active, since_ms))

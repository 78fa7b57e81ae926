"""Idleness detection around a watermark generator."""

from collections.abc import Callable
from typing import Any

from flinkcore.common.time import Duration, Time, timeout_ms
from flinkcore.common.watermark_generator import WatermarkGenerator, WatermarkOutput

RelativeClock = Callable[[], int]
"""Gives a time in ms that never goes back; only differences count, so it may start anywhere."""


class IdlenessTimer:
    """Tells whether there was no activity for longer than a timeout.

    Parameters
    ----------
    clock : callable
        Gives the time in ms.
    max_idle_time_ms : int

    Notes
    -----
    Flink's ``WatermarksWithIdleness.IdlenessTimer``. As there, 0 stands for "the count has not begun": a check
    at which the clock shows 0 does not begin it. Deliberate difference: milliseconds instead of nanoseconds.
    """

    def __init__(self, clock: RelativeClock, max_idle_time_ms: int) -> None:
        self._clock = clock
        self._max_idle_time_ms = max_idle_time_ms
        self._active = False
        self._start_of_inactivity_ms = 0

    def activity(self) -> None:
        """Note activity."""
        self._active = True

    @property
    def state(self) -> tuple[bool, int]:
        """Whether there was activity since the last check, and when inactivity began."""
        return self._active, self._start_of_inactivity_ms

    def restore(self, state: tuple[bool, int]) -> None:
        """Go on from what another one has noted, on the same clock."""
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
    """Marks the output idle, once, when no event has come for longer than a timeout.

    The time counts from the first periodic call that finds no event since the one before. While idle, the
    generator within gets no periodic calls; an event makes it go on, and its next watermark that is news marks
    the output active.

    Parameters
    ----------
    watermarks : WatermarkGenerator
        Makes the watermarks.
    idle_timeout : Duration or Time
        At least 1 ms; counted in whole milliseconds.
    clock : callable
        Gives the time in ms, such as ``ProcessingTimeService.current_processing_time``.

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
        self, watermarks: WatermarkGenerator[Any], idle_timeout: Duration | Time, clock: RelativeClock
    ) -> None:
        self._watermarks = watermarks
        self._idleness_timer = IdlenessTimer(clock, timeout_ms(idle_timeout, "idle_timeout"))
        self._is_idle_now = False

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Pass the event on, and note activity."""
        self._watermarks.on_event(event, event_timestamp, output)
        self._idleness_timer.activity()
        self._is_idle_now = False

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Mark the output idle if it has just become so, else pass the call on."""
        if not self._idleness_timer.check_if_idle():
            self._watermarks.on_periodic_emit(output)
        elif not self._is_idle_now:
            output.mark_idle()
            self._is_idle_now = True

    @property
    def start_of_inactivity_ms(self) -> int:
        """When the count of idle time has begun, by the clock; 0: it has not."""
        return self._idleness_timer.state[1]

    def snapshot_state(self) -> tuple[Any, bool, int, bool]:
        """Return what the generator within holds, and what is known of its idleness."""
        return self._watermarks.snapshot_state(), *self._idleness_timer.state, self._is_idle_now

    def restore_state(self, state: tuple[Any, bool, int, bool]) -> None:
        """Go on from what another one held, on the same clock."""
        within, is_active, since_ms, self._is_idle_now = state
        self._watermarks.restore_state(within)
        self._idleness_timer.restore((is_active, since_ms))

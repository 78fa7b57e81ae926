"""A clock that can be stopped while input could not be active."""

from flinkcore.common.watermark_generators import RelativeClock
from flinkcore.errors import LifecycleError


class PausableRelativeClock:
    """Time that does not pass while the clock is paused, so that who may not read does not become idle.

    Pauses nest: the clock goes on when each has ended.

    Parameters
    ----------
    base_clock : callable
        Gives the time in ms.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.util.PausableRelativeClock``.
    """

    def __init__(self, base_clock: RelativeClock) -> None:
        self._base_clock = base_clock
        self._blocked_ms = 0
        self._blocked_since_ms = 0
        self._pauses = 0

    def relative_time_ms(self) -> int:
        """The time of the base clock in ms, less what passed in pauses."""
        if self._pauses:
            return self._blocked_since_ms - self._blocked_ms
        return self._base_clock() - self._blocked_ms

    def pause(self) -> None:
        """Stop the clock, or note that it is stopped for one more reason."""
        if self._pauses == 0:
            self._blocked_since_ms = self._base_clock()
        self._pauses += 1

    def un_pause(self) -> None:
        """End one pause.

        Raises
        ------
        LifecycleError
            If the clock is not paused.
        """
        if self._pauses == 0:
            raise LifecycleError("the clock is not paused: each un_pause belongs to one pause")
        self._pauses -= 1
        if self._pauses == 0:
            self._blocked_ms += self._base_clock() - self._blocked_since_ms

"""Timers that register further timers without end when the log has ended."""

from collections import defaultdict
from typing import Any, Final

from flinkcore._internal.show.times import dated
from flinkcore.errors import UserCodeError

MANY: Final = 1_000_000

_ADVICE: Final = (
    "Register no timer while ctx.timer_service().current_watermark() is 2**63 - 1, or execute the replay with "
    "stop_with_checkpoint, which lets timers wait"
)


class UnendingTimers:
    """Fails a job whose timers register further timers without end under the maximum watermark.

    A warning is logged once a million timers more than were pending have fired. From then on a key may fire another
    million.

    Parameters
    ----------
    waiting : int
        The number of timers that were pending when the watermark became the maximum.

    Notes
    -----
    Beyond Flink, whose task hangs.
    """

    def __init__(self, waiting: int) -> None:
        self._most = waiting + MANY
        self._fired = 0
        self._of_keys: defaultdict[int, int] = defaultdict(int)

    def count(self, key_id: int, key: Any, timestamp_ms: int, fired: int = 1) -> None:
        """Count timers that are about to fire.

        Parameters
        ----------
        key_id : int
        key : object
            The key of the first of them, and its id.
        timestamp_ms : int
            The time of the first of them, in ms since the epoch.
        fired : int
            Number of timers, each of another key.

        Raises
        ------
        UserCodeError
            If the key has fired too many.
        """
        before, self._fired = self._fired, self._fired + fired
        if self._fired < self._most:
            return
        self._of_keys[key_id] += 1
        if before < self._most:
            import logging  # programs start sooner without it

            logging.getLogger(__name__).warning(
                "The end of the log has fired %s timers, most of them registered by timers that it fired; this one is "
                "of the key %r at %s. Do they ever end? %s.",
                f"{self._fired:,}",
                key,
                dated(timestamp_ms, " ms"),
                _ADVICE,
            )
        if self._of_keys[key_id] > MANY:
            raise UserCodeError(
                f"timers of the key {key!r} register further ones without end: {self._of_keys[key_id]:,} have fired at "
                f"the end of the log, the last one at {dated(timestamp_ms, ' ms')}. {_ADVICE}"
            )

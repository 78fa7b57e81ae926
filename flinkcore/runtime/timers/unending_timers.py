"""Timers that register themselves again and again at the end of a log."""

import logging
from collections import defaultdict
from typing import Any, Final

from flinkcore.errors import UserCodeError

_LOG = logging.getLogger(__name__)

MANY: Final = 1_000_000

_ADVICE: Final = (
    "Register no timer while ctx.timer_service().current_watermark() is 2**63 - 1, or execute the replay with "
    "stop_with_checkpoint, which lets timers wait"
)


class UnendingTimers:
    """Ends callbacks that register timers without end while the maximum watermark fires them all.

    A warning is logged after a million timers more than had waited; then a key may have as many for itself.

    Parameters
    ----------
    waiting : int
        How many timers there were when the watermark became the maximum.

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
        key_id, key
            Of the first of them.
        timestamp_ms
            What it was registered for.
        fired
            How many there are, of as many keys.

        Raises
        ------
        UserCodeError
            If the key has had too many.
        """
        before, self._fired = self._fired, self._fired + fired
        if self._fired < self._most:
            return
        self._of_keys[key_id] += 1
        if before < self._most:
            _LOG.warning(
                "The end of the log has fired %s timers, most of them registered by timers that it fired; this one is "
                "of the key %r at %d ms. Do they ever end? %s.",
                f"{self._fired:,}",
                key,
                timestamp_ms,
                _ADVICE,
            )
        if self._of_keys[key_id] > MANY:
            raise UserCodeError(
                f"timers of the key {key!r} register further ones without end: {self._of_keys[key_id]:,} have fired at "
                f"the end of the log, the last one at {timestamp_ms} ms. {_ADVICE}"
            )

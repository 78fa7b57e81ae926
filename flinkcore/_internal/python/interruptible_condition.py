"""A condition that the thread of a user's program waits for."""

from __future__ import annotations

from threading import Condition
from typing import Final

SIGNAL_SECONDS: Final = 0.5
"""Longest time until a signal is seen."""


class InterruptibleCondition(Condition):
    """Condition whose waits Ctrl-C ends, even if a library, such as polars, restarts them after signals.

    Python sees such a signal only when the wait ends. So waits end by themselves, too, and who waits has to look again
    at what was waited for; `wait_for` does.
    """

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until notified, for a timeout in seconds, but for no more than `SIGNAL_SECONDS`."""
        return super().wait(SIGNAL_SECONDS if timeout is None else min(timeout, SIGNAL_SECONDS))

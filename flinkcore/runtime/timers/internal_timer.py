"""A timer as its operator gets it, and what an operator does with one."""

from typing import Any, NamedTuple, Protocol


class InternalTimer(NamedTuple):
    """A timer that fires.

    Parameters
    ----------
    timestamp_ms : int
        What it was registered for.
    key : object
        The key it belongs to, which is the current key now.
    namespace : object
        A window, say; None is Flink's VoidNamespace.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.InternalTimer``.
    """

    timestamp_ms: int
    key: Any
    namespace: Any


class Triggerable(Protocol):
    """What timers call when they fire, with the timer's key as the current key.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.Triggerable``.
    """

    def on_event_time(self, timer: InternalTimer) -> None:
        """Handle an event-time timer."""

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Handle a processing-time timer."""

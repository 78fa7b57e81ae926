"""Removes expired values a few at a time."""

from collections.abc import Callable

from flinkcore.runtime.state.stamped_values import unexpired_or_none
from flinkcore.runtime.state.state_table import StateTable


class IncrementalCleanup:
    """Looks at some places of a table at each call, round and round.

    Parameters
    ----------
    table : StateTable
        Of a state with a time to live.
    cleanup_size : int
        How many places to look at.
    ttl_ms : int
    now : callable
        Returns the current time in ms.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.ttl.TtlIncrementalCleanup``; keys that have nothing in the state
    count, so that a call takes no longer in a state that few keys use.
    """

    __slots__ = ("_cleanup_size", "_now", "_places", "_table", "_ttl_ms")

    def __init__(self, table: StateTable, cleanup_size: int, ttl_ms: int, now: Callable[[], int]) -> None:
        self._table = table
        self._cleanup_size = cleanup_size
        self._ttl_ms = ttl_ms
        self._now = now
        self._places = table.places()

    def __call__(self) -> None:
        """Look at the next places, and remove what has expired there."""
        table = self._table
        oldest_ms = self._now() - self._ttl_ms
        for _ in range(self._cleanup_size):
            place = next(self._places, None)
            if place is None:
                self._places = table.places()
                return
            held = table.get(*place)
            if held is None:
                continue
            alive = unexpired_or_none(table.type, held, oldest_ms)
            if alive is None:
                table.remove(*place)
            elif alive is not held:
                table.put(*place, alive)

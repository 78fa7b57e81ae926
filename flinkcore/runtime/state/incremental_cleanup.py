"""Removes expired values a few at a time."""

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Any

from flinkcore.datastream.state import StateDescriptor
from flinkcore.runtime.state.stamped_values import unexpired_or_none
from flinkcore.runtime.state.state_table import VOID_NAMESPACE, StateTable


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

    __slots__ = ("_cleanup_size", "_in_windows", "_next_key_id", "_now", "_one_value", "_table", "_ttl_ms")

    def __init__(self, table: StateTable, cleanup_size: int, ttl_ms: int, now: Callable[[], int]) -> None:
        self._table = table
        self._one_value = table.type not in (StateDescriptor.Type.LIST, StateDescriptor.Type.MAP)
        self._cleanup_size = cleanup_size
        self._ttl_ms = ttl_ms
        self._now = now
        self._next_key_id = 0
        self._in_windows: Iterator[tuple[Hashable, int]] = iter(())

    def __call__(self) -> None:
        """Look at the next places, and remove what has expired there."""
        oldest_ms = self._now() - self._ttl_ms
        first = self._next_key_id
        some = self._table.void_values[first : first + self._cleanup_size]
        if not some:
            self._clean_windows(oldest_ms)
            return
        self._next_key_id = first + len(some)
        one_value = self._one_value
        for key_id, held in enumerate(some, first):
            # What most places are, nothing or one living value, is to cost next to nothing.
            if held is not None and not (one_value and held[1] > oldest_ms):
                self._clean(VOID_NAMESPACE, key_id, held, oldest_ms)

    def _clean_windows(self, oldest_ms: int) -> None:
        table = self._table
        places = list(islice(self._in_windows, self._cleanup_size))
        for namespace, key_id in places:
            held = table.get(namespace, key_id)
            if held is not None:
                self._clean(namespace, key_id, held, oldest_ms)
        if not places:
            self._next_key_id = 0
            self._in_windows = table.places_in_windows()

    def _clean(self, namespace: Hashable, key_id: int, held: Any, oldest_ms: int) -> None:
        alive = unexpired_or_none(self._table.type, held, oldest_ms)
        if alive is None:
            self._table.remove(namespace, key_id)
        elif alive is not held:
            self._table.put(namespace, key_id, alive)

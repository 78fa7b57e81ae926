"""An estimate of the memory of the state and timers of a function that is called row by row."""

from __future__ import annotations

from typing import Final

from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers import InternalTimeServiceManager

TIMER_BYTES: Final = 100
"""Memory of a timer with its place in the index of its key group, about."""

GROWTH_SHARE: Final = 8
"""The memory is counted again once as many rows have come as an eighth of the entries that there are."""


class RowStateMemory:
    """Counts again as the state may have grown: entries are counted, and the sizes of some of them measured.

    Parameters
    ----------
    backend
        Keyed state of the operator.
    timers
        Its timers.

    Attributes
    ----------
    entries
        Number of keys and entries when they were counted last.
    """

    def __init__(self, backend: KeyedStateBackend, timers: InternalTimeServiceManager) -> None:
        self._backend = backend
        self._timers = timers
        self.entries = self._rows = self._bytes = 0

    def count(self, rows: int) -> int:
        """Return about how many bytes state and timers take, once so many rows have come."""
        if (rows - self._rows) * GROWTH_SHARE >= self.entries:
            self._rows = rows
            n_timers = self._timers.num_event_time_timers() + self._timers.num_processing_time_timers()
            self.entries, n_bytes = self._backend.memory()
            self._bytes = n_bytes + n_timers * TIMER_BYTES
        return self._bytes

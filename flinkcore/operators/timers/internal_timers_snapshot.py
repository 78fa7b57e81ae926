"""The timers of a service at one moment, apart from the service and its key ids."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from flinkcore._native.timers import TimerColumns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class InternalTimersSnapshot:
    """Timers of some key groups, in columns.

    Parameters
    ----------
    keys : sequence of object
        Each once.
    namespaces : sequence of object
        Each once; None is the void namespace.
    event_time_timers, processing_time_timers : TimerColumns
        In order of registration; their columns `keys` and `namespaces` are indexes into the sequences.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.InternalTimersSnapshot``, which holds one key group.
    """

    keys: Sequence[Hashable]
    namespaces: Sequence[Hashable]
    event_time_timers: TimerColumns
    processing_time_timers: TimerColumns

    def of_key_groups(self, first: int, last: int) -> InternalTimersSnapshot:
        """Return the timers of the key groups first to last, inclusive."""
        if all(
            ((first <= timers.key_groups) & (timers.key_groups <= last)).all()
            for timers in (self.event_time_timers, self.processing_time_timers)
        ):
            return self
        return InternalTimersSnapshot(
            self.keys,
            self.namespaces,
            _of_key_groups(self.event_time_timers, first, last),
            _of_key_groups(self.processing_time_timers, first, last),
        ).with_used_names()

    def with_used_names(self) -> InternalTimersSnapshot:
        """Return the same timers, without the keys and namespaces that none of them has."""
        domains = (self.event_time_timers, self.processing_time_timers)
        keys, new_keys = _used(self.keys, [timers.keys for timers in domains])
        namespaces, new_namespaces = _used(self.namespaces, [timers.namespaces for timers in domains])
        if len(keys) == len(self.keys) and len(namespaces) == len(self.namespaces):
            return InternalTimersSnapshot(keys, namespaces, *domains)
        event_time, processing_time = (
            timers._replace(keys=new_keys[timers.keys], namespaces=new_namespaces[timers.namespaces])
            for timers in domains
        )
        return InternalTimersSnapshot(keys, namespaces, event_time, processing_time)


def _used(
    names: Sequence[Hashable], indexes: list[npt.NDArray[np.int64]]
) -> tuple[Sequence[Hashable], npt.NDArray[np.int64]]:
    """Return the names that are used, and by index of a name its index among them."""
    import numpy as np

    is_used = np.zeros(len(names), np.bool_)
    for used in indexes:
        is_used[used] = True
    if is_used.all():
        return names, np.arange(len(names))
    return list(compress(names, is_used.tolist())), np.cumsum(is_used, dtype=np.int64) - 1


def _of_key_groups(timers: TimerColumns, first: int, last: int) -> TimerColumns:
    wanted = (timers.key_groups >= first) & (timers.key_groups <= last)
    return TimerColumns(
        timers.timestamps_ms[wanted],
        timers.keys[wanted],
        timers.key_groups[wanted],
        timers.namespaces[wanted],
    )

"""The timers of a service at one moment, apart from the service and its key ids."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from flinkcore._native.timers import TimerColumns


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

    def of_key_groups(self, first: int, last: int) -> "InternalTimersSnapshot":
        """Return the timers of the key groups first to last, inclusive."""
        return InternalTimersSnapshot(
            self.keys,
            self.namespaces,
            _of_key_groups(self.event_time_timers, first, last),
            _of_key_groups(self.processing_time_timers, first, last),
        ).with_used_names()

    def with_used_names(self) -> "InternalTimersSnapshot":
        """Return the same timers, with those keys and namespaces only that they have."""
        domains = (self.event_time_timers, self.processing_time_timers)
        n_event_time = len(domains[0].keys)
        used_keys, key_indexes = np.unique(
            np.concatenate([timers.keys for timers in domains]), return_inverse=True
        )
        used_namespaces, namespace_indexes = np.unique(
            np.concatenate([timers.namespaces for timers in domains]), return_inverse=True
        )
        event_time, processing_time = (
            timers._replace(keys=key_indexes[part], namespaces=namespace_indexes[part])
            for timers, part in zip(domains, (slice(n_event_time), slice(n_event_time, None)), strict=True)
        )
        return InternalTimersSnapshot(
            [self.keys[i] for i in used_keys.tolist()],
            [self.namespaces[i] for i in used_namespaces.tolist()],
            event_time,
            processing_time,
        )


def _of_key_groups(timers: TimerColumns, first: int, last: int) -> TimerColumns:
    wanted = (timers.key_groups >= first) & (timers.key_groups <= last)
    return TimerColumns(
        timers.timestamps_ms[wanted],
        timers.keys[wanted],
        timers.key_groups[wanted],
        timers.namespaces[wanted],
    )

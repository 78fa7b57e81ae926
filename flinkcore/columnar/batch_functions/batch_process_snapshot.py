"""State and timers of a function over batches at one moment, apart from the dense ids of their keys.

They are those of a function that is called for each element: a value per key in each state, and the timers
"user-timers".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_timers import KeyTimers
from flinkcore._native.timers import TimerColumns
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.batch_functions.batch_process_calls import BatchProcessCalls
from flinkcore.columnar.batch_functions.column_states import KeyedColumns
from flinkcore.datastream.state import StateDescriptor
from flinkcore.errors import SchemaError
from flinkcore.operators.function_calls import TIMER_SERVICE_NAME
from flinkcore.operators.keys.element_rows import exact_keys, key_columns
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.state import KeyedStateSnapshot
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot


class BatchProcessSnapshots:
    """Takes and restores what a function holds.

    Parameters
    ----------
    calls : BatchProcessCalls
    key_fields : sequence of pyarrow.Field
        The key columns.
    key_group_range : (int, int)
        First and last key group of the partition, inclusive.
    """

    def __init__(
        self, calls: BatchProcessCalls, key_fields: Sequence[pa.Field], key_group_range: tuple[int, int]
    ) -> None:
        self._calls = calls
        self._fields = list(key_fields)
        self._range = key_group_range
        self.not_asked_for: dict[str, KeyedStateSnapshot] = {}

    def snapshot(self, watermark_ms: int) -> OperatorSnapshot:
        """Return all that it holds.

        Parameters
        ----------
        watermark_ms : int
            The watermark in force, which all keys have seen: nothing is due.
        """
        ids = np.arange(self._calls.n_keys)
        keys = exact_keys(self._calls.keys(ids), [field.name for field in self._fields])
        groups = self._calls.key_groups(ids)
        timers = InternalTimersSnapshot(
            keys,
            [None],
            _timer_columns(self._calls.event_time_timers, groups),
            _timer_columns(self._calls.processing_time_timers, groups),
        ).with_used_names()
        states = {state.name: _state(state, keys, groups) for state in self._calls.states.all()}
        states |= self.not_asked_for
        return OperatorSnapshot(self._range, watermark_ms, {TIMER_SERVICE_NAME: timers}, states)

    def restore(self, snapshots: Iterable[OperatorSnapshot], watermark_ms: int, clock_ms: int) -> None:
        """Take what belongs to the key groups of this partition; before the first element, after `open`.

        States that the function does not ask for stay, and are in the next snapshot.

        Parameters
        ----------
        snapshots : iterable of OperatorSnapshot
            May be those of another parallelism, but of the same number of key groups.
        watermark_ms, clock_ms : int
            Watermark and clock that all keys have seen.

        Raises
        ------
        SchemaError
            If keys or values have other types now.
        """
        self._calls.cuts.start_from(watermark_ms, clock_ms)
        for snapshot in snapshots:
            for name, entries in snapshot.keyed_state.items():
                self._restore_state(name, entries.of_key_groups(*self._range))
            for timers in snapshot.timers.values():
                own = timers.of_key_groups(*self._range)
                if any(namespace is not None for namespace in own.namespaces):
                    raise SchemaError("timers of the checkpoint are of windows, and the function has none")
                ids = self._ids(own.keys)
                self._restore_timers(self._calls.event_time_timers, own.event_time_timers, own.keys, ids)
                self._restore_timers(
                    self._calls.processing_time_timers, own.processing_time_timers, own.keys, ids
                )

    def _restore_timers(
        self, heap: KeyTimers, timers: TimerColumns, keys: Sequence[Any], ids: Int64s
    ) -> None:
        of_timers = ids[timers.keys]
        self._refuse_other_key_groups(
            of_timers, [keys[key] for key in timers.keys.tolist()], timers.key_groups
        )
        pairs = np.stack((of_timers, timers.timestamps_ms), axis=1)
        if len(np.unique(pairs, axis=0)) < len(pairs):
            raise SchemaError("a timer is twice in the checkpoint")
        heap.register(of_timers, timers.timestamps_ms)

    def _restore_state(self, name: str, entries: KeyedStateSnapshot) -> None:
        state = self._calls.states.named(name)
        if state is None:
            before = self.not_asked_for.get(name)
            self.not_asked_for[name] = entries if before is None else before.followed_by(entries)
            return
        if entries.type is not state.kind or entries.ttl_time is not None or entries.is_serialized:
            what = "plain value" if state.kind is StateDescriptor.Type.VALUE else "list of rows"
            raise SchemaError(
                f"the state {state.name!r} of the checkpoint is not a {what} per key, as it is in this job. "
                "Give it another name here"
            )
        ids = self._ids(entries.keys)
        self._refuse_other_key_groups(ids, entries.keys, entries.key_groups)
        if len(np.unique(ids)) < len(ids) or any(namespace is not None for namespace in entries.namespaces):
            raise SchemaError(f"the state {state.name!r} of the checkpoint has a key twice, or of a window")
        if len(ids):
            state.restore(ids, entries.values)

    def _ids(self, keys: Sequence[Any]) -> Int64s:
        return self._calls.key_ids(key_columns(keys, self._fields))

    def _refuse_other_key_groups(self, ids: Int64s, keys: Sequence[Any], groups: npt.NDArray[Any]) -> None:
        """Accept key groups, one for each id, if they are those of their keys."""
        wrong = np.flatnonzero(self._calls.key_groups(ids) != groups)
        if len(wrong):
            row = int(wrong[0])
            raise SchemaError(
                f"the key {shown(keys[row])} of the checkpoint is in the key group {groups[row]}, which is not its own"
            )


def _timer_columns(timers: KeyTimers, groups: npt.NDArray[np.int32]) -> TimerColumns:
    keys, times_ms = timers.timers()
    return TimerColumns(times_ms, keys, groups[keys], np.zeros(len(keys), np.int64))


def _state(state: KeyedColumns, keys: list[Any], groups: npt.NDArray[np.int32]) -> KeyedStateSnapshot:
    ids, values = state.kept()
    kept = [keys[key_id] for key_id in ids.tolist()]
    return KeyedStateSnapshot(
        state.kind, None, kept, groups[ids].astype(np.int64), [None] * len(kept), values
    )

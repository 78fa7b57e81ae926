"""State and timers of a function over batches as tables of some keys each, for state that spills.

A row for each key. Columns: `key_group`, the keys as `key.NAME`; for each state a column with its number, which has
plain values as their bytes, Python objects as a checkpoint encodes them, and lists of rows as lists; the times of the
timers, as lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_timers import KeyTimers
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.state_tables import keyed_state_of_table, keyed_state_to_table
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_encoding import encode
from flinkcore.checkpoint.value_shape import Shape
from flinkcore.columnar.batch_functions.aggregate_state import NativeAggregateState
from flinkcore.columnar.batch_functions.batch_process_calls import BatchProcessCalls
from flinkcore.columnar.batch_functions.column_states import ArrowListState, NumpyColumnState
from flinkcore.operators.state import KeyedStateSnapshot

PIECE_KEYS: Final = 1 << 15
"""Most keys of a table."""

EVENT_TIME, PROCESSING_TIME = "event_time", "processing_time"


class BatchStateTables:
    """Writes the state of a function to tables, and restores it from them.

    Parameters
    ----------
    calls : BatchProcessCalls
    not_asked_for : dict of str to KeyedStateSnapshot
        States of a checkpoint that the function does not use, by name.
    """

    def __init__(self, calls: BatchProcessCalls, not_asked_for: dict[str, KeyedStateSnapshot]) -> None:
        self._calls = calls
        self._not_asked_for = not_asked_for

    def tables(self) -> Iterator[SnapshotTable]:
        """Yield the state of all keys that have any; nothing is due.

        Raises
        ------
        SchemaError
            If no column can hold a Python object of a state.
        """
        event_time = _timers_by_key(self._calls.event_time_timers)
        processing_time = _timers_by_key(self._calls.processing_time_timers)
        states = [
            state.as_lists() if isinstance(state, NativeAggregateState) else state
            for state in self._calls.states.all()
        ]
        for start in range(0, self._calls.n_keys, PIECE_KEYS):
            ids = np.arange(start, min(start + PIECE_KEYS, self._calls.n_keys))
            columns: dict[str, pa.Array] = {"key_group": pa.array(self._calls.key_groups(ids), pa.int32())}
            keys = self._calls.known_keys(start, start + len(ids))
            columns |= {f"key.{name}": keys.column(name) for name in keys.schema.names}
            shapes: dict[str, Shape] = {}
            for number, state in enumerate(states):
                name = str(number)
                if isinstance(state, ArrowListState):
                    columns[name] = _lists_of_rows(state, ids)
                    continue
                assert isinstance(state, NumpyColumnState)
                if state.dtype.hasobject:
                    values = state.array[ids].tolist()
                    columns[name], shapes[name] = encode(values, f"the state {state.name!r}")
                else:
                    columns[name] = _bytes_of(state.array[ids])
            columns[EVENT_TIME] = _timers_of(event_time, ids)
            columns[PROCESSING_TIME] = _timers_of(processing_time, ids)
            batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
            yield SnapshotTable(TableKind.KEYED_STATE, "", CheckpointTable(batch, shapes, {}))

        for name, entries in self._not_asked_for.items():
            yield SnapshotTable(TableKind.KEYED_STATE, name, keyed_state_to_table(name, entries))

    def restore(self, tables: Iterator[SnapshotTable], watermark_ms: int, clock_ms: int) -> None:
        """Take the state of a function that was suspended; before the first element, after `open`.

        Parameters
        ----------
        tables : iterator of SnapshotTable
            From `tables`, with the rows of some key groups.
        watermark_ms, clock_ms : int
            Watermark and clock that all keys have seen.
        """
        self._calls.cuts.start_from(watermark_ms, clock_ms)
        for _, name, table in tables:
            if name:
                self._not_asked_for[name] = keyed_state_of_table(table)
                continue
            batch = table.batch
            names = [key for key in batch.schema.names if key.startswith("key.")]
            keys = batch.select(names).rename_columns([key.removeprefix("key.") for key in names])
            ids = self._calls.key_ids(keys)
            for number, state in enumerate(self._calls.states.all()):
                column = batch.column(str(number))
                if isinstance(state, ArrowListState | NativeAggregateState):
                    lengths, elements = _flat(column)
                    rows, of_rows = pa.RecordBatch.from_struct_array(elements), np.repeat(ids, lengths)
                    if isinstance(state, ArrowListState):
                        state.add(of_rows, rows)
                    else:
                        state.restore_rows(of_rows, rows)
                    continue
                assert isinstance(state, NumpyColumnState)
                if state.dtype.hasobject:
                    state.restore(ids, table.values(str(number)))
                else:
                    state[ids] = _of_bytes(column, state)
            for times_name, timers in (
                (EVENT_TIME, self._calls.event_time_timers),
                (PROCESSING_TIME, self._calls.processing_time_timers),
            ):
                lengths, times = _flat(batch.column(times_name))
                timers.register(np.repeat(ids, lengths), times.to_numpy())


def _bytes_of(values: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(
        pa.binary(values.dtype.itemsize), len(values), [None, pa.py_buffer(values.tobytes())]
    )


def _of_bytes(column: pa.Array, state: NumpyColumnState) -> npt.NDArray[Any]:
    return np.frombuffer(column.buffers()[1], state.dtype, len(column), column.offset * state.dtype.itemsize)


def _lists_of_rows(state: ArrowListState, ids: Int64s) -> pa.Array:
    rows, _ = state.get(ids)
    elements = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
    return _lists(state.lengths(ids), elements)


def _lists(lengths: Int64s, elements: pa.Array) -> pa.Array:
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return pa.LargeListArray.from_arrays(pa.array(offsets), elements)


def _flat(lists: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the lengths of lists, and their elements one after the other."""
    lengths: Int64s = np.diff(lists.offsets.to_numpy(zero_copy_only=False))
    return lengths, lists.flatten()


def _timers_by_key(timers: KeyTimers) -> tuple[Int64s, Int64s]:
    keys, times_ms = timers.timers()
    order = np.argsort(keys, kind="stable")
    return keys[order], times_ms[order]


def _timers_of(timers: tuple[Int64s, Int64s], ids: Int64s) -> pa.Array:
    keys, times_ms = timers
    bounds = np.searchsorted(keys, np.append(ids, ids[-1] + 1))
    return _lists(np.diff(bounds), pa.array(times_ms[bounds[0] : bounds[-1]]))

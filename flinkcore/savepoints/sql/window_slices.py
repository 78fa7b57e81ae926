"""Slices that give open windows which overlap, where Flink keeps slices and a replay has kept each window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.aggregates import Accumulators
from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
from flinkcore.columnar.relational.accumulator_columns import restore_accumulators
from flinkcore.errors import UnsupportedOperationError
from flinkcore.savepoints.sql.row_layout import key_columns, place_ids
from flinkcore.sql.plan.flink_state import CUMULATE, PRESENT, FlinkState, StateWindows

_Bools = npt.NDArray[np.bool_]
_LIMB_BITS: Final = 32
_N_LIMBS: Final = 6
"""Parts of 32 bits of a sum of decimals, of which native aggregates keep 192 bits."""


def require_divisible(contents: AggregateContents) -> None:
    """Raise an error if windows with these aggregates do not say what may be in their slices.

    Raises
    ------
    UnsupportedOperationError
        If one is a sum, or a least or greatest value, of floats: sums are rounded, and NaN only counts if it is first.
    """
    for name, function, column, *_ in contents.aggregates:
        of_floats = column is not None and pa.types.is_floating(contents.columns.field(column).type)
        if function in ("count", "count_distinct") or (function in ("sum", "min", "max") and not of_floats):
            continue
        raise UnsupportedOperationError(
            f"{name.partition('#')[0]} of floats is kept by window, where Flink keeps it by slice, and windows do not "
            "say what is in a slice. CAST its argument to DECIMAL, or take TUMBLE. If the job began with a savepoint, "
            "replay from before it"
        )


def slices_of_windows(
    state: FlinkState, batch: pa.RecordBatch, contents: AggregateContents, watermark_ms: int
) -> pa.RecordBatch:
    """Return slices whose merges are the open windows of HOP or CUMULATE.

    Later rows are only added to slices, so that any slices will do that give each open window. Counts and sums are
    differences of windows. A least or greatest value may be in each slice of whose windows none exceeds it. A distinct
    value is in as few slices as cover the windows that have it, and in no slice of a window without it.

    Parameters
    ----------
    state : FlinkState
        State of an aggregate over windows that are not kept by window in Flink.
    batch : pyarrow.RecordBatch
        Table of a checkpoint with a row for each open window, of keys and parts of the aggregates.
    contents : AggregateContents
        Aggregates that `require_divisible` takes.
    watermark_ms : int
        Windows up to it have fired; ms since the epoch.

    Returns
    -------
    pyarrow.RecordBatch
        Table of the same columns with a row for each slice, ordered by key and time.

    Notes
    -----
    Slices are those of ``HoppingSliceAssigner`` and ``CumulativeSliceAssigner`` in Flink's ``SliceAssigners``, which
    ``SliceSharedWindowAggProcessor`` merges. Flink merges the slices of a cumulating window that have fired into its
    first one. Here these are in the first slice that has not fired.
    """
    assert state.windows is not None
    columns = key_columns(batch)
    ids = place_ids(*columns.values())[0] if columns else np.zeros(batch.num_rows, np.int64)
    ends = batch.column("window_end").to_numpy()
    order = np.lexsort((ends, ids))
    batch = batch.take(pa.array(order))
    runs = _Runs.of(state.windows, ids[order], ends[order], watermark_ms)
    parts: dict[str, pa.Array] = {}
    adds = np.zeros(batch.num_rows, np.bool_)
    n_rows = np.zeros(batch.num_rows, np.int64)
    for number, (_, function, *_) in enumerate(contents.aggregates):
        prefix = f"{number}."
        own = {name: batch.column(name) for name in batch.schema.names if name.startswith(prefix)}
        if function == "count_distinct":
            ((name, lists),) = own.items()
            own = {name: runs.distinct(lists)}
            adds |= pc.list_value_length(own[name]).to_numpy() > 0
        elif function in ("min", "max"):
            chosen = runs.extremes(_results(contents, number, batch), is_least=function == "min")
            own = {name: column.take(pa.array(chosen)) for name, column in own.items()}
            adds |= runs.changes(own) if runs.is_cumulative else False
        else:
            own = {name: _slice_sums(runs, name.removeprefix(prefix), column) for name, column in own.items()}
            adds |= runs.changes({name: batch.column(name) for name in own}) if runs.is_cumulative else False
            if function == "count":
                n_rows = np.maximum(n_rows, own[f"{prefix}words"].to_numpy().view(np.int64))
        parts |= own
    kept = runs.have_slices
    if runs.is_cumulative:
        kept = kept & adds
    elif not any(field.role == PRESENT for field in state.fields):
        # COUNT(*) is among the counts, and no other one is higher.
        kept = kept & ((n_rows > 0) | adds)
    slice_ends = runs.slice_ends
    bounds = {
        "window_start": pa.array(slice_ends - state.windows.slide_ms),
        "window_end": pa.array(slice_ends),
    }
    replaced = {**bounds, **parts}
    made = [replaced.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(made, batch.schema.names).filter(pa.array(kept))


@dataclass(frozen=True)
class _Runs:
    """Rows of open windows, ordered by key and end, in runs: consecutive windows that share slices.

    A row is also the slice whose last window is the row's window (HOP), or whose first window it is (CUMULATE).

    Attributes
    ----------
    windows : StateWindows
    ends : int64 array (n,)
        Ends of the windows, in ms since the epoch.
    first : int64 array (n,)
        First row of the run of each row.
    last : int64 array (n,)
        Last row of the run of each row.
    first_open_ms : int
        End of the first window that has not fired.
    """

    windows: StateWindows
    ends: Int64s
    first: Int64s
    last: Int64s
    first_open_ms: int

    @classmethod
    def of(cls, windows: StateWindows, ids: Int64s, ends: Int64s, watermark_ms: int) -> _Runs:
        slide_ms = windows.slide_ms
        breaks = (ids[1:] != ids[:-1]) | (ends[1:] - ends[:-1] != slide_ms)
        if windows.kind == CUMULATE:
            # A window that follows the last one of its start has the next start.
            breaks |= (ends[:-1] - windows.offset_ms) % windows.size_ms == 0
        first, last = _bounds(breaks, len(ends))
        earliest = int(ends.min()) if len(ends) else 0
        # Without a watermark it is the least of 64 bits: nothing has fired before the first window.
        fired_ms = max(watermark_ms, earliest - 2 * windows.size_ms)
        first_open_ms = earliest - (earliest - fired_ms - 2) // slide_ms * slide_ms
        return cls(windows, ends, first, last, first_open_ms)

    @property
    def is_cumulative(self) -> bool:
        """Return whether windows of one start cumulate."""
        return self.windows.kind == CUMULATE

    @property
    def slice_ends(self) -> Int64s:
        """Ends of the slices, in ms since the epoch."""
        return self.ends if self.is_cumulative else self.ends - (self.windows.size_ms - self.windows.slide_ms)

    @property
    def have_slices(self) -> _Bools:
        """Rows whose slices may have rows: all open windows of such a slice are there."""
        if self.is_cumulative:
            return np.ones(len(self.ends), np.bool_)
        since = np.arange(len(self.ends)) - self.first
        found: _Bools = (since >= self._n_slices - 1) | (self.ends[self.first] == self.first_open_ms)
        return found

    @property
    def _n_slices(self) -> int:
        return self.windows.size_ms // self.windows.slide_ms

    @cached_property
    def _levels(self) -> list[npt.NDArray[np.int64]]:
        """Rows by how many whole windows follow them in their run; without those that none follows."""
        level = (self.last - np.arange(len(self.last))) // self._n_slices
        order = np.argsort(level, kind="stable")
        n_levels = int(level.max()) + 1 if len(level) else 1
        return np.split(order, np.searchsorted(level[order], np.arange(1, n_levels)))[1:]

    def sums(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the sums of slices from sums of windows, row by row; integers wrap around.

        A HOP window differs from the next one by its first slice and the slice after its last one. That is the first
        one of a window which begins where this one ends.
        """
        found = values.copy()
        if self.is_cumulative:
            later = np.flatnonzero(np.arange(len(values)) > self.first)
            found[later] -= values[later - 1]
            return found
        earlier = np.flatnonzero(np.arange(len(values)) < self.last)
        found[earlier] -= values[earlier + 1]
        for rows in self._levels:
            found[rows] += found[rows + self._n_slices]
        return found

    def extremes(self, results: pa.Array, *, is_least: bool) -> Int64s:
        """Return the row from whose window each slice has its least or greatest value.

        It is the greatest of the least values of the slice's open windows, or null if one of them is.
        """
        rows = np.arange(len(results))
        if self.is_cumulative:
            return rows
        order = pc.array_sort_indices(results, order="ascending" if is_least else "descending").to_numpy()
        places = np.empty(len(order), np.int64)
        places[order] = rows
        found: Int64s = order[self._greatest(places)].astype(np.int64)
        return found

    def _greatest(self, values: Int64s) -> Int64s:
        """Return the greatest value among the open windows of each slice, from ranges that double."""
        length, rows = 1, np.arange(len(values))
        while length < self._n_slices:
            step = min(length, self._n_slices - length)
            both = np.flatnonzero(rows - step >= self.first)
            wider = values.copy()
            wider[both] = np.maximum(values[both], values[both - step])
            values, length = wider, length + step
        return values

    def least(self, values: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the least value among the open windows of each slice."""
        if self.is_cumulative:
            return values
        return (-self._greatest(-values.astype(np.int64))).astype(np.uint8)

    def changes(self, parts: dict[str, pa.Array]) -> _Bools:
        """Return which cumulating windows differ from the one before in a part of an aggregate, or have none."""
        rows = np.arange(len(self.ends))
        before = pa.array(np.maximum(rows - 1, 0))
        found: _Bools = rows == self.first
        for column in parts.values():
            found = found | pc.not_equal(column, column.take(before)).to_numpy(zero_copy_only=False)
        return found

    def distinct(self, lists: pa.Array) -> pa.Array:
        """Return the distinct values of slices from those of windows."""
        elements = lists.flatten()
        rows = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        codes = elements.dictionary_encode().indices.to_numpy()
        order = np.lexsort((rows, codes, self.first[rows]))
        rows, codes = rows[order], codes[order]
        breaks = (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1] + 1)
        if len(rows):
            breaks |= self.first[rows[1:]] != self.first[rows[:-1]]
        first, last = _bounds(breaks, len(rows))
        places = np.arange(len(rows))
        since, until, n = places - first, last - places, self._n_slices
        if self.is_cumulative:
            kept = since == 0
        else:
            is_cut = self.ends[rows[first]] == self.first_open_ms if len(rows) else np.zeros(0, np.bool_)
            kept = (until % n == 0) & (is_cut | (since >= n - 1)) | (~is_cut & (since == n - 1))
        order, rows = order[kept], rows[kept]
        by_row = np.argsort(rows, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(lists)))))
        return pa.LargeListArray.from_arrays(
            pa.array(offsets, pa.int64()), elements.take(pa.array(order[by_row]))
        )


def _bounds(breaks: _Bools, n: int) -> tuple[Int64s, Int64s]:
    """Return the first and the last row of the run of each row, from the rows that are the last ones of a run."""
    firsts = np.concatenate(([0], np.flatnonzero(breaks) + 1))[: n or 0]
    sizes = np.diff(np.append(firsts, n))
    return np.repeat(firsts, sizes), np.repeat(firsts + sizes - 1, sizes)


def _slice_sums(runs: _Runs, part: str, column: pa.Array) -> pa.Array:
    """Return a part of counts or sums of slices."""
    if part == "states":
        return pa.array(runs.least(column.to_numpy()))
    if part != "decimals":
        return pa.array(runs.sums(column.to_numpy().view(np.int64)).view(column.type.to_pandas_dtype()))
    width = column.type.byte_width
    content = np.frombuffer(column.buffers()[1], np.uint32, width // 4 * len(column), column.offset * width)
    limbs = content.reshape(-1, _N_LIMBS).astype(np.int64)
    sums = runs.sums(limbs)
    for number in range(_N_LIMBS - 1):
        sums[:, number + 1] += sums[:, number] >> _LIMB_BITS
    words = (sums & (2**_LIMB_BITS - 1)).astype(np.uint32)
    return pa.Array.from_buffers(column.type, len(column), [None, pa.py_buffer(words.tobytes())])


def _results(contents: AggregateContents, number: int, batch: pa.RecordBatch) -> pa.Array:
    """Return the results of one aggregate."""
    accumulators = Accumulators(contents.columns, [contents.aggregates[number][1:]])
    accumulators.reserve(batch.num_rows)
    entries = np.arange(batch.num_rows, dtype=np.uint32)
    prefix = f"{number}."
    own = {
        f"0.{name.removeprefix(prefix)}": batch.column(name)
        for name in batch.schema.names
        if name.startswith(prefix)
    }
    touched = batch.column("touched").to_numpy()
    restore_accumulators(
        accumulators, entries, touched, pa.RecordBatch.from_arrays(list(own.values()), list(own))
    )
    accumulators.emit(entries)
    return pa.array(accumulators.take()[0])

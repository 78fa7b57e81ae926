"""Rows in the bounded frames of keys, for a savepoint: Flink keeps these whole, and frames here their aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s

FRAME_ROWS: Final = "frame_rows"
"""Name of the table of rows in frames in the state of an operator."""

LEAST_ROWS: Final = 1 << 14
"""Rows that have left their frames are forgotten once all are twice as many as after the last time, and so many."""

KeyIds = npt.NDArray[np.uint32]


class RowsInFrames:
    """Numbers of the rows in frames, in the order in which they came up.

    Parameters
    ----------
    rows, range_ms : int or None
        Bound of the frames, in rows with the row itself or in ms; one of them.
    """

    def __init__(self, *, rows: int | None, range_ms: int | None) -> None:
        self._size, self._range_ms = rows, range_ms or 0
        self._parts = [(np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.int64))]
        self._n = self._n_pruned = 0

    def __len__(self) -> int:
        return self._n

    def add(self, rows: Int64s, key_ids: KeyIds, times: Int64s, cleared: tuple[Int64s, KeyIds]) -> None:
        """Take rows that have come up.

        Parameters
        ----------
        rows : int64 array (n,)
        key_ids : uint32 array (n,)
        times : int64 array (n,)
            In ms since the epoch, ascending for each key.
        cleared : pair of arrays
            Before how many of the rows a key is forgotten, ascending, and its id.
        """
        before, cleared_keys = cleared
        self.clear(cleared_keys)
        if len(before):
            known, last = np.unique(cleared_keys[::-1], return_index=True)
            place = np.minimum(np.searchsorted(known, key_ids), len(known) - 1)
            comes_after = np.arange(len(rows)) >= before[::-1][last][place]
            stays = (known[place] != key_ids) | comes_after
            rows, key_ids, times = rows[stays], key_ids[stays], times[stays]
        self._append(rows, key_ids, times)
        if self._n > max(LEAST_ROWS, 2 * self._n_pruned):
            self._prune()

    def clear(self, key_ids: KeyIds) -> None:
        """Forget the rows of keys."""
        if len(key_ids):
            self._keep(~np.isin(self._all()[1], key_ids))

    def _append(self, *columns: Any) -> None:
        if len(columns[0]):
            self._parts.append(columns)
            self._n += len(columns[0])

    def _all(self) -> tuple[Int64s, KeyIds, Int64s]:
        if len(self._parts) > 1:
            rows, keys, times = (np.concatenate(each) for each in zip(*self._parts, strict=True))
            self._parts = [(rows, keys, times)]
        return self._parts[0]

    def _keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        rows, keys, times = self._all()
        self._parts = [(rows[chosen], keys[chosen], times[chosen])]
        self._n = len(self._parts[0][0])

    def _prune(self) -> None:
        """Forget rows that have left their frames: when the last row of a key came up, as in Flink."""
        _, keys, times = self._all()
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        ends = np.searchsorted(sorted_keys, sorted_keys, side="right")
        is_in = np.empty(len(order), np.bool_)
        if self._size is not None:
            is_in[order] = ends - np.arange(len(order)) <= self._size
        else:
            is_in[order] = times[order[ends - 1]] - times[order] <= self._range_ms
        self._keep(is_in)
        self._n_pruned = self._n

    def live_rows(self) -> Int64s:
        """Return the numbers of the rows."""
        self._prune()
        return self._all()[0]

    def renumber(self, rows: Int64s) -> None:
        """Take new numbers for the rows that `live_rows` has returned."""
        _, keys, times = self._all()
        self._parts = [(rows, keys, times)]

    def memory_bytes(self) -> int:
        """Bytes of the numbers."""
        return 20 * self._n

    def snapshot(self) -> Mapping[str, Any]:
        """Return the rows by `key`, `row` and `timestamp`."""
        self._prune()
        rows, keys, times = self._all()
        return {"key": keys.astype(np.int64), "row": rows, "timestamp": times}

"""Elements and timers of many keys, as a function over batches gets them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.datastream import TimeDomain
from flinkcore.datastream.functions import KeyedBatchProcessFunction


class _KeyedRows:
    """Columns that elements and timers both have, as the function gets them: what it would write, others would read.

    Parameters
    ----------
    key_ids, timestamps, watermarks, processing_times : int64 array (n_rows,)
    """

    def __init__(
        self, key_ids: Int64s, timestamps: Int64s, watermarks: Int64s, processing_times: Int64s
    ) -> None:
        self._key_ids = _read_only(key_ids)
        self._timestamps = _read_only(timestamps)
        self._watermarks = _read_only(watermarks)
        self._processing_times = _read_only(processing_times)

    @property
    def key_ids(self) -> Int64s:
        return self._key_ids

    @property
    def timestamps(self) -> Int64s:
        return self._timestamps

    @property
    def watermarks(self) -> Int64s:
        return self._watermarks

    @property
    def processing_times(self) -> Int64s:
        return self._processing_times


class ElementColumns(_KeyedRows, KeyedBatchProcessFunction.ElementBatch):
    """Elements with what a replay knows of each.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        With all these elements; where `rows` selects them, also with others.
    key_ids, timestamps, watermarks, processing_times : int64 array (n_rows,)
    scratch : int array
        Has a row for every key id; its contents may be lost at any time.
    rows : int64 array (n_rows,), optional
        Rows of the batch.
    """

    def __init__(
        self,
        batch: pa.RecordBatch,
        key_ids: Int64s,
        timestamps: Int64s,
        watermarks: Int64s,
        processing_times: Int64s,
        scratch: npt.NDArray[np.intp],
        rows: Int64s | None = None,
    ) -> None:
        self._batch = batch
        self._rows = rows
        super().__init__(key_ids, timestamps, watermarks, processing_times)
        self._scratch = scratch

    @property
    def batch(self) -> pa.RecordBatch:
        """The columns of the stream; copied when they are asked for, where they are not all rows of a batch."""
        if self._rows is not None:
            self._batch, self._rows = self._batch.take(pa.array(self._rows)), None
        return self._batch

    def first_of_keys(self) -> npt.NDArray[np.intp]:
        rows = np.arange(len(self._key_ids))
        # If an index comes twice, numpy keeps the last value.
        self._scratch[self._key_ids[::-1]] = rows[::-1]
        return np.flatnonzero(self._scratch[self._key_ids] == rows)

    def last_of_keys(self) -> npt.NDArray[np.intp]:
        rows = np.arange(len(self._key_ids))
        self._scratch[self._key_ids] = rows
        return np.flatnonzero(self._scratch[self._key_ids] == rows)

    def grouped_by_key(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        rows = np.argsort(self._key_ids, kind="stable")
        ids = self._key_ids[rows]
        return rows, np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))

    def take(self, rows: Int64s) -> ElementColumns:
        """Return the given rows of elements that are all rows of their batch."""
        return ElementColumns(
            self._batch,
            self._key_ids[rows],
            self._timestamps[rows],
            self._watermarks[rows],
            self._processing_times[rows],
            self._scratch,
            rows,
        )


class FiredTimers(_KeyedRows, KeyedBatchProcessFunction.TimerBatch):
    """Timers that fire, one of each key.

    Parameters
    ----------
    time_domain : TimeDomain
    key_ids, timestamps, watermarks, processing_times : int64 array (n_rows,)
    keys : callable
        From key ids to the key columns.
    """

    def __init__(
        self,
        time_domain: TimeDomain,
        key_ids: Int64s,
        timestamps: Int64s,
        watermarks: Int64s,
        processing_times: Int64s,
        keys: Callable[[Any], pa.RecordBatch],
    ) -> None:
        self._time_domain = time_domain
        super().__init__(key_ids, timestamps, watermarks, processing_times)
        self._keys_of = keys

    @property
    def time_domain(self) -> TimeDomain:
        return self._time_domain

    @property
    def keys(self) -> pa.RecordBatch:
        return self._key_columns

    @cached_property
    def _key_columns(self) -> pa.RecordBatch:
        return self._keys_of(self._key_ids)


def _read_only(column: Int64s) -> Int64s:
    view = column.view()
    view.flags.writeable = False
    return view

"""Timers of the keys in a batch, registered and deleted as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_timers import BatchCuts, KeyTimers
from flinkcore.datastream import BatchTimerService, TimeDomain
from flinkcore.errors import DataError


class ColumnTimerService(BatchTimerService):
    """The timers of a function over batches.

    Parameters
    ----------
    event_time, processing_time : KeyTimers
    cuts : BatchCuts
        Knows which keys are in the current batch, and which timers their elements may register.
    """

    def __init__(self, event_time: KeyTimers, processing_time: KeyTimers, cuts: BatchCuts) -> None:
        self._timers = {TimeDomain.EVENT_TIME: event_time, TimeDomain.PROCESSING_TIME: processing_time}
        self._cuts = cuts

    def register_event_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        self._register(TimeDomain.EVENT_TIME, key_ids, timestamps)

    def register_processing_time_timers(self, key_ids: Any, timestamps: Any) -> None:
        self._register(TimeDomain.PROCESSING_TIME, key_ids, timestamps)

    def delete_event_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        self._delete(TimeDomain.EVENT_TIME, key_ids, timestamps)

    def delete_processing_time_timers(self, key_ids: Any, timestamps: Any = None) -> None:
        self._delete(TimeDomain.PROCESSING_TIME, key_ids, timestamps)

    def _register(self, domain: TimeDomain, key_ids: Any, timestamps: Any) -> None:
        ids = self._ids(key_ids)
        times_ms = _times(timestamps, len(ids))
        row, least_ms = self._cuts.first_too_early(ids, times_ms, domain is TimeDomain.EVENT_TIME)
        if row >= 0:
            raise DataError(
                f"row {row}: {_too_early(domain, int(ids[row]), int(times_ms[row]), least_ms)}", row=row
            )
        self._timers[domain].register(ids, times_ms)

    def _delete(self, domain: TimeDomain, key_ids: Any, timestamps: Any) -> None:
        ids = self._ids(key_ids)
        if timestamps is None:
            self._timers[domain].delete_all(ids)
        else:
            self._timers[domain].delete(ids, _times(timestamps, len(ids)))

    def _ids(self, key_ids: Any) -> Int64s:
        ids = _integers(key_ids, "key_ids")
        if ids.ndim != 1:
            raise DataError(f"key_ids has {ids.ndim} dimensions; pass a column of ids")
        row = self._cuts.first_foreign(ids)
        if row >= 0:
            raise DataError(
                f"row {row}: the key id {ids[row]} is not in the current batch. Register timers of its keys alone",
                row=row,
            )
        return ids


def _times(timestamps: Any, n_rows: int) -> Int64s:
    times_ms = _integers(timestamps, "timestamps")
    if times_ms.ndim == 0:
        return np.full(n_rows, times_ms, np.int64)
    if times_ms.ndim != 1 or len(times_ms) != n_rows:
        raise DataError(
            f"timestamps has the shape {times_ms.shape}, key_ids has {n_rows} rows; they must be equally long"
        )
    return times_ms


def _integers(values: Any, name: str) -> Int64s:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if values.null_count:
            raise DataError(f"{name} has {values.null_count} nulls")
        values = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64, "safe"):
        raise DataError(
            f"{name} is {array.dtype}; pass integers of 64 bits"
            + (", times as ms since the epoch" if name == "timestamps" else "")
        )
    return np.ascontiguousarray(array, np.int64) if array.ndim else array.astype(np.int64)


def _too_early(domain: TimeDomain, key_id: int, time_ms: int, least_ms: int) -> str:
    kind, since = (
        ("event", "timestamp") if domain is TimeDomain.EVENT_TIME else ("processing", "processing time")
    )
    setting = f"min_{kind}_time_delay_ms"
    if domain is TimeDomain.PROCESSING_TIME and least_ms == np.iinfo(np.int64).max:
        return (
            f"elements of this function register no processing-time timers, as {setting} is None: set it to what the "
            "timers are later than the processing time of their elements, at least, or one_element_per_key = True"
        )
    return (
        f"the {kind}-time timer at {time_ms} of the key id {key_id} is earlier than {least_ms}: by {setting}, no timer "
        f"is less than that after the {since} of its element. Set it to the least that there is, or to None"
    )

"""Timers as columns in tests, and as the record batches that a heap takes and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.timers import TimerColumns, TimerHeap


def timer_batch(timestamps_ms: Any, keys: Any, key_groups: Any, namespaces: Any = 0) -> pa.RecordBatch:
    """Timers as a heap takes them; one namespace for all, or one for each."""
    n = len(timestamps_ms)
    namespaces = [namespaces] * n if isinstance(namespaces, int) else namespaces
    columns = (timestamps_ms, keys, key_groups, namespaces)
    kinds = (pa.int64(), pa.int64(), pa.int32(), pa.int64())
    arrays = [
        pa.array(np.ascontiguousarray(np.asarray(column, np.int64).astype(kind.to_pandas_dtype())), kind)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, ["timestamp_ms", "key", "key_group", "namespace"])


def register(heap: TimerHeap, *columns: Any) -> npt.NDArray[np.bool_]:
    """Register timers in columns; true for each that was added."""
    return flags(heap.register(timer_batch(*columns)))


def delete(heap: TimerHeap, *columns: Any) -> npt.NDArray[np.bool_]:
    """Delete timers in columns; true for each that was there."""
    return flags(heap.delete(timer_batch(*columns)))


def advance(heap: TimerHeap, watermark_ms: int, limit: int | None = None) -> TimerColumns:
    """Take the timers that are due, as columns."""
    fired = pa.record_batch(heap.advance(watermark_ms, limit))
    assert fired.schema.names == ["timestamp_ms", "key", "key_group", "namespace"]
    return TimerColumns(*(column.to_numpy() for column in fired.columns))


def flags(array: Any) -> npt.NDArray[np.bool_]:
    """Booleans of an Arrow array."""
    found: npt.NDArray[np.bool_] = pa.array(array).to_numpy(zero_copy_only=False)
    return found

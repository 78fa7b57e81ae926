"""Timers as columns: numpy arrays in and out, and the record batch of a snapshot."""

from collections import namedtuple

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from flinkcore._native.arrow cimport Column, ColumnType, NativeArray, RecordBatch, native_array
from flinkcore._native.memory cimport Buffer, buffer_reserve

from flinkcore.errors import SchemaError

# They are seen in flinkcore._native.timers, whose stub describes them.
Timer = namedtuple("Timer", ["timestamp_ms", "key", "key_group", "namespace"], module="flinkcore._native.timers")
Timer.__doc__ = "One timer: when it fires, for which key (a dense id) of which key group, in which namespace."

TimerColumns = namedtuple(
    "TimerColumns", ["timestamps_ms", "keys", "key_groups", "namespaces"], module="flinkcore._native.timers"
)
TimerColumns.__doc__ = "Timers as equally long numpy columns: int64, int64, int32, int64."

_NAMES = ("timestamp_ms", "key", "key_group", "namespace")


def _integers(values, str name):
    import numpy as np

    array = np.asarray(values)
    if array.ndim != 1:
        raise SchemaError(f"{name} has {array.ndim} dimensions; pass a column of integers")
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64, "safe"):
        if array.size or array.dtype.kind != "f":  # an empty list is float64
            raise SchemaError(f"{name} has type {array.dtype}; pass integers that fit in int64")
    return array


cdef tuple checked_timer_columns(object timestamps_ms, object keys, object key_groups, object namespaces):
    import numpy as np

    scalar = isinstance(namespaces, (int, np.integer))
    timestamps_ms = _integers(timestamps_ms, "timestamps_ms")
    keys = _integers(keys, "keys")
    key_groups = _integers(key_groups, "key_groups")
    namespaces = np.array([namespaces], np.int64) if scalar else _integers(namespaces, "namespaces")
    n = len(timestamps_ms)
    for name, column in (("keys", keys), ("key_groups", key_groups), ("namespaces", namespaces)):
        if len(column) != n and not (scalar and name == "namespaces"):
            raise SchemaError(f"{name} has {len(column)} rows, timestamps_ms has {n}; they must be equally long")
    return timestamps_ms, keys, key_groups, namespaces, scalar


cdef object empty_timer_columns(int64_t n):
    import numpy as np

    return TimerColumns(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64))


cdef NativeArray _native_column(object column, str format):
    import numpy as np

    cdef Buffer buffer
    cdef const uint8_t[::1] data = column.view(np.uint8)
    buffer.data = NULL
    buffer.size = buffer.capacity = 0
    if data.shape[0]:
        buffer_reserve(&buffer, data.shape[0])
        memcpy(buffer.data, &data[0], data.shape[0])
        buffer.size = data.shape[0]
    return native_array(format, len(column), NULL, &buffer, NULL)


cdef NativeArray timer_record_batch(object columns):
    return native_array(
        "+s",
        len(columns[0]),
        NULL,
        NULL,
        NULL,
        [_native_column(column, "i" if column.itemsize == 4 else "l") for column in columns],
        list(_NAMES),
    )


cdef object _numpy_column(RecordBatch batch, str name, ColumnType type):
    # A copy: the batch may go away, and its memory need not be aligned.
    import numpy as np

    cdef Column* column = &batch.columns[batch.index_of(name)]
    cdef int64_t bytes_ = column.length * column.byte_width
    cdef uint8_t[::1] target
    if column.type != type:
        raise SchemaError(
            f"column {name!r} of the snapshot has Arrow format {column.format.decode()!r}; "
            f"it must be {'int32' if type == ColumnType.INT32 else 'int64'}"
        )
    if column.null_count:
        raise SchemaError(f"column {name!r} of the snapshot has {column.null_count} nulls; a timer has none")
    copy = np.empty(column.length, np.int32 if type == ColumnType.INT32 else np.int64)
    if bytes_:
        target = copy.view(np.uint8)
        memcpy(&target[0], column.values, bytes_)
    return copy


cdef object timer_columns_of(RecordBatch batch):
    return TimerColumns(
        *(_numpy_column(batch, name, ColumnType.INT32 if name == "key_group" else ColumnType.INT64) for name in _NAMES)
    )

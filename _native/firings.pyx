"""What window operators share: rows of results, the walk along the timeline, updates waiting for the accumulators."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from flinkcore._native.aggregates cimport AccumulatorTable, Accumulators, accumulators_update
from flinkcore._native.arrow cimport NativeArray, native_array
from flinkcore._native.keys cimport KeyEncoder
from flinkcore._native.memory cimport (
    BitBuffer,
    Buffer,
    bits_append_many,
    buffer_append_int64,
    buffer_free,
    buffer_reserve,
)


cdef int _reserve(Buffer* buffer, int64_t rows, int64_t expected_rows) except -1 nogil:
    # For so many rows of 8 bytes.
    return buffer_reserve(buffer, 8 * (rows if buffer.size else max(rows, expected_rows)))


cdef int _append_repeated(Buffer* buffer, int64_t value, int64_t count, int64_t expected_rows) except -1 nogil:
    cdef int64_t i
    cdef int64_t* out
    _reserve(buffer, count, expected_rows)
    out = <int64_t*> (buffer.data + buffer.size)
    for i in range(count):
        out[i] = value
    buffer.size += count * 8
    return 0


cdef int firings_append(
    Firings* firings, int64_t start, int64_t end, bint late, int64_t watermark, int64_t rows
) except -1 nogil:
    _append_repeated(&firings.start, start, rows, firings.expected_rows)
    _append_repeated(&firings.end, end, rows, firings.expected_rows)
    _append_repeated(&firings.watermark, watermark, rows, firings.expected_rows)
    bits_append_many(&firings.late, late, rows)
    firings.rows += rows
    return 0


cdef int firings_append_kind(Firings* firings, RowKind kind, int64_t rows) except -1 nogil:
    buffer_reserve(&firings.kinds, rows)
    memset(firings.kinds.data + firings.kinds.size, <int> kind, rows)
    firings.kinds.size += rows
    return 0


cdef int firings_append_int64_keys(Firings* firings, const int64_t* keys, int64_t rows) except -1 nogil:
    _reserve(&firings.keys, rows, firings.expected_rows)
    memcpy(firings.keys.data + firings.keys.size, keys, rows * 8)
    firings.keys.size += rows * 8
    return 0


cdef int firings_append_bytes_keys(
    Firings* firings, const uint8_t* data, const int64_t* offsets, int64_t rows
) except -1 nogil:
    cdef int64_t shift, length = offsets[rows] - offsets[0], i
    cdef int64_t* out
    if firings.key_offsets.size == 0:
        buffer_append_int64(&firings.key_offsets, 0)
    shift = firings.keys.size - offsets[0]
    buffer_reserve(&firings.keys, length)
    if length:
        memcpy(firings.keys.data + firings.keys.size, data + offsets[0], length)
    firings.keys.size += length
    buffer_reserve(&firings.key_offsets, rows * 8)
    out = <int64_t*> (firings.key_offsets.data + firings.key_offsets.size)
    for i in range(rows):
        out[i] = offsets[i + 1] + shift
    firings.key_offsets.size += rows * 8
    return 0


cdef void firings_free(Firings* firings) noexcept nogil:
    buffer_free(&firings.keys)
    buffer_free(&firings.key_offsets)
    buffer_free(&firings.start)
    buffer_free(&firings.end)
    buffer_free(&firings.late.bytes)
    buffer_free(&firings.watermark)
    buffer_free(&firings.kinds)
    memset(firings, 0, sizeof(Firings))


cdef NativeArray _kind_names(const Buffer* kinds, int64_t rows):
    # As RowKind.shortString
    cdef const char* names = b"+I-U+U-D"
    cdef Buffer offsets, text
    cdef int64_t i
    memset(&offsets, 0, sizeof(Buffer))
    memset(&text, 0, sizeof(Buffer))
    buffer_reserve(&offsets, (rows + 1) * 4)
    buffer_reserve(&text, rows * 2 + 1)
    for i in range(rows + 1):
        (<int32_t*> offsets.data)[i] = <int32_t> (2 * i)
    for i in range(rows):
        memcpy(text.data + 2 * i, names + 2 * kinds.data[i], 2)
    offsets.size = (rows + 1) * 4
    text.size = rows * 2
    return native_array("u", rows, NULL, &offsets, &text)


cdef NativeArray firings_take(
    Firings* firings,
    KeyEncoder keys,
    list key_names,
    str time_format,
    bint unbounded,
    bint with_kinds,
    Accumulators accumulators,
    list aggregate_names,
):
    cdef int64_t rows = firings.rows
    cdef BitBuffer[2] bounds
    cdef int i
    memset(bounds, 0, sizeof(bounds))
    if unbounded:
        for i in range(2):
            bits_append_many(&bounds[i], False, rows)
    cdef list columns = keys.decode(&firings.keys, &firings.key_offsets, rows)
    columns.append(native_array(time_format, rows, &bounds[0], &firings.start, NULL))
    columns.append(native_array(time_format, rows, &bounds[1], &firings.end, NULL))
    columns.extend(accumulators.take_columns())
    columns.append(native_array("b", rows, NULL, &firings.late.bytes, NULL))
    columns.append(native_array("l", rows, NULL, &firings.watermark, NULL))
    names = [*key_names, "window_start", "window_end", *aggregate_names, "late_firing", "watermark"]
    if with_kinds:
        columns.append(_kind_names(&firings.kinds, rows))
        names.append("row_kind")
    firings_free(firings)
    firings.expected_rows = rows
    return native_array("+s", rows, NULL, NULL, NULL, columns, names)


cdef int64_t cursor_clock_of(const TimelineCursor* cursor, int64_t due) noexcept nogil:
    cdef int64_t low = cursor.next, high = cursor.steps, middle
    while low < high:
        middle = (low + high) >> 1
        if cursor.watermarks[middle] < due:
            low = middle + 1
        else:
            high = middle
    return cursor.clocks[low] if low < cursor.steps else INT64_MAX


cdef int pending_flush(PendingUpdates* pending, AccumulatorTable* table) except -1 nogil:
    if pending.count:
        accumulators_update(table, pending.entries, pending.rows, pending.count)
        pending.count = 0
    return 0

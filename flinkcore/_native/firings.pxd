# What window operators share: rows of results, the walk along the timeline, and updates waiting for the accumulators.
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t

from flinkcore._native.aggregates cimport AccumulatorTable, Accumulators
from flinkcore._native.arrow cimport NativeArray
from flinkcore._native.keys cimport KeyEncoder
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef enum:
    PENDING_UPDATES = 4096


cdef enum RowKind:
    # Flink's, of the rows of a stream that withdraws results
    INSERT         # the first result of a window
    UPDATE_BEFORE  # it comes again, withdrawn
    UPDATE_AFTER   # what takes its place
    DELETE         # it comes again, withdrawn: the window has merged into another


cdef struct Firings:
    # Result rows, column by column; the aggregates' columns are in the accumulators.
    int64_t rows
    int64_t expected_rows  # as many as were taken last
    Buffer keys         # int64 values, or the keys' bytes
    Buffer key_offsets  # int64 (rows + 1), only for bytes
    Buffer start
    Buffer end
    BitBuffer late
    Buffer watermark
    Buffer kinds        # a byte each, of RowKind; only where results are withdrawn


cdef int firings_append(
    Firings* firings, int64_t start, int64_t end, bint late, int64_t watermark, int64_t rows
) except -1 nogil
cdef int firings_append_kind(Firings* firings, RowKind kind, int64_t rows) except -1 nogil
cdef int firings_append_int64_keys(Firings* firings, const int64_t* keys, int64_t rows) except -1 nogil
# offsets: (rows + 1,), relative to data
cdef int firings_append_bytes_keys(
    Firings* firings, const uint8_t* data, const int64_t* offsets, int64_t rows
) except -1 nogil
cdef void firings_free(Firings* firings) noexcept nogil
# The result rows so far, which start anew; the bounds of windows that are `unbounded` are null, `with_kinds` rows have kinds.
cdef NativeArray firings_take(
    Firings* firings,
    KeyEncoder keys,
    list key_names,
    str time_format,
    bint unbounded,
    bint with_kinds,
    Accumulators accumulators,
    list aggregate_names,
)


cdef struct TimelineCursor:
    # The watermark in force, and the step that changes it next.
    const int64_t* clocks
    const int64_t* watermarks
    int64_t steps
    int64_t next
    int64_t watermark


# Clock of the first step, from the next one on, whose watermark is at least `due`; INT64_MAX where there is none.
cdef int64_t cursor_clock_of(const TimelineCursor* cursor, int64_t due) noexcept nogil


# Whether a row with this arrival, or the end of the timeline, sees a further step.
cdef inline bint cursor_has_step(const TimelineCursor* cursor, int64_t arrival, bint to_end) noexcept nogil:
    return cursor.next < cursor.steps and (to_end or cursor.clocks[cursor.next] < arrival)


cdef inline int64_t cursor_step(TimelineCursor* cursor) noexcept nogil:
    # Puts the watermark of the next step in force; the step's clock.
    cdef int64_t clock = cursor.clocks[cursor.next]
    cursor.watermark = cursor.watermarks[cursor.next]
    cursor.next += 1
    return clock


cdef struct PendingUpdates:
    # Rows that belong to entries, not yet taken in by the accumulators.
    int64_t count
    uint32_t[PENDING_UPDATES] entries
    uint32_t[PENDING_UPDATES] rows


cdef int pending_flush(PendingUpdates* pending, AccumulatorTable* table) except -1 nogil

cdef inline int pending_add(
    PendingUpdates* pending, AccumulatorTable* table, uint32_t entry, uint32_t row
) except -1 nogil:
    if pending.count == PENDING_UPDATES:
        pending_flush(pending, table)
    pending.entries[pending.count] = entry
    pending.rows[pending.count] = row
    pending.count += 1
    return 0


cdef inline int64_t saturating_add(int64_t a, int64_t b) noexcept nogil:
    # Flink lets a clean-up time that would overflow be the maximum; b is never negative here.
    if a > INT64_MAX - b:
        return INT64_MAX
    return a + b

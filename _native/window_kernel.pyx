"""What every kind of windows has: the timeline, results within limits, late rows, and counts."""

import cython
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregate_results cimport aggregate_result_bytes
from flinkcore._native.aggregates cimport accumulators_emit, accumulators_emit_range
from flinkcore._native.arrow cimport buffer_free, buffer_reserve
from flinkcore._native.firings cimport firings_append, firings_free


cdef int window_rows_add(WindowRows* windows, const LiveWindow* window, uint32_t entry) except -1 nogil:
    buffer_reserve(&windows.entries, sizeof(uint32_t))
    buffer_reserve(&windows.flags, 1)
    firings_append(&windows.firings, window.start, window.end, False, window.trigger_state, 1)
    (<uint32_t*> (windows.entries.data + windows.entries.size))[0] = entry
    windows.entries.size += sizeof(uint32_t)
    windows.flags.data[windows.flags.size] = window.flags
    windows.flags.size += 1
    return 0


cdef void window_rows_free(WindowRows* windows) noexcept nogil:
    firings_free(&windows.firings)
    buffer_free(&windows.flags)
    buffer_free(&windows.entries)


cdef int core_add_late(WindowCore* core, uint32_t row) except -1 nogil:
    cdef LateRows* late = &core.late_rows
    cdef uint32_t* rows
    if late.n == late.capacity:
        rows = <uint32_t*> realloc(late.rows, (late.capacity * 2 + 64) * sizeof(uint32_t))
        if rows == NULL:
            with gil:
                raise MemoryError("the list of late rows")
        late.rows = rows
        late.capacity = late.capacity * 2 + 64
    late.rows[late.n] = row
    late.n += 1
    core.late += 1
    return 0


cdef int64_t _result_bytes(const WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n) noexcept nogil:
    cdef int64_t i, size = 0
    for i in range(core.table.n_aggregates):
        size += aggregate_result_bytes(&core.table.aggregates[i], entries, first, n)
    return size


cdef int64_t core_emit(
    WindowCore* core, const uint32_t* entries, uint32_t first, int64_t n, const int64_t* key_offsets
) except -1 nogil:
    cdef int64_t size = 0
    n = min(n, core.row_limit - core.table.rows)
    while n > 0:
        size = _result_bytes(core, entries, first, n)
        if key_offsets != NULL:
            size += key_offsets[n] - key_offsets[0]
        if core.result_bytes + size <= core.byte_limit or (n == 1 and core.table.rows == 0):
            break
        n >>= 1
    if n <= 0:
        return 0
    if entries != NULL:
        accumulators_emit(core.table, entries, n)
    else:
        accumulators_emit_range(core.table, first, <uint32_t> n)
    core.result_bytes += size
    return n


cdef void core_count(WindowCore* core, RowKind kind, bint late) noexcept nogil:
    if kind == RowKind.UPDATE_BEFORE or kind == RowKind.DELETE:
        core.retractions += 1
    elif late:
        core.late_firings += 1
    else:
        core.on_time_firings += 1


cdef int core_emit_row(WindowCore* core, uint32_t entry, int64_t key_bytes, RowKind kind, bint late) except -1 nogil:
    accumulators_emit(core.table, &entry, 1)
    core.result_bytes += key_bytes + _result_bytes(core, &entry, 0, 1)
    core_count(core, kind, late)
    return 0


@cython.final
cdef class WindowKernel:
    """One kind of windows and its state, made by the modules `windows` and `session_windows` for one operator.

    Attributes
    ----------
    name : str
        Of the kind: a checkpoint fits the kind that wrote it.
    lowest_timestamp, highest_timestamp : int
        The timestamps, ms since the epoch, whose windows have both ends within the int64 range.
    """

    def __dealloc__(self):
        cdef WindowCore* core = <WindowCore*> self.state
        if core == NULL:
            return
        free(core.late_rows.rows)
        firings_free(&core.firings)
        self.verbs.free(self.state)


cdef WindowKernel window_kernel(
    str name, size_t size, const WindowVerbs* verbs, int64_t allowed_lateness, int64_t lowest_timestamp, int64_t highest_timestamp
):
    cdef WindowKernel kernel = WindowKernel.__new__(WindowKernel)
    kernel.name = name
    kernel.verbs = verbs
    kernel.lowest_timestamp = lowest_timestamp
    kernel.highest_timestamp = highest_timestamp
    kernel.state = calloc(1, size)
    if kernel.state == NULL:
        raise MemoryError("the state of windows")
    (<WindowCore*> kernel.state).lateness = allowed_lateness
    return kernel


cdef int check_retracts(const WindowCore* core, bint purges) except -1:
    if core.retracts and purges:
        raise ConfigurationError("windows that a purging trigger empties cannot withdraw results: they forget them")
    return 0


cdef int check_aligned_windows(
    int64_t size, int64_t slide, int64_t offset, bint cumulative, int64_t allowed_lateness, int64_t most_windows
) except -1:
    if size <= 0 or slide <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"window size {size} ms and slide {slide} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    if max(size, slide, abs(offset)) > 2**60:  # the sums of two such times do not overflow
        raise ConfigurationError(f"window size {size} ms, slide {slide} ms and offset {offset} ms must be below 2**60")
    if cumulative and size % slide:
        raise ConfigurationError(f"windows grow by {slide} ms, of which the largest size, {size} ms, is no multiple")
    if (size + slide - 1) // slide > most_windows:
        raise ConfigurationError(
            f"a {'step' if cumulative else 'slide'} of {slide} ms puts a row into up to {(size + slide - 1) // slide} windows "
            f"of {size} ms; at most {most_windows} are supported: choose a longer one"
        )
    return 0

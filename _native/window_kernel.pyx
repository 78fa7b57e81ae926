"""What every kind of windows has: the timeline, results within limits, late rows, and counts."""

import cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregate_results cimport aggregate_result_bytes
from flinkcore._native.aggregates cimport accumulators_emit, accumulators_emit_range, accumulators_merge
from flinkcore._native.firings cimport firings_append, firings_free
from flinkcore._native.memory cimport buffer_free, buffer_reserve, grow
from flinkcore._native.window_triggers cimport Progress


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
    if late.n == late.capacity:
        late.rows = <uint32_t*> grow(late.rows, (late.capacity * 2 + 64) * sizeof(uint32_t), b"the list of late rows")
        late.capacity = late.capacity * 2 + 64
    late.rows[late.n] = row
    late.n += 1
    core.late += 1
    return 0


cdef int core_add_unassigned(WindowCore* core, uint32_t row, int64_t timestamp) except -1 nogil:
    if saturating_add(timestamp, core.lateness) <= core.cursor.watermark:
        return core_add_late(core, row)
    core.in_no_window += 1
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


cdef bint core_emit_change(
    WindowCore* core,
    uint8_t* progress,
    uint32_t entry,
    uint32_t given,
    const int64_t* key_offsets,
    bint late,
    RowKind* kind,
) except -1 nogil:
    cdef bint known = (progress[0] & Progress.GIVEN) != 0
    cdef bint withdraws = known and not progress[0] & Progress.WITHDRAWN
    if not progress[0] & (Progress.GIVEN | Progress.WITHDRAWN):
        accumulators_merge(core.table, given, entry)
        progress[0] |= Progress.WITHDRAWN
    if core_emit(core, &given, 0, 1, key_offsets) == 0:
        return False
    if withdraws:
        accumulators_merge(core.table, given, entry)
        progress[0] |= Progress.WITHDRAWN
    kind[0] = RowKind.UPDATE_BEFORE if withdraws else RowKind.UPDATE_AFTER if known else RowKind.INSERT
    core_count(core, kind[0], late)
    return True


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


cdef int core_check_signals() except -1 nogil:
    with gil:
        PyErr_CheckSignals()
    return 0


cdef int check_retracts(const WindowCore* core, bint purges) except -1:
    if core.retracts and purges:
        raise ConfigurationError("windows that a purging trigger empties cannot withdraw results: they forget them")
    return 0

"""Overlapping event-time windows that share slices of time: a kernel of window operators.

Sliding windows whose size is a multiple of their slide, and cumulate windows, are made of slices, one per slide:

    slices      | 0 | 1 | 2 | 3 | 4 |
    sliding     [ 0   1   2 ]
                    [ 1   2   3 ]
                        [ 2   3   4 ]
    cumulate    [ 0 ]
                [ 0   1 ]
                [ 0   1   2 ]

A row is added up once, in its slice, as in tumbling windows. When a window fires, it is made of the one before: slices enter, and
others leave. A late row fires each of its windows that have fired and are still open: of its key alone, the slices are
merged again.

Rows see the same windows as in `windows`; the results are the same for accumulators that are shareable.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aligned_windows cimport (
    AlignedWindows,
    WindowVisit,
    aligned_kernel,
    aligned_start,
    checked_windows,
    first_window,
    has_window,
    is_window,
    slice_end,
    visit_next,
)
from flinkcore._native.firings cimport RowKind, cursor_clock_of, cursor_step, pending_add, pending_flush, saturating_add
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport prefetch
from flinkcore._native.pane_firings cimport append_live_panes, emit_late_key, emit_pane, restored_pane_entry
from flinkcore._native.panes cimport (
    Pane,
    pane_empty,
    pane_entry,
    pane_entry_of,
    pane_find,
    pane_free,
    pane_key,
    pane_list_check,
    pane_list_close,
    pane_list_find,
    pane_list_open,
    pane_list_position,
    pane_open,
    panes_free,
)
from flinkcore._native.row_blocks cimport BLOCK_PAIRS, RowBlock, RowVerbs, take_in_blocks
from flinkcore._native.shared_accumulators cimport accumulators_add, require_shareable
from flinkcore._native.slice_merge cimport merge_check, merge_free, merge_gathered_entry, merge_leave, merge_slices
from flinkcore._native.window_kernel cimport (
    NO_ENTRY,
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    cleanup_time,
    core_add_late,
    core_advance,
    input_row,
    is_over,
)


cdef inline int64_t _last_end(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Of the last of the windows that the slice with this end is in.
    cdef int64_t size = state.windows.size, slide = state.windows.slide
    if state.windows.cumulative:
        return aligned_start(end - slide, state.windows.offset, size) + size
    return end + size - slide


cdef inline int64_t _start_of(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Of the window with this end.
    if state.windows.cumulative:
        return aligned_start(end - 1, state.windows.offset, state.windows.size)
    return end - state.windows.size


cdef inline int64_t _next_start(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Of the window behind the one with this end.
    cdef int64_t start = _start_of(state, end)
    if not state.windows.cumulative:
        return start + state.windows.slide
    return start if end - start < state.windows.size else end


cdef int64_t _next_end(const SlicedWindows* state) noexcept nogil:
    # Of the next window to fire: the first that has not and has a slice; INT64_MAX where there is none.
    cdef int64_t low = 0, high = state.slices.n, middle
    while low < high:
        middle = (low + high) >> 1
        if _last_end(state, state.slices.panes[middle].end) > state.fired_to:
            high = middle
        else:
            low = middle + 1
    if low == state.slices.n:
        return INT64_MAX
    if state.slices.panes[low].end > state.fired_to:
        return state.slices.panes[low].end
    return slice_end(&state.windows, state.fired_to)


cdef void _plan_next(SlicedWindows* state) noexcept nogil:
    # Finds the clock of the step that next fires or ends a window.
    cdef int64_t due = _next_end(state)
    if due != INT64_MAX:
        due -= 1
    if state.slices.n:
        due = min(due, cleanup_time(&state.core, _last_end(state, state.slices.panes[0].end)))
    state.quiet_until = cursor_clock_of(&state.core.cursor, due)


cdef Pane* _slice(SlicedWindows* state, int64_t end) except NULL nogil:
    # The slice with this end, opened where it is not.
    cdef Pane* slice = pane_list_find(&state.slices, end)
    if slice == NULL:
        slice = pane_list_open(&state.slices, &state.store, end - state.windows.slide, end)
        slice.fired = end <= state.fired_to
        state.n_fired += slice.fired
        _plan_next(state)
    return slice


# ---- firing ------------------------------------------------------------------------------------------------------


cdef bint _fire(SlicedWindows* state, int64_t end) except -1 nogil:
    # All keys of the window, at the watermark now in force; false where results are full before.
    if not state.emitting:
        pending_flush(&state.core.pending, state.core.table)
        merge_slices(&state.window, &state.store, &state.slices, _start_of(state, end), end)
        state.emitting = True
    if not emit_pane(&state.core, state.window.pane, &state.n_emitted, False):
        return False
    state.emitting = False
    state.fired_to = end
    merge_leave(&state.window, &state.store, &state.slices, _next_start(state, end))
    return True


cdef int _retire_due(SlicedWindows* state) except -1 nogil:
    # Ends the slices that are in no open window any more.
    cdef int64_t over = 0
    while over < state.n_fired and is_over(&state.core, _last_end(state, state.slices.panes[over].end)):
        over += 1
    if over:
        pending_flush(&state.core.pending, state.core.table)
        merge_leave(&state.window, &state.store, &state.slices, state.slices.panes[over - 1].end)
        pane_list_close(&state.slices, &state.store, over)
        state.n_fired -= over
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # Fires windows in order of their end, and ends slices; false where results are full before.
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef int64_t end = _next_end(state)
    state.core.due = True
    while end != INT64_MAX and end - 1 <= state.core.cursor.watermark:
        if not _fire(state, end):
            return False
        end = _next_end(state)
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    while state.n_fired < state.slices.n and state.slices.panes[state.n_fired].end <= state.fired_to:
        state.slices.panes[state.n_fired].fired = True
        state.n_fired += 1
    _retire_due(state)
    state.core.due = False
    _plan_next(state)
    return True


cdef bint _step(void* windows) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    if cursor_step(&state.core.cursor) >= state.quiet_until:
        return _fire_due(state)
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    return True


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _fire_late(SlicedWindows* state, const KeyBatch* keys, uint32_t row, int64_t start, int64_t end) except -1 nogil:
    # The window of one key, which does not have the row yet.
    cdef uint32_t into, other
    cdef int64_t i, k
    cdef bint known = False
    if state.late == NULL:
        state.late = pane_open(&state.store, start, end)
    state.late.start = start
    state.late.end = end
    into = <uint32_t> pane_entry_of(&state.store, state.late, keys, row)
    pending_flush(&state.core.pending, state.core.table)
    i = pane_list_position(&state.slices, start + 1)
    while i < state.slices.n and state.slices.panes[i].end <= end:
        k = pane_find(&state.store, state.slices.panes[i], keys, row)
        if k >= 0:
            other = pane_entry(state.slices.panes[i], k)
            accumulators_add(state.core.table, &into, &other, 1)
            known = True
        i += 1
    if known and state.core.retracts:
        emit_late_key(&state.core, state.late, 0, RowKind.UPDATE_BEFORE)
    pending_add(&state.core.pending, state.core.table, into, row)
    emit_late_key(&state.core, state.late, 0, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
    pane_empty(&state.store, state.late)
    return 0


cdef int _add(SlicedWindows* state, const KeyBatch* keys, uint32_t row, int64_t end) except -1 nogil:
    cdef Pane* slice = _slice(state, end)
    cdef int64_t n_known = slice.n_keys
    cdef int64_t k = pane_key(&state.store, slice, keys, row), entry
    pending_add(&state.core.pending, state.core.table, pane_entry(slice, k), row)
    if state.window.start < end <= state.window.end:
        entry = merge_gathered_entry(&state.window, &state.store, keys, row, k == n_known)
        pending_add(&state.core.pending, state.core.table, <uint32_t> entry, row)
    return 0


cdef bint _take_row(void* windows, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef WindowVisit visit = first_window(&state.windows, input.timestamps[row])
    cdef int64_t end = slice_end(&state.windows, input.timestamps[row])
    if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
        return False
    if is_over(&state.core, _last_end(state, end)):
        core_add_late(&state.core, row)
        return True
    state.core.windowed += 1
    while is_window(&visit):
        if visit.end <= state.fired_to and not is_over(&state.core, visit.end):
            _fire_late(state, input.keys, row, visit.start, visit.end)
        visit_next(&visit)
    _add(state, input.keys, row, end)
    return True


cdef inline Pane* _slice_of(const SlicedWindows* state, int64_t timestamp) noexcept nogil:
    # The live slice that a timestamp is in, or NULL. Rows out of order go from one slice to another all the time: where none is
    # missing behind it, the distance to the last one tells its place, without a division.
    cdef int64_t n = state.slices.n
    cdef double behind
    cdef Pane* slice
    if n == 0:
        return NULL
    # Unsigned: they may be further apart than an int64 reaches; the slice then tells that the place is wrong.
    behind = <double> <int64_t> (<uint64_t> state.slices.panes[n - 1].end - 1 - <uint64_t> timestamp) * state.slides_per_ms
    if 0 <= behind < n:
        slice = state.slices.panes[n - 1 - <int64_t> behind]
        if slice.start <= timestamp < slice.end:
            return slice
    return pane_list_find(&state.slices, slice_end(&state.windows, timestamp))


cdef int64_t _find_windows(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil:
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    cdef int64_t n = 0
    cdef Pane* slice
    cdef uint32_t row
    while first + n < input.n and n < BLOCK_PAIRS:
        row = input_row(input, first + n)
        if input.arrivals[row] > state.quiet_until:
            break
        slice = _slice_of(state, input.timestamps[row])
        if slice == NULL or slice.fired:
            break
        block.panes[n] = slice
        block.rows[n] = row
        prefetch(&slice.slots[input.keys.hashes[row] & slice.mask])
        n += 1
    block.n = n
    return first + n


cdef RowVerbs ROW_VERBS = RowVerbs(find_windows=_find_windows, take_row=_take_row)


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    if state.core.due and not _fire_due(state):
        return first
    return take_in_blocks(&state.core, &state.store, input, first, 1, &ROW_VERBS)


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    # The slices, of which all else is made again.
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    return append_live_panes(rows, state.core.bytes_keys, &state.slices)


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef int64_t slide = state.windows.slide
    if window.flags > 1 or not has_window(window.start, window.end, slide, slide, state.windows.offset):
        return NO_ENTRY
    return restored_pane_entry(&state.store, _slice(state, window.end), keys, row)


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    require_shareable(state.core.table)
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    _plan_next(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const SlicedWindows*> windows).slices.n


cdef void _free(void* windows) noexcept nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    merge_free(&state.window)
    if state.late != NULL:
        pane_free(state.late)
    panes_free(&state.slices, &state.store)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    cdef const Pane* slice
    cdef int64_t i, blocks = pane_list_check(&state.slices) + state.store.n_free_blocks
    for i in range(state.slices.n):
        slice = state.slices.panes[i]
        assert slice.end == slice.start + state.windows.slide
        assert slice.fired == (i < state.n_fired)
        if not state.core.due:
            assert slice.fired == (slice.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert not is_over(&state.core, _last_end(state, slice.end)), "a slice outlived its windows"
    blocks += merge_check(&state.window, &state.store, &state.slices)
    assert state.late == NULL or state.late.n_keys == 0
    assert blocks == state.store.n_blocks, "an entry block was lost"
    assert state.core.due or not state.emitting, "a window fired in part"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=_windows, restore=_restore, free=_free,
)


def sliced_windows(*, int64_t size, int64_t slide, int64_t offset, int64_t allowed_lateness, bint cumulative=False):
    """Make the kernel of sliding or cumulate windows that share slices of time and fire at their end.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` is the step of cumulate windows. The size is a multiple of it.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.

    Returns
    -------
    WindowKernel
        For accumulators that are shareable.

    Raises
    ------
    ConfigurationError
        If a size is not positive, the lateness is negative, or the size is no multiple of the slide.
    """
    cdef WindowKernel kernel
    cdef SlicedWindows* state
    cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, allowed_lateness, INT64_MAX)
    if size % slide:
        raise ConfigurationError(f"windows of {size} ms are not made of whole slices of {slide} ms")
    kernel = aligned_kernel("sliced_windows", sizeof(SlicedWindows), &VERBS, &windows, allowed_lateness, 0)
    state = <SlicedWindows*> kernel.state
    state.windows = windows
    state.slides_per_ms = 1.0 / <double> slide
    state.quiet_until = INT64_MAX
    state.window.start = state.window.end = INT64_MIN
    return kernel

"""Tumbling, sliding and cumulate event-time windows that fire at their end: a kernel of window operators.

One hash table per live window: windows retire, so the tables stay small however long the log is.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore._native.aggregates cimport accumulators_clear_range
from flinkcore._native.aligned_windows cimport (
    AlignedWindows,
    WindowVisit,
    aligned_kernel,
    checked_windows,
    first_end,
    first_window,
    is_assigned,
    is_window,
    most_windows,
    visit_from,
    visit_next,
)
from flinkcore._native.firings cimport RowKind, cursor_clock_of, cursor_step, pending_add, pending_flush
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport prefetch
from flinkcore._native.pane_firings cimport append_live_panes, emit_late_key, emit_pane, restored_pane_entry
from flinkcore._native.panes cimport (
    Pane,
    pane_entry,
    pane_key,
    pane_list_check,
    pane_list_close,
    pane_list_find,
    pane_list_open,
    panes_free,
)
from flinkcore._native.row_blocks cimport BLOCK_PAIRS, RowBlock, RowVerbs, take_in_blocks
from flinkcore._native.window_kernel cimport (
    NO_ENTRY,
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    cleanup_time,
    core_add_unassigned,
    core_advance,
    input_row,
    is_over,
)


cdef void _plan_next(TimeWindows* state) noexcept nogil:
    # Finds the clock of the step that next fires or ends a window.
    cdef int64_t due = INT64_MAX
    if state.n_fired:
        due = cleanup_time(&state.core, state.live.panes[0].end)
    if state.n_fired < state.live.n:
        due = min(due, state.live.panes[state.n_fired].end - 1)
    state.quiet_until = cursor_clock_of(&state.core.cursor, due)


cdef Pane* _pane(TimeWindows* state, int64_t start, int64_t end) except NULL nogil:
    # The window with these bounds, opened where it is not.
    cdef Pane* pane = pane_list_find(&state.live, end)
    if pane == NULL:
        pane = pane_list_open(&state.live, &state.store, start, end)
        pane.fired = end - 1 <= state.core.cursor.watermark
        state.n_fired += pane.fired
        _plan_next(state)
    return pane


cdef bint _fire(TimeWindows* state, Pane* pane) except -1 nogil:
    # All keys of the window, at the watermark now in force; false where results are full before.
    if not emit_pane(&state.core, pane, &state.n_emitted, state.purges):
        return False
    pane.fired = True
    state.n_fired += 1
    return True


cdef int _retire_due(TimeWindows* state) except -1 nogil:
    # Ends the windows whose time is over: the first of those that have fired.
    cdef int64_t over = 0
    while over < state.n_fired and is_over(&state.core, state.live.panes[over].end):
        over += 1
    if over:
        pending_flush(&state.core.pending, state.core.table)
        pane_list_close(&state.live, &state.store, over)
        state.n_fired -= over
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # Fires and ends windows in order of their time, as the event-time timers of Flink's window operator do; false where
    # results are full before.
    cdef TimeWindows* state = <TimeWindows*> windows
    state.core.due = True
    while state.n_fired < state.live.n and state.live.panes[state.n_fired].end - 1 <= state.core.cursor.watermark:
        if not _fire(state, state.live.panes[state.n_fired]):
            return False
    _retire_due(state)
    state.core.due = False
    _plan_next(state)
    return True


cdef bint _step(void* windows) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    return cursor_step(&state.core.cursor) < state.quiet_until or _fire_due(state)


# ---- rows --------------------------------------------------------------------------------------------------------


cdef bint _take_row(void* windows, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef WindowVisit visit = first_window(&state.windows, input.timestamps[row])
    cdef int64_t k, n_known
    cdef Pane* pane
    cdef bint skipped = True, known
    if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
        return False
    while is_window(&visit):
        if not is_over(&state.core, visit.end):
            skipped = False
            pane = _pane(state, visit.start, visit.end)
            n_known = pane.n_keys
            k = pane_key(&state.store, pane, input.keys, row)
            known = k < n_known
            if pane.fired and known and state.core.retracts:
                emit_late_key(&state.core, pane, k, RowKind.UPDATE_BEFORE)
            pending_add(&state.core.pending, state.core.table, pane_entry(pane, k), row)
            if pane.fired:
                emit_late_key(&state.core, pane, k, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
                if state.purges:
                    accumulators_clear_range(state.core.table, pane_entry(pane, k), 1)
        visit_next(&visit)
    if skipped:
        core_add_unassigned(&state.core, row, input.timestamps[row])
    else:
        state.core.windowed += 1
    return True


cdef int64_t _find_windows(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef AlignedWindows aligned = state.windows
    cdef const uint64_t* hashes = input.keys.hashes
    cdef const int64_t* timestamps = input.timestamps
    cdef const int64_t* arrivals = input.arrivals
    cdef int64_t i = first, n = 0, previous, timestamp, end, width = most_windows(&aligned)
    cdef int64_t low = 0, high = 0  # timestamps from `low` to below `high` have `pane` for their first window
    cdef Pane* pane = NULL
    cdef Pane* other
    cdef WindowVisit visit
    cdef uint32_t row
    while i < input.n and n + width <= BLOCK_PAIRS:
        row = input_row(input, i)
        timestamp = timestamps[row]
        if arrivals[row] > state.quiet_until:
            break
        if timestamp < low or timestamp >= high:
            end = first_end(&aligned, timestamp)
            pane = pane_list_find(&state.live, end)
            if pane == NULL:
                break
            low = end - aligned.slide if aligned.cumulative else pane.start
            high = low + aligned.slide
        if pane.fired or timestamp >= pane.end:
            break
        previous = n
        block.panes[n] = pane
        block.rows[n] = row
        prefetch(&pane.slots[hashes[row] & pane.mask])
        n += 1
        if width > 1:
            visit = visit_from(&aligned, timestamp, pane.start, pane.end)
            visit_next(&visit)
            while is_window(&visit):
                other = pane_list_find(&state.live, visit.end)
                if other == NULL or other.fired:
                    n = previous
                    break
                block.panes[n] = other
                block.rows[n] = row
                prefetch(&other.slots[hashes[row] & other.mask])
                n += 1
                visit_next(&visit)
            if n == previous:
                break
        i += 1
    block.n = n
    return i


cdef RowVerbs ROW_VERBS = RowVerbs(find_windows=_find_windows, take_row=_take_row)


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    if state.core.due and not _fire_due(state):
        return first
    return take_in_blocks(&state.core, &state.store, input, first, most_windows(&state.windows), &ROW_VERBS)


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    return append_live_panes(rows, state.core.bytes_keys, &state.live)


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    if window.flags > 1 or not is_assigned(&state.windows, window.start, window.end):
        return NO_ENTRY
    return restored_pane_entry(&state.store, _pane(state, window.start, window.end), keys, row)


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef TimeWindows* state = <TimeWindows*> windows
    check_retracts(&state.core, state.purges)
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    _plan_next(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const TimeWindows*> windows).live.n


cdef void _free(void* windows) noexcept nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    panes_free(&state.live, &state.store)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef const Pane* pane
    cdef int64_t i
    for i in range(state.live.n):
        pane = state.live.panes[i]
        assert pane.end <= pane.start + state.windows.size
        assert pane.fired == (i < state.n_fired)
        if not state.core.due:
            assert pane.fired == (pane.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert not is_over(&state.core, pane.end), "a window outlived its time"
    assert state.core.due or state.n_emitted == 0, "a window fired in part"
    assert pane_list_check(&state.live) + state.store.n_free_blocks == state.store.n_blocks, "an entry block was lost"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=_windows, restore=_restore, free=_free,
)


def time_windows(
    *,
    int64_t size,
    int64_t slide,
    int64_t offset,
    int64_t allowed_lateness,
    bint cumulative=False,
    bint purges=False,
):
    """Make the kernel of tumbling, sliding or cumulate windows that fire at their end.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` equals `size` for tumbling windows, and is the step of cumulate windows.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.
    purges : bool
        Whether a firing empties the window.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If a size is not positive, the lateness is negative, or a row would go into too many windows.
    """
    cdef WindowKernel kernel
    cdef TimeWindows* state
    cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, allowed_lateness, BLOCK_PAIRS)
    kernel = aligned_kernel("time_windows", sizeof(TimeWindows), &VERBS, &windows, allowed_lateness, 0)
    state = <TimeWindows*> kernel.state
    state.windows = windows
    state.purges = purges
    state.quiet_until = INT64_MAX
    return kernel

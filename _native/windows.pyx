"""Tumbling, sliding and cumulate event-time windows that fire at their end: a kernel of window operators.

One hash table per live window: windows retire, so the tables stay small however long the log is. Rows are taken in blocks:
first every row's window is found and the key's slot prefetched, then the keys are looked up. A block ends where a row needs
more care: it is late, opens a window, falls into a window that has fired, or a watermark before it fires something.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore._native.aggregates cimport accumulators_clear_range
from flinkcore._native.aligned_windows cimport (
    end_step,
    first_end,
    first_start,
    most_windows,
    start_of_end,
)
from flinkcore._native.firings cimport (
    RowKind,
    cursor_find,
    pending_add,
    pending_flush,
    saturating_add,
)
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.pane_firings cimport append_live_panes, append_pane_keys, emit_pane
from flinkcore._native.panes cimport (
    ENTRY_BLOCK,
    Pane,
    pane_close,
    pane_entry,
    pane_key,
    pane_list_drop,
    pane_list_find,
    pane_list_free,
    pane_list_insert,
    pane_open,
    pane_store_free,
    pane_store_reserve,
)
from flinkcore._native.prefetch cimport prefetch
from flinkcore._native.window_kernel cimport (
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_aligned_windows,
    check_retracts,
    core_add_late,
    core_emit_row,
    core_is_full,
    window_kernel,
)

cdef enum:
    LOOK_AHEAD = 128


cdef inline int64_t _cleanup_time(const TimeWindows* state, const Pane* pane) noexcept nogil:
    return saturating_add(pane.end - 1, state.core.lateness)


cdef void _plan_next(TimeWindows* state) noexcept nogil:
    # Finds the clock of the step that next fires or ends a window.
    cdef int64_t due = INT64_MAX, step
    if state.n_fired:
        due = _cleanup_time(state, state.live.panes[0])
    if state.n_fired < state.live.n:
        due = min(due, state.live.panes[state.n_fired].end - 1)
    step = cursor_find(&state.core.cursor, due)
    state.quiet_until = state.core.cursor.clocks[step] if step < state.core.cursor.steps else INT64_MAX


cdef Pane* _open(TimeWindows* state, int64_t start, int64_t end) except NULL nogil:
    cdef Pane* pane = pane_open(&state.store, start, end)
    pane.fired = end - 1 <= state.core.cursor.watermark
    pane_list_insert(&state.live, pane)
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
    cdef int64_t over = 0, closed = 0
    while over < state.n_fired and _cleanup_time(state, state.live.panes[over]) <= state.core.cursor.watermark:
        over += 1
    if over == 0:
        return 0
    pending_flush(&state.core.pending, state.store.table)
    pane_store_reserve(&state.store)
    for closed in range(over):
        pane_close(&state.store, state.live.panes[closed])
    state.n_fired -= over
    pane_list_drop(&state.live, over)
    return 0


cdef bint _fire_due(TimeWindows* state) except -1 nogil:
    # Fires and ends windows in order of their time, as the event-time timers of Flink's window operator do; false where
    # results are full before.
    state.core.due = True
    while state.n_fired < state.live.n and state.live.panes[state.n_fired].end - 1 <= state.core.cursor.watermark:
        if not _fire(state, state.live.panes[state.n_fired]):
            return False
    _retire_due(state)
    state.core.due = False
    _plan_next(state)
    return True


cdef bint _advance(void* windows, int64_t arrival, bint to_end) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef bint fires
    if state.core.due and not _fire_due(state):
        return False
    while state.core.cursor.next < state.core.cursor.steps and (
        to_end or state.core.cursor.clocks[state.core.cursor.next] < arrival
    ):
        fires = state.core.cursor.clocks[state.core.cursor.next] >= state.quiet_until
        state.core.cursor.watermark = state.core.cursor.watermarks[state.core.cursor.next]
        state.core.cursor.next += 1
        if fires and not _fire_due(state):
            return False
    return True


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _emit_late(TimeWindows* state, Pane* pane, int64_t k, RowKind kind) except -1 nogil:
    # The result of one key, as it is or as it was before the row that fires it.
    cdef uint32_t entry = pane_entry(pane, k)
    pending_flush(&state.core.pending, state.core.table)
    core_emit_row(&state.core, entry, pane.offsets[k + 1] - pane.offsets[k] if state.core.bytes_keys else 0, kind, True)
    if state.purges:
        accumulators_clear_range(state.core.table, entry, 1)
    return append_pane_keys(&state.core, pane, k, 1, kind, True)


cdef bint _take_row(
    TimeWindows* state, const KeyBatch* keys, uint32_t row, int64_t timestamp, int64_t arrival
) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef int64_t end, start, limit, step = end_step(&state.windows), k, known
    cdef Pane* pane
    cdef bint skipped = True
    if not _advance(state, arrival, False):
        return False
    end = first_end(&state.windows, timestamp)
    start = first_start(&state.windows, timestamp, end)
    limit = start + state.windows.size
    while timestamp < end <= limit:
        if saturating_add(end - 1, state.core.lateness) > state.core.cursor.watermark:
            skipped = False
            pane = pane_list_find(&state.live, end)
            if pane == NULL:
                pane = _open(state, start_of_end(&state.windows, start, end), end)
            known = pane.n_keys
            k = pane_key(&state.store, pane, keys, row)
            if pane.fired and k < known and state.core.retracts:
                _emit_late(state, pane, k, RowKind.UPDATE_BEFORE)
            pending_add(&state.core.pending, state.core.table, pane_entry(pane, k), row)
            if pane.fired:
                _emit_late(state, pane, k, RowKind.UPDATE_AFTER if k < known else RowKind.INSERT)
        end += step
    if not skipped:
        state.core.windowed += 1
    elif saturating_add(timestamp, state.core.lateness) <= state.core.cursor.watermark:
        core_add_late(&state.core, row)
    else:
        state.core.in_no_window += 1
    return True


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef const KeyBatch* keys = input.keys
    cdef const uint32_t* rows = input.rows
    cdef const int64_t* timestamps = input.timestamps
    cdef const int64_t* arrivals = input.arrivals
    cdef int64_t n = input.n, i = first, j, pairs, previous, timestamp, low, high, end, limit, k
    cdef int64_t width = most_windows(&state.windows), slide = state.windows.slide, step = end_step(&state.windows)
    cdef Pane* pane = NULL
    cdef Pane* panes[LOOK_AHEAD]
    cdef uint32_t taken[LOOK_AHEAD]
    cdef uint32_t row
    if state.core.due and not _fire_due(state):
        return first
    while i < n:
        j = i
        pairs = 0
        low = high = 0  # timestamps from `low` to below `high` have `pane` for their first window
        while j < n and pairs + width <= LOOK_AHEAD:
            row = rows[j] if rows != NULL else <uint32_t> j
            timestamp = timestamps[row]
            if arrivals[row] > state.quiet_until:
                break
            if timestamp < low or timestamp >= high:
                end = first_end(&state.windows, timestamp)
                pane = pane_list_find(&state.live, end)
                if pane == NULL:
                    break
                low = end - slide if state.windows.cumulative else pane.start
                high = low + slide
            if pane.fired or timestamp >= pane.end:
                break
            previous = pairs
            panes[pairs] = pane
            taken[pairs] = row
            prefetch(&pane.slots[keys.hashes[row] & pane.mask])
            pairs += 1
            if width > 1:
                limit = pane.start + state.windows.size
                end = pane.end + step
                while timestamp < end <= limit:
                    panes[pairs] = pane_list_find(&state.live, end)
                    if panes[pairs] == NULL or panes[pairs].fired:
                        pairs = previous
                        break
                    taken[pairs] = row
                    prefetch(&panes[pairs].slots[keys.hashes[row] & panes[pairs].mask])
                    pairs += 1
                    end += step
                if pairs == previous:
                    break
            j += 1
        for k in range(pairs):
            pending_add(
                &state.core.pending,
                state.core.table,
                pane_entry(panes[k], pane_key(&state.store, panes[k], keys, taken[k])),
                taken[k],
            )
        state.core.windowed += j - i
        i = j
        if i < n and pairs + width <= LOOK_AHEAD:
            row = rows[i] if rows != NULL else <uint32_t> i
            if not _take_row(state, keys, row, timestamps[row], arrivals[row]):
                break
            i += 1
            if core_is_full(&state.core):
                break
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    return append_live_panes(rows, state.core.bytes_keys, &state.live)


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef Pane* pane = pane_list_find(&state.live, window.end)
    if pane == NULL:
        pane = _open(state, window.start, window.end)
    return pane_entry(pane, pane_key(&state.store, pane, keys, row))


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
    pane_list_free(&state.live)
    pane_store_free(&state.store)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef const Pane* pane
    cdef int64_t i, blocks = state.store.n_free_blocks
    cdef uint64_t at, numbers
    for i in range(state.live.n):
        pane = state.live.panes[i]
        assert i == 0 or state.live.panes[i - 1].end < pane.end, "windows out of order"
        assert pane.start < pane.end <= pane.start + state.windows.size
        assert pane.fired == (i < state.n_fired)
        assert pane.n_blocks == (pane.n_keys + ENTRY_BLOCK - 1) // ENTRY_BLOCK
        if not state.core.due:
            assert pane.fired == (pane.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert _cleanup_time(state, pane) > state.core.cursor.watermark, "a window outlived its time"
        numbers = 0
        for at in range(pane.mask + 1):
            numbers += pane.slots[at].number != 0
        assert numbers == pane.n_keys, "index and keys differ"
        blocks += pane.n_blocks
    assert state.core.due or state.n_emitted == 0, "a window fired in part"
    assert blocks == state.store.n_blocks, "an entry block was lost"
    return 0


cdef WindowVerbs VERBS
VERBS.start = _start
VERBS.process = _process
VERBS.advance = _advance
VERBS.live_windows = _live_windows
VERBS.check = _check
VERBS.windows = _windows
VERBS.restore = _restore
VERBS.free = _free


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
    check_aligned_windows(size, slide, offset, cumulative, allowed_lateness, LOOK_AHEAD)
    kernel = window_kernel(
        "time_windows",
        sizeof(TimeWindows),
        &VERBS,
        allowed_lateness,
        INT64_MIN + max(size, slide) * 2 + max(offset, 0),
        INT64_MAX - size * 2 - abs(offset),
    )
    state = <TimeWindows*> kernel.state
    state.windows.size = size
    state.windows.slide = slide
    state.windows.offset = offset
    state.windows.cumulative = cumulative
    state.purges = purges
    state.quiet_until = INT64_MAX
    return kernel

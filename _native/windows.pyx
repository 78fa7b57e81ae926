"""Tumbling and sliding event-time windows: a kernel of window operators.

One hash table per live window: windows retire, so the tables stay small however long the log is. Rows are taken in blocks:
first every row's window is found and the key's slot prefetched, then the keys are looked up. A block ends where a row needs
more care: it is late, opens a window, falls into a window that has fired, or a watermark before it fires something.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

from flinkcore.errors import ConfigurationError

from flinkcore._native.firings cimport (
    cursor_find,
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    pending_add,
    pending_flush,
    saturating_add,
)
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.panes cimport (
    ENTRY_BLOCK,
    Pane,
    pane_close,
    pane_entry,
    pane_free,
    pane_key,
    pane_open,
    pane_store_free,
    pane_store_reserve,
)
from flinkcore._native.prefetch cimport prefetch
from flinkcore._native.window_kernel cimport (
    InputRows,
    WindowKernel,
    WindowVerbs,
    core_add_late,
    core_emit,
    core_emit_late,
    core_is_full,
    window_kernel,
)

cdef enum:
    LOOK_AHEAD = 128


cdef inline int64_t _window_start(const TimeWindows* state, int64_t timestamp) noexcept nogil:
    # TimeWindow.getWindowStartWithOffset: the remainder truncates, so negative ones move one slide down.
    cdef int64_t remainder = (timestamp - state.offset) % state.slide
    if remainder < 0:
        remainder += state.slide
    return timestamp - remainder


cdef int64_t _position(const TimeWindows* state, int64_t start) noexcept nogil:
    # Index of the first live window that starts at or after `start`.
    cdef int64_t low = 0, high = state.n_panes, middle
    while low < high:
        middle = (low + high) >> 1
        if state.panes[middle].start < start:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Pane* _find(const TimeWindows* state, int64_t start) noexcept nogil:
    cdef int64_t i
    for i in range(state.n_panes - 1, max(state.n_panes - 5, -1), -1):
        if state.panes[i].start == start:
            return state.panes[i]
    if state.n_panes <= 4:
        return NULL
    i = _position(state, start)
    if i < state.n_panes and state.panes[i].start == start:
        return state.panes[i]
    return NULL


cdef inline int64_t _cleanup_time(const TimeWindows* state, int64_t start) noexcept nogil:
    return saturating_add(start + state.size - 1, state.core.lateness)


cdef void _plan_next(TimeWindows* state) noexcept nogil:
    # Finds the clock of the step that next fires or ends a window.
    cdef int64_t due = INT64_MAX, step
    if state.n_fired:
        due = _cleanup_time(state, state.panes[0].start)
    if state.n_fired < state.n_panes:
        due = min(due, state.panes[state.n_fired].end - 1)
    step = cursor_find(&state.core.cursor, due)
    state.quiet_until = state.core.cursor.clocks[step] if step < state.core.cursor.steps else INT64_MAX


cdef int _reserve_panes(TimeWindows* state) except -1 nogil:
    cdef Pane** panes
    if state.n_panes == state.panes_capacity:
        panes = <Pane**> realloc(state.panes, (state.panes_capacity * 2 + 8) * sizeof(Pane*))
        if panes == NULL:
            with gil:
                raise MemoryError("the list of live windows")
        state.panes = panes
        state.panes_capacity = state.panes_capacity * 2 + 8
    return 0


cdef Pane* _open(TimeWindows* state, int64_t start) except NULL nogil:
    cdef Pane* pane
    cdef int64_t i
    _reserve_panes(state)
    pane = pane_open(&state.store, start, start + state.size)
    pane.fired = pane.end - 1 <= state.core.cursor.watermark
    i = _position(state, start)
    memmove(&state.panes[i + 1], &state.panes[i], (state.n_panes - i) * sizeof(Pane*))
    state.panes[i] = pane
    state.n_panes += 1
    state.n_fired += pane.fired
    _plan_next(state)
    return pane


cdef int _append_keys(TimeWindows* state, const Pane* pane, int64_t first, int64_t n, bint late) except -1 nogil:
    # The result columns that are not the accumulators'.
    if state.core.bytes_keys:
        firings_append_bytes_keys(&state.core.firings, pane.data, &pane.offsets[first], n)
    else:
        firings_append_int64_keys(&state.core.firings, &pane.keys[first], n)
    return firings_append(&state.core.firings, pane.start, pane.end, late, state.core.cursor.watermark, n)


cdef bint _fire(TimeWindows* state, Pane* pane) except -1 nogil:
    # All keys of the window, in order of registration, at the watermark now in force; false where results are full before.
    cdef int64_t k = state.n_emitted, n, emitted
    pending_flush(&state.core.pending, state.core.table)
    while k < pane.n_keys:
        n = min(<int64_t> ENTRY_BLOCK - k % ENTRY_BLOCK, pane.n_keys - k)
        emitted = core_emit(
            &state.core, NULL, pane_entry(pane, k), n, &pane.offsets[k] if state.core.bytes_keys else NULL
        )
        k += emitted
        if emitted < n:
            break
    _append_keys(state, pane, state.n_emitted, k - state.n_emitted, False)
    state.n_emitted = k
    if k < pane.n_keys:
        return False
    state.n_emitted = 0
    pane.fired = True
    state.n_fired += 1
    return True


cdef int _retire_due(TimeWindows* state) except -1 nogil:
    # Ends the windows whose time is over: the first of those that have fired.
    cdef int64_t over = 0, closed = 0
    while over < state.n_fired and _cleanup_time(state, state.panes[over].start) <= state.core.cursor.watermark:
        over += 1
    if over == 0:
        return 0
    pending_flush(&state.core.pending, state.store.table)
    pane_store_reserve(&state.store)
    for closed in range(over):
        pane_close(&state.store, state.panes[closed])
    state.n_panes -= over
    state.n_fired -= over
    memmove(&state.panes[0], &state.panes[over], state.n_panes * sizeof(Pane*))
    return 0


cdef bint _fire_due(TimeWindows* state) except -1 nogil:
    # Fires and ends windows in order of their time, as the event-time timers of Flink's window operator do; false where
    # results are full before.
    state.core.due = True
    while state.n_fired < state.n_panes and state.panes[state.n_fired].end - 1 <= state.core.cursor.watermark:
        if not _fire(state, state.panes[state.n_fired]):
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


cdef int _fire_late(TimeWindows* state, Pane* pane, int64_t k) except -1 nogil:
    pending_flush(&state.core.pending, state.core.table)
    core_emit_late(
        &state.core, pane_entry(pane, k), pane.offsets[k + 1] - pane.offsets[k] if state.core.bytes_keys else 0
    )
    return _append_keys(state, pane, k, 1, True)


cdef bint _take_row(
    TimeWindows* state, const KeyBatch* keys, uint32_t row, int64_t timestamp, int64_t arrival
) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef int64_t start, k
    cdef Pane* pane
    cdef bint skipped = True
    if not _advance(state, arrival, False):
        return False
    start = _window_start(state, timestamp)
    while start > timestamp - state.size:
        if _cleanup_time(state, start) > state.core.cursor.watermark:
            skipped = False
            pane = _find(state, start)
            if pane == NULL:
                pane = _open(state, start)
            k = pane_key(&state.store, pane, keys, row)
            pending_add(&state.core.pending, state.core.table, pane_entry(pane, k), row)
            if pane.fired:
                _fire_late(state, pane, k)
        start -= state.slide
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
    cdef int64_t n = input.n, i = first, j, pairs, previous, timestamp, start, k
    cdef int64_t width = (state.size + state.slide - 1) // state.slide  # windows per row, at most
    cdef Pane* pane = NULL
    cdef Pane* panes[LOOK_AHEAD]
    cdef uint32_t taken[LOOK_AHEAD]
    cdef uint32_t row
    if state.core.due and not _fire_due(state):
        return first
    while i < n:
        j = i
        pairs = 0
        pane = NULL
        while j < n and pairs + width <= LOOK_AHEAD:
            row = rows[j] if rows != NULL else <uint32_t> j
            timestamp = timestamps[row]
            if arrivals[row] > state.quiet_until:
                break
            previous = pairs
            if pane == NULL or timestamp < pane.start or timestamp >= pane.start + state.slide:
                start = _window_start(state, timestamp)
                pane = _find(state, start)
            else:
                start = pane.start
            if pane == NULL or pane.fired or start <= timestamp - state.size:
                break
            panes[pairs] = pane
            taken[pairs] = row
            prefetch(&pane.slots[keys.hashes[row] & pane.mask])
            pairs += 1
            if width > 1:
                start -= state.slide
                while start > timestamp - state.size:
                    panes[pairs] = _find(state, start)
                    if panes[pairs] == NULL or panes[pairs].fired:
                        pairs = previous
                        break
                    taken[pairs] = row
                    prefetch(&panes[pairs].slots[keys.hashes[row] & panes[pairs].mask])
                    pairs += 1
                    start -= state.slide
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


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef TimeWindows* state = <TimeWindows*> windows
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    _plan_next(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const TimeWindows*> windows).n_panes


cdef void _free(void* windows) noexcept nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef int64_t i
    for i in range(state.n_panes):
        pane_free(state.panes[i])
    pane_store_free(&state.store)
    free(state.panes)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef const Pane* pane
    cdef int64_t i, blocks = state.store.n_free_blocks
    cdef uint64_t at, numbers
    for i in range(state.n_panes):
        pane = state.panes[i]
        assert i == 0 or state.panes[i - 1].start < pane.start, "windows out of order"
        assert pane.end == pane.start + state.size
        assert pane.fired == (i < state.n_fired)
        assert pane.n_blocks == (pane.n_keys + ENTRY_BLOCK - 1) // ENTRY_BLOCK
        if not state.core.due:
            assert pane.fired == (pane.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert _cleanup_time(state, pane.start) > state.core.cursor.watermark, "a window outlived its time"
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
VERBS.free = _free


def time_windows(*, int64_t size, int64_t slide, int64_t offset, int64_t allowed_lateness):
    """Make the kernel of tumbling or sliding windows.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` equals `size` for tumbling windows.

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
    if size <= 0 or slide <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"window size {size} ms and slide {slide} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    if max(size, slide, abs(offset)) > 2**60:  # the sums of two such times do not overflow
        raise ConfigurationError(f"window size {size} ms, slide {slide} ms and offset {offset} ms must be below 2**60")
    if (size + slide - 1) // slide > LOOK_AHEAD:
        raise ConfigurationError(
            f"a slide of {slide} ms puts every row into {(size + slide - 1) // slide} windows of {size} ms; "
            f"at most {LOOK_AHEAD} are supported: choose a longer slide"
        )
    kernel = window_kernel(
        sizeof(TimeWindows),
        &VERBS,
        allowed_lateness,
        INT64_MIN + max(size, slide) * 2 + max(offset, 0),
        INT64_MAX - size * 2 - abs(offset),
    )
    state = <TimeWindows*> kernel.state
    state.size = size
    state.slide = slide
    state.offset = offset
    state.quiet_until = INT64_MAX
    return kernel

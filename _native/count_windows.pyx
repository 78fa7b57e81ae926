"""Windows of so many elements of a key, which may overlap: a kernel of window operators.

Windows start at every `slide` elements of a key, and each fires with its last element::

    elements    0 1 2 3 4 5 6 7 8          size 5, slide 2
    full only   [0 1 2 3 4]
                    [2 3 4 5 6]
                        [4 5 6 7 8]
    or short    [0 1|2 3]                   fires at | too, and stays open
                  [1 2 3 4 5]
                      [3 4 5 6 7]

Follows Flink's `WindowOperator` with PyFlink's `CountSlidingWindowAssigner`, where full windows only fire; and
`EvictingWindowOperator` with `GlobalWindows`, a `CountTrigger` of the slide and a `CountEvictor` of the size, where at every
`slide` elements the last `size` ones are given, or all where there have been fewer. That operator keeps elements; here each
open window has accumulators, which overlapping windows do not share.

The windows that one key starts with, and fires before they are full, begin with the same element: they are one.

Windows that fire are gathered, and their results emitted together: before one that stays open gets a further element, and
before the watermark moves.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_reserve
from flinkcore._native.firings cimport (
    Firings,
    RowKind,
    cursor_step,
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    pending_add,
    pending_flush,
)
from flinkcore._native.key_dictionary cimport key_table_add, key_table_free
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport grow
from flinkcore._native.prefetch cimport prefetch
from flinkcore._native.window_kernel cimport (
    NO_ENTRY,
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    core_advance,
    core_count,
    core_emit,
    core_is_full,
    input_row,
    window_kernel,
    window_rows_add,
)

cdef enum:
    LOOK_AHEAD = 16
    EMPTY_ENTRY = 0      # for a key without an open window, in a checkpoint
    FURTHER_WINDOW = 64  # flag of a checkpoint's row: a later window of the key of the row before

cdef const char* _WHAT = b"the windows of counted elements"  # that memory is for
cdef int64_t MOST_ELEMENTS = 1 << 62  # of a window or a slide: sums of two do not overflow


# ---- entries -----------------------------------------------------------------------------------------------------


cdef int64_t _take_entry(CountWindows* state) except -1 nogil:
    # An empty one.
    cdef uint32_t entry = state.free_entry
    cdef int64_t capacity
    if entry != NO_WINDOW:
        state.free_entry = state.following[entry]
        return entry
    if state.n_entries == state.entries_capacity:
        if state.n_entries == NO_WINDOW:
            with gil:
                raise MemoryError("more than 4,294,967,295 open (key, window) entries in one task; use more partitions")
        capacity = min(state.entries_capacity + (state.entries_capacity >> 1) + 64, <int64_t> NO_WINDOW)
        state.following = <uint32_t*> grow(state.following, capacity * sizeof(uint32_t), _WHAT)
        accumulators_reserve(state.core.table, <uint32_t> capacity)
        state.entries_capacity = capacity
    state.n_entries += 1
    return state.n_entries - 1


cdef void _give_entry(CountWindows* state, uint32_t entry) noexcept nogil:
    accumulators_clear_range(state.core.table, entry, 1)
    state.following[entry] = state.free_entry
    state.free_entry = entry


cdef int _open(CountWindows* state, CountedKey* key) except -1 nogil:
    # A window of the key, its last one.
    cdef uint32_t entry = <uint32_t> _take_entry(state)
    state.following[entry] = NO_WINDOW
    if key.first == NO_WINDOW:
        key.first = entry
    else:
        state.following[key.last] = entry
    key.last = entry
    state.n_open += 1
    return 0


cdef inline int64_t _open_windows(const CountWindows* state, int64_t count) noexcept nogil:
    # How many are open behind so many elements of a key: those that have started, less those that were full.
    cdef int64_t started = 0, full = 0
    if count > max(state.first_start, 0):
        started = (count - 1 - state.first_start) // state.slide + 1
    if count >= state.first_start + state.size:
        full = (count - state.first_start - state.size) // state.slide + 1
    return started - full


cdef inline int64_t _phase(const CountWindows* state, int64_t count) noexcept nogil:
    # Of the element with this number.
    cdef int64_t phase = (count - state.first_start) % state.slide
    return phase + state.slide if phase < 0 else phase


cdef int64_t _key(CountWindows* state, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Id of the row's key; a new key has had no element.
    cdef int64_t id = key_table_add(&state.keys, keys, row), capacity
    cdef CountedKey* key
    if id == state.counted_capacity:
        capacity = state.counted_capacity * 2 + 64
        state.counted = <CountedKey*> grow(state.counted, capacity * sizeof(CountedKey), _WHAT)
        state.counted_capacity = capacity
    if id == state.n_counted:
        state.n_counted = id + 1
        key = &state.counted[id]
        key.count = 0
        key.phase = _phase(state, 0)
        key.first = key.last = NO_WINDOW
        key.firing = False
    return id


# ---- firing ------------------------------------------------------------------------------------------------------


cdef int _append_key(const CountWindows* state, Firings* firings, uint32_t id) except -1 nogil:
    if state.core.bytes_keys:
        return firings_append_bytes_keys(firings, state.keys.data.data, &(<const int64_t*> state.keys.offsets.data)[id], 1)
    return firings_append_int64_keys(firings, &(<const int64_t*> state.keys.values.data)[id], 1)


cdef void _add_firing(CountWindows* state, uint32_t id, bint is_full) noexcept nogil:
    # The first window of a key fires: its result comes with the next _emit_firing. There is room for it.
    cdef int64_t i = state.n_firing
    cdef CountedKey* key = &state.counted[id]
    cdef const int64_t* offsets = <const int64_t*> state.keys.offsets.data
    state.firing[i].key = id
    state.firing[i].stays_open = not is_full
    state.entries[i] = key.first
    if state.core.bytes_keys:
        state.key_offsets[i + 1] = state.key_offsets[i] + offsets[id + 1] - offsets[id]
    state.n_firing = i + 1
    if is_full:
        key.first = state.following[key.first]
        state.n_open -= 1
    else:
        key.firing = True


cdef int64_t _emit_some(CountWindows* state) except -1 nogil:
    # As many results as there is room for.
    cdef bint late = state.core.cursor.watermark == INT64_MAX
    cdef int64_t i, n = core_emit(
        &state.core,
        state.entries + state.n_emitted,
        0,
        state.n_firing - state.n_emitted,
        state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL,
    )
    cdef const CountFiring* firing
    for i in range(state.n_emitted, state.n_emitted + n):
        firing = &state.firing[i]
        core_count(&state.core, RowKind.INSERT, late)
        _append_key(state, &state.core.firings, firing.key)
        if firing.stays_open:
            state.counted[firing.key].firing = False
        else:
            _give_entry(state, state.entries[i])
    firings_append(&state.core.firings, INT64_MIN, INT64_MAX, late, state.core.cursor.watermark, n)
    state.n_emitted += n
    return n


cdef bint _emit_firing(CountWindows* state) except -1 nogil:
    # False where results are full before all are out.
    if state.n_firing == 0:
        return True
    pending_flush(&state.core.pending, state.core.table)
    while state.n_emitted < state.n_firing:
        if _emit_some(state) == 0:
            state.core.due = True
            return False
    state.n_firing = state.n_emitted = 0
    return True


cdef bint _fire_due(void* windows) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    if not _emit_firing(state):
        return False
    state.core.due = False
    return True


cdef bint _step(void* windows) except -1 nogil:
    # A watermark fires nothing.
    cdef CountWindows* state = <CountWindows*> windows
    if not _emit_firing(state):
        return False
    cursor_step(&state.core.cursor)
    return True


# ---- rows --------------------------------------------------------------------------------------------------------


cdef bint _take_row(CountWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef CountedKey* key
    cdef int64_t id, phase
    cdef uint32_t entry
    cdef bint is_full
    if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
        return False
    id = _key(state, input.keys, row)
    key = &state.counted[id]
    if (key.firing or state.n_firing == MOST_FIRINGS) and not _emit_firing(state):
        return False
    phase = key.phase
    if (phase == 0 and key.count >= state.first_start) or (key.count == 0 and state.first_start < 0):
        _open(state, key)
    entry = key.first
    if entry == NO_WINDOW and not state.fires_short:
        state.core.in_no_window += 1
    else:
        state.core.windowed += 1
    while entry != NO_WINDOW:
        pending_add(&state.core.pending, state.core.table, entry, row)
        entry = state.following[entry]
    key.count += 1
    key.phase = phase + 1 if phase + 1 < state.slide else 0
    if phase == state.fires_at:
        is_full = key.count >= state.first_start + state.size
        if is_full or state.fires_short:
            _add_firing(state, <uint32_t> id, is_full)
    return True


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    cdef int64_t i = first
    while i < input.n:
        if i + LOOK_AHEAD < input.n and state.keys.slots != NULL:
            prefetch(&state.keys.slots[input.keys.hashes[input_row(input, i + LOOK_AHEAD)] & state.keys.mask])
        if not _take_row(state, input, input_row(input, i)):
            break
        i += 1
        if state.core.table.rows + state.n_firing >= state.core.row_limit or core_is_full(&state.core):
            break
    _emit_firing(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    # A row per key and open window, at least one per key; each tells how many elements the key has had.
    cdef const CountWindows* state = <const CountWindows*> windows
    cdef LiveWindow window
    cdef uint32_t id, entry
    window.start = INT64_MIN
    window.end = INT64_MAX
    for id in range(state.keys.n_keys):
        window.trigger_state = state.counted[id].count
        window.flags = 0
        entry = state.counted[id].first
        _append_key(state, &rows.firings, id)
        window_rows_add(rows, &window, EMPTY_ENTRY if entry == NO_WINDOW else entry)
        window.flags = FURTHER_WINDOW
        while entry != NO_WINDOW:
            entry = state.following[entry]
            if entry != NO_WINDOW:
                _append_key(state, &rows.firings, id)
                window_rows_add(rows, &window, entry)
    return 0


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    cdef int64_t known = state.n_counted, id = _key(state, keys, row), i
    cdef CountedKey* key = &state.counted[id]
    cdef uint32_t entry
    if window.flags == FURTHER_WINDOW:
        entry = state.restored
        if id != state.restored_key or entry == NO_WINDOW or window.trigger_state != key.count:
            return NO_ENTRY
    else:
        if window.flags or id < known or not 0 < window.trigger_state <= MOST_ELEMENTS:
            return NO_ENTRY
        key.count = window.trigger_state
        key.phase = _phase(state, key.count)
        for i in range(_open_windows(state, key.count)):
            _open(state, key)
        state.restored_key = <uint32_t> id
        entry = key.first
        if entry == NO_WINDOW:
            state.restored = NO_WINDOW
            return EMPTY_ENTRY
    state.restored = state.following[entry]
    return entry


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef CountWindows* state = <CountWindows*> windows
    check_retracts(&state.core, True)
    state.keys.bytes_keys = state.core.bytes_keys
    state.core.unbounded_windows = True
    _take_entry(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const CountWindows*> windows).n_open


cdef void _free(void* windows) noexcept nogil:
    cdef CountWindows* state = <CountWindows*> windows
    key_table_free(&state.keys)
    free(state.counted)
    free(state.following)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const CountWindows* state = <const CountWindows*> windows
    cdef const CountedKey* key
    cdef int64_t i, n_open, all_open = 0, unused = 0
    cdef uint32_t id, entry
    assert state.core.due or state.n_firing == 0, "results were left behind"
    assert state.n_counted == state.keys.n_keys
    for id in range(state.keys.n_keys):
        key = &state.counted[id]
        assert key.phase == _phase(state, key.count)
        assert state.core.due or not key.firing
        n_open = 0
        entry = key.first
        while entry != NO_WINDOW:
            n_open += 1
            assert state.following[entry] != NO_WINDOW or key.last == entry, "a window was lost"
            entry = state.following[entry]
        assert n_open == _open_windows(state, key.count), "windows and elements differ"
        all_open += n_open
    assert all_open == state.n_open
    for i in range(state.n_emitted, state.n_firing):
        unused += not state.firing[i].stays_open
    entry = state.free_entry
    while entry != NO_WINDOW:
        unused += 1
        entry = state.following[entry]
    assert 1 + all_open + unused == state.n_entries, "an entry was lost"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=_windows, restore=_restore, free=_free,
)


def count_windows(*, int64_t size, int64_t slide, bint full_only):
    """Make the kernel of windows of so many elements of a key.

    Parameters
    ----------
    size, slide : int
        Elements of a window, and from the start of one to that of the next; 1 to 2**62.
    full_only : bool
        Whether windows start with the elements 0, `slide` and so on of a key, and fire when they are full; else the last
        `size` elements fire at every `slide`-th one, or all where there have been fewer.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If a number of elements is out of its range.
    """
    cdef WindowKernel kernel
    cdef CountWindows* state
    if not 0 < size <= MOST_ELEMENTS or not 0 < slide <= MOST_ELEMENTS:
        raise ConfigurationError(
            f"windows of {size} elements, every {slide}: both numbers must be at least 1, and at most 2**62"
        )
    kernel = window_kernel("count_windows", sizeof(CountWindows), &VERBS, 0, INT64_MIN, INT64_MAX)
    state = <CountWindows*> kernel.state
    state.size = size
    state.slide = slide
    if not full_only:
        state.first_start = slide - size if slide > size else -(size % slide)
    state.fires_at = (size - 1) % slide
    state.fires_short = not full_only
    state.free_entry = state.restored = state.restored_key = NO_WINDOW
    return kernel

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

from flinkcore._native.count_firings cimport MOST_FIRINGS, append_counted_key, count_firing_add, count_firings_emit
from flinkcore._native.entry_lists cimport (
    EMPTY_ENTRY,
    END_OF_LIST,
    entries_taken,
    entry_give,
    entry_list_check,
    entry_lists_free,
    entry_lists_start,
    entry_take,
)
from flinkcore._native.firings cimport cursor_step, pending_add, pending_flush
from flinkcore._native.key_dictionary cimport key_table_add, key_table_free
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport grow, prefetch
from flinkcore._native.window_kernel cimport (
    NO_ENTRY,
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    core_advance,
    core_is_full,
    input_row,
    window_kernel,
    window_rows_add,
)

cdef enum:
    LOOK_AHEAD = 16
    FURTHER_WINDOW = 64  # flag of a checkpoint's row: a later window of the key of the row before

cdef int64_t MOST_ELEMENTS = 1 << 62  # of a window or a slide: sums of two do not overflow


# ---- open windows ------------------------------------------------------------------------------------------------


cdef int _open(CountWindows* state, CountedKey* key) except -1 nogil:
    # A window of the key, its last one.
    cdef uint32_t entry = <uint32_t> entry_take(&state.lists)
    if key.first == END_OF_LIST:
        key.first = entry
    else:
        state.lists.following[key.last] = entry
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
        state.counted = <CountedKey*> grow(state.counted, capacity * sizeof(CountedKey), b"counted keys")
        state.counted_capacity = capacity
    if id == state.n_counted:
        state.n_counted = id + 1
        key = &state.counted[id]
        key.count = 0
        key.phase = _phase(state, 0)
        key.first = key.last = END_OF_LIST
        key.firing = False
    return id


# ---- firing ------------------------------------------------------------------------------------------------------


cdef void _fire(CountWindows* state, uint32_t id, bint is_full) noexcept nogil:
    # The first window of a key: its result comes with the next _emit_firing. There is room for it.
    cdef CountedKey* key = &state.counted[id]
    count_firing_add(&state.fired, &state.keys, id, key.first)
    if is_full:
        key.first = state.lists.following[key.first]
        state.n_open -= 1
    else:
        key.firing = True


cdef bint _emit_firing(CountWindows* state) except -1 nogil:
    # False where results are full before all are out.
    cdef int64_t i, first, n = state.fired.n
    cdef uint32_t id
    pending_flush(&state.core.pending, state.core.table)
    while state.fired.n:
        first = state.fired.n_emitted
        n = count_firings_emit(&state.fired, &state.keys, &state.core)
        if n == 0:
            state.core.due = True
            return False
        for i in range(first, first + n):
            id = state.fired.keys[i]
            if state.counted[id].firing:
                state.counted[id].firing = False
            else:
                entry_give(&state.lists, state.fired.entries[i])
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
    if (key.firing or state.fired.n == MOST_FIRINGS) and not _emit_firing(state):
        return False
    phase = key.phase
    if (phase == 0 and key.count >= state.first_start) or (key.count == 0 and state.first_start < 0):
        _open(state, key)
    entry = key.first
    if entry == END_OF_LIST and not state.fires_short:
        state.core.in_no_window += 1
    else:
        state.core.windowed += 1
    while entry != END_OF_LIST:
        pending_add(&state.core.pending, state.core.table, entry, row)
        entry = state.lists.following[entry]
    key.count += 1
    key.phase = phase + 1 if phase + 1 < state.slide else 0
    if phase == state.fires_at:
        is_full = key.count >= state.first_start + state.size
        if is_full or state.fires_short:
            _fire(state, <uint32_t> id, is_full)
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
        if state.core.table.rows + state.fired.n >= state.core.row_limit or core_is_full(&state.core):
            break
    _emit_firing(state)
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
        append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, &window, EMPTY_ENTRY if entry == END_OF_LIST else entry)
        window.flags = FURTHER_WINDOW
        while entry != END_OF_LIST:
            entry = state.lists.following[entry]
            if entry != END_OF_LIST:
                append_counted_key(&rows.firings, &state.keys, id)
                window_rows_add(rows, &window, entry)
    return 0


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    cdef int64_t known = state.n_counted, id = _key(state, keys, row), i
    cdef CountedKey* key = &state.counted[id]
    cdef uint32_t entry
    if window.flags == FURTHER_WINDOW:
        entry = state.restored
        if id != state.restored_key or entry == END_OF_LIST or window.trigger_state != key.count:
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
        if entry == END_OF_LIST:
            state.restored = END_OF_LIST
            return EMPTY_ENTRY
    state.restored = state.lists.following[entry]
    return entry


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef CountWindows* state = <CountWindows*> windows
    check_retracts(&state.core, True)
    state.keys.bytes_keys = state.core.bytes_keys
    state.core.unbounded_windows = True
    entry_lists_start(&state.lists, state.core.table)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const CountWindows*> windows).n_open


cdef void _free(void* windows) noexcept nogil:
    cdef CountWindows* state = <CountWindows*> windows
    key_table_free(&state.keys)
    free(state.counted)
    entry_lists_free(&state.lists)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const CountWindows* state = <const CountWindows*> windows
    cdef const CountedKey* key
    cdef int64_t i, n_open, all_open = 0, emptied = 0
    cdef uint32_t id
    assert state.core.due or state.fired.n == 0, "results were left behind"
    assert state.n_counted == state.keys.n_keys
    for id in range(state.keys.n_keys):
        key = &state.counted[id]
        assert key.phase == _phase(state, key.count)
        assert state.core.due or not key.firing
        n_open = entry_list_check(&state.lists, key.first)
        assert n_open == _open_windows(state, key.count), "windows and elements differ"
        assert n_open == 0 or state.lists.following[key.last] == END_OF_LIST, "a window was lost"
        all_open += n_open
    assert all_open == state.n_open
    for i in range(state.fired.n_emitted, state.fired.n):
        emptied += not state.counted[state.fired.keys[i]].firing
    assert all_open + emptied == entries_taken(&state.lists), "an entry was lost"
    assert entry_list_check(&state.lists, state.lists.free_entry) == state.lists.n_free
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
    state.restored = state.restored_key = END_OF_LIST
    return kernel

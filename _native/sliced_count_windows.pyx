"""Overlapping windows of so many elements of a key that share slices: a kernel of window operators.

Windows whose size is a multiple of their slide are made of slices, one per slide, and the slices of a key lie in blocks of as
many as a window has::

    slices      | 0   1   2   3 | 4   5   6   7 | 8 ...
    windows     [ 0   1   2   3 ]
                    [ 1   2   3   4 ]
                        [ 2   3   4   5 ]

A window that does not fill a block is made of the rest of the block before and of the slices of its own block so far. Those are
added up as they come; the rests, when their block is complete, from its end on. So each slice is added three times, however
many windows it is in.

Windows are those of `count_windows`; the results are the same for accumulators that are shareable.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.count_firings cimport append_counted_key, count_firing_add, count_firings_emit
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
from flinkcore._native.shared_accumulators cimport accumulators_add, require_shareable
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
    FURTHER_ENTRY = 64  # flag of a checkpoint's row: a rest or a slice of the key of the row before

cdef int64_t MOST_ELEMENTS = 1 << 62


cdef int64_t _key(SlicedCountWindows* state, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Id of the row's key; a new key has had no element.
    cdef int64_t id = key_table_add(&state.keys, keys, row), capacity
    cdef SlicedKey* key
    if id == state.sliced_capacity:
        capacity = state.sliced_capacity * 2 + 64
        state.sliced = <SlicedKey*> grow(state.sliced, capacity * sizeof(SlicedKey), b"counted keys")
        state.sliced_capacity = capacity
    if id == state.n_sliced:
        state.n_sliced = id + 1
        key = &state.sliced[id]
        key.count = key.phase = key.place = 0
        key.rests = key.slices = key.together = END_OF_LIST
        key.completed = False
    return id


cdef int _add_slice(SlicedCountWindows* state, SlicedKey* key) except -1 nogil:
    cdef uint32_t entry = <uint32_t> entry_take(&state.lists)
    state.lists.following[entry] = key.slices
    key.slices = entry
    return 0


# ---- completed slices --------------------------------------------------------------------------------------------


cdef void _end_block(SlicedCountWindows* state, SlicedKey* key) noexcept nogil:
    # Makes rests of the slices, from the last one back; the first slice is in none.
    cdef uint32_t* following = state.lists.following
    cdef uint32_t later = key.slices, entry = following[later], earlier
    following[later] = END_OF_LIST
    while following[entry] != END_OF_LIST:
        earlier = following[entry]
        accumulators_add(state.core.table, &entry, &later, 1)
        following[entry] = later
        later = entry
        entry = earlier
    entry_give(&state.lists, entry)
    key.rests = later
    key.slices = END_OF_LIST
    key.place = 0


cdef int _add_up(SlicedCountWindows* state) except -1 nogil:
    # Takes in the slices that are complete, and fires the windows that end with them.
    cdef uint32_t[MOST_FIRINGS] into
    cdef uint32_t[MOST_FIRINGS] others
    cdef int64_t i, n = 0
    cdef uint32_t id, entry
    cdef SlicedKey* key
    pending_flush(&state.core.pending, state.core.table)
    for i in range(state.n_completed):
        key = &state.sliced[state.completed[i]]
        if key.together == END_OF_LIST:
            key.together = <uint32_t> entry_take(&state.lists)
        into[i] = key.together
        others[i] = key.slices
    accumulators_add(state.core.table, into, others, state.n_completed)
    for i in range(state.n_completed):
        id = state.completed[i]
        key = &state.sliced[id]
        if key.place == state.window_slices - 1:
            count_firing_add(&state.fired, &state.keys, id, key.together)
            key.together = END_OF_LIST
            continue
        if key.rests != END_OF_LIST:
            entry = key.rests
            key.rests = state.lists.following[entry]
        elif state.fires_short:
            entry = <uint32_t> entry_take(&state.lists)
        else:
            continue
        into[n] = entry
        others[n] = key.together
        n += 1
        count_firing_add(&state.fired, &state.keys, id, entry)
    accumulators_add(state.core.table, into, others, n)
    for i in range(state.n_completed):
        key = &state.sliced[state.completed[i]]
        key.completed = False
        key.place += 1
        if key.place == state.window_slices:
            _end_block(state, key)
    state.n_completed = 0
    return 0


cdef bint _settle(SlicedCountWindows* state) except -1 nogil:
    # Adds up what is complete, and emits the results; false where these are full before all are out.
    cdef int64_t i, first, n
    if state.n_completed:
        _add_up(state)
    while state.fired.n:
        first = state.fired.n_emitted
        n = count_firings_emit(&state.fired, &state.keys, &state.core)
        if n == 0:
            state.core.due = True
            return False
        for i in range(first, first + n):
            entry_give(&state.lists, state.fired.entries[i])
    return True


cdef bint _fire_due(void* windows) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    if not _settle(state):
        return False
    state.core.due = False
    return True


cdef bint _step(void* windows) except -1 nogil:
    # A watermark fires nothing.
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    if not _settle(state):
        return False
    cursor_step(&state.core.cursor)
    return True


# ---- rows --------------------------------------------------------------------------------------------------------


cdef bint _take_row(SlicedCountWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef SlicedKey* key
    cdef int64_t id
    if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
        return False
    id = _key(state, input.keys, row)
    key = &state.sliced[id]
    if (key.completed or state.n_completed == MOST_FIRINGS) and not _settle(state):
        return False
    if key.phase == 0:
        _add_slice(state, key)
    pending_add(&state.core.pending, state.core.table, key.slices, row)
    state.core.windowed += 1
    key.count += 1
    key.phase += 1
    if key.phase == state.slide:
        key.phase = 0
        key.completed = True
        state.completed[state.n_completed] = <uint32_t> id
        state.n_completed += 1
    return True


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    cdef int64_t i = first
    while i < input.n:
        if i + LOOK_AHEAD < input.n and state.keys.slots != NULL:
            prefetch(&state.keys.slots[input.keys.hashes[input_row(input, i + LOOK_AHEAD)] & state.keys.mask])
        if not _take_row(state, input, input_row(input, i)):
            break
        i += 1
        # Not every slice gives a result.
        if state.core.table.rows + state.n_completed >= state.core.row_limit and not _settle(state):
            break
        if core_is_full(&state.core):
            break
    _settle(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef int _add_rows(const SlicedCountWindows* state, WindowRows* rows, uint32_t id, LiveWindow* window, uint32_t first) except -1 nogil:
    cdef uint32_t entry = first
    while entry != END_OF_LIST:
        append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, window, entry)
        entry = state.lists.following[entry]
    return 0


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    # For each key a row of the complete slices together, then its rests and slices; each tells how many elements it has had.
    cdef const SlicedCountWindows* state = <const SlicedCountWindows*> windows
    cdef const SlicedKey* key
    cdef LiveWindow window
    cdef uint32_t id
    window.start = INT64_MIN
    window.end = INT64_MAX
    for id in range(state.keys.n_keys):
        key = &state.sliced[id]
        window.trigger_state = key.count
        window.flags = 0
        append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, &window, EMPTY_ENTRY if key.together == END_OF_LIST else key.together)
        window.flags = FURTHER_ENTRY
        _add_rows(state, rows, id, &window, key.rests)
        _add_rows(state, rows, id, &window, key.slices)
    return 0


cdef inline int64_t _count_rests(const SlicedCountWindows* state, const SlicedKey* key) noexcept nogil:
    # Of a block that is complete there is one rest less than there are slices, and each window takes one.
    return state.window_slices - 1 - key.place if key.count // state.slide >= state.window_slices else 0


cdef int _open_key(SlicedCountWindows* state, SlicedKey* key, int64_t count) except -1 nogil:
    # What a key has that has had so many elements, all of it empty.
    cdef int64_t i
    cdef uint32_t entry
    key.count = count
    key.phase = count % state.slide
    key.place = count // state.slide % state.window_slices
    if key.place:
        key.together = <uint32_t> entry_take(&state.lists)
    for i in range(_count_rests(state, key)):
        entry = <uint32_t> entry_take(&state.lists)
        state.lists.following[entry] = key.rests
        key.rests = entry
    for i in range(key.place + (key.phase > 0)):
        _add_slice(state, key)
    return 0


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    cdef int64_t known = state.n_sliced, id = _key(state, keys, row)
    cdef SlicedKey* key = &state.sliced[id]
    cdef uint32_t entry
    if window.flags == FURTHER_ENTRY:
        if id != state.restored_key or window.trigger_state != key.count:
            return NO_ENTRY
        if state.restored == END_OF_LIST and state.restoring_rests:
            state.restoring_rests = False
            state.restored = key.slices
        entry = state.restored
        if entry == END_OF_LIST:
            return NO_ENTRY
        state.restored = state.lists.following[entry]
        return entry
    if window.flags or id < known or not 0 < window.trigger_state <= MOST_ELEMENTS:
        return NO_ENTRY
    _open_key(state, key, window.trigger_state)
    state.restored_key = <uint32_t> id
    state.restored = key.rests
    state.restoring_rests = True
    return EMPTY_ENTRY if key.together == END_OF_LIST else key.together


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    check_retracts(&state.core, True)
    require_shareable(state.core.table)
    state.keys.bytes_keys = state.core.bytes_keys
    state.core.unbounded_windows = True
    entry_lists_start(&state.lists, state.core.table)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    # What is kept of them, which is not more.
    return entries_taken(&(<const SlicedCountWindows*> windows).lists)


cdef void _free(void* windows) noexcept nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    key_table_free(&state.keys)
    free(state.sliced)
    entry_lists_free(&state.lists)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const SlicedCountWindows* state = <const SlicedCountWindows*> windows
    cdef const SlicedKey* key
    cdef int64_t entries = state.fired.n - state.fired.n_emitted
    cdef uint32_t id
    assert state.n_completed == 0, "a slice was left behind"
    assert state.core.due or state.fired.n == 0, "results were left behind"
    assert state.n_sliced == state.keys.n_keys
    for id in range(state.keys.n_keys):
        key = &state.sliced[id]
        assert not key.completed
        assert key.phase == key.count % state.slide
        assert key.place == key.count // state.slide % state.window_slices
        assert (key.together != END_OF_LIST) == (key.place > 0)
        assert entry_list_check(&state.lists, key.rests) == _count_rests(state, key), "a rest was lost"
        assert entry_list_check(&state.lists, key.slices) == key.place + (key.phase > 0), "a slice was lost"
        entries += _count_rests(state, key) + key.place + (key.phase > 0) + (key.place > 0)
    assert entries == entries_taken(&state.lists), "an entry was lost"
    assert entry_list_check(&state.lists, state.lists.free_entry) == state.lists.n_free
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=_windows, restore=_restore, free=_free,
)


def sliced_count_windows(*, int64_t size, int64_t slide, bint full_only):
    """Make the kernel of windows of so many elements of a key that share slices.

    Parameters
    ----------
    size, slide : int
        Elements of a window, and from the start of one to that of the next; 1 to 2**62. The size is a multiple of the slide,
        at least twice that.
    full_only : bool
        Whether windows fire only when they are full.

    Returns
    -------
    WindowKernel
        For accumulators that are shareable.

    Raises
    ------
    ConfigurationError
        If a number of elements is out of its range, or the size is no such multiple.
    """
    cdef WindowKernel kernel
    cdef SlicedCountWindows* state
    if not 0 < slide < size <= MOST_ELEMENTS or size % slide:
        raise ConfigurationError(
            f"windows of {size} elements, every {slide}, are not made of slices: the size must be a multiple of the slide, "
            "above it and at most 2**62, and both at least 1"
        )
    kernel = window_kernel("sliced_count_windows", sizeof(SlicedCountWindows), &VERBS, 0, INT64_MIN, INT64_MAX)
    state = <SlicedCountWindows*> kernel.state
    state.slide = slide
    state.window_slices = size // slide
    state.fires_short = not full_only
    state.restored = state.restored_key = END_OF_LIST
    return kernel

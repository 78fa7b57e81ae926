"""Windows of a number of elements of a key, which may overlap: kernels of window operators.

`count_windows` has an entry for each open window; `sliced_count_windows` lets overlapping windows share slices. The results are
the same for shareable accumulators.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, UINT32_MAX, int64_t, uint32_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport (
    AccumulatorTable,
    accumulators_add,
    accumulators_clear_range,
    accumulators_reserve,
    require_shareable,
)
from flinkcore._native.key_dictionary cimport KeyTable, key_table_add, key_table_bytes, key_table_free
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport block_bytes, grow, prefetch
from flinkcore._native.window_operator cimport (
    MOST_GATHERED,
    NO_ENTRY,
    Firings,
    GatheredFirings,
    InputRows,
    LiveWindow,
    RowKind,
    WindowCore,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    core_append_firings,
    core_count,
    core_is_full,
    core_reach_row_emitted,
    cursor_step,
    emit_gathered,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    gather_firing,
    input_row,
    pending_add,
    pending_flush,
    window_kernel,
    window_rows_add,
)


cdef enum:
    LOOK_AHEAD = 16
    FURTHER_ROW = 64  # flag of a checkpoint's row: it has the key of the row before

cdef int64_t MOST_ELEMENTS = 1 << 62  # of a window or a slide: sums of two do not overflow


cdef inline void _prefetch_key(const KeyTable* keys, const InputRows* input, int64_t i) noexcept nogil:
    if i < input.n and keys.slots != NULL:
        prefetch(&keys.slots[input.keys.hashes[input_row(input, i)] & keys.mask])


# ---- entries in lists --------------------------------------------------------------------------------------------
# Lists of entries, such as those of the open windows of a key.


cdef enum:
    END_OF_LIST = 0xFFFFFFFF
    EMPTY_ENTRY = 0  # is never taken, and always empty


cdef struct EntryLists:
    AccumulatorTable* table
    uint32_t* following  # by entry: the next one of its list, or the next free one; END_OF_LIST
    int64_t capacity
    uint32_t n_entries   # entries ever taken, and the empty one
    uint32_t n_free
    uint32_t free_entry


cdef inline int64_t _entries_taken(const EntryLists* lists) noexcept nogil:
    return <int64_t> lists.n_entries - 1 - lists.n_free


cdef int _entry_lists_start(EntryLists* lists, AccumulatorTable* table) except -1:
    # Starts zeroed lists over accumulators without entries.
    lists.table = table
    lists.free_entry = END_OF_LIST
    _entry_take(lists)
    return 0


cdef int64_t _entry_take(EntryLists* lists) except -1 nogil:
    # Takes an empty entry, which ends its list. Returns it.
    cdef uint32_t entry = lists.free_entry
    cdef int64_t capacity
    if entry != END_OF_LIST:
        lists.free_entry = lists.following[entry]
        lists.n_free -= 1
    else:
        if lists.n_entries == lists.capacity:
            if lists.n_entries == UINT32_MAX:
                with gil:
                    raise MemoryError("more than 4,294,967,295 live (key, window) entries in one task; use more partitions")
            capacity = min(lists.capacity + (lists.capacity >> 1) + 64, <int64_t> UINT32_MAX)
            lists.following = <uint32_t*> grow(
                lists.following, capacity * sizeof(uint32_t), b"the windows of counted elements"
            )
            accumulators_reserve(lists.table, <uint32_t> capacity)
            lists.capacity = capacity
        entry = lists.n_entries
        lists.n_entries += 1
    lists.following[entry] = END_OF_LIST
    return entry


cdef void _entry_give(EntryLists* lists, uint32_t entry) noexcept nogil:
    # Empties and frees an entry that has left its list.
    accumulators_clear_range(lists.table, entry, 1)
    lists.following[entry] = lists.free_entry
    lists.free_entry = entry
    lists.n_free += 1


cdef void _entry_lists_free(EntryLists* lists) noexcept nogil:
    free(lists.following)
    lists.following = NULL


cdef int64_t _entry_list_check(const EntryLists* lists, uint32_t first) except -1:
    # Returns the number of entries of a list; raises AssertionError if an entry is impossible.
    cdef int64_t n = 0
    cdef uint32_t entry = first
    while entry != END_OF_LIST:
        assert EMPTY_ENTRY < entry < lists.n_entries
        n += 1
        assert n < lists.n_entries, "a list has no end"
        entry = lists.following[entry]
    return n


# ---- results that are emitted together ---------------------------------------------------------------------------
# Results of windows that elements of keys have fired.


cdef struct CountFirings:
    GatheredFirings gathered
    uint32_t[MOST_GATHERED] keys  # ids


cdef void _count_firing_add(CountFirings* fired, const KeyTable* keys, uint32_t id, uint32_t entry) noexcept nogil:
    cdef const int64_t* offsets = <const int64_t*> keys.offsets.data
    fired.keys[gather_firing(&fired.gathered, entry, offsets[id + 1] - offsets[id] if keys.bytes_keys else 0)] = id


cdef int64_t _count_firings_emit(CountFirings* fired, const KeyTable* keys, WindowCore* core) except -1 nogil:
    # Emits as many results as there is room for at the watermark in force. Returns how many. The entries stay as they are.
    cdef bint late = core.cursor.watermark == INT64_MAX
    cdef GatheredFirings* gathered = &fired.gathered
    cdef int64_t i, first = gathered.n_emitted, n = emit_gathered(core, gathered)
    for i in range(first, first + n):
        _append_counted_key(&core.firings, keys, fired.keys[i])
        core_count(core, RowKind.INSERT, late)
    core_append_firings(core, INT64_MIN, INT64_MAX, late, n)
    gathered.n_emitted += n
    if gathered.n_emitted == gathered.n:
        gathered.n = gathered.n_emitted = 0
    return n


cdef int _append_counted_key(Firings* firings, const KeyTable* keys, uint32_t id) except -1 nogil:
    # Appends a key of the table.
    cdef const int64_t* offsets = <const int64_t*> keys.offsets.data
    if keys.bytes_keys:
        return firings_append_bytes_keys(firings, keys.data.data, &offsets[id], 1)
    return firings_append_int64_keys(firings, &(<const int64_t*> keys.values.data)[id], 1)


# ---- windows with entries of their own ---------------------------------------------------------------------------
# Windows start at every `slide` elements of a key, and each fires with its last element::
#
#     elements    0 1 2 3 4 5 6 7 8          size 5, slide 2
#     full only   [0 1 2 3 4]
#                     [2 3 4 5 6]
#                         [4 5 6 7 8]
#     or short    [0 1|2 3]                   fires at | too, and stays open
#                   [1 2 3 4 5]
#                       [3 4 5 6 7]
#
# Follows Flink's `WindowOperator` with PyFlink's `CountSlidingWindowAssigner` if only full windows fire. Otherwise follows
# `EvictingWindowOperator` with `GlobalWindows`, a `CountTrigger` of the slide and a `CountEvictor` of the size: at every
# `slide` elements it emits the last `size` ones, or all if there have been fewer. That operator keeps elements; here each open
# window has accumulators of its own.
#
# The windows that a key fires before they are full begin with the same element: they are one window, which stays open.
#
# Windows that fire are gathered, and their results emitted together: before a window that stays open gets a further element,
# and before the watermark moves.


cdef struct CountedKey:
    int64_t count   # of its elements so far
    int64_t phase   # of the next element: its distance from the last element that starts a window
    uint32_t first  # its open windows by start, a list of entries
    uint32_t last
    bint firing     # its first window, which stays open, has fired, and the result is not out


cdef struct CountWindows:
    WindowCore core
    int64_t size
    int64_t slide
    int64_t first_start  # number of the element, from 0 on, that starts the first window; below 0 if that window is shorter
    int64_t fires_at     # phase of the elements that fire a window
    bint fires_short     # true if windows fire before they are full
    KeyTable keys
    CountedKey* counted  # by id of the key
    int64_t n_counted
    int64_t counted_capacity
    EntryLists lists
    int64_t n_open
    uint32_t restored    # the next window of the key restored last
    uint32_t restored_key
    CountFirings fired   # emitted before a further element of a window that stays open, or a watermark


# ---- windows with entries of their own: open windows -------------------------------------------------------------


cdef int _open(CountWindows* state, CountedKey* key) except -1 nogil:
    # Opens a window at the end of the key's list.
    cdef uint32_t entry = <uint32_t> _entry_take(&state.lists)
    if key.first == END_OF_LIST:
        key.first = entry
    else:
        state.lists.following[key.last] = entry
    key.last = entry
    state.n_open += 1
    return 0


cdef inline int64_t _open_windows(const CountWindows* state, int64_t count) noexcept nogil:
    # Returns the number of open windows after so many elements of a key: those that have started minus those that were full.
    cdef int64_t started = 0, full = 0
    if count > max(state.first_start, 0):
        started = (count - 1 - state.first_start) // state.slide + 1
    if count >= state.first_start + state.size:
        full = (count - state.first_start - state.size) // state.slide + 1
    return started - full


cdef inline int64_t _phase(const CountWindows* state, int64_t count) noexcept nogil:
    # Returns the phase of the element with this number.
    cdef int64_t phase = (count - state.first_start) % state.slide
    return phase + state.slide if phase < 0 else phase


cdef int64_t _count_key(CountWindows* state, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Returns the id of the row's key; a new key has had no element.
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


# ---- windows with entries of their own: firing -------------------------------------------------------------------


cdef void _fire(CountWindows* state, uint32_t id, bint is_full) noexcept nogil:
    # Fires the first window of a key: its result is emitted by the next _emit_firing. The caller has made room.
    cdef CountedKey* key = &state.counted[id]
    _count_firing_add(&state.fired, &state.keys, id, key.first)
    if is_full:
        key.first = state.lists.following[key.first]
        state.n_open -= 1
    else:
        key.firing = True


cdef bint _emit_firing(CountWindows* state) except -1 nogil:
    # Returns false if results are full before all are out.
    cdef int64_t i, first, n
    cdef uint32_t id
    if state.fired.gathered.n:
        pending_flush(&state.core.pending, state.core.table)
    while state.fired.gathered.n:
        first = state.fired.gathered.n_emitted
        n = _count_firings_emit(&state.fired, &state.keys, &state.core)
        if n == 0:
            state.core.due = True
            return False
        for i in range(first, first + n):
            id = state.fired.keys[i]
            if state.counted[id].firing:
                state.counted[id].firing = False
            else:
                _entry_give(&state.lists, state.fired.gathered.entries[i])
    return True


cdef bint _count_fire_due(void* windows) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    if not _emit_firing(state):
        return False
    state.core.due = False
    return True


cdef bint _count_step(void* windows) except -1 nogil:
    # A watermark fires nothing.
    cdef CountWindows* state = <CountWindows*> windows
    if not _emit_firing(state):
        return False
    cursor_step(&state.core.cursor)
    return True


# ---- windows with entries of their own: rows ---------------------------------------------------------------------


cdef bint _count_take_row(CountWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement for one row. Returns false if results are full before it.
    cdef CountedKey* key
    cdef int64_t id, phase
    cdef uint32_t entry
    cdef bint is_full
    if not core_reach_row_emitted(&state.core, &COUNT_VERBS, input, row, state.fired.gathered.n > 0):
        return False
    id = _count_key(state, input.keys, row)
    key = &state.counted[id]
    if (key.firing or state.fired.gathered.n == MOST_GATHERED) and not _emit_firing(state):
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


cdef int64_t _count_process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    cdef int64_t i = first
    while i < input.n:
        _prefetch_key(&state.keys, input, i + LOOK_AHEAD)
        if not _count_take_row(state, input, input_row(input, i)):
            break
        i += 1
        if state.core.table.rows + state.fired.gathered.n >= state.core.row_limit or core_is_full(&state.core):
            break
    _emit_firing(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- windows with entries of their own: checkpoints --------------------------------------------------------------


cdef int _count_state(const void* windows, WindowRows* rows) except -1 nogil:
    # Appends a row per key and open window, at least one per key. Each has the number of elements of the key so far.
    cdef const CountWindows* state = <const CountWindows*> windows
    cdef LiveWindow window
    cdef uint32_t id, entry
    window.start = INT64_MIN
    window.end = INT64_MAX
    for id in range(state.keys.n_keys):
        window.trigger_state = state.counted[id].count
        window.flags = 0
        entry = state.counted[id].first
        _append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, &window, EMPTY_ENTRY if entry == END_OF_LIST else entry)
        window.flags = FURTHER_ROW
        while entry != END_OF_LIST:
            entry = state.lists.following[entry]
            if entry != END_OF_LIST:
                _append_counted_key(&rows.firings, &state.keys, id)
                window_rows_add(rows, &window, entry)
    return 0


cdef int64_t _count_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef CountWindows* state = <CountWindows*> windows
    cdef int64_t known = state.n_counted, id = _count_key(state, keys, row), i
    cdef CountedKey* key = &state.counted[id]
    cdef uint32_t entry
    if window.flags == FURTHER_ROW:
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


# ---- windows with entries of their own: the kernel ---------------------------------------------------------------


cdef int _count_start(void* windows) except -1:
    cdef CountWindows* state = <CountWindows*> windows
    check_retracts(&state.core, True)
    state.keys.bytes_keys = state.core.bytes_keys
    state.core.unbounded_windows = True
    _entry_lists_start(&state.lists, state.core.table)
    return 0


cdef int64_t _count_live_windows(const void* windows) noexcept nogil:
    return (<const CountWindows*> windows).n_open


cdef int64_t _count_bytes(const void* windows) noexcept nogil:
    cdef const CountWindows* state = <const CountWindows*> windows
    return key_table_bytes(&state.keys) + block_bytes(state.counted) + block_bytes(state.lists.following)


cdef void _count_free(void* windows) noexcept nogil:
    cdef CountWindows* state = <CountWindows*> windows
    key_table_free(&state.keys)
    free(state.counted)
    _entry_lists_free(&state.lists)
    free(state)


cdef int _count_check(const void* windows) except -1:
    cdef const CountWindows* state = <const CountWindows*> windows
    cdef const CountedKey* key
    cdef int64_t i, n_open, all_open = 0, emptied = 0
    cdef uint32_t id
    assert state.core.due or state.fired.gathered.n == 0, "results were left behind"
    assert state.n_counted == state.keys.n_keys
    for id in range(state.keys.n_keys):
        key = &state.counted[id]
        assert key.phase == _phase(state, key.count)
        assert state.core.due or not key.firing
        n_open = _entry_list_check(&state.lists, key.first)
        assert n_open == _open_windows(state, key.count), "windows and elements differ"
        assert n_open == 0 or state.lists.following[key.last] == END_OF_LIST, "a window was lost"
        all_open += n_open
    assert all_open == state.n_open
    for i in range(state.fired.gathered.n_emitted, state.fired.gathered.n):
        emptied += not state.counted[state.fired.keys[i]].firing
    assert all_open + emptied == _entries_taken(&state.lists), "an entry was lost"
    assert _entry_list_check(&state.lists, state.lists.free_entry) == state.lists.n_free
    return 0


cdef WindowVerbs COUNT_VERBS = WindowVerbs(
    start=_count_start, process=_count_process, fire_due=_count_fire_due, step=_count_step, live_windows=_count_live_windows,
    memory_bytes=_count_bytes, check=_count_check, windows=_count_state, restore=_count_restore, free=_count_free,
)


def count_windows(*, int64_t size, int64_t slide, bint full_only):
    """Make the kernel of windows of so many elements of a key.

    Parameters
    ----------
    size, slide : int
        Elements of a window, and elements from the start of one window to the next; 1 to 2**62.
    full_only : bool
        True if windows start with the elements 0, `slide` and so on of a key, and fire when they are full. Otherwise the last
        `size` elements fire at every `slide`-th one, or all if there have been fewer.

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
    kernel = window_kernel("count_windows", sizeof(CountWindows), &COUNT_VERBS, 0, INT64_MIN, INT64_MAX)
    state = <CountWindows*> kernel.state
    state.size = size
    state.slide = slide
    if not full_only:
        state.first_start = slide - size if slide > size else -(size % slide)
    state.fires_at = (size - 1) % slide
    state.fires_short = not full_only
    state.restored = state.restored_key = END_OF_LIST
    return kernel


# ---- windows that share slices -----------------------------------------------------------------------------------
# Windows whose size is a multiple of their slide are made of slices, one per slide, and the slices of a key lie in blocks of as
# many as a window has::
#
#     slices      | 0   1   2   3 | 4   5   6   7 | 8 ...
#     windows     [ 0   1   2   3 ]
#                     [ 1   2   3   4 ]
#                         [ 2   3   4   5 ]
#
# A window that does not fill a block consists of the rest of the block before and of the slices of its own block so far. The
# latter are added up as they come; the rests when their block is complete, from its end backwards. So each slice is added three
# times, however many windows contain it.


cdef struct SlicedKey:
    int64_t count      # of its elements so far
    int64_t phase      # of the next element, within its slice
    int64_t place      # of that slice within its block
    uint32_t rests     # of the block before, a list of entries: first the one after this slice
    uint32_t slices    # of this block, a list of entries: the latest first
    uint32_t together  # sum of the complete ones of them; END_OF_LIST without one
    bint completed     # the latest slice is complete, and not yet added up


cdef struct SlicedCountWindows:
    WindowCore core
    int64_t slide          # elements of a slice
    int64_t window_slices  # of a window, and of a block
    bint fires_short       # true if windows fire before they are full
    KeyTable keys
    SlicedKey* sliced      # by id of the key
    int64_t n_sliced
    int64_t sliced_capacity
    EntryLists lists
    uint32_t restored      # the next entry of the key restored last
    uint32_t restored_key
    bint restoring_rests
    int64_t n_completed
    uint32_t[MOST_GATHERED] completed  # keys whose slices are added up together, before a further element of one of them
    CountFirings fired                # of them


cdef int64_t _sliced_key(SlicedCountWindows* state, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Returns the id of the row's key; a new key has had no element.
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
    cdef uint32_t entry = <uint32_t> _entry_take(&state.lists)
    state.lists.following[entry] = key.slices
    key.slices = entry
    return 0


# ---- windows that share slices: completed slices -----------------------------------------------------------------


cdef void _end_block(SlicedCountWindows* state, SlicedKey* key) noexcept nogil:
    # Turns the slices into rests, from the last one back; the first slice is in none of them.
    cdef uint32_t* following = state.lists.following
    cdef uint32_t later = key.slices, entry = following[later], earlier
    following[later] = END_OF_LIST
    while following[entry] != END_OF_LIST:
        earlier = following[entry]
        accumulators_add(state.core.table, &entry, &later, 1)
        following[entry] = later
        later = entry
        entry = earlier
    _entry_give(&state.lists, entry)
    key.rests = later
    key.slices = END_OF_LIST
    key.place = 0


cdef int _add_up(SlicedCountWindows* state) except -1 nogil:
    # Adds up the complete slices, and fires the windows that end with them.
    cdef uint32_t[MOST_GATHERED] into
    cdef uint32_t[MOST_GATHERED] others
    cdef int64_t i, n = 0
    cdef uint32_t id, entry
    cdef SlicedKey* key
    pending_flush(&state.core.pending, state.core.table)
    for i in range(state.n_completed):
        key = &state.sliced[state.completed[i]]
        if key.together == END_OF_LIST:
            key.together = <uint32_t> _entry_take(&state.lists)
        into[i] = key.together
        others[i] = key.slices
    accumulators_add(state.core.table, into, others, state.n_completed)
    for i in range(state.n_completed):
        id = state.completed[i]
        key = &state.sliced[id]
        if key.place == state.window_slices - 1:
            _count_firing_add(&state.fired, &state.keys, id, key.together)
            key.together = END_OF_LIST
            continue
        if key.rests != END_OF_LIST:
            entry = key.rests
            key.rests = state.lists.following[entry]
        elif state.fires_short:
            entry = <uint32_t> _entry_take(&state.lists)
        else:
            continue
        into[n] = entry
        others[n] = key.together
        n += 1
        _count_firing_add(&state.fired, &state.keys, id, entry)
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
    # Adds up the complete slices, and emits the results. Returns false if results are full before all are out.
    cdef int64_t i, first, n
    if state.n_completed:
        _add_up(state)
    while state.fired.gathered.n:
        first = state.fired.gathered.n_emitted
        n = _count_firings_emit(&state.fired, &state.keys, &state.core)
        if n == 0:
            state.core.due = True
            return False
        for i in range(first, first + n):
            _entry_give(&state.lists, state.fired.gathered.entries[i])
    return True


cdef bint _sliced_fire_due(void* windows) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    if not _settle(state):
        return False
    state.core.due = False
    return True


cdef bint _sliced_step(void* windows) except -1 nogil:
    # A watermark fires nothing.
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    if not _settle(state):
        return False
    cursor_step(&state.core.cursor)
    return True


# ---- windows that share slices: rows -----------------------------------------------------------------------------


cdef bint _sliced_take_row(SlicedCountWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement for one row. Returns false if results are full before it.
    cdef SlicedKey* key
    cdef int64_t id
    if not core_reach_row_emitted(
        &state.core, &SLICED_VERBS, input, row, state.n_completed > 0 or state.fired.gathered.n > 0
    ):
        return False
    id = _sliced_key(state, input.keys, row)
    key = &state.sliced[id]
    if (key.completed or state.n_completed == MOST_GATHERED) and not _settle(state):
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


cdef int64_t _sliced_process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    cdef int64_t i = first
    while i < input.n:
        _prefetch_key(&state.keys, input, i + LOOK_AHEAD)
        if not _sliced_take_row(state, input, input_row(input, i)):
            break
        i += 1
        # Not every slice fires a window.
        if state.core.table.rows + state.n_completed >= state.core.row_limit and not _settle(state):
            break
        if core_is_full(&state.core):
            break
    _settle(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- windows that share slices: checkpoints ----------------------------------------------------------------------


cdef int _add_rows(const SlicedCountWindows* state, WindowRows* rows, uint32_t id, LiveWindow* window, uint32_t first) except -1 nogil:
    cdef uint32_t entry = first
    while entry != END_OF_LIST:
        _append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, window, entry)
        entry = state.lists.following[entry]
    return 0


cdef int _sliced_state(const void* windows, WindowRows* rows) except -1 nogil:
    # Appends for each key a row with the sum of its complete slices, then its rests and slices. Each row has the number of its
    # elements so far.
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
        _append_counted_key(&rows.firings, &state.keys, id)
        window_rows_add(rows, &window, EMPTY_ENTRY if key.together == END_OF_LIST else key.together)
        window.flags = FURTHER_ROW
        _add_rows(state, rows, id, &window, key.rests)
        _add_rows(state, rows, id, &window, key.slices)
    return 0


cdef inline int64_t _count_rests(const SlicedCountWindows* state, const SlicedKey* key) noexcept nogil:
    # A complete block has one rest less than slices, and each window uses up one rest.
    return state.window_slices - 1 - key.place if key.count // state.slide >= state.window_slices else 0


cdef int _open_key(SlicedCountWindows* state, SlicedKey* key, int64_t count) except -1 nogil:
    # Opens the entries of a key that has had so many elements, all of them empty.
    cdef int64_t i
    cdef uint32_t entry
    key.count = count
    key.phase = count % state.slide
    key.place = count // state.slide % state.window_slices
    if key.place:
        key.together = <uint32_t> _entry_take(&state.lists)
    for i in range(_count_rests(state, key)):
        entry = <uint32_t> _entry_take(&state.lists)
        state.lists.following[entry] = key.rests
        key.rests = entry
    for i in range(key.place + (key.phase > 0)):
        _add_slice(state, key)
    return 0


cdef int64_t _sliced_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    cdef int64_t known = state.n_sliced, id = _sliced_key(state, keys, row)
    cdef SlicedKey* key = &state.sliced[id]
    cdef uint32_t entry
    if window.flags == FURTHER_ROW:
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


# ---- windows that share slices: the kernel -----------------------------------------------------------------------


cdef int _sliced_start(void* windows) except -1:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    check_retracts(&state.core, True)
    require_shareable(state.core.table)
    state.keys.bytes_keys = state.core.bytes_keys
    state.core.unbounded_windows = True
    _entry_lists_start(&state.lists, state.core.table)
    return 0


cdef int64_t _sliced_live_windows(const void* windows) noexcept nogil:
    # The entries that are kept; there are never more than live windows.
    return _entries_taken(&(<const SlicedCountWindows*> windows).lists)


cdef int64_t _sliced_bytes(const void* windows) noexcept nogil:
    cdef const SlicedCountWindows* state = <const SlicedCountWindows*> windows
    return key_table_bytes(&state.keys) + block_bytes(state.sliced) + block_bytes(state.lists.following)


cdef void _sliced_free(void* windows) noexcept nogil:
    cdef SlicedCountWindows* state = <SlicedCountWindows*> windows
    key_table_free(&state.keys)
    free(state.sliced)
    _entry_lists_free(&state.lists)
    free(state)


cdef int _sliced_check(const void* windows) except -1:
    cdef const SlicedCountWindows* state = <const SlicedCountWindows*> windows
    cdef const SlicedKey* key
    cdef int64_t entries = state.fired.gathered.n - state.fired.gathered.n_emitted
    cdef uint32_t id
    assert state.n_completed == 0, "a slice was left behind"
    assert state.core.due or state.fired.gathered.n == 0, "results were left behind"
    assert state.n_sliced == state.keys.n_keys
    for id in range(state.keys.n_keys):
        key = &state.sliced[id]
        assert not key.completed
        assert key.phase == key.count % state.slide
        assert key.place == key.count // state.slide % state.window_slices
        assert (key.together != END_OF_LIST) == (key.place > 0)
        assert _entry_list_check(&state.lists, key.rests) == _count_rests(state, key), "a rest was lost"
        assert _entry_list_check(&state.lists, key.slices) == key.place + (key.phase > 0), "a slice was lost"
        entries += _count_rests(state, key) + key.place + (key.phase > 0) + (key.place > 0)
    assert entries == _entries_taken(&state.lists), "an entry was lost"
    assert _entry_list_check(&state.lists, state.lists.free_entry) == state.lists.n_free
    return 0


cdef WindowVerbs SLICED_VERBS = WindowVerbs(
    start=_sliced_start, process=_sliced_process, fire_due=_sliced_fire_due, step=_sliced_step, live_windows=_sliced_live_windows,
    memory_bytes=_sliced_bytes, check=_sliced_check, windows=_sliced_state, restore=_sliced_restore, free=_sliced_free,
)


def sliced_count_windows(*, int64_t size, int64_t slide, bint full_only):
    """Make the kernel of windows of so many elements of a key that share slices.

    Parameters
    ----------
    size, slide : int
        Elements of a window, and elements from the start of one window to the next; 1 to 2**62. The size is a multiple of the
        slide, at least twice the slide.
    full_only : bool
        True if windows fire only when they are full.

    Returns
    -------
    WindowKernel
        A kernel for shareable accumulators.

    Raises
    ------
    ConfigurationError
        If a number of elements is out of its range, or the size is not such a multiple.
    """
    cdef WindowKernel kernel
    cdef SlicedCountWindows* state
    if not 0 < slide < size <= MOST_ELEMENTS or size % slide:
        raise ConfigurationError(
            f"windows of {size} elements, every {slide}, are not made of slices: the size must be a multiple of the slide, "
            "above it and at most 2**62, and both at least 1"
        )
    kernel = window_kernel("sliced_count_windows", sizeof(SlicedCountWindows), &SLICED_VERBS, 0, INT64_MIN, INT64_MAX)
    state = <SlicedCountWindows*> kernel.state
    state.slide = slide
    state.window_slices = size // slide
    state.fires_short = not full_only
    state.restored = state.restored_key = END_OF_LIST
    return kernel

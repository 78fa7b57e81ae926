# Panes: the keys of live windows; and the bounds of tumbling, sliding and cumulate windows. Each kind has one window per end.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from flinkcore._native.aggregates cimport AccumulatorTable
from flinkcore._native.keys cimport KEY_BYTES, KEY_INT64, KeyBatch
from flinkcore._native.window_calendar cimport CalendarTable, CalendarWindow, WindowCalendar, calendar_window
from flinkcore._native.window_operator cimport Firings, InputRows, RowKind, WindowCore, WindowKernel, WindowRows, WindowVerbs


cdef struct HashedKey:
    uint64_t hash
    uint32_t number


cdef struct HashOrder:
    # Memory for sorting.
    uint32_t* buckets
    int64_t capacity


cdef void hash_order_free(HashOrder* scratch) noexcept nogil


cdef inline int compare_bytes(const KeyBatch* keys, int64_t row, const KeyBatch* others, int64_t other) noexcept nogil:
    # Returns a number below, equal to or above 0 as the key of a row sorts before, with or after that of the other. 0 for int64
    # keys, which are equal because their hashes are.
    cdef int64_t length, other_length
    cdef int result = 0
    if keys.kind != KEY_BYTES:
        return 0
    length = keys.offsets[row + 1] - keys.offsets[row]
    other_length = others.offsets[other + 1] - others.offsets[other]
    if length and other_length:
        result = memcmp(
            keys.data + keys.offsets[row], others.data + others.offsets[other], min(length, other_length)
        )
    return result if result else (length > other_length) - (length < other_length)


cdef enum:
    ENTRY_BLOCK = 256
    MOST_SPARE = 3


cdef struct KeySlot:
    # `code` is the key itself (KEY_INT64) or its whole hash (KEY_BYTES).
    uint64_t code
    uint32_t number  # the key's number in its pane, plus one; 0: empty slot


cdef struct Pane:
    # One live window: its keys in order of registration, and an open-addressing index over them.
    int64_t start
    int64_t end
    bint fired
    uint32_t n_keys
    uint32_t keys_capacity
    int64_t* keys        # KEY_INT64: (n_keys,)
    uint64_t* hashes     # (n_keys,)
    int64_t* offsets     # KEY_BYTES: (n_keys + 1,) into data
    uint8_t* data
    int64_t data_capacity
    KeySlot* slots
    uint64_t mask
    uint32_t* blocks     # block numbers; key k has the entry blocks[k // ENTRY_BLOCK] * ENTRY_BLOCK + k % ENTRY_BLOCK
    uint32_t* twin_blocks  # likewise, of the keys' other entries; NULL if the store has no twins
    uint32_t n_blocks
    uint32_t blocks_capacity
    HashedKey* order     # the first n_ordered keys
    uint32_t n_ordered


cdef struct PaneStore:
    # Hands out blocks of accumulator entries, and keeps the memory of closed windows for the next ones.
    bint bytes_keys
    bint twins           # each key of a window has two entries
    AccumulatorTable* table
    Pane** spare         # at most MOST_SPARE
    int64_t n_spare
    uint64_t expected_keys
    uint32_t* free_blocks
    int64_t n_free_blocks
    int64_t free_blocks_capacity
    uint32_t n_blocks


cdef struct PaneList:
    # Live windows by end; each end is there once.
    Pane** panes
    int64_t n
    int64_t capacity


# Returns the index of the first window that ends at or after `end`.
cdef int64_t pane_list_position(const PaneList* live, int64_t end) noexcept nogil
# Returns the index of the first window that ends after `end`.
cdef int64_t pane_list_behind(const PaneList* live, int64_t end) noexcept nogil
# Opens a window and inserts it.
cdef Pane* pane_list_open(PaneList* live, PaneStore* store, int64_t start, int64_t end) except NULL nogil
# Closes the windows whose time is over at the watermark in force, which are the first ones. Returns how many.
cdef int64_t pane_list_retire(PaneList* live, PaneStore* store, WindowCore* core) except -1 nogil
# Closes the first n.
cdef void pane_list_close(PaneList* live, PaneStore* store, int64_t n) noexcept nogil
# Returns the number of entry blocks of the windows; raises AssertionError if a window is inconsistent.
cdef int64_t pane_list_check(const PaneList* live) except -1


cdef inline Pane* pane_list_find(const PaneList* live, int64_t end) noexcept nogil:
    # Returns NULL without such a window. The last windows are tried first, since most rows go into one of them.
    cdef int64_t i
    for i in range(live.n - 1, max(live.n - 5, -1), -1):
        if live.panes[i].end == end:
            return live.panes[i]
    if live.n <= 4:
        return NULL
    i = pane_list_position(live, end)
    if i < live.n and live.panes[i].end == end:
        return live.panes[i]
    return NULL


# Opens a window that is not in a list.
cdef Pane* pane_open(PaneStore* store, int64_t start, int64_t end) except NULL nogil
# Empties the keys' entries and returns them to the store; the pane can take in other keys.
cdef void pane_empty(PaneStore* store, Pane* pane) noexcept nogil
cdef void pane_free(Pane* pane) noexcept nogil
# Sorts all keys by hash, unless that is done.
cdef int pane_make_order(HashOrder* scratch, const PaneStore* store, Pane* pane) except -1 nogil
# Opens a window without an index, which is not in a list, and whose owner places the keys; pane_make_room reserves room for
# keys and their bytes.
cdef Pane* pane_open_plain() except NULL nogil
cdef int pane_make_room(PaneStore* store, Pane* pane, uint32_t n_keys, int64_t n_bytes) except -1 nogil
# Empties the entries of a plain window and returns them to the store.
cdef void pane_empty_plain(PaneStore* store, Pane* pane) noexcept nogil
# Frees all windows of the list, and the memory of the store.
cdef void panes_free(PaneList* live, PaneStore* store) noexcept nogil
# Returns the bytes that the windows of the list take, and those that are kept for the next ones, without their entries.
cdef int64_t panes_bytes(const PaneList* live, const PaneStore* store) noexcept nogil
# Registers the row's new key in the empty slot `at` of the index. Returns its number.
cdef int64_t pane_insert(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row, uint64_t at) except -1 nogil


cdef inline KeyBatch pane_keys(const PaneStore* store, const Pane* pane) noexcept nogil:
    # Returns the pane's keys as those of a batch, which borrows their memory.
    cdef KeyBatch keys
    keys.kind = KEY_BYTES if store.bytes_keys else KEY_INT64
    keys.length = pane.n_keys
    keys.values = pane.keys
    keys.data = pane.data
    keys.offsets = pane.offsets
    keys.hashes = pane.hashes
    keys.is_null = NULL
    return keys


cdef inline uint32_t pane_entry(const Pane* pane, int64_t k) noexcept nogil:
    return pane.blocks[k // ENTRY_BLOCK] * ENTRY_BLOCK + <uint32_t> (k % ENTRY_BLOCK)


cdef inline uint32_t pane_twin(const Pane* pane, int64_t k) noexcept nogil:
    return pane.twin_blocks[k // ENTRY_BLOCK] * ENTRY_BLOCK + <uint32_t> (k % ENTRY_BLOCK)


cdef inline uint64_t pane_slot(const PaneStore* store, const Pane* pane, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Returns the slot of the row's key, or the empty one for a new key.
    cdef uint64_t at = keys.hashes[row] & pane.mask, code
    cdef const KeySlot* slot
    cdef int64_t length, k
    if not store.bytes_keys:
        code = <uint64_t> keys.values[row]
        while True:
            slot = &pane.slots[at]
            if slot.number == 0 or slot.code == code:
                return at
            at = (at + 1) & pane.mask
    code = keys.hashes[row]
    length = keys.offsets[row + 1] - keys.offsets[row]
    while True:
        slot = &pane.slots[at]
        if slot.number == 0:
            return at
        if slot.code == code:
            k = <int64_t> slot.number - 1
            if pane.offsets[k + 1] - pane.offsets[k] == length and (
                length == 0 or memcmp(pane.data + pane.offsets[k], keys.data + keys.offsets[row], length) == 0
            ):
                return at
        at = (at + 1) & pane.mask


cdef inline int64_t pane_find(const PaneStore* store, const Pane* pane, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Returns the number of the row's key in the window, or -1.
    return <int64_t> pane.slots[pane_slot(store, pane, keys, row)].number - 1


cdef inline int64_t pane_key(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Returns the number of the row's key in the window; a new key is registered.
    cdef uint64_t at = pane_slot(store, pane, keys, row)
    if pane.slots[at].number:
        return <int64_t> pane.slots[at].number - 1
    return pane_insert(store, pane, keys, row, at)


cdef inline int64_t pane_entry_of(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Returns the entry of the row's key; a new key is registered.
    return pane_entry(pane, pane_key(store, pane, keys, row))


cdef struct AlignedWindows:
    int64_t size     # of cumulate windows: of the largest; of a calendar: of the longest
    int64_t slide    # distance of two ends; of a calendar: the size
    int64_t offset   # of their starts, from 0 to below the distance of two
    int64_t slice_offset  # likewise, of a start for each slide
    bint cumulative  # windows share their start, once per size, and grow by the slide
    const CalendarTable* calendar  # windows of unequal lengths; NULL: size, slide and offset determine them
    int64_t met_from   # the window of the calendar that was looked up last; most timestamps are in it
    int64_t met_until


cdef struct WindowVisit:
    # One of the windows of a timestamp. They are visited in the order of Flink's assigners: sliding ones from the latest start
    # down, cumulate ones as they grow.
    int64_t start
    int64_t end
    int64_t start_step  # to the next one
    int64_t end_step
    int64_t timestamp
    int64_t last_end


cdef inline void meet(AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    # Looks up the window of a timestamp in the calendar, unless it is that of the last one.
    cdef CalendarWindow window
    if not windows.met_from <= timestamp < windows.met_until:
        window = calendar_window(windows.calendar, timestamp)
        windows.met_from, windows.met_until = window.start, window.end


# Bounds of windows fit into 64 bits: see `aligned_timestamps`. Intermediate values, and bounds past the last window, may not
# fit; they wrap around.


cdef inline int64_t wrapping_add(int64_t a, int64_t b) noexcept nogil:
    return <int64_t> (<uint64_t> a + <uint64_t> b)


cdef inline int64_t wrapping_subtract(int64_t a, int64_t b) noexcept nogil:
    return <int64_t> (<uint64_t> a - <uint64_t> b)


cdef inline int64_t since_start(int64_t timestamp, int64_t offset, int64_t width) noexcept nogil:
    # Returns the distance from the last start at or before the timestamp. There is a start every `width` from the offset on,
    # which is from 0 to below the width. C's remainder truncates towards zero, hence the correction of negative timestamps.
    cdef int64_t remainder = timestamp % width  # truncates
    if remainder < 0:
        remainder += width
    remainder -= offset
    return remainder + width if remainder < 0 else remainder


cdef inline int64_t aligned_start(int64_t timestamp, int64_t offset, int64_t width) noexcept nogil:
    # TimeWindow.getWindowStartWithOffset
    return wrapping_subtract(timestamp, since_start(timestamp, offset, width))


cdef inline int64_t slice_end(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    # Returns the next time, after the timestamp, at which a window could end if its size were a multiple of the slide.
    return aligned_start(timestamp, windows.slice_offset, windows.slide) + windows.slide


cdef inline int64_t first_end(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    # Returns the end of the first window to visit. If the timestamp is not below it, there is no window: the slide is longer
    # than the size, and the timestamp lies in a gap.
    cdef int64_t since = since_start(timestamp, windows.slice_offset, windows.slide)
    cdef int64_t length = windows.slide if windows.cumulative else windows.size
    return wrapping_add(timestamp, length - since) if since < length else timestamp


cdef inline WindowVisit visit_from(
    const AlignedWindows* windows, int64_t timestamp, int64_t start, int64_t end
) noexcept nogil:
    # Returns the first window of a timestamp, whose bounds are known.
    cdef WindowVisit visit
    visit.start = start
    visit.end = end
    visit.start_step = 0 if windows.cumulative else -windows.slide
    visit.end_step = windows.slide if windows.cumulative else -windows.slide
    visit.timestamp = timestamp
    visit.last_end = wrapping_add(start, windows.size)
    return visit


cdef inline WindowVisit first_window(AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    cdef int64_t end
    if windows.calendar != NULL:
        meet(windows, timestamp)
        return WindowVisit(windows.met_from, windows.met_until, 0, 1, timestamp, windows.met_until)
    end = first_end(windows, timestamp)
    return visit_from(
        windows,
        timestamp,
        aligned_start(timestamp, windows.offset, windows.size) if windows.cumulative else wrapping_subtract(end, windows.size),
        end,
    )


cdef inline bint is_window(const WindowVisit* visit) noexcept nogil:
    # Returns false after the last window.
    return visit.timestamp < visit.end <= visit.last_end


cdef inline void visit_next(WindowVisit* visit) noexcept nogil:
    visit.start = wrapping_add(visit.start, visit.start_step)
    visit.end = wrapping_add(visit.end, visit.end_step)


cdef inline Pane* pane_list_at(const PaneList* live, int64_t timestamp) noexcept nogil:
    # Returns the window that a timestamp is in, or NULL; windows do not overlap. The last ones are tried first.
    cdef int64_t i
    cdef Pane* pane
    for i in range(live.n - 1, max(live.n - 5, -1), -1):
        pane = live.panes[i]
        if pane.start <= timestamp < pane.end:
            return pane
    i = pane_list_behind(live, timestamp)
    if i < live.n and live.panes[i].start <= timestamp:
        return live.panes[i]
    return NULL


cdef inline bint has_window(int64_t start, int64_t end, int64_t size, int64_t slide, int64_t offset) noexcept nogil:
    # Returns true if windows of one size, one per slide, include one with these bounds, where start < end.
    return <uint64_t> end - <uint64_t> start == <uint64_t> size and since_start(start, offset, slide) == 0


cdef inline bint is_assigned(const AlignedWindows* windows, int64_t start, int64_t end) noexcept nogil:
    # Returns true if a timestamp can be in the window with these bounds, where start < end.
    cdef uint64_t length = <uint64_t> end - <uint64_t> start
    cdef CalendarWindow window
    if windows.calendar != NULL:
        window = calendar_window(windows.calendar, start)
        return window.start == start and window.end == end
    if not windows.cumulative:
        return has_window(start, end, windows.size, windows.slide, windows.offset)
    if length > <uint64_t> windows.size or length % <uint64_t> windows.slide:
        return False
    return since_start(start, windows.offset, windows.size) == 0


# Returns the most windows that a timestamp can be in.
cdef inline int64_t most_windows(const AlignedWindows* windows) noexcept nogil:
    return (windows.size - 1) // windows.slide + 1


# Raises ConfigurationError if windows cannot have this size, or a row would be in more than `most_windows`. A calendar, which
# must outlive the windows, takes the place of size, slide and offset.
cdef AlignedWindows checked_windows(
    int64_t size,
    int64_t slide,
    int64_t offset,
    bint cumulative,
    WindowCalendar calendar,
    int64_t allowed_lateness,
    int64_t most_windows,
) except *
# Makes a kernel with a zeroed state of `state_size` bytes; the calendar of the windows, or None, lives as long.
cdef WindowKernel aligned_kernel(
    str name,
    size_t state_size,
    const WindowVerbs* verbs,
    const AlignedWindows* windows,
    WindowCalendar calendar,
    int64_t allowed_lateness,
)
# Appends the result columns, except the aggregates', of n keys from number `first` on.
cdef int append_pane_keys(
    WindowCore* core, const Pane* pane, int64_t first, int64_t n, RowKind kind, bint late
) except -1 nogil
# Emits the current result of a key that a late row fires: before the row is added, or after.
cdef int emit_late_key(WindowCore* core, const Pane* pane, int64_t k, RowKind kind) except -1 nogil
# Appends n keys of a window, at least one, from number `first` on.
cdef int firings_append_pane_keys(
    Firings* firings, bint bytes_keys, const Pane* pane, int64_t first, int64_t n
) except -1 nogil
# Appends all keys of windows, with a flag if the window has fired.
cdef int append_live_panes(WindowRows* windows, bint bytes_keys, const PaneList* live) except -1 nogil
# Returns the entry of a row's key in a window of a checkpoint, or NO_ENTRY if the window has the key already.
cdef int64_t restored_pane_entry(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil
# Emits all keys for the first time, at the watermark in force, from number n_emitted on. Returns false if results are full
# before; n_emitted is then the next key, else 0.
cdef bint emit_pane(WindowCore* core, const Pane* pane, int64_t* n_emitted, bint purges) except -1 nogil


cdef enum:
    BLOCK_PAIRS = 128


cdef struct RowBlock:
    # Pairs of a row and a window that takes it, in the order of the rows.
    Pane* panes[BLOCK_PAIRS]
    uint32_t rows[BLOCK_PAIRS]
    int64_t n


cdef struct RowVerbs:
    # Fills a block with rows from number `first` on, up to one that needs more care: it is late, opens a window, falls into a
    # window that has fired, or a watermark before it fires something. Returns the number of the next row.
    int64_t (*find_windows)(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil
    # Takes in such a row. Returns false if results are full before it.
    bint (*take_row)(void* windows, const InputRows* input, uint32_t row) except -1 nogil


# Takes in rows from number `first` on, into up to `most_windows` each. Returns the number of the next row, below n if results
# are full.
cdef int64_t take_in_blocks(
    WindowCore* core, PaneStore* store, const InputRows* input, int64_t first, int64_t most_windows, const RowVerbs* verbs
) except -1 nogil

"""Panes: the keys of live windows, each window with an index of its own over entries that are shared out in blocks."""

from libc.stdint cimport INT64_MAX, INT64_MIN, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_reserve
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport allocated_bytes, grow
from flinkcore._native.window_calendar cimport WindowCalendar
from flinkcore._native.window_operator cimport (
    NO_ENTRY,
    Firings,
    InputRows,
    LiveWindow,
    RowKind,
    WindowCore,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    core_append_firings,
    core_emit,
    core_emit_row,
    core_is_full,
    core_take_in,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_append_kind,
    input_row,
    is_over,
    pending_add,
    pending_flush,
    window_kernel,
    window_rows_add,
)


# ---- keys in order of their hashes -------------------------------------------------------------------------------
# Keys of equal hashes are ordered by their bytes: windows in this order merge without an index. Hashes are well mixed, so
# buckets by their first bits hold a few keys each, and the insertion sort that finishes has next to nothing to do.


cdef enum:
    MOST_BITS = 24  # of a hash, which select the bucket
    LEAST_SLOTS = 32  # of an index
    MOST_GROWTH = 4   # of an index, beyond doubling


cdef inline bint _is_before(const KeyBatch* keys, HashedKey key, HashedKey other) noexcept nogil:
    if key.hash != other.hash:
        return key.hash < other.hash
    return compare_bytes(keys, key.number, keys, other.number) < 0


cdef int _hash_order(HashOrder* scratch, const KeyBatch* keys, uint32_t n, HashedKey* order) except -1 nogil:
    # Sorts the n keys of a batch, which are distinct, into `order`.
    cdef int bits = 1
    cdef int64_t i, at
    cdef uint32_t count, place = 0
    cdef uint32_t* buckets
    cdef HashedKey key
    while bits < MOST_BITS and (<int64_t> 4 << bits) < n:
        bits += 1
    if (<int64_t> 1) << bits > scratch.capacity:
        scratch.buckets = <uint32_t*> grow(
            scratch.buckets, sizeof(uint32_t) << bits, b"sorting the keys of windows"
        )
        scratch.capacity = (<int64_t> 1) << bits
    buckets = scratch.buckets
    memset(buckets, 0, sizeof(uint32_t) << bits)
    for i in range(n):
        buckets[keys.hashes[i] >> (64 - bits)] += 1
    for i in range((<int64_t> 1) << bits):
        count = buckets[i]
        buckets[i] = place
        place += count
    for i in range(n):
        key.hash = keys.hashes[i]
        key.number = <uint32_t> i
        at = key.hash >> (64 - bits)
        order[buckets[at]] = key
        buckets[at] += 1
    for i in range(1, n):
        key = order[i]
        at = i
        while at and _is_before(keys, key, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = key
    return 0


cdef void hash_order_free(HashOrder* scratch) noexcept nogil:
    free(scratch.buckets)


# ---- blocks of entries -------------------------------------------------------------------------------------------


cdef const char* _WHAT = b"the keys of windows"  # that memory is for


cdef int _make_room(BlockStack* stack, uint32_t more) except -1 nogil:
    # Blocks can then be returned without failing.
    cdef uint32_t capacity = stack.n_made + more
    if capacity > stack.capacity:
        capacity = max(capacity, stack.capacity + (stack.capacity >> 1))
        stack.blocks = <uint32_t*> grow(stack.blocks, <int64_t> capacity * sizeof(uint32_t), _WHAT)
        stack.capacity = capacity
    return 0


cdef int _make_blocks(PaneStore* store, int kind) except -1 nogil:
    # Puts a new whole block, or the halves of a larger one, on an empty stack.
    cdef BlockStack* stack = &store.free_blocks[kind]
    cdef BlockStack* larger = stack + 1
    if kind == WHOLE_BLOCK + store.twins:
        if store.n_blocks == UINT32_MAX >> kind:
            with gil:
                raise MemoryError("more than 4,294,966,784 live (key, window) entries in one task; use more partitions")
        _make_room(stack, 1)
        accumulators_reserve(store.table, (store.n_blocks + 1) << kind)
        stack.blocks[0] = store.n_blocks << kind
        stack.n = 1
        stack.n_made += 1
        store.n_blocks += 1
        return 0
    _make_room(stack, 2)
    if larger.n == 0:
        _make_blocks(store, kind + 1)
    larger.n -= 1
    larger.n_made -= 1
    stack.blocks[1] = larger.blocks[larger.n]  # taken first: the blocks of a pane that grows alone lie in a row
    stack.blocks[0] = stack.blocks[1] + (<uint32_t> 1 << kind)
    stack.n = 2
    stack.n_made += 2
    return 0


cdef int64_t _take_block(PaneStore* store, int kind) except -1 nogil:
    cdef BlockStack* stack = &store.free_blocks[kind]
    if stack.n == 0:
        _make_blocks(store, kind)
    stack.n -= 1
    return stack.blocks[stack.n]


cdef void _give_block(PaneStore* store, Pane* pane, uint32_t number, int64_t n_keys) noexcept nogil:
    # Returns a block of a pane, in which so many keys have had entries.
    cdef int kind = kind_of_block(number)
    cdef BlockStack* stack = &store.free_blocks[kind + store.twins]
    cdef uint32_t block = pane.starts[number] + <uint32_t> first_key_of_block(number)
    accumulators_clear_range(store.table, block, <uint32_t> n_keys)
    if store.twins:
        accumulators_clear_range(store.table, block + (<uint32_t> 1 << kind), <uint32_t> n_keys)
    stack.blocks[stack.n] = block
    stack.n += 1


# ---- the keys of one window --------------------------------------------------------------------------------------


cdef int64_t _pane_bytes(const PaneStore* store, const Pane* pane) noexcept nogil:
    cdef int64_t size = allocated_bytes(sizeof(Pane)), capacity = pane.keys_capacity
    if capacity > 1:
        size += allocated_bytes(capacity * sizeof(uint64_t))
        size += allocated_bytes((capacity + store.bytes_keys) * sizeof(int64_t))
    size += allocated_bytes(pane.data_capacity) if pane.data != NULL else 0
    size += allocated_bytes((pane.mask + 1) * sizeof(KeySlot)) if pane.slots != NULL else 0
    size += allocated_bytes(sizeof(uint32_t) << pane.starts_bits) if pane.starts_bits else 0
    size += allocated_bytes(capacity * sizeof(HashedKey)) if pane.order != NULL else 0
    return size


cdef void pane_free(PaneStore* store, Pane* pane) noexcept nogil:
    store.n_bytes -= _pane_bytes(store, pane)
    if pane.hashes != pane.own:
        free(pane.hashes)
    if pane.keys != <int64_t*> &pane.own[1]:
        free(pane.keys)
    if pane.offsets != <int64_t*> &pane.own[1]:
        free(pane.offsets)
    if pane.starts != &pane.own_start:
        free(pane.starts)
    free(pane.data)
    free(pane.slots)
    free(pane.order)
    free(pane)


cdef int _pane_resize_index(PaneStore* store, Pane* pane, uint64_t n_slots) except -1 nogil:
    cdef KeySlot* slots = <KeySlot*> calloc(n_slots, sizeof(KeySlot))
    cdef uint64_t mask = n_slots - 1, at, code
    cdef int64_t before = _pane_bytes(store, pane)
    cdef uint32_t k
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(KeySlot)} bytes for a window's key index")
    for k in range(pane.n_keys):
        code = pane.hashes[k] if store.bytes_keys else <uint64_t> pane.keys[k]
        at = pane.hashes[k] & mask
        while slots[at].number:
            at = (at + 1) & mask
        slots[at].code = code
        slots[at].number = k + 1
        slots[at].entry = pane_entry(pane, k)
    free(pane.slots)
    pane.slots = slots
    pane.mask = mask
    store.n_bytes += _pane_bytes(store, pane) - before
    return 0


cdef int _pane_grow_index(PaneStore* store, Pane* pane) except -1 nogil:
    # At once to what the last window needed, within bounds: the next one may have far fewer keys.
    cdef uint64_t n_slots = 2 * (pane.mask + 1) if pane.slots != NULL else LEAST_SLOTS
    cdef uint64_t most = n_slots * MOST_GROWTH
    while n_slots < most and n_slots * 2 < store.expected_keys * 3:
        n_slots *= 2
    return _pane_resize_index(store, pane, n_slots)


cdef int64_t* _grown_numbers(int64_t* numbers, const void* own, int64_t count, int64_t n_own) except NULL nogil:
    # Returns an array with so many numbers, which takes the place of one within a pane, or of an own array.
    cdef int64_t* grown
    if numbers != own:
        return <int64_t*> grow(numbers, count * sizeof(int64_t), _WHAT)
    grown = <int64_t*> grow(NULL, count * sizeof(int64_t), _WHAT)
    memcpy(grown, own, n_own * sizeof(int64_t))
    return grown


cdef int _pane_reserve_keys(PaneStore* store, Pane* pane, uint32_t capacity) except -1 nogil:
    cdef int64_t before = _pane_bytes(store, pane)
    free(pane.order)
    pane.order = NULL
    pane.n_ordered = 0
    pane.hashes = <uint64_t*> _grown_numbers(<int64_t*> pane.hashes, pane.own, capacity, 1)
    if store.bytes_keys:
        pane.offsets = _grown_numbers(pane.offsets, &pane.own[1], <int64_t> capacity + 1, 2)
    else:
        pane.keys = _grown_numbers(pane.keys, &pane.own[1], capacity, 1)
    pane.keys_capacity = capacity
    store.n_bytes += _pane_bytes(store, pane) - before
    return 0


cdef int _pane_reserve_data(PaneStore* store, Pane* pane, int64_t capacity) except -1 nogil:
    cdef int64_t before = _pane_bytes(store, pane)
    pane.data = <uint8_t*> grow(pane.data, capacity, _WHAT)
    pane.data_capacity = capacity
    store.n_bytes += _pane_bytes(store, pane) - before
    return 0


cdef int pane_make_order(HashOrder* scratch, PaneStore* store, Pane* pane) except -1 nogil:
    cdef KeyBatch keys
    cdef int64_t before
    if pane.n_ordered == pane.n_keys:
        return 0
    keys = pane_keys(store, pane)
    if pane.order == NULL:
        before = _pane_bytes(store, pane)
        pane.order = <HashedKey*> grow(NULL, pane.keys_capacity * sizeof(HashedKey), _WHAT)
        store.n_bytes += _pane_bytes(store, pane) - before
    _hash_order(scratch, &keys, pane.n_keys, pane.order)
    pane.n_ordered = pane.n_keys
    return 0


cdef int _pane_add_block(PaneStore* store, Pane* pane) except -1 nogil:
    cdef uint32_t number = pane.n_starts
    cdef uint8_t bits
    cdef int64_t before
    cdef uint32_t* starts
    if number == <uint32_t> 1 << pane.starts_bits:
        before = _pane_bytes(store, pane)
        bits = pane.starts_bits + 1 if pane.starts_bits else 2
        starts = <uint32_t*> grow(NULL if pane.starts == &pane.own_start else pane.starts, sizeof(uint32_t) << bits, _WHAT)
        starts[0] = pane.starts[0] if pane.starts == &pane.own_start else starts[0]
        pane.starts = starts
        pane.starts_bits = bits
        store.n_bytes += _pane_bytes(store, pane) - before
    pane.starts[number] = <uint32_t> (
        _take_block(store, kind_of_block(number) + store.twins) - first_key_of_block(number)
    )
    pane.n_starts = number + 1
    return 0


cdef int64_t pane_insert(
    PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row, uint64_t at
) except -1 nogil:
    # Memory is taken before the key is counted, so that an error leaves the pane consistent.
    cdef uint32_t k = pane.n_keys
    cdef int64_t length, needed
    if k == MOST_UNINDEXED if pane.slots == NULL else (<uint64_t> k + 1) * 3 > (pane.mask + 1) * 2:
        _pane_grow_index(store, pane)
        at = keys.hashes[row] & pane.mask
        while pane.slots[at].number:
            at = (at + 1) & pane.mask
    if k == pane.keys_capacity:
        # Entries run out before numbers of keys do.
        _pane_reserve_keys(store, pane, <uint32_t> min(max(<int64_t> k * 2, <int64_t> 4), <int64_t> UINT32_MAX))
    if k == first_key_of_block(pane.n_starts):
        _pane_add_block(store, pane)
    pane.hashes[k] = keys.hashes[row]
    if store.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        needed = pane.offsets[k] + length
        if needed > pane.data_capacity:
            _pane_reserve_data(store, pane, needed * 2 if k else needed)
        if length:
            memcpy(pane.data + pane.offsets[k], keys.data + keys.offsets[row], length)
        pane.offsets[k + 1] = needed
    else:
        pane.keys[k] = keys.values[row]
    if pane.slots != NULL:
        pane.slots[at].code = keys.hashes[row] if store.bytes_keys else <uint64_t> keys.values[row]
        pane.slots[at].number = k + 1
        pane.slots[at].entry = pane_entry(pane, k)
    pane.n_keys = k + 1
    return k


cdef Pane* pane_open(PaneStore* store, int64_t start, int64_t end) except NULL nogil:
    cdef Pane* pane
    if store.n_spare:
        store.n_spare -= 1
        pane = store.spare[store.n_spare]
    else:
        pane = pane_open_plain(store)
    pane.start = start
    pane.end = end
    return pane


cdef void pane_empty(PaneStore* store, Pane* pane) noexcept nogil:
    cdef int64_t left = pane.n_keys, n
    cdef uint32_t i
    for i in range(pane.n_starts):
        n = min(left, first_key_of_block(<int64_t> i + 1) - first_key_of_block(i))
        _give_block(store, pane, i, n)
        left -= n
    if pane.slots != NULL:
        memset(pane.slots, 0, (pane.mask + 1) * sizeof(KeySlot))
    pane.n_keys = pane.n_starts = pane.n_ordered = 0


cdef void _pane_close(PaneStore* store, Pane* pane) noexcept nogil:
    cdef uint32_t n_keys = pane.n_keys
    store.expected_keys = n_keys  # the next window probably has as many: its index grows to that size at once
    pane_empty(store, pane)
    if store.n_spare == MOST_SPARE or pane.mask > 4 * <uint64_t> n_keys + 64:
        pane_free(store, pane)  # the memory of one crowded window is not kept for ever
        return
    store.spare[store.n_spare] = pane
    store.n_spare += 1


cdef Pane* pane_open_plain(PaneStore* store) except NULL nogil:
    cdef Pane* pane = <Pane*> calloc(1, sizeof(Pane))
    if pane == NULL:
        with gil:
            raise MemoryError("a window")
    pane.hashes = pane.own
    if store.bytes_keys:
        pane.offsets = <int64_t*> &pane.own[1]
    else:
        pane.keys = <int64_t*> &pane.own[1]
    pane.starts = &pane.own_start
    pane.keys_capacity = 1
    store.n_bytes += _pane_bytes(store, pane)
    return pane


cdef void _give_blocks(PaneStore* store, Pane* pane, uint32_t n_starts) noexcept nogil:
    # Returns all blocks except the first ones to the store, emptied as a whole.
    while pane.n_starts > n_starts:
        pane.n_starts -= 1
        _give_block(store, pane, pane.n_starts, <int64_t> 1 << kind_of_block(pane.n_starts))


cdef int pane_make_room(PaneStore* store, Pane* pane, uint32_t n_keys, int64_t n_bytes) except -1 nogil:
    cdef int64_t roomy = 4 * <int64_t> n_keys + 1024  # the memory of one crowded window is not kept for ever
    if n_keys > pane.keys_capacity or pane.keys_capacity > roomy:
        _pane_reserve_keys(store, pane, <uint32_t> min(n_keys + (<int64_t> n_keys >> 2) + 32, <int64_t> UINT32_MAX))
    if n_bytes > pane.data_capacity or pane.data_capacity > 4 * n_bytes + 4096:
        _pane_reserve_data(store, pane, n_bytes + (n_bytes >> 2) + 64)
    _give_blocks(store, pane, block_of_key(2 * <int64_t> n_keys + 4 * ENTRY_BLOCK))
    while first_key_of_block(pane.n_starts) < n_keys:
        _pane_add_block(store, pane)
    return 0


cdef void pane_empty_plain(PaneStore* store, Pane* pane) noexcept nogil:
    _give_blocks(store, pane, 0)
    pane.n_keys = 0


cdef int pane_check(const PaneStore* store, const Pane* pane, PaneTotals* totals) except -1:
    # Whether a plain pane has more room than it needs is its owner's to know.
    cdef uint64_t at
    cdef int64_t numbers = 0
    if pane.slots != NULL:
        for at in range(pane.mask + 1):
            if pane.slots[at].number:
                numbers += 1
                assert pane.slots[at].entry == pane_entry(pane, <int64_t> pane.slots[at].number - 1), "another key's entry"
        assert numbers == pane.n_keys, "index and keys differ"
    else:
        assert pane.mask == 0
    assert pane.n_keys <= pane.keys_capacity
    assert pane.n_keys <= first_key_of_block(pane.n_starts), "a key without an entry"
    totals.entries += first_key_of_block(pane.n_starts) << store.twins
    totals.n_bytes += _pane_bytes(store, pane)
    return 0


cdef int pane_store_check(const PaneStore* store, PaneTotals totals) except -1:
    cdef int64_t i
    cdef int kind
    for kind in range(WHOLE_BLOCK + 2):
        assert store.free_blocks[kind].n <= store.free_blocks[kind].n_made <= store.free_blocks[kind].capacity
        totals.entries += <int64_t> store.free_blocks[kind].n << kind
    assert totals.entries == <int64_t> store.n_blocks << (WHOLE_BLOCK + store.twins), "an entry was lost"
    for i in range(store.n_spare):
        assert store.spare[i].n_keys == store.spare[i].n_starts == 0
        pane_check(store, store.spare[i], &totals)
    assert totals.n_bytes == store.n_bytes, "memory was lost"
    return 0


# ---- live windows by end -----------------------------------------------------------------------------------------


cdef int64_t pane_list_position(const PaneList* live, int64_t end) noexcept nogil:
    cdef int64_t low = 0, high = live.n, middle
    while low < high:
        middle = (low + high) >> 1
        if live.panes[middle].end < end:
            low = middle + 1
        else:
            high = middle
    return low


cdef int64_t pane_list_behind(const PaneList* live, int64_t end) noexcept nogil:
    return live.n if end == INT64_MAX else pane_list_position(live, end + 1)


cdef int _make_list_room(PaneList* live) except -1 nogil:
    # Makes room for another window at the back.
    cdef int64_t first = live.panes - live.memory, capacity
    if first + live.n < live.capacity:
        return 0
    if first > live.n:
        memmove(live.memory, live.panes, live.n * sizeof(Pane*))
        live.panes = live.memory
        return 0
    capacity = live.capacity + (live.capacity >> 1) + 8
    live.memory = <Pane**> grow(live.memory, capacity * sizeof(Pane*), _WHAT)
    live.panes = live.memory + first
    live.capacity = capacity
    return 0


cdef Pane* pane_list_open(PaneList* live, PaneStore* store, int64_t start, int64_t end) except NULL nogil:
    cdef int64_t i = pane_list_position(live, end)
    cdef Pane* pane
    _make_list_room(live)
    pane = pane_open(store, start, end)
    if live.panes > live.memory and 2 * i < live.n:
        live.panes -= 1
        memmove(&live.panes[0], &live.panes[1], i * sizeof(Pane*))
    else:
        memmove(&live.panes[i + 1], &live.panes[i], (live.n - i) * sizeof(Pane*))
    live.panes[i] = pane
    live.n += 1
    return pane


cdef int64_t pane_list_retire(PaneList* live, PaneStore* store, WindowCore* core) except -1 nogil:
    cdef int64_t over = 0
    while over < live.n and is_over(core, live.panes[over].end):
        over += 1
    if over:
        pending_flush(&core.pending, core.table)  # rows that wait for these windows must not reach entries that other windows have by then
        pane_list_close(live, store, over)
    return over


cdef void pane_list_close(PaneList* live, PaneStore* store, int64_t n) noexcept nogil:
    # The others stay where they are: one watermark after the other may close a window of very many.
    cdef int64_t i
    for i in range(n):
        _pane_close(store, live.panes[i])
    live.n -= n
    live.panes = live.panes + n if live.n else live.memory


cdef int pane_list_check(const PaneStore* store, const PaneList* live, PaneTotals* totals) except -1:
    cdef const Pane* pane
    cdef int64_t i
    for i in range(live.n):
        pane = live.panes[i]
        assert pane.start < pane.end
        assert i == 0 or live.panes[i - 1].end < pane.end, "windows out of order"
        assert pane.n_starts == (block_of_key(<int64_t> pane.n_keys - 1) + 1 if pane.n_keys else 0)
        pane_check(store, pane, totals)
    return 0


cdef int64_t panes_memory(const PaneStore* store, const PaneList* live) noexcept nogil:
    cdef int64_t size = store.n_bytes + live.capacity * sizeof(Pane*)
    cdef int kind
    for kind in range(WHOLE_BLOCK + 2):
        size += store.free_blocks[kind].capacity * sizeof(uint32_t)
    return size


cdef void panes_free(PaneList* live, PaneStore* store) noexcept nogil:
    cdef int64_t i
    cdef int kind
    for i in range(live.n):
        pane_free(store, live.panes[i])
    for i in range(store.n_spare):
        pane_free(store, store.spare[i])
    free(live.memory)
    for kind in range(WHOLE_BLOCK + 2):
        free(store.free_blocks[kind].blocks)


# ---- tumbling, sliding and cumulate windows ----------------------------------------------------------------------


cdef AlignedWindows checked_windows(
    int64_t size,
    int64_t slide,
    int64_t offset,
    bint cumulative,
    WindowCalendar calendar,
    int64_t allowed_lateness,
    int64_t most_windows,
) except *:
    cdef AlignedWindows windows
    if calendar is not None:
        size = slide = calendar.longest
    if size <= 0 or slide <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"window size {size} ms and slide {slide} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    if cumulative and size % slide:
        raise ConfigurationError(f"windows grow by {slide} ms, of which the largest size, {size} ms, is no multiple")
    if (size - 1) // slide + 1 > most_windows:
        raise ConfigurationError(
            f"a {'step' if cumulative else 'slide'} of {slide} ms puts a row into up to {(size - 1) // slide + 1} windows "
            f"of {size} ms; at most {most_windows} are supported: choose a longer one"
        )
    windows.size = size
    windows.slide = slide
    windows.offset = since_start(offset, 0, size if cumulative else slide)
    windows.slice_offset = since_start(offset, 0, slide)
    windows.cumulative = cumulative
    windows.calendar = NULL if calendar is None else &calendar.table
    windows.met_from = INT64_MAX
    windows.met_until = INT64_MIN
    return windows


def aligned_timestamps(*, size, slide, offset):
    """Return the range of timestamps all of whose windows have a start and an end of 64 bits.

    Parameters
    ----------
    size, slide, offset : int
        Milliseconds, as for `time_windows`. For cumulate windows the slide is the size.

    Returns
    -------
    (int, int)
        The lowest and the highest timestamp, in ms since the epoch.

    Examples
    --------
    >>> lowest, highest = aligned_timestamps(size=10, slide=10, offset=0)
    >>> lowest + 2**63, 2**63 - highest
    (8, 8)
    """
    # Python's integers, since bounds beyond 64 bits are what this computes.
    cdef object least = INT64_MIN, greatest = INT64_MAX
    last_start_before = least - 1 - (least - 1 - offset) % slide
    first_end_beyond = greatest + 1 + (offset + size - greatest - 1) % slide
    return max(least, last_start_before + size), min(greatest, first_end_beyond - size - 1)


cdef WindowKernel aligned_kernel(
    str name,
    size_t state_size,
    const WindowVerbs* verbs,
    const AlignedWindows* windows,
    WindowCalendar calendar,
    int64_t allowed_lateness,
):
    cdef WindowKernel kernel
    if calendar is None:
        lowest, highest = aligned_timestamps(
            size=windows.size, slide=windows.size if windows.cumulative else windows.slide, offset=windows.offset
        )
    else:
        lowest, highest = calendar.lowest_timestamp, calendar.highest_timestamp
    kernel = window_kernel(name, state_size, verbs, allowed_lateness, lowest, highest)
    kernel.calendar = calendar
    return kernel


# ---- results of the keys of a window -----------------------------------------------------------------------------
# In order of registration.


cdef int firings_append_pane_keys(
    Firings* firings, bint bytes_keys, const Pane* pane, int64_t first, int64_t n
) except -1 nogil:
    if bytes_keys:
        return firings_append_bytes_keys(firings, pane.data, &pane.offsets[first], n)
    return firings_append_int64_keys(firings, &pane.keys[first], n)


cdef int append_pane_keys(
    WindowCore* core, const Pane* pane, int64_t first, int64_t n, RowKind kind, bint late
) except -1 nogil:
    if core.retracts:
        firings_append_kind(&core.firings, kind, n)
    firings_append_pane_keys(&core.firings, core.bytes_keys, pane, first, n)
    return core_append_firings(core, pane.start, pane.end, late, n)


cdef int emit_late_key(WindowCore* core, const Pane* pane, int64_t k, RowKind kind) except -1 nogil:
    pending_flush(&core.pending, core.table)
    core_emit_row(
        core, pane_entry(pane, k), pane.offsets[k + 1] - pane.offsets[k] if core.bytes_keys else 0, kind, True
    )
    return append_pane_keys(core, pane, k, 1, kind, True)


cdef int append_live_panes(WindowRows* windows, bint bytes_keys, const PaneList* live) except -1 nogil:
    cdef const Pane* pane
    cdef LiveWindow window
    cdef int64_t i, k
    window.trigger_state = 0
    for i in range(live.n):
        pane = live.panes[i]
        window.start = pane.start
        window.end = pane.end
        window.flags = pane.fired
        if pane.n_keys:
            firings_append_pane_keys(&windows.firings, bytes_keys, pane, 0, pane.n_keys)
        for k in range(pane.n_keys):
            window_rows_add(windows, &window, pane_entry(pane, k))
    return 0


cdef int64_t restored_pane_entry(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef int64_t known = pane.n_keys, k = pane_key(store, pane, keys, row)
    if k < known:
        return NO_ENTRY
    return pane_entry(pane, k)


cdef bint emit_pane(WindowCore* core, const Pane* pane, int64_t* n_emitted, bint purges) except -1 nogil:
    cdef int64_t k = n_emitted[0], n, emitted
    pending_flush(&core.pending, core.table)
    while k < pane.n_keys:
        n = pane_run(pane, k)
        emitted = core_emit(core, NULL, pane_entry(pane, k), n, &pane.offsets[k] if core.bytes_keys else NULL)
        if purges:
            accumulators_clear_range(core.table, pane_entry(pane, k), <uint32_t> emitted)
        k += emitted
        if emitted < n:
            break
    append_pane_keys(core, pane, n_emitted[0], k - n_emitted[0], RowKind.INSERT, False)
    core.on_time_firings += k - n_emitted[0]
    n_emitted[0] = k if k < pane.n_keys else 0
    return k == pane.n_keys


# ---- rows taken in blocks ----------------------------------------------------------------------------------------
# First every row's windows are found and the key's slots prefetched, then the keys are looked up.


cdef int64_t take_in_blocks(
    WindowCore* core, PaneStore* store, const InputRows* input, int64_t first, int64_t most_windows, const RowVerbs* verbs
) except -1 nogil:
    cdef const KeyBatch* keys = input.keys
    cdef RowBlock block
    cdef int64_t i = first, next, k
    while i < input.n:
        next = verbs.find_windows(core, input, i, &block)
        if input.partials == NULL:
            for k in range(block.n):
                pending_add(
                    &core.pending,
                    core.table,
                    pane_entry_of(store, block.panes[k], keys, block.rows[k]),
                    block.rows[k],
                )
        else:
            for k in range(block.n):
                core_take_in(core, input, pane_entry_of(store, block.panes[k], keys, block.rows[k]), block.rows[k])
        core.windowed += next - i
        i = next
        if i == input.n or block.n + most_windows > BLOCK_PAIRS:
            continue
        if not verbs.take_row(core, input, input_row(input, i)):
            break
        i += 1
        if core_is_full(core):
            break
    pending_flush(&core.pending, core.table)
    return i

"""Panes: the keys of live windows, each window with a hash table of its own over entries that are shared out in blocks."""

from libc.stdint cimport INT64_MAX, INT64_MIN, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_reserve
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport block_bytes, grow
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


# ---- the keys of one window --------------------------------------------------------------------------------------


cdef const char* _WHAT = b"the keys of windows"  # that memory is for


cdef void pane_free(Pane* pane) noexcept nogil:
    free(pane.keys)
    free(pane.hashes)
    free(pane.offsets)
    free(pane.data)
    free(pane.slots)
    free(pane.blocks)
    free(pane.twin_blocks)
    free(pane.order)
    free(pane)


cdef int _pane_resize_index(PaneStore* store, Pane* pane, uint64_t n_slots) except -1 nogil:
    cdef KeySlot* slots = <KeySlot*> calloc(n_slots, sizeof(KeySlot))
    cdef uint64_t mask = n_slots - 1, at, code
    cdef uint32_t k
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(KeySlot)} bytes for a window's key index")
    for k in range(pane.n_keys):
        if store.bytes_keys:
            code = pane.hashes[k]
            at = code & mask
        else:
            code = <uint64_t> pane.keys[k]
            at = pane.hashes[k] & mask
        while slots[at].number:
            at = (at + 1) & mask
        slots[at].code = code
        slots[at].number = k + 1
    free(pane.slots)
    pane.slots = slots
    pane.mask = mask
    return 0


cdef int _pane_reserve_keys(PaneStore* store, Pane* pane, uint32_t capacity) except -1 nogil:
    pane.hashes = <uint64_t*> grow(pane.hashes, capacity * sizeof(uint64_t), _WHAT)
    if store.bytes_keys:
        pane.offsets = <int64_t*> grow(pane.offsets, (<int64_t> capacity + 1) * sizeof(int64_t), _WHAT)
        pane.offsets[0] = 0
    else:
        pane.keys = <int64_t*> grow(pane.keys, capacity * sizeof(int64_t), _WHAT)
    pane.keys_capacity = capacity
    return 0


cdef int64_t _take_block(PaneStore* store) except -1 nogil:
    if store.n_free_blocks:
        store.n_free_blocks -= 1
        return store.free_blocks[store.n_free_blocks]
    if store.n_blocks == UINT32_MAX // ENTRY_BLOCK:
        with gil:
            raise MemoryError("more than 4,294,967,040 live (key, window) entries in one task; use more partitions")
    if store.n_blocks == store.free_blocks_capacity:  # room to return every block without failing
        store.free_blocks = <uint32_t*> grow(
            store.free_blocks, (store.free_blocks_capacity * 2 + 64) * sizeof(uint32_t), _WHAT
        )
        store.free_blocks_capacity = store.free_blocks_capacity * 2 + 64
    accumulators_reserve(store.table, (store.n_blocks + 1) * ENTRY_BLOCK)
    store.n_blocks += 1
    return store.n_blocks - 1


cdef int pane_make_order(HashOrder* scratch, const PaneStore* store, Pane* pane) except -1 nogil:
    cdef KeyBatch keys
    if pane.n_ordered == pane.n_keys:
        return 0
    keys = pane_keys(store, pane)
    pane.order = <HashedKey*> grow(pane.order, pane.keys_capacity * sizeof(HashedKey), _WHAT)
    _hash_order(scratch, &keys, pane.n_keys, pane.order)
    pane.n_ordered = pane.n_keys
    return 0


cdef int _pane_add_block(PaneStore* store, Pane* pane) except -1 nogil:
    cdef uint32_t capacity = pane.blocks_capacity * 2 + 4
    if pane.n_blocks == pane.blocks_capacity:
        pane.blocks = <uint32_t*> grow(pane.blocks, capacity * sizeof(uint32_t), _WHAT)
        if store.twins:
            pane.twin_blocks = <uint32_t*> grow(pane.twin_blocks, capacity * sizeof(uint32_t), _WHAT)
        pane.blocks_capacity = capacity
    pane.blocks[pane.n_blocks] = <uint32_t> _take_block(store)
    if store.twins:
        pane.twin_blocks[pane.n_blocks] = <uint32_t> _take_block(store)
    pane.n_blocks += 1
    return 0


cdef int64_t pane_insert(
    PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row, uint64_t at
) except -1 nogil:
    # Memory is taken before the key is counted, so that an error leaves the pane consistent.
    cdef uint32_t k = pane.n_keys
    cdef int64_t length, needed
    if (<uint64_t> k + 1) * 3 > (pane.mask + 1) * 2:
        _pane_resize_index(store, pane, (pane.mask + 1) * 2)
        at = keys.hashes[row] & pane.mask
        while pane.slots[at].number:
            at = (at + 1) & pane.mask
    if k == pane.keys_capacity:
        # Entries run out before numbers of keys do.
        _pane_reserve_keys(store, pane, pane.keys_capacity * 2 if pane.keys_capacity <= UINT32_MAX // 2 else UINT32_MAX)
    if k == pane.n_blocks * ENTRY_BLOCK:
        _pane_add_block(store, pane)
    pane.hashes[k] = keys.hashes[row]
    if store.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        needed = pane.offsets[k] + length
        if needed > pane.data_capacity:
            pane.data = <uint8_t*> grow(pane.data, needed * 2, _WHAT)
            pane.data_capacity = needed * 2
        if length:
            memcpy(pane.data + pane.offsets[k], keys.data + keys.offsets[row], length)
        pane.offsets[k + 1] = needed
        pane.slots[at].code = keys.hashes[row]
    else:
        pane.keys[k] = keys.values[row]
        pane.slots[at].code = <uint64_t> keys.values[row]
    pane.slots[at].number = k + 1
    pane.n_keys = k + 1
    return k


cdef Pane* pane_open(PaneStore* store, int64_t start, int64_t end) except NULL nogil:
    cdef Pane* pane
    cdef uint64_t n_slots = 64
    if store.n_spare == 0:
        if store.spare == NULL:
            store.spare = <Pane**> grow(NULL, MOST_SPARE * sizeof(Pane*), _WHAT)
        store.spare[0] = pane_open_plain()
        store.n_spare = 1
    pane = store.spare[store.n_spare - 1]
    if pane.slots == NULL:
        while n_slots * 2 < store.expected_keys * 3:
            n_slots *= 2
        _pane_reserve_keys(store, pane, 32)
        _pane_resize_index(store, pane, n_slots)
    # Only now does the pane leave the store: if memory ran out above, the store would still own and free it.
    store.n_spare -= 1
    pane.start = start
    pane.end = end
    return pane


cdef void _give_block(PaneStore* store, uint32_t block, uint32_t n_keys) noexcept nogil:
    accumulators_clear_range(store.table, block * ENTRY_BLOCK, n_keys)
    store.free_blocks[store.n_free_blocks] = block
    store.n_free_blocks += 1


cdef void pane_empty(PaneStore* store, Pane* pane) noexcept nogil:
    cdef uint32_t i, left = pane.n_keys, n
    for i in range(pane.n_blocks):
        n = left if left < ENTRY_BLOCK else ENTRY_BLOCK
        _give_block(store, pane.blocks[i], n)
        if store.twins:
            _give_block(store, pane.twin_blocks[i], n)
        left -= n
    memset(pane.slots, 0, (pane.mask + 1) * sizeof(KeySlot))
    pane.n_keys = pane.n_blocks = pane.n_ordered = 0


cdef void _pane_close(PaneStore* store, Pane* pane) noexcept nogil:
    cdef uint32_t n_keys = pane.n_keys
    store.expected_keys = n_keys  # the next window probably has as many: its index begins at that size
    pane_empty(store, pane)
    if store.n_spare == MOST_SPARE or pane.mask > 4 * <uint64_t> n_keys + 64:
        pane_free(pane)  # the memory of one crowded window is not kept for ever
        return
    store.spare[store.n_spare] = pane
    store.n_spare += 1


cdef Pane* pane_open_plain() except NULL nogil:
    cdef Pane* pane = <Pane*> calloc(1, sizeof(Pane))
    if pane == NULL:
        with gil:
            raise MemoryError("a window")
    return pane


cdef void _give_blocks(PaneStore* store, Pane* pane, uint32_t n_blocks) noexcept nogil:
    # Returns all blocks except the first n_blocks to the store, emptied as a whole.
    while pane.n_blocks > n_blocks:
        pane.n_blocks -= 1
        _give_block(store, pane.blocks[pane.n_blocks], ENTRY_BLOCK)


cdef int pane_make_room(PaneStore* store, Pane* pane, uint32_t n_keys, int64_t n_bytes) except -1 nogil:
    cdef uint32_t n_blocks = <uint32_t> ((<int64_t> n_keys + ENTRY_BLOCK - 1) // ENTRY_BLOCK)
    cdef int64_t roomy = 4 * <int64_t> n_keys + 1024  # the memory of one crowded window is not kept for ever
    if pane.keys_capacity == 0 or n_keys > pane.keys_capacity or pane.keys_capacity > roomy:
        _pane_reserve_keys(store, pane, <uint32_t> min(n_keys + (<int64_t> n_keys >> 2) + 32, <int64_t> UINT32_MAX))
    if n_bytes > pane.data_capacity or pane.data_capacity > 4 * n_bytes + 4096:
        pane.data = <uint8_t*> grow(pane.data, n_bytes + (n_bytes >> 2) + 64, _WHAT)
        pane.data_capacity = n_bytes + (n_bytes >> 2) + 64
    _give_blocks(store, pane, 2 * n_blocks + 4)
    while pane.n_blocks < n_blocks:
        _pane_add_block(store, pane)
    return 0


cdef void pane_empty_plain(PaneStore* store, Pane* pane) noexcept nogil:
    _give_blocks(store, pane, 0)
    pane.n_keys = 0


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


cdef Pane* pane_list_open(PaneList* live, PaneStore* store, int64_t start, int64_t end) except NULL nogil:
    cdef int64_t i = pane_list_position(live, end)
    cdef Pane* pane
    if live.n == live.capacity:
        live.panes = <Pane**> grow(live.panes, (live.capacity * 2 + 8) * sizeof(Pane*), _WHAT)
        live.capacity = live.capacity * 2 + 8
    pane = pane_open(store, start, end)
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
    cdef int64_t i
    for i in range(n):
        _pane_close(store, live.panes[i])
    live.n -= n
    memmove(&live.panes[0], &live.panes[n], live.n * sizeof(Pane*))


cdef int64_t pane_list_check(const PaneList* live) except -1:
    cdef const Pane* pane
    cdef int64_t i, blocks = 0
    cdef uint64_t at, numbers
    for i in range(live.n):
        pane = live.panes[i]
        assert pane.start < pane.end
        assert i == 0 or live.panes[i - 1].end < pane.end, "windows out of order"
        assert pane.n_blocks == (pane.n_keys + ENTRY_BLOCK - 1) // ENTRY_BLOCK
        numbers = 0
        for at in range(pane.mask + 1):
            numbers += pane.slots[at].number != 0
        assert numbers == pane.n_keys, "index and keys differ"
        blocks += pane.n_blocks
    return blocks


cdef void panes_free(PaneList* live, PaneStore* store) noexcept nogil:
    cdef int64_t i
    for i in range(live.n):
        pane_free(live.panes[i])
    for i in range(store.n_spare):
        pane_free(store.spare[i])
    free(live.panes)
    free(store.spare)
    free(store.free_blocks)


cdef int64_t _pane_bytes(const Pane* pane) noexcept nogil:
    return (
        block_bytes(pane) + block_bytes(pane.keys) + block_bytes(pane.hashes) + block_bytes(pane.offsets) + block_bytes(pane.data)
        + block_bytes(pane.slots) + block_bytes(pane.blocks) + block_bytes(pane.twin_blocks) + block_bytes(pane.order)
    )


cdef int64_t panes_bytes(const PaneList* live, const PaneStore* store) noexcept nogil:
    cdef int64_t i, n_bytes = block_bytes(live.panes) + block_bytes(store.free_blocks)
    for i in range(live.n):
        n_bytes += _pane_bytes(live.panes[i])
    for i in range(store.n_spare):
        n_bytes += _pane_bytes(store.spare[i])
    return n_bytes


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
        n = min(<int64_t> ENTRY_BLOCK - k % ENTRY_BLOCK, pane.n_keys - k)
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

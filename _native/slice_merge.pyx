"""A window that is made of slices of time, which enter and leave it one after the other.

As a window slides on, most of its keys stay. What a slice holds is added when it enters, and taken out when it leaves: how
many slices windows have does not matter.

    slices            | 0 | 1 | 2 | 3 |
    window            [ 0   1   2 ]
    0 leaves              [ 1   2 ]
    3 enters              [ 1   2   3 ]

Window and slices are merged in order of their hashes, from one end of memory to the other: all keys of a window are read anyway
when it fires, and what is read in a row costs a fraction of what is looked up.

A greatest value that leaves says nothing of the next one: it is looked for in all slices that are left, for the keys alone that
lose it. That makes windows dear whose least value is always the first, and which have many slices.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from flinkcore._native.aggregates cimport accumulators_clear
from flinkcore._native.hash_order cimport HashedKey, compare_bytes, hash_order_free
from flinkcore._native.memory cimport grow, prefetch
from flinkcore._native.panes cimport (
    ENTRY_BLOCK,
    pane_empty,
    pane_empty_plain,
    pane_entry,
    pane_find,
    pane_free,
    pane_key,
    pane_keys,
    pane_list_position,
    pane_make_order,
    pane_make_room,
    pane_open,
    pane_open_plain,
)
from flinkcore._native.shared_accumulators cimport accumulators_add, accumulators_copy, accumulators_subtract

cdef enum:
    LOOK_AHEAD = 16  # keys of a slice, which lie as they came


cdef struct EntryPairs:
    # Entries that take something over from others.
    uint32_t[ENTRY_BLOCK] into
    uint32_t[ENTRY_BLOCK] others
    int64_t n


cdef inline bint _pair(EntryPairs* pairs, uint32_t into, uint32_t other) noexcept nogil:
    # Whether they are full now.
    pairs.into[pairs.n] = into
    pairs.others[pairs.n] = other
    pairs.n += 1
    return pairs.n == ENTRY_BLOCK


# ---- slices that enter -------------------------------------------------------------------------------------------


cdef struct WindowWriter:
    # Writes the next window, key by key.
    PaneStore* store
    Pane* pane
    uint32_t* n_slices
    EntryPairs copies  # from the window before, or from what enters it
    EntryPairs sums    # of both


cdef void _flush(WindowWriter* writer) noexcept nogil:
    accumulators_copy(writer.store.table, writer.copies.into, writer.copies.others, writer.copies.n)
    accumulators_add(writer.store.table, writer.sums.into, writer.sums.others, writer.sums.n)
    writer.copies.n = writer.sums.n = 0


cdef inline void _prefetch_key(const PaneStore* store, const Pane* pane, uint32_t k) noexcept nogil:
    if store.bytes_keys:
        prefetch(&pane.offsets[k])
    else:
        prefetch(&pane.keys[k])


cdef inline void _write(
    WindowWriter* writer, const Pane* pane, uint32_t k, uint64_t hash, uint32_t n_slices
) noexcept nogil:
    # Key k of a pane, with what that holds of it.
    cdef Pane* window = writer.pane
    cdef uint32_t at = window.n_keys
    cdef int64_t length
    window.hashes[at] = hash
    writer.n_slices[at] = n_slices
    if writer.store.bytes_keys:
        length = pane.offsets[k + 1] - pane.offsets[k]
        if length:
            memcpy(window.data + window.offsets[at], pane.data + pane.offsets[k], length)
        window.offsets[at + 1] = window.offsets[at] + length
    else:
        window.keys[at] = pane.keys[k]
    window.n_keys = at + 1
    if _pair(&writer.copies, pane_entry(window, at), pane_entry(pane, k)):
        _flush(writer)


cdef int _start_next(SliceMerge* merge, PaneStore* store, const Pane* entering) except -1 nogil:
    # Room for all that the window and what enters it have.
    cdef const Pane* pane = merge.pane
    cdef int64_t n_keys = <int64_t> pane.n_keys + entering.n_keys, n_bytes = 0
    if store.bytes_keys:
        n_bytes = (pane.offsets[pane.n_keys] if pane.n_keys else 0) + (
            entering.offsets[entering.n_keys] if entering.n_keys else 0
        )
    merge.spare.n_keys = 0
    pane_make_room(store, merge.spare, <uint32_t> n_keys, n_bytes)
    if n_keys > merge.n_slices_capacity:
        n_keys += n_keys >> 2
        merge.n_slices = <uint32_t*> grow(merge.n_slices, n_keys * sizeof(uint32_t), b"the slices of windows")
        merge.spare_n_slices = <uint32_t*> grow(
            merge.spare_n_slices, n_keys * sizeof(uint32_t), b"the slices of windows"
        )
        merge.n_slices_capacity = n_keys
    return 0


cdef inline bint _is_before(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    return pane.hashes[i] < key.hash or (
        pane.hashes[i] == key.hash and compare_bytes(keys, i, others, key.number) < 0
    )


cdef inline bint _is_at(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    return (
        i < pane.n_keys and pane.hashes[i] == key.hash and compare_bytes(keys, i, others, key.number) == 0
    )


cdef inline uint32_t _place(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    # Of a key, from place i on: where it is or would be.
    while i < pane.n_keys and _is_before(pane, keys, i, key, others):
        i += 1
    return i


cdef bint _has_all(const SliceMerge* merge, const PaneStore* store, const Pane* entering) noexcept nogil:
    cdef KeyBatch keys = pane_keys(store, merge.pane), others = pane_keys(store, entering)
    cdef uint32_t i = 0
    cdef int64_t j
    if entering.n_keys > merge.pane.n_keys:
        return False
    for j in range(entering.n_keys):
        i = _place(merge.pane, &keys, i, entering.order[j], &others)
        if not _is_at(merge.pane, &keys, i, entering.order[j], &others):
            return False
    return True


cdef void _add(SliceMerge* merge, PaneStore* store, const Pane* entering, const uint32_t* n_slices) noexcept nogil:
    # The window has all keys, maybe without a slice.
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys = pane_keys(store, pane), others = pane_keys(store, entering)
    cdef WindowWriter writer
    cdef uint32_t i = 0, k
    cdef int64_t j
    writer.store = store
    writer.copies.n = writer.sums.n = 0
    for j in range(entering.n_keys):
        k = entering.order[j].number
        i = _place(pane, &keys, i, entering.order[j], &others)
        merge.n_gone -= merge.n_slices[i] == 0
        if _pair(
            &writer.sums if merge.n_slices[i] else &writer.copies, pane_entry(pane, i), pane_entry(entering, k)
        ):
            _flush(&writer)
        merge.n_slices[i] += n_slices[k] if n_slices != NULL else 1
    _flush(&writer)


cdef int _rewrite(SliceMerge* merge, PaneStore* store, const Pane* entering, const uint32_t* n_slices) except -1 nogil:
    # Makes the window that has the keys of both, but for those without a slice.
    cdef const Pane* pane = merge.pane
    cdef WindowWriter writer
    cdef KeyBatch keys, others
    cdef HashedKey key
    cdef int64_t j
    cdef uint32_t i = 0, more
    _start_next(merge, store, entering)
    keys = pane_keys(store, pane)
    others = pane_keys(store, entering)
    writer.store = store
    writer.pane = merge.spare
    writer.n_slices = merge.spare_n_slices
    writer.copies.n = writer.sums.n = 0
    for j in range(entering.n_keys):
        if j + LOOK_AHEAD < entering.n_keys:
            _prefetch_key(store, entering, entering.order[j + LOOK_AHEAD].number)
        key = entering.order[j]
        more = n_slices[key.number] if n_slices != NULL else 1
        while i < pane.n_keys and _is_before(pane, &keys, i, key, &others):
            if merge.n_slices[i]:
                _write(&writer, pane, i, pane.hashes[i], merge.n_slices[i])
            i += 1
        if not _is_at(pane, &keys, i, key, &others):
            _write(&writer, entering, key.number, key.hash, more)
            continue
        if merge.n_slices[i]:
            _write(&writer, pane, i, key.hash, merge.n_slices[i] + more)
            if _pair(
                &writer.sums, pane_entry(writer.pane, writer.pane.n_keys - 1), pane_entry(entering, key.number)
            ):
                _flush(&writer)
        else:
            _write(&writer, entering, key.number, key.hash, more)
        i += 1
    while i < pane.n_keys:
        if merge.n_slices[i]:
            _write(&writer, pane, i, pane.hashes[i], merge.n_slices[i])
        i += 1
    _flush(&writer)
    merge.pane, merge.spare = merge.spare, merge.pane
    merge.n_slices, merge.spare_n_slices = merge.spare_n_slices, merge.n_slices
    merge.n_gone = 0
    return 0


cdef int _enter(SliceMerge* merge, PaneStore* store, Pane* entering, const uint32_t* n_slices) except -1 nogil:
    # Each key is new to so many slices, or to one where n_slices is NULL.
    pane_make_order(&merge.scratch, store, entering)
    if not _has_all(merge, store, entering):
        return _rewrite(merge, store, entering, n_slices)
    _add(merge, store, entering, n_slices)
    return 0


cdef int _drop_gone(SliceMerge* merge, PaneStore* store) except -1 nogil:
    # Where no slice enters
    cdef Pane nothing
    memset(&nothing, 0, sizeof(Pane))
    return _rewrite(merge, store, &nothing, NULL)


# ---- keys that are gathered before they enter together -----------------------------------------------------------


cdef int64_t merge_gathered_entry(
    SliceMerge* merge, PaneStore* store, const KeyBatch* keys, int64_t row, bint is_new
) except -1 nogil:
    cdef int64_t k
    cdef uint32_t n_known
    if merge.gathered == NULL:
        merge.gathered = pane_open(store, merge.start, merge.end)
    n_known = merge.gathered.n_keys
    k = pane_key(store, merge.gathered, keys, row)
    if merge.gathered.n_keys > merge.gathered_capacity:
        merge.gathered_n_slices = <uint32_t*> grow(
            merge.gathered_n_slices, merge.gathered.keys_capacity * sizeof(uint32_t), b"the slices of windows"
        )
        merge.gathered_capacity = merge.gathered.keys_capacity
    if k == n_known:
        merge.gathered_n_slices[k] = 0
    merge.gathered_n_slices[k] += is_new
    return pane_entry(merge.gathered, k)


cdef int _gather(SliceMerge* merge, PaneStore* store, const Pane* slice) except -1 nogil:
    cdef KeyBatch keys = pane_keys(store, slice)
    cdef EntryPairs sums
    cdef int64_t k
    sums.n = 0
    for k in range(slice.n_keys):
        if _pair(&sums, <uint32_t> merge_gathered_entry(merge, store, &keys, k, True), pane_entry(slice, k)):
            accumulators_add(store.table, sums.into, sums.others, sums.n)
            sums.n = 0
    accumulators_add(store.table, sums.into, sums.others, sums.n)
    return 0


cdef void _empty_gathered(SliceMerge* merge, PaneStore* store) noexcept nogil:
    cdef bint roomy
    if merge.gathered == NULL or merge.gathered.n_keys == 0:
        return
    roomy = merge.gathered.mask > 16 * <uint64_t> merge.gathered.n_keys + 1024
    pane_empty(store, merge.gathered)
    if roomy:  # what one crowded time took is not kept for ever
        pane_free(merge.gathered)
        merge.gathered = NULL


cdef int _enter_gathered(SliceMerge* merge, PaneStore* store) except -1 nogil:
    if merge.gathered != NULL and merge.gathered.n_keys:
        _enter(merge, store, merge.gathered, merge.gathered_n_slices)
        _empty_gathered(merge, store)
    return 0


# ---- slices that leave -------------------------------------------------------------------------------------------


cdef struct DoubtfulKeys:
    # Entries of the window, and their keys' numbers in the slice that leaves.
    uint32_t[ENTRY_BLOCK] entries
    uint32_t[ENTRY_BLOCK] rows
    int64_t n


cdef void _add_up(
    const DoubtfulKeys* doubtful, PaneStore* store, const PaneList* slices, int64_t first, int64_t end, const KeyBatch* keys
) noexcept nogil:
    # Makes each entry what the slices from number `first` on hold of its key.
    cdef EntryPairs pairs
    cdef const Pane* slice
    cdef int64_t i = first, k, p
    accumulators_clear(store.table, doubtful.entries, doubtful.n)
    while i < slices.n and slices.panes[i].end <= end:
        slice = slices.panes[i]
        for p in range(doubtful.n):
            prefetch(&slice.slots[keys.hashes[doubtful.rows[p]] & slice.mask])
        pairs.n = 0
        for p in range(doubtful.n):
            k = pane_find(store, slice, keys, doubtful.rows[p])
            if k >= 0:
                _pair(&pairs, doubtful.entries[p], pane_entry(slice, k))
        accumulators_add(store.table, pairs.into, pairs.others, pairs.n)
        i += 1


cdef int _leave(SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t number) except -1 nogil:
    # The window has all keys of the slice with this number.
    cdef Pane* slice = slices.panes[number]
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys = pane_keys(store, pane), others = pane_keys(store, slice)
    cdef uint32_t[ENTRY_BLOCK] rows
    cdef uint8_t[ENTRY_BLOCK] is_doubtful
    cdef DoubtfulKeys doubtful
    cdef EntryPairs left
    cdef int64_t j, p
    cdef uint32_t i = 0, k
    pane_make_order(&merge.scratch, store, slice)
    left.n = 0
    for j in range(slice.n_keys):
        k = slice.order[j].number
        i = _place(pane, &keys, i, slice.order[j], &others)
        merge.n_slices[i] -= 1
        if merge.n_slices[i]:
            rows[left.n] = k
            _pair(&left, pane_entry(pane, i), pane_entry(slice, k))
        else:
            merge.n_gone += 1
        if left.n == ENTRY_BLOCK or j == slice.n_keys - 1:
            accumulators_subtract(store.table, left.into, left.others, left.n, is_doubtful)
            doubtful.n = 0
            for p in range(left.n):
                doubtful.entries[doubtful.n] = left.into[p]
                doubtful.rows[doubtful.n] = rows[p]
                doubtful.n += is_doubtful[p]
            if doubtful.n:
                _add_up(&doubtful, store, slices, number + 1, merge.end, &others)
            left.n = 0
    return 0


cdef void _empty(SliceMerge* merge, PaneStore* store) noexcept nogil:
    pane_empty_plain(store, merge.pane)
    pane_empty_plain(store, merge.spare)
    _empty_gathered(merge, store)
    merge.n_gone = 0


cdef int merge_leave(SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start) except -1 nogil:
    cdef int64_t i
    if merge.pane == NULL or start <= merge.start:
        return 0
    if start >= merge.end:
        _empty(merge, store)
        merge.start = merge.end = start
        return 0
    _enter_gathered(merge, store)
    i = pane_list_position(slices, merge.start + 1)
    while i < slices.n and slices.panes[i].end <= start:
        _leave(merge, store, slices, i)
        i += 1
    merge.start = start
    return 0


cdef int merge_slices(
    SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start, int64_t end
) except -1 nogil:
    cdef int64_t first, behind, i
    if merge.pane == NULL:
        merge.pane = pane_open_plain()
        merge.start = merge.end = start
    if merge.spare == NULL:
        merge.spare = pane_open_plain()
    merge_leave(merge, store, slices, start)
    _enter_gathered(merge, store)
    first = pane_list_position(slices, merge.end + 1)
    behind = pane_list_position(slices, end + 1)
    if behind == first + 1:
        _enter(merge, store, slices.panes[first], NULL)
    else:  # after a gap, or a checkpoint: not one by one through a large window
        for i in range(first, behind):
            _gather(merge, store, slices.panes[i])
        _enter_gathered(merge, store)
    if merge.n_gone:
        _drop_gone(merge, store)
    merge.end = end
    merge.pane.start = start
    merge.pane.end = end
    return 0


cdef void merge_free(SliceMerge* merge) noexcept nogil:
    if merge.pane != NULL:
        pane_free(merge.pane)
    if merge.spare != NULL:
        pane_free(merge.spare)
    if merge.gathered != NULL:
        pane_free(merge.gathered)
    free(merge.n_slices)
    free(merge.spare_n_slices)
    free(merge.gathered_n_slices)
    hash_order_free(&merge.scratch)


# ---- invariants --------------------------------------------------------------------------------------------------


cdef uint32_t _slices_of(
    const SliceMerge* merge, const PaneStore* store, const PaneList* slices, const KeyBatch* keys, int64_t row
) noexcept nogil:
    # In how many of the window's slices a row's key is.
    cdef uint32_t n = 0
    cdef int64_t i
    for i in range(slices.n):
        if merge.start < slices.panes[i].end <= merge.end and pane_find(store, slices.panes[i], keys, row) >= 0:
            n += 1
    return n


cdef int64_t merge_check(const SliceMerge* merge, const PaneStore* store, const PaneList* slices) except -1:
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys
    cdef int64_t k, late, blocks = 0
    cdef uint32_t n_slices
    if pane == NULL:
        return 0
    keys = pane_keys(store, pane)
    for k in range(pane.n_keys):
        n_slices = merge.n_slices[k]
        if merge.gathered != NULL:
            late = pane_find(store, merge.gathered, &keys, k)
            if late >= 0:
                n_slices += merge.gathered_n_slices[late]
        assert n_slices == _slices_of(merge, store, slices, &keys, k), "a key is in other slices than its window knows"
        assert k == 0 or pane.hashes[k - 1] < pane.hashes[k] or compare_bytes(&keys, k - 1, &keys, k) < 0, "out of order"
    blocks = pane.n_blocks + merge.spare.n_blocks
    return blocks if merge.gathered == NULL else blocks + merge.gathered.n_blocks

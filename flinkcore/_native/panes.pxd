# The keys of live windows: each window has a hash table of its own, over entries that are shared out in blocks.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from flinkcore._native.aggregates cimport AccumulatorTable
from flinkcore._native.hash_order cimport HashOrder, HashedKey
from flinkcore._native.keys cimport KEY_BYTES, KEY_INT64, KeyBatch


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
    uint32_t* twin_blocks  # likewise, of the keys' other entries; NULL where the store has no twins
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


# Index of the first window that ends at or after `end`.
cdef int64_t pane_list_position(const PaneList* live, int64_t end) noexcept nogil
# A new window, put in.
cdef Pane* pane_list_open(PaneList* live, PaneStore* store, int64_t start, int64_t end) except NULL nogil
# Closes the first n.
cdef void pane_list_close(PaneList* live, PaneStore* store, int64_t n) noexcept nogil
# How many entry blocks the windows have; raises AssertionError where something is wrong with them.
cdef int64_t pane_list_check(const PaneList* live) except -1


cdef inline Pane* pane_list_find(const PaneList* live, int64_t end) noexcept nogil:
    # NULL where there is none; most rows come to one of the last windows.
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


# A new window of no list.
cdef Pane* pane_open(PaneStore* store, int64_t start, int64_t end) except NULL nogil
# Gives the keys' entries back, emptied; the pane can take in others.
cdef void pane_empty(PaneStore* store, Pane* pane) noexcept nogil
cdef void pane_free(Pane* pane) noexcept nogil
# Makes the order of all keys, where it is not made yet.
cdef int pane_make_order(HashOrder* scratch, const PaneStore* store, Pane* pane) except -1 nogil
# A window without an index, of no list, whose keys are put where its owner wants them: room for so many, with so many bytes.
cdef Pane* pane_open_plain() except NULL nogil
cdef int pane_make_room(PaneStore* store, Pane* pane, uint32_t n_keys, int64_t n_bytes) except -1 nogil
# Gives the entries of a plain window back, emptied.
cdef void pane_empty_plain(PaneStore* store, Pane* pane) noexcept nogil
# All windows of the list, and what the store has.
cdef void panes_free(PaneList* live, PaneStore* store) noexcept nogil
# Number of the row's new key, whose place in the index is the empty slot `at`.
cdef int64_t pane_insert(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row, uint64_t at) except -1 nogil


cdef inline KeyBatch pane_keys(const PaneStore* store, const Pane* pane) noexcept nogil:
    # The pane's keys as those of a batch.
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
    # The slot of the row's key, or the empty one that a new key would get.
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
    # Number of the row's key in the window; -1 where it is not there.
    return <int64_t> pane.slots[pane_slot(store, pane, keys, row)].number - 1


cdef inline int64_t pane_key(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Number of the row's key in the window; a new key is registered.
    cdef uint64_t at = pane_slot(store, pane, keys, row)
    if pane.slots[at].number:
        return <int64_t> pane.slots[at].number - 1
    return pane_insert(store, pane, keys, row, at)


cdef inline int64_t pane_entry_of(PaneStore* store, Pane* pane, const KeyBatch* keys, int64_t row) except -1 nogil:
    # Its entry.
    return pane_entry(pane, pane_key(store, pane, keys, row))

"""Rows that are added and withdrawn, as Flink's JoinRecordStateViews keep them.

A row that is withdrawn names no number: it equals a row that was added before. So rows are found by a hash of 128 bits of their
content, with which different rows are not expected ever to be confused. Of equal rows the first that came is withdrawn first. The
rows of a key are a list in order of their coming, where Flink has the order of a hash map.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from flinkcore._native.memory cimport grow


cdef enum:
    LEAST_SLOTS = 16
    LEAST_KEYS = 256

cdef const char* _WHAT = b"rows that may be withdrawn"


cdef int changing_reach(ChangingRows* rows, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity = max(rows.key_capacity, <int64_t> LEAST_KEYS)
    if n_keys > rows.key_capacity:
        while capacity < n_keys:
            capacity *= 2
        rows.keys = <KeyRows*> grow(rows.keys, capacity * sizeof(KeyRows), _WHAT)
        rows.key_capacity = capacity
    while rows.n_keys < n_keys:
        rows.keys[rows.n_keys].first = rows.keys[rows.n_keys].last = NO_SLOT
        rows.keys[rows.n_keys].n = 0
        rows.n_keys += 1
    return 0


# ---- index -------------------------------------------------------------------------------------------------------


cdef inline uint64_t _hash(uint32_t key, Identity identity) noexcept nogil:
    # Identities are mixed well, but rows of many keys may have the same one.
    cdef uint64_t hash = (identity.low ^ (<uint64_t> key << 32 | key)) * <uint64_t> 0x9E3779B97F4A7C15
    return hash ^ (hash >> 32)


cdef inline uint64_t _bucket(const ChangingRows* rows, uint32_t key, Identity identity) noexcept nogil:
    # Bucket of rows, or the empty one where they would go.
    cdef uint64_t at = _hash(key, identity) & rows.mask
    cdef const ChangingRow* row
    while rows.buckets[at]:
        row = &rows.slots[rows.buckets[at] - 1]
        if row.identity.low == identity.low and row.identity.high == identity.high and row.key == key:
            break
        at = (at + 1) & rows.mask
    return at


cdef int _grow_index(ChangingRows* rows) except -1 nogil:
    cdef uint64_t n_before = rows.mask + 1 if rows.buckets != NULL else 0, n = max(<uint64_t> 32, 2 * n_before), old
    cdef uint32_t* before = rows.buckets
    cdef uint32_t* buckets = <uint32_t*> calloc(n, sizeof(uint32_t))
    cdef const ChangingRow* row
    if buckets == NULL:
        with gil:
            raise MemoryError(f"{n * sizeof(uint32_t)} bytes for the index of rows that may be withdrawn")
    rows.buckets = buckets
    rows.mask = n - 1
    for old in range(n_before):
        if before[old]:
            row = &rows.slots[before[old] - 1]
            buckets[_bucket(rows, row.key, row.identity)] = before[old]
    free(before)
    return 0


cdef void _empty_bucket(ChangingRows* rows, uint64_t at) noexcept nogil:
    # Later buckets of the chain move up.
    cdef uint64_t next_at = (at + 1) & rows.mask, home
    cdef const ChangingRow* row
    while rows.buckets[next_at]:
        row = &rows.slots[rows.buckets[next_at] - 1]
        home = _hash(row.key, row.identity) & rows.mask
        if ((next_at - home) & rows.mask) >= ((next_at - at) & rows.mask):
            rows.buckets[at] = rows.buckets[next_at]
            at = next_at
        next_at = (next_at + 1) & rows.mask
    rows.buckets[at] = 0


cdef uint32_t changing_find(const ChangingRows* rows, uint32_t key, Identity identity) noexcept nogil:
    cdef uint32_t number
    if rows.buckets == NULL:
        return NO_SLOT
    number = rows.buckets[_bucket(rows, key, identity)]
    return number - 1 if number else <uint32_t> NO_SLOT


# ---- rows --------------------------------------------------------------------------------------------------------


cdef uint32_t _free_slot(ChangingRows* rows) except? NO_SLOT nogil:
    cdef uint32_t slot, capacity
    if rows.free_slot:
        slot = rows.free_slot - 1
        rows.free_slot = 0 if rows.slots[slot].after == NO_SLOT else rows.slots[slot].after + 1
        return slot
    if rows.n_slots == rows.capacity:
        if rows.capacity >= <uint32_t> 1 << 31:
            with gil:
                raise MemoryError("an operator keeps at most 2,147,483,648 rows that may be withdrawn; use more partitions")
        capacity = max(<uint32_t> LEAST_SLOTS, 2 * rows.capacity)
        rows.slots = <ChangingRow*> grow(rows.slots, capacity * <int64_t> sizeof(ChangingRow), _WHAT)
        rows.capacity = capacity
    rows.slots[rows.n_slots].is_watched = False
    rows.n_slots += 1
    return rows.n_slots - 1


cdef uint32_t changing_add(
    ChangingRows* rows, uint32_t key, Identity identity, int64_t row, int64_t timestamp
) except? NO_SLOT nogil:
    cdef uint32_t slot
    cdef uint64_t at
    cdef ChangingRow* added
    cdef ChangingRow* first
    cdef KeyRows* of_key = &rows.keys[key]
    if rows.buckets == NULL or (<uint64_t> rows.n_rows + 1) * 3 > (rows.mask + 1) * 2:
        _grow_index(rows)
    slot = _free_slot(rows)
    added = &rows.slots[slot]
    added.identity = identity
    added.row = row
    added.timestamp = timestamp
    added.key = key
    added.next_copy = NO_SLOT
    added.last_copy = slot
    added.after = NO_SLOT
    added.before = of_key.last
    if of_key.last == NO_SLOT:
        of_key.first = slot
    else:
        rows.slots[of_key.last].after = slot
    of_key.last = slot
    of_key.n += 1
    rows.n_rows += 1
    at = _bucket(rows, key, identity)
    if rows.buckets[at]:
        first = &rows.slots[rows.buckets[at] - 1]
        rows.slots[first.last_copy].next_copy = slot
        first.last_copy = slot
    else:
        rows.buckets[at] = slot + 1
    return slot


cdef void changing_remove(ChangingRows* rows, uint32_t slot) noexcept nogil:
    cdef ChangingRow* row = &rows.slots[slot]
    cdef KeyRows* of_key = &rows.keys[row.key]
    cdef uint64_t at = _bucket(rows, row.key, row.identity)
    if row.next_copy == NO_SLOT:
        _empty_bucket(rows, at)
    else:
        rows.slots[row.next_copy].last_copy = row.last_copy
        rows.buckets[at] = row.next_copy + 1
    if row.before == NO_SLOT:
        of_key.first = row.after
    else:
        rows.slots[row.before].after = row.after
    if row.after == NO_SLOT:
        of_key.last = row.before
    else:
        rows.slots[row.after].before = row.before
    of_key.n -= 1
    rows.n_rows -= 1
    row.row = -1
    row.after = rows.free_slot - 1 if rows.free_slot else <uint32_t> NO_SLOT
    rows.free_slot = slot + 1


cdef void changing_slots(const ChangingRows* rows, uint32_t* slots) noexcept nogil:
    cdef int64_t key, n = 0
    cdef uint32_t slot
    for key in range(rows.n_keys):
        slot = rows.keys[key].first
        while slot != NO_SLOT:
            slots[n] = slot
            n += 1
            slot = rows.slots[slot].after


cdef void changing_free(ChangingRows* rows) noexcept nogil:
    free(rows.slots)
    free(rows.buckets)
    free(rows.keys)


cdef int64_t changing_memory(const ChangingRows* rows) noexcept nogil:
    cdef int64_t index = <int64_t> (rows.mask + 1) * 4 if rows.buckets != NULL else 0
    return rows.capacity * <int64_t> sizeof(ChangingRow) + rows.key_capacity * <int64_t> sizeof(KeyRows) + index


cdef bint changing_is_sound(const ChangingRows* rows) noexcept nogil:
    cdef int64_t key, n = 0, n_of_key, n_indexed = 0
    cdef uint64_t at
    cdef uint32_t slot, before, last
    for key in range(rows.n_keys):
        slot = rows.keys[key].first
        before = NO_SLOT
        n_of_key = 0
        while slot != NO_SLOT:
            if rows.slots[slot].key != key or rows.slots[slot].row < 0 or rows.slots[slot].before != before:
                return False
            before = slot
            slot = rows.slots[slot].after
            n_of_key += 1
        if before != rows.keys[key].last or n_of_key != rows.keys[key].n:
            return False
        n += n_of_key
    if rows.buckets != NULL:
        for at in range(rows.mask + 1):
            if rows.buckets[at]:
                slot = rows.buckets[at] - 1
                if changing_find(rows, rows.slots[slot].key, rows.slots[slot].identity) != slot:
                    return False
                last = rows.slots[slot].last_copy
                while slot != NO_SLOT:
                    n_indexed += 1
                    before = slot
                    slot = rows.slots[slot].next_copy
                if before != last:
                    return False
    return n == rows.n_rows == n_indexed

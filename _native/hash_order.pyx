"""Keys in order of their hashes, and of their bytes where hashes are equal: windows in this order merge without an index.

Hashes are well mixed: buckets by their first bits hold a few keys each, and what is left is next to nothing.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from flinkcore._native.memory cimport grow

cdef enum:
    MOST_BITS = 24  # of a hash, that tell the bucket

cdef inline bint _is_before(const KeyBatch* keys, HashedKey key, HashedKey other) noexcept nogil:
    if key.hash != other.hash:
        return key.hash < other.hash
    return compare_bytes(keys, key.number, keys, other.number) < 0


cdef int hash_order(HashOrder* scratch, const KeyBatch* keys, uint32_t n, HashedKey* order) except -1 nogil:
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

# Keys in order of their hashes, and of their bytes where hashes are equal: windows in this order merge without an index.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from flinkcore._native.keys cimport KEY_BYTES, KeyBatch


cdef struct HashedKey:
    uint64_t hash
    uint32_t number


cdef struct HashOrder:
    # Memory for sorting.
    uint32_t* buckets
    int64_t capacity


# Puts the n keys of a batch into `order`. They differ from one another.
cdef int hash_order(HashOrder* scratch, const KeyBatch* keys, uint32_t n, HashedKey* order) except -1 nogil
cdef void hash_order_free(HashOrder* scratch) noexcept nogil


cdef inline int compare_bytes(const KeyBatch* keys, int64_t row, const KeyBatch* others, int64_t other) noexcept nogil:
    # Below, equal to or above 0 as the key of a row is before, the same as or behind that of the other; 0 for int64 keys: their
    # hashes are equal, so they are.
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

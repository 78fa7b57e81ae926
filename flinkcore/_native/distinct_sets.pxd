# Sets of distinct values, one per entry: of words, or of byte strings. Zero-initialised they are empty.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from flinkcore._native.byte_values cimport ByteView
from flinkcore._native.memory cimport Buffer


cdef struct WordSet:
    # One word needs no table. `slots` has mask + 2 places: open addressing where 0 is empty, and last whether 0 is in.
    uint64_t* slots
    uint64_t only
    uint32_t mask
    uint32_t count


cdef struct ByteSlot:
    uint64_t hash
    uint64_t place  # of the length and bytes in `data`, plus one; 0: empty slot


cdef struct ByteSet:
    ByteSlot* slots  # (mask + 1,)
    Buffer data
    uint32_t mask
    uint32_t count


# For i in range(n): the set of entries[i] takes in the i-th value.
cdef int word_sets_add(WordSet* sets, const uint32_t* entries, const uint64_t* words, int64_t n) except -1 nogil
cdef int byte_sets_add(ByteSet* sets, const uint32_t* entries, const ByteView* views, int64_t n) except -1 nogil
# `into` becomes the union; `other` may hold anything afterwards and must be freed.
cdef int word_set_merge(WordSet* into, WordSet* other) except -1 nogil
cdef int byte_set_merge(ByteSet* into, ByteSet* other) except -1 nogil
cdef void word_set_free(WordSet* words) noexcept nogil
cdef void byte_set_free(ByteSet* strings) noexcept nogil
# Bytes taken from the heap.
cdef int64_t word_set_memory(const WordSet* words) noexcept nogil
cdef int64_t byte_set_memory(const ByteSet* strings) noexcept nogil
# Every element is where a look-up finds it, and the count is right.
cdef bint word_set_is_sound(const WordSet* words) noexcept nogil
cdef bint byte_set_is_sound(const ByteSet* strings) noexcept nogil

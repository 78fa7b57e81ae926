# Sets of distinct values that can lose values again: each value with how often it is in.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.column_values cimport ByteView


cdef struct CountedSlot:
    uint64_t code    # a word, or the hash of the bytes
    int64_t count    # 0: an empty slot
    uint8_t* data    # the bytes, owned; NULL for words
    int64_t length   # -1 for words


cdef struct CountedValues:
    # Zero-initialise; free with counted_values_free.
    CountedSlot* slots  # (mask + 1,): open addressing, at most half full; NULL if empty
    uint32_t mask
    uint32_t n          # distinct values


# Adds a word, or bytes, so many times more, at least once. O(1) amortised
cdef int counted_word_add(CountedValues* values, uint64_t word, int64_t times) except -1 nogil
cdef int counted_bytes_add(CountedValues* values, ByteView view, int64_t times) except -1 nogil
# Takes one away; nothing happens if it is not in.
cdef void counted_word_remove(CountedValues* values, uint64_t word) noexcept nogil
cdef void counted_bytes_remove(CountedValues* values, ByteView view) noexcept nogil
cdef void counted_values_free(CountedValues* values) noexcept nogil
cdef int64_t counted_values_memory(const CountedValues* values) noexcept nogil
cdef bint counted_values_are_sound(const CountedValues* values) noexcept nogil

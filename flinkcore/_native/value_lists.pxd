# Lists of values in order of arrival, one per entry. Zero-initialised they are empty.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.byte_values cimport ByteView
from flinkcore._native.memory cimport Buffer


cdef struct ValueList:
    int64_t length
    Buffer values  # words, or the bytes of all strings
    Buffer ends    # int64 (length,): where each string ends in `values`; empty for words
    Buffer nulls   # int64, rising: which elements are null; they hold 0 or no bytes


# For i in range(n): the list of entries[i] takes in the i-th value, null where its state says so.
cdef int word_lists_add(
    ValueList* lists, const uint32_t* entries, const uint64_t* words, const uint8_t* states, int64_t n
) except -1 nogil
cdef int byte_lists_add(
    ValueList* lists, const uint32_t* entries, const ByteView* views, const uint8_t* states, int64_t n
) except -1 nogil
# other's elements follow into's; `other` may hold anything afterwards and must be freed.
cdef int value_list_merge(ValueList* into, ValueList* other) except -1 nogil
cdef void value_list_free(ValueList* values) noexcept nogil
cdef int64_t value_list_memory(const ValueList* values) noexcept nogil
cdef bint value_list_is_sound(const ValueList* values, bint words) noexcept nogil

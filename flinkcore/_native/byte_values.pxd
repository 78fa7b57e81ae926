# Byte strings: borrowed views, copies that an entry owns, their order and hash.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy


cdef struct ByteView:
    const uint8_t* data
    int64_t length


cdef struct OwnedBytes:
    # Zero-initialise; free with owned_bytes_free.
    uint8_t* data
    int64_t length
    int64_t capacity


cdef int owned_bytes_set(OwnedBytes* owned, ByteView view) except -1 nogil
cdef void owned_bytes_free(OwnedBytes* owned) noexcept nogil
cdef uint64_t bytes_hash(ByteView view) noexcept nogil


cdef inline ByteView owned_bytes_view(const OwnedBytes* owned) noexcept nogil:
    cdef ByteView view
    view.data = owned.data
    view.length = owned.length
    return view


cdef inline bint is_less(ByteView a, ByteView b, bint decimal) noexcept nogil:
    # Unsigned bytes from the left, a prefix first; decimals are 16-byte little-endian numbers.
    cdef int64_t shorter = a.length if a.length < b.length else b.length, a_high, b_high
    cdef uint64_t a_low, b_low
    cdef int order
    if decimal:
        memcpy(&a_high, a.data + 8, 8)
        memcpy(&b_high, b.data + 8, 8)
        if a_high != b_high:
            return a_high < b_high
        memcpy(&a_low, a.data, 8)
        memcpy(&b_low, b.data, 8)
        return a_low < b_low
    order = memcmp(a.data, b.data, shorter) if shorter else 0
    if order != 0:
        return order < 0
    return a.length < b.length

"""Byte strings: borrowed views, copies that an entry owns, their order and hash."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy


cdef int owned_bytes_set(OwnedBytes* owned, ByteView view) except -1 nogil:
    cdef int64_t capacity
    cdef uint8_t* data
    if view.length > owned.capacity:
        capacity = (view.length + 15) & ~<int64_t> 15
        data = <uint8_t*> realloc(owned.data, capacity)
        if data == NULL:
            with gil:
                raise MemoryError(f"{capacity} bytes for a value")
        owned.data = data
        owned.capacity = capacity
    if view.length:
        memcpy(owned.data, view.data, view.length)
    owned.length = view.length
    return 0


cdef void owned_bytes_free(OwnedBytes* owned) noexcept nogil:
    free(owned.data)
    owned.data = NULL
    owned.length = owned.capacity = 0


cdef uint64_t bytes_hash(ByteView view) noexcept nogil:
    # Eight bytes at a time; only sets in memory depend on it.
    cdef uint64_t hash = <uint64_t> view.length * <uint64_t> 0x9E3779B97F4A7C15, word
    cdef const uint8_t* at = view.data
    cdef int64_t left = view.length
    while left > 0:
        word = 0
        memcpy(&word, at, 8 if left > 8 else left)
        hash = (hash ^ word) * <uint64_t> 0xFF51AFD7ED558CCD
        hash ^= hash >> 32
        at += 8
        left -= 8
    return hash

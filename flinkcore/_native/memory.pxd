# Memory of kernels: arrays that grow, and large blocks that are kept for the next arrays.
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy


cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    # A hint to the processor to bring memory near; it never fails, whatever the address.
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil


cdef inline void prefetch_all(const void* address, size_t size) noexcept nogil:
    # Prefetches memory that may lie across two lines of the cache.
    prefetch(address)
    prefetch(<const char*> address + size - 1)


cdef inline int64_t allocated_bytes(int64_t size) noexcept nogil:
    # Returns about how many bytes malloc takes for so many.
    return max(<int64_t> 32, (size + 23) & ~<int64_t> 15)


# Like free(), but a large block is kept for the next buffer that needs one.
cdef void block_free(void* block) noexcept nogil
# Bytes of a block of malloc, 0 of NULL.
cdef int64_t block_bytes(const void* block) noexcept nogil
# Like realloc(), but raises a MemoryError that names what the memory is for.
cdef void* grow(void* memory, int64_t size, const char* what) except NULL nogil
# Like calloc(), with such an error: memory that the system has just cleared is not cleared again.
cdef void* grow_zeros(int64_t size, const char* what) except NULL nogil


cdef struct Buffer:
    # Growable bytes, owned. Zero-initialise; free with buffer_free.
    uint8_t* data
    int64_t size
    int64_t capacity


# Makes room for `extra` more bytes.
cdef int buffer_reserve(Buffer* buffer, int64_t extra) except -1 nogil
# Resizes the buffer for new content; the old content is lost.
cdef int buffer_resize(Buffer* buffer, int64_t size) except -1 nogil
cdef void buffer_free(Buffer* buffer) noexcept nogil


cdef inline void* buffer_append(Buffer* buffer, int64_t size) except NULL nogil:
    # Returns the place of `size` more bytes, which the caller writes: a struct, in a buffer of such structs.
    cdef void* end
    if buffer.size + size > buffer.capacity:
        buffer_reserve(buffer, size)
    end = buffer.data + buffer.size
    buffer.size += size
    return end


cdef inline int buffer_append_int64(Buffer* buffer, int64_t value) except -1 nogil:
    (<int64_t*> buffer_append(buffer, 8))[0] = value
    return 0


cdef inline int buffer_append_bytes(Buffer* buffer, const void* bytes, int64_t size) except -1 nogil:
    if size:
        memcpy(buffer_append(buffer, size), bytes, size)
    return 0


cdef struct BitBuffer:
    # Growable bitmap: bits beyond `length` of the last byte are zero. `zeros` counts the zero bits appended.
    Buffer bytes
    int64_t length
    int64_t zeros


cdef int bits_append(BitBuffer* bits, bint value) except -1 nogil
cdef int bits_append_many(BitBuffer* bits, bint value, int64_t count) except -1 nogil

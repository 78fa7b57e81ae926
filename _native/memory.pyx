"""Memory of kernels: arrays that grow, and large blocks that are kept for the next arrays.

All of it comes from malloc, and any thread may free it.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset


# ---- blocks ------------------------------------------------------------------------------------------------------
# Batches of results of some megabytes are allocated and freed all the time, and the system would clear every page each time:
# most of the time of a replay that streams its results would go into page faults. So large freed blocks are kept for the next
# ones. New blocks are in huge pages if possible, for results that are all kept; so are large arrays that grow, for most of their reads
# would miss the small pages that the processor remembers.
#
# A process may fork while its other threads allocate and free blocks: the fork waits for them, so that the child inherits a
# consistent list, and a free lock.


cdef extern from *:
    """
    #include <pthread.h>
    #include <stdlib.h>
    #if defined(__APPLE__)
    #include <malloc/malloc.h>
    #define flinkcore_usable_size malloc_size
    #else
    #include <malloc.h>
    #define flinkcore_usable_size malloc_usable_size
    #endif
    static pthread_mutex_t flinkcore_blocks_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void flinkcore_lock_blocks(void) {
        pthread_mutex_lock(&flinkcore_blocks_mutex);
    }
    static void flinkcore_unlock_blocks(void) {
        pthread_mutex_unlock(&flinkcore_blocks_mutex);
    }
    static int flinkcore_guard_forks(void) {
        static int guarded = 0;
        if (!guarded && pthread_atfork(flinkcore_lock_blocks, flinkcore_unlock_blocks, flinkcore_unlock_blocks)) {
            return -1;
        }
        guarded = 1;
        return 0;
    }
    #if defined(__linux__)
    #include <sys/mman.h>
    static void* flinkcore_new_block(size_t size) {
        const size_t page = (size_t) 1 << 21;
        void* block;
        if (size < page) {
            return malloc(size);
        }
        if (posix_memalign(&block, page, size)) {
            return NULL;
        }
        madvise(block, size & ~(page - 1), MADV_HUGEPAGE);  /* whole pages only: no more memory than asked for */
        return block;
    }
    static void* flinkcore_in_huge_pages(void* block, size_t size) {
        const size_t page = (size_t) 1 << 21;
        char* begin;
        char* end;
        if (block != NULL && size >= 2 * page) {
            begin = (char*) (((size_t) block + page - 1) & ~(page - 1));
            end = (char*) (((size_t) block + size) & ~(page - 1));
            madvise(begin, (size_t) (end - begin), MADV_HUGEPAGE);
        }
        return block;
    }
    #else
    #define flinkcore_new_block malloc
    #define flinkcore_in_huge_pages(block, size) (block)
    #endif
    static void* flinkcore_resize_block(void* block, size_t size) {
        return flinkcore_in_huge_pages(realloc(block, size), size);
    }
    static void* flinkcore_zero_block(size_t size) {
        return flinkcore_in_huge_pages(calloc(1, size), size);
    }
    """
    size_t _usable_size "flinkcore_usable_size"(void* block) noexcept nogil
    void* _new_block "flinkcore_new_block"(size_t size) noexcept nogil
    void* _resize_block "flinkcore_resize_block"(void* block, size_t size) noexcept nogil
    void* _zero_block "flinkcore_zero_block"(size_t size) noexcept nogil
    void _lock "flinkcore_lock_blocks"() noexcept nogil
    void _unlock "flinkcore_unlock_blocks"() noexcept nogil
    int _guard_forks "flinkcore_guard_forks"() noexcept


cdef enum:
    LARGE_BLOCK = 1 << 18  # bytes from which on blocks are kept
    KEPT_BLOCKS = 64
    KEPT_BYTES = 1 << 26


cdef struct Block:
    void* data
    size_t size


cdef Block[KEPT_BLOCKS] _kept
cdef int _n_kept = 0
cdef size_t _bytes_kept = 0


cdef void* _block_take(size_t size, size_t* taken) noexcept nogil:
    # A kept block of at least `size` bytes, and not far more, or NULL; `taken` is then its size.
    global _n_kept, _bytes_kept
    cdef void* data = NULL
    cdef int i, best = -1
    if size < LARGE_BLOCK:
        return NULL
    _lock()
    for i in range(_n_kept):
        if size <= _kept[i].size <= 4 * size and (best < 0 or _kept[i].size < _kept[best].size):
            best = i
    if best >= 0:
        data = _kept[best].data
        taken[0] = _kept[best].size
        _bytes_kept -= _kept[best].size
        _n_kept -= 1
        _kept[best] = _kept[_n_kept]
    _unlock()
    return data


cdef void block_free(void* block) noexcept nogil:
    global _n_kept, _bytes_kept
    cdef size_t size
    cdef void* whole
    if block == NULL:
        return
    size = _usable_size(block)
    if size < LARGE_BLOCK or size > KEPT_BYTES:
        free(block)
        return
    # The allocator may have returned more than was asked for. Only the requested bytes may be written, so exactly these are, in
    # place. glibc would move a mapped block for the last eight of its usable bytes, which are another block's header otherwise.
    size -= 8
    whole = realloc(block, size)
    if whole == NULL:
        free(block)
        return
    block = whole
    _lock()
    if _n_kept < KEPT_BLOCKS and _bytes_kept + size <= KEPT_BYTES:
        _kept[_n_kept].data = block
        _kept[_n_kept].size = size
        _n_kept += 1
        _bytes_kept += size
        block = NULL
    _unlock()
    free(block)


cdef int64_t block_bytes(const void* block) noexcept nogil:
    return _usable_size(<void*> block) if block != NULL else 0


# ---- arrays that grow --------------------------------------------------------------------------------------------


cdef void* grow(void* memory, int64_t size, const char* what) except NULL nogil:
    cdef void* grown = _resize_block(memory, size)
    if grown == NULL:
        with gil:
            raise MemoryError(f"{size} bytes for {what.decode('ascii')}")
    return grown


cdef void* grow_zeros(int64_t size, const char* what) except NULL nogil:
    cdef void* block = _zero_block(size)
    if block == NULL:
        with gil:
            raise MemoryError(f"{size} bytes for {what.decode('ascii')}")
    return block


cdef int buffer_reserve(Buffer* buffer, int64_t extra) except -1 nogil:
    cdef int64_t needed = buffer.size + extra, capacity
    cdef size_t taken = 0
    cdef uint8_t* data
    if needed <= buffer.capacity:
        return 0
    capacity = buffer.capacity * 2 if buffer.capacity > 32 else 64
    if capacity < needed:
        capacity = (needed + 63) & ~<int64_t> 63
    data = <uint8_t*> _block_take(capacity, &taken)
    if data != NULL:
        capacity = <int64_t> taken
        if buffer.size:
            memcpy(data, buffer.data, buffer.size)
        block_free(buffer.data)
    elif buffer.data == NULL:
        data = <uint8_t*> _new_block(capacity)
    else:
        data = <uint8_t*> _resize_block(buffer.data, capacity)
    if data == NULL:
        with gil:
            raise MemoryError(f"{capacity} bytes")
    buffer.data = data
    buffer.capacity = capacity
    return 0


cdef int buffer_resize(Buffer* buffer, int64_t size) except -1 nogil:
    buffer.size = 0
    buffer_reserve(buffer, size)
    buffer.size = size
    return 0


cdef void buffer_free(Buffer* buffer) noexcept nogil:
    block_free(buffer.data)
    memset(buffer, 0, sizeof(Buffer))


cdef int bits_append(BitBuffer* bits, bint value) except -1 nogil:
    cdef int64_t length = bits.length
    if (length & 7) == 0:
        buffer_reserve(&bits.bytes, 1)
        bits.bytes.data[length >> 3] = 0
        bits.bytes.size = (length >> 3) + 1
    bits.bytes.data[length >> 3] |= value << (length & 7)
    bits.zeros += not value
    bits.length = length + 1
    return 0


cdef int bits_append_many(BitBuffer* bits, bint value, int64_t count) except -1 nogil:
    cdef int64_t whole
    while count and bits.length & 7:
        bits_append(bits, value)
        count -= 1
    whole = count >> 3
    if whole:
        buffer_reserve(&bits.bytes, whole)
        memset(bits.bytes.data + bits.bytes.size, 0xFF if value else 0, whole)
        bits.bytes.size += whole
        bits.length += whole * 8
        if not value:
            bits.zeros += whole * 8
        count -= whole * 8
    while count:
        bits_append(bits, value)
        count -= 1
    return 0


def kept_bytes():
    """Bytes of memory that are kept for the next large blocks; at most 64 MiB."""
    cdef size_t size
    with nogil:  # other threads may be taking a block at this moment
        _lock()
        size = _bytes_kept
        _unlock()
    return size


if _guard_forks():
    raise MemoryError("the handlers of forks")

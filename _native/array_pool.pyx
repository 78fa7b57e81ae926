"""Pools of small arrays, such as the rows of a key: they grow from one to some, and leave soon.

Arrays are cut from slabs, which grow with the pool, up to some huge pages. AddressSanitizer knows which bytes of a slab are in use: it
finds accesses to arrays that were given back, and beyond the last array.
"""

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve


cdef extern from *:
    """
    #if defined(__SANITIZE_ADDRESS__)
    #include <sanitizer/asan_interface.h>
    #else
    #define ASAN_POISON_MEMORY_REGION(memory, size) ((void) (memory), (void) (size))
    #define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void) (memory), (void) (size))
    #endif
    """
    # Without AddressSanitizer they do nothing.
    void _poison "ASAN_POISON_MEMORY_REGION"(void* memory, size_t size) noexcept nogil
    void _unpoison "ASAN_UNPOISON_MEMORY_REGION"(void* memory, size_t size) noexcept nogil


cdef enum:
    LEAST_SLAB = 1 << 14
    LARGEST_SLAB = 1 << 22


cdef int _add_slab(Pool* pool) except -1 nogil:
    cdef Buffer added
    memset(&added, 0, sizeof(Buffer))
    buffer_reserve(&added, min(max(2 * pool.slab.capacity, <int64_t> LEAST_SLAB), <int64_t> LARGEST_SLAB))
    (<Buffer*> added.data)[0] = pool.slab
    added.size = POOL_LEAST - <int64_t> (<uintptr_t> added.data & (POOL_LEAST - 1))
    if added.size < <int64_t> sizeof(Buffer):
        added.size += POOL_LEAST
    _poison(added.data + added.size, added.capacity - added.size)
    pool.slab = added
    return 0


cdef void* pool_take(Pool* pool, int kind) except NULL nogil:
    cdef int64_t size = <int64_t> POOL_LEAST << kind
    cdef void** array = pool.unused[kind]
    if array != NULL:
        _unpoison(array, size)
        pool.unused[kind] = <void**> array[0]
    else:
        if pool.slab.size + size > pool.slab.capacity:
            _add_slab(pool)
        array = <void**> (pool.slab.data + pool.slab.size)
        pool.slab.size += size
        _unpoison(array, size)
    pool.used += size
    return array


cdef void pool_give_back(Pool* pool, void* array, int kind) noexcept nogil:
    (<void**> array)[0] = pool.unused[kind]
    pool.unused[kind] = <void**> array
    pool.used -= <int64_t> POOL_LEAST << kind
    _poison(array, <int64_t> POOL_LEAST << kind)


cdef void pool_free(Pool* pool) noexcept nogil:
    cdef Buffer before
    while pool.slab.data != NULL:
        before = (<Buffer*> pool.slab.data)[0]
        _unpoison(pool.slab.data, pool.slab.capacity)  # the block may serve the next buffer
        buffer_free(&pool.slab)
        pool.slab = before
    memset(pool, 0, sizeof(Pool))

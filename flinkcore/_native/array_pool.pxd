# Pools of small arrays, which a kernel allocates and gives back all the time: malloc would take most of that time.
from libc.stdint cimport int64_t

from flinkcore._native.memory cimport Buffer


cdef enum:
    POOL_LEAST = 64  # bytes of an array of kind 0, a line of the cache; of each further kind twice as many
    POOL_KINDS = 8


cdef struct Pool:
    # Zero-initialise; free with pool_free. The memory of arrays that were given back serves arrays of the same kind.
    void** unused[POOL_KINDS]  # by kind: the array that was given back last; each begins with the one given back before
    Buffer slab                # the last slab, of which `size` bytes are dealt out; it begins with the slab before
    int64_t used               # bytes of the arrays in use


# Returns an array of POOL_LEAST << kind bytes, aligned to lines of the cache. Raises MemoryError.
cdef void* pool_take(Pool* pool, int kind) except NULL nogil
cdef void pool_give_back(Pool* pool, void* array, int kind) noexcept nogil
# Frees all arrays.
cdef void pool_free(Pool* pool) noexcept nogil

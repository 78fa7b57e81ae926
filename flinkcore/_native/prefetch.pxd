# A hint to the processor to bring memory near; it never fails, whatever the address.
cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil


cdef inline void prefetch_all(const void* address, size_t size) noexcept nogil:
    # Of what may lie across two lines of the cache.
    prefetch(address)
    prefetch(<const char*> address + size - 1)

# Large blocks of memory that have been given back are kept for the next ones: the system would clear every page anew.
#
# All blocks are of malloc; they may be taken and given back in any thread. It never fails: NULL where nothing fits.
cdef enum:
    LARGE_BLOCK = 1 << 18  # bytes from which on they are kept
    KEPT_BLOCKS = 64
    KEPT_BYTES = 1 << 26


# A kept block of at least `size` bytes, and not far more, or NULL; `taken` is then its size.
cdef void* block_take(size_t size, size_t* taken) noexcept nogil
# A new block, like malloc's, in huge pages as far as the system has them: it clears many at a time. NULL where there is no memory.
cdef void* block_new(size_t size) noexcept nogil
# As free().
cdef void block_free(void* block) noexcept nogil
# How many bytes are kept now.
cdef size_t blocks_kept() noexcept nogil

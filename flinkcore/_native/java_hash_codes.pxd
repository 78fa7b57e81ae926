# Java hash codes of Arrow values.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.arrow cimport Column


cdef enum:
    HASH_BLOCK = 1024


# Hash codes of rows first..first+n; those of null rows mean nothing. n is at most HASH_BLOCK.
cdef void hash_block(const Column* column, int64_t first, int64_t n, uint32_t* out) noexcept nogil
# Objects.hashCode of every row: 0 for null.
cdef void hash_column(const Column* column, uint32_t* out) noexcept nogil

# About how many different values there are: a sketch of bounded size, which depends on nothing but the set of values.
from libc.stdint cimport int64_t, uint64_t

from flinkcore._native.column_values cimport OwnedBytes, WordSet


cdef enum:
    SKETCH_REGISTERS = 4096
    MOST_RANK = 53  # of a register: 52 bits of a hash do not choose it


cdef inline uint64_t mixed_hash(uint64_t word) noexcept nogil:
    # Every bit of the word changes about half of the bits of the hash: the finalizer of MurmurHash3.
    word = (word ^ (word >> 33)) * <uint64_t> 0xFF51AFD7ED558CCD
    word = (word ^ (word >> 33)) * <uint64_t> 0xC4CEB9FE1A85EC53
    return word ^ (word >> 33)


# A sketch is the set of the values' hashes while these are few, and then registers (SKETCH_REGISTERS bytes), with the set empty.
cdef int sketch_add(WordSet* hashes, OwnedBytes* registers, uint64_t hash) except -1 nogil
# `into` becomes the sketch of the values of both; `other` may hold anything afterwards and must be freed.
cdef int sketch_merge(
    WordSet* into, OwnedBytes* into_registers, WordSet* other, OwnedBytes* other_registers
) except -1 nogil
cdef int64_t sketch_estimate(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil
cdef bint sketch_is_sound(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil

# Rows that are added and withdrawn: found by key and identity, and kept in order of their coming.
from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef enum:
    NO_SLOT = 0xFFFFFFFF


cdef struct Identity:
    # A hash of 128 bits of what makes rows equal: all their columns, or those of a unique key.
    uint64_t low
    uint64_t high


cdef struct ChangingRow:
    Identity identity
    int64_t row          # its number among the rows that are kept; of a free slot -1
    int64_t timestamp
    uint32_t key
    uint32_t before      # slots of its neighbours among the rows of its key, or NO_SLOT
    uint32_t after       # of a free slot: the next free one
    uint32_t next_copy   # the next row with its key and identity, which came later
    uint32_t last_copy   # of the first of them: the last one
    bint is_watched      # of a slot, whatever row it has: a join that lets rows expire has it in its queue


cdef struct KeyRows:
    # The rows of a key, a list in order of their coming.
    uint32_t first
    uint32_t last
    int64_t n


cdef struct ChangingRows:
    # Zero-initialise; free with changing_free.
    ChangingRow* slots
    uint32_t n_slots
    uint32_t capacity
    uint32_t free_slot    # the first of a list, plus 1; 0: none
    int64_t n_rows
    uint32_t* buckets     # slot of the first of equal rows, plus 1; 0: empty
    uint64_t mask
    KeyRows* keys
    int64_t n_keys
    int64_t key_capacity


# Knows the keys with lower ids.
cdef int changing_reach(ChangingRows* rows, int64_t n_keys) except -1 nogil
# Returns the slot of the first of the rows with this key and identity, or NO_SLOT.
cdef uint32_t changing_find(const ChangingRows* rows, uint32_t key, Identity identity) noexcept nogil
# Adds a row behind those of its key, and returns its slot.
cdef uint32_t changing_add(
    ChangingRows* rows, uint32_t key, Identity identity, int64_t row, int64_t timestamp
) except? NO_SLOT nogil
# Removes a row that is the first of its copies; its slot is free then.
cdef void changing_remove(ChangingRows* rows, uint32_t slot) noexcept nogil
# Writes the slots of all rows, those of a key in their order, to (n_rows,).
cdef void changing_slots(const ChangingRows* rows, uint32_t* slots) noexcept nogil
cdef void changing_free(ChangingRows* rows) noexcept nogil
# Returns the bytes held.
cdef int64_t changing_memory(const ChangingRows* rows) noexcept nogil
# Returns false if lists, copies or the index are broken.
cdef bint changing_is_sound(const ChangingRows* rows) noexcept nogil


cdef inline Identity identity_of(const uint64_t* identities, int64_t i) noexcept nogil:
    # The identity of row i, of an array (n, 2).
    cdef Identity identity
    identity.low = identities[2 * i]
    identity.high = identities[2 * i + 1]
    return identity

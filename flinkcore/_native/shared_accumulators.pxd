# Accumulators that several windows share: each window adds up the slices of time that it is made of.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from flinkcore._native.aggregates cimport AccumulatorTable


# Raises ConfigurationError but where results are the same in whatever order elements are added up: counts, sums of whole
# numbers, least and greatest values of fixed width. The others need their elements in the order in which they came, or own what
# a slice would share.
cdef int require_shareable(const AccumulatorTable* table) except -1
# For i in range(n): entry into[i] takes in what others[i] holds, which stays as it is. Of shareable accumulators only.
cdef void accumulators_add(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil
# Likewise, entry into[i] then holds what others[i] does; one after the other.
cdef void accumulators_copy(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n
) noexcept nogil
# Takes out of entry into[i] what others[i] holds, which it took in before. Where that cannot be told, since what else it took in
# is not known any more, doubtful[i] is set, else 0; a doubtful entry is of no use until it is made anew.
cdef void accumulators_subtract(
    AccumulatorTable* table, const uint32_t* into, const uint32_t* others, int64_t n, uint8_t* doubtful
) noexcept nogil

# Results of one aggregate: from what it holds per entry to a result column.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from flinkcore._native.aggregate_functions cimport Aggregate
from flinkcore._native.arrow cimport NativeArray


# The entries are entries[0..n), or first, first + 1, ... where `entries` is NULL. Bytes that results of strings and lists
# take, those of fixed width not counted:
cdef int64_t aggregate_result_bytes(
    const Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) noexcept nogil
# Room for their results:
cdef int aggregate_reserve_results(
    Aggregate* aggregate, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil
# Appends them; `touched` says which entries have a value where the aggregate has no states.
cdef int aggregate_emit(
    Aggregate* aggregate, const uint8_t* touched, const uint32_t* entries, uint32_t first, int64_t n
) except -1 nogil
# The results so far, `rows` of them; they start anew. `format` is that of the elements for COLLECT.
cdef NativeArray aggregate_take(Aggregate* aggregate, str format, int64_t rows)

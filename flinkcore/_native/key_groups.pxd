# Java hash codes of keys, and Flink's key groups.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.arrow cimport RecordBatch


# Key group of every row (out: (num_rows,)). The key is the one column of indexes[0], or Row.of(the n columns).
# A DataError where a single-column key is null.
cdef int key_groups_of(
    RecordBatch batch, const int64_t* indexes, int64_t n, int32_t max_parallelism, int32_t* out
) except -1

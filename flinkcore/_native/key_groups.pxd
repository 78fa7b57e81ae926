# Java hash codes of keys, and Flink's key groups.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.arrow cimport RecordBatch


# DataError: the key of this row is null.
cdef int refuse_null_key(int64_t row) except -1
# Raises ConfigurationError if it is not from 1 to 2**31 - 1.
cdef int32_t checked_max_parallelism(object max_parallelism) except -1
# Key group of every row (out: (num_rows,)). The key is the one column of indexes[0], or Row.of(the n columns).
# A null key of a single column has the hash code 0.
cdef int key_groups_of(
    RecordBatch batch, const int64_t* indexes, int64_t n, int32_t max_parallelism, int32_t* out
) except -1

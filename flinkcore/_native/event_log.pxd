# What reading an event log takes: codes of splits.
from libc.stdint cimport int32_t, int64_t


# DataError where a code is not that of one of so many splits.
cdef int check_codes(const int32_t[::1] codes, int64_t n_codes) except -1

# DataError where offsets are not those of so many groups of so many rows.
cdef int check_offsets(const int64_t[::1] offsets, int64_t n_groups, int64_t n_rows) except -1

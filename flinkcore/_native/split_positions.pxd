# Positions of rows in their splits, from dense split codes.
from libc.stdint cimport int32_t, int64_t


# Writes each row's position, and counts on in next_position (one per code). A code of -1 is no split: its position is -1.
# Returns -1, or the first row whose code is out of range; rows before it are counted then.
cdef int64_t number_rows(
    const int32_t* codes, int64_t n_rows, int64_t* next_position, int64_t n_codes, int64_t* positions
) noexcept nogil

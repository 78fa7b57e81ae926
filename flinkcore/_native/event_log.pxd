# Checks of columns of an event log: codes of splits, bounds of arrivals.
from libc.stdint cimport int32_t, int64_t


cdef extern from *:
    """
    #include <stdint.h>
    #define FLINKCORE_MAX_ARRIVAL ((int64_t) 1 << 61)
    """
    # Arrivals lie within it, so that no tick, and no difference of two clocks, leaves 64 bits.
    const int64_t MAX_ARRIVAL "FLINKCORE_MAX_ARRIVAL"


# Raises DataError if a code is not below n_codes.
cdef int check_codes(const int32_t[::1] codes, int64_t n_codes) except -1

# Raises DataError unless the offsets divide n_rows rows into n_groups groups.
cdef int check_offsets(const int64_t[::1] offsets, int64_t n_groups, int64_t n_rows) except -1

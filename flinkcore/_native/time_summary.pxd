# Ticks, and the summary of a chunk's times for the timeline.
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer


cdef inline int64_t tick_of(int64_t arrival, int64_t interval) noexcept nogil:
    # Returns the first tick that sees an arrival: the smallest multiple of the interval that is not before it; without ticks
    # 2**63 - 1, which is after all arrivals. C's remainder truncates towards zero, so a negative one means that the multiple
    # above is nearer. An arrival out of bounds, which callers reject, may wrap around.
    cdef int64_t rest
    if interval == 0:
        return INT64_MAX
    rest = arrival % interval
    if rest > 0:
        return <int64_t> (<uint64_t> arrival + <uint64_t> (interval - rest))
    return arrival - rest


# Raises ConfigurationError unless it is from 0 to 2**60 ms.
cdef int64_t checked_interval(object interval_ms) except? -1


cdef struct SplitTimes:
    # One split within a chunk. `arrival` is the running maximum, `recorded_arrival` that of the last event as recorded.
    int64_t tick           # the first one that sees the last event; -2**63 before the first event of a part
    int64_t recorded_arrival
    int64_t arrival
    int64_t min_timestamp
    int64_t max_timestamp
    int64_t events
    int64_t regressions
    int64_t raised         # events recorded to arrive before `arrival`
    int64_t first_arrival
    int64_t step           # maximum timestamp that has been recorded
    int64_t part           # number of the open part; -1: none
    int64_t window_end     # no tick of the part is after it


cdef class TimeSummary:
    cdef CallGuard guard
    cdef int64_t interval
    cdef uint64_t idle_wait
    cdef bint steps
    cdef int32_t n_splits
    cdef int32_t capacity
    cdef SplitTimes* splits
    cdef int64_t window    # length in ms; 0: all time is one window
    cdef Buffer parts
    cdef Buffer records

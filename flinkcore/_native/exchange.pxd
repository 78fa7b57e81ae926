# Rows to partitions by key group, and many runs into one total order.
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct TotalOrder:
    # The columns that order events: arrival, then split, then position in the split.
    const int64_t* arrivals
    const int32_t* splits
    const int64_t* positions


cdef inline bint precedes(const TotalOrder* order, int64_t a, int64_t b) noexcept nogil:
    # Whether row a comes strictly before row b.
    if order.arrivals[a] != order.arrivals[b]:
        return order.arrivals[a] < order.arrivals[b]
    if order.splits[a] != order.splits[b]:
        return order.splits[a] < order.splits[b]
    return order.positions[a] < order.positions[b]

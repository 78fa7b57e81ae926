# Tumbling, sliding and cumulate windows: which ones a timestamp is in. Each kind has one window per end.
from libc.stdint cimport int64_t


cdef struct AlignedWindows:
    int64_t size     # of cumulate windows: of the largest
    int64_t slide    # distance of two ends
    int64_t offset
    bint cumulative  # windows share their start, once per size, and grow by the slide


cdef inline int64_t aligned_start(int64_t timestamp, int64_t offset, int64_t width) noexcept nogil:
    # TimeWindow.getWindowStartWithOffset: the remainder truncates, so negative ones move one width down.
    cdef int64_t remainder = (timestamp - offset) % width
    if remainder < 0:
        remainder += width
    return timestamp - remainder


# Windows are visited in the order of Flink's assigners: sliding ones from the latest start down, cumulate ones as they
# grow. The first of them is that with this end; where the timestamp is beyond it, there is none.
cdef inline int64_t first_end(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    return aligned_start(timestamp, windows.offset, windows.slide) + (
        windows.slide if windows.cumulative else windows.size
    )


# Where the first window begins; all windows have end <= start + size.
cdef inline int64_t first_start(const AlignedWindows* windows, int64_t timestamp, int64_t end) noexcept nogil:
    return aligned_start(timestamp, windows.offset, windows.size) if windows.cumulative else end - windows.size


# From the end of one window to that of the next.
cdef inline int64_t end_step(const AlignedWindows* windows) noexcept nogil:
    return windows.slide if windows.cumulative else -windows.slide


# Where the window with this end begins, of those that begin first at `start`.
cdef inline int64_t start_of_end(const AlignedWindows* windows, int64_t start, int64_t end) noexcept nogil:
    return start if windows.cumulative else end - windows.size


# Windows per timestamp, at most.
cdef inline int64_t most_windows(const AlignedWindows* windows) noexcept nogil:
    return (windows.size + windows.slide - 1) // windows.slide

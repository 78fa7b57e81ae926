# Tumbling, sliding and cumulate windows: which ones a timestamp is in. Each kind has one window per end.
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t

from flinkcore._native.window_kernel cimport WindowKernel, WindowVerbs


cdef struct AlignedWindows:
    int64_t size     # of cumulate windows: of the largest
    int64_t slide    # distance of two ends
    int64_t offset
    bint cumulative  # windows share their start, once per size, and grow by the slide


cdef struct WindowVisit:
    # One of the windows of a timestamp. They are visited in the order of Flink's assigners: sliding ones from the latest start
    # down, cumulate ones as they grow.
    int64_t start
    int64_t end
    int64_t start_step  # to the next one
    int64_t end_step
    int64_t timestamp
    int64_t last_end


cdef inline int64_t aligned_start(int64_t timestamp, int64_t offset, int64_t width) noexcept nogil:
    # TimeWindow.getWindowStartWithOffset: the remainder truncates, so negative ones move one width down.
    cdef int64_t remainder = (timestamp - offset) % width
    if remainder < 0:
        remainder += width
    return timestamp - remainder


cdef inline int64_t slice_end(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    # The next time, after the timestamp, at which a window could end, were its size a multiple of the slide.
    return aligned_start(timestamp, windows.offset, windows.slide) + windows.slide


cdef inline int64_t first_end(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    # Of the first window to visit; where the timestamp is beyond it, there is none.
    return aligned_start(timestamp, windows.offset, windows.slide) + (
        windows.slide if windows.cumulative else windows.size
    )


cdef inline WindowVisit visit_from(
    const AlignedWindows* windows, int64_t timestamp, int64_t start, int64_t end
) noexcept nogil:
    # The first window of a timestamp, where its bounds are known.
    cdef WindowVisit visit
    visit.start = start
    visit.end = end
    visit.start_step = 0 if windows.cumulative else -windows.slide
    visit.end_step = windows.slide if windows.cumulative else -windows.slide
    visit.timestamp = timestamp
    visit.last_end = start + windows.size
    return visit


cdef inline WindowVisit first_window(const AlignedWindows* windows, int64_t timestamp) noexcept nogil:
    cdef int64_t end = first_end(windows, timestamp)
    return visit_from(
        windows,
        timestamp,
        aligned_start(timestamp, windows.offset, windows.size) if windows.cumulative else end - windows.size,
        end,
    )


cdef inline bint is_window(const WindowVisit* visit) noexcept nogil:
    # False after the last one.
    return visit.timestamp < visit.end <= visit.last_end


cdef inline void visit_next(WindowVisit* visit) noexcept nogil:
    visit.start += visit.start_step
    visit.end += visit.end_step


cdef inline bint has_window(int64_t start, int64_t end, int64_t size, int64_t slide, int64_t offset) noexcept nogil:
    # Whether windows of one size, one per slide, have one with these bounds, of which the first is the lower.
    if <uint64_t> end - <uint64_t> start != <uint64_t> size:
        return False
    if (offset > 0 and start < INT64_MIN + offset) or (offset < 0 and start > INT64_MAX + offset):
        return False
    return (start - offset) % slide == 0


cdef inline bint is_assigned(const AlignedWindows* windows, int64_t start, int64_t end) noexcept nogil:
    # Whether a timestamp can be in the window with these bounds, of which the first is the lower.
    cdef uint64_t length = <uint64_t> end - <uint64_t> start
    if not windows.cumulative:
        return has_window(start, end, windows.size, windows.slide, windows.offset)
    if length > <uint64_t> windows.size or length % <uint64_t> windows.slide:
        return False
    return has_window(start, start + windows.slide, windows.slide, windows.size, windows.offset)


# Windows per timestamp, at most.
cdef inline int64_t most_windows(const AlignedWindows* windows) noexcept nogil:
    return (windows.size + windows.slide - 1) // windows.slide


# Raises ConfigurationError where windows have no such size, or a row would be in more than `most_windows`.
cdef AlignedWindows checked_windows(
    int64_t size, int64_t slide, int64_t offset, bint cumulative, int64_t allowed_lateness, int64_t most_windows
) except *
# A kernel with its zeroed state of `state_size` bytes, whose triggers look up to `reach` beyond a timestamp.
cdef WindowKernel aligned_kernel(
    str name,
    size_t state_size,
    const WindowVerbs* verbs,
    const AlignedWindows* windows,
    int64_t allowed_lateness,
    int64_t reach,
)

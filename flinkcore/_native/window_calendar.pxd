# Windows of unequal lengths that follow each other without gap or overlap, such as the days of a time zone.
from libc.stdint cimport int64_t


cdef struct CalendarTable:
    # Runs of windows of equal length. Timestamps before the first run or behind the last belong to these, continued.
    int64_t n
    const int64_t* starts   # (n,): of the first window of each run, ascending
    const int64_t* widths   # (n,): length of the windows of each run, of which the distance to the next run is a multiple
    const int64_t* numbers  # (n,): number of the first window of each run


cdef struct CalendarWindow:
    int64_t start
    int64_t end
    int64_t number  # windows are numbered from the first one of the first run


cdef inline int64_t last_up_to(const int64_t* values, int64_t n, int64_t value) noexcept nogil:
    # Returns the index of the last of n ascending values that is not above `value`; 0 if all are above it.
    cdef int64_t low = 0, high = n, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle
        else:
            high = middle
    return low


cdef inline CalendarWindow calendar_window(const CalendarTable* table, int64_t timestamp) noexcept nogil:
    # Returns the window of a timestamp. O(log n)
    cdef int64_t run = last_up_to(table.starts, table.n, timestamp)
    cdef int64_t width = table.widths[run], since = timestamp - table.starts[run]
    cdef int64_t beyond = since // width - (since % width < 0)  # C truncates, windows before the first run need the floor
    cdef CalendarWindow window
    window.start = table.starts[run] + beyond * width
    window.end = window.start + width
    window.number = table.numbers[run] + beyond
    return window


cdef inline int64_t calendar_end(const CalendarTable* table, int64_t number) noexcept nogil:
    # Returns the end of the window with this number. O(log n)
    cdef int64_t run = last_up_to(table.numbers, table.n, number)
    return table.starts[run] + (number - table.numbers[run] + 1) * table.widths[run]


cdef class WindowCalendar:
    cdef CalendarTable table
    # What the table borrows.
    cdef const int64_t[::1] starts
    cdef const int64_t[::1] widths
    cdef const int64_t[::1] numbers
    cdef readonly int64_t lowest_timestamp
    cdef readonly int64_t highest_timestamp
    cdef readonly int64_t longest

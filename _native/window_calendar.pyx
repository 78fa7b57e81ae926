"""Calendars: windows of unequal lengths that follow each other without gap or overlap, such as the days of a time zone."""

import cython
import numpy as np

from libc.stdint cimport int64_t


@cython.final
cdef class WindowCalendar:
    """Windows of event time whose lengths differ. Immutable, so that threads and kernels may share one.

    Windows of equal length that follow each other are a run, so that the days of ten thousand years take kilobytes.

    Parameters
    ----------
    starts : numpy.ndarray of int64, shape (n_runs,)
        Start of the first window of each run, in ms since the epoch, ascending; at least one.
    widths : numpy.ndarray of int64, shape (n_runs,)
        Length of the windows of each run in ms. The distance to the next run is a multiple of it.
    lowest_timestamp, highest_timestamp : int
        Range of the timestamps that the calendar is made for, in ms since the epoch.

    Raises
    ------
    ValueError
        If runs are not in order, or not made of whole windows.

    Examples
    --------
    >>> calendar = WindowCalendar(np.array([0, 20, 33]), np.array([10, 13, 10]), 0, 100)
    >>> calendar.window(25), calendar.window(34)
    ((20, 33), (33, 43))
    """

    def __cinit__(
        self,
        const int64_t[::1] starts not None,
        const int64_t[::1] widths not None,
        int64_t lowest_timestamp,
        int64_t highest_timestamp,
    ):
        cdef int64_t i, n = starts.shape[0]
        if n == 0 or widths.shape[0] != n:
            raise ValueError(f"a calendar has a length for each run of windows, not {widths.shape[0]} for {n}")
        for i in range(n):
            if widths[i] <= 0:
                raise ValueError(f"run {i} of a calendar has windows of {widths[i]} ms")
            if i and (starts[i] <= starts[i - 1] or (starts[i] - starts[i - 1]) % widths[i - 1]):
                raise ValueError(f"run {i - 1} of a calendar does not end where run {i} starts, at {starts[i]} ms")
        numbers = np.zeros(n, np.int64)
        np.cumsum(np.diff(starts) // np.asarray(widths)[:-1], out=numbers[1:])
        self.starts, self.widths, self.numbers = starts, widths, numbers
        self.table = CalendarTable(n, &self.starts[0], &self.widths[0], &self.numbers[0])
        self.lowest_timestamp, self.highest_timestamp = lowest_timestamp, highest_timestamp
        self.longest = np.max(widths)

    def window(self, int64_t timestamp):
        """Return the start and the end, exclusive, of the window of a timestamp; all in ms since the epoch."""
        cdef CalendarWindow window = calendar_window(&self.table, timestamp)
        return window.start, window.end

    def bounds(self, const int64_t[::1] timestamps not None):
        """Return the starts and the ends, exclusive, of the windows of timestamps.

        Parameters
        ----------
        timestamps : numpy.ndarray of int64, shape (n,)
            Milliseconds since the epoch.

        Returns
        -------
        (numpy.ndarray of int64, numpy.ndarray of int64)
            Both of shape (n,), in ms since the epoch.
        """
        cdef int64_t i, n = timestamps.shape[0]
        cdef int64_t[::1] starts = np.empty(n, np.int64), ends = np.empty(n, np.int64)
        cdef CalendarWindow window = CalendarWindow(0, 0, 0)
        with nogil:
            for i in range(n):
                if not window.start <= timestamps[i] < window.end:
                    window = calendar_window(&self.table, timestamps[i])
                starts[i], ends[i] = window.start, window.end
        return starts.base, ends.base

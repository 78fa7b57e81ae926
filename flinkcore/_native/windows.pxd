# Tumbling, sliding and cumulate event-time windows that fire at their end: a kernel of window operators.
from libc.stdint cimport int64_t

from flinkcore._native.aligned_windows cimport AlignedWindows
from flinkcore._native.panes cimport PaneList, PaneStore
from flinkcore._native.window_kernel cimport WindowCore


cdef struct TimeWindows:
    WindowCore core
    AlignedWindows windows
    bint purges          # a firing empties the window
    int64_t quiet_until  # no window fires or ends for rows that arrive up to this clock
    PaneList live
    int64_t n_fired      # the first of them, kept for late rows
    int64_t n_emitted    # keys of the next to fire whose results are out already
    PaneStore store

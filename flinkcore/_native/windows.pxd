# Tumbling and sliding event-time windows: a kernel of window operators.
from libc.stdint cimport int64_t

from flinkcore._native.panes cimport Pane, PaneStore
from flinkcore._native.window_kernel cimport WindowCore


cdef struct TimeWindows:
    WindowCore core
    int64_t size
    int64_t slide
    int64_t offset
    int64_t quiet_until  # no window fires or ends for rows that arrive up to this clock
    Pane** panes         # live windows by start
    int64_t n_panes
    int64_t n_fired      # the first of them, kept for late rows
    int64_t panes_capacity
    int64_t n_emitted    # keys of the next to fire whose results are out already
    PaneStore store

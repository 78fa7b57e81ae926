# Overlapping event-time windows that share slices of time: a kernel of window operators.
from libc.stdint cimport int64_t

from flinkcore._native.aligned_windows cimport AlignedWindows
from flinkcore._native.panes cimport Pane, PaneList, PaneStore
from flinkcore._native.slice_merge cimport SliceMerge
from flinkcore._native.window_kernel cimport WindowCore


cdef struct SlicedWindows:
    WindowCore core
    AlignedWindows windows
    double slides_per_ms
    int64_t quiet_until  # no window fires or ends for rows that arrive up to this clock
    PaneList slices      # one per slide; `fired` where the first of its windows has
    int64_t n_fired      # the first of them
    int64_t fired_to     # windows that end here or before have fired
    PaneStore store
    # What can be made of the slices again:
    SliceMerge window    # the last to have fired, without the slices that the next does not have
    bint emitting        # it is complete, and not all its results are out
    int64_t n_emitted
    Pane* late           # one key's window that a late row fires

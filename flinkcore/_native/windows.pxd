# Tumbling and sliding event-time windows over columns, with the default trigger.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport Accumulators
from flinkcore._native.firings cimport Firings, PendingUpdates, TimelineCursor
from flinkcore._native.keys cimport KeyEncoder
from flinkcore._native.panes cimport Pane, PaneStore


cdef struct WindowState:
    int64_t size
    int64_t slide
    int64_t offset
    int64_t lateness
    TimelineCursor cursor
    int64_t quiet_until  # no window fires or ends for rows that arrive up to this clock
    Pane** panes         # live windows by start
    int64_t n_panes
    int64_t n_fired      # the first of them, kept for late rows
    int64_t panes_capacity
    PaneStore store
    PendingUpdates pending
    Firings firings
    uint32_t* late_rows
    int64_t n_late_rows
    int64_t late_rows_capacity
    int64_t events
    int64_t windowed
    int64_t late
    int64_t in_no_window
    int64_t on_time_firings
    int64_t late_firings


cdef class WindowOperator:
    cdef WindowState* state
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef object _clocks
    cdef object _watermarks
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format

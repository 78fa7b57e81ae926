# Event-time session windows over columns, with the default trigger.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport Accumulators
from flinkcore._native.firings cimport Firings, PendingUpdates, TimelineCursor
from flinkcore._native.keys cimport KeyEncoder
from flinkcore._native.sessions cimport SessionStore


cdef struct SessionState:
    int64_t gap
    int64_t lateness
    TimelineCursor cursor
    SessionStore store
    PendingUpdates pending
    Firings firings
    uint32_t* firing     # sessions that fire now, emitted together
    int64_t n_firing
    int64_t firing_capacity
    uint32_t* late_rows
    int64_t n_late_rows
    int64_t late_rows_capacity
    int64_t events
    int64_t windowed
    int64_t late
    int64_t on_time_firings
    int64_t late_firings


cdef class SessionWindowOperator:
    cdef SessionState* state
    cdef KeyEncoder _keys
    cdef Accumulators _accumulators
    cdef object _clocks
    cdef object _watermarks
    cdef list _key_names
    cdef list _aggregate_names
    cdef str _time_format

# Event-time session windows over columns, with the default trigger.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.aggregates cimport Accumulators, AccumulatorTable
from flinkcore._native.firings cimport Firings, PendingUpdates, TimelineCursor
from flinkcore._native.keys cimport KeyEncoder


cdef struct SessionKey:
    # A key with at least one live session.
    uint64_t hash
    int64_t value       # KEY_INT64
    uint8_t* data       # KEY_BYTES, owned
    int64_t length
    uint32_t first      # its earliest session
    uint32_t next_free


cdef struct Session:
    # Number i is also the accumulators' entry i.
    int64_t start
    int64_t end
    uint32_t key
    uint32_t next        # the key's next session by start, or the next free one
    uint32_t generation  # of its timer: older ones are void
    bint fired           # at its present end
    int64_t due          # of its timer, never later than its next action


cdef struct SessionTimer:
    int64_t due
    uint64_t sequence
    uint32_t session
    uint32_t generation


cdef struct SessionState:
    int64_t gap
    int64_t lateness
    bint bytes_keys
    TimelineCursor cursor
    uint32_t* slots      # open addressing over live keys: number + 1, 0 empty
    uint64_t mask
    SessionKey* keys
    uint32_t n_keys      # ever allocated
    uint32_t keys_capacity
    uint32_t free_key
    uint32_t live_keys
    Session* sessions
    uint32_t n_sessions  # ever allocated
    uint32_t sessions_capacity
    uint32_t free_session
    uint32_t live_sessions
    SessionTimer* timers  # binary min-heap by (due, sequence)
    int64_t n_timers
    int64_t timers_capacity
    uint64_t sequence
    AccumulatorTable* table
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

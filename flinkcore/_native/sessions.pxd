# Live sessions by key, and their timers: what a session window operator remembers.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.aggregates cimport AccumulatorTable
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.session_timers cimport SessionTimers


cdef enum:
    NOTHING = 0xFFFFFFFF


cdef struct SessionKey:
    # A key with at least one live session.
    uint64_t hash
    int64_t value       # KEY_INT64
    uint8_t* data       # KEY_BYTES, owned
    int64_t length
    uint32_t first      # its earliest session
    uint32_t next_free


cdef struct Session:
    int64_t start
    int64_t end
    uint32_t key
    uint32_t next        # the key's next session by start, or the next free one
    uint32_t generation  # of its timer: older ones are void
    uint8_t fired        # at its present end; set from the start where no trigger fires there
    uint8_t fires_before  # at `trigger_state`, a time
    uint8_t progress     # of Progress
    int64_t due          # of its timer, never later than its next action
    int64_t trigger_state  # rows counted, or the last time set for a firing before the end; INT64_MIN: none


cdef struct SessionSlot:
    uint32_t number      # of the key, plus one; 0: empty slot
    uint32_t hash        # its lower half


cdef struct SessionStore:
    bint bytes_keys
    bint twins           # each session has two entries
    SessionSlot* slots   # open addressing over live keys; at most 2**32
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
    SessionTimers timers
    AccumulatorTable* table


cdef int session_keys_resize(SessionStore* store, uint64_t n_slots) except -1 nogil
# Number of the row's key, or NOTHING.
cdef uint32_t session_key_find(const SessionStore* store, const KeyBatch* keys, int64_t row) noexcept nogil
cdef int64_t session_key_add(SessionStore* store, const KeyBatch* keys, int64_t row) except -1 nogil
# Registers the timer of a session; it has no other.
cdef int session_arm(SessionStore* store, uint32_t session, int64_t due) except -1 nogil
# A new session of a key.
cdef int64_t session_add(SessionStore* store, uint32_t key, int64_t start, int64_t end) except -1 nogil
# Gives a session's number back; it is out of its key's list, and its accumulators are empty.
cdef void session_drop(SessionStore* store, uint32_t number) noexcept nogil
# Ends a session, and forgets its key if that was the last one.
cdef int session_retire(SessionStore* store, uint32_t number) except -1 nogil
cdef void session_store_free(SessionStore* store) noexcept nogil


cdef inline uint32_t session_entry(const SessionStore* store, uint32_t number) noexcept nogil:
    # Of the accumulators.
    return number << 1 if store.twins else number


cdef inline uint32_t session_twin(uint32_t number) noexcept nogil:
    return number << 1 | 1

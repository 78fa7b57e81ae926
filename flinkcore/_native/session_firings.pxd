# Results of sessions: those that a watermark fires together, those that a row fires, and those that are withdrawn.
from libc.stdint cimport uint32_t

from flinkcore._native.session_windows cimport SessionWindows
from flinkcore._native.sessions cimport SessionKey


cdef inline SessionKey* session_key_of(const SessionWindows* state, uint32_t number) noexcept nogil:
    return &state.store.keys[state.store.sessions[number].key]


# A watermark fires a session: its result comes with the next session_emit_firing. There is room for it.
cdef void session_add_firing(SessionWindows* state, uint32_t number) noexcept nogil
# Emits the sessions that a watermark has fired so far; false where results are full before.
cdef bint session_emit_firing(SessionWindows* state) except -1 nogil
# A row fires the session that it is in.
cdef int session_fire(SessionWindows* state, uint32_t number) except -1 nogil
# Before it becomes a part of another session: all that it holds is in its twin then.
cdef int session_withdraw(SessionWindows* state, uint32_t number) except -1 nogil
# A session takes in what another one holds.
cdef int session_merge_contents(SessionWindows* state, uint32_t number, uint32_t other) except -1 nogil

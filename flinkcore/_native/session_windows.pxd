# Event-time session windows: a kernel of window operators.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.sessions cimport Session, SessionStore, session_arm
from flinkcore._native.window_kernel cimport WindowCore, cleanup_time
from flinkcore._native.window_triggers cimport Trigger


cdef enum:
    FIRING_SESSIONS = 1024


cdef struct SessionWindows:
    WindowCore core
    int64_t gap
    Trigger trigger
    SessionStore store
    int64_t n_firing
    int64_t n_emitted   # of them, so many have their results out
    uint32_t[FIRING_SESSIONS] firing         # sessions that fire now, emitted together
    int64_t[FIRING_SESSIONS + 1] key_offsets  # KEY_BYTES: where their keys would lie, one after the other


cdef inline int64_t session_next_action(const SessionWindows* state, const Session* session) noexcept nogil:
    cdef int64_t action = cleanup_time(&state.core, session.end) if session.fired else session.end - 1
    return min(action, session.trigger_state) if session.fires_before else action


# Registers the timer of a session for what comes next of it.
cdef inline int session_arm_next(SessionWindows* state, uint32_t number) except -1 nogil:
    return session_arm(&state.store, number, session_next_action(state, &state.store.sessions[number]))

# Event-time session windows: a kernel of window operators.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.sessions cimport SessionStore
from flinkcore._native.window_kernel cimport WindowCore
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

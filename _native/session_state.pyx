"""Live sessions as rows of a checkpoint, and back: verbs of the kernel of session windows."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from flinkcore._native.firings cimport firings_append_bytes_keys, firings_append_int64_keys
from flinkcore._native.session_windows cimport SessionWindows, session_arm_next
from flinkcore._native.sessions cimport (
    NOTHING,
    Session,
    SessionKey,
    session_add,
    session_entry,
    session_key_add,
    session_key_find,
    session_twin,
)
from flinkcore._native.window_kernel cimport NO_ENTRY, TWIN_ENTRY, window_rows_add
from flinkcore._native.window_triggers cimport Progress, TriggerKind


cdef enum SessionFlag:
    # Besides those of Progress.
    FIRED = 16
    FIRES_BEFORE = 32


cdef int _append_live_key(const SessionWindows* state, WindowRows* rows, const SessionKey* key) except -1 nogil:
    cdef int64_t[2] offsets
    if not state.core.bytes_keys:
        return firings_append_int64_keys(&rows.firings, &key.value, 1)
    offsets[0] = 0
    offsets[1] = key.length
    return firings_append_bytes_keys(&rows.firings, key.data, offsets, 1)


cdef int session_rows(const void* windows, WindowRows* rows) except -1 nogil:
    cdef LiveWindow window
    cdef const SessionWindows* state = <const SessionWindows*> windows
    cdef const SessionKey* key
    cdef const Session* session
    cdef uint32_t number
    cdef uint64_t at
    for at in range(state.store.mask + 1):
        if state.store.slots[at].number == 0:
            continue
        key = &state.store.keys[state.store.slots[at].number - 1]
        number = key.first
        while number != NOTHING:
            session = &state.store.sessions[number]
            window.start = session.start
            window.end = session.end
            window.trigger_state = session.trigger_state
            window.flags = (
                (SessionFlag.FIRED if session.fired else 0)
                | (SessionFlag.FIRES_BEFORE if session.fires_before else 0)
                | (session.progress & (Progress.FILLED | Progress.GIVEN))
            )
            _append_live_key(state, rows, key)
            window_rows_add(rows, &window, session_entry(&state.store, number))
            if state.store.twins:
                window.flags = TWIN_ENTRY
                _append_live_key(state, rows, key)
                window_rows_add(rows, &window, session_twin(number))
            number = session.next
    return 0


cdef int64_t session_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef Session* session
    cdef SessionWindows* state = <SessionWindows*> windows
    cdef uint32_t key = session_key_find(&state.store, keys, row), number
    if window.flags & TWIN_ENTRY:
        number = state.store.keys[key].first if key != NOTHING else NOTHING
        while number != NOTHING and state.store.sessions[number].start != window.start:
            number = state.store.sessions[number].next
        if number == NOTHING:
            return NO_ENTRY
        return session_twin(number)
    if window.flags & SessionFlag.FIRES_BEFORE and (
        state.trigger.kind != TriggerKind.ON_CONTINUOUS_EVENT_TIME or not window.start <= window.trigger_state < window.end
    ):
        return NO_ENTRY
    if state.trigger.kind == TriggerKind.ON_COUNT and window.trigger_state < 0:
        return NO_ENTRY
    if key == NOTHING:
        key = <uint32_t> session_key_add(&state.store, keys, row)
    number = state.store.keys[key].first
    while number != NOTHING:  # sessions of a key that meet would be one
        session = &state.store.sessions[number]
        if session.start <= window.end and window.start <= session.end:
            return NO_ENTRY
        number = session.next
    number = <uint32_t> session_add(&state.store, key, window.start, window.end)
    session = &state.store.sessions[number]
    session.fired = (window.flags & SessionFlag.FIRED) != 0
    session.fires_before = (window.flags & SessionFlag.FIRES_BEFORE) != 0
    session.progress = window.flags & (Progress.FILLED | Progress.GIVEN)
    session.trigger_state = window.trigger_state
    session_arm_next(state, number)
    return session_entry(&state.store, number)

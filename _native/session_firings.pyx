"""Results of sessions: those that a watermark fires together, those that a row fires, and those that are withdrawn.

Where results are withdrawn, a session's rows are added up in its entry from one firing to the next, and its twin holds what has
been given.
"""

from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport accumulators_clear, accumulators_merge
from flinkcore._native.firings cimport (
    RowKind,
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_append_kind,
    pending_flush,
)
from flinkcore._native.memory cimport prefetch, prefetch_all
from flinkcore._native.sessions cimport Session, SessionKey, session_entry, session_retire, session_twin
from flinkcore._native.window_kernel cimport core_emit, core_emit_change, core_emit_row
from flinkcore._native.window_triggers cimport Progress, TriggerKind


cdef int _append_firing(SessionWindows* state, uint32_t number, RowKind kind, bint late) except -1 nogil:
    cdef const Session* session = &state.store.sessions[number]
    cdef SessionKey* key = session_key_of(state, number)
    cdef int64_t[2] offsets
    if state.core.bytes_keys:
        offsets[0] = 0
        offsets[1] = key.length
        firings_append_bytes_keys(&state.core.firings, key.data, offsets, 1)
    else:
        firings_append_int64_keys(&state.core.firings, &key.value, 1)
    if state.core.retracts:
        firings_append_kind(&state.core.firings, kind, 1)
    return firings_append(&state.core.firings, session.start, session.end, late, state.core.cursor.watermark, 1)


cdef void session_add_firing(SessionWindows* state, uint32_t number) noexcept nogil:
    cdef const Session* session = &state.store.sessions[number]
    state.store.sessions[number].progress |= Progress.FIRING
    state.firing[state.n_firing] = number
    prefetch_all(&state.store.keys[session.key], sizeof(SessionKey))
    if state.core.bytes_keys:
        state.key_offsets[state.n_firing + 1] = state.key_offsets[state.n_firing] + session_key_of(state, number).length
    state.n_firing += 1


cdef bint session_emit_firing(SessionWindows* state) except -1 nogil:
    # Emits the sessions that a watermark has fired so far; false where results are full before.
    while state.n_emitted < state.n_firing:
        if not (_replace_result(state) if state.core.retracts else _emit_results(state)):
            return False
    state.n_firing = state.n_emitted = 0
    return True


cdef bint _emit_results(SessionWindows* state) except -1 nogil:
    # As many as there is room for; false where there is none.
    cdef const SessionKey* key
    cdef int64_t i, first = state.n_emitted, n = core_emit(
        &state.core,
        state.firing + state.n_emitted,
        0,
        state.n_firing - state.n_emitted,
        state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL,
    )
    for i in range(first, first + n):
        key = session_key_of(state, state.firing[i])
        prefetch(&state.store.slots[<uint32_t> key.hash & state.store.mask])
    for i in range(first, first + n):
        _append_firing(state, state.firing[i], RowKind.INSERT, False)
        _fired(state, state.firing[i])
    state.core.on_time_firings += n
    state.n_emitted += n
    return n > 0


cdef bint _replace_result(SessionWindows* state) except -1 nogil:
    # Withdraws the last result of the next session that has fired, and gives the new one; false where there is no room.
    cdef uint32_t number = state.firing[state.n_emitted], entry = session_entry(&state.store, number)
    cdef Session* session = &state.store.sessions[number]
    cdef const int64_t* offsets = state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL
    cdef RowKind kind = RowKind.UPDATE_BEFORE
    while kind == RowKind.UPDATE_BEFORE:
        if not core_emit_change(&state.core, &session.progress, entry, session_twin(number), offsets, False, &kind):
            return False
        _append_firing(state, number, kind, False)
    _fired(state, number)
    state.n_emitted += 1
    return True


cdef int _fired(SessionWindows* state, uint32_t number) except -1 nogil:
    # Its result is out.
    cdef Session* session = &state.store.sessions[number]
    cdef uint32_t entry = session_entry(&state.store, number)
    session.progress = Progress.FILLED | Progress.GIVEN if state.core.retracts else <int> Progress.FILLED
    if state.trigger.purges:
        accumulators_clear(state.core.table, &entry, 1)
        session.progress = 0
    if state.core.lateness == 0 and session.fired and state.trigger.kind != TriggerKind.ON_COUNT:
        return session_retire(&state.store, number)
    return 0


cdef int _emit_row(SessionWindows* state, uint32_t number, uint32_t entry, RowKind kind) except -1 nogil:
    # A result because of a row.
    cdef bint late = state.store.sessions[number].end - 1 <= state.core.cursor.watermark
    core_emit_row(&state.core, entry, session_key_of(state, number).length, kind, late)
    return _append_firing(state, number, kind, late)


cdef int session_fire(SessionWindows* state, uint32_t number) except -1 nogil:
    # A row fires the session that it is in.
    cdef uint32_t entry = session_entry(&state.store, number)
    cdef bint known = (state.store.sessions[number].progress & Progress.GIVEN) != 0
    pending_flush(&state.core.pending, state.core.table)
    if state.core.retracts:
        if known:
            _emit_row(state, number, session_twin(number), RowKind.UPDATE_BEFORE)
        accumulators_merge(state.core.table, session_twin(number), entry)
        entry = session_twin(number)
    _emit_row(state, number, entry, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
    return _fired(state, number)


cdef int session_withdraw(SessionWindows* state, uint32_t number) except -1 nogil:
    # Before it becomes a part of another session: all that it holds is in its twin then.
    if state.store.sessions[number].progress & Progress.GIVEN:
        _emit_row(state, number, session_twin(number), RowKind.DELETE)
        state.store.sessions[number].progress &= ~Progress.GIVEN
    return accumulators_merge(state.core.table, session_twin(number), session_entry(&state.store, number))


cdef int session_merge_contents(SessionWindows* state, uint32_t number, uint32_t other) except -1 nogil:
    if not state.core.retracts:
        return accumulators_merge(state.core.table, number, other)
    session_withdraw(state, other)
    return accumulators_merge(state.core.table, session_twin(number), session_twin(other))

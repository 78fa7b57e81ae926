"""Results of windows that fire by the trigger of each key, emitted together, and those that are withdrawn."""

from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_merge
from flinkcore._native.firings cimport RowKind, pending_flush
from flinkcore._native.pane_firings cimport append_pane_keys
from flinkcore._native.panes cimport pane_twin
from flinkcore._native.triggered_windows cimport Firing
from flinkcore._native.window_kernel cimport core_count, core_emit
from flinkcore._native.window_triggers cimport Progress


cdef void triggered_add_firing(TriggeredWindows* state, Pane* pane, uint32_t key, uint32_t entry, bint late) noexcept nogil:
    # There is room: whoever adds has seen to it.
    cdef int64_t i = state.n_firing
    state.firing[i].pane = pane
    state.firing[i].key = key
    state.firing[i].late = late
    state.entries[i] = entry
    state.flags[entry] |= Progress.FIRING
    if state.core.bytes_keys:
        state.key_offsets[i + 1] = state.key_offsets[i] + pane.offsets[key + 1] - pane.offsets[key]
    state.n_firing = i + 1


cdef bint triggered_emit_firing(TriggeredWindows* state) except -1 nogil:
    # False where results are full before all are out.
    if state.n_firing == 0:
        return True
    pending_flush(&state.core.pending, state.core.table)
    while state.n_emitted < state.n_firing:
        if not (_replace_result(state) if state.core.retracts else _emit_results(state)):
            state.core.due = True
            return False
    state.n_firing = state.n_emitted = 0
    return True


cdef bint _emit_results(TriggeredWindows* state) except -1 nogil:
    # As many as there is room for; false where there is none.
    cdef int64_t i, n = core_emit(
        &state.core,
        state.entries + state.n_emitted,
        0,
        state.n_firing - state.n_emitted,
        state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL,
    )
    cdef uint32_t entry
    for i in range(state.n_emitted, state.n_emitted + n):
        _append_firing(state, &state.firing[i], RowKind.INSERT)
        entry = state.entries[i]
        state.flags[entry] &= ~Progress.FIRING
        if state.trigger.purges:
            accumulators_clear_range(state.core.table, entry, 1)
            state.flags[entry] = 0
    state.n_emitted += n
    return n > 0


cdef int _append_firing(TriggeredWindows* state, const Firing* firing, RowKind kind) except -1 nogil:
    core_count(&state.core, kind, firing.late)
    return append_pane_keys(&state.core, firing.pane, firing.key, 1, kind, firing.late)


cdef bint _replace_result(TriggeredWindows* state) except -1 nogil:
    # Withdraws the last result of the next window that has fired, and gives the new one; false where there is no room.
    #
    # A key's rows are added up in its entry, from one firing to the next; its twin holds what has been given.
    cdef Firing* firing = &state.firing[state.n_emitted]
    cdef const int64_t* offsets = state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL
    cdef uint32_t entry = state.entries[state.n_emitted], given = pane_twin(firing.pane, firing.key)
    if not state.flags[entry] & Progress.WITHDRAWN:
        if state.flags[entry] & Progress.GIVEN:
            if core_emit(&state.core, &given, 0, 1, offsets) == 0:
                return False
            _append_firing(state, firing, RowKind.UPDATE_BEFORE)
        accumulators_merge(state.core.table, given, entry)
        state.flags[entry] |= Progress.WITHDRAWN
    if core_emit(&state.core, &given, 0, 1, offsets) == 0:
        return False
    _append_firing(state, firing, RowKind.UPDATE_AFTER if state.flags[entry] & Progress.GIVEN else RowKind.INSERT)
    state.flags[entry] = Progress.FILLED | Progress.GIVEN
    state.n_emitted += 1
    return True

"""Results of windows that fire by the trigger of each key, emitted together, and those that are withdrawn."""

from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport accumulators_clear_range
from flinkcore._native.firings cimport RowKind, pending_flush
from flinkcore._native.pane_firings cimport append_pane_keys
from flinkcore._native.panes cimport pane_twin
from flinkcore._native.triggered_windows cimport Firing
from flinkcore._native.window_kernel cimport core_count, core_emit, core_emit_change
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
    cdef const Firing* firing
    cdef uint32_t entry
    for i in range(state.n_emitted, state.n_emitted + n):
        firing = &state.firing[i]
        core_count(&state.core, RowKind.INSERT, firing.late)
        append_pane_keys(&state.core, firing.pane, firing.key, 1, RowKind.INSERT, firing.late)
        entry = state.entries[i]
        state.flags[entry] &= ~Progress.FIRING
        if state.trigger.purges:
            accumulators_clear_range(state.core.table, entry, 1)
            state.flags[entry] = 0
    state.n_emitted += n
    return n > 0


cdef bint _replace_result(TriggeredWindows* state) except -1 nogil:
    # Withdraws the last result of the next window that has fired, and gives the new one; false where there is no room.
    cdef const Firing* firing = &state.firing[state.n_emitted]
    cdef const int64_t* offsets = state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL
    cdef uint32_t entry = state.entries[state.n_emitted], given = pane_twin(firing.pane, firing.key)
    cdef RowKind kind = RowKind.UPDATE_BEFORE
    while kind == RowKind.UPDATE_BEFORE:
        if not core_emit_change(&state.core, &state.flags[entry], entry, given, offsets, firing.late, &kind):
            return False
        append_pane_keys(&state.core, firing.pane, firing.key, 1, kind, firing.late)
    state.flags[entry] = Progress.FILLED | Progress.GIVEN
    state.n_emitted += 1
    return True

"""Event-time session windows: a kernel of window operators.

Follows Flink's `WindowOperator` with `EventTimeSessionWindows` and `MergingWindowSet`: sessions that touch merge, a row that is
late by itself is kept where it merges into a live session. Where several sessions merge, their contents are concatenated by
start (Flink leaves that order to its hash table), the new row comes last.

Each session has one pending timer; where the session has moved on by the time that its timer is due, the timer is armed
again, so a row that only prolongs a session costs no heap operation.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport accumulators_merge
from flinkcore._native.firings cimport (
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    pending_add,
    pending_flush,
    saturating_add,
)
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.prefetch cimport prefetch
from flinkcore._native.sessions cimport (
    NOTHING,
    Session,
    SessionKey,
    SessionTimer,
    session_add,
    session_drop,
    session_key_add,
    session_key_find,
    session_keys_resize,
    session_retire,
    session_store_free,
    session_timer_earlier,
    session_timer_pop,
    session_timer_push,
)
from flinkcore._native.window_kernel cimport (
    InputRows,
    WindowKernel,
    WindowVerbs,
    core_add_late,
    core_emit,
    core_emit_late,
    core_is_full,
    window_kernel,
)

cdef enum:
    LOOK_AHEAD = 16


cdef inline SessionKey* _key_of(const SessionWindows* state, uint32_t number) noexcept nogil:
    return &state.store.keys[state.store.sessions[number].key]


cdef int _append_firing(SessionWindows* state, uint32_t number, bint late) except -1 nogil:
    cdef SessionKey* key = _key_of(state, number)
    cdef int64_t[2] offsets
    if state.core.bytes_keys:
        offsets[0] = 0
        offsets[1] = key.length
        firings_append_bytes_keys(&state.core.firings, key.data, offsets, 1)
    else:
        firings_append_int64_keys(&state.core.firings, &key.value, 1)
    firings_append(
        &state.core.firings,
        state.store.sessions[number].start,
        state.store.sessions[number].end,
        late,
        state.core.cursor.watermark,
        1,
    )
    return 0


cdef inline int64_t _next_action(const SessionWindows* state, const Session* session) noexcept nogil:
    return saturating_add(session.end - 1, state.core.lateness) if session.fired else session.end - 1


cdef int _arm(SessionWindows* state, uint32_t number) except -1 nogil:
    cdef Session* session = &state.store.sessions[number]
    session.generation += 1
    session.due = _next_action(state, session)
    return session_timer_push(&state.store, number, session.due)


cdef bint _emit_firing(SessionWindows* state) except -1 nogil:
    # Emits the sessions that a watermark has fired so far; false where results are full before.
    cdef int64_t i, n = state.n_firing - state.n_emitted
    if n == 0:
        return True
    n = core_emit(
        &state.core,
        state.firing + state.n_emitted,
        0,
        n,
        state.key_offsets + state.n_emitted if state.core.bytes_keys else NULL,
    )
    for i in range(state.n_emitted, state.n_emitted + n):
        _append_firing(state, state.firing[i], False)
        if state.core.lateness == 0:
            session_retire(&state.store, state.firing[i])
    state.n_emitted += n
    if state.n_emitted < state.n_firing:
        return False
    state.n_firing = state.n_emitted = 0
    return True


cdef int _collect_firing(SessionWindows* state) except -1 nogil:
    # Handles timers that are due, in their order, until as many sessions fire as are emitted together.
    cdef SessionTimer timer
    cdef Session* session
    while (
        state.store.n_timers
        and state.store.timers[0].due <= state.core.cursor.watermark
        and state.n_firing < FIRING_SESSIONS
    ):
        timer = state.store.timers[0]
        session = &state.store.sessions[timer.session]
        if session.generation != timer.generation:
            session_timer_pop(&state.store)
            continue
        if session.fired and state.n_firing and _next_action(state, session) <= timer.due:
            break  # it ends, and may be among those that are still to be emitted
        session_timer_pop(&state.store)
        if _next_action(state, session) > timer.due:
            _arm(state, timer.session)
        elif session.fired:
            session_retire(&state.store, timer.session)
        else:
            state.firing[state.n_firing] = timer.session
            if state.core.bytes_keys:
                state.key_offsets[state.n_firing + 1] = (
                    state.key_offsets[state.n_firing] + _key_of(state, timer.session).length
                )
            state.n_firing += 1
            session.fired = True
            if state.core.lateness:
                _arm(state, timer.session)
    return 0


cdef bint _fire_due(SessionWindows* state) except -1 nogil:
    # False where results are full before everything has fired.
    if not state.core.due:
        if state.store.n_timers == 0 or state.store.timers[0].due > state.core.cursor.watermark:
            return True
        pending_flush(&state.core.pending, state.core.table)
        state.core.due = True
    while True:
        if not _emit_firing(state):
            return False
        _collect_firing(state)
        if state.n_firing == 0:
            state.core.due = False
            return True


cdef bint _advance(void* windows, int64_t arrival, bint to_end) except -1 nogil:
    cdef SessionWindows* state = <SessionWindows*> windows
    if state.core.due and not _fire_due(state):
        return False
    while state.core.cursor.next < state.core.cursor.steps and (
        to_end or state.core.cursor.clocks[state.core.cursor.next] < arrival
    ):
        state.core.cursor.watermark = state.core.cursor.watermarks[state.core.cursor.next]
        state.core.cursor.next += 1
        if not _fire_due(state):
            return False
    return True


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _fire_late(SessionWindows* state, uint32_t number) except -1 nogil:
    pending_flush(&state.core.pending, state.core.table)
    core_emit_late(&state.core, number, _key_of(state, number).length)
    return _append_firing(state, number, True)


cdef int64_t _merged_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    # The live session that [start, end) merges into, widened by it and by all others that it touches; NOTHING if none.
    cdef uint32_t number = state.store.keys[key].first, other
    cdef Session* session
    while number != NOTHING and state.store.sessions[number].end < start:
        number = state.store.sessions[number].next
    if number == NOTHING or state.store.sessions[number].start > end:
        return NOTHING
    session = &state.store.sessions[number]
    session.start = min(session.start, start)
    session.end = max(session.end, end)
    while session.next != NOTHING and state.store.sessions[session.next].start <= end:
        other = session.next
        pending_flush(&state.core.pending, state.core.table)
        accumulators_merge(state.core.table, number, other)
        session.end = max(session.end, state.store.sessions[other].end)
        session.next = state.store.sessions[other].next
        session_drop(&state.store, other)
    return number


cdef int64_t _new_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number = <uint32_t> session_add(&state.store, key, start, end)
    cdef uint32_t* link = &state.store.keys[key].first
    while link[0] != NOTHING and state.store.sessions[link[0]].start < start:
        link = &state.store.sessions[link[0]].next
    state.store.sessions[number].next = link[0]
    link[0] = number
    return number


cdef int _take_row(SessionWindows* state, const KeyBatch* keys, uint32_t row, int64_t timestamp) except -1 nogil:
    # WindowOperator.processElement with a MergingWindowAssigner, for one row.
    cdef int64_t end = timestamp + state.gap, found = NOTHING
    cdef uint32_t key = session_key_find(&state.store, keys, row), number
    cdef Session* session
    if key != NOTHING:
        found = _merged_session(state, key, timestamp, end)
    if found == NOTHING:
        if saturating_add(end - 1, state.core.lateness) <= state.core.cursor.watermark:
            return core_add_late(&state.core, row)
        if key == NOTHING:
            key = <uint32_t> session_key_add(&state.store, keys, row)
        found = _new_session(state, key, timestamp, end)
        state.store.sessions[found].due = INT64_MAX
        state.store.sessions[found].fired = end - 1 <= state.core.cursor.watermark
        _arm(state, <uint32_t> found)
    number = <uint32_t> found
    session = &state.store.sessions[number]
    session.fired = session.end - 1 <= state.core.cursor.watermark
    if _next_action(state, session) < session.due:
        _arm(state, number)
    pending_add(&state.core.pending, state.core.table, number, row)
    if session.fired:
        _fire_late(state, number)
    state.core.windowed += 1
    return 0


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SessionWindows* state = <SessionWindows*> windows
    cdef const uint32_t* rows = input.rows
    cdef int64_t i = first, ahead
    cdef uint32_t row
    while i < input.n:
        ahead = i + LOOK_AHEAD
        if ahead < input.n:
            prefetch(&state.store.slots[input.keys.hashes[rows[ahead] if rows != NULL else ahead] & state.store.mask])
        row = rows[i] if rows != NULL else <uint32_t> i
        if not _advance(state, input.arrivals[row], False):
            break
        _take_row(state, input.keys, row, input.timestamps[row])
        i += 1
        if core_is_full(&state.core):
            break
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef SessionWindows* state = <SessionWindows*> windows
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    return session_keys_resize(&state.store, 1024)


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const SessionWindows*> windows).store.live_sessions


cdef void _free(void* windows) noexcept nogil:
    session_store_free(&(<SessionWindows*> windows).store)
    free(windows)


cdef int _check(const void* windows) except -1:
    cdef const SessionWindows* state = <const SessionWindows*> windows
    cdef const Session* session
    cdef uint64_t at, occupied = 0
    cdef uint32_t number, live = 0, armed = 0
    cdef int64_t i, end
    for at in range(state.store.mask + 1):
        if state.store.slots[at] == 0:
            continue
        occupied += 1
        end = INT64_MIN
        number = state.store.keys[state.store.slots[at] - 1].first
        assert number != NOTHING, "a key without a session"
        while number != NOTHING:
            live += 1
            session = &state.store.sessions[number]
            assert session.key == state.store.slots[at] - 1
            assert end < session.start < session.end, "sessions that touch"
            if not state.core.due:
                assert session.fired == (session.end - 1 <= state.core.cursor.watermark)
                assert session.due <= _next_action(state, session)
                assert _next_action(state, session) > state.core.cursor.watermark, "a session outlived its time"
            end = session.end
            number = session.next
    assert occupied == state.store.live_keys
    assert live == state.store.live_sessions, "a session was lost"
    for i in range(state.store.n_timers):
        assert i == 0 or not session_timer_earlier(
            &state.store.timers[i], &state.store.timers[(i - 1) >> 1]
        ), "timer heap out of order"
        armed += state.store.sessions[state.store.timers[i].session].generation == state.store.timers[i].generation
    assert state.core.due or state.n_firing == 0, "sessions fired in part"
    assert state.core.due or armed == live, "a session without its timer"
    return 0


cdef WindowVerbs VERBS
VERBS.start = _start
VERBS.process = _process
VERBS.advance = _advance
VERBS.live_windows = _live_windows
VERBS.check = _check
VERBS.free = _free


def session_windows(*, int64_t gap, int64_t allowed_lateness):
    """Make the kernel of session windows.

    Parameters
    ----------
    gap, allowed_lateness : int
        Milliseconds.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If the gap is not positive or the lateness is negative.
    """
    cdef WindowKernel kernel
    cdef SessionWindows* state
    if gap <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"session gap {gap} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    kernel = window_kernel(sizeof(SessionWindows), &VERBS, allowed_lateness, INT64_MIN + 1, INT64_MAX - gap)
    state = <SessionWindows*> kernel.state
    state.gap = gap
    state.store.free_key = state.store.free_session = NOTHING
    return kernel

"""Event-time session windows: a kernel of window operators.

Follows Flink's `WindowOperator` with `EventTimeSessionWindows` and `MergingWindowSet`: sessions that touch merge, a row that is
late by itself is kept where it merges into a live session. Where several sessions merge, their contents are concatenated by
start (Flink leaves that order to its hash table), the new row comes last.

Triggers are those of time, of counts and of continuous firings, each also within a `PurgingTrigger`.

Each session has one pending timer, for whatever comes first of its firings and its end; where the session has moved
on by the time that its timer is due, the timer is armed again, so a row that only prolongs a session costs no heap operation.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport accumulators_merge
from flinkcore._native.firings cimport cursor_step, pending_add, pending_flush
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport prefetch, prefetch_all
from flinkcore._native.session_firings cimport (
    session_add_firing,
    session_emit_firing,
    session_fire,
    session_merge_contents,
    session_withdraw,
)
from flinkcore._native.session_state cimport session_restore, session_rows
from flinkcore._native.session_timers cimport (
    SessionTimer,
    SessionTimers,
    session_timer_pop,
    session_timer_push,
    session_timers_are_sound,
    session_timers_load,
    session_timers_number,
    session_timers_start,
)
from flinkcore._native.sessions cimport (
    NOTHING,
    Session,
    SessionKey,
    SessionSlot,
    session_add,
    session_drop,
    session_entry,
    session_key_add,
    session_key_find,
    session_keys_resize,
    session_retire,
    session_store_free,
    session_twin,
)
from flinkcore._native.window_kernel cimport (
    InputRows,
    WindowKernel,
    WindowVerbs,
    check_retracts,
    core_add_late,
    core_advance,
    core_is_full,
    core_turn,
    input_row,
    is_over,
    window_kernel,
)
from flinkcore._native.window_triggers cimport Progress, TriggerKind, first_firing, next_firing, window_trigger

cdef enum:
    LOOK_AHEAD = 8


cdef int _on_event_time(SessionWindows* state, uint32_t number, int64_t time) except -1 nogil:
    # Trigger.onEventTime of a timer that the trigger has registered.
    cdef Session* session = &state.store.sessions[number]
    cdef bint ends = session.end - 1 == time
    core_turn(&state.core)
    if ends:
        session.fired = True
        session.fires_before = False
    else:
        session.trigger_state = next_firing(state.trigger.every, time, session.end - 1)
    if session.progress & Progress.FILLED:
        session_add_firing(state, number)
    elif ends and state.core.lateness == 0:
        return session_retire(&state.store, number)
    if state.core.lateness or not ends:
        session_arm_next(state, number)
    return 0


cdef const SessionTimer* _next_due(SessionWindows* state) except? NULL nogil:
    # The first timer that is due; NULL where there is none.
    cdef SessionTimers* timers = &state.store.timers
    cdef SessionTimer timer
    cdef Session* session
    cdef int64_t i, action
    while timers.near.n == 0 and session_timers_load(timers, state.core.cursor.watermark):
        for i in range(timers.loaded.n):
            prefetch_all(&state.store.sessions[timers.loaded.timers[i].session], sizeof(Session))
        for i in range(timers.loaded.n):
            timer = timers.loaded.timers[i]
            session = &state.store.sessions[timer.session]
            if session.generation != timer.generation:
                continue
            action = session_next_action(state, session)
            if action > timer.due:  # the session has moved on
                session.due = timer.due = action
            session_timer_push(timers, timer)
    if timers.near.n and timers.near.timers[0].due <= state.core.cursor.watermark:
        return &timers.near.timers[0]
    return NULL


cdef int _collect_firing(SessionWindows* state) except -1 nogil:
    # Handles timers that are due, in their order, until as many sessions fire as are emitted together.
    cdef const SessionTimer* due
    cdef SessionTimer timer
    cdef Session* session
    while state.n_firing < FIRING_SESSIONS:
        due = _next_due(state)
        if due == NULL:
            break
        timer = due[0]
        session = &state.store.sessions[timer.session]
        if session.generation != timer.generation:
            session_timer_pop(&state.store.timers)
            continue
        if session.progress & Progress.FIRING:
            break  # what it has fired comes first
        session_timer_pop(&state.store.timers)
        if session_next_action(state, session) > timer.due:
            session_arm_next(state, timer.session)
        elif session.fired and not session.fires_before:
            session_retire(&state.store, timer.session)
        else:
            _on_event_time(state, timer.session, timer.due)
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # False where results are full before everything has fired.
    cdef SessionWindows* state = <SessionWindows*> windows
    if not state.core.due:
        if _next_due(state) == NULL:
            return True
        pending_flush(&state.core.pending, state.core.table)
        state.core.due = True
    while True:
        if not session_emit_firing(state):
            return False
        _collect_firing(state)
        if state.n_firing == 0:
            state.core.due = False
            return True


cdef bint _step(void* windows) except -1 nogil:
    cdef SessionWindows* state = <SessionWindows*> windows
    cursor_step(&state.core.cursor)
    return _fire_due(state)


# ---- rows --------------------------------------------------------------------------------------------------------


cdef void _merge_triggers(SessionWindows* state, Session* session, const Session* other) noexcept nogil:
    # Trigger.onMerge, for two of the sessions that become one.
    if state.trigger.kind == TriggerKind.ON_COUNT:
        session.trigger_state += other.trigger_state
    elif session.trigger_state == INT64_MIN or INT64_MIN < other.trigger_state < session.trigger_state:
        session.trigger_state = other.trigger_state
    session.progress |= other.progress & Progress.FILLED


cdef int64_t _merged_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    # The live session that [start, end) merges into, widened by it and by all others that it touches; NOTHING if none.
    cdef uint32_t number = state.store.keys[key].first, other
    cdef Session* session
    while number != NOTHING and state.store.sessions[number].end < start:
        number = state.store.sessions[number].next
    if number == NOTHING or state.store.sessions[number].start > end:
        return NOTHING
    session = &state.store.sessions[number]
    if session.start <= start and end <= session.end:
        return number
    if state.core.retracts:
        pending_flush(&state.core.pending, state.core.table)
        session_withdraw(state, number)
    session.start = min(session.start, start)
    session.end = max(session.end, end)
    while session.next != NOTHING and state.store.sessions[session.next].start <= end:
        other = session.next
        pending_flush(&state.core.pending, state.core.table)
        session_merge_contents(state, number, other)
        _merge_triggers(state, session, &state.store.sessions[other])
        session.end = max(session.end, state.store.sessions[other].end)
        session.next = state.store.sessions[other].next
        session_drop(&state.store, other)
    if state.core.retracts:  # nothing of it has been given
        accumulators_merge(state.core.table, session_entry(&state.store, number), session_twin(number))
    # The timer of a merged trigger is registered again, be it in the past.
    session.fires_before = state.trigger.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME and session.trigger_state != INT64_MIN
    return number


cdef int64_t _new_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number = <uint32_t> session_add(&state.store, key, start, end)
    state.store.sessions[number].fired = state.trigger.kind == TriggerKind.ON_COUNT
    state.store.sessions[number].fires_before = False
    state.store.sessions[number].progress = 0
    state.store.sessions[number].trigger_state = 0 if state.trigger.kind == TriggerKind.ON_COUNT else INT64_MIN
    return number


cdef bint _on_element(SessionWindows* state, Session* session, int64_t timestamp) noexcept nogil:
    # Trigger.onElement: whether it fires.
    if state.trigger.kind == TriggerKind.ON_COUNT:
        session.trigger_state += 1
        if session.trigger_state < state.trigger.every:
            return False
        session.trigger_state = 0
        return True
    session.fired = session.end - 1 <= state.core.cursor.watermark
    if state.trigger.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME and not session.fired:
        if session.trigger_state == INT64_MIN:
            session.trigger_state = first_firing(state.trigger.every, timestamp, session.end - 1)
            session.fires_before = True
    return session.fired


cdef int _take_row(SessionWindows* state, const KeyBatch* keys, uint32_t row, int64_t timestamp) except -1 nogil:
    # WindowOperator.processElement with a MergingWindowAssigner, for one row.
    cdef int64_t end = timestamp + state.gap, found = NOTHING
    cdef uint32_t key = session_key_find(&state.store, keys, row), number
    cdef Session* session
    cdef bint fires, unarmed = False
    if key != NOTHING:
        found = _merged_session(state, key, timestamp, end)
    if found == NOTHING:
        if is_over(&state.core, end):
            return core_add_late(&state.core, row)
        if key == NOTHING:
            key = <uint32_t> session_key_add(&state.store, keys, row)
        found = _new_session(state, key, timestamp, end)
        unarmed = True
    number = <uint32_t> found
    session = &state.store.sessions[number]
    fires = _on_element(state, session, timestamp)
    if unarmed or session_next_action(state, session) < session.due:
        session_arm_next(state, number)
    pending_add(&state.core.pending, state.core.table, session_entry(&state.store, number), row)
    session.progress |= Progress.FILLED
    if fires:
        session_fire(state, number)
    state.core.windowed += 1
    return 0


cdef inline void _prefetch_key(const SessionWindows* state, const InputRows* input, int64_t i) noexcept nogil:
    cdef const SessionSlot* slot
    if i < input.n:
        slot = &state.store.slots[<uint32_t> input.keys.hashes[input_row(input, i)] & state.store.mask]
        if slot.number:
            prefetch_all(&state.store.keys[slot.number - 1], sizeof(SessionKey))


cdef inline void _prefetch_session(const SessionWindows* state, const InputRows* input, int64_t i) noexcept nogil:
    cdef const SessionSlot* slot
    cdef uint32_t hash, number
    if i < input.n:
        hash = <uint32_t> input.keys.hashes[input_row(input, i)]
        slot = &state.store.slots[hash & state.store.mask]
        if slot.number and slot.hash == hash:
            number = state.store.keys[slot.number - 1].first
            if number != NOTHING:
                prefetch_all(&state.store.sessions[number], sizeof(Session))


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SessionWindows* state = <SessionWindows*> windows
    cdef int64_t i = first
    cdef uint32_t row
    while i < input.n:
        # What a row needs is brought near step by step, each step from what the one before has brought.
        if i + 3 * LOOK_AHEAD < input.n:
            prefetch(
                &state.store.slots[
                    <uint32_t> input.keys.hashes[input_row(input, i + 3 * LOOK_AHEAD)] & state.store.mask
                ]
            )
        _prefetch_key(state, input, i + 2 * LOOK_AHEAD)
        _prefetch_session(state, input, i + LOOK_AHEAD)
        row = input_row(input, i)
        if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
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
    check_retracts(&state.core, state.trigger.purges)
    state.store.twins = state.core.retracts
    session_timers_start(&state.store.timers, state.gap // 512)
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
    cdef uint32_t number, live = 0
    cdef int64_t end
    for at in range(state.store.mask + 1):
        if state.store.slots[at].number == 0:
            continue
        occupied += 1
        end = INT64_MIN
        number = state.store.keys[state.store.slots[at].number - 1].first
        assert number != NOTHING, "a key without a session"
        while number != NOTHING:
            live += 1
            session = &state.store.sessions[number]
            assert session.key == state.store.slots[at].number - 1
            assert end < session.start < session.end, "sessions that touch"
            if not state.core.due:
                assert not session.progress & Progress.FIRING
                assert state.trigger.kind == TriggerKind.ON_COUNT or (
                    session.fired == (session.end - 1 <= state.core.cursor.watermark)
                )
                assert session.due <= session_next_action(state, session)
                assert not is_over(&state.core, session.end), "a session outlived its time"
            end = session.end
            number = session.next
    assert occupied == state.store.live_keys
    assert live == state.store.live_sessions, "a session was lost"
    assert session_timers_are_sound(&state.store.timers), "timers out of order"
    assert session_timers_number(&state.store.timers) >= live or state.core.due, "a session without its timer"
    assert state.core.due or state.n_firing == 0, "sessions fired in part"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=session_rows, restore=session_restore, free=_free,
)


def session_windows(
    *, int64_t gap, int64_t allowed_lateness, str trigger="event_time", int64_t every=1, bint purges=False
):
    """Make the kernel of session windows.

    Parameters
    ----------
    gap, allowed_lateness : int
        Milliseconds.
    trigger : str
        "event_time", "count" or "continuous_event_time".
    every : int
        Rows of a count, or milliseconds of a continuous trigger.
    purges : bool
        Whether a firing empties the session.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If the gap, a count or an interval is not positive or the lateness is negative.
    """
    cdef WindowKernel kernel
    cdef SessionWindows* state
    if gap <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"session gap {gap} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    made = window_trigger(trigger, every, purges)
    reach = every if made.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME else 1
    kernel = window_kernel(
        "session_windows",
        sizeof(SessionWindows), &VERBS, allowed_lateness, INT64_MIN + reach, INT64_MAX - gap - reach + 1
    )
    state = <SessionWindows*> kernel.state
    state.gap = gap
    state.trigger = made
    state.store.free_key = state.store.free_session = NOTHING
    return kernel

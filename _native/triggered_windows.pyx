"""Windows that fire by the trigger of each key: a kernel of window operators.

Follows Flink's `WindowOperator` with `CountTrigger` and `ContinuousEventTimeTrigger` on tumbling, sliding and cumulate windows,
with these and `EventTimeTrigger` on global windows, each also within a `PurgingTrigger`.

Keys whose windows fire are gathered, and their results emitted together: before one of them gets a further row, and before the
watermark moves.

Deliberate difference: `ContinuousEventTimeTrigger` on global windows would fire nearly without end at the maximum watermark. Here
it fires once there.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from flinkcore._native.aligned_windows cimport (
    AlignedWindows,
    WindowVisit,
    aligned_kernel,
    checked_windows,
    first_window,
    is_assigned,
    is_window,
    visit_next,
)
from flinkcore._native.firings cimport cursor_step, pending_add, pending_flush
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport grow, prefetch
from flinkcore._native.pane_firings cimport append_live_keys
from flinkcore._native.pane_timers cimport PaneTimer, TimerBucket, pane_timer_add, pane_timers_drop, pane_timers_free
from flinkcore._native.panes cimport (
    Pane,
    pane_entry,
    pane_find,
    pane_key,
    pane_list_check,
    pane_list_close,
    pane_list_find,
    pane_list_open,
    pane_twin,
    panes_free,
)
from flinkcore._native.triggered_firings cimport triggered_add_firing, triggered_emit_firing
from flinkcore._native.window_kernel cimport (
    NO_ENTRY,
    TWIN_ENTRY,
    InputRows,
    LiveWindow,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    core_add_unassigned,
    core_advance,
    core_is_full,
    core_turn,
    input_row,
    is_over,
    window_kernel,
    window_rows_add,
)
from flinkcore._native.window_triggers cimport Progress, Trigger, TriggerKind, first_firing, next_firing, window_trigger

cdef enum:
    LOOK_AHEAD = 16
    MOST_WINDOWS = 128


cdef inline bint _is_global(const TriggeredWindows* state) noexcept nogil:
    return state.windows.size == 0


cdef inline int64_t _max_timestamp(const TriggeredWindows* state, const Pane* pane) noexcept nogil:
    return INT64_MAX if _is_global(state) else pane.end - 1


cdef int _reserve_entries(TriggeredWindows* state) except -1 nogil:
    # A state for every entry that there is room for in the accumulators.
    cdef int64_t capacity = state.core.table.capacity
    if capacity > state.entries_capacity:
        state.trigger_states = <int64_t*> grow(
            state.trigger_states, capacity * sizeof(int64_t), b"the triggers of windows"
        )
        state.flags = <uint8_t*> grow(state.flags, capacity, b"the triggers of windows")
        state.entries_capacity = capacity
    return 0


# ---- firing ------------------------------------------------------------------------------------------------------


cdef int _fire_timer(TriggeredWindows* state, PaneTimer timer, int64_t time) except -1 nogil:
    # Trigger.onEventTime of a timer that the trigger has registered.
    cdef uint32_t entry = pane_entry(timer.pane, timer.key)
    cdef int64_t last = _max_timestamp(state, timer.pane)
    core_turn(&state.core)
    if time != last and not (_is_global(state) and state.core.cursor.watermark == INT64_MAX):
        state.trigger_states[entry] = next_firing(state.trigger.every, time, last)
        pane_timer_add(&state.timers, state.trigger_states[entry], timer.pane, timer.key)
    if state.flags[entry] & Progress.FILLED:
        triggered_add_firing(state, timer.pane, timer.key, entry, False)
    return 0


cdef int _retire_due(TriggeredWindows* state) except -1 nogil:
    cdef int64_t over = 0
    if _is_global(state):
        return 0
    while over < state.live.n and is_over(&state.core, state.live.panes[over].end):
        over += 1
    if over:
        pending_flush(&state.core.pending, state.core.table)
        pane_list_close(&state.live, &state.store, over)
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # Emits what has fired, and goes on firing where a watermark has come; false where results are full before.
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    cdef TimerBucket* bucket
    state.core.due = True
    if not triggered_emit_firing(state):
        return False
    while state.advancing and state.timers.n and state.timers.buckets[0].time <= state.core.cursor.watermark:
        while state.bucket_done < state.timers.buckets[0].n and state.n_firing < MOST_FIRINGS:
            bucket = &state.timers.buckets[0]  # timers that firing adds are later, but may move the buckets
            _fire_timer(state, bucket.timers[state.bucket_done], bucket.time)
            state.bucket_done += 1
        if state.bucket_done == state.timers.buckets[0].n:
            pane_timers_drop(&state.timers)
            state.bucket_done = 0
        if not triggered_emit_firing(state):
            return False
    if state.advancing:
        _retire_due(state)
        state.advancing = False
    state.core.due = False
    return True


cdef bint _step(void* windows) except -1 nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    if not triggered_emit_firing(state):
        return False
    cursor_step(&state.core.cursor)
    state.advancing = True
    return _fire_due(state)


# ---- rows --------------------------------------------------------------------------------------------------------


cdef inline Pane* _pane(TriggeredWindows* state, int64_t start, int64_t end) except NULL nogil:
    # The window with these bounds, opened where it is not.
    cdef Pane* pane = pane_list_find(&state.live, end)
    return pane if pane != NULL else pane_list_open(&state.live, &state.store, start, end)


cdef int64_t _assign(TriggeredWindows* state, int64_t timestamp, Pane** panes) except -1 nogil:
    # The windows of a row that are not late, in the order of Flink's assigners; how many.
    cdef int64_t n = 0
    cdef Pane* pane
    cdef WindowVisit visit
    if _is_global(state):
        panes[0] = state.live.panes[0] if state.live.n else _pane(state, INT64_MIN, INT64_MAX)
        return 1
    visit = first_window(&state.windows, timestamp)
    while is_window(&visit):
        if not is_over(&state.core, visit.end):
            pane = _pane(state, visit.start, visit.end)
            panes[n] = pane
            n += 1
        visit_next(&visit)
    return n


cdef int _on_element(
    TriggeredWindows* state, Pane* pane, uint32_t key, uint32_t entry, int64_t timestamp
) except -1 nogil:
    # Trigger.onElement
    cdef int64_t last = _max_timestamp(state, pane)
    cdef bint late = last <= state.core.cursor.watermark
    if state.trigger.kind == TriggerKind.ON_COUNT:
        state.trigger_states[entry] += 1
        if state.trigger_states[entry] == state.trigger.every:
            state.trigger_states[entry] = 0
            triggered_add_firing(state, pane, key, entry, late)
    elif late:
        triggered_add_firing(state, pane, key, entry, late)
    elif state.trigger_states[entry] == INT64_MIN:
        state.trigger_states[entry] = (
            last if state.trigger.kind == TriggerKind.ON_EVENT_TIME else first_firing(state.trigger.every, timestamp, last)
        )
        pane_timer_add(&state.timers, state.trigger_states[entry], pane, key)
    return 0


cdef bint _take_row(TriggeredWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement, for one row; false where results are full before it.
    cdef Pane* panes[MOST_WINDOWS]
    cdef uint32_t numbers[MOST_WINDOWS]
    cdef uint32_t entries[MOST_WINDOWS]
    cdef uint32_t known
    cdef int64_t timestamp = input.timestamps[row], i, n
    cdef bint firing = False
    if not core_advance(&state.core, &VERBS, input.arrivals[row], False):
        return False
    n = _assign(state, timestamp, panes)
    for i in range(n):
        known = panes[i].n_keys
        numbers[i] = <uint32_t> pane_key(&state.store, panes[i], input.keys, row)
        entries[i] = pane_entry(panes[i], numbers[i])
        if numbers[i] == known:
            _reserve_entries(state)
            state.trigger_states[entries[i]] = 0 if state.trigger.kind == TriggerKind.ON_COUNT else INT64_MIN
            state.flags[entries[i]] = 0
        firing |= (state.flags[entries[i]] & Progress.FIRING) != 0
    if (firing or state.n_firing + n > MOST_FIRINGS) and not triggered_emit_firing(state):
        return False
    for i in range(n):
        pending_add(&state.core.pending, state.core.table, entries[i], row)
        state.flags[entries[i]] |= Progress.FILLED
        _on_element(state, panes[i], numbers[i], entries[i], timestamp)
    if n:
        state.core.windowed += 1
    else:
        core_add_unassigned(&state.core, row, timestamp)
    return True


cdef int64_t _process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    cdef const Pane* pane
    cdef int64_t i = first
    while i < input.n:
        if i + LOOK_AHEAD < input.n and state.live.n:
            pane = state.live.panes[state.live.n - 1]
            prefetch(&pane.slots[input.keys.hashes[input_row(input, i + LOOK_AHEAD)] & pane.mask])
        if not _take_row(state, input, input_row(input, i)):
            break
        i += 1
        if state.core.table.rows + state.n_firing >= state.core.row_limit or core_is_full(&state.core):
            break
    triggered_emit_firing(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef inline bint _is_armed(const TriggeredWindows* state, const Pane* pane, uint32_t entry) noexcept nogil:
    # Whether the trigger of a key in a window has a timer.
    return (
        state.trigger.kind != TriggerKind.ON_COUNT
        and state.trigger_states[entry] != INT64_MIN
        and _max_timestamp(state, pane) > state.core.cursor.watermark
    )


cdef int _add_window(const TriggeredWindows* state, WindowRows* rows, const Pane* pane, uint32_t key) except -1 nogil:
    cdef LiveWindow window
    cdef uint32_t entry = pane_entry(pane, key)
    window.start = pane.start
    window.end = pane.end
    window.flags = state.flags[entry]
    window.trigger_state = state.trigger_states[entry]
    append_live_keys(rows, state.core.bytes_keys, pane, key, 1)
    window_rows_add(rows, &window, entry)
    if state.store.twins:
        window.flags = TWIN_ENTRY
        append_live_keys(rows, state.core.bytes_keys, pane, key, 1)
        window_rows_add(rows, &window, pane_twin(pane, key))
    return 0


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    # Windows with timers in the order in which these fire: restored in it, those of equal time fire in it again.
    cdef const TriggeredWindows* state = <const TriggeredWindows*> windows
    cdef const TimerBucket* bucket
    cdef const Pane* pane
    cdef int64_t i, j
    cdef uint32_t key
    for i in range(state.timers.n):
        bucket = &state.timers.buckets[i]
        for j in range(state.bucket_done if i == 0 else 0, bucket.n):
            _add_window(state, rows, bucket.timers[j].pane, bucket.timers[j].key)
    for i in range(state.live.n):
        pane = state.live.panes[i]
        for key in range(pane.n_keys):
            if not _is_armed(state, pane, pane_entry(pane, key)):
                _add_window(state, rows, pane, key)
    return 0


cdef bint _can_be(const TriggeredWindows* state, const LiveWindow* window) noexcept nogil:
    # Whether a window of a checkpoint is one of these, and its trigger stands where it can stand.
    cdef int64_t last = INT64_MAX if _is_global(state) else window.end - 1
    if _is_global(state):
        if window.start != INT64_MIN or window.end != INT64_MAX:
            return False
    elif not is_assigned(&state.windows, window.start, window.end):
        return False
    if state.trigger.kind == TriggerKind.ON_COUNT:
        return 0 <= window.trigger_state < state.trigger.every
    # A timer does not lie outside of its window. It may be due already: a row behind the watermark has registered it.
    return window.trigger_state == INT64_MIN or window.start <= window.trigger_state <= last


cdef int64_t _restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    cdef Pane* pane = pane_list_find(&state.live, window.end)
    cdef int64_t twin
    cdef uint32_t key, entry, known
    if window.flags & TWIN_ENTRY:
        twin = pane_find(&state.store, pane, keys, row) if pane != NULL else -1
        if twin < 0:
            return NO_ENTRY
        return pane_twin(pane, twin)
    if not _can_be(state, window):
        return NO_ENTRY
    pane = _pane(state, window.start, window.end)
    known = pane.n_keys
    key = <uint32_t> pane_key(&state.store, pane, keys, row)
    if key < known:
        return NO_ENTRY
    entry = pane_entry(pane, key)
    _reserve_entries(state)
    state.flags[entry] = window.flags & (Progress.FILLED | Progress.GIVEN)
    state.trigger_states[entry] = window.trigger_state
    if _is_armed(state, pane, entry):
        pane_timer_add(&state.timers, window.trigger_state, pane, key)
    return entry


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    check_retracts(&state.core, state.trigger.purges)
    state.store.twins = state.core.retracts
    state.core.unbounded_windows = _is_global(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const TriggeredWindows*> windows).live.n


cdef void _free(void* windows) noexcept nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    pane_timers_free(&state.timers)
    panes_free(&state.live, &state.store)
    free(state.trigger_states)
    free(state.flags)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const TriggeredWindows* state = <const TriggeredWindows*> windows
    cdef const Pane* pane
    cdef const TimerBucket* bucket
    cdef int64_t i, j, armed = 0, waiting = 0, blocks = pane_list_check(&state.live)
    cdef uint32_t k, entry
    assert state.core.due or state.n_firing == 0, "results were left behind"
    for i in range(state.timers.n):
        bucket = &state.timers.buckets[i]
        assert i == 0 or state.timers.buckets[i - 1].time < bucket.time, "timers out of order"
        armed += bucket.n
        for j in range(state.bucket_done if i == 0 else 0, bucket.n):
            entry = pane_entry(bucket.timers[j].pane, bucket.timers[j].key)
            assert state.trigger_states[entry] == bucket.time, "a timer that its trigger does not know of"
    for i in range(state.live.n):
        pane = state.live.panes[i]
        if not state.core.due and not _is_global(state):
            assert not is_over(&state.core, pane.end), "a window outlived its time"
        for k in range(pane.n_keys):
            entry = pane_entry(pane, k)
            if state.trigger.kind == TriggerKind.ON_COUNT:
                assert 0 <= state.trigger_states[entry] < state.trigger.every, "a count beyond its firing"
            else:
                waiting += _is_armed(state, pane, entry)
    assert state.core.due or armed == waiting, "a timer was lost"
    if state.store.twins:
        blocks *= 2
    assert blocks + state.store.n_free_blocks == state.store.n_blocks, "an entry block was lost"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    check=_check, windows=_windows, restore=_restore, free=_free,
)


def triggered_windows(
    *,
    int64_t size,
    int64_t slide,
    int64_t offset,
    int64_t allowed_lateness,
    str trigger,
    int64_t every,
    bint cumulative=False,
    bint purges=False,
):
    """Make the kernel of tumbling, sliding or cumulate windows with a trigger per key.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` equals `size` for tumbling windows, and is the step of cumulate windows.
    trigger : str
        "count" or "continuous_event_time".
    every : int
        Rows, or milliseconds.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.
    purges : bool
        Whether a firing empties the window.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If a size, a count or an interval is not positive, the lateness is negative, or a row would go into too many windows.
    """
    cdef WindowKernel kernel
    cdef TriggeredWindows* state
    cdef AlignedWindows windows
    cdef Trigger made
    cdef int64_t reach
    if trigger == "event_time":
        raise ValueError("time_windows makes windows that fire at their end")
    windows = checked_windows(size, slide, offset, cumulative, allowed_lateness, MOST_WINDOWS)
    made = window_trigger(trigger, every, purges)
    reach = max(slide, every if made.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME else 1)
    kernel = aligned_kernel("triggered_windows", sizeof(TriggeredWindows), &VERBS, &windows, allowed_lateness, reach)
    state = <TriggeredWindows*> kernel.state
    state.windows = windows
    state.trigger = made
    return kernel


def global_windows(*, str trigger, int64_t every=1, bint purges=False):
    """Make the kernel of one window per key that never ends.

    Parameters
    ----------
    trigger : str
        "event_time": fires at the maximum watermark; "count" or "continuous_event_time".
    every : int
        Rows of a count, or milliseconds of a continuous trigger.
    purges : bool
        Whether a firing empties the window.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If a count or an interval is not positive.
    """
    cdef WindowKernel kernel
    made = window_trigger(trigger, every, purges)
    reach = every if made.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME else 1
    kernel = window_kernel("triggered_windows", sizeof(TriggeredWindows), &VERBS, 0, INT64_MIN + 2 * reach, INT64_MAX - 2 * reach)
    (<TriggeredWindows*> kernel.state).trigger = made
    return kernel

"""Windows that fire by the trigger of each key: a kernel of window operators.

Follows Flink's `WindowOperator` with `CountTrigger` and `ContinuousEventTimeTrigger` on tumbling, sliding and cumulate windows;
and on global windows with these, `EventTimeTrigger` and `EndOfStreamTrigger`. Each may be within a `PurgingTrigger`.

Windows of keys that fire are gathered, and their results emitted together: before one of them gets a further row, and before
the watermark moves.

Deliberate difference: `ContinuousEventTimeTrigger` on global windows would fire nearly without end at the maximum watermark. Here
it fires once there.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from flinkcore._native.aggregates cimport accumulators_clear_range
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport grow
from flinkcore._native.panes cimport (
    AlignedWindows,
    Pane,
    PaneList,
    PaneStore,
    PaneTotals,
    WindowVisit,
    aligned_kernel,
    append_pane_keys,
    checked_windows,
    firings_append_pane_keys,
    first_window,
    is_assigned,
    is_window,
    pane_entry,
    pane_find,
    pane_key,
    pane_list_check,
    pane_list_find,
    pane_list_open,
    pane_list_retire,
    pane_prefetch,
    pane_store_check,
    pane_twin,
    panes_free,
    panes_memory,
    visit_next,
)
from flinkcore._native.window_calendar cimport WindowCalendar
from flinkcore._native.window_operator cimport (
    MOST_GATHERED,
    NO_ENTRY,
    TWIN_ENTRY,
    GatheredFirings,
    InputRows,
    LiveWindow,
    Progress,
    RowKind,
    Trigger,
    TriggerKind,
    WindowCore,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    core_add_unassigned,
    core_count,
    core_emit_change,
    core_is_full,
    core_reach_row_emitted,
    core_turn,
    cursor_step,
    emit_gathered,
    first_firing,
    gather_firing,
    input_row,
    is_over,
    next_firing,
    pending_add,
    pending_flush,
    window_kernel,
    window_rows_add,
    window_trigger,
)


# ---- event-time timers of keys in windows ------------------------------------------------------------------------
# Buckets of timers of equal time: many keys share the few times of a trigger.


cdef struct PaneTimer:
    Pane* pane
    uint32_t key  # its number in the pane


cdef struct TimerBucket:
    int64_t time
    PaneTimer* timers  # in order of registration
    int64_t n
    int64_t capacity


cdef struct PaneTimers:
    TimerBucket* buckets  # by time: those before `first` have fired; after the n buckets come empty ones with their memory
    int64_t first
    int64_t n
    int64_t allocated
    int64_t capacity
    int64_t n_room         # timers that all buckets have room for


cdef enum:
    KEPT_BUCKETS = 8

cdef const char* _WHAT = b"the timers of windows"  # that memory is for


cdef TimerBucket* _bucket(PaneTimers* timers, int64_t time) except NULL nogil:
    cdef int64_t low = timers.first, high = timers.n, middle
    cdef TimerBucket bucket
    if low < high and timers.buckets[high - 1].time < time:
        low = timers.n
    while low < high:
        middle = (low + high) >> 1
        if timers.buckets[middle].time < time:
            low = middle + 1
        else:
            high = middle
    if low < timers.n and timers.buckets[low].time == time:
        return &timers.buckets[low]
    if timers.n == timers.allocated:
        if timers.n == timers.capacity:
            timers.buckets = <TimerBucket*> grow(timers.buckets, (timers.capacity * 2 + 16) * sizeof(TimerBucket), _WHAT)
            timers.capacity = timers.capacity * 2 + 16
        memset(&timers.buckets[timers.n], 0, sizeof(TimerBucket))
        timers.allocated += 1
    bucket = timers.buckets[timers.n]
    memmove(&timers.buckets[low + 1], &timers.buckets[low], (timers.n - low) * sizeof(TimerBucket))
    bucket.time = time
    timers.buckets[low] = bucket
    timers.n += 1
    return &timers.buckets[low]


cdef int _pane_timer_add(PaneTimers* timers, int64_t time, Pane* pane, uint32_t key) except -1 nogil:
    cdef TimerBucket* bucket = _bucket(timers, time)
    if bucket.n == bucket.capacity:
        # From one timer on: there may be as many times as windows, each with a timer of a single key.
        bucket.timers = <PaneTimer*> grow(bucket.timers, (bucket.capacity * 2 + 1) * sizeof(PaneTimer), _WHAT)
        timers.n_room += bucket.capacity + 1
        bucket.capacity = bucket.capacity * 2 + 1
    bucket.timers[bucket.n].pane = pane
    bucket.timers[bucket.n].key = key
    bucket.n += 1
    return 0


cdef inline bint _is_due(const PaneTimers* timers, int64_t watermark) noexcept nogil:
    return timers.first < timers.n and timers.buckets[timers.first].time <= watermark


cdef void _pane_timers_drop(PaneTimers* timers) noexcept nogil:
    # Moves the buckets that have fired behind the others, to reuse their memory.
    cdef TimerBucket[KEPT_BUCKETS] kept
    cdef int64_t i, n = timers.n - timers.first
    cdef int64_t n_kept = min(timers.first, max(KEPT_BUCKETS - (timers.allocated - timers.n), <int64_t> 0))
    if timers.first == 0:
        return
    for i in range(timers.first):
        if i < n_kept:
            kept[i] = timers.buckets[i]
            kept[i].n = 0
        else:  # the memory of a crowded time is not kept for ever
            timers.n_room -= timers.buckets[i].capacity
            free(timers.buckets[i].timers)
    memmove(&timers.buckets[0], &timers.buckets[timers.first], n * sizeof(TimerBucket))
    memset(&timers.buckets[n], 0, timers.first * sizeof(TimerBucket))
    for i in range(n_kept):
        timers.buckets[n + i] = kept[i]
    timers.n = n
    timers.first = 0


cdef void _pane_timers_free(PaneTimers* timers) noexcept nogil:
    cdef int64_t i
    for i in range(timers.allocated):
        free(timers.buckets[i].timers)
    free(timers.buckets)


# ---- windows and the triggers of their keys ----------------------------------------------------------------------


cdef enum:
    LOOK_AHEAD = 16
    MOST_WINDOWS = 128


cdef struct Firing:
    Pane* pane
    uint32_t key  # its number in the pane
    bint late


cdef struct TriggeredWindows:
    WindowCore core
    AlignedWindows windows  # size 0: one global window
    Trigger trigger
    PaneList live
    PaneStore store
    int64_t* trigger_states  # per entry of the accumulators: rows counted, or time of its next firing; INT64_MIN without one
    uint8_t* flags           # per entry, of Progress
    int64_t entries_capacity
    PaneTimers timers
    bint advancing           # a watermark has come, and some of its timers have not fired yet
    int64_t bucket_done      # timers of the first bucket that have fired
    GatheredFirings fired
    Firing[MOST_GATHERED] firing  # the windows of `fired`


cdef inline bint _is_global(const TriggeredWindows* state) noexcept nogil:
    return state.windows.size == 0


cdef inline int64_t _max_timestamp(const TriggeredWindows* state, const Pane* pane) noexcept nogil:
    return INT64_MAX if _is_global(state) else pane.end - 1


cdef int _reserve_entries(TriggeredWindows* state) except -1 nogil:
    # Makes room for the states of all entries that the accumulators have room for.
    cdef int64_t capacity = state.core.table.capacity
    if capacity > state.entries_capacity:
        state.trigger_states = <int64_t*> grow(
            state.trigger_states, capacity * sizeof(int64_t), b"the triggers of windows"
        )
        state.flags = <uint8_t*> grow(state.flags, capacity, b"the triggers of windows")
        state.entries_capacity = capacity
    return 0


# ---- results that are emitted together ---------------------------------------------------------------------------


cdef void _triggered_add_firing(TriggeredWindows* state, Pane* pane, uint32_t key, uint32_t entry, bint late) noexcept nogil:
    # The window of a key fires: its result is emitted by the next _triggered_emit_firing. The caller has made room.
    cdef int64_t i = gather_firing(
        &state.fired, entry, pane.offsets[key + 1] - pane.offsets[key] if state.core.bytes_keys else 0
    )
    state.firing[i].pane = pane
    state.firing[i].key = key
    state.firing[i].late = late
    state.flags[entry] |= Progress.FIRING


cdef bint _triggered_emit_firing(TriggeredWindows* state) except -1 nogil:
    # Emits what has fired. Returns false if results are full before all are out.
    if state.fired.n == 0:
        return True
    pending_flush(&state.core.pending, state.core.table)
    while state.fired.n_emitted < state.fired.n:
        if not (_replace_result(state) if state.core.retracts else _emit_results(state)):
            state.core.due = True
            return False
    state.fired.n = state.fired.n_emitted = 0
    return True


cdef bint _emit_results(TriggeredWindows* state) except -1 nogil:
    # Emits as many results as there is room for. Returns false without room.
    cdef int64_t i, n = emit_gathered(&state.core, &state.fired)
    cdef const Firing* firing
    cdef uint32_t entry
    for i in range(state.fired.n_emitted, state.fired.n_emitted + n):
        firing = &state.firing[i]
        core_count(&state.core, RowKind.INSERT, firing.late)
        append_pane_keys(&state.core, firing.pane, firing.key, 1, RowKind.INSERT, firing.late)
        entry = state.fired.entries[i]
        state.flags[entry] &= ~Progress.FIRING
        if state.trigger.purges:
            accumulators_clear_range(state.core.table, entry, 1)
            state.flags[entry] = 0
    state.fired.n_emitted += n
    return n > 0


cdef bint _replace_result(TriggeredWindows* state) except -1 nogil:
    # Withdraws the last result of the next window that has fired, and emits the new one. Returns false without room.
    cdef const Firing* firing = &state.firing[state.fired.n_emitted]
    cdef uint32_t entry = state.fired.entries[state.fired.n_emitted], given = pane_twin(firing.pane, firing.key)
    cdef RowKind kind = RowKind.UPDATE_BEFORE
    while kind == RowKind.UPDATE_BEFORE:
        if not core_emit_change(&state.core, &state.fired, &state.flags[entry], given, firing.late, &kind):
            return False
        append_pane_keys(&state.core, firing.pane, firing.key, 1, kind, firing.late)
    state.flags[entry] = Progress.FILLED | Progress.GIVEN
    state.fired.n_emitted += 1
    return True


# ---- firing ------------------------------------------------------------------------------------------------------


cdef int _fire_timer(TriggeredWindows* state, PaneTimer timer, int64_t time) except -1 nogil:
    # Trigger.onEventTime of a timer that the trigger has registered.
    cdef uint32_t entry = pane_entry(timer.pane, timer.key)
    cdef int64_t last = _max_timestamp(state, timer.pane)
    core_turn(&state.core)
    if state.trigger.kind == TriggerKind.ON_END_OF_STREAM:
        state.trigger_states[entry] = INT64_MIN  # a late row registers it again
    elif time != last and not (_is_global(state) and state.core.cursor.watermark == INT64_MAX):
        state.trigger_states[entry] = next_firing(state.trigger.every, time, last)
        _pane_timer_add(&state.timers, state.trigger_states[entry], timer.pane, timer.key)
    if state.flags[entry] & Progress.FILLED:
        _triggered_add_firing(state, timer.pane, timer.key, entry, False)
    return 0


cdef int _retire_due(TriggeredWindows* state) except -1 nogil:
    if not _is_global(state):
        pane_list_retire(&state.live, &state.store, &state.core)
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # Emits what has fired, and fires further timers if a watermark has come. Returns false if results are full before.
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    cdef TimerBucket* bucket
    state.core.due = True
    if not _triggered_emit_firing(state):
        return False
    while state.advancing and _is_due(&state.timers, state.core.cursor.watermark):
        while state.bucket_done < state.timers.buckets[state.timers.first].n and state.fired.n < MOST_GATHERED:
            bucket = &state.timers.buckets[state.timers.first]  # timers that firing adds are later, but may move the buckets
            _fire_timer(state, bucket.timers[state.bucket_done], bucket.time)
            state.bucket_done += 1
        if state.bucket_done == state.timers.buckets[state.timers.first].n:
            state.bucket_done = 0
            state.timers.first += 1
            if 2 * state.timers.first >= state.timers.n:  # not one by one: a watermark may fire very many
                _pane_timers_drop(&state.timers)
        if not _triggered_emit_firing(state):
            _pane_timers_drop(&state.timers)
            return False
    _pane_timers_drop(&state.timers)
    if state.advancing:
        _retire_due(state)
        state.advancing = False
    state.core.due = False
    return True


cdef bint _step(void* windows) except -1 nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    if not _triggered_emit_firing(state):
        return False
    cursor_step(&state.core.cursor)
    state.advancing = True
    return _fire_due(state)


# ---- rows --------------------------------------------------------------------------------------------------------


cdef inline Pane* _pane(TriggeredWindows* state, int64_t start, int64_t end) except NULL nogil:
    # Returns the window with these bounds, opened if necessary.
    cdef Pane* pane = pane_list_find(&state.live, end)
    return pane if pane != NULL else pane_list_open(&state.live, &state.store, start, end)


cdef int64_t _assign(TriggeredWindows* state, int64_t timestamp, Pane** panes) except -1 nogil:
    # Finds the windows of a row that are not late, in the order of Flink's assigners. Returns how many.
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
            _triggered_add_firing(state, pane, key, entry, late)
    elif late and state.trigger.kind != TriggerKind.ON_END_OF_STREAM:
        _triggered_add_firing(state, pane, key, entry, late)
    elif state.trigger_states[entry] == INT64_MIN:
        state.trigger_states[entry] = (
            first_firing(state.trigger.every, timestamp, last)
            if state.trigger.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME
            else last
        )
        _pane_timer_add(&state.timers, state.trigger_states[entry], pane, key)
    return 0


cdef bint _take_row(TriggeredWindows* state, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement for one row. Returns false if results are full before it.
    cdef Pane* panes[MOST_WINDOWS]
    cdef uint32_t numbers[MOST_WINDOWS]
    cdef uint32_t entries[MOST_WINDOWS]
    cdef uint32_t known
    cdef int64_t timestamp = input.timestamps[row], i, n
    cdef bint firing = False
    if not core_reach_row_emitted(&state.core, &VERBS, input, row, state.fired.n > 0):
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
    # A gathered result is that of its firing: it goes out before a further row of its window changes the entry.
    if (firing or state.fired.n + n > MOST_GATHERED) and not _triggered_emit_firing(state):
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
            pane_prefetch(pane, input.keys.hashes[input_row(input, i + LOOK_AHEAD)])
        if not _take_row(state, input, input_row(input, i)):
            break
        i += 1
        if state.core.table.rows + state.fired.n >= state.core.row_limit or core_is_full(&state.core):
            break
    _triggered_emit_firing(state)
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- checkpoints -------------------------------------------------------------------------------------------------


cdef inline bint _is_armed(const TriggeredWindows* state, const Pane* pane, uint32_t entry) noexcept nogil:
    # Returns true if the trigger of a key in a window has a timer.
    return (
        state.trigger.kind != TriggerKind.ON_COUNT
        and state.trigger_states[entry] != INT64_MIN
        and (
            state.trigger.kind == TriggerKind.ON_END_OF_STREAM
            or _max_timestamp(state, pane) > state.core.cursor.watermark
        )
    )


cdef int _add_window(const TriggeredWindows* state, WindowRows* rows, const Pane* pane, uint32_t key) except -1 nogil:
    cdef LiveWindow window
    cdef uint32_t entry = pane_entry(pane, key)
    window.start = pane.start
    window.end = pane.end
    window.flags = state.flags[entry]
    window.trigger_state = state.trigger_states[entry]
    firings_append_pane_keys(&rows.firings, state.core.bytes_keys, pane, key, 1)
    window_rows_add(rows, &window, entry)
    if state.store.twins:
        window.flags = TWIN_ENTRY
        firings_append_pane_keys(&rows.firings, state.core.bytes_keys, pane, key, 1)
        window_rows_add(rows, &window, pane_twin(pane, key))
    return 0


cdef int _windows(const void* windows, WindowRows* rows) except -1 nogil:
    # Appends windows with timers in the order in which these fire: restored in it, timers of equal time fire in it again.
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
    # Returns true if a window of a checkpoint can be one of these, with a possible state of its trigger.
    cdef int64_t last = INT64_MAX if _is_global(state) else window.end - 1
    if _is_global(state):
        if window.start != INT64_MIN or window.end != INT64_MAX:
            return False
    elif not is_assigned(&state.windows, window.start, window.end):
        return False
    if state.trigger.kind == TriggerKind.ON_COUNT:
        return 0 <= window.trigger_state < state.trigger.every
    # A timer lies within its window. It may be due already: a late row has registered it.
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
        _pane_timer_add(&state.timers, window.trigger_state, pane, key)
    return entry


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    check_retracts(&state.core, state.trigger.purges)
    if state.trigger.kind == TriggerKind.ON_END_OF_STREAM:
        state.trigger.purges = not state.core.retracts  # a withdrawing window remembers its result
    state.store.twins = state.core.retracts
    state.core.unbounded_windows = _is_global(state)
    return 0


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const TriggeredWindows*> windows).live.n


cdef int64_t _memory(const void* windows) noexcept nogil:
    cdef const TriggeredWindows* state = <const TriggeredWindows*> windows
    return (
        panes_memory(&state.store, &state.live)
        + state.entries_capacity * <int64_t> (sizeof(int64_t) + 1)
        + state.timers.capacity * <int64_t> sizeof(TimerBucket)
        + state.timers.n_room * <int64_t> sizeof(PaneTimer)
    )


cdef void _free(void* windows) noexcept nogil:
    cdef TriggeredWindows* state = <TriggeredWindows*> windows
    _pane_timers_free(&state.timers)
    panes_free(&state.live, &state.store)
    free(state.trigger_states)
    free(state.flags)
    free(state)


cdef int _check(const void* windows) except -1:
    cdef const TriggeredWindows* state = <const TriggeredWindows*> windows
    cdef const Pane* pane
    cdef const TimerBucket* bucket
    cdef int64_t i, j, armed = 0, waiting = 0
    cdef PaneTotals totals = PaneTotals(0, 0)
    cdef uint32_t k, entry
    assert state.core.due or state.fired.n == 0, "results were left behind"
    assert state.timers.first == 0, "timers were left behind"
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
    pane_list_check(&state.store, &state.live, &totals)
    return pane_store_check(&state.store, totals)


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    memory=_memory, check=_check, windows=_windows, restore=_restore, free=_free,
)


def triggered_windows(
    *,
    int64_t allowed_lateness,
    str trigger,
    int64_t every,
    int64_t size=0,
    int64_t slide=0,
    int64_t offset=0,
    bint cumulative=False,
    WindowCalendar calendar=None,
    bint purges=False,
):
    """Make the kernel of tumbling, sliding or cumulate windows, or those of a calendar, with a trigger per key.

    Parameters
    ----------
    allowed_lateness, size, slide, offset : int
        Milliseconds; `slide` equals `size` for tumbling windows, and is the step of cumulate windows.
    trigger : str
        "count", "continuous_event_time", or "event_time": as `time_windows`, but a key whose timer is not set does not fire.
    every : int
        Rows, or milliseconds.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.
    calendar : WindowCalendar, optional
        The windows, instead of size, slide and offset.
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
    windows = checked_windows(size, slide, offset, cumulative, calendar, allowed_lateness, MOST_WINDOWS)
    made = window_trigger(trigger, every, purges)
    kernel = aligned_kernel("triggered_windows", sizeof(TriggeredWindows), &VERBS, &windows, calendar, allowed_lateness)
    state = <TriggeredWindows*> kernel.state
    state.windows = windows
    state.trigger = made
    return kernel


def global_windows(*, str trigger, int64_t every=1, bint purges=False):
    """Make the kernel of one window per key that never ends.

    Parameters
    ----------
    trigger : str
        "event_time": fires at the maximum watermark, and at every row after it; "end_of_stream": only at the maximum
        watermark, and empties the window; "count" or "continuous_event_time".
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
    kernel = window_kernel("triggered_windows", sizeof(TriggeredWindows), &VERBS, 0, INT64_MIN, INT64_MAX)
    (<TriggeredWindows*> kernel.state).trigger = made
    return kernel

"""Event-time session windows: a kernel of window operators.

Follows Flink's `WindowOperator` with `EventTimeSessionWindows` and `MergingWindowSet`: sessions that touch merge, and a row
that would be late on its own is kept if it merges into a live session. When several sessions merge, their contents are
concatenated by start (Flink leaves that order to its hash table), and the new row comes last.

Triggers are those of time, of counts and of continuous firings, each also within a `PurgingTrigger`.

Each session has one pending timer, for the next of its firings or its end. If the session has moved on by the time that its
timer is due, the timer is armed again, so a row that only prolongs a session costs no heap operation.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport (
    AccumulatorTable,
    accumulators_clear,
    accumulators_clear_range,
    accumulators_merge,
    accumulators_reserve,
)
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.memory cimport block_bytes, grow, prefetch, prefetch_all
from flinkcore._native.window_operator cimport (
    MOST_GATHERED,
    NO_ENTRY,
    TWIN_ENTRY,
    Firings,
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
    cleanup_time,
    core_add_late,
    core_append_firings,
    core_emit_change,
    core_emit_row,
    core_is_full,
    core_reach_row,
    core_turn,
    cursor_step,
    emit_gathered,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_append_kind,
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


# ---- timers of sessions ------------------------------------------------------------------------------------------
# Timers by time: a heap of those that are due soon, and buckets of the others. Nearly all timers of sessions lie within the
# next gap. They are put into the bucket of their time, and into the small heap when it is their bucket's turn: a heap of all
# sessions would miss the cache at each level.


cdef enum:
    TIMER_BUCKETS = 2048  # a power of two


cdef struct SessionTimer:
    int64_t due
    uint64_t sequence    # of registration: timers of equal time fire in this order, as in Flink
    uint32_t session
    uint32_t generation  # of the session's timer: a timer of an older generation is void, which saves removing it


cdef struct SessionHeap:
    # Binary min-heap by (due, sequence).
    SessionTimer* timers
    int64_t n
    int64_t capacity


cdef struct SessionBin:
    SessionTimer* timers
    int64_t n
    int64_t capacity


cdef struct SessionTimers:
    # Bucket b has the timers that are due from b * width on, for `width` ms.
    #
    #     near heap | bins: one bucket each, in a ring | far heap
    #               ^ near_to                          ^ near_to + TIMER_BUCKETS
    int64_t width
    int64_t near_to      # all timers below this bucket are in the near heap
    SessionHeap near
    SessionHeap far
    SessionBin* bins
    int64_t n_binned
    SessionBin loaded      # timers of the bucket before near_to, not yet in the near heap
    uint64_t sequence


cdef inline bint _earlier(const SessionTimer* a, const SessionTimer* b) noexcept nogil:
    return a.due < b.due or (a.due == b.due and a.sequence < b.sequence)


cdef inline int64_t _bucket(const SessionTimers* timers, int64_t due) noexcept nogil:
    cdef int64_t bucket = due // timers.width
    return bucket - 1 if bucket * timers.width > due else bucket  # C truncates


cdef SessionTimer* _with_room(SessionTimer* timers, int64_t n, int64_t* capacity) except NULL nogil:
    if timers != NULL and n < capacity[0]:
        return timers
    timers = <SessionTimer*> grow(timers, (capacity[0] * 2 + 16) * sizeof(SessionTimer), b"the timers of sessions")
    capacity[0] = capacity[0] * 2 + 16
    return timers


cdef void _sift_up(SessionHeap* heap, int64_t at, SessionTimer timer) noexcept nogil:
    # Puts a timer into the gap at `at` or nearer to the root.
    cdef int64_t parent
    while at:
        parent = (at - 1) >> 1
        if not _earlier(&timer, &heap.timers[parent]):
            break
        heap.timers[at] = heap.timers[parent]
        at = parent
    heap.timers[at] = timer


cdef void _sift_down(SessionHeap* heap, int64_t at, SessionTimer timer) noexcept nogil:
    # Puts a timer into the gap at `at` or further from the root.
    cdef int64_t child
    while True:
        child = 2 * at + 1
        if child >= heap.n:
            break
        if child + 1 < heap.n and _earlier(&heap.timers[child + 1], &heap.timers[child]):
            child += 1
        if not _earlier(&heap.timers[child], &timer):
            break
        heap.timers[at] = heap.timers[child]
        at = child
    heap.timers[at] = timer


cdef int _heap_push(SessionHeap* heap, SessionTimer timer) except -1 nogil:
    heap.timers = _with_room(heap.timers, heap.n, &heap.capacity)
    heap.n += 1
    _sift_up(heap, heap.n - 1, timer)
    return 0


cdef void _heap_pop(SessionHeap* heap) noexcept nogil:
    heap.n -= 1
    _sift_down(heap, 0, heap.timers[heap.n])


cdef int _put(SessionTimers* timers, SessionTimer timer) except -1 nogil:
    cdef int64_t bucket = _bucket(timers, timer.due)
    cdef SessionBin* bin
    if bucket < timers.near_to:
        return _heap_push(&timers.near, timer)
    if bucket >= timers.near_to + TIMER_BUCKETS:
        return _heap_push(&timers.far, timer)
    bin = &timers.bins[bucket & (TIMER_BUCKETS - 1)]
    bin.timers = _with_room(bin.timers, bin.n, &bin.capacity)
    bin.timers[bin.n] = timer
    bin.n += 1
    timers.n_binned += 1
    return 0


cdef int _take_far(SessionTimers* timers) except -1 nogil:
    # Moves far timers into buckets that the ring has reached.
    cdef SessionTimer timer
    while timers.far.n and _bucket(timers, timers.far.timers[0].due) < timers.near_to + TIMER_BUCKETS:
        timer = timers.far.timers[0]
        _heap_pop(&timers.far)
        _put(timers, timer)
    return 0


cdef int _session_timers_start(SessionTimers* timers, int64_t width) except -1:
    timers.width = max(width, <int64_t> 2)  # so that numbers of buckets, and of their neighbours, fit into an int64
    timers.near_to = _bucket(timers, INT64_MIN)
    timers.bins = <SessionBin*> calloc(TIMER_BUCKETS, sizeof(SessionBin))
    if timers.bins == NULL:
        raise MemoryError("timers of sessions")
    return 0


cdef int _session_timer_push(SessionTimers* timers, SessionTimer timer) except -1 nogil:
    # Registers a new timer, or one whose time has changed: it gets its place in the order of registration.
    timer.sequence = timers.sequence
    timers.sequence += 1
    return _put(timers, timer)


cdef bint _session_timers_load(SessionTimers* timers, int64_t time) except -1 nogil:
    # If the near heap is empty: moves to the next bucket with timers that begins at or before `time`. Its timers are `loaded`
    # then, to be pushed again. Returns false without such a bucket.
    cdef SessionBin bin
    cdef int64_t place, last = _bucket(timers, time)
    while timers.near_to <= last:
        if timers.n_binned == 0:  # nothing is nearer than the far ones
            if timers.far.n == 0 or _bucket(timers, timers.far.timers[0].due) > last:
                timers.near_to = last + 1
                _take_far(timers)
                return False
            timers.near_to = _bucket(timers, timers.far.timers[0].due)
            _take_far(timers)
        place = timers.near_to & (TIMER_BUCKETS - 1)
        timers.near_to += 1
        if timers.bins[place].n:
            bin = timers.loaded
            timers.loaded = timers.bins[place]
            timers.bins[place] = bin
            timers.bins[place].n = 0
            timers.n_binned -= timers.loaded.n
            _take_far(timers)
            return True
        _take_far(timers)
    return False


cdef void _session_timer_pop(SessionTimers* timers) noexcept nogil:
    # Removes the first timer of the near heap.
    _heap_pop(&timers.near)


cdef int64_t _session_timers_number(const SessionTimers* timers) noexcept nogil:
    # Returns the number of all timers, including void ones.
    return timers.near.n + timers.n_binned + timers.far.n


cdef bint _heap_is_sound(const SessionHeap* heap) noexcept nogil:
    cdef int64_t i
    for i in range(1, heap.n):
        if _earlier(&heap.timers[i], &heap.timers[(i - 1) >> 1]):
            return False
    return True


cdef bint _session_timers_are_sound(const SessionTimers* timers) noexcept nogil:
    cdef int64_t i, j, bucket, binned = 0
    for i in range(timers.near.n):
        if _bucket(timers, timers.near.timers[i].due) >= timers.near_to:
            return False
    for i in range(timers.far.n):
        if _bucket(timers, timers.far.timers[i].due) < timers.near_to + TIMER_BUCKETS:
            return False
    for i in range(TIMER_BUCKETS):
        binned += timers.bins[i].n
        for j in range(timers.bins[i].n):
            bucket = _bucket(timers, timers.bins[i].timers[j].due)
            if bucket & (TIMER_BUCKETS - 1) != i or not timers.near_to <= bucket < timers.near_to + TIMER_BUCKETS:
                return False
    return binned == timers.n_binned and _heap_is_sound(&timers.near) and _heap_is_sound(&timers.far)


cdef void _session_timers_free(SessionTimers* timers) noexcept nogil:
    cdef int64_t i
    if timers.bins != NULL:
        for i in range(TIMER_BUCKETS):
            free(timers.bins[i].timers)
    free(timers.bins)
    free(timers.loaded.timers)
    free(timers.near.timers)
    free(timers.far.timers)


# ---- live sessions by key ----------------------------------------------------------------------------------------
# Every key has a short list of live sessions by start; a key without a session is forgotten. Each session has one valid timer.


cdef enum:
    NOTHING = 0xFFFFFFFF


cdef struct SessionKey:
    # A key with at least one live session.
    uint64_t hash
    int64_t value       # KEY_INT64
    uint8_t* data       # KEY_BYTES, owned
    int64_t length
    uint32_t first      # its earliest session
    uint32_t next_free


cdef struct Session:
    int64_t start
    int64_t end
    uint32_t key
    uint32_t next        # the key's next session by start, or the next free one
    uint32_t generation  # of its timer: older ones are void
    uint8_t fired        # at its current end; set from the start if its trigger does not fire there
    uint8_t fires_before  # true if it fires at `trigger_state`, a time
    uint8_t progress     # of Progress
    int64_t due          # of its timer, never later than its next action
    int64_t trigger_state  # rows counted, or the last time set for a firing before the end; INT64_MIN: none


cdef struct SessionSlot:
    uint32_t number      # of the key, plus one; 0: empty slot
    uint32_t hash        # its lower half


cdef struct SessionStore:
    bint bytes_keys
    bint twins           # each session has two entries
    SessionSlot* slots   # open addressing over live keys; at most 2**32
    uint64_t mask
    SessionKey* keys
    uint32_t n_keys      # ever allocated
    uint32_t keys_capacity
    uint32_t free_key
    uint32_t live_keys
    Session* sessions
    uint32_t n_sessions  # ever allocated
    uint32_t sessions_capacity
    uint32_t free_session
    uint32_t live_sessions
    SessionTimers timers
    AccumulatorTable* table


cdef inline uint32_t _session_entry(const SessionStore* store, uint32_t number) noexcept nogil:
    # Returns the session's entry of the accumulators.
    return number << 1 if store.twins else number


cdef inline uint32_t _entry_session(const SessionStore* store, uint32_t entry) noexcept nogil:
    # Returns the session of an entry that is not a twin.
    return entry >> 1 if store.twins else entry


cdef inline uint32_t _session_twin(uint32_t number) noexcept nogil:
    return number << 1 | 1


cdef const char* _WHAT = b"session state"  # that memory is for


cdef int _session_keys_resize(SessionStore* store, uint64_t n_slots) except -1 nogil:
    cdef SessionSlot* slots = <SessionSlot*> calloc(n_slots, sizeof(SessionSlot))
    cdef uint64_t at, old
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(SessionSlot)} bytes for the key index of sessions")
    if store.slots != NULL:
        for old in range(store.mask + 1):
            if store.slots[old].number:
                at = store.slots[old].hash & (n_slots - 1)
                while slots[at].number:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = store.slots[old]
    free(store.slots)
    store.slots = slots
    store.mask = n_slots - 1
    return 0


cdef inline bint _same_key(const SessionStore* store, const SessionKey* key, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef int64_t length
    if key.hash != keys.hashes[row]:
        return False
    if not store.bytes_keys:
        return key.value == keys.values[row]
    length = keys.offsets[row + 1] - keys.offsets[row]
    return key.length == length and (length == 0 or memcmp(key.data, keys.data + keys.offsets[row], length) == 0)


cdef uint32_t _session_key_find(const SessionStore* store, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Returns the number of the row's key, or NOTHING.
    cdef uint32_t hash = <uint32_t> keys.hashes[row]
    cdef uint64_t at = hash & store.mask
    cdef const SessionSlot* slot = &store.slots[at]
    while slot.number:
        if slot.hash == hash and _same_key(store, &store.keys[slot.number - 1], keys, row):
            return slot.number - 1
        at = (at + 1) & store.mask
        slot = &store.slots[at]
    return NOTHING


cdef int64_t _session_key_add(SessionStore* store, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef uint32_t number
    cdef SessionKey* key
    cdef uint64_t at
    cdef int64_t length
    cdef uint8_t* data = NULL
    if (<uint64_t> store.live_keys + 1) * 3 > (store.mask + 1) * 2:
        _session_keys_resize(store, (store.mask + 1) * 2)
    if store.free_key == NOTHING and store.n_keys == store.keys_capacity:
        store.keys = <SessionKey*> grow(store.keys, (<int64_t> store.keys_capacity * 2 + 64) * sizeof(SessionKey), _WHAT)
        store.keys_capacity = store.keys_capacity * 2 + 64
    if store.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        data = <uint8_t*> malloc(length + 1)
        if data == NULL:
            with gil:
                raise MemoryError(f"{length} bytes for a key")
        if length:
            memcpy(data, keys.data + keys.offsets[row], length)
    if store.free_key != NOTHING:
        number = store.free_key
        store.free_key = store.keys[number].next_free
        if store.free_key != NOTHING:
            prefetch_all(&store.keys[store.free_key], sizeof(SessionKey))
    else:
        number = store.n_keys
        store.n_keys += 1
    key = &store.keys[number]
    memset(key, 0, sizeof(SessionKey))
    key.hash = keys.hashes[row]
    key.first = NOTHING
    if store.bytes_keys:
        key.data = data
        key.length = length
    else:
        key.value = keys.values[row]
    at = <uint32_t> key.hash & store.mask
    while store.slots[at].number:
        at = (at + 1) & store.mask
    store.slots[at].number = number + 1
    store.slots[at].hash = <uint32_t> key.hash
    store.live_keys += 1
    return number


cdef void _remove_key(SessionStore* store, uint32_t number) noexcept nogil:
    # Linear probing without tombstones: later members of the run move up.
    cdef SessionKey* key = &store.keys[number]
    cdef uint64_t at = <uint32_t> key.hash & store.mask, hole, home
    while store.slots[at].number != number + 1:
        at = (at + 1) & store.mask
    hole = at
    while True:
        at = (at + 1) & store.mask
        if store.slots[at].number == 0:
            break
        home = store.slots[at].hash & store.mask
        if ((at - home) & store.mask) >= ((at - hole) & store.mask):
            store.slots[hole] = store.slots[at]
            hole = at
    store.slots[hole].number = 0
    free(key.data)
    key.data = NULL
    key.next_free = store.free_key
    store.free_key = number
    store.live_keys -= 1


cdef int64_t _session_add(SessionStore* store, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    # Opens a session of a key, in its place by start. Returns its number.
    cdef uint32_t number, capacity
    cdef uint32_t* link = &store.keys[key].first
    if store.free_session == NOTHING:
        if store.n_sessions == store.sessions_capacity:
            capacity = store.sessions_capacity * 2 + 64
            store.sessions = <Session*> grow(store.sessions, <int64_t> capacity * sizeof(Session), _WHAT)
            accumulators_reserve(store.table, capacity << 1 if store.twins else capacity)
            store.sessions_capacity = capacity
        number = store.n_sessions
        store.sessions[number].generation = 0
        store.n_sessions += 1
    else:
        number = store.free_session
        store.free_session = store.sessions[number].next
        if store.free_session != NOTHING:
            prefetch_all(&store.sessions[store.free_session], sizeof(Session))
    store.sessions[number].start = start
    store.sessions[number].end = end
    store.sessions[number].key = key
    while link[0] != NOTHING and store.sessions[link[0]].start < start:
        link = &store.sessions[link[0]].next
    store.sessions[number].next = link[0]
    link[0] = number
    store.live_sessions += 1
    return number


cdef int _session_arm(SessionStore* store, uint32_t session, int64_t due) except -1 nogil:
    # Registers the timer of a session, and voids the one before.
    cdef SessionTimer timer
    store.sessions[session].generation += 1
    store.sessions[session].due = due
    timer.due = due
    timer.session = session
    timer.generation = store.sessions[session].generation
    return _session_timer_push(&store.timers, timer)


cdef void _session_drop(SessionStore* store, uint32_t number) noexcept nogil:
    # Frees a session's number. The session is out of its key's list, and its accumulators are empty.
    store.sessions[number].generation += 1
    store.sessions[number].next = store.free_session
    store.free_session = number
    store.live_sessions -= 1


cdef int _session_retire(SessionStore* store, uint32_t number) except -1 nogil:
    # Ends a session, and forgets its key if that was the key's last one.
    cdef SessionKey* key = &store.keys[store.sessions[number].key]
    cdef uint32_t* link = &key.first
    while link[0] != number:
        link = &store.sessions[link[0]].next
    link[0] = store.sessions[number].next
    accumulators_clear_range(store.table, _session_entry(store, number), 2 if store.twins else 1)
    if key.first == NOTHING:
        _remove_key(store, store.sessions[number].key)
    _session_drop(store, number)
    return 0


cdef void _session_store_free(SessionStore* store) noexcept nogil:
    cdef uint32_t i
    for i in range(store.n_keys):
        free(store.keys[i].data)
    free(store.keys)
    free(store.slots)
    free(store.sessions)
    _session_timers_free(&store.timers)


# ---- sessions and their triggers ---------------------------------------------------------------------------------


cdef enum:
    LOOK_AHEAD = 8


cdef struct SessionWindows:
    WindowCore core
    int64_t gap
    Trigger trigger
    SessionStore store
    GatheredFirings fired  # by a watermark


cdef inline int64_t _session_next_action(const SessionWindows* state, const Session* session) noexcept nogil:
    cdef int64_t action = cleanup_time(&state.core, session.end) if session.fired else session.end - 1
    return min(action, session.trigger_state) if session.fires_before else action


cdef inline int _session_arm_next(SessionWindows* state, uint32_t number) except -1 nogil:
    # Registers the timer of a session for its next action.
    return _session_arm(&state.store, number, _session_next_action(state, &state.store.sessions[number]))


# ---- results of sessions -----------------------------------------------------------------------------------------
# Results of sessions that a watermark fires together, that a row fires, and that are withdrawn.
#
# If results are withdrawn, a session's rows since its last firing are in its entry, and the contents of its last result in its
# twin.


cdef inline SessionKey* _session_key_of(const SessionWindows* state, uint32_t number) noexcept nogil:
    return &state.store.keys[state.store.sessions[number].key]


cdef int _append_session_key(Firings* firings, bint bytes_keys, const SessionKey* key) except -1 nogil:
    cdef int64_t[2] offsets
    if not bytes_keys:
        return firings_append_int64_keys(firings, &key.value, 1)
    offsets[0] = 0
    offsets[1] = key.length
    return firings_append_bytes_keys(firings, key.data, offsets, 1)


cdef int _append_firing(SessionWindows* state, uint32_t number, RowKind kind, bint late) except -1 nogil:
    cdef const Session* session = &state.store.sessions[number]
    cdef SessionKey* key = _session_key_of(state, number)
    _append_session_key(&state.core.firings, state.core.bytes_keys, key)
    if state.core.retracts:
        firings_append_kind(&state.core.firings, kind, 1)
    return core_append_firings(&state.core, session.start, session.end, late, 1)


cdef void _session_add_firing(SessionWindows* state, uint32_t number) noexcept nogil:
    # A watermark fires a session: its result is emitted by the next _session_emit_firing. The caller has made room.
    cdef const Session* session = &state.store.sessions[number]
    state.store.sessions[number].progress |= Progress.FIRING
    prefetch_all(&state.store.keys[session.key], sizeof(SessionKey))
    gather_firing(
        &state.fired,
        _session_entry(&state.store, number),
        _session_key_of(state, number).length if state.core.bytes_keys else 0,
    )


cdef bint _session_emit_firing(SessionWindows* state) except -1 nogil:
    # Emits the sessions that a watermark has fired so far. Returns false if results are full before.
    while state.fired.n_emitted < state.fired.n:
        if not (_replace_result(state) if state.core.retracts else _emit_results(state)):
            return False
    state.fired.n = state.fired.n_emitted = 0
    return True


cdef bint _emit_results(SessionWindows* state) except -1 nogil:
    # Emits as many results as there is room for. Returns false without room.
    cdef const SessionKey* key
    cdef const uint32_t* numbers = state.fired.entries  # without twins
    cdef int64_t i, first = state.fired.n_emitted, n = emit_gathered(&state.core, &state.fired)
    for i in range(first, first + n):
        key = _session_key_of(state, numbers[i])
        prefetch(&state.store.slots[<uint32_t> key.hash & state.store.mask])
    for i in range(first, first + n):
        _append_firing(state, numbers[i], RowKind.INSERT, False)
        _fired(state, numbers[i])
    state.core.on_time_firings += n
    state.fired.n_emitted += n
    return n > 0


cdef bint _replace_result(SessionWindows* state) except -1 nogil:
    # Withdraws the last result of the next session that has fired, and emits the new one. Returns false without room.
    cdef uint32_t number = _entry_session(&state.store, state.fired.entries[state.fired.n_emitted])
    cdef Session* session = &state.store.sessions[number]
    cdef RowKind kind = RowKind.UPDATE_BEFORE
    while kind == RowKind.UPDATE_BEFORE:
        if not core_emit_change(&state.core, &state.fired, &session.progress, _session_twin(number), False, &kind):
            return False
        _append_firing(state, number, kind, False)
    _fired(state, number)
    state.fired.n_emitted += 1
    return True


cdef int _fired(SessionWindows* state, uint32_t number) except -1 nogil:
    # The session's result is out. Without lateness that is also its end (WindowOperator.onEventTime).
    cdef Session* session = &state.store.sessions[number]
    cdef uint32_t entry = _session_entry(&state.store, number)
    session.progress = Progress.FILLED | Progress.GIVEN if state.core.retracts else <int> Progress.FILLED
    if state.trigger.purges:
        accumulators_clear(state.core.table, &entry, 1)
        session.progress = 0
    if state.core.lateness == 0 and session.fired and state.trigger.kind != TriggerKind.ON_COUNT:
        return _session_retire(&state.store, number)
    return 0


cdef int _emit_row(SessionWindows* state, uint32_t number, uint32_t entry, RowKind kind) except -1 nogil:
    # Emits a result that a row fires.
    cdef bint late = state.store.sessions[number].end - 1 <= state.core.cursor.watermark
    core_emit_row(&state.core, entry, _session_key_of(state, number).length, kind, late)
    return _append_firing(state, number, kind, late)


cdef int _session_fire(SessionWindows* state, uint32_t number) except -1 nogil:
    # A row fires its session.
    cdef uint32_t entry = _session_entry(&state.store, number)
    cdef bint known = (state.store.sessions[number].progress & Progress.GIVEN) != 0
    pending_flush(&state.core.pending, state.core.table)
    if state.core.retracts:
        if known:
            _emit_row(state, number, _session_twin(number), RowKind.UPDATE_BEFORE)
        accumulators_merge(state.core.table, _session_twin(number), entry)
        entry = _session_twin(number)
    _emit_row(state, number, entry, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
    return _fired(state, number)


cdef int _session_withdraw(SessionWindows* state, uint32_t number) except -1 nogil:
    # Withdraws the result of a session that becomes a part of another one: all its contents are in its twin then.
    if state.store.sessions[number].progress & Progress.GIVEN:
        _emit_row(state, number, _session_twin(number), RowKind.DELETE)
        state.store.sessions[number].progress &= ~Progress.GIVEN
    return accumulators_merge(state.core.table, _session_twin(number), _session_entry(&state.store, number))


cdef int _session_merge_contents(SessionWindows* state, uint32_t number, uint32_t other) except -1 nogil:
    # Merges the contents of another session into one.
    if not state.core.retracts:
        return accumulators_merge(state.core.table, number, other)
    _session_withdraw(state, other)
    return accumulators_merge(state.core.table, _session_twin(number), _session_twin(other))


# ---- firing ------------------------------------------------------------------------------------------------------


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
        _session_add_firing(state, number)
    elif ends and state.core.lateness == 0:
        return _session_retire(&state.store, number)
    if state.core.lateness or not ends:
        _session_arm_next(state, number)
    return 0


cdef const SessionTimer* _next_due(SessionWindows* state) except? NULL nogil:
    # Returns the first timer that is due, or NULL.
    cdef SessionTimers* timers = &state.store.timers
    cdef SessionTimer timer
    cdef Session* session
    cdef int64_t i, action
    while timers.near.n == 0 and _session_timers_load(timers, state.core.cursor.watermark):
        for i in range(timers.loaded.n):
            prefetch_all(&state.store.sessions[timers.loaded.timers[i].session], sizeof(Session))
        for i in range(timers.loaded.n):
            timer = timers.loaded.timers[i]
            session = &state.store.sessions[timer.session]
            if session.generation != timer.generation:
                continue
            action = _session_next_action(state, session)
            if action > timer.due:  # the session has moved on
                session.due = timer.due = action
            _session_timer_push(timers, timer)
    if timers.near.n and timers.near.timers[0].due <= state.core.cursor.watermark:
        return &timers.near.timers[0]
    return NULL


cdef int _collect_firing(SessionWindows* state) except -1 nogil:
    # Handles timers that are due, in their order, until as many sessions fire as are emitted together.
    cdef const SessionTimer* due
    cdef SessionTimer timer
    cdef Session* session
    while state.fired.n < MOST_GATHERED:
        due = _next_due(state)
        if due == NULL:
            break
        timer = due[0]
        session = &state.store.sessions[timer.session]
        if session.generation != timer.generation:
            _session_timer_pop(&state.store.timers)
            continue
        if session.progress & Progress.FIRING:
            break  # its first firing is emitted before the next one changes it
        _session_timer_pop(&state.store.timers)
        if _session_next_action(state, session) > timer.due:
            _session_arm_next(state, timer.session)
        elif session.fired and not session.fires_before:
            _session_retire(&state.store, timer.session)
        else:
            _on_event_time(state, timer.session, timer.due)
    return 0


cdef bint _fire_due(void* windows) except -1 nogil:
    # Returns false if results are full before everything has fired.
    cdef SessionWindows* state = <SessionWindows*> windows
    if not state.core.due:
        if _next_due(state) == NULL:
            return True
        pending_flush(&state.core.pending, state.core.table)
        state.core.due = True
    while True:
        if not _session_emit_firing(state):
            return False
        _collect_firing(state)
        if state.fired.n == 0:
            state.core.due = False
            return True


cdef bint _step(void* windows) except -1 nogil:
    cdef SessionWindows* state = <SessionWindows*> windows
    cursor_step(&state.core.cursor)
    return _fire_due(state)


# ---- rows --------------------------------------------------------------------------------------------------------


cdef void _merge_triggers(SessionWindows* state, Session* session, const Session* other) noexcept nogil:
    # Trigger.onMerge of two sessions that become one: counts are added (CountTrigger), and the earlier time is kept
    # (ContinuousEventTimeTrigger).
    if state.trigger.kind == TriggerKind.ON_COUNT:
        session.trigger_state += other.trigger_state
    elif session.trigger_state == INT64_MIN or INT64_MIN < other.trigger_state < session.trigger_state:
        session.trigger_state = other.trigger_state
    session.progress |= other.progress & Progress.FILLED


cdef int64_t _merged_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    # Returns the live session that [start, end) merges into, widened by it and by all others that it touches, or NOTHING.
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
        _session_withdraw(state, number)
    session.start = min(session.start, start)
    session.end = max(session.end, end)
    while session.next != NOTHING and state.store.sessions[session.next].start <= end:
        other = session.next
        pending_flush(&state.core.pending, state.core.table)
        _session_merge_contents(state, number, other)
        _merge_triggers(state, session, &state.store.sessions[other])
        session.end = max(session.end, state.store.sessions[other].end)
        session.next = state.store.sessions[other].next
        _session_drop(&state.store, other)
    if state.core.retracts:  # no result of the merged session is out
        accumulators_merge(state.core.table, _session_entry(&state.store, number), _session_twin(number))
    # As in Flink, the timer of a merged trigger is registered again, even for a time that has passed.
    session.fires_before = state.trigger.kind == TriggerKind.ON_CONTINUOUS_EVENT_TIME and session.trigger_state != INT64_MIN
    return number


cdef int64_t _new_session(SessionWindows* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number = <uint32_t> _session_add(&state.store, key, start, end)
    state.store.sessions[number].fired = state.trigger.kind == TriggerKind.ON_COUNT
    state.store.sessions[number].fires_before = False
    state.store.sessions[number].progress = 0
    state.store.sessions[number].trigger_state = 0 if state.trigger.kind == TriggerKind.ON_COUNT else INT64_MIN
    return number


cdef bint _on_element(SessionWindows* state, Session* session, int64_t timestamp) noexcept nogil:
    # Trigger.onElement. Returns true if it fires.
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
    cdef uint32_t key = _session_key_find(&state.store, keys, row), number
    cdef Session* session
    cdef bint fires, unarmed = False
    if key != NOTHING:
        found = _merged_session(state, key, timestamp, end)
    if found == NOTHING:
        # Lateness is decided after merging: a row whose own session would be over still belongs to a live one that it touches.
        if is_over(&state.core, end):
            return core_add_late(&state.core, row)
        if key == NOTHING:
            key = <uint32_t> _session_key_add(&state.store, keys, row)
        found = _new_session(state, key, timestamp, end)
        unarmed = True
    number = <uint32_t> found
    session = &state.store.sessions[number]
    fires = _on_element(state, session, timestamp)
    if unarmed or _session_next_action(state, session) < session.due:
        _session_arm_next(state, number)
    pending_add(&state.core.pending, state.core.table, _session_entry(&state.store, number), row)
    session.progress |= Progress.FILLED
    if fires:
        _session_fire(state, number)
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
        # The memory of later rows is prefetched in three steps, each of which reads what the one before has fetched.
        if i + 3 * LOOK_AHEAD < input.n:
            prefetch(
                &state.store.slots[
                    <uint32_t> input.keys.hashes[input_row(input, i + 3 * LOOK_AHEAD)] & state.store.mask
                ]
            )
        _prefetch_key(state, input, i + 2 * LOOK_AHEAD)
        _prefetch_session(state, input, i + LOOK_AHEAD)
        row = input_row(input, i)
        if not core_reach_row(&state.core, &VERBS, input, row):
            break
        _take_row(state, input.keys, row, input.timestamps[row])
        i += 1
        if core_is_full(&state.core):
            break
    pending_flush(&state.core.pending, state.core.table)
    return i


# ---- sessions as rows of a checkpoint, and back ------------------------------------------------------------------


cdef enum SessionFlag:
    # Flags besides those of Progress.
    FIRED = 16
    FIRES_BEFORE = 32


cdef int _session_rows(const void* windows, WindowRows* rows) except -1 nogil:
    cdef LiveWindow window
    cdef const SessionWindows* state = <const SessionWindows*> windows
    cdef const SessionKey* key
    cdef const Session* session
    cdef uint32_t k, number
    # By number, not in the order of the slots: restored into a smaller table in that order, keys would crowd its first slots. A
    # forgotten key has no session.
    for k in range(state.store.n_keys):
        key = &state.store.keys[k]
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
            _append_session_key(&rows.firings, state.core.bytes_keys, key)
            window_rows_add(rows, &window, _session_entry(&state.store, number))
            if state.store.twins:
                window.flags = TWIN_ENTRY
                _append_session_key(&rows.firings, state.core.bytes_keys, key)
                window_rows_add(rows, &window, _session_twin(number))
            number = session.next
    return 0


cdef int64_t _session_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef Session* session
    cdef SessionWindows* state = <SessionWindows*> windows
    cdef uint32_t key = _session_key_find(&state.store, keys, row), number
    if window.flags & TWIN_ENTRY:
        number = state.store.keys[key].first if key != NOTHING else NOTHING
        while number != NOTHING and state.store.sessions[number].start != window.start:
            number = state.store.sessions[number].next
        if number == NOTHING:
            return NO_ENTRY
        return _session_twin(number)
    if window.flags & SessionFlag.FIRES_BEFORE and (
        state.trigger.kind != TriggerKind.ON_CONTINUOUS_EVENT_TIME or not window.start <= window.trigger_state < window.end
    ):
        return NO_ENTRY
    if state.trigger.kind == TriggerKind.ON_COUNT and window.trigger_state < 0:
        return NO_ENTRY
    if key == NOTHING:
        key = <uint32_t> _session_key_add(&state.store, keys, row)
    number = state.store.keys[key].first
    while number != NOTHING:  # sessions of a key that meet would be one
        session = &state.store.sessions[number]
        if session.start <= window.end and window.start <= session.end:
            return NO_ENTRY
        number = session.next
    number = <uint32_t> _session_add(&state.store, key, window.start, window.end)
    session = &state.store.sessions[number]
    session.fired = (window.flags & SessionFlag.FIRED) != 0
    session.fires_before = (window.flags & SessionFlag.FIRES_BEFORE) != 0
    session.progress = window.flags & (Progress.FILLED | Progress.GIVEN)
    session.trigger_state = window.trigger_state
    _session_arm_next(state, number)
    return _session_entry(&state.store, number)


# ---- the kernel --------------------------------------------------------------------------------------------------


cdef int _start(void* windows) except -1:
    cdef SessionWindows* state = <SessionWindows*> windows
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    check_retracts(&state.core, state.trigger.purges)
    state.store.twins = state.core.retracts
    _session_timers_start(&state.store.timers, state.gap // 512)
    return _session_keys_resize(&state.store, 1024)


cdef int64_t _live_windows(const void* windows) noexcept nogil:
    return (<const SessionWindows*> windows).store.live_sessions


cdef int64_t _memory_bytes(const void* windows) noexcept nogil:
    cdef const SessionStore* store = &(<const SessionWindows*> windows).store
    cdef const SessionTimers* timers = &store.timers
    cdef uint32_t key
    cdef int64_t n_bytes = block_bytes(store.slots) + block_bytes(store.keys) + block_bytes(store.sessions)
    n_bytes += sizeof(SessionTimer) * (timers.near.capacity + timers.far.capacity + timers.n_binned)
    if store.bytes_keys:
        for key in range(store.n_keys):
            n_bytes += block_bytes(store.keys[key].data)
    return n_bytes


cdef void _free(void* windows) noexcept nogil:
    _session_store_free(&(<SessionWindows*> windows).store)
    free(windows)


cdef int _check(const void* windows) except -1:
    cdef const SessionWindows* state = <const SessionWindows*> windows
    cdef const Session* session
    cdef uint64_t at, occupied = 0
    cdef uint32_t first, number, live = 0
    cdef int64_t end = 0
    for at in range(state.store.mask + 1):
        if state.store.slots[at].number == 0:
            continue
        occupied += 1
        first = number = state.store.keys[state.store.slots[at].number - 1].first
        assert number != NOTHING, "a key without a session"
        while number != NOTHING:
            live += 1
            session = &state.store.sessions[number]
            assert session.key == state.store.slots[at].number - 1
            assert number == first or end < session.start, "sessions that touch"
            assert session.start < session.end
            if not state.core.due:
                assert not session.progress & Progress.FIRING
                assert state.trigger.kind == TriggerKind.ON_COUNT or (
                    session.fired == (session.end - 1 <= state.core.cursor.watermark)
                )
                assert session.due <= _session_next_action(state, session)
                assert not is_over(&state.core, session.end), "a session outlived its time"
            end = session.end
            number = session.next
    assert occupied == state.store.live_keys
    assert live == state.store.live_sessions, "a session was lost"
    assert _session_timers_are_sound(&state.store.timers), "timers out of order"
    assert _session_timers_number(&state.store.timers) >= live or state.core.due, "a session without its timer"
    assert state.core.due or state.fired.n == 0, "sessions fired in part"
    return 0


cdef WindowVerbs VERBS = WindowVerbs(
    start=_start, process=_process, fire_due=_fire_due, step=_step, live_windows=_live_windows,
    memory_bytes=_memory_bytes, check=_check, windows=_session_rows, restore=_session_restore, free=_free,
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
    kernel = window_kernel("session_windows", sizeof(SessionWindows), &VERBS, allowed_lateness, INT64_MIN, INT64_MAX - gap)
    state = <SessionWindows*> kernel.state
    state.gap = gap
    state.trigger = made
    state.store.free_key = state.store.free_session = NOTHING
    return kernel

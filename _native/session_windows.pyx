"""Event-time session windows over columns, with the default trigger.

Every key holds a short list of live sessions by start. Each session has one pending timer; where the session has moved on
by the time that its timer is due, the timer is armed again, so a row that only prolongs a session costs no heap operation.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.aggregates cimport (
    Accumulators,
    accumulators_clear,
    accumulators_emit,
    accumulators_merge,
    accumulators_reserve,
)
from flinkcore._native.arrow cimport RecordBatch
from flinkcore._native.firings cimport (
    firings_append,
    firings_append_bytes_keys,
    firings_append_int64_keys,
    firings_free,
    firings_take,
    pending_add,
    pending_flush,
    saturating_add,
)
from flinkcore._native.keys cimport KEY_BYTES, KeyBatch, KeyEncoder

cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil

cdef enum:
    NOTHING = 0xFFFFFFFF
    LOOK_AHEAD = 16



cdef void* _grow(void* memory, int64_t bytes) except NULL nogil:
    cdef void* grown = realloc(memory, bytes)
    if grown == NULL:
        with gil:
            raise MemoryError(f"{bytes} bytes for session state")
    return grown


# ---- keys --------------------------------------------------------------------------------------------------------


cdef int _resize_slots(SessionState* state, uint64_t n_slots) except -1 nogil:
    cdef uint32_t* slots = <uint32_t*> calloc(n_slots, sizeof(uint32_t))
    cdef uint64_t at, old
    cdef uint32_t number
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(uint32_t)} bytes for the key index of sessions")
    if state.slots != NULL:
        for old in range(state.mask + 1):
            number = state.slots[old]
            if number:
                at = state.keys[number - 1].hash & (n_slots - 1)
                while slots[at]:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = number
    free(state.slots)
    state.slots = slots
    state.mask = n_slots - 1
    return 0


cdef inline bint _same_key(const SessionState* state, const SessionKey* key, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef int64_t length
    if key.hash != keys.hashes[row]:
        return False
    if not state.bytes_keys:
        return key.value == keys.values[row]
    length = keys.offsets[row + 1] - keys.offsets[row]
    return key.length == length and (length == 0 or memcmp(key.data, keys.data + keys.offsets[row], length) == 0)


cdef uint32_t _find_key(const SessionState* state, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef uint64_t at = keys.hashes[row] & state.mask
    while state.slots[at]:
        if _same_key(state, &state.keys[state.slots[at] - 1], keys, row):
            return state.slots[at] - 1
        at = (at + 1) & state.mask
    return NOTHING


cdef int64_t _add_key(SessionState* state, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef uint32_t number
    cdef SessionKey* key
    cdef uint64_t at
    cdef int64_t length
    cdef uint8_t* data = NULL
    if (<uint64_t> state.live_keys + 1) * 3 > (state.mask + 1) * 2:
        _resize_slots(state, (state.mask + 1) * 2)
    if state.free_key == NOTHING and state.n_keys == state.keys_capacity:
        state.keys = <SessionKey*> _grow(state.keys, (<int64_t> state.keys_capacity * 2 + 64) * sizeof(SessionKey))
        state.keys_capacity = state.keys_capacity * 2 + 64
    if state.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        data = <uint8_t*> malloc(length + 1)
        if data == NULL:
            with gil:
                raise MemoryError(f"{length} bytes for a key")
        if length:
            memcpy(data, keys.data + keys.offsets[row], length)
    if state.free_key != NOTHING:
        number = state.free_key
        state.free_key = state.keys[number].next_free
    else:
        number = state.n_keys
        state.n_keys += 1
    key = &state.keys[number]
    memset(key, 0, sizeof(SessionKey))
    key.hash = keys.hashes[row]
    key.first = NOTHING
    if state.bytes_keys:
        key.data = data
        key.length = length
    else:
        key.value = keys.values[row]
    at = key.hash & state.mask
    while state.slots[at]:
        at = (at + 1) & state.mask
    state.slots[at] = number + 1
    state.live_keys += 1
    return number


cdef void _remove_key(SessionState* state, uint32_t number) noexcept nogil:
    # Linear probing without tombstones: later members of the run move up.
    cdef SessionKey* key = &state.keys[number]
    cdef uint64_t at = key.hash & state.mask, hole, home
    while state.slots[at] != number + 1:
        at = (at + 1) & state.mask
    hole = at
    while True:
        at = (at + 1) & state.mask
        if state.slots[at] == 0:
            break
        home = state.keys[state.slots[at] - 1].hash & state.mask
        if ((at - home) & state.mask) >= ((at - hole) & state.mask):
            state.slots[hole] = state.slots[at]
            hole = at
    state.slots[hole] = 0
    free(key.data)
    key.data = NULL
    key.next_free = state.free_key
    state.free_key = number
    state.live_keys -= 1


# ---- timers ------------------------------------------------------------------------------------------------------


cdef inline bint _earlier(const SessionTimer* a, const SessionTimer* b) noexcept nogil:
    return a.due < b.due or (a.due == b.due and a.sequence < b.sequence)


cdef int _push_timer(SessionState* state, uint32_t session, int64_t due) except -1 nogil:
    cdef int64_t at = state.n_timers, parent
    cdef SessionTimer timer
    if state.n_timers == state.timers_capacity:
        state.timers = <SessionTimer*> _grow(state.timers, (state.timers_capacity * 2 + 64) * sizeof(SessionTimer))
        state.timers_capacity = state.timers_capacity * 2 + 64
    timer.due = due
    timer.sequence = state.sequence
    timer.session = session
    timer.generation = state.sessions[session].generation
    state.sequence += 1
    state.n_timers += 1
    while at:
        parent = (at - 1) >> 1
        if not _earlier(&timer, &state.timers[parent]):
            break
        state.timers[at] = state.timers[parent]
        at = parent
    state.timers[at] = timer
    return 0


cdef SessionTimer _pop_timer(SessionState* state) noexcept nogil:
    cdef SessionTimer top = state.timers[0], last
    cdef int64_t at = 0, child
    state.n_timers -= 1
    last = state.timers[state.n_timers]
    while True:
        child = 2 * at + 1
        if child >= state.n_timers:
            break
        if child + 1 < state.n_timers and _earlier(&state.timers[child + 1], &state.timers[child]):
            child += 1
        if not _earlier(&state.timers[child], &last):
            break
        state.timers[at] = state.timers[child]
        at = child
    state.timers[at] = last
    return top


# ---- sessions ----------------------------------------------------------------------------------------------------


cdef int64_t _add_session(SessionState* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number, capacity
    if state.free_session == NOTHING:
        if state.n_sessions == state.sessions_capacity:
            capacity = state.sessions_capacity * 2 + 64
            state.sessions = <Session*> _grow(state.sessions, <int64_t> capacity * sizeof(Session))
            accumulators_reserve(state.table, capacity)
            state.sessions_capacity = capacity
        number = state.n_sessions
        state.sessions[number].generation = 0
        state.n_sessions += 1
    else:
        number = state.free_session
        state.free_session = state.sessions[number].next
    state.sessions[number].start = start
    state.sessions[number].end = end
    state.sessions[number].key = key
    state.sessions[number].next = NOTHING
    state.live_sessions += 1
    return number


cdef void _drop_session(SessionState* state, uint32_t number) noexcept nogil:
    # The caller has unlinked it from its key and emptied its accumulators.
    state.sessions[number].generation += 1
    state.sessions[number].next = state.free_session
    state.free_session = number
    state.live_sessions -= 1


cdef int _retire(SessionState* state, uint32_t number) except -1 nogil:
    cdef SessionKey* key = &state.keys[state.sessions[number].key]
    cdef uint32_t* link = &key.first
    while link[0] != number:
        link = &state.sessions[link[0]].next
    link[0] = state.sessions[number].next
    accumulators_clear(state.table, &number, 1)
    if key.first == NOTHING:
        _remove_key(state, state.sessions[number].key)
    _drop_session(state, number)
    return 0


cdef int _append_firing(SessionState* state, uint32_t number, bint late) except -1 nogil:
    cdef SessionKey* key = &state.keys[state.sessions[number].key]
    cdef int64_t[2] offsets
    if state.bytes_keys:
        offsets[0] = 0
        offsets[1] = key.length
        firings_append_bytes_keys(&state.firings, key.data, offsets, 1)
    else:
        firings_append_int64_keys(&state.firings, &key.value, 1)
    firings_append(
        &state.firings, state.sessions[number].start, state.sessions[number].end, late, state.cursor.watermark, 1
    )
    return 0


cdef int _emit_firing(SessionState* state) except -1 nogil:
    # Emits the sessions that a watermark has fired so far.
    cdef int64_t i
    if state.n_firing == 0:
        return 0
    accumulators_emit(state.table, state.firing, state.n_firing)
    for i in range(state.n_firing):
        _append_firing(state, state.firing[i], False)
    state.on_time_firings += state.n_firing
    if state.lateness == 0:
        for i in range(state.n_firing):
            _retire(state, state.firing[i])
    state.n_firing = 0
    return 0


cdef inline int64_t _next_action(const SessionState* state, const Session* session) noexcept nogil:
    return saturating_add(session.end - 1, state.lateness) if session.fired else session.end - 1


cdef int _arm(SessionState* state, uint32_t number) except -1 nogil:
    cdef Session* session = &state.sessions[number]
    session.generation += 1
    session.due = _next_action(state, session)
    return _push_timer(state, number, session.due)


cdef int _advance_watermark(SessionState* state) except -1 nogil:
    cdef int64_t watermark = state.cursor.watermark
    cdef SessionTimer timer
    cdef Session* session
    if state.n_timers == 0 or state.timers[0].due > watermark:
        return 0
    pending_flush(&state.pending, state.table)
    while state.n_timers and state.timers[0].due <= watermark:
        timer = _pop_timer(state)
        session = &state.sessions[timer.session]
        if session.generation != timer.generation:
            continue
        if _next_action(state, session) > timer.due:
            _arm(state, timer.session)
        elif session.fired:
            _emit_firing(state)
            _retire(state, timer.session)
        else:
            if state.n_firing == state.firing_capacity:
                state.firing = <uint32_t*> _grow(state.firing, (state.firing_capacity * 2 + 64) * sizeof(uint32_t))
                state.firing_capacity = state.firing_capacity * 2 + 64
            state.firing[state.n_firing] = timer.session
            state.n_firing += 1
            session.fired = True
            if state.lateness:
                _arm(state, timer.session)
    return _emit_firing(state)


cdef int _advance_clock(SessionState* state, int64_t arrival) except -1 nogil:
    # All steps of the timeline before a row that arrives at this time.
    while state.cursor.next < state.cursor.steps and state.cursor.clocks[state.cursor.next] < arrival:
        state.cursor.watermark = state.cursor.watermarks[state.cursor.next]
        state.cursor.next += 1
        _advance_watermark(state)
    return 0


cdef int _fire_late(SessionState* state, uint32_t number) except -1 nogil:
    pending_flush(&state.pending, state.table)
    accumulators_emit(state.table, &number, 1)
    _append_firing(state, number, True)
    state.late_firings += 1
    return 0


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _add_late(SessionState* state, uint32_t row) except -1 nogil:
    if state.n_late_rows == state.late_rows_capacity:
        state.late_rows = <uint32_t*> _grow(state.late_rows, (state.late_rows_capacity * 2 + 64) * sizeof(uint32_t))
        state.late_rows_capacity = state.late_rows_capacity * 2 + 64
    state.late_rows[state.n_late_rows] = row
    state.n_late_rows += 1
    state.late += 1
    return 0


cdef int64_t _merged_session(SessionState* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    # The live session that [start, end) merges into, widened by it and by all others that it touches; NOTHING if none.
    cdef uint32_t number = state.keys[key].first, other
    cdef Session* session
    while number != NOTHING and state.sessions[number].end < start:
        number = state.sessions[number].next
    if number == NOTHING or state.sessions[number].start > end:
        return NOTHING
    session = &state.sessions[number]
    session.start = min(session.start, start)
    session.end = max(session.end, end)
    while session.next != NOTHING and state.sessions[session.next].start <= end:
        other = session.next
        pending_flush(&state.pending, state.table)
        accumulators_merge(state.table, number, other)
        session.end = max(session.end, state.sessions[other].end)
        session.next = state.sessions[other].next
        _drop_session(state, other)
    return number


cdef int64_t _new_session(SessionState* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number = <uint32_t> _add_session(state, key, start, end)
    cdef uint32_t* link = &state.keys[key].first
    while link[0] != NOTHING and state.sessions[link[0]].start < start:
        link = &state.sessions[link[0]].next
    state.sessions[number].next = link[0]
    link[0] = number
    return number


cdef int _take_row(SessionState* state, const KeyBatch* keys, uint32_t row, int64_t timestamp) except -1 nogil:
    # WindowOperator.processElement with a MergingWindowAssigner, for one row.
    cdef int64_t end = timestamp + state.gap, found = NOTHING
    cdef uint32_t key = _find_key(state, keys, row), number
    cdef Session* session
    if key != NOTHING:
        found = _merged_session(state, key, timestamp, end)
    if found == NOTHING:
        if saturating_add(end - 1, state.lateness) <= state.cursor.watermark:
            return _add_late(state, row)
        if key == NOTHING:
            key = <uint32_t> _add_key(state, keys, row)
        found = _new_session(state, key, timestamp, end)
        state.sessions[found].due = INT64_MAX
        state.sessions[found].fired = end - 1 <= state.cursor.watermark
        _arm(state, <uint32_t> found)
    number = <uint32_t> found
    session = &state.sessions[number]
    session.fired = session.end - 1 <= state.cursor.watermark
    if _next_action(state, session) < session.due:
        _arm(state, number)
    pending_add(&state.pending, state.table, number, row)
    if session.fired:
        _fire_late(state, number)
    state.windowed += 1
    return 0


cdef int64_t _process(
    SessionState* state,
    const KeyBatch* keys,
    const uint32_t* rows,
    int64_t n,
    const int64_t* timestamps,
    const int64_t* arrivals,
    int64_t lowest,
    int64_t highest,
) except -1 nogil:
    # Number of rows taken; fewer than n where the next row's timestamp is out of bounds.
    cdef int64_t i, ahead
    cdef uint32_t row
    for i in range(n):
        ahead = i + LOOK_AHEAD
        if ahead < n:
            prefetch(&state.slots[keys.hashes[rows[ahead] if rows != NULL else ahead] & state.mask])
        row = rows[i] if rows != NULL else <uint32_t> i
        if timestamps[row] < lowest or timestamps[row] > highest:
            break
        _advance_clock(state, arrivals[row])
        _take_row(state, keys, row, timestamps[row])
    else:
        i = n
    state.events += i
    pending_flush(&state.pending, state.table)
    return i


# ---- Python's face -----------------------------------------------------------------------------------------------


@cython.final
cdef class SessionWindowOperator:
    """Aggregates rows in event-time session windows per key; fires as Flink's WindowOperator does.

    Follows `WindowOperator` with `EventTimeSessionWindows`, `MergingWindowSet` and `EventTimeTrigger`: sessions that touch
    merge, a row that is late by itself is kept where it merges into a live session. Where several sessions merge, their
    contents are concatenated by start (Flink leaves that order to its hash table), the new row comes last.

    Parameters
    ----------
    gap, allowed_lateness : int
        Milliseconds.
    keys : KeyEncoder
        Knows the key columns; encodes nothing here.
    accumulators : Accumulators
        The aggregates, owned by this operator from now on.
    key_names, aggregate_names : list of str
        Names of the result's columns.
    clocks, watermarks : numpy.ndarray of int64, shape (n_steps,)
        The timeline; clocks never go back, watermarks rise.
    time_format : str
        Arrow format of window_start and window_end: "l" or "tsm:ZONE".

    Raises
    ------
    ConfigurationError
        If the gap is not positive or the lateness is negative.
    """

    def __cinit__(
        self,
        *,
        int64_t gap,
        int64_t allowed_lateness,
        KeyEncoder keys not None,
        Accumulators accumulators not None,
        list key_names not None,
        list aggregate_names not None,
        clocks,
        watermarks,
        str time_format="l",
    ):
        cdef const int64_t[::1] clock_view, watermark_view
        if gap <= 0 or allowed_lateness < 0:
            raise ConfigurationError(
                f"session gap {gap} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
            )
        self._clocks = np.ascontiguousarray(clocks, dtype=np.int64)
        self._watermarks = np.ascontiguousarray(watermarks, dtype=np.int64)
        if len(self._clocks) != len(self._watermarks):
            raise ConfigurationError("the timeline needs as many clocks as watermarks")
        self._keys = keys
        self._accumulators = accumulators
        self._key_names = key_names
        self._aggregate_names = aggregate_names
        self._time_format = time_format
        self.state = <SessionState*> calloc(1, sizeof(SessionState))
        if self.state == NULL:
            raise MemoryError("session state")
        self.state.gap = gap
        self.state.lateness = allowed_lateness
        self.state.bytes_keys = keys.batch.kind == KEY_BYTES
        self.state.table = accumulators.table
        self.state.free_key = self.state.free_session = NOTHING
        clock_view = self._clocks
        watermark_view = self._watermarks
        self.state.cursor.steps = clock_view.shape[0]
        if clock_view.shape[0]:
            self.state.cursor.clocks = &clock_view[0]
            self.state.cursor.watermarks = &watermark_view[0]
        self.state.cursor.watermark = INT64_MIN
        with nogil:
            _resize_slots(self.state, 1024)

    def __dealloc__(self):
        cdef uint32_t i
        if self.state == NULL:
            return
        for i in range(self.state.n_keys):
            free(self.state.keys[i].data)
        free(self.state.keys)
        free(self.state.slots)
        free(self.state.sessions)
        free(self.state.timers)
        free(self.state.firing)
        free(self.state.late_rows)
        firings_free(&self.state.firings)
        free(self.state)

    def process(
        self,
        RecordBatch batch not None,
        KeyEncoder keys not None,
        rows,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] arrivals not None,
    ):
        """Take in rows of a batch, in total order.

        Parameters
        ----------
        batch : RecordBatch
            The columns that the aggregates read.
        keys : KeyEncoder
            Has encoded the keys of this batch.
        rows : numpy.ndarray of uint32 or None
            The rows to take, in total order; None: all, as they lie.
        timestamps, arrivals : numpy.ndarray of int64, shape (n_rows of the batch,)
            Milliseconds since the epoch; arrivals never go back along `rows`.

        Returns
        -------
        numpy.ndarray of uint32
            Rows that are late and merge into no live session, in order.

        Raises
        ------
        DataError
            If a timestamp is so close to an end of the int64 range that its session would overflow.
        """
        cdef const uint32_t[::1] chosen
        cdef const uint32_t* row_pointer = NULL
        cdef SessionState* state = self.state
        cdef int64_t n = batch.num_rows, taken, lowest, highest
        if timestamps.shape[0] != n or arrivals.shape[0] != n or keys.batch.length != n:
            raise ValueError("timestamps, arrivals and keys must have one value per row of the batch")
        if rows is not None:
            chosen = rows
            n = chosen.shape[0]
            if n:
                if np.max(rows) >= batch.num_rows:
                    raise IndexError("a row index is beyond the batch")
                row_pointer = &chosen[0]
        state.n_late_rows = 0
        if n:
            self._accumulators.bind(batch)
            lowest = INT64_MIN + 1
            highest = INT64_MAX - state.gap
            with nogil:
                taken = _process(
                    state, &keys.batch, row_pointer, n, &timestamps[0], &arrivals[0], lowest, highest
                )
            if taken < n:
                taken = rows[taken] if rows is not None else taken
                raise DataError(
                    f"row {taken}: the session of timestamp {timestamps[taken]} ms would overflow the int64 range; "
                    "correct the timestamp or drop the row"
                )
        late = np.empty(state.n_late_rows, dtype=np.uint32)
        cdef uint32_t[::1] late_view = late
        if state.n_late_rows:
            memcpy(&late_view[0], state.late_rows, state.n_late_rows * sizeof(uint32_t))
        return late

    def advance(self, int64_t arrival):
        """Walk the timeline up to what a row that arrives at this time (ms) would see; what is due fires."""
        with nogil:
            _advance_clock(self.state, arrival)

    def finish(self):
        """Walk the rest of the timeline: everything that is due fires."""
        with nogil:
            _advance_clock(self.state, INT64_MAX)
            while self.state.cursor.next < self.state.cursor.steps:  # steps at the end of the log
                self.state.cursor.watermark = self.state.cursor.watermarks[self.state.cursor.next]
                self.state.cursor.next += 1
                _advance_watermark(self.state)

    @property
    def rows_ready(self):
        """Number of result rows that `take` would give."""
        return self.state.firings.rows

    def take(self):
        """Give the results so far as one record batch (NativeArray), and start a new one.

        Columns: the keys, window_start, window_end, the aggregates, late_firing (bool), watermark (int64 ms).
        """
        return firings_take(
            &self.state.firings,
            self._keys,
            self._key_names,
            self._time_format,
            self._accumulators,
            self._aggregate_names,
        )

    def counts(self):
        """Counts so far: events = windowed + late; firings by kind."""
        return {
            "events": self.state.events,
            "windowed": self.state.windowed,
            "late": self.state.late,
            "in_no_window": 0,
            "on_time_firings": self.state.on_time_firings,
            "late_firings": self.state.late_firings,
        }

    @property
    def live_windows(self):
        """Number of sessions that hold state now."""
        return self.state.live_sessions

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; the minimum of int64 before the first."""
        return self.state.cursor.watermark

    def _check(self):
        """Assert every invariant of the state; for tests."""
        cdef SessionState* state = self.state
        cdef uint64_t at, occupied = 0
        cdef uint32_t number, previous, live = 0, armed = 0
        cdef int64_t i
        for at in range(state.mask + 1):
            if state.slots[at] == 0:
                continue
            occupied += 1
            previous = NOTHING
            number = state.keys[state.slots[at] - 1].first
            assert number != NOTHING, "a key without a session"
            while number != NOTHING:
                live += 1
                assert state.sessions[number].key == state.slots[at] - 1
                assert state.sessions[number].start < state.sessions[number].end
                assert previous == NOTHING or state.sessions[previous].end < state.sessions[number].start
                assert state.sessions[number].fired == (state.sessions[number].end - 1 <= state.cursor.watermark)
                assert state.sessions[number].due <= _next_action(state, &state.sessions[number])
                assert _next_action(state, &state.sessions[number]) > state.cursor.watermark, "a session outlived its time"
                previous = number
                number = state.sessions[number].next
        assert occupied == state.live_keys
        assert live == state.live_sessions, "a session was lost"
        for i in range(state.n_timers):
            assert i == 0 or not _earlier(&state.timers[i], &state.timers[(i - 1) >> 1]), "timer heap out of order"
            armed += state.sessions[state.timers[i].session].generation == state.timers[i].generation
        assert armed == live, "a session without its timer"
        assert state.pending.count == 0
        assert state.events == state.windowed + state.late, "an event was lost"

"""Event-time session windows over columns, with the default trigger.

Each session has one pending timer; where the session has moved on by the time that its timer is due, the timer is armed
again, so a row that only prolongs a session costs no heap operation.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.aggregates cimport (
    Accumulators,
    accumulators_emit,
    accumulators_merge,
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

cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil

cdef enum:
    LOOK_AHEAD = 16



cdef uint32_t* _grow_rows(uint32_t* rows, int64_t capacity) except NULL nogil:
    cdef uint32_t* grown = <uint32_t*> realloc(rows, capacity * sizeof(uint32_t))
    if grown == NULL:
        with gil:
            raise MemoryError(f"a list of {capacity} rows")
    return grown


cdef int _append_firing(SessionState* state, uint32_t number, bint late) except -1 nogil:
    cdef SessionKey* key = &state.store.keys[state.store.sessions[number].key]
    cdef int64_t[2] offsets
    if state.store.bytes_keys:
        offsets[0] = 0
        offsets[1] = key.length
        firings_append_bytes_keys(&state.firings, key.data, offsets, 1)
    else:
        firings_append_int64_keys(&state.firings, &key.value, 1)
    firings_append(
        &state.firings, state.store.sessions[number].start, state.store.sessions[number].end, late, state.cursor.watermark, 1
    )
    return 0


cdef int _emit_firing(SessionState* state) except -1 nogil:
    # Emits the sessions that a watermark has fired so far.
    cdef int64_t i
    if state.n_firing == 0:
        return 0
    accumulators_emit(state.store.table, state.firing, state.n_firing)
    for i in range(state.n_firing):
        _append_firing(state, state.firing[i], False)
    state.on_time_firings += state.n_firing
    if state.lateness == 0:
        for i in range(state.n_firing):
            session_retire(&state.store, state.firing[i])
    state.n_firing = 0
    return 0


cdef inline int64_t _next_action(const SessionState* state, const Session* session) noexcept nogil:
    return saturating_add(session.end - 1, state.lateness) if session.fired else session.end - 1


cdef int _arm(SessionState* state, uint32_t number) except -1 nogil:
    cdef Session* session = &state.store.sessions[number]
    session.generation += 1
    session.due = _next_action(state, session)
    return session_timer_push(&state.store, number, session.due)


cdef int _advance_watermark(SessionState* state) except -1 nogil:
    cdef int64_t watermark = state.cursor.watermark
    cdef SessionTimer timer
    cdef Session* session
    if state.store.n_timers == 0 or state.store.timers[0].due > watermark:
        return 0
    pending_flush(&state.pending, state.store.table)
    while state.store.n_timers and state.store.timers[0].due <= watermark:
        timer = session_timer_pop(&state.store)
        session = &state.store.sessions[timer.session]
        if session.generation != timer.generation:
            continue
        if _next_action(state, session) > timer.due:
            _arm(state, timer.session)
        elif session.fired:
            _emit_firing(state)
            session_retire(&state.store, timer.session)
        else:
            if state.n_firing == state.firing_capacity:
                state.firing = _grow_rows(state.firing, state.firing_capacity * 2 + 64)
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
    pending_flush(&state.pending, state.store.table)
    accumulators_emit(state.store.table, &number, 1)
    _append_firing(state, number, True)
    state.late_firings += 1
    return 0


# ---- rows --------------------------------------------------------------------------------------------------------


cdef int _add_late(SessionState* state, uint32_t row) except -1 nogil:
    if state.n_late_rows == state.late_rows_capacity:
        state.late_rows = _grow_rows(state.late_rows, state.late_rows_capacity * 2 + 64)
        state.late_rows_capacity = state.late_rows_capacity * 2 + 64
    state.late_rows[state.n_late_rows] = row
    state.n_late_rows += 1
    state.late += 1
    return 0


cdef int64_t _merged_session(SessionState* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
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
        pending_flush(&state.pending, state.store.table)
        accumulators_merge(state.store.table, number, other)
        session.end = max(session.end, state.store.sessions[other].end)
        session.next = state.store.sessions[other].next
        session_drop(&state.store, other)
    return number


cdef int64_t _new_session(SessionState* state, uint32_t key, int64_t start, int64_t end) except -1 nogil:
    cdef uint32_t number = <uint32_t> session_add(&state.store, key, start, end)
    cdef uint32_t* link = &state.store.keys[key].first
    while link[0] != NOTHING and state.store.sessions[link[0]].start < start:
        link = &state.store.sessions[link[0]].next
    state.store.sessions[number].next = link[0]
    link[0] = number
    return number


cdef int _take_row(SessionState* state, const KeyBatch* keys, uint32_t row, int64_t timestamp) except -1 nogil:
    # WindowOperator.processElement with a MergingWindowAssigner, for one row.
    cdef int64_t end = timestamp + state.gap, found = NOTHING
    cdef uint32_t key = session_key_find(&state.store, keys, row), number
    cdef Session* session
    if key != NOTHING:
        found = _merged_session(state, key, timestamp, end)
    if found == NOTHING:
        if saturating_add(end - 1, state.lateness) <= state.cursor.watermark:
            return _add_late(state, row)
        if key == NOTHING:
            key = <uint32_t> session_key_add(&state.store, keys, row)
        found = _new_session(state, key, timestamp, end)
        state.store.sessions[found].due = INT64_MAX
        state.store.sessions[found].fired = end - 1 <= state.cursor.watermark
        _arm(state, <uint32_t> found)
    number = <uint32_t> found
    session = &state.store.sessions[number]
    session.fired = session.end - 1 <= state.cursor.watermark
    if _next_action(state, session) < session.due:
        _arm(state, number)
    pending_add(&state.pending, state.store.table, number, row)
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
            prefetch(&state.store.slots[keys.hashes[rows[ahead] if rows != NULL else ahead] & state.store.mask])
        row = rows[i] if rows != NULL else <uint32_t> i
        if timestamps[row] < lowest or timestamps[row] > highest:
            break
        _advance_clock(state, arrivals[row])
        _take_row(state, keys, row, timestamps[row])
    else:
        i = n
    state.events += i
    pending_flush(&state.pending, state.store.table)
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
        self.state.store.bytes_keys = keys.batch.kind == KEY_BYTES
        self.state.store.table = accumulators.table
        self.state.store.free_key = self.state.store.free_session = NOTHING
        clock_view = self._clocks
        watermark_view = self._watermarks
        self.state.cursor.steps = clock_view.shape[0]
        if clock_view.shape[0]:
            self.state.cursor.clocks = &clock_view[0]
            self.state.cursor.watermarks = &watermark_view[0]
        self.state.cursor.watermark = INT64_MIN
        with nogil:
            session_keys_resize(&self.state.store, 1024)

    def __dealloc__(self):
        if self.state == NULL:
            return
        session_store_free(&self.state.store)
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
        return self.state.store.live_sessions

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
        for at in range(state.store.mask + 1):
            if state.store.slots[at] == 0:
                continue
            occupied += 1
            previous = NOTHING
            number = state.store.keys[state.store.slots[at] - 1].first
            assert number != NOTHING, "a key without a session"
            while number != NOTHING:
                live += 1
                assert state.store.sessions[number].key == state.store.slots[at] - 1
                assert state.store.sessions[number].start < state.store.sessions[number].end
                assert previous == NOTHING or state.store.sessions[previous].end < state.store.sessions[number].start
                assert state.store.sessions[number].fired == (state.store.sessions[number].end - 1 <= state.cursor.watermark)
                assert state.store.sessions[number].due <= _next_action(state, &state.store.sessions[number])
                assert _next_action(state, &state.store.sessions[number]) > state.cursor.watermark, "a session outlived its time"
                previous = number
                number = state.store.sessions[number].next
        assert occupied == state.store.live_keys
        assert live == state.store.live_sessions, "a session was lost"
        for i in range(state.store.n_timers):
            assert i == 0 or not session_timer_earlier(&state.store.timers[i], &state.store.timers[(i - 1) >> 1]), "timer heap out of order"
            armed += state.store.sessions[state.store.timers[i].session].generation == state.store.timers[i].generation
        assert armed == live, "a session without its timer"
        assert state.pending.count == 0
        assert state.events == state.windowed + state.late, "an event was lost"

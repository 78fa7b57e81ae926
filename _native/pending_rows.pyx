"""Rows that wait until the watermark reaches their timestamp, and then come by timestamp: the input of OVER.

Each row that waits is a timer of its key, whose namespace is the row's number; equal timestamps come key by key, and the rows of a key
in the order in which they arrived. What is late depends on the frame:

    unbounded   rows at or before the watermark
    bounded     rows at or before the last timestamp of their key that has come up; others are late for no frame yet, and come with
                the next watermark

A frame of time drops what it has of a key once no row can need it any more. That is a timer, too, which counts as one that has come up.

With a time to live, a timer of processing time forgets a key of which no row waits, as of KeyedProcessFunctionWithCleanupState: it is up to
half a time to live late, and is set again when a row of the key comes or comes up less than a time to live before it, or waits when it fires.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.key_expiry cimport cleanup_due, cleanup_period
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_append_int64, buffer_free, grow
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.relational cimport (
    NO_EVENT,
    RelationalCore,
    RelationalEvents,
    core_add,
    core_advance,
    core_counts,
    core_events,
    core_free,
    core_is_full,
    core_late,
    core_n_keys,
    core_open,
    core_process,
    core_take,
    core_take_late,
)
from flinkcore._native.timer_queue cimport (
    Timer,
    TimerOutcome,
    TimerQueue,
    timer_queue_add,
    timer_queue_clear,
    timer_queue_is_due,
    timer_queue_peek,
    timer_queue_poll,
)
from flinkcore._native.timers cimport TimerHeap
from flinkcore._native.window_operator cimport RowKind, saturating_add


cdef enum:
    CLEAN_UP = -1  # in place of a row's number: the time after which a frame of time forgets its key

cdef const char* WHAT = b"rows that wait for the watermark"


cdef struct PendingKey:
    int64_t last_ms      # the last timestamp that has come up; `first_ms` at first
    int64_t cleanup_ms   # INT64_MIN: none
    int64_t moment       # in which rows of the key have come up last
    uint32_t first       # the place of its first row in this moment
    int64_t due          # first processing time at which a timer has forgotten it; INT64_MIN: none
    int64_t n_waiting    # its rows that wait, if keys expire


cdef struct DueRow:
    uint64_t order       # key group and place of the key's first row
    uint64_t place
    int64_t row
    uint32_t key


cdef struct PendingState:
    RelationalCore core
    TimerQueue* timers
    bint bounded
    int64_t range_ms      # of a frame of time that is bounded, else -1
    PendingKey* keys
    int64_t n_keys
    int64_t keys_capacity
    int64_t moments
    DueRow* moment        # rows of one timestamp
    int64_t n_moment
    int64_t moment_done
    int64_t moment_capacity
    int64_t moment_ms
    int64_t first_ms
    int64_t n_clean_ups   # timers that are no row
    int64_t ttl_ms        # time to live of a key; 0: keys do not expire
    int64_t end_ms        # processing time at the end of the log
    const int64_t* arrivals
    Buffer cleared_before
    Buffer cleared_keys


# ---- what comes up -----------------------------------------------------------------------------------------------


cdef int _order(const void* a, const void* b) noexcept nogil:
    cdef const DueRow* left = <const DueRow*> a
    cdef const DueRow* right = <const DueRow*> b
    if left.order != right.order:
        return -1 if left.order < right.order else 1
    return -1 if left.place < right.place else 1


cdef int _reach(PendingState* state, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity, i
    if n_keys <= state.n_keys:
        return 0
    if n_keys > state.keys_capacity:
        capacity = max(n_keys, state.keys_capacity + (state.keys_capacity >> 1))
        state.keys = <PendingKey*> grow(state.keys, capacity * <int64_t> sizeof(PendingKey), WHAT)
        state.keys_capacity = capacity
    for i in range(state.n_keys, n_keys):
        state.keys[i] = PendingKey(state.first_ms, INT64_MIN, -1, 0, INT64_MIN, 0)
    state.n_keys = n_keys
    return 0


cdef int _add_to_moment(PendingState* state, const Timer* timer) except -1 nogil:
    cdef PendingKey* key = &state.keys[timer.key]
    cdef DueRow* row
    cdef int64_t capacity
    if state.n_moment == state.moment_capacity:
        capacity = 2 * state.moment_capacity + 64
        state.moment = <DueRow*> grow(state.moment, capacity * <int64_t> sizeof(DueRow), WHAT)
        state.moment_capacity = capacity
    if key.moment != state.moments:
        key.moment = state.moments
        key.first = <uint32_t> state.n_moment
    row = &state.moment[state.n_moment]
    row.order = <uint64_t> timer.key_group << 32 | key.first
    row.place = <uint64_t> state.n_moment
    row.row = timer.namespace_id
    row.key = <uint32_t> timer.key
    state.n_moment += 1
    state.n_clean_ups -= row.row == CLEAN_UP
    return 0


cdef int _find_moment(PendingState* state) except -1 nogil:
    # Takes all timers of the earliest time.
    cdef const Timer* head = timer_queue_peek(state.timers)
    cdef Timer timer
    state.moments += 1
    state.n_moment = state.moment_done = 0
    state.moment_ms = head.timestamp_ms
    while head != NULL and head.timestamp_ms == state.moment_ms:
        _add_to_moment(state, head)
        timer_queue_poll(state.timers, &timer)
        state.core.timers_fired += 1
        head = timer_queue_peek(state.timers)
    if state.n_moment > 1:
        qsort(state.moment, state.n_moment, sizeof(DueRow), _order)
    return 0


cdef int _clear(PendingState* state, uint32_t key) except -1 nogil:
    buffer_append_int64(&state.cleared_before, state.core.n_results)
    (<uint32_t*> buffer_append(&state.cleared_keys, 4))[0] = key
    state.keys[key].last_ms = state.first_ms
    return 0


cdef bint _has_expired(PendingState* state, uint32_t key_id, int64_t now) noexcept nogil:
    # Lets the timer of a key fire as often as it has until now. Returns whether it has forgotten the key.
    cdef PendingKey* key = &state.keys[key_id]
    cdef int64_t period = cleanup_period(state.ttl_ms)
    if key.due == INT64_MIN or key.due > now:
        return False
    if key.n_waiting:
        key.due += ((now - key.due) // period + 1) * period
        return False
    key.due = INT64_MIN
    return True


cdef int _touch(PendingState* state, uint32_t key_id, int64_t now) except -1 nogil:
    if _has_expired(state, key_id, now):
        _clear(state, key_id)
    state.keys[key_id].due = cleanup_due(state.keys[key_id].due, state.ttl_ms, now)
    return 0


cdef int _come_up(PendingState* state, const DueRow* row) except -1 nogil:
    cdef PendingKey* key = &state.keys[row.key]
    if state.ttl_ms:
        _touch(state, row.key, min(state.core.cursor.clock, state.end_ms))
        key.n_waiting -= 1
    if row.row != CLEAN_UP:
        core_add(
            &state.core, row.row, NO_EVENT, row.key, state.moment_ms, RowKind.INSERT
        ).fired = state.moment_ms
    elif key.cleanup_ms <= state.moment_ms:
        # No row of the key waits: each has put the time of its clean-up off beyond itself.
        _clear(state, row.key)
        key.cleanup_ms = INT64_MIN
        return 0
    # As in RowTimeRangeBoundedPrecedingFunction.onTimer, also at a time of clean-up that has been put off since.
    key.last_ms = state.moment_ms
    return 0


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    # Lets come up what is due at the watermark in force; a key's rows of one timestamp stay together.
    cdef PendingState* state = <PendingState*> core
    cdef const DueRow* row
    state.core.due = True
    while True:
        while state.moment_done < state.n_moment:
            row = &state.moment[state.moment_done]
            if core_is_full(&state.core) and (
                state.moment_done == 0 or state.moment[state.moment_done - 1].key != row.key
            ):
                return False
            _come_up(state, row)
            state.moment_done += 1
        if not timer_queue_is_due(state.timers, state.core.cursor.watermark):
            break
        _find_moment(state)
    state.core.due = False
    return True


# ---- rows that come in -------------------------------------------------------------------------------------------


cdef inline bint _is_late(const PendingState* state, uint32_t key, int64_t timestamp) noexcept nogil:
    if state.bounded:
        return timestamp <= state.keys[key].last_ms
    return timestamp <= state.core.cursor.watermark


cdef int _put_off_clean_up(PendingState* state, uint32_t key, int32_t key_group, int64_t timestamp) except -1 nogil:
    # RowTimeRangeBoundedPrecedingFunction.registerCleanupTimer: half a frame later than necessary, so that not every row sets a timer.
    cdef int64_t least = saturating_add(saturating_add(timestamp, state.range_ms), 1)
    if state.keys[key].cleanup_ms == INT64_MIN or state.keys[key].cleanup_ms < least:
        state.keys[key].cleanup_ms = saturating_add(least, state.range_ms >> 1)
        if timer_queue_add(state.timers, state.keys[key].cleanup_ms, key, key_group, CLEAN_UP) != TimerOutcome.TIMER_UNCHANGED:
            state.n_clean_ups += 1
    return 0


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef PendingState* state = <PendingState*> core
    cdef int64_t i
    cdef uint32_t key
    _reach(state, core_n_keys(events, first))
    for i in range(first, events.n):
        if core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False):
            return i
        key = events.key_ids[i]
        if state.ttl_ms:
            _touch(state, key, state.arrivals[i])
        if _is_late(state, key, events.timestamps[i]):
            core_late(core, i)
            continue
        state.core.processed += 1
        state.keys[key].n_waiting += state.ttl_ms > 0
        timer_queue_add(state.timers, events.timestamps[i], key, events.key_groups[i], events.rows[i])
        if state.range_ms >= 0:
            _put_off_clean_up(state, key, events.key_groups[i], events.timestamps[i])
    return events.n


# ---- the rows for Python -----------------------------------------------------------------------------------------


cdef object _taken(Buffer* buffer, object dtype):
    # The content of a buffer, which is empty afterwards, as an array.
    cdef char[::1] out
    array = np.empty(buffer.size // dtype.itemsize, dtype)
    if buffer.size:
        out = array.view(np.int8)
        memcpy(&out[0], buffer.data, buffer.size)
    buffer_free(buffer)
    return array


_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)


@cython.final
cdef class PendingRows:
    """Rows that wait until the watermark reaches their timestamp; see `RelationalKernel` for its verbs.

    Follows Flink's AbstractRowTimeUnboundedPrecedingOver and RowTimeRowsBoundedPrecedingFunction, and with `range_ms`
    RowTimeRangeBoundedPrecedingFunction. Rows that a watermark lets through come by timestamp across keys, also without a bound, where
    Flink's come key by key. As in Flink, a bounded frame drops timestamps up to 0, and a sort does not.

    Parameters
    ----------
    timeline : PackedSteps
        Steps of the timeline.
    max_parallelism : int
        Number of key groups.
    key_groups : (int, int)
        First and last key group of the rows.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most results that may wait; a key's rows of one timestamp stay together.
    bounded : bool
        Whether only rows are late that come at or before the last timestamp of their key that has come up.
    range_ms : int or None
        Length of a bounded frame of time in ms, whose keys are forgotten in time.
    first_ms : int
        Timestamp up to which rows of a bounded frame are dropped before one has come up: 0 for OVER, -2**63 for a sort, as in Flink's
        RowTimeSortOperator.
    ttl_ms : int
        Time to live of the frames of a key, in ms of processing time; 0 if keys do not expire. Not with `range_ms`.
    end_ms : int
        Processing time at the end of the log, in ms since the epoch.

    Raises
    ------
    ConfigurationError
        If a limit, the time to live or the steps done are out of their range.
    """

    cdef CallGuard guard
    cdef TimerHeap _timers
    cdef PackedSteps _timeline
    cdef PendingState state

    def __cinit__(
        self, PackedSteps timeline not None, *, int max_parallelism, tuple key_groups not None, int64_t steps_done,
        int64_t result_limit, bint bounded, range_ms=None, int64_t first_ms=0,
        int64_t ttl_ms=0, int64_t end_ms=0,
    ):
        if range_ms is not None and (range_ms < 0 or not bounded):
            raise ConfigurationError(f"a bounded frame that goes back {range_ms} ms: the time must not be negative")
        if not 0 <= ttl_ms <= 1 << 61 or (ttl_ms and range_ms is not None):
            raise ConfigurationError(f"a time to live of {ttl_ms} ms: it must be from 0 to 2**61, and frames of time have none")
        self.state.ttl_ms = ttl_ms
        self.state.end_ms = end_ms
        self._timeline = timeline
        self._timers = TimerHeap(max_parallelism, key_groups)
        self.state.timers = &self._timers.queue
        self.state.bounded = bounded
        self.state.first_ms = first_ms
        self.state.range_ms = -1 if range_ms is None else range_ms
        core_open(&self.state.core, timeline, steps_done, result_limit, False, False, False)
        if ttl_ms:
            self.state.core.cursor.n_dated = INT64_MAX  # the clocks of all steps are read

    def __dealloc__(self):
        core_free(&self.state.core)
        free(self.state.keys)
        free(self.state.moment)
        buffer_free(&self.state.cleared_before)
        buffer_free(&self.state.cleared_keys)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int8_t[::1] inputs,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const int64_t[::1] arrivals=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        arrivals : int64 array (n,) or None
            Processing times in ms since the epoch, if keys expire.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef RelationalEvents events
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        if self.state.ttl_ms and (arrivals is None or arrivals.shape[0] != events.n):
            raise ValueError("each row needs its arrival")
        self.state.arrivals = &arrivals[0] if self.state.ttl_ms and events.n else NULL
        return core_process(&self.state.core, _take_events, &events, first)

    cdef bint _walk(self, int64_t steps_before, bint to_end) except -1:
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef bint done
        with nogil:
            done = core_advance(&self.state.core, _fire_due, steps_before, to_end)
        return done

    def advance(self, int64_t steps_before):
        """Let come up what so many steps make due. Returns false if results are full before: take them, and call again."""
        return self._walk(steps_before, False)

    def finish(self):
        """Let come up what the end of the log makes due. Returns false if results are full before: take them, and call again."""
        return self._walk(INT64_MAX, True)

    @property
    def is_full(self):
        """True if results must be taken before the next event."""
        return core_is_full(&self.state.core)

    def take(self):
        """Return the rows that have come up, as KernelResults: by timestamp, key by key, and as they arrived."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take(&self.state.core)

    def take_late(self):
        """Return the indexes of the events of the last call of `process` that were late: numpy.ndarray of int64."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take_late(&self.state.core)

    def take_cleared(self):
        """Return keys whose frames are to be forgotten, called before `take`.

        Returns
        -------
        (numpy.ndarray of int64, numpy.ndarray of uint32), shape (n,) each
            The place of each among the results, before which it happens, and the id of the key.
        """
        cdef Call call = begin_call(&self.guard, self)
        return _taken(&self.state.cleared_before, _INT64), _taken(&self.state.cleared_keys, _UINT32)

    def expire(self, int64_t now):
        """Forget the keys that have expired at a processing time, and return their ids as a uint32 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        cdef uint32_t[::1] found = np.empty(self.state.n_keys, np.uint32)
        with nogil:
            for key in range(self.state.n_keys):
                if _has_expired(&self.state, <uint32_t> key, now):
                    self.state.keys[key].last_ms = self.state.first_ms
                    found[n] = <uint32_t> key
                    n += 1
        return found.base[:n].copy()

    def counts(self):
        """Return how many events it has taken in and timers have fired, by their names in the report."""
        check_no_call(&self.guard, self)
        return core_counts(&self.state.core)

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        return self.state.core.cursor.watermark

    def memory_bytes(self):
        """Bytes that its state takes, without rows and keys, and about 80 for a timer."""
        check_no_call(&self.guard, self)
        return (
            self.state.keys_capacity * <int64_t> sizeof(PendingKey)
            + self.state.moment_capacity * <int64_t> sizeof(DueRow)
            + 80 * <int64_t> self.state.timers.size
        )

    @property
    def live_count(self):
        """Number of rows that wait."""
        return self.state.timers.size - self.state.n_clean_ups

    def live_rows(self):
        """Return the numbers of the rows that wait, as an int64 array, in the order in which they came."""
        check_no_call(&self.guard, self)
        namespaces = self._timers.timers().namespaces
        return namespaces[namespaces != CLEAN_UP]

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers
        cdef int64_t i, at = 0, row
        timers = self._timers.timers()
        cdef const int64_t[::1] times = timers.timestamps_ms
        cdef const int64_t[::1] keys = timers.keys
        cdef const int32_t[::1] groups = timers.key_groups
        cdef const int64_t[::1] old = timers.namespaces
        if self.state.core.due or rows.shape[0] != self.state.timers.size - self.state.n_clean_ups:
            raise ValueError(f"{rows.shape[0]} numbers for the rows that wait, or results wait, too")
        of_timers = begin_call(&self._timers.guard, self._timers)
        with nogil:
            timer_queue_clear(self.state.timers)
            for i in range(times.shape[0]):
                row = old[i]
                if row != CLEAN_UP:
                    row = rows[at]
                    at += 1
                timer_queue_add(self.state.timers, times[i], keys[i], groups[i], row)

    def snapshot(self):
        """Return its state as columns by table.

        `pending` has the rows that wait and times of clean-up (`row` -1) in order of registration: `key`, `row` and `timestamp`.
        `times` has `key`, `last` (the last timestamp of the key that has come up) and `cleanup` (-2**63: none); `expiry`, which is
        there if keys expire, has `key` and `due`, the first processing time at which a timer has forgotten it.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        cdef const PendingKey* known
        for key in range(self.state.n_keys if self.state.bounded else 0):
            known = &self.state.keys[key]
            n += known.last_ms != self.state.first_ms or known.cleanup_ms != INT64_MIN
        cdef int64_t[:, ::1] columns = np.empty((3, n), np.int64)
        timers = self._timers.timers()
        n = 0
        for key in range(self.state.n_keys if columns.shape[1] else 0):
            known = &self.state.keys[key]
            if known.last_ms != self.state.first_ms or known.cleanup_ms != INT64_MIN:
                columns[0, n] = key
                columns[1, n] = known.last_ms
                columns[2, n] = known.cleanup_ms
                n += 1
        keys, last, cleanup = columns.base
        tables = {
            "pending": {"key": timers.keys, "row": timers.namespaces, "timestamp": timers.timestamps_ms},
            "times": {"key": keys, "last": last, "cleanup": cleanup},
        }
        if self.state.ttl_ms:
            due = np.array([self.state.keys[key].due for key in range(self.state.n_keys)], np.int64)
            keys = np.flatnonzero(due != INT64_MIN)
            tables["expiry"] = {"key": keys, "due": due[keys]}
        return tables

    cdef int _restore_rows(
        self, const int64_t[::1] keys, const int32_t[::1] key_groups, const int64_t[::1] rows, const int64_t[::1] timestamps
    ) except -1:
        cdef int64_t i
        low, high = self._timers.key_group_range
        for i in range(keys.shape[0]):
            if not low <= key_groups[i] <= high or (
                timer_queue_add(self.state.timers, timestamps[i], keys[i], key_groups[i], rows[i]) == TimerOutcome.TIMER_UNCHANGED
            ):
                raise SchemaError(f"row {i} of the rows that wait is there twice, or of another partition")
            self.state.n_clean_ups += rows[i] == CLEAN_UP
            self.state.keys[keys[i]].n_waiting += self.state.ttl_ms > 0
        return 0

    def restore(
        self, str table not None, const int64_t[::1] keys not None, const int32_t[::1] key_groups not None, rows, columns not None
    ):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first event.

        Raises
        ------
        SchemaError
            If it is no state of such an operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        cdef const int64_t[::1] last
        cdef const int64_t[::1] cleanup
        if keys.shape[0]:
            _reach(&self.state, np.max(keys) + 1)
        if table == "pending":
            self._restore_rows(keys, key_groups, rows["row"], columns.column("timestamp").to_numpy())
            return
        if table == "expiry" and self.state.ttl_ms:
            last = columns.column("due").to_numpy()
            for i in range(keys.shape[0]):
                self.state.keys[keys[i]].due = last[i]
            return
        last = columns.column("last").to_numpy()
        cleanup = columns.column("cleanup").to_numpy()
        for i in range(keys.shape[0]):
            self.state.keys[keys[i]].last_ms = last[i]
            self.state.keys[keys[i]].cleanup_ms = cleanup[i]

    def _check(self):
        """Assert its invariants."""
        self._timers._check()
        assert self.state.core.due or self.state.moment_done == self.state.n_moment, "rows were left behind"
        assert np.count_nonzero(self._timers.timers().namespaces == CLEAN_UP) == self.state.n_clean_ups

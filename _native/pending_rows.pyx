"""Rows that wait until the watermark reaches their timestamp, and then come by timestamp: the input of OVER.

Each row that waits is a timer of its key, whose namespace is the row's number; equal timestamps come key by key, and the rows of a key
in the order in which they arrived. What is late depends on the frame:

    unbounded   rows at or before the watermark
    bounded     rows at or before the last timestamp of their key that has come up; others are late for no frame yet, and come with
                the next watermark

A frame of time drops what it has of a key once no row can need it any more. That is a timer, too, which counts as one that has come up.
"""

from collections import namedtuple

import numpy as np

import cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_append_int64, buffer_free, grow
from flinkcore._native.packed_steps cimport CLOCKS, WATERMARKS, PackedSteps, steps_close, steps_open, steps_watermark_after
from flinkcore._native.timer_queue cimport (
    Timer,
    TimerQueue,
    timer_queue_add,
    timer_queue_clear,
    timer_queue_peek,
    timer_queue_poll,
)
from flinkcore._native.timers cimport TimerHeap
from flinkcore._native.window_operator cimport (
    TimelineCursor,
    cursor_find_next,
    cursor_has_step,
    cursor_step,
    saturating_add,
)


cdef enum:
    CLEAN_UP = -1  # in place of a row's number: the time after which a frame of time forgets its key
    SIGNALS = 1 << 16

cdef const char* WHAT = b"rows that wait for the watermark"


DueRows = namedtuple(
    "DueRows", ("rows", "key_ids", "key_groups", "timestamps", "steps", "cleared_before", "cleared_keys")
)
KeyTimes = namedtuple("KeyTimes", ("key_ids", "last_ms", "cleanup_ms"))


cdef struct PendingKey:
    int64_t last_ms      # the last timestamp that has come up; 0 at first, as in Flink
    int64_t cleanup_ms   # INT64_MIN: none
    int64_t moment       # in which rows of the key have come up last
    uint32_t first       # the place of its first row in this moment


cdef struct DueRow:
    uint64_t order       # key group and place of the key's first row
    uint64_t place
    int64_t row
    uint32_t key
    int32_t key_group


cdef struct PendingState:
    TimelineCursor cursor
    TimerQueue* timers
    bint bounded
    int64_t range_ms      # of a frame of time that is bounded, else -1
    int64_t row_limit
    PendingKey* keys
    int64_t n_keys
    int64_t keys_capacity
    bint due              # results were full before all had come up that the watermark allows
    int64_t step          # that made the watermark
    int64_t moments
    DueRow* moment        # rows of one timestamp
    int64_t n_moment
    int64_t moment_done
    int64_t moment_capacity
    int64_t moment_ms
    int64_t n_rows        # results
    Buffer rows
    Buffer key_ids
    Buffer key_groups
    Buffer timestamps
    Buffer steps
    Buffer cleared_before
    Buffer cleared_keys
    Buffer late
    int64_t events
    int64_t n_late
    int64_t turns


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
        state.keys[i] = PendingKey(0, INT64_MIN, -1, 0)
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
    row.key_group = timer.key_group
    state.n_moment += 1
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
        head = timer_queue_peek(state.timers)
    if state.n_moment > 1:
        qsort(state.moment, state.n_moment, sizeof(DueRow), _order)
    return 0


cdef int _append(PendingState* state, const DueRow* row) except -1 nogil:
    buffer_append_int64(&state.rows, row.row)
    (<uint32_t*> buffer_append(&state.key_ids, 4))[0] = row.key
    (<int32_t*> buffer_append(&state.key_groups, 4))[0] = row.key_group
    buffer_append_int64(&state.timestamps, state.moment_ms)
    buffer_append_int64(&state.steps, state.step)
    state.n_rows += 1
    return 0


cdef int _come_up(PendingState* state, const DueRow* row) except -1 nogil:
    cdef PendingKey* key = &state.keys[row.key]
    if row.row != CLEAN_UP:
        _append(state, row)
    elif key.cleanup_ms <= state.moment_ms:
        # No row of the key waits: each has put the time of its clean-up off beyond itself.
        buffer_append_int64(&state.cleared_before, state.n_rows)
        (<uint32_t*> buffer_append(&state.cleared_keys, 4))[0] = row.key
        key.cleanup_ms = INT64_MIN
        key.last_ms = 0
        return 0
    # As in RowTimeRangeBoundedPrecedingFunction.onTimer, also at a time of clean-up that has been put off since.
    key.last_ms = state.moment_ms
    return 0


cdef bint _fire(PendingState* state) except -1 nogil:
    # Lets come up what is due at the watermark in force. Returns false if results are full before; a key's rows of one timestamp stay
    # together.
    cdef const Timer* head
    cdef const DueRow* row
    state.due = True
    while True:
        while state.moment_done < state.n_moment:
            row = &state.moment[state.moment_done]
            if state.n_rows >= state.row_limit and (
                state.moment_done == 0 or state.moment[state.moment_done - 1].key != row.key
            ):
                return False
            _come_up(state, row)
            state.moment_done += 1
        head = timer_queue_peek(state.timers)
        if head == NULL or head.timestamp_ms > state.cursor.watermark:
            break
        _find_moment(state)
    state.due = False
    return True


cdef bint _advance(PendingState* state, int64_t steps_before, bint to_end) except -1 nogil:
    if state.due and not _fire(state):
        return False
    while cursor_has_step(&state.cursor, steps_before, to_end):
        state.turns += 1
        if state.turns % SIGNALS == 0:
            with gil:
                PyErr_CheckSignals()
        state.step = cursor_step(&state.cursor)
        if not _fire(state):
            return False
    return True


# ---- rows that come in -------------------------------------------------------------------------------------------


cdef inline bint _is_late(const PendingState* state, uint32_t key, int64_t timestamp) noexcept nogil:
    if state.bounded:
        return timestamp <= state.keys[key].last_ms
    return timestamp <= state.cursor.watermark


cdef int _put_off_clean_up(PendingState* state, uint32_t key, int32_t key_group, int64_t timestamp) except -1 nogil:
    # RowTimeRangeBoundedPrecedingFunction.registerCleanupTimer: half a frame later than necessary, so that not every row sets a timer.
    cdef int64_t least = saturating_add(saturating_add(timestamp, state.range_ms), 1)
    if state.keys[key].cleanup_ms == INT64_MIN or state.keys[key].cleanup_ms < least:
        state.keys[key].cleanup_ms = saturating_add(least, state.range_ms >> 1)
        timer_queue_add(state.timers, state.keys[key].cleanup_ms, key, key_group, CLEAN_UP)
    return 0


cdef struct ArrivedRows:
    int64_t n
    const uint32_t* key_ids
    const int32_t* key_groups
    const int64_t* rows
    const int64_t* timestamps
    const int64_t* steps


cdef int64_t _process(PendingState* state, const ArrivedRows* rows, int64_t first) except -1 nogil:
    cdef int64_t i
    cdef uint32_t key
    for i in range(first, rows.n):
        if not _advance(state, rows.steps[i], False):
            return i
        key = rows.key_ids[i]
        state.events += 1
        if _is_late(state, key, rows.timestamps[i]):
            buffer_append_int64(&state.late, i)
            state.n_late += 1
            continue
        timer_queue_add(state.timers, rows.timestamps[i], key, rows.key_groups[i], rows.rows[i])
        if state.range_ms >= 0:
            _put_off_clean_up(state, key, rows.key_groups[i], rows.timestamps[i])
    return rows.n


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


_INT64, _INT32, _UINT32 = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint32)


@cython.final
cdef class PendingRows:
    """Rows that wait until the watermark reaches their timestamp.

    Follows Flink's AbstractRowTimeUnboundedPrecedingOver and RowTimeRowsBoundedPrecedingFunction, and with `range_ms`
    RowTimeRangeBoundedPrecedingFunction; rows that a watermark lets through come by timestamp across keys, also without a bound, where
    Flink's come key by key. As in Flink, a bounded frame drops timestamps up to 0.

    Parameters
    ----------
    timeline : PackedSteps
        Steps of the timeline.
    max_parallelism : int
        Number of key groups.
    key_groups : (int, int)
        First and last key group of the rows.
    bounded : bool
        Whether only rows are late that come at or before the last timestamp of their key that has come up.
    range_ms : int or None
        Length of a bounded frame of time in ms, whose keys are forgotten in time.
    row_limit : int
        So many rows that have come up may wait to be taken; a key's rows of one timestamp stay together.
    steps_done : int
        Number of steps before the first row, if the operator resumes from a checkpoint.

    Raises
    ------
    ConfigurationError
        If a limit or the steps done are out of their range.
    """

    cdef CallGuard guard
    cdef TimerHeap _timers
    cdef PackedSteps _timeline
    cdef PendingState state

    def __cinit__(
        self, PackedSteps timeline not None, *, int max_parallelism, tuple key_groups not None, bint bounded, range_ms=None,
        int64_t row_limit, int64_t steps_done=0,
    ):
        cdef TimelineCursor* cursor = &self.state.cursor
        if row_limit <= 0:
            raise ConfigurationError(f"results are limited to {row_limit} rows: the limit must be positive")
        if range_ms is not None and (range_ms < 0 or not bounded):
            raise ConfigurationError(f"a bounded frame that goes back {range_ms} ms: the time must not be negative")
        if not 0 <= steps_done <= timeline.view.n:
            raise ConfigurationError(f"{steps_done} of {timeline.view.n} steps of the timeline cannot be done")
        self._timeline = timeline
        self._timers = TimerHeap(max_parallelism, key_groups)
        self.state.timers = &self._timers.queue
        self.state.bounded = bounded
        self.state.range_ms = -1 if range_ms is None else range_ms
        self.state.row_limit = row_limit
        steps_open(&cursor.steps, &timeline.view, CLOCKS | WATERMARKS)
        cursor.n_steps = timeline.view.n
        cursor.watermark = steps_watermark_after(&cursor.steps, steps_done)
        cursor.clock = INT64_MIN
        cursor.next = steps_done
        self.state.step = steps_done - 1
        cursor_find_next(cursor)

    def __dealloc__(self):
        cdef PendingState* state = &self.state
        steps_close(&state.cursor.steps)
        free(state.keys)
        free(state.moment)
        buffer_free(&state.rows)
        buffer_free(&state.key_ids)
        buffer_free(&state.key_groups)
        buffer_free(&state.timestamps)
        buffer_free(&state.steps)
        buffer_free(&state.cleared_before)
        buffer_free(&state.cleared_keys)
        buffer_free(&state.late)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        int64_t first=0,
    ):
        """Take in rows in total order until results are full.

        Parameters
        ----------
        key_ids, key_groups : numpy.ndarray of uint32 and int32, shape (n,)
            Dense ids of the keys, and their key groups, which are in the range.
        rows : numpy.ndarray of int64, shape (n,)
            Numbers of the rows, from 0 on, different among those that wait.
        timestamps : numpy.ndarray of int64, shape (n,)
            Milliseconds since the epoch.
        steps : numpy.ndarray of int64, shape (n,)
            Number of steps of the timeline before each row.
        first : int
            Number of rows that an earlier call has taken in.

        Returns
        -------
        int
            Number of rows taken in so far. Below n, results are full: take them, and continue with this number as `first`.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef ArrivedRows arrived
        cdef int64_t n = key_ids.shape[0], taken
        if not n == key_groups.shape[0] == rows.shape[0] == timestamps.shape[0] == steps.shape[0]:
            raise ValueError("key ids, key groups, numbers, timestamps and steps must have one value per row")
        if not 0 <= first <= n:
            raise IndexError(f"row number {first} of {n}")
        if first == n:
            return n
        low, high = self._timers.key_group_range
        if np.min(key_groups) < low or np.max(key_groups) > high:
            raise ValueError(f"a row has a key group beyond {low} to {high}")
        _reach(&self.state, <int64_t> np.max(key_ids) + 1)
        arrived = ArrivedRows(n, &key_ids[0], &key_groups[0], &rows[0], &timestamps[0], &steps[0])
        with nogil:
            taken = _process(&self.state, &arrived, first)
        return taken

    cdef bint _walk(self, int64_t steps_before, bint to_end) except -1:
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef bint done
        with nogil:
            done = _advance(&self.state, steps_before, to_end)
        return done

    def advance(self, int64_t steps_before):
        """Advance until so many steps of the timeline are done.

        Returns
        -------
        bool
            False if results are full before that: take them, and call again.
        """
        return self._walk(steps_before, False)

    def finish(self):
        """Advance to the end of the timeline; as `advance`."""
        return self._walk(INT64_MAX, True)

    @property
    def is_full(self):
        """True if results must be taken before more can come."""
        return self.state.due or self.state.n_rows >= self.state.row_limit

    @property
    def rows_ready(self):
        """Number of rows, and of keys to clear, that `take` would return."""
        return self.state.n_rows + (self.state.cleared_before.size >> 3)

    def take(self):
        """Return the rows that have come up so far, in order, and begin anew.

        Returns
        -------
        DueRows
            `rows` (int64), their numbers; `key_ids` (uint32), `key_groups` (int32), `timestamps` (int64), and `steps` (int64), the step
            that let each come up; `cleared_before` (int64) and `cleared_keys` (uint32), keys to forget, each before the row at this
            place.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef PendingState* state = &self.state
        state.n_rows = 0
        return DueRows(
            _taken(&state.rows, _INT64),
            _taken(&state.key_ids, _UINT32),
            _taken(&state.key_groups, _INT32),
            _taken(&state.timestamps, _INT64),
            _taken(&state.steps, _INT64),
            _taken(&state.cleared_before, _INT64),
            _taken(&state.cleared_keys, _UINT32),
        )

    def take_late(self):
        """Return the places of late rows in the batches that they came with (numpy.ndarray of int64): ask after each batch."""
        cdef Call call = begin_call(&self.guard, self)
        return _taken(&self.state.late, _INT64)

    def counts(self):
        """Counts so far of `events`, and of the `late` ones among them."""
        check_no_call(&self.guard, self)
        return {"events": self.state.events, "late": self.state.n_late}

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; the minimum of int64 before the first."""
        return self.state.cursor.watermark

    # ---- rows that wait ----

    def __len__(self):
        """Number of timers, of rows and of clean-ups."""
        return self._timers.size()

    def live_rows(self):
        """Return the numbers of the rows that wait (numpy.ndarray of int64), in the order in which they came."""
        namespaces = self._timers.timers().namespaces
        return namespaces[namespaces != CLEAN_UP]

    def renumber(self, const int64_t[::1] rows not None):
        """Give the rows that wait new numbers, in the order of `live_rows`; no results may wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef PendingState* state = &self.state
        cdef int64_t i, at = 0
        if state.due or state.n_rows:
            raise RuntimeError("results wait that have the old numbers")
        timers = self._timers.timers()
        cdef const int64_t[::1] times = timers.timestamps_ms
        cdef const int64_t[::1] keys = timers.keys
        cdef const int32_t[::1] groups = timers.key_groups
        cdef const int64_t[::1] old = timers.namespaces
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        if rows.shape[0] != np.count_nonzero(timers.namespaces != CLEAN_UP):
            raise ValueError(f"{rows.shape[0]} numbers for the rows that wait")
        timer_queue_clear(state.timers)
        for i in range(times.shape[0]):
            if old[i] == CLEAN_UP:
                timer_queue_add(state.timers, times[i], keys[i], groups[i], CLEAN_UP)
            else:
                timer_queue_add(state.timers, times[i], keys[i], groups[i], rows[at])
                at += 1

    def timers(self):
        """Return the rows that wait as timers: see `TimerHeap.snapshot`; the namespace is a row's number, or -1 of a clean-up."""
        return self._timers.snapshot()

    def key_times(self):
        """Return the times of keys that are not those of a new key.

        Returns
        -------
        KeyTimes
            `key_ids` (uint32); `last_ms` (int64), the last timestamp that has come up; `cleanup_ms` (int64), -2**63: none.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef PendingState* state = &self.state
        cdef int64_t i, at = 0, n = 0
        cdef uint32_t[::1] ids
        cdef int64_t[::1] last, cleanup
        if state.bounded:
            for i in range(state.n_keys):
                n += state.keys[i].last_ms != 0 or state.keys[i].cleanup_ms != INT64_MIN
        ids, last, cleanup = np.empty(n, np.uint32), np.empty(n, np.int64), np.empty(n, np.int64)
        for i in range(state.n_keys if n else 0):
            if state.keys[i].last_ms != 0 or state.keys[i].cleanup_ms != INT64_MIN:
                ids[at] = <uint32_t> i
                last[at] = state.keys[i].last_ms
                cleanup[at] = state.keys[i].cleanup_ms
                at += 1
        return KeyTimes(ids.base, last.base, cleanup.base)

    def restore(self, timers, times, const int32_t[::1] key_groups not None):
        """Restore, before any row, what waited in an operator after the same steps of the timeline.

        Parameters
        ----------
        timers : object with `__arrow_c_array__`
            As of `timers`, with the ids and numbers that keys and rows have now.
        times : KeyTimes
            As of `key_times`.
        key_groups : numpy.ndarray of int32, shape (n_keys,)
            Key groups of all keys, by id.

        Raises
        ------
        SchemaError
            If a timer is one of a key that does not exist, or is there twice.
        """
        cdef int64_t i
        cdef const uint32_t[::1] ids = times.key_ids
        cdef const int64_t[::1] last = times.last_ms
        cdef const int64_t[::1] cleanup = times.cleanup_ms
        cdef const int64_t[::1] keys
        _reach(&self.state, key_groups.shape[0])
        before = self._timers.size()
        added = self._timers.restore(timers)
        keys = self._timers.timers().keys
        for i in range(keys.shape[0]):
            if not 0 <= keys[i] < key_groups.shape[0]:
                raise SchemaError(f"a row of a checkpoint waits for key {keys[i]}, of {key_groups.shape[0]}")
        if self._timers.size() != before + added:
            raise SchemaError("a row of a checkpoint waits twice")
        for i in range(ids.shape[0]):
            if ids[i] >= key_groups.shape[0]:
                raise SchemaError(f"a checkpoint has times of key {ids[i]}, of {key_groups.shape[0]}")
            self.state.keys[ids[i]].last_ms = last[i]
            self.state.keys[ids[i]].cleanup_ms = cleanup[i]

    def memory_bytes(self):
        """Bytes held of keys and timers, as about 80 for a timer. O(1)"""
        check_no_call(&self.guard, self)
        return (
            self.state.keys_capacity * <int64_t> sizeof(PendingKey)
            + self.state.moment_capacity * <int64_t> sizeof(DueRow)
            + 80 * <int64_t> self._timers.queue.size
        )

    def _check(self):
        """Assert every invariant; for tests."""
        self._timers._check()
        assert self.state.due or self.state.moment_done == self.state.n_moment, "rows were left behind"
        head = self._timers.peek()
        assert self.state.due or head is None or head.timestamp_ms > self.state.cursor.watermark or self.state.bounded

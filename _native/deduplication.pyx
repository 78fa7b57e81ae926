"""One row of each key: the first or the last, by event time or by arrival.

Follows Flink's functions for ROW_NUMBER() = 1 over a time attribute: RowTimeDeduplicateKeepFirstRowFunction (the first row waits for
the watermark, and late rows are dropped), RowTimeDeduplicateFunction (changes, at once, never late) and their counterparts for
processing time. Without changes, the last row comes when the log ends. Of rows that are changes, it is the changelog normalization
of Flink (DeduplicateFunctionHelper.processLastRowOnChangelog).

With a time to live, the row of a key expires as their states do with StateTtlConfig's OnCreateAndWrite and NeverReturnExpired. A first
row that waits for the watermark does not expire; that it was emitted does.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.memory cimport grow, prefetch
from flinkcore._native.packed_steps cimport PackedSteps, StepColumn, steps_value
from flinkcore._native.relational cimport (
    NO_EVENT,
    NO_ROW,
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
    core_poll_due,
    core_process,
    core_take,
    core_take_late,
)
from flinkcore._native.timer_queue cimport Timer, TimerQueue, timer_queue_add, timer_queue_move
from flinkcore._native.timers cimport TimerHeap
from flinkcore._native.window_operator cimport RowKind


cdef enum:
    NO_ROW_YET = -2  # in place of the row of a key; NO_ROW: its first row is emitted, and no other one counts
    LEAST_KEYS = 1 << 10
    LOOK_AHEAD = 8   # events whose keys are fetched before their turn

cdef const char* _WHAT = b"the rows of keys"


cdef struct KeptRow:
    int64_t row
    int64_t timestamp


cdef struct Deduplication:
    RelationalCore core
    bint keeps_last
    bint by_time
    bint waits        # for the watermark, with the first row by time
    bint until_end    # with the last row
    bint update_before
    TimerQueue* timers
    KeptRow* keys     # by id
    int64_t ttl_ms    # 0: rows never expire
    int64_t* due      # by id, with a time to live: first processing time at which what is known of the key has expired
    const int64_t* arrivals  # of the events of a call, with a time to live
    const uint8_t* kinds     # RowKind of the events of a call; NULL: all are insertions
    int64_t dated_step  # step of the timeline whose clock is known
    int64_t clock
    int64_t n_keys
    int64_t capacity
    int64_t n_live
    int64_t n_emitted # of the keys, when the log has ended


cdef int _reach(Deduplication* self, int64_t n_keys) except -1 nogil:
    # Knows the keys with lower ids.
    cdef int64_t capacity = max(self.capacity, <int64_t> LEAST_KEYS), key
    if n_keys > self.capacity:
        while capacity < n_keys:
            capacity *= 2
        self.keys = <KeptRow*> grow(self.keys, capacity * sizeof(KeptRow), _WHAT)
        if self.ttl_ms:
            self.due = <int64_t*> grow(self.due, capacity * <int64_t> sizeof(int64_t), _WHAT)
        self.capacity = capacity
    for key in range(self.n_keys, n_keys):
        self.keys[key].row = NO_ROW_YET
        if self.ttl_ms:
            self.due[key] = INT64_MAX
    self.n_keys = max(self.n_keys, n_keys)
    return 0


cdef inline void _write(Deduplication* self, int64_t key, int64_t now) noexcept nogil:
    if self.ttl_ms:
        self.due[key] = INT64_MAX if now > INT64_MAX - self.ttl_ms else now + self.ttl_ms


cdef inline bint _has_expired(const Deduplication* self, int64_t key, int64_t now) noexcept nogil:
    cdef int64_t row = self.keys[key].row
    return row != NO_ROW_YET and not (self.waits and row >= 0) and self.due[key] <= now


cdef inline void _forget(Deduplication* self, int64_t key) noexcept nogil:
    self.n_live -= self.keys[key].row >= 0
    self.keys[key].row = NO_ROW_YET


cdef int64_t _clock(Deduplication* self) noexcept nogil:
    # The processing time of the watermark in force.
    if self.dated_step != self.core.step:
        self.dated_step = self.core.step
        self.clock = steps_value(&self.core.cursor.steps, StepColumn.CLOCK, self.core.step)
    return self.clock


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    # Emits the first rows that the watermark in force has reached.
    cdef Deduplication* self = <Deduplication*> core
    cdef Timer timer
    cdef KeptRow* kept
    while core_poll_due(&self.core, self.timers, self.n_keys, &timer):
        if self.keys[timer.key].row < 0:
            continue  # a restored timer may be forged
        kept = &self.keys[timer.key]
        core_add(
            &self.core, kept.row, NO_EVENT, <uint32_t> timer.key, kept.timestamp, RowKind.INSERT
        ).fired = timer.timestamp_ms
        kept.row = NO_ROW
        self.n_live -= 1
        if self.ttl_ms:
            _write(self, timer.key, _clock(self))
    return not self.core.due


cdef inline bint _replaces(const Deduplication* self, const KeptRow* kept, int64_t timestamp) noexcept nogil:
    if self.keeps_last:
        return not self.by_time or kept.timestamp <= timestamp
    return self.by_time and timestamp < kept.timestamp


cdef int _process_row(Deduplication* self, const RelationalEvents* events, int64_t i) except -1 nogil:
    cdef uint32_t key = events.key_ids[i]
    cdef int64_t timestamp = events.timestamps[i]
    cdef KeptRow* kept = &self.keys[key]
    cdef bint is_first
    if self.waits and timestamp < self.core.cursor.watermark:
        core_late(&self.core, i)
        return 0
    if self.ttl_ms and _has_expired(self, key, self.arrivals[i]):
        _forget(self, key)
    is_first = kept.row == NO_ROW_YET
    self.core.processed += 1
    if self.kinds != NULL and (self.kinds[i] == RowKind.UPDATE_BEFORE or self.kinds[i] == RowKind.DELETE):
        if not is_first:
            core_add(&self.core, kept.row, i, key, kept.timestamp, RowKind.DELETE)
            _forget(self, key)
        return 0
    if not is_first and (kept.row == NO_ROW or not _replaces(self, kept, timestamp)):
        return 0
    if self.waits:
        if is_first:
            timer_queue_add(self.timers, timestamp, key, events.key_groups[i], 0)
        else:
            timer_queue_move(self.timers, kept.timestamp, timestamp, key, events.key_groups[i], 0)
    elif not self.until_end:
        if not is_first and self.update_before:
            core_add(&self.core, kept.row, i, key, kept.timestamp, RowKind.UPDATE_BEFORE)
        core_add(
            &self.core, events.rows[i], i, key, timestamp, RowKind.INSERT if is_first else RowKind.UPDATE_AFTER
        )
        if not self.keeps_last and not self.by_time:
            kept.row, kept.timestamp = NO_ROW, timestamp
            _write(self, key, self.arrivals[i] if self.ttl_ms else 0)
            return 0
    kept.row = events.rows[i]
    kept.timestamp = timestamp
    _write(self, key, self.arrivals[i] if self.ttl_ms else 0)
    self.n_live += is_first
    return 0


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef Deduplication* self = <Deduplication*> core
    cdef int64_t i
    _reach(self, core_n_keys(events, first))
    for i in range(first, events.n):
        if core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False):
            return i
        if i + LOOK_AHEAD < events.n:
            prefetch(&self.keys[events.key_ids[i + LOOK_AHEAD]])
        _process_row(self, events, i)
    return events.n


cdef bint _finish(Deduplication* self) except -1 nogil:
    cdef KeptRow* kept
    if not core_advance(&self.core, _fire_due, INT64_MAX, True):
        return False
    while self.until_end and self.n_emitted < self.n_keys:
        if core_is_full(&self.core):
            return False
        kept = &self.keys[self.n_emitted]
        if kept.row >= 0:
            core_add(
                &self.core, kept.row, NO_EVENT, <uint32_t> self.n_emitted, kept.timestamp, RowKind.INSERT
            ).fired = INT64_MAX
        self.n_emitted += 1
    return True


@cython.final
cdef class DeduplicationKernel:
    """Keeps one row of each key; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    Parameters
    ----------
    timers : TimerHeap
        Event-time timers of the operator, which only this kernel changes.
    timeline : PackedSteps
        Steps of the timeline.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most results that may wait.
    keeps_last, by_time : bool
        Which row of a key is kept: the last or the first, by event time or by arrival.
    changes : bool
        Whether results are changes, at once: an insertion, then updates. Else the first row by time waits for the watermark,
        and the last row for the end of the log.
    ttl_ms : int
        Time to live of what is known of a key, in ms of processing time after it was written; 0 if it never expires.
    update_before : bool
        Whether an update is also a ``-U``.

    Raises
    ------
    ConfigurationError
        If the limit, the steps done or the time to live are out of their range.
    """

    cdef CallGuard guard
    cdef Deduplication state
    cdef TimerHeap _timers
    cdef PackedSteps _timeline

    def __cinit__(
        self,
        TimerHeap timers not None,
        PackedSteps timeline not None,
        *,
        int64_t steps_done,
        int64_t result_limit,
        bint keeps_last,
        bint by_time,
        bint changes,
        int64_t ttl_ms=0,
        bint update_before=True,
    ):
        if ttl_ms < 0:
            raise ConfigurationError(f"a time to live of {ttl_ms} ms is negative")
        self.state.ttl_ms = ttl_ms
        self.state.update_before = update_before
        self.state.dated_step = -1
        self._timers = timers
        self._timeline = timeline
        self.state.timers = &timers.queue
        self.state.keeps_last = keeps_last
        self.state.by_time = by_time
        self.state.waits = by_time and not keeps_last and not changes
        self.state.until_end = keeps_last and not changes
        core_open(&self.state.core, timeline, steps_done, result_limit, False, changes, False)

    def __dealloc__(self):
        core_free(&self.state.core)
        free(self.state.keys)
        free(self.state.due)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int8_t[::1] inputs,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const int64_t[::1] arrivals=None,
        const uint8_t[::1] kinds=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        arrivals : int64 array (n,) or None
            Processing times in ms since the epoch, which a time to live needs.
        kinds : uint8 array (n,) or None
            Flink's number of the kind of change, for changes of the last row by arrival; None: all are insertions.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef RelationalEvents events
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        if self.state.ttl_ms:
            if arrivals is None or arrivals.shape[0] != events.n:
                raise ValueError("each event needs its arrival")
            self.state.arrivals = &arrivals[0] if events.n else NULL
        if kinds is not None and kinds.shape[0] != events.n:
            raise ValueError("each event needs its kind")
        self.state.kinds = &kinds[0] if kinds is not None and events.n else NULL
        return core_process(&self.state.core, _take_events, &events, first)

    def advance(self, int64_t steps_before):
        """Fire what so many steps make due. Returns false if results are full before: take them, and call again."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef bint done
        with nogil:
            done = core_advance(&self.state.core, _fire_due, steps_before, False)
        return done

    def finish(self):
        """Fire what the end of the log makes due. Returns false if results are full before: take them, and call again."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef bint done
        with nogil:
            done = _finish(&self.state)
        return done

    @property
    def is_full(self):
        """True if results must be taken before the next event."""
        return core_is_full(&self.state.core)

    def take(self):
        """Return the results that wait, as KernelResults."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take(&self.state.core)

    def take_late(self):
        """Return the indexes of the events of the last call of `process` that were late: numpy.ndarray of int64."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take_late(&self.state.core)

    def counts(self):
        """Return how many events it has taken in and timers have fired, by their names in the report."""
        return core_counts(&self.state.core)

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        return self.state.core.cursor.watermark

    def memory_bytes(self):
        """Bytes that its state takes, without rows, keys and timers."""
        check_no_call(&self.guard, self)
        return self.state.capacity * <int64_t> (sizeof(KeptRow) + (sizeof(int64_t) if self.state.ttl_ms else 0))

    def forget_expired(self, int64_t now):
        """Forget what has expired at a processing time. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key
        with nogil:
            for key in range(self.state.n_keys if self.state.ttl_ms else 0):
                if _has_expired(&self.state, key, now):
                    _forget(&self.state, key)

    @property
    def live_count(self):
        """Number of row numbers that it holds."""
        return self.state.n_live

    def live_rows(self):
        """Return the row numbers that it holds, as an int64 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[::1] live = np.empty(self.state.n_live, np.int64)
        cdef int64_t key, n = 0
        with nogil:
            for key in range(self.state.n_keys):
                if self.state.keys[key].row >= 0:
                    live[n] = self.state.keys[key].row
                    n += 1
        return live.base

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        if rows.shape[0] != self.state.n_live:
            raise ValueError(f"{rows.shape[0]} numbers for {self.state.n_live} rows")
        with nogil:
            for key in range(self.state.n_keys):
                if self.state.keys[key].row >= 0:
                    self.state.keys[key].row = rows[n]
                    n += 1

    def snapshot(self):
        """Return its state as columns by table: `kept` has `key`, `row` (-1: the first row is emitted) and `timestamp`.

        With a time to live it has also `due`, the first processing time at which that has expired.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        for key in range(self.state.n_keys):
            n += self.state.keys[key].row != NO_ROW_YET
        cdef int64_t[:, ::1] columns = np.empty((4, n), np.int64)
        n = 0
        for key in range(self.state.n_keys):
            if self.state.keys[key].row != NO_ROW_YET:
                columns[0, n] = key
                columns[1, n] = self.state.keys[key].row
                columns[2, n] = self.state.keys[key].timestamp
                columns[3, n] = self.state.due[key] if self.state.ttl_ms else 0
                n += 1
        keys, rows, timestamps, due = columns.base
        expiry = {"due": due} if self.state.ttl_ms else {}
        return {"kept": {"key": keys, "row": rows, "timestamp": timestamps, **expiry}}

    def restore(self, str table not None, const int64_t[::1] keys not None, dict rows not None, columns not None):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first event.

        Raises
        ------
        SchemaError
            If it is no state of such an operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const int64_t[::1] numbers = rows["row"]
        cdef const int64_t[::1] timestamps = columns.column("timestamp").to_numpy()
        cdef const int64_t[::1] due = columns.column("due").to_numpy() if self.state.ttl_ms else None
        cdef int64_t i
        cdef KeptRow* kept
        for i in range(keys.shape[0]):
            _reach(&self.state, keys[i] + 1)
            kept = &self.state.keys[keys[i]]
            if kept.row != NO_ROW_YET:
                raise SchemaError(f"row {i} of the state has a key that is there twice")
            kept.row = max(numbers[i], <int64_t> NO_ROW)
            kept.timestamp = timestamps[i]
            if self.state.ttl_ms:
                self.state.due[keys[i]] = due[i]
            self.state.n_live += kept.row >= 0

    def _check(self):
        """Assert its invariants."""
        cdef int64_t key, live = 0
        for key in range(self.state.n_keys):
            assert self.state.keys[key].row >= NO_ROW_YET
            live += self.state.keys[key].row >= 0
        assert live == self.state.n_live
        if self.state.waits:
            assert len(self._timers) == live, f"{len(self._timers)} timers for {live} rows"
            self._timers._check()

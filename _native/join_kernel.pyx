"""Joins of two inputs over dense key ids and numbers of kept rows: what all kinds of joins have in common.

A kind of join says which pairs of rows are candidates, and which rows come out alone or with nulls unless they have had a match. A
condition of the user's on both rows is evaluated by the caller, over all pairs that wait at once: `pairs` gives them, and `take`
settles, in the order in which they came, which of them are results, and which rows have had a match.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.array_pool cimport pool_free
from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.memory cimport buffer_free, buffer_reserve, grow, prefetch_all
from flinkcore._native.ordered_rows cimport (
    OrderedRow,
    RowPlace,
    rows_are_empty,
    rows_are_sound,
    rows_at,
    rows_free,
    rows_insert,
    rows_start,
)
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.relational cimport (
    NO_EVENT,
    NO_ROW,
    RelationalCore,
    RelationalEvents,
    core_advance,
    core_events,
    core_free,
    core_n_keys,
    core_open,
    core_poll_due,
    core_process,
    core_take,
    core_take_late,
)
from flinkcore._native.timers cimport TimerHeap


cdef enum:
    LEAST_KEYS = 1 << 10
    AHEAD = 8  # events whose keys are fetched before their turn
    LEAST_SWEPT = 1 << 14

cdef const char* _WHAT = b"the keys of a join"

_HOW = {
    "inner": How.INNER,
    "left": How.LEFT,
    "right": How.RIGHT,
    "full": How.FULL,
    "semi": How.SEMI,
    "anti": How.ANTI,
}
_SIDES = ("left", "right")
_ROWS = ("row", "right_row")


# ---- which rows have had a match ---------------------------------------------------------------------------------


cdef inline int _set_match(JoinCore* self, int side, int64_t row, bint has_match) except -1 nogil:
    cdef Buffer* bits = &self.matches[side]
    cdef int64_t size = bits.size
    if row >> 3 >= size:
        if not has_match:
            return 0
        buffer_reserve(bits, (row >> 3) + 1 - size)
        bits.size = (row >> 3) + 1
        memset(bits.data + size, 0, bits.size - size)
    if has_match:
        bits.data[row >> 3] |= <uint8_t> (1 << (row & 7))
    else:
        bits.data[row >> 3] &= <uint8_t> ~(1 << (row & 7))
    return 0


cdef int _match(JoinCore* self, const ResultRow* row) except -1 nogil:
    if self.keeps_matches[0]:
        _set_match(self, 0, row.left, True)
    if self.keeps_matches[1]:
        _set_match(self, 1, row.right, True)
    return 0


cdef inline bint _matched_at_last(JoinCore* self, int side, int64_t row) except -1 nogil:
    # Returns whether a row that comes out has had a match.
    cdef bint matched = has_match(self, side, row)
    if matched and self.forgets_matches:
        _set_match(self, side, row, False)
    return matched


cdef bint _settle_row(JoinCore* self, ResultRow* row, bint passed) except -1 nogil:
    # Makes a candidate a result, with its RowKind. Returns false if it is none.
    cdef int kind = row.kind
    row.kind = <uint8_t> RowKind.INSERT
    if kind <= Candidate.LAST_OF_PAIRS and not passed:
        return False
    if kind == Candidate.PAIR:
        _match(self, row)
        return True
    if kind == Candidate.PROBE:
        _match(self, row)
        return False
    if kind == Candidate.WITHDRAW_LEFT or kind == Candidate.WITHDRAW_RIGHT:
        row.kind = <uint8_t> RowKind.DELETE
        if kind == Candidate.WITHDRAW_LEFT:
            if has_match(self, 0, row.left):
                return False
            row.right = NO_ROW
        else:
            if has_match(self, 1, row.right):
                return False
            row.left = NO_ROW
        return True
    if kind == Candidate.FIRST_LEFT:
        if has_match(self, 0, row.left):
            return False
        _set_match(self, 0, row.left, True)
        row.right = NO_ROW
        if self.how == How.ANTI:
            row.kind = <uint8_t> RowKind.DELETE
        return True
    if kind == Candidate.PAD_RIGHT:
        return not _matched_at_last(self, 1, row.right)
    return _matched_at_last(self, 0, row.left) == (kind == Candidate.MATCHED_LEFT)


cdef int64_t _n_pairs(const JoinCore* self) noexcept nogil:
    # Returns how many of the candidates wait for the condition.
    cdef const ResultRow* rows = <const ResultRow*> self.core.results.data
    cdef int64_t i, n = 0
    for i in range(self.core.n_results):
        n += rows[i].kind <= Candidate.LAST_OF_PAIRS
    return n


cdef int _settle(JoinCore* self, const uint8_t* passed) except -1 nogil:
    # Turns candidates into results; `passed` has a value for each pair, NULL: all pass.
    cdef ResultRow* rows = <ResultRow*> self.core.results.data
    cdef int64_t i, pair = 0, n = 0
    cdef bint passes
    for i in range(self.core.n_results):
        passes = True
        if rows[i].kind <= Candidate.LAST_OF_PAIRS:
            passes = passed == NULL or passed[pair]
            pair += 1
        if _settle_row(self, &rows[i], passes):
            rows[n] = rows[i]
            n += 1
    self.core.n_results = n
    self.core.results.size = n * sizeof(ResultRow)
    return 0


# ---- events and timers -------------------------------------------------------------------------------------------


cdef int _reach(JoinCore* self, int64_t n_keys) except -1 nogil:
    # Knows the keys with lower ids.
    cdef int64_t capacity = max(self.capacity, <int64_t> LEAST_KEYS), key
    if n_keys > self.capacity:
        while capacity < n_keys:
            capacity *= 2
        self.sides = <KeySide*> grow(self.sides, 2 * capacity * sizeof(KeySide), _WHAT)
        self.capacity = capacity
    if n_keys > self.n_keys:
        memset(&self.sides[2 * self.n_keys], 0, 2 * (n_keys - self.n_keys) * sizeof(KeySide))
        for key in range(2 * self.n_keys, 2 * n_keys):
            self.sides[key].timer = INT64_MIN
        self.n_keys = n_keys
    return 0


cdef void _sweep(JoinCore* self) noexcept nogil:
    # Removes rows that cannot match any more, and for which no timer fires, of all keys.
    cdef int64_t key, first = self.n_keys
    for key in range(self.swept_below, self.n_keys):
        self.verbs.sweep(self, <uint32_t> key)
        if first == self.n_keys and not (
            rows_are_empty(&self.sides[2 * key].rows) and rows_are_empty(&self.sides[2 * key + 1].rows)
        ):
            first = key
    self.swept_below = first
    self.kept_since_sweep = 0


cdef inline bint _is_sweep_due(const JoinCore* self) noexcept nogil:
    # Returns whether about as many rows have come as there were, and enough for the keys that a sweep looks at: it takes O(1) a row.
    cdef int64_t enough = max(self.n_rows[0] + self.n_rows[1], (self.n_keys - self.swept_below) // 2) // 2
    return self.verbs.sweep != NULL and not self.in_event and self.kept_since_sweep > max(<int64_t> LEAST_SWEPT, enough)


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    # Fires timers that the watermark in force has reached.
    cdef JoinCore* self = <JoinCore*> core
    while self.in_timer or core_poll_due(&self.core, self.timers, self.n_keys, &self.timer):
        if not 0 <= self.timer.namespace_id <= 1:
            continue  # a restored timer may be forged
        self.event = NO_EVENT
        self.key = <uint32_t> self.timer.key
        self.fired = self.timer.timestamp_ms
        self.in_timer = True
        if not self.verbs.fire(self, &self.timer):
            self.core.due = True
            return False
        self.in_timer = False
    return not self.core.due


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef JoinCore* self = <JoinCore*> core
    cdef const JoinColumns* columns = &self.columns
    cdef JoinEvent event
    cdef int64_t i
    event.ends = NULL
    event.n_ends = 0
    if _is_sweep_due(self):
        _sweep(self)
    _reach(self, core_n_keys(events, first))
    for i in range(first, events.n):
        if not self.in_event and (core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False)):
            return i
        if i + AHEAD < events.n:
            prefetch_all(side_of(self, events.key_ids[i + AHEAD], 0), 2 * sizeof(KeySide))
        event.key = events.key_ids[i]
        event.key_group = events.key_groups[i]
        event.side = events.inputs[i]
        event.row = events.rows[i]
        event.timestamp = events.timestamps[i]
        event.can_match = columns.can_match == NULL or columns.can_match[i]
        event.arrival = columns.arrivals[i] if columns.arrivals != NULL else INT64_MIN
        if columns.ends != NULL:
            event.ends = columns.ends + columns.offsets[i]
            event.n_ends = columns.offsets[i + 1] - columns.offsets[i]
        self.event = i
        self.key = event.key
        self.fired = INT64_MIN
        self.in_event = True
        if not self.verbs.process(self, &event):
            return i
        self.in_event = False
    return events.n


cdef bint _ascend(const int64_t* offsets, int64_t n) noexcept nogil:
    # Returns whether offsets, at least one, ascend from 0.
    cdef int64_t i
    for i in range(1, n):
        if offsets[i] < offsets[i - 1]:
            return False
    return offsets[0] == 0


# ---- the kernel --------------------------------------------------------------------------------------------------


@cython.final
cdef class JoinKind:
    """A kind of join, as `interval_join`, `window_join`, `regular_join` and `temporal_join` make it."""


cdef JoinKind join_kind(str name, const JoinVerbs* verbs, how):
    cdef JoinKind kind = JoinKind.__new__(JoinKind)
    kind.name = name
    kind.verbs = verbs
    kind.how = frozenset(how)
    return kind


@cython.final
cdef class JoinKernel:
    """Joins two inputs; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    Parameters
    ----------
    kind : JoinKind
    timers : TimerHeap
        Event-time timers of the operator, which only this kernel changes.
    timeline : PackedSteps
        Steps of the timeline.
    how : str
        Which rows come out without a match: "inner", "left", "right", "full"; or "semi" and "anti" for left rows alone.
    has_condition : bool
        Whether pairs have a condition, which the caller evaluates before it takes results.
    has_kinds : bool
        Whether results are changes.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most candidates that may wait.
    end_ms : int
        Last arrival of the log in ms: rows that have no match by processing time come out up to then.

    Raises
    ------
    ConfigurationError
        If the limit or the steps done are out of their range, or this kind of join has no such `how`.
    """

    cdef CallGuard guard
    cdef JoinCore state
    cdef JoinKind _kind
    cdef TimerHeap _timers
    cdef PackedSteps _timeline

    def __cinit__(
        self,
        JoinKind kind not None,
        TimerHeap timers not None,
        PackedSteps timeline not None,
        *,
        str how,
        bint has_condition,
        bint has_kinds,
        int64_t steps_done,
        int64_t result_limit,
        int64_t end_ms=INT64_MIN,
    ):
        if how not in kind.how:
            raise ConfigurationError(f"{kind.name} has no how={how!r}; give one of {', '.join(sorted(kind.how))}")
        self._kind = kind
        self._timers = timers
        self._timeline = timeline
        self.state.verbs = kind.verbs
        self.state.lower = kind.lower
        self.state.upper = kind.upper
        self.state.by_clock = kind.by_clock
        self.state.end_ms = end_ms
        self.state.ttl_ms = kind.ttl_ms
        self.state.forgets_matches = kind.forgets_matches
        self.state.how = _HOW[how]
        self.state.has_condition = has_condition
        self.state.has_changes = has_kinds
        self.state.timers = &timers.queue
        self.state.keeps_matches[0] = how in ("left", "full", "semi", "anti")
        self.state.keeps_matches[1] = how in ("right", "full")
        core_open(&self.state.core, timeline, steps_done, result_limit, True, has_kinds, False)
        if kind.ttl_ms:
            self.state.core.cursor.n_dated = INT64_MAX  # the clocks of all steps are read

    def __dealloc__(self):
        cdef int64_t i
        core_free(&self.state.core)
        for i in range(2 * self.state.n_keys):
            rows_free(&self.state.sides[i].rows)
        free(self.state.sides)
        pool_free(&self.state.pool)
        buffer_free(&self.state.matches[0])
        buffer_free(&self.state.matches[1])
        buffer_free(&self.state.waiting)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int8_t[::1] inputs not None,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const uint8_t[::1] can_match=None,
        const int64_t[::1] window_ends=None,
        const int64_t[::1] window_offsets=None,
        const int64_t[::1] arrivals=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        can_match : uint8 array (n,) or None
            0 for events that match nothing, as a part of their key is null.
        window_ends : int64 array or None
            Ends of the windows of events, those of each event ascending.
        window_offsets : int64 array (n + 1,) or None
            Where those of each event begin in `window_ends`.
        arrivals : int64 array (n,) or None
            Processing times in ms since the epoch, if keys expire.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef RelationalEvents events
        cdef JoinColumns* columns = &self.state.columns
        cdef int64_t n
        memset(columns, 0, sizeof(JoinColumns))
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        n = events.n
        if can_match is not None and n:
            if can_match.shape[0] != n:
                raise ValueError("can_match must have one value per event")
            columns.can_match = &can_match[0]
        if self.state.ttl_ms and n:
            if arrivals is None or arrivals.shape[0] != n:
                raise ValueError("each event needs its arrival")
            columns.arrivals = &arrivals[0]
        if window_offsets is not None and n:
            if window_ends is None or window_offsets.shape[0] != n + 1 or window_ends.shape[0] != window_offsets[n]:
                raise ValueError("the offsets of windows must have one value per event, and their end")
            if not _ascend(&window_offsets[0], n + 1):
                raise ValueError("the offsets of windows must ascend from 0")
            columns.offsets = &window_offsets[0]
            columns.ends = &window_ends[0] if window_ends.shape[0] else &window_offsets[0]
        return core_process(&self.state.core, _take_events, &events, first)

    def advance(self, int64_t steps_before):
        """Fire what so many steps make due. Returns false if results are full before: take them, and call again."""
        return self._advance(steps_before, False)

    def finish(self):
        """Fire what the end of the log makes due. Returns false if results are full before: take them, and call again."""
        return self._advance(INT64_MAX, True)

    def _advance(self, int64_t steps_before, bint to_end):
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef bint done
        with nogil:
            done = core_advance(&self.state.core, _fire_due, steps_before, to_end)
        return done

    @property
    def is_full(self):
        """Whether results are to be taken before it goes on."""
        return join_is_full(&self.state)

    def pairs(self):
        """Return the numbers of the left and the right rows of the pairs that wait for the condition: two int64 arrays (n,)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const ResultRow* rows = <const ResultRow*> self.state.core.results.data
        cdef int64_t i, n = 0, n_rows = self.state.core.n_results
        cdef int64_t[:, ::1] numbers = np.empty((2, _n_pairs(&self.state)), np.int64)
        with nogil:
            for i in range(n_rows):
                if rows[i].kind <= Candidate.LAST_OF_PAIRS:
                    numbers[0, n] = rows[i].left
                    numbers[1, n] = rows[i].right
                    n += 1
        left, right = numbers.base
        return left, right

    def take(self, const uint8_t[::1] passed=None):
        """Return the results that wait, as KernelResults.

        Parameters
        ----------
        passed : uint8 array (n_pairs,) or None
            1 for each pair of `pairs` that meets the condition; None: all do.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint8_t* each = NULL
        if passed is not None:
            if passed.shape[0] != _n_pairs(&self.state):
                raise ValueError("passed must have one value per pair")
            if passed.shape[0]:
                each = &passed[0]
        # Pairs are insertions as they are.
        if self.state.how != How.INNER or each != NULL:
            with nogil:
                _settle(&self.state, each)
        return core_take(&self.state.core)

    def take_late(self):
        """Return the indexes of the events of the last call of `process` that were late: numpy.ndarray of int64."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take_late(&self.state.core)

    def forget_expired(self, int64_t now):
        """Forget the rows of keys that have expired at a processing time."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key
        if self._kind.forget is NULL:
            return
        with nogil:
            for key in range(self.state.n_keys):
                self._kind.forget(&self.state, <uint32_t> key, now)

    def counts(self):
        """Return how many events it has taken in, by what became of them."""
        return {"processed": self.state.core.processed, "late": self.state.core.late}

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        return self.state.core.cursor.watermark

    def memory_bytes(self):
        """Bytes that its state takes, without rows, keys and timers."""
        check_no_call(&self.guard, self)
        bits = self.state.matches[0].capacity + self.state.matches[1].capacity
        return 2 * self.state.capacity * <int64_t> sizeof(KeySide) + self.state.pool.used + bits

    @property
    def live_count(self):
        """Number of row numbers that it holds."""
        return self.state.n_rows[0] + self.state.n_rows[1]

    def live_rows(self, int input_number):
        """Return the row numbers that it holds of an input, as an int64 array."""
        _, rows, _ = self._of_input(input_number)
        return rows

    def _of_input(self, int side):
        # Keys, rows and times of all rows of an input, key by key.
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[:, ::1] columns = np.empty((3, self.state.n_rows[side]), np.int64)
        cdef int64_t key, n = 0
        cdef RowPlace place
        cdef const OrderedRow* row
        with nogil:
            for key in range(self.state.n_keys):
                place = rows_start(&side_of(&self.state, <uint32_t> key, side).rows)
                while True:
                    row = rows_at(&side_of(&self.state, <uint32_t> key, side).rows, &place)
                    if row == NULL:
                        break
                    columns[0, n] = key
                    columns[1, n] = row.row
                    columns[2, n] = row.time
                    n += 1
                    place.entry += 1
        return tuple(columns.base)

    def renumber(self, const int64_t[::1] rows not None, int input_number):
        """Hold other numbers for the rows of an input, in the order of `live_rows`. No results wait."""
        cdef int side = input_number
        cdef const int64_t[::1] before
        matched = self._matched(self.live_rows(side), side)
        if rows.shape[0] != self.state.n_rows[side]:
            raise ValueError(f"{rows.shape[0]} numbers for {self.state.n_rows[side]} rows")
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint8_t[::1] has_match = matched.view(np.uint8)
        cdef int64_t key, n = 0
        cdef RowPlace place
        cdef OrderedRow* row
        self.state.matches[side].size = 0
        with nogil:
            for key in range(self.state.n_keys):
                place = rows_start(&side_of(&self.state, <uint32_t> key, side).rows)
                while True:
                    row = rows_at(&side_of(&self.state, <uint32_t> key, side).rows, &place)
                    if row == NULL:
                        break
                    row.row = rows[n]
                    if has_match[n]:
                        _set_match(&self.state, side, rows[n], True)
                    n += 1
                    place.entry += 1

    def _matched(self, const int64_t[::1] rows not None, int side):
        cdef uint8_t[::1] matched = np.empty(rows.shape[0], np.uint8)
        cdef int64_t i
        for i in range(rows.shape[0]):
            matched[i] = has_match(&self.state, side, rows[i])
        return matched.base.view(np.bool_)

    def snapshot(self):
        """Return its state as columns by table, without timers.

        `left` and `right` have the rows of each input in order of their numbers, with `time`, by which the join orders them, and
        whether they have `matched`; `clean_up` has the times of the timers that clean up the rows of an `input`.
        """
        if self.state.verbs.sweep != NULL:
            _sweep(&self.state)
        tables = {}
        for side in range(2):
            columns = np.stack(self._of_input(side))
            keys, rows, times = columns[:, np.argsort(columns[1], kind="stable")]
            tables[_SIDES[side]] = {
                "key": keys,
                _ROWS[side]: rows,
                "time": times,
                "matched": self._matched(np.ascontiguousarray(rows), side),
                "can_match": np.array([not self.state.sides[2 * key + side].never_matches for key in keys], np.bool_),
            }
        timers = np.array(
            [
                (key, side, self.state.sides[2 * key + side].timer)
                for key in range(self.state.n_keys)
                for side in range(2)
                if self.state.sides[2 * key + side].timer != INT64_MIN
            ],
            np.int64,
        ).reshape(-1, 3)
        tables["clean_up"] = dict(zip(("key", "input", "time"), np.ascontiguousarray(timers.T)))
        return tables

    def restore(self, str table not None, const int64_t[::1] keys not None, dict rows not None, columns not None):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first event.

        Raises
        ------
        SchemaError
            If it is no state of such an operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const int64_t[::1] times = columns.column("time").to_numpy()
        cdef int64_t i, n = keys.shape[0]
        if n:
            _reach(&self.state, int(np.max(keys)) + 1)
        if table == "clean_up":
            self._restore_timers(keys, columns.column("input").to_numpy(), times)
            return
        cdef int side = _SIDES.index(table)
        cdef KeySide* own
        cdef const int64_t[::1] numbers = rows[_ROWS[side]]
        cdef const uint8_t[::1] matched = columns.column("matched").to_numpy(zero_copy_only=False).view(np.uint8)
        cdef const uint8_t[::1] can_match = columns.column("can_match").to_numpy(zero_copy_only=False).view(np.uint8)
        if n and np.min(rows[_ROWS[side]]) < 0:
            raise SchemaError("a row of the state of a join is missing")
        with nogil:
            for i in range(n):
                own = side_of(&self.state, <uint32_t> keys[i], side)
                rows_insert(&self.state.pool, &own.rows, times[i], numbers[i])
                own.never_matches = not can_match[i]
                if matched[i]:
                    _set_match(&self.state, side, numbers[i], True)
        self.state.n_rows[side] += n
        self.state.kept_since_sweep += n
        self.state.swept_below = 0

    def _restore_timers(self, const int64_t[::1] keys, const int64_t[::1] inputs, const int64_t[::1] times):
        cdef int64_t i
        for i in range(keys.shape[0]):
            if not 0 <= inputs[i] <= 1:
                raise SchemaError(f"the state of a join has a timer for input {inputs[i]}, and there are 0 and 1")
            side_of(&self.state, <uint32_t> keys[i], <int> inputs[i]).timer = times[i]

    def _check(self):
        """Assert its invariants."""
        cdef int64_t i
        cdef int side
        for i in range(2 * self.state.n_keys):
            assert rows_are_sound(&self.state.sides[i].rows), f"the rows of key {i // 2} are not in order"
        for side in range(2):
            live = sum(
                [_n_rows(&side_of(&self.state, <uint32_t> i, side).rows) for i in range(self.state.n_keys)]
            )
            assert live == self.state.n_rows[side], f"{live} rows, and {self.state.n_rows[side]} are counted"
        self._timers._check()


cdef int64_t _n_rows(const RowBlock* rows) noexcept:
    cdef RowPlace place = rows_start(rows)
    cdef int64_t n = 0
    while rows_at(rows, &place) != NULL:
        n += 1
        place.entry += 1
    return n

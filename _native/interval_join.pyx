"""Interval joins of Flink SQL: rows of a key whose times are close.

Follows RowTimeIntervalJoin. A row is joined with what is kept of the other input; none is too late for that. If no row of the other
input that is still expected can match it, it is not kept, and comes out padded at once. A timer for the rows of each key and input
removes those that have expired, and pads them. Where rows never come out padded, the timer is only a time: what it would have removed
by now is removed when the key is seen next, or by a sweep over all keys. Deliberate difference: which rows have expired follows the
watermark in force, where Flink keeps the time of the last clean-up for all keys of a task, so that its answer depends on the
parallelism.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t

from flinkcore._native.join_kernel cimport (
    Candidate,
    JoinCore,
    JoinEvent,
    JoinKind,
    JoinVerbs,
    KeySide,
    add_padded,
    add_pair,
    drop_first,
    is_outer,
    join_is_full,
    join_kind,
    keep_row,
    side_of,
)
from flinkcore._native.ordered_rows cimport OrderedRow, rows_are_empty, rows_at, rows_find, rows_first
from flinkcore._native.timer_queue cimport Timer, timer_queue_add


cdef enum Phase:
    BEGIN
    JOINING   # with the rows of the other input in the interval
    EXPIRING  # rows of the other input


cdef inline int64_t _reach_of(const JoinCore* self, int side) noexcept nogil:
    # Returns how long after its time a row of an input may still be joined with one of the other input.
    return -self.lower if side else self.upper


cdef inline int64_t _now(const JoinCore* self) noexcept nogil:
    # Returns the time of the operator: TimeIntervalJoin takes watermarks below 0 as 0. The clock stops with the last arrival.
    if self.by_clock:
        return max(<int64_t> 0, min(self.core.cursor.watermark, self.end_ms))
    return max(<int64_t> 0, self.core.cursor.watermark)


cdef inline int64_t _expired(const JoinCore* self, int side) noexcept nogil:
    # Returns the time up to which rows of an input have expired.
    cdef int64_t now = _now(self)
    return INT64_MAX if now == INT64_MAX else now - _reach_of(self, side) - 1


cdef inline bint _may_match(const JoinCore* self, int side, int64_t highest) noexcept nogil:
    # Returns whether rows of an input up to a time may still be kept. Before the first watermark, Flink takes those up to 0 as expired.
    return (_expired(self, side) if self.core.cursor.watermark > 0 else 0) < highest


cdef bint _expire(JoinCore* self, uint32_t key, int side) except -1 nogil:
    # Removes the rows of an input that have expired. Returns false if results are full before.
    cdef KeySide* own = side_of(self, key, side)
    cdef int64_t expired = _expired(self, side)
    cdef const OrderedRow* row
    while True:
        row = rows_first(&own.rows)
        if row == NULL or row.time > expired:
            return True
        if is_outer(self, side):
            if join_is_full(self):
                return False
            add_padded(self, side, row.row, row.time)
        drop_first(self, own, side)


cdef int _set_timer(JoinCore* self, uint32_t key, int group, int side, int64_t time) except -1 nogil:
    cdef int64_t due = time + _reach_of(self, side) + 1
    side_of(self, key, side).timer = due
    if is_outer(self, side):
        timer_queue_add(self.timers, due, key, group, side)
    return 0


cdef void _clean_up(JoinCore* self, uint32_t key, int side) noexcept nogil:
    # Does what the timers of rows that never come out padded would have done by now. Each would have removed what had expired when it
    # fired, and been set to the first row that was left: if one was due, they leave the rows that have not expired now.
    cdef KeySide* own = side_of(self, key, side)
    cdef int64_t expired
    cdef const OrderedRow* row
    if is_outer(self, side) or own.timer == INT64_MIN or own.timer > self.core.cursor.watermark:
        return
    expired = _expired(self, side)
    while True:
        row = rows_first(&own.rows)
        if row == NULL or row.time > expired:
            break
        drop_first(self, own, side)
    own.timer = INT64_MIN if row == NULL else row.time + _reach_of(self, side) + 1


cdef void _sweep(JoinCore* self, uint32_t key) noexcept nogil:
    _clean_up(self, key, 0)
    _clean_up(self, key, 1)


cdef bint _process(JoinCore* self, const JoinEvent* event) except -1 nogil:
    cdef int side = event.side, other = 1 - side
    cdef KeySide* own = side_of(self, event.key, side)
    cdef KeySide* others = side_of(self, event.key, other)
    cdef int64_t lowest = event.timestamp - _reach_of(self, other)
    cdef int64_t highest = event.timestamp + _reach_of(self, side)
    cdef const OrderedRow* row
    if self.phase == Phase.BEGIN:
        self.core.processed += 1
        _sweep(self, event.key)
        if self.lower > self.upper:  # an empty interval: Flink plans it as rows that pass through
            if is_outer(self, side):
                add_padded(self, side, event.row, event.timestamp)
            return True
        if _may_match(self, other, highest):
            self.place = rows_find(&others.rows, lowest, False)
            self.phase = Phase.JOINING if event.can_match else Phase.EXPIRING
    if self.phase == Phase.JOINING:
        while True:
            row = rows_at(&others.rows, &self.place)
            if row == NULL or row.time > highest:
                break
            if join_is_full(self):
                return False
            add_pair(self, Candidate.PAIR, side, event.row, row.row, max(event.timestamp, row.time))
            self.place.entry += 1
        self.phase = Phase.EXPIRING
    if self.phase == Phase.EXPIRING and not _expire(self, event.key, other):
        return False
    self.phase = Phase.BEGIN
    # By the clock, it is as late as the row: one that comes in the same millisecond may be too late.
    if (event.timestamp if self.by_clock else _now(self)) < highest and (event.can_match or is_outer(self, side)):
        keep_row(self, event, event.timestamp)
        if own.timer == INT64_MIN:
            _set_timer(self, event.key, event.key_group, side, event.timestamp)
    elif is_outer(self, side):
        add_padded(self, side, event.row, event.timestamp)
    return True


cdef bint _fire(JoinCore* self, const Timer* timer) except -1 nogil:
    cdef int side = <int> timer.namespace_id
    cdef KeySide* own = side_of(self, <uint32_t> timer.key, side)
    if not is_outer(self, side):  # a timer of Flink's, from a savepoint
        _clean_up(self, <uint32_t> timer.key, side)
        return True
    if not _expire(self, <uint32_t> timer.key, side):
        return False
    own.timer = INT64_MIN
    if self.by_clock and timer.timestamp_ms > self.end_ms:
        return True  # the log has ended, and the clock does not come to that time
    if not rows_are_empty(&own.rows):
        _set_timer(self, <uint32_t> timer.key, timer.key_group, side, rows_first(&own.rows).time)
    return True


cdef JoinVerbs _VERBS
_VERBS.process = _process
_VERBS.fire = _fire
_VERBS.sweep = _sweep


def interval_join(int64_t lower_ms, int64_t upper_ms, bint by_clock=False):
    """Return the join of left rows with right rows whose time is between lower_ms and upper_ms after theirs, both included.

    Parameters
    ----------
    lower_ms, upper_ms : int
        Milliseconds, also negative. If the upper bound is lower, nothing matches.
    by_clock : bool
        Whether timestamps are the processing times at which rows come, as of ProcTimeIntervalJoin: rows that have not
        expired with the last arrival do not come out.

    Returns
    -------
    JoinKind
    """
    cdef JoinKind kind = join_kind("an interval join", &_VERBS, ("inner", "left", "right", "full"))
    kind.lower = lower_ms
    kind.upper = upper_ms
    kind.by_clock = by_clock
    return kind

"""Regular joins of Flink SQL: all rows of a key, whenever they come.

Follows StreamingJoinOperator and StreamingSemiAntiJoinOperator, over rows that are only added. State grows with the rows: nothing
expires. With changes, a row without a match comes out padded at once, and is withdrawn when its first match comes. Without, it comes
padded when the log ends.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from flinkcore._native.join_kernel cimport (
    Candidate,
    How,
    JoinCore,
    JoinEvent,
    JoinVerbs,
    KeySide,
    add_candidate,
    add_padded,
    add_pair,
    comes_alone,
    has_match,
    is_outer,
    join_is_full,
    join_kind,
    keep_row,
    side_of,
)
from flinkcore._native.ordered_rows cimport OrderedRow, RowPlace, rows_at, rows_start
from flinkcore._native.relational cimport NO_ROW
from flinkcore._native.timer_queue cimport Timer, timer_queue_add


cdef enum Phase:
    BEGIN
    FIRST    # matches of rows of the other input, of which each comes out once
    PAIRS
    ALONE    # the row itself
    PADDING  # at the end of the log


cdef bint _add_all(JoinCore* self, const JoinEvent* event, Candidate kind, int withdrawal) except -1 nogil:
    # Adds a candidate for each row of the other input, from the current one on. Before a first match the padded row is withdrawn, unless
    # `withdrawal` is -1. Returns false if results are full before.
    cdef int other = 1 - event.side
    cdef const KeySide* others = side_of(self, event.key, other)
    cdef const OrderedRow* row
    while True:
        row = rows_at(&others.rows, &self.place)
        if row == NULL:
            return True
        if kind == Candidate.PAIR or kind == Candidate.PROBE or not has_match(self, other, row.row):
            if join_is_full(self):
                return False
            if withdrawal >= 0 and not has_match(self, other, row.row):
                add_pair(self, <Candidate> withdrawal, event.side, event.row, row.row, event.timestamp)
            add_pair(self, kind, event.side, event.row, row.row, event.timestamp)
            if kind == Candidate.PROBE and event.side == 0 and not self.has_condition:
                return True
        self.place.entry += 1


cdef inline int _first_kind(const JoinCore* self, int side) noexcept nogil:
    # Returns what comes out beside the pair at the first match of a row of the other input, or -1.
    if self.how == How.SEMI or self.how == How.ANTI:
        if side == 0 or (self.how == How.ANTI and not self.has_changes):
            return -1
        return Candidate.FIRST_LEFT
    if not self.has_changes or not is_outer(self, 1 - side):
        return -1
    return Candidate.WITHDRAW_LEFT if side else Candidate.WITHDRAW_RIGHT


cdef bint _process(JoinCore* self, const JoinEvent* event) except -1 nogil:
    cdef int side = event.side
    cdef bint is_alone = self.how == How.SEMI or self.how == How.ANTI
    cdef int first = _first_kind(self, side)
    cdef const KeySide* others = side_of(self, event.key, 1 - side)
    if self.phase == Phase.BEGIN:
        self.core.processed += 1
        self.place = rows_start(&others.rows)
        self.phase = Phase.FIRST if event.can_match else Phase.ALONE
    if self.phase == Phase.FIRST:
        if is_alone and first >= 0 and not _add_all(self, event, <Candidate> first, -1):
            return False
        self.place = rows_start(&others.rows)
        self.phase = Phase.PAIRS
    if self.phase == Phase.PAIRS:
        # A right row of a semi join has made all its matches known as first ones.
        if not (is_alone and first >= 0):
            if not _add_all(self, event, Candidate.PROBE if is_alone else Candidate.PAIR, -1 if is_alone else first):
                return False
        self.phase = Phase.ALONE
    if self.how == How.SEMI and side == 0:
        add_candidate(self, Candidate.MATCHED_LEFT, event.row, NO_ROW, event.timestamp)
    elif self.has_changes and comes_alone(self, side):
        add_padded(self, side, event.row, event.timestamp)
    self.phase = Phase.BEGIN
    if event.can_match or (comes_alone(self, side) and not self.has_changes):
        keep_row(self, event, 0)
        if not self.has_changes and comes_alone(self, side):
            timer_queue_add(self.timers, INT64_MAX, event.key, event.key_group, side)
    return True


cdef bint _fire(JoinCore* self, const Timer* timer) except -1 nogil:
    cdef int side = <int> timer.namespace_id
    cdef const KeySide* own = side_of(self, <uint32_t> timer.key, side)
    cdef const OrderedRow* row
    if self.phase == Phase.BEGIN:
        self.place = rows_start(&own.rows)
        self.phase = Phase.PADDING
    while True:
        row = rows_at(&own.rows, &self.place)
        if row == NULL:
            break
        if join_is_full(self):
            return False
        add_padded(self, side, row.row, INT64_MAX)
        self.place.entry += 1
    self.phase = Phase.BEGIN
    return True


cdef JoinVerbs _VERBS
_VERBS.process = _process
_VERBS.fire = _fire


def regular_join():
    """Return the join of all rows of a key.

    Returns
    -------
    JoinKind
    """
    return join_kind("a regular join", &_VERBS, ("inner", "left", "right", "full", "semi", "anti"))

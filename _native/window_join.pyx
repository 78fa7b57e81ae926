"""Window joins of Flink SQL: rows of a key that are in the same window.

Follows WindowJoinOperator. A window is known by its end: when the watermark has passed it, its rows come out, and are forgotten. A
row all of whose windows have fired is late.
"""

from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.join_kernel cimport (
    Candidate,
    How,
    JoinCore,
    JoinEvent,
    JoinKind,
    JoinVerbs,
    KeySide,
    add_candidate,
    comes_alone,
    drop_first,
    is_outer,
    join_is_full,
    join_kind,
    keep_row,
    side_of,
)
from flinkcore._native.ordered_rows cimport OrderedRow, RowBlock, RowPlace, rows_at, rows_first, rows_start
from flinkcore._native.relational cimport NO_ROW, core_late
from flinkcore._native.timer_queue cimport Timer, timer_queue_add


cdef enum Phase:
    BEGIN
    PAIRS  # of a left row with the right ones
    ALONE  # a left row
    RIGHT  # right rows


cdef bint _process(JoinCore* self, const JoinEvent* event) except -1 nogil:
    cdef int64_t i, end
    cdef bint is_late = True
    for i in range(event.n_ends):
        end = event.ends[i]
        if end - 1 <= self.core.cursor.watermark:
            continue
        is_late = False
        if event.can_match or comes_alone(self, event.side):
            keep_row(self, event, end)
            timer_queue_add(self.timers, end - 1, event.key, event.key_group, 0)
    if is_late:
        core_late(&self.core, self.event)
    else:
        self.core.processed += 1
    return True


cdef inline const OrderedRow* _in_window(const RowBlock* rows, RowPlace* place, int64_t end) noexcept nogil:
    # Returns the row at a place if it is in the window. Those of earlier windows are gone.
    cdef const OrderedRow* row = rows_at(rows, place)
    return row if row != NULL and row.time == end else NULL


cdef bint _join_left(JoinCore* self, const KeySide* left, const KeySide* right, int64_t end) except -1 nogil:
    # Joins the left rows of a window from the current one on. Returns false if results are full before.
    cdef bint is_alone = self.how == How.SEMI or self.how == How.ANTI
    cdef const OrderedRow* row
    cdef const OrderedRow* other
    while True:
        row = _in_window(&left.rows, &self.place, end)
        if row == NULL:
            return True
        while self.phase == Phase.PAIRS:
            other = _in_window(&right.rows, &self.other_place, end)
            if other == NULL or left.never_matches:
                self.phase = Phase.ALONE
                break
            if join_is_full(self):
                return False
            add_candidate(self, Candidate.PROBE if is_alone else Candidate.PAIR, row.row, other.row, end - 1)
            self.other_place.entry += 1
            if is_alone and not self.has_condition:
                self.phase = Phase.ALONE
        if is_alone or is_outer(self, 0):
            if join_is_full(self):
                return False
            add_candidate(
                self, Candidate.MATCHED_LEFT if self.how == How.SEMI else Candidate.PAD_LEFT, row.row, NO_ROW, end - 1
            )
        self.place.entry += 1
        self.other_place = rows_start(&right.rows)
        self.phase = Phase.PAIRS


cdef inline void _drop_window(JoinCore* self, KeySide* side, int number, int64_t end) noexcept nogil:
    cdef const OrderedRow* row = rows_first(&side.rows)
    while row != NULL and row.time == end:
        drop_first(self, side, number)
        row = rows_first(&side.rows)


cdef bint _fire(JoinCore* self, const Timer* timer) except -1 nogil:
    cdef KeySide* left = side_of(self, <uint32_t> timer.key, 0)
    cdef KeySide* right = side_of(self, <uint32_t> timer.key, 1)
    cdef int64_t end = timer.timestamp_ms + 1
    cdef const OrderedRow* row
    if self.phase == Phase.BEGIN:
        self.place = rows_start(&left.rows)
        self.other_place = rows_start(&right.rows)
        self.phase = Phase.PAIRS
    if self.phase != Phase.RIGHT:
        if not _join_left(self, left, right, end):
            return False
        self.place = rows_start(&right.rows)
        self.phase = Phase.RIGHT
    while is_outer(self, 1):
        row = _in_window(&right.rows, &self.place, end)
        if row == NULL:
            break
        if join_is_full(self):
            return False
        add_candidate(self, Candidate.PAD_RIGHT, NO_ROW, row.row, end - 1)
        self.place.entry += 1
    self.phase = Phase.BEGIN
    _drop_window(self, left, 0, end)
    _drop_window(self, right, 1, end)
    return True


cdef JoinVerbs _VERBS
_VERBS.process = _process
_VERBS.fire = _fire


def window_join():
    """Return the join of the rows of both inputs that are in the same window of a key.

    Returns
    -------
    JoinKind
    """
    cdef JoinKind kind = join_kind("a window join", &_VERBS, ("inner", "left", "right", "full", "semi", "anti"))
    kind.forgets_matches = True  # a row may be in several windows
    return kind

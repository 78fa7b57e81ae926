"""Temporal joins of Flink SQL: left rows with the version of their key that was valid at their time.

Follows TemporalRowTimeJoinOperator. A right row is a version, valid from its time on; of several with one time, the last to arrive
counts. A left row waits until the watermark has reached its time, and then takes the latest version that is not after it, of those
that have come by then. Left rows that are due together come in order of arrival. Versions older than the newest one that the watermark
has reached are forgotten when left rows of the key come out.

With a time to live it follows BaseTwoInputStreamOperatorWithStateRetention: a timer of processing time forgets all rows of a key, up to
half a time to live later than that, also left rows that wait. It is set again when a row of the key comes, or a timer of event time fires
and leaves rows behind, less than a time to live before it. Timers of event time stay, and fire for the rows that come later.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint32_t
from libc.stdlib cimport qsort

from flinkcore.errors import ConfigurationError

from flinkcore._native.join_kernel cimport (
    Candidate,
    JoinCore,
    JoinEvent,
    JoinKind,
    JoinVerbs,
    KeySide,
    add_candidate,
    drop_first,
    is_outer,
    join_is_full,
    join_kind,
    keep_row,
    side_of,
)
from flinkcore._native.key_expiry cimport cleanup_due
from flinkcore._native.memory cimport buffer_append
from flinkcore._native.ordered_rows cimport (
    OrderedRow,
    RowPlace,
    rows_at,
    rows_before,
    rows_find,
    rows_first,
    rows_start,
)
from flinkcore._native.relational cimport NO_ROW
from flinkcore._native.timer_queue cimport Timer, timer_queue_add, timer_queue_remove


cdef enum Phase:
    BEGIN
    COMING_OUT  # rows that have waited


cdef int _by_arrival(const void* a, const void* b) noexcept nogil:
    cdef int64_t first = (<const OrderedRow*> a).row, second = (<const OrderedRow*> b).row
    return (first > second) - (first < second)


cdef int _set_timer(JoinCore* self, uint32_t key, int32_t group, int64_t time) except -1 nogil:
    # Keeps the earlier one of two timers.
    cdef KeySide* left = side_of(self, key, 0)
    if left.timer != INT64_MIN:
        if left.timer <= time:
            return 0
        timer_queue_remove(self.timers, left.timer, key, group, 0)
    timer_queue_add(self.timers, time, key, group, 0)
    left.timer = time
    return 0


cdef void _forget(JoinCore* self, uint32_t key, int64_t now) noexcept nogil:
    # Forgets the rows of a key if its timer of processing time has fired until now.
    cdef int side
    cdef KeySide* own
    if side_of(self, key, 1).timer == INT64_MIN or side_of(self, key, 1).timer > now:
        return
    for side in range(2):
        own = side_of(self, key, side)
        own.timer = INT64_MIN
        while rows_first(&own.rows) != NULL:
            drop_first(self, own, side)


cdef void _put_off(JoinCore* self, uint32_t key, int64_t now) noexcept nogil:
    cdef KeySide* right = side_of(self, key, 1)
    right.timer = cleanup_due(right.timer, self.ttl_ms, now)


cdef int _add_version(JoinCore* self, const JoinEvent* event) except -1 nogil:
    cdef KeySide* right = side_of(self, event.key, 1)
    cdef RowPlace place = rows_find(&right.rows, event.timestamp, False)
    cdef OrderedRow* version = rows_at(&right.rows, &place)
    if version != NULL and version.time == event.timestamp:
        version.row = event.row
        return 0
    return keep_row(self, event, event.timestamp)


cdef bint _process(JoinCore* self, const JoinEvent* event) except -1 nogil:
    self.core.processed += 1
    if self.ttl_ms:
        _forget(self, event.key, event.arrival)
        _put_off(self, event.key, event.arrival)
    if not event.can_match and not is_outer(self, event.side):
        return True
    if event.side:
        _add_version(self, event)
    else:
        keep_row(self, event, event.timestamp)
    _set_timer(self, event.key, event.key_group, event.timestamp)
    return True


cdef int _begin_coming_out(JoinCore* self, KeySide* left) except -1 nogil:
    cdef const OrderedRow* row
    self.waiting.size = self.n_out = 0
    while True:
        row = rows_first(&left.rows)
        if row == NULL or row.time > self.core.cursor.watermark:
            break
        (<OrderedRow*> buffer_append(&self.waiting, sizeof(OrderedRow)))[0] = row[0]
        drop_first(self, left, 0)
    if self.waiting.size:  # else there may be no memory, which qsort must not be given
        qsort(self.waiting.data, self.waiting.size // sizeof(OrderedRow), sizeof(OrderedRow), _by_arrival)
    return 0


cdef void _forget_versions(JoinCore* self, KeySide* right) noexcept nogil:
    cdef RowPlace second
    cdef const OrderedRow* row
    while True:
        second = rows_start(&right.rows)
        second.entry += 1
        row = rows_at(&right.rows, &second)
        if row == NULL or row.time > self.core.cursor.watermark:
            return
        drop_first(self, right, 1)


cdef bint _fire(JoinCore* self, const Timer* timer) except -1 nogil:
    cdef KeySide* left = side_of(self, <uint32_t> timer.key, 0)
    cdef KeySide* right = side_of(self, <uint32_t> timer.key, 1)
    cdef const OrderedRow* row
    cdef const OrderedRow* version
    cdef int64_t now = min(self.core.cursor.clock, self.end_ms)
    if self.phase == Phase.BEGIN:
        if self.ttl_ms:
            _forget(self, <uint32_t> timer.key, now)
        left.timer = INT64_MIN
        _begin_coming_out(self, left)
        self.phase = Phase.COMING_OUT
    while self.n_out * <int64_t> sizeof(OrderedRow) < self.waiting.size:
        if join_is_full(self):
            return False
        row = <const OrderedRow*> self.waiting.data + self.n_out
        version = NULL
        if not left.never_matches:
            version = rows_before(&right.rows, rows_find(&right.rows, row.time, True))
        if version != NULL:
            add_candidate(self, Candidate.PAIR, row.row, version.row, row.time)
        if is_outer(self, 0):
            add_candidate(self, Candidate.PAD_LEFT, row.row, NO_ROW, row.time)
        self.n_out += 1
    self.phase = Phase.BEGIN
    _forget_versions(self, right)
    row = rows_first(&left.rows)
    if row != NULL:
        _set_timer(self, <uint32_t> timer.key, timer.key_group, row.time)
    if self.ttl_ms and (row != NULL or rows_first(&right.rows) != NULL):
        _put_off(self, <uint32_t> timer.key, now)
    elif self.ttl_ms:
        right.timer = INT64_MIN
    return True


cdef JoinVerbs _VERBS
_VERBS.process = _process
_VERBS.fire = _fire


def temporal_join(int64_t ttl_ms=0):
    """Return the join of left rows with the version of their key that was valid at their time.

    Parameters
    ----------
    ttl_ms : int
        Time to live of the rows of a key, in ms of processing time; 0 if they do not expire.

    Returns
    -------
    JoinKind

    Raises
    ------
    ConfigurationError
        If the time to live is not from 0 to 2**61.
    """
    if not 0 <= ttl_ms <= 1 << 61:
        raise ConfigurationError(f"a time to live of {ttl_ms} ms: it must be from 0 to 2**61")
    cdef JoinKind kind = join_kind("a temporal join", &_VERBS, ("inner", "left"))
    kind.ttl_ms = ttl_ms
    if ttl_ms:
        kind.forget = _forget
    return kind

# Joins of two inputs: the rows of each key and input in order of time, timers, and results whose condition is still to be evaluated.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from flinkcore._native.array_pool cimport Pool
from flinkcore._native.memory cimport Buffer, buffer_append
from flinkcore._native.ordered_rows cimport OrderedRow, RowBlock, RowPlace, rows_insert, rows_pop
from flinkcore._native.relational cimport NO_EVENT, NO_ROW, RelationalCore, ResultRow, core_is_full
from flinkcore._native.timer_queue cimport Timer, TimerQueue
from flinkcore._native.window_operator cimport RowKind


cdef enum How:
    INNER
    LEFT
    RIGHT
    FULL
    SEMI
    ANTI


cdef enum Candidate:
    # What waits to become a result, in place of a RowKind. The first ones are pairs of rows, for which the condition decides.
    PAIR            # both rows
    PROBE           # nothing, but the rows match
    WITHDRAW_LEFT   # the left row with nulls, withdrawn, if this is its first match
    WITHDRAW_RIGHT  # the right row with nulls
    FIRST_LEFT      # the left row alone, if this is its first match: it comes (semi), or is withdrawn (anti)
    LAST_OF_PAIRS = 4
    PAD_LEFT        # the left row with nulls, if it has had no match
    PAD_RIGHT       # the right row with nulls
    MATCHED_LEFT    # the left row alone, if it has had a match


cdef struct KeySide:
    RowBlock rows
    int64_t timer       # time of the one timer of these rows, where the join has such; INT64_MIN: none. Of right rows of a temporal
                        # join: first processing time at which a timer has forgotten both sides
    bint never_matches  # a part of the key is null


cdef struct JoinEvent:
    uint32_t key
    int32_t key_group
    int side
    int64_t row
    int64_t timestamp
    bint can_match       # false if a part of its key is null: it matches nothing
    int64_t arrival      # processing time, if keys expire
    const int64_t* ends  # (n_ends,): of its windows, ascending; only in window joins
    int64_t n_ends


cdef struct JoinVerbs:
    # Takes in an event. Returns false if results are full before it is done; then the same event comes again.
    bint (*process)(JoinCore* core, const JoinEvent* event) except -1 nogil
    # Lets a timer fire, in the same way.
    bint (*fire)(JoinCore* core, const Timer* timer) except -1 nogil
    # Removes rows of a key that cannot match any more, and for which no timer fires; NULL where a join has none.
    void (*sweep)(JoinCore* core, uint32_t key) noexcept nogil


cdef struct JoinColumns:
    # Columns of the events of a call besides those that all kernels take; NULL where there are none.
    const uint8_t* can_match
    const int64_t* arrivals
    const int64_t* ends
    const int64_t* offsets  # of `ends`, (n + 1,)


cdef struct JoinCore:
    RelationalCore core
    JoinColumns columns
    const JoinVerbs* verbs
    How how
    bint has_condition
    bint[2] keeps_matches    # of the rows of an input is known whether they have matched
    bint forgets_matches     # once a row has come out padded or alone
    bint has_changes         # results withdraw earlier ones; else rows without a match come when the log ends
    int64_t lower            # bounds of an interval: time of the right row minus that of the left one
    int64_t upper
    bint by_clock            # the times of an interval are the processing times at which rows come
    int64_t end_ms           # by the clock: its last reading, up to which rows expire
    int64_t ttl_ms           # of a key, in processing time; 0: keys do not expire
    TimerQueue* timers
    KeySide* sides           # two for each key
    Pool pool                # of their rows
    int64_t n_keys
    int64_t capacity
    int64_t[2] n_rows
    int64_t kept_since_sweep  # rows kept since `sweep` has looked at all keys
    int64_t swept_below       # keys with lower ids have no rows
    Buffer[2] matches        # a bit for each row number
    # Where an event or a timer goes on when results have been taken
    bint in_event
    bint in_timer
    int phase
    RowPlace place
    RowPlace other_place
    Timer timer
    Buffer waiting           # OrderedRow: rows on their way out
    int64_t n_out            # of these
    # The cause of results: event NO_EVENT for a timer
    int64_t event
    uint32_t key
    int64_t fired


cdef inline bint has_match(const JoinCore* core, int side, int64_t row) noexcept nogil:
    # Returns whether a row has had a match, as far as candidates are settled.
    cdef const Buffer* bits = &core.matches[side]
    return row >> 3 < bits.size and bits.data[row >> 3] >> (row & 7) & 1


cdef inline bint is_outer(const JoinCore* core, int side) noexcept nogil:
    # Returns whether rows of an input come out without a match, with nulls.
    if core.how == How.FULL:
        return True
    return core.how == (How.RIGHT if side else How.LEFT)


cdef inline bint comes_alone(const JoinCore* core, int side) noexcept nogil:
    # Returns whether rows of an input come out even if nothing matches them.
    return is_outer(core, side) or (core.how == How.ANTI and side == 0)


cdef inline KeySide* side_of(const JoinCore* core, uint32_t key, int side) noexcept nogil:
    return &core.sides[2 * <int64_t> key + side]


cdef inline bint join_is_full(const JoinCore* core) noexcept nogil:
    return core_is_full(&core.core)


cdef inline int add_candidate(
    JoinCore* core, Candidate kind, int64_t left, int64_t right, int64_t timestamp
) except -1 nogil:
    cdef ResultRow* row = <ResultRow*> buffer_append(&core.core.results, sizeof(ResultRow))
    row.left = left
    row.right = right
    row.event = core.event
    row.step = core.core.step
    row.fired = core.fired
    row.timestamp = timestamp
    row.value = 0
    row.key_id = core.key
    row.kind = <uint8_t> kind
    core.core.n_results += 1
    return 0


cdef inline int add_pair(
    JoinCore* core, Candidate kind, int side, int64_t own, int64_t other, int64_t timestamp
) except -1 nogil:
    # The pair of a row of an input and one of the other input.
    return add_candidate(core, kind, other if side else own, own if side else other, timestamp)


cdef inline int add_padded(JoinCore* core, int side, int64_t row, int64_t timestamp) except -1 nogil:
    return add_candidate(
        core,
        Candidate.PAD_RIGHT if side else Candidate.PAD_LEFT,
        NO_ROW if side else row,
        row if side else NO_ROW,
        timestamp,
    )


cdef inline int keep_row(JoinCore* core, const JoinEvent* event, int64_t time) except -1 nogil:
    cdef KeySide* side = side_of(core, event.key, event.side)
    rows_insert(&core.pool, &side.rows, time, event.row)
    side.never_matches = not event.can_match
    core.n_rows[event.side] += 1
    core.kept_since_sweep += 1
    core.swept_below = min(core.swept_below, <int64_t> event.key)
    return 0


cdef inline void drop_first(JoinCore* core, KeySide* side, int number) noexcept nogil:
    rows_pop(&core.pool, &side.rows)
    core.n_rows[number] -= 1


cdef class JoinKind:
    cdef const JoinVerbs* verbs
    cdef readonly str name
    cdef int64_t lower
    cdef int64_t upper
    cdef bint by_clock
    cdef bint forgets_matches
    cdef int64_t ttl_ms
    cdef void (*forget)(JoinCore* core, uint32_t key, int64_t now) noexcept nogil  # what has expired; NULL: nothing does
    cdef frozenset how


cdef JoinKind join_kind(str name, const JoinVerbs* verbs, how)

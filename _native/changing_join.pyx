"""Regular joins of Flink SQL over changes: all rows of a key, which come and are withdrawn.

Follows StreamingJoinOperator and StreamingSemiAntiJoinOperator with their state views. Of each row of an outer side (of a left row of
a semi or anti join) is known how many rows match it: its first match withdraws the padded row, and its last one that is withdrawn
gives it back. Without changes in the results, only the rows that are left when the log ends are joined.

A condition of the user's on both rows is evaluated by the caller, as for `JoinKernel`: candidates wait, and `take` settles them in
the order in which they came. Differs from Flink: a padded row comes or goes next to the pair that decides it, and not before or
after all pairs of the event.

With a time to live, rows expire as in these state views: equal rows of a key are one entry, which is written when one of them comes or is
withdrawn and, of an outer side, when a row of the other input matches it or is withdrawn. Then a row that is withdrawn need not be here:
its pairs are withdrawn all the same.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.changing_rows cimport (
    NO_SLOT,
    ChangingRow,
    ChangingRows,
    Identity,
    changing_add,
    changing_find,
    changing_free,
    changing_is_sound,
    changing_memory,
    changing_reach,
    changing_remove,
    changing_slots,
    identity_of,
)
from flinkcore._native.entry_heap cimport HeapEntry, entry_slot, entry_time, heap_sift_down, heap_sift_up, make_entry
from flinkcore._native.join_kernel cimport How
from flinkcore._native.key_dictionary cimport KeyDictionary
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free, buffer_reserve
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.relational cimport (
    NO_EVENT,
    NO_ROW,
    RelationalCore,
    RelationalEvents,
    ResultRow,
    core_add,
    core_advance,
    core_events,
    core_free,
    core_is_full,
    core_n_keys,
    core_open,
    core_process,
    core_take,
)
from flinkcore._native.window_operator cimport RowKind


cdef enum Candidate:
    # What waits to become a result, in the low bits of a kind; the high ones have the RowKind of the event. The first ones are pairs of
    # rows, for which the condition decides.
    PAIR_COMES      # both rows, and the other one has a match more
    PAIR_GOES       # both rows
    FIRST_OF_OTHER  # the other row with nulls is withdrawn, if this is its first match
    LAST_OF_OTHER   # the other row has a match less; if it was the last, it comes with nulls
    PROBE           # nothing, but the rows match
    LEFT_MATCHED    # the left row has a match more; if it is the first, it comes (semi), or is withdrawn (anti)
    LEFT_UNMATCHED  # the left row has a match less; if it was the last, it is withdrawn (semi), or comes (anti)
    LAST_OF_PAIRS = 6
    ROW_COMES       # after the pairs of a row of the event: it comes alone if their number decides so
    ROW_GOES
    PAD_RIGHT       # the right row with nulls, if it has no match

cdef enum:
    CANDIDATE_BITS = 4
    CANDIDATE_MASK = 15

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


cdef struct ChangingColumns:
    # Columns of the events of a call besides those that all kernels take; NULL where there are none.
    const uint8_t* kinds        # RowKind; NULL: all are insertions
    const uint64_t* identities  # (n, 2)
    const uint8_t* can_match    # 0 if a part of the key is null: the row matches nothing


cdef struct EqualRows:
    Identity identity
    uint32_t key
    int side


cdef struct ChangingJoin:
    RelationalCore core
    ChangingColumns columns
    How how
    bint has_condition
    bint is_final             # rows are joined when the log ends, and not before
    bint[2] counts_matches    # of the rows of an input is known how many match them
    bint[2] replaces          # rows of an input have a unique key: one that comes takes the place of that with the same key
    ChangingRows[2] sides
    Buffer never_matches      # uint8 by key
    Buffer[2] matches         # int64 by number of row
    int64_t passed            # pairs of the row of the event that meet the condition, so far, if it comes alone without any
    int64_t unknown           # rows that were withdrawn and not there
    int64_t[2] ttl_ms         # 0: rows of an input never expire
    bint expires              # rows of an input do
    Buffer[2] written         # int64 by number of row: of the first of equal rows, processing time at which they were written
    Buffer[2] expiring        # HeapEntry: slots of the first of equal rows, by a time not after that at which they were written
    int64_t expiry_checks     # of rows in there whose turn came
    const int64_t* arrivals   # of the events of a call, if rows expire
    int64_t n_takes           # of results, and 1
    Buffer pending            # int64 by key, if rows expire: twice the take that its results wait for, and 1 with equal rows
    Buffer equals             # EqualRows that came: once results are taken, they have the same number of matches
    # Where an event goes on when results have been taken
    bint in_event
    uint32_t place            # slot of the next row of the other input
    # The end: keys in order, and where it goes on
    int64_t key_place
    uint32_t left_place
    uint32_t right_place
    bint in_key


# ---- how many rows match ------------------------------------------------------------------------------------------


cdef inline int64_t* _matches(ChangingJoin* self, int side, int64_t row) except NULL nogil:
    # Returns where the number of matches of a row is; that of a row that is not known yet is 0.
    cdef Buffer* counts = &self.matches[side]
    cdef int64_t size = counts.size
    if (row + 1) * 8 > size:
        buffer_reserve(counts, (row + 1) * 8 - size)
        counts.size = (row + 1) * 8
        memset(counts.data + size, 0, counts.size - size)
    return <int64_t*> counts.data + row


# ---- rows that expire ---------------------------------------------------------------------------------------------


cdef inline int _write(ChangingJoin* self, int side, int64_t row, int64_t now) except -1 nogil:
    # Notes the processing time at which the row, the first of its equals, was written.
    cdef Buffer* written = &self.written[side]
    cdef int64_t size = written.size
    if not self.ttl_ms[side]:
        return 0
    if (row + 1) * 8 > size:
        buffer_reserve(written, (row + 1) * 8 - size)
        memset(written.data + size, 0, (row + 1) * 8 - size)
        written.size = (row + 1) * 8
    (<int64_t*> written.data)[row] = now
    return 0


cdef inline int64_t _written(const ChangingJoin* self, int side, int64_t row) noexcept nogil:
    # Returns what was noted for a row; 0 for one that is not the first of its equals.
    if (row + 1) * 8 > self.written[side].size:
        return 0
    return (<int64_t*> self.written[side].data)[row]


cdef inline int64_t* _pending(const ChangingJoin* self, uint32_t key) noexcept nogil:
    return <int64_t*> self.pending.data + key


cdef inline void _await(ChangingJoin* self, uint32_t key, bint of_equals) noexcept nogil:
    # Notes that results of a key wait.
    cdef int64_t* pending = _pending(self, key)
    if pending[0] >> 1 != self.n_takes:
        pending[0] = 2 * self.n_takes
    pending[0] |= of_equals


cdef inline bint _has_expired(const ChangingJoin* self, int side, int64_t written, int64_t now) noexcept nogil:
    # Unsigned, since a time to live may be as long as all time.
    return <uint64_t> now - <uint64_t> written >= <uint64_t> self.ttl_ms[side]


cdef int _watch(ChangingJoin* self, int side, uint32_t slot) except -1 nogil:
    # Puts the first of equal rows, which has been written, into the queue of those that will expire. A row that is there already stays
    # at its place: when its turn comes, it goes back by the time at which it was written last.
    cdef ChangingRow* row = &self.sides[side].slots[slot]
    cdef Buffer* queue = &self.expiring[side]
    if row.is_watched or not self.ttl_ms[side]:
        return 0
    buffer_append(queue, sizeof(HeapEntry))
    heap_sift_up(
        <HeapEntry*> queue.data,
        queue.size // sizeof(HeapEntry) - 1,
        make_entry(_written(self, side, row.row), 0, slot),
        NULL,
    )
    row.is_watched = True
    return 0


cdef void _forget(ChangingJoin* self, int side, uint32_t key, Identity identity) noexcept nogil:
    # Forgets all equal rows.
    cdef ChangingRows* rows = &self.sides[side]
    cdef uint32_t slot = changing_find(rows, key, identity)
    while slot != NO_SLOT:
        changing_remove(rows, slot)
        slot = changing_find(rows, key, identity)


cdef bint _forget_expired(ChangingJoin* self, int side, int64_t now) noexcept nogil:
    # Forgets the rows that have expired. Returns false, before it forgets one, if results that wait may have written it.
    cdef ChangingRows* rows = &self.sides[side]
    cdef Buffer* queue = &self.expiring[side]
    cdef HeapEntry* heap = <HeapEntry*> queue.data
    cdef uint64_t n = queue.size // sizeof(HeapEntry)
    cdef ChangingRow* row
    cdef uint32_t slot
    cdef int64_t written
    while n and _has_expired(self, side, entry_time(heap[0]), now):
        self.expiry_checks += 1
        slot = entry_slot(heap[0])
        row = &rows.slots[slot]
        # Rows that were withdrawn, or have equal ones before them since their slot has another row, are forgotten with those.
        if row.row >= 0 and changing_find(rows, row.key, row.identity) == slot:
            written = _written(self, side, row.row)
            if not _has_expired(self, side, written, now):
                heap_sift_down(heap, n, 0, make_entry(written, 0, slot), NULL)
                continue
            if self.counts_matches[side] and _pending(self, row.key)[0] >> 1 == self.n_takes:
                return False
            _forget(self, side, row.key, row.identity)
        row.is_watched = False
        n -= 1
        queue.size = n * sizeof(HeapEntry)
        if n:
            heap_sift_down(heap, n, 0, heap[n], NULL)
    return True


cdef int _level(ChangingJoin* self, const EqualRows* equals) except -1 nogil:
    # Gives equal rows the number of matches of the one that came last.
    cdef ChangingRows* rows = &self.sides[equals.side]
    cdef uint32_t slot = changing_find(rows, equals.key, equals.identity)
    cdef int64_t n
    if slot == NO_SLOT:
        return 0
    n = _matches(self, equals.side, rows.slots[rows.slots[slot].last_copy].row)[0]
    while slot != NO_SLOT:
        _matches(self, equals.side, rows.slots[slot].row)[0] = n
        slot = rows.slots[slot].next_copy
    return 0


# ---- candidates ---------------------------------------------------------------------------------------------------


cdef inline bint _is_outer(const ChangingJoin* self, int side) noexcept nogil:
    return self.counts_matches[side] and self.how != How.SEMI and self.how != How.ANTI


cdef inline ResultRow* _add(
    ChangingJoin* self, Candidate what, uint8_t kind, int64_t left, int64_t right, int64_t event, uint32_t key, int64_t timestamp
) except NULL nogil:
    cdef ResultRow* row = core_add(&self.core, left, event, key, timestamp, RowKind.INSERT)
    row.right = right
    row.kind = <uint8_t> (what | kind << CANDIDATE_BITS)
    if event == NO_EVENT:
        row.fired = INT64_MAX
    return row


cdef bint _settle_row(ChangingJoin* self, ResultRow* row, bint passed) except -1 nogil:
    # Makes a candidate a result, with its RowKind. Returns false if it is none. The value of a candidate of a pair is the side of the
    # other row, and above that the processing time if rows expire. That of a row alone is its side, and above that the number of its
    # matches where they did not wait as pairs.
    cdef int what = row.kind & CANDIDATE_MASK
    cdef uint8_t kind = row.kind >> CANDIDATE_BITS
    cdef int side = <int> (row.value & 1)
    cdef int64_t* matches
    cdef int64_t n
    row.kind = kind
    if what <= Candidate.LAST_OF_PAIRS and not passed:
        return False
    if self.expires and what <= Candidate.LAST_OF_PAIRS and self.counts_matches[side]:
        # A later event may have written it before this result was taken.
        if row.value >> 1 > _written(self, side, row.right if side else row.left):
            _write(self, side, row.right if side else row.left, row.value >> 1)
    if what == Candidate.PAIR_COMES or what == Candidate.PAIR_GOES:
        self.passed += self.counts_matches[1 - side]
        if what == Candidate.PAIR_COMES and self.counts_matches[side]:
            _matches(self, side, row.right if side else row.left)[0] += 1
        return True
    if what == Candidate.PROBE:
        self.passed += 1
        return False
    if what == Candidate.ROW_COMES or what == Candidate.ROW_GOES:
        n = self.passed + (row.value >> 1)
        self.passed = 0
        if what == Candidate.ROW_COMES:
            _matches(self, side, row.right if side else row.left)[0] = n
        return (n > 0) == (self.how == How.SEMI)
    matches = _matches(self, side, row.right if side else row.left)
    if what == Candidate.PAD_RIGHT:
        return matches[0] == 0
    if what == Candidate.FIRST_OF_OTHER:
        if matches[0] != 0:
            return False
        row.kind = RowKind.DELETE
    elif what == Candidate.LEFT_MATCHED:
        matches[0] += 1
        if matches[0] != 1:
            return False
        if self.how == How.ANTI:
            row.kind = RowKind.DELETE
    else:
        matches[0] -= 1
        if matches[0] != 0:
            return False
        if what == Candidate.LAST_OF_OTHER or self.how == How.ANTI:
            row.kind = RowKind.INSERT
    if side:
        row.left = NO_ROW
    else:
        row.right = NO_ROW
    return True


cdef int _settle(ChangingJoin* self, const uint8_t* passed) except -1 nogil:
    # Turns candidates into results; `passed` has a value for each pair, NULL: all pass.
    cdef ResultRow* rows = <ResultRow*> self.core.results.data
    cdef int64_t i, pair = 0, n = 0
    cdef bint passes
    for i in range(self.core.n_results):
        passes = True
        if rows[i].kind & CANDIDATE_MASK <= Candidate.LAST_OF_PAIRS:
            passes = passed == NULL or passed[pair]
            pair += 1
        if _settle_row(self, &rows[i], passes):
            rows[n] = rows[i]
            n += 1
    self.core.n_results = n
    self.core.results.size = n * sizeof(ResultRow)
    for i in range(self.equals.size // <int64_t> sizeof(EqualRows)):
        _level(self, <const EqualRows*> self.equals.data + i)
    self.equals.size = 0
    self.n_takes += 1
    return 0


# ---- events -------------------------------------------------------------------------------------------------------


cdef struct ChangingEvent:
    int64_t number
    uint32_t key
    int side
    int64_t row
    int64_t timestamp
    uint8_t kind
    Identity identity
    bint can_match
    int64_t now       # processing time, if rows expire


cdef inline bint _comes(const ChangingEvent* event) noexcept nogil:
    return event.kind == RowKind.INSERT or event.kind == RowKind.UPDATE_AFTER


cdef inline bint _keeps(const ChangingJoin* self, const ChangingEvent* event) noexcept nogil:
    # Returns whether the row is kept: one that matches nothing comes out at the end only, if it comes out at all.
    return event.can_match or (self.is_final and self.counts_matches[event.side])


cdef inline bint _is_unknown(const ChangingJoin* self, const ChangingEvent* event) noexcept nogil:
    # Returns whether a row is withdrawn that would be here, and is not.
    return _keeps(self, event) and changing_find(&self.sides[event.side], event.key, event.identity) == NO_SLOT


cdef int _keep(ChangingJoin* self, const ChangingEvent* event) except -1 nogil:
    # Adds the row to those of its key, or withdraws it.
    cdef ChangingRows* own = &self.sides[event.side]
    cdef uint32_t slot = NO_SLOT
    cdef EqualRows* equals
    if not _keeps(self, event):
        return 0
    self.never_matches.data[event.key] = not event.can_match
    if not _comes(event) or self.replaces[event.side] or self.expires:
        slot = changing_find(own, event.key, event.identity)
    if not _comes(event):
        if slot != NO_SLOT:
            changing_remove(own, slot)
    elif slot != NO_SLOT and self.replaces[event.side]:
        own.slots[slot].row = event.row
    else:
        changing_add(own, event.key, event.identity, event.row, event.timestamp)
        if slot != NO_SLOT and self.counts_matches[event.side]:
            equals = <EqualRows*> buffer_append(&self.equals, sizeof(EqualRows))
            equals.identity = event.identity
            equals.key = event.key
            equals.side = event.side
            _await(self, event.key, True)
    if self.expires:
        slot = changing_find(own, event.key, event.identity)
        if slot != NO_SLOT:
            _write(self, event.side, own.slots[slot].row, event.now)
            _watch(self, event.side, slot)
    return 0


cdef bint _add_pairs(ChangingJoin* self, const ChangingEvent* event) except -1 nogil:
    # Adds the candidates of the rows of the other input, from where results were full. Returns false if they are full again.
    cdef int other = 1 - event.side
    cdef const ChangingRows* others = &self.sides[other]
    cdef bint comes = _comes(event), counts = self.counts_matches[other]
    cdef bint of_left_alone = self.how == How.SEMI or self.how == How.ANTI
    cdef uint8_t kind = event.kind
    cdef int64_t left, right
    cdef Candidate what
    cdef int64_t value = other + 2 * event.now
    if _is_outer(self, 0) or _is_outer(self, 1):
        kind = RowKind.INSERT if comes else RowKind.DELETE
        if not comes and not _is_outer(self, event.side):
            kind = event.kind
    while self.place != NO_SLOT:
        if core_is_full(&self.core):
            return False
        left = others.slots[self.place].row if event.side else event.row
        right = event.row if event.side else others.slots[self.place].row
        if of_left_alone:
            what = Candidate.PROBE
            if event.side:
                what = Candidate.LEFT_MATCHED if comes else Candidate.LEFT_UNMATCHED
            _add(self, what, kind, left, right, event.number, event.key, event.timestamp).value = value
        else:
            if counts and comes:
                _add(
                    self, Candidate.FIRST_OF_OTHER, kind, left, right, event.number, event.key, event.timestamp
                ).value = value
            what = Candidate.PAIR_COMES if comes else Candidate.PAIR_GOES
            _add(self, what, kind, left, right, event.number, event.key, event.timestamp).value = value
            if counts and not comes:
                _add(
                    self, Candidate.LAST_OF_OTHER, kind, left, right, event.number, event.key, event.timestamp
                ).value = value
        self.place = others.slots[self.place].after
    return True


cdef int _add_alone(ChangingJoin* self, const ChangingEvent* event, int64_t more_matches) except -1 nogil:
    # Adds the candidate of the row of the event itself.
    cdef bint comes = _comes(event)
    cdef uint8_t kind = event.kind
    if _is_outer(self, event.side):
        kind = RowKind.INSERT if comes else RowKind.DELETE
    _add(
        self,
        Candidate.ROW_COMES if comes else Candidate.ROW_GOES,
        kind,
        NO_ROW if event.side else event.row,
        event.row if event.side else NO_ROW,
        event.number,
        event.key,
        event.timestamp,
    ).value = more_matches << 1 | event.side
    return 0


cdef bint _process(ChangingJoin* self, const ChangingEvent* event) except -1 nogil:
    # Returns false if results are full before the event is done; then it comes again.
    cdef const ChangingRows* others = &self.sides[1 - event.side]
    cdef bint skips_pairs = not event.can_match, counts_all
    # Without a condition all rows of the other input match a left row, which comes or not.
    counts_all = not skips_pairs and not self.has_condition and event.side == 0 and (
        self.how == How.SEMI or self.how == How.ANTI
    )
    if not self.in_event:
        if self.expires and (
            _pending(self, event.key)[0] == 2 * self.n_takes + 1
            or not _forget_expired(self, 0, event.now)
            or not _forget_expired(self, 1, event.now)
        ):
            return False
        self.core.processed += 1
        if not self.expires and not _comes(event) and _is_unknown(self, event):
            self.unknown += 1
            return True
        self.place = NO_SLOT if skips_pairs or counts_all or self.is_final else others.keys[event.key].first
        self.in_event = True
    if not self.is_final:
        if self.expires:
            _await(self, event.key, False)
        if not _add_pairs(self, event):
            return False
        if self.counts_matches[event.side]:
            _add_alone(self, event, others.keys[event.key].n if counts_all else 0)
    self.in_event = False
    _keep(self, event)
    return True


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    return True  # without timers


cdef int _reach(ChangingJoin* self, int64_t n_keys) except -1 nogil:
    cdef int64_t size = self.never_matches.size
    changing_reach(&self.sides[0], n_keys)
    changing_reach(&self.sides[1], n_keys)
    if n_keys > size:
        buffer_reserve(&self.never_matches, n_keys - size)
        self.never_matches.size = n_keys
        memset(self.never_matches.data + size, 0, n_keys - size)
    size = self.pending.size
    if self.expires and n_keys * 8 > size:
        buffer_reserve(&self.pending, n_keys * 8 - size)
        self.pending.size = n_keys * 8
        memset(self.pending.data + size, 0, n_keys * 8 - size)
    return 0


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef ChangingJoin* self = <ChangingJoin*> core
    cdef const ChangingColumns* columns = &self.columns
    cdef ChangingEvent event
    cdef int64_t i
    _reach(self, core_n_keys(events, first))
    for i in range(first, events.n):
        if not self.in_event and (core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False)):
            return i
        event.number = i
        event.key = events.key_ids[i]
        event.side = events.inputs[i]
        event.row = events.rows[i]
        event.timestamp = events.timestamps[i]
        event.kind = RowKind.INSERT if columns.kinds == NULL else columns.kinds[i]
        event.identity = identity_of(columns.identities, i)
        event.can_match = columns.can_match == NULL or columns.can_match[i]
        event.now = self.arrivals[i] if self.expires else 0
        if not _process(self, &event):
            return i
    return events.n


# ---- the end ------------------------------------------------------------------------------------------------------


cdef bint _join_key(ChangingJoin* self, uint32_t key) except -1 nogil:
    # Joins the rows of a key that are left, from where results were full. Returns false if they are full again.
    cdef const ChangingRows* left = &self.sides[0]
    cdef const ChangingRows* right = &self.sides[1]
    cdef bint matches = not self.never_matches.data[key], of_left_alone = self.how == How.SEMI or self.how == How.ANTI
    cdef int64_t row
    if not self.in_key:
        self.left_place = left.keys[key].first
        self.right_place = right.keys[key].first if matches else <uint32_t> NO_SLOT
        self.in_key = True
    while self.left_place != NO_SLOT:
        if core_is_full(&self.core):
            return False
        row = left.slots[self.left_place].row
        while self.right_place != NO_SLOT:
            if core_is_full(&self.core):
                return False
            _add(
                self,
                Candidate.PROBE if of_left_alone else Candidate.PAIR_COMES,
                RowKind.INSERT,
                row,
                right.slots[self.right_place].row,
                NO_EVENT,
                key,
                INT64_MAX,
            ).value = 1
            self.right_place = right.slots[self.right_place].after
        if self.counts_matches[0]:
            _add(self, Candidate.ROW_COMES, RowKind.INSERT, row, NO_ROW, NO_EVENT, key, INT64_MAX).value = 0
        self.left_place = left.slots[self.left_place].after
        if self.left_place != NO_SLOT and matches:
            self.right_place = right.keys[key].first
    # Right rows without a match: the same rows again.
    if self.counts_matches[1]:
        if self.right_place == NO_SLOT:
            self.right_place = right.keys[key].first
        while self.right_place != NO_SLOT:
            if core_is_full(&self.core):
                return False
            _add(
                self, Candidate.PAD_RIGHT, RowKind.INSERT, NO_ROW, right.slots[self.right_place].row, NO_EVENT, key, INT64_MAX
            ).value = 1
            self.right_place = right.slots[self.right_place].after
    self.in_key = False
    return True


cdef bint _finish(ChangingJoin* self, const int64_t* keys, int64_t n_keys) except -1 nogil:
    if not core_advance(&self.core, _fire_due, INT64_MAX, True):
        return False
    while self.key_place < n_keys:
        if not _join_key(self, <uint32_t> keys[self.key_place]):
            return False
        self.key_place += 1
    return True


# ---- the kernel ---------------------------------------------------------------------------------------------------


@cython.final
cdef class ChangingJoinKernel:
    """Joins two inputs of changes; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    Parameters
    ----------
    keys : KeyDictionary
        The keys whose ids events have.
    timeline : PackedSteps
        Steps of the timeline.
    how : str
        Which rows come out without a match: "inner", "left", "right", "full"; or "semi" and "anti" for left rows alone.
    has_condition : bool
        Whether pairs have a condition, which the caller evaluates before it takes results.
    has_kinds : bool
        Whether results are changes; else the rows that are left are joined when the log ends.
    replaces : tuple of two bools
        For each input, whether identities are those of a unique key, so that a row that comes replaces the one before it.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most candidates that may wait.
    ttl_ms : tuple of two ints
        For each input, time to live of its rows in ms of processing time after they were written; 0 if they never expire.

    Raises
    ------
    ConfigurationError
        If the limit, the steps done or a time to live are out of their range, there is no such `how`, or rows would expire
        before they are joined at the end of the log.
    """

    cdef CallGuard guard
    cdef ChangingJoin state
    cdef PackedSteps _timeline
    cdef KeyDictionary _keys
    cdef object _at_end

    def __cinit__(
        self,
        KeyDictionary keys not None,
        PackedSteps timeline not None,
        *,
        str how,
        bint has_condition,
        bint has_kinds,
        tuple replaces,
        int64_t steps_done,
        int64_t result_limit,
        tuple ttl_ms=(0, 0),
    ):
        if how not in _HOW:
            raise ConfigurationError(f"a regular join has no how={how!r}; give one of {', '.join(sorted(_HOW))}")
        self._timeline = timeline
        self._keys = keys
        self.state.how = _HOW[how]
        self.state.has_condition = has_condition
        self.state.is_final = not has_kinds
        self.state.replaces[0], self.state.replaces[1] = replaces
        if min(ttl_ms) < 0 or (any(ttl_ms) and not has_kinds):
            raise ConfigurationError(f"times to live of {ttl_ms} ms: they must not be negative, and results be changes")
        self.state.ttl_ms[0], self.state.ttl_ms[1] = ttl_ms
        self.state.expires = any(ttl_ms)
        self.state.n_takes = 1
        self.state.counts_matches[0] = how in ("left", "full", "semi", "anti")
        self.state.counts_matches[1] = how in ("right", "full")
        core_open(&self.state.core, timeline, steps_done, result_limit, True, has_kinds, False)

    def __dealloc__(self):
        cdef int side
        core_free(&self.state.core)
        buffer_free(&self.state.never_matches)
        buffer_free(&self.state.pending)
        buffer_free(&self.state.equals)
        for side in range(2):
            changing_free(&self.state.sides[side])
            buffer_free(&self.state.matches[side])
            buffer_free(&self.state.written[side])
            buffer_free(&self.state.expiring[side])

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int8_t[::1] inputs not None,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const uint8_t[::1] can_match,
        const uint8_t[::1] kinds,
        const uint64_t[:, ::1] identities not None,
        const int64_t[::1] arrivals=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        can_match : uint8 array (n,) or None
            0 for events that match nothing, as a part of their key is null.
        kinds : uint8 array (n,) or None
            Flink's number of the kind of change; None: all are insertions.
        identities : uint64 array (n, 2)
            Equal for rows that are equal: those of an input that have the same columns, or the same unique key.
        arrivals : int64 array (n,) or None
            Processing times in ms since the epoch, not descending; given if rows expire.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RelationalEvents events
        cdef ChangingColumns* columns = &self.state.columns
        cdef int64_t n = key_ids.shape[0]
        memset(columns, 0, sizeof(ChangingColumns))
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        if (can_match is not None and can_match.shape[0] != n) or (kinds is not None and kinds.shape[0] != n):
            raise ValueError("each event needs its kind, and whether it can match")
        if identities.shape[0] != n or identities.shape[1] != 2:
            raise ValueError("each event needs an identity of two words")
        if n == 0:
            return 0
        columns.can_match = NULL if can_match is None else &can_match[0]
        columns.kinds = NULL if kinds is None else &kinds[0]
        columns.identities = &identities[0, 0]
        if self.state.expires:
            if arrivals is None or arrivals.shape[0] != n:
                raise ValueError("each event needs its arrival")
            self.state.arrivals = &arrivals[0]
        return core_process(&self.state.core, _take_events, &events, first)

    def advance(self, int64_t steps_before):
        """Put the watermarks of so many steps in force, none of which gives a result."""
        cdef Call call = begin_call(&self.guard, self)
        core_advance(&self.state.core, _fire_due, steps_before, False)
        return True

    def finish(self):
        """Join what is left, if results are no changes. Returns false if results are full before: take them, and call again."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const int64_t[::1] keys
        cdef int64_t n_keys = self.state.sides[0].n_keys
        cdef bint done
        if self._at_end is None:
            # By key group, so that results of all partitions merge in one order.
            ids = np.arange(n_keys if self.state.is_final else 0, dtype=np.uint32)
            self._at_end = np.argsort(self._keys.key_group(ids), kind="stable").astype(np.int64)
        keys = self._at_end
        n_keys = keys.shape[0]
        with nogil:
            done = _finish(&self.state, &keys[0] if n_keys else NULL, n_keys)
        return done

    @property
    def is_full(self):
        """Whether results are to be taken before it goes on."""
        return core_is_full(&self.state.core)

    def pairs(self):
        """Return the numbers of the left and the right rows of the pairs that wait for the condition: two int64 arrays (n,)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const ResultRow* rows = <const ResultRow*> self.state.core.results.data
        cdef int64_t i, n = 0, n_rows = self.state.core.n_results
        for i in range(n_rows):
            n += rows[i].kind & CANDIDATE_MASK <= Candidate.LAST_OF_PAIRS
        cdef int64_t[:, ::1] numbers = np.empty((2, n), np.int64)
        n = 0
        with nogil:
            for i in range(n_rows):
                if rows[i].kind & CANDIDATE_MASK <= Candidate.LAST_OF_PAIRS:
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
        if passed is not None and passed.shape[0]:
            each = &passed[0]
        with nogil:
            _settle(&self.state, each)
        return core_take(&self.state.core)

    def counts(self):
        """Return how many events it has taken in, by what became of them."""
        return {"processed": self.state.core.processed, "late": 0}

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        return self.state.core.cursor.watermark

    def memory_bytes(self):
        """Bytes that its state takes, without rows, keys and timers."""
        check_no_call(&self.guard, self)
        counts = self.state.matches[0].capacity + self.state.matches[1].capacity + self.state.never_matches.capacity
        counts += self.state.written[0].capacity + self.state.written[1].capacity + self.state.pending.capacity
        counts += self.state.expiring[0].capacity + self.state.expiring[1].capacity
        return changing_memory(&self.state.sides[0]) + changing_memory(&self.state.sides[1]) + counts

    @property
    def live_count(self):
        """Number of row numbers that it holds."""
        return self.state.sides[0].n_rows + self.state.sides[1].n_rows

    def forget_expired(self, int64_t now):
        """Forget the rows that have expired at a processing time. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        _forget_expired(&self.state, 0, now)
        _forget_expired(&self.state, 1, now)

    @property
    def expiry_checks(self):
        """Number of times at which a row has been looked at because it might have expired."""
        return self.state.expiry_checks

    cdef object _slots(self, int side):
        # The slots of the rows of an input, key by key, in their order.
        cdef const ChangingRows* rows = &self.state.sides[side]
        cdef uint32_t[::1] slots = np.empty(rows.n_rows, np.uint32)
        if rows.n_rows:
            changing_slots(rows, &slots[0])
        return slots.base

    def live_rows(self, int input_number):
        """Return the row numbers that it holds of an input, as an int64 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] slots = self._slots(input_number)
        cdef int64_t[::1] live = np.empty(slots.shape[0], np.int64)
        cdef int64_t i
        for i in range(slots.shape[0]):
            live[i] = self.state.sides[input_number].slots[slots[i]].row
        return live.base

    def renumber(self, const int64_t[::1] rows not None, int input_number):
        """Hold other numbers for the rows of an input, in the order of `live_rows`. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] slots = self._slots(input_number)
        cdef int64_t[::1] counts = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] written = np.empty(slots.shape[0], np.int64)
        cdef int64_t i
        cdef ChangingRow* row
        if rows.shape[0] != slots.shape[0]:
            raise ValueError(f"{rows.shape[0]} numbers for {slots.shape[0]} rows")
        for i in range(slots.shape[0]):
            row = &self.state.sides[input_number].slots[slots[i]]
            counts[i] = _matches(&self.state, input_number, row.row)[0]
            written[i] = _written(&self.state, input_number, row.row)
            row.row = rows[i]
        self.state.matches[input_number].size = self.state.written[input_number].size = 0
        for i in range(slots.shape[0]):
            _write(&self.state, input_number, rows[i], written[i])
        if self.state.counts_matches[input_number]:
            for i in range(slots.shape[0]):
                _matches(&self.state, input_number, rows[i])[0] = counts[i]

    def snapshot(self):
        """Return its state as columns by table: `left` and `right` have the rows of each input, those of a key in their order.

        `low` and `high` are the identity of a row, `matches` is how many rows match it, and `can_match` is false if the key has a null.
        Where rows expire, the first of equal rows has in `written` the processing time at which they were written.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int side
        cdef int64_t i
        cdef const uint32_t[::1] slots
        cdef int64_t[:, ::1] columns
        cdef const ChangingRow* row
        cdef uint8_t[::1] can_match
        tables = {}
        for side in range(2):
            slots = self._slots(side)
            columns = np.empty((7, slots.shape[0]), np.int64)
            can_match = np.empty(slots.shape[0], np.uint8)
            for i in range(slots.shape[0]):
                row = &self.state.sides[side].slots[slots[i]]
                columns[0, i] = row.key
                columns[1, i] = row.row
                columns[2, i] = row.timestamp
                columns[3, i] = <int64_t> row.identity.low
                columns[4, i] = <int64_t> row.identity.high
                columns[5, i] = _matches(&self.state, side, row.row)[0] if self.state.counts_matches[side] else 0
                columns[6, i] = _written(&self.state, side, row.row)
                can_match[i] = not self.state.never_matches.data[row.key]
            keys, numbers, timestamps, low, high, matches, written = columns.base
            tables[_SIDES[side]] = {
                "key": keys,
                _ROWS[side]: numbers,
                "timestamp": timestamps,
                "low": low,
                "high": high,
                "matches": matches,
                "can_match": can_match.base.view(np.bool_),
                **({"written": written} if self.state.ttl_ms[side] else {}),
            }
        return tables

    def restore(self, str table not None, const int64_t[::1] keys not None, dict rows not None, columns not None):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first event.

        Raises
        ------
        SchemaError
            If it is no state of such an operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int side = _SIDES.index(table)
        cdef int64_t i, n = keys.shape[0]
        cdef const int64_t[::1] numbers = rows[_ROWS[side]]
        cdef const int64_t[::1] timestamps = columns.column("timestamp").to_numpy()
        cdef const int64_t[::1] low = columns.column("low").to_numpy()
        cdef const int64_t[::1] high = columns.column("high").to_numpy()
        cdef const int64_t[::1] matches = columns.column("matches").to_numpy()
        cdef const uint8_t[::1] can_match = columns.column("can_match").to_numpy(zero_copy_only=False).view(np.uint8)
        cdef const int64_t[::1] written = columns.column("written").to_numpy() if self.state.ttl_ms[side] else None
        cdef Identity identity
        cdef uint32_t slot
        if not n:
            return
        _reach(&self.state, int(np.max(keys)) + 1)
        for i in range(n):
            # Where rows expire, one may be withdrawn after another that matches it has come again: that has a match less than none.
            if numbers[i] < 0 or (matches[i] < 0 and not self.state.expires):
                raise SchemaError(f"row {i} of the state of a join is missing, or has {matches[i]} matches")
            identity.low = <uint64_t> low[i]
            identity.high = <uint64_t> high[i]
            slot = changing_add(&self.state.sides[side], <uint32_t> keys[i], identity, numbers[i], timestamps[i])
            self.state.never_matches.data[keys[i]] = not can_match[i]
            if self.state.ttl_ms[side]:
                _write(&self.state, side, numbers[i], written[i])
                _watch(&self.state, side, slot)
            if self.state.counts_matches[side]:
                _matches(&self.state, side, numbers[i])[0] = matches[i]

    def _check(self):
        """Assert its invariants."""
        cdef int side
        for side in range(2):
            assert changing_is_sound(&self.state.sides[side]), f"the rows of the {_SIDES[side]} input"

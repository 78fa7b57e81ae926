"""The highest rows of each key, of rows that come and are withdrawn.

Follows Flink's RetractableTopNFunction: all rows are kept, those that are shown in order, the others in a heap, from which the best one
moves up when one above is withdrawn. With a unique key it follows UpdatableTopNFunction: a row that comes takes the place of that with
the same unique key, never to a lower one, and rows below are forgotten. Of equal sort keys, the row that came first is higher. The last
row of each key, without sort keys and with one unique key for all, is what Flink's changelog normalization keeps
(DeduplicateFunctionHelper.processLastRowOnChangelog).

    of a key:   top, best first   slot │ ... │ slot        rest, a heap with the best at the front   slot │ ... │ slot
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

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
from flinkcore._native.key_dictionary cimport KeyDictionary
from flinkcore._native.key_limits cimport (
    KeyLimits,
    key_limit,
    key_limits_reach,
    key_limits_restore,
    key_limits_snapshot,
)
from flinkcore._native.memory cimport grow
from flinkcore._native.packed_steps cimport PackedSteps
from flinkcore._native.relational cimport (
    NO_EVENT,
    RelationalCore,
    RelationalEvents,
    ResultRow,
    core_add,
    core_advance,
    core_counts,
    core_events,
    core_free,
    core_is_full,
    core_n_keys,
    core_open,
    core_process,
    core_take,
)
from flinkcore._native.sort_keys cimport (
    KeyShape,
    SortKey,
    SortKeys,
    sort_key_at,
    sort_key_compare,
    sort_key_drop,
    sort_key_write,
    sort_keys_of,
    stored_key,
    stored_words,
    tail_block,
)
from flinkcore._native.window_operator cimport RowKind


cdef enum:
    IN_TOP = 0xFFFFFFFF  # in place of a row's place in the heap
    LEAST_KEYS = 256

cdef const char* _WHAT = b"the highest rows of keys"

_RANKS = ("row_number", "rank", "dense_rank")


cdef struct Slots:
    uint32_t* slots
    uint32_t n
    uint32_t capacity


cdef struct KeyTop:
    Slots top
    Slots rest


cdef struct ChangingColumns:
    SortKeys keys
    const uint8_t* kinds        # RowKind; NULL: all are insertions
    const uint64_t* identities  # (n, 2)
    const uint64_t* contents    # (n, 2): of all columns; NULL: a row that replaces an equal one is a change, too
    const int64_t* limits       # of ranks up to a column


cdef struct ChangingTop:
    RelationalCore core
    ChangingColumns columns
    int64_t n               # of the key at hand, if it has a limit of its own
    bint of_limits          # ranks go up to a column: that of the first row of a key
    KeyLimits limits
    int64_t skip            # ranks up to this one are not shown
    int ranking             # number in _RANKS
    KeyShape shape
    bint ranks_shown
    bint is_final           # rows come when the log ends, and not before
    bint replaces           # identities are those of a unique key
    bint skips_equal        # a row that comes and equals that with the same unique key changes nothing
    ChangingRows rows
    uint64_t* sort_keys     # by slot, `stride` words each
    int64_t* sequences      # by slot: order of coming
    uint32_t* heap_places   # by slot: in the heap, or IN_TOP
    Identity* contents      # by slot, if equal rows are skipped
    int64_t capacity        # of these
    int64_t stride
    int64_t tail_bytes
    int64_t next_sequence
    KeyTop* keys
    int64_t n_keys
    int64_t key_capacity
    int64_t list_bytes
    int64_t unknown         # rows that were withdrawn and not there
    # The end: keys in order, and where it goes on
    int64_t key_place
    int64_t rows_emitted    # of that key
    int64_t rank            # of the last of them


# ---- order --------------------------------------------------------------------------------------------------------


cdef inline int _compare(const ChangingTop* self, const SortKey* key, uint32_t slot) noexcept nogil:
    # Compares a sort key with that of a row: negative if it is better.
    return sort_key_compare(&self.shape, key, self.sort_keys + slot * self.stride)


cdef inline int _compare_keys(const ChangingTop* self, uint32_t a, uint32_t b) noexcept nogil:
    cdef SortKey key = stored_key(&self.shape, self.sort_keys + a * self.stride)
    return _compare(self, &key, b)


cdef inline bint _is_before(const ChangingTop* self, uint32_t a, uint32_t b) noexcept nogil:
    cdef int order = _compare_keys(self, a, b)
    return order < 0 or (order == 0 and self.sequences[a] < self.sequences[b])


cdef int64_t _place(const ChangingTop* self, const Slots* top, const SortKey* key) noexcept nogil:
    # Returns where a new row with this sort key belongs: behind its equals.
    cdef int64_t low = 0, high = top.n, middle
    while low < high:
        middle = (low + high) >> 1
        if _compare(self, key, top.slots[middle]) < 0:
            high = middle
        else:
            low = middle + 1
    return low


cdef int64_t _place_of(const ChangingTop* self, const Slots* top, uint32_t slot) noexcept nogil:
    # Returns the place of a row that is in the list.
    cdef int64_t low = 0, high = top.n - 1, middle
    while low < high:
        middle = (low + high) >> 1
        if _is_before(self, top.slots[middle], slot):
            low = middle + 1
        else:
            high = middle
    return low


# ---- lists of slots -----------------------------------------------------------------------------------------------


cdef int _reserve(ChangingTop* self, Slots* list) except -1 nogil:
    cdef uint32_t capacity = max(<uint32_t> 1, 2 * list.capacity)
    if list.n == list.capacity:
        list.slots = <uint32_t*> grow(list.slots, capacity * <int64_t> sizeof(uint32_t), _WHAT)
        self.list_bytes += (capacity - list.capacity) * <int64_t> sizeof(uint32_t)
        list.capacity = capacity
    return 0


cdef int _insert(ChangingTop* self, Slots* list, int64_t at, uint32_t slot) except -1 nogil:
    _reserve(self, list)
    memmove(list.slots + at + 1, list.slots + at, (list.n - at) * sizeof(uint32_t))
    list.slots[at] = slot
    list.n += 1
    self.heap_places[slot] = IN_TOP
    return 0


cdef void _cut_out(Slots* list, int64_t at) noexcept nogil:
    list.n -= 1
    memmove(list.slots + at, list.slots + at + 1, (list.n - at) * sizeof(uint32_t))


cdef inline void _set(ChangingTop* self, Slots* heap, uint32_t at, uint32_t slot) noexcept nogil:
    heap.slots[at] = slot
    self.heap_places[slot] = at


cdef void _sift_up(ChangingTop* self, Slots* heap, uint32_t at, uint32_t slot) noexcept nogil:
    cdef uint32_t parent
    while at:
        parent = (at - 1) >> 1
        if not _is_before(self, slot, heap.slots[parent]):
            break
        _set(self, heap, at, heap.slots[parent])
        at = parent
    _set(self, heap, at, slot)


cdef void _sift_down(ChangingTop* self, Slots* heap, uint32_t at, uint32_t slot) noexcept nogil:
    cdef uint32_t child = 2 * at + 1
    while child < heap.n:
        if child + 1 < heap.n and _is_before(self, heap.slots[child + 1], heap.slots[child]):
            child += 1
        if not _is_before(self, heap.slots[child], slot):
            break
        _set(self, heap, at, heap.slots[child])
        at = child
        child = 2 * at + 1
    _set(self, heap, at, slot)


cdef int _push(ChangingTop* self, Slots* heap, uint32_t slot) except -1 nogil:
    _reserve(self, heap)
    heap.n += 1
    _sift_up(self, heap, heap.n - 1, slot)
    return 0


cdef void _pull(ChangingTop* self, Slots* heap, uint32_t at) noexcept nogil:
    # Takes the row at a place out of the heap.
    cdef uint32_t last
    heap.n -= 1
    if at == heap.n:
        return
    last = heap.slots[heap.n]
    if at and _is_before(self, last, heap.slots[(at - 1) >> 1]):
        _sift_up(self, heap, at, last)
    else:
        _sift_down(self, heap, at, last)


cdef bint _move_up(ChangingTop* self, KeyTop* of_key) except -1 nogil:
    # Appends the best of the other rows to the top. Returns false if there is none.
    cdef uint32_t best
    if not of_key.rest.n:
        return False
    _reserve(self, &of_key.top)
    best = of_key.rest.slots[0]
    _pull(self, &of_key.rest, 0)
    _insert(self, &of_key.top, of_key.top.n, best)
    return True


# ---- rows ---------------------------------------------------------------------------------------------------------


cdef int _reach(ChangingTop* self, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity = max(self.key_capacity, <int64_t> LEAST_KEYS)
    changing_reach(&self.rows, n_keys)
    if n_keys > self.key_capacity:
        while capacity < n_keys:
            capacity *= 2
        self.keys = <KeyTop*> grow(self.keys, capacity * sizeof(KeyTop), _WHAT)
        self.key_capacity = capacity
    if n_keys > self.n_keys:
        memset(self.keys + self.n_keys, 0, (n_keys - self.n_keys) * sizeof(KeyTop))
        self.n_keys = n_keys
    return 0


cdef uint32_t _added(
    ChangingTop* self, uint32_t key_id, Identity identity, int64_t row, int64_t timestamp, const SortKey* key
) except? NO_SLOT nogil:
    cdef uint32_t slot
    cdef uint64_t* block = NULL
    if self.shape.has_tails:
        block = tail_block(key, _WHAT, &self.tail_bytes)
    slot = changing_add(&self.rows, key_id, identity, row, timestamp)
    if self.capacity < self.rows.capacity:
        self.sort_keys = <uint64_t*> grow(self.sort_keys, max(<int64_t> 1, self.rows.capacity * self.stride) * 8, _WHAT)
        self.sequences = <int64_t*> grow(self.sequences, self.rows.capacity * <int64_t> 8, _WHAT)
        self.heap_places = <uint32_t*> grow(self.heap_places, self.rows.capacity * <int64_t> 4, _WHAT)
        if self.skips_equal:
            self.contents = <Identity*> grow(self.contents, self.rows.capacity * <int64_t> sizeof(Identity), _WHAT)
        self.capacity = self.rows.capacity
    sort_key_write(&self.shape, self.sort_keys + slot * self.stride, key, block)
    self.sequences[slot] = self.next_sequence
    self.next_sequence += 1
    return slot


cdef void _dropped(ChangingTop* self, uint32_t slot) noexcept nogil:
    sort_key_drop(&self.shape, self.sort_keys + slot * self.stride, &self.tail_bytes)
    changing_remove(&self.rows, slot)


# ---- results ------------------------------------------------------------------------------------------------------


cdef struct ShownRow:
    int64_t row
    int64_t timestamp


cdef struct Cause:
    int64_t event
    uint32_t key_id


cdef inline ShownRow _shown(const ChangingTop* self, uint32_t slot) noexcept nogil:
    cdef ShownRow row
    row.row = self.rows.slots[slot].row
    row.timestamp = self.rows.slots[slot].timestamp
    return row


cdef inline int _show(ChangingTop* self, ShownRow row, int64_t rank, const Cause* cause, RowKind kind) except -1 nogil:
    # Adds a result, if its rank is shown.
    if rank > self.skip:
        core_add(&self.core, row.row, cause.event, cause.key_id, row.timestamp, kind).value = rank
    return 0


cdef inline int _show_update(
    ChangingTop* self, ShownRow before, ShownRow after, int64_t rank, const Cause* cause
) except -1 nogil:
    _show(self, before, rank, cause, RowKind.UPDATE_BEFORE)
    return _show(self, after, rank, cause, RowKind.UPDATE_AFTER)


cdef int _show_new(ChangingTop* self, const Slots* top, int64_t at, const Cause* cause) except -1 nogil:
    # A new row at a place of the top, whose last row may be one too many.
    cdef int64_t rank
    if not self.ranks_shown and not self.skip:
        if top.n > self.n:
            _show(self, _shown(self, top.slots[self.n]), top.n, cause, RowKind.DELETE)
        return _show(self, _shown(self, top.slots[at]), at + 1, cause, RowKind.INSERT)
    for rank in range(at + 1, min(<int64_t> top.n, self.n + 1)):
        _show_update(self, _shown(self, top.slots[rank]), _shown(self, top.slots[rank - 1]), rank, cause)
    if top.n <= self.n:
        _show(self, _shown(self, top.slots[top.n - 1]), top.n, cause, RowKind.INSERT)
    return 0


cdef int _show_gone(
    ChangingTop* self, const Slots* top, int64_t at, ShownRow gone, bint is_refilled, const Cause* cause
) except -1 nogil:
    # A row has gone from a place of the top, and maybe another one has come at its end.
    cdef int64_t rank
    cdef ShownRow before = gone
    if not self.ranks_shown and not self.skip:
        _show(self, gone, at + 1, cause, RowKind.DELETE)
        if is_refilled:
            _show(self, _shown(self, top.slots[top.n - 1]), top.n, cause, RowKind.INSERT)
        return 0
    for rank in range(at + 1, <int64_t> top.n + 1):
        _show_update(self, before, _shown(self, top.slots[rank - 1]), rank, cause)
        before = _shown(self, top.slots[rank - 1])
    if not is_refilled:
        _show(self, before, top.n + 1, cause, RowKind.DELETE)
    return 0


cdef int _show_moved(
    ChangingTop* self, const Slots* top, int64_t was_at, int64_t at, ShownRow before, const Cause* cause
) except -1 nogil:
    # A row that was at one place is at another one, with other columns.
    cdef int64_t place
    cdef ShownRow was
    if not self.ranks_shown and not self.skip:
        return _show_update(self, before, _shown(self, top.slots[at]), at + 1, cause)
    for place in range(min(was_at, at), max(was_at, at) + 1):
        was = before
        if place != was_at:
            was = _shown(self, top.slots[place + 1 if place < was_at else place - 1])
        _show_update(self, was, _shown(self, top.slots[place]), place + 1, cause)
    return 0


# ---- events -------------------------------------------------------------------------------------------------------


cdef int _come(
    ChangingTop* self, KeyTop* of_key, Identity identity, int64_t row, int64_t timestamp, const SortKey* key, const Cause* cause
) except -1 nogil:
    cdef Slots* top = &of_key.top
    cdef int64_t at = _place(self, top, key)
    cdef uint32_t slot
    if at >= self.n and self.replaces:
        return 0
    slot = _added(self, cause.key_id, identity, row, timestamp, key)
    if at >= self.n:
        return _push(self, &of_key.rest, slot)
    _insert(self, top, at, slot)
    if not self.is_final:
        _show_new(self, top, at, cause)
    if top.n > self.n:
        slot = top.slots[self.n]
        if self.replaces:
            _dropped(self, slot)
        else:
            _push(self, &of_key.rest, slot)
        top.n -= 1
    return 0


cdef int _replace(
    ChangingTop* self, KeyTop* of_key, uint32_t slot, int64_t row, int64_t timestamp, const SortKey* key, const Cause* cause
) except -1 nogil:
    # A row takes the place of one with the same unique key.
    cdef Slots* top = &of_key.top
    cdef int64_t was_at = _place_of(self, top, slot), at = was_at
    cdef ShownRow before = _shown(self, slot)
    cdef Identity identity = self.rows.slots[slot].identity
    if _compare(self, key, slot) == 0:
        self.rows.slots[slot].row = row
        self.rows.slots[slot].timestamp = timestamp
    else:
        _cut_out(top, was_at)
        _dropped(self, slot)
        at = _place(self, top, key)
        _insert(self, top, at, _added(self, cause.key_id, identity, row, timestamp, key))
    if not self.is_final:
        _show_moved(self, top, was_at, at, before, cause)
    return 0


cdef int _withdraw(ChangingTop* self, KeyTop* of_key, uint32_t slot, const Cause* cause) except -1 nogil:
    cdef int64_t at
    cdef ShownRow gone = _shown(self, slot)
    cdef bint is_refilled
    if self.heap_places[slot] != IN_TOP:
        _pull(self, &of_key.rest, self.heap_places[slot])
    else:
        at = _place_of(self, &of_key.top, slot)
        _cut_out(&of_key.top, at)
        is_refilled = _move_up(self, of_key)
        if not self.is_final:
            _show_gone(self, &of_key.top, at, gone, is_refilled, cause)
    _dropped(self, slot)
    return 0


cdef inline bint _is_same(Identity a, Identity b) noexcept nogil:
    return a.low == b.low and a.high == b.high


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    return True  # without timers


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef ChangingTop* self = <ChangingTop*> core
    cdef const ChangingColumns* columns = &self.columns
    cdef KeyTop* of_key
    cdef Identity identity
    cdef SortKey key
    cdef Cause cause
    cdef uint8_t kind
    cdef uint32_t slot
    cdef int64_t i
    _reach(self, core_n_keys(events, first))
    if self.of_limits:
        key_limits_reach(&self.limits, core_n_keys(events, first))
    for i in range(first, events.n):
        if core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False):
            return i
        core.processed += 1
        cause.event = i
        cause.key_id = events.key_ids[i]
        of_key = &self.keys[cause.key_id]
        if self.of_limits:
            self.n = key_limit(&self.limits, cause.key_id, columns.limits[i])
        identity = identity_of(columns.identities, i)
        kind = RowKind.INSERT if columns.kinds == NULL else columns.kinds[i]
        key = sort_key_at(&columns.keys, &self.shape, i)
        slot = NO_SLOT
        if self.replaces or kind == RowKind.UPDATE_BEFORE or kind == RowKind.DELETE:
            slot = changing_find(&self.rows, cause.key_id, identity)
        if kind == RowKind.UPDATE_BEFORE or kind == RowKind.DELETE:
            if slot != NO_SLOT:
                _withdraw(self, of_key, slot, &cause)
            else:
                self.unknown += 1
            continue
        if self.skips_equal and slot != NO_SLOT and _is_same(self.contents[slot], identity_of(columns.contents, i)):
            continue
        if slot != NO_SLOT:
            _replace(self, of_key, slot, events.rows[i], events.timestamps[i], &key, &cause)
        else:
            _come(self, of_key, identity, events.rows[i], events.timestamps[i], &key, &cause)
        if self.skips_equal:
            self.contents[changing_find(&self.rows, cause.key_id, identity)] = identity_of(columns.contents, i)
    return events.n


# ---- the end ------------------------------------------------------------------------------------------------------


cdef int64_t _next_rank(const ChangingTop* self, const Slots* top) noexcept nogil:
    # Rank of the next row of the key that is emitted.
    cdef int64_t i = self.rows_emitted
    if i == 0 or self.ranking == 0:
        return i + 1
    if _compare_keys(self, top.slots[i - 1], top.slots[i]) == 0:
        return self.rank
    return i + 1 if self.ranking == 1 else self.rank + 1


cdef bint _emit_key(ChangingTop* self, uint32_t key_id) except -1 nogil:
    # Emits the rows of a key, from where results were full. Returns false if they are full again.
    cdef KeyTop* of_key = &self.keys[key_id]
    cdef ResultRow* result
    cdef uint32_t slot
    while self.rows_emitted < of_key.top.n or _move_up(self, of_key):
        if core_is_full(&self.core):
            return False
        self.rank = _next_rank(self, &of_key.top)
        if self.rank > self.n:
            break
        slot = of_key.top.slots[self.rows_emitted]
        self.rows_emitted += 1
        if self.rank > self.skip:
            result = core_add(
                &self.core, self.rows.slots[slot].row, NO_EVENT, key_id, self.rows.slots[slot].timestamp, RowKind.INSERT
            )
            result.value = self.rank
            result.fired = INT64_MAX
    self.rows_emitted = self.rank = 0
    return True


cdef bint _finish(ChangingTop* self, const int64_t* keys, int64_t n_keys) except -1 nogil:
    if not core_advance(&self.core, _fire_due, INT64_MAX, True):
        return False
    while self.key_place < n_keys:
        if not _emit_key(self, <uint32_t> keys[self.key_place]):
            return False
        self.key_place += 1
    return True


# ---- the kernel ---------------------------------------------------------------------------------------------------


@cython.final
cdef class ChangingTopKernel:
    """Highest rows of changes; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    Parameters
    ----------
    keys : KeyDictionary
        The keys whose ids events have.
    timeline : PackedSteps
        Steps of the timeline.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most results that may wait; an event may have some on top.
    n, skip : int
        Results have the ranks `skip` + 1 to `n`.
    rank : str
        "row_number"; of final results also "rank" or "dense_rank".
    n_words : int
        Words of a sort key.
    has_tails : bool
        Whether sort keys have bytes after the words.
    ranks_shown : bool
        Whether results have their ranks.
    changes : bool
        Whether results are changes, at once; else those of a key come when the log ends.
    replaces : bool
        Whether identities are those of a unique key, whose rows only rise.
    skips_equal : bool
        Whether a row that comes changes nothing if it equals that with the same unique key; of the one highest row only.
    of_limits : bool
        Whether ranks go up to a column of the first row of each key, and not to `n`: changes, without a unique key.

    Raises
    ------
    ConfigurationError
        If a number is out of its range.
    """

    cdef CallGuard guard
    cdef ChangingTop state
    cdef PackedSteps _timeline
    cdef KeyDictionary _keys
    cdef object _at_end

    def __cinit__(
        self,
        KeyDictionary keys not None,
        PackedSteps timeline not None,
        *,
        int64_t steps_done,
        int64_t result_limit,
        int64_t n,
        int64_t skip,
        str rank not None,
        int64_t n_words,
        bint has_tails,
        bint ranks_shown,
        bint changes,
        bint replaces,
        bint skips_equal=False,
        bint of_limits=False,
    ):
        cdef ChangingTop* state = &self.state
        if skips_equal and not (replaces and n == 1 and n_words == 0 and not has_tails):
            raise ConfigurationError("equal rows are skipped where a key has one row, whatever its columns are")
        if not 0 <= skip < n < 1 << 31:
            raise ConfigurationError(f"ranks from {skip + 1} to {n}: they must be from 1 to 2**31 - 1")
        if of_limits and (replaces or skip or not changes):
            raise ConfigurationError("ranks up to a column are changes, from rank 1 on, of rows without a unique key")
        self._keys = keys
        self._timeline = timeline
        state.n = n
        state.skip = skip
        state.ranking = _RANKS.index(rank)
        state.shape.n_words = n_words
        state.shape.has_tails = has_tails
        state.stride = stored_words(&state.shape)
        state.ranks_shown = ranks_shown
        state.is_final = not changes
        state.replaces = replaces
        state.skips_equal = skips_equal
        state.of_limits = of_limits
        core_open(&state.core, timeline, steps_done, result_limit, False, changes, ranks_shown)

    def __dealloc__(self):
        cdef int64_t key
        cdef uint32_t slot
        cdef ChangingTop* state = &self.state
        core_free(&state.core)
        for key in range(state.n_keys):
            free(state.keys[key].top.slots)
            free(state.keys[key].rest.slots)
        for slot in range(state.rows.n_slots):
            if state.rows.slots[slot].row >= 0 and slot < state.capacity:
                sort_key_drop(&state.shape, state.sort_keys + slot * state.stride, &state.tail_bytes)
        changing_free(&state.rows)
        free(state.keys)
        free(state.limits.limits)
        free(state.sort_keys)
        free(state.sequences)
        free(state.heap_places)
        free(state.contents)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int32_t[::1] key_groups not None,
        const int8_t[::1] inputs,
        const int64_t[::1] rows not None,
        const int64_t[::1] timestamps not None,
        const int64_t[::1] steps not None,
        const uint64_t[:, ::1] words not None,
        const int64_t[::1] tail_ends,
        const uint8_t[::1] tails,
        const uint8_t[::1] kinds,
        const uint64_t[:, ::1] identities not None,
        const uint64_t[:, ::1] contents=None,
        const int64_t[::1] limits=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        words, tail_ends, tails
            Sort keys, as of `TopKernel`.
        kinds : uint8 array (n,) or None
            Flink's number of the kind of change; None: all are insertions.
        identities : uint64 array (n, 2)
            Equal for rows that are equal: that have the same columns, or the same unique key.
        contents : uint64 array (n, 2) or None
            Equal for rows that have the same columns; given if equal rows are skipped.
        limits : int64 array (n,) or None
            As of `TopKernel`.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RelationalEvents events
        cdef ChangingColumns* columns = &self.state.columns
        cdef int64_t n = key_ids.shape[0]
        memset(columns, 0, sizeof(ChangingColumns))
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        if identities.shape[0] != n or identities.shape[1] != 2 or (kinds is not None and kinds.shape[0] != n):
            raise ValueError("each event needs its kind, and an identity of two words")
        if self.state.skips_equal and (contents is None or contents.shape[0] != n or contents.shape[1] != 2):
            raise ValueError("each event needs its content")
        if self.state.of_limits and (limits is None or limits.shape[0] != n):
            raise ValueError("each event needs the limit of its rank")
        if n == 0:
            return 0
        columns.contents = &contents[0, 0] if self.state.skips_equal else NULL
        sort_keys_of(&columns.keys, &self.state.shape, words, tail_ends, tails, n)
        columns.kinds = NULL if kinds is None else &kinds[0]
        columns.identities = &identities[0, 0]
        columns.limits = &limits[0] if self.state.of_limits else NULL
        return core_process(&self.state.core, _take_events, &events, first)

    def advance(self, int64_t steps_before):
        """Put the watermarks of so many steps in force, none of which gives a result."""
        cdef Call call = begin_call(&self.guard, self)
        core_advance(&self.state.core, _fire_due, steps_before, False)
        return True

    def finish(self):
        """Emit what is left, if results are no changes. Returns false if results are full before: take them, and call again."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const int64_t[::1] keys
        cdef int64_t n_keys
        cdef bint done
        if self._at_end is None:
            # By key group, so that results of all partitions merge in one order.
            ids = np.arange(self.state.n_keys if self.state.is_final else 0, dtype=np.uint32)
            self._at_end = np.argsort(self._keys.key_group(ids), kind="stable").astype(np.int64)
        keys = self._at_end
        n_keys = keys.shape[0]
        with nogil:
            done = _finish(&self.state, &keys[0] if n_keys else NULL, n_keys)
        return done

    @property
    def is_full(self):
        """True if results must be taken before the next event."""
        return core_is_full(&self.state.core)

    def take(self):
        """Return the results that wait, as KernelResults; the values are ranks."""
        cdef Call call = begin_call(&self.guard, self)
        return core_take(&self.state.core)

    def counts(self):
        """Return how many events it has taken in, by their names in the report."""
        return core_counts(&self.state.core)

    @property
    def current_watermark(self):
        """Watermark in force, ms since the epoch; -2**63 before the first."""
        return self.state.core.cursor.watermark

    def memory_bytes(self):
        """Bytes that its state takes, without rows, keys and timers."""
        check_no_call(&self.guard, self)
        cdef int64_t by_slot = self.state.capacity * (8 * self.state.stride + 12 + 16 * self.state.skips_equal)
        cdef int64_t by_key = self.state.key_capacity * <int64_t> sizeof(KeyTop) + 8 * self.state.limits.capacity
        return changing_memory(&self.state.rows) + by_slot + by_key + self.state.tail_bytes + self.state.list_bytes

    @property
    def live_count(self):
        """Number of row numbers that it holds."""
        return self.state.rows.n_rows

    cdef object _slots(self):
        # The slots of the rows, key by key, in order of their coming.
        cdef uint32_t[::1] slots = np.empty(self.state.rows.n_rows, np.uint32)
        if self.state.rows.n_rows:
            changing_slots(&self.state.rows, &slots[0])
        return slots.base

    def live_rows(self):
        """Return the row numbers that it holds, as an int64 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] slots = self._slots()
        cdef int64_t[::1] live = np.empty(slots.shape[0], np.int64)
        cdef int64_t i
        for i in range(slots.shape[0]):
            live[i] = self.state.rows.slots[slots[i]].row
        return live.base

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] slots = self._slots()
        cdef int64_t i
        if rows.shape[0] != slots.shape[0]:
            raise ValueError(f"{rows.shape[0]} numbers for {slots.shape[0]} rows")
        for i in range(slots.shape[0]):
            self.state.rows.slots[slots[i]].row = rows[i]

    def snapshot(self):
        """Return its state as columns by table: `top` has `key`, `row`, `timestamp` and the identity, `low` and `high`.

        Where equal rows are skipped, `low` and `high` are the content.

        The rows of a key are in order of their coming. `limits` is there as of `TopKernel`.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const uint32_t[::1] slots = self._slots()
        cdef int64_t[:, ::1] columns = np.empty((5, slots.shape[0]), np.int64)
        cdef const ChangingRow* row
        cdef Identity identity
        cdef int64_t i
        for i in range(slots.shape[0]):
            row = &self.state.rows.slots[slots[i]]
            columns[0, i] = row.key
            columns[1, i] = row.row
            columns[2, i] = row.timestamp
            identity = self.state.contents[slots[i]] if self.state.skips_equal else row.identity
            columns[3, i] = <int64_t> identity.low
            columns[4, i] = <int64_t> identity.high
        top_rows = dict(zip(("key", "row", "timestamp", "low", "high"), columns.base))
        if not self.state.of_limits:
            return {"top": top_rows}
        return {"limits": key_limits_snapshot(&self.state.limits), "top": top_rows}

    def restore(self, str table not None, const int64_t[::1] keys not None, dict rows not None, columns not None):
        """Take part of a state that `snapshot` has given, with keys and rows of now; before the first event.

        `rows` has the row numbers, and `words`, `tail_ends` and `tails` of the rows as `process` takes them.

        Raises
        ------
        SchemaError
            If it is no state of such an operator.
        """
        cdef Call call = begin_call(&self.guard, self)
        if table == "limits":
            key_limits_restore(&self.state.limits, keys, columns.column("limit").to_numpy())
            return
        cdef const int64_t[::1] numbers = rows["row"]
        cdef const int64_t[::1] tail_ends = rows["tail_ends"]
        cdef const uint8_t[::1] tail_bytes = rows["tails"]
        cdef const uint64_t[:, ::1] words = rows["words"]
        cdef const int64_t[::1] timestamps = columns.column("timestamp").to_numpy()
        cdef const int64_t[::1] low = columns.column("low").to_numpy()
        cdef const int64_t[::1] high = columns.column("high").to_numpy()
        cdef ChangingTop* state = &self.state
        cdef SortKeys sort_keys
        cdef SortKey key
        cdef Identity identity, content
        cdef Slots* top
        cdef uint32_t slot
        cdef int64_t i, at
        if not keys.shape[0]:
            return
        sort_keys_of(&sort_keys, &state.shape, words, tail_ends, tail_bytes, keys.shape[0])
        _reach(state, int(np.max(keys)) + 1)
        for i in range(keys.shape[0]):
            top = &state.keys[keys[i]].top
            if state.of_limits:
                key_limits_reach(&state.limits, keys[i] + 1)
                state.n = key_limit(&state.limits, keys[i], 0)
            if numbers[i] < 0 or (state.replaces and top.n == state.n):
                raise SchemaError(f"row {i} of the state is missing, or one more than the {state.n} highest of its key")
            identity.low = <uint64_t> low[i]
            identity.high = <uint64_t> high[i]
            content = identity
            if state.skips_equal:
                identity.low = identity.high = 0
            key = sort_key_at(&sort_keys, &state.shape, i)
            slot = _added(state, <uint32_t> keys[i], identity, numbers[i], timestamps[i], &key)
            if state.skips_equal:
                state.contents[slot] = content
            at = _place(state, top, &key)
            if at < state.n:
                _insert(state, top, at, slot)
                if top.n <= state.n:
                    continue
                top.n -= 1
                slot = top.slots[top.n]
            _push(state, &state.keys[keys[i]].rest, slot)

    def _check(self):
        """Assert its invariants."""
        cdef int64_t key, live = 0
        cdef uint32_t i
        cdef const KeyTop* of_key
        cdef ChangingTop* state = &self.state
        assert changing_is_sound(&state.rows), "the rows of a key"
        for key in range(state.n_keys):
            of_key = &state.keys[key]
            live += of_key.top.n + of_key.rest.n
            if state.of_limits:
                state.n = max(<int64_t> 0, state.limits.limits[key])
            assert of_key.top.n <= state.n, f"key {key} shows {of_key.top.n} rows"
            assert of_key.top.n == state.n or not of_key.rest.n, f"key {key} hides rows that are among the highest"
            for i in range(of_key.top.n):
                assert state.heap_places[of_key.top.slots[i]] == IN_TOP
                assert i == 0 or _is_before(state, of_key.top.slots[i - 1], of_key.top.slots[i]), f"key {key} at {i}"
            for i in range(of_key.rest.n):
                assert state.heap_places[of_key.rest.slots[i]] == i
                assert i == 0 or _is_before(state, of_key.rest.slots[(i - 1) >> 1], of_key.rest.slots[i])
                assert not of_key.top.n or _is_before(state, of_key.top.slots[of_key.top.n - 1], of_key.rest.slots[i])
        assert live == state.rows.n_rows

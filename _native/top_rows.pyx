"""The highest rows of each key, or of each window of a key, by a sort key of words.

Follows Flink's AppendOnlyTopNFunction and FastTop1Function (changes) and WindowRankOperator (windows, whose rows come when they
fire). Of rows with equal sort keys, the one that arrived first is first, or the one that arrived last. Ranks with ties, which Flink
does not stream, are those of SQL's RANK and DENSE_RANK.

The entries of a list, best first, are words: `row │ timestamp │ sort key`.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT32_MAX, int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove, memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.key_limits cimport (
    KeyLimits,
    key_limit,
    key_limits_reach,
    key_limits_restore,
    key_limits_snapshot,
)
from flinkcore._native.memory cimport grow, prefetch
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
    core_late,
    core_n_keys,
    core_open,
    core_poll_due,
    core_process,
    core_take,
    core_take_late,
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
from flinkcore._native.timer_queue cimport Timer, TimerQueue, timer_queue_add
from flinkcore._native.timers cimport TimerHeap
from flinkcore._native.window_operator cimport RowKind, cursor_raise


cdef enum:
    ROW = 0          # words of an entry
    TIMESTAMP = 1
    KEY = 2          # the sort key, from here on
    LEAST_LISTS = 1 << 10
    FULL_LIST = 100  # Flink's DEFAULT_TOPN_SIZE
    MANY_ROWS = 64   # A list of so many grows twofold.
    LOOK_AHEAD = 8

cdef const char* _WHAT = b"the highest rows of keys"

cdef enum Ranking:
    ROW_NUMBER
    RANK        # as many rows as are higher, plus one
    DENSE_RANK  # as many sort keys as are higher, plus one


cdef struct TopList:
    uint64_t* entries   # (n,) of `stride` words each, best first
    uint32_t n
    uint32_t capacity
    uint32_t n_groups   # of equal sort keys; only for DENSE_RANK
    uint32_t key_id     # of windows
    int64_t end         # of the window


cdef struct TopColumns:
    # Columns of the events of a call besides those that all kernels take; NULL where there are none.
    SortKeys keys
    const int64_t* ends      # of windows
    const uint8_t* is_last
    const int64_t* limits    # of ranks up to a column


cdef struct Top:
    RelationalCore core
    TopColumns columns
    TimerQueue* timers
    int64_t n            # of the key at hand, if it has a limit of its own
    int64_t skip         # ranks up to this one are not shown
    bint of_limits       # ranks go up to a column: that of the first row of a key
    KeyLimits limits
    Ranking ranking
    KeyShape shape       # of sort keys
    bint latest_first    # of equal sort keys
    bint ranks_shown
    bint changes
    bint update_before   # changes have -U
    bint of_windows
    int64_t stride       # words of an entry
    TopList* lists       # by key id; of windows by slot
    int64_t n_lists
    int64_t capacity
    int64_t n_live
    int64_t entry_bytes
    int64_t n_emitted    # of the lists, when the log has ended
    # Of windows: slots by key and end, and those that are free. A bucket is slot + 1, or 0.
    uint32_t* buckets
    uint64_t mask
    int64_t n_windows
    int64_t latest       # slot of the window of the last row, or -1
    uint32_t* free_slots
    int64_t n_free
    int64_t firing       # slot of the window whose rows come, or -1
    int64_t fired_rows   # of it that have come
    int64_t rank         # of the last of them
    int64_t fired_ms


# ---- sort keys ---------------------------------------------------------------------------------------------------


cdef inline uint64_t* _entry(const Top* self, const TopList* top, int64_t i) noexcept nogil:
    return top.entries + i * self.stride


cdef inline int _compare(const Top* self, const SortKey* key, const uint64_t* entry) noexcept nogil:
    # Compares a sort key with that of an entry: negative if it is better.
    return sort_key_compare(&self.shape, key, entry + KEY)


cdef inline int _compare_entries(const Top* self, const uint64_t* a, const uint64_t* b) noexcept nogil:
    cdef SortKey key = stored_key(&self.shape, a + KEY)
    return _compare(self, &key, b)


cdef int64_t _place(
    const Top* self, const TopList* top, const SortKey* key, bint before_equal
) noexcept nogil:
    # Returns where a sort key belongs: before or after entries of equal ones.
    cdef int64_t low = 0, high = top.n, middle
    cdef int order
    if high and not before_equal and _compare(self, key, _entry(self, top, high - 1)) >= 0:
        return high
    while low < high:
        middle = (low + high) >> 1
        order = _compare(self, key, _entry(self, top, middle))
        if order < 0 or (order == 0 and before_equal):
            high = middle
        else:
            low = middle + 1
    return low


# ---- lists -------------------------------------------------------------------------------------------------------


cdef int _reach(Top* self, int64_t n_lists) except -1 nogil:
    cdef int64_t capacity = max(self.capacity, <int64_t> LEAST_LISTS)
    if n_lists > self.capacity:
        while capacity < n_lists:
            capacity *= 2
        self.lists = <TopList*> grow(self.lists, capacity * sizeof(TopList), _WHAT)
        self.capacity = capacity
    if n_lists > self.n_lists:
        memset(self.lists + self.n_lists, 0, (n_lists - self.n_lists) * sizeof(TopList))
        self.n_lists = n_lists
    return 0


cdef inline void _drop_entry(Top* self, uint64_t* entry) noexcept nogil:
    sort_key_drop(&self.shape, entry + KEY, &self.entry_bytes)
    self.n_live -= 1


cdef int _insert(
    Top* self, TopList* top, int64_t at, int64_t row, int64_t timestamp, const SortKey* key
) except -1 nogil:
    cdef uint32_t capacity
    cdef uint64_t* entry
    cdef uint64_t* block = NULL
    if top.n == top.capacity:
        # Most keys have one row. A short list that grows will soon be full: one row more than it keeps.
        capacity = max(<uint32_t> 1, (4 if top.capacity < MANY_ROWS else 2) * top.capacity)
        if self.ranking == Ranking.ROW_NUMBER and top.capacity <= self.n < capacity:
            capacity = <uint32_t> self.n + 1
        top.entries = <uint64_t*> grow(top.entries, capacity * self.stride * 8, _WHAT)
        self.entry_bytes += (capacity - top.capacity) * self.stride * 8
        top.capacity = capacity
    if self.shape.has_tails:
        block = tail_block(key, _WHAT, &self.entry_bytes)
    entry = _entry(self, top, at)
    if at < top.n:
        memmove(entry + self.stride, entry, (top.n - at) * self.stride * 8)
    entry[ROW] = <uint64_t> row
    entry[TIMESTAMP] = <uint64_t> timestamp
    sort_key_write(&self.shape, entry + KEY, key, block)
    top.n += 1
    self.n_live += 1
    return 0


cdef void _free_list(Top* self, TopList* top) noexcept nogil:
    cdef int64_t i
    for i in range(top.n):
        _drop_entry(self, _entry(self, top, i))
    free(top.entries)
    self.entry_bytes -= top.capacity * self.stride * 8
    memset(top, 0, sizeof(TopList))


# ---- windows -----------------------------------------------------------------------------------------------------


cdef inline uint64_t _window_hash(uint32_t key_id, int64_t end) noexcept nogil:
    cdef uint64_t hash = (<uint64_t> end ^ (<uint64_t> key_id << 32 | key_id)) * <uint64_t> 0x9E3779B97F4A7C15
    hash ^= hash >> 32
    hash *= <uint64_t> 0xD6E8FEB86659FD93
    return hash ^ (hash >> 32)


cdef inline uint64_t _window_bucket(const Top* self, uint32_t key_id, int64_t end) noexcept nogil:
    # Bucket of a window, or the empty one where it would go.
    cdef uint64_t at = _window_hash(key_id, end) & self.mask
    cdef const TopList* top
    while self.buckets[at]:
        top = &self.lists[self.buckets[at] - 1]
        if top.key_id == key_id and top.end == end:
            break
        at = (at + 1) & self.mask
    return at


cdef int _grow_buckets(Top* self) except -1 nogil:
    cdef uint64_t n = max(<uint64_t> 64, 2 * (self.mask + 1)), at, old
    cdef uint32_t* before = self.buckets
    cdef uint64_t n_before = self.mask + 1 if before != NULL else 0
    cdef uint32_t* buckets = <uint32_t*> calloc(n, sizeof(uint32_t))
    if buckets == NULL:
        with gil:
            raise MemoryError(f"{n * sizeof(uint32_t)} bytes for the index of windows")
    self.buckets = buckets
    self.mask = n - 1
    for old in range(n_before):
        if before[old]:
            at = _window_bucket(self, self.lists[before[old] - 1].key_id, self.lists[before[old] - 1].end)
            buckets[at] = before[old]
    free(before)
    return 0


cdef int64_t _window(Top* self, uint32_t key_id, int32_t key_group, int64_t end, bint with_timer) except -1 nogil:
    # Slot of the window of a key, which is opened if it is new, with a timer for its firing.
    cdef uint64_t at
    cdef int64_t slot
    cdef int64_t capacity
    if self.latest >= 0 and self.lists[self.latest].key_id == key_id and self.lists[self.latest].end == end:
        return self.latest
    if self.buckets == NULL or (<uint64_t> self.n_windows + 1) * 3 > (self.mask + 1) * 2:
        _grow_buckets(self)
    at = _window_bucket(self, key_id, end)
    if self.buckets[at]:
        self.latest = self.buckets[at] - 1
        return self.latest
    if self.n_free:
        self.n_free -= 1
        slot = self.free_slots[self.n_free]
    else:
        slot = self.n_lists
        capacity = self.capacity
        _reach(self, slot + 1)
        if self.capacity != capacity or self.free_slots == NULL:
            self.free_slots = <uint32_t*> grow(self.free_slots, self.capacity * sizeof(uint32_t), _WHAT)
    self.lists[slot].key_id = key_id
    self.lists[slot].end = end
    self.buckets[at] = <uint32_t> slot + 1
    self.n_windows += 1
    if with_timer:
        timer_queue_add(self.timers, end - 1, key_id, key_group, end)
    self.latest = slot
    return slot


cdef void _close_window(Top* self, int64_t slot) noexcept nogil:
    # Frees a window; later buckets of its chain move up.
    cdef TopList* top = &self.lists[slot]
    cdef uint64_t at = _window_bucket(self, top.key_id, top.end), next_at, home
    cdef const TopList* other
    _free_list(self, top)
    self.free_slots[self.n_free] = <uint32_t> slot
    self.n_free += 1
    self.n_windows -= 1
    self.latest = -1
    next_at = (at + 1) & self.mask
    while self.buckets[next_at]:
        other = &self.lists[self.buckets[next_at] - 1]
        home = _window_hash(other.key_id, other.end) & self.mask
        if ((next_at - home) & self.mask) >= ((next_at - at) & self.mask):
            self.buckets[at] = self.buckets[next_at]
            at = next_at
        next_at = (next_at + 1) & self.mask
    self.buckets[at] = 0


# ---- results -----------------------------------------------------------------------------------------------------


cdef inline int _show(
    Top* self, const uint64_t* entry, int64_t rank, int64_t event, uint32_t key_id, RowKind kind
) except -1 nogil:
    # Adds a result that is an entry, if its rank is shown.
    if rank > self.skip and (self.update_before or kind != RowKind.UPDATE_BEFORE):
        core_add(
            &self.core, <int64_t> entry[ROW], event, key_id, <int64_t> entry[TIMESTAMP], kind
        ).value = rank
    return 0


cdef inline int64_t _next_rank(const Top* self, const TopList* top, int64_t i, int64_t rank) noexcept nogil:
    # Rank of entry i of a list, if that before it has this one; of the first 0.
    if i == 0:
        return 1
    if self.ranking == Ranking.ROW_NUMBER:
        return i + 1
    if _compare_entries(self, _entry(self, top, i - 1), _entry(self, top, i)) == 0:
        return rank
    return i + 1 if self.ranking == Ranking.RANK else rank + 1


cdef bint _emit_list(Top* self, int64_t slot, uint32_t key_id, int64_t fired_ms) except -1 nogil:
    # Emits the rows of a list, from where results were full. Returns false if they are full again.
    cdef TopList* top = &self.lists[slot]
    cdef const uint64_t* entry
    cdef ResultRow* result
    while self.fired_rows < top.n:
        if core_is_full(&self.core):
            return False
        self.rank = _next_rank(self, top, self.fired_rows, self.rank)
        entry = _entry(self, top, self.fired_rows)
        self.fired_rows += 1
        if self.rank > self.skip:
            result = core_add(
                &self.core,
                <int64_t> entry[ROW],
                NO_EVENT,
                key_id,
                top.end - 1 if self.of_windows else <int64_t> entry[TIMESTAMP],
                RowKind.INSERT,
            )
            result.value = self.rank
            result.fired = fired_ms
    self.fired_rows = self.rank = 0
    return True


cdef bint _fire_due(RelationalCore* core) except -1 nogil:
    # Emits the rows of the windows that the watermark in force has passed.
    cdef Top* self = <Top*> core
    cdef Timer timer
    while True:
        if self.firing >= 0:
            self.core.due = True
            if not _emit_list(self, self.firing, self.lists[self.firing].key_id, self.fired_ms):
                return False
            _close_window(self, self.firing)
            self.firing = -1
        if not core_poll_due(&self.core, self.timers, <int64_t> UINT32_MAX + 1, &timer):
            return not self.core.due
        # A restored timer may be forged, and its window not be there: -1. So any key will do.
        if self.buckets != NULL:
            self.firing = <int64_t> self.buckets[_window_bucket(self, <uint32_t> timer.key, timer.namespace_id)] - 1
        self.fired_ms = timer.timestamp_ms


# ---- events ------------------------------------------------------------------------------------------------------


cdef int64_t _first_dropped(Top* self, const TopList* top) noexcept nogil:
    # Returns the number of entries whose rank is not above n, after one more was inserted.
    cdef int64_t i
    if self.ranking == Ranking.ROW_NUMBER:
        return min(<int64_t> top.n, self.n)
    if self.ranking == Ranking.RANK:
        if top.n <= self.n:
            return top.n
        # The first entry behind the n-th that is not its equal.
        i = self.n
        while i < top.n and _compare_entries(self, _entry(self, top, self.n - 1), _entry(self, top, i)) == 0:
            i += 1
        return i
    if top.n_groups <= self.n:
        return top.n
    i = top.n - 1
    while i and _compare_entries(self, _entry(self, top, i - 1), _entry(self, top, i)) == 0:
        i -= 1
    return i


cdef int _show_shift(Top* self, const TopList* top, int64_t at, int64_t event, uint32_t key_id) except -1 nogil:
    # Row numbers: the rows behind the new one move by a rank, of which the last may be gone.
    cdef int64_t rank
    for rank in range(at + 1, min(<int64_t> top.n, self.n + 1)):
        _show(self, _entry(self, top, rank), rank, event, key_id, RowKind.UPDATE_BEFORE)
        _show(self, _entry(self, top, rank - 1), rank, event, key_id, RowKind.UPDATE_AFTER)
    if top.n <= self.n:
        _show(self, _entry(self, top, top.n - 1), top.n, event, key_id, RowKind.INSERT)
    return 0


cdef int _show_ranks(Top* self, const TopList* top, int64_t at, int64_t kept, int64_t event, uint32_t key_id) except -1 nogil:
    # Ranks with ties: lower rows get other ranks or go, then the new row comes. It has been inserted behind its equals.
    cdef int64_t i, rank = 0, of_new = 0, before
    cdef bint is_alone = at == 0 or _compare_entries(self, _entry(self, top, at - 1), _entry(self, top, at)) != 0
    cdef int64_t moved = 1 if self.ranking == Ranking.RANK or is_alone else 0
    for i in range(top.n):
        rank = _next_rank(self, top, i, rank)
        if i == at:
            of_new = rank
        elif i > at:
            before = rank - moved
            if i >= kept:
                _show(self, _entry(self, top, i), before, event, key_id, RowKind.DELETE)
            elif before <= self.skip < rank:
                _show(self, _entry(self, top, i), rank, event, key_id, RowKind.INSERT)
            elif self.ranks_shown and moved:
                _show(self, _entry(self, top, i), before, event, key_id, RowKind.UPDATE_BEFORE)
                _show(self, _entry(self, top, i), rank, event, key_id, RowKind.UPDATE_AFTER)
    return _show(self, _entry(self, top, at), of_new, event, key_id, RowKind.INSERT)


cdef int _show_change(Top* self, const TopList* top, int64_t at, int64_t kept, int64_t event, uint32_t key_id) except -1 nogil:
    # Adds the changes that a new entry makes; those from `kept` on are still there, and go.
    cdef bint is_update
    if self.ranking != Ranking.ROW_NUMBER:
        return _show_ranks(self, top, at, kept, event, key_id)
    if self.ranks_shown or self.skip:
        return _show_shift(self, top, at, event, key_id)
    is_update = self.n == 1 and not self.of_limits
    if kept < top.n:
        _show(
            self, _entry(self, top, kept), kept + 1, event, key_id, RowKind.UPDATE_BEFORE if is_update else RowKind.DELETE
        )
        return _show(
            self, _entry(self, top, at), at + 1, event, key_id, RowKind.UPDATE_AFTER if is_update else RowKind.INSERT
        )
    return _show(self, _entry(self, top, at), at + 1, event, key_id, RowKind.INSERT)


cdef int _offer(
    Top* self,
    TopList* top,
    const SortKey* key,
    int64_t row,
    int64_t timestamp,
    int64_t event,
    uint32_t key_id,
) except -1 nogil:
    cdef int64_t at = _place(self, top, key, self.latest_first), kept, i
    cdef bint joins = False
    if self.ranking == Ranking.ROW_NUMBER:
        # Flink adds no row below a full list, which it takes to be one of 100 rows if it does not know the limit.
        if at >= self.n or (self.of_limits and at == top.n and at >= FULL_LIST):
            return 0
    else:
        # One that equals another has its rank, which is not above n.
        joins = (at > 0 and _compare(self, key, _entry(self, top, at - 1)) == 0) or (
            at < top.n and _compare(self, key, _entry(self, top, at)) == 0
        )
        if not joins and at == top.n and (top.n_groups if self.ranking == Ranking.DENSE_RANK else top.n) >= self.n:
            return 0
    _insert(self, top, at, row, timestamp, key)
    top.n_groups += not joins
    kept = _first_dropped(self, top)
    if self.changes:
        _show_change(self, top, at, kept, event, key_id)
    if kept < top.n:
        top.n_groups -= 1 if self.ranking == Ranking.DENSE_RANK else 0
        for i in range(kept, <int64_t> top.n):
            _drop_entry(self, _entry(self, top, i))
        top.n = <uint32_t> kept
    return 0


cdef int64_t _take_events(RelationalCore* core, const RelationalEvents* events, int64_t first) except -1 nogil:
    cdef Top* self = <Top*> core
    cdef const TopColumns* columns = &self.columns
    cdef const TopList* top
    cdef SortKey key
    cdef int64_t i, list_number
    cdef bint counts
    if not self.of_windows:
        _reach(self, core_n_keys(events, first))
        if self.of_limits:
            key_limits_reach(&self.limits, core_n_keys(events, first))
    for i in range(first, events.n):
        if core_is_full(core) or not core_advance(core, _fire_due, events.steps[i], False):
            return i
        counts = columns.is_last == NULL or columns.is_last[i]
        list_number = events.key_ids[i]
        if self.of_windows:
            if columns.ends[i] - 1 <= self.core.cursor.watermark:
                if counts:
                    core_late(core, i)
                continue
            list_number = _window(self, events.key_ids[i], events.key_groups[i], columns.ends[i], True)
        elif i + LOOK_AHEAD < events.n:
            prefetch(&self.lists[events.key_ids[i + LOOK_AHEAD]])
            top = &self.lists[events.key_ids[i + LOOK_AHEAD // 2]]
            if top.n:
                prefetch(_entry(self, top, top.n - 1))  # a new row is compared with the last one first
        self.core.processed += counts
        if self.of_limits:
            self.n = key_limit(&self.limits, list_number, columns.limits[i])
        key = sort_key_at(&columns.keys, &self.shape, i)
        _offer(self, &self.lists[list_number], &key, events.rows[i], events.timestamps[i], i, events.key_ids[i])
    return events.n


cdef bint _finish(Top* self) except -1 nogil:
    if not core_advance(&self.core, _fire_due, INT64_MAX, True):
        return False
    while not self.of_windows and not self.changes and self.n_emitted < self.n_lists:
        if not _emit_list(self, self.n_emitted, <uint32_t> self.n_emitted, INT64_MAX):
            return False
        self.n_emitted += 1
    return True


_RANKINGS = {"row_number": Ranking.ROW_NUMBER, "rank": Ranking.RANK, "dense_rank": Ranking.DENSE_RANK}


@cython.final
cdef class TopKernel:
    """Keeps the highest rows of each key; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    Parameters
    ----------
    timers : TimerHeap
        Event-time timers of the operator, which only this kernel changes.
    timeline : PackedSteps
        Steps of the timeline.
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most results that may wait; an event may have some on top.
    n, skip : int
        Results have the ranks `skip` + 1 to `n`.
    rank : str
        "row_number", "rank" or "dense_rank".
    n_words : int
        Words of a sort key.
    has_tails : bool
        Whether sort keys have bytes after the words.
    latest_first : bool
        Whether of equal sort keys the latest row is first, and not the earliest.
    ranks_shown : bool
        Whether results have their ranks.
    changes : bool
        Whether results are changes, at once; else those of a key come when the log ends.
    update_before : bool
        Whether an update is also a ``-U``.
    of_windows : bool
        Whether each row belongs to a window, whose rows come when the watermark reaches its end.
    of_limits : bool
        Whether ranks go up to a column of the first row of each key, and not to `n`: row numbers without windows.
    least_watermark : int
        Watermark in ms that is in force until the timeline exceeds it, as that of an operator of Flink in a savepoint.

    Raises
    ------
    ConfigurationError
        If a number is out of its range.
    """

    cdef CallGuard guard
    cdef Top state
    cdef TimerHeap _timers
    cdef PackedSteps _timeline

    def __cinit__(
        self,
        TimerHeap timers not None,
        PackedSteps timeline not None,
        *,
        int64_t steps_done,
        int64_t result_limit,
        int64_t n,
        int64_t skip,
        str rank not None,
        int64_t n_words,
        bint has_tails,
        bint latest_first,
        bint ranks_shown,
        bint changes,
        bint of_windows,
        bint of_limits=False,
        int64_t least_watermark=INT64_MIN,
        bint update_before=True,
    ):
        cdef Top* state = &self.state
        state.firing = state.latest = -1
        if not 0 <= skip < n < 1 << 31:
            raise ConfigurationError(f"ranks from {skip + 1} to {n}: they must be from 1 to 2**31 - 1")
        if latest_first and rank != "row_number":
            raise ConfigurationError(f"rows of equal sort keys have no order where they have equal ranks ({rank})")
        if of_limits and (rank != "row_number" or of_windows or skip):
            raise ConfigurationError("ranks up to a column are row numbers from 1 on, of keys without windows")
        self._timers = timers
        self._timeline = timeline
        state.timers = &timers.queue
        state.n = n
        state.skip = skip
        state.ranking = _RANKINGS[rank]
        state.shape.n_words = n_words
        state.shape.has_tails = has_tails
        state.latest_first = latest_first
        state.ranks_shown = ranks_shown
        state.changes = changes
        state.update_before = update_before
        state.of_windows = of_windows
        state.of_limits = of_limits
        state.stride = KEY + stored_words(&state.shape)
        core_open(&state.core, timeline, steps_done, result_limit, False, changes, ranks_shown)
        cursor_raise(&state.core.cursor, least_watermark)

    def __dealloc__(self):
        cdef int64_t i
        core_free(&self.state.core)
        for i in range(self.state.n_lists):
            _free_list(&self.state, &self.state.lists[i])
        free(self.state.lists)
        free(self.state.limits.limits)
        free(self.state.buckets)
        free(self.state.free_slots)

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
        const int64_t[::1] ends,
        const uint8_t[::1] is_last,
        const int64_t[::1] limits=None,
        int64_t first=0,
    ):
        """Take in events in total order from number `first` on, until results are full. Returns the number of the next event.

        Parameters
        ----------
        words : uint64 array (n, n_words)
            Sort keys: the least is the highest row.
        tail_ends : int64 array (n + 1,) or None
            Where the tail of each sort key begins in `tails`, and the last ends.
        tails : uint8 array or None
        ends : int64 array (n,) or None
            End of the window of each row, ms since the epoch. A row of several windows is an event for each.
        is_last : uint8 array (n,) or None
            Whether a row is counted with this window; None: each is.
        limits : int64 array (n,) or None
            Up to which rank rows of the key are shown, if ranks go up to a column: that of its first row counts.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_timers = begin_call(&self._timers.guard, self._timers)
        cdef RelationalEvents events
        cdef TopColumns* columns = &self.state.columns
        cdef int64_t n
        memset(columns, 0, sizeof(TopColumns))
        core_events(&events, key_ids, key_groups, inputs, rows, timestamps, steps, first)
        n = events.n
        if n == 0:
            return 0
        sort_keys_of(&columns.keys, &self.state.shape, words, tail_ends, tails, n)
        if self.state.of_windows:
            if ends is None or ends.shape[0] != n or (is_last is not None and is_last.shape[0] != n):
                raise ValueError("each row needs the end of its window")
            columns.ends = &ends[0]
            columns.is_last = NULL if is_last is None else &is_last[0]
        if self.state.of_limits:
            if limits is None or limits.shape[0] != n:
                raise ValueError("each row needs the limit of its rank")
            columns.limits = &limits[0]
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
        """Return the results that wait, as KernelResults; the values are ranks."""
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
        cdef int64_t size = self.state.capacity * <int64_t> sizeof(TopList) + self.state.entry_bytes
        if self.state.of_limits:
            size += self.state.limits.capacity * <int64_t> sizeof(int64_t)
        return size + (<int64_t> (self.state.mask + 1) * 4 if self.state.buckets != NULL else 0)

    @property
    def live_count(self):
        """Number of row numbers that it holds."""
        return self.state.n_live

    def live_rows(self):
        """Return the row numbers that it holds, as an int64 array; a row of several windows more than once."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[::1] live = np.empty(self.state.n_live, np.int64)
        cdef int64_t i, j, n = 0
        cdef const TopList* top
        with nogil:
            for i in range(self.state.n_lists):
                top = &self.state.lists[i]
                for j in range(top.n):
                    live[n] = <int64_t> _entry(&self.state, top, j)[ROW]
                    n += 1
        return live.base

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`. No results wait."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, j, n = 0
        cdef const TopList* top
        if rows.shape[0] != self.state.n_live:
            raise ValueError(f"{rows.shape[0]} numbers for {self.state.n_live} rows")
        with nogil:
            for i in range(self.state.n_lists):
                top = &self.state.lists[i]
                for j in range(top.n):
                    _entry(&self.state, top, j)[ROW] = <uint64_t> rows[n]
                    n += 1

    def snapshot(self):
        """Return its state as columns by table.

        `top` has `key`, `row`, `timestamp` and `end`, best rows of a list first; `limits`, which is there if ranks go up to a
        column, `key` and `limit`.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[:, ::1] columns = np.empty((4, self.state.n_live), np.int64)
        cdef int64_t i, j, n = 0
        cdef const TopList* top
        cdef const uint64_t* entry
        for i in range(self.state.n_lists):
            top = &self.state.lists[i]
            for j in range(top.n):
                entry = _entry(&self.state, top, j)
                columns[0, n] = top.key_id if self.state.of_windows else i
                columns[1, n] = <int64_t> entry[ROW]
                columns[2, n] = <int64_t> entry[TIMESTAMP]
                columns[3, n] = top.end
                n += 1
        keys, rows, timestamps, ends = columns.base
        top_rows = {"key": keys, "row": rows, "timestamp": timestamps, "end": ends}
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
        cdef const int64_t[::1] timestamps = columns.column("timestamp").to_numpy()
        cdef const int64_t[::1] ends = columns.column("end").to_numpy()
        cdef const uint64_t[:, ::1] words = rows["words"]
        cdef SortKeys sort_keys
        cdef TopList* top
        cdef SortKey key
        cdef int64_t i, list_number
        cdef int order
        sort_keys_of(&sort_keys, &self.state.shape, words, tail_ends, tail_bytes, keys.shape[0])
        for i in range(keys.shape[0]):
            list_number = keys[i]
            if self.state.of_windows:
                # The timers are restored as they were.
                list_number = _window(&self.state, <uint32_t> keys[i], 0, ends[i], False)
            else:
                _reach(&self.state, keys[i] + 1)
            if self.state.of_limits:
                key_limits_reach(&self.state.limits, list_number + 1)
                self.state.n = key_limit(&self.state.limits, list_number, 0)
            top = &self.state.lists[list_number]
            key = sort_key_at(&sort_keys, &self.state.shape, i)
            order = _compare(&self.state, &key, _entry(&self.state, top, top.n - 1)) if top.n else 1
            if numbers[i] < 0 or order < 0:
                raise SchemaError(f"row {i} of the state is not in the order of the highest rows")
            _insert(&self.state, top, top.n, numbers[i], timestamps[i], &key)
            top.n_groups += order > 0
            if _first_dropped(&self.state, top) < top.n:
                raise SchemaError(f"row {i} of the state is not among the {self.state.n} highest of its key")

    def _check(self):
        """Assert its invariants."""
        cdef int64_t i, j, live = 0, windows = 0
        cdef const TopList* top
        for i in range(self.state.n_lists):
            top = &self.state.lists[i]
            live += top.n
            windows += top.n > 0
            assert top.n <= top.capacity
            if self.state.of_limits:
                self.state.n = max(<int64_t> 0, self.state.limits.limits[i])
            assert _first_dropped(&self.state, top) == top.n, f"list {i} has a row of a rank above {self.state.n}"
            for j in range(1, <int64_t> top.n):
                assert _compare_entries(
                    &self.state, _entry(&self.state, top, j - 1), _entry(&self.state, top, j)
                ) <= 0, f"list {i} is not in order at {j}"
            if top.n and self.state.of_windows:
                assert self.state.buckets[_window_bucket(&self.state, top.key_id, top.end)] == i + 1
        assert live == self.state.n_live
        if self.state.of_windows:
            assert windows == self.state.n_windows, f"{windows} windows, and {self.state.n_windows} are counted"
            assert len(self._timers) == windows - (self.state.firing >= 0)
            self._timers._check()

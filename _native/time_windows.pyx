"""Tumbling, sliding and cumulate event-time windows that fire at their end: kernels of window operators.

`time_windows` has one hash table per live window: windows retire, so the tables stay small however long the log is.
`sliced_windows` lets overlapping windows share slices of time. The results are the same for shareable accumulators.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from flinkcore.errors import ConfigurationError

from flinkcore._native.aggregates cimport (
    accumulators_add,
    accumulators_clear,
    accumulators_clear_range,
    accumulators_copy,
    accumulators_subtract,
    require_shareable,
)
from flinkcore._native.call_guard cimport Call, begin_reading
from flinkcore._native.keys cimport KeyBatch, KeyEncoder, mix_int64
from flinkcore._native.memory cimport grow, prefetch
from flinkcore._native.packed_steps cimport (
    WATERMARKS,
    PackedSteps,
    StepCursor,
    steps_close,
    steps_open,
    steps_watermark_after,
)
from flinkcore._native.panes cimport (
    BLOCK_PAIRS,
    ENTRY_BLOCK,
    AlignedWindows,
    HashOrder,
    HashedKey,
    Pane,
    PaneList,
    PaneStore,
    PaneTotals,
    RowBlock,
    RowVerbs,
    WindowVisit,
    aligned_kernel,
    aligned_start,
    append_live_panes,
    checked_windows,
    compare_bytes,
    emit_late_key,
    emit_pane,
    first_end,
    first_window,
    has_window,
    hash_order_free,
    is_assigned,
    is_window,
    most_windows,
    pane_check,
    pane_empty,
    pane_empty_plain,
    pane_entry,
    pane_entry_of,
    pane_find,
    pane_free,
    pane_key,
    pane_keys,
    pane_list_at,
    pane_list_behind,
    pane_list_check,
    pane_list_close,
    pane_list_find,
    pane_list_open,
    pane_list_retire,
    pane_make_order,
    pane_make_room,
    pane_open,
    pane_open_plain,
    pane_prefetch,
    pane_store_check,
    panes_free,
    panes_memory,
    restored_pane_entry,
    slice_end,
    take_in_blocks,
    visit_from,
    visit_next,
)
from flinkcore._native.window_calendar cimport WindowCalendar
from flinkcore._native.window_operator cimport (
    NO_ENTRY,
    InputRows,
    LiveWindow,
    RowKind,
    WindowCore,
    WindowKernel,
    WindowRows,
    WindowVerbs,
    check_retracts,
    cleanup_time,
    core_add_late,
    core_add_unassigned,
    core_check_unfired,
    core_reach_row,
    core_take_in,
    cursor_step,
    cursor_step_reaching,
    input_row,
    is_over,
    pending_add,
    pending_flush,
    saturating_add,
)


# ---- windows with keys of their own ------------------------------------------------------------------------------


cdef struct TimeWindows:
    WindowCore core
    AlignedWindows windows
    bint purges          # true if a firing empties the window
    int64_t quiet_until  # rows with at most so many steps before them fire and end no window
    PaneList live
    int64_t n_fired      # windows at the front of `live` that have fired, kept for late rows
    int64_t n_emitted    # keys of the next window to fire whose results are out already
    PaneStore store


cdef void _time_plan_next(TimeWindows* state) noexcept nogil:
    # Finds the step that next fires or ends a window. A search for none would look at the end of the timeline each time.
    cdef int64_t due = INT64_MAX
    if state.live.n == 0:
        state.quiet_until = INT64_MAX
        return
    if state.n_fired:
        due = cleanup_time(&state.core, state.live.panes[0].end)
    if state.n_fired < state.live.n:
        due = min(due, state.live.panes[state.n_fired].end - 1)
    state.quiet_until = cursor_step_reaching(&state.core.cursor, due)


cdef Pane* _pane(TimeWindows* state, int64_t start, int64_t end) except NULL nogil:
    # Returns the window with these bounds, opened if necessary.
    cdef Pane* pane = pane_list_find(&state.live, end)
    if pane == NULL:
        pane = pane_list_open(&state.live, &state.store, start, end)
        # If a late row opens it, its end has passed: it fires with each row (EventTimeTrigger.onElement), not at its end.
        pane.fired = end - 1 <= state.core.cursor.watermark
        state.n_fired += pane.fired
        _time_plan_next(state)
    return pane


cdef bint _time_fire(TimeWindows* state, Pane* pane) except -1 nogil:
    # Fires all keys of the window at the watermark in force. Returns false if results are full before.
    if not emit_pane(&state.core, pane, &state.n_emitted, state.purges):
        return False
    pane.fired = True
    state.n_fired += 1
    return True


cdef bint _time_fire_due(void* windows) except -1 nogil:
    # Fires and ends windows in order of their time, as the event-time timers of Flink's window operator do. Returns false if
    # results are full before.
    cdef TimeWindows* state = <TimeWindows*> windows
    state.core.due = True
    while state.n_fired < state.live.n and state.live.panes[state.n_fired].end - 1 <= state.core.cursor.watermark:
        if not _time_fire(state, state.live.panes[state.n_fired]):
            return False
    state.n_fired -= pane_list_retire(&state.live, &state.store, &state.core)  # what is over has fired
    state.core.due = False
    _time_plan_next(state)
    return True


cdef bint _time_step(void* windows) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    return cursor_step(&state.core.cursor) < state.quiet_until or _time_fire_due(state)


# ---- windows with keys of their own: rows ------------------------------------------------------------------------


cdef bint _time_take_row(void* windows, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement for one row. Returns false if results are full before it.
    cdef TimeWindows* state = <TimeWindows*> windows
    cdef WindowVisit visit = first_window(&state.windows, input.timestamps[row])
    cdef int64_t k, n_known
    cdef Pane* pane
    cdef bint skipped = True, known
    if not core_reach_row(&state.core, &TIME_VERBS, input, row):
        return False
    while is_window(&visit):
        core_check_unfired(&state.core, input, row, visit.end)
        if not is_over(&state.core, visit.end):
            skipped = False
            pane = _pane(state, visit.start, visit.end)
            n_known = pane.n_keys
            k = pane_key(&state.store, pane, input.keys, row)
            known = k < n_known
            # The earlier result of a late row's window is withdrawn before the row changes it.
            if pane.fired and known and state.core.retracts:
                emit_late_key(&state.core, pane, k, RowKind.UPDATE_BEFORE)
            core_take_in(&state.core, input, pane_entry(pane, k), row)
            if pane.fired:
                emit_late_key(&state.core, pane, k, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
                if state.purges:
                    accumulators_clear_range(state.core.table, pane_entry(pane, k), 1)
        visit_next(&visit)
    if skipped:
        core_add_unassigned(&state.core, row, input.timestamps[row])
    else:
        state.core.windowed += 1
    return True


cdef int64_t _time_find_windows(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef AlignedWindows aligned = state.windows
    cdef const uint64_t* hashes = input.keys.hashes
    cdef const int64_t* timestamps = input.timestamps
    cdef const int64_t* steps_before = input.steps_before
    cdef int64_t i = first, n = 0, previous, timestamp, width = most_windows(&aligned)
    cdef int64_t low = 0, high = 0  # timestamps from `low` to below `high` have `pane` as their first window
    cdef Pane* pane = NULL
    cdef Pane* other
    cdef WindowVisit visit
    cdef uint32_t row
    while i < input.n and n + width <= BLOCK_PAIRS:
        row = input_row(input, i)
        timestamp = timestamps[row]
        # A row that needs a step of the timeline, opens a window or falls into one that has fired is left to take_row. The
        # block ends before it, with all of the row's windows or none.
        if steps_before[row] > state.quiet_until:
            break
        if timestamp < low or timestamp >= high:
            if aligned.calendar != NULL:
                pane = pane_list_at(&state.live, timestamp)
            else:
                pane = pane_list_find(&state.live, first_end(&aligned, timestamp))
            if pane == NULL:
                break
            low = pane.end - aligned.slide if aligned.cumulative else pane.start
            high = pane.end if aligned.calendar != NULL else saturating_add(low, aligned.slide)
        if pane.fired or timestamp >= pane.end:
            break
        previous = n
        block.panes[n] = pane
        block.rows[n] = row
        pane_prefetch(pane, hashes[row])
        n += 1
        if width > 1:
            visit = visit_from(&aligned, timestamp, pane.start, pane.end)
            visit_next(&visit)
            while is_window(&visit):
                other = pane_list_find(&state.live, visit.end)
                if other == NULL or other.fired:
                    n = previous
                    break
                block.panes[n] = other
                block.rows[n] = row
                pane_prefetch(other, hashes[row])
                n += 1
                visit_next(&visit)
            if n == previous:
                break
        i += 1
    block.n = n
    return i


cdef RowVerbs TIME_ROW_VERBS = RowVerbs(find_windows=_time_find_windows, take_row=_time_take_row)


cdef int64_t _time_process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    if state.core.due and not _time_fire_due(state):
        return first
    return take_in_blocks(&state.core, &state.store, input, first, most_windows(&state.windows), &TIME_ROW_VERBS)


# ---- windows with keys of their own: checkpoints -----------------------------------------------------------------


cdef int _time_state(const void* windows, WindowRows* rows) except -1 nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    return append_live_panes(rows, state.core.bytes_keys, &state.live)


cdef int64_t _time_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    if window.flags > 1 or not is_assigned(&state.windows, window.start, window.end):
        return NO_ENTRY
    return restored_pane_entry(&state.store, _pane(state, window.start, window.end), keys, row)


# ---- windows with keys of their own: the kernel ------------------------------------------------------------------


cdef int _time_start(void* windows) except -1:
    cdef TimeWindows* state = <TimeWindows*> windows
    check_retracts(&state.core, state.purges)
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    _time_plan_next(state)
    return 0


cdef int64_t _time_live_windows(const void* windows) noexcept nogil:
    return (<const TimeWindows*> windows).live.n


cdef int64_t _time_memory(const void* windows) noexcept nogil:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    return panes_memory(&state.store, &state.live)


cdef void _time_free(void* windows) noexcept nogil:
    cdef TimeWindows* state = <TimeWindows*> windows
    panes_free(&state.live, &state.store)
    free(state)


cdef int _time_check(const void* windows) except -1:
    cdef const TimeWindows* state = <const TimeWindows*> windows
    cdef PaneTotals totals = PaneTotals(0, 0)
    cdef const Pane* pane
    cdef int64_t i
    for i in range(state.live.n):
        pane = state.live.panes[i]
        assert pane.end <= pane.start + state.windows.size
        assert pane.fired == (i < state.n_fired)
        if not state.core.due:
            assert pane.fired == (pane.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert not is_over(&state.core, pane.end), "a window outlived its time"
    assert state.core.due or state.n_emitted == 0, "a window fired in part"
    pane_list_check(&state.store, &state.live, &totals)
    return pane_store_check(&state.store, totals)


cdef WindowVerbs TIME_VERBS = WindowVerbs(
    start=_time_start, process=_time_process, fire_due=_time_fire_due, step=_time_step, live_windows=_time_live_windows,
    memory=_time_memory, check=_time_check, windows=_time_state, restore=_time_restore, free=_time_free,
)


def time_windows(
    *,
    int64_t allowed_lateness,
    int64_t size=0,
    int64_t slide=0,
    int64_t offset=0,
    bint cumulative=False,
    WindowCalendar calendar=None,
    bint purges=False,
):
    """Make the kernel of tumbling, sliding or cumulate windows, or those of a calendar, that fire at their end.

    Parameters
    ----------
    allowed_lateness, size, slide, offset : int
        Milliseconds; `slide` equals `size` for tumbling windows, and is the step of cumulate windows.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.
    calendar : WindowCalendar, optional
        The windows, instead of size, slide and offset.
    purges : bool
        Whether a firing empties the window.

    Returns
    -------
    WindowKernel

    Raises
    ------
    ConfigurationError
        If a size is not positive, the lateness is negative, or a row would go into too many windows.
    """
    cdef WindowKernel kernel
    cdef TimeWindows* state
    cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, calendar, allowed_lateness, BLOCK_PAIRS)
    kernel = aligned_kernel("time_windows", sizeof(TimeWindows), &TIME_VERBS, &windows, calendar, allowed_lateness)
    state = <TimeWindows*> kernel.state
    state.windows = windows
    state.purges = purges
    state.quiet_until = INT64_MAX
    kernel.takes_partials = windows.slide == windows.size and not cumulative
    return kernel


# ---- a window that slices enter and leave ------------------------------------------------------------------------
# As a window slides on, most of its keys stay. The contents of a slice are added when it enters, and subtracted when it leaves:
# the cost of a firing does not depend on the number of slices in a window.
#
#     slices            | 0 | 1 | 2 | 3 |
#     window            [ 0   1   2 ]
#     0 leaves              [ 1   2 ]
#     3 enters              [ 1   2   3 ]
#
# Window and slices are merged in order of their hashes, from one end of memory to the other: a firing reads all keys of a
# window anyway, and reading in a row costs a fraction of looking up.
#
# A maximum that leaves does not reveal the next one: it is searched in all remaining slices, only for the keys that lose it. So
# windows are expensive if their minimum is always the first value and they have many slices.


cdef struct SliceMerge:
    # The slices that end after `start`, up to `end`, added up.
    int64_t start
    int64_t end
    Pane* pane           # keys in order of their hashes; NULL before the first slice
    uint32_t* n_slices   # number of slices that have each key; keys with 0 are dropped when the next window fires
    uint32_t n_gone      # number of such keys
    Pane* spare          # the next window is written here
    uint32_t* spare_n_slices
    int64_t n_slices_capacity
    # The keys that enter next: late rows of slices that have entered, or several slices at once; NULL before the first key.
    Pane* gathered
    uint32_t* gathered_n_slices  # number of slices to which each key is new
    int64_t gathered_capacity
    HashOrder scratch


cdef enum:
    LOOK_AHEAD = 16  # keys of a slice, which are not in order of their hashes


cdef struct EntryPairs:
    # Pairs of entries, of which the first takes over the contents of the second.
    uint32_t[ENTRY_BLOCK] into
    uint32_t[ENTRY_BLOCK] others
    int64_t n


cdef inline bint _pair(EntryPairs* pairs, uint32_t into, uint32_t other) noexcept nogil:
    # Appends a pair. Returns true if the pairs are full.
    pairs.into[pairs.n] = into
    pairs.others[pairs.n] = other
    pairs.n += 1
    return pairs.n == ENTRY_BLOCK


# ---- slices that enter -------------------------------------------------------------------------------------------


cdef struct WindowWriter:
    # Writes the next window, key by key.
    PaneStore* store
    Pane* pane
    uint32_t* n_slices
    EntryPairs copies  # from the window before, or from the entering keys
    EntryPairs sums    # of both


cdef void _flush(WindowWriter* writer) noexcept nogil:
    accumulators_copy(writer.store.table, writer.copies.into, writer.copies.others, writer.copies.n)
    accumulators_add(writer.store.table, writer.sums.into, writer.sums.others, writer.sums.n)
    writer.copies.n = writer.sums.n = 0


cdef inline void _prefetch_key(const PaneStore* store, const Pane* pane, uint32_t k) noexcept nogil:
    if store.bytes_keys:
        prefetch(&pane.offsets[k])
    else:
        prefetch(&pane.keys[k])


cdef inline void _write(
    WindowWriter* writer, const Pane* pane, uint32_t k, uint64_t hash, uint32_t n_slices
) noexcept nogil:
    # Appends key k of a pane with its contents.
    cdef Pane* window = writer.pane
    cdef uint32_t at = window.n_keys
    cdef int64_t length
    window.hashes[at] = hash
    writer.n_slices[at] = n_slices
    if writer.store.bytes_keys:
        length = pane.offsets[k + 1] - pane.offsets[k]
        if length:
            memcpy(window.data + window.offsets[at], pane.data + pane.offsets[k], length)
        window.offsets[at + 1] = window.offsets[at] + length
    else:
        window.keys[at] = pane.keys[k]
    window.n_keys = at + 1
    if _pair(&writer.copies, pane_entry(window, at), pane_entry(pane, k)):
        _flush(writer)


cdef int _start_next(SliceMerge* merge, PaneStore* store, const Pane* entering) except -1 nogil:
    # Makes room for all keys of the window and of the entering pane.
    cdef const Pane* pane = merge.pane
    cdef int64_t n_keys = <int64_t> pane.n_keys + entering.n_keys, n_bytes = 0
    if store.bytes_keys:
        n_bytes = (pane.offsets[pane.n_keys] if pane.n_keys else 0) + (
            entering.offsets[entering.n_keys] if entering.n_keys else 0
        )
    merge.spare.n_keys = 0
    pane_make_room(store, merge.spare, <uint32_t> n_keys, n_bytes)
    if n_keys > merge.n_slices_capacity:
        n_keys += n_keys >> 2
        merge.n_slices = <uint32_t*> grow(merge.n_slices, n_keys * sizeof(uint32_t), b"the slices of windows")
        merge.spare_n_slices = <uint32_t*> grow(
            merge.spare_n_slices, n_keys * sizeof(uint32_t), b"the slices of windows"
        )
        merge.n_slices_capacity = n_keys
    return 0


cdef inline bint _is_before(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    return pane.hashes[i] < key.hash or (
        pane.hashes[i] == key.hash and compare_bytes(keys, i, others, key.number) < 0
    )


cdef inline bint _is_at(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    return (
        i < pane.n_keys and pane.hashes[i] == key.hash and compare_bytes(keys, i, others, key.number) == 0
    )


cdef inline uint32_t _place(
    const Pane* pane, const KeyBatch* keys, uint32_t i, HashedKey key, const KeyBatch* others
) noexcept nogil:
    # Returns the place of a key, or where it would be, from place i on.
    while i < pane.n_keys and _is_before(pane, keys, i, key, others):
        i += 1
    return i


cdef bint _has_all(const SliceMerge* merge, const PaneStore* store, const Pane* entering) noexcept nogil:
    cdef KeyBatch keys = pane_keys(store, merge.pane), others = pane_keys(store, entering)
    cdef uint32_t i = 0
    cdef int64_t j
    if entering.n_keys > merge.pane.n_keys:
        return False
    for j in range(entering.n_keys):
        i = _place(merge.pane, &keys, i, entering.order[j], &others)
        if not _is_at(merge.pane, &keys, i, entering.order[j], &others):
            return False
    return True


cdef void _add(SliceMerge* merge, PaneStore* store, const Pane* entering, const uint32_t* n_slices) noexcept nogil:
    # Adds the entering keys to a window that has all of them, possibly with 0 slices.
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys = pane_keys(store, pane), others = pane_keys(store, entering)
    cdef WindowWriter writer
    cdef uint32_t i = 0, k
    cdef int64_t j
    writer.store = store
    writer.copies.n = writer.sums.n = 0
    for j in range(entering.n_keys):
        k = entering.order[j].number
        i = _place(pane, &keys, i, entering.order[j], &others)
        merge.n_gone -= merge.n_slices[i] == 0
        if _pair(
            &writer.sums if merge.n_slices[i] else &writer.copies, pane_entry(pane, i), pane_entry(entering, k)
        ):
            _flush(&writer)
        merge.n_slices[i] += n_slices[k] if n_slices != NULL else 1
    _flush(&writer)


cdef int _rewrite(SliceMerge* merge, PaneStore* store, const Pane* entering, const uint32_t* n_slices) except -1 nogil:
    # Writes the window with the keys of both, without keys that are in no slice.
    cdef const Pane* pane = merge.pane
    cdef WindowWriter writer
    cdef KeyBatch keys, others
    cdef HashedKey key
    cdef int64_t j
    cdef uint32_t i = 0, more
    _start_next(merge, store, entering)
    keys = pane_keys(store, pane)
    others = pane_keys(store, entering)
    writer.store = store
    writer.pane = merge.spare
    writer.n_slices = merge.spare_n_slices
    writer.copies.n = writer.sums.n = 0
    for j in range(entering.n_keys):
        if j + LOOK_AHEAD < entering.n_keys:
            _prefetch_key(store, entering, entering.order[j + LOOK_AHEAD].number)
        key = entering.order[j]
        more = n_slices[key.number] if n_slices != NULL else 1
        while i < pane.n_keys and _is_before(pane, &keys, i, key, &others):
            if merge.n_slices[i]:
                _write(&writer, pane, i, pane.hashes[i], merge.n_slices[i])
            i += 1
        if not _is_at(pane, &keys, i, key, &others):
            _write(&writer, entering, key.number, key.hash, more)
            continue
        if merge.n_slices[i]:
            _write(&writer, pane, i, key.hash, merge.n_slices[i] + more)
            if _pair(
                &writer.sums, pane_entry(writer.pane, writer.pane.n_keys - 1), pane_entry(entering, key.number)
            ):
                _flush(&writer)
        else:
            _write(&writer, entering, key.number, key.hash, more)
        i += 1
    while i < pane.n_keys:
        if merge.n_slices[i]:
            _write(&writer, pane, i, pane.hashes[i], merge.n_slices[i])
        i += 1
    _flush(&writer)
    merge.pane, merge.spare = merge.spare, merge.pane
    merge.n_slices, merge.spare_n_slices = merge.spare_n_slices, merge.n_slices
    merge.n_gone = 0
    return 0


cdef int _enter(SliceMerge* merge, PaneStore* store, Pane* entering, const uint32_t* n_slices) except -1 nogil:
    # Each key is new to so many slices, or to one if n_slices is NULL.
    pane_make_order(&merge.scratch, store, entering)
    if not _has_all(merge, store, entering):
        return _rewrite(merge, store, entering, n_slices)
    _add(merge, store, entering, n_slices)
    return 0


cdef int _drop_gone(SliceMerge* merge, PaneStore* store) except -1 nogil:
    # Drops keys that are in no slice when no slice enters.
    cdef Pane nothing
    memset(&nothing, 0, sizeof(Pane))
    return _rewrite(merge, store, &nothing, NULL)


# ---- keys that are gathered before they enter together -----------------------------------------------------------


cdef int64_t _merge_gathered_entry(
    SliceMerge* merge, PaneStore* store, const KeyBatch* keys, int64_t row, bint is_new
) except -1 nogil:
    # Returns the entry for a late row that one of the window's slices takes in. is_new: it is the first row of this key in the
    # slice.
    cdef int64_t k
    cdef uint32_t n_known
    if merge.gathered == NULL:
        merge.gathered = pane_open(store, merge.start, merge.end)
    n_known = merge.gathered.n_keys
    k = pane_key(store, merge.gathered, keys, row)
    if merge.gathered.n_keys > merge.gathered_capacity:
        merge.gathered_n_slices = <uint32_t*> grow(
            merge.gathered_n_slices, merge.gathered.keys_capacity * sizeof(uint32_t), b"the slices of windows"
        )
        merge.gathered_capacity = merge.gathered.keys_capacity
    if k == n_known:
        merge.gathered_n_slices[k] = 0
    merge.gathered_n_slices[k] += is_new
    return pane_entry(merge.gathered, k)


cdef int _gather(SliceMerge* merge, PaneStore* store, const Pane* slice) except -1 nogil:
    cdef KeyBatch keys = pane_keys(store, slice)
    cdef EntryPairs sums
    cdef int64_t k
    sums.n = 0
    for k in range(slice.n_keys):
        if _pair(&sums, <uint32_t> _merge_gathered_entry(merge, store, &keys, k, True), pane_entry(slice, k)):
            accumulators_add(store.table, sums.into, sums.others, sums.n)
            sums.n = 0
    accumulators_add(store.table, sums.into, sums.others, sums.n)
    return 0


cdef void _empty_gathered(SliceMerge* merge, PaneStore* store) noexcept nogil:
    cdef bint roomy
    if merge.gathered == NULL or merge.gathered.n_keys == 0:
        return
    roomy = merge.gathered.mask > 16 * <uint64_t> merge.gathered.n_keys + 1024
    pane_empty(store, merge.gathered)
    if roomy:  # the memory of one crowded time is not kept for ever
        pane_free(store, merge.gathered)
        merge.gathered = NULL


cdef int _enter_gathered(SliceMerge* merge, PaneStore* store) except -1 nogil:
    if merge.gathered != NULL and merge.gathered.n_keys:
        _enter(merge, store, merge.gathered, merge.gathered_n_slices)
        _empty_gathered(merge, store)
    return 0


# ---- slices that leave -------------------------------------------------------------------------------------------


cdef struct DoubtfulKeys:
    # Entries of the window, and their keys' numbers in the slice that leaves.
    uint32_t[ENTRY_BLOCK] entries
    uint32_t[ENTRY_BLOCK] rows
    int64_t n


cdef void _add_up(
    const DoubtfulKeys* doubtful, PaneStore* store, const PaneList* slices, int64_t first, int64_t end, const KeyBatch* keys
) noexcept nogil:
    # Adds up each entry from the slices from number `first` on that have its key.
    cdef EntryPairs pairs
    cdef const Pane* slice
    cdef int64_t i = first, k, p
    accumulators_clear(store.table, doubtful.entries, doubtful.n)
    while i < slices.n and slices.panes[i].end <= end:
        slice = slices.panes[i]
        for p in range(doubtful.n):
            pane_prefetch(slice, keys.hashes[doubtful.rows[p]])
        pairs.n = 0
        for p in range(doubtful.n):
            k = pane_find(store, slice, keys, doubtful.rows[p])
            if k >= 0:
                _pair(&pairs, doubtful.entries[p], pane_entry(slice, k))
        accumulators_add(store.table, pairs.into, pairs.others, pairs.n)
        i += 1


cdef int _leave(SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t number) except -1 nogil:
    # Subtracts the slice with this number, all of whose keys are in the window.
    cdef Pane* slice = slices.panes[number]
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys = pane_keys(store, pane), others = pane_keys(store, slice)
    cdef uint32_t[ENTRY_BLOCK] rows
    cdef uint8_t[ENTRY_BLOCK] is_doubtful
    cdef DoubtfulKeys doubtful
    cdef EntryPairs left
    cdef int64_t j, p
    cdef uint32_t i = 0, k
    pane_make_order(&merge.scratch, store, slice)
    left.n = 0
    for j in range(slice.n_keys):
        k = slice.order[j].number
        i = _place(pane, &keys, i, slice.order[j], &others)
        merge.n_slices[i] -= 1
        if merge.n_slices[i]:
            rows[left.n] = k
            _pair(&left, pane_entry(pane, i), pane_entry(slice, k))
        else:
            merge.n_gone += 1
        if left.n == ENTRY_BLOCK or j == slice.n_keys - 1:
            accumulators_subtract(store.table, left.into, left.others, left.n, is_doubtful)
            doubtful.n = 0
            for p in range(left.n):
                doubtful.entries[doubtful.n] = left.into[p]
                doubtful.rows[doubtful.n] = rows[p]
                doubtful.n += is_doubtful[p]
            if doubtful.n:
                _add_up(&doubtful, store, slices, number + 1, merge.end, &others)
            left.n = 0
    return 0


cdef void _empty(SliceMerge* merge, PaneStore* store) noexcept nogil:
    pane_empty_plain(store, merge.pane)
    pane_empty_plain(store, merge.spare)
    _empty_gathered(merge, store)
    merge.n_gone = 0


cdef int _merge_leave(SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start) except -1 nogil:
    # Subtracts the slices that end at or before `start`.
    cdef int64_t i
    if merge.pane == NULL or start <= merge.start:
        return 0
    if start >= merge.end:
        _empty(merge, store)
        merge.start = merge.end = start
        return 0
    _enter_gathered(merge, store)
    i = pane_list_behind(slices, merge.start)
    while i < slices.n and slices.panes[i].end <= start:
        _leave(merge, store, slices, i)
        i += 1
    merge.start = start
    return 0


cdef int _merge_slices(
    SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start, int64_t end
) except -1 nogil:
    # Makes the merge the window from `start` to `end`, neither of which is before that of the last window.
    cdef int64_t first, behind, i
    if merge.pane == NULL:
        merge.pane = pane_open_plain(store)
        merge.start = merge.end = start
    if merge.spare == NULL:
        merge.spare = pane_open_plain(store)
    _merge_leave(merge, store, slices, start)
    _enter_gathered(merge, store)
    first = pane_list_behind(slices, merge.end)
    behind = pane_list_behind(slices, end)
    if behind == first + 1:
        _enter(merge, store, slices.panes[first], NULL)
    else:  # after a gap, or a checkpoint: not one by one through a large window
        for i in range(first, behind):
            _gather(merge, store, slices.panes[i])
        _enter_gathered(merge, store)
    if merge.n_gone:
        _drop_gone(merge, store)
    merge.end = end
    merge.pane.start = start
    merge.pane.end = end
    return 0


cdef void _merge_free(SliceMerge* merge, PaneStore* store) noexcept nogil:
    if merge.pane != NULL:
        pane_free(store, merge.pane)
    if merge.spare != NULL:
        pane_free(store, merge.spare)
    if merge.gathered != NULL:
        pane_free(store, merge.gathered)
    free(merge.n_slices)
    free(merge.spare_n_slices)
    free(merge.gathered_n_slices)
    hash_order_free(&merge.scratch)


cdef uint32_t _slices_of(
    const SliceMerge* merge, const PaneStore* store, const PaneList* slices, const KeyBatch* keys, int64_t row
) noexcept nogil:
    # Returns how many of the window's slices have a row's key.
    cdef uint32_t n = 0
    cdef int64_t i
    for i in range(slices.n):
        if merge.start < slices.panes[i].end <= merge.end and pane_find(store, slices.panes[i], keys, row) >= 0:
            n += 1
    return n


cdef int _merge_check(
    const SliceMerge* merge, const PaneStore* store, const PaneList* slices, PaneTotals* totals
) except -1:
    # Adds up what the merge holds; raises AssertionError if it is inconsistent.
    cdef const Pane* pane = merge.pane
    cdef KeyBatch keys
    cdef int64_t k, late
    cdef uint32_t n_slices
    if pane == NULL:
        return 0
    keys = pane_keys(store, pane)
    for k in range(pane.n_keys):
        n_slices = merge.n_slices[k]
        if merge.gathered != NULL:
            late = pane_find(store, merge.gathered, &keys, k)
            if late >= 0:
                n_slices += merge.gathered_n_slices[late]
        assert n_slices == _slices_of(merge, store, slices, &keys, k), "a key is in other slices than its window knows"
        assert k == 0 or pane.hashes[k - 1] < pane.hashes[k] or compare_bytes(&keys, k - 1, &keys, k) < 0, "out of order"
    pane_check(store, pane, totals)
    pane_check(store, merge.spare, totals)
    return 0 if merge.gathered == NULL else pane_check(store, merge.gathered, totals)


# ---- windows that share slices -----------------------------------------------------------------------------------
# Sliding windows whose size is a multiple of their slide, and cumulate windows, are made of slices, one per slide:
#
#     slices      | 0 | 1 | 2 | 3 | 4 |
#     sliding     [ 0   1   2 ]
#                     [ 1   2   3 ]
#                         [ 2   3   4 ]
#     cumulate    [ 0 ]
#                 [ 0   1 ]
#                 [ 0   1   2 ]
#
# A row is added up once, in its slice, as in tumbling windows. When a window fires, it is derived from the one before: slices
# enter, and others leave. A late row fires each of its windows that have fired and are still open: for its key alone, the
# slices are merged again.


cdef struct SlicedWindows:
    WindowCore core
    AlignedWindows windows
    double slides_per_ms
    int64_t quiet_until  # rows with at most so many steps before them fire and end no window
    PaneList slices      # one per slide; `fired` if the first of its windows has
    int64_t n_fired      # slices at the front that have `fired`
    int64_t fired_to     # windows that end here or before have fired
    PaneStore store
    # Derived from the slices, and not in checkpoints:
    SliceMerge window    # the last one that has fired, without the slices that the next does not have
    bint emitting        # it is complete, and some of its results are not out
    int64_t n_emitted
    Pane* late           # scratch: one key's window that a late row fires


cdef inline int64_t _last_end(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Returns the end of the last window that contains the slice with this end.
    cdef int64_t size = state.windows.size, slide = state.windows.slide
    if state.windows.cumulative:
        return aligned_start(end - slide, state.windows.offset, size) + size
    return end + (size - slide)


cdef inline int64_t _start_of(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Returns the start of the window with this end.
    if state.windows.cumulative:
        return aligned_start(end - 1, state.windows.offset, state.windows.size)
    return end - state.windows.size


cdef inline int64_t _next_start(const SlicedWindows* state, int64_t end) noexcept nogil:
    # Returns the start of the window after the one with this end.
    cdef int64_t start = _start_of(state, end)
    if not state.windows.cumulative:
        return start + state.windows.slide
    return start if end - start < state.windows.size else end


cdef int64_t _next_firing(const SlicedWindows* state) noexcept nogil:
    # Returns the last moment of the first window that has not fired and has a slice, or INT64_MAX.
    cdef int64_t low = 0, high = state.slices.n, middle
    while low < high:
        middle = (low + high) >> 1
        if _last_end(state, state.slices.panes[middle].end) > state.fired_to:
            high = middle
        else:
            low = middle + 1
    if low == state.slices.n:
        return INT64_MAX
    if state.slices.panes[low].end > state.fired_to:
        return state.slices.panes[low].end - 1
    return slice_end(&state.windows, state.fired_to) - 1


cdef void _sliced_plan_next(SlicedWindows* state) noexcept nogil:
    # Finds the step that next fires or ends a window, as `_time_plan_next` does.
    cdef int64_t due
    if state.slices.n == 0:
        state.quiet_until = INT64_MAX
        return
    due = min(_next_firing(state), cleanup_time(&state.core, _last_end(state, state.slices.panes[0].end)))
    state.quiet_until = cursor_step_reaching(&state.core.cursor, due)


cdef Pane* _slice(SlicedWindows* state, int64_t end) except NULL nogil:
    # Returns the slice with this end, opened if necessary.
    cdef Pane* slice = pane_list_find(&state.slices, end)
    if slice == NULL:
        slice = pane_list_open(&state.slices, &state.store, end - state.windows.slide, end)
        slice.fired = end <= state.fired_to
        state.n_fired += slice.fired
        _sliced_plan_next(state)
    return slice


# ---- windows that share slices: firing ---------------------------------------------------------------------------


cdef bint _sliced_fire(SlicedWindows* state, int64_t end) except -1 nogil:
    # Fires all keys of the window at the watermark in force. Returns false if results are full before.
    if not state.emitting:
        pending_flush(&state.core.pending, state.core.table)
        _merge_slices(&state.window, &state.store, &state.slices, _start_of(state, end), end)
        state.emitting = True
    if not emit_pane(&state.core, state.window.pane, &state.n_emitted, False):
        return False
    state.emitting = False
    state.fired_to = end
    _merge_leave(&state.window, &state.store, &state.slices, _next_start(state, end))
    return True


cdef int _sliced_retire_due(SlicedWindows* state) except -1 nogil:
    # Closes the slices whose windows are all over.
    cdef int64_t over = 0
    while over < state.n_fired and is_over(&state.core, _last_end(state, state.slices.panes[over].end)):
        over += 1
    if over:
        pending_flush(&state.core.pending, state.core.table)
        _merge_leave(&state.window, &state.store, &state.slices, state.slices.panes[over - 1].end)
        pane_list_close(&state.slices, &state.store, over)
        state.n_fired -= over
    return 0


cdef bint _sliced_fire_due(void* windows) except -1 nogil:
    # Fires windows in order of their end, and closes slices. Returns false if results are full before.
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef int64_t firing = _next_firing(state)
    state.core.due = True
    while firing != INT64_MAX and firing <= state.core.cursor.watermark:
        if not _sliced_fire(state, firing + 1):
            return False
        firing = _next_firing(state)
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    while state.n_fired < state.slices.n and state.slices.panes[state.n_fired].end <= state.fired_to:
        state.slices.panes[state.n_fired].fired = True
        state.n_fired += 1
    _sliced_retire_due(state)
    state.core.due = False
    _sliced_plan_next(state)
    return True


cdef bint _sliced_step(void* windows) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    if cursor_step(&state.core.cursor) >= state.quiet_until:
        return _sliced_fire_due(state)
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    return True


# ---- windows that share slices: rows -----------------------------------------------------------------------------


cdef int _fire_late(SlicedWindows* state, const KeyBatch* keys, uint32_t row, int64_t start, int64_t end) except -1 nogil:
    # Fires a window for one key after a late row, which the slices do not have yet.
    cdef uint32_t into, other
    cdef int64_t i, k
    cdef bint known = False
    if state.late == NULL:
        state.late = pane_open(&state.store, start, end)
    state.late.start = start
    state.late.end = end
    into = <uint32_t> pane_entry_of(&state.store, state.late, keys, row)
    pending_flush(&state.core.pending, state.core.table)
    i = pane_list_behind(&state.slices, start)
    while i < state.slices.n and state.slices.panes[i].end <= end:
        k = pane_find(&state.store, state.slices.panes[i], keys, row)
        if k >= 0:
            other = pane_entry(state.slices.panes[i], k)
            accumulators_add(state.core.table, &into, &other, 1)
            known = True
        i += 1
    if known and state.core.retracts:
        emit_late_key(&state.core, state.late, 0, RowKind.UPDATE_BEFORE)
    pending_add(&state.core.pending, state.core.table, into, row)
    emit_late_key(&state.core, state.late, 0, RowKind.UPDATE_AFTER if known else RowKind.INSERT)
    pane_empty(&state.store, state.late)
    return 0


cdef int _sliced_add(SlicedWindows* state, const InputRows* input, uint32_t row, int64_t end) except -1 nogil:
    cdef Pane* slice = _slice(state, end)
    cdef int64_t n_known = slice.n_keys
    cdef int64_t k = pane_key(&state.store, slice, input.keys, row), entry
    core_take_in(&state.core, input, pane_entry(slice, k), row)
    if state.window.start < end <= state.window.end:  # the slice has fired, so the row is not a partial result
        entry = _merge_gathered_entry(&state.window, &state.store, input.keys, row, k == n_known)
        pending_add(&state.core.pending, state.core.table, <uint32_t> entry, row)
    return 0


cdef bint _sliced_take_row(void* windows, const InputRows* input, uint32_t row) except -1 nogil:
    # WindowOperator.processElement for one row. Returns false if results are full before it.
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef WindowVisit visit = first_window(&state.windows, input.timestamps[row])
    cdef int64_t end = slice_end(&state.windows, input.timestamps[row])
    if not core_reach_row(&state.core, &SLICED_VERBS, input, row):
        return False
    core_check_unfired(&state.core, input, row, end)
    if is_over(&state.core, _last_end(state, end)):
        core_add_late(&state.core, row)
        return True
    state.core.windowed += 1
    while is_window(&visit):
        if visit.end <= state.fired_to and not is_over(&state.core, visit.end):
            _fire_late(state, input.keys, row, visit.start, visit.end)
        visit_next(&visit)
    _sliced_add(state, input, row, end)
    return True


cdef inline Pane* _slice_of(const SlicedWindows* state, int64_t timestamp) noexcept nogil:
    # Returns the live slice of a timestamp, or NULL. Rows out of order alternate between slices all the time: if no slice after
    # it is missing, its place follows from the distance to the last one, without a division.
    cdef int64_t n = state.slices.n
    cdef double behind
    cdef Pane* slice
    if n == 0:
        return NULL
    # Unsigned: the times may be further apart than an int64 reaches. The place is wrong then, which the slice's bounds reveal.
    behind = <double> <int64_t> (<uint64_t> state.slices.panes[n - 1].end - 1 - <uint64_t> timestamp) * state.slides_per_ms
    if 0 <= behind < n:
        slice = state.slices.panes[n - 1 - <int64_t> behind]
        if slice.start <= timestamp < slice.end:
            return slice
    return pane_list_find(&state.slices, slice_end(&state.windows, timestamp))


cdef int64_t _sliced_find_windows(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil:
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    cdef int64_t n = 0
    cdef Pane* slice
    cdef uint32_t row
    while first + n < input.n and n < BLOCK_PAIRS:
        row = input_row(input, first + n)
        if input.steps_before[row] > state.quiet_until:
            break
        slice = _slice_of(state, input.timestamps[row])
        if slice == NULL or slice.fired:
            break
        block.panes[n] = slice
        block.rows[n] = row
        pane_prefetch(slice, input.keys.hashes[row])
        n += 1
    block.n = n
    return first + n


cdef RowVerbs SLICED_ROW_VERBS = RowVerbs(find_windows=_sliced_find_windows, take_row=_sliced_take_row)


cdef int64_t _sliced_process(void* windows, const InputRows* input, int64_t first) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    if state.core.due and not _sliced_fire_due(state):
        return first
    return take_in_blocks(&state.core, &state.store, input, first, 1, &SLICED_ROW_VERBS)


# ---- windows that share slices: checkpoints ----------------------------------------------------------------------


cdef int _sliced_state(const void* windows, WindowRows* rows) except -1 nogil:
    # Appends the slices, from which the rest is derived again.
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    return append_live_panes(rows, state.core.bytes_keys, &state.slices)


cdef int64_t _sliced_restore(void* windows, const KeyBatch* keys, int64_t row, const LiveWindow* window) except -1 nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    cdef int64_t slide = state.windows.slide
    if window.flags > 1 or not has_window(window.start, window.end, slide, slide, state.windows.slice_offset):
        return NO_ENTRY
    return restored_pane_entry(&state.store, _slice(state, window.end), keys, row)


# ---- windows that share slices: the kernel -----------------------------------------------------------------------


cdef int _sliced_start(void* windows) except -1:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    require_shareable(state.core.table)
    state.store.bytes_keys = state.core.bytes_keys
    state.store.table = state.core.table
    state.fired_to = saturating_add(state.core.cursor.watermark, 1)
    _sliced_plan_next(state)
    return 0


cdef int64_t _sliced_live_windows(const void* windows) noexcept nogil:
    return (<const SlicedWindows*> windows).slices.n


cdef int64_t _sliced_memory(const void* windows) noexcept nogil:
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    cdef int64_t n_numbers = 2 * state.window.n_slices_capacity + state.window.gathered_capacity
    return panes_memory(&state.store, &state.slices) + (n_numbers + state.window.scratch.capacity) * <int64_t> sizeof(uint32_t)


cdef void _sliced_free(void* windows) noexcept nogil:
    cdef SlicedWindows* state = <SlicedWindows*> windows
    _merge_free(&state.window, &state.store)
    if state.late != NULL:
        pane_free(&state.store, state.late)
    panes_free(&state.slices, &state.store)
    free(state)


cdef int _sliced_check(const void* windows) except -1:
    cdef const SlicedWindows* state = <const SlicedWindows*> windows
    cdef const Pane* slice
    cdef PaneTotals totals = PaneTotals(0, 0)
    cdef int64_t i
    pane_list_check(&state.store, &state.slices, &totals)
    for i in range(state.slices.n):
        slice = state.slices.panes[i]
        assert slice.end == slice.start + state.windows.slide
        assert slice.fired == (i < state.n_fired)
        if not state.core.due:
            assert slice.fired == (slice.end - 1 <= state.core.cursor.watermark), "fired exactly below the watermark"
            assert not is_over(&state.core, _last_end(state, slice.end)), "a slice outlived its windows"
    _merge_check(&state.window, &state.store, &state.slices, &totals)
    if state.late != NULL:
        assert state.late.n_keys == 0
        pane_check(&state.store, state.late, &totals)
    pane_store_check(&state.store, totals)
    assert state.core.due or not state.emitting, "a window fired in part"
    return 0


cdef WindowVerbs SLICED_VERBS = WindowVerbs(
    start=_sliced_start, process=_sliced_process, fire_due=_sliced_fire_due, step=_sliced_step, live_windows=_sliced_live_windows,
    memory=_sliced_memory, check=_sliced_check, windows=_sliced_state, restore=_sliced_restore, free=_sliced_free,
)


def sliced_windows(*, int64_t size, int64_t slide, int64_t offset, int64_t allowed_lateness, bint cumulative=False):
    """Make the kernel of sliding or cumulate windows that share slices of time and fire at their end.

    Parameters
    ----------
    size, slide, offset, allowed_lateness : int
        Milliseconds; `slide` is the step of cumulate windows. The size is a multiple of it.
    cumulative : bool
        Whether windows begin once per `size` and grow by `slide`.

    Returns
    -------
    WindowKernel
        A kernel for shareable accumulators.

    Raises
    ------
    ConfigurationError
        If a size is not positive, the lateness is negative, or the size is not a multiple of the slide.
    """
    cdef WindowKernel kernel
    cdef SlicedWindows* state
    cdef AlignedWindows windows = checked_windows(size, slide, offset, cumulative, None, allowed_lateness, INT64_MAX)
    if size % slide:
        raise ConfigurationError(f"windows of {size} ms are not made of whole slices of {slide} ms")
    kernel = aligned_kernel("sliced_windows", sizeof(SlicedWindows), &SLICED_VERBS, &windows, None, allowed_lateness)
    state = <SlicedWindows*> kernel.state
    state.windows = windows
    state.slides_per_ms = 1.0 / <double> slide
    state.quiet_until = INT64_MAX
    state.window.start = state.window.end = INT64_MIN
    kernel.takes_partials = True
    return kernel


# ---- rows before the first firing --------------------------------------------------------------------------------


cdef int64_t _split_rows(
    int64_t lowest,
    int64_t highest,
    const InputRows* input,
    StepCursor* timeline,
    AlignedWindows* panes,
    uint32_t* before,
    uint32_t* others,
    int64_t* n_before,
) noexcept nogil:
    # Returns -1, or the first row with more steps before it than the timeline has.
    cdef int64_t i, timestamp, low = 0, high = 0, n = 0, steps = 0, watermark = INT64_MIN
    cdef WindowVisit pane
    cdef uint32_t row
    cdef bint is_before
    for i in range(input.n):
        row = input_row(input, i)
        timestamp = input.timestamps[row]
        if input.steps_before[row] != steps:
            steps = input.steps_before[row]
            if <uint64_t> steps > <uint64_t> timeline.view.n:
                return row
            watermark = steps_watermark_after(timeline, steps)
        if timestamp < low or timestamp >= high:
            if timestamp < lowest or timestamp > highest:
                others[i - n] = row
                continue
            pane = first_window(panes, timestamp)
            low, high = pane.start, pane.end
        is_before = high - 1 > watermark
        before[n] = row
        others[i - n] = row
        n += is_before
    n_before[0] = n
    return -1


def rows_before_firing(
    WindowKernel kernel not None,
    rows,
    const int64_t[::1] timestamps not None,
    const int64_t[::1] steps_before not None,
    PackedSteps timeline not None,
    *,
    int64_t width=0,
    int64_t offset=0,
    WindowCalendar calendar=None,
):
    """Divide rows into those that come before their pane fires for the first time, and all others.

    Parameters
    ----------
    kernel : WindowKernel
        Kernel of the windows. Rows outside its range of timestamps are among the others.
    rows : numpy.ndarray of uint32, shape (n,), or None
        The rows to divide, or None for all.
    timestamps : numpy.ndarray of int64, shape (n_rows,)
        Milliseconds since the epoch.
    steps_before : numpy.ndarray of int64, shape (n_rows,)
        Number of steps of the timeline before each row.
    timeline : PackedSteps
        Its steps.
    width, offset : int
        Width and offset of the panes in ms: tumbling windows, or the slides of windows that share slices.
    calendar : WindowCalendar, optional
        The panes, instead of width and offset.

    Returns
    -------
    (numpy.ndarray of uint32, numpy.ndarray of uint32)
        The rows before the firing and the others, both in the order of `rows`.

    Examples
    --------
    >>> kernel = time_windows(size=10, slide=10, offset=0, allowed_lateness=0)
    >>> from flinkcore._native.packed_steps import StepPacker
    >>> packer = StepPacker()
    >>> packer.add(np.array([7]), np.array([9]))
    >>> steps = np.array([0, 1, 1])
    >>> rows_before_firing(kernel, None, np.array([3, 12, 4]), steps, packer.finish(), width=10, offset=0)
    (array([0, 1], dtype=uint32), array([2], dtype=uint32))
    """
    cdef const uint32_t[::1] chosen
    cdef InputRows input
    cdef AlignedWindows panes = checked_windows(width, width, offset, False, calendar, 0, 1)
    cdef uint32_t[::1] before, others
    cdef StepCursor cursor
    cdef int64_t wrong = -1, n_before = 0, lowest = kernel.lowest_timestamp, highest = kernel.highest_timestamp
    memset(&input, 0, sizeof(InputRows))
    input.n = timestamps.shape[0]
    if steps_before.shape[0] != input.n:
        raise ValueError("rows need a timestamp and a number of steps each")
    if rows is not None:
        chosen = rows
        if chosen.shape[0] and np.max(rows) >= input.n:
            raise IndexError("a row index is beyond the rows")
        input.n = chosen.shape[0]
        input.rows = &chosen[0] if input.n else NULL
    before = np.empty(input.n + 1, np.uint32)
    others = np.empty(input.n + 1, np.uint32)
    if input.n:
        input.timestamps = &timestamps[0]
        input.steps_before = &steps_before[0]
        memset(&cursor, 0, sizeof(StepCursor))
        try:
            steps_open(&cursor, &timeline.view, WATERMARKS)
            with nogil:
                wrong = _split_rows(
                    lowest, highest, &input, &cursor, &panes, &before[0], &others[0], &n_before
                )
        finally:
            steps_close(&cursor)
    if wrong >= 0:
        raise ValueError(f"row {wrong} has {steps_before[wrong]} of {timeline.view.n} steps before it")
    return before.base[:n_before], others.base[: input.n - n_before]


# ---- keys and panes of rows --------------------------------------------------------------------------------------


cdef int64_t _count_different(
    const InputRows* input, AlignedWindows* panes, int64_t most, uint64_t* seen, uint64_t mask
) noexcept nogil:
    # `seen` has zeros for more than `most` hashes.
    cdef int64_t i, timestamp, low = 0, high = 0, n = 0
    cdef uint64_t code, at
    cdef WindowVisit pane
    cdef uint32_t row
    for i in range(input.n):
        row = input_row(input, i)
        timestamp = input.timestamps[row]
        if timestamp < low or timestamp >= high:
            pane = first_window(panes, timestamp)
            low, high = pane.start, pane.end
        code = mix_int64(input.keys.hashes[row] ^ <uint64_t> high)
        code += code == 0  # 0 is a free place
        at = code & mask
        while seen[at] and seen[at] != code:
            at = (at + 1) & mask
        if seen[at] == 0:
            seen[at] = code
            n += 1
            if n > most:
                break
    return n


def different_panes(
    KeyEncoder keys not None,
    rows,
    const int64_t[::1] timestamps not None,
    *,
    int64_t most,
    int64_t width=0,
    int64_t offset=0,
    WindowCalendar calendar=None,
):
    """Return how many different pairs of a key and a pane rows have, or `most` + 1 if there are more.

    Pairs are told apart by hashes of 64 bits. O(rows) time, and memory for `most` hashes.

    Parameters
    ----------
    keys : KeyEncoder
        Encoder that has encoded the keys of the batch.
    rows : numpy.ndarray of uint32, shape (n,)
        The rows to count, whose timestamps windows can have: see `rows_before_firing`.
    timestamps : numpy.ndarray of int64, shape (n_rows of the batch,)
        Milliseconds since the epoch.
    most : int
        The count ends beyond so many.
    width, offset, calendar
        The panes, as of `rows_before_firing`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"key": [7, 7, 8, 7]})
    >>> keys = KeyEncoder(batch.schema, ["key"])
    >>> keys.encode_batch(batch)
    >>> rows, timestamps = np.arange(4, dtype=np.uint32), np.array([3, 9, 3, 12])
    >>> different_panes(keys, rows, timestamps, most=10, width=10)
    3
    >>> different_panes(keys, rows, timestamps, most=1, width=10)
    2
    """
    cdef Call of_keys = begin_reading(&keys.guard, keys)
    cdef const uint32_t[::1] chosen = rows
    cdef InputRows input
    cdef AlignedWindows panes = checked_windows(width, width, offset, False, calendar, 0, 1)
    cdef int64_t n, n_places = 64
    cdef uint64_t* seen
    memset(&input, 0, sizeof(InputRows))
    input.n = chosen.shape[0]
    if input.n == 0:
        return 0
    if keys.batch.length != timestamps.shape[0] or np.max(rows) >= keys.batch.length:
        raise IndexError("rows need a timestamp and a key each")
    most = min(max(most, 0), input.n)
    input.rows = &chosen[0]
    input.keys = &keys.batch
    input.timestamps = &timestamps[0]
    while n_places < 2 * (most + 1):
        n_places *= 2
    seen = <uint64_t*> calloc(n_places, sizeof(uint64_t))
    if seen == NULL:
        raise MemoryError(f"{n_places * sizeof(uint64_t)} bytes to count keys and panes")
    with nogil:
        n = _count_different(&input, &panes, most, seen, n_places - 1)
    free(seen)
    return n

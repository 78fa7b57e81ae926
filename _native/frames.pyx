"""Aggregates over the frame of each row: the rows of its key up to it, all of them, or the last ones by number or by time.

Each row of a batch takes an entry of the accumulators; all rows together, as in windows. What then happens to the entries is a list
of steps, which every aggregate walks through in a loop of its own:

    enter   a row's entry joins the running entry of its key
    leave   the entry of the oldest row leaves it again
    result  a result entry is made of the running one

Counts, sums and means add and subtract. Where values cannot be subtracted, the rows of a frame are two stacks, so that a row costs the
same whatever the frame is:

    oldest  [row 1 + 2 + 3 + 4] [2 + 3 + 4] [3 + 4] [4]  |  row 5, row 6, row 7  newest
             `front`: each entry has all front rows from it on      the running entry has the rows of the back

A result is the first entry of the front plus the running entry. When the front is used up, the back becomes the front.
"""

from collections import namedtuple

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, int8_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.aggregates cimport (
    Accumulators,
    AccumulatorTable,
    Aggregate,
    Function,
    accumulators_clear,
    accumulators_clear_range,
    accumulators_emit,
    accumulators_emit_range,
    accumulators_reserve,
    accumulators_update,
    aggregate_clear,
    aggregate_copy,
)
from flinkcore._native.arrow cimport RecordBatch
from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.column_values cimport (
    ValueState,
    decimal_sum_add,
    decimal_sum_subtract,
    double_of_word,
    owned_bytes_view,
    word_of_double,
)
from flinkcore._native.counted_values cimport (
    counted_bytes_add,
    counted_bytes_remove,
    counted_word_add,
    counted_word_remove,
)
from flinkcore._native.memory cimport allocated_bytes, grow
from flinkcore._native.running_aggregates cimport (
    RUNNING_ROWS,
    SPARE,
    aggregate_absorb,
    running_clear,
    running_update,
)


cdef enum:
    RESULTS = RUNNING_ROWS # entries of results, the first ones of the table
    FIRST_ENTRY = SPARE + 1
    STEPS = 1 << 13        # that run together
    LEAST_ROWS = 4         # room of a frame

cdef uint32_t NO_ENTRY = 0xFFFFFFFF
cdef const char* WHAT = b"the frames of keys"


FrameRows = namedtuple("FrameRows", ("key_ids", "parts", "times", "entries"))


# Parts of a key's state in a snapshot.
cdef enum FramePart:
    RUNNING
    FRONT
    BACK


cdef enum StepKind:
    ENTER     # into: running entry; other: the row's
    LEAVE     # likewise
    SUFFIX    # into: entry of a row; other: that of the next row, which has all rows after it already
    RESTART   # into: running entry, whose rows are in the front from now on
    RESULT    # into: result entry; other: running entry; top: first entry of the front, or NO_ENTRY
    GATHER    # into: result entry; other: the row's


cdef struct Step:
    StepKind kind
    uint32_t into
    uint32_t other
    uint32_t top


cdef struct Frame:
    # The rows of a key, oldest first: entries[(head + i) & mask].
    uint32_t running    # NO_ENTRY: the key has no state
    uint32_t head
    uint32_t n
    uint32_t n_front    # so many of them are the front
    uint32_t capacity   # a power of two, or 0
    int64_t n_rows      # that have come and not been retracted
    uint32_t place      # one after the key's last one in a walk over rows, or 0
    uint32_t* entries
    int64_t* times      # NULL if the frame is not one of time


cdef struct FrameState:
    AccumulatorTable* table
    int64_t size          # of a frame of rows; -1: none
    int64_t range_ms      # of a frame of time; -1: none
    bint peers            # rows of one key and time have one result
    bint keeps_rows       # the frame is bounded
    bint emits            # rows have results
    bint has_stacks       # an aggregate cannot subtract
    bint has_lists        # an aggregate is the list of the frame's values
    Frame* frames         # by key id
    int64_t n_keys
    int64_t keys_capacity
    int64_t frame_bytes
    uint32_t* free_entries
    int64_t n_free
    int64_t free_capacity
    uint32_t* leaving     # entries that are free once the steps have run
    int64_t n_leaving
    int64_t leaving_capacity
    Step* steps
    int64_t n_steps
    int64_t n_results     # of the steps


# ---- steps, aggregate by aggregate -------------------------------------------------------------------------------


cdef inline bint _adds(const Aggregate* aggregate) noexcept nogil:
    # Returns true if values can be subtracted again.
    return aggregate.function in (Function.COUNT, Function.SUM, Function.MEAN)


cdef void _add_words(Aggregate* aggregate, const Step* steps, int64_t n) noexcept nogil:
    # Counts and sums of whole numbers.
    cdef uint64_t* words = aggregate.words
    cdef int64_t* counts = aggregate.counts
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.ENTER:
            words[step.into] += words[step.other]
            if counts != NULL:
                counts[step.into] += counts[step.other]
        elif step.kind == StepKind.LEAVE:
            words[step.into] -= words[step.other]
            if counts != NULL:
                counts[step.into] -= counts[step.other]
        elif step.kind == StepKind.RESULT:
            words[step.into] = words[step.other]
            if counts != NULL:
                counts[step.into] = counts[step.other]


cdef void _add_doubles(Aggregate* aggregate, const Step* steps, int64_t n) noexcept nogil:
    # As Flink's SumAggFunction: what has left is subtracted. A row without a value changes nothing.
    cdef uint64_t* words = aggregate.words
    cdef int64_t* counts = aggregate.counts
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.ENTER:
            if counts[step.other]:
                words[step.into] = word_of_double(double_of_word(words[step.into]) + double_of_word(words[step.other]))
                counts[step.into] += counts[step.other]
        elif step.kind == StepKind.LEAVE:
            if counts[step.other]:
                words[step.into] = word_of_double(double_of_word(words[step.into]) - double_of_word(words[step.other]))
                counts[step.into] -= counts[step.other]
        elif step.kind == StepKind.RESULT:
            words[step.into] = words[step.other]
            counts[step.into] = counts[step.other]


cdef void _add_decimals(Aggregate* aggregate, const Step* steps, int64_t n) noexcept nogil:
    cdef int64_t* counts = aggregate.counts
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.ENTER:
            decimal_sum_add(&aggregate.decimals[step.into], &aggregate.decimals[step.other])
            counts[step.into] += counts[step.other]
        elif step.kind == StepKind.LEAVE:
            decimal_sum_subtract(&aggregate.decimals[step.into], &aggregate.decimals[step.other])
            counts[step.into] -= counts[step.other]
        elif step.kind == StepKind.RESULT:
            aggregate.decimals[step.into] = aggregate.decimals[step.other]
            counts[step.into] = counts[step.other]


cdef int _count_values(Aggregate* aggregate, const Step* steps, int64_t n) except -1 nogil:
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.RESULT:
            aggregate.words[step.into] = aggregate.words[step.other]
        elif step.kind == StepKind.ENTER or step.kind == StepKind.LEAVE:
            if aggregate.states[step.other] != ValueState.SOME_VALUE:
                continue
            if aggregate.keys == NULL:
                if step.kind == StepKind.ENTER:
                    counted_bytes_add(&aggregate.counted[step.into], owned_bytes_view(&aggregate.strings[step.other]), 1)
                else:
                    counted_bytes_remove(&aggregate.counted[step.into], owned_bytes_view(&aggregate.strings[step.other]))
            elif step.kind == StepKind.ENTER:
                counted_word_add(&aggregate.counted[step.into], aggregate.keys[step.other], 1)
            else:
                counted_word_remove(&aggregate.counted[step.into], aggregate.keys[step.other])
            aggregate.words[step.into] = aggregate.counted[step.into].n
    return 0


cdef int _stack(Aggregate* aggregate, const Step* steps, int64_t n) except -1 nogil:
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.ENTER or step.kind == StepKind.SUFFIX:
            aggregate_absorb(aggregate, step.into, step.other)
        elif step.kind == StepKind.RESULT:
            if step.top == NO_ENTRY:
                aggregate_copy(aggregate, step.into, step.other)
            else:
                aggregate_copy(aggregate, step.into, step.top)
                aggregate_absorb(aggregate, step.into, step.other)
        elif step.kind == StepKind.RESTART:
            aggregate_clear(aggregate, step.into, 1)
    return 0


cdef void _stack_words(Aggregate* aggregate, const Step* steps, int64_t n) noexcept nogil:
    # Least and greatest words.
    cdef int64_t* words = <int64_t*> aggregate.words
    cdef uint8_t* states = aggregate.states
    cdef const Step* step
    cdef int64_t i
    for i in range(n):
        step = &steps[i]
        if step.kind == StepKind.RESULT:
            words[step.into] = words[step.other]
            states[step.into] = states[step.other]
            if step.top != NO_ENTRY:
                words[step.into] = min(words[step.into], words[step.top])
                states[step.into] |= states[step.top]
        elif step.kind == StepKind.ENTER or step.kind == StepKind.SUFFIX:
            words[step.into] = min(words[step.into], words[step.other])
            states[step.into] |= states[step.other]
        elif step.kind == StepKind.RESTART:
            aggregate_clear(aggregate, step.into, 1)


cdef int _list(Aggregate* aggregate, const Step* steps, int64_t n) except -1 nogil:
    # The values of a bounded frame, which are as many as a result has: they are copied from its rows.
    cdef int64_t i
    for i in range(n):
        if steps[i].kind == StepKind.GATHER:
            aggregate_absorb(aggregate, steps[i].into, steps[i].other)
    return 0


cdef int _run_steps(FrameState* state) except -1 nogil:
    # Runs all steps, appends their results, and frees the entries of rows that have left.
    cdef Aggregate* aggregate
    cdef const Step* steps = state.steps
    cdef int64_t i, n = state.n_steps
    for i in range(state.table.n_aggregates):
        aggregate = &state.table.aggregates[i]
        if aggregate.function == Function.COUNT:
            _add_words(aggregate, steps, n)
        elif aggregate.decimals != NULL and _adds(aggregate):
            _add_decimals(aggregate, steps, n)
        elif aggregate.function == Function.SUM and aggregate.whole_numbers:
            _add_words(aggregate, steps, n)
        elif _adds(aggregate):
            _add_doubles(aggregate, steps, n)
        elif aggregate.function == Function.COUNT_DISTINCT:
            _count_values(aggregate, steps, n)
        elif aggregate.lists != NULL and state.keeps_rows:
            _list(aggregate, steps, n)
        elif aggregate.function == Function.LEAST and aggregate.words != NULL:
            _stack_words(aggregate, steps, n)
        else:
            _stack(aggregate, steps, n)
    state.n_steps = 0
    if state.n_results:
        accumulators_emit_range(state.table, 0, <uint32_t> state.n_results)
        accumulators_clear_range(state.table, 0, <uint32_t> state.n_results)
        state.n_results = 0
    return _free_left(state)


cdef int _free_left(FrameState* state) except -1 nogil:
    if state.n_leaving:
        accumulators_clear(state.table, state.leaving, state.n_leaving)
        if state.n_free + state.n_leaving > state.free_capacity:
            state.free_entries = <uint32_t*> grow(
                state.free_entries, 2 * (state.n_free + state.n_leaving) * <int64_t> sizeof(uint32_t), WHAT
            )
            state.free_capacity = 2 * (state.n_free + state.n_leaving)
        memcpy(state.free_entries + state.n_free, state.leaving, state.n_leaving * sizeof(uint32_t))
        state.n_free += state.n_leaving
        state.n_leaving = 0
    return 0


cdef inline int _add_step(
    FrameState* state, StepKind kind, uint32_t into, uint32_t other, uint32_t top
) except -1 nogil:
    cdef Step* step
    if state.n_steps == STEPS:
        _run_steps(state)
    step = &state.steps[state.n_steps]
    step.kind = kind
    step.into = into
    step.other = other
    step.top = top
    state.n_steps += 1
    return 0


# ---- the rows of a key -------------------------------------------------------------------------------------------


cdef int64_t _new_entry(FrameState* state) except -1 nogil:
    cdef uint32_t entry
    if state.n_free:
        state.n_free -= 1
        return state.free_entries[state.n_free]
    entry = <uint32_t> state.table.n_entries
    if entry == NO_ENTRY:
        with gil:
            raise MemoryError("frames hold at most 4,294,967,295 rows; use more partitions")
    accumulators_reserve(state.table, entry + 1)
    return entry


cdef int _free_later(FrameState* state, uint32_t entry) except -1 nogil:
    cdef int64_t capacity
    if state.n_leaving == state.leaving_capacity:
        capacity = 2 * state.leaving_capacity + 1024
        state.leaving = <uint32_t*> grow(state.leaving, capacity * <int64_t> sizeof(uint32_t), WHAT)
        state.leaving_capacity = capacity
    state.leaving[state.n_leaving] = entry
    state.n_leaving += 1
    return 0


cdef inline uint32_t _at(const Frame* frame, uint32_t i) noexcept nogil:
    return frame.entries[(frame.head + i) & (frame.capacity - 1)]


cdef int _grow_frame(FrameState* state, Frame* frame) except -1 nogil:
    cdef uint32_t capacity = max(<uint32_t> LEAST_ROWS, 2 * frame.capacity), i
    cdef int64_t size = <int64_t> capacity * (12 if state.range_ms >= 0 else 4)
    cdef int64_t* times = NULL
    cdef uint32_t* entries
    # One block: times first, as they want eight bytes each.
    cdef uint8_t* block = <uint8_t*> grow(NULL, size, WHAT)
    if state.range_ms >= 0:
        times = <int64_t*> block
        block += <int64_t> capacity * 8
    entries = <uint32_t*> block
    for i in range(frame.n):
        entries[i] = _at(frame, i)
        if times != NULL:
            times[i] = frame.times[(frame.head + i) & (frame.capacity - 1)]
    _free_block(state, frame)
    state.frame_bytes += allocated_bytes(size)
    frame.entries = entries
    frame.times = times
    frame.head = 0
    frame.capacity = capacity
    return 0


cdef void _free_block(FrameState* state, Frame* frame) noexcept nogil:
    if frame.capacity:
        state.frame_bytes -= allocated_bytes(<int64_t> frame.capacity * (12 if frame.times != NULL else 4))
        free(<void*> frame.times if frame.times != NULL else <void*> frame.entries)
    frame.entries = NULL
    frame.times = NULL
    frame.capacity = 0


cdef int _push(FrameState* state, Frame* frame, uint32_t entry, int64_t time) except -1 nogil:
    cdef uint32_t at
    if frame.n == frame.capacity:
        _grow_frame(state, frame)
    at = (frame.head + frame.n) & (frame.capacity - 1)
    frame.entries[at] = entry
    if frame.times != NULL:
        frame.times[at] = time
    frame.n += 1
    return 0


cdef int _turn(FrameState* state, Frame* frame) except -1 nogil:
    # The back becomes the front.
    cdef uint32_t i
    for i in range(frame.n - 1, 0, -1):
        _add_step(state, StepKind.SUFFIX, _at(frame, i - 1), _at(frame, i), NO_ENTRY)
    _add_step(state, StepKind.RESTART, frame.running, NO_ENTRY, NO_ENTRY)
    frame.n_front = frame.n
    return 0


cdef int _pop(FrameState* state, Frame* frame) except -1 nogil:
    # The oldest row leaves.
    cdef uint32_t entry = _at(frame, 0)
    if state.has_stacks and frame.n_front == 0:
        _turn(state, frame)
    _add_step(state, StepKind.LEAVE, frame.running, entry, NO_ENTRY)
    _free_later(state, entry)
    frame.head = (frame.head + 1) & (frame.capacity - 1)
    frame.n -= 1
    if state.has_stacks:
        frame.n_front -= 1
    return 0


cdef int _reach(FrameState* state, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity, i
    if n_keys <= state.n_keys:
        return 0
    if n_keys > state.keys_capacity:
        capacity = max(n_keys, state.keys_capacity + (state.keys_capacity >> 1))
        state.frames = <Frame*> grow(state.frames, capacity * <int64_t> sizeof(Frame), WHAT)
        state.keys_capacity = capacity
    memset(&state.frames[state.n_keys], 0, (n_keys - state.n_keys) * sizeof(Frame))
    for i in range(state.n_keys, n_keys):
        state.frames[i].running = NO_ENTRY
    state.n_keys = n_keys
    return 0


cdef inline int _open(FrameState* state, Frame* frame) except -1 nogil:
    if frame.running == NO_ENTRY:
        frame.running = <uint32_t> _new_entry(state)
    return 0


cdef int _clear_key(FrameState* state, uint32_t key) except -1 nogil:
    cdef Frame* frame
    cdef uint32_t i
    if key >= state.n_keys or state.frames[key].running == NO_ENTRY:
        return 0
    frame = &state.frames[key]
    for i in range(frame.n):
        _free_later(state, _at(frame, i))
    _free_later(state, frame.running)
    _free_block(state, frame)
    memset(frame, 0, sizeof(Frame))
    frame.running = NO_ENTRY
    return 0


cdef int _emit_frame(FrameState* state, Frame* frame) except -1 nogil:
    cdef uint32_t i
    if state.n_results == RESULTS:
        _run_steps(state)
    if state.n_steps == STEPS:
        _run_steps(state)
    _add_step(
        state, StepKind.RESULT, <uint32_t> state.n_results, frame.running, _at(frame, 0) if frame.n_front else NO_ENTRY
    )
    state.n_results += 1
    if state.has_lists:
        for i in range(frame.n):
            if state.n_steps == STEPS:
                # The result is not complete: nothing is emitted in between.
                _run_lists(state)
            _add_step(state, StepKind.GATHER, <uint32_t> (state.n_results - 1), _at(frame, i), NO_ENTRY)
    return 0


cdef int _run_lists(FrameState* state) except -1 nogil:
    # Runs all steps without their results.
    cdef int64_t results = state.n_results, leaving = state.n_leaving
    state.n_results = state.n_leaving = 0
    _run_steps(state)
    state.n_results = results
    state.n_leaving = leaving
    return 0


cdef struct Rows:
    # Rows of a batch, in the order in which they come.
    int64_t n
    const uint32_t* key_ids
    const int64_t* times       # NULL if the frame needs none
    const uint8_t* retracts    # NULL: none does
    const int64_t* cleared_before
    const uint32_t* cleared_keys
    int64_t n_cleared
    int64_t cleared            # so many of them have been
    int64_t n_results          # so far


cdef int _take_row(FrameState* state, const Rows* rows, int64_t i, uint32_t entry) except -1 nogil:
    cdef Frame* frame = &state.frames[rows.key_ids[i]]
    cdef int64_t time = rows.times[i] if rows.times != NULL else 0
    _open(state, frame)
    if state.size >= 0:
        if frame.n == state.size:
            _pop(state, frame)
    else:
        # Unsigned, since the difference of two times may pass 2**63; times of a key never go back.
        while frame.n and <uint64_t> time - <uint64_t> frame.times[frame.head] > <uint64_t> state.range_ms:
            _pop(state, frame)
    _add_step(state, StepKind.ENTER, frame.running, entry, NO_ENTRY)
    _push(state, frame, entry, time)
    frame.n_rows += 1
    return 0


cdef inline bint _has_peer(const FrameState* state, const Rows* rows, int64_t row) noexcept nogil:
    # Returns true if the next row is a peer of this one, whose result is that of both.
    return (
        state.peers
        and row + 1 < rows.n
        and rows.key_ids[row + 1] == rows.key_ids[row]
        and rows.times[row + 1] == rows.times[row]
    )


cdef int _slide(FrameState* state, Rows* rows, int64_t start, int64_t n, uint32_t* numbers) except -1 nogil:
    # Takes rows into frames of the last rows.
    cdef uint32_t[RUNNING_ROWS] entries
    cdef uint32_t[RUNNING_ROWS] places
    cdef int64_t i, row
    for i in range(n):
        entries[i] = <uint32_t> _new_entry(state)
        places[i] = <uint32_t> (start + i)
    accumulators_update(state.table, entries, places, n)
    for i in range(n):
        row = start + i
        _clear_keys(state, rows, row)
        _take_row(state, rows, row, entries[i])
        numbers[row] = <uint32_t> rows.n_results
        if _has_peer(state, rows, row):
            continue
        if state.emits:
            _emit_frame(state, &state.frames[rows.key_ids[row]])
        rows.n_results += 1
    # The entries of the rows must be taken in before those of the next ones come.
    return _run_steps(state)


cdef int _run(FrameState* state, Rows* rows, int64_t start, int64_t n, uint32_t* numbers) except -1 nogil:
    # Takes rows into frames of all rows.
    cdef uint32_t[RUNNING_ROWS] entries
    cdef uint32_t[RUNNING_ROWS] places
    cdef uint32_t[RUNNING_ROWS] emitted
    cdef int8_t[RUNNING_ROWS] signs
    cdef int64_t i, row, n_emitted = 0
    cdef Frame* frame
    for i in range(n):
        row = start + i
        _clear_keys(state, rows, row)
        frame = &state.frames[rows.key_ids[row]]
        _open(state, frame)
        entries[i] = frame.running
        places[i] = <uint32_t> row
        signs[i] = 1
        if rows.retracts != NULL and rows.retracts[row]:
            signs[i] = -1 if frame.n_rows else 0  # else there is nothing to withdraw: GroupAggFunction ignores it
        frame.n_rows += signs[i]
        numbers[row] = <uint32_t> (rows.n_results + n_emitted)
        if _has_peer(state, rows, row):
            continue
        emitted[n_emitted] = <uint32_t> i
        n_emitted += 1
        if frame.n_rows == 0:
            _clear_key(state, rows.key_ids[row])
    if state.emits or rows.retracts != NULL:
        running_update(state.table, entries, places, signs, n)
        if state.emits:
            accumulators_emit(state.table, emitted, n_emitted)
        running_clear(state.table, n)
    else:
        accumulators_update(state.table, entries, places, n)
    rows.n_results += n_emitted
    return _free_left(state)


cdef int _clear_keys(FrameState* state, Rows* rows, int64_t row) except -1 nogil:
    # Clears the keys that are to be cleared before a row.
    while rows.cleared < rows.n_cleared and rows.cleared_before[rows.cleared] <= row:
        _clear_key(state, rows.cleared_keys[rows.cleared])
        rows.cleared += 1
    return 0


cdef int _process(FrameState* state, Rows* rows, uint32_t* numbers) except -1 nogil:
    # Writes for each row the number of its result, which is one of those of this call.
    cdef int64_t start = 0, n
    while start < rows.n:
        n = min(rows.n - start, <int64_t> RUNNING_ROWS)
        if state.keeps_rows:
            _slide(state, rows, start, n, numbers)
        else:
            _run(state, rows, start, n, numbers)
        start += n
    _clear_keys(state, rows, rows.n)
    return _run_steps(state)


# ---- the frames for Python ---------------------------------------------------------------------------------------


@cython.final
cdef class Frames:
    """Aggregates over the frame of each row of a key.

    Follows the retraction of Flink's bounded OVER functions: what leaves a frame is subtracted from counts, sums and means, of
    floats, too. Other aggregates merge the rows of two stacks; the cost of a row does not depend on the frame.

    Parameters
    ----------
    accumulators : Accumulators
        The aggregates, made for these frames with `slides=True`, or `runs=True` if they are all rows.
    rows : int or None
        Rows of a frame, its own row included, at least 1.
    range_ms : int or None
        So many ms before a row's time the frame begins, at least 0. With neither, a frame is all rows up to the row.
    peers : bool
        Whether rows of one key and time that follow each other have one result, that of the last of them.

    Attributes
    ----------
    can_retract : bool
        True if rows can be taken back: of frames that are all rows counts, sums and means; and counts of distinct values, least and
        greatest ones if the accumulators are made with `retracts=True`.

    Raises
    ------
    ConfigurationError
        If a frame is empty, or both by rows and by time.
    ValueError
        If the accumulators have been used.
    """

    cdef CallGuard guard
    cdef Accumulators _accumulators
    cdef FrameState state

    def __cinit__(self, Accumulators accumulators not None, *, rows=None, range_ms=None, bint peers=False):
        cdef int64_t i
        cdef const Aggregate* aggregate
        cdef FrameState* state = &self.state
        slides = rows is not None or range_ms is not None
        if accumulators.slides != slides or accumulators.runs == slides or accumulators.in_use or accumulators.table.n_entries:
            kind = "slides" if slides else "runs"
            raise ValueError(f"these frames need accumulators of their own, made with {kind}=True, which hold nothing yet")
        if rows is not None and range_ms is not None:
            raise ConfigurationError("a frame goes back a number of rows or a time, not both")
        if rows is not None and not 1 <= rows < NO_ENTRY:
            raise ConfigurationError(f"a frame of {rows} rows: from 1, the row alone, to {NO_ENTRY - 1} are possible")
        if range_ms is not None and not 0 <= range_ms <= INT64_MAX:
            raise ConfigurationError(f"a frame that goes back {range_ms} ms: the time must not be negative")
        self._accumulators = accumulators
        state.table = accumulators.table
        state.size = -1 if rows is None else rows
        state.range_ms = -1 if range_ms is None else range_ms
        state.keeps_rows = rows is not None or range_ms is not None
        state.peers = peers
        for i in range(state.table.n_aggregates):
            aggregate = &state.table.aggregates[i]
            if aggregate.function == Function.COLLECT and state.keeps_rows:
                state.has_lists = True
            elif not _adds(aggregate) and aggregate.function != Function.COUNT_DISTINCT:
                state.has_stacks = True
        state.has_stacks = state.has_stacks and state.keeps_rows
        state.steps = <Step*> grow(NULL, STEPS * <int64_t> sizeof(Step), WHAT)
        accumulators_reserve(state.table, FIRST_ENTRY)
        accumulators.in_use = True

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.state.n_keys):
            _free_block(&self.state, &self.state.frames[i])
        free(self.state.frames)
        free(self.state.free_entries)
        free(self.state.leaving)
        free(self.state.steps)

    @property
    def can_retract(self):
        cdef int64_t i
        for i in range(self.state.table.n_aggregates):
            if not _adds(&self.state.table.aggregates[i]) and self.state.table.aggregates[i].counted == NULL:
                return False
        return not self.state.keeps_rows

    def process(
        self, batch, const uint32_t[::1] key_ids not None, const int64_t[::1] times=None, *,
        const uint8_t[::1] retracts=None, const int64_t[::1] cleared_before=None, const uint32_t[::1] cleared_keys=None,
        bint emits=True,
    ):
        """Take in rows in their order, and append a result for each to those of the accumulators; peers share one.

        Parameters
        ----------
        batch : RecordBatch or object with `__arrow_c_array__`
            The rows, with the columns that the aggregates read.
        key_ids : numpy.ndarray of uint32, shape (n,)
            Dense ids of their keys.
        times : numpy.ndarray of int64, shape (n,), optional
            Their times in ms, which never go back within a key; needed by frames of time and for peers.
        retracts : numpy.ndarray of uint8, shape (n,), optional
            1 for a row that takes one of its key back, only if `can_retract`. The state of a key without rows is dropped.
        cleared_before, cleared_keys : numpy.ndarray of int64 and uint32, shape (m,), optional
            Keys whose state is dropped, each before the row of this number, ascending; n: after all of them.
        emits : bool
            Whether results are appended.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)
            Number of each row's result among those that this call appends.

        Raises
        ------
        SchemaError
            If a column is missing or differs from the schema's.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef RecordBatch native = batch if isinstance(batch, RecordBatch) else RecordBatch(batch, any_type=True)
        cdef Rows rows
        cdef int64_t n = key_ids.shape[0]
        cdef uint32_t[::1] numbers = np.empty(n, np.uint32)
        memset(&rows, 0, sizeof(Rows))
        needs_times = self.state.range_ms >= 0 or self.state.peers
        if native.num_rows != n or (times is not None and times.shape[0] != n) or (needs_times and times is None):
            raise ValueError("key ids and times must have one value per row of the batch")
        if retracts is not None and (retracts.shape[0] != n or not self.can_retract):
            raise ValueError("these aggregates cannot take rows back, or there is not one flag per row of the batch")
        if (0 if cleared_keys is None else cleared_keys.shape[0]) != (0 if cleared_before is None else cleared_before.shape[0]):
            raise ValueError("each cleared key needs the row before which it is")
        self._accumulators.bind(native)
        self.state.emits = emits
        rows.n = n
        if n:
            rows.key_ids = &key_ids[0]
            rows.times = &times[0] if times is not None else NULL
            rows.retracts = &retracts[0] if retracts is not None else NULL
            _reach(&self.state, <int64_t> np.max(key_ids) + 1)
        if cleared_keys is not None and cleared_keys.shape[0]:
            rows.n_cleared = cleared_keys.shape[0]
            rows.cleared_before = &cleared_before[0]
            rows.cleared_keys = &cleared_keys[0]
        with nogil:
            _process(&self.state, &rows, &numbers[0] if n else NULL)
        return numbers.base

    def clear(self, const uint32_t[::1] key_ids not None):
        """Drop the state of keys."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef int64_t i
        for i in range(key_ids.shape[0]):
            _clear_key(&self.state, key_ids[i])
        _run_steps(&self.state)

    def emit(self, const uint32_t[::1] key_ids not None):
        """Append the present results of keys, of frames that are all rows; a key without rows has that of none."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_accumulators = begin_call(&self._accumulators.guard, self._accumulators)
        cdef int64_t i, n = key_ids.shape[0]
        cdef uint32_t[::1] entries = np.empty(n, np.uint32)
        for i in range(n):
            entries[i] = SPARE  # which is empty
            if key_ids[i] < self.state.n_keys and self.state.frames[key_ids[i]].running != NO_ENTRY:
                entries[i] = self.state.frames[key_ids[i]].running
        if n:
            with nogil:
                accumulators_emit(self.state.table, &entries[0], n)

    def rows_of(self, const uint32_t[::1] key_ids not None):
        """Return how many rows of keys have come and not been taken back (numpy.ndarray of int64)."""
        check_no_call(&self.guard, self)
        cdef int64_t i
        cdef int64_t[::1] counts = np.zeros(key_ids.shape[0], np.int64)
        for i in range(key_ids.shape[0]):
            if key_ids[i] < self.state.n_keys:
                counts[i] = self.state.frames[key_ids[i]].n_rows
        return counts.base

    def previous(self, const uint32_t[::1] key_ids not None):
        """Return the place of the row before each row of the same key (numpy.ndarray of int64); -1 for the first one of a key."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = key_ids.shape[0]
        cdef int64_t[::1] places = np.empty(n, np.int64)
        cdef Frame* frames
        if not 0 < n < NO_ENTRY:
            return places.base
        _reach(&self.state, <int64_t> np.max(key_ids) + 1)
        frames = self.state.frames
        with nogil:
            for i in range(n):
                places[i] = <int64_t> frames[key_ids[i]].place - 1
                frames[key_ids[i]].place = <uint32_t> (i + 1)
            for i in range(n):
                frames[key_ids[i]].place = 0
        return places.base

    def snapshot(self):
        """Return the state of all keys, key by key: their running entries and the rows of their frames, oldest first.

        Returns
        -------
        FrameRows
            `key_ids` (uint32); `parts` (uint8), 0: running entry, 1: row of the front, 2: row of the back; `times` (int64), of the
            row in a frame of time, else 0; of a running entry, the number of rows; `entries` (uint32) of the accumulators.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, at = 0, n = 0
        cdef uint32_t i, place
        cdef const Frame* frame
        cdef uint32_t[::1] key_ids
        cdef uint8_t[::1] parts
        cdef int64_t[::1] times
        cdef uint32_t[::1] entries
        for key in range(self.state.n_keys):
            n += self.state.frames[key].n + (self.state.frames[key].running != NO_ENTRY)
        key_ids, parts = np.empty(n, np.uint32), np.empty(n, np.uint8)
        times, entries = np.zeros(n, np.int64), np.empty(n, np.uint32)
        for key in range(self.state.n_keys):
            frame = &self.state.frames[key]
            if frame.running == NO_ENTRY:
                continue
            key_ids[at] = <uint32_t> key
            parts[at] = FramePart.RUNNING
            times[at] = frame.n_rows
            entries[at] = frame.running
            at += 1
            for i in range(frame.n):
                place = (frame.head + i) & (frame.capacity - 1)
                key_ids[at] = <uint32_t> key
                parts[at] = FramePart.FRONT if i < frame.n_front else FramePart.BACK
                if frame.times != NULL:
                    times[at] = frame.times[place]
                entries[at] = frame.entries[place]
                at += 1
        return FrameRows(key_ids.base, parts.base, times.base, entries.base)

    def restore(
        self, const uint32_t[::1] key_ids not None, const uint8_t[::1] parts not None, const int64_t[::1] times not None
    ):
        """Make the entries of keys that a snapshot has; the caller restores what they hold.

        Rows are those of `snapshot`, of any keys, all rows of a key in their order.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)
            The entries, which are empty.

        Raises
        ------
        SchemaError
            If a row cannot be one of a snapshot of such frames.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = key_ids.shape[0]
        cdef uint32_t[::1] entries = np.empty(n, np.uint32)
        cdef Frame* frame
        cdef bint fits
        if n:
            _reach(&self.state, <int64_t> np.max(key_ids) + 1)
        for i in range(n):
            frame = &self.state.frames[key_ids[i]]
            entries[i] = <uint32_t> _new_entry(&self.state)
            if parts[i] == FramePart.RUNNING:
                fits = frame.running == NO_ENTRY and times[i] >= 0
            else:
                fits = (
                    parts[i] <= FramePart.BACK
                    and self.state.keeps_rows
                    and frame.running != NO_ENTRY
                    and (self.state.size < 0 or frame.n < self.state.size)
                    and (parts[i] == FramePart.BACK or (self.state.has_stacks and frame.n == frame.n_front))
                    and (frame.times == NULL or frame.times[(frame.head + frame.n - 1) & (frame.capacity - 1)] <= times[i])
                )
            if not fits:
                raise SchemaError(
                    f"row {i} of the frames of a checkpoint, part {parts[i]} of the state of a key, is none of this operator; "
                    "restore from another checkpoint"
                )
            if parts[i] == FramePart.RUNNING:
                frame.running = entries[i]
                frame.n_rows = times[i]
            else:
                _push(&self.state, frame, entries[i], times[i])
                frame.n_front += parts[i] == FramePart.FRONT
        return entries.base

    def memory_bytes(self):
        """Bytes of the frames' rows and free entries; accumulators have a `memory_bytes` of their own. O(1)"""
        cdef FrameState* state = &self.state
        check_no_call(&self.guard, self)
        return (
            state.frame_bytes
            + state.keys_capacity * <int64_t> sizeof(Frame)
            + (state.free_capacity + state.leaving_capacity) * <int64_t> sizeof(uint32_t)
        )

    def _check(self):
        """Assert every invariant of the frames; for tests."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, used = FIRST_ENTRY
        cdef uint32_t i
        cdef const Frame* frame
        assert self.state.n_steps == self.state.n_results == self.state.n_leaving == 0, "steps were left behind"
        for key in range(self.state.n_keys):
            frame = &self.state.frames[key]
            if frame.running == NO_ENTRY:
                assert frame.n == 0 and frame.capacity == 0, "rows of a key without state"
                continue
            used += 1 + frame.n
            assert frame.n <= frame.capacity and frame.n_front <= frame.n
            assert self.state.size < 0 or frame.n <= self.state.size, "a frame is too long"
            for i in range(1, frame.n):
                if frame.times != NULL:
                    assert (
                        frame.times[(frame.head + i - 1) & (frame.capacity - 1)]
                        <= frame.times[(frame.head + i) & (frame.capacity - 1)]
                    ), "times go back"
        assert used + self.state.n_free == self.state.table.n_entries, "an entry was lost"

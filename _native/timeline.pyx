"""The timeline of a log: the operators of all its splits, run over the ticks of its clock, and the valve that takes in what they emit.

    records of each split ──► operators of the splits ──► valve ──► steps of the timeline
                                   ▲      │
                                   └──────┘ alignment
"""

import numpy as np

import cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.entry_heap cimport entry_slot, entry_time
from flinkcore._native.event_log cimport MAX_ARRIVAL, check_codes
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free, buffer_reserve
from flinkcore._native.packed_steps cimport AFTER_ALL, StepPacker, packing_add
from flinkcore._native.time_summary cimport checked_interval, tick_of
from flinkcore._native.valve cimport ElementKind, StatusWatermarkValve, Valve, ValveOutput, valve_input
from flinkcore._native.watermark_generator cimport (
    GeneratorOutput,
    generator_on_event,
    generator_on_periodic_emit,
    generator_set_up,
)


# ---- the records of a split --------------------------------------------------------------------------------------
# Moves of each split over the ticks, from the parts of the summaries of its chunks in log order.
#
# Only the parts of a range of time need be in memory: `SplitMerge.run_before` reads all of them, and those of the next range
# follow.


cdef struct SplitPart:
    # The records of one split in one window of a chunk.
    int64_t first_tick
    int64_t last_tick
    int64_t max_timestamp
    int64_t n_records
    const int64_t* ticks
    const int64_t* timestamps
    int64_t following            # the split's next part, or -1


cdef int _append_part(SplitRecords records, int32_t split, const SplitPart* part) except -1:
    cdef RecordCursor* cursor = &records.cursors[split]
    cdef int64_t number = records.parts.size // <int64_t> sizeof(SplitPart)
    (<SplitPart*> buffer_append(&records.parts, sizeof(SplitPart)))[0] = part[0]
    if cursor.part < 0:
        cursor.part = number
    else:
        (<SplitPart*> records.parts.data)[cursor.last_part].following = number
    cursor.last_part = number
    return 0


cdef bint _next_move(SplitRecords records, int32_t split, Move* move) noexcept nogil:
    # Writes the next move of a split to *move. Returns False after the last move.
    cdef RecordCursor* cursor = &records.cursors[split]
    cdef const SplitPart* part
    move.over_gap = False
    if cursor.n_records:
        move.tick = cursor.ticks[0]
        move.timestamp = cursor.timestamps[0]
        cursor.ticks += 1
        cursor.timestamps += 1
        cursor.n_records -= 1
        return True
    if cursor.part < 0:
        return False
    part = <const SplitPart*> records.parts.data + cursor.part
    if not cursor.entered:
        cursor.entered = True
        cursor.ticks = part.ticks
        cursor.timestamps = part.timestamps
        cursor.n_records = part.n_records
        move.tick = part.first_tick
        move.timestamp = INT64_MIN
        move.over_gap = True
        return True
    cursor.entered = False
    cursor.part = part.following
    move.tick = part.last_tick
    move.timestamp = part.max_timestamp
    return True


cdef int _clear(SplitRecords records) except -1:
    cdef int32_t split
    memset(records.cursors, 0, records.n_splits * sizeof(RecordCursor))
    for split in range(records.n_splits):
        records.cursors[split].part = records.cursors[split].last_part = -1
    records.parts.size = 0
    records.owners.clear()
    return 0


@cython.final
cdef class SplitRecords:
    """Records of each split in the summaries of all chunks. They are read once, each split at its own pace.

    Parameters
    ----------
    splits : int
        Number of splits.
    interval_ms : int
        As for TimeSummary.

    Raises
    ------
    ConfigurationError
        If the interval is out of its range.
    """

    def __cinit__(self, *, int32_t splits, object interval_ms):
        self.interval = checked_interval(interval_ms)
        self.n_splits = splits
        self.owners = []
        self.cursors = <RecordCursor*> calloc(splits + 1, sizeof(RecordCursor))
        if self.cursors == NULL:
            raise MemoryError(f"{splits} splits")
        _clear(self)

    def __dealloc__(self):
        free(self.cursors)
        buffer_free(&self.parts)

    def add_parts(
        self,
        const int32_t[::1] splits not None,
        const int64_t[::1] first_ticks_ms not None,
        const int64_t[::1] last_ticks_ms not None,
        const int64_t[::1] max_timestamps_ms not None,
        const int64_t[::1] n_records not None,
        const int64_t[::1] ticks_ms not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Take in parts of the summary of a chunk, after those of the chunks before it.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_parts,)
            Number among all splits of each part's split.
        first_ticks_ms, last_ticks_ms, max_timestamps_ms, n_records : numpy.ndarray of int64, shape (n_parts,)
            As of `TimeSummary.take`.
        ticks_ms, timestamps_ms : numpy.ndarray of int64, shape (n_records,)
            As of `TimeSummary.take`; kept and not copied.

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = splits.shape[0], total = 0
        cdef SplitPart part
        if not (
            n == first_ticks_ms.shape[0] == last_ticks_ms.shape[0] == max_timestamps_ms.shape[0] == n_records.shape[0]
        ):
            raise DataError("the columns of a chunk's summary differ in length")
        check_codes(splits, self.n_splits)
        for i in range(n):
            if not 0 <= n_records[i] <= ticks_ms.shape[0] - total:
                raise DataError(f"{n_records[i]} records in a part of a chunk's summary, of {ticks_ms.shape[0]} in all")
            total += n_records[i]
        if ticks_ms.shape[0] != total or timestamps_ms.shape[0] != total:
            raise DataError(f"{ticks_ms.shape[0]} ticks and {timestamps_ms.shape[0]} timestamps for {total} records")
        if total:
            part.ticks, part.timestamps = &ticks_ms[0], &timestamps_ms[0]
            self.owners.append((ticks_ms, timestamps_ms))
        else:
            part.ticks = part.timestamps = NULL
        part.following = -1
        for i in range(n):
            part.first_tick = first_ticks_ms[i]
            part.last_tick = last_ticks_ms[i]
            part.max_timestamp = max_timestamps_ms[i]
            part.n_records = n_records[i]
            _append_part(self, splits[i], &part)
            if part.n_records:
                part.ticks += part.n_records
                part.timestamps += part.n_records


# ---- the operators of the splits ---------------------------------------------------------------------------------
# Operators of all splits: their input and output, and the time of the next call of each.
#
# An operator is called at every tick, but most calls change nothing. Only three matter: the call at a tick with activity; the
# next one, which starts the idle count; and the one that finds the count exceeded. (A call at the opening, which is not a tick,
# has no effect: the generator's clock is 0, and it has seen no event.)


cdef struct Emission:
    int64_t clock
    int64_t timestamp
    int32_t split
    int32_t kind  # ElementKind of the valve


cdef struct Span:
    int64_t split
    int64_t since
    int64_t until


cdef int64_t _NEVER = INT64_MAX  # later than all calls


cdef enum:
    _PART = 64  # splits of a block, and blocks of a group, whose first call is known: few of many splits have one at a tick


cdef inline int _emit(SplitOperators operators, int32_t split, int64_t clock, int32_t kind, int64_t timestamp) except -1 nogil:
    cdef Emission* emission = <Emission*> buffer_append(&operators.emissions, sizeof(Emission))
    emission.clock = clock
    emission.timestamp = timestamp
    emission.split = split
    emission.kind = kind
    return 0


cdef inline int64_t _clock_of(SplitOperators operators, const SplitOperator* state, int64_t now) noexcept nogil:
    # Returns the split's own clock, which stops while it is paused (PausableRelativeClock).
    return (state.paused_since if state.paused else now) - operators.opened - state.paused_ms


cdef int _periodic_emit(SplitOperators operators, int32_t split, int64_t clock) except -1 nogil:
    # WatermarkEmitter: only a watermark that advances passes, and only such a one ends idleness.
    cdef SplitOperator* state = &operators.splits[split]
    cdef int64_t watermark = 0
    cdef int output = generator_on_periodic_emit(&state.generator, _clock_of(operators, state, clock), &watermark)
    state.unseen = False
    if output & GeneratorOutput.MARKS_IDLE and not state.idle:
        state.idle = True
        _emit(operators, split, clock, ElementKind.IDLE, 0)
    elif output & GeneratorOutput.GENERATES_WATERMARK and watermark > state.current_watermark:
        state.current_watermark = watermark
        if state.idle:
            state.idle = False
            _emit(operators, split, clock, ElementKind.ACTIVE, 0)
        _emit(operators, split, clock, ElementKind.WATERMARK, watermark)
    return 0


cdef inline bint _take_move(SplitOperators operators, int32_t split, Move* move) except -1 nogil:
    if not _next_move(operators.records, split, move):
        return False
    if move.tick > operators.last_tick:
        with gil:
            raise DataError(
                f"split number {split} has an event at the tick of {move.tick} ms, after the last arrival of the "
                f"log, {operators.last_arrival} ms: the summaries of its chunks do not fit together"
            )
    return True


cdef inline int _look_ahead(SplitOperators operators, int32_t split) except -1 nogil:
    cdef SplitOperator* state = &operators.splits[split]
    if state.folds:
        state.ahead = state.folded
        state.folds = state.ends = False
    else:
        state.ends = not _take_move(operators, split, &state.ahead)
    return 0


cdef int _operators_fold(SplitOperators operators) except -1 nogil:
    # After all calls up to a clock, splits that are paused, or whose first call is yet to come, have moves up to that clock
    # which have not been read. These are read together at the split's next call or pause, so they become one move, behind that
    # ahead.
    cdef SplitOperator* state
    cdef Move move
    cdef int32_t split
    for split in range(operators.n):
        state = &operators.splits[split]
        while not state.ends and _take_move(operators, split, &move):
            if state.folds:
                move.tick = max(move.tick, state.folded.tick)
                move.timestamp = max(move.timestamp, state.folded.timestamp)
            move.over_gap = False
            state.folded = move
            state.folds = True
    return 0


cdef inline int _read_up_to(SplitOperators operators, int32_t split, int64_t clock) except -1 nogil:
    # A chunk may have events at earlier ticks than the last arrival of the chunks before it: these have in fact arrived with
    # that.
    cdef SplitOperator* state = &operators.splits[split]
    while not state.ends and state.ahead.tick <= clock:
        generator_on_event(&state.generator, state.ahead.timestamp)
        state.unseen = True
        _look_ahead(operators, split)
    return 0


cdef int64_t _idle_call(SplitOperators operators, const SplitOperator* state, int64_t tick) noexcept nogil:
    # Returns the first call after a tick that starts the idle count or finds it exceeded, if nothing is read until then.
    cdef int64_t counted
    cdef uint64_t ticks
    if not state.generator.detects_idleness or state.generator.is_idle_now:
        return _NEVER
    if state.generator.inactive_since == 0:
        return tick + operators.interval
    counted = _clock_of(operators, state, tick) - state.generator.inactive_since
    if counted > state.generator.idle_timeout:
        return tick + operators.interval
    if state.paused:
        return _NEVER
    # Unsigned: the timeout may be near 2**63, and so the ticks until then beyond the log, which is compared before multiplying.
    ticks = (<uint64_t> state.generator.idle_timeout - <uint64_t> counted) // <uint64_t> operators.interval + 1
    if ticks > <uint64_t> (operators.last_arrival - tick) // <uint64_t> operators.interval:
        return _NEVER
    return tick + <int64_t> ticks * operators.interval


cdef inline void _schedule(SplitOperators operators, int32_t split, int64_t tick) noexcept nogil:
    # Schedules the next call; those up to this tick have been made.
    cdef SplitOperator* state = &operators.splits[split]
    cdef int64_t due = _NEVER
    if operators.interval == 0:
        operators.next_clocks[split] = _NEVER
        return
    if not state.ends and not state.paused:
        due = state.ahead.tick
        if operators.interval != operators.records.interval:
            due = tick_of(due, operators.interval)
        due = max(due, tick + operators.interval)
    if state.unseen:
        due = tick + operators.interval
    elif state.ends or state.ahead.over_gap:  # otherwise events up to the next move come too often for the split to turn idle, whether read or not
        due = min(due, _idle_call(operators, state, tick))
    operators.next_clocks[split] = due if due <= operators.last_arrival else _NEVER


cdef inline int _call(SplitOperators operators, int32_t split, int64_t tick) except -1 nogil:
    if not operators.splits[split].paused:
        _read_up_to(operators, split, tick)
    _periodic_emit(operators, split, tick)
    _schedule(operators, split, tick)
    return 0


cdef int _operators_start(SplitOperators operators, int64_t last_tick) except -1 nogil:
    # Reads the first move of each split in records that have been added. Calls up to `last_tick` have been made.
    cdef int32_t split
    for split in range(operators.n):
        if operators.splits[split].ends:
            _look_ahead(operators, split)
            _schedule(operators, split, last_tick)
    _operators_find_next(operators)
    return 0


cdef int _operators_run(SplitOperators operators, int64_t until) except -1 nogil:
    # Makes all calls up to a clock. The emissions are ordered by split, and within a split by clock.
    cdef int32_t block, group, n_blocks = _parts(operators.n), n_groups = _parts(n_blocks)
    operators.next_clock = _NEVER
    for group in range(n_groups):
        if operators.clocks_of_groups[group] <= until:
            for block in range(group * _PART, min((group + 1) * _PART, n_blocks)):
                if operators.clocks_of_blocks[block] <= until:
                    _run_block(operators, block, until)
            _find_next_of_group(operators, group)
        operators.next_clock = min(operators.next_clock, operators.clocks_of_groups[group])
    return 0


cdef int _run_block(SplitOperators operators, int32_t block, int64_t until) except -1 nogil:
    cdef int64_t first = _NEVER
    cdef int32_t split
    for split in range(block * _PART, min((block + 1) * _PART, operators.n)):
        while operators.next_clocks[split] <= until:
            _call(operators, split, operators.next_clocks[split])
        first = min(first, operators.next_clocks[split])
    operators.clocks_of_blocks[block] = first
    return 0


cdef int _operators_end(SplitOperators operators, bint stops) except -1 nogil:
    # Makes the last call of every split, after all ticks and in split order. If the job stops, this call is left to the job
    # that resumes it, as are the events of paused splits.
    cdef int32_t split
    for split in range(operators.n):
        if not operators.splits[split].paused:
            _read_up_to(operators, split, _NEVER)
        if not stops:
            _periodic_emit(operators, split, operators.last_arrival)
    return 0


cdef int _operators_pause(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil:
    # Pauses a split whose calls up to `last_tick` have been made. _operators_find_next then updates next_clock.
    cdef SplitOperator* state = &operators.splits[split]
    _read_up_to(operators, split, clock)
    state.paused = True
    state.paused_since = clock
    _schedule(operators, split, last_tick)
    return 0


cdef int _operators_resume(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil:
    cdef SplitOperator* state = &operators.splits[split]
    _span_append(&operators.paused_rows, split, state.paused_since, clock)
    state.paused = False
    state.paused_ms += clock - state.paused_since
    _schedule(operators, split, last_tick)
    return 0


cdef inline int32_t _parts(int32_t n) noexcept nogil:
    # Returns the number of blocks of splits, or of groups of blocks.
    return (n + _PART - 1) // _PART


cdef void _find_next_of_group(SplitOperators operators, int32_t group) noexcept nogil:
    cdef int64_t first = _NEVER
    cdef int32_t block
    for block in range(group * _PART, min((group + 1) * _PART, _parts(operators.n))):
        first = min(first, operators.clocks_of_blocks[block])
    operators.clocks_of_groups[group] = first


cdef void _operators_find_next(SplitOperators operators) noexcept nogil:
    cdef int32_t split, block, group, n_blocks = _parts(operators.n)
    for block in range(n_blocks):
        operators.clocks_of_blocks[block] = _NEVER
    for split in range(operators.n):
        block = split // _PART
        operators.clocks_of_blocks[block] = min(operators.clocks_of_blocks[block], operators.next_clocks[split])
    operators.next_clock = _NEVER
    for group in range(_parts(n_blocks)):
        _find_next_of_group(operators, group)
        operators.next_clock = min(operators.next_clock, operators.clocks_of_groups[group])


cdef int64_t _operators_last_tick(SplitOperators operators, int64_t clock) noexcept nogil:
    # Returns the last tick up to a clock.
    cdef int64_t tick = tick_of(clock, operators.interval)
    return tick if tick == clock else tick - operators.interval


cdef int _span_append(Buffer* spans, int32_t split, int64_t since, int64_t until) except -1 nogil:
    cdef Span* span = <Span*> buffer_append(spans, sizeof(Span))
    span.split = split
    span.since = since
    span.until = until
    return 0


@cython.final
cdef class SplitOperators:
    """The operators of all splits of a log; all are opened one interval before the first tick that sees an event.

    Follows TimestampsAndWatermarksOperator of Flink 2.3, but that ticks lie on multiples of the interval. The parameters are
    those of SplitMerge.
    """

    def __cinit__(
        self,
        SplitRecords records not None,
        object interval_ms,
        object out_of_orderness_ms,
        object idleness_ms,
        int64_t first_arrival_ms,
        int64_t last_arrival_ms,
    ):
        cdef int32_t split
        self.records = records
        self.n = records.n_splits
        self.interval = checked_interval(interval_ms)
        if not -MAX_ARRIVAL <= first_arrival_ms <= last_arrival_ms <= MAX_ARRIVAL:
            raise ConfigurationError(
                f"arrivals from {first_arrival_ms} to {last_arrival_ms} ms: the first comes not after the last, and both "
                f"are within ±{MAX_ARRIVAL} ms"
            )
        self.opened = first_arrival_ms
        self.last_arrival = last_arrival_ms
        self.last_tick = tick_of(last_arrival_ms, records.interval)
        if self.interval:
            self.opened = tick_of(first_arrival_ms, self.interval) - self.interval
        self.splits = <SplitOperator*> calloc(self.n, sizeof(SplitOperator))
        self.next_clocks = <int64_t*> malloc(self.n * sizeof(int64_t))
        self.clocks_of_blocks = <int64_t*> malloc(_parts(self.n) * sizeof(int64_t))
        self.clocks_of_groups = <int64_t*> malloc(_parts(_parts(self.n)) * sizeof(int64_t))
        if (
            self.splits == NULL
            or self.next_clocks == NULL
            or self.clocks_of_blocks == NULL
            or self.clocks_of_groups == NULL
        ):
            raise MemoryError(f"{self.n} splits")
        for split in range(self.n):
            generator_set_up(&self.splits[split].generator, out_of_orderness_ms, idleness_ms)
            self.splits[split].current_watermark = INT64_MIN
            self.splits[split].ends = True

    def __dealloc__(self):
        free(self.splits)
        free(self.next_clocks)
        free(self.clocks_of_blocks)
        free(self.clocks_of_groups)
        buffer_free(&self.emissions)
        buffer_free(&self.paused_rows)


# ---- alignment ---------------------------------------------------------------------------------------------------
# Alignment pauses splits whose watermarks are too far ahead (SourceCoordinator, SourceOperator).
#
# After as many updates without an emission as there are samples, all samples are equal, and the updates up to the next call are
# skipped.


cdef enum:
    WATERMARK_BUFFER_SIZE = 3  # Flink's default of pipeline.watermark-alignment.buffer-size


cdef int _alignment_start(
    SplitAlignment* alignment, SplitOperators operators, int64_t max_drift, int64_t update_interval
) except -1:
    cdef int64_t i
    alignment.max_drift = max_drift
    alignment.update_interval = update_interval
    alignment.next_update = tick_of(operators.opened, update_interval)
    alignment.samples = <int64_t*> malloc(WATERMARK_BUFFER_SIZE * operators.n * sizeof(int64_t))
    if alignment.samples == NULL:
        raise MemoryError(f"{operators.n} splits")
    for i in range(WATERMARK_BUFFER_SIZE * operators.n):
        alignment.samples[i] = INT64_MIN
    return 0


cdef int64_t _max_allowed_watermark(const SplitAlignment* alignment, SplitOperators operators) noexcept nogil:
    # Returns the least watermark plus the drift. An idle split, or one that has not reported a watermark yet, holds nobody
    # back. The sum is cut off at the end of int64.
    cdef const SplitOperator* state
    cdef int64_t least = INT64_MAX
    cdef int32_t split
    for split in range(operators.n):
        state = &operators.splits[split]
        if not state.idle and state.current_watermark != INT64_MIN:
            least = min(least, state.current_watermark)
    return INT64_MAX if least > INT64_MAX - alignment.max_drift else least + alignment.max_drift


cdef int _alignment_update(SplitAlignment* alignment, SplitOperators operators) except -1 nogil:
    # Makes the next update: samples and reports all watermarks, announces the maximum, and pauses or resumes splits.
    cdef int64_t clock = alignment.next_update, max_allowed = _max_allowed_watermark(alignment, operators)
    cdef int64_t last_tick = _operators_last_tick(operators, clock)
    cdef int64_t* newest = alignment.samples + (alignment.n_updates % WATERMARK_BUFFER_SIZE) * operators.n
    cdef int64_t* oldest = alignment.samples + ((alignment.n_updates + 1) % WATERMARK_BUFFER_SIZE) * operators.n
    cdef bint changed = False
    cdef int32_t split
    for split in range(operators.n):
        newest[split] = operators.splits[split].current_watermark
    for split in range(operators.n):
        if (oldest[split] > max_allowed) == operators.splits[split].paused:
            continue
        changed = True
        if operators.splits[split].paused:
            _operators_resume(operators, split, clock, last_tick)
        else:
            _operators_pause(operators, split, clock, last_tick)
    _operators_find_next(operators)
    alignment.n_updates += 1
    alignment.quiet_updates += 1
    alignment.next_update = clock + alignment.update_interval
    if (
        alignment.quiet_updates >= WATERMARK_BUFFER_SIZE
        and not changed
        and operators.next_clock > alignment.next_update
    ):
        alignment.next_update = (
            INT64_MAX
            if operators.next_clock == INT64_MAX
            else tick_of(operators.next_clock, alignment.update_interval)
        )
    return 0


cdef int _alignment_end(SplitOperators operators) except -1 nogil:
    # At the end of the log, paused splits are resumed and read with its last arrival.
    cdef int32_t split
    for split in range(operators.n):
        if operators.splits[split].paused:
            _operators_resume(
                operators, split, operators.last_arrival, _operators_last_tick(operators, operators.last_arrival - 1)
            )
    _operators_find_next(operators)
    return 0


# ---- the merge of the splits -------------------------------------------------------------------------------------
# The clock is run in windows: the operators run up to the window's end one after the other, their emissions are sorted by clock
# and split, and the valve takes them in. The memory is bounded by the splits and the results.


cdef struct Status:
    int64_t clock
    int64_t steps  # before it
    int64_t idle


cdef struct Holder:
    int64_t clock
    int64_t split  # -1: none
    int64_t lead   # distance to the watermark without this split, as the mean over its time


cdef inline int64_t _tick_in_window(SplitMerge merge, const Emission* emission, int64_t start) noexcept nogil:
    return (emission.clock - start) // merge.operators.interval


cdef const Emission* _by_clock_and_split(SplitMerge merge, int64_t start) except NULL nogil:
    # Counting sort by tick, which is stable: emissions of a tick stay ordered by split.
    cdef const Emission* emissions = <const Emission*> merge.operators.emissions.data
    cdef Emission* in_order
    cdef int64_t i, tick, count, place = 0, n = merge.operators.emissions.size // <int64_t> sizeof(Emission)
    if merge.operators.n == 1 or merge.window_ticks == 1 or merge.operators.interval == 0:
        return emissions
    merge.in_order.size = 0
    buffer_reserve(&merge.in_order, merge.operators.emissions.size)
    in_order = <Emission*> merge.in_order.data
    memset(merge.places, 0, merge.window_ticks * sizeof(int64_t))
    for i in range(n):
        merge.places[_tick_in_window(merge, &emissions[i], start)] += 1
    for tick in range(merge.window_ticks):
        count = merge.places[tick]
        merge.places[tick] = place
        place += count
    for i in range(n):
        tick = _tick_in_window(merge, &emissions[i], start)
        in_order[merge.places[tick]] = emissions[i]
        merge.places[tick] += 1
    return in_order


cdef int _append_status(SplitMerge merge, int64_t clock, bint idle) except -1 nogil:
    cdef Status* status = <Status*> buffer_append(&merge.status_rows, sizeof(Status))
    status.clock = clock
    status.steps = merge.packer.packing.n + merge.packer.packing.n_held
    status.idle = idle
    return 0


cdef inline void _note_lead(SplitMerge merge, int64_t clock) noexcept nogil:
    # Called before anything changes at a clock. A split without a watermark lags by the time since the opening. Doubles, since
    # products of times leave 64 bits.
    cdef Valve* valve = &merge.valve.valve
    cdef int64_t least, following
    cdef int32_t child
    cdef Holder* last
    if clock == merge.lead_clock or merge.holder_rows.size == 0:
        merge.lead_clock = clock
        return
    if merge.lead_clock == INT64_MIN:  # the time before it is that of another merge
        merge.lead_clock = merge.first_clock = clock
        return
    if valve.n_aligned > 1:
        least, following = entry_time(valve.aligned[0]), INT64_MAX
        for child in range(1, min(5, valve.n_aligned)):  # the second least entry is a child of the root
            following = min(following, entry_time(valve.aligned[child]))
        if least == INT64_MIN and following > least:
            merge.led += (<double> merge.lead_clock - merge.operators.opened) * (<double> clock - merge.lead_clock)
        else:
            merge.led += <double> (<uint64_t> following - <uint64_t> least) * (<double> clock - merge.lead_clock)
    merge.lead_clock = clock
    last = <Holder*> (merge.holder_rows.data + merge.holder_rows.size) - 1
    if clock > last.clock:
        last.lead = <int64_t> min(merge.led / (<double> clock - last.clock), 9.2e18)


cdef inline int _note_holder(SplitMerge merge, int64_t clock) except -1 nogil:
    # Only the last holder at each clock is noted. Where several splits hold the watermark, it is the one with the lowest number.
    cdef int64_t n = merge.holder_rows.size // <int64_t> sizeof(Holder)
    cdef int64_t split = entry_slot(merge.valve.valve.aligned[0]) if merge.valve.valve.n_aligned else -1
    cdef Holder* last = <Holder*> merge.holder_rows.data
    if n:
        last += n - 1
        if last.split == split:
            return 0
    if n == 1 and last.clock != clock:
        merge.first_led = merge.led
    if n == 0 or last.clock != clock:
        last = <Holder*> buffer_append(&merge.holder_rows, sizeof(Holder))
    last.clock = clock
    last.split = split
    last.lead = 0
    merge.led = 0
    return 0


cdef int _deliver(SplitMerge merge, const Emission* emissions) except -1 nogil:
    cdef const Emission* emission
    cdef int64_t i, watermark = 0
    cdef int output
    for i in range(merge.operators.emissions.size // <int64_t> sizeof(Emission)):
        emission = &emissions[i]
        _note_lead(merge, emission.clock)
        if emission.kind == ElementKind.IDLE:
            merge.operators.splits[emission.split].idle_since = emission.clock
        elif emission.kind == ElementKind.ACTIVE:
            _span_append(&merge.idle_rows, emission.split, merge.operators.splits[emission.split].idle_since, emission.clock)
        output = valve_input(&merge.valve.valve, emission.split, emission.kind, emission.timestamp, &watermark)
        if output & ValveOutput.EMITS_WATERMARK:
            packing_add(&merge.packer.packing, emission.clock, watermark, AFTER_ALL, 0)
        if output & (ValveOutput.EMITS_IDLE | ValveOutput.EMITS_ACTIVE):
            _append_status(merge, emission.clock, (output & ValveOutput.EMITS_IDLE) != 0)
        _note_holder(merge, emission.clock)
    merge.operators.emissions.size = 0
    return 0


cdef bint _run_window(SplitMerge merge, int64_t limit) except -1 nogil:
    # False: no split has a call up to the limit any more.
    cdef int64_t start = merge.operators.next_clock, until = limit, interval = merge.operators.interval
    if start > limit:
        return False
    if (until - start) // interval >= merge.window_ticks:
        until = start + (merge.window_ticks - 1) * interval
    _operators_run(merge.operators, until)
    if merge.operators.emissions.size:
        merge.alignment.quiet_updates = 0
        _deliver(merge, _by_clock_and_split(merge, start))
    return True


cdef int _end_log(SplitMerge merge, bint stops) except -1 nogil:
    cdef const SplitOperator* state
    cdef int32_t split
    _operators_end(merge.operators, stops)
    _deliver(merge, <const Emission*> merge.operators.emissions.data)
    _note_lead(merge, merge.operators.last_arrival)
    for split in range(merge.operators.n):
        state = &merge.operators.splits[split]
        if state.idle:
            _span_append(&merge.idle_rows, split, state.idle_since, merge.operators.last_arrival)
        if state.paused:
            _span_append(&merge.operators.paused_rows, split, state.paused_since, merge.operators.last_arrival)
    return 0


cdef tuple _columns(const Buffer* rows):
    # Holders, statuses and spans are rows of three integers.
    cdef int64_t i, column, n = rows.size // (3 * <int64_t> sizeof(int64_t))
    cdef const int64_t* values = <const int64_t*> rows.data
    cdef int64_t[:, ::1] columns = np.empty((3, n), np.int64)
    for i in range(n):
        for column in range(3):
            columns[column, i] = values[i * 3 + column]
    return tuple(columns.base)


cdef int _check_grid(int64_t interval, int64_t records_interval, object updates) except -1:
    # A record only tells whether events are read before or after a tick, and before or after an update.
    intervals = [interval] if updates is None or interval == 0 else [interval, updates]
    if any(each % records_interval if records_interval else each for each in intervals):
        raise ConfigurationError(f"intervals of {intervals} ms are no multiples of that of records, {records_interval} ms")
    return 0


@cython.final
cdef class SplitMerge:
    """Operators of all splits and the valve that merges their output, run over the clock of a log.

    Every split has an operator of its own, that assigns timestamps and emits watermarks at the ticks and at the end
    of the log. All are opened one interval before the first tick that sees an event of the log. The emissions of a tick
    come to the valve in the order of the splits, as do those of the end of the log, which come after all ticks.

    O((records + idle spans) · log splits) time, and O(splits) for each update of an alignment unless nothing has changed;
    memory for splits, packed steps, spans, and one window.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3, but that ticks lie on multiples of
    the interval.

    Parameters
    ----------
    records : SplitRecords
        Records of all chunks, or of the first stretch of time; `run_before` and `run` read them. At least one split has an
        event.
    packer : StepPacker
        Takes the steps of the timeline: the watermarks that the valve emits, and when. It may have earlier steps.
    interval_ms : int
        The auto-watermark interval: that of the records, or a multiple of it.
    out_of_orderness_ms, idleness_ms : int or None
        As for WatermarkGenerator.
    first_arrival_ms, last_arrival_ms : int
        The earliest and the last arrival of the log, within ±MAX_ARRIVAL_MS.
    max_drift_ms, update_interval_ms : int or None
        Largest drift of the splits and interval of the updates, a multiple of the interval of the records; None without
        alignment.
    window_emissions : int
        Approximate number of emissions that are made before the valve takes them in. Results do not depend on it.

    Raises
    ------
    ConfigurationError
        If a parameter is out of its range.
    """

    def __cinit__(
        self,
        SplitRecords records not None,
        StepPacker packer not None,
        *,
        object interval_ms,
        object out_of_orderness_ms,
        object idleness_ms,
        int64_t first_arrival_ms,
        int64_t last_arrival_ms,
        object max_drift_ms=None,
        object update_interval_ms=None,
        int64_t window_emissions=1 << 18,
    ):
        self.operators = SplitOperators(
            records, interval_ms, out_of_orderness_ms, idleness_ms, first_arrival_ms, last_arrival_ms
        )
        _check_grid(self.operators.interval, records.interval, update_interval_ms)
        self.packer = packer
        self.valve = StatusWatermarkValve(self.operators.n)
        self.window_ticks = max(1, window_emissions // self.operators.n)
        self.places = <int64_t*> malloc(self.window_ticks * sizeof(int64_t))
        if self.places == NULL:
            raise MemoryError(f"windows of {self.window_ticks} ticks")
        self.first_clock = INT64_MIN
        self.alignment.next_update = INT64_MAX
        if max_drift_ms is not None and self.operators.interval:
            _alignment_start(&self.alignment, self.operators, min(max_drift_ms, INT64_MAX), update_interval_ms)

    def __dealloc__(self):
        free(self.places)
        free(self.alignment.samples)
        buffer_free(&self.in_order)
        buffer_free(&self.status_rows)
        buffer_free(&self.idle_rows)
        buffer_free(&self.holder_rows)

    def run(self, *, bint stops=False):
        """Run to the end of the log; once.

        Parameters
        ----------
        stops : bool
            True: what the end of the log would emit, a tick or an update at its last arrival, and what waits for paused
            splits are left to another log.

        Raises
        ------
        DataError
            If a record lies after the last arrival.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_records = begin_call(&self.operators.records.guard, self.operators.records)
        cdef Call of_packer = begin_call(&self.packer.guard, self.packer)
        cdef int64_t last_arrival = self.operators.last_arrival
        self._start()
        self._run_updates_up_to(last_arrival - 1)
        if self.alignment.samples != NULL and not stops:
            self._run_up_to(last_arrival - 1)
            with nogil:
                _alignment_end(self.operators)
        self._run_up_to(last_arrival - 1 if stops else last_arrival)
        with nogil:
            _end_log(self, stops)
        _clear(self.operators.records)

    def run_before(self, int64_t clock_ms):
        """Run up to a clock, not including it. The records so far are released, and those of the next stretch can be added.

        Parameters
        ----------
        clock_ms : int
            All records of events that are read before it have been added, and no others.

        Raises
        ------
        DataError
            If a record lies after the last arrival.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_records = begin_call(&self.operators.records.guard, self.operators.records)
        cdef Call of_packer = begin_call(&self.packer.guard, self.packer)
        cdef int64_t limit = min(clock_ms, self.operators.last_arrival) - 1
        self._start()
        self._run_updates_up_to(limit)
        self._run_up_to(limit)
        with nogil:
            _operators_fold(self.operators)
        _clear(self.operators.records)
        if self.operators.interval:
            self.last_tick = max(self.last_tick, _operators_last_tick(self.operators, limit))

    cdef int _start(self) except -1:
        # With the records of a stretch, in which calls may be due earlier than without.
        if not self.started:
            self.started = True
            self.last_tick = self.operators.opened
            if self.restored and self.operators.interval:
                self.last_tick = _operators_last_tick(self.operators, self.stopped - 1)
        with nogil:
            _operators_start(self.operators, self.last_tick)
        if self.alignment.samples != NULL and self.operators.next_clock != INT64_MAX:
            self.alignment.next_update = min(
                self.alignment.next_update, tick_of(self.operators.next_clock, self.alignment.update_interval)
            )
        return 0

    cdef int _run_updates_up_to(self, int64_t limit) except -1:
        while self.alignment.next_update <= limit:
            self._run_up_to(self.alignment.next_update)
            with nogil:
                _alignment_update(&self.alignment, self.operators)
        return 0

    cdef int _run_up_to(self, int64_t limit) except -1:
        cdef bint runs = True
        while runs:
            with nogil:
                runs = _run_window(self, limit)
            PyErr_CheckSignals()
        return 0

    def statuses(self):
        """The statuses that the valve emitted: all splits idle, or one active again.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_statuses,)
            `(clocks_ms, steps, idle)`: when, after how many steps of the timeline, and 1 for idle or 0 for active.
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.status_rows)

    def holders(self):
        """Return the split that holds the merged watermark back, over time: of the active splits, one with the least watermark.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_changes,)
            `(clocks_ms, splits, leads_ms)`: from when on it is which split, by clock; -1: no split counts, all are idle.
            The lead is how far the least watermark of the others that count is above its own, in the mean over the
            time until the next change; a split without a watermark lags by the time since the opening.
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.holder_rows)

    def idle_spans(self):
        """Return the idle times of the splits, by clock within each. A split that is idle at the end is idle up to the last
        arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.idle_rows)

    def paused_spans(self):
        """Return the times at which alignment paused splits, by clock within each. A split that is paused at the end is paused
        up to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        cdef Call call = begin_call(&self.guard, self)
        return _columns(&self.operators.paused_rows)

    def final_watermarks(self):
        """The last watermark that each split emitted, -2**63 if none: numpy.ndarray of int64, shape (splits,)."""
        cdef Call call = begin_call(&self.guard, self)
        return np.array([self.operators.splits[split].current_watermark for split in range(self.operators.n)], np.int64)


# ---- the state of a merge ----------------------------------------------------------------------------------------
# State of the operators of all splits, and of the valve, at the end of a log, from which a run resumes.
#
# Per split: `generator_ms`, the maximum timestamp that its generator has seen; `unseen`, whether there were events since its last
# call; `inactive_since_ms` on its clock, which counts from the opening, 0: not; `generator_idle`; `watermark_ms` and
# `operator_idle`, as emitted; `idle_since_ms`; `channel_ms` and `channel_idle`, as the valve knows. Where splits are aligned:
# `paused`, `paused_since_ms`, and `paused_ms` in all before that; `sample_ms` and `earlier_sample_ms`, the watermark at the last
# update and at the one before. For all: `opened_ms`, when they were opened, and `output_ms`, the last watermark that the valve
# has emitted.


_COLUMNS = (
    "generator_ms",
    "unseen",
    "inactive_since_ms",
    "generator_idle",
    "watermark_ms",
    "operator_idle",
    "idle_since_ms",
    "paused",
    "paused_since_ms",
    "paused_ms",
    "sample_ms",
    "earlier_sample_ms",
)


cdef inline int64_t* _samples(SplitMerge merge, int64_t before) noexcept nogil:
    # Samples of the last update (0), or of an earlier one.
    cdef int64_t number = merge.alignment.n_updates + WATERMARK_BUFFER_SIZE - 1 - before
    return merge.alignment.samples + number % WATERMARK_BUFFER_SIZE * merge.operators.n


def split_merge_state(SplitMerge merge not None):
    """Return the arguments of `restore_split_merge`, after a run that has stopped.

    Parameters
    ----------
    merge : SplitMerge

    Returns
    -------
    dict of str to numpy.ndarray of int64, shape (splits,), and int
        As above.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    cdef int32_t split
    cdef const SplitOperator* operator
    cdef int64_t[:, ::1] columns = np.empty((len(_COLUMNS), merge.operators.n), np.int64)
    for split in range(merge.operators.n):
        operator = &merge.operators.splits[split]
        columns[0, split] = operator.generator.max_timestamp
        columns[1, split] = operator.unseen
        columns[2, split] = operator.generator.inactive_since
        columns[3, split] = operator.generator.is_idle_now
        columns[4, split] = operator.current_watermark
        columns[5, split] = operator.idle
        columns[6, split] = operator.idle_since
        columns[7, split] = operator.paused
        columns[8, split] = operator.paused_since
        columns[9, split] = operator.paused_ms
        columns[10, split] = columns[11, split] = INT64_MIN
        if merge.alignment.samples != NULL:
            columns[10, split] = _samples(merge, 0)[split]
            columns[11, split] = _samples(merge, 1)[split]
    channels, idle, output = merge.valve.state()
    return {
        **dict(zip(_COLUMNS, columns.base)),
        "channel_ms": channels,
        "channel_idle": idle.astype(np.int64),
        "opened_ms": merge.operators.opened,
        "output_ms": output,
    }


def continue_holders(SplitMerge merge not None):
    """Let a restored merge begin with the split that holds the watermark back, at a clock of -2**63.

    Its part of the lead is then in `leads_of_ends`, for whoever puts the holders of merges one after the other together.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    _note_holder(merge, INT64_MIN)
    merge.lead_clock = INT64_MIN


def leads_of_ends(SplitMerge merge not None):
    """Return what the leads of the first and of the last holder are made of, after a run.

    Returns
    -------
    tuple of int, float, float and int
        The clock of the first emission, -2**63 if there was none or the merge does not continue another one; lead times
        length of time, of the first holder and of the last; and the clock up to which the latter counts.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    cdef bint has_one = merge.holder_rows.size == <int64_t> sizeof(Holder)
    return merge.first_clock, merge.led if has_one else merge.first_led, merge.led, merge.lead_clock


def restore_split_merge(SplitMerge merge not None, dict state not None, int64_t stopped_ms):
    """Restore a merge, before it runs, from where that of an earlier log stopped.

    Parameters
    ----------
    merge : SplitMerge
    state : dict of str to numpy.ndarray of int64, shape (splits,), and int
        As of `split_merge_state`, for the splits of this log.
    stopped_ms : int
        The last arrival of that log: ticks before it have been done.

    Raises
    ------
    DataError
        If a column has not a value for each split, or a split is paused, and splits are not aligned.
    """
    cdef Call call = begin_call(&merge.guard, merge)
    cdef int32_t split
    cdef SplitOperator* operator
    cdef const int64_t[:, ::1] columns = np.stack([state[name] for name in _COLUMNS])
    if columns.shape[1] != merge.operators.n:
        raise DataError(f"the state of {columns.shape[1]} splits for {merge.operators.n} splits")
    merge.operators.opened = state["opened_ms"]
    merge.stopped = stopped_ms
    merge.restored = True
    for split in range(merge.operators.n):
        operator = &merge.operators.splits[split]
        operator.generator.max_timestamp = max(columns[0, split], operator.generator.max_timestamp)
        operator.unseen = operator.generator.activity = columns[1, split] != 0
        operator.generator.inactive_since = columns[2, split]
        operator.generator.is_idle_now = columns[3, split] != 0
        operator.current_watermark = columns[4, split]
        operator.idle = columns[5, split] != 0
        operator.idle_since = columns[6, split]
        operator.paused = columns[7, split] != 0
        operator.paused_since = columns[8, split]
        operator.paused_ms = columns[9, split]
        if merge.alignment.samples != NULL:
            _samples(merge, 0)[split] = columns[10, split]
            _samples(merge, 1)[split] = columns[11, split]
        elif operator.paused:
            raise DataError(f"split number {split} is paused, and the splits are not aligned")
    if merge.alignment.samples != NULL:
        merge.alignment.next_update = tick_of(stopped_ms, merge.alignment.update_interval)
    merge.valve.restore(state["channel_ms"], state["channel_idle"].astype(np.uint8), state["output_ms"])

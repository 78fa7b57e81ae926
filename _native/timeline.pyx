"""The operators of all splits, run over the ticks of a log, and the valve that takes in what they emit.

A window of the clock at a time: the operators run up to its end one after the other, their emissions are put in order
of clock and split, and the valve takes them in. What is held at once is bounded by the splits and the results.
"""

import cython
import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from flinkcore._native.arrow cimport Buffer, buffer_free, buffer_reserve
from flinkcore._native.split_records cimport Move, SplitRecords, next_move
from flinkcore._native.valve cimport ElementKind, StatusWatermarkValve, ValveOutput, valve_input
from flinkcore._native.watermarks cimport (
    GeneratorOutput,
    generator_on_event,
    generator_on_periodic_emit,
    generator_set_up,
    idle_wait_of,
    tick_of,
)

cdef int64_t _NEVER = INT64_MAX  # later than all calls


# ---- one split ---------------------------------------------------------------------------------------------------


cdef inline int _emit(SplitMerge merge, int32_t split, int64_t clock, int32_t kind, int64_t timestamp) except -1 nogil:
    cdef Emission* emission
    if merge.emissions.size + <int64_t> sizeof(Emission) > merge.emissions.capacity:
        buffer_reserve(&merge.emissions, sizeof(Emission))
    emission = <Emission*> (merge.emissions.data + merge.emissions.size)
    emission.clock = clock
    emission.timestamp = timestamp
    emission.split = split
    emission.kind = kind
    merge.emissions.size += sizeof(Emission)
    return 0


cdef int _periodic_emit(SplitMerge merge, int32_t split, int64_t clock) except -1 nogil:
    # The operator's emitter lets a watermark pass that advances; only such a one ends idleness.
    cdef SplitOperator* state = &merge.splits[split]
    cdef int64_t watermark = 0
    cdef int output = generator_on_periodic_emit(&state.generator, clock - merge.opened, &watermark)
    if output & GeneratorOutput.MARKS_IDLE and not state.idle:
        state.idle = True
        _emit(merge, split, clock, ElementKind.IDLE, 0)
    elif output & GeneratorOutput.GENERATES_WATERMARK and watermark > state.current_watermark:
        state.current_watermark = watermark
        if state.idle:
            state.idle = False
            _emit(merge, split, clock, ElementKind.ACTIVE, 0)
        _emit(merge, split, clock, ElementKind.WATERMARK, watermark)
    return 0


# The operator is called at every tick, but most calls change nothing: what matters is the call at a tick with activity,
# the next one, which starts the idle count, and the one that finds the count exceeded. (A call at the opening, where
# there is no tick, has no effect: the generator's clock shows 0, and it has seen no event.)
#
# What a chunk saw before the last arrival of the chunks before it has in fact arrived with that. A split stands at the
# tick of its last arrival so far; hence it suffices that it never moves back.


cdef int _look_ahead(SplitMerge merge, int32_t split) except -1 nogil:
    # Take in all activity at the split's tick, and find the next tick with some; the call at its tick is due then.
    cdef SplitOperator* state = &merge.splits[split]
    cdef Move move
    state.call = PeriodicCall.AT_TICK
    merge.next_clocks[split] = state.horizon = state.tick
    while next_move(merge.records, split, &move):
        if move.tick > state.tick:
            if move.over_gap and <uint64_t> move.tick - <uint64_t> state.tick > merge.idle_wait:
                state.horizon = move.tick - 1
            state.to_tick = move.tick
            state.to_timestamp = move.timestamp
            return 0
        generator_on_event(&state.generator, move.timestamp)
    state.ends = True
    state.horizon = merge.last_arrival
    if merge.interval == 0 or state.tick > merge.last_arrival:
        merge.next_clocks[split] = _NEVER
    return 0


cdef inline int _after_call(SplitMerge merge, int32_t split) except -1 nogil:
    # When the next call is due.
    cdef SplitOperator* state = &merge.splits[split]
    if state.call == PeriodicCall.AT_TICK and state.horizon - state.tick >= merge.interval and merge.interval:
        state.call = PeriodicCall.STARTS_COUNT
        merge.next_clocks[split] = state.tick + merge.interval
    elif (
        state.call == PeriodicCall.STARTS_COUNT
        and <uint64_t> state.horizon - <uint64_t> state.tick >= merge.idle_wait
    ):
        state.call = PeriodicCall.FINDS_IDLE
        merge.next_clocks[split] = state.tick + <int64_t> merge.idle_wait
    elif state.ends:
        merge.next_clocks[split] = _NEVER
    else:
        state.tick = state.to_tick
        generator_on_event(&state.generator, state.to_timestamp)
        _look_ahead(merge, split)
    return 0


# ---- a window of the clock ---------------------------------------------------------------------------------------


cdef int _run_operators(SplitMerge merge, int64_t until) except -1 nogil:
    # All calls up to a clock; the emissions come by split, and within a split by clock.
    cdef int64_t start = _NEVER
    cdef int32_t split
    for split in range(merge.n_splits):
        while merge.next_clocks[split] <= until:
            _periodic_emit(merge, split, merge.next_clocks[split])
            _after_call(merge, split)
        start = min(start, merge.next_clocks[split])
    merge.start = start
    return 0


cdef inline int64_t _tick_in_window(SplitMerge merge, const Emission* emission, int64_t start) noexcept nogil:
    return (emission.clock - start) // merge.interval


cdef const Emission* _by_clock_and_split(SplitMerge merge, int64_t start) except NULL nogil:
    # Counted by tick: what is equal there keeps its order.
    cdef const Emission* emissions = <const Emission*> merge.emissions.data
    cdef Emission* in_order
    cdef int64_t i, tick, count, place = 0, n = merge.emissions.size // <int64_t> sizeof(Emission)
    if merge.n_splits == 1 or merge.window_ticks == 1 or merge.interval == 0:
        return emissions
    merge.in_order.size = 0
    buffer_reserve(&merge.in_order, merge.emissions.size)
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


cdef int _append_idle_span(SplitMerge merge, int32_t split, int64_t until) except -1 nogil:
    cdef IdleSpan* span
    buffer_reserve(&merge.span_rows, sizeof(IdleSpan))
    span = <IdleSpan*> (merge.span_rows.data + merge.span_rows.size)
    span.split = split
    span.since = merge.splits[split].idle_since
    span.until = until
    merge.span_rows.size += sizeof(IdleSpan)
    return 0


cdef int _deliver(SplitMerge merge, const Emission* emissions) except -1 nogil:
    cdef const Emission* emission
    cdef Step* step
    cdef int64_t i, watermark = 0
    for i in range(merge.emissions.size // <int64_t> sizeof(Emission)):
        emission = &emissions[i]
        if emission.kind == ElementKind.IDLE:
            merge.splits[emission.split].idle_since = emission.clock
        elif emission.kind == ElementKind.ACTIVE:
            _append_idle_span(merge, emission.split, emission.clock)
        if (
            valve_input(&merge.valve.valve, emission.split, emission.kind, emission.timestamp, &watermark)
            & ValveOutput.EMITS_WATERMARK
        ):
            buffer_reserve(&merge.step_rows, sizeof(Step))
            step = <Step*> (merge.step_rows.data + merge.step_rows.size)
            step.clock = emission.clock
            step.watermark = watermark
            merge.step_rows.size += sizeof(Step)
    merge.emissions.size = 0
    return 0


cdef bint _run_window(SplitMerge merge) except -1 nogil:
    # False: no split has a call before the end of the log any more.
    cdef int64_t start = merge.start, until = merge.last_arrival
    if start == _NEVER:
        return False
    if merge.interval and (until - start) // merge.interval >= merge.window_ticks:
        until = start + (merge.window_ticks - 1) * merge.interval
    _run_operators(merge, until)
    if merge.emissions.size:
        _deliver(merge, _by_clock_and_split(merge, start))
    return True


cdef int _end_log(SplitMerge merge) except -1 nogil:
    # The last call of every split, after all ticks and in split order.
    cdef int32_t split
    for split in range(merge.n_splits):
        _periodic_emit(merge, split, merge.last_arrival)
    _deliver(merge, <const Emission*> merge.emissions.data)
    for split in range(merge.n_splits):
        if merge.splits[split].idle:
            _append_idle_span(merge, split, merge.last_arrival)
    return 0


@cython.final
cdef class SplitMerge:
    """The operators of all splits and the valve behind them, run over the clock of a log.

    Every split has an operator of its own, that assigns timestamps and emits watermarks at the ticks and at the end
    of the log. All are opened one interval before the first tick that sees an event of the log. The emissions of a tick
    come to the valve in the order of the splits, as do those of the end of the log, which come after all ticks.

    O((records + idle spans) · log splits) time; memory for splits, timeline steps, idle spans, and one window.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3, but that ticks lie on multiples of
    the interval.

    Parameters
    ----------
    records : SplitRecords
        Of all chunks; they are read by `run`. At least one split has an event.
    out_of_orderness_ms, idleness_ms : int or None
        As of WatermarkGenerator.
    first_arrival_ms, last_arrival_ms : int
        The earliest and the last arrival of the log.
    window_emissions : int
        About how many emissions are made before the valve takes them in; results do not depend on it.

    Raises
    ------
    ConfigurationError
        If a parameter is out of its range.
    """

    def __cinit__(
        self,
        SplitRecords records not None,
        *,
        object out_of_orderness_ms,
        object idleness_ms,
        int64_t first_arrival_ms,
        int64_t last_arrival_ms,
        int64_t window_emissions=1 << 18,
    ):
        cdef int32_t split
        self.records = records
        self.n_splits = records.n_splits
        self.valve = StatusWatermarkValve(self.n_splits)
        self.interval = records.interval
        self.idle_wait = idle_wait_of(self.interval, idleness_ms)
        self.opened = first_arrival_ms
        self.last_arrival = last_arrival_ms
        if self.interval:
            self.opened = tick_of(first_arrival_ms, self.interval) - self.interval
        self.window_ticks = max(1, window_emissions // self.n_splits)
        self.places = <int64_t*> malloc(self.window_ticks * sizeof(int64_t))
        self.splits = <SplitOperator*> calloc(self.n_splits, sizeof(SplitOperator))
        self.next_clocks = <int64_t*> malloc(self.n_splits * sizeof(int64_t))
        if self.places == NULL or self.splits == NULL or self.next_clocks == NULL:
            raise MemoryError(f"{self.n_splits} splits, windows of {self.window_ticks} ticks")
        for split in range(self.n_splits):
            generator_set_up(&self.splits[split].generator, out_of_orderness_ms, idleness_ms)
            self.splits[split].tick = self.opened
            self.splits[split].current_watermark = INT64_MIN

    def __dealloc__(self):
        free(self.places)
        free(self.splits)
        free(self.next_clocks)
        buffer_free(&self.emissions)
        buffer_free(&self.in_order)
        buffer_free(&self.step_rows)
        buffer_free(&self.span_rows)

    def run(self):
        """Run to the end of the log; once.

        Raises
        ------
        SourceError
            If the file of the records cannot be read.
        """
        cdef int32_t split
        cdef bint runs = True
        with nogil:
            for split in range(self.n_splits):
                _look_ahead(self, split)
            self.start = self.opened
        while runs:
            with nogil:
                runs = _run_window(self)
            PyErr_CheckSignals()
        with nogil:
            _end_log(self)

    def steps(self):
        """The steps of the timeline.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_steps,)
            `(clocks_ms, watermarks_ms)`: the watermarks that the valve put out, and when.
        """
        cdef int64_t i, n = self.step_rows.size // <int64_t> sizeof(Step)
        cdef const Step* steps = <const Step*> self.step_rows.data
        cdef int64_t[::1] clocks = np.empty(n, np.int64), watermarks = np.empty(n, np.int64)
        for i in range(n):
            clocks[i] = steps[i].clock
            watermarks[i] = steps[i].watermark
        return clocks.base, watermarks.base

    def idle_spans(self):
        """When which split was idle, by clock within each split; one that is idle at the end is so to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        cdef int64_t i, n = self.span_rows.size // <int64_t> sizeof(IdleSpan)
        cdef const IdleSpan* spans = <const IdleSpan*> self.span_rows.data
        cdef int64_t[::1] splits = np.empty(n, np.int64), since = np.empty(n, np.int64), until = np.empty(n, np.int64)
        for i in range(n):
            splits[i] = spans[i].split
            since[i] = spans[i].since
            until[i] = spans[i].until
        return splits.base, since.base, until.base

    def final_watermarks(self):
        """The last watermark that each split emitted, -2**63 if none: numpy.ndarray of int64, shape (splits,)."""
        return np.array([self.splits[split].current_watermark for split in range(self.n_splits)], np.int64)

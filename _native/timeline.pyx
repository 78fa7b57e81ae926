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
    checked_interval,
    generator_on_event,
    generator_on_periodic_emit,
    generator_set_up,
    tick_of,
)

from flinkcore._native.watermarks import MAX_ARRIVAL_MS as _MAX_ARRIVAL_MS
from flinkcore.errors import ConfigurationError, DataError

cdef int64_t _NEVER = INT64_MAX  # later than all calls
cdef int64_t _MAX_ARRIVAL = _MAX_ARRIVAL_MS


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


cdef inline int64_t _clock_of(SplitMerge merge, const SplitOperator* state, int64_t now) noexcept nogil:
    # The split's own clock, which stands still while it is paused.
    return (state.paused_since if state.paused else now) - merge.opened - state.paused_ms


cdef int _periodic_emit(SplitMerge merge, int32_t split, int64_t clock) except -1 nogil:
    # The operator's emitter lets a watermark pass that advances; only such a one ends idleness.
    cdef SplitOperator* state = &merge.splits[split]
    cdef int64_t watermark = 0
    cdef int output = generator_on_periodic_emit(&state.generator, _clock_of(merge, state, clock), &watermark)
    state.unseen = False
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


cdef inline int _look_ahead(SplitMerge merge, int32_t split) except -1 nogil:
    cdef SplitOperator* state = &merge.splits[split]
    state.ends = not next_move(merge.records, split, &state.ahead)
    if not state.ends and state.ahead.tick > merge.last_tick:
        with gil:
            raise DataError(
                f"split number {split} has an event at the tick of {state.ahead.tick} ms, after the last arrival of the "
                f"log, {merge.last_arrival} ms: the summaries of its chunks do not fit together"
            )
    return 0


cdef inline int _read_up_to(SplitMerge merge, int32_t split, int64_t clock) except -1 nogil:
    # What a chunk saw before the last arrival of the chunks before it has in fact arrived with that.
    cdef SplitOperator* state = &merge.splits[split]
    while not state.ends and state.ahead.tick <= clock:
        generator_on_event(&state.generator, state.ahead.timestamp)
        state.unseen = True
        _look_ahead(merge, split)
    return 0


# The operator is called at every tick, but most calls change nothing: what matters is the call at a tick with activity,
# the next one, which starts the idle count, and the one that finds the count exceeded. (A call at the opening, where
# there is no tick, has no effect: the generator's clock shows 0, and it has seen no event.)


cdef int64_t _idle_call(SplitMerge merge, const SplitOperator* state, int64_t tick) noexcept nogil:
    # The first call after a tick that starts the idle count or finds it exceeded, if nothing is read until then.
    cdef int64_t counted
    cdef uint64_t ticks
    if not state.generator.detects_idleness or state.generator.is_idle_now:
        return _NEVER
    if state.generator.inactive_since == 0:
        return tick + merge.interval
    counted = _clock_of(merge, state, tick) - state.generator.inactive_since
    if counted > state.generator.idle_timeout:
        return tick + merge.interval
    if state.paused:
        return _NEVER
    ticks = (<uint64_t> state.generator.idle_timeout - <uint64_t> counted) // <uint64_t> merge.interval + 1
    if ticks > <uint64_t> (merge.last_arrival - tick) // <uint64_t> merge.interval:
        return _NEVER
    return tick + <int64_t> ticks * merge.interval


cdef inline void _schedule(SplitMerge merge, int32_t split, int64_t tick) noexcept nogil:
    # Sets when the next call is due; those up to this tick are made.
    cdef SplitOperator* state = &merge.splits[split]
    cdef int64_t due = _NEVER
    if merge.interval == 0:
        merge.next_clocks[split] = _NEVER
        return
    if not state.ends and not state.paused:
        due = state.ahead.tick
        if merge.interval != merge.records.interval:
            due = tick_of(due, merge.interval)
        due = max(due, tick + merge.interval)
    if state.unseen:
        due = tick + merge.interval
    elif state.ends or state.ahead.over_gap:  # else events come too often on the way, read or not, for an idle split
        due = min(due, _idle_call(merge, state, tick))
    merge.next_clocks[split] = due if due <= merge.last_arrival else _NEVER


cdef inline int _call(SplitMerge merge, int32_t split, int64_t tick) except -1 nogil:
    if not merge.splits[split].paused:
        _read_up_to(merge, split, tick)
    _periodic_emit(merge, split, tick)
    _schedule(merge, split, tick)
    return 0


# ---- a window of the clock ---------------------------------------------------------------------------------------


cdef int _run_operators(SplitMerge merge, int64_t until) except -1 nogil:
    # All calls up to a clock; the emissions come by split, and within a split by clock.
    cdef int64_t start = _NEVER
    cdef int32_t split
    for split in range(merge.n_splits):
        while merge.next_clocks[split] <= until:
            _call(merge, split, merge.next_clocks[split])
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


cdef int _append_span(Buffer* spans, int32_t split, int64_t since, int64_t until) except -1 nogil:
    cdef Span* span
    buffer_reserve(spans, sizeof(Span))
    span = <Span*> (spans.data + spans.size)
    span.split = split
    span.since = since
    span.until = until
    spans.size += sizeof(Span)
    return 0


cdef int _append_status(SplitMerge merge, int64_t clock, bint idle) except -1 nogil:
    cdef Status* status
    buffer_reserve(&merge.status_rows, sizeof(Status))
    status = <Status*> (merge.status_rows.data + merge.status_rows.size)
    status.clock = clock
    status.steps = merge.step_rows.size // <int64_t> sizeof(Step)
    status.idle = idle
    merge.status_rows.size += sizeof(Status)
    return 0


cdef int _deliver(SplitMerge merge, const Emission* emissions) except -1 nogil:
    cdef const Emission* emission
    cdef Step* step
    cdef int64_t i, watermark = 0
    cdef int output
    for i in range(merge.emissions.size // <int64_t> sizeof(Emission)):
        emission = &emissions[i]
        if emission.kind == ElementKind.IDLE:
            merge.splits[emission.split].idle_since = emission.clock
        elif emission.kind == ElementKind.ACTIVE:
            _append_span(&merge.idle_rows, emission.split, merge.splits[emission.split].idle_since, emission.clock)
        output = valve_input(&merge.valve.valve, emission.split, emission.kind, emission.timestamp, &watermark)
        if output & ValveOutput.EMITS_WATERMARK:
            buffer_reserve(&merge.step_rows, sizeof(Step))
            step = <Step*> (merge.step_rows.data + merge.step_rows.size)
            step.clock = emission.clock
            step.watermark = watermark
            merge.step_rows.size += sizeof(Step)
        if output & (ValveOutput.EMITS_IDLE | ValveOutput.EMITS_ACTIVE):
            _append_status(merge, emission.clock, (output & ValveOutput.EMITS_IDLE) != 0)
    merge.emissions.size = 0
    return 0


cdef bint _run_window(SplitMerge merge, int64_t limit) except -1 nogil:
    # False: no split has a call up to the limit any more.
    cdef int64_t start = merge.start, until = limit
    if start > limit:
        return False
    if (until - start) // merge.interval >= merge.window_ticks:
        until = start + (merge.window_ticks - 1) * merge.interval
    _run_operators(merge, until)
    if merge.emissions.size:
        merge.quiet_updates = 0
        _deliver(merge, _by_clock_and_split(merge, start))
    return True


cdef int _end_log(SplitMerge merge, bint stops) except -1 nogil:
    # The last call of every split, after all ticks and in split order; where the job stops, it is left to another one.
    cdef int32_t split
    for split in range(merge.n_splits):
        _read_up_to(merge, split, _NEVER)
        if not stops:
            _periodic_emit(merge, split, merge.last_arrival)
    _deliver(merge, <const Emission*> merge.emissions.data)
    for split in range(merge.n_splits):
        if merge.splits[split].idle:
            _append_span(&merge.idle_rows, split, merge.splits[split].idle_since, merge.last_arrival)
    return 0


# ---- alignment ---------------------------------------------------------------------------------------------------

# When nothing was emitted for as many updates as there are samples, those up to the next call are left out.


cdef inline int64_t _last_tick(SplitMerge merge, int64_t clock) noexcept nogil:
    cdef int64_t tick = tick_of(clock, merge.interval)
    return tick if tick == clock else tick - merge.interval


cdef int64_t _max_allowed_watermark(SplitMerge merge) noexcept nogil:
    # An idle split holds nobody back, nor does one that has not reported a watermark yet.
    cdef const SplitOperator* state
    cdef int64_t least = INT64_MAX
    cdef int32_t split
    for split in range(merge.n_splits):
        state = &merge.splits[split]
        if not state.idle and state.current_watermark != INT64_MIN:
            least = min(least, state.current_watermark)
    return INT64_MAX if least > INT64_MAX - merge.max_drift else least + merge.max_drift


cdef int _pause(SplitMerge merge, int32_t split, int64_t clock) except -1 nogil:
    cdef SplitOperator* state = &merge.splits[split]
    _read_up_to(merge, split, clock)
    state.paused = True
    state.paused_since = clock
    _schedule(merge, split, _last_tick(merge, clock))
    return 0


cdef int _resume(SplitMerge merge, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil:
    cdef SplitOperator* state = &merge.splits[split]
    _append_span(&merge.paused_rows, split, state.paused_since, clock)
    state.paused = False
    state.paused_ms += clock - state.paused_since
    _schedule(merge, split, last_tick)
    return 0


cdef int _find_start(SplitMerge merge) except -1 nogil:
    cdef int32_t split
    merge.start = _NEVER
    for split in range(merge.n_splits):
        merge.start = min(merge.start, merge.next_clocks[split])
    return 0


cdef int _update_alignment(SplitMerge merge) except -1 nogil:
    # All watermarks are sampled and reported, the maximum is announced, and splits are paused or resumed.
    cdef int64_t clock = merge.next_update, max_allowed = _max_allowed_watermark(merge)
    cdef int64_t* newest = merge.samples + (merge.n_updates % WATERMARK_BUFFER_SIZE) * merge.n_splits
    cdef int64_t* oldest = merge.samples + ((merge.n_updates + 1) % WATERMARK_BUFFER_SIZE) * merge.n_splits
    cdef bint changed = False
    cdef int32_t split
    for split in range(merge.n_splits):
        newest[split] = merge.splits[split].current_watermark
    for split in range(merge.n_splits):
        if (oldest[split] > max_allowed) == merge.splits[split].paused:
            continue
        changed = True
        if merge.splits[split].paused:
            _resume(merge, split, clock, _last_tick(merge, clock))
        else:
            _pause(merge, split, clock)
    _find_start(merge)
    merge.n_updates += 1
    merge.quiet_updates += 1
    merge.next_update = clock + merge.update_interval
    if merge.quiet_updates >= WATERMARK_BUFFER_SIZE and not changed and merge.start > merge.next_update:
        merge.next_update = _NEVER if merge.start == _NEVER else tick_of(merge.start, merge.update_interval)
    return 0


cdef int _resume_all(SplitMerge merge) except -1 nogil:
    # The log ends: what is paused is read with its last arrival.
    cdef int32_t split
    for split in range(merge.n_splits):
        if merge.splits[split].paused:
            _resume(merge, split, merge.last_arrival, _last_tick(merge, merge.last_arrival - 1))
    _find_start(merge)
    return 0


cdef tuple _columns(const Buffer* rows, int64_t width):
    # Steps are rows of two integers, statuses and spans of three.
    cdef int64_t i, column, n = rows.size // (width * <int64_t> sizeof(int64_t))
    cdef const int64_t* values = <const int64_t*> rows.data
    cdef int64_t[:, ::1] columns = np.empty((width, n), np.int64)
    for i in range(n):
        for column in range(width):
            columns[column, i] = values[i * width + column]
    return tuple(columns.base)


cdef int _check_grid(int64_t interval, int64_t records_interval, object updates) except -1:
    # Whether events are read before or after a tick, and before or after an update, is all that a record tells.
    intervals = [interval] if updates is None or interval == 0 else [interval, updates]
    if any(each % records_interval if records_interval else each for each in intervals):
        raise ConfigurationError(f"intervals of {intervals} ms are no multiples of that of records, {records_interval} ms")
    return 0


@cython.final
cdef class SplitMerge:
    """The operators of all splits and the valve behind them, run over the clock of a log.

    Every split has an operator of its own, that assigns timestamps and emits watermarks at the ticks and at the end
    of the log. All are opened one interval before the first tick that sees an event of the log. The emissions of a tick
    come to the valve in the order of the splits, as do those of the end of the log, which come after all ticks.

    O((records + idle spans) · log splits) time, and O(splits) for each update of an alignment unless nothing has changed;
    memory for splits, timeline steps, spans, and one window.

    Follows TimestampsAndWatermarksOperator and StatusWatermarkValve of Flink 2.3, but that ticks lie on multiples of
    the interval.

    Parameters
    ----------
    records : SplitRecords
        Of all chunks; they are read by `run`. At least one split has an event.
    interval_ms : int
        The auto-watermark interval: that of the records, or a multiple of it.
    out_of_orderness_ms, idleness_ms : int or None
        As of WatermarkGenerator.
    first_arrival_ms, last_arrival_ms : int
        The earliest and the last arrival of the log, within ±MAX_ARRIVAL_MS.
    max_drift_ms, update_interval_ms : int or None
        How closely the splits are aligned, and how often, a multiple of the interval of the records; None: not at all.
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
        object interval_ms,
        object out_of_orderness_ms,
        object idleness_ms,
        int64_t first_arrival_ms,
        int64_t last_arrival_ms,
        object max_drift_ms=None,
        object update_interval_ms=None,
        int64_t window_emissions=1 << 18,
    ):
        cdef int32_t split
        self.records = records
        self.n_splits = records.n_splits
        self.valve = StatusWatermarkValve(self.n_splits)
        self.interval = checked_interval(interval_ms)
        _check_grid(self.interval, records.interval, update_interval_ms)
        if not -_MAX_ARRIVAL <= first_arrival_ms <= last_arrival_ms <= _MAX_ARRIVAL:
            raise ConfigurationError(
                f"arrivals from {first_arrival_ms} to {last_arrival_ms} ms: the first comes not after the last, and both "
                f"are within ±{_MAX_ARRIVAL} ms"
            )
        self.opened = first_arrival_ms
        self.last_arrival = last_arrival_ms
        self.last_tick = tick_of(last_arrival_ms, records.interval)
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
            self.splits[split].current_watermark = INT64_MIN
        self.next_update = _NEVER
        if max_drift_ms is not None and self.interval:
            self._align(min(max_drift_ms, INT64_MAX), update_interval_ms)

    def __dealloc__(self):
        free(self.places)
        free(self.splits)
        free(self.next_clocks)
        free(self.samples)
        buffer_free(&self.emissions)
        buffer_free(&self.in_order)
        buffer_free(&self.step_rows)
        buffer_free(&self.status_rows)
        buffer_free(&self.idle_rows)
        buffer_free(&self.paused_rows)

    cdef int _align(self, int64_t max_drift, int64_t update_interval) except -1:
        cdef int64_t i
        self.max_drift = max_drift
        self.update_interval = update_interval
        self.next_update = tick_of(self.opened, self.update_interval)
        self.samples = <int64_t*> malloc(WATERMARK_BUFFER_SIZE * self.n_splits * sizeof(int64_t))
        if self.samples == NULL:
            raise MemoryError(f"{self.n_splits} splits")
        for i in range(WATERMARK_BUFFER_SIZE * self.n_splits):
            self.samples[i] = INT64_MIN
        return 0

    def run(self, *, bint stops=False):
        """Run to the end of the log; once.

        Parameters
        ----------
        stops : bool
            True: what the end of the log would emit, and a tick at its last arrival, are left to another log.

        Raises
        ------
        SourceError
            If the file of the records cannot be read.
        DataError
            If a record lies after the last arrival.
        """
        cdef int32_t split
        cdef int64_t last_tick = self.opened
        if self.restored and self.interval:
            last_tick = _last_tick(self, self.stopped - 1)
        with nogil:
            for split in range(self.n_splits):
                _look_ahead(self, split)
                _schedule(self, split, last_tick)
            _find_start(self)
        while self.next_update < self.last_arrival:
            self._run_up_to(self.next_update)
            with nogil:
                _update_alignment(self)
        if self.samples != NULL:
            self._run_up_to(self.last_arrival - 1)
            with nogil:
                _resume_all(self)
        self._run_up_to(self.last_arrival - 1 if stops else self.last_arrival)
        with nogil:
            _end_log(self, stops)

    cdef int _run_up_to(self, int64_t limit) except -1:
        cdef bint runs = True
        while runs:
            with nogil:
                runs = _run_window(self, limit)
            PyErr_CheckSignals()
        return 0

    def steps(self):
        """The steps of the timeline.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_steps,)
            `(clocks_ms, watermarks_ms)`: the watermarks that the valve put out, and when.
        """
        return _columns(&self.step_rows, 2)

    def statuses(self):
        """The statuses that the valve put out: all splits idle, or one active again.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_statuses,)
            `(clocks_ms, steps, idle)`: when, after how many steps of the timeline, and 1 for idle or 0 for active.
        """
        return _columns(&self.status_rows, 3)

    def idle_spans(self):
        """When which split was idle, by clock within each split; one that is idle at the end is so to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        return _columns(&self.idle_rows, 3)

    def paused_spans(self):
        """When which split was paused by alignment, by clock within each; one paused at the end is so to the last arrival.

        Returns
        -------
        tuple of numpy.ndarray of int64, each of shape (n_spans,)
            `(splits, from_ms, to_ms)`
        """
        return _columns(&self.paused_rows, 3)

    def final_watermarks(self):
        """The last watermark that each split emitted, -2**63 if none: numpy.ndarray of int64, shape (splits,)."""
        return np.array([self.splits[split].current_watermark for split in range(self.n_splits)], np.int64)

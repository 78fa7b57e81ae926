"""The operators of all splits: what they read and emit, and when each of them is called next.

An operator is called at every tick, but most calls change nothing: what matters is the call at a tick with activity, the next
one, which starts the idle count, and the one that finds the count exceeded. (A call at the opening, where there is no tick, has
no effect: the generator's clock shows 0, and it has seen no event.)
"""

import cython

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from flinkcore._native.memory cimport buffer_free, buffer_reserve
from flinkcore._native.split_records cimport next_move
from flinkcore._native.valve cimport ElementKind
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


cdef inline int _emit(SplitOperators operators, int32_t split, int64_t clock, int32_t kind, int64_t timestamp) except -1 nogil:
    cdef Emission* emission
    if operators.emissions.size + <int64_t> sizeof(Emission) > operators.emissions.capacity:
        buffer_reserve(&operators.emissions, sizeof(Emission))
    emission = <Emission*> (operators.emissions.data + operators.emissions.size)
    emission.clock = clock
    emission.timestamp = timestamp
    emission.split = split
    emission.kind = kind
    operators.emissions.size += sizeof(Emission)
    return 0


cdef inline int64_t _clock_of(SplitOperators operators, const SplitOperator* state, int64_t now) noexcept nogil:
    # The split's own clock, which stands still while it is paused.
    return (state.paused_since if state.paused else now) - operators.opened - state.paused_ms


cdef int _periodic_emit(SplitOperators operators, int32_t split, int64_t clock) except -1 nogil:
    # The operator's emitter lets a watermark pass that advances; only such a one ends idleness.
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


cdef inline int _look_ahead(SplitOperators operators, int32_t split) except -1 nogil:
    cdef SplitOperator* state = &operators.splits[split]
    state.ends = not next_move(operators.records, split, &state.ahead)
    if not state.ends and state.ahead.tick > operators.last_tick:
        with gil:
            raise DataError(
                f"split number {split} has an event at the tick of {state.ahead.tick} ms, after the last arrival of the "
                f"log, {operators.last_arrival} ms: the summaries of its chunks do not fit together"
            )
    return 0


cdef inline int _read_up_to(SplitOperators operators, int32_t split, int64_t clock) except -1 nogil:
    # What a chunk saw before the last arrival of the chunks before it has in fact arrived with that.
    cdef SplitOperator* state = &operators.splits[split]
    while not state.ends and state.ahead.tick <= clock:
        generator_on_event(&state.generator, state.ahead.timestamp)
        state.unseen = True
        _look_ahead(operators, split)
    return 0


cdef int64_t _idle_call(SplitOperators operators, const SplitOperator* state, int64_t tick) noexcept nogil:
    # The first call after a tick that starts the idle count or finds it exceeded, if nothing is read until then.
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
    ticks = (<uint64_t> state.generator.idle_timeout - <uint64_t> counted) // <uint64_t> operators.interval + 1
    if ticks > <uint64_t> (operators.last_arrival - tick) // <uint64_t> operators.interval:
        return _NEVER
    return tick + <int64_t> ticks * operators.interval


cdef inline void _schedule(SplitOperators operators, int32_t split, int64_t tick) noexcept nogil:
    # Sets when the next call is due; those up to this tick are made.
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
    elif state.ends or state.ahead.over_gap:  # else events come too often on the way, read or not, for an idle split
        due = min(due, _idle_call(operators, state, tick))
    operators.next_clocks[split] = due if due <= operators.last_arrival else _NEVER


cdef inline int _call(SplitOperators operators, int32_t split, int64_t tick) except -1 nogil:
    if not operators.splits[split].paused:
        _read_up_to(operators, split, tick)
    _periodic_emit(operators, split, tick)
    _schedule(operators, split, tick)
    return 0


cdef int operators_start(SplitOperators operators, int64_t last_tick) except -1 nogil:
    cdef int32_t split
    for split in range(operators.n):
        _look_ahead(operators, split)
        _schedule(operators, split, last_tick)
    operators_find_next(operators)
    return 0


cdef int operators_run(SplitOperators operators, int64_t until) except -1 nogil:
    cdef int64_t first = _NEVER
    cdef int32_t split
    for split in range(operators.n):
        while operators.next_clocks[split] <= until:
            _call(operators, split, operators.next_clocks[split])
        first = min(first, operators.next_clocks[split])
    operators.next_clock = first
    return 0


cdef int operators_end(SplitOperators operators, bint stops) except -1 nogil:
    cdef int32_t split
    for split in range(operators.n):
        _read_up_to(operators, split, _NEVER)
        if not stops:
            _periodic_emit(operators, split, operators.last_arrival)
    return 0


cdef int operators_pause(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil:
    cdef SplitOperator* state = &operators.splits[split]
    _read_up_to(operators, split, clock)
    state.paused = True
    state.paused_since = clock
    _schedule(operators, split, last_tick)
    return 0


cdef int operators_resume(SplitOperators operators, int32_t split, int64_t clock, int64_t last_tick) except -1 nogil:
    cdef SplitOperator* state = &operators.splits[split]
    span_append(&operators.paused_rows, split, state.paused_since, clock)
    state.paused = False
    state.paused_ms += clock - state.paused_since
    _schedule(operators, split, last_tick)
    return 0


cdef void operators_find_next(SplitOperators operators) noexcept nogil:
    cdef int32_t split
    operators.next_clock = _NEVER
    for split in range(operators.n):
        operators.next_clock = min(operators.next_clock, operators.next_clocks[split])


cdef int64_t operators_last_tick(SplitOperators operators, int64_t clock) noexcept nogil:
    cdef int64_t tick = tick_of(clock, operators.interval)
    return tick if tick == clock else tick - operators.interval


cdef int span_append(Buffer* spans, int32_t split, int64_t since, int64_t until) except -1 nogil:
    cdef Span* span
    buffer_reserve(spans, sizeof(Span))
    span = <Span*> (spans.data + spans.size)
    span.split = split
    span.since = since
    span.until = until
    spans.size += sizeof(Span)
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
        self.splits = <SplitOperator*> calloc(self.n, sizeof(SplitOperator))
        self.next_clocks = <int64_t*> malloc(self.n * sizeof(int64_t))
        if self.splits == NULL or self.next_clocks == NULL:
            raise MemoryError(f"{self.n} splits")
        for split in range(self.n):
            generator_set_up(&self.splits[split].generator, out_of_orderness_ms, idleness_ms)
            self.splits[split].current_watermark = INT64_MIN

    def __dealloc__(self):
        free(self.splits)
        free(self.next_clocks)
        buffer_free(&self.emissions)
        buffer_free(&self.paused_rows)

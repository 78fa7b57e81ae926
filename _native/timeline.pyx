"""The summaries of chunks, in log order, made into what the operators of all splits emit; and the clock of events."""

import cython
import numpy as np

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from flinkcore._native.arrow cimport Buffer, buffer_free, buffer_reserve
from flinkcore._native.valve cimport ElementKind
from flinkcore._native.watermarks cimport (
    GeneratorOutput,
    RecordKind,
    check_codes,
    checked_interval,
    generator_on_event,
    generator_on_periodic_emit,
    generator_set_up,
    idle_wait_of,
    tick_of,
)

from flinkcore.errors import ConfigurationError, DataError

cdef enum:
    _DIGIT_BITS = 11
    _DIGITS = 1 << 11

cdef enum:
    BEYOND_ALL_ARRIVALS = 0x4000000000000000


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


cdef int _move_to(SplitMerge merge, int32_t split, int64_t tick) except -1 nogil:
    # On to a tick with activity, with no idleness on the way.
    cdef SplitOperator* state = &merge.splits[split]
    if tick > state.tick:
        _periodic_emit(merge, split, state.tick)
        state.tick = tick
    # There was some event; one with a timestamp that matters comes as a step.
    generator_on_event(&state.generator, INT64_MIN)
    return 0


cdef int _move_over_gap(SplitMerge merge, int32_t split, int64_t tick) except -1 nogil:
    # On to the next tick with activity.
    cdef SplitOperator* state = &merge.splits[split]
    cdef int64_t last = state.tick
    if tick > last and <uint64_t> tick - <uint64_t> last > merge.idle_wait:
        _periodic_emit(merge, split, last)
        _periodic_emit(merge, split, last + merge.interval)
        _periodic_emit(merge, split, last + <int64_t> merge.idle_wait)
        state.tick = tick
    return _move_to(merge, split, tick)


cdef int _last_ticks(SplitMerge merge, int32_t split, int64_t last_arrival) except -1 nogil:
    # The periodic calls after the last event of the split, up to the last arrival of the log.
    cdef int64_t tick = merge.splits[split].tick
    if merge.interval == 0 or tick > last_arrival:
        return 0
    _periodic_emit(merge, split, tick)
    if tick + merge.interval <= last_arrival:
        _periodic_emit(merge, split, tick + merge.interval)
    if <uint64_t> last_arrival - <uint64_t> tick >= merge.idle_wait:
        _periodic_emit(merge, split, tick + <int64_t> merge.idle_wait)
    return 0


# ---- all splits --------------------------------------------------------------------------------------------------


cdef inline uint64_t _digit(const Emission* emission, bint by_split, int64_t opened, int shift) noexcept nogil:
    cdef uint64_t key = <uint64_t> emission.split if by_split else <uint64_t> emission.clock - <uint64_t> opened
    return (key >> shift) & (_DIGITS - 1)


cdef bint _sort_by_digit(
    const Emission* emissions, Emission* sorted_emissions, int64_t n, bint by_split, int64_t opened, int shift
) noexcept nogil:
    # Stable; false, and nothing done, if all have the same digit.
    cdef int64_t[_DIGITS] places
    cdef int64_t i, count, place = 0
    cdef int digit
    memset(places, 0, sizeof(places))
    for i in range(n):
        places[_digit(&emissions[i], by_split, opened, shift)] += 1
    if places[_digit(&emissions[0], by_split, opened, shift)] == n:
        return False
    for digit in range(_DIGITS):
        count = places[digit]
        places[digit] = place
        place += count
    for i in range(n):
        digit = <int> _digit(&emissions[i], by_split, opened, shift)
        sorted_emissions[places[digit]] = emissions[i]
        places[digit] += 1
    return True


cdef int _sort_emissions(SplitMerge merge) except -1 nogil:
    # By clock, then split; a split's emissions at one clock keep their order.
    cdef Buffer other
    cdef int64_t n = merge.emissions.size // <int64_t> sizeof(Emission)
    cdef int64_t last_clock = merge.opened, i
    cdef int shift
    if n == 0 or merge.n_splits == 1:
        return 0
    memset(&other, 0, sizeof(Buffer))
    buffer_reserve(&other, merge.emissions.size)
    other.size = merge.emissions.size
    for i in range(n):
        last_clock = max(last_clock, (<Emission*> merge.emissions.data)[i].clock)
    shift = 0
    while <uint64_t> merge.n_splits >> shift:
        if _sort_by_digit(<Emission*> merge.emissions.data, <Emission*> other.data, n, True, merge.opened, shift):
            merge.emissions, other = other, merge.emissions
        shift += _DIGIT_BITS
    shift = 0
    while shift < 64 and (<uint64_t> last_clock - <uint64_t> merge.opened) >> shift:
        if _sort_by_digit(<Emission*> merge.emissions.data, <Emission*> other.data, n, False, merge.opened, shift):
            merge.emissions, other = other, merge.emissions
        shift += _DIGIT_BITS
    buffer_free(&other)
    return 0


# ---- chunks ------------------------------------------------------------------------------------------------------


cdef int _add_record(SplitMerge merge, int32_t split, int32_t kind, int64_t first, int64_t second) except -1 nogil:
    _move_to(merge, split, first)
    if kind == RecordKind.STEP:
        generator_on_event(&merge.splits[split].generator, second)
        return 0
    return _move_over_gap(merge, split, second)


@cython.final
cdef class SplitMerge:
    """The operators of all splits, run over the summaries of the chunks in log order.

    Every split has an operator of its own, that assigns timestamps and emits watermarks at the ticks and at the end
    of the log. All are opened one interval before the first tick that sees an event of the log.

    Follows TimestampsAndWatermarksOperator of Flink 2.3, but that ticks lie on multiples of the interval.

    Parameters
    ----------
    splits : int
        Number of splits.
    out_of_orderness_ms, idleness_ms : int or None
        As of WatermarkGenerator.
    interval_ms : int
        As of TimeSummary.
    first_arrival_ms : int
        The earliest arrival of the log.

    Raises
    ------
    ConfigurationError
        If a parameter is out of its range.
    """

    def __cinit__(
        self,
        *,
        int32_t splits,
        object out_of_orderness_ms,
        object idleness_ms,
        object interval_ms,
        int64_t first_arrival_ms,
    ):
        cdef int32_t split
        self.interval = checked_interval(interval_ms)
        self.idle_wait = idle_wait_of(self.interval, idleness_ms)
        self.opened = first_arrival_ms
        if self.interval:
            self.opened = tick_of(first_arrival_ms, self.interval) - self.interval
        self.splits = <SplitOperator*> calloc(splits + 1, sizeof(SplitOperator))
        if self.splits == NULL:
            raise MemoryError(f"{splits} splits")
        self.n_splits = splits
        for split in range(splits):
            generator_set_up(&self.splits[split].generator, out_of_orderness_ms, idleness_ms)
            self.splits[split].tick = self.opened
            self.splits[split].current_watermark = INT64_MIN

    def __dealloc__(self):
        free(self.splits)
        buffer_free(&self.emissions)

    def add_chunk(
        self,
        const int32_t[::1] splits not None,
        const int64_t[::1] events not None,
        const int64_t[::1] first_arrivals_ms not None,
        const int64_t[::1] last_arrivals_ms not None,
        const int64_t[::1] max_timestamps_ms not None,
        const int32_t[::1] record_splits not None,
        const int32_t[::1] record_kinds not None,
        const int64_t[::1] record_first not None,
        const int64_t[::1] record_second not None,
    ):
        """Take in the summary of the next chunk.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_splits,)
            Number among all splits of each split of the chunk.
        events, first_arrivals_ms, last_arrivals_ms, max_timestamps_ms : numpy.ndarray of int64, shape (n_splits,)
            As of TimeSummary.
        record_splits, record_kinds : numpy.ndarray of int32, shape (n_records,)
        record_first, record_second : numpy.ndarray of int64, shape (n_records,)
            As of TimeSummary.

        Raises
        ------
        DataError
            If the columns do not fit together.
        """
        cdef int64_t i, n = splits.shape[0]
        cdef int32_t split
        if not (
            n == events.shape[0] == first_arrivals_ms.shape[0] == last_arrivals_ms.shape[0]
            and n == max_timestamps_ms.shape[0]
            and record_splits.shape[0] == record_kinds.shape[0] == record_first.shape[0] == record_second.shape[0]
        ):
            raise DataError("the columns of a chunk's summary differ in length")
        check_codes(splits, self.n_splits)
        check_codes(record_splits, n)
        with nogil:
            for i in range(n):
                if events[i]:
                    _move_over_gap(self, splits[i], tick_of(first_arrivals_ms[i], self.interval))
            for i in range(record_splits.shape[0]):
                _add_record(self, splits[record_splits[i]], record_kinds[i], record_first[i], record_second[i])
            for i in range(n):
                if events[i]:
                    split = splits[i]
                    _move_to(self, split, tick_of(last_arrivals_ms[i], self.interval))
                    generator_on_event(&self.splits[split].generator, max_timestamps_ms[i])

    def finish(self, int64_t last_arrival_ms):
        """The periodic calls up to the end of the log, and the last call of every split there.

        Parameters
        ----------
        last_arrival_ms : int
            The last arrival of the log.

        Returns
        -------
        tuple of numpy.ndarray, each of shape (n_emissions,)
            `(clocks_ms int64, splits int32, kinds int8, timestamps_ms int64)`: what was emitted, in order. The
            emissions of a tick are in the order of the splits, as are those of the end of the log, which come after
            all ticks.
        """
        cdef int32_t split
        cdef int64_t i, n
        cdef Emission* emissions
        with nogil:
            for split in range(self.n_splits):
                _last_ticks(self, split, last_arrival_ms)
            _sort_emissions(self)
            for split in range(self.n_splits):
                _periodic_emit(self, split, last_arrival_ms)
        n = self.emissions.size // <int64_t> sizeof(Emission)
        emissions = <Emission*> self.emissions.data
        clocks, splits, kinds, timestamps = (
            np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int8), np.empty(n, np.int64)
        )
        cdef int64_t[::1] clock = clocks, timestamp = timestamps
        cdef int32_t[::1] split_of = splits
        cdef signed char[::1] kind = kinds
        for i in range(n):
            clock[i] = emissions[i].clock
            split_of[i] = emissions[i].split
            kind[i] = <signed char> emissions[i].kind
            timestamp[i] = emissions[i].timestamp
        buffer_free(&self.emissions)
        return clocks, splits, kinds, timestamps

    def final_watermarks(self):
        """The last watermark that each split emitted, -2**63 if none: numpy.ndarray of int64, shape (splits,)."""
        return np.array([self.splits[split].current_watermark for split in range(self.n_splits)], np.int64)


# ---- the clock of events -----------------------------------------------------------------------------------------


cdef inline int64_t _arrival_by_rate(int64_t position, int64_t start, double rate) noexcept nogil:
    # The conversion truncates, which is the floor of what is never negative.
    cdef double elapsed = <double> position * 1000.0 / rate
    if elapsed >= <double> BEYOND_ALL_ARRIVALS:
        return BEYOND_ALL_ARRIVALS
    return start + <int64_t> elapsed


def arrivals_by_rate(
    const int64_t[::1] positions not None,
    const int32_t[::1] codes not None,
    const int64_t[::1] bases not None,
    object arrival_start_ms,
    double rate,
):
    """Arrivals of events that have none recorded: arrival_start_ms + floor(position in the split · 1000 / rate).

    Parameters
    ----------
    positions : numpy.ndarray of int64, shape (n_rows,)
        Position of each row in its split within the chunk.
    codes : numpy.ndarray of int32, shape (n_rows,)
        Index into `bases`.
    bases : numpy.ndarray of int64, shape (n_codes,)
        Rows of the code's split in the chunks before.
    arrival_start_ms : int
        Within ±2**61.
    rate : float
        Records per second of each split, greater than 0.

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)
        Arrivals beyond 64 bits are 2**62, beyond all that are accepted.

    Raises
    ------
    ConfigurationError
        If the rate or the start is out of its range.
    DataError
        If a code does not exist.
    """
    cdef int64_t i, n = positions.shape[0], start
    if not (rate > 0 and rate * 0 == 0):
        raise ConfigurationError(f"the rate must be a number of records per second greater than zero, not {rate}")
    if not -(2**61) <= arrival_start_ms <= 2**61:
        raise ConfigurationError(
            f"the arrival of the first record must be within 2**61 ms of the epoch, not {arrival_start_ms}"
        )
    start = arrival_start_ms
    if codes.shape[0] != n:
        raise DataError(f"{n} positions and {codes.shape[0]} split codes: not one each")
    check_codes(codes, bases.shape[0])
    cdef int64_t[::1] arrivals = np.empty(n, np.int64)
    with nogil:
        for i in range(n):
            arrivals[i] = _arrival_by_rate(bases[codes[i]] + positions[i], start, rate)
    return arrivals.base


def order_events(
    const int64_t[::1] arrivals_ms not None,
    const int64_t[::1] positions not None,
    const int32_t[::1] codes not None,
    const int32_t[::1] places not None,
    const int32_t[::1] splits not None,
    const int64_t[::1] bases not None,
    int64_t[::1] running_arrivals_ms not None,
):
    """Place of events in the total order of a replay.

    Parameters
    ----------
    arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        As recorded.
    positions : numpy.ndarray of int64, shape (n_rows,)
        Position of each row in its split within the chunk.
    codes : numpy.ndarray of int32, shape (n_rows,)
        Index into `places`.
    places : numpy.ndarray of int32, shape (n_codes,)
        Index into the following.
    splits : numpy.ndarray of int32, shape (n_splits,)
        Numbers of the chunk's splits.
    bases : numpy.ndarray of int64, shape (n_splits,)
        Rows of each split in the chunks before.
    running_arrivals_ms : numpy.ndarray of int64, shape (n_splits,)
        Maximum arrival of each split so far; it is carried on.

    Returns
    -------
    tuple of numpy.ndarray, each of shape (n_rows,)
        `(arrivals_ms int64, splits int32, positions int64)`: the running maximum of the arrivals in each split, the
        number of the split, and the position in the whole split.

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    cdef int64_t i, n = arrivals_ms.shape[0], n_splits = splits.shape[0]
    cdef int32_t place
    if positions.shape[0] != n or codes.shape[0] != n:
        raise DataError(f"{n} arrivals, {positions.shape[0]} positions and {codes.shape[0]} split codes: not one each")
    if bases.shape[0] != n_splits or running_arrivals_ms.shape[0] != n_splits:
        raise DataError(
            f"{n_splits} splits, {bases.shape[0]} bases, {running_arrivals_ms.shape[0]} arrivals: not one each"
        )
    check_codes(codes, places.shape[0])
    check_codes(places, n_splits)
    cdef int64_t[::1] arrival_of = np.empty(n, np.int64), position_of = np.empty(n, np.int64)
    cdef int32_t[::1] split_of = np.empty(n, np.int32)
    with nogil:
        for i in range(n):
            place = places[codes[i]]
            running_arrivals_ms[place] = max(running_arrivals_ms[place], arrivals_ms[i])
            arrival_of[i] = running_arrivals_ms[place]
            split_of[i] = splits[place]
            position_of[i] = bases[place] + positions[i]
    return arrival_of.base, split_of.base, position_of.base

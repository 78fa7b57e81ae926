"""Watermark generators of single splits, and summaries of columns of times for them.

Periodic calls happen at ticks, the multiples of the interval on the epoch; a tick sees all events that arrive up to it.
Nothing a generator puts out depends on more of its events than the running maximum of their timestamps, and which ticks
saw any; that is all a summary of a column keeps.
"""

import cython
import numpy as np

from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_reserve

from flinkcore.errors import ConfigurationError, DataError

# Bounds within which no tick, and no difference of two clocks, leaves 64 bits.
MAX_ARRIVAL_MS = 2**61
MAX_INTERVAL_MS = 2**60

cdef int64_t _MAX_ARRIVAL = MAX_ARRIVAL_MS

_SPLIT_COLUMNS = (
    "events",
    "regressions",
    "first_arrival_ms",
    "recorded_arrival_ms",
    "last_arrival_ms",
    "min_timestamp_ms",
    "max_timestamp_ms",
    "n_records",
)


# ---- one generator -----------------------------------------------------------------------------------------------


cdef int generator_set_up(Generator* generator, object out_of_orderness_ms, object idleness_ms) except -1:
    memset(generator, 0, sizeof(Generator))
    if out_of_orderness_ms is not None and not 0 <= out_of_orderness_ms <= INT64_MAX:
        raise ConfigurationError(f"the out-of-orderness must be from 0 to 2**63 - 1 ms, not {out_of_orderness_ms}")
    if idleness_ms is not None and idleness_ms <= 0:
        raise ConfigurationError(f"the idle timeout must be greater than zero, not {idleness_ms} ms")
    generator.generates = out_of_orderness_ms is not None
    generator.delay = out_of_orderness_ms or 0
    generator.max_timestamp = INT64_MIN
    if generator.generates:
        generator.max_timestamp = <int64_t> (<uint64_t> INT64_MIN + <uint64_t> generator.delay + 1)
    generator.detects_idleness = idleness_ms is not None
    generator.idle_timeout = min(idleness_ms or 0, INT64_MAX)
    return 0


cdef inline void generator_on_event(Generator* generator, int64_t timestamp) noexcept nogil:
    if timestamp > generator.max_timestamp:
        generator.max_timestamp = timestamp
    generator.activity = True
    generator.is_idle_now = False


cdef bint _check_if_idle(Generator* generator, int64_t clock) noexcept nogil:
    if generator.activity:
        generator.activity = False
        generator.inactive_since = 0
        return False
    if generator.inactive_since == 0:
        generator.inactive_since = clock
        return False
    return <int64_t> (<uint64_t> clock - <uint64_t> generator.inactive_since) > generator.idle_timeout


cdef int generator_on_periodic_emit(Generator* generator, int64_t clock, int64_t* watermark) noexcept nogil:
    if generator.detects_idleness and _check_if_idle(generator, clock):
        if generator.is_idle_now:
            return 0
        generator.is_idle_now = True
        return GeneratorOutput.MARKS_IDLE
    if not generator.generates:
        return 0
    watermark[0] = generator.max_timestamp - generator.delay - 1
    return GeneratorOutput.GENERATES_WATERMARK


@cython.final
cdef class WatermarkGenerator:
    """The watermark generator of one split: bounded out-of-orderness, if any, with idleness, if any.

    Follows BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks (an out-of-orderness of 0),
    NoWatermarksGenerator and, around them, WatermarksWithIdleness of Flink 2.3. What it puts out is not filtered: a
    watermark comes with every periodic call, the minimum before the first event.

    Parameters
    ----------
    out_of_orderness_ms : int or None
        From 0 to 2**63 - 1; the watermark is the maximum timestamp - out_of_orderness_ms - 1, and never wraps around.
        None: no watermarks.
    idleness_ms : int or None
        The idle timeout, greater than 0. None: never idle.

    Raises
    ------
    ConfigurationError
        If a parameter is out of its range.
    """

    def __cinit__(self, out_of_orderness_ms, idleness_ms=None):
        generator_set_up(&self.generator, out_of_orderness_ms, idleness_ms)

    def on_event(self, int64_t timestamp_ms):
        """Take in an event with this timestamp."""
        generator_on_event(&self.generator, timestamp_ms)

    def on_periodic_emit(self, int64_t clock_ms):
        """Put out the watermark, or idleness.

        Idleness counts from the first periodic call without an event since the one before, and needs strictly more than
        the timeout. A clock of 0 means, as in Flink, that the count has not begun.

        Parameters
        ----------
        clock_ms : int

        Returns
        -------
        list of tuple
            `[("watermark", timestamp_ms)]`, `[("status", "idle")]`, or nothing.
        """
        cdef int64_t watermark = 0
        cdef int output = generator_on_periodic_emit(&self.generator, clock_ms, &watermark)
        if output & GeneratorOutput.GENERATES_WATERMARK:
            return [("watermark", watermark)]
        return [("status", "idle")] if output & GeneratorOutput.MARKS_IDLE else []


# ---- ticks -------------------------------------------------------------------------------------------------------


cdef uint64_t idle_wait_of(int64_t interval, object idleness_ms) except? 1:
    # How long after a tick with activity the tick lies that finds the split idle: the next one starts the count.
    if idleness_ms is None or interval == 0:
        return UINT64_MAX
    return min(interval * (2 + idleness_ms // interval), UINT64_MAX)


cdef int64_t checked_interval(object interval_ms) except? -1:
    if not 0 <= interval_ms <= MAX_INTERVAL_MS:
        raise ConfigurationError(f"the auto-watermark interval must be from 0 to 2**60 ms, not {interval_ms}")
    return interval_ms


# ---- the summary of a chunk --------------------------------------------------------------------------------------


cdef inline int _record(Buffer* records, int32_t split, int32_t kind, int64_t first, int64_t second) except -1 nogil:
    cdef Record* record
    if records.size + <int64_t> sizeof(Record) > records.capacity:
        buffer_reserve(records, sizeof(Record))
    record = <Record*> (records.data + records.size)
    record.split = split
    record.kind = kind
    record.first = first
    record.second = second
    records.size += sizeof(Record)
    return 0


cdef int _next_tick(TimeSummary summary, SplitTimes* times, int32_t split, int64_t arrival) except -1 nogil:
    # An event has arrived after the tick of those before it, or is the first.
    cdef int64_t tick
    if times.tick == INT64_MIN:
        if times.events == 0:
            times.first_arrival = times.recorded_arrival = arrival
        times.tick = tick_of(arrival, summary.interval)
        return 0
    if <uint64_t> arrival - <uint64_t> times.tick <= <uint64_t> summary.interval:
        tick = <int64_t> (<uint64_t> times.tick + <uint64_t> summary.interval)
    else:
        tick = tick_of(arrival, summary.interval)
    _record_step(summary, times, split)
    if <uint64_t> tick - <uint64_t> times.tick > summary.idle_wait:
        _record(&summary.records, split, RecordKind.GAP, times.tick, tick)
    times.tick = tick
    return 0


cdef inline int _record_step(TimeSummary summary, SplitTimes* times, int32_t split) except -1 nogil:
    if summary.steps and (times.max_timestamp > times.step or not times.stepped):
        _record(&summary.records, split, RecordKind.STEP, times.tick, times.max_timestamp)
        times.step = times.max_timestamp
        times.stepped = True
    return 0


cdef int64_t _update_one(
    TimeSummary summary, int32_t split, const int64_t* arrivals, const int64_t* timestamps, int64_t n
) except? -1 nogil:
    # The earliest arrival of these events, with the running maximum taken.
    cdef SplitTimes times = summary.splits[split]
    cdef int64_t i, arrival, timestamp, earliest = max(times.arrival, arrivals[0])
    for i in range(n):
        arrival = arrivals[i]
        timestamp = timestamps[i]
        if arrival > times.tick:
            _next_tick(summary, &times, split, arrival)
        times.events += 1
        times.regressions += arrival < times.recorded_arrival
        times.recorded_arrival = arrival
        times.arrival = max(times.arrival, arrival)
        times.max_timestamp = max(times.max_timestamp, timestamp)
        times.min_timestamp = min(times.min_timestamp, timestamp)
    summary.splits[split] = times
    return earliest


cdef int64_t _update_many(
    TimeSummary summary,
    const int32_t* codes,
    const int32_t* splits,
    const int64_t* arrivals,
    const int64_t* timestamps,
    int64_t n,
) except? -1 nogil:
    cdef SplitTimes* all_times = summary.splits
    cdef SplitTimes* times
    cdef int64_t i, arrival, timestamp, earliest = INT64_MAX
    cdef int32_t split
    for i in range(n):
        split = splits[codes[i]]
        times = &all_times[split]
        arrival = arrivals[i]
        timestamp = timestamps[i]
        if arrival > times.tick:
            _next_tick(summary, times, split, arrival)
        times.events += 1
        times.regressions += arrival < times.recorded_arrival
        times.recorded_arrival = arrival
        times.arrival = max(times.arrival, arrival)
        earliest = min(earliest, times.arrival)
        times.max_timestamp = max(times.max_timestamp, timestamp)
        times.min_timestamp = min(times.min_timestamp, timestamp)
    return earliest


cdef int check_codes(const int32_t[::1] codes, int64_t n_codes) except -1:
    cdef int64_t row
    for row in range(codes.shape[0]):
        if codes[row] < 0 or codes[row] >= n_codes:
            raise DataError(f"row {row}: split code {codes[row]}, but there are {n_codes} splits, counted from 0")
    return 0


cdef int _check_splits(const int32_t[::1] splits, int32_t n_splits) except -1:
    cdef int64_t code
    if splits.shape[0] == 0:
        raise DataError("rows without a split")
    for code in range(splits.shape[0]):
        if splits[code] < 0 or splits[code] >= n_splits:
            raise DataError(f"split number {splits[code]}, but there is room for {n_splits}, counted from 0")
    return 0


cdef int _check_arrivals(TimeSummary summary, const int32_t[::1] splits) except -1:
    cdef int64_t code, bad
    cdef SplitTimes* times
    for code in range(splits.shape[0]):
        times = &summary.splits[splits[code]]
        if times.events and not (-_MAX_ARRIVAL <= times.first_arrival and times.arrival <= _MAX_ARRIVAL):
            bad = times.arrival if times.arrival > _MAX_ARRIVAL else times.first_arrival
            raise DataError(f"arrival {bad} is beyond 2**61 ms from the epoch; check the unit of the arrival column")
    return 0


@cython.final
cdef class TimeSummary:
    """What the timeline needs to know of the events of one chunk, per split.

    Kept per split: the number of events, the first and last arrival, the extremes of the timestamps; and a record for
    each tick at which the maximum timestamp has grown, and each gap between ticks with activity that is long enough
    for the split to turn idle. So the memory is bounded by the ticks, not by the events. The arrivals need not be
    ordered: that of an event is the running maximum within its split.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval, from 0 to MAX_INTERVAL_MS; 0: no ticks, hence no records.
    idleness_ms : int or None
        The idle timeout. None: gaps are not recorded.
    steps : bool
        False: the generator puts out no watermarks, and growing timestamps are not recorded.

    Raises
    ------
    ConfigurationError
        If the interval is out of its range.
    """

    def __cinit__(self, *, object interval_ms, object idleness_ms, bint steps):
        self.interval = checked_interval(interval_ms)
        self.idle_wait = idle_wait_of(self.interval, idleness_ms)
        self.steps = steps and self.interval > 0

    def __dealloc__(self):
        free(self.splits)
        buffer_free(&self.records)

    def reserve(self, int32_t splits):
        """Make room for splits numbered below `splits`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t capacity = max(splits, 2 * self.capacity), split
        cdef SplitTimes* grown
        if splits > self.capacity:
            grown = <SplitTimes*> realloc(self.splits, capacity * sizeof(SplitTimes))
            if grown == NULL:
                raise MemoryError(f"{capacity} splits")
            self.splits = grown
            for split in range(self.capacity, capacity):
                memset(&grown[split], 0, sizeof(SplitTimes))
                grown[split].tick = grown[split].first_arrival = grown[split].arrival = INT64_MIN
                grown[split].max_timestamp = INT64_MIN
                grown[split].min_timestamp = INT64_MAX
            self.capacity = capacity
        self.n_splits = max(self.n_splits, splits)

    def update(
        self,
        const int32_t[::1] codes not None,
        const int32_t[::1] splits not None,
        const int64_t[::1] arrivals_ms not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Take in events, in the order of the log.

        Parameters
        ----------
        codes : numpy.ndarray of int32, shape (n_rows,)
            Index into `splits`; not read where there is one split only.
        splits : numpy.ndarray of int32, shape (n_codes,)
            Number of each code's split; room for it was made by `reserve`.
        arrivals_ms, timestamps_ms : numpy.ndarray of int64, shape (n_rows,)

        Returns
        -------
        int or None
            The earliest arrival of these events, as the running maximum makes it; None without events.

        Raises
        ------
        DataError
            If the columns do not fit together, or an arrival is beyond ±MAX_ARRIVAL_MS.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = timestamps_ms.shape[0], earliest
        cdef int32_t split
        if arrivals_ms.shape[0] != n or codes.shape[0] != n:
            raise DataError(
                f"{n} timestamps, {arrivals_ms.shape[0]} arrivals and {codes.shape[0]} split codes: not one each"
            )
        if n == 0:
            return None
        _check_splits(splits, self.n_splits)
        if splits.shape[0] == 1:
            with nogil:
                earliest = _update_one(self, splits[0], &arrivals_ms[0], &timestamps_ms[0], n)
        else:
            check_codes(codes, splits.shape[0])
            with nogil:
                earliest = _update_many(self, &codes[0], &splits[0], &arrivals_ms[0], &timestamps_ms[0], n)
        _check_arrivals(self, splits)
        return earliest

    def finish(self):
        """The summary, as columns; no event can be taken in afterwards.

        Returns
        -------
        tuple of dict of str to numpy.ndarray, and numpy.ndarray
            Per split, int64: `events`, `regressions` (how often the recorded arrival went back from one event to the
            next), `first_arrival_ms`, `recorded_arrival_ms` (of the last event), `last_arrival_ms` (their maximum),
            `min_timestamp_ms`, `max_timestamp_ms`, `n_records`; the times without meaning where there are no events.
            Then the records by split, and in order within each, int64 of shape (2 * n_records,): each is twice its tick
            and the maximum timestamp there; or, for a gap, twice its first tick plus one, and its second tick.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t split
        cdef int64_t i, n, place = 0
        cdef Record* records
        cdef PackedRecord* packed
        cdef SplitTimes* times
        for split in range(self.n_splits):
            if self.splits[split].events:
                _record_step(self, &self.splits[split], split)
        cdef int64_t[:, ::1] columns = np.zeros((8, self.n_splits), np.int64)
        n = self.records.size // <int64_t> sizeof(Record)
        records = <Record*> self.records.data
        for i in range(n):
            columns[7, records[i].split] += 1
        cdef int64_t[::1] places = np.empty(self.n_splits, np.int64), packed_records = np.empty(2 * n, np.int64)
        for split in range(self.n_splits):
            times = &self.splits[split]
            columns[0, split] = times.events
            columns[1, split] = times.regressions
            columns[2, split] = times.first_arrival
            columns[3, split] = times.recorded_arrival
            columns[4, split] = times.arrival
            columns[5, split] = times.min_timestamp
            columns[6, split] = times.max_timestamp
            places[split] = place
            place += columns[7, split]
        for i in range(n):
            packed = <PackedRecord*> &packed_records[2 * places[records[i].split]]
            packed.place = 2 * records[i].first + records[i].kind
            packed.value = records[i].second
            places[records[i].split] += 1
        buffer_free(&self.records)
        return dict(zip(_SPLIT_COLUMNS, columns.base)), packed_records.base

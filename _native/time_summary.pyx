"""The summary of a chunk's times: all that generators emit depends on, without the events.

A tick is a multiple of the auto-watermark interval since the epoch. Generators are called at ticks, and a tick sees all events
that arrive up to it. The output of a generator depends only on the running maximum of its events' timestamps and on which ticks
saw an event, so a summary keeps these two per split.
"""

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.event_log cimport MAX_ARRIVAL, check_offsets
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free, grow


MAX_INTERVAL_MS = 2**60  # so that no tick leaves 64 bits, as MAX_ARRIVAL


# ---- ticks -------------------------------------------------------------------------------------------------------


cdef uint64_t _idle_wait_of(int64_t interval, object idleness_ms) except? 1:
    # Time from a tick with activity to the tick that finds the split idle: the next tick starts the idle count. 2**64 - 1 if no
    # tick does.
    if idleness_ms is None or interval == 0:
        return UINT64_MAX
    return min(interval * (2 + idleness_ms // interval), UINT64_MAX)


cdef int64_t checked_interval(object interval_ms) except? -1:
    if not 0 <= interval_ms <= MAX_INTERVAL_MS:
        raise ConfigurationError(f"the auto-watermark interval must be from 0 to 2**60 ms, not {interval_ms}")
    return interval_ms


# ---- the summary of a chunk --------------------------------------------------------------------------------------


cdef struct Record:
    int64_t first
    int64_t second
    int32_t split
    int32_t kind


_SPLIT_COLUMNS = (
    "events",
    "regressions",
    "raised",
    "first_arrival_ms",
    "recorded_arrival_ms",
    "last_arrival_ms",
    "min_timestamp_ms",
    "max_timestamp_ms",
    "n_records",
)


cdef inline int _record(Buffer* records, int32_t split, int32_t kind, int64_t first, int64_t second) except -1 nogil:
    cdef Record* record = <Record*> buffer_append(records, sizeof(Record))
    record.split = split
    record.kind = kind
    record.first = first
    record.second = second
    return 0


cdef int _next_tick(TimeSummary summary, SplitTimes* times, int32_t split, int64_t arrival) except -1 nogil:
    # Called for an event that arrives after the tick of the events before it, or for the first event of a split.
    cdef int64_t tick
    if times.tick == INT64_MIN:
        if times.events == 0:
            times.first_arrival = times.recorded_arrival = arrival
        times.tick = tick_of(arrival, summary.interval)
        return 0
    # Unsigned: the difference of two arrivals may pass 2**63. Events mostly arrive in the next interval, which saves a
    # division.
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


cdef int64_t _update_split(
    TimeSummary summary, int32_t split, const int64_t* arrivals, const int64_t* timestamps, int64_t n
) except? -1 nogil:
    # Returns the earliest arrival of these events; each arrival is the running maximum within the split.
    # A copy, which the compiler keeps in registers through the loop.
    cdef SplitTimes times = summary.splits[split]
    cdef int64_t i, arrival, timestamp, earliest = max(times.arrival, arrivals[0])
    for i in range(n):
        arrival = arrivals[i]
        timestamp = timestamps[i]
        # Arrivals that go back belong to the tick of the running maximum: their split has arrived there already.
        if arrival > times.tick:
            _next_tick(summary, &times, split, arrival)
        times.events += 1
        times.regressions += arrival < times.recorded_arrival
        times.raised += arrival < times.arrival
        times.recorded_arrival = arrival
        times.arrival = max(times.arrival, arrival)
        times.max_timestamp = max(times.max_timestamp, timestamp)
        times.min_timestamp = min(times.min_timestamp, timestamp)
    summary.splits[split] = times
    return earliest


cdef int _check_splits(const int32_t[::1] splits, int32_t n_splits) except -1:
    cdef int64_t code
    for code in range(splits.shape[0]):
        if splits[code] < 0 or splits[code] >= n_splits:
            raise DataError(f"split number {splits[code]}, but there is room for {n_splits}, counted from 0")
    return 0


cdef int _check_arrivals(TimeSummary summary, const int32_t[::1] splits) except -1:
    cdef int64_t code, bad
    cdef SplitTimes* times
    for code in range(splits.shape[0]):
        times = &summary.splits[splits[code]]
        if times.events and not (-MAX_ARRIVAL <= times.first_arrival and times.arrival <= MAX_ARRIVAL):
            bad = times.arrival if times.arrival > MAX_ARRIVAL else times.first_arrival
            raise DataError(f"arrival {bad} is further than 2**61 ms from the epoch")
    return 0


@cython.final
cdef class TimeSummary:
    """Summary of one chunk for the timeline: the times of its events, per split.

    A summary keeps per split the number of events, the first and last arrival and the extremes of the timestamps; and a record
    for each tick at which the maximum timestamp has grown, and for each gap between ticks with activity that is long enough for
    the split to turn idle. So the memory is bounded by the ticks, not by the events. The arrivals need not be ordered: that of
    an event is the running maximum within its split.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval, from 0 to MAX_INTERVAL_MS. With 0 there are no ticks, hence no records.
    idleness_ms : int or None
        The idle timeout, or None if gaps are not recorded.
    steps : bool
        False if the generator emits no watermarks; growing timestamps are then not recorded.

    Raises
    ------
    ConfigurationError
        If the interval is out of its range.
    """

    def __cinit__(self, *, object interval_ms, object idleness_ms, bint steps):
        self.interval = checked_interval(interval_ms)
        self.idle_wait = _idle_wait_of(self.interval, idleness_ms)
        self.steps = steps and self.interval > 0

    def __dealloc__(self):
        free(self.splits)
        buffer_free(&self.records)

    def reserve(self, int32_t splits):
        """Make room for splits numbered below `splits`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t capacity = max(splits, 2 * self.capacity), split
        if splits > self.capacity:
            self.splits = <SplitTimes*> grow(self.splits, capacity * sizeof(SplitTimes), b"the splits of a chunk")
            for split in range(self.capacity, capacity):
                memset(&self.splits[split], 0, sizeof(SplitTimes))
                self.splits[split].tick = self.splits[split].first_arrival = self.splits[split].arrival = INT64_MIN
                self.splits[split].max_timestamp = INT64_MIN
                self.splits[split].min_timestamp = INT64_MAX
            self.capacity = capacity
        self.n_splits = max(self.n_splits, splits)

    def update(
        self,
        const int32_t[::1] splits not None,
        const int64_t[::1] offsets not None,
        const int64_t[::1] arrivals_ms not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Take in events, those of each split in the order of the log.

        Parameters
        ----------
        splits : numpy.ndarray of int32, shape (n_codes,)
            Numbers of the splits, for which `reserve` has made room.
        offsets : numpy.ndarray of int64, shape (n_codes + 1,)
            Start of each split's events, followed by the end of the last ones: see `rows_by_split`.
        arrivals_ms, timestamps_ms : numpy.ndarray of int64, shape (n_rows,)

        Returns
        -------
        int or None
            The earliest arrival of these events, as the running maximum makes it, or None without events.

        Raises
        ------
        DataError
            If the columns do not fit together, or an arrival is beyond ±MAX_ARRIVAL_MS.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = timestamps_ms.shape[0], code, first, first_of_split, earliest = INT64_MAX
        if arrivals_ms.shape[0] != n:
            raise DataError(f"{n} timestamps and {arrivals_ms.shape[0]} arrivals: not one each")
        check_offsets(offsets, splits.shape[0], n)
        if n == 0:
            return None
        _check_splits(splits, self.n_splits)
        with nogil:
            for code in range(splits.shape[0]):
                first = offsets[code]
                n = offsets[code + 1] - first
                if n:
                    first_of_split = _update_split(self, splits[code], &arrivals_ms[first], &timestamps_ms[first], n)
                    earliest = min(earliest, first_of_split)
        # The extremes tell whether any arrival was out of bounds: one check per split instead of one per event. The summary is
        # not used after the error.
        _check_arrivals(self, splits)
        return earliest

    def finish(self):
        """Return the summary as columns. No event can be taken in afterwards.

        Returns
        -------
        tuple of dict of str to numpy.ndarray, and numpy.ndarray
            Per split, int64: `events`, `regressions` (how often the recorded arrival went back from one event to the
            next), `raised` (events recorded before an earlier one of the split), `first_arrival_ms`,
            `recorded_arrival_ms` (of the last event), `last_arrival_ms` (their maximum),
            `min_timestamp_ms`, `max_timestamp_ms`, `n_records`. The times of a split without events mean nothing.
            Then the records by split, and in order within each, int64 of shape (2 * n_records,): each is twice its tick and the
            maximum timestamp there; or, for a gap, twice its first tick plus one, and its second tick.
        """
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int32_t split
        cdef int64_t i, n, place = 0
        cdef Record* records
        cdef PackedRecord* packed
        cdef SplitTimes* times
        for split in range(self.n_splits):
            if self.splits[split].events:
                _record_step(self, &self.splits[split], split)
        cdef int64_t[:, ::1] columns = np.zeros((9, self.n_splits), np.int64)
        n = self.records.size // <int64_t> sizeof(Record)
        records = <Record*> self.records.data
        for i in range(n):
            columns[8, records[i].split] += 1
        cdef int64_t[::1] places = np.empty(self.n_splits, np.int64), packed_records = np.empty(2 * n, np.int64)
        for split in range(self.n_splits):
            times = &self.splits[split]
            columns[0, split] = times.events
            columns[1, split] = times.regressions
            columns[2, split] = times.raised
            columns[3, split] = times.first_arrival
            columns[4, split] = times.recorded_arrival
            columns[5, split] = times.arrival
            columns[6, split] = times.min_timestamp
            columns[7, split] = times.max_timestamp
            places[split] = place
            place += columns[8, split]
        for i in range(n):
            packed = <PackedRecord*> &packed_records[2 * places[records[i].split]]
            packed.place = 2 * records[i].first + records[i].kind
            packed.value = records[i].second
            places[records[i].split] += 1
        buffer_free(&self.records)
        return dict(zip(_SPLIT_COLUMNS, columns.base)), packed_records.base

"""The summary of a chunk's times: all that generators emit depends on, without the events.

A tick is a multiple of the auto-watermark interval since the epoch. Generators are called at ticks, and a tick sees all events
that arrive up to it. The output of a generator depends only on the running maximum of its events' timestamps and on which ticks
saw an event, so a summary keeps these two per split.

They are kept in parts, each of one split in one window of ticks. A part is a chunk of its own for whoever reads it: it has the
first and the last tick that saw an event, and the maximum at the last. So parts can be sent, stored and read by time.
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


# ---- windows of ticks --------------------------------------------------------------------------------------------


DEFAULT_WINDOW_TICKS = 256


def window_length(object interval_ms, object window_ticks):
    """Return the length in ms of a window of so many ticks; 0: all time is one window, since there are no ticks or few."""
    cdef object length = interval_ms * window_ticks
    return length if length <= 2 * MAX_INTERVAL_MS else 0


cdef inline int64_t window_start(int64_t tick, int64_t window) noexcept nogil:
    # C's remainder truncates towards zero.
    cdef int64_t into = tick % window
    return tick - into - (window if into < 0 else 0)


# ---- the summary of a chunk --------------------------------------------------------------------------------------


cdef struct Part:
    int64_t first_tick
    int64_t last_tick
    int64_t max_timestamp  # of the split in the chunk, up to the last tick
    int64_t n_records
    int64_t split


cdef struct Record:
    # The maximum timestamp of the split has grown at this tick, which is not the last of its part.
    int64_t tick
    int64_t timestamp
    int64_t part


_SPLIT_COLUMNS = (
    "events",
    "regressions",
    "raised",
    "first_arrival_ms",
    "recorded_arrival_ms",
    "last_arrival_ms",
    "min_timestamp_ms",
    "max_timestamp_ms",
)


cdef int _open_part(TimeSummary summary, SplitTimes* times, int32_t split, int64_t tick) except -1 nogil:
    cdef Part* part = <Part*> buffer_append(&summary.parts, sizeof(Part))
    cdef int64_t into
    part.first_tick = tick
    part.n_records = 0
    part.split = split
    times.part = summary.parts.size // <int64_t> sizeof(Part) - 1
    times.window_end = INT64_MAX
    if summary.window:
        into = tick % summary.window
        times.window_end = tick - into + (summary.window if into >= 0 else 0) - 1
    return 0


cdef inline void _close_part(TimeSummary summary, SplitTimes* times) noexcept nogil:
    cdef Part* part = <Part*> summary.parts.data + times.part
    part.last_tick = times.tick
    part.max_timestamp = times.max_timestamp
    times.step = times.max_timestamp
    times.part = -1


cdef int _next_tick(TimeSummary summary, SplitTimes* times, int32_t split, int64_t arrival) except -1 nogil:
    # Called for an event that arrives after the tick of the events before it, or for the first event of a part.
    cdef int64_t tick
    if times.part < 0:
        if times.events == 0:
            times.first_arrival = times.recorded_arrival = arrival
        times.tick = tick_of(max(arrival, times.arrival), summary.interval)
        return _open_part(summary, times, split, times.tick)
    # Unsigned: the difference of two arrivals may pass 2**63. Events mostly arrive in the next interval, which saves a
    # division.
    if <uint64_t> arrival - <uint64_t> times.tick <= <uint64_t> summary.interval:
        tick = <int64_t> (<uint64_t> times.tick + <uint64_t> summary.interval)
    else:
        tick = tick_of(arrival, summary.interval)
    if tick > times.window_end or <uint64_t> tick - <uint64_t> times.tick > summary.idle_wait:
        _close_part(summary, times)
        _open_part(summary, times, split, tick)
    elif summary.steps and times.max_timestamp > times.step:
        _record_step(summary, times)
    times.tick = tick
    return 0


cdef inline int _record_step(TimeSummary summary, SplitTimes* times) except -1 nogil:
    cdef Record* record = <Record*> buffer_append(&summary.records, sizeof(Record))
    record.tick = times.tick
    record.timestamp = times.step = times.max_timestamp
    record.part = times.part
    (<Part*> summary.parts.data + times.part).n_records += 1
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

    A summary keeps per split the number of events, the first and last arrival and the extremes of the timestamps; and parts. A
    part ends with its window of ticks, and before a gap that is long enough for the split to turn idle. It has a record for
    each tick at which the maximum timestamp has grown. So the memory is bounded by the ticks, not by the events; and `take` can
    be called at any time. The arrivals need not be ordered: that of an event is the running maximum within its split.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval, from 0 to MAX_INTERVAL_MS. With 0 there are no ticks, hence no records, and one part for
        each split.
    idleness_ms : int or None
        The idle timeout, or None if gaps do not matter.
    steps : bool
        False if the generator emits no watermarks; growing timestamps are then not recorded.
    window_ticks : int
        Ticks of a window, at least 1. Windows lie on the multiples of their length since the epoch.

    Raises
    ------
    ConfigurationError
        If the interval is out of its range.
    """

    def __cinit__(self, *, object interval_ms, object idleness_ms, bint steps, object window_ticks=DEFAULT_WINDOW_TICKS):
        self.interval = checked_interval(interval_ms)
        self.idle_wait = _idle_wait_of(self.interval, idleness_ms)
        self.steps = steps and self.interval > 0
        self.window = window_length(interval_ms, window_ticks)

    def __dealloc__(self):
        free(self.splits)
        buffer_free(&self.records)
        buffer_free(&self.parts)

    def reserve(self, int32_t splits):
        """Make room for splits numbered below `splits`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t capacity = max(splits, 2 * self.capacity), split
        if splits > self.capacity:
            self.splits = <SplitTimes*> grow(self.splits, capacity * sizeof(SplitTimes), b"the splits of a chunk")
            for split in range(self.capacity, capacity):
                memset(&self.splits[split], 0, sizeof(SplitTimes))
                self.splits[split].tick = self.splits[split].first_arrival = self.splits[split].arrival = INT64_MIN
                self.splits[split].max_timestamp = self.splits[split].step = INT64_MIN
                self.splits[split].part = -1
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

    @property
    def nbytes(self):
        """Bytes of the parts and records that `take` would return, about."""
        return self.records.size + self.parts.size

    def take(self):
        """Return the parts so far, by window, and release their memory. Events that follow are in other parts.

        Returns
        -------
        tuple of numpy.ndarray
            The columns of a `RecordBlock`: of shape (n_parts,) splits, int32, and first ticks, last ticks, maximum timestamps
            and numbers of records, int64; of shape (n_records,) their ticks and maximum timestamps.
        """
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int32_t split
        cdef int64_t i, n_parts, n_records = self.records.size // <int64_t> sizeof(Record), place = 0, part
        cdef const Record* records
        cdef const Part* parts
        for split in range(self.n_splits):
            if self.splits[split].part >= 0:
                _close_part(self, &self.splits[split])
                self.splits[split].tick = INT64_MIN
        n_parts = self.parts.size // <int64_t> sizeof(Part)
        parts = <const Part*> self.parts.data
        records = <const Record*> self.records.data
        cdef int64_t[::1] order = np.arange(n_parts), windows
        if self.window:
            windows = np.empty(n_parts, np.int64)
            for i in range(n_parts):
                windows[i] = window_start(parts[i].first_tick, self.window)
            order = np.argsort(windows.base, kind="stable")
        cdef int32_t[::1] splits = np.empty(n_parts, np.int32)
        cdef int64_t[:, ::1] columns = np.empty((4, n_parts), np.int64)
        cdef int64_t[::1] places = np.empty(n_parts, np.int64)
        cdef int64_t[:, ::1] steps = np.empty((2, n_records), np.int64)
        for i in range(n_parts):
            part = order[i]
            splits[i] = parts[part].split
            columns[0, i] = parts[part].first_tick
            columns[1, i] = parts[part].last_tick
            columns[2, i] = parts[part].max_timestamp
            columns[3, i] = parts[part].n_records
            places[part] = place
            place += parts[part].n_records
        for i in range(n_records):
            part = records[i].part
            steps[0, places[part]] = records[i].tick
            steps[1, places[part]] = records[i].timestamp
            places[part] += 1
        buffer_free(&self.records)
        buffer_free(&self.parts)
        return splits.base, *columns.base, *steps.base

    def finish(self):
        """Return the times of the splits. No event can be taken in afterwards.

        Returns
        -------
        dict of str to numpy.ndarray of int64, shape (n_splits,)
            `events`, `regressions` (how often the recorded arrival went back from one event to the next), `raised` (events
            recorded before an earlier one of the split), `first_arrival_ms`, `recorded_arrival_ms` (of the last event),
            `last_arrival_ms` (their maximum), `min_timestamp_ms`, `max_timestamp_ms`. The times of a split without events mean
            nothing.
        """
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int32_t split
        cdef SplitTimes* times
        cdef int64_t[:, ::1] columns = np.zeros((8, self.n_splits), np.int64)
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
        return dict(zip(_SPLIT_COLUMNS, columns.base))


# ---- records as differences --------------------------------------------------------------------------------------
# Ticks and timestamps grow by little from record to record, so that their differences are packed into fewer bytes.


def steps_to_differences(
    const int64_t[::1] first_ticks not None,
    const int64_t[::1] n_records not None,
    int64_t[::1] ticks not None,
    int64_t[::1] timestamps not None,
    int64_t interval,
):
    """Replace the records of parts by their differences: ticks in intervals. O(n).

    Parameters
    ----------
    first_ticks, n_records : numpy.ndarray of int64, shape (n_parts,)
    ticks, timestamps : numpy.ndarray of int64, shape (n_records,)
        Those of each part in their order; changed in place.
    interval : int
        The ticks' interval in ms; 0: they are not divided.

    Returns
    -------
    numpy.ndarray of int64, shape (n_parts,)
        The first timestamp of each part; 0 if it has no record.
    """
    import numpy as np

    cdef int64_t part, i, place = 0, tick, timestamp, before_tick, before, length = max(interval, 1)
    cdef int64_t[::1] firsts = np.zeros(first_ticks.shape[0], np.int64)
    _check_parts(first_ticks, n_records, ticks, timestamps)
    for part in range(first_ticks.shape[0]):
        before_tick = first_ticks[part]
        if n_records[part]:
            firsts[part] = timestamps[place]
        before = firsts[part]
        for i in range(place, place + n_records[part]):
            tick, timestamp = ticks[i], timestamps[i]
            ticks[i] = (tick - before_tick) // length
            timestamps[i] = <int64_t> (<uint64_t> timestamp - <uint64_t> before)
            before_tick, before = tick, timestamp
        place += n_records[part]
    return firsts.base


def differences_to_steps(
    const int64_t[::1] first_ticks not None,
    const int64_t[::1] n_records not None,
    const int64_t[::1] first_timestamps not None,
    int64_t[::1] ticks not None,
    int64_t[::1] timestamps not None,
    int64_t interval,
):
    """Undo `steps_to_differences`, in place. O(n).

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    cdef int64_t part, i, place = 0, tick, timestamp, length = max(interval, 1)
    _check_parts(first_ticks, n_records, ticks, timestamps)
    if first_timestamps.shape[0] != first_ticks.shape[0]:
        raise DataError(f"{first_timestamps.shape[0]} first timestamps of {first_ticks.shape[0]} parts")
    for part in range(first_ticks.shape[0]):
        tick, timestamp = first_ticks[part], first_timestamps[part]
        for i in range(place, place + n_records[part]):
            tick += ticks[i] * length
            timestamp = <int64_t> (<uint64_t> timestamp + <uint64_t> timestamps[i])
            ticks[i], timestamps[i] = tick, timestamp
        place += n_records[part]


cdef int _check_parts(
    const int64_t[::1] first_ticks, const int64_t[::1] n_records, const int64_t[::1] ticks, const int64_t[::1] timestamps
) except -1:
    cdef int64_t part, total = 0
    if n_records.shape[0] != first_ticks.shape[0]:
        raise DataError("the columns of parts differ in length")
    for part in range(n_records.shape[0]):
        if not 0 <= n_records[part] <= ticks.shape[0] - total:
            raise DataError(f"{ticks.shape[0]} ticks do not fit the numbers of records of {n_records.shape[0]} parts")
        total += n_records[part]
    if total != ticks.shape[0] or total != timestamps.shape[0]:
        raise DataError(f"{ticks.shape[0]} ticks and {timestamps.shape[0]} timestamps of {total} records")
    return 0

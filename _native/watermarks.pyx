"""Watermarks: the generator of one split, summaries of columns of times for generators, and the valve that merges channels.

Periodic calls happen at ticks, the multiples of the interval on the epoch; a tick sees all events that arrive up to it. Nothing a
generator emits depends on more of its events than the running maximum of their timestamps, and which ticks saw any; that is all
a summary of a column keeps.
"""

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, DataError

from flinkcore._native.call_guard cimport Call, begin_call, check_no_call
from flinkcore._native.event_log cimport MAX_ARRIVAL, check_offsets
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free, grow


MAX_INTERVAL_MS = 2**60  # so that no tick leaves 64 bits, as MAX_ARRIVAL


# ---- the generator of one split ----------------------------------------------------------------------------------


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
    NoWatermarksGenerator and, around them, WatermarksWithIdleness of Flink 2.3. What it emits is not filtered: a
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
        """Process an event with this timestamp."""
        generator_on_event(&self.generator, timestamp_ms)

    def on_periodic_emit(self, int64_t clock_ms):
        """Emit the watermark, or idleness.

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


cdef uint64_t _idle_wait_of(int64_t interval, object idleness_ms) except? 1:
    # How long after a tick with activity the tick lies that finds the split idle: the next one starts the count. 2**64 - 1: none does.
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


cdef int64_t _update_split(
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
        False: the generator emits no watermarks, and growing timestamps are not recorded.

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
            Numbers of the splits; room for them was made by `reserve`.
        offsets : numpy.ndarray of int64, shape (n_codes + 1,)
            Where the events of each split begin, and the last ones end: see `rows_by_split`.
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
        _check_arrivals(self, splits)
        return earliest

    def finish(self):
        """The summary, as columns; no event can be taken in afterwards.

        Returns
        -------
        tuple of dict of str to numpy.ndarray, and numpy.ndarray
            Per split, int64: `events`, `regressions` (how often the recorded arrival went back from one event to the
            next), `raised` (events recorded before an earlier one of the split), `first_arrival_ms`,
            `recorded_arrival_ms` (of the last event), `last_arrival_ms` (their maximum),
            `min_timestamp_ms`, `max_timestamp_ms`, `n_records`; the times without meaning where there are no events.
            Then the records by split, and in order within each, int64 of shape (2 * n_records,): each is twice its tick
            and the maximum timestamp there; or, for a gap, twice its first tick plus one, and its second tick.
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


# ---- the valve ---------------------------------------------------------------------------------------------------
# The merge of the watermarks and statuses of several channels into one.


WATERMARK_KIND = int(ElementKind.WATERMARK)
IDLE_KIND = int(ElementKind.IDLE)
ACTIVE_KIND = int(ElementKind.ACTIVE)


# The heap of aligned channels. An aligned channel's watermark only grows, so that an update sinks; only a channel that comes or goes can rise.


cdef inline void _place(Valve* valve, int32_t place, AlignedChannel node) noexcept nogil:
    valve.aligned[place] = node
    valve.places[node.channel] = place


cdef inline void _sink(Valve* valve, int32_t place, AlignedChannel node) noexcept nogil:
    cdef int32_t child
    while True:
        child = 2 * place + 1
        if child >= valve.n_aligned:
            break
        if child + 1 < valve.n_aligned and valve.aligned[child + 1].watermark < valve.aligned[child].watermark:
            child += 1
        if valve.aligned[child].watermark >= node.watermark:
            break
        _place(valve, place, valve.aligned[child])
        place = child
    _place(valve, place, node)


cdef inline void _rise(Valve* valve, int32_t place, AlignedChannel node) noexcept nogil:
    cdef int32_t parent
    while place > 0:
        parent = (place - 1) >> 1
        if valve.aligned[parent].watermark <= node.watermark:
            break
        _place(valve, place, valve.aligned[parent])
        place = parent
    _place(valve, place, node)


cdef void _align(Valve* valve, int32_t channel) noexcept nogil:
    cdef AlignedChannel node
    if valve.places[channel] >= 0:
        return
    node.watermark = valve.watermarks[channel]
    node.channel = channel
    valve.n_aligned += 1
    _rise(valve, valve.n_aligned - 1, node)


cdef void _unalign(Valve* valve, int32_t channel) noexcept nogil:
    cdef int32_t place = valve.places[channel]
    cdef AlignedChannel last
    if place < 0:
        return
    valve.places[channel] = -1
    valve.n_aligned -= 1
    if place == valve.n_aligned:
        return
    last = valve.aligned[valve.n_aligned]
    if place > 0 and last.watermark < valve.aligned[(place - 1) >> 1].watermark:
        _rise(valve, place, last)
    else:
        _sink(valve, place, last)


cdef inline int _put_out(Valve* valve, int64_t watermark, int64_t* emitted) noexcept nogil:
    if watermark <= valve.last_output:
        return 0
    valve.last_output = watermark
    emitted[0] = watermark
    return ValveOutput.EMITS_WATERMARK


cdef inline int _put_out_minimum(Valve* valve, int64_t* emitted) noexcept nogil:
    return _put_out(valve, valve.aligned[0].watermark, emitted) if valve.n_aligned else 0


cdef inline int _input_watermark(Valve* valve, int32_t channel, int64_t timestamp, int64_t* emitted) noexcept nogil:
    cdef AlignedChannel node
    if valve.idle_channels[channel] or timestamp <= valve.watermarks[channel]:
        return 0
    valve.watermarks[channel] = timestamp
    if timestamp > valve.maximum:
        valve.maximum = timestamp
    if valve.places[channel] >= 0:
        node.watermark = timestamp
        node.channel = channel
        _sink(valve, valve.places[channel], node)
    elif timestamp >= valve.last_output:
        _align(valve, channel)
    return _put_out_minimum(valve, emitted)


cdef int _input_idle(Valve* valve, int32_t channel, int64_t* emitted) noexcept nogil:
    cdef int output = 0
    if valve.idle_channels[channel]:
        return 0
    valve.idle_channels[channel] = 1
    valve.n_active -= 1
    _unalign(valve, channel)
    if valve.n_active == 0:
        if valve.watermarks[channel] == valve.last_output:
            output = _put_out(valve, valve.maximum, emitted)
        valve.idle = True
        return output | ValveOutput.EMITS_IDLE
    if valve.watermarks[channel] == valve.last_output:
        return _put_out_minimum(valve, emitted)
    return 0


cdef int _input_active(Valve* valve, int32_t channel) noexcept nogil:
    if not valve.idle_channels[channel]:
        return 0
    valve.idle_channels[channel] = 0
    valve.n_active += 1
    if valve.watermarks[channel] >= valve.last_output:
        _align(valve, channel)
    if valve.idle:
        valve.idle = False
        return ValveOutput.EMITS_ACTIVE
    return 0


cdef int valve_input(Valve* valve, int32_t channel, int kind, int64_t timestamp, int64_t* emitted) noexcept nogil:
    if kind == ElementKind.WATERMARK:
        return _input_watermark(valve, channel, timestamp, emitted)
    if kind == ElementKind.IDLE:
        return _input_idle(valve, channel, emitted)
    return _input_active(valve, channel)


cdef list _input_one(Valve* valve, object channel, int kind, object timestamp):
    cdef int64_t emitted = 0
    cdef int output
    if not 0 <= channel < valve.n_channels:
        raise DataError(f"no channel {channel} in a valve of {valve.n_channels} channels, counted from 0")
    output = valve_input(valve, channel, kind, timestamp, &emitted)
    outputs = []
    if output & ValveOutput.EMITS_WATERMARK:
        outputs.append(("watermark", emitted))
    if output & ValveOutput.EMITS_IDLE:
        outputs.append(("status", "idle"))
    elif output & ValveOutput.EMITS_ACTIVE:
        outputs.append(("status", "active"))
    return outputs


cdef struct BatchOutput:
    int64_t at
    int64_t timestamp
    int64_t kind


cdef inline int _append(Buffer* outputs, int64_t at, int64_t kind, int64_t timestamp) except -1 nogil:
    cdef BatchOutput* output = <BatchOutput*> buffer_append(outputs, sizeof(BatchOutput))
    output.at = at
    output.kind = kind
    output.timestamp = timestamp
    return 0


cdef int _input_batch(
    Valve* valve, const int32_t* channels, const int8_t* kinds, const int64_t* timestamps, int64_t n, Buffer* outputs
) except -1 nogil:
    cdef int64_t i, emitted = 0
    cdef int output
    for i in range(n):
        output = valve_input(valve, channels[i], kinds[i], timestamps[i], &emitted)
        if output & ValveOutput.EMITS_WATERMARK:
            _append(outputs, i, ElementKind.WATERMARK, emitted)
        if output & ValveOutput.EMITS_IDLE:
            _append(outputs, i, ElementKind.IDLE, 0)
        elif output & ValveOutput.EMITS_ACTIVE:
            _append(outputs, i, ElementKind.ACTIVE, 0)
    return 0


cdef int64_t _first_bad_row(int32_t n_channels, const int32_t* channels, const int8_t* kinds, int64_t n) noexcept nogil:
    # The first row whose channel or kind does not exist, or n.
    cdef int64_t i
    for i in range(n):
        if channels[i] < 0 or channels[i] >= n_channels or kinds[i] < 0 or kinds[i] > ElementKind.ACTIVE:
            return i
    return n


@cython.final
cdef class StatusWatermarkValve:
    """The watermark and status of several channels taken together.

    The watermark is the minimum over the channels that are active and *aligned*: a channel that comes back from
    idleness counts only once it has caught up with the last watermark emitted. The last active channel that turns
    idle flushes the maximum over all channels, if the watermark stood at that channel's.

    O(log channels) for each watermark and each status: aligned channels are an indexed binary heap. The maximum over
    all channels is kept as they advance (a channel's watermark never goes back), so that the flush is O(1).

    Follows StatusWatermarkValve of Flink 2.3, one subpartition per channel.

    Parameters
    ----------
    channels : int
        Number of channels, at least 1; all are active at first, without a watermark (-2**63).

    Raises
    ------
    ConfigurationError
        If there is no channel, or there are 2**31 or more.
    """

    def __cinit__(self, object channels):
        cdef int32_t i
        if not 1 <= channels < 2**31:
            raise ConfigurationError(f"a valve needs between 1 and 2**31 - 1 channels, not {channels}")
        self.valve.n_channels = channels
        self.valve.n_active = self.valve.n_aligned = self.valve.n_channels
        self.valve.last_output = self.valve.maximum = INT64_MIN
        self.valve.watermarks = <int64_t*> malloc(self.valve.n_channels * sizeof(int64_t))
        self.valve.idle_channels = <uint8_t*> calloc(self.valve.n_channels, 1)
        self.valve.places = <int32_t*> malloc(self.valve.n_channels * sizeof(int32_t))
        self.valve.aligned = <AlignedChannel*> calloc(self.valve.n_channels, sizeof(AlignedChannel))
        if (
            self.valve.watermarks == NULL
            or self.valve.idle_channels == NULL
            or self.valve.places == NULL
            or self.valve.aligned == NULL
        ):
            raise MemoryError(f"a valve of {channels} channels")
        for i in range(self.valve.n_channels):
            self.valve.watermarks[i] = self.valve.aligned[i].watermark = INT64_MIN
            self.valve.places[i] = self.valve.aligned[i].channel = i

    def __dealloc__(self):
        free(self.valve.watermarks)
        free(self.valve.idle_channels)
        free(self.valve.places)
        free(self.valve.aligned)

    def input_watermark(self, channel, timestamp_ms):
        """Take in a watermark on a channel. O(log channels).

        Parameters
        ----------
        channel : int
            0 ≤ channel < channels.
        timestamp_ms : int
            64 bits; a watermark that is not greater than the channel's last, or on an idle channel, has no effect.

        Returns
        -------
        list of tuple
            What is emitted: nothing, or `[("watermark", timestamp_ms)]`.

        Raises
        ------
        DataError
            If there is no such channel.
        """
        check_no_call(&self.guard, self)
        return _input_one(&self.valve, channel, ElementKind.WATERMARK, timestamp_ms)

    def input_watermark_status(self, channel, status):
        """Take in a watermark status on a channel. O(log channels).

        Parameters
        ----------
        channel : int
            0 ≤ channel < channels.
        status : str
            "idle" or "active"; the status that the channel already has is without effect.

        Returns
        -------
        list of tuple
            What is emitted, in order: `("watermark", timestamp_ms)`, then `("status", "idle" | "active")`; each may be
            missing.

        Raises
        ------
        DataError
            If there is no such channel or status.
        """
        check_no_call(&self.guard, self)
        if status not in ("idle", "active"):
            raise DataError(f"a watermark status is 'idle' or 'active', not {status!r}")
        return _input_one(&self.valve, channel, ElementKind.IDLE if status == "idle" else ElementKind.ACTIVE, 0)

    def input_batch(
        self,
        const int32_t[::1] channels not None,
        const int8_t[::1] kinds not None,
        const int64_t[::1] timestamps_ms not None,
    ):
        """Take in watermarks and statuses in the order of the rows. O(rows · log channels), without the GIL.

        Parameters
        ----------
        channels : numpy.ndarray of int32, shape (n_rows,)
        kinds : numpy.ndarray of int8, shape (n_rows,)
            WATERMARK_KIND, IDLE_KIND or ACTIVE_KIND.
        timestamps_ms : numpy.ndarray of int64, shape (n_rows,)
            Read for watermarks only.

        Returns
        -------
        tuple of numpy.ndarray
            What is emitted, in order: `(rows int64, kinds int8, timestamps_ms int64)`, each of shape (n_outputs,);
            `rows` is the input that caused it, and the timestamp of a status is 0.

        Raises
        ------
        DataError
            If the columns differ in length, or a channel or kind does not exist; no row is taken in then.
        """
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int64_t n = channels.shape[0], bad, i, n_outputs
        cdef Buffer outputs
        cdef BatchOutput* output
        cdef int64_t[::1] rows, emitted
        cdef int8_t[::1] emitted_kinds
        if kinds.shape[0] != n or timestamps_ms.shape[0] != n:
            raise DataError(
                f"{n} channels, {kinds.shape[0]} kinds and {timestamps_ms.shape[0]} timestamps: not one each"
            )
        if n == 0:
            return np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int64)
        bad = _first_bad_row(self.valve.n_channels, &channels[0], &kinds[0], n)
        if bad < n:
            raise DataError(
                f"row {bad}: channel {channels[bad]}, kind {kinds[bad]}; there are {self.valve.n_channels} channels, "
                "counted from 0, and the kinds 0 (watermark), 1 (idle) and 2 (active)",
                row=bad,
            )
        outputs.data = NULL
        outputs.size = outputs.capacity = 0
        try:
            with nogil:
                _input_batch(&self.valve, &channels[0], &kinds[0], &timestamps_ms[0], n, &outputs)
            n_outputs = outputs.size // <int64_t> sizeof(BatchOutput)
            at, kind, timestamp = (
                np.empty(n_outputs, np.int64), np.empty(n_outputs, np.int8), np.empty(n_outputs, np.int64)
            )
            rows, emitted_kinds, emitted = at, kind, timestamp
            output = <BatchOutput*> outputs.data
            for i in range(n_outputs):
                rows[i] = output[i].at
                emitted_kinds[i] = <int8_t> output[i].kind
                emitted[i] = output[i].timestamp
        finally:
            buffer_free(&outputs)
        return at, kind, timestamp

    def restore(self, const int64_t[::1] watermarks_ms not None, const uint8_t[::1] idle not None, int64_t watermark_ms):
        """Restore the `state` of another valve, before any input. O(channels · log channels).

        Parameters
        ----------
        watermarks_ms : numpy.ndarray of int64, shape (channels,)
            The last watermark of each channel. A new channel that is to hold the valve back has the valve's.
        idle : numpy.ndarray of uint8, shape (channels,)
            1 for a channel that is idle.
        watermark_ms : int
            The last watermark emitted.

        Raises
        ------
        DataError
            If the columns have not a value for each channel.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t i
        cdef Valve* valve = &self.valve
        if watermarks_ms.shape[0] != valve.n_channels or idle.shape[0] != valve.n_channels:
            raise DataError(
                f"{watermarks_ms.shape[0]} watermarks and {idle.shape[0]} statuses for {valve.n_channels} channels"
            )
        valve.n_active = valve.n_aligned = 0
        valve.last_output = watermark_ms
        valve.maximum = INT64_MIN
        for i in range(valve.n_channels):
            valve.watermarks[i] = watermarks_ms[i]
            valve.maximum = max(valve.maximum, watermarks_ms[i])
            valve.idle_channels[i] = idle[i] != 0
            valve.n_active += idle[i] == 0
            valve.places[i] = -1
        for i in range(valve.n_channels):
            if not valve.idle_channels[i] and valve.watermarks[i] >= watermark_ms:
                _align(valve, i)
        valve.idle = valve.n_active == 0

    def state(self):
        """What `restore` takes: `(watermarks_ms int64, idle uint8, watermark_ms int)`."""
        cdef Call call = begin_call(&self.guard, self)
        import numpy as np

        cdef int32_t i
        cdef int64_t[::1] watermarks = np.empty(self.valve.n_channels, np.int64)
        cdef uint8_t[::1] idle = np.empty(self.valve.n_channels, np.uint8)
        for i in range(self.valve.n_channels):
            watermarks[i] = self.valve.watermarks[i]
            idle[i] = self.valve.idle_channels[i]
        return watermarks.base, idle.base, self.valve.last_output

    @property
    def channels(self):
        """Number of channels."""
        return self.valve.n_channels

    @property
    def current_watermark(self):
        """The last watermark emitted, in ms; -2**63 before the first."""
        return self.valve.last_output

    @property
    def is_idle(self):
        """Whether the last status emitted is idle; active at first."""
        return bool(self.valve.idle)

    def _check(self):
        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t i, n_active = 0, n_aligned = 0
        cdef int64_t maximum = INT64_MIN
        cdef Valve* valve = &self.valve
        for i in range(valve.n_channels):
            n_active += not valve.idle_channels[i]
            maximum = max(maximum, valve.watermarks[i])
            if valve.places[i] < 0:
                assert valve.idle_channels[i] or valve.watermarks[i] < valve.last_output, f"channel {i} should be aligned"
                continue
            n_aligned += 1
            assert not valve.idle_channels[i], f"channel {i} is idle and aligned"
            assert valve.places[i] < valve.n_aligned, f"channel {i} lies outside of the heap"
            assert valve.aligned[valve.places[i]].channel == i, f"channel {i} is not at its place"
            assert valve.aligned[valve.places[i]].watermark == valve.watermarks[i], f"channel {i} has two watermarks"
            assert valve.watermarks[i] >= valve.last_output, f"channel {i} is aligned below the watermark"
        assert (n_active, n_aligned, maximum) == (valve.n_active, valve.n_aligned, valve.maximum)
        assert bool(valve.idle) == (n_active == 0)
        for i in range(1, valve.n_aligned):
            assert valve.aligned[(i - 1) >> 1].watermark <= valve.aligned[i].watermark, f"the heap is broken at {i}"

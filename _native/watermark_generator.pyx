"""The watermark generator of one split: bounded out-of-orderness with idleness."""

import cython
import numpy as np

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.string cimport memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.call_guard cimport Call, begin_call, check_no_call


cdef int generator_set_up(Generator* generator, object out_of_orderness_ms, object idleness_ms) except -1:
    memset(generator, 0, sizeof(Generator))
    if out_of_orderness_ms is not None and not 0 <= out_of_orderness_ms <= INT64_MAX:
        raise ConfigurationError(f"the out-of-orderness must be from 0 to 2**63 - 1 ms, not {out_of_orderness_ms}")
    if idleness_ms is not None and idleness_ms <= 0:
        raise ConfigurationError(f"the idle timeout must be greater than zero, not {idleness_ms} ms")
    generator.generates = out_of_orderness_ms is not None
    generator.delay = out_of_orderness_ms or 0
    generator.max_timestamp = INT64_MIN
    # As in Flink: the first maximum leaves room for the subtraction in on_periodic_emit, so that the watermark before any event is
    # exactly the minimum. Unsigned, because the sum of the minimum and a delay near 2**63 passes zero.
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
    # WatermarksWithIdleness.IdlenessTimer: the first periodic call without an event starts the count, and 0 stands for "not
    # started".
    if generator.inactive_since == 0:
        generator.inactive_since = clock
        return False
    # Wraps like Java's long if the clocks are far apart.
    return <int64_t> (<uint64_t> clock - <uint64_t> generator.inactive_since) > generator.idle_timeout


cdef int generator_on_periodic_emit(Generator* generator, int64_t clock, int64_t* watermark) noexcept nogil:
    if generator.detects_idleness and _check_if_idle(generator, clock):
        # Idleness is marked once, not at each call.
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
    NoWatermarksGenerator and, around them, WatermarksWithIdleness of Flink 2.3. The output is not filtered: each periodic call
    emits a watermark, which is the minimum before the first event.

    Parameters
    ----------
    out_of_orderness_ms : int or None
        From 0 to 2**63 - 1, or None for no watermarks. The watermark is the maximum timestamp - out_of_orderness_ms - 1, and
        never wraps around.
    idleness_ms : int or None
        The idle timeout, greater than 0, or None if the split never turns idle.

    Raises
    ------
    ConfigurationError
        If a parameter is outside its range.
    """

    def __cinit__(self, out_of_orderness_ms, idleness_ms=None):
        generator_set_up(&self.generator, out_of_orderness_ms, idleness_ms)

    def on_event(self, int64_t timestamp_ms):
        """Process an event with this timestamp."""
        generator_on_event(&self.generator, timestamp_ms)

    def on_periodic_emit(self, int64_t clock_ms):
        """Emit the watermark, or idleness.

        The idle count begins with the first periodic call without an event since the call before; the split is idle once
        strictly more than the timeout has passed. As in Flink, a clock of 0 means that the count has not begun.

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


cdef int64_t _minus(int64_t timestamp, int64_t delay) noexcept nogil:
    """Return a difference that stays within 64 bits."""
    if delay > 0 and timestamp < INT64_MIN + delay:
        return INT64_MIN
    if delay < 0 and timestamp > INT64_MAX + delay:
        return INT64_MAX
    return timestamp - delay


cdef Py_ssize_t rowtime_on_events(RowtimeGenerator* generator, const int64_t[::1] positions, const int64_t[::1] arrivals,
                                  const int64_t[::1] ticks, const int64_t[::1] timestamps, int64_t* rows) noexcept nogil:
    cdef Py_ssize_t i, count = 0
    cdef int64_t watermark
    for i in range(timestamps.shape[0]):
        if ticks[i] > generator.next_tick:
            count += rowtime_on_tick(generator, ticks[i], rows + 3 * count)
        watermark = _minus(timestamps[i], generator.delay)
        if watermark > generator.current:
            generator.current = watermark
            # As unsigned, since the first watermark may lie 2**63 and more above the lowest one.
            if generator.by_event and <uint64_t> watermark - <uint64_t> generator.last > <uint64_t> generator.interval:
                generator.last = watermark
                rows[3 * count] = arrivals[i]
                rows[3 * count + 1] = positions[i] << 4 | generator.event_mark
                rows[3 * count + 2] = watermark
                count += 1
    return count


cdef Py_ssize_t rowtime_on_tick(RowtimeGenerator* generator, int64_t before, int64_t* row) noexcept nogil:
    cdef int64_t tick = generator.next_tick
    if tick >= before:
        return 0
    generator.next_tick = before
    if generator.current <= generator.last:
        return 0
    generator.last = generator.current
    row[0] = tick
    row[1] = generator.tick_mark
    row[2] = generator.current
    return 1


@cython.final
cdef class RowtimeWatermarkGenerator:
    """The watermark generator of one split of a table: the largest rowtime minus a delay, in whole columns of events.

    Follows WatermarkAssignerOperator of Flink 2.3: a watermark is emitted after an event if it has risen by more than the
    interval, else at the next tick. Emissions are rows of a clock, the place of the event or tick, and a watermark, as
    `SplitEmissions` has them.

    Parameters
    ----------
    delay_ms : int
    interval_ms : int or None
        None: watermarks are emitted at ticks alone.
    lowest_ms : int
        No watermark up to this one is emitted.
    first_tick_ms : int
        The first tick to come.
    event_mark, tick_mark : int
        Cause and kind of an emission, as its place has them.
    """

    def __cinit__(self, int64_t delay_ms, interval_ms, int64_t lowest_ms, int64_t first_tick_ms, int64_t event_mark,
                  int64_t tick_mark):
        self.generator.delay = delay_ms
        self.generator.by_event = interval_ms is not None
        self.generator.interval = interval_ms or 0
        self.generator.current = lowest_ms
        self.generator.last = lowest_ms
        self.generator.next_tick = first_tick_ms
        self.generator.event_mark = event_mark
        self.generator.tick_mark = tick_mark

    def on_events(self, const int64_t[::1] positions, const int64_t[::1] arrivals_ms, const int64_t[::1] ticks_ms,
                  const int64_t[::1] timestamps_ms):
        """Process events in their order; what they and the ticks before them emit.

        Parameters
        ----------
        positions, arrivals_ms, ticks_ms, timestamps_ms : buffer of int64, of one length
            Ticks are the first ones that see the events.

        Returns
        -------
        numpy.ndarray of int64, shape (n, 3)
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Py_ssize_t n = timestamps_ms.shape[0], count
        cdef int64_t[:, ::1] rows
        if positions.shape[0] != n or arrivals_ms.shape[0] != n or ticks_ms.shape[0] != n:
            raise ValueError("columns of events have different lengths")
        emitted = np.empty((2 * n, 3), np.int64)
        if n == 0:
            return emitted
        rows = emitted
        with nogil:
            count = rowtime_on_events(&self.generator, positions, arrivals_ms, ticks_ms, timestamps_ms, &rows[0, 0])
        return emitted[:count].copy()

    def on_ticks_before(self, int64_t end_ms):
        """Make the periodic calls before a tick, without further events; what they emit, as `on_events` returns it."""
        cdef Call call = begin_call(&self.guard, self)
        emitted = np.empty((1, 3), np.int64)
        cdef int64_t[:, ::1] rows = emitted
        return emitted[:rowtime_on_tick(&self.generator, end_ms, &rows[0, 0])]

    @property
    def state(self):
        """The largest watermark so far, and the last one that was emitted."""
        check_no_call(&self.guard, self)
        return self.generator.current, self.generator.last

    @state.setter
    def state(self, value):
        check_no_call(&self.guard, self)
        self.generator.current, self.generator.last = value

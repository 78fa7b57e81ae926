"""The watermark generator of one split: bounded out-of-orderness with idleness."""

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.string cimport memset

from flinkcore.errors import ConfigurationError


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

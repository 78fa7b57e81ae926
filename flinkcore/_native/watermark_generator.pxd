# The watermark generator of one split.
from libc.stdint cimport int64_t

from flinkcore._native.call_guard cimport CallGuard


cdef struct Generator:
    bint generates            # false: emits no watermarks
    int64_t delay
    int64_t max_timestamp     # never below -2**63 + delay + 1, so that max - delay - 1 cannot wrap
    bint detects_idleness
    int64_t idle_timeout
    bint activity             # an event since the last periodic call
    int64_t inactive_since    # clock of the first periodic call without activity; 0: there was none
    bint is_idle_now


cdef enum GeneratorOutput:
    GENERATES_WATERMARK = 1
    MARKS_IDLE = 2


# Sets a generator up, after checking the ranges. None stands for no watermarks, or no idleness.
cdef int generator_set_up(Generator* generator, object out_of_orderness_ms, object idleness_ms) except -1
cdef void generator_on_event(Generator* generator, int64_t timestamp) noexcept nogil
# Returns a GeneratorOutput and writes the watermark to *watermark. The clock counts from when the operator was opened.
cdef int generator_on_periodic_emit(Generator* generator, int64_t clock, int64_t* watermark) noexcept nogil


cdef class WatermarkGenerator:
    cdef Generator generator


cdef struct RowtimeGenerator:
    int64_t delay
    bint by_event             # false: emits at ticks alone
    int64_t interval          # emits after an event if the watermark has risen by more
    int64_t current           # largest watermark so far
    int64_t last              # last watermark that was emitted
    int64_t next_tick         # first tick to come
    int64_t event_mark        # cause and kind of an emission after an event
    int64_t tick_mark         # cause and kind of an emission at a tick


# Processes events in order and writes emissions to rows, three integers each: at most two for each event.
cdef Py_ssize_t rowtime_on_events(RowtimeGenerator* generator, const int64_t[::1] positions, const int64_t[::1] arrivals,
                                  const int64_t[::1] ticks, const int64_t[::1] timestamps, int64_t* rows) noexcept nogil
# Makes the periodic calls before a tick; the number of emissions, 0 or 1.
cdef Py_ssize_t rowtime_on_tick(RowtimeGenerator* generator, int64_t before, int64_t* row) noexcept nogil


cdef class RowtimeWatermarkGenerator:
    cdef CallGuard guard
    cdef RowtimeGenerator generator

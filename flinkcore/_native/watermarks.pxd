# Watermarks: the generator of one split, summaries of columns of times for generators, and the valve that merges channels.
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer


cdef struct Generator:
    bint generates            # false: no watermarks at all
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


# None for no watermarks, or no idleness; checks the ranges.
cdef int generator_set_up(Generator* generator, object out_of_orderness_ms, object idleness_ms) except -1
cdef void generator_on_event(Generator* generator, int64_t timestamp) noexcept nogil
# GeneratorOutput; the watermark in *watermark. The clock counts from when the operator was opened.
cdef int generator_on_periodic_emit(Generator* generator, int64_t clock, int64_t* watermark) noexcept nogil


cdef class WatermarkGenerator:
    cdef Generator generator


cdef inline int64_t tick_of(int64_t arrival, int64_t interval) noexcept nogil:
    # The first tick that sees an arrival: the smallest multiple of the interval that is not before it; 2**63 - 1, after
    # all arrivals, if there are no ticks. An arrival out of bounds, which is refused elsewhere, may wrap around.
    cdef int64_t rest
    if interval == 0:
        return INT64_MAX
    rest = arrival % interval
    if rest > 0:
        return <int64_t> (<uint64_t> arrival + <uint64_t> (interval - rest))
    return arrival - rest


# ConfigurationError where it is not from 0 to 2**60 ms.
cdef int64_t checked_interval(object interval_ms) except? -1


cdef struct SplitTimes:
    # One split within a chunk. `arrival` is the running maximum, `recorded_arrival` that of the last event as recorded.
    int64_t tick           # the first one that sees the last event; -2**63 before the first event
    int64_t recorded_arrival
    int64_t arrival
    int64_t min_timestamp
    int64_t max_timestamp
    int64_t events
    int64_t regressions
    int64_t raised         # events recorded to arrive before `arrival`
    int64_t first_arrival
    int64_t step           # maximum timestamp of the last record, where `stepped`
    bint stepped


cdef enum RecordKind:
    STEP = 0  # first: tick; second: maximum timestamp of the split at this tick
    GAP = 1   # first, second: consecutive ticks with activity, far enough apart for the split to turn idle between


cdef struct PackedRecord:
    # As it leaves the chunk, ordered by split. Ticks lie within 2**62, which leaves a bit for the kind.
    int64_t place  # twice `first`, and the kind
    int64_t value  # `second`


cdef class TimeSummary:
    cdef CallGuard guard
    cdef int64_t interval
    cdef uint64_t idle_wait
    cdef bint steps
    cdef int32_t n_splits
    cdef int32_t capacity
    cdef SplitTimes* splits
    cdef Buffer records


cdef enum ElementKind:
    WATERMARK = 0
    IDLE = 1
    ACTIVE = 2


cdef enum ValveOutput:
    # What one input gave; the watermark, where there is one, comes before the status.
    EMITS_WATERMARK = 1
    EMITS_IDLE = 2
    EMITS_ACTIVE = 4


cdef struct AlignedChannel:
    int64_t watermark
    int32_t channel


cdef struct Valve:
    int32_t n_channels
    int32_t n_active
    int32_t n_aligned
    bint idle                # the last status emitted
    int64_t last_output      # the last watermark emitted
    int64_t maximum          # over the watermarks of all channels, idle ones too
    int64_t* watermarks      # (n_channels,)
    uint8_t* idle_channels   # (n_channels,)
    int32_t* places          # (n_channels,): index in `aligned`, or -1
    AlignedChannel* aligned  # (n_aligned,): min-heap by watermark


# One watermark or status on a channel; ValveOutput flags, and the watermark emitted in *emitted. O(log n_channels).
cdef int valve_input(Valve* valve, int32_t channel, int kind, int64_t timestamp, int64_t* emitted) noexcept nogil


cdef class StatusWatermarkValve:
    cdef CallGuard guard
    cdef Valve valve

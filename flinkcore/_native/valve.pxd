# The valve that merges the watermarks and statuses of channels.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.entry_heap cimport HeapEntry


cdef enum ElementKind:
    WATERMARK = 0
    IDLE = 1
    ACTIVE = 2


cdef enum ValveOutput:
    # Flags of the output of one input. The watermark, if any, comes before the status.
    EMITS_WATERMARK = 1
    EMITS_IDLE = 2
    EMITS_ACTIVE = 4


cdef struct Valve:
    int32_t n_channels
    int32_t n_active
    int32_t n_aligned
    bint idle                # the last status emitted
    int64_t last_output      # the last watermark emitted
    int64_t maximum          # over the watermarks of all channels, including idle ones
    int64_t* watermarks      # (n_channels,)
    uint8_t* idle_channels   # (n_channels,)
    uint32_t* positions      # (n_channels,): index in `aligned`, or 2**32 - 1
    HeapEntry* aligned       # (n_aligned,): heap by watermark; the slot is the channel


# Takes in a watermark or status on a channel. Returns ValveOutput flags; writes the watermark to *emitted if one is emitted.
# O(log n_channels).
cdef int valve_input(Valve* valve, int32_t channel, int kind, int64_t timestamp, int64_t* emitted) noexcept nogil


cdef class StatusWatermarkValve:
    cdef CallGuard guard
    cdef Valve valve

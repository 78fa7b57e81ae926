# Lateness of events under every bound of out-of-orderness at once.
from libc.stdint cimport int32_t, int64_t, uint64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer
from flinkcore._native.packed_steps cimport PackedSteps, StepCursor
from flinkcore._native.panes cimport AlignedWindows


cdef struct Bounds:
    int64_t n
    int64_t* values   # (n,): ascending, from 0 on
    int32_t* below    # by magnitude: how many bounds lie below the least number of that magnitude
    int32_t* listed   # of each small number: how many bounds are not above it; then that of events that are not late


cdef struct Slice:
    # A stretch of event time whose events are in the same windows: extremes of the watermark in force at their arrivals.
    int64_t least     # 2**63 - 1: no event
    int64_t greatest


cdef struct SliceTable:
    # The slices that have events, in pages, and an open-addressing index over these. Zero-initialise.
    int64_t n_pages
    uint64_t mask
    int64_t* keys     # (mask + 1,)
    Slice** pages     # (mask + 1,): NULL in an empty slot


cdef struct RecentSlice:
    int64_t from_ms
    int64_t until_ms  # exclusive
    int64_t last      # last moment of the last window with it
    int64_t waiting   # events of the present watermark, to be counted when it changes
    Slice* slice      # NULL: it is in no window


cdef enum:
    RECENT_SLICES = 4


cdef struct WindowCounts:
    AlignedWindows windows
    int64_t cut              # where a slide is cut in two, since windows end there; the slide: it is not
    int64_t n_lateness
    int64_t* lateness        # (n_lateness,)
    int64_t* late            # (n_lateness, n + 1)
    SliceTable slices
    RecentSlice[RECENT_SLICES] recent
    int32_t next_recent      # the next one to be replaced


cdef struct SplitCounts:
    int64_t events           # counted
    int64_t loses_none       # the least bound at which no event is late
    int64_t after_leaps      # events late at the own bound while a watermark was in force that had leapt
    int64_t last_arrival     # -2**63: none yet
    int64_t longest_silence  # from one arrival to the next
    int64_t* late            # (n_groups,), or NULL before the first event


cdef class LatenessCounter:
    cdef CallGuard guard
    cdef PackedSteps timeline
    cdef StepCursor steps
    cdef int64_t n_steps     # before the last event
    cdef Bounds bounds
    cdef int64_t own         # number of the own bound
    cdef int32_t n_splits
    cdef int64_t n_groups
    cdef int32_t* groups     # (n + 1,)
    cdef int64_t* late       # (n + 1,)
    cdef SplitCounts* splits
    cdef Buffer windows      # WindowCounts
    cdef list calendars      # that windows borrow

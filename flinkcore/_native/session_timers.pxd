# Timers of sessions, by time: a heap of those that are due soon, and buckets of the others.
from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef enum:
    TIMER_BUCKETS = 2048  # a power of two


cdef struct SessionTimer:
    int64_t due
    uint64_t sequence    # of registration
    uint32_t session
    uint32_t generation  # of the session's timer: older ones are void


cdef struct TimerHeap:
    # Binary min-heap by (due, sequence).
    SessionTimer* timers
    int64_t n
    int64_t capacity


cdef struct TimerBin:
    SessionTimer* timers
    int64_t n
    int64_t capacity


cdef struct SessionTimers:
    # Bucket b has the timers that are due from b * width on, for `width` ms.
    #
    #     near heap | bins: one bucket each, in a ring | far heap
    #               ^ near_to                          ^ near_to + TIMER_BUCKETS
    int64_t width
    int64_t near_to      # all timers below this bucket are in the near heap
    TimerHeap near
    TimerHeap far
    TimerBin* bins
    int64_t n_binned
    TimerBin loaded      # of the bucket before near_to; not yet in the near heap
    uint64_t sequence


cdef int session_timers_start(SessionTimers* timers, int64_t width) except -1
# A new timer, or one whose time has changed: it gets its place in the order of registration.
cdef int session_timer_push(SessionTimers* timers, SessionTimer timer) except -1 nogil
# Where the near heap is empty: goes to the next bucket with timers that begins at or before `time`, whose timers are
# `loaded` then, to be pushed again; false where there is none.
cdef bint session_timers_load(SessionTimers* timers, int64_t time) except -1 nogil
# Takes off the first of the near heap.
cdef void session_timer_pop(SessionTimers* timers) noexcept nogil
# Number of the timers in all; those that are void count, too.
cdef int64_t session_timers_number(const SessionTimers* timers) noexcept nogil
cdef bint session_timers_are_sound(const SessionTimers* timers) noexcept nogil
cdef void session_timers_free(SessionTimers* timers) noexcept nogil

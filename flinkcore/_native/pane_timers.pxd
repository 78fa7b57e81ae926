# Event-time timers of keys in windows, in buckets of equal time: many keys share the few times of a trigger.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.panes cimport Pane


cdef struct PaneTimer:
    Pane* pane
    uint32_t key  # its number in the pane


cdef struct TimerBucket:
    int64_t time
    PaneTimer* timers  # in order of registration
    int64_t n
    int64_t capacity


cdef struct PaneTimers:
    TimerBucket* buckets  # by time; behind the n buckets in use are empty ones with their memory
    int64_t n
    int64_t allocated
    int64_t capacity


cdef int pane_timer_add(PaneTimers* timers, int64_t time, Pane* pane, uint32_t key) except -1 nogil
# Takes off the first bucket.
cdef void pane_timers_drop(PaneTimers* timers) noexcept nogil
cdef void pane_timers_free(PaneTimers* timers) noexcept nogil

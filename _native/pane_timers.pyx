"""Event-time timers of keys in windows, in buckets of equal time: many keys share the few times of a trigger."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from flinkcore._native.memory cimport grow

cdef const char* _WHAT = b"the timers of windows"  # that memory is for


cdef TimerBucket* _bucket(PaneTimers* timers, int64_t time) except NULL nogil:
    cdef int64_t low = 0, high = timers.n, middle
    cdef TimerBucket bucket
    if timers.n and timers.buckets[timers.n - 1].time < time:
        low = timers.n
    while low < high:
        middle = (low + high) >> 1
        if timers.buckets[middle].time < time:
            low = middle + 1
        else:
            high = middle
    if low < timers.n and timers.buckets[low].time == time:
        return &timers.buckets[low]
    if timers.n == timers.allocated:
        if timers.n == timers.capacity:
            timers.buckets = <TimerBucket*> grow(timers.buckets, (timers.capacity * 2 + 16) * sizeof(TimerBucket), _WHAT)
            timers.capacity = timers.capacity * 2 + 16
        memset(&timers.buckets[timers.n], 0, sizeof(TimerBucket))
        timers.allocated += 1
    bucket = timers.buckets[timers.n]
    memmove(&timers.buckets[low + 1], &timers.buckets[low], (timers.n - low) * sizeof(TimerBucket))
    bucket.time = time
    timers.buckets[low] = bucket
    timers.n += 1
    return &timers.buckets[low]


cdef int pane_timer_add(PaneTimers* timers, int64_t time, Pane* pane, uint32_t key) except -1 nogil:
    cdef TimerBucket* bucket = _bucket(timers, time)
    if bucket.n == bucket.capacity:
        bucket.timers = <PaneTimer*> grow(bucket.timers, (bucket.capacity * 2 + 8) * sizeof(PaneTimer), _WHAT)
        bucket.capacity = bucket.capacity * 2 + 8
    bucket.timers[bucket.n].pane = pane
    bucket.timers[bucket.n].key = key
    bucket.n += 1
    return 0


cdef void pane_timers_drop(PaneTimers* timers) noexcept nogil:
    cdef TimerBucket bucket = timers.buckets[0]
    timers.n -= 1
    memmove(&timers.buckets[0], &timers.buckets[1], timers.n * sizeof(TimerBucket))
    bucket.n = 0
    if timers.allocated - timers.n > 8:  # what a crowded time took is not kept for ever
        free(bucket.timers)
        bucket.timers = NULL
        bucket.capacity = 0
    timers.buckets[timers.n] = bucket


cdef void pane_timers_free(PaneTimers* timers) noexcept nogil:
    cdef int64_t i
    for i in range(timers.allocated):
        free(timers.buckets[i].timers)
    free(timers.buckets)

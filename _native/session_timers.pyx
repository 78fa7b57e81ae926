"""Timers of sessions, by time: a heap of those that are due soon, and buckets of the others.

Nearly all timers of sessions lie within the next gap. They are put into the bucket of their time, and into the small heap when it
is their bucket's turn: a heap of all sessions would miss the cache at each level.
"""

from libc.stdint cimport INT64_MIN, int64_t
from libc.stdlib cimport calloc, free, realloc


cdef inline bint _earlier(const SessionTimer* a, const SessionTimer* b) noexcept nogil:
    return a.due < b.due or (a.due == b.due and a.sequence < b.sequence)


cdef inline int64_t _bucket(const SessionTimers* timers, int64_t due) noexcept nogil:
    cdef int64_t bucket = due // timers.width
    return bucket - 1 if bucket * timers.width > due else bucket  # C truncates


cdef SessionTimer* _with_room(SessionTimer* timers, int64_t n, int64_t* capacity) except NULL nogil:
    if timers != NULL and n < capacity[0]:
        return timers
    timers = <SessionTimer*> realloc(timers, (capacity[0] * 2 + 16) * sizeof(SessionTimer))
    if timers == NULL:
        with gil:
            raise MemoryError("timers of sessions")
    capacity[0] = capacity[0] * 2 + 16
    return timers


cdef int _heap_push(TimerHeap* heap, SessionTimer timer) except -1 nogil:
    cdef int64_t at = heap.n, parent
    heap.timers = _with_room(heap.timers, heap.n, &heap.capacity)
    heap.n += 1
    while at:
        parent = (at - 1) >> 1
        if not _earlier(&timer, &heap.timers[parent]):
            break
        heap.timers[at] = heap.timers[parent]
        at = parent
    heap.timers[at] = timer
    return 0


cdef void _heap_pop(TimerHeap* heap) noexcept nogil:
    cdef SessionTimer last
    cdef int64_t at = 0, child
    heap.n -= 1
    last = heap.timers[heap.n]
    while True:
        child = 2 * at + 1
        if child >= heap.n:
            break
        if child + 1 < heap.n and _earlier(&heap.timers[child + 1], &heap.timers[child]):
            child += 1
        if not _earlier(&heap.timers[child], &last):
            break
        heap.timers[at] = heap.timers[child]
        at = child
    heap.timers[at] = last


cdef int _put(SessionTimers* timers, SessionTimer timer) except -1 nogil:
    cdef int64_t bucket = _bucket(timers, timer.due)
    cdef TimerBin* bin
    if bucket < timers.near_to:
        return _heap_push(&timers.near, timer)
    if bucket >= timers.near_to + TIMER_BUCKETS:
        return _heap_push(&timers.far, timer)
    bin = &timers.bins[bucket & (TIMER_BUCKETS - 1)]
    bin.timers = _with_room(bin.timers, bin.n, &bin.capacity)
    bin.timers[bin.n] = timer
    bin.n += 1
    timers.n_binned += 1
    return 0


cdef int _take_far(SessionTimers* timers) except -1 nogil:
    # Those that the ring reaches by now.
    cdef SessionTimer timer
    while timers.far.n and _bucket(timers, timers.far.timers[0].due) < timers.near_to + TIMER_BUCKETS:
        timer = timers.far.timers[0]
        _heap_pop(&timers.far)
        _put(timers, timer)
    return 0


cdef int session_timers_start(SessionTimers* timers, int64_t width) except -1:
    timers.width = max(width, <int64_t> 2)  # the number of a bucket and its neighbours' is an int64
    timers.near_to = _bucket(timers, INT64_MIN)
    timers.bins = <TimerBin*> calloc(TIMER_BUCKETS, sizeof(TimerBin))
    if timers.bins == NULL:
        raise MemoryError("timers of sessions")
    return 0


cdef int session_timer_push(SessionTimers* timers, SessionTimer timer) except -1 nogil:
    timer.sequence = timers.sequence
    timers.sequence += 1
    return _put(timers, timer)


cdef bint session_timers_load(SessionTimers* timers, int64_t time) except -1 nogil:
    cdef TimerBin bin
    cdef int64_t place, last = _bucket(timers, time)
    while timers.near_to <= last:
        if timers.n_binned == 0:  # nothing is nearer than the far ones
            if timers.far.n == 0 or _bucket(timers, timers.far.timers[0].due) > last:
                timers.near_to = last + 1
                _take_far(timers)
                return False
            timers.near_to = _bucket(timers, timers.far.timers[0].due)
            _take_far(timers)
        place = timers.near_to & (TIMER_BUCKETS - 1)
        timers.near_to += 1
        if timers.bins[place].n:
            bin = timers.loaded
            timers.loaded = timers.bins[place]
            timers.bins[place] = bin
            timers.bins[place].n = 0
            timers.n_binned -= timers.loaded.n
            _take_far(timers)
            return True
        _take_far(timers)
    return False


cdef void session_timer_pop(SessionTimers* timers) noexcept nogil:
    _heap_pop(&timers.near)


cdef int64_t session_timers_number(const SessionTimers* timers) noexcept nogil:
    return timers.near.n + timers.n_binned + timers.far.n


cdef bint _heap_is_sound(const TimerHeap* heap) noexcept nogil:
    cdef int64_t i
    for i in range(1, heap.n):
        if _earlier(&heap.timers[i], &heap.timers[(i - 1) >> 1]):
            return False
    return True


cdef bint session_timers_are_sound(const SessionTimers* timers) noexcept nogil:
    cdef int64_t i, j, bucket, binned = 0
    for i in range(timers.near.n):
        if _bucket(timers, timers.near.timers[i].due) >= timers.near_to:
            return False
    for i in range(timers.far.n):
        if _bucket(timers, timers.far.timers[i].due) < timers.near_to + TIMER_BUCKETS:
            return False
    for i in range(TIMER_BUCKETS):
        binned += timers.bins[i].n
        for j in range(timers.bins[i].n):
            bucket = _bucket(timers, timers.bins[i].timers[j].due)
            if bucket & (TIMER_BUCKETS - 1) != i or not timers.near_to <= bucket < timers.near_to + TIMER_BUCKETS:
                return False
    return binned == timers.n_binned and _heap_is_sound(&timers.near) and _heap_is_sound(&timers.far)


cdef void session_timers_free(SessionTimers* timers) noexcept nogil:
    cdef int64_t i
    if timers.bins != NULL:
        for i in range(TIMER_BUCKETS):
            free(timers.bins[i].timers)
    free(timers.bins)
    free(timers.loaded.timers)
    free(timers.near.timers)
    free(timers.far.timers)

"""Timers by dense key id, for functions over batches: which keys are due, and where batches are cut.

No timer of a key may be due between two of its elements in one batch. A key that must wait for a timer does not hold up the others:
its elements from there on are put off to a later batch.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from flinkcore.errors import DataError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call
from flinkcore._native.memory cimport block_bytes, grow, prefetch


# ---- the timers of each key --------------------------------------------------------------------------------------


cdef enum:
    BLOCK_SHIFT = 10
    LEAST_KEYS = 1 << BLOCK_SHIFT
    LEAST_LATER = 4

cdef const char* _WHAT = b"the timers of keys"


cdef inline uint32_t _place(const LaterTimers* timers, int64_t time_ms) noexcept nogil:
    # Returns the place of the time, or where it is to be inserted.
    cdef uint32_t low = timers.begin, high = timers.end, middle
    if low < high and timers.times_ms[high - 1] < time_ms:
        return high
    while low < high:
        middle = (low + high) >> 1
        if timers.times_ms[middle] < time_ms:
            low = middle + 1
        else:
            high = middle
    return low


cdef int _insert(LaterTimers* timers, uint32_t at, int64_t time_ms) except -1 nogil:
    cdef uint32_t n = timers.end - timers.begin, grown
    cdef int64_t* times_ms
    # Timers leave at the front, so a new first one finds room there.
    if at == timers.begin and at > 0:
        timers.begin -= 1
        timers.times_ms[timers.begin] = time_ms
        return 0
    if timers.end == timers.capacity:
        # If half of the memory is free at the front, the timers move there: O(1) amortised, and a key whose timers come and go keeps
        # its memory.
        if timers.begin > timers.capacity >> 1:
            memmove(timers.times_ms, timers.times_ms + timers.begin, n * sizeof(int64_t))
        else:
            grown = max(<uint32_t> LEAST_LATER, 2 * timers.capacity)
            times_ms = <int64_t*> grow(NULL, grown * sizeof(int64_t), _WHAT)
            if n:
                memmove(times_ms, timers.times_ms + timers.begin, n * sizeof(int64_t))
            free(timers.times_ms)
            timers.times_ms = times_ms
            timers.capacity = grown
        at -= timers.begin
        timers.begin = 0
        timers.end = n
    memmove(timers.times_ms + at + 1, timers.times_ms + at, (timers.end - at) * sizeof(int64_t))
    timers.times_ms[at] = time_ms
    timers.end += 1
    return 0


@cython.final
cdef class KeyTimers:
    """Timers of one domain by dense key id: each (key, time) once.

    Made for keys with few timers, mostly one, whose next timer is requested all the time. A key takes 16 bytes with at most one
    timer; a second one 32 more. Registering and deleting take O(log n) in the timers of the *key*, and a move of those that are
    later; finding the due keys reads one number per 1,024 keys, and the keys of the blocks that may have one. For one thread at
    a time.

    Examples
    --------
    >>> import numpy as np
    >>> timers = KeyTimers()
    >>> timers.grow(3)
    >>> timers.register(np.array([0, 2, 2]), np.array([30, 10, 20]))
    3
    >>> timers.due_keys(10)
    array([2])
    """

    def __cinit__(self):
        self.n_keys = 0

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.n_lists):
            free(self.lists[i].times_ms)
        free(self.lists)
        free(self.free_lists)
        free(self.first_ms)
        free(self.counts)
        free(self.later)
        free(self.block_ms)

    def __len__(self):
        return self.n_timers

    def memory_bytes(self):
        """Bytes that the timers take."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n_bytes = block_bytes(self.first_ms) + block_bytes(self.counts) + block_bytes(self.later)
        cdef uint32_t i
        n_bytes += block_bytes(self.block_ms) + block_bytes(self.lists) + block_bytes(self.free_lists)
        for i in range(self.n_lists):
            n_bytes += self.lists[i].capacity * sizeof(int64_t)
        return n_bytes

    def grow(self, int64_t n_keys):
        """Make room for the key ids below `n_keys`; amortised O(1) per key."""
        cdef Call call = begin_call(&self.guard, self)
        self.reach(n_keys)

    cdef int reach(self, int64_t n_keys) except -1:
        cdef int64_t capacity = max(self.capacity, LEAST_KEYS), i
        if n_keys > self.capacity:
            while capacity < n_keys:
                capacity *= 2
            self.first_ms = <int64_t*> grow(self.first_ms, capacity * sizeof(int64_t), _WHAT)
            self.counts = <uint32_t*> grow(self.counts, capacity * sizeof(uint32_t), _WHAT)
            self.later = <uint32_t*> grow(self.later, capacity * sizeof(uint32_t), _WHAT)
            self.block_ms = <int64_t*> grow(self.block_ms, (capacity >> BLOCK_SHIFT) * sizeof(int64_t), _WHAT)
            for i in range(self.capacity, capacity):
                self.first_ms[i] = INT64_MAX
            for i in range(self.capacity >> BLOCK_SHIFT, capacity >> BLOCK_SHIFT):
                self.block_ms[i] = INT64_MAX
            memset(self.counts + self.capacity, 0, (capacity - self.capacity) * sizeof(uint32_t))
            memset(self.later + self.capacity, 0, (capacity - self.capacity) * sizeof(uint32_t))
            self.capacity = capacity
        self.n_keys = max(self.n_keys, n_keys)
        return 0

    # ---- one timer ----

    cdef LaterTimers* _list(self, int64_t key) except NULL nogil:
        cdef uint32_t capacity, number
        if self.later[key]:
            return &self.lists[self.later[key] - 1]
        if self.n_free:
            self.n_free -= 1
            number = self.free_lists[self.n_free]
        else:
            if self.n_lists == self.lists_capacity:
                capacity = max(<uint32_t> 16, 2 * self.lists_capacity)
                self.lists = <LaterTimers*> grow(self.lists, capacity * sizeof(LaterTimers), _WHAT)
                self.free_lists = <uint32_t*> grow(self.free_lists, capacity * sizeof(uint32_t), _WHAT)
                self.lists_capacity = capacity
            number = self.n_lists
            self.n_lists += 1
            memset(&self.lists[number], 0, sizeof(LaterTimers))
        self.later[key] = number + 1
        return &self.lists[number]

    cdef void _free_list(self, int64_t key) noexcept nogil:
        # The list's memory is kept for the next key that needs one.
        cdef uint32_t number = self.later[key] - 1
        self.lists[number].begin = self.lists[number].end = 0
        self.free_lists[self.n_free] = number
        self.n_free += 1
        self.later[key] = 0

    cdef int add(self, int64_t key, int64_t time_ms) except -1 nogil:
        cdef LaterTimers* timers
        cdef uint32_t at
        if self.counts[key] == 0:
            self.first_ms[key] = time_ms
        elif time_ms == self.first_ms[key]:
            return 0
        else:
            timers = self._list(key)
            if time_ms < self.first_ms[key]:
                _insert(timers, timers.begin, self.first_ms[key])
                self.first_ms[key] = time_ms
            else:
                at = _place(timers, time_ms)
                if at < timers.end and timers.times_ms[at] == time_ms:
                    return 0
                _insert(timers, at, time_ms)
        # A block's time is a lower bound of its keys' timers: removing a timer does not raise it, the search for due keys does.
        if time_ms < self.block_ms[key >> BLOCK_SHIFT]:
            self.block_ms[key >> BLOCK_SHIFT] = time_ms
        self.counts[key] += 1
        self.n_timers += 1
        return 1

    cdef int remove(self, int64_t key, int64_t time_ms) noexcept nogil:
        cdef LaterTimers* timers
        cdef uint32_t at
        if self.counts[key] == 0 or time_ms < self.first_ms[key]:
            return 0
        if time_ms == self.first_ms[key]:
            self.remove_first(key)
            return 1
        if self.counts[key] == 1:
            return 0
        timers = &self.lists[self.later[key] - 1]
        at = _place(timers, time_ms)
        if at == timers.end or timers.times_ms[at] != time_ms:
            return 0
        memmove(timers.times_ms + at, timers.times_ms + at + 1, (timers.end - at - 1) * sizeof(int64_t))
        timers.end -= 1
        self.counts[key] -= 1
        self.n_timers -= 1
        if self.counts[key] == 1:
            self._free_list(key)
        return 1

    cdef void remove_first(self, int64_t key) noexcept nogil:
        cdef LaterTimers* timers
        self.counts[key] -= 1
        self.n_timers -= 1
        if self.counts[key] == 0:
            self.first_ms[key] = INT64_MAX
            return
        timers = &self.lists[self.later[key] - 1]
        self.first_ms[key] = timers.times_ms[timers.begin]
        timers.begin += 1
        if self.counts[key] == 1:
            self._free_list(key)

    cdef void remove_all(self, int64_t key) noexcept nogil:
        self.n_timers -= self.counts[key]
        if self.counts[key] > 1:
            self._free_list(key)
        self.counts[key] = 0
        self.first_ms[key] = INT64_MAX

    # ---- columns ----

    cdef int _check_ids(self, const int64_t[::1] keys) except -1:
        cdef int64_t i
        for i in range(keys.shape[0]):
            if not 0 <= keys[i] < self.n_keys:
                raise DataError(
                    f"row {i}: there is no key of the id {keys[i]}; there are {self.n_keys:,} keys", row=i
                )
        return 0

    def register(self, const int64_t[::1] keys not None, const int64_t[::1] times_ms not None):
        """Register timers row by row.

        Parameters
        ----------
        keys, times_ms : int64 array (n_rows,)
            Dense ids, and when each timer is due.

        Returns
        -------
        int
            Number of timers added. A key that has an equal timer keeps it.

        Raises
        ------
        DataError
            If an id is not below the number of keys, or the columns are not equally long. Nothing is registered.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, added = 0
        _check_lengths(keys, times_ms)
        self._check_ids(keys)
        with nogil:
            for i in range(keys.shape[0]):
                added += self.add(keys[i], times_ms[i])
        return added

    def delete(self, const int64_t[::1] keys not None, const int64_t[::1] times_ms not None):
        """Delete timers row by row; parameters and errors are those of `register`.

        Returns
        -------
        int
            Number of timers that were there.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, removed = 0
        _check_lengths(keys, times_ms)
        self._check_ids(keys)
        with nogil:
            for i in range(keys.shape[0]):
                removed += self.remove(keys[i], times_ms[i])
        return removed

    def delete_all(self, const int64_t[::1] keys not None):
        """Delete all timers of keys; errors are those of `register`.

        Returns
        -------
        int
            Number of timers that were there.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, before = self.n_timers
        self._check_ids(keys)
        with nogil:
            for i in range(keys.shape[0]):
                self.remove_all(keys[i])
        return before - self.n_timers

    def first(self, const int64_t[::1] keys not None):
        """Return when the first timer of each key is due, and whether it has one.

        Parameters
        ----------
        keys : int64 array (n_rows,)
            A DataError if an id is not below the number of keys.

        Returns
        -------
        times_ms : int64 array (n_rows,)
            2**63 - 1 without one.
        exists : bool array (n_rows,)
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = keys.shape[0]
        self._check_ids(keys)
        times_ms, exists = np.empty(n, np.int64), np.empty(n, np.bool_)
        cdef int64_t[::1] times = times_ms
        cdef uint8_t[::1] there = exists.view(np.uint8)
        with nogil:
            for i in range(n):
                times[i] = self.first_ms[keys[i]]
                there[i] = self.counts[keys[i]] > 0
        return times_ms, exists

    def poll(self, const int64_t[::1] keys not None):
        """Delete the first timer of each key that has one; errors are those of `first`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        self._check_ids(keys)
        with nogil:
            for i in range(keys.shape[0]):
                if self.counts[keys[i]]:
                    self.remove_first(keys[i])

    def due_keys(self, int64_t time_ms):
        """Return the ids of the keys whose first timer is due at a time, ascending.

        Parameters
        ----------
        time_ms : int
            A timer is due if its time is not later.

        Returns
        -------
        int64 array (n_due,)
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t block, key, end, least, n = 0, n_keys = self.n_keys
        cdef int64_t n_blocks = (n_keys + (1 << BLOCK_SHIFT) - 1) >> BLOCK_SHIFT
        cdef int64_t[::1] found
        if self.n_timers == 0:
            return np.empty(0, np.int64)
        with nogil:
            for block in range(n_blocks):
                if self.block_ms[block] > time_ms:
                    continue
                end = min((block + 1) << BLOCK_SHIFT, n_keys)
                least = INT64_MAX
                for key in range(block << BLOCK_SHIFT, end):
                    least = min(least, self.first_ms[key])
                    n += self.first_ms[key] <= time_ms and self.counts[key] > 0
                self.block_ms[block] = least
        due = np.empty(n, np.int64)
        found = due
        n = 0
        with nogil:
            for block in range(n_blocks):
                if self.block_ms[block] > time_ms:
                    continue
                end = min((block + 1) << BLOCK_SHIFT, n_keys)
                for key in range(block << BLOCK_SHIFT, end):
                    if self.first_ms[key] <= time_ms and self.counts[key] > 0:
                        found[n] = key
                        n += 1
        return due

    def timers(self):
        """Return all timers, by key id and time.

        Returns
        -------
        keys, times_ms : int64 array (n_timers,)
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        cdef uint32_t i
        cdef const LaterTimers* timers
        keys, times_ms = np.empty(self.n_timers, np.int64), np.empty(self.n_timers, np.int64)
        cdef int64_t[::1] ids = keys, times = times_ms
        with nogil:
            for key in range(self.n_keys):
                if self.counts[key] == 0:
                    continue
                ids[n] = key
                times[n] = self.first_ms[key]
                n += 1
                if self.counts[key] > 1:
                    timers = &self.lists[self.later[key] - 1]
                    for i in range(timers.begin, timers.end):
                        ids[n] = key
                        times[n] = timers.times_ms[i]
                        n += 1
        return keys, times_ms

    def _check(self):
        """Assert every invariant; O(n)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, total = 0, lists = 0
        cdef uint32_t i
        cdef LaterTimers* timers
        for key in range(self.n_keys):
            total += self.counts[key]
            assert (self.later[key] > 0) == (self.counts[key] > 1), f"list of key {key}"
            assert self.counts[key] or self.first_ms[key] == INT64_MAX, f"first of key {key}"
            assert self.block_ms[key >> BLOCK_SHIFT] <= self.first_ms[key], f"block of key {key}"
            if self.counts[key] > 1:
                lists += 1
                timers = &self.lists[self.later[key] - 1]
                assert timers.end - timers.begin == self.counts[key] - 1, f"length of key {key}"
                assert timers.end <= timers.capacity, f"capacity of key {key}"
                for i in range(timers.begin, timers.end):
                    before = timers.times_ms[i - 1] if i > timers.begin else self.first_ms[key]
                    assert before < timers.times_ms[i], f"order of key {key}"
        assert total == self.n_timers
        assert lists + self.n_free == self.n_lists


cdef int _check_lengths(const int64_t[::1] keys, const int64_t[::1] times_ms) except -1:
    if keys.shape[0] != times_ms.shape[0]:
        raise DataError(f"{keys.shape[0]} key ids for {times_ms.shape[0]} times; they must be equally many")
    return 0


# ---- where batches are cut ---------------------------------------------------------------------------------------


cdef enum:
    LOOK_AHEAD = 16


cdef struct KeyProgress:
    # Event time is compared by watermarks: a timer at T fires at the first one above max(T - 1, floor).
    int64_t floor_ms        # watermark in force at the key's last call; where that was of an event-time timer, the one before
    int64_t passed_ms       # watermark in force after the key's last call
    int64_t clock_ms        # processing time of the key's last call
    int64_t limit_ms        # of the current batch: an element under a higher watermark has to wait
    int64_t clock_limit_ms  # likewise, for one that arrives later
    int64_t least_ms        # the earliest time for which its elements in the batch may register an event-time timer
    int64_t least_clock_ms  # likewise, a processing-time timer
    uint64_t batch          # the batch that the key was last seen in; 0: none
    uint64_t waits          # the batch in which its elements were last put off


cdef inline int64_t _plus(int64_t time_ms, int64_t delay_ms) noexcept nogil:
    # Saturates: a limit beyond int64 means "never", and must not wrap to the other end.
    if delay_ms > 0 and time_ms > INT64_MAX - delay_ms:
        return INT64_MAX
    if delay_ms < 0 and time_ms < INT64_MIN - delay_ms:
        return INT64_MIN
    return time_ms + delay_ms


cdef inline int64_t _before(int64_t time_ms) noexcept nogil:
    return time_ms if time_ms == INT64_MIN else time_ms - 1


@cython.final
cdef class BatchCuts:
    """Progress of every key, and the choice of elements that may come together in one batch.

    An element of a key goes into the batch unless a timer fires between the key's elements before it and itself: one that is
    registered, or one that those elements in the batch may register, as far as is known of the function. The rows that are
    put off are the key's own.

    Parameters
    ----------
    event_time_timers, processing_time_timers : KeyTimers
    one_element_per_key : bool
        True if a key may come only once in a batch; the delays then have no effect.
    event_time_delay_ms : int or None
        Elements register event-time timers no earlier than their timestamp plus this delay, or at any time if None.
    processing_time_delay_ms : int or None
        Elements register processing-time timers no earlier than their arrival plus this delay, or none if None.
    """

    cdef CallGuard guard
    cdef KeyTimers event_time
    cdef KeyTimers processing_time
    cdef bint one_element_per_key
    cdef bint has_event_time_delay
    cdef bint has_processing_time_delay
    cdef int64_t event_time_delay_ms
    cdef int64_t processing_time_delay_ms
    cdef KeyProgress* keys
    cdef int64_t n_keys
    cdef int64_t capacity
    cdef int64_t floor_ms
    cdef int64_t clock_ms
    cdef uint64_t batch

    def __cinit__(
        self,
        KeyTimers event_time_timers not None,
        KeyTimers processing_time_timers not None,
        bint one_element_per_key=False,
        object event_time_delay_ms=None,
        object processing_time_delay_ms=None,
    ):
        self.event_time = event_time_timers
        self.processing_time = processing_time_timers
        self.one_element_per_key = one_element_per_key
        self.has_event_time_delay = event_time_delay_ms is not None
        self.event_time_delay_ms = event_time_delay_ms or 0
        self.has_processing_time_delay = processing_time_delay_ms is not None
        self.processing_time_delay_ms = processing_time_delay_ms or 0
        self.floor_ms = self.clock_ms = INT64_MIN

    def __dealloc__(self):
        free(self.keys)

    def grow(self, int64_t n_keys):
        """Add the key ids below `n_keys`, and make room for their timers; amortised O(1) per key."""
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_event_time = begin_call(&self.event_time.guard, self.event_time)
        cdef Call of_processing_time = begin_call(&self.processing_time.guard, self.processing_time)
        cdef int64_t capacity = max(self.capacity, 1024), key
        self.event_time.reach(n_keys)
        self.processing_time.reach(n_keys)
        if n_keys > self.capacity:
            while capacity < n_keys:
                capacity *= 2
            self.keys = <KeyProgress*> grow(self.keys, capacity * sizeof(KeyProgress), b"what keys have seen")
            self.capacity = capacity
        for key in range(self.n_keys, n_keys):
            self.keys[key].floor_ms = self.keys[key].passed_ms = self.floor_ms
            self.keys[key].clock_ms = self.clock_ms
            self.keys[key].batch = self.keys[key].waits = 0
        self.n_keys = max(self.n_keys, n_keys)

    def memory_bytes(self):
        """Bytes that the progress of the keys takes."""
        cdef Call call = begin_call(&self.guard, self)
        return self.n_keys * <int64_t> sizeof(KeyProgress)

    def start_from(self, int64_t watermark_ms, int64_t clock_ms):
        """Set the watermark and the processing time that all keys have seen, as after a restore."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key
        self.floor_ms = watermark_ms
        self.clock_ms = clock_ms
        for key in range(self.n_keys):
            self.keys[key].floor_ms = self.keys[key].passed_ms = watermark_ms
            self.keys[key].clock_ms = clock_ms

    def lower_floors(self, int64_t watermark_ms):
        """Make event-time timers fire at any watermark above this, also for keys that have seen it already."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key
        for key in range(self.n_keys):
            self.keys[key].floor_ms = min(self.keys[key].floor_ms, watermark_ms)

    cdef inline int64_t _event_time_limit(self, int64_t key) noexcept nogil:
        if self.event_time.counts[key] == 0:
            return INT64_MAX
        return max(_before(self.event_time.first_ms[key]), self.keys[key].floor_ms)

    cdef inline int64_t _processing_time_limit(self, int64_t key) noexcept nogil:
        if self.processing_time.counts[key] == 0:
            return INT64_MAX
        return max(self.processing_time.first_ms[key], self.keys[key].clock_ms)

    cdef inline void _bring_near(self, const int64_t[::1] keys, int64_t row) noexcept nogil:
        cdef int64_t key
        if row < keys.shape[0]:
            key = keys[row]
            prefetch(&self.keys[key])
            prefetch(&self.event_time.first_ms[key])
            prefetch(&self.event_time.counts[key])

    def rows_with_due_timers(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] watermarks_ms not None,
        const int64_t[::1] arrivals_ms not None,
    ):
        """Return the row of each key's first element, where a timer of the key is due before it. O(n).

        Parameters
        ----------
        keys, watermarks_ms, arrivals_ms : int64 array (n_rows,)
            Key, watermark in force and arrival of elements in total order.

        Returns
        -------
        int64 array (n_found,)
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_event_time = begin_call(&self.event_time.guard, self.event_time)
        cdef Call of_processing_time = begin_call(&self.processing_time.guard, self.processing_time)
        cdef int64_t row, key, n = keys.shape[0], n_found = 0
        found = np.empty(n, np.int64)
        cdef int64_t[::1] rows = found
        self.batch += 1
        with nogil:
            for row in range(n):
                self._bring_near(keys, row + LOOK_AHEAD)
                key = keys[row]
                if self.keys[key].waits == self.batch:
                    continue
                self.keys[key].waits = self.batch
                if (
                    watermarks_ms[row] > self._event_time_limit(key)
                    or arrivals_ms[row] > self._processing_time_limit(key)
                ):
                    rows[n_found] = row
                    n_found += 1
        return found[:n_found]

    cdef inline bint _admit(self, int64_t key, int64_t timestamp_ms, int64_t watermark_ms, int64_t arrival_ms) noexcept nogil:
        # Returns true if the key's next element goes into the current batch; its key has then seen it.
        cdef KeyProgress* seen = &self.keys[key]
        cdef bint is_first = seen.batch != self.batch
        cdef int64_t least_ms
        if is_first:
            seen.limit_ms = self._event_time_limit(key)
            seen.clock_limit_ms = self._processing_time_limit(key)
        elif self.one_element_per_key:
            return False
        if watermark_ms > seen.limit_ms or arrival_ms > seen.clock_limit_ms:
            return False
        if is_first:
            seen.batch = self.batch
            seen.least_ms = seen.least_clock_ms = INT64_MIN if self.one_element_per_key else INT64_MAX
        seen.floor_ms = seen.passed_ms = watermark_ms
        seen.clock_ms = arrival_ms
        if self.has_event_time_delay:
            least_ms = _plus(timestamp_ms, self.event_time_delay_ms)
            seen.least_ms = min(seen.least_ms, least_ms)
            seen.limit_ms = min(seen.limit_ms, max(_before(least_ms), watermark_ms))
        else:
            seen.least_ms = INT64_MIN
            seen.limit_ms = min(seen.limit_ms, watermark_ms)
        if self.has_processing_time_delay:
            least_ms = _plus(arrival_ms, self.processing_time_delay_ms)
            seen.least_clock_ms = min(seen.least_clock_ms, least_ms)
            seen.clock_limit_ms = min(seen.clock_limit_ms, max(least_ms, arrival_ms))
        return True

    def take(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] timestamps_ms not None,
        const int64_t[::1] watermarks_ms not None,
        const int64_t[::1] arrivals_ms not None,
    ):
        """Choose the elements of a batch, and note that their keys have seen them. O(n).

        Parameters
        ----------
        keys, timestamps_ms, watermarks_ms, arrivals_ms : int64 array (n_rows,)
            Columns of elements in total order.

        Returns
        -------
        taken : int64 array
            Rows of the batch, ascending.
        waiting : int64 array
            Rows that have to wait for a timer, or because their key is in the batch already, ascending.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_event_time = begin_call(&self.event_time.guard, self.event_time)
        cdef Call of_processing_time = begin_call(&self.processing_time.guard, self.processing_time)
        cdef int64_t row, key, n = keys.shape[0], n_taken = 0, n_waiting = 0
        columns = np.empty((2, n), np.int64)
        cdef int64_t[:, ::1] out = columns
        self.batch += 1
        with nogil:
            for row in range(n):
                self._bring_near(keys, row + LOOK_AHEAD)
                key = keys[row]
                if self.keys[key].waits != self.batch:
                    if self._admit(key, timestamps_ms[row], watermarks_ms[row], arrivals_ms[row]):
                        out[0, n_taken] = row
                        n_taken += 1
                        continue
                    self.keys[key].waits = self.batch
                out[1, n_waiting] = row
                n_waiting += 1
        return columns[0, :n_taken], columns[1, :n_waiting]

    def take_waiting(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] timestamps_ms not None,
        const int64_t[::1] watermarks_ms not None,
        const int64_t[::1] arrivals_ms not None,
        const int64_t[::1] rows not None,
        int64_t[::1] begins not None,
        const int64_t[::1] ends not None,
    ):
        """Choose the elements of a batch from those that wait; O(taken + keys that wait).

        Parameters
        ----------
        keys, timestamps_ms, watermarks_ms, arrivals_ms : int64 array (n_rows,)
            Columns of elements in total order.
        rows : int64 array
            Rows of the elements that wait, key after key, ascending within a key.
        begins, ends : int64 array (n_keys,)
            Range of each key in `rows`. The begins are moved past the rows that are taken.

        Returns
        -------
        int64 array
            Rows of the batch, key after key.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Call of_event_time = begin_call(&self.event_time.guard, self.event_time)
        cdef Call of_processing_time = begin_call(&self.processing_time.guard, self.processing_time)
        cdef int64_t i, at, row, n_taken = 0
        taken = np.empty(rows.shape[0], np.int64)
        cdef int64_t[::1] out = taken
        self.batch += 1
        with nogil:
            for i in range(begins.shape[0]):
                at = begins[i]
                while at < ends[i]:
                    row = rows[at]
                    if not self._admit(keys[row], timestamps_ms[row], watermarks_ms[row], arrivals_ms[row]):
                        break
                    out[n_taken] = row
                    n_taken += 1
                    at += 1
                begins[i] = at
        return taken[:n_taken]

    def fire(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] floors_ms not None,
        const int64_t[::1] watermarks_ms not None,
        const int64_t[::1] clocks_ms not None,
    ):
        """Begin a batch of timers, one of each key, and note what the keys have seen with them.

        Parameters
        ----------
        keys, floors_ms, watermarks_ms, clocks_ms : int64 array (n_rows,)
            Floor of each key, up to which it has seen watermarks; the watermark in force; the processing time. A timer that is
            now registered for a time up to the watermark is due at once if that is above the floor.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        cdef KeyProgress* seen
        self.batch += 1
        for i in range(keys.shape[0]):
            seen = &self.keys[keys[i]]
            seen.batch = self.batch
            seen.floor_ms = floors_ms[i]
            seen.passed_ms = watermarks_ms[i]
            seen.clock_ms = clocks_ms[i]
            seen.least_ms = seen.least_clock_ms = INT64_MIN

    def end_batch(self):
        """End the batch: no key has a part in it any more."""
        cdef Call call = begin_call(&self.guard, self)
        self.batch += 1

    def seen(self, const int64_t[::1] keys not None):
        """Return floor, watermark and processing time of the last call of each key: three int64 arrays (n_rows,)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = keys.shape[0]
        columns = np.empty((3, n), np.int64)
        cdef int64_t[:, ::1] out = columns
        for i in range(n):
            out[0, i] = self.keys[keys[i]].floor_ms
            out[1, i] = self.keys[keys[i]].passed_ms
            out[2, i] = self.keys[keys[i]].clock_ms
        return columns[0], columns[1], columns[2]

    def first_foreign(self, const int64_t[::1] keys not None):
        """Return the first row whose key is not in the current batch, or -1. The ids may be any numbers."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, key
        for i in range(keys.shape[0]):
            key = keys[i]
            if not 0 <= key < self.n_keys or self.keys[key].batch != self.batch:
                return i
        return -1

    def first_too_early(
        self, const int64_t[::1] keys not None, const int64_t[::1] times_ms not None, bint is_event_time
    ):
        """Return the first row with a timer earlier than the function may register, or -1, and the earliest time there.

        The keys must be in the current batch.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, least_ms
        for i in range(keys.shape[0]):
            least_ms = self.keys[keys[i]].least_ms if is_event_time else self.keys[keys[i]].least_clock_ms
            if times_ms[i] < least_ms:
                return i, least_ms
        return -1, 0

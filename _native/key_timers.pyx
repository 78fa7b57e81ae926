"""Timers by dense key id, for functions over batches: which keys are due, and the first timer of each."""

import cython
import numpy as np
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from flinkcore._native.call_guard cimport Call, begin_call

from flinkcore.errors import DataError

cdef enum:
    BLOCK_SHIFT = 10
    LEAST_KEYS = 1 << BLOCK_SHIFT
    LEAST_LATER = 4


cdef inline uint32_t _place(const LaterTimers* timers, int64_t time_ms) noexcept nogil:
    # Where the time is, or is to be put.
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
    if at == timers.begin and at > 0:
        timers.begin -= 1
        timers.times_ms[timers.begin] = time_ms
        return 0
    if timers.end == timers.capacity:
        if timers.begin > timers.capacity >> 1:
            memmove(timers.times_ms, timers.times_ms + timers.begin, n * sizeof(int64_t))
        else:
            grown = max(<uint32_t> LEAST_LATER, 2 * timers.capacity)
            times_ms = <int64_t*> malloc(grown * sizeof(int64_t))
            if times_ms == NULL:
                with gil:
                    raise MemoryError()
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

    Made for keys with few timers, most with one, whose next timer is asked for all the time. A key takes 16 bytes with
    no timer or one; a second one 32 more. Registering and deleting take O(log n) in the timers of the *key*, and a
    move of those that are later; finding the due keys reads one number per 1,024 keys, and the keys of the blocks that
    may have one. For one thread at a time.

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

    def grow(self, int64_t n_keys):
        """Make room for the key ids below `n_keys`; amortised O(1) per key."""
        cdef Call call = begin_call(&self.guard, self)
        self.reach(n_keys)

    cdef int reach(self, int64_t n_keys) except -1:
        cdef int64_t capacity = max(self.capacity, LEAST_KEYS), i
        cdef void* grown
        if n_keys > self.capacity:
            while capacity < n_keys:
                capacity *= 2
            grown = realloc(self.first_ms, capacity * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError()
            self.first_ms = <int64_t*> grown
            grown = realloc(self.counts, capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError()
            self.counts = <uint32_t*> grown
            grown = realloc(self.later, capacity * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError()
            self.later = <uint32_t*> grown
            grown = realloc(self.block_ms, (capacity >> BLOCK_SHIFT) * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError()
            self.block_ms = <int64_t*> grown
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
        cdef void* grown
        if self.later[key]:
            return &self.lists[self.later[key] - 1]
        if self.n_free:
            self.n_free -= 1
            number = self.free_lists[self.n_free]
        else:
            if self.n_lists == self.lists_capacity:
                capacity = max(<uint32_t> 16, 2 * self.lists_capacity)
                grown = realloc(self.lists, capacity * sizeof(LaterTimers))
                if grown == NULL:
                    with gil:
                        raise MemoryError()
                self.lists = <LaterTimers*> grown
                grown = realloc(self.free_lists, capacity * sizeof(uint32_t))
                if grown == NULL:
                    with gil:
                        raise MemoryError()
                self.free_lists = <uint32_t*> grown
                self.lists_capacity = capacity
            number = self.n_lists
            self.n_lists += 1
            memset(&self.lists[number], 0, sizeof(LaterTimers))
        self.later[key] = number + 1
        return &self.lists[number]

    cdef void _free_list(self, int64_t key) noexcept nogil:
        # Its memory is kept for the next key that needs a list.
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
                raise DataError(f"row {i}: there is no key of the id {keys[i]}; there are {self.n_keys:,} keys")
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
            How many were added: a key that has an equal timer keeps that.

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
            How many there were.
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
            How many there were.
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
            2**63 - 1 where there is none.
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

"""Event-time and processing-time timers of a range of key groups, de-duplicated, in firing order."""

import cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from flinkcore._native.arrow cimport RecordBatch
from flinkcore._native.call_guard cimport Call, begin_call, check_no_call
from flinkcore._native.timer_batches cimport timer_queue_delete, timer_queue_due, timer_queue_register, timer_queue_take
from flinkcore._native.timer_columns cimport (
    checked_timer_columns,
    empty_timer_columns,
    timer_columns_of,
    timer_record_batch,
)
from flinkcore._native.timer_columns import Timer, TimerColumns
from flinkcore._native.timer_queue cimport (
    Timer as CTimer,
    TimerOutcome,
    timer_at,
    timer_queue_add,
    timer_queue_clear,
    timer_queue_count,
    timer_queue_find_fault,
    timer_queue_free,
    timer_queue_init,
    timer_queue_move,
    timer_queue_peek,
    timer_queue_poll,
    timer_queue_remove,
    timer_queue_slots,
)

from flinkcore.errors import ConfigurationError, DataError

MAX_KEY_GROUPS = 1 << 15


@cython.final
cdef class TimerHeap:
    """Timers of a key-group range: a min-heap by timestamp that holds each (timestamp, key, namespace) once.

    Timers of equal timestamp fire in the order in which they were registered. A timer takes 52 bytes and, by how full
    its key group's map happens to be, 11 to 22 more; memory once used is kept for reuse until `clear`. The batch verbs
    release the GIL: a second thread that uses the heap meanwhile gets a RuntimeError. Follows Flink's
    HeapPriorityQueueSet, in which the order of equal timestamps is left open.

    Parameters
    ----------
    max_parallelism : int
        Number of key groups in all, 1 to 32768.
    key_group_range : (int, int), optional
        First and last key group held here, inclusive; by default all.

    Raises
    ------
    ConfigurationError
        If max_parallelism or the range is not possible.

    Examples
    --------
    >>> timers = TimerHeap()
    >>> timers.register([30, 10, 10], keys=[1, 2, 2], key_groups=[7, 8, 8])
    array([ True,  True, False])
    >>> timers.advance(20).keys
    array([2])
    """

    def __cinit__(self, int max_parallelism=128, key_group_range=None):
        first, last = (0, max_parallelism - 1) if key_group_range is None else key_group_range
        if not 1 <= max_parallelism <= MAX_KEY_GROUPS:
            raise ConfigurationError(f"max_parallelism is {max_parallelism}; it must be from 1 to {MAX_KEY_GROUPS}")
        if not 0 <= first <= last < max_parallelism:
            raise ConfigurationError(
                f"key_group_range is ({first}, {last}); it must lie within 0 and {max_parallelism - 1} "
                "(max_parallelism - 1), both ends included"
            )
        self.max_parallelism = max_parallelism
        timer_queue_init(&self.queue, first, last)

    def __dealloc__(self):
        timer_queue_free(&self.queue)

    @property
    def key_group_range(self):
        """First and last key group held here, inclusive."""
        return self.queue.first_key_group, self.queue.last_key_group

    cdef int _check_key_group(self, int64_t key_group) except -1:
        if not self.queue.first_key_group <= key_group <= self.queue.last_key_group:
            raise DataError(self._outside(key_group))
        return 0

    def _outside(self, key_group):
        return (
            f"key group {key_group} is outside of this heap's range {self.queue.first_key_group} to "
            f"{self.queue.last_key_group}; route the key to the worker of its key group"
        )

    # ---- single verbs ----

    def add(self, int64_t timestamp_ms, int64_t key, int64_t key_group, int64_t namespace=0):
        """Register one timer; O(log n).

        Parameters
        ----------
        timestamp_ms : int
            When it is due.
        key, namespace : int
            Dense id of the key, id of the namespace.
        key_group : int
            The key's key group, within the range.

        Returns
        -------
        bool
            True if the timer was added *and* is now the head: False for a timer already registered, and False unless it
            is strictly earlier than all others (HeapPriorityQueueSet.add).

        Raises
        ------
        DataError
            If the key group is outside of the range.
        """
        check_no_call(&self.guard, self)
        self._check_key_group(key_group)
        return timer_queue_add(
            &self.queue, timestamp_ms, key, <int32_t> key_group, namespace
        ) == TimerOutcome.TIMER_HEAD

    def remove(self, int64_t timestamp_ms, int64_t key, int64_t key_group, int64_t namespace=0):
        """Delete one timer, if it is registered; O(log n), without search.

        Parameters and errors are those of `add`.

        Returns
        -------
        bool
            True if the timer was registered *and* was the head (HeapPriorityQueueSet.remove).
        """
        check_no_call(&self.guard, self)
        self._check_key_group(key_group)
        return timer_queue_remove(
            &self.queue, timestamp_ms, key, <int32_t> key_group, namespace
        ) == TimerOutcome.TIMER_HEAD

    def move(self, int64_t from_ms, int64_t to_ms, int64_t key, int64_t key_group, int64_t namespace=0):
        """Delete one timer, if it is registered, and register one at another time; O(log n), at the cost of one verb.

        Parameters
        ----------
        from_ms, to_ms : int
            When the timer was due, and when it is due now; if they are equal, it comes after its equals.
        key, key_group, namespace : int
            As for `add`, errors likewise.

        Returns
        -------
        bool
            What `add` returns after `remove`.
        """
        check_no_call(&self.guard, self)
        self._check_key_group(key_group)
        return timer_queue_move(
            &self.queue, from_ms, to_ms, key, <int32_t> key_group, namespace
        ) == TimerOutcome.TIMER_HEAD

    def peek(self):
        """Return the next timer to fire as a Timer, or None (HeapPriorityQueue.peek); O(1)."""
        cdef const CTimer* timer
        check_no_call(&self.guard, self)
        timer = timer_queue_peek(&self.queue)
        if timer == NULL:
            return None
        return Timer(timer.timestamp_ms, timer.key, timer.key_group, timer.namespace_id)

    def poll(self):
        """Remove the next timer to fire and return it as a Timer, or None (HeapPriorityQueue.poll); O(log n)."""
        cdef CTimer timer
        check_no_call(&self.guard, self)
        if not timer_queue_poll(&self.queue, &timer):
            return None
        return Timer(timer.timestamp_ms, timer.key, timer.key_group, timer.namespace_id)

    def poll_due(self, int64_t time_ms):
        """Remove the next timer to fire and return it as a Timer if it is due at a time, else None; O(log n).

        Parameters
        ----------
        time_ms : int
            The timer is due if its timestamp <= time_ms.

        Returns
        -------
        Timer or None
        """
        cdef const CTimer* head
        cdef CTimer timer
        check_no_call(&self.guard, self)
        head = timer_queue_peek(&self.queue)
        if head == NULL or head.timestamp_ms > time_ms:
            return None
        timer_queue_poll(&self.queue, &timer)
        return Timer(timer.timestamp_ms, timer.key, timer.key_group, timer.namespace_id)

    def __len__(self):
        return self.queue.size

    def size(self):
        """Return the number of timers (HeapPriorityQueue.size)."""
        return self.queue.size

    def is_empty(self):
        """Return whether there is no timer (HeapPriorityQueue.isEmpty)."""
        return self.queue.size == 0

    def clear(self):
        """Drop all timers (HeapPriorityQueueSet.clear) and give their memory back."""
        check_no_call(&self.guard, self)
        timer_queue_clear(&self.queue)

    def __iter__(self):
        """Iterate over all timers as they are now, in order of registration; Flink's iterator has no stated order."""
        return map(Timer._make, zip(*(column.tolist() for column in self.timers())))

    # ---- batches ----

    cdef object _change(self, bint delete, object timestamps_ms, object keys, object key_groups, object namespaces):
        import numpy as np

        cdef Call call = begin_call(&self.guard, self)
        timestamps_ms, keys, key_groups, namespaces, scalar = checked_timer_columns(
            timestamps_ms, keys, key_groups, namespaces
        )
        cdef int64_t n = len(timestamps_ms), stride = 0 if scalar else 1
        changed = np.empty(n, np.bool_)
        if n == 0:
            return changed
        first, last = self.key_group_range
        if key_groups.min() < first or key_groups.max() > last:
            row = int(np.argmax((key_groups < first) | (key_groups > last)))
            raise DataError(f"row {row}: {self._outside(key_groups[row])}")
        cdef const int64_t[::1] timestamp = np.ascontiguousarray(timestamps_ms, np.int64)
        cdef const int64_t[::1] key = np.ascontiguousarray(keys, np.int64)
        cdef const int32_t[::1] key_group = np.ascontiguousarray(key_groups, np.int32)
        cdef const int64_t[::1] namespace = np.ascontiguousarray(namespaces, np.int64)
        cdef uint8_t[::1] out = changed.view(np.uint8)
        with nogil:
            if delete:
                timer_queue_delete(
                    &self.queue, &timestamp[0], &key[0], &key_group[0], &namespace[0], stride, n, &out[0]
                )
            else:
                timer_queue_register(
                    &self.queue, &timestamp[0], &key[0], &key_group[0], &namespace[0], stride, n, &out[0]
                )
        return changed

    def register(self, timestamps_ms, keys, key_groups, namespaces=0):
        """Register a batch of timers, as if added row after row.

        Parameters
        ----------
        timestamps_ms : int array (n_rows,)
            When each timer is due, in ms.
        keys : int array (n_rows,)
            Dense ids of the keys.
        key_groups : int array (n_rows,)
            The keys' key groups, all within the range. int32 is taken as it is, other types are converted.
        namespaces : int array (n_rows,) or int
            Ids of the namespaces, or one for all rows.

        Returns
        -------
        bool array (n_rows,)
            True where the row's timer was not registered yet, neither before nor by an earlier row.

        Raises
        ------
        SchemaError
            If a column holds no integers, or the lengths differ. Nothing is registered.
        DataError
            If a key group is outside of the range. Nothing is registered.
        """
        return self._change(False, timestamps_ms, keys, key_groups, namespaces)

    def delete(self, timestamps_ms, keys, key_groups, namespaces=0):
        """Delete a batch of timers, as if removed row after row.

        Parameters and errors are those of `register`; where there is an error, nothing is deleted.

        Returns
        -------
        bool array (n_rows,)
            True where the row's timer was registered; rows of unknown timers change nothing.
        """
        return self._change(True, timestamps_ms, keys, key_groups, namespaces)

    def advance(self, int64_t watermark_ms, limit=None):
        """Remove all timers that are due at a watermark and return them in firing order.

        A timer registered afterwards at or below the watermark waits for the next call, which the same watermark suffices
        for: call again until nothing fires, as InternalTimerServiceImpl.advanceWatermark does with timers registered
        while it fires.

        Parameters
        ----------
        watermark_ms : int
            Timers with timestamp <= watermark_ms are due.
        limit : int, optional
            Return at most so many, the first ones; the others stay registered.

        Returns
        -------
        TimerColumns
            The timers by timestamp, equal ones in order of registration.

        Raises
        ------
        ConfigurationError
            If limit is negative.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n, at_most = self.queue.size if limit is None else min(limit, self.queue.size)
        cdef int64_t[::1] timestamp, key, namespace
        cdef int32_t[::1] key_group
        if at_most < 0:
            raise ConfigurationError(f"limit is {limit}; it must not be negative")
        with nogil:
            n = timer_queue_due(&self.queue, watermark_ms, at_most)
        fired = empty_timer_columns(n)
        if n:
            timestamp, key, key_group, namespace = fired
            with nogil:
                timer_queue_take(&self.queue, &timestamp[0], &key[0], &key_group[0], &namespace[0])
        return fired

    # ---- by key group ----

    cdef tuple _range(self, key_group_range):
        first, last = key_group_range if key_group_range is not None else self.key_group_range
        if not self.queue.first_key_group <= first <= last <= self.queue.last_key_group:
            raise ConfigurationError(
                f"key_group_range is ({first}, {last}); it must lie within this heap's range "
                f"{self.queue.first_key_group} to {self.queue.last_key_group}, both ends included"
            )
        return first, last

    def timers(self, key_group_range=None):
        """Return the timers of a key-group range in order of registration; O(k log k) for k timers and their buckets.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive, within the heap's range; by default all.

        Returns
        -------
        TimerColumns

        Raises
        ------
        ConfigurationError
            If the range is not within the heap's.
        """
        import numpy as np

        cdef Call call = begin_call(&self.guard, self)
        cdef int32_t first, last
        cdef int64_t n, i
        cdef const CTimer* timer
        first, last = self._range(key_group_range)
        n = timer_queue_count(&self.queue, first, last)
        columns = empty_timer_columns(n)
        cdef int64_t[::1] timestamp = columns[0], key = columns[1], namespace = columns[3]
        cdef int32_t[::1] key_group = columns[2]
        cdef uint32_t[::1] slots = np.empty(n, np.uint32)
        with nogil:
            if n:
                timer_queue_slots(&self.queue, first, last, &slots[0])
            for i in range(n):
                timer = timer_at(&self.queue, slots[i])
                timestamp[i] = timer.timestamp_ms
                key[i] = timer.key
                key_group[i] = timer.key_group
                namespace[i] = timer.namespace_id
        return columns

    def subset_for_key_group(self, key_group):
        """Return the timers of one key group in order of registration (HeapPriorityQueueSet.getSubsetForKeyGroup).

        Parameters
        ----------
        key_group : int
            A DataError if it is outside of the range.

        Returns
        -------
        TimerColumns
        """
        self._check_key_group(key_group)
        return self.timers((key_group, key_group))

    def snapshot(self, key_group_range=None):
        """Return the timers of a key-group range as a record batch; the heap stays as it is.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive, within the heap's range; by default all.

        Returns
        -------
        NativeArray
            Columns timestamp_ms (int64), key (int64), key_group (int32), namespace (int64), without nulls, the rows in
            order of registration: restoring them keeps the order of equal timestamps.

        Raises
        ------
        ConfigurationError
            If the range is not within the heap's.
        """
        return timer_record_batch(self.timers(key_group_range))

    def restore(self, snapshot, key_group_range=None):
        """Register the timers of a snapshot that belong to a key-group range, after those already in.

        Rows of other key groups are skipped, so a snapshot can be given whole to every worker of a new parallelism.
        A timer that is already registered stays as it is.

        Parameters
        ----------
        snapshot
            Record batch (anything with `__arrow_c_array__`) with the columns of `snapshot`, in any order.
        key_group_range : (int, int), optional
            First and last key group to take, inclusive, within the heap's range; by default all of it.

        Returns
        -------
        int
            How many timers were registered.

        Raises
        ------
        SchemaError
            If a column is missing, of another type, or has nulls. Nothing is restored.
        DataError
            If a key group is not below max_parallelism. Nothing is restored.
        ConfigurationError
            If the range is not within the heap's.
        """
        first, last = self._range(key_group_range)
        columns = timer_columns_of(RecordBatch(snapshot))
        key_groups = columns.key_groups
        impossible = (key_groups < 0) | (key_groups >= self.max_parallelism)
        if impossible.any():
            row = int(impossible.argmax())
            raise DataError(
                f"row {row} of the snapshot: key_group is {key_groups[row]}, but max_parallelism is {self.max_parallelism}; "
                "restore with the max_parallelism that the snapshot was taken with"
            )
        wanted = (key_groups >= first) & (key_groups <= last)
        return int(self.register(*(column[wanted] for column in columns)).sum())

    # ---- for tests ----

    def _check(self):
        """Assert every invariant: heap order, back indices, one bucket per timer in the map of its key group; O(n)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const char* fault
        fault = timer_queue_find_fault(&self.queue)
        assert fault == NULL, fault.decode()

    def _skip_sequence(self, uint32_t next_sequence):
        """Give the next timer at least this sequence: a way to the end of the 32 bits without 2**32 registrations."""
        if self.queue.next_sequence < next_sequence:
            self.queue.next_sequence = next_sequence

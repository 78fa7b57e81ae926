"""Event-time and processing-time timers of a range of key groups, de-duplicated, in firing order.

`TimerHeap` has them one by one and as columns, and writes and reads their snapshots; `CurrentKeyTimers` adds and removes those of the
key that an operator works on, which every element goes through.
"""

from collections import namedtuple

import cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport Column, ColumnType, NativeArray, RecordBatch, native_array, record_batch_of
from flinkcore._native.call_guard cimport Call, begin_call, check_no_call
from flinkcore._native.keys cimport canonical_key
from flinkcore._native.memory cimport Buffer, buffer_free, buffer_resize
from flinkcore._native.timer_queue cimport (
    Timer as CTimer,
    TimerOutcome,
    timer_at,
    timer_queue_add,
    timer_queue_clear,
    timer_queue_count,
    timer_queue_delete,
    timer_queue_due,
    timer_queue_find_fault,
    timer_queue_free,
    timer_queue_init,
    timer_queue_is_due,
    timer_queue_move,
    timer_queue_peek,
    timer_queue_poll,
    timer_queue_register,
    timer_queue_remove,
    timer_queue_slots,
    timer_queue_take,
)


# ---- timers as columns -------------------------------------------------------------------------------------------
# Record batches in and out, whose memory is read in place.


Timer = namedtuple("Timer", ["timestamp_ms", "key", "key_group", "namespace"], module=__name__)
Timer.__doc__ = "One timer: when it fires, for which key (a dense id) of which key group, in which namespace."

TimerColumns = namedtuple("TimerColumns", ["timestamps_ms", "keys", "key_groups", "namespaces"], module=__name__)
TimerColumns.__doc__ = "Timers as equally long numpy columns: int64, int64, int32, int64."

_NAMES = ("timestamp_ms", "key", "key_group", "namespace")


cdef object _empty_timer_columns(int64_t n):
    # TimerColumns of n rows, to be written.
    import numpy as np

    return TimerColumns(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64))


cdef const void* _values(RecordBatch batch, str name, ColumnType type, list copies) except? NULL:
    # Values of a column, which a copy holds if they are not aligned.
    import numpy as np

    cdef Column* column = &batch.columns[batch.index_of(name)]
    cdef int64_t size = column.length * column.byte_width
    cdef uint8_t[::1] copy
    if column.type != type:
        raise SchemaError(
            f"column {name!r} of timers has Arrow format {column.format.decode()!r}; "
            f"it must be {'int32' if type == ColumnType.INT32 else 'int64'}"
        )
    if column.null_count:
        raise SchemaError(f"column {name!r} of timers has {column.null_count} nulls; a timer has none")
    if size == 0:
        return NULL
    if <size_t> column.values % <size_t> column.byte_width == 0:
        return column.values
    copy = np.empty(size, np.uint8)
    memcpy(&copy[0], column.values, size)
    copies.append(copy.base)
    return &copy[0]


cdef int _view_timers(TimerView* view, RecordBatch batch, list copies) except -1:
    view.n = batch.num_rows
    view.timestamps_ms = <const int64_t*> _values(batch, "timestamp_ms", ColumnType.INT64, copies)
    view.keys = <const int64_t*> _values(batch, "key", ColumnType.INT64, copies)
    view.key_groups = <const int32_t*> _values(batch, "key_group", ColumnType.INT32, copies)
    view.namespaces = <const int64_t*> _values(batch, "namespace", ColumnType.INT64, copies)
    return 0


cdef void _view_buffers(TimerView* view, const TimerBuffers* buffers, int64_t n) noexcept:
    view.n = n
    view.timestamps_ms = <const int64_t*> buffers.timestamps_ms.data
    view.keys = <const int64_t*> buffers.keys.data
    view.key_groups = <const int32_t*> buffers.key_groups.data
    view.namespaces = <const int64_t*> buffers.namespaces.data


cdef int64_t _first_outside(const TimerView* view, int32_t first, int32_t last) noexcept nogil:
    # Returns the first row whose key group is not from `first` to `last`, or n.
    cdef int64_t row
    for row in range(view.n):
        if not first <= view.key_groups[row] <= last:
            return row
    return view.n


cdef void _pack_bits(uint8_t* bits, const uint8_t* flags, int64_t n) noexcept nogil:
    # A bit for each flag of 0 or 1; eight are multiplied into the highest byte of a word.
    cdef int64_t row, whole = n & ~<int64_t> 7
    cdef uint64_t eight
    for row in range(0, whole, 8):
        memcpy(&eight, flags + row, 8)
        bits[row >> 3] = <uint8_t> ((eight * <uint64_t> 0x0102040810204080) >> 56)
    if whole < n:
        bits[whole >> 3] = 0
        for row in range(whole, n):
            bits[whole >> 3] |= flags[row] << (row & 7)


cdef int _copy_into(object column, const Buffer* buffer) except -1:
    cdef uint8_t[::1] target = column.view("uint8")
    memcpy(&target[0], buffer.data, buffer.size)
    return 0


cdef int _resize_timers(TimerBuffers* buffers, int64_t n) except -1:
    buffer_resize(&buffers.timestamps_ms, n * 8)
    buffer_resize(&buffers.keys, n * 8)
    buffer_resize(&buffers.key_groups, n * 4)
    buffer_resize(&buffers.namespaces, n * 8)
    return 0


cdef void _free_timers(TimerBuffers* buffers) noexcept:
    buffer_free(&buffers.timestamps_ms)
    buffer_free(&buffers.keys)
    buffer_free(&buffers.key_groups)
    buffer_free(&buffers.namespaces)


cdef NativeArray _timer_record_batch(TimerBuffers* buffers, int64_t n):
    # Takes the buffers, which are left empty.
    columns = [
        native_array("l", n, NULL, &buffers.timestamps_ms, NULL),
        native_array("l", n, NULL, &buffers.keys, NULL),
        native_array("i", n, NULL, &buffers.key_groups, NULL),
        native_array("l", n, NULL, &buffers.namespaces, NULL),
    ]
    return native_array("+s", n, NULL, NULL, NULL, columns, list(_NAMES))


# ---- the heap ----------------------------------------------------------------------------------------------------


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
    >>> import pyarrow as pa
    >>> timers = TimerHeap()
    >>> columns = {"timestamp_ms": [30, 10, 10], "key": [1, 2, 2], "key_group": pa.array([7, 8, 8], pa.int32())}
    >>> pa.array(timers.register(pa.record_batch(columns | {"namespace": [0, 0, 0]}))).to_pylist()
    [True, True, False]
    >>> pa.record_batch(timers.advance(20))["key"].to_pylist()
    [2]
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
            The time at which it is due.
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
            The old and the new time of the timer. If they are equal, it moves after timers of equal time.
        key, key_group, namespace : int
            As for `add`, with the same errors.

        Returns
        -------
        bool
            The result of `add` after `remove`.
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
        cdef CTimer timer
        check_no_call(&self.guard, self)
        if not timer_queue_is_due(&self.queue, time_ms):
            return None
        timer_queue_poll(&self.queue, &timer)
        return Timer(timer.timestamp_ms, timer.key, timer.key_group, timer.namespace_id)

    def __len__(self):
        return self.queue.size

    def size(self):
        """Return the number of timers (HeapPriorityQueue.size)."""
        return self.queue.size

    def is_empty(self):
        """Return True if the heap is empty (HeapPriorityQueue.isEmpty)."""
        return self.queue.size == 0

    def clear(self):
        """Drop all timers (HeapPriorityQueueSet.clear) and free their memory."""
        check_no_call(&self.guard, self)
        timer_queue_clear(&self.queue)

    def __iter__(self):
        """Iterate over a copy of all timers, in order of registration; the order of Flink's iterator is not specified."""
        return map(Timer._make, zip(*(column.tolist() for column in self.timers())))

    # ---- batches ----

    cdef NativeArray _change(self, bint delete, object timers):
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch batch = record_batch_of(timers)
        cdef TimerView view
        cdef Buffer changed
        cdef int64_t outside
        cdef list copies = []
        _view_timers(&view, batch, copies)
        outside = _first_outside(&view, self.queue.first_key_group, self.queue.last_key_group)
        if outside < view.n:
            raise DataError(f"row {outside}: {self._outside(view.key_groups[outside])}", row=outside)
        memset(&changed, 0, sizeof(Buffer))
        try:
            self._change_view(delete, &view, &changed)
            return native_array("b", view.n, NULL, &changed, NULL)
        finally:
            buffer_free(&changed)

    cdef int64_t _change_view(self, bint delete, const TimerView* view, Buffer* changed) except -1:
        # Returns how many timers are added or removed, and writes a bit for each row, set if its timer is one of them.
        cdef int64_t n = 0
        cdef Buffer flags
        memset(&flags, 0, sizeof(Buffer))
        if view.n == 0:
            return 0
        try:
            buffer_resize(&flags, view.n)
            buffer_resize(changed, (view.n + 7) // 8)
            with nogil:
                if delete:
                    n = timer_queue_delete(
                        &self.queue, view.timestamps_ms, view.keys, view.key_groups, view.namespaces, 1, view.n, flags.data
                    )
                else:
                    n = timer_queue_register(
                        &self.queue, view.timestamps_ms, view.keys, view.key_groups, view.namespaces, 1, view.n, flags.data
                    )
                _pack_bits(changed.data, flags.data, view.n)
        finally:
            buffer_free(&flags)
        return n

    def register(self, timers):
        """Register a batch of timers, as if added row after row.

        Parameters
        ----------
        timers
            Record batch, or any object with `__arrow_c_array__`: `timestamp_ms` (int64, when each timer is due), `key` (int64,
            dense ids), `key_group` (int32, within the range) and `namespace` (int64, ids), none with nulls. It is read in
            place.

        Returns
        -------
        NativeArray
            Booleans: true if the row's timer was not registered yet, neither before nor by an earlier row.

        Raises
        ------
        SchemaError
            If a column is missing, of another type, or has nulls. Nothing is registered.
        DataError
            If a key group is outside of the range. Nothing is registered.
        """
        return self._change(False, timers)

    def delete(self, timers):
        """Delete a batch of timers, as if removed row after row.

        Parameters and errors are those of `register`; where there is an error, nothing is deleted.

        Returns
        -------
        NativeArray
            Booleans: true if the row's timer was registered; rows of unknown timers change nothing.
        """
        return self._change(True, timers)

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
        NativeArray
            A record batch with the columns of `snapshot`: the timers by timestamp, equal ones in order of registration.

        Raises
        ------
        ConfigurationError
            If limit is negative.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n, at_most = self.queue.size if limit is None else min(limit, self.queue.size)
        cdef TimerBuffers fired
        if at_most < 0:
            raise ConfigurationError(f"limit is {limit}; it must not be negative")
        with nogil:
            n = timer_queue_due(&self.queue, watermark_ms, at_most)
        memset(&fired, 0, sizeof(TimerBuffers))
        try:
            _resize_timers(&fired, n)
            if n:
                with nogil:
                    timer_queue_take(
                        &self.queue,
                        <int64_t*> fired.timestamps_ms.data,
                        <int64_t*> fired.keys.data,
                        <int32_t*> fired.key_groups.data,
                        <int64_t*> fired.namespaces.data,
                    )
            return _timer_record_batch(&fired, n)
        finally:
            _free_timers(&fired)

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
        cdef TimerBuffers buffers
        cdef int64_t n
        memset(&buffers, 0, sizeof(TimerBuffers))
        try:
            n = self._copy_timers(key_group_range, &buffers)
            columns = _empty_timer_columns(n)
            if n:
                _copy_into(columns[0], &buffers.timestamps_ms)
                _copy_into(columns[1], &buffers.keys)
                _copy_into(columns[2], &buffers.key_groups)
                _copy_into(columns[3], &buffers.namespaces)
            return columns
        finally:
            _free_timers(&buffers)

    cdef int64_t _copy_timers(self, object key_group_range, TimerBuffers* buffers) except -1:
        cdef int32_t first, last
        cdef int64_t n, i
        cdef const CTimer* timer
        cdef Buffer slots
        first, last = self._range(key_group_range)
        n = timer_queue_count(&self.queue, first, last)
        if n == 0:
            return 0
        memset(&slots, 0, sizeof(Buffer))
        try:
            buffer_resize(&slots, n * 4)
            _resize_timers(buffers, n)
            timer_queue_slots(&self.queue, first, last, <uint32_t*> slots.data)
            for i in range(n):
                timer = timer_at(&self.queue, (<uint32_t*> slots.data)[i])
                (<int64_t*> buffers.timestamps_ms.data)[i] = timer.timestamp_ms
                (<int64_t*> buffers.keys.data)[i] = timer.key
                (<int32_t*> buffers.key_groups.data)[i] = timer.key_group
                (<int64_t*> buffers.namespaces.data)[i] = timer.namespace_id
        finally:
            buffer_free(&slots)
        return n

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
        cdef Call call = begin_call(&self.guard, self)
        cdef TimerBuffers buffers
        cdef int64_t n
        memset(&buffers, 0, sizeof(TimerBuffers))
        try:
            n = self._copy_timers(key_group_range, &buffers)
            return _timer_record_batch(&buffers, n)
        finally:
            _free_timers(&buffers)

    def restore(self, snapshot, key_group_range=None):
        """Register the timers of a snapshot that belong to a key-group range, after those already in.

        Rows of other key groups are skipped, so every worker of a new parallelism can restore a whole snapshot. A timer that is
        already registered stays as it is.

        Parameters
        ----------
        snapshot
            Record batch (anything with `__arrow_c_array__`) with the columns of `snapshot`, in any order.
        key_group_range : (int, int), optional
            First and last key group to take, inclusive, within the heap's range; by default all of it.

        Returns
        -------
        int
            Number of timers that were registered.

        Raises
        ------
        SchemaError
            If a column is missing, of another type, or has nulls. Nothing is restored.
        DataError
            If a key group is not below max_parallelism. Nothing is restored.
        ConfigurationError
            If the range is not within the heap's.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch batch
        cdef TimerView view
        cdef TimerBuffers wanted
        cdef Buffer changed
        cdef int32_t first, last
        cdef int64_t row, n = 0
        cdef list copies = []
        first, last = self._range(key_group_range)
        batch = record_batch_of(snapshot)
        _view_timers(&view, batch, copies)
        row = _first_outside(&view, 0, self.max_parallelism - 1)
        if row < view.n:
            raise DataError(
                f"row {row} of the snapshot: key_group is {view.key_groups[row]}, but max_parallelism is "
                f"{self.max_parallelism}; restore with the max_parallelism that the snapshot was taken with",
                row=row,
            )
        memset(&wanted, 0, sizeof(TimerBuffers))
        memset(&changed, 0, sizeof(Buffer))
        try:
            if _first_outside(&view, first, last) < view.n:
                _resize_timers(&wanted, view.n)
                for row in range(view.n):
                    if first <= view.key_groups[row] <= last:
                        (<int64_t*> wanted.timestamps_ms.data)[n] = view.timestamps_ms[row]
                        (<int64_t*> wanted.keys.data)[n] = view.keys[row]
                        (<int32_t*> wanted.key_groups.data)[n] = view.key_groups[row]
                        (<int64_t*> wanted.namespaces.data)[n] = view.namespaces[row]
                        n += 1
                _view_buffers(&view, &wanted, n)
            return self._change_view(False, &view, &changed)
        finally:
            _free_timers(&wanted)
            buffer_free(&changed)

    # ---- for tests ----

    def _check(self):
        """Assert every invariant: heap order, back indices, one bucket per timer in the map of its key group; O(n)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef const char* fault
        fault = timer_queue_find_fault(&self.queue)
        assert fault == NULL, fault.decode()

    def _skip_sequence(self, uint32_t next_sequence):
        """Set the least sequence of the next timer, so that tests reach the end of the 32 bits without 2**32 registrations."""
        if self.queue.next_sequence < next_sequence:
            self.queue.next_sequence = next_sequence


# ---- timers of the current key -----------------------------------------------------------------------------------


cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object mapping, object key) except? NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef object NO_KEY = -1

cdef enum:
    VOID_NAMESPACE_ID = 0


cdef str _shown(object key):
    try:
        return repr(key)
    except RecursionError:
        return "..."


cdef class CurrentKey:
    """The key that an operator works on, found by one look-up by hash.

    Parameters
    ----------
    ids : dict
        The id of every known key, from 0 on, by its canonical form.
    keys : list
        The keys by id.
    key_groups : list of int
        Their key groups by id.
    admit : callable
        Returns the id of a key that is not in `ids`, and sees to it that the lists have its place.

    Attributes
    ----------
    current_key : object
        None without a current key.
    current_key_id, current_key_group : int
        -1 without a current key.
    lookups : int
        Number of keys that were looked up: once per record, and never for timers.
    """

    def __cinit__(self):
        self._ids = {}
        self._keys = []
        self._key_groups = []
        self.clear_current_key()

    def __init__(self, dict ids not None, list keys not None, list key_groups not None, object admit):
        self._ids = ids
        self._keys = keys
        self._key_groups = key_groups
        self._admit = admit

    cdef int _set(self, object key, object key_id) except -1:
        cdef Py_ssize_t index = key_id
        if not 0 <= index < len(self._key_groups):
            raise IndexError(f"the key id {index} is not one of {len(self._key_groups)}")
        self.current_key_group = self._key_groups[index]
        self.key_group = self.current_key_group
        self.current_key = key
        self.current_key_id = key_id
        self.key_id = index
        return 0

    def set_current_key(self, key):
        """Make a key the current one.

        Raises
        ------
        DataError
            If it has no canonical form, or cannot be admitted. The current key is then unset.
        """
        self.set_key(key)

    cdef int set_key(self, object key) except -1:
        cdef PyObject* known
        cdef object form
        self.lookups += 1
        try:
            form = canonical_key(key)
            known = PyDict_GetItemWithError(self._ids, form)
        except TypeError as failure:
            self.clear_current_key()
            raise DataError(
                f"the key {_shown(key)} of type {type(key).__qualname__} cannot be one: {failure}; key by a value such as a tuple"
            ) from failure
        if known == NULL:
            self.clear_current_key()
            self._set(key, self._admit(key))
        else:
            self._set(key, <object> known)
        return 0

    def set_current_key_id(self, key_id):
        """Make the key of a held id the current one, without a look-up by hash."""
        cdef Py_ssize_t index = key_id
        if not 0 <= index < len(self._keys):
            raise IndexError(f"the key id {index} is not one of {len(self._keys)}")
        self._set(self._keys[index], key_id)

    def clear_current_key(self):
        """Clear the current key: timers and state are then out of reach."""
        self.current_key = None
        self.current_key_id = NO_KEY
        self.current_key_group = NO_KEY
        self.key_id = -1
        self.key_group = -1


@cython.final
cdef class CurrentKeyTimers:
    """Adds and removes timers of the current key.

    Parameters
    ----------
    heap : TimerHeap
        Timers of all key groups that the current key may have.
    current_key : CurrentKey
    checked : callable
        Called if a timer is added or removed at a time that is not an int of 64 bits, or without a current key. Returns the
        time as an int, or raises.

    Attributes
    ----------
    drops_new : bool
        True if timers that are added are dropped; False at first.
    """

    def __cinit__(self, TimerHeap heap not None, CurrentKey current_key not None, object checked):
        self.heap = heap
        self.current = current_key
        self._checked = checked
        self.drops_new = False

    cdef int64_t _time(self, object timestamp_ms) except? -1:
        cdef int beyond = 0
        cdef long long time_ms
        if type(timestamp_ms) is int and self.current.key_id >= 0:
            time_ms = PyLong_AsLongLongAndOverflow(timestamp_ms, &beyond)
            if not beyond:
                return time_ms
        return self._checked(timestamp_ms)

    cdef bint add_timer(self, object timestamp_ms, int64_t namespace_id) except -1:
        cdef int64_t time_ms = self._time(timestamp_ms)
        check_no_call(&self.heap.guard, self.heap)
        self.heap._check_key_group(self.current.key_group)
        if self.drops_new:
            return False
        return timer_queue_add(
            &self.heap.queue, time_ms, self.current.key_id, self.current.key_group, namespace_id
        ) == TimerOutcome.TIMER_HEAD

    cdef bint remove_timer(self, object timestamp_ms, int64_t namespace_id) except -1:
        cdef int64_t time_ms = self._time(timestamp_ms)
        check_no_call(&self.heap.guard, self.heap)
        self.heap._check_key_group(self.current.key_group)
        return timer_queue_remove(
            &self.heap.queue, time_ms, self.current.key_id, self.current.key_group, namespace_id
        ) == TimerOutcome.TIMER_HEAD

    def add(self, timestamp_ms, int64_t namespace=0):
        """Add a timer of the current key; returns what `TimerHeap.add` does."""
        return self.add_timer(timestamp_ms, namespace)

    def remove(self, timestamp_ms, int64_t namespace=0):
        """Remove a timer of the current key; returns what `TimerHeap.remove` does."""
        return self.remove_timer(timestamp_ms, namespace)


cdef class FunctionTimers:
    """The event-time timers of the current key that a function registers and deletes, in the void namespace.

    Parameters
    ----------
    event_time : CurrentKeyTimers
    """

    def __cinit__(self, CurrentKeyTimers event_time not None, *arguments, **named):
        self._event_time = event_time

    @cython.binding(False)
    def register_event_time_timer(self, timestamp):
        """Register a timer that fires when the watermark reaches `timestamp`, in ms since the epoch."""
        self._event_time.add_timer(timestamp, VOID_NAMESPACE_ID)

    @cython.binding(False)
    def delete_event_time_timer(self, timestamp):
        """Delete the timer of this timestamp, if the current key has it."""
        self._event_time.remove_timer(timestamp, VOID_NAMESPACE_ID)

"""Event-time and processing-time timers of a range of key groups, de-duplicated, in firing order.

`TimerHeap` has them one by one and as columns, and writes and reads their snapshots; `CurrentKeyTimers` adds and removes those of the
key that an operator works on, which every element goes through.
"""

from collections import namedtuple

import cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport Column, ColumnType, NativeArray, RecordBatch, native_array
from flinkcore._native.call_guard cimport Call, begin_call, check_no_call
from flinkcore._native.keys cimport canonical_key
from flinkcore._native.memory cimport Buffer, buffer_append_bytes
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
    timer_queue_move,
    timer_queue_peek,
    timer_queue_poll,
    timer_queue_register,
    timer_queue_remove,
    timer_queue_slots,
    timer_queue_take,
)


# ---- timers as columns -------------------------------------------------------------------------------------------
# numpy arrays in and out, and the record batch of a snapshot.


Timer = namedtuple("Timer", ["timestamp_ms", "key", "key_group", "namespace"], module=__name__)
Timer.__doc__ = "One timer: when it fires, for which key (a dense id) of which key group, in which namespace."

TimerColumns = namedtuple("TimerColumns", ["timestamps_ms", "keys", "key_groups", "namespaces"], module=__name__)
TimerColumns.__doc__ = "Timers as equally long numpy columns: int64, int64, int32, int64."

_NAMES = ("timestamp_ms", "key", "key_group", "namespace")


def _integers(values, str name):
    import numpy as np

    array = np.asarray(values)
    if array.ndim != 1:
        raise SchemaError(f"{name} has {array.ndim} dimensions; pass a column of integers")
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64, "safe"):
        if array.size or array.dtype.kind != "f":  # an empty list is float64
            raise SchemaError(f"{name} has type {array.dtype}; pass integers that fit in int64")
    return array


cdef tuple _checked_timer_columns(object timestamps_ms, object keys, object key_groups, object namespaces):
    # Four arrays of integers, equally long; namespaces may be one number for all rows, and is an array of one row then.
    import numpy as np

    scalar = isinstance(namespaces, (int, np.integer))
    timestamps_ms = _integers(timestamps_ms, "timestamps_ms")
    keys = _integers(keys, "keys")
    key_groups = _integers(key_groups, "key_groups")
    namespaces = np.array([namespaces], np.int64) if scalar else _integers(namespaces, "namespaces")
    n = len(timestamps_ms)
    for name, column in (("keys", keys), ("key_groups", key_groups), ("namespaces", namespaces)):
        if len(column) != n and not (scalar and name == "namespaces"):
            raise SchemaError(f"{name} has {len(column)} rows, timestamps_ms has {n}; they must be equally long")
    return timestamps_ms, keys, key_groups, namespaces, scalar


cdef object _empty_timer_columns(int64_t n):
    # TimerColumns of n rows, to be written.
    import numpy as np

    return TimerColumns(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64))


cdef NativeArray _native_column(object column, str format):
    import numpy as np

    cdef Buffer buffer
    cdef const uint8_t[::1] data = column.view(np.uint8)
    buffer.data = NULL
    buffer.size = buffer.capacity = 0
    buffer_append_bytes(&buffer, &data[0] if data.shape[0] else NULL, data.shape[0])
    return native_array(format, len(column), NULL, &buffer, NULL)


cdef NativeArray _timer_record_batch(object columns):
    # TimerColumns as a record batch, and back. The columns are copied both ways.
    return native_array(
        "+s",
        len(columns[0]),
        NULL,
        NULL,
        NULL,
        [_native_column(column, "i" if column.itemsize == 4 else "l") for column in columns],
        list(_NAMES),
    )


cdef object _numpy_column(RecordBatch batch, str name, ColumnType type):
    # A copy: the batch may go away, and its memory need not be aligned.
    import numpy as np

    cdef Column* column = &batch.columns[batch.index_of(name)]
    cdef int64_t bytes_ = column.length * column.byte_width
    cdef uint8_t[::1] target
    if column.type != type:
        raise SchemaError(
            f"column {name!r} of the snapshot has Arrow format {column.format.decode()!r}; "
            f"it must be {'int32' if type == ColumnType.INT32 else 'int64'}"
        )
    if column.null_count:
        raise SchemaError(f"column {name!r} of the snapshot has {column.null_count} nulls; a timer has none")
    copy = np.empty(column.length, np.int32 if type == ColumnType.INT32 else np.int64)
    if bytes_:
        target = copy.view(np.uint8)
        memcpy(&target[0], column.values, bytes_)
    return copy


cdef object _timer_columns_of(RecordBatch batch):
    return TimerColumns(
        *(_numpy_column(batch, name, ColumnType.INT32 if name == "key_group" else ColumnType.INT64) for name in _NAMES)
    )


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

    cdef object _change(self, bint delete, object timestamps_ms, object keys, object key_groups, object namespaces):
        import numpy as np

        cdef Call call = begin_call(&self.guard, self)
        timestamps_ms, keys, key_groups, namespaces, scalar = _checked_timer_columns(
            timestamps_ms, keys, key_groups, namespaces
        )
        cdef int64_t n = len(timestamps_ms), stride = 0 if scalar else 1
        changed = np.empty(n, np.bool_)
        if n == 0:
            return changed
        first, last = self.key_group_range
        if key_groups.min() < first or key_groups.max() > last:
            row = int(np.argmax((key_groups < first) | (key_groups > last)))
            raise DataError(f"row {row}: {self._outside(key_groups[row])}", row=row)
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
            The time at which each timer is due, in ms.
        keys : int array (n_rows,)
            Dense ids of the keys.
        key_groups : int array (n_rows,)
            The keys' key groups, all within the range. int32 is used directly, other types are converted.
        namespaces : int array (n_rows,) or int
            Ids of the namespaces, or one for all rows.

        Returns
        -------
        bool array (n_rows,)
            True if the row's timer was not registered yet, neither before nor by an earlier row.

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
            True if the row's timer was registered; rows of unknown timers change nothing.
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
        fired = _empty_timer_columns(n)
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
        columns = _empty_timer_columns(n)
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
        return _timer_record_batch(self.timers(key_group_range))

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
        first, last = self._range(key_group_range)
        columns = _timer_columns_of(RecordBatch(snapshot))
        key_groups = columns.key_groups
        impossible = (key_groups < 0) | (key_groups >= self.max_parallelism)
        if impossible.any():
            row = int(impossible.argmax())
            raise DataError(
                f"row {row} of the snapshot: key_group is {key_groups[row]}, but max_parallelism is {self.max_parallelism}; "
                "restore with the max_parallelism that the snapshot was taken with",
                row=row,
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

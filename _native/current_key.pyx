"""The current key of a keyed operator, and the single verbs of its timers: what every element goes through."""

import cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.call_guard cimport check_no_call
from flinkcore._native.keys cimport canonical_key
from flinkcore._native.timer_queue cimport TimerOutcome, timer_queue_add, timer_queue_remove

from flinkcore.errors import DataError

cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object mapping, object key) except? NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef object NO_KEY = -1


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
        None where there is no current key.
    current_key_id, current_key_group : int
        -1 where there is no current key.
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
            If it is not hashable, or cannot be admitted. Then there is no current key.
        """
        cdef PyObject* known
        cdef object form
        try:
            form = canonical_key(key)
            known = PyDict_GetItemWithError(self._ids, form)
        except TypeError as failure:
            self.clear_current_key()
            raise DataError(
                f"the key {key!r} of type {type(key).__qualname__} is not hashable; key by a value such as a tuple"
            ) from failure
        if known == NULL:
            self.clear_current_key()
            self._set(key, self._admit(key))
        else:
            self._set(key, <object> known)

    def set_current_key_id(self, key_id):
        """Make the key of a held id the current one, without a look-up by hash."""
        cdef Py_ssize_t index = key_id
        if not 0 <= index < len(self._keys):
            raise IndexError(f"the key id {index} is not one of {len(self._keys)}")
        self._set(self._keys[index], key_id)

    def clear_current_key(self):
        """Let there be no current key: timers and state are then out of reach."""
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
        Of all key groups that the current key may have.
    current_key : CurrentKey
    checked : callable
        Returns as an int what a timer was to be added or removed at, and is no int of 64 bits or has no current key;
        or raises.
    """

    def __cinit__(self, TimerHeap heap not None, CurrentKey current_key not None, object checked):
        self.heap = heap
        self.current = current_key
        self._checked = checked

    cdef int64_t _time(self, object timestamp_ms) except? -1:
        cdef int beyond = 0
        cdef long long time_ms
        if type(timestamp_ms) is int and self.current.key_id >= 0:
            time_ms = PyLong_AsLongLongAndOverflow(timestamp_ms, &beyond)
            if not beyond:
                return time_ms
        return self._checked(timestamp_ms)

    def add(self, timestamp_ms, int64_t namespace=0):
        """Add a timer of the current key; returns what `TimerHeap.add` does."""
        cdef int64_t time_ms = self._time(timestamp_ms)
        check_no_call(&self.heap.guard, self.heap)
        self.heap._check_key_group(self.current.key_group)
        return timer_queue_add(
            &self.heap.queue, time_ms, self.current.key_id, self.current.key_group, namespace
        ) == TimerOutcome.TIMER_HEAD

    def remove(self, timestamp_ms, int64_t namespace=0):
        """Remove a timer of the current key; returns what `TimerHeap.remove` does."""
        cdef int64_t time_ms = self._time(timestamp_ms)
        check_no_call(&self.heap.guard, self.heap)
        self.heap._check_key_group(self.current.key_group)
        return timer_queue_remove(
            &self.heap.queue, time_ms, self.current.key_id, self.current.key_group, namespace
        ) == TimerOutcome.TIMER_HEAD

# The current key of a keyed operator, and the single verbs of its timers.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.timers cimport TimerHeap


cdef class CurrentKey:
    cdef readonly object current_key
    cdef readonly object current_key_id     # the two numbers as Python has them
    cdef readonly object current_key_group
    cdef int64_t key_id                     # negative where there is no current key
    cdef int32_t key_group
    cdef dict _ids
    cdef list _keys
    cdef list _key_groups
    cdef object _admit
    cdef int _set(self, object key, object key_id) except -1


cdef class CurrentKeyTimers:
    cdef TimerHeap heap
    cdef CurrentKey current
    cdef object _checked
    cdef int64_t _time(self, object timestamp_ms) except? -1

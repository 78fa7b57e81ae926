# TimerHeap, for cimport; the functions on its queue are in flinkcore._native.timer_queue.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.timer_queue cimport TimerQueue


cdef class TimerHeap:
    cdef TimerQueue queue
    cdef readonly int32_t max_parallelism
    cdef bint _busy
    cdef int _enter(self) except -1
    cdef int _check_key_group(self, int64_t key_group) except -1
    cdef tuple _rows(self, object timestamps_ms, object keys, object key_groups, object namespaces)
    cdef object _columns(self, int32_t first, int32_t last)
    cdef tuple _range(self, object key_group_range)

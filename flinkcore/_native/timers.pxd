# TimerHeap, for cimport; what its queue can do is in flinkcore._native.timer_queue and .timer_batches.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.timer_queue cimport TimerQueue


cdef class TimerHeap:
    cdef TimerQueue queue
    cdef readonly int32_t max_parallelism
    cdef CallGuard guard
    cdef int _check_key_group(self, int64_t key_group) except -1
    cdef object _change(self, bint delete, object timestamps_ms, object keys, object key_groups, object namespaces)
    cdef tuple _range(self, object key_group_range)

# The timers of a range of key groups, for cimport; what their queue can do is in flinkcore._native.timer_queue.
from libc.stdint cimport int32_t, int64_t

from flinkcore._native.arrow cimport NativeArray
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer
from flinkcore._native.timer_queue cimport TimerQueue


cdef struct TimerView:
    # Timers as columns of somebody else's memory.
    int64_t n
    const int64_t* timestamps_ms
    const int64_t* keys
    const int32_t* key_groups
    const int64_t* namespaces


cdef struct TimerBuffers:
    Buffer timestamps_ms
    Buffer keys
    Buffer key_groups
    Buffer namespaces


cdef class TimerHeap:
    cdef TimerQueue queue
    cdef readonly int32_t max_parallelism
    cdef CallGuard guard
    cdef int _check_key_group(self, int64_t key_group) except -1
    cdef NativeArray _change(self, bint delete, object timers)
    cdef int64_t _change_view(self, bint delete, const TimerView* view, Buffer* changed) except -1
    cdef int64_t _copy_timers(self, object key_group_range, TimerBuffers* buffers) except -1
    cdef tuple _range(self, object key_group_range)


cdef class CurrentKey:
    cdef readonly object current_key
    cdef readonly object current_key_id     # the two numbers as Python has them
    cdef readonly object current_key_group
    cdef int64_t key_id                     # negative without a current key
    cdef int32_t key_group
    cdef readonly int64_t lookups
    cdef dict _ids
    cdef list _keys
    cdef list _key_groups
    cdef object _admit
    cdef int _set(self, object key, object key_id) except -1
    cdef int set_key(self, object key) except -1


cdef class CurrentKeyTimers:
    cdef TimerHeap heap
    cdef CurrentKey current
    cdef object _checked
    cdef public bint drops_new
    cdef int64_t _time(self, object timestamp_ms) except? -1
    cdef bint add_timer(self, object timestamp_ms, int64_t namespace_id) except -1
    cdef bint remove_timer(self, object timestamp_ms, int64_t namespace_id) except -1


cdef class FunctionTimers:
    cdef CurrentKeyTimers _event_time

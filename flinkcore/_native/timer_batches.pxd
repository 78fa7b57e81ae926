# The verbs of a TimerQueue over whole batches of rows.
#
# For one thread at a time per queue. Key groups must lie in the queue's range: nothing here checks it.
from libc.stdint cimport int32_t, int64_t, uint8_t

from flinkcore._native.timer_queue cimport TimerQueue


# As if added or removed row after row. `namespace_stride` is 1, or 0 where all rows share namespace_ids[0]; changed[row] becomes 1 where the
# row's timer was added (was not yet in) or removed (was in), else 0; the number of those is returned.
cdef int64_t timer_queue_register(
    TimerQueue* queue,
    const int64_t* timestamps_ms,
    const int64_t* keys,
    const int32_t* key_groups,
    const int64_t* namespace_ids,
    int64_t namespace_stride,
    int64_t n,
    uint8_t* changed,
) except -1 nogil
cdef int64_t timer_queue_delete(
    TimerQueue* queue,
    const int64_t* timestamps_ms,
    const int64_t* keys,
    const int32_t* key_groups,
    const int64_t* namespace_ids,
    int64_t namespace_stride,
    int64_t n,
    uint8_t* changed,
) noexcept nogil
# The number of timers with timestamp <= watermark_ms, at most `limit`; then `take` polls that many into the columns,
# in firing order. Nothing may change the queue in between; where `take` raises, the queue is unchanged.
cdef int64_t timer_queue_due(TimerQueue* queue, int64_t watermark_ms, int64_t limit) except -1 nogil
cdef int timer_queue_take(
    TimerQueue* queue, int64_t* timestamps_ms, int64_t* keys, int32_t* key_groups, int64_t* namespace_ids
) except -1 nogil

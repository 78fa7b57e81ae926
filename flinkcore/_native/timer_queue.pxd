# A queue of timers: a 4-ary min-heap, de-duplicated by one hash map per key group (Flink's HeapPriorityQueueSet). It takes
# timers one by one, and as columns.
#
# For one thread at a time, with the GIL or without. Key groups must be in the queue's range: the functions do not check it.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.entry_heap cimport HeapEntry


cdef struct Timer:
    int64_t timestamp_ms
    int64_t key
    int64_t namespace_id
    int32_t key_group
    uint32_t hash  # of the other fields but the key group


cdef struct DedupMap:
    # Open addressing, linear probing; a bucket is hash << 32 | slot + 1, or 0 if empty.
    uint64_t* buckets  # NULL until the first timer
    uint32_t size
    uint32_t shift     # a hash belongs to bucket hash >> shift, of 2**(32 - shift)


cdef enum TimerOutcome:
    TIMER_UNCHANGED = 0  # add: an equal timer was in; remove: it was not in
    TIMER_CHANGED = 1
    TIMER_HEAD = 2       # changed, and the timer is now (add) or was (remove) the head


cdef enum DueMode:
    DUE_NONE = 0
    DUE_TOP = 1    # the positions of the due timers are known: a small tree at the top of the heap
    DUE_SCAN = 2   # a large part of the heap
    DUE_FIRST = 3  # more are due than asked for


cdef struct TimerQueue:
    HeapEntry* heap         # (size,): of timers by timestamp; children share a cache line
    void* heap_memory
    uint32_t size
    uint32_t capacity        # of heap, positions and free_slots
    uint32_t* positions      # by slot: index in the heap
    uint32_t* free_slots     # (n_free,), a stack
    uint32_t n_free
    Timer** chunks           # slot s is chunks[s >> 16][s & 0xFFFF]
    uint32_t n_chunks
    uint32_t chunk_capacity  # of chunk 0, which grows; the others are whole
    uint32_t slots_used
    uint32_t next_sequence
    int32_t first_key_group
    int32_t last_key_group
    DedupMap* maps           # by key group - first_key_group
    uint64_t n_buckets       # of all maps together
    uint32_t* due            # positions found by timer_queue_due, ascending
    uint32_t due_capacity
    uint32_t due_count
    DueMode due_mode
    uint64_t due_bound       # of timestamps as in entries


cdef inline Timer* timer_at(const TimerQueue* queue, uint32_t slot) noexcept nogil:
    return queue.chunks[slot >> 16] + (slot & 0xFFFF)


# The queue must be zeroed memory; free it even where init fails.
cdef int timer_queue_init(TimerQueue* queue, int32_t first_key_group, int32_t last_key_group) except -1 nogil
cdef void timer_queue_free(TimerQueue* queue) noexcept nogil
# Drops all timers and frees their memory.
cdef void timer_queue_clear(TimerQueue* queue) noexcept nogil
# Adds or removes a timer. Returns a TimerOutcome. Timers of equal timestamp are ordered by when they were added. O(log n).
cdef int timer_queue_add(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil
cdef int timer_queue_remove(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) noexcept nogil
# Removes the timer at from_ms and adds one at to_ms, at the cost of one of the two. Returns what add would.
cdef int timer_queue_move(
    TimerQueue* queue, int64_t from_ms, int64_t to_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil
# Returns the head, or NULL. The pointer is valid until the next call that changes the queue.
cdef const Timer* timer_queue_peek(const TimerQueue* queue) noexcept nogil
# Returns whether the watermark fires the head.
cdef bint timer_queue_is_due(const TimerQueue* queue, int64_t watermark_ms) noexcept nogil
# Moves the head to *timer. Returns false if the queue is empty.
cdef bint timer_queue_poll(TimerQueue* queue, Timer* timer) noexcept nogil
# Moves the first timer that the watermark fires to *timer. Returns false if there is none. Timers of keys from n_keys on are removed: they
# were restored from a forged checkpoint, and whoever polls has no such keys.
cdef bint timer_queue_poll_due(TimerQueue* queue, int64_t watermark_ms, int64_t n_keys, Timer* timer) noexcept nogil
# Writes the slots of all timers of the key groups first to last, in order of registration, to slots, which has room for
# timer_queue_count(first, last).
cdef int64_t timer_queue_count(const TimerQueue* queue, int32_t first, int32_t last) noexcept nogil
cdef int timer_queue_slots(const TimerQueue* queue, int32_t first, int32_t last, uint32_t* slots) except -1 nogil
# Returns a text about the first broken invariant, or NULL: heap order, back indices, buckets, slots, sequences. O(n).
cdef const char* timer_queue_find_fault(const TimerQueue* queue) noexcept nogil
# Adds or removes timers row after row. `namespace_stride` is 1, or 0 if all rows share namespace_ids[0]. changed[row] becomes 1
# if the row's timer was added or removed, else 0. Returns the number of those.
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
# Returns the number of timers with timestamp <= watermark_ms, at most `limit`; `take` then polls that many into the columns, in
# firing order. Nothing may change the queue in between. If `take` raises, the queue is unchanged.
cdef int64_t timer_queue_due(TimerQueue* queue, int64_t watermark_ms, int64_t limit) except -1 nogil
cdef int timer_queue_take(
    TimerQueue* queue, int64_t* timestamps_ms, int64_t* keys, int32_t* key_groups, int64_t* namespace_ids
) except -1 nogil

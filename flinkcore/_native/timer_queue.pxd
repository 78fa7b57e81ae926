# Timers in a 4-ary min-heap, de-duplicated per key group: the C struct that TimerHeap owns, and its single verbs.
#
# All functions are for one thread at a time per queue. Key groups must lie in the queue's range: nothing here checks it.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from flinkcore._native.timer_order cimport TimerEntry


cdef struct Timer:
    int64_t timestamp_ms
    int64_t key
    int64_t namespace_id
    int32_t key_group
    uint32_t hash  # of the other fields but the key group


cdef struct DedupMap:
    # Open addressing, linear probing; a bucket is hash << 32 | slot + 1, or 0 where empty.
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
    TimerEntry* heap         # (size,); the children of i are 4i + 1 to 4i + 4, in one cache line
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
# Drops all timers and gives their memory back.
cdef void timer_queue_clear(TimerQueue* queue) noexcept nogil

# Return a TimerOutcome. Timers of equal timestamp are ordered by when they were added. O(log n).
cdef int timer_queue_add(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil
cdef int timer_queue_remove(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) noexcept nogil
# As if the timer at from_ms were removed and one at to_ms added, at the cost of one of the two; returns what add would.
cdef int timer_queue_move(
    TimerQueue* queue, int64_t from_ms, int64_t to_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil
# The head, or NULL; valid until the next call that changes the queue.
cdef const Timer* timer_queue_peek(const TimerQueue* queue) noexcept nogil
# Moves the head to *timer; False where there is none.
cdef bint timer_queue_poll(TimerQueue* queue, Timer* timer) noexcept nogil

# The slots of all timers of the key groups first to last, in order of registration, into slots, which has room for
# timer_queue_count(first, last).
cdef int64_t timer_queue_count(const TimerQueue* queue, int32_t first, int32_t last) noexcept nogil
cdef int timer_queue_slots(const TimerQueue* queue, int32_t first, int32_t last, uint32_t* slots) except -1 nogil

# What is broken, as text, or NULL: heap order, back indices, buckets, slots, sequences. O(n).
cdef const char* timer_queue_find_fault(const TimerQueue* queue) noexcept nogil


# ---- what the batch verbs are made of ----------------------------------------------------------------------------


cdef inline uint32_t timer_hash(int64_t timestamp_ms, int64_t key, int64_t namespace_id) noexcept nogil:
    cdef uint64_t h = <uint64_t> timestamp_ms * <uint64_t> 0x9E3779B97F4A7C15
    h ^= h >> 32
    h = (h + <uint64_t> key) * <uint64_t> 0xD6E8FEB86659FD93
    h ^= h >> 29
    h = (h + <uint64_t> namespace_id) * <uint64_t> 0xA0761D6478BD642F
    h ^= h >> 32
    h *= <uint64_t> 0xE7037ED1A0B428DB
    return <uint32_t> (h >> 32)


cdef inline DedupMap* key_group_map(const TimerQueue* queue, int32_t key_group) noexcept nogil:
    return &queue.maps[key_group - queue.first_key_group]


cdef inline uint32_t map_home(const DedupMap* map, uint32_t hash) noexcept nogil:
    return hash >> map.shift


cdef inline uint32_t map_probe(const DedupMap* map, uint32_t hash, uint32_t i) noexcept nogil:
    # The first bucket from i on that is empty or has the hash.
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1
    while map.buckets[i] and <uint32_t> (map.buckets[i] >> 32) != hash:
        i = (i + 1) & mask
    return i


cdef inline int64_t map_find(
    const TimerQueue* queue,
    const DedupMap* map,
    uint32_t i,
    uint32_t hash,
    int64_t timestamp_ms,
    int64_t key,
    int64_t namespace_id,
) noexcept nogil:
    # The bucket of the timer, or ~(the empty bucket where it would be put). The map must have buckets; the search begins
    # at bucket i: the hash's own, or one before which the timer is known not to be.
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1
    cdef const Timer* timer
    while True:
        i = map_probe(map, hash, i)
        if map.buckets[i] == 0:
            return ~<int64_t> i
        timer = timer_at(queue, <uint32_t> map.buckets[i] - 1)
        if timer.timestamp_ms == timestamp_ms and timer.key == key and timer.namespace_id == namespace_id:
            return i
        i = (i + 1) & mask


cdef inline void map_erase(DedupMap* map, uint32_t i) noexcept nogil:
    # Empties bucket i and closes the gap, so that no probe sequence is cut.
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1, j = i
    cdef uint64_t bucket
    while True:
        j = (j + 1) & mask
        bucket = map.buckets[j]
        if bucket == 0:
            break
        if ((j - (<uint32_t> (bucket >> 32) >> map.shift)) & mask) >= ((j - i) & mask):
            map.buckets[i] = bucket
            i = j
    map.buckets[i] = 0
    map.size -= 1


cdef inline void queue_erase(TimerQueue* queue, uint32_t slot) noexcept nogil:
    cdef const Timer* timer = timer_at(queue, slot)
    cdef DedupMap* map = key_group_map(queue, timer.key_group)
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1, i = timer.hash >> map.shift
    while <uint32_t> map.buckets[i] != slot + 1:
        i = (i + 1) & mask
    map_erase(map, i)


# Gives an unknown timer a slot, a sequence and a bucket: 1, and *entry is still to be put into the heap, whose size is as
# before; 0: an equal timer is in; -1: no memory, and nothing changed. `probed`: where map_find may begin.
cdef int queue_insert(
    TimerQueue* queue,
    DedupMap* map,
    uint32_t probed,
    uint32_t hash,
    int64_t timestamp_ms,
    int64_t key,
    int32_t key_group,
    int64_t namespace_id,
    TimerEntry* entry,
) noexcept nogil
# Takes the entry at index i out of the heap; the last one fills the gap.
cdef void queue_remove_at(TimerQueue* queue, uint32_t i) noexcept nogil


cdef inline void queue_release(TimerQueue* queue, uint32_t slot) noexcept nogil:
    queue.free_slots[queue.n_free] = slot
    queue.n_free += 1


cdef inline uint32_t queue_take_out(TimerQueue* queue, DedupMap* map, int64_t bucket) noexcept nogil:
    # Frees the bucket and its timer's slot; returns the index of its entry, which is still in the heap.
    cdef uint32_t slot = <uint32_t> map.buckets[bucket] - 1
    map_erase(map, <uint32_t> bucket)
    queue_release(queue, slot)
    return queue.positions[slot]

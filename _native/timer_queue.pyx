"""Timers in a 4-ary min-heap, de-duplicated by one hash map per key group (Flink's HeapPriorityQueueSet).

An entry of the heap carries timestamp, sequence and slot in 16 bytes, so that ordering never leaves the heap's array:

    heap       [ts|seq|slot] [ts|seq|slot] ...      in heap order; four children fill one cache line
    positions  [index in heap] ...                  by slot: a delete finds its entry without search
    chunks     [ts, key, namespace, key group] ...  by slot, 32 bytes, in blocks that never move
    maps       [hash|slot + 1] ...                  per key group: 8 bytes, probed without touching the chunks

That is 52 bytes for a timer and 8 / load for its bucket, 11 to 22.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from flinkcore._native.timer_order cimport (
    entry_sequence,
    entry_slot,
    entry_timestamp,
    heap_build,
    heap_rise,
    heap_sink,
    make_entry,
    sort_entries,
)

cdef extern from *:
    """
    #include <stdlib.h>
    #include <sys/mman.h>

    /* Line-aligned memory; large pieces ask for huge pages, since random access to them is bound by the TLB. */
    static inline void* flinkcore_aligned(size_t bytes) {
        void* memory = NULL;
        size_t alignment = bytes >= (size_t) 1 << 21 ? (size_t) 1 << 21 : 64;
        if (posix_memalign(&memory, alignment, bytes) != 0) return NULL;
    #ifdef MADV_HUGEPAGE
        if (bytes >= (size_t) 1 << 21) madvise(memory, bytes, MADV_HUGEPAGE);
    #endif
        return memory;
    }
    """
    void* flinkcore_aligned(size_t bytes) noexcept nogil

cdef enum:
    CHUNK = 1 << 16      # slots per chunk: 2 MiB
    FIRST_CHUNK = 64     # slots of chunk 0 at first
    MIN_BITS = 3         # buckets of a map at first: 8
    SMALL_BITS = 12      # maps with fewer buckets, less than 32 KiB, grow fourfold

cdef uint32_t NO_SLOT = 0xFFFFFFFF


# ---- memory ------------------------------------------------------------------------------------------------------


cdef int timer_queue_init(TimerQueue* queue, int32_t first_key_group, int32_t last_key_group) except -1 nogil:
    queue.first_key_group = first_key_group
    queue.last_key_group = last_key_group
    queue.maps = <DedupMap*> calloc(last_key_group - first_key_group + 1, sizeof(DedupMap))
    if queue.maps == NULL:
        with gil:
            raise MemoryError()
    return 0


cdef void timer_queue_clear(TimerQueue* queue) noexcept nogil:
    cdef uint32_t i
    for i in range(queue.n_chunks):
        free(queue.chunks[i])
    free(queue.chunks)
    free(queue.heap_memory)
    free(queue.positions)
    free(queue.free_slots)
    free(queue.due)
    queue.chunks = NULL
    queue.heap = NULL
    queue.heap_memory = NULL
    queue.positions = NULL
    queue.free_slots = NULL
    queue.due = NULL
    queue.size = queue.capacity = queue.n_chunks = queue.chunk_capacity = queue.slots_used = queue.due_capacity = 0
    queue.n_free = 0
    queue.next_sequence = 0
    queue.n_buckets = 0
    queue.due_mode = DueMode.DUE_NONE
    if queue.maps != NULL:
        for i in range(queue.last_key_group - queue.first_key_group + 1):
            free(queue.maps[i].buckets)
        memset(queue.maps, 0, (queue.last_key_group - queue.first_key_group + 1) * sizeof(DedupMap))


cdef void timer_queue_free(TimerQueue* queue) noexcept nogil:
    timer_queue_clear(queue)
    free(queue.maps)
    queue.maps = NULL


cdef bint _grow(TimerQueue* queue) noexcept nogil:
    # Makes room for more entries; a full heap has no free slots to keep. Fourfold, since room that is never touched costs
    # address space only, and copying does cost.
    cdef uint64_t capacity = <uint64_t> queue.capacity * 4 if queue.capacity else FIRST_CHUNK
    cdef TimerEntry* heap
    cdef uint32_t* positions
    cdef uint32_t* free_slots
    cdef void* memory
    if capacity > <uint64_t> NO_SLOT:
        capacity = NO_SLOT
        if queue.capacity == capacity:
            return False
    memory = flinkcore_aligned((capacity + 3) * sizeof(TimerEntry))
    if memory == NULL:
        return False
    heap = <TimerEntry*> memory + 3  # so that children 4i + 1 … 4i + 4 share a cache line
    positions = <uint32_t*> flinkcore_aligned(capacity * sizeof(uint32_t))
    free_slots = <uint32_t*> flinkcore_aligned(capacity * sizeof(uint32_t))
    if positions == NULL or free_slots == NULL:
        free(memory)
        free(positions)
        free(free_slots)
        return False
    if queue.capacity:
        memcpy(heap, queue.heap, queue.size * sizeof(TimerEntry))
        memcpy(positions, queue.positions, queue.slots_used * sizeof(uint32_t))
    free(queue.heap_memory)
    free(queue.positions)
    free(queue.free_slots)
    queue.heap_memory = memory
    queue.heap = heap
    queue.positions = positions
    queue.free_slots = free_slots
    queue.capacity = <uint32_t> capacity
    return True


cdef bint _grow_chunks(TimerQueue* queue) noexcept nogil:
    # Makes room for slot number slots_used.
    cdef Timer* chunk
    cdef Timer** chunks
    cdef uint32_t capacity
    if queue.n_chunks == 0 or (queue.n_chunks == 1 and queue.chunk_capacity < CHUNK):
        capacity = queue.chunk_capacity * 2 if queue.n_chunks else FIRST_CHUNK
        chunk = <Timer*> flinkcore_aligned(capacity * sizeof(Timer))
        if chunk == NULL:
            return False
        if queue.n_chunks:
            memcpy(chunk, queue.chunks[0], queue.chunk_capacity * sizeof(Timer))
            free(queue.chunks[0])
        else:
            chunks = <Timer**> malloc(sizeof(Timer*))
            if chunks == NULL:
                free(chunk)
                return False
            queue.chunks = chunks
            queue.n_chunks = 1
        queue.chunks[0] = chunk
        queue.chunk_capacity = capacity
        return True
    chunks = <Timer**> realloc(queue.chunks, (queue.n_chunks + 1) * sizeof(Timer*))
    if chunks == NULL:
        return False
    queue.chunks = chunks
    chunk = <Timer*> flinkcore_aligned(CHUNK * sizeof(Timer))
    if chunk == NULL:
        return False
    chunks[queue.n_chunks] = chunk
    queue.n_chunks += 1
    return True


# ---- de-duplication, where maps grow -----------------------------------------------------------------------------


cdef inline uint32_t _probe_empty(const DedupMap* map, uint32_t hash) noexcept nogil:
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1, i = hash >> map.shift
    while map.buckets[i]:
        i = (i + 1) & mask
    return i


cdef bint _grow_map(TimerQueue* queue, DedupMap* map) noexcept nogil:
    cdef uint32_t old_bits = 32 - map.shift if map.buckets != NULL else 0
    cdef uint32_t bits = old_bits + (1 if old_bits >= SMALL_BITS else 2) if old_bits else MIN_BITS
    cdef uint32_t shift, mask, i
    cdef uint64_t n_old = <uint64_t> 1 << old_bits if old_bits else 0, kept = 0, old
    cdef uint64_t* buckets
    if bits > 31:
        return False
    shift = 32 - bits
    mask = (<uint32_t> 1 << bits) - 1
    buckets = <uint64_t*> calloc(<uint64_t> 1 << bits, sizeof(uint64_t))
    if buckets == NULL:
        return False
    for old in range(n_old):  # moved together first, without a branch that nobody could predict
        map.buckets[kept] = map.buckets[old]
        kept += map.buckets[old] != 0
    for old in range(kept):
        i = <uint32_t> (map.buckets[old] >> 32) >> shift
        while buckets[i]:
            i = (i + 1) & mask
        buckets[i] = map.buckets[old]
    free(map.buckets)
    map.buckets = buckets
    map.shift = shift
    queue.n_buckets += (<uint64_t> 1 << bits) - n_old
    return True


cdef inline bint _map_is_full(const DedupMap* map) noexcept nogil:
    # At three quarters.
    return map.buckets == NULL or <uint64_t> map.size * 4 >= (<uint64_t> 3 << (32 - map.shift))


# ---- slots and sequence ------------------------------------------------------------------------------------------


cdef bint _renumber(TimerQueue* queue) noexcept nogil:
    # Sequences have run out (once in 2**32 registrations): number the live timers anew, in their order.
    cdef uint32_t i, n = queue.size
    cdef TimerEntry* entries = <TimerEntry*> malloc((<uint64_t> n + 1) * 2 * sizeof(TimerEntry))
    cdef TimerEntry entry
    if entries == NULL:
        return False
    for i in range(n):
        entry = queue.heap[i]
        entries[i] = make_entry(entry_sequence(entry), 0, i)
    sort_entries(entries, n, entries + n)
    for i in range(n):
        entry = queue.heap[<uint32_t> entries[i]]
        queue.heap[<uint32_t> entries[i]] = make_entry(entry_timestamp(entry), i, entry_slot(entry))
    queue.next_sequence = n
    free(entries)
    return True


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
) noexcept nogil:
    # 1: has a slot and a bucket, and *entry is to be put into the heap; 0: an equal timer was in; -1: no memory.
    # `probed` is where _find may begin.
    cdef int64_t bucket = -1
    cdef uint32_t slot
    cdef Timer* timer
    if map.buckets != NULL:
        bucket = map_find(queue, map, probed, hash, timestamp_ms, key, namespace_id)
        if bucket >= 0:
            return 0
    if _map_is_full(map):
        if not _grow_map(queue, map):
            return -1
        bucket = ~<int64_t> _probe_empty(map, hash)
    if queue.size == queue.capacity and not _grow(queue):
        return -1
    if queue.next_sequence == NO_SLOT and not _renumber(queue):
        return -1
    if queue.n_free:
        queue.n_free -= 1
        slot = queue.free_slots[queue.n_free]
    else:
        slot = queue.slots_used
        if (slot >> 16) >= queue.n_chunks or (queue.n_chunks == 1 and slot == queue.chunk_capacity):
            if not _grow_chunks(queue):
                return -1
        queue.slots_used += 1
    timer = timer_at(queue, slot)
    timer.timestamp_ms = timestamp_ms
    timer.key = key
    timer.namespace_id = namespace_id
    timer.key_group = key_group
    timer.hash = hash
    map.buckets[~bucket] = <uint64_t> hash << 32 | (<uint64_t> slot + 1)
    map.size += 1
    entry[0] = make_entry(timestamp_ms, queue.next_sequence, slot)
    queue.next_sequence += 1
    return 1


# ---- single verbs ------------------------------------------------------------------------------------------------


cdef void queue_remove_at(TimerQueue* queue, uint32_t i) noexcept nogil:
    cdef TimerEntry last
    queue.size -= 1
    if i == queue.size:
        return
    last = queue.heap[queue.size]
    if i and last < queue.heap[(i - 1) >> 2]:
        heap_rise(queue.heap, i, last, queue.positions)
    else:
        heap_sink(queue.heap, queue.size, i, last, queue.positions)


cdef int timer_queue_add(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil:
    cdef TimerEntry entry
    cdef uint32_t hash = timer_hash(timestamp_ms, key, namespace_id)
    cdef DedupMap* map = key_group_map(queue, key_group)
    cdef int64_t added = queue_insert(
        queue, map, map_home(map, hash), hash, timestamp_ms, key, key_group, namespace_id, &entry
    )
    if added < 0:
        with gil:
            raise MemoryError(f"no memory for more than {queue.size} timers")
    if added == 0:
        return TimerOutcome.TIMER_UNCHANGED
    queue.size += 1
    return TimerOutcome.TIMER_CHANGED if heap_rise(queue.heap, queue.size - 1, entry, queue.positions) else TimerOutcome.TIMER_HEAD


cdef int timer_queue_remove(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) noexcept nogil:
    cdef uint32_t hash = timer_hash(timestamp_ms, key, namespace_id), i
    cdef DedupMap* map = key_group_map(queue, key_group)
    cdef int64_t bucket
    if map.size == 0:
        return TimerOutcome.TIMER_UNCHANGED
    bucket = map_find(queue, map, map_home(map, hash), hash, timestamp_ms, key, namespace_id)
    if bucket < 0:
        return TimerOutcome.TIMER_UNCHANGED
    i = queue_take_out(queue, map, bucket)
    queue_remove_at(queue, i)
    return TimerOutcome.TIMER_CHANGED if i else TimerOutcome.TIMER_HEAD


cdef int timer_queue_move(
    TimerQueue* queue, int64_t from_ms, int64_t to_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil:
    cdef uint32_t hash = timer_hash(from_ms, key, namespace_id), i, slot
    cdef DedupMap* map = key_group_map(queue, key_group)
    cdef int64_t bucket = -1
    cdef TimerEntry entry
    cdef Timer* timer
    if map.size:
        bucket = map_find(queue, map, map_home(map, hash), hash, from_ms, key, namespace_id)
    if bucket < 0:
        return timer_queue_add(queue, to_ms, key, key_group, namespace_id)
    slot = <uint32_t> map.buckets[bucket] - 1
    if queue.next_sequence == NO_SLOT and not _renumber(queue):
        with gil:
            raise MemoryError(f"no memory to number {queue.size} timers anew")
    if to_ms != from_ms:
        hash = timer_hash(to_ms, key, namespace_id)
        if map_find(queue, map, map_home(map, hash), hash, to_ms, key, namespace_id) >= 0:
            queue_remove_at(queue, queue_take_out(queue, map, bucket))
            return TimerOutcome.TIMER_UNCHANGED
        map_erase(map, <uint32_t> bucket)
        map.buckets[_probe_empty(map, hash)] = <uint64_t> hash << 32 | (<uint64_t> slot + 1)
        map.size += 1
        timer = timer_at(queue, slot)
        timer.timestamp_ms = to_ms
        timer.hash = hash
    entry = make_entry(to_ms, queue.next_sequence, slot)
    queue.next_sequence += 1
    i = queue.positions[slot]
    if i and entry < queue.heap[(i - 1) >> 2]:
        heap_rise(queue.heap, i, entry, queue.positions)
    else:
        heap_sink(queue.heap, queue.size, i, entry, queue.positions)
    return TimerOutcome.TIMER_CHANGED if queue.positions[slot] else TimerOutcome.TIMER_HEAD


cdef const Timer* timer_queue_peek(const TimerQueue* queue) noexcept nogil:
    return timer_at(queue, entry_slot(queue.heap[0])) if queue.size else NULL


cdef bint timer_queue_poll(TimerQueue* queue, Timer* timer) noexcept nogil:
    cdef uint32_t slot
    if queue.size == 0:
        return False
    slot = entry_slot(queue.heap[0])
    timer[0] = timer_at(queue, slot)[0]
    queue_erase(queue, slot)
    queue_remove_at(queue, 0)
    queue_release(queue, slot)
    return True


# ---- by key group ------------------------------------------------------------------------------------------------


cdef int64_t timer_queue_count(const TimerQueue* queue, int32_t first, int32_t last) noexcept nogil:
    cdef int32_t key_group
    cdef int64_t total = 0
    for key_group in range(first, last + 1):
        total += key_group_map(queue, key_group).size
    return total


cdef int timer_queue_slots(const TimerQueue* queue, int32_t first, int32_t last, uint32_t* slots) except -1 nogil:
    cdef int64_t n = timer_queue_count(queue, first, last), found = 0, i
    cdef int32_t key_group
    cdef const DedupMap* map
    cdef uint32_t slot
    cdef TimerEntry* entries = <TimerEntry*> flinkcore_aligned((2 * n + 1) * sizeof(TimerEntry))
    if entries == NULL:
        with gil:
            raise MemoryError(f"no memory to sort {n} timers")
    for key_group in range(first, last + 1):
        map = key_group_map(queue, key_group)
        if map.size:
            for i in range(<int64_t> 1 << (32 - map.shift)):
                if map.buckets[i]:
                    slot = <uint32_t> map.buckets[i] - 1
                    entries[found] = make_entry(entry_sequence(queue.heap[queue.positions[slot]]), 0, slot)
                    found += 1
    sort_entries(entries, n, entries + n)
    for i in range(n):
        slots[i] = entry_slot(entries[i])
    free(entries)
    return 0


cdef const char* timer_queue_find_fault(const TimerQueue* queue) noexcept nogil:
    cdef uint64_t i, n_buckets = 0, buckets_used = 0
    cdef uint32_t slot, mask, probe
    cdef uint64_t bucket
    cdef const Timer* timer
    cdef const DedupMap* map
    if queue.size > queue.capacity:
        return b"the heap is larger than its memory"
    for i in range(queue.size):
        slot = entry_slot(queue.heap[i])
        if slot >= queue.slots_used:
            return b"an entry has a slot that was never given out"
        timer = timer_at(queue, slot)
        if queue.positions[slot] != i:
            return b"a timer's back index is not where its entry is"
        if entry_timestamp(queue.heap[i]) != timer.timestamp_ms:
            return b"an entry's timestamp is not its timer's"
        if entry_sequence(queue.heap[i]) >= queue.next_sequence:
            return b"an entry has a sequence that was never given out"
        if i and not queue.heap[(i - 1) >> 2] < queue.heap[i]:
            return b"an entry is not after its parent"
        if timer.hash != timer_hash(timer.timestamp_ms, timer.key, timer.namespace_id):
            return b"a timer's hash is not that of its fields"
        if not queue.first_key_group <= timer.key_group <= queue.last_key_group:
            return b"a timer's key group is outside of the range"
        map = key_group_map(queue, timer.key_group)
        if map.buckets == NULL:
            return b"a timer's key group has no map"
        bucket = <uint64_t> map_find(queue, map, map_home(map, timer.hash), timer.hash, timer.timestamp_ms, timer.key, timer.namespace_id)
        if <int64_t> bucket < 0 or <uint32_t> map.buckets[bucket] != slot + 1:
            return b"a timer is not found in the map of its key group"
    for i in range(<uint64_t> (queue.last_key_group - queue.first_key_group + 1)):
        map = &queue.maps[i]
        if map.buckets == NULL:
            if map.size:
                return b"a map without buckets has a size"
            continue
        n_buckets += <uint64_t> 1 << (32 - map.shift)
        mask = (<uint32_t> 1 << (32 - map.shift)) - 1
        probe = 0
        for slot in range(mask + 1):
            probe += map.buckets[slot] != 0
        if probe != map.size:
            return b"a map's size is not the number of its full buckets"
        buckets_used += probe
    if n_buckets != queue.n_buckets:
        return b"the number of buckets is wrong"
    if buckets_used != queue.size:
        return b"the maps and the heap differ in size"
    for i in range(queue.n_free):
        if queue.free_slots[i] >= queue.slots_used:
            return b"a free slot was never given out"
    if queue.size + queue.n_free != queue.slots_used:
        return b"a slot is neither in use nor free"
    return NULL

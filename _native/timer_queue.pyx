"""Timers in a 4-ary min-heap, de-duplicated by one hash map per key group (Flink's HeapPriorityQueueSet).

An entry of the heap carries timestamp, sequence and slot in 16 bytes, so that ordering never leaves the heap's array:

    heap       [ts|seq|slot] [ts|seq|slot] ...      in heap order; four children fill one cache line
    positions  [index in heap] ...                  by slot: a delete finds its entry without search
    chunks     [ts, key, namespace, key group] ...  by slot, 32 bytes, in blocks that never move
    maps       [hash|slot + 1] ...                  per key group: 8 bytes, probed without touching the chunks

That is 52 bytes for a timer and 8 / load for its bucket, 11 to 22.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from flinkcore._native.entry_heap cimport (
    HeapEntry,
    entry_sequence,
    entry_slot,
    entry_time,
    heap_build,
    heap_remove,
    heap_sift,
    heap_sift_down,
    heap_sift_up,
    make_entry,
)
from flinkcore._native.memory cimport grow, prefetch


cdef extern from *:
    int __builtin_clzll(unsigned long long value) noexcept nogil

cdef enum:
    SMALL = 32       # entries that insertion sorts fastest
    DIGIT_BITS = 11  # of a radix digit, at most


# ---- sifting down ------------------------------------------------------------------------------------------------


cdef void _sift_down(HeapEntry* heap, uint64_t size, uint64_t i, HeapEntry entry, uint32_t* positions) noexcept nogil:
    # One function for the loops that fire timers: inlined into each of them, it costs them registers.
    heap_sift_down(heap, size, i, entry, positions)


# ---- sorting entries ---------------------------------------------------------------------------------------------


cdef void _insertion_sort(HeapEntry* entries, int64_t n) noexcept nogil:
    cdef int64_t i, j
    cdef HeapEntry entry
    for i in range(1, n):
        entry = entries[i]
        j = i
        while j > 0 and entry < entries[j - 1]:
            entries[j] = entries[j - 1]
            j -= 1
        entries[j] = entry


cdef void _radix_sort(HeapEntry* entries, int64_t n, HeapEntry* spare, int shift) noexcept nogil:
    # Sorts by the 64 bits from `shift` on, least significant digit first, over just the bits in which entries can differ.
    cdef uint32_t counts[1 << DIGIT_BITS]
    cdef uint64_t low = <uint64_t> (entries[0] >> shift), high = low, value
    cdef int bits, passes, digit_bits, digit
    cdef uint32_t mask, at, step
    cdef int64_t i
    cdef HeapEntry* source = entries
    cdef HeapEntry* target = spare
    for i in range(1, n):
        value = <uint64_t> (entries[i] >> shift)
        low = value if value < low else low
        high = value if value > high else high
    if low == high:
        return
    bits = 64 - __builtin_clzll(high - low)
    digit_bits = DIGIT_BITS if n >= 1 << 14 else 8
    passes = (bits + digit_bits - 1) // digit_bits
    digit_bits = (bits + passes - 1) // passes
    mask = (<uint32_t> 1 << digit_bits) - 1
    digit = 0
    while digit < bits:
        memset(counts, 0, (<uint64_t> mask + 1) * sizeof(uint32_t))
        for i in range(n):
            counts[<uint32_t> ((<uint64_t> (source[i] >> shift) - low) >> digit) & mask] += 1
        at = 0
        for i in range(<int64_t> mask + 1):
            step = counts[i]
            counts[i] = at
            at += step
        for i in range(n):
            at = <uint32_t> ((<uint64_t> (source[i] >> shift) - low) >> digit) & mask
            target[counts[at]] = source[i]
            counts[at] += 1
        source, target = target, source
        digit += digit_bits
    if source != entries:
        memcpy(entries, source, n * sizeof(HeapEntry))


cdef void _sort_entries(HeapEntry* entries, int64_t n, HeapEntry* spare) noexcept nogil:
    # Sorts ascending; `spare` has room for n entries.
    cdef int64_t first = 0, end
    cdef uint64_t timestamp
    cdef bint ordered
    if n <= SMALL:
        _insertion_sort(entries, n)
        return
    _radix_sort(entries, n, spare, 64)
    while first < n:  # each run of equal timestamps, by sequence
        timestamp = <uint64_t> (entries[first] >> 64)
        end = first + 1
        ordered = True
        while end < n and <uint64_t> (entries[end] >> 64) == timestamp:
            ordered = ordered and entries[end - 1] < entries[end]
            end += 1
        if not ordered:
            if end - first <= SMALL:
                _insertion_sort(entries + first, end - first)
            else:
                _radix_sort(entries + first, end - first, spare, 32)
        first = end


# ---- maps of one key group ---------------------------------------------------------------------------------------


cdef inline uint32_t _timer_hash(int64_t timestamp_ms, int64_t key, int64_t namespace_id) noexcept nogil:
    cdef uint64_t h = <uint64_t> timestamp_ms * <uint64_t> 0x9E3779B97F4A7C15
    h ^= h >> 32
    h = (h + <uint64_t> key) * <uint64_t> 0xD6E8FEB86659FD93
    h ^= h >> 29
    h = (h + <uint64_t> namespace_id) * <uint64_t> 0xA0761D6478BD642F
    h ^= h >> 32
    h *= <uint64_t> 0xE7037ED1A0B428DB
    return <uint32_t> (h >> 32)


cdef inline DedupMap* _key_group_map(const TimerQueue* queue, int32_t key_group) noexcept nogil:
    return &queue.maps[key_group - queue.first_key_group]


cdef inline uint32_t _map_home(const DedupMap* map, uint32_t hash) noexcept nogil:
    return hash >> map.shift


cdef inline uint32_t _map_probe(const DedupMap* map, uint32_t hash, uint32_t i) noexcept nogil:
    # Returns the first bucket from i on that is empty or has the hash.
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1
    while map.buckets[i] and <uint32_t> (map.buckets[i] >> 32) != hash:
        i = (i + 1) & mask
    return i


cdef inline int64_t _map_find(
    const TimerQueue* queue,
    const DedupMap* map,
    uint32_t i,
    uint32_t hash,
    int64_t timestamp_ms,
    int64_t key,
    int64_t namespace_id,
) noexcept nogil:
    # Returns the bucket of the timer, or ~(the empty bucket for it). The map must have buckets. The search begins at bucket i:
    # the hash's own, or a later one before which the timer is known not to be.
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1
    cdef const Timer* timer
    while True:
        i = _map_probe(map, hash, i)
        if map.buckets[i] == 0:
            return ~<int64_t> i
        timer = timer_at(queue, <uint32_t> map.buckets[i] - 1)
        if timer.timestamp_ms == timestamp_ms and timer.key == key and timer.namespace_id == namespace_id:
            return i
        i = (i + 1) & mask


cdef inline void _map_erase(DedupMap* map, uint32_t i) noexcept nogil:
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
    # Maps grow when three quarters of their buckets are full.
    return map.buckets == NULL or <uint64_t> map.size * 4 >= (<uint64_t> 3 << (32 - map.shift))


# ---- memory ------------------------------------------------------------------------------------------------------


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
    # Makes room for more entries. A full heap has no free slots to keep. Fourfold, since memory that is never touched costs
    # only address space, and copying costs time.
    cdef uint64_t capacity = <uint64_t> queue.capacity * 4 if queue.capacity else FIRST_CHUNK
    cdef HeapEntry* heap
    cdef uint32_t* positions
    cdef uint32_t* free_slots
    cdef void* memory
    if capacity > <uint64_t> NO_SLOT:
        capacity = NO_SLOT
        if queue.capacity == capacity:
            return False
    memory = flinkcore_aligned((capacity + 3) * sizeof(HeapEntry))
    if memory == NULL:
        return False
    heap = <HeapEntry*> memory + 3  # so that children 4i + 1 … 4i + 4 share a cache line
    positions = <uint32_t*> flinkcore_aligned(capacity * sizeof(uint32_t))
    free_slots = <uint32_t*> flinkcore_aligned(capacity * sizeof(uint32_t))
    if positions == NULL or free_slots == NULL:
        free(memory)
        free(positions)
        free(free_slots)
        return False
    if queue.capacity:
        memcpy(heap, queue.heap, queue.size * sizeof(HeapEntry))
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
    # Makes room for slot number slots_used. Chunks other than the first never move, so that large queues grow without copying
    # timers.
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


# ---- slots and sequences -----------------------------------------------------------------------------------------


cdef inline void _queue_erase(TimerQueue* queue, uint32_t slot) noexcept nogil:
    cdef const Timer* timer = timer_at(queue, slot)
    cdef DedupMap* map = _key_group_map(queue, timer.key_group)
    cdef uint32_t mask = (<uint32_t> 1 << (32 - map.shift)) - 1, i = timer.hash >> map.shift
    while <uint32_t> map.buckets[i] != slot + 1:
        i = (i + 1) & mask
    _map_erase(map, i)


cdef inline void _queue_release(TimerQueue* queue, uint32_t slot) noexcept nogil:
    queue.free_slots[queue.n_free] = slot
    queue.n_free += 1


cdef inline uint32_t _queue_take_out(TimerQueue* queue, DedupMap* map, int64_t bucket) noexcept nogil:
    # Frees the bucket and its timer's slot. Returns the index of its entry, which is still in the heap.
    cdef uint32_t slot = <uint32_t> map.buckets[bucket] - 1
    _map_erase(map, <uint32_t> bucket)
    _queue_release(queue, slot)
    return queue.positions[slot]


cdef bint _renumber(TimerQueue* queue) noexcept nogil:
    # Called when sequences have run out (once in 2**32 registrations): numbers the live timers again, in their order.
    cdef uint32_t i, n = queue.size
    cdef HeapEntry* entries = <HeapEntry*> malloc((<uint64_t> n + 1) * 2 * sizeof(HeapEntry))
    cdef HeapEntry entry
    if entries == NULL:
        return False
    for i in range(n):
        entry = queue.heap[i]
        entries[i] = make_entry(entry_sequence(entry), 0, i)
    _sort_entries(entries, n, entries + n)
    for i in range(n):
        entry = queue.heap[<uint32_t> entries[i]]
        queue.heap[<uint32_t> entries[i]] = make_entry(entry_time(entry), i, entry_slot(entry))
    queue.next_sequence = n
    free(entries)
    return True


cdef int _queue_insert(
    TimerQueue* queue,
    DedupMap* map,
    uint32_t probed,
    uint32_t hash,
    int64_t timestamp_ms,
    int64_t key,
    int32_t key_group,
    int64_t namespace_id,
    HeapEntry* entry,
) noexcept nogil:
    # Assigns an unknown timer a slot, a sequence and a bucket. Returns 1, and the caller puts *entry into the heap, whose size
    # is as before; 0 if an equal timer is in; -1 without memory, and nothing has changed. `probed`: where _map_find may begin.
    cdef int64_t bucket = -1
    cdef uint32_t slot
    cdef Timer* timer
    if map.buckets != NULL:
        bucket = _map_find(queue, map, probed, hash, timestamp_ms, key, namespace_id)
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


cdef void _queue_remove_at(TimerQueue* queue, uint32_t i) noexcept nogil:
    # Removes the entry at index i from the heap.
    heap_remove(queue.heap, queue.size, i, queue.positions)
    queue.size -= 1


# ---- timers one by one -------------------------------------------------------------------------------------------


cdef int timer_queue_add(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil:
    cdef HeapEntry entry
    cdef uint32_t hash = _timer_hash(timestamp_ms, key, namespace_id)
    cdef DedupMap* map = _key_group_map(queue, key_group)
    cdef int64_t added = _queue_insert(
        queue, map, _map_home(map, hash), hash, timestamp_ms, key, key_group, namespace_id, &entry
    )
    if added < 0:
        with gil:
            raise MemoryError(f"no memory for more than {queue.size} timers")
    if added == 0:
        return TimerOutcome.TIMER_UNCHANGED
    queue.size += 1
    return TimerOutcome.TIMER_CHANGED if heap_sift_up(queue.heap, queue.size - 1, entry, queue.positions) else TimerOutcome.TIMER_HEAD


cdef int timer_queue_remove(
    TimerQueue* queue, int64_t timestamp_ms, int64_t key, int32_t key_group, int64_t namespace_id
) noexcept nogil:
    cdef uint32_t hash = _timer_hash(timestamp_ms, key, namespace_id), i
    cdef DedupMap* map = _key_group_map(queue, key_group)
    cdef int64_t bucket
    if map.size == 0:
        return TimerOutcome.TIMER_UNCHANGED
    bucket = _map_find(queue, map, _map_home(map, hash), hash, timestamp_ms, key, namespace_id)
    if bucket < 0:
        return TimerOutcome.TIMER_UNCHANGED
    i = _queue_take_out(queue, map, bucket)
    _queue_remove_at(queue, i)
    return TimerOutcome.TIMER_CHANGED if i else TimerOutcome.TIMER_HEAD


cdef int timer_queue_move(
    TimerQueue* queue, int64_t from_ms, int64_t to_ms, int64_t key, int32_t key_group, int64_t namespace_id
) except -1 nogil:
    cdef uint32_t hash = _timer_hash(from_ms, key, namespace_id), i, slot
    cdef DedupMap* map = _key_group_map(queue, key_group)
    cdef int64_t bucket = -1
    cdef HeapEntry entry
    cdef Timer* timer
    if map.size:
        bucket = _map_find(queue, map, _map_home(map, hash), hash, from_ms, key, namespace_id)
    if bucket < 0:
        return timer_queue_add(queue, to_ms, key, key_group, namespace_id)
    slot = <uint32_t> map.buckets[bucket] - 1
    if queue.next_sequence == NO_SLOT and not _renumber(queue):
        with gil:
            raise MemoryError(f"no memory to number {queue.size} timers anew")
    if to_ms != from_ms:
        hash = _timer_hash(to_ms, key, namespace_id)
        if _map_find(queue, map, _map_home(map, hash), hash, to_ms, key, namespace_id) >= 0:
            _queue_remove_at(queue, _queue_take_out(queue, map, bucket))
            return TimerOutcome.TIMER_UNCHANGED
        _map_erase(map, <uint32_t> bucket)
        map.buckets[_probe_empty(map, hash)] = <uint64_t> hash << 32 | (<uint64_t> slot + 1)
        map.size += 1
        timer = timer_at(queue, slot)
        timer.timestamp_ms = to_ms
        timer.hash = hash
    entry = make_entry(to_ms, queue.next_sequence, slot)
    queue.next_sequence += 1
    heap_sift(queue.heap, queue.size, queue.positions[slot], entry, queue.positions)
    return TimerOutcome.TIMER_CHANGED if queue.positions[slot] else TimerOutcome.TIMER_HEAD


cdef const Timer* timer_queue_peek(const TimerQueue* queue) noexcept nogil:
    return timer_at(queue, entry_slot(queue.heap[0])) if queue.size else NULL


cdef bint timer_queue_is_due(const TimerQueue* queue, int64_t watermark_ms) noexcept nogil:
    return queue.size != 0 and timer_queue_peek(queue).timestamp_ms <= watermark_ms


cdef bint timer_queue_poll(TimerQueue* queue, Timer* timer) noexcept nogil:
    cdef uint32_t slot
    if queue.size == 0:
        return False
    slot = entry_slot(queue.heap[0])
    timer[0] = timer_at(queue, slot)[0]
    _queue_erase(queue, slot)
    _queue_remove_at(queue, 0)
    _queue_release(queue, slot)
    return True


cdef bint timer_queue_poll_due(TimerQueue* queue, int64_t watermark_ms, int64_t n_keys, Timer* timer) noexcept nogil:
    while timer_queue_is_due(queue, watermark_ms):
        timer_queue_poll(queue, timer)
        if 0 <= timer.key < n_keys:
            return True
    return False


# ---- timers of key groups ----------------------------------------------------------------------------------------


cdef int64_t timer_queue_count(const TimerQueue* queue, int32_t first, int32_t last) noexcept nogil:
    cdef int32_t key_group
    cdef int64_t total = 0
    for key_group in range(first, last + 1):
        total += _key_group_map(queue, key_group).size
    return total


cdef int timer_queue_slots(const TimerQueue* queue, int32_t first, int32_t last, uint32_t* slots) except -1 nogil:
    cdef int64_t n = timer_queue_count(queue, first, last), found = 0, i
    cdef int32_t key_group
    cdef const DedupMap* map
    cdef uint32_t slot
    cdef HeapEntry* entries = <HeapEntry*> flinkcore_aligned((2 * n + 1) * sizeof(HeapEntry))
    if entries == NULL:
        with gil:
            raise MemoryError(f"no memory to sort {n} timers")
    for key_group in range(first, last + 1):
        map = _key_group_map(queue, key_group)
        if map.size:
            for i in range(<int64_t> 1 << (32 - map.shift)):
                if map.buckets[i]:
                    slot = <uint32_t> map.buckets[i] - 1
                    entries[found] = make_entry(entry_sequence(queue.heap[queue.positions[slot]]), 0, slot)
                    found += 1
    _sort_entries(entries, n, entries + n)
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
        if entry_time(queue.heap[i]) != timer.timestamp_ms:
            return b"an entry's timestamp is not its timer's"
        if entry_sequence(queue.heap[i]) >= queue.next_sequence:
            return b"an entry has a sequence that was never given out"
        if i and not queue.heap[(i - 1) >> 2] < queue.heap[i]:
            return b"an entry is not after its parent"
        if timer.hash != _timer_hash(timer.timestamp_ms, timer.key, timer.namespace_id):
            return b"a timer's hash is not that of its fields"
        if not queue.first_key_group <= timer.key_group <= queue.last_key_group:
            return b"a timer's key group is outside of the range"
        map = _key_group_map(queue, timer.key_group)
        if map.buckets == NULL:
            return b"a timer's key group has no map"
        bucket = <uint64_t> _map_find(queue, map, _map_home(map, timer.hash), timer.hash, timer.timestamp_ms, timer.key, timer.namespace_id)
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


# ---- timers as columns -------------------------------------------------------------------------------------------
# The loops run over blocks of rows in stages. Each stage only prefetches the memory that the next one reads; the last stage
# does the work and trusts only what it can check. If a batch is large beside the heap, the whole heap is ordered again instead
# of entry by entry; if it is small, nothing takes time proportional to the heap.


cdef enum:
    BLOCK = 64     # rows per stage
    AHEAD = 24     # rows to prefetch ahead where one loop is enough
    PIECE = 1 << 14  # timers taken at a time where a limit leaves others due: their candidates stay in the cache

cdef HeapEntry DEAD = ~<HeapEntry> 0  # marks a removed entry during a large delete; no slot has this number


cdef inline void _prefetch_buckets(
    const TimerQueue* queue,
    const int64_t* timestamps_ms,
    const int64_t* keys,
    const int32_t* key_groups,
    const int64_t* namespace_ids,
    int64_t namespace_stride,
    int64_t n,
    uint32_t* hashes,
) noexcept nogil:
    cdef int64_t row
    cdef const DedupMap* map
    for row in range(n):
        hashes[row] = _timer_hash(timestamps_ms[row], keys[row], namespace_ids[row * namespace_stride])
        map = _key_group_map(queue, key_groups[row])
        if map.buckets != NULL:
            prefetch(&map.buckets[_map_home(map, hashes[row])])


cdef int64_t timer_queue_register(
    TimerQueue* queue,
    const int64_t* timestamps_ms,
    const int64_t* keys,
    const int32_t* key_groups,
    const int64_t* namespace_ids,
    int64_t namespace_stride,
    int64_t n,
    uint8_t* changed,
) except -1 nogil:
    cdef uint32_t hashes[BLOCK]
    cdef uint32_t probed[BLOCK]
    cdef int64_t first, row, block, added, total = 0
    cdef uint32_t slot, hash
    cdef uint64_t bucket, n_buckets
    cdef DedupMap* map
    cdef HeapEntry entry
    # Many new entries are cheaper to order all at once: O(size + n) instead of O(n log size).
    cdef bint build = n > BLOCK and n > <int64_t> queue.size
    added = 0
    first = 0
    while first < n:
        block = n - first if n - first < BLOCK else BLOCK
        _prefetch_buckets(
            queue, timestamps_ms + first, keys + first, key_groups + first, namespace_ids + first * namespace_stride,
            namespace_stride, block, hashes,
        )
        for row in range(block if block < queue.n_free else queue.n_free):
            slot = queue.free_slots[queue.n_free - 1 - row]
            prefetch(timer_at(queue, slot))
            prefetch(&queue.positions[slot])
        for row in range(block):
            map = _key_group_map(queue, key_groups[first + row])
            if map.buckets != NULL:
                probed[row] = _map_probe(map, hashes[row], _map_home(map, hashes[row]))
                bucket = map.buckets[probed[row]]
                if bucket:
                    prefetch(timer_at(queue, <uint32_t> bucket - 1))
        n_buckets = queue.n_buckets
        for row in range(first, first + block):
            map = _key_group_map(queue, key_groups[row])
            hash = hashes[row - first]
            # A bucket passed over before is still full, unless a map has grown since.
            added = _queue_insert(
                queue,
                map,
                probed[row - first] if queue.n_buckets == n_buckets else _map_home(map, hash),
                hash,
                timestamps_ms[row],
                keys[row],
                key_groups[row],
                namespace_ids[row * namespace_stride],
                &entry,
            )
            if added < 0:
                break
            changed[row] = <uint8_t> added
            if added:
                total += 1
                queue.size += 1
                if build:
                    queue.heap[queue.size - 1] = entry
                else:
                    heap_sift_up(queue.heap, queue.size - 1, entry, queue.positions)
        if added < 0:
            break
        first += BLOCK
    if build and total:
        heap_build(queue.heap, queue.size, queue.positions)
    if added < 0:
        with gil:
            raise MemoryError(f"no memory for more than {queue.size} timers")
    return total


cdef int64_t timer_queue_delete(
    TimerQueue* queue,
    const int64_t* timestamps_ms,
    const int64_t* keys,
    const int32_t* key_groups,
    const int64_t* namespace_ids,
    int64_t namespace_stride,
    int64_t n,
    uint8_t* changed,
) noexcept nogil:
    cdef uint32_t hashes[BLOCK]
    cdef uint32_t probed[BLOCK]
    cdef uint64_t buckets[BLOCK]
    cdef int64_t first, row, block, i, total = 0
    cdef uint64_t position, bucket
    cdef uint32_t slot, kept, hash
    cdef DedupMap* map
    # If a large part of the heap is deleted, entries are only marked, and the rest is ordered again: O(size) instead of O(n log
    # size).
    cdef bint build = n > BLOCK and n > <int64_t> (queue.size >> 2)
    first = 0
    while first < n:
        block = n - first if n - first < BLOCK else BLOCK
        _prefetch_buckets(
            queue, timestamps_ms + first, keys + first, key_groups + first, namespace_ids + first * namespace_stride,
            namespace_stride, block, hashes,
        )
        for row in range(block):
            map = _key_group_map(queue, key_groups[first + row])
            buckets[row] = 0
            if map.size:
                probed[row] = _map_probe(map, hashes[row], _map_home(map, hashes[row]))
                bucket = buckets[row] = map.buckets[probed[row]]
                if bucket:
                    prefetch(timer_at(queue, <uint32_t> bucket - 1))
                    prefetch(&queue.positions[<uint32_t> bucket - 1])
        for row in range(block):
            if buckets[row]:
                position = queue.positions[<uint32_t> buckets[row] - 1]
                prefetch(&queue.heap[position])
                if not build:
                    prefetch(&queue.heap[(position - 1) >> 2 if position else 0])
                    prefetch(&queue.heap[4 * position + 1])
        for row in range(first, first + block):
            changed[row] = 0
            map = _key_group_map(queue, key_groups[row])
            if buckets[row - first] == 0 or map.size == 0:
                continue
            hash = hashes[row - first]
            i = probed[row - first]
            # Removals move buckets: what was probed holds only if the bucket is still the same.
            i = _map_find(
                queue,
                map,
                <uint32_t> i if map.buckets[i] == buckets[row - first] else _map_home(map, hash),
                hash,
                timestamps_ms[row],
                keys[row],
                namespace_ids[row * namespace_stride],
            )
            if i >= 0:
                changed[row] = 1
                total += 1
                i = _queue_take_out(queue, map, i)
                if build:
                    queue.heap[i] = DEAD
                else:
                    _queue_remove_at(queue, <uint32_t> i)
        first += BLOCK
    if build and total:
        kept = 0
        for slot in range(queue.size):
            queue.heap[kept] = queue.heap[slot]
            kept += queue.heap[slot] != DEAD
        queue.size = kept
        heap_build(queue.heap, kept, queue.positions)
    return total


# ---- firing ------------------------------------------------------------------------------------------------------


cdef int _reserve_due(TimerQueue* queue, uint64_t capacity) except -1 nogil:
    if capacity > queue.due_capacity:
        queue.due = <uint32_t*> grow(queue.due, capacity * sizeof(uint32_t), b"the positions of due timers")
        queue.due_capacity = <uint32_t> capacity
    return 0


cdef int64_t timer_queue_due(TimerQueue* queue, int64_t watermark_ms, int64_t limit) except -1 nogil:
    cdef uint64_t bound = <uint64_t> watermark_ms ^ (<uint64_t> 1 << 63)
    cdef uint64_t n = queue.size, child, i
    cdef int64_t top, due
    cdef uint32_t head, tail
    queue.due_mode = DueMode.DUE_NONE
    queue.due_count = 0
    queue.due_bound = bound
    if n == 0 or limit <= 0 or <uint64_t> (queue.heap[0] >> 64) > bound:
        return 0
    top = <int64_t> (n >> 2) + 16
    if top > limit:
        top = limit
    # The due timers are a tree at the root: walk it level by level, so that positions ascend. Room for 5 more is always
    # there, since a visit adds at most 4.
    _reserve_due(queue, 64)
    queue.due[0] = 0
    head = 0
    tail = 1
    while head < tail and tail <= top:
        if tail + 5 > queue.due_capacity:
            _reserve_due(queue, 2 * <uint64_t> queue.due_capacity)
        child = 4 * <uint64_t> queue.due[head] + 1
        head += 1
        for i in range(child, child + 4 if child + 4 < n else n):
            if <uint64_t> (queue.heap[i] >> 64) <= bound:
                queue.due[tail] = <uint32_t> i
                tail += 1
                prefetch(&queue.heap[4 * i + 1])
    if tail <= top:
        queue.due_mode = DueMode.DUE_TOP
        queue.due_count = tail
        return tail
    if top < limit:
        due = 0
        for i in range(n):
            due += <uint64_t> (queue.heap[i] >> 64) <= bound
        if due <= limit:
            queue.due_mode = DueMode.DUE_SCAN
            queue.due_count = <uint32_t> due
            return due
    _reserve_due(queue, PIECE if limit > PIECE else limit)
    queue.due_mode = DueMode.DUE_FIRST
    queue.due_count = <uint32_t> limit
    return limit


cdef void _retire(
    TimerQueue* queue,
    const HeapEntry* entries,
    int64_t n,
    int64_t* timestamps_ms,
    int64_t* keys,
    int32_t* key_groups,
    int64_t* namespace_ids,
) noexcept nogil:
    # Copies the timers of the entries to the columns and frees their slots and buckets. The caller removes the entries from the
    # heap.
    cdef int64_t i
    cdef uint32_t slot
    cdef const Timer* timer
    cdef const DedupMap* map
    cdef uint64_t n_maps = queue.last_key_group - queue.first_key_group + 1
    # If all timers go, wiping the maps costs less than closing every gap, unless the maps are almost empty.
    cdef bint wipe = n == queue.size and <uint64_t> n * 16 >= queue.n_buckets + n_maps
    for i in range(n):
        if i + 2 * AHEAD < n:
            prefetch(timer_at(queue, entry_slot(entries[i + 2 * AHEAD])))
        if not wipe and i + AHEAD < n:
            timer = timer_at(queue, entry_slot(entries[i + AHEAD]))
            map = _key_group_map(queue, timer.key_group)
            prefetch(&map.buckets[_map_home(map, timer.hash)])
        slot = entry_slot(entries[i])
        timer = timer_at(queue, slot)
        timestamps_ms[i] = timer.timestamp_ms
        keys[i] = timer.key
        key_groups[i] = timer.key_group
        namespace_ids[i] = timer.namespace_id
        if not wipe:
            _queue_erase(queue, slot)
            _queue_release(queue, slot)
    if wipe:
        for i in range(<int64_t> n_maps):
            if queue.maps[i].size:
                memset(queue.maps[i].buckets, 0, (<uint64_t> 1 << (32 - queue.maps[i].shift)) * 8)
                queue.maps[i].size = 0
        queue.slots_used = 0
        queue.n_free = 0


cdef void _refill(TimerQueue* queue, const uint32_t* holes, int64_t n_holes) noexcept nogil:
    # Fills the holes, a tree at the root: the entries beyond the new size sift down from the lowest hole upwards.
    cdef int64_t last = n_holes - 1, i
    cdef uint32_t size = queue.size - <uint32_t> n_holes, end = queue.size
    i = last
    while i >= 0 and holes[i] >= size:
        i -= 1
    while i >= 0:
        end -= 1
        while last >= 0 and holes[last] == end:
            end -= 1
            last -= 1
        if i >= 8:
            prefetch(&queue.heap[4 * <uint64_t> holes[i - 8] + 1])
        _sift_down(queue.heap, size, holes[i], queue.heap[end], queue.positions)
        i -= 1
    queue.size = size


cdef void _first(TimerQueue* queue, int64_t n, HeapEntry* entries, HeapEntry* candidates) noexcept nogil:
    # Finds the n first timers in firing order, and writes their positions to queue.due, ascending. They are a tree at the root,
    # whose neighbours are the candidates for the next timer, at most 3 n + 1.
    cdef int64_t i, n_candidates = 1
    cdef uint64_t child, end
    cdef uint32_t position
    candidates[0] = queue.heap[0]
    for i in range(n):
        entries[i] = candidates[0]
        position = queue.positions[entry_slot(entries[i])]
        queue.due[i] = position
        child = 4 * <uint64_t> position + 1
        end = child + 4 if child + 4 < queue.size else queue.size
        if child < end:
            _sift_down(candidates, n_candidates, 0, queue.heap[child], NULL)
            child += 1
        else:
            n_candidates -= 1
            _sift_down(candidates, n_candidates, 0, candidates[n_candidates], NULL)
        while child < end:
            heap_sift_up(candidates, n_candidates, queue.heap[child], NULL)
            n_candidates += 1
            child += 1
    for i in range(n):
        candidates[i] = make_entry(queue.due[i], 0, 0)
    _sort_entries(candidates, n, candidates + n)
    for i in range(n):
        queue.due[i] = <uint32_t> entry_time(candidates[i])


cdef int timer_queue_take(
    TimerQueue* queue, int64_t* timestamps_ms, int64_t* keys, int32_t* key_groups, int64_t* namespace_ids
) except -1 nogil:
    cdef int64_t n = queue.due_count, piece, taken = 0, i
    cdef uint32_t front = 0
    cdef HeapEntry entry
    cdef HeapEntry* entries
    cdef DueMode mode = queue.due_mode
    queue.due_mode = DueMode.DUE_NONE
    if mode == DueMode.DUE_NONE:
        return 0
    piece = PIECE if mode == DueMode.DUE_FIRST and n > PIECE else n
    # To sort and from where: `due` entries beside those of the heap, or the heap's own; or candidates.
    entries = <HeapEntry*> malloc(
        (piece if mode == DueMode.DUE_SCAN else 2 * piece if mode == DueMode.DUE_TOP else 4 * piece + 4)
        * sizeof(HeapEntry)
    )
    if entries == NULL:
        with gil:
            raise MemoryError(f"no memory to sort {n} due timers")
    if mode == DueMode.DUE_SCAN:
        for i in range(queue.size):
            entry = queue.heap[i]
            if <uint64_t> (entry >> 64) <= queue.due_bound:
                queue.heap[i] = queue.heap[front]
                queue.heap[front] = entry
                front += 1
        _sort_entries(queue.heap, n, entries)
        _retire(queue, queue.heap, n, timestamps_ms, keys, key_groups, namespace_ids)
        queue.size -= front
        memmove(queue.heap, queue.heap + front, queue.size * sizeof(HeapEntry))
        heap_build(queue.heap, queue.size, queue.positions)
    while mode != DueMode.DUE_SCAN and taken < n:
        piece = n - taken if n - taken < piece else piece
        if mode == DueMode.DUE_TOP:
            for i in range(n):
                entries[i] = queue.heap[queue.due[i]]
            _sort_entries(entries, n, entries + n)
        else:
            _first(queue, piece, entries, entries + piece)
        _retire(
            queue, entries, piece, timestamps_ms + taken, keys + taken, key_groups + taken, namespace_ids + taken
        )
        _refill(queue, queue.due, piece)
        taken += piece
    free(entries)
    return 0

"""The verbs of a TimerQueue over whole batches of rows.

The loops run over blocks of rows in stages, each of which only prefetches what the next one reads; the last stage does
the work and trusts nothing that it cannot check. Where a batch is large beside the heap, the heap is ordered anew as a
whole instead of entry by entry; where it is small, nothing of the heap's size is done.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from flinkcore._native.timer_order cimport (
    TimerEntry,
    entry_slot,
    entry_timestamp,
    heap_build,
    heap_rise,
    heap_sink,
    make_entry,
    sort_entries,
)
from flinkcore._native.timer_queue cimport (
    DedupMap,
    DueMode,
    Timer,
    key_group_map,
    map_find,
    map_home,
    map_probe,
    queue_erase,
    queue_insert,
    queue_release,
    queue_remove_at,
    queue_take_out,
    timer_at,
    timer_hash,
)

cdef extern from *:
    void __builtin_prefetch(const void* address) noexcept nogil

cdef enum:
    BLOCK = 64     # rows per stage
    AHEAD = 24     # rows to prefetch ahead where one loop is enough
    PIECE = 1 << 14  # timers taken at a time where a limit leaves others due: their candidates stay in the cache

cdef TimerEntry DEAD = ~<TimerEntry> 0  # marks a removed entry during a large delete; no slot has this number


# ---- register and delete -----------------------------------------------------------------------------------------------------


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
        hashes[row] = timer_hash(timestamps_ms[row], keys[row], namespace_ids[row * namespace_stride])
        map = key_group_map(queue, key_groups[row])
        if map.buckets != NULL:
            __builtin_prefetch(&map.buckets[map_home(map, hashes[row])])


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
    cdef TimerEntry entry
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
            __builtin_prefetch(timer_at(queue, slot))
            __builtin_prefetch(&queue.positions[slot])
        for row in range(block):
            map = key_group_map(queue, key_groups[first + row])
            if map.buckets != NULL:
                probed[row] = map_probe(map, hashes[row], map_home(map, hashes[row]))
                bucket = map.buckets[probed[row]]
                if bucket:
                    __builtin_prefetch(timer_at(queue, <uint32_t> bucket - 1))
        n_buckets = queue.n_buckets
        for row in range(first, first + block):
            map = key_group_map(queue, key_groups[row])
            hash = hashes[row - first]
            # A bucket passed over before is still full, unless a map has grown since.
            added = queue_insert(
                queue,
                map,
                probed[row - first] if queue.n_buckets == n_buckets else map_home(map, hash),
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
                    heap_rise(queue.heap, queue.size - 1, entry, queue.positions)
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
    # Of a large part of the heap, entries are only marked, and the rest is ordered anew: O(size) instead of O(n log size).
    cdef bint build = n > BLOCK and n > <int64_t> (queue.size >> 2)
    first = 0
    while first < n:
        block = n - first if n - first < BLOCK else BLOCK
        _prefetch_buckets(
            queue, timestamps_ms + first, keys + first, key_groups + first, namespace_ids + first * namespace_stride,
            namespace_stride, block, hashes,
        )
        for row in range(block):
            map = key_group_map(queue, key_groups[first + row])
            buckets[row] = 0
            if map.size:
                probed[row] = map_probe(map, hashes[row], map_home(map, hashes[row]))
                bucket = buckets[row] = map.buckets[probed[row]]
                if bucket:
                    __builtin_prefetch(timer_at(queue, <uint32_t> bucket - 1))
                    __builtin_prefetch(&queue.positions[<uint32_t> bucket - 1])
        for row in range(block):
            if buckets[row]:
                position = queue.positions[<uint32_t> buckets[row] - 1]
                __builtin_prefetch(&queue.heap[position])
                if not build:
                    __builtin_prefetch(&queue.heap[(position - 1) >> 2 if position else 0])
                    __builtin_prefetch(&queue.heap[4 * position + 1])
        for row in range(first, first + block):
            changed[row] = 0
            map = key_group_map(queue, key_groups[row])
            if buckets[row - first] == 0 or map.size == 0:
                continue
            hash = hashes[row - first]
            i = probed[row - first]
            # Removals move buckets: what was probed holds only where the bucket is still the same.
            i = map_find(
                queue,
                map,
                <uint32_t> i if map.buckets[i] == buckets[row - first] else map_home(map, hash),
                hash,
                timestamps_ms[row],
                keys[row],
                namespace_ids[row * namespace_stride],
            )
            if i >= 0:
                changed[row] = 1
                total += 1
                i = queue_take_out(queue, map, i)
                if build:
                    queue.heap[i] = DEAD
                else:
                    queue_remove_at(queue, <uint32_t> i)
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
    cdef uint32_t* positions
    if capacity > queue.due_capacity:
        positions = <uint32_t*> realloc(queue.due, capacity * sizeof(uint32_t))
        if positions == NULL:
            with gil:
                raise MemoryError(f"no memory for the positions of {capacity} due timers")
        queue.due = positions
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
                __builtin_prefetch(&queue.heap[4 * i + 1])
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
    const TimerEntry* entries,
    int64_t n,
    int64_t* timestamps_ms,
    int64_t* keys,
    int32_t* key_groups,
    int64_t* namespace_ids,
) noexcept nogil:
    # Copies the timers of the entries out and frees their slots and buckets; the heap is the caller's.
    cdef int64_t i
    cdef uint32_t slot
    cdef const Timer* timer
    cdef const DedupMap* map
    cdef uint64_t n_maps = queue.last_key_group - queue.first_key_group + 1
    # Where all go, wiping the maps costs less than to close every gap, unless they are almost empty.
    cdef bint wipe = n == queue.size and <uint64_t> n * 16 >= queue.n_buckets + n_maps
    for i in range(n):
        if i + 2 * AHEAD < n:
            __builtin_prefetch(timer_at(queue, entry_slot(entries[i + 2 * AHEAD])))
        if not wipe and i + AHEAD < n:
            timer = timer_at(queue, entry_slot(entries[i + AHEAD]))
            map = key_group_map(queue, timer.key_group)
            __builtin_prefetch(&map.buckets[map_home(map, timer.hash)])
        slot = entry_slot(entries[i])
        timer = timer_at(queue, slot)
        timestamps_ms[i] = timer.timestamp_ms
        keys[i] = timer.key
        key_groups[i] = timer.key_group
        namespace_ids[i] = timer.namespace_id
        if not wipe:
            queue_erase(queue, slot)
            queue_release(queue, slot)
    if wipe:
        for i in range(<int64_t> n_maps):
            if queue.maps[i].size:
                memset(queue.maps[i].buckets, 0, (<uint64_t> 1 << (32 - queue.maps[i].shift)) * 8)
                queue.maps[i].size = 0
        queue.slots_used = 0
        queue.n_free = 0


cdef void _refill(TimerQueue* queue, const uint32_t* holes, int64_t n_holes) noexcept nogil:
    # Closes the holes, a tree at the root: the entries beyond the new size sink in from the lowest hole upwards.
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
            __builtin_prefetch(&queue.heap[4 * <uint64_t> holes[i - 8] + 1])
        heap_sink(queue.heap, size, holes[i], queue.heap[end], queue.positions)
        i -= 1
    queue.size = size


cdef void _first(TimerQueue* queue, int64_t n, TimerEntry* entries, TimerEntry* candidates) noexcept nogil:
    # The n first timers in firing order, and in queue.due their positions, ascending: they are a tree at the root, whose
    # neighbours are the candidates for the next one, at most 3 n + 1.
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
            heap_sink(candidates, n_candidates, 0, queue.heap[child], NULL)
            child += 1
        else:
            n_candidates -= 1
            heap_sink(candidates, n_candidates, 0, candidates[n_candidates], NULL)
        while child < end:
            heap_rise(candidates, n_candidates, queue.heap[child], NULL)
            n_candidates += 1
            child += 1
    for i in range(n):
        candidates[i] = make_entry(queue.due[i], 0, 0)
    sort_entries(candidates, n, candidates + n)
    for i in range(n):
        queue.due[i] = <uint32_t> entry_timestamp(candidates[i])


cdef int timer_queue_take(
    TimerQueue* queue, int64_t* timestamps_ms, int64_t* keys, int32_t* key_groups, int64_t* namespace_ids
) except -1 nogil:
    cdef int64_t n = queue.due_count, piece, taken = 0, i
    cdef uint32_t front = 0
    cdef TimerEntry entry
    cdef TimerEntry* entries
    cdef DueMode mode = queue.due_mode
    queue.due_mode = DueMode.DUE_NONE
    if mode == DueMode.DUE_NONE:
        return 0
    piece = PIECE if mode == DueMode.DUE_FIRST and n > PIECE else n
    # To sort and from where: `due` entries beside those of the heap, or the heap's own; or candidates.
    entries = <TimerEntry*> malloc(
        (piece if mode == DueMode.DUE_SCAN else 2 * piece if mode == DueMode.DUE_TOP else 4 * piece + 4)
        * sizeof(TimerEntry)
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
        sort_entries(queue.heap, n, entries)
        _retire(queue, queue.heap, n, timestamps_ms, keys, key_groups, namespace_ids)
        queue.size -= front
        memmove(queue.heap, queue.heap + front, queue.size * sizeof(TimerEntry))
        heap_build(queue.heap, queue.size, queue.positions)
    while mode != DueMode.DUE_SCAN and taken < n:
        piece = n - taken if n - taken < piece else piece
        if mode == DueMode.DUE_TOP:
            for i in range(n):
                entries[i] = queue.heap[queue.due[i]]
            sort_entries(entries, n, entries + n)
        else:
            _first(queue, piece, entries, entries + piece)
        _retire(
            queue, entries, piece, timestamps_ms + taken, keys + taken, key_groups + taken, namespace_ids + taken
        )
        _refill(queue, queue.due, piece)
        taken += piece
    free(entries)
    return 0

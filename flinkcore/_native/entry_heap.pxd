# A 4-ary min-heap of 16-byte entries that compare as numbers: the timers of a queue, the aligned channels of a valve.
#
# The children of the entry at index i are at 4i + 1 to 4i + 4. A heap that keeps `positions` knows the index of each slot's entry, so
# that a caller can replace or remove an entry without a search; `positions` may be NULL if nobody asks.
#
# "Sift up" moves an entry towards the root, "sift down" away from it.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from flinkcore._native.memory cimport prefetch


cdef extern from *:
    """
    #ifndef FLINKCORE_HEAP_ENTRY
    #define FLINKCORE_HEAP_ENTRY
    typedef unsigned __int128 flinkcore_heap_entry;
    #endif
    """
    # Time in bits 64 to 127, sequence in 32 to 63, slot in 0 to 31. The time's sign bit is flipped: unsigned numbers then have the order
    # of signed times.
    ctypedef unsigned long long HeapEntry "flinkcore_heap_entry"


cdef inline HeapEntry make_entry(int64_t time_ms, uint32_t sequence, uint32_t slot) noexcept nogil:
    cdef HeapEntry entry = <uint64_t> time_ms ^ (<uint64_t> 1 << 63)
    return entry << 64 | <HeapEntry> (<uint64_t> sequence << 32 | <uint64_t> slot)


cdef inline int64_t entry_time(HeapEntry entry) noexcept nogil:
    return <int64_t> (<uint64_t> (entry >> 64) ^ (<uint64_t> 1 << 63))


cdef inline uint32_t entry_sequence(HeapEntry entry) noexcept nogil:
    return <uint32_t> (entry >> 32)


cdef inline uint32_t entry_slot(HeapEntry entry) noexcept nogil:
    return <uint32_t> entry


cdef inline void heap_put(HeapEntry* heap, uint64_t i, HeapEntry entry, uint32_t* positions) noexcept nogil:
    # Writes an entry without regard to order.
    heap[i] = entry
    if positions != NULL:
        positions[entry_slot(entry)] = <uint32_t> i


cdef inline uint32_t heap_sift_up(HeapEntry* heap, uint64_t i, HeapEntry entry, uint32_t* positions) noexcept nogil:
    # Puts an entry into the gap at i or nearer to the root; returns its index.
    cdef uint64_t parent
    while i:
        parent = (i - 1) >> 2
        if heap[parent] < entry:
            break
        heap_put(heap, i, heap[parent], positions)
        i = parent
    heap_put(heap, i, entry, positions)
    return <uint32_t> i


cdef inline void heap_sift_down(
    HeapEntry* heap, uint64_t size, uint64_t i, HeapEntry entry, uint32_t* positions
) noexcept nogil:
    # Puts an entry into the gap at i or further from the root.
    cdef uint64_t child = 4 * i + 1, best, other
    while child + 3 < size:
        if 4 * child + 1 < size:
            # The line of the next level is one of these four: fetch all rather than wait for the choice.
            prefetch(&heap[4 * child + 1])
            prefetch(&heap[4 * child + 5])
            prefetch(&heap[4 * child + 9])
            prefetch(&heap[4 * child + 13])
        # Arithmetic instead of branches: which child is least cannot be predicted.
        best = child + <uint64_t> (heap[child + 1] < heap[child])
        other = child + 2 + <uint64_t> (heap[child + 3] < heap[child + 2])
        best += (other - best) * <uint64_t> (heap[other] < heap[best])
        if entry < heap[best]:
            child = size
            break
        heap_put(heap, i, heap[best], positions)
        i = best
        child = 4 * i + 1
    if child < size:  # one to three children, which are the last entries
        best = child
        for other in range(child + 1, size):
            if heap[other] < heap[best]:
                best = other
        if heap[best] < entry:
            heap_put(heap, i, heap[best], positions)
            i = best
    heap_put(heap, i, entry, positions)


cdef inline void heap_sift(HeapEntry* heap, uint64_t size, uint64_t i, HeapEntry entry, uint32_t* positions) noexcept nogil:
    # Puts an entry into the gap at i, or wherever the order wants it.
    if i and entry < heap[(i - 1) >> 2]:
        heap_sift_up(heap, i, entry, positions)
    else:
        heap_sift_down(heap, size, i, entry, positions)


cdef inline void heap_remove(HeapEntry* heap, uint64_t size, uint64_t i, uint32_t* positions) noexcept nogil:
    # Removes the entry at i: the last one fills the gap. The heap has one entry less than `size` afterwards.
    if i < size - 1:
        heap_sift(heap, size - 1, i, heap[size - 1], positions)


cdef inline void heap_build(HeapEntry* heap, uint64_t size, uint32_t* positions) noexcept nogil:
    # Makes a heap of entries in any order. O(size).
    cdef uint64_t i
    if size > 1:
        i = (size - 2) >> 2
        while True:
            heap_sift_down(heap, size, i, heap[i], NULL)
            if i == 0:
                break
            i -= 1
    for i in range(size):
        positions[entry_slot(heap[i])] = <uint32_t> i

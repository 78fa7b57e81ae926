"""The order of timers: 16-byte entries, their 4-ary min-heap, and their sort."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    void __builtin_prefetch(const void* address) noexcept nogil
    int __builtin_clzll(unsigned long long value) noexcept nogil

cdef enum:
    SMALL = 32       # entries that insertion sorts fastest
    DIGIT_BITS = 11  # of a radix digit, at most


# ---- heap --------------------------------------------------------------------------------------------------------


cdef uint32_t heap_rise(TimerEntry* heap, uint64_t i, TimerEntry entry, uint32_t* positions) noexcept nogil:
    cdef uint64_t parent
    while i:
        parent = (i - 1) >> 2
        if heap[parent] < entry:
            break
        heap[i] = heap[parent]
        if positions != NULL:
            positions[entry_slot(heap[i])] = <uint32_t> i
        i = parent
    heap[i] = entry
    if positions != NULL:
        positions[entry_slot(entry)] = <uint32_t> i
    return <uint32_t> i


cdef inline void _sink(
    TimerEntry* heap, uint64_t size, uint64_t i, TimerEntry entry, uint32_t* positions
) noexcept nogil:
    cdef uint64_t child = 4 * i + 1, best, other
    while child + 3 < size:
        if 4 * child + 1 < size:
            # The line of the next level is one of these four: fetch all rather than wait for the choice.
            __builtin_prefetch(&heap[4 * child + 1])
            __builtin_prefetch(&heap[4 * child + 5])
            __builtin_prefetch(&heap[4 * child + 9])
            __builtin_prefetch(&heap[4 * child + 13])
        # Arithmetic instead of branches that nobody could predict.
        best = child + <uint64_t> (heap[child + 1] < heap[child])
        other = child + 2 + <uint64_t> (heap[child + 3] < heap[child + 2])
        best += (other - best) * <uint64_t> (heap[other] < heap[best])
        if entry < heap[best]:
            child = size
            break
        heap[i] = heap[best]
        if positions != NULL:
            positions[entry_slot(heap[i])] = <uint32_t> i
        i = best
        child = 4 * i + 1
    if child < size:
        best = child
        for other in range(child + 1, size):
            if heap[other] < heap[best]:
                best = other
        if heap[best] < entry:
            heap[i] = heap[best]
            if positions != NULL:
                positions[entry_slot(heap[i])] = <uint32_t> i
            i = best
    heap[i] = entry
    if positions != NULL:
        positions[entry_slot(entry)] = <uint32_t> i


cdef void heap_sink(TimerEntry* heap, uint64_t size, uint64_t i, TimerEntry entry, uint32_t* positions) noexcept nogil:
    _sink(heap, size, i, entry, positions)


cdef void heap_build(TimerEntry* heap, uint64_t size, uint32_t* positions) noexcept nogil:
    cdef uint64_t i
    if size > 1:
        i = (size - 2) >> 2
        while True:
            _sink(heap, size, i, heap[i], NULL)
            if i == 0:
                break
            i -= 1
    for i in range(size):
        positions[entry_slot(heap[i])] = <uint32_t> i


# ---- sort --------------------------------------------------------------------------------------------------------


cdef void _insertion_sort(TimerEntry* entries, int64_t n) noexcept nogil:
    cdef int64_t i, j
    cdef TimerEntry entry
    for i in range(1, n):
        entry = entries[i]
        j = i
        while j > 0 and entry < entries[j - 1]:
            entries[j] = entries[j - 1]
            j -= 1
        entries[j] = entry


cdef void _radix_sort(TimerEntry* entries, int64_t n, TimerEntry* spare, int shift) noexcept nogil:
    # By the 64 bits from `shift` on, least significant digit first, over just the bits in which entries can differ.
    cdef uint32_t counts[1 << DIGIT_BITS]
    cdef uint64_t low = <uint64_t> (entries[0] >> shift), high = low, value
    cdef int bits, passes, digit_bits, digit
    cdef uint32_t mask, at, step
    cdef int64_t i
    cdef TimerEntry* source = entries
    cdef TimerEntry* target = spare
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
        memcpy(entries, source, n * sizeof(TimerEntry))


cdef void sort_entries(TimerEntry* entries, int64_t n, TimerEntry* spare) noexcept nogil:
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

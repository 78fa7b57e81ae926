# The order of timers: 16-byte entries, their 4-ary min-heap, and their sort.
from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef extern from *:
    """
    #ifndef FLINKCORE_TIMER_ENTRY
    #define FLINKCORE_TIMER_ENTRY
    typedef unsigned __int128 flinkcore_timer_entry;
    #endif
    """
    # timestamp (sign bit flipped) in bits 64-127, sequence in 32-63, slot in 0-31: entries compare as numbers.
    ctypedef unsigned long long TimerEntry "flinkcore_timer_entry"


cdef inline TimerEntry make_entry(int64_t timestamp_ms, uint32_t sequence, uint32_t slot) noexcept nogil:
    cdef TimerEntry entry = <uint64_t> timestamp_ms ^ (<uint64_t> 1 << 63)
    return entry << 64 | <TimerEntry> (<uint64_t> sequence << 32 | <uint64_t> slot)


cdef inline int64_t entry_timestamp(TimerEntry entry) noexcept nogil:
    return <int64_t> (<uint64_t> (entry >> 64) ^ (<uint64_t> 1 << 63))


cdef inline uint32_t entry_sequence(TimerEntry entry) noexcept nogil:
    return <uint32_t> (entry >> 32)


cdef inline uint32_t entry_slot(TimerEntry entry) noexcept nogil:
    return <uint32_t> entry


# In a heap the children of i are 4i + 1 to 4i + 4. Where an entry comes to lie, positions[its slot] becomes its index,
# unless positions is NULL.
# Put `entry` where the heap has a gap at i: rise moves it towards the root, and returns its index; sink away from it.
cdef uint32_t heap_rise(TimerEntry* heap, uint64_t i, TimerEntry entry, uint32_t* positions) noexcept nogil
cdef void heap_sink(TimerEntry* heap, uint64_t size, uint64_t i, TimerEntry entry, uint32_t* positions) noexcept nogil
# Makes a heap of any entries in O(size), and their positions.
cdef void heap_build(TimerEntry* heap, uint64_t size, uint32_t* positions) noexcept nogil
# Ascending; `spare` has room for n entries too.
cdef void sort_entries(TimerEntry* entries, int64_t n, TimerEntry* spare) noexcept nogil

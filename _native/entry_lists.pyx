"""Entries of accumulators in lists, such as those of the windows that each key has open."""

from libc.stdint cimport UINT32_MAX, int64_t, uint32_t
from libc.stdlib cimport free

from flinkcore._native.aggregates cimport accumulators_clear_range, accumulators_reserve
from flinkcore._native.memory cimport grow


cdef int entry_lists_start(EntryLists* lists, AccumulatorTable* table) except -1:
    lists.table = table
    lists.free_entry = END_OF_LIST
    entry_take(lists)
    return 0


cdef int64_t entry_take(EntryLists* lists) except -1 nogil:
    cdef uint32_t entry = lists.free_entry
    cdef int64_t capacity
    if entry != END_OF_LIST:
        lists.free_entry = lists.following[entry]
        lists.n_free -= 1
    else:
        if lists.n_entries == lists.capacity:
            if lists.n_entries == UINT32_MAX:
                with gil:
                    raise MemoryError("more than 4,294,967,295 live (key, window) entries in one task; use more partitions")
            capacity = min(lists.capacity + (lists.capacity >> 1) + 64, <int64_t> UINT32_MAX)
            lists.following = <uint32_t*> grow(
                lists.following, capacity * sizeof(uint32_t), b"the windows of counted elements"
            )
            accumulators_reserve(lists.table, <uint32_t> capacity)
            lists.capacity = capacity
        entry = lists.n_entries
        lists.n_entries += 1
    lists.following[entry] = END_OF_LIST
    return entry


cdef void entry_give(EntryLists* lists, uint32_t entry) noexcept nogil:
    accumulators_clear_range(lists.table, entry, 1)
    lists.following[entry] = lists.free_entry
    lists.free_entry = entry
    lists.n_free += 1


cdef void entry_lists_free(EntryLists* lists) noexcept nogil:
    free(lists.following)
    lists.following = NULL


cdef int64_t entry_list_check(const EntryLists* lists, uint32_t first) except -1:
    cdef int64_t n = 0
    cdef uint32_t entry = first
    while entry != END_OF_LIST:
        assert EMPTY_ENTRY < entry < lists.n_entries
        n += 1
        assert n < lists.n_entries, "a list has no end"
        entry = lists.following[entry]
    return n

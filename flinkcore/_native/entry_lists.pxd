# Entries of accumulators in lists, such as those of the windows that each key has open.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.aggregates cimport AccumulatorTable


cdef enum:
    END_OF_LIST = 0xFFFFFFFF
    EMPTY_ENTRY = 0  # is never taken, and holds nothing


cdef struct EntryLists:
    AccumulatorTable* table
    uint32_t* following  # by entry: the next one of its list, or the next free one; END_OF_LIST
    int64_t capacity
    uint32_t n_entries   # ever taken, and the empty one
    uint32_t n_free
    uint32_t free_entry


# Of zeroed lists, over accumulators without entries.
cdef int entry_lists_start(EntryLists* lists, AccumulatorTable* table) except -1
# An empty entry, whose list ends with it.
cdef int64_t entry_take(EntryLists* lists) except -1 nogil
# Empties an entry that is in no list any more.
cdef void entry_give(EntryLists* lists, uint32_t entry) noexcept nogil
cdef void entry_lists_free(EntryLists* lists) noexcept nogil
# How many entries the list has; raises AssertionError where an entry cannot be.
cdef int64_t entry_list_check(const EntryLists* lists, uint32_t first) except -1


cdef inline int64_t entries_taken(const EntryLists* lists) noexcept nogil:
    return <int64_t> lists.n_entries - 1 - lists.n_free

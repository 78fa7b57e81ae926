# A window that is made of slices of time, which enter and leave it one after the other.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.hash_order cimport HashOrder
from flinkcore._native.keys cimport KeyBatch
from flinkcore._native.panes cimport Pane, PaneList, PaneStore


cdef struct SliceMerge:
    # The slices that end after `start`, up to `end`, added up.
    int64_t start
    int64_t end
    Pane* pane           # keys in order of their hashes; NULL before the first slice
    uint32_t* n_slices   # in how many of the slices each key is; keys with 0 go when the next window fires
    uint32_t n_gone      # such keys
    Pane* spare          # what the next window is written to
    uint32_t* spare_n_slices
    int64_t n_slices_capacity
    # What enters next: what slices took in after they had entered, or several slices at once; NULL before the first key.
    Pane* gathered
    uint32_t* gathered_n_slices  # to how many slices each key is new
    int64_t gathered_capacity
    HashOrder scratch


# Makes it the window from `start` to `end`, neither of which is before that of the one before.
cdef int merge_slices(
    SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start, int64_t end
) except -1 nogil
# Takes out the slices that end at or before `start`.
cdef int merge_leave(SliceMerge* merge, PaneStore* store, const PaneList* slices, int64_t start) except -1 nogil
# The entry that takes in a late row which one of the window's slices takes in; is_new: as the first of this key.
cdef int64_t merge_gathered_entry(
    SliceMerge* merge, PaneStore* store, const KeyBatch* keys, int64_t row, bint is_new
) except -1 nogil
cdef void merge_free(SliceMerge* merge) noexcept nogil
# How many entry blocks it has; raises AssertionError where something is wrong with it.
cdef int64_t merge_check(const SliceMerge* merge, const PaneStore* store, const PaneList* slices) except -1

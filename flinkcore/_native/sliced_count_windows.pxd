# Overlapping windows of so many elements of a key that share slices: a kernel of window operators.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.count_firings cimport MOST_FIRINGS, CountFirings
from flinkcore._native.entry_lists cimport EntryLists
from flinkcore._native.key_dictionary cimport KeyTable
from flinkcore._native.window_kernel cimport WindowCore


cdef struct SlicedKey:
    int64_t count      # of its elements so far
    int64_t phase      # of the next one, within its slice
    int64_t place      # of that slice, within its block
    uint32_t rests     # of the block before, a list of entries: that behind this slice first
    uint32_t slices    # of this block, a list of entries: the latest one first
    uint32_t together  # the complete ones of them; END_OF_LIST: there is none
    bint completed     # the latest slice is complete, and nothing has come of it yet


cdef struct SlicedCountWindows:
    WindowCore core
    int64_t slide          # elements of a slice
    int64_t window_slices  # of a window, and of a block
    bint fires_short       # also where there are fewer slices
    KeyTable keys
    SlicedKey* sliced      # by id of the key
    int64_t n_sliced
    int64_t sliced_capacity
    EntryLists lists
    uint32_t restored      # the next entry of the key restored last
    uint32_t restored_key
    bint restoring_rests
    int64_t n_completed
    uint32_t[MOST_FIRINGS] completed  # keys, whose slices are added up together: before a further element of one of them
    CountFirings fired                # of them

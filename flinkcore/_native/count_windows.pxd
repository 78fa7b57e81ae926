# Windows of so many elements of a key, which may overlap: a kernel of window operators.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.key_dictionary cimport KeyTable
from flinkcore._native.window_kernel cimport WindowCore


cdef enum:
    MOST_FIRINGS = 1024
    NO_WINDOW = 0xFFFFFFFF


cdef struct CountedKey:
    int64_t count   # of its elements so far
    int64_t phase   # of the next one: how far behind the last element that a window starts with
    uint32_t first  # its open windows by start, each an entry of the accumulators; NO_WINDOW: none
    uint32_t last
    bint firing     # its first window, which stays open, has fired, and the result is still to be emitted


cdef struct CountFiring:
    uint32_t key
    bint stays_open


cdef struct CountWindows:
    WindowCore core
    int64_t size
    int64_t slide
    int64_t first_start   # number of the element, from 0 on, that the first window starts with; below 0 where it is shorter
    int64_t fires_at      # phase of the elements that fire a window
    bint fires_short      # also where fewer elements than the size have come
    KeyTable keys
    CountedKey* counted   # by id of the key
    int64_t n_counted
    int64_t counted_capacity
    uint32_t* following   # by entry: the next open window of its key, or the next free entry
    int64_t entries_capacity
    uint32_t n_entries    # ever used; the first is always empty
    uint32_t free_entry
    int64_t n_open
    uint32_t restored     # the next window of the key restored last
    uint32_t restored_key
    int64_t n_firing
    int64_t n_emitted     # of them, so many have their results out
    CountFiring[MOST_FIRINGS] firing       # emitted together: before a further element of one that stays open, or a watermark
    uint32_t[MOST_FIRINGS] entries         # theirs
    int64_t[MOST_FIRINGS + 1] key_offsets  # KEY_BYTES: where their keys would lie, one after the other

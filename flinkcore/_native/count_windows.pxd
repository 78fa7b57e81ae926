# Windows of so many elements of a key, which may overlap: a kernel of window operators.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.count_firings cimport CountFirings
from flinkcore._native.entry_lists cimport EntryLists
from flinkcore._native.key_dictionary cimport KeyTable
from flinkcore._native.window_kernel cimport WindowCore


cdef struct CountedKey:
    int64_t count   # of its elements so far
    int64_t phase   # of the next one: how far behind the last element that a window starts with
    uint32_t first  # its open windows by start, a list of entries
    uint32_t last
    bint firing     # its first window, which stays open, has fired, and the result is still to be emitted


cdef struct CountWindows:
    WindowCore core
    int64_t size
    int64_t slide
    int64_t first_start  # number of the element, from 0 on, that the first window starts with; below 0 where it is shorter
    int64_t fires_at     # phase of the elements that fire a window
    bint fires_short     # also where fewer elements than the size have come
    KeyTable keys
    CountedKey* counted  # by id of the key
    int64_t n_counted
    int64_t counted_capacity
    EntryLists lists
    int64_t n_open
    uint32_t restored    # the next window of the key restored last
    uint32_t restored_key
    CountFirings fired   # emitted before a further element of a window that stays open, or a watermark

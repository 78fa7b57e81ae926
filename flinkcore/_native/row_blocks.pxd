# Rows taken in blocks: first every row's windows are found and the key's slots prefetched, then the keys are looked up.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.panes cimport Pane, PaneStore
from flinkcore._native.window_kernel cimport InputRows, WindowCore


cdef enum:
    BLOCK_PAIRS = 128


cdef struct RowBlock:
    # Pairs of a row and a window that it goes into, in the order of the rows.
    Pane* panes[BLOCK_PAIRS]
    uint32_t rows[BLOCK_PAIRS]
    int64_t n


cdef struct RowVerbs:
    # Fills a block with rows from number `first` on, up to one that needs more care: it is late, opens a window, falls into a
    # window that has fired, or a watermark before it fires something. The number of the row to go on with.
    int64_t (*find_windows)(const void* windows, const InputRows* input, int64_t first, RowBlock* block) noexcept nogil
    # Takes in such a row; false where results are full before it.
    bint (*take_row)(void* windows, const InputRows* input, uint32_t row) except -1 nogil


# Takes in rows from number `first` on, into up to `most_windows` each; the number to go on with, where results are full.
cdef int64_t take_in_blocks(
    WindowCore* core, PaneStore* store, const InputRows* input, int64_t first, int64_t most_windows, const RowVerbs* verbs
) except -1 nogil

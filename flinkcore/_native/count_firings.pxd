# Windows that the elements of keys have fired, by count, and whose results are emitted together.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.firings cimport Firings
from flinkcore._native.key_dictionary cimport KeyTable
from flinkcore._native.window_kernel cimport WindowCore


cdef enum:
    MOST_FIRINGS = 1024


cdef struct CountFirings:
    int64_t n
    int64_t n_emitted  # so many have their results out
    uint32_t[MOST_FIRINGS] keys            # ids
    uint32_t[MOST_FIRINGS] entries         # of the accumulators
    int64_t[MOST_FIRINGS + 1] key_offsets  # KEY_BYTES: where the keys would lie, one after the other


# There is room for it.
cdef void count_firing_add(CountFirings* fired, const KeyTable* keys, uint32_t id, uint32_t entry) noexcept nogil
# Emits as many results as there is room for, at the watermark now in force; how many. The entries stay as they are.
cdef int64_t count_firings_emit(CountFirings* fired, const KeyTable* keys, WindowCore* core) except -1 nogil
# A key of the table.
cdef int append_counted_key(Firings* firings, const KeyTable* keys, uint32_t id) except -1 nogil

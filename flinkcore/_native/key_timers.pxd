# Timers of each key by its dense id, in one time domain: the first in a column, further ones in a sorted list of the key.
#
# For one thread at a time. Key ids must be below n_keys: the C functions do not check it.
from libc.stdint cimport int64_t, uint32_t

from flinkcore._native.call_guard cimport CallGuard


cdef struct LaterTimers:
    # times_ms[begin:end], ascending, all later than the key's first.
    int64_t* times_ms
    uint32_t begin
    uint32_t end
    uint32_t capacity


cdef class KeyTimers:
    cdef CallGuard guard
    cdef int64_t n_keys
    cdef int64_t n_timers
    cdef int64_t capacity     # of the columns by key
    cdef int64_t* first_ms    # 2**63 - 1 without one
    cdef uint32_t* counts     # of all timers of the key
    cdef uint32_t* later      # number of the key's list plus one; 0: none
    cdef int64_t* block_ms    # no timer of the block is earlier
    cdef LaterTimers* lists
    cdef uint32_t n_lists
    cdef uint32_t lists_capacity
    cdef uint32_t* free_lists
    cdef uint32_t n_free

    # Make room for ids below this.
    cdef int reach(self, int64_t n_keys) except -1
    # 1: added; 0: there was an equal one.
    cdef int add(self, int64_t key, int64_t time_ms) except -1 nogil
    # 1: removed; 0: there was none.
    cdef int remove(self, int64_t key, int64_t time_ms) noexcept nogil
    cdef void remove_first(self, int64_t key) noexcept nogil
    cdef void remove_all(self, int64_t key) noexcept nogil
    cdef LaterTimers* _list(self, int64_t key) except NULL nogil
    cdef void _free_list(self, int64_t key) noexcept nogil
    cdef int _check_ids(self, const int64_t[::1] keys) except -1

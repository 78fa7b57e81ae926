# Last ranks of keys, each of a column in the first row of its key, as Flink's AbstractTopNFunction.initRankEnd keeps them.
from libc.stdint cimport int64_t
from libc.string cimport memset

from flinkcore._native.memory cimport grow


cdef enum:
    NO_LIMIT = -1         # of a key without a row
    LEAST_LIMITS = 1 << 8


cdef struct KeyLimits:
    # Zero-initialise; free `limits`.
    int64_t* limits  # (n,) by key id
    int64_t n
    int64_t capacity


# Makes room for so many keys.
cdef inline int key_limits_reach(KeyLimits* self, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity = max(self.capacity, <int64_t> LEAST_LIMITS)
    if n_keys > self.capacity:
        while capacity < n_keys:
            capacity *= 2
        self.limits = <int64_t*> grow(self.limits, capacity * sizeof(int64_t), b"the last ranks of keys")
        self.capacity = capacity
    if n_keys > self.n:
        memset(self.limits + self.n, 0xFF, (n_keys - self.n) * sizeof(int64_t))
        self.n = n_keys
    return 0


# Returns the last rank of a key, of which a row has this one.
cdef inline int64_t key_limit(KeyLimits* self, int64_t key_id, int64_t of_row) noexcept nogil:
    if self.limits[key_id] == NO_LIMIT:
        self.limits[key_id] = max(<int64_t> 0, of_row)
    return self.limits[key_id]


# Returns the limits of keys with rows as columns, `key` and `limit`.
cdef dict key_limits_snapshot(const KeyLimits* self)


# Takes such columns, with keys of now; raises SchemaError if a limit is negative.
cdef int key_limits_restore(KeyLimits* self, const int64_t[::1] keys, const int64_t[::1] limits) except -1

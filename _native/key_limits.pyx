"""Last ranks of keys, each of a column in the first row of its key."""

import numpy as np

from libc.stdint cimport int64_t

from flinkcore.errors import SchemaError


cdef dict key_limits_snapshot(const KeyLimits* self):
    cdef int64_t key
    limits = np.array([self.limits[key] for key in range(self.n)], np.int64)
    keys = np.flatnonzero(limits != NO_LIMIT)
    return {"key": keys, "limit": limits[keys]}


cdef int key_limits_restore(KeyLimits* self, const int64_t[::1] keys, const int64_t[::1] limits) except -1:
    cdef int64_t i
    for i in range(keys.shape[0]):
        if limits[i] < 0:
            raise SchemaError(f"row {i} of the limits of ranks is negative")
        key_limits_reach(self, keys[i] + 1)
        key_limit(self, keys[i], limits[i])
    return 0

"""When the state of keys expires, by the processing time at which it was written last.

Follows Flink's StateTtlConfig with OnCreateAndWrite and NeverReturnExpired: the state of a key has expired as soon as the time to live
has passed since it was written. With a timer it follows KeyedProcessFunctionWithCleanupState: a timer that is up to half a time to live
late clears the state, and is set again only by a row that comes less than a time to live before it.
"""

import numpy as np

import cython
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.key_expiry cimport cleanup_due
from flinkcore._native.memory cimport grow
from flinkcore._native.window_operator cimport saturating_add


cdef enum:
    LEAST_KEYS = 256

cdef int64_t NO_STATE = INT64_MIN
cdef const char* _WHAT = b"the times at which keys expire"


cdef struct Expiry:
    int64_t ttl_ms
    bint by_timer
    int64_t* due        # by key: first processing time at which its state has expired, or NO_STATE
    int64_t n_keys
    int64_t capacity


cdef int _reach(Expiry* self, int64_t n_keys) except -1 nogil:
    cdef int64_t capacity = max(self.capacity, <int64_t> LEAST_KEYS), key
    if n_keys > self.capacity:
        while capacity < n_keys:
            capacity *= 2
        self.due = <int64_t*> grow(self.due, capacity * <int64_t> sizeof(int64_t), _WHAT)
        self.capacity = capacity
    for key in range(self.n_keys, n_keys):
        self.due[key] = NO_STATE
    self.n_keys = max(self.n_keys, n_keys)
    return 0


cdef inline bint _write(Expiry* self, uint32_t key, int64_t now) noexcept nogil:
    # Returns whether the state of the key had expired.
    cdef int64_t due = self.due[key]
    cdef bint expired = due != NO_STATE and due <= now
    if self.by_timer:
        self.due[key] = cleanup_due(NO_STATE if expired else due, self.ttl_ms, now)
    else:
        self.due[key] = saturating_add(now, self.ttl_ms)
    return expired


@cython.final
cdef class KeyExpiry:
    """Times at which the state of keys expires.

    Parameters
    ----------
    ttl_ms : int
        Time to live, in ms of processing time; positive.
    by_timer : bool
        Whether a timer clears the state, as of ``KeyedProcessFunctionWithCleanupState``.

    Raises
    ------
    ConfigurationError
        If the time to live is not from 1 to 2**61.
    """

    cdef CallGuard guard
    cdef Expiry state

    def __cinit__(self, int64_t ttl_ms, *, bint by_timer=False):
        if not 0 < ttl_ms <= 1 << 61:
            raise ConfigurationError(f"a time to live of {ttl_ms} ms: it must be from 1 to 2**61")
        self.state.ttl_ms = ttl_ms
        self.state.by_timer = by_timer

    def __dealloc__(self):
        free(self.state.due)

    def write(self, const uint32_t[::1] key_ids not None, const int64_t[::1] times not None):
        """Take in rows that write the state of their keys.

        Parameters
        ----------
        key_ids : uint32 array (n,)
        times : int64 array (n,)
            Processing times in ms since the epoch.

        Returns
        -------
        uint8 array (n,)
            1 for each row before which the state of its key had expired.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = key_ids.shape[0], i
        cdef uint32_t most = 0
        if times.shape[0] != n:
            raise ValueError(f"{times.shape[0]} times for {n} rows")
        cdef uint8_t[::1] expired = np.empty(n, np.uint8)
        with nogil:
            for i in range(n):
                most = max(most, key_ids[i])
            if n:
                _reach(&self.state, <int64_t> most + 1)
            for i in range(n):
                expired[i] = _write(&self.state, key_ids[i], times[i])
        return expired.base

    def expire(self, int64_t now):
        """Forget the keys whose state has expired at a processing time, and return their ids as a uint32 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, n = 0
        cdef uint32_t[::1] found = np.empty(self.state.n_keys, np.uint32)
        with nogil:
            for key in range(self.state.n_keys):
                if self.state.due[key] != NO_STATE and self.state.due[key] <= now:
                    self.state.due[key] = NO_STATE
                    found[n] = <uint32_t> key
                    n += 1
        return found.base[:n].copy()

    def memory_bytes(self):
        """Bytes that the times take."""
        check_no_call(&self.guard, self)
        return self.state.capacity * <int64_t> sizeof(int64_t)

    def snapshot(self):
        """Return `key` (int64) and `due` (int64), the first processing time at which its state has expired."""
        cdef Call call = begin_call(&self.guard, self)
        due = np.empty(0, np.int64)
        if self.state.n_keys:
            due = np.asarray(<int64_t[:self.state.n_keys]> self.state.due)
        keys = np.flatnonzero(due != NO_STATE)
        return {"key": keys, "due": due[keys]}

    def restore(self, const int64_t[::1] keys not None, const int64_t[::1] due not None):
        """Take rows of a `snapshot`, with keys of now; before the first row.

        Raises
        ------
        SchemaError
            If a key is there twice.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        if due.shape[0] != keys.shape[0]:
            raise ValueError(f"{due.shape[0]} times for {keys.shape[0]} keys")
        for i in range(keys.shape[0]):
            _reach(&self.state, keys[i] + 1)
            if self.state.due[keys[i]] != NO_STATE:
                raise SchemaError(f"row {i} of the state has a key that is there twice")
            self.state.due[keys[i]] = due[i]

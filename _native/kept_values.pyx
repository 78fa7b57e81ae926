"""Values of keys that may be withdrawn, by number, in order of their coming: for aggregates that need the values themselves.

Follows Flink's FirstValueWithRetractAggFunction, LastValueWithRetractAggFunction and ListAggWithRetractAggFunction: of equal values
the first one is withdrawn. As in its GroupAggFunction, a key of which as many rows were withdrawn as came begins anew: a withdrawal
that then comes is ignored, and a value that is left, since one that never came was withdrawn in its place, is forgotten.
"""

import numpy as np

import cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from flinkcore.errors import ConfigurationError, SchemaError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.changing_rows cimport (
    NO_SLOT,
    ChangingRow,
    ChangingRows,
    Identity,
    changing_add,
    changing_find,
    changing_free,
    changing_is_sound,
    changing_memory,
    changing_reach,
    changing_remove,
    changing_slots,
    identity_of,
)
from flinkcore._native.memory cimport Buffer, buffer_append_int64, buffer_free, grow

_SHOWN = ("first", "last", "all")


cdef struct Kept:
    ChangingRows rows
    int64_t* n_rows   # of each key: rows that came, without those that were withdrawn; at most as many as its values
    int64_t n_keys    # with a number of rows
    int shown         # number in _SHOWN
    Buffer numbers    # int64: of the values that are shown
    Buffer ends       # int64: of each result in them, where all are shown


cdef int _reach(Kept* self, int64_t n_keys) except -1 nogil:
    changing_reach(&self.rows, n_keys)
    if self.n_keys < self.rows.key_capacity:
        self.n_rows = <int64_t*> grow(self.n_rows, self.rows.key_capacity * <int64_t> sizeof(int64_t), b"kept values")
        memset(self.n_rows + self.n_keys, 0, (self.rows.key_capacity - self.n_keys) * sizeof(int64_t))
        self.n_keys = self.rows.key_capacity
    return 0


cdef int _withdraw(Kept* self, uint32_t key, Identity identity) noexcept nogil:
    cdef uint32_t slot
    if not self.n_rows[key]:
        return 0
    self.n_rows[key] -= 1
    slot = changing_find(&self.rows, key, identity)
    if slot != NO_SLOT:
        changing_remove(&self.rows, slot)
    return 0


cdef int _forget(Kept* self, uint32_t key) noexcept nogil:
    while self.rows.keys[key].first != NO_SLOT:
        changing_remove(&self.rows, self.rows.keys[key].first)
    return 0


cdef int _show(Kept* self, uint32_t key) except -1 nogil:
    # Appends what a key shows.
    cdef uint32_t slot
    changing_reach(&self.rows, <int64_t> key + 1)
    slot = self.rows.keys[key].last if self.shown == 1 else self.rows.keys[key].first
    if self.shown < 2:
        return buffer_append_int64(&self.numbers, -1 if slot == NO_SLOT else self.rows.slots[slot].row)
    while slot != NO_SLOT:
        buffer_append_int64(&self.numbers, self.rows.slots[slot].row)
        slot = self.rows.slots[slot].after
    return buffer_append_int64(&self.ends, self.numbers.size // 8)


cdef object _taken(Buffer* buffer):
    cdef int64_t[::1] values = np.empty(buffer.size // 8, np.int64)
    if buffer.size:
        memcpy(&values[0], buffer.data, buffer.size)
    buffer.size = 0
    return values.base


@cython.final
cdef class KeptValues:
    """The numbers of the values of each key, in order of their coming.

    Parameters
    ----------
    shown : str
        Which of a key's values results have: "first", "last" or "all".

    Raises
    ------
    ConfigurationError
        If it is another one.
    """

    cdef CallGuard guard
    cdef Kept state

    def __cinit__(self, str shown not None):
        if shown not in _SHOWN:
            raise ConfigurationError(f"of kept values {shown!r} cannot be shown; give one of {', '.join(_SHOWN)}")
        self.state.shown = _SHOWN.index(shown)

    def __dealloc__(self):
        changing_free(&self.state.rows)
        free(self.state.n_rows)
        buffer_free(&self.state.numbers)
        buffer_free(&self.state.ends)

    def process(
        self,
        const uint32_t[::1] key_ids not None,
        const int64_t[::1] rows not None,
        const uint64_t[:, ::1] identities not None,
        const uint8_t[::1] retracts,
        bint emits,
    ):
        """Take in values, or withdraw them; a withdrawn value that is not there only counts as a row that is withdrawn.

        Parameters
        ----------
        key_ids : uint32 array (n,)
        rows : int64 array (n,)
            Numbers of the values.
        identities : uint64 array (n, 2)
            Equal for equal values.
        retracts : uint8 array (n,) or None
            1 for a value that is withdrawn.
        emits : bool
            Whether there is a result after each.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, n = key_ids.shape[0]
        cdef Identity identity
        if rows.shape[0] != n or identities.shape[0] != n or (retracts is not None and retracts.shape[0] != n):
            raise ValueError("keys, rows, identities and withdrawals must have one value per event")
        if n and identities.shape[1] != 2:
            raise ValueError("an identity has two words")
        with nogil:
            for i in range(n):
                _reach(&self.state, <int64_t> key_ids[i] + 1)
                identity = identity_of(&identities[0, 0], i)
                if retracts is None or not retracts[i]:
                    changing_add(&self.state.rows, key_ids[i], identity, rows[i], 0)
                    self.state.n_rows[key_ids[i]] += 1
                else:
                    _withdraw(&self.state, key_ids[i], identity)
                if emits:
                    _show(&self.state, key_ids[i])
                if not self.state.n_rows[key_ids[i]]:
                    _forget(&self.state, key_ids[i])

    def emit(self, const uint32_t[::1] key_ids not None):
        """Append the present results of keys."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        for i in range(key_ids.shape[0]):
            _show(&self.state, key_ids[i])

    def take(self):
        """Return the numbers of the values that results have (-1: none), and the ends of the results in them, if all are shown."""
        cdef Call call = begin_call(&self.guard, self)
        return _taken(&self.state.numbers), _taken(&self.state.ends) if self.state.shown == 2 else None

    def memory_bytes(self):
        """Bytes that it takes, without the values."""
        check_no_call(&self.guard, self)
        return changing_memory(&self.state.rows) + self.state.n_keys * <int64_t> sizeof(int64_t)

    def sizes_of(self, const uint32_t[::1] key_ids not None):
        """Return how many values keys hold, as an int64 array."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t[::1] sizes = np.zeros(key_ids.shape[0], np.int64)
        cdef int64_t i
        for i in range(key_ids.shape[0]):
            if key_ids[i] < self.state.rows.n_keys:
                sizes[i] = self.state.rows.keys[key_ids[i]].n
        return sizes.base

    def __len__(self):
        return self.state.rows.n_rows

    cdef object _column(self, int number):
        cdef uint32_t[::1] slots = np.empty(self.state.rows.n_rows, np.uint32)
        cdef int64_t[::1] column = np.empty(self.state.rows.n_rows, np.int64)
        cdef const ChangingRow* row
        cdef int64_t i
        if self.state.rows.n_rows:
            changing_slots(&self.state.rows, &slots[0])
        for i in range(slots.shape[0]):
            row = &self.state.rows.slots[slots[i]]
            if number < 2:
                column[i] = row.row if number else <int64_t> row.key
            elif number == 4:
                column[i] = self.state.n_rows[row.key]
            else:
                column[i] = <int64_t> (row.identity.low if number == 2 else row.identity.high)
        return column.base

    def live_rows(self):
        """Return the numbers that it holds, as an int64 array."""
        cdef Call call = begin_call(&self.guard, self)
        return self._column(1)

    def renumber(self, const int64_t[::1] rows not None):
        """Hold other numbers, in the order of `live_rows`."""
        cdef Call call = begin_call(&self.guard, self)
        cdef uint32_t[::1] slots = np.empty(self.state.rows.n_rows, np.uint32)
        cdef int64_t i
        if rows.shape[0] != slots.shape[0]:
            raise ValueError(f"{rows.shape[0]} numbers for {slots.shape[0]} values")
        if slots.shape[0]:
            changing_slots(&self.state.rows, &slots[0])
        for i in range(slots.shape[0]):
            self.state.rows.slots[slots[i]].row = rows[i]

    def snapshot(self):
        """Return `key`, `row`, the identity as `low` and `high`, and `n_rows` of the key; its values in order of their coming."""
        cdef Call call = begin_call(&self.guard, self)
        return {name: self._column(number) for number, name in enumerate(("key", "row", "low", "high", "n_rows"))}

    def restore(
        self,
        const int64_t[::1] keys not None,
        const int64_t[::1] rows not None,
        const int64_t[::1] low not None,
        const int64_t[::1] high not None,
        const int64_t[::1] n_rows not None,
    ):
        """Take values of a snapshot, with keys and numbers of now, before the first event.

        Raises
        ------
        SchemaError
            If there are not as many of each, or no rows of a key.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef Identity identity
        cdef int64_t i
        if not keys.shape[0] == rows.shape[0] == low.shape[0] == high.shape[0] == n_rows.shape[0]:
            raise SchemaError(f"{keys.shape[0]} keys of kept values, and {rows.shape[0]} values")
        for i in range(keys.shape[0]):
            if n_rows[i] < 1:
                raise SchemaError(f"a key with kept values has {n_rows[i]} rows")
            identity.low = <uint64_t> low[i]
            identity.high = <uint64_t> high[i]
            _reach(&self.state, keys[i] + 1)
            changing_add(&self.state.rows, <uint32_t> keys[i], identity, rows[i], 0)
            self.state.n_rows[keys[i]] = n_rows[i]

    def _check(self):
        """Assert its invariants."""
        cdef int64_t key, n
        assert changing_is_sound(&self.state.rows), "the values of a key"
        for key in range(min(self.state.rows.n_keys, self.state.n_keys)):
            n = self.state.n_rows[key]
            assert (0 < n <= self.state.rows.keys[key].n) or n == self.state.rows.keys[key].n, "the rows of a key"

"""Lists of rows by dense key id, for functions over batches: which rows each key holds, in the order in which they were added.

The rows themselves are Arrow columns elsewhere; here they are numbers.
"""

import numpy as np

import cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call, check_no_call
from flinkcore._native.memory cimport grow


cdef enum:
    LEAST = 1 << 10

cdef const char* _WHAT = b"the lists of keys"


cdef struct RowList:
    # First and last row; of an empty list -1.
    int64_t first
    int64_t last
    int64_t length


@cython.final
cdef class KeyLists:
    """A list of row numbers for each dense key id.

    Rows are numbered from 0 on as they are added. A key takes 24 bytes, a row 8; adding and clearing take O(1) a row or key, and
    reading O(1) a row that is found. Cleared rows keep their numbers until `renumber`. For one thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> lists = KeyLists()
    >>> lists.grow(3)
    >>> lists.add(np.array([2, 0, 2]))
    >>> lists.rows(np.array([0, 1, 2]))
    (array([1, 0, 2]), array([0, 2, 2]))
    """

    cdef CallGuard guard
    cdef RowList* lists
    cdef int64_t n_keys
    cdef int64_t keys_capacity
    cdef int64_t* following  # by row: the next one of its list, or -1
    cdef int64_t n_rows
    cdef int64_t rows_capacity
    cdef int64_t n_listed

    def __dealloc__(self):
        free(self.lists)
        free(self.following)

    def __len__(self):
        return self.n_listed

    @property
    def numbered(self):
        """Number of rows that have a number, including the cleared ones."""
        return self.n_rows

    def memory_bytes(self):
        """Bytes that the lists take, without the rows."""
        check_no_call(&self.guard, self)
        return self.keys_capacity * <int64_t> sizeof(RowList) + self.rows_capacity * <int64_t> sizeof(int64_t)

    def grow(self, int64_t n_keys):
        """Know the key ids below `n_keys`; amortised O(1) per key."""
        check_no_call(&self.guard, self)
        cdef int64_t capacity = max(self.keys_capacity, <int64_t> LEAST), key
        if n_keys > self.keys_capacity:
            while capacity < n_keys:
                capacity *= 2
            self.lists = <RowList*> grow(self.lists, capacity * sizeof(RowList), _WHAT)
            self.keys_capacity = capacity
        for key in range(self.n_keys, n_keys):
            _make_empty(&self.lists[key])
        self.n_keys = max(self.n_keys, n_keys)

    def add(self, const int64_t[::1] keys not None):
        """Put the next rows at the end of the lists of these keys.

        Parameters
        ----------
        keys : int64 array (n_rows,)
            Known ids; a key may come several times.

        Raises
        ------
        IndexError
            If an id is not known; nothing is added.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t capacity = max(self.rows_capacity, <int64_t> LEAST), n_rows = self.n_rows + keys.shape[0], i
        self._check(keys)
        if n_rows > self.rows_capacity:
            while capacity < n_rows:
                capacity *= 2
            self.following = <int64_t*> grow(self.following, capacity * sizeof(int64_t), _WHAT)
            self.rows_capacity = capacity
        with nogil:
            for i in range(keys.shape[0]):
                _append(&self.lists[keys[i]], self.following, self.n_rows + i)
        self.n_rows = n_rows
        self.n_listed += keys.shape[0]

    def lengths(self, const int64_t[::1] keys not None):
        """Return how many rows the lists of these keys have: an int64 array (n_keys,); IndexError for an unknown id."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        self._check(keys)
        found = np.empty(keys.shape[0], np.int64)
        cdef int64_t[::1] out = found
        with nogil:
            for i in range(keys.shape[0]):
                out[i] = self.lists[keys[i]].length
        return found

    def rows(self, const int64_t[::1] keys not None):
        """Return the rows of the lists of these keys, list after list.

        Parameters
        ----------
        keys : int64 array (n_keys,)
            Known ids.

        Returns
        -------
        rows : int64 array (n_found,)
        places : int64 array (n_found,)
            Place of each row's key in `keys`.

        Raises
        ------
        IndexError
            If an id is not known.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i, row, n_found = 0
        self._check(keys)
        with nogil:
            for i in range(keys.shape[0]):
                n_found += self.lists[keys[i]].length
        columns = np.empty((2, n_found), np.int64)
        cdef int64_t[:, ::1] out = columns
        n_found = 0
        with nogil:
            for i in range(keys.shape[0]):
                row = self.lists[keys[i]].first
                while row >= 0:
                    out[0, n_found] = row
                    out[1, n_found] = i
                    n_found += 1
                    row = self.following[row]
        return columns[0], columns[1]

    def clear(self, const int64_t[::1] keys not None):
        """Empty the lists of these keys; IndexError for an unknown id, and then none is emptied."""
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t i
        self._check(keys)
        with nogil:
            for i in range(keys.shape[0]):
                self.n_listed -= self.lists[keys[i]].length
                _make_empty(&self.lists[keys[i]])

    def renumber(self):
        """Renumber the rows of all lists from 0 on, list after list, and forget the cleared ones. O(keys + rows).

        Returns
        -------
        int64 array (n_rows,)
            The old number for each new one.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t key, row, n = 0
        old_numbers = np.empty(self.n_listed, np.int64)
        cdef int64_t[::1] out = old_numbers
        with nogil:
            for key in range(self.n_keys):
                row = self.lists[key].first
                while row >= 0:
                    out[n] = row
                    n += 1
                    row = self.following[row]
            n = 0
            for key in range(self.n_keys):
                _relink(&self.lists[key], self.following, &n)
        self.n_rows = n
        return old_numbers

    cdef int _check(self, const int64_t[::1] keys) except -1:
        cdef int64_t i
        for i in range(keys.shape[0]):
            if not 0 <= keys[i] < self.n_keys:
                raise IndexError(f"there is no key {keys[i]}: there are {self.n_keys}")
        return 0


cdef inline void _make_empty(RowList* of_key) noexcept nogil:
    of_key.first = of_key.last = -1
    of_key.length = 0


cdef inline void _append(RowList* of_key, int64_t* following, int64_t row) noexcept nogil:
    following[row] = -1
    if of_key.length:
        following[of_key.last] = row
    else:
        of_key.first = row
    of_key.last = row
    of_key.length += 1


cdef inline void _relink(RowList* of_key, int64_t* following, int64_t* n) noexcept nogil:
    # Gives a list as many numbers from n on as it has rows. There are at least as many rows, so there is room.
    cdef int64_t i, length = of_key.length
    _make_empty(of_key)
    for i in range(length):
        _append(of_key, following, n[0])
        n[0] += 1

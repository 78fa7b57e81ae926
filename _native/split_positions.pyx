"""Positions of rows in their splits, from dense split codes."""

import numpy as np

from libc.stdint cimport int32_t, int64_t


cdef int64_t number_rows(
    const int32_t* codes, int64_t n_rows, int64_t* next_position, int64_t n_codes, int64_t* positions
) noexcept nogil:
    cdef int64_t row
    cdef int32_t code
    for row in range(n_rows):
        code = codes[row]
        if code < -1 or code >= n_codes:
            return row
        if code == -1:
            positions[row] = -1
            continue
        positions[row] = next_position[code]
        next_position[code] += 1
    return -1


def split_positions(const int32_t[::1] codes not None, int64_t[::1] next_position not None):
    """Number the rows of each split upwards. O(n).

    Parameters
    ----------
    codes : numpy.ndarray of int32, shape (n_rows,)
        The split of each row, an index into ``next_position``; -1 for no split.
    next_position : numpy.ndarray of int64, shape (n_codes,)
        The position that the next row of each split has; counted on in place.

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)
        Positions; -1 for rows without a split.

    Raises
    ------
    ValueError
        If a code is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> split_positions(np.array([0, 1, 0, -1], np.int32), np.array([5, 0]))
    array([ 5,  0,  6, -1])
    """
    cdef int64_t n = codes.shape[0], n_codes = next_position.shape[0], bad
    cdef int64_t[::1] positions
    cdef const int32_t* code
    cdef int64_t* following
    cdef int64_t* written
    result = np.empty(n, dtype=np.int64)
    if n == 0:
        return result
    positions = result
    code = &codes[0]
    following = &next_position[0] if n_codes else NULL
    written = &positions[0]
    with nogil:
        bad = number_rows(code, n, following, n_codes, written)
    if bad >= 0:
        raise ValueError(f"row {bad}: split code {codes[bad]} is out of range, there are {n_codes} splits")
    return result

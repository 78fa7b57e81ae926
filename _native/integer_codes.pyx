"""Dense codes of integers that lie close together, without hashing."""

import numpy as np

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef int32_t _encode(
    const Integer* values, int64_t n, Integer least, int32_t* code_of, int32_t* codes, int64_t* first_rows
) noexcept nogil:
    cdef int64_t row
    cdef int32_t count = 0
    cdef uint64_t place
    for row in range(n):
        place = <uint64_t> values[row] - <uint64_t> least
        if code_of[place] < 0:
            code_of[place] = count
            first_rows[count] = row
            count += 1
        codes[row] = code_of[place]
    return count


def integer_codes(const Integer[::1] values not None, int64_t most_range):
    """Number distinct integers in order of appearance. O(n + range).

    Parameters
    ----------
    values : numpy.ndarray of any integer type, shape (n_rows,)
        At least one.
    most_range : int
        How far apart the least and the greatest value may be; from 0 to 2**31 - 2.

    Returns
    -------
    tuple of numpy.ndarray, or None
        `(codes int32, first_rows int64)`, of shapes (n_rows,) and (n_codes,): the code of each row, and the first row
        of each code. None if the values lie further apart.

    Examples
    --------
    >>> codes, first_rows = integer_codes(np.array([7, 5, 7, 9]), 100)
    >>> codes.tolist(), first_rows.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    cdef int64_t row, n = values.shape[0]
    cdef int32_t count
    cdef Integer least = values[0], greatest = values[0]
    cdef uint64_t between
    with nogil:
        for row in range(n):
            least = min(least, values[row])
            greatest = max(greatest, values[row])
    between = <uint64_t> greatest - <uint64_t> least
    if between > <uint64_t> most_range:
        return None
    cdef int32_t[::1] code_of = np.full(between + 1, -1, np.int32)
    cdef int32_t[::1] codes = np.empty(n, np.int32)
    cdef int64_t[::1] first_rows = np.empty(min(n, <int64_t> between + 1), np.int64)
    with nogil:
        count = _encode(&values[0], n, least, &code_of[0], &codes[0], &first_rows[0])
    return codes.base, first_rows.base[:count]

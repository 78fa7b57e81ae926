"""Integers as a base and steps of one, two or four bytes: gathered, narrowed and widened in one pass each."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from flinkcore.errors import DataError

ctypedef fused Integer:
    int32_t
    int64_t

ctypedef fused Step:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Spread:
    int64_t low
    int64_t high
    uint64_t most_step  # meaningful if the values never go down
    bint descends


cdef void _spread(const Integer* values, const uint32_t* rows, int64_t n, Spread* spread) noexcept nogil:
    cdef int64_t i, value, before = values[rows[0] if rows != NULL else 0]
    spread.low = before
    spread.high = before
    spread.most_step = 0
    spread.descends = False
    for i in range(1, n):
        value = values[rows[i] if rows != NULL else i]
        spread.low = min(spread.low, value)
        spread.high = max(spread.high, value)
        spread.descends |= value < before
        spread.most_step = max(spread.most_step, <uint64_t> value - <uint64_t> before)
        before = value


cdef void _narrow(
    const Integer* values, const uint32_t* rows, int64_t n, int64_t base, bint running, Step* steps
) noexcept nogil:
    cdef int64_t i, value
    cdef uint64_t before = base
    for i in range(n):
        value = values[rows[i] if rows != NULL else i]
        steps[i] = <Step> (<uint64_t> value - before)
        if running:
            before = value


cdef void _widen(const Step* steps, int64_t n, int64_t base, bint running, int64_t* values) noexcept nogil:
    cdef int64_t i
    cdef uint64_t before = base
    if running:
        for i in range(n):
            before += steps[i]
            values[i] = before
    else:
        for i in range(n):
            values[i] = <int64_t> (before + steps[i])


cdef int _bytes_for(uint64_t span) noexcept nogil:
    if span <= 0xFFFF:
        return 0 if span == 0 else 1 if span <= 0xFF else 2
    return 4 if span >> 32 == 0 else 8


def narrow_integers(const Integer[::1] values not None, rows=None):
    """Store integers as narrowly as steps from the least of them, or from each to the next, allow.

    Parameters
    ----------
    values : numpy.ndarray of int32 or int64, shape (n_values,)
    rows : numpy.ndarray of uint32, shape (n_rows,), optional
        Which values, in which order; by default all. At least one.

    Returns
    -------
    base : int
    running : bool
        Steps are from the value before, not from the base.
    steps : numpy.ndarray of uint8, uint16, uint32 or uint64, shape (n_rows,), or None
        Differences modulo 2**64; None: all values equal the base.

    Raises
    ------
    DataError
        If there is no value, or a row beyond them.

    Examples
    --------
    >>> narrow_integers(np.array([1_000_000, 1_000_300, 1_000_301]))
    (1000000, True, array([  0, 300,   1], dtype=uint16))
    """
    cdef const uint32_t[::1] chosen
    cdef const uint32_t* at = NULL
    cdef int64_t n = values.shape[0], n_values = values.shape[0], base, i
    cdef uint32_t last = 0
    cdef Spread spread
    cdef bint running = False
    if rows is not None:
        chosen = rows
        n = chosen.shape[0]
    if n == 0 or n_values == 0:
        raise DataError("there are no integers to store narrowly")
    if rows is not None:
        at = &chosen[0]
        with nogil:
            for i in range(n):
                last = max(last, at[i])
        if last >= n_values:
            raise DataError(f"row {last} is beyond the {n_values} values")
    with nogil:
        _spread(&values[0], at, n, &spread)
    base = spread.low
    cdef int width = _bytes_for(<uint64_t> spread.high - <uint64_t> spread.low)
    if width > 1 and not spread.descends and _bytes_for(spread.most_step) < width:
        running = True
        width = _bytes_for(spread.most_step)
    if width == 0:
        return base, False, None
    cdef uint8_t[::1] steps1
    cdef uint16_t[::1] steps2
    cdef uint32_t[::1] steps4
    cdef uint64_t[::1] steps8
    if width == 1:
        steps1 = np.empty(n, np.uint8)
        with nogil:
            _narrow(&values[0], at, n, base, running, &steps1[0])
        return base, running, steps1.base
    if width == 2:
        steps2 = np.empty(n, np.uint16)
        with nogil:
            _narrow(&values[0], at, n, base, running, &steps2[0])
        return base, running, steps2.base
    if width == 4:
        steps4 = np.empty(n, np.uint32)
        with nogil:
            _narrow(&values[0], at, n, base, running, &steps4[0])
        return base, running, steps4.base
    steps8 = np.empty(n, np.uint64)
    with nogil:
        _narrow(&values[0], at, n, base, running, &steps8[0])
    return base, running, steps8.base


def widen_integers(const Step[::1] steps not None, int64_t base, bint running):
    """Return the integers that `narrow_integers` stored as steps.

    Parameters
    ----------
    steps : numpy.ndarray of uint8, uint16, uint32 or uint64, shape (n_rows,)
    base : int
    running : bool

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)

    Examples
    --------
    >>> widen_integers(np.array([0, 300, 1], np.uint16), 1_000_000, True)
    array([1000000, 1000300, 1000301])
    """
    cdef int64_t n = steps.shape[0]
    cdef int64_t[::1] values = np.empty(n, np.int64)
    if n:
        with nogil:
            _widen(&steps[0], n, base, running, &values[0])
    return values.base

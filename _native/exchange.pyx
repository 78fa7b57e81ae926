"""The exchange between partitions: rows by key group, columns of integers packed narrowly, and many runs merged into the total order."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

from flinkcore.errors import ConfigurationError, DataError


# ---- partitioning ------------------------------------------------------------------------------------------------


cdef enum:
    FEW_PARTITIONS = 4


cdef int64_t _wrong_row(
    const int32_t* key_groups, int64_t n_groups, const uint32_t* rows, int64_t n, int64_t max_parallelism
) noexcept nogil:
    # -1, or the first row that is beyond the others or whose key group is out of range.
    cdef int64_t i, row
    cdef bint wrong = False
    if rows == NULL:
        for i in range(n):
            wrong |= <uint32_t> key_groups[i] >= <uint32_t> max_parallelism
        if not wrong:
            return -1
    for i in range(n):
        row = rows[i] if rows != NULL else i
        if row >= n_groups or <uint32_t> key_groups[row] >= <uint32_t> max_parallelism:
            return row
    return -1


cdef void _partition_few(
    const int32_t* key_groups,
    const uint32_t* rows,
    int64_t n,
    int64_t max_parallelism,
    int64_t partitions,
    int64_t* bounds,
    uint32_t* order,
) noexcept nogil:
    # A pass without branches for each partition, which writes one row too many at its end.
    cdef int64_t i, row, partition, at = 0
    cdef uint32_t first, span
    for partition in range(partitions):
        first = <uint32_t> ((partition * max_parallelism + partitions - 1) // partitions)
        span = <uint32_t> (((partition + 1) * max_parallelism + partitions - 1) // partitions) - first
        for i in range(n):
            row = rows[i] if rows != NULL else i
            order[at] = <uint32_t> row
            at += <uint32_t> key_groups[row] - first < span
        bounds[partition + 1] = at


cdef void _partition_many(
    const int32_t* key_groups,
    const uint32_t* rows,
    int64_t n,
    int64_t max_parallelism,
    int64_t partitions,
    int64_t* partition_of,
    int64_t* bounds,
    uint32_t* order,
) noexcept nogil:
    # A counting sort, stable.
    cdef int64_t i, row, group
    for group in range(max_parallelism):
        partition_of[group] = group * partitions // max_parallelism
    for i in range(n):
        row = rows[i] if rows != NULL else i
        bounds[partition_of[key_groups[row]] + 1] += 1
    for i in range(partitions):
        bounds[i + 1] += bounds[i]
    for i in range(n):
        row = rows[i] if rows != NULL else i
        group = partition_of[key_groups[row]]
        order[bounds[group]] = <uint32_t> row
        bounds[group] += 1
    for i in range(partitions, 0, -1):
        bounds[i] = bounds[i - 1]
    bounds[0] = 0


def partition_rows(const int32_t[::1] key_groups not None, int64_t max_parallelism, int64_t partitions, rows=None):
    """Rows of each partition, where partitions are ranges of key groups.

    Follows `KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup`.

    Parameters
    ----------
    key_groups : numpy.ndarray of int32, shape (n_rows,)
    max_parallelism : int
        Number of key groups.
    partitions : int
        Number of partitions, at most `max_parallelism`.
    rows : numpy.ndarray of uint32, optional
        Rows to distribute, in their order; by default all.

    Returns
    -------
    order : numpy.ndarray of uint32
        Row numbers, partition by partition, within each in the order given.
    bounds : numpy.ndarray of int64, shape (partitions + 1,)
        Partition p has order[bounds[p]:bounds[p + 1]].

    Raises
    ------
    ConfigurationError
        If there are more partitions than key groups.
    """
    cdef const uint32_t[::1] chosen
    cdef const uint32_t* chosen_pointer = NULL
    cdef const int32_t* groups = NULL
    cdef int64_t n = key_groups.shape[0], wrong
    cdef int64_t[::1] bounds_view, partition_view
    if not 0 < partitions <= max_parallelism:
        raise ConfigurationError(
            f"{partitions} partitions need at least as many key groups, but the maximum parallelism is {max_parallelism}"
        )
    if rows is not None:
        chosen = rows
        n = chosen.shape[0]
        if n:
            chosen_pointer = &chosen[0]
    bounds = np.zeros(partitions + 1, dtype=np.int64)
    if n == 0:
        return np.empty(0, dtype=np.uint32), bounds
    if key_groups.shape[0]:
        groups = &key_groups[0]
    with nogil:
        wrong = _wrong_row(groups, key_groups.shape[0], chosen_pointer, n, max_parallelism)
    if wrong >= 0:
        raise ValueError(f"row {wrong} is beyond the rows, or its key group is not in 0..{max_parallelism - 1}")
    cdef uint32_t[::1] order = np.empty(n + 1, dtype=np.uint32)
    bounds_view = bounds
    if partitions <= FEW_PARTITIONS:
        with nogil:
            _partition_few(groups, chosen_pointer, n, max_parallelism, partitions, &bounds_view[0], &order[0])
    else:
        partition_view = np.empty(max_parallelism, dtype=np.int64)
        with nogil:
            _partition_many(
                groups,
                chosen_pointer,
                n,
                max_parallelism,
                partitions,
                &partition_view[0],
                &bounds_view[0],
                &order[0],
            )
    return order.base[:n], bounds


# ---- packing -----------------------------------------------------------------------------------------------------
# Integers as a base and steps of one, two or four bytes: gathered, narrowed and widened in one pass each.


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
        Rows of the values to pack, in order; by default all. At least one.

    Returns
    -------
    base : int
    running : bool
        True if steps are differences from the value before, not from the base.
    steps : numpy.ndarray of uint8, uint16, uint32 or uint64, shape (n_rows,), or None
        Differences modulo 2**64, or None if all values equal the base.

    Raises
    ------
    DataError
        If the values are empty, or a row is beyond them.

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
            raise DataError(f"row {last} is beyond the {n_values} values", row=last)
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


# ---- merging -----------------------------------------------------------------------------------------------------


cdef struct TotalOrder:
    # The columns that order events: arrival, then split, then position in the split.
    const int64_t* arrivals
    const int32_t* splits
    const int64_t* positions


cdef inline bint _precedes(const TotalOrder* order, int64_t a, int64_t b) noexcept nogil:
    # Returns true if row a comes strictly before row b.
    if order.arrivals[a] != order.arrivals[b]:
        return order.arrivals[a] < order.arrivals[b]
    if order.splits[a] != order.splits[b]:
        return order.splits[a] < order.splits[b]
    return order.positions[a] < order.positions[b]


cdef struct Run:
    int64_t at
    int64_t stop


cdef inline bint _run_precedes(const TotalOrder* order, const Run* a, const Run* b) noexcept nogil:
    # Equal events keep the order of their runs, which makes the merge stable: the earlier run has the lower rows.
    if _precedes(order, a.at, b.at):
        return True
    return not _precedes(order, b.at, a.at) and a.at < b.at


cdef void _sift_down(const TotalOrder* order, Run* runs, int64_t n_runs, int64_t at) noexcept nogil:
    # Moves the run at `at` away from the root of the binary heap of runs by their first rows.
    cdef Run moving = runs[at]
    cdef int64_t child
    while True:
        child = 2 * at + 1
        if child >= n_runs:
            break
        if child + 1 < n_runs and _run_precedes(order, &runs[child + 1], &runs[child]):
            child += 1
        if not _run_precedes(order, &runs[child], &moving):
            break
        runs[at] = runs[child]
        at = child
    runs[at] = moving


cdef int64_t _count_runs(const TotalOrder* order, int64_t n) noexcept nogil:
    cdef int64_t row, runs = 1
    for row in range(1, n):
        runs += _precedes(order, row, row - 1)
    return runs


cdef enum:
    MOST_COUNTED = 32  # rows that are sorted by counting those before each


cdef struct Tied:
    # A row among those that arrive together in one split.
    int64_t position
    int64_t row


cdef int _compare_tied(const void* a, const void* b) noexcept nogil:
    cdef const Tied* left = <const Tied*> a
    cdef const Tied* right = <const Tied*> b
    if left.position != right.position:
        return -1 if left.position < right.position else 1
    return -1 if left.row < right.row else left.row > right.row


cdef void _sort_few_tied(const int64_t* positions, int64_t n, uint32_t* rows, uint32_t first) noexcept nogil:
    # Each row's rank is the number of rows before it, which is counted without branches: hashes cannot be predicted.
    cdef int64_t[MOST_COUNTED] ranks
    cdef int64_t i, j, comes_before
    for i in range(n):
        ranks[i] = 0
        for j in range(i):
            comes_before = positions[j] <= positions[i]
            ranks[i] += comes_before
            ranks[j] += 1 - comes_before
    for i in range(n):
        rows[ranks[i]] = first + <uint32_t> i


cdef void _sort_many_tied(const int64_t* positions, int64_t n, uint32_t* rows, uint32_t first, Tied* tied) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        tied[i].position = positions[i]
        tied[i].row = i
    qsort(tied, n, sizeof(Tied), _compare_tied)
    for i in range(n):
        rows[i] = first + <uint32_t> tied[i].row


cdef inline bint _are_tied(const TotalOrder* order, int64_t a, int64_t b) noexcept nogil:
    # Returns true if two rows arrive together in one split.
    return (order.arrivals[a] == order.arrivals[b]) & (order.splits[a] == order.splits[b])


cdef int64_t _count_tied_breaks(const TotalOrder* order, int64_t n, int64_t* most_tied) noexcept nogil:
    # Returns how many runs end among tied rows, and writes the largest number of rows that are tied together.
    cdef int64_t row, first = 0, breaks = 0
    most_tied[0] = 1
    for row in range(1, n):
        if _are_tied(order, row, row - 1):
            breaks += order.positions[row] < order.positions[row - 1]
        else:
            most_tied[0] = max(most_tied[0], row - first)
            first = row
    most_tied[0] = max(most_tied[0], n - first)
    return breaks


cdef void _sort_ties(const TotalOrder* order, int64_t n, uint32_t* rows, Tied* tied) noexcept nogil:
    # Sort the rows that lie together, and are tied, by position.
    cdef int64_t row, first = 0
    for row in range(1, n + 1):
        if row < n and _are_tied(order, row, first):
            continue
        if row - first > MOST_COUNTED:
            _sort_many_tied(order.positions + first, row - first, rows + first, <uint32_t> first, tied)
        else:
            _sort_few_tied(order.positions + first, row - first, rows + first, <uint32_t> first)
        first = row


cdef void _merge(const TotalOrder* order, int64_t n, Run* runs, int64_t n_runs, uint32_t* merged) noexcept nogil:
    cdef int64_t row, i = 0, at
    runs[0].at = 0
    for row in range(1, n):
        if _precedes(order, row, row - 1):
            runs[i].stop = row
            i += 1
            runs[i].at = row
    runs[i].stop = n
    for at in range(n_runs // 2 - 1, -1, -1):
        _sift_down(order, runs, n_runs, at)
    for i in range(n):
        merged[i] = <uint32_t> runs[0].at
        runs[0].at += 1
        if runs[0].at == runs[0].stop:
            n_runs -= 1
            runs[0] = runs[n_runs]
        _sift_down(order, runs, n_runs, 0)


def total_order(
    const int64_t[::1] arrivals not None, const int32_t[::1] splits not None, const int64_t[::1] positions not None
):
    """Return the rows in the total order of a replay: by arrival, then split, then position in the split.

    The ascending runs that the rows form are merged: O(n log runs), stable. If most runs end among rows that arrive together in
    one split, these are sorted first: O(n log rows that arrive together).

    Parameters
    ----------
    arrivals, positions : numpy.ndarray of int64, shape (n_rows,)
    splits : numpy.ndarray of int32, shape (n_rows,)

    Returns
    -------
    numpy.ndarray of uint32, shape (n_rows,), or None
        Row numbers in total order, or None if the rows are in total order already.

    Examples
    --------
    >>> import numpy as np
    >>> total_order(np.array([5, 1]), np.array([0, 0], np.int32), np.array([0, 1]))
    array([1, 0], dtype=uint32)
    """
    cdef int64_t n = arrivals.shape[0], n_runs, n_tied, most_tied = 1
    cdef TotalOrder order
    cdef Run* runs
    cdef uint32_t[::1] merged, rows
    cdef const int64_t[::1] sorted_positions
    if splits.shape[0] != n or positions.shape[0] != n:
        raise ValueError("arrivals, splits and positions must have the same length")
    if n > 0xFFFFFFFF:
        raise ValueError("at most 4,294,967,295 rows at once")
    if n < 2:
        return None
    order.arrivals = &arrivals[0]
    order.splits = &splits[0]
    order.positions = &positions[0]
    with nogil:
        n_runs = _count_runs(&order, n)
        n_tied = _count_tied_breaks(&order, n, &most_tied) if n_runs > 1 else 0
    if n_runs == 1:
        return None
    rows = None
    if 2 * n_tied > n_runs:
        rows = _with_sorted_ties(&order, n, most_tied)
        if n_runs == n_tied + 1:
            return rows.base
        sorted_positions = np.take(positions, rows)
        order.positions = &sorted_positions[0]
        with nogil:
            n_runs = _count_runs(&order, n)
    result = np.empty(n, dtype=np.uint32)
    merged = result
    runs = <Run*> malloc(n_runs * sizeof(Run))
    if runs == NULL:
        raise MemoryError(f"{n_runs} runs")
    with nogil:
        _merge(&order, n, runs, n_runs, &merged[0])
    free(runs)
    return result if rows is None else rows.base[result]


cdef uint32_t[::1] _with_sorted_ties(const TotalOrder* order, int64_t n, int64_t most_tied):
    # Row numbers; arrivals and splits stay as they lie.
    cdef uint32_t[::1] rows = np.empty(n, dtype=np.uint32)
    cdef Tied* tied = NULL
    if most_tied > MOST_COUNTED:
        tied = <Tied*> malloc(most_tied * sizeof(Tied))
        if tied == NULL:
            raise MemoryError(f"{most_tied} rows")
    with nogil:
        _sort_ties(order, n, &rows[0], tied)
    free(tied)
    return rows

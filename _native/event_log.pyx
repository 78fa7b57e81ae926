"""Columns of an event log while it is read: splits by dense codes, positions and arrivals, hence the total order of events."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from libc.string cimport memcpy

from flinkcore.errors import ConfigurationError, DataError


MAX_ARRIVAL_MS = MAX_ARRIVAL


# ---- splits of rows ----------------------------------------------------------------------------------------------


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
        # Unsigned: the difference fits, even where the signed one would overflow.
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
        Values, at least one.
    most_range : int
        Largest difference of the greatest and the least value; from 0 to 2**31 - 2.

    Returns
    -------
    tuple of numpy.ndarray, or None
        `(codes int32, first_rows int64)`, of shapes (n_rows,) and (n_codes,): the code of each row, and the first row
        of each code. None if the values lie further apart.

    Examples
    --------
    >>> import numpy as np
    >>> codes, first_rows = integer_codes(np.array([7, 5, 7, 9]), 100)
    >>> codes.tolist(), first_rows.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    import numpy as np

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
    # A table by value, not by hash: numbers of partitions and the like lie close together.
    cdef int32_t[::1] code_of = np.full(between + 1, -1, np.int32)
    cdef int32_t[::1] codes = np.empty(n, np.int32)
    cdef int64_t[::1] first_rows = np.empty(min(n, <int64_t> between + 1), np.int64)
    with nogil:
        count = _encode(&values[0], n, least, &code_of[0], &codes[0], &first_rows[0])
    return codes.base, first_rows.base[:count]


cdef int check_codes(const int32_t[::1] codes, int64_t n_codes) except -1:
    cdef int64_t row
    cdef int32_t least = 0, greatest = -1
    with nogil:
        for row in range(codes.shape[0]):
            least = min(least, codes[row])
            greatest = max(greatest, codes[row])
    # The extremes take no branch per row; only a wrong code costs the search for its row.
    if least < 0 or greatest >= n_codes:
        row = 0
        while 0 <= codes[row] < n_codes:
            row += 1
        raise DataError(f"row {row}: split code {codes[row]}, but there are {n_codes} splits, counted from 0", row=row)
    return 0


cdef int check_offsets(const int64_t[::1] offsets, int64_t n_groups, int64_t n_rows) except -1:
    cdef int64_t group
    if offsets.shape[0] != n_groups + 1 or offsets[0] != 0 or offsets[n_groups] != n_rows:
        raise DataError(f"{offsets.shape[0]} offsets of {n_groups} groups of {n_rows} rows: one more, from 0 to the rows")
    for group in range(n_groups):
        if offsets[group] > offsets[group + 1]:
            raise DataError(f"group {group} begins at row {offsets[group]} and ends at row {offsets[group + 1]}")
    return 0


cdef int64_t _number_rows(
    const int32_t* codes, int64_t n_rows, int64_t* next_position, int64_t n_codes, int64_t* positions
) noexcept nogil:
    # Writes each row's position, and advances next_position (one per code). A code of -1 is not a split: its position is -1.
    # Returns -1, or the first row whose code is out of range; the rows before it have then been counted.
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
    import numpy as np

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
        bad = _number_rows(code, n, following, n_codes, written)
    if bad >= 0:
        raise ValueError(f"row {bad}: split code {codes[bad]} is out of range, there are {n_codes} splits")
    return result


def rows_by_split(
    const int32_t[::1] codes not None,
    int32_t n_codes,
    const int64_t[::1] arrivals_ms not None,
    const int64_t[::1] timestamps_ms,
    int64_t[:, ::1] there,
):
    """Times of rows, those of each split together, in their order. O(n + n_codes).

    Parameters
    ----------
    codes : numpy.ndarray of int32, shape (n_rows,)
        The split of each row.
    n_codes : int
        Number of splits.
    arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
    timestamps_ms : numpy.ndarray of int64, shape (n_rows,), or None
        Timestamps to be ordered as well, or None.
    there : numpy.ndarray of int64, shape (2, at least n_rows), or None
        Memory for the times, so that successive batches need no new memory; None for new columns.

    Returns
    -------
    tuple of numpy.ndarray of int64
        `(offsets, arrivals_ms, timestamps_ms)`: the rows of split i are now those from `offsets[i]` up to
        `offsets[i + 1]`; the times of shape (n_rows,), or None.

    Raises
    ------
    DataError
        If the columns do not fit together, or a code is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> rows_by_split(np.array([1, 0, 1], np.int32), 2, np.array([7, 8, 9]), None, None)
    (array([0, 1, 3]), array([8, 7, 9]), None)
    """
    import numpy as np

    cdef int64_t row, at, n = codes.shape[0]
    cdef int32_t code
    cdef bint has_timestamps = timestamps_ms is not None
    if arrivals_ms.shape[0] != n or (has_timestamps and timestamps_ms.shape[0] != n):
        timestamps = timestamps_ms.shape[0] if has_timestamps else "no"
        raise DataError(f"{timestamps} timestamps, {arrivals_ms.shape[0]} arrivals and {n} split codes: not one each")
    check_codes(codes, n_codes)
    if there is None:
        there = np.empty((1 + has_timestamps, n), np.int64)
    if there.shape[0] < 1 + has_timestamps or there.shape[1] < n:
        raise DataError(f"{n} rows do not fit into {there.shape[0]} columns of {there.shape[1]} times")
    cdef int64_t[::1] offsets = np.zeros(n_codes + 1, np.int64), next_place = np.empty(n_codes, np.int64)
    cdef int64_t* arrivals = &there[0, 0] if n else NULL
    cdef int64_t* timestamps_there = &there[1, 0] if n and has_timestamps else NULL
    with nogil:
        for row in range(n):
            # A counting sort, as it keeps the rows of a split in their order.
            offsets[codes[row] + 1] += 1
        for code in range(n_codes):
            next_place[code] = offsets[code]
            offsets[code + 1] += offsets[code]
        for row in range(n):
            at = next_place[codes[row]]
            next_place[codes[row]] = at + 1
            arrivals[at] = arrivals_ms[row]
            if timestamps_there != NULL:
                timestamps_there[at] = timestamps_ms[row]
    return offsets.base, there.base[0, :n], there.base[1, :n] if has_timestamps else None


# ---- content of rows ---------------------------------------------------------------------------------------------


cdef inline uint64_t _mixed_with(uint64_t number, uint64_t word) noexcept nogil:
    # Hash of two multiplications: Stafford's variant 13 of the finaliser of murmur.
    number = (number ^ word) + <uint64_t> 0x9E3779B97F4A7C15
    number = (number ^ (number >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    number = (number ^ (number >> 27)) * <uint64_t> 0x94D049BB133111EB
    return number ^ (number >> 31)


def mix_words(uint64_t[::1] numbers not None, const uint64_t[:] words not None):
    """Mix a word into each number, in place. O(n).

    Parameters
    ----------
    numbers : numpy.ndarray of uint64, shape (n_rows,)
    words : numpy.ndarray of uint64, shape (n_rows,)

    Raises
    ------
    ValueError
        If there is not one word for each number.
    """
    cdef int64_t row, n = numbers.shape[0]
    if words.shape[0] != n:
        raise ValueError(f"{n} numbers and {words.shape[0]} words")
    with nogil:
        for row in range(n):
            numbers[row] = _mixed_with(numbers[row], words[row])


def mix_bytes(uint64_t[::1] numbers not None, const int32_t[::1] bounds not None, const uint8_t[::1] data not None):
    """Mix bytes into each number, in place. O(n + bytes).

    Parameters
    ----------
    numbers : numpy.ndarray of uint64, shape (n_rows,)
    bounds : numpy.ndarray of int32, shape (n_rows + 1,)
        The bytes of a row lie in `data` from its bound to the next one.
    data : numpy.ndarray of uint8

    Raises
    ------
    ValueError
        If the bounds do not fit.
    """
    cdef int64_t row, n = numbers.shape[0], at, end
    cdef uint64_t number, word
    if bounds.shape[0] != n + 1:
        raise ValueError(f"{n} numbers and {bounds.shape[0]} bounds")
    for row in range(n):
        if bounds[row] > bounds[row + 1]:
            raise ValueError(f"the bounds of row {row} go back")
    if n and (bounds[0] < 0 or bounds[n] > data.shape[0]):
        raise ValueError(f"the bounds are from {bounds[0]} to {bounds[n]}, but there are {data.shape[0]} bytes")
    with nogil:
        for row in range(n):
            at, end = bounds[row], bounds[row + 1]
            # The length counts, too: zeros fill up the last word, and "a", "bc" is not to be as "ab", "c".
            number = _mixed_with(numbers[row], <uint64_t> (end - at))
            while end - at >= 8:
                memcpy(&word, &data[at], 8)
                number = _mixed_with(number, word)
                at += 8
            if at < end:
                word = 0
                memcpy(&word, &data[at], <size_t> (end - at))
                number = _mixed_with(number, word)
            numbers[row] = number


def mix_lists(
    uint64_t[::1] numbers not None,
    const int64_t[::1] starts not None,
    const int64_t[::1] lengths not None,
    const uint64_t[::1] items not None,
):
    """Mix items into each number, in place. O(n + items).

    Parameters
    ----------
    numbers : numpy.ndarray of uint64, shape (n_rows,)
    starts, lengths : numpy.ndarray of int64, shape (n_rows,)
        Start and number of the items of each row.
    items : numpy.ndarray of uint64

    Raises
    ------
    ValueError
        If starts and lengths do not fit.
    """
    cdef int64_t row, n = numbers.shape[0], at
    cdef uint64_t number
    if starts.shape[0] != n or lengths.shape[0] != n:
        raise ValueError(f"{n} numbers, {starts.shape[0]} starts and {lengths.shape[0]} lengths")
    for row in range(n):
        if starts[row] < 0 or lengths[row] < 0 or starts[row] > items.shape[0] - lengths[row]:
            raise ValueError(
                f"row {row} has {lengths[row]} items from {starts[row]} on, but there are {items.shape[0]}"
            )
    with nogil:
        for row in range(n):
            # The number of items counts, so that neighbouring lists are not as ones that are divided elsewhere.
            number = _mixed_with(numbers[row], <uint64_t> lengths[row])
            for at in range(starts[row], starts[row] + lengths[row]):
                number = _mixed_with(number, items[at])
            numbers[row] = number


# ---- arrivals ----------------------------------------------------------------------------------------------------


cdef enum:
    BEYOND_ALL_ARRIVALS = 0x4000000000000000

cdef inline int64_t _arrival_by_rate(int64_t position, int64_t start, double rate) noexcept nogil:
    # The conversion truncates, which is the floor of what is never negative.
    cdef double elapsed = <double> position * 1000.0 / rate
    if elapsed >= <double> BEYOND_ALL_ARRIVALS:
        return BEYOND_ALL_ARRIVALS
    return start + <int64_t> elapsed


def arrivals_by_rate(
    const int64_t[::1] positions not None,
    const int32_t[::1] codes not None,
    const int64_t[::1] bases not None,
    object arrival_start_ms,
    double rate,
):
    """Return the arrivals of events without recorded ones: arrival_start_ms + floor(position in the split · 1000 / rate).

    Parameters
    ----------
    positions : numpy.ndarray of int64, shape (n_rows,)
        Position of each row in its split within the chunk.
    codes : numpy.ndarray of int32, shape (n_rows,)
        Index into `bases`.
    bases : numpy.ndarray of int64, shape (n_codes,)
        Rows of the code's split in the chunks before.
    arrival_start_ms : int
        Within ±2**61.
    rate : float
        Records per second of each split, greater than 0.

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)
        Within ±2**61.

    Raises
    ------
    ConfigurationError
        If the rate or the start is out of its range, or an arrival would be.
    DataError
        If a code does not exist.
    """
    import numpy as np

    cdef int64_t i, n = positions.shape[0], start
    if not (rate > 0 and rate * 0 == 0):
        raise ConfigurationError(f"the rate must be a number of records per second greater than zero, not {rate}")
    if not -(2**61) <= arrival_start_ms <= 2**61:
        raise ConfigurationError(
            f"the arrival of the first record must be within 2**61 ms of the epoch, not {arrival_start_ms}"
        )
    start = arrival_start_ms
    if codes.shape[0] != n:
        raise DataError(f"{n} positions and {codes.shape[0]} split codes: not one each")
    check_codes(codes, bases.shape[0])
    cdef int64_t[::1] arrivals = np.empty(n, np.int64)
    with nogil:
        for i in range(n):
            arrivals[i] = _arrival_by_rate(bases[codes[i]] + positions[i], start, rate)
            if arrivals[i] > MAX_ARRIVAL:
                with gil:
                    raise ConfigurationError(
                        f"rate={rate:g} has event {bases[codes[i]] + positions[i]} (from 0) of its split arrive further "
                        "than 2**61 ms from the epoch: it is the number of events per second, give a higher one"
                    )
    return arrivals.base


def running_maxima(
    arrivals_ms not None,
    const int64_t[::1] offsets not None,
    const int32_t[::1] places not None,
    int64_t[::1] running_arrivals_ms not None,
):
    """Arrivals that never go back within a split.

    Parameters
    ----------
    arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        As recorded, those of each split together.
    offsets : numpy.ndarray of int64, shape (n_codes + 1,)
        As of `rows_by_split`.
    places : numpy.ndarray of int32, shape (n_codes,)
        Indices of the splits into `running_arrivals_ms`.
    running_arrivals_ms : numpy.ndarray of int64, shape (n_splits,)
        Maximum arrival of each split so far, which is updated.

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)
        The running maxima; the array itself if no arrival goes back.

    Raises
    ------
    DataError
        If the columns do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> running_maxima(np.array([4, 7, 6]), np.array([0, 3]), np.array([0], np.int32), np.array([5]))
    array([5, 7, 7])
    """
    import numpy as np

    cdef const int64_t[::1] recorded = arrivals_ms
    cdef int64_t[::1] maxima
    cdef int64_t i, code, running, n = recorded.shape[0], n_codes = places.shape[0]
    cdef bint goes_back = False
    check_codes(places, running_arrivals_ms.shape[0])
    check_offsets(offsets, n_codes, n)
    with nogil:
        for code in range(n_codes):
            if offsets[code] == offsets[code + 1]:
                continue
            goes_back |= recorded[offsets[code]] < running_arrivals_ms[places[code]]
            for i in range(offsets[code] + 1, offsets[code + 1]):
                goes_back |= recorded[i] < recorded[i - 1]
    # The arrivals of most logs never go back: these are returned without a copy.
    if not goes_back:
        for code in range(n_codes):
            if offsets[code] < offsets[code + 1]:
                running_arrivals_ms[places[code]] = recorded[offsets[code + 1] - 1]
        return arrivals_ms
    maxima = np.empty(n, np.int64)
    with nogil:
        for code in range(n_codes):
            running = running_arrivals_ms[places[code]]
            for i in range(offsets[code], offsets[code + 1]):
                running = max(running, recorded[i])
                maxima[i] = running
            running_arrivals_ms[places[code]] = running
    return maxima.base


def hold_back(
    int64_t[::1] arrivals_ms not None,
    const int32_t[::1] splits not None,
    const int64_t[::1] offsets not None,
    const int64_t[::1] from_ms not None,
    const int64_t[::1] to_ms not None,
    const int64_t[::1] read_ms not None,
):
    """Delay events that arrive during a pause of their split until it is read again, in place.

    O(log n_spans) per event.

    Parameters
    ----------
    arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
    splits : numpy.ndarray of int32, shape (n_rows,)
    offsets : numpy.ndarray of int64, shape (n_splits + 1,)
        Spans of split i: offsets[i] up to offsets[i + 1].
    from_ms, to_ms, read_ms : numpy.ndarray of int64, shape (n_spans,)
        Events that arrive after `from_ms` and up to `to_ms` arrive at `read_ms`; ascending within a split.

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    cdef int64_t i, n = arrivals_ms.shape[0], first, last, middle, n_spans = from_ms.shape[0]
    if splits.shape[0] != n:
        raise DataError(f"{n} arrivals and {splits.shape[0]} splits: not one each")
    if not n_spans == to_ms.shape[0] == read_ms.shape[0]:
        raise DataError(f"the columns of spans have lengths {n_spans}, {to_ms.shape[0]} and {read_ms.shape[0]}")
    for i in range(offsets.shape[0] - 1):
        if not 0 <= offsets[i] <= offsets[i + 1] <= n_spans:
            raise DataError(f"spans {offsets[i]} to {offsets[i + 1]} of {n_spans}")
    check_codes(splits, offsets.shape[0] - 1)
    with nogil:
        for i in range(n):
            first = offsets[splits[i]]
            last = offsets[splits[i] + 1]
            while first < last:  # to the first span that begins at the arrival or after it
                middle = (first + last) // 2
                if from_ms[middle] < arrivals_ms[i]:
                    first = middle + 1
                else:
                    last = middle
            first -= 1
            if first >= offsets[splits[i]] and arrivals_ms[i] <= to_ms[first]:
                arrivals_ms[i] = read_ms[first]


# ---- packed columns ----------------------------------------------------------------------------------------------
# Blocks of values, each as its least value and the differences from that, in as few bytes as hold the greatest of them.


cdef enum:
    BLOCK = 256  # values

cdef struct BlockHeader:
    int64_t least
    int64_t width  # bytes of a difference: 0, 1, 2, 4 or 8


ctypedef fused Difference:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef inline void _put(const int64_t* values, int64_t n, int64_t least, Difference* differences) noexcept nogil:
    # Unsigned differences wrap around, as the sums in `_get` do: so a block may span all of int64.
    cdef int64_t i
    for i in range(n):
        differences[i] = <Difference> (<uint64_t> values[i] - <uint64_t> least)


cdef inline void _get(const Difference* differences, int64_t n, int64_t least, int64_t* values) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        values[i] = <int64_t> (<uint64_t> least + <uint64_t> differences[i])


cdef inline int64_t _differences_size(int64_t n, int64_t width) noexcept nogil:
    return (n * width + 7) & ~<int64_t> 7  # headers stay aligned


cdef int64_t _measure_block(const int64_t* values, int64_t n, BlockHeader* header) noexcept nogil:
    # Returns the number of bytes that the block will have.
    cdef int64_t i, least = values[0], greatest = values[0]
    cdef uint64_t span
    for i in range(1, n):
        least = min(least, values[i])
        greatest = max(greatest, values[i])
    span = <uint64_t> greatest - <uint64_t> least
    header.least = least
    if span == 0:
        header.width = 0
    elif span < 1 << 8:
        header.width = 1
    elif span < 1 << 16:
        header.width = 2
    elif span < <uint64_t> 1 << 32:
        header.width = 4
    else:
        header.width = 8
    return <int64_t> sizeof(BlockHeader) + _differences_size(n, header.width)


cdef int64_t _pack_block(const int64_t* values, int64_t n, const BlockHeader* header, uint8_t* packed) noexcept nogil:
    (<BlockHeader*> packed)[0] = header[0]
    packed += sizeof(BlockHeader)
    if header.width == 1:
        _put(values, n, header.least, packed)
    elif header.width == 2:
        _put(values, n, header.least, <uint16_t*> packed)
    elif header.width == 4:
        _put(values, n, header.least, <uint32_t*> packed)
    elif header.width == 8:
        _put(values, n, header.least, <uint64_t*> packed)
    return <int64_t> sizeof(BlockHeader) + _differences_size(n, header.width)


cdef int64_t _unpack_block(const uint8_t* packed, int64_t size, int64_t n, int64_t* values) noexcept nogil:
    # Returns the number of bytes of the block, or -1 if it is malformed.
    cdef const BlockHeader* header = <const BlockHeader*> packed
    cdef int64_t taken, i
    if size < <int64_t> sizeof(BlockHeader) or not 0 <= header.width <= 8:
        return -1
    taken = <int64_t> sizeof(BlockHeader) + _differences_size(n, header.width)
    if taken > size:
        return -1
    packed += sizeof(BlockHeader)
    if header.width == 1:
        _get(packed, n, header.least, values)
    elif header.width == 2:
        _get(<const uint16_t*> packed, n, header.least, values)
    elif header.width == 4:
        _get(<const uint32_t*> packed, n, header.least, values)
    elif header.width == 8:
        _get(<const uint64_t*> packed, n, header.least, values)
    elif header.width == 0:
        for i in range(n):
            values[i] = header.least
    else:
        return -1
    return taken


def packed_integers(const int64_t[::1] values not None):
    """Pack integers that are close to their neighbours, such as times in the order of a log, into few bytes. O(n).

    Parameters
    ----------
    values : numpy.ndarray of int64, shape (n,)

    Returns
    -------
    numpy.ndarray of uint8
        Bytes for `unpacked_integers`.

    Examples
    --------
    >>> import numpy as np
    >>> packed = packed_integers(np.arange(1_000_000_000_000, 1_000_000_001_024))
    >>> packed.nbytes
    1088
    """
    import numpy as np

    cdef int64_t n = values.shape[0], block, first, n_bytes = 0
    cdef int64_t n_blocks = (n + BLOCK - 1) // BLOCK
    cdef int64_t[:, ::1] headers = np.empty((n_blocks, 2), np.int64)
    cdef uint8_t[::1] packed
    with nogil:
        for block in range(n_blocks):
            first = block * BLOCK
            n_bytes += _measure_block(&values[first], min(BLOCK, n - first), <BlockHeader*> &headers[block, 0])
    packed = np.empty(n_bytes, np.uint8)
    n_bytes = 0
    with nogil:
        for block in range(n_blocks):
            first = block * BLOCK
            n_bytes += _pack_block(
                &values[first], min(BLOCK, n - first), <const BlockHeader*> &headers[block, 0], &packed[n_bytes]
            )
    return packed.base


def unpacked_integers(const uint8_t[::1] packed not None, int64_t[::1] values not None):
    """The integers that `packed_integers` packed. O(n).

    Parameters
    ----------
    packed : numpy.ndarray of uint8
    values : numpy.ndarray of int64, shape (n,)
        Memory for the values.

    Raises
    ------
    DataError
        If so many were not packed there.
    """
    cdef int64_t n = values.shape[0]
    cdef int64_t block, first, at = 0, size = packed.shape[0], taken = 0
    with nogil:
        for block in range((n + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            taken = -1 if at == size else _unpack_block(&packed[at], size - at, min(BLOCK, n - first), &values[first])
            if taken < 0:
                break
            at += taken
    if taken < 0 or at != size:
        raise DataError(f"{size} bytes are not those of {n} integers")


# ---- the total order ---------------------------------------------------------------------------------------------


def order_events(
    const int64_t[::1] arrivals_ms not None,
    const int64_t[::1] positions,
    const int32_t[::1] codes not None,
    const int32_t[::1] places not None,
    const int32_t[::1] splits not None,
    const int64_t[::1] bases not None,
    int64_t[::1] running_arrivals_ms not None,
):
    """Place of events in the total order of a replay.

    Parameters
    ----------
    arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        As recorded.
    positions : numpy.ndarray of int64, shape (n_rows,), or None
        Position of each row in its split within the chunk, or None if not wanted.
    codes : numpy.ndarray of int32, shape (n_rows,)
        Index into `places`.
    places : numpy.ndarray of int32, shape (n_codes,)
        Index into the following.
    splits : numpy.ndarray of int32, shape (n_splits,)
        Numbers of the chunk's splits.
    bases : numpy.ndarray of int64, shape (n_splits,)
        Rows of each split in the chunks before.
    running_arrivals_ms : numpy.ndarray of int64, shape (n_splits,)
        Maximum arrival of each split so far, which is updated.

    Returns
    -------
    tuple of numpy.ndarray, each of shape (n_rows,)
        `(arrivals_ms int64, splits int32, positions int64)`: the running maximum of the arrivals in each split, the
        number of the split, and the position in the whole split, or None.

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    import numpy as np

    cdef int64_t i, n = arrivals_ms.shape[0], n_splits = splits.shape[0]
    cdef int32_t place
    cdef int64_t* position_of = NULL
    cdef const int64_t* position_in_chunk = NULL
    cdef int64_t[::1] whole = None
    cdef int64_t n_positions = n if positions is None else positions.shape[0]
    if n_positions != n or codes.shape[0] != n:
        raise DataError(f"{n} arrivals, {n_positions} positions and {codes.shape[0]} split codes: not one each")
    if bases.shape[0] != n_splits or running_arrivals_ms.shape[0] != n_splits:
        raise DataError(
            f"{n_splits} splits, {bases.shape[0]} bases, {running_arrivals_ms.shape[0]} arrivals: not one each"
        )
    check_codes(codes, places.shape[0])
    check_codes(places, n_splits)
    cdef int64_t[::1] arrival_of = np.empty(n, np.int64)
    cdef int32_t[::1] split_of = np.empty(n, np.int32)
    if positions is not None:
        whole = np.empty(n, np.int64)
        if n:
            position_of, position_in_chunk = &whole[0], &positions[0]
    with nogil:
        for i in range(n):
            place = places[codes[i]]
            running_arrivals_ms[place] = max(running_arrivals_ms[place], arrivals_ms[i])
            arrival_of[i] = running_arrivals_ms[place]
            split_of[i] = splits[place]
            if position_of != NULL:
                position_of[i] = bases[place] + position_in_chunk[i]
    return arrival_of.base, split_of.base, None if whole is None else whole.base


# ---- checksums of events -----------------------------------------------------------------------------------------


cdef uint64_t SPLIT_FACTOR = 0x9E3779B97F4A7C15


cdef inline uint64_t _mixed(uint64_t timestamp, uint64_t arrival) noexcept nogil:
    # Timestamp and arrival are mostly close: rotated, the bits that differ from event to event do not meet.
    timestamp += (arrival << 24) | (arrival >> 40)
    return timestamp ^ (timestamp >> 15)


def add_to_checksum(
    uint64_t[::1] checksum not None,
    const int64_t[::1] timestamps_ms not None,
    const int64_t[::1] arrivals_ms not None,
    const int32_t[::1] codes not None,
    const int32_t[::1] splits not None,
):
    """Take events into the checksum of a chunk, in place; the same however the chunk is cut into batches.

    Two running sums as of Fletcher's checksum, of words in which the times are mixed: an addition each per event.

    Parameters
    ----------
    checksum : numpy.ndarray of uint64, shape (2,)
        Checksum of the events before; zeros at first.
    timestamps_ms, arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        As recorded.
    codes : numpy.ndarray of int32, shape (n_rows,)
        Index into `splits`.
    splits : numpy.ndarray of int32, shape (n_codes,)
        Numbers of the splits within the chunk.

    Raises
    ------
    DataError
        If the columns do not fit together.
    """
    cdef int64_t i, n = timestamps_ms.shape[0]
    cdef uint64_t of_words, of_sums, of_split
    if checksum.shape[0] != 2:
        raise DataError(f"a checksum has 2 sums, not {checksum.shape[0]}")
    if arrivals_ms.shape[0] != n or codes.shape[0] != n:
        raise DataError(f"{n} timestamps, {arrivals_ms.shape[0]} arrivals and {codes.shape[0]} codes: not one each")
    if n == 0:
        return
    of_words, of_sums = checksum[0], checksum[1]
    # Most chunks have one split, which takes no look-up per row.
    if splits.shape[0] == 1:
        of_split = <uint64_t> splits[0] * SPLIT_FACTOR
        with nogil:
            for i in range(n):
                of_words += _mixed(<uint64_t> timestamps_ms[i], <uint64_t> arrivals_ms[i] + of_split)
                of_sums += of_words
    else:
        check_codes(codes, splits.shape[0])
        with nogil:
            for i in range(n):
                of_split = <uint64_t> splits[codes[i]] * SPLIT_FACTOR
                of_words += _mixed(<uint64_t> timestamps_ms[i], <uint64_t> arrivals_ms[i] + of_split)
                of_sums += of_words
    checksum[0], checksum[1] = of_words, of_sums

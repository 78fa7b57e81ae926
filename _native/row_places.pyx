"""Rows that lie in several pieces, gathered column by column: each value is copied once.

Arrow's `take` reads one array. To gather from several, one would have to take from each, join what was taken and bring it into order:
three copies.
"""

import numpy as np

import cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset, strcmp

from flinkcore._native.arrow cimport Column, ColumnArray, ColumnType, NativeArray, is_valid, native_array
from flinkcore._native.memory cimport BitBuffer, Buffer, buffer_free, buffer_resize, grow, prefetch, prefetch_all


cdef enum:
    NOWHERE = -1  # in place of a place: null
    AHEAD = 16    # rows whose memory is fetched before their turn

cdef const char* _WHAT = b"the places of rows"


ctypedef fused Value:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


ctypedef fused Offset:
    int32_t
    int64_t


cdef inline int64_t _piece(int64_t place) noexcept nogil:
    return place >> 32


cdef inline int64_t _row(int64_t place) noexcept nogil:
    return place & <int64_t> 0xFFFFFFFF


# ---- places ------------------------------------------------------------------------------------------------------


cdef int64_t _piece_of(const int64_t* begins, int64_t n_pieces, int64_t number) noexcept nogil:
    # Returns the last piece that does not begin after a number.
    cdef int64_t low = 0, high = n_pieces, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if begins[middle] <= number:
            low = middle
        else:
            high = middle
    return low


cdef int64_t _find_places(
    const int64_t* begins, int64_t n_pieces, const int64_t* numbers, int64_t n, int64_t* places
) noexcept nogil:
    # Fills in the place of each number; `begins` has n_pieces + 1 values. Returns the first that is too high, or n.
    cdef int64_t i, number, piece = 0
    for i in range(n):
        number = numbers[i]
        if number < 0:
            places[i] = NOWHERE
            continue
        if number >= begins[n_pieces]:
            return i
        if not begins[piece] <= number < begins[piece + 1]:
            piece = _piece_of(begins, n_pieces, number)
        places[i] = piece << 32 | (number - begins[piece])
    return n


# ---- values ------------------------------------------------------------------------------------------------------


cdef int _resize_to_zeros(Buffer* bits, int64_t n) except -1 nogil:
    buffer_resize(bits, (n + 7) >> 3)
    if n:  # else there is no memory
        memset(bits.data, 0, bits.size)
    return 0


cdef int _gather_validity(const Column** pieces, const int64_t* places, int64_t n, BitBuffer* validity) except -1 nogil:
    cdef int64_t i
    _resize_to_zeros(&validity.bytes, n)
    validity.length = n
    for i in range(n):
        if places[i] != NOWHERE and is_valid(pieces[_piece(places[i])], _row(places[i])):
            validity.bytes.data[i >> 3] |= <uint8_t> (1 << (i & 7))
        else:
            validity.zeros += 1
    return 0


cdef int _gather_bits(const Column** pieces, const int64_t* places, int64_t n, Buffer* values) except -1 nogil:
    cdef const Column* piece
    cdef int64_t i, bit
    _resize_to_zeros(values, n)
    for i in range(n):
        if places[i] != NOWHERE:
            piece = pieces[_piece(places[i])]
            bit = piece.bit_offset + _row(places[i])
            values.data[i >> 3] |= <uint8_t> (
                ((<const uint8_t*> piece.values)[bit >> 3] >> (bit & 7) & 1) << (i & 7)
            )
    return 0


cdef void _gather_numbers(const Column** pieces, const int64_t* places, int64_t n, Value* values) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if places[i] == NOWHERE:
            values[i] = 0
        else:
            values[i] = (<const Value*> pieces[_piece(places[i])].values)[_row(places[i])]


cdef int _gather_fixed(
    const Column** pieces, const int64_t* places, int64_t n, int64_t width, Buffer* values
) except -1 nogil:
    cdef int64_t i
    buffer_resize(values, n * width)
    if width == 1:
        _gather_numbers[uint8_t](pieces, places, n, <uint8_t*> values.data)
    elif width == 2:
        _gather_numbers[uint16_t](pieces, places, n, <uint16_t*> values.data)
    elif width == 4:
        _gather_numbers[uint32_t](pieces, places, n, <uint32_t*> values.data)
    elif width == 8:
        _gather_numbers[uint64_t](pieces, places, n, <uint64_t*> values.data)
    elif width:
        for i in range(n):
            if places[i] == NOWHERE:
                memset(values.data + i * width, 0, width)
            else:
                memcpy(
                    values.data + i * width,
                    <const uint8_t*> pieces[_piece(places[i])].values + _row(places[i]) * width,
                    width,
                )
    return 0


cdef bint _gather_bytes(
    const Column** pieces,
    const int64_t* places,
    int64_t n,
    bint has_nulls,
    const uint8_t** starts,
    Offset* offsets,
    Buffer* values,
) except -1 nogil:
    # Strings of bytes; `starts` has room for n. Returns false if the offsets cannot count their bytes.
    cdef const Column* piece
    cdef const Offset* of_piece
    cdef int64_t i, row, place, total = 0
    offsets[0] = 0
    for i in range(n):
        if i + AHEAD < n and places[i + AHEAD] != NOWHERE:
            place = places[i + AHEAD]
            prefetch(<const Offset*> pieces[_piece(place)].offsets + _row(place))
        starts[i] = NULL
        place = places[i]
        if place != NOWHERE:
            piece, row = pieces[_piece(place)], _row(place)
            if not has_nulls or is_valid(piece, row):
                of_piece = <const Offset*> piece.offsets
                starts[i] = <const uint8_t*> piece.values + of_piece[row]
                total += of_piece[row + 1] - of_piece[row]
                if Offset is int32_t and total > INT32_MAX:
                    return False
        offsets[i + 1] = <Offset> total
    buffer_resize(values, total)
    for i in range(n):
        if i + AHEAD < n and offsets[i + AHEAD + 1] > offsets[i + AHEAD]:
            prefetch_all(starts[i + AHEAD], offsets[i + AHEAD + 1] - offsets[i + AHEAD])
        if offsets[i + 1] > offsets[i]:
            memcpy(values.data + offsets[i], starts[i], offsets[i + 1] - offsets[i])
    return True


# ---- the class ---------------------------------------------------------------------------------------------------


@cython.final
cdef class RowPlaces:
    """Where numbered rows lie in pieces, which are numbered one after the other.

    Parameters
    ----------
    begins : int64 array (n_pieces + 1,)
        Number of the first row of each piece, ascending from 0, and the number of all rows.
    numbers : int64 array (n,)
        Rows, of which a negative one gives null.

    Raises
    ------
    IndexError
        If a number is not one of a row.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from flinkcore._native.arrow import ColumnArray
    >>> pieces = [ColumnArray(pa.array(texts)) for texts in (["a", "b"], ["c"])]
    >>> pa.array(RowPlaces(np.array([0, 2, 3]), np.array([2, 0, -1])).gathered(pieces)).to_pylist()
    ['c', 'a', None]
    """

    cdef const int64_t[::1] begins
    cdef const int64_t[::1] places
    cdef bint has_nowhere

    def __cinit__(self, const int64_t[::1] begins not None, const int64_t[::1] numbers not None):
        cdef int64_t n = numbers.shape[0], n_pieces = begins.shape[0] - 1, i
        if n_pieces < 0 or n_pieces > INT32_MAX or begins[0] != 0:
            raise ValueError("pieces begin with row 0, and end with the number of all rows")
        for i in range(n_pieces):
            if not 0 <= begins[i + 1] - begins[i] < <int64_t> 1 << 32:
                raise ValueError(f"piece {i} begins with row {begins[i]}, and the next one with row {begins[i + 1]}")
        found = np.empty(n, np.int64)
        cdef int64_t[::1] places = found
        if n:
            with nogil:
                i = _find_places(&begins[0], n_pieces, &numbers[0], n, &places[0])
            if i < n:
                raise IndexError(f"there is no row {numbers[i]}: there are {begins[n_pieces]}")
            with nogil:
                for i in range(n):
                    self.has_nowhere |= places[i] == NOWHERE
        self.begins = begins
        self.places = places

    def __len__(self):
        return self.places.shape[0]

    def gathered(self, list pieces not None):
        """Return the values of a column of all rows, as an array.

        Parameters
        ----------
        pieces : list of ColumnArray
            The column in each piece, of one type whose values are of one size, or strings of bytes; at least one.

        Raises
        ------
        OverflowError
            If the offsets of strings cannot count their bytes.
        """
        cdef int64_t n = self.places.shape[0], n_pieces = len(pieces), i
        cdef const Column** columns
        cdef const Column* first
        cdef ColumnArray piece
        cdef bint has_nulls = self.has_nowhere
        if n_pieces == 0 or n_pieces != self.begins.shape[0] - 1:
            raise ValueError(f"{n_pieces} pieces, of {self.begins.shape[0] - 1}")
        columns = <const Column**> grow(NULL, n_pieces * sizeof(void*), _WHAT)
        try:
            for i in range(n_pieces):
                piece = pieces[i]
                columns[i] = &piece.column
                if piece.column.length != self.begins[i + 1] - self.begins[i]:
                    raise ValueError(f"piece {i} has {piece.column.length} rows")
                if strcmp(piece.column.format, columns[0].format):
                    raise ValueError(f"piece {i} has another type than the first")
                has_nulls |= piece.column.validity != NULL
            first = columns[0]
            if first.type in (ColumnType.NULL_TYPE, ColumnType.STRUCT, ColumnType.OTHER_TYPE):
                raise ValueError(f"values of the format {first.format.decode()!r} are not gathered here")
            return _gathered(columns, &self.places[0] if n else NULL, n, has_nulls)
        finally:
            free(columns)


cdef NativeArray _gathered(const Column** columns, const int64_t* places, int64_t n, bint has_nulls):
    cdef const Column* first = columns[0]
    cdef BitBuffer validity
    cdef Buffer second, third
    cdef const uint8_t** starts = NULL
    cdef bint has_bytes = first.offsets != NULL, is_counted = True
    cdef bint is_large = first.type == ColumnType.LARGE_STRING or first.type == ColumnType.LARGE_BINARY
    memset(&validity, 0, sizeof(BitBuffer))
    memset(&second, 0, sizeof(Buffer))
    memset(&third, 0, sizeof(Buffer))
    try:
        with nogil:
            if has_nulls:
                _gather_validity(columns, places, n, &validity)
                has_nulls = validity.zeros > 0
            if first.type == ColumnType.BOOL:
                _gather_bits(columns, places, n, &second)
            elif not has_bytes:
                _gather_fixed(columns, places, n, first.byte_width, &second)
            else:
                starts = <const uint8_t**> grow(NULL, (n + 1) * sizeof(void*), _WHAT)
                buffer_resize(&second, (n + 1) * (8 if is_large else 4))
                if is_large:
                    _gather_bytes[int64_t](columns, places, n, has_nulls, starts, <int64_t*> second.data, &third)
                else:
                    is_counted = _gather_bytes[int32_t](
                        columns, places, n, has_nulls, starts, <int32_t*> second.data, &third
                    )
        if not is_counted:
            raise OverflowError("strings have more bytes than their offsets can count")
        return native_array(
            first.format.decode(), n, &validity, &second, &third if has_bytes else NULL
        )
    finally:
        free(starts)
        buffer_free(&validity.bytes)
        buffer_free(&second)
        buffer_free(&third)

"""Parts of texts, and how often a text is found in others: loops over whole columns of UTF-8."""

import numpy as np

import cython

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memchr, memcmp, memset

from flinkcore._native.arrow cimport Column, ColumnArray, ColumnType, NativeArray, bytes_value, is_valid, native_array
from flinkcore._native.call_guard cimport Call, CallGuard, begin_call
from flinkcore._native.memory cimport (
    BitBuffer,
    Buffer,
    bits_append,
    buffer_append_bytes,
    buffer_free,
    buffer_resize,
)


cdef enum:
    NONE = -1  # in place of where a part begins: the text has too few


cdef struct Part:
    # One of the parts of each text, as a column of texts.
    BitBuffer validity
    Buffer offsets
    Buffer bytes


cdef inline const uint8_t* _found(
    const uint8_t* at, const uint8_t* end, const uint8_t* wanted, int64_t size
) noexcept nogil:
    # Returns where some bytes begin in a text, or NULL.
    while end - at >= size:
        at = <const uint8_t*> memchr(at, wanted[0], end - at - size + 1)
        if at == NULL:
            return NULL
        if size == 1 or memcmp(at + 1, wanted + 1, size - 1) == 0:
            return at
        at += 1
    return NULL


cdef void _begin(const Column* texts, int32_t* begins) noexcept nogil:
    # An empty text has no part, not even an empty one.
    cdef int64_t row
    cdef const uint8_t* start
    for row in range(texts.length):
        begins[row] = 0 if is_valid(texts, row) and bytes_value(texts, row, &start) else NONE


cdef int _advance(
    const Column* texts, const uint8_t* separator, int64_t size, int64_t n_parts, int32_t* begins, Part* part
) except -1 nogil:
    # Moves each begin by so many parts, and fills in the part there.
    cdef int64_t row, i
    cdef const uint8_t* text
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef const uint8_t* stop
    cdef int32_t* ends
    buffer_resize(&part.offsets, (texts.length + 1) * sizeof(int32_t))
    ends = <int32_t*> part.offsets.data
    ends[0] = 0
    for row in range(texts.length):
        if begins[row] != NONE:
            i = bytes_value(texts, row, &text)
            at, end = text + begins[row], text + i
            for i in range(n_parts):
                at = _found(at, end, separator, size)
                if at == NULL:
                    break
                at += size
            begins[row] = NONE if at == NULL else <int32_t> (at - text)
            if at != NULL:
                stop = _found(at, end, separator, size)
                buffer_append_bytes(&part.bytes, at, (end if stop == NULL else stop) - at)
        bits_append(&part.validity, begins[row] != NONE)
        ends[row + 1] = <int32_t> part.bytes.size
    return 0


@cython.final
cdef class TextParts:
    """The parts between the separators in each text of a column.

    Parameters
    ----------
    texts : ColumnArray
        Of strings.
    separator : bytes
        UTF-8, not empty.
    """

    cdef CallGuard guard
    cdef ColumnArray texts
    cdef bytes separator
    cdef int64_t number
    cdef Buffer begins

    def __cinit__(self, ColumnArray texts not None, bytes separator not None):
        _require_texts(texts)
        if not separator:
            raise ValueError("the separator is empty")
        self.texts = texts
        self.separator = separator

    def __dealloc__(self):
        buffer_free(&self.begins)

    def part(self, int64_t number):
        """Return a part of each text. One after that of the call before is looked for from there.

        Parameters
        ----------
        number : int
            From 0.

        Returns
        -------
        NativeArray
            Texts: null where a text is null, empty, or has too few parts.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef const Column* texts = &self.texts.column
        cdef const uint8_t* separator = self.separator
        cdef int64_t size = len(self.separator), n_parts = number - self.number
        cdef Part part
        if number < 0:
            raise ValueError(f"there is no part {number}: the first one is 0")
        memset(&part, 0, sizeof(Part))
        self.number = INT64_MAX  # no memory amid the texts: the next call begins anew
        try:
            with nogil:
                if self.begins.data == NULL or n_parts < 0:
                    buffer_resize(&self.begins, (texts.length + 1) * sizeof(int32_t))
                    _begin(texts, <int32_t*> self.begins.data)
                    n_parts = number
                _advance(texts, separator, size, n_parts, <int32_t*> self.begins.data, &part)
            self.number = number
            return native_array("u", texts.length, &part.validity, &part.offsets, &part.bytes)
        finally:
            buffer_free(&part.validity.bytes)
            buffer_free(&part.offsets)
            buffer_free(&part.bytes)


cdef void _count(const Column* texts, const uint8_t* wanted, int64_t size, int32_t* counts) noexcept nogil:
    cdef int64_t row, length, i
    cdef int32_t count
    cdef uint8_t first = wanted[0]
    cdef const uint8_t* start
    cdef const uint8_t* end
    for row in range(texts.length):
        count = 0
        if is_valid(texts, row):
            length = bytes_value(texts, row, &start)
            if size == 1:
                for i in range(length):
                    count += start[i] == first
            else:
                end = start + length
                start = _found(start, end, wanted, size)
                while start != NULL:
                    count += 1
                    start = _found(start + size, end, wanted, size)
        counts[row] = count


def count_found(ColumnArray texts not None, bytes wanted not None):
    """Return how often some text is found in each text, without overlaps.

    Parameters
    ----------
    texts : ColumnArray
        Of strings.
    wanted : bytes
        UTF-8, not empty.

    Returns
    -------
    int32 array
        0 where a text is null.
    """
    cdef const uint8_t* found = wanted
    cdef int64_t size = len(wanted)
    _require_texts(texts)
    if size == 0:
        raise ValueError("an empty text is found everywhere")
    counts = np.empty(texts.column.length, np.int32)
    cdef int32_t[::1] made = counts
    if texts.column.length:
        with nogil:
            _count(&texts.column, found, size, &made[0])
    return counts


cdef int _extract(
    const Column* texts,
    const uint8_t* before,
    bint is_first,
    const uint8_t* mark,
    int64_t size,
    const uint8_t* members,
    bint is_filled,
    Part* part,
) except -1 nogil:
    # Fills in what follows the first mark that has one of the bytes `before` it, or nothing if it is the first.
    cdef int64_t row, length
    cdef const uint8_t* text
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef const uint8_t* stop
    cdef int32_t* ends
    cdef bint fits
    buffer_resize(&part.offsets, (texts.length + 1) * sizeof(int32_t))
    ends = <int32_t*> part.offsets.data
    ends[0] = 0
    for row in range(texts.length):
        at = NULL
        if is_valid(texts, row):
            length = bytes_value(texts, row, &text)
            end = text + length
            at = _found(text, end, mark, size)
            while at != NULL:
                stop = at + size
                while stop < end and members[stop[0]]:
                    stop += 1
                fits = is_first if at == text else before[(at - 1)[0]] != 0
                if fits and (stop > at + size or not is_filled):
                    buffer_append_bytes(&part.bytes, at + size, stop - at - size)
                    break
                at = _found(at + 1, end, mark, size)
        bits_append(&part.validity, at != NULL)
        ends[row + 1] = <int32_t> part.bytes.size
    return 0


def text_after(
    ColumnArray texts not None,
    bytes before not None,
    bint is_first,
    bytes mark not None,
    bytes members not None,
    bint is_filled,
):
    """Return what follows a mark in each text, as the regular expression ``[before]mark([members]*)`` finds it.

    Parameters
    ----------
    texts : ColumnArray
        Of strings.
    before : bytes
        For each byte, whether it may stand before the mark.
    is_first : bool
        Whether a text may begin with the mark.
    mark : bytes
        UTF-8, not empty.
    members : bytes
        For each byte, whether it belongs to what follows. Bytes beyond ASCII all do, or none does.
    is_filled : bool
        Whether at least one byte must follow.

    Returns
    -------
    NativeArray
        Texts: of the first mark that fits, null where there is none.
    """
    cdef const uint8_t* befores = before
    cdef const uint8_t* wanted = mark
    cdef const uint8_t* insides = members
    cdef int64_t size = len(mark)
    cdef Part part
    _require_texts(texts)
    if size == 0 or len(before) != 256 or len(members) != 256:
        raise ValueError("a mark has bytes, and there is a flag for each of 256 bytes")
    memset(&part, 0, sizeof(Part))
    try:
        with nogil:
            _extract(&texts.column, befores, is_first, wanted, size, insides, is_filled, &part)
        return native_array("u", texts.column.length, &part.validity, &part.offsets, &part.bytes)
    finally:
        buffer_free(&part.validity.bytes)
        buffer_free(&part.offsets)
        buffer_free(&part.bytes)


cdef int _require_texts(ColumnArray texts) except -1:
    if texts.column.type != ColumnType.STRING:
        raise ValueError(f"values of the format {texts.column.format.decode()!r} are not texts")
    return 0

"""Columns of rows, arrays and maps of Flink SQL, which its operators keep in a binary form: BinaryRowData and its like."""

cimport cython
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore._native.arrow cimport NativeArray, native_array
from flinkcore._native.memory cimport bits_append, buffer_append
from flinkcore._native.state_columns cimport (
    BytesColumn,
    ChoiceColumn,
    Cursor,
    ListColumn,
    MapColumn,
    StateColumn,
    damaged,
    no_place,
    read_count,
    spend,
    take,
)


cdef enum Kind:
    # Values of 1, 2, 4 and 8 bytes, little endian.
    ONE = 0
    TWO = 1
    FOUR = 2
    EIGHT = 3
    # Bytes in the slot if there are few, or elsewhere in the row.
    TEXT = 4
    BYTES = 5
    DECIMAL = 6          # unscaled, in the slot
    LARGE_DECIMAL = 7    # unscaled, elsewhere, big endian
    TIMESTAMP = 8        # ms in the slot
    LARGE_TIMESTAMP = 9  # ms elsewhere, and nanoseconds of the ms in the slot
    ROW = 10
    ARRAY = 11
    MAP = 12


cdef inline uint64_t le64(const uint8_t* place) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, place, 8)
    return value


cdef inline uint32_t le32(const uint8_t* place) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, place, 4)
    return value


@cython.final
cdef class SqlColumn(StateColumn):
    """Values of fields of rows: numbers, decimals and times.

    Parameters
    ----------
    format : str
        Format of the Arrow array.
    size : int
        Bytes of a value in it.
    per_ms : int
        Units of a timestamp in a millisecond.
    """

    cdef str _format
    cdef int _size
    cdef int64_t _per_ms

    def __init__(self, str format, int size, int64_t per_ms=1):
        self._format = format
        self._size = size
        self._per_ms = per_ms

    cdef int append(self, Cursor* cursor, const void* place) except -1:
        spend(cursor)
        memcpy(buffer_append(&self.values, self._size), place, self._size)
        return bits_append(&self.validity, True)

    cdef int append_decimal(self, Cursor* cursor, const uint8_t* big_endian, int64_t size) except -1:
        cdef uint8_t[16] value
        cdef int64_t i
        if not 0 < size <= 16:
            damaged(cursor, f"a decimal has {size:,} bytes")
        memset(value, 0xFF if big_endian[0] >> 7 else 0, 16)
        for i in range(size):
            value[i] = big_endian[size - 1 - i]
        return self.append(cursor, value)

    cdef int append_long(self, Cursor* cursor, int64_t value) except -1:
        # A decimal that fits into 8 bytes.
        cdef int64_t[2] words
        words[0] = value
        words[1] = -1 if value < 0 else 0
        return self.append(cursor, words)

    cdef int append_time(self, Cursor* cursor, int64_t ms, int64_t nanos) except -1:
        cdef int64_t value
        if not 0 <= nanos < 1000000:
            damaged(cursor, f"a millisecond does not have {nanos:,} nanoseconds")
        if not -9223372036854775807 // self._per_ms < ms < 9223372036854775807 // self._per_ms:
            no_place(cursor, "a timestamp is outside of those that Arrow has in its unit")
        value = ms * self._per_ms + (nanos * self._per_ms // 1000000 if self._per_ms > 1 else 0)
        return self.append(cursor, &value)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        memset(buffer_append(&self.values, self._size), 0, self._size)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        return native_array(self._format, self.validity.length, &self.validity, &self.values, NULL)


@cython.final
cdef class SqlBooleanColumn(StateColumn):
    """Truth values of fields of rows."""

    cdef int append(self, Cursor* cursor, bint value) except -1:
        spend(cursor)
        (<uint8_t*> buffer_append(&self.values, 1))[0] = value
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        (<uint8_t*> buffer_append(&self.values, 1))[0] = 0
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        # Arrow's truth values are bits.
        cdef int64_t length = self.validity.length, i
        cdef uint8_t* bits = self.values.data
        for i in range(length):
            if i & 7 == 0:
                bits[i >> 3] = bits[i]
            else:
                bits[i >> 3] |= bits[i] << (i & 7)
        return native_array("b", length, &self.validity, &self.values, NULL)


@cython.final
cdef class SqlTextColumn(BytesColumn):
    """Texts in UTF-8.

    Parameters
    ----------
    exact : bool
        Make binary values, which need not be valid.
    """

    cdef bint _exact

    def __init__(self, bint exact):
        self.format = "z" if exact else "u"
        self._exact = exact

    cdef int append_bytes(self, Cursor* cursor, const uint8_t* place, int64_t size) except -1:
        if not self._exact:
            try:
                PyUnicode_DecodeUTF8(<const char*> place, size, NULL)
            except UnicodeDecodeError:
                no_place(cursor, "a text is not UTF-8. Read it with exact=True (--exact)")
        return BytesColumn.append_bytes(self, cursor, place, size)


cdef class SqlValue:
    """A field of a row, or the elements of an array: its kind and the column of its values.

    Parameters
    ----------
    kind : int
        A number of `Kind`: how a value lies in its slot.
    column : StateColumn
    parts : list of SqlValue
        Fields of a row, the elements of an array, or keys and values of a map.
    """

    cdef Kind kind
    cdef readonly StateColumn column
    cdef list parts
    cdef int64_t width

    def __init__(self, int kind, StateColumn column not None, list parts=None):
        self.kind = <Kind> kind
        self.column = column
        self.parts = parts or []
        self.width = 1 << kind if kind <= Kind.EIGHT else 8

    cdef int read_slot(self, Cursor* cursor, const uint8_t* base, int64_t size, const uint8_t* slot) except -1:
        # Appends the value of a slot of a row or an array that begins at `base`.
        cdef uint64_t word
        cdef const uint8_t* place
        cdef int64_t length
        if self.kind <= Kind.EIGHT:
            if type(self.column) is SqlBooleanColumn:
                return (<SqlBooleanColumn> self.column).append(cursor, slot[0] != 0)
            return (<SqlColumn> self.column).append(cursor, slot)
        word = le64(slot)
        if self.kind == Kind.DECIMAL:
            return (<SqlColumn> self.column).append_long(cursor, <int64_t> word)
        if self.kind == Kind.TIMESTAMP:
            return (<SqlColumn> self.column).append_time(cursor, <int64_t> word, 0)
        if self.kind == Kind.LARGE_TIMESTAMP:
            place = self.elsewhere(cursor, base, size, word >> 32, 8)
            return (<SqlColumn> self.column).append_time(cursor, <int64_t> le64(place), <int64_t> (word & 0xFFFFFFFF))
        if word >> 63 and self.kind <= Kind.BYTES:
            place, length = slot, <int64_t> (word >> 56 & 0x7F)
            if length > 7:
                damaged(cursor, f"a short value of a row has {length} bytes")
        else:
            length = <int64_t> (word & 0xFFFFFFFF)
            place = self.elsewhere(cursor, base, size, word >> 32, length)
        if self.kind <= Kind.BYTES:
            return (<BytesColumn> self.column).append_bytes(cursor, place, length)
        if self.kind == Kind.LARGE_DECIMAL:
            return (<SqlColumn> self.column).append_decimal(cursor, place, length)
        return self.read_nested(cursor, place, length)

    cdef const uint8_t* elsewhere(
        self, Cursor* cursor, const uint8_t* base, int64_t size, uint64_t offset, int64_t length
    ) except NULL:
        if <int64_t> offset + length > size:
            damaged(cursor, f"a value lies at byte {offset:,} with {length:,} bytes of a row that has {size:,}")
        return base + offset

    cdef int read_nested(self, Cursor* cursor, const uint8_t* base, int64_t size) except -1:
        cdef SqlValue part
        cdef int64_t i, n, bits, first, count, keys_size
        if self.kind == Kind.ROW:
            n = len(self.parts)
            first = ((n + 8 + 63) >> 6) << 3
            if size < first + 8 * n:
                damaged(cursor, f"a row of {n} fields has {size:,} bytes")
            for i in range(n):
                part = <SqlValue> self.parts[i]
                bits = i + 8
                if base[bits >> 3] >> (bits & 7) & 1:
                    part.column.append_null(cursor)
                else:
                    part.read_slot(cursor, base, size, base + first + 8 * i)
            if base[0] > 3:
                damaged(cursor, f"a row does not have the kind {base[0]}")
            return (<RowsColumn> self.column).end_row(cursor, base[0])
        if self.kind == Kind.ARRAY:
            count = self.read_array(cursor, base, size, <SqlValue> self.parts[0])
            spend(cursor)
            return (<ListColumn> self.column).close(count)
        if size < 4:
            damaged(cursor, f"a map has {size:,} bytes")
        keys_size = le32(base)
        if keys_size > size - 4:
            damaged(cursor, f"the keys of a map have {keys_size:,} bytes of {size:,}")
        count = self.read_array(cursor, base + 4, keys_size, <SqlValue> self.parts[0])
        if self.read_array(cursor, base + 4 + keys_size, size - 4 - keys_size, <SqlValue> self.parts[1]) != count:
            damaged(cursor, f"a map has {count:,} keys, and another number of values")
        return (<MapColumn> self.column).close(cursor, count)

    cdef int64_t read_array(self, Cursor* cursor, const uint8_t* base, int64_t size, SqlValue part) except -1:
        # Appends the elements of an array, and returns how many they are.
        cdef int64_t count, first, i
        if size < 4:
            damaged(cursor, f"an array has {size:,} bytes")
        count = <int32_t> le32(base)
        first = 4 + ((count + 31) >> 5) * 4
        if count < 0 or first + count * part.width > size:
            damaged(cursor, f"an array of {count:,} elements has {size:,} bytes")
        for i in range(count):
            if base[4 + (i >> 3)] >> (i & 7) & 1:
                part.column.append_null(cursor)
            else:
                part.read_slot(cursor, base, size, base + first + i * part.width)
        return count


@cython.final
cdef class RowsColumn(StateColumn):
    """Structs of the fields of rows; the last field is the row kind.

    Parameters
    ----------
    names : list of str
    fields : list of SqlValue
    kinds : ChoiceColumn
    """

    cdef list _names
    cdef list _fields
    cdef ChoiceColumn _kinds

    def __init__(self, list names, list fields, ChoiceColumn kinds not None):
        self._names = [*names, "row_kind"]
        self._fields = fields
        self._kinds = kinds

    cdef int end_row(self, Cursor* cursor, uint8_t kind) except -1:
        spend(cursor)
        self._kinds.append_choice(cursor, kind)
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        for field in self._fields:
            (<SqlValue> field).column.append_null(cursor)
        self._kinds.append_null(cursor)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        cdef int64_t length = self.validity.length
        cdef list arrays = [(<SqlValue> field).column.take_array() for field in self._fields]
        arrays.append(self._kinds.take_array())
        return native_array("+s", length, &self.validity, NULL, NULL, arrays, self._names)

    cdef int64_t size_bytes(self):
        cdef int64_t size = self._kinds.size_bytes()
        for field in self._fields:
            size += (<SqlValue> field).column.size_bytes()
        return size


@cython.final
cdef class SizedColumn(StateColumn):
    """Rows, arrays and maps as their serializers write them: the size, then the bytes.

    Parameters
    ----------
    value : SqlValue
    """

    cdef SqlValue _value

    def __init__(self, SqlValue value not None):
        self._value = value

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t size = read_count(cursor)
        cdef const uint8_t* place = take(cursor, size)
        return self._value.read_nested(cursor, place, size)

    cdef int append_null(self, Cursor* cursor) except -1:
        return self._value.column.append_null(cursor)

    cdef NativeArray take_array(self):
        return self._value.column.take_array()

    cdef int64_t size_bytes(self):
        return self._value.column.size_bytes()

"""Columns of rows, arrays and maps of Flink SQL, which its operators keep in a binary form: BinaryRowData and its like."""

cimport cython
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, NativeArray, native_array
from flinkcore._native.memory cimport Buffer, bits_append, buffer_append, buffer_append_bytes, buffer_free
from flinkcore._native.state_columns cimport (
    BytesColumn,
    ChoiceColumn,
    Cursor,
    ListColumn,
    MapColumn,
    StateColumn,
    WrappingColumn,
    be32,
    be64,
    bind_values,
    damaged,
    no_place,
    null_value,
    put32,
    put64,
    read_count,
    spend,
    take,
    unwritable,
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


cdef inline void put_le64(Buffer* out, int64_t at, uint64_t value) noexcept nogil:
    memcpy(out.data + at, &value, 8)


cdef inline int append_zeros(Buffer* out, int64_t size) except -1:
    if size:
        memset(buffer_append(out, size), 0, size)
    return 0


cdef inline uint32_t rotated(uint32_t word, int bits) noexcept nogil:
    return word << bits | word >> (32 - bits)


cdef uint32_t hash_words(const uint8_t* bytes, int64_t size) noexcept nogil:
    # Murmur3 of whole words with the seed 42: the hash code of a BinaryRowData (MurmurHashUtils.hashBytesByWords).
    cdef uint32_t code = 42
    cdef int64_t i
    for i in range(0, size, 4):
        code ^= rotated(le32(bytes + i) * <uint32_t> 0xCC9E2D51, 15) * <uint32_t> 0x1B873593
        code = rotated(code, 13) * 5 + <uint32_t> 0xE6546B64
    code ^= <uint32_t> size
    code = (code ^ code >> 16) * <uint32_t> 0x85EBCA6B
    code = (code ^ code >> 13) * <uint32_t> 0xC2B2AE35
    return code ^ code >> 16


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

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, self._format)

    cdef const uint8_t* place_of(self, int64_t row) noexcept:
        # Returns the place of a value in the bound array.
        return self.source.data + (row + self.source.offset) * self._size

    cdef int64_t milliseconds(self, int64_t row, int64_t* nanos) noexcept:
        # Returns the ms of a timestamp, and the nanoseconds after them.
        cdef int64_t value = <int64_t> le64(self.place_of(row))
        cdef int64_t ms = value // self._per_ms
        if ms * self._per_ms > value:
            ms -= 1
        nanos[0] = (value - ms * self._per_ms) * (1000000 // self._per_ms)
        return ms


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

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, "b")

    cdef bint value_of(self, int64_t row) noexcept:
        row += self.source.offset
        return self.source.data[row >> 3] >> (row & 7) & 1


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


    cdef int write_slot(self, int64_t row, Buffer* out, int64_t base, int64_t slot, int64_t bit, bint keeps_places) except -1:
        # Writes a value into its slot in a row that begins at `base`, and what has no place there to the end.
        cdef int64_t size = 0, ms, end = out.size - base
        cdef uint64_t word = 0
        cdef const uint8_t* place
        if self.kind > Kind.ROW:
            return unwritable("arrays and maps within rows of SQL cannot be written yet")
        if self.column.is_null(row):
            out.data[base + (bit >> 3)] |= 1 << (bit & 7)
            if keeps_places and (self.kind == Kind.LARGE_DECIMAL or self.kind == Kind.LARGE_TIMESTAMP):
                append_zeros(out, 16 if self.kind == Kind.LARGE_DECIMAL else 8)
                put_le64(out, base + slot, <uint64_t> end << 32)
            return 0
        if self.kind <= Kind.EIGHT:
            if type(self.column) is SqlBooleanColumn:
                out.data[base + slot] = (<SqlBooleanColumn> self.column).value_of(row)
            else:
                memcpy(out.data + base + slot, (<SqlColumn> self.column).place_of(row), self.width)
            return 0
        if self.kind == Kind.ROW:
            self.column.write(row, out)
            put_le64(out, base + slot, <uint64_t> end << 32 | <uint64_t> (out.size - base - end))
            return 0
        if self.kind <= Kind.BYTES:
            place = (<BytesColumn> self.column).value_at(row, &size)
            if size < 8:
                memcpy(&word, place, size)
                put_le64(out, base + slot, word | <uint64_t> (size | 0x80) << 56)
                return 0
            put_le64(out, base + slot, <uint64_t> end << 32 | <uint64_t> size)
            buffer_append_bytes(out, place, size)
            return append_zeros(out, -size & 7)
        if self.kind == Kind.DECIMAL:
            put_le64(out, base + slot, le64((<SqlColumn> self.column).place_of(row)))
            return 0
        if self.kind == Kind.LARGE_DECIMAL:
            append_zeros(out, 16)
            size = put_decimal(out.data + base + end, (<SqlColumn> self.column).place_of(row))
            put_le64(out, base + slot, <uint64_t> end << 32 | <uint64_t> size)
            return 0
        ms = (<SqlColumn> self.column).milliseconds(row, &size)
        if self.kind == Kind.TIMESTAMP:
            put_le64(out, base + slot, <uint64_t> ms)
            return 0
        append_zeros(out, 8)
        put_le64(out, base + end, <uint64_t> ms)
        put_le64(out, base + slot, <uint64_t> end << 32 | <uint64_t> size)
        return 0


cdef int64_t put_decimal(uint8_t* out, const uint8_t* value) noexcept nogil:
    # Writes a decimal of 16 bytes, little endian, as BigInteger.toByteArray does, and returns how many bytes that are.
    cdef int64_t size = 16, i
    cdef uint8_t sign = 0xFF if value[15] >> 7 else 0
    while size > 1 and value[size - 1] == sign and value[size - 2] >> 7 == sign >> 7:
        size -= 1
    for i in range(size):
        out[i] = value[size - 1 - i]
    return size


@cython.final
cdef class RowsColumn(StateColumn):
    """Structs of the fields of rows; the last field is the row kind.

    Parameters
    ----------
    names : list of str
    fields : list of SqlValue
    kinds : ChoiceColumn
    keeps_places : bool
        Whether large decimals and timestamps that are null have a place beside the slots, as in keys: code that Flink's planner
        makes writes these, and ``RowDataSerializer`` other rows. Flink compares bytes.
    """

    cdef list _names
    cdef list _fields
    cdef ChoiceColumn _kinds
    cdef bint _keeps_places

    def __init__(self, list names, list fields, ChoiceColumn kinds not None, bint keeps_places=False):
        self._names = [*names, "row_kind"]
        self._fields = fields
        self._kinds = kinds
        self._keeps_places = keeps_places

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

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        cdef int64_t i
        cdef StateColumn child
        bind_values(&self.source, schema, array, offset, "+s")
        if schema.n_children != len(self._names):
            unwritable(f"a row has {schema.n_children} fields instead of {len(self._names)}, with its kind")
        for i in range(schema.n_children):
            child = self._kinds if i == len(self._fields) else (<SqlValue> self._fields[i]).column
            child.bind(schema.children[i], array.children[i], offset + array.children[i].offset)
        return 0

    cdef int write(self, int64_t row, Buffer* out) except -1:
        # The bytes of a BinaryRowData.
        cdef int64_t n = len(self._fields), base = out.size, i
        cdef int64_t first = ((n + 8 + 63) >> 6) << 3
        if self.is_null(row):
            return null_value()
        append_zeros(out, first + 8 * n)
        out.data[base] = <uint8_t> self._kinds.choice_at(row)
        for i in range(n):
            (<SqlValue> self._fields[i]).write_slot(row, out, base, first + 8 * i, 8 + i, self._keeps_places)
        return 0


@cython.final
cdef class SizedColumn(WrappingColumn):
    """Rows, arrays and maps as their serializers write them: the size, then the bytes.

    Parameters
    ----------
    value : SqlValue
    """

    cdef SqlValue _value

    def __init__(self, SqlValue value not None):
        super().__init__(value.column)
        self._value = value

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t size = read_count(cursor)
        cdef const uint8_t* place = take(cursor, size)
        return self._value.read_nested(cursor, place, size)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t base = out.size
        append_zeros(out, 4)
        self.child.write(row, out)
        put32(out.data + base, <uint32_t> (out.size - base - 4))
        return 0

    def hash_codes(self, int64_t n):
        """Return the hash codes of the first rows of the column that this one is bound to.

        Raises
        ------
        ValueError
            If a row cannot be written.

        Notes
        -----
        Flink's ``BinaryRowData.hashCode``.
        """
        codes = np.empty(n, np.int32)
        cdef int32_t[::1] view = codes
        cdef Buffer out
        cdef int64_t i
        out.data, out.size, out.capacity = NULL, 0, 0
        try:
            for i in range(n):
                out.size = 0
                self._value.column.write(i, &out)
                view[i] = <int32_t> hash_words(out.data, out.size)
        finally:
            buffer_free(&out)
        return codes


@cython.final
cdef class SingleColumn(WrappingColumn):
    """Decimals and timestamps as their serializers write them, and not within a row: big endian.

    Parameters
    ----------
    value : SqlValue
        Of the kind of a decimal or a timestamp.
    """

    cdef SqlValue _value

    def __init__(self, SqlValue value not None):
        super().__init__(value.column)
        self._value = value

    cdef int read(self, Cursor* cursor) except -1:
        cdef SqlColumn column = self.child
        cdef int64_t size
        cdef int64_t word
        if self._value.kind == Kind.LARGE_DECIMAL:
            size = read_count(cursor)
            return column.append_decimal(cursor, take(cursor, size), size)
        word = <int64_t> be64(take(cursor, 8))
        if self._value.kind == Kind.DECIMAL:
            return column.append_long(cursor, word)
        size = 0
        if self._value.kind == Kind.LARGE_TIMESTAMP:
            size = <int32_t> be32(take(cursor, 4))
        return column.append_time(cursor, word, size)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef SqlColumn column = self.child
        cdef uint8_t[16] digits
        cdef int64_t size = 0
        cdef int64_t ms
        if column.is_null(row):
            return null_value()
        if self._value.kind == Kind.LARGE_DECIMAL:
            size = put_decimal(digits, column.place_of(row))
            put32(<uint8_t*> buffer_append(out, 4), <uint32_t> size)
            return buffer_append_bytes(out, digits, size)
        if self._value.kind == Kind.DECIMAL:
            put64(<uint8_t*> buffer_append(out, 8), le64(column.place_of(row)))
            return 0
        ms = column.milliseconds(row, &size)
        put64(<uint8_t*> buffer_append(out, 8), <uint64_t> ms)
        if self._value.kind == Kind.LARGE_TIMESTAMP:
            put32(<uint8_t*> buffer_append(out, 4), <uint32_t> size)
        return 0

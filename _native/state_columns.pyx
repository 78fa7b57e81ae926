"""Columns of values as Flink's serializers write them: from bytes to Arrow arrays, and back.

A serializer is a tree of columns. None of them keeps a Python object per value, except where Arrow has no type for what Java holds:
numbers of any size, and times outside of Arrow's range. To write, a column is bound to an array of its type.
"""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, Column, NativeArray, RecordBatch, native_array
from flinkcore._native.memory cimport (
    BitBuffer,
    Buffer,
    bits_append,
    buffer_append,
    buffer_append_bytes,
    buffer_free,
)


class EntryError(ValueError):
    """An entry that cannot be read.

    Attributes
    ----------
    at : int
        Position in the bytes that are being read.
    is_damage : bool
        Whether no serializer writes such bytes; otherwise the value is right, and the type of its column has no place for it.
    """

    def __init__(self, message, at, is_damage):
        super().__init__(message)
        self.at = at
        self.is_damage = is_damage


cdef int damaged(Cursor* cursor, str message) except -1:
    raise EntryError(message, cursor.at, True)


cdef int no_place(Cursor* cursor, str message) except -1:
    raise EntryError(message, cursor.at, False)


cdef int too_short(Cursor* cursor, int64_t size) except -1:
    raise EntryError(f"{size:,} bytes are missing: {cursor.end - cursor.at:,} are left", cursor.at, True)


cdef int null_value() except -1:
    raise ValueError("a value is null, for which its serializer has no bytes")


cdef int64_t read_count(Cursor* cursor) except -1:
    cdef int64_t count = <int32_t> be32(take(cursor, 4))
    if count < 0 or count > cursor.end - cursor.at:
        cursor.at -= 4
        damaged(cursor, f"{count:,} elements cannot be in {cursor.end - cursor.at - 4:,} bytes")
    return count


cdef int unwritable(str message) except -1:
    raise ValueError(message)


cdef str EXACT = ". Read it with exact=True (--exact)"


cdef int bind_values(Values* source, const ArrowSchema* schema, const ArrowArray* array, int64_t offset, str format) except -1:
    cdef str found = schema.format.decode()
    if found != format:
        unwritable(f"a column has the Arrow format {found!r} instead of {format!r}")
    source.offset = offset
    source.validity = NULL
    source.data = source.bytes = NULL
    if format != "n":
        if array.null_count != 0:
            source.validity = <const uint8_t*> array.buffers[0]
        if array.n_buffers > 1:
            source.data = <const uint8_t*> array.buffers[1]
        if array.n_buffers > 2:
            source.bytes = <const uint8_t*> array.buffers[2]
    return 0


cdef int elements_at(const Values* source, int64_t row, int64_t* begin, int64_t* end) except -1:
    cdef const int32_t* offsets = <const int32_t*> source.data
    row += source.offset
    if not there(source, row):
        return null_value()
    begin[0], end[0] = offsets[row], offsets[row + 1]
    return 0


cdef class StateColumn:
    """A column of values of one serializer."""

    def __dealloc__(self):
        buffer_free(&self.validity.bytes)
        buffer_free(&self.values)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return unwritable("values of this type cannot be written yet")

    cdef int write(self, int64_t row, Buffer* out) except -1:
        return unwritable("values of this type cannot be written yet")

    cdef bint is_null(self, int64_t row) noexcept:
        return not there(&self.source, row + self.source.offset)

    cdef int bind_column(self, const Column* column) except -1:
        return self.bind(column.field, column.array, column.parent_offset + column.array.offset)

    def bind_batch(self, RecordBatch batch not None, int64_t number):
        """Refer to a column of a batch, which the caller keeps while it is written.

        Raises
        ------
        ValueError
            If the column is not of the Arrow type of this one.
        """
        self.bind_column(&batch.columns[number])

    def write_value(self, int64_t row):
        """Return the bytes of the value in a row of the column that this one is bound to.

        Raises
        ------
        ValueError
            If the serializer cannot write the value.
        """
        cdef Buffer out
        out.data, out.size, out.capacity = NULL, 0, 0
        try:
            self.write(row, &out)
            return (<const char*> out.data)[:out.size] if out.size else b""
        finally:
            buffer_free(&out)

    cdef int read(self, Cursor* cursor) except -1:
        raise NotImplementedError

    cdef int append_null(self, Cursor* cursor) except -1:
        raise NotImplementedError

    cdef NativeArray take_array(self):
        raise NotImplementedError

    cdef int64_t size_bytes(self):
        return self.values.size + self.validity.bytes.size

    def array(self):
        """Return the values as an Arrow array, and forget them."""
        return self.take_array()

    def read_value(self, const uint8_t[::1] data, int64_t at, int64_t max_values):
        """Append the value at a position, and return the position after it."""
        cdef Cursor cursor
        cursor.data = &data[0] if data.shape[0] else NULL
        cursor.at, cursor.end, cursor.values_left = at, data.shape[0], max_values
        self.read(&cursor)
        return cursor.at

    def read_values(self, RecordBatch batch not None, int64_t number, int64_t max_values):
        """Append the value in each row of a column of bytes that were kept without being read.

        Raises
        ------
        ValueError
            If the column is not one of binaries.
        EntryError
            If bytes are damaged, or a value has no place; its position is the number of the row.
        """
        cdef RestColumn kept = RestColumn()
        cdef Cursor cursor
        cdef int64_t row, size = 0
        kept.bind_column(&batch.columns[number])
        for row in range(batch.num_rows):
            cursor.data = kept.value_at(row, &size)
            cursor.at, cursor.end, cursor.values_left = 0, max(size, 0), max_values
            try:
                self.read(&cursor)
                if cursor.at != cursor.end:
                    damaged(&cursor, f"{cursor.end - cursor.at} bytes of a value are left over")
            except EntryError as failure:
                raise EntryError(failure.args[0], row, failure.is_damage) from None


@cython.final
cdef class FixedColumn(StateColumn):
    """Numbers of a fixed size, big endian.

    Parameters
    ----------
    format : str
        Format of the Arrow array.
    size : int
        Bytes of a value.
    least_is_null : bool
        Whether the least number of 8 bytes stands for null.
    end : int
        If not 0, a number below 0 or from this on has no place: it is not a time of day.
    """

    cdef str _format
    cdef int _size
    cdef bint _least_is_null
    cdef int64_t _end

    def __init__(self, str format, int size, bint least_is_null=False, int64_t end=0):
        self._end = end
        self._format = format
        self._size = size
        self._least_is_null = least_is_null

    cdef int read(self, Cursor* cursor) except -1:
        cdef const uint8_t* place = take(cursor, self._size)
        cdef uint64_t wide
        cdef uint32_t word
        spend(cursor)
        if self._end and not 0 <= (<int64_t> be64(place) if self._size == 8 else <int32_t> be32(place)) < self._end:
            no_place(cursor, "a time of day is not within a day" + EXACT)
        if self._size == 8:
            wide = be64(place)
            if self._least_is_null and wide == <uint64_t> 1 << 63:
                cursor.values_left += 1
                return self.append_null(cursor)
            (<uint64_t*> buffer_append(&self.values, 8))[0] = wide
        elif self._size == 4:
            (<uint32_t*> buffer_append(&self.values, 4))[0] = be32(place)
        elif self._size == 2:
            word = be16(place)
            memcpy(buffer_append(&self.values, 2), &word, 2)
        else:
            (<uint8_t*> buffer_append(&self.values, 1))[0] = place[0]
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        cdef uint64_t zero = 0
        spend(cursor)
        memcpy(buffer_append(&self.values, self._size), &zero, self._size)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        return native_array(self._format, self.validity.length, &self.validity, &self.values, NULL)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, self._format)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef uint8_t* place
        cdef uint16_t half
        row += self.source.offset
        if not there(&self.source, row):
            if not self._least_is_null:
                return null_value()
            put64(<uint8_t*> buffer_append(out, 8), <uint64_t> 1 << 63)
            return 0
        place = <uint8_t*> buffer_append(out, self._size)
        if self._size == 8:
            put64(place, (<const uint64_t*> self.source.data)[row])
        elif self._size == 4:
            put32(place, (<const uint32_t*> self.source.data)[row])
        elif self._size == 2:
            half = (<const uint16_t*> self.source.data)[row]
            place[0] = half >> 8
            place[1] = half & 0xFF
        else:
            place[0] = self.source.data[row]
        return 0


@cython.final
cdef class BooleanColumn(StateColumn):
    """Truth values, a byte each; all but 0 are true."""

    cdef BitBuffer _bits

    def __dealloc__(self):
        buffer_free(&self._bits.bytes)

    cdef int read(self, Cursor* cursor) except -1:
        cdef bint value = take(cursor, 1)[0] != 0
        spend(cursor)
        bits_append(&self._bits, value)
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        bits_append(&self._bits, False)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        cdef int64_t length = self.validity.length
        self._bits.length = self._bits.zeros = 0
        return native_array("b", length, &self.validity, &self._bits.bytes, NULL)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, "b")

    cdef int write(self, int64_t row, Buffer* out) except -1:
        row += self.source.offset
        if not there(&self.source, row):
            return null_value()
        (<uint8_t*> buffer_append(out, 1))[0] = self.source.data[row >> 3] >> (row & 7) & 1
        return 0

    cdef int64_t size_bytes(self):
        return self._bits.bytes.size


cdef class BytesColumn(StateColumn):
    """Values of any length; the base of texts."""

    def __init__(self):
        self.format = "z"

    def __dealloc__(self):
        buffer_free(&self.bytes)

    cdef int end_value(self, Cursor* cursor, bint is_valid) except -1:
        if not self.values.size:
            (<int32_t*> buffer_append(&self.values, 4))[0] = 0
        if self.bytes.size > 0x7FFFFFFF:
            no_place(cursor, "a batch has more than 2 GiB of text")
        (<int32_t*> buffer_append(&self.values, 4))[0] = <int32_t> self.bytes.size
        return bits_append(&self.validity, is_valid)

    cdef int append_text(self, Cursor* cursor, bytes text) except -1:
        spend(cursor)
        buffer_append_bytes(&self.bytes, <const char*> text, len(text))
        return self.end_value(cursor, True)

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t size = read_count(cursor)
        return self.append_bytes(cursor, take(cursor, size), size)

    cdef int append_bytes(self, Cursor* cursor, const uint8_t* place, int64_t size) except -1:
        spend(cursor)
        buffer_append_bytes(&self.bytes, place, size)
        return self.end_value(cursor, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        return self.end_value(cursor, False)

    cdef NativeArray take_array(self):
        return native_array(self.format, self.validity.length, &self.validity, &self.values, &self.bytes)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, self.format)

    cdef const uint8_t* value_at(self, int64_t row, int64_t* size) except? NULL:
        # Returns the place of a value and its size; the size is -1 if it is null.
        cdef const int32_t* offsets = <const int32_t*> self.source.data
        row += self.source.offset
        if not there(&self.source, row):
            size[0] = -1
            return NULL
        size[0] = offsets[row + 1] - offsets[row]
        return self.source.bytes + offsets[row]

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t size = 0
        cdef const uint8_t* place = self.value_at(row, &size)
        if size < 0:
            return null_value()
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> size)
        return buffer_append_bytes(out, place, size)

    cdef int64_t size_bytes(self):
        return self.values.size + self.bytes.size


@cython.final
cdef class RestColumn(BytesColumn):
    """All bytes up to the end of an entry: values of serializers that are not known."""

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t begin = cursor.at
        cursor.at = cursor.end
        return self.append_bytes(cursor, cursor.data + begin, cursor.end - begin)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t size = 0
        cdef const uint8_t* place = self.value_at(row, &size)
        if size < 0:
            return null_value()
        return buffer_append_bytes(out, place, size)


cdef inline int append_unit(Buffer* bytes, uint32_t unit) except -1:
    # Appends a code point in UTF-8; a surrogate takes three bytes.
    cdef uint8_t* place
    if unit < 0x80:
        (<uint8_t*> buffer_append(bytes, 1))[0] = unit
    elif unit < 0x800:
        place = <uint8_t*> buffer_append(bytes, 2)
        place[0] = 0xC0 | unit >> 6
        place[1] = 0x80 | (unit & 0x3F)
    elif unit < 0x10000:
        place = <uint8_t*> buffer_append(bytes, 3)
        place[0] = 0xE0 | unit >> 12
        place[1] = 0x80 | (unit >> 6 & 0x3F)
        place[2] = 0x80 | (unit & 0x3F)
    else:
        place = <uint8_t*> buffer_append(bytes, 4)
        place[0] = 0xF0 | unit >> 18
        place[1] = 0x80 | (unit >> 12 & 0x3F)
        place[2] = 0x80 | (unit >> 6 & 0x3F)
        place[3] = 0x80 | (unit & 0x3F)
    return 0


cdef int64_t read_varint(Cursor* cursor, int most_bytes) except -1:
    cdef int64_t value = 0
    cdef uint8_t byte
    cdef int i
    for i in range(most_bytes):
        byte = take(cursor, 1)[0]
        value |= <int64_t> (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value
    return damaged(cursor, "a number of a text is too long")


cdef str LONE_SURROGATE = "a text has half of a surrogate pair, which UTF-8 does not have" + EXACT


@cython.final
cdef class StringColumn(BytesColumn):
    """Java's strings, as StringValue writes them: the length + 1, then UTF-16 units, all of them in groups of 7 bits.

    Parameters
    ----------
    exact : bool
        Make binary values, in which half of a surrogate pair takes three bytes as if it were a character.
    is_char : bool
        Each value is one unit of 2 bytes.
    """

    cdef bint _exact
    cdef bint _is_char

    def __init__(self, bint exact=False, bint is_char=False):
        self.format = "z" if exact else "u"
        self._exact = exact
        self._is_char = is_char

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t left
        cdef uint32_t unit, low
        cdef const uint8_t* place
        cdef int64_t n, i
        spend(cursor)
        if self._is_char:
            unit = be16(take(cursor, 2))
            self.check(cursor, unit)
            append_unit(&self.bytes, unit)
            return self.end_value(cursor, True)
        left = read_varint(cursor, 5)
        if left == 0:
            return self.end_value(cursor, False)
        left -= 1
        if left > cursor.end - cursor.at:
            damaged(cursor, f"{left:,} characters cannot be in {cursor.end - cursor.at:,} bytes")
        # Most texts are ASCII for a long way.
        place = cursor.data + cursor.at
        n = 0
        while n < left and place[n] < 0x80:
            n += 1
        buffer_append_bytes(&self.bytes, place, n)
        cursor.at += n
        left -= n
        while left:
            unit = <uint32_t> read_varint(cursor, 3)
            left -= 1
            if unit > 0xFFFF:
                damaged(cursor, "a character has more than 16 bits")
            if unit & 0xFC00 == 0xD800 and left:
                i = cursor.at
                low = <uint32_t> read_varint(cursor, 3)
                if low & 0xFFFFFC00 == 0xDC00:
                    left -= 1
                    append_unit(&self.bytes, 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF)))
                    continue
                cursor.at = i
            self.check(cursor, unit)
            append_unit(&self.bytes, unit)
        return self.end_value(cursor, True)

    cdef inline int check(self, Cursor* cursor, uint32_t unit) except -1:
        if unit & 0xF800 == 0xD800 and not self._exact:
            no_place(cursor, LONE_SURROGATE)
        return 0

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t size = 0, i = 0, units = 0
        cdef const uint8_t* text = self.value_at(row, &size)
        cdef const uint8_t* end
        cdef uint8_t* half
        cdef uint32_t code
        cdef bint is_ascii = True
        if size < 0:
            if self._is_char:
                return null_value()
            (<uint8_t*> buffer_append(out, 1))[0] = 0
            return 0
        for i in range(size):
            units += (text[i] & 0xC0) != 0x80
            units += text[i] >= 0xF0
            is_ascii &= text[i] < 0x80
        end = text + size
        if self._is_char:
            if units != 1:
                unwritable(f"a Character of Java has one UTF-16 unit, and not {units}")
            code = next_code(&text, end)
            half = <uint8_t*> buffer_append(out, 2)
            half[0] = code >> 8
            half[1] = code & 0xFF
            return 0
        append_varint(out, <uint32_t> units + 1)
        if is_ascii:
            return buffer_append_bytes(out, text, size)
        while text < end:
            code = next_code(&text, end)
            if code >= 0x10000:
                append_varint(out, 0xD7C0 + (code >> 10))
                code = 0xDC00 + (code & 0x3FF)
            append_varint(out, code)
        return 0


cdef inline int append_varint(Buffer* out, uint32_t value) except -1:
    while value >= 0x80:
        (<uint8_t*> buffer_append(out, 1))[0] = value & 0x7F | 0x80
        value >>= 7
    (<uint8_t*> buffer_append(out, 1))[0] = value
    return 0


cdef uint32_t next_code(const uint8_t** at, const uint8_t* end) except? 0xFFFFFFFF:
    # Returns the next code point of UTF-8, in which halves of surrogate pairs may be, and moves past it.
    cdef const uint8_t* place = at[0]
    cdef uint32_t code = place[0]
    cdef int more = 0 if code < 0x80 else 1 if code & 0xE0 == 0xC0 else 2 if code & 0xF0 == 0xE0 else 3 if code & 0xF8 == 0xF0 else 4
    cdef int i
    if more:
        code &= 0x3F >> more
        for i in range(1, more + 1):
            if more == 4 or place + i >= end or place[i] & 0xC0 != 0x80:
                unwritable("a text is not UTF-8")
            code = code << 6 | (place[i] & 0x3F)
    at[0] = place + more + 1
    return code


@cython.final
cdef class ChoiceColumn(BytesColumn):
    """Texts of which values have the number: constants of an enum.

    Parameters
    ----------
    texts : list of bytes
    """

    def __init__(self, list texts):
        self.format = "u"
        self._texts = texts

    cdef int read(self, Cursor* cursor) except -1:
        return self.append_choice(cursor, <int32_t> be32(take(cursor, 4)))

    cdef int append_choice(self, Cursor* cursor, int64_t number) except -1:
        if number < 0 or number >= len(self._texts):
            damaged(cursor, f"an enum of {len(self._texts)} constants does not have number {number}")
        return self.append_text(cursor, <bytes> self._texts[number])

    cdef int64_t choice_at(self, int64_t row) except -1:
        cdef int64_t size = 0
        cdef const uint8_t* place = self.value_at(row, &size)
        if size < 0:
            null_value()
        text = (<const char*> place)[:size]
        if text not in self._texts:
            unwritable(f"{text.decode(errors='replace')!r} is none of {[each.decode() for each in self._texts]}")
        return self._texts.index(text)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> self.choice_at(row))
        return 0


@cython.final
cdef class TextColumn(BytesColumn):
    """Texts that a Python function reads: values for which Arrow has no type.

    Parameters
    ----------
    read : callable
        Takes the bytes up to the end of the entry as a memory view; returns the text in UTF-8, or None, and how many bytes it took.
    write : callable
        Takes such a text, or None, and returns the bytes.
    """

    cdef object _read
    cdef object _write

    def __init__(self, read, write):
        self.format = "u"
        self._read = read
        self._write = write

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t size = 0
        cdef const uint8_t* place = self.value_at(row, &size)
        cdef bytes written = self._write(None if size < 0 else (<const char*> place)[:size])
        return buffer_append_bytes(out, <const char*> written, len(written))

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t left = cursor.end - cursor.at
        cdef int64_t used
        if left <= 0:
            too_short(cursor, 1)
        try:
            text, used = self._read(PyMemoryView_FromMemory(<char*> cursor.data + cursor.at, left, PyBUF_READ))
        except IndexError:
            return damaged(cursor, "the entry ends in the middle of a value")
        except ValueError as failure:
            return damaged(cursor, str(failure))
        cursor.at += used
        if text is None:
            return self.append_null(cursor)
        return self.append_text(cursor, <bytes?> text)


cdef enum TimeKind:
    DATE = 0
    TIME = 1
    DATE_TIME = 2
    INSTANT = 3
    SQL_TIMESTAMP = 4


cdef int64_t days_of(int64_t year, int month, int day) noexcept nogil:
    # Days since 1970-01-01 in the proleptic Gregorian calendar.
    cdef int64_t y = year - (month <= 2)
    cdef int64_t era = (y if y >= 0 else y - 399) // 400
    cdef int64_t of_era = y - era * 400
    cdef int64_t of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


cdef str OUTSIDE = "a time is outside of those that Arrow has in nanoseconds, the years 1678 to 2261" + EXACT


@cython.final
cdef class TimeColumn(StateColumn):
    """Dates and times of java.time, and SQL's timestamps, in nanoseconds.

    Parameters
    ----------
    kind : int
        0 for dates, 1 for times of day, 2 for both, 3 for instants, 4 for SQL's timestamps.
    """

    cdef TimeKind _kind
    cdef str _format

    def __init__(self, int kind):
        self._kind = <TimeKind> kind
        self._format = ("tdD", "ttn", "tsn:", "tsn:UTC", "tsn:UTC")[kind]

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t days = 0, seconds = 0, nanos = 0
        cdef const uint8_t* place
        cdef int64_t year
        spend(cursor)
        if self._kind == TimeKind.DATE or self._kind == TimeKind.DATE_TIME:
            place = take(cursor, 6)
            year = <int32_t> be32(place)
            if year == -0x80000000:
                if self._kind == TimeKind.DATE_TIME:
                    take(cursor, 7)
                cursor.values_left += 1
                return self.append_null(cursor)
            if not (1 <= place[4] <= 12 and 1 <= place[5] <= 31):
                damaged(cursor, f"there is no month {place[4]} with a day {place[5]}")
            days = days_of(year, place[4], place[5])
        if self._kind == TimeKind.DATE:
            if days != <int32_t> days:
                no_place(cursor, "a date is outside of those that Arrow has" + EXACT)
            (<int32_t*> buffer_append(&self.values, 4))[0] = <int32_t> days
            return bits_append(&self.validity, True)
        if self._kind == TimeKind.TIME or self._kind == TimeKind.DATE_TIME:
            place = take(cursor, 7)
            nanos = <int32_t> be32(place + 3)
            if <int8_t> place[0] == -128 and self._kind == TimeKind.TIME:
                cursor.values_left += 1
                return self.append_null(cursor)
            if not (place[0] < 24 and place[1] < 60 and place[2] < 60 and 0 <= nanos < 1000000000):
                damaged(cursor, "there is no such time of day")
            seconds = (place[0] * 60 + place[1]) * 60 + place[2]
            if -1000000 < days < 1000000:
                seconds += days * 86400
            else:
                no_place(cursor, OUTSIDE)
        else:
            place = take(cursor, 12)
            seconds = <int64_t> be64(place)
            nanos = <int32_t> be32(place + 8)
            if seconds == <int64_t> (<uint64_t> 1 << 63):
                cursor.values_left += 1
                return self.append_null(cursor)
            if not 0 <= nanos < 1000000000:
                damaged(cursor, f"a second does not have {nanos:,} nanoseconds")
            if self._kind == TimeKind.SQL_TIMESTAMP:  # milliseconds, whose fraction the nanoseconds repeat
                seconds = seconds // 1000 - (seconds % 1000 < 0)
        if seconds < -9223372036 or seconds >= 9223372036:
            no_place(cursor, OUTSIDE)
        (<int64_t*> buffer_append(&self.values, 8))[0] = seconds * 1000000000 + nanos
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        if self._kind == TimeKind.DATE:
            (<int32_t*> buffer_append(&self.values, 4))[0] = 0
        else:
            (<int64_t*> buffer_append(&self.values, 8))[0] = 0
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        return native_array(self._format, self.validity.length, &self.validity, &self.values, NULL)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, self._format)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t value, days = 0, nanos = 0, seconds
        cdef bint is_there
        row += self.source.offset
        is_there = there(&self.source, row)
        if self._kind == TimeKind.DATE:
            return write_day(out, (<const int32_t*> self.source.data)[row], is_there)
        value = (<const int64_t*> self.source.data)[row] if is_there else 0
        if self._kind == TimeKind.TIME or self._kind == TimeKind.DATE_TIME:
            days = floor_div(value, 86400000000000)
            if self._kind == TimeKind.DATE_TIME:
                write_day(out, days, is_there)
            elif days:
                unwritable("a time of day is not within a day")
            return write_time_of_day(out, value - days * 86400000000000, is_there)
        seconds = floor_div(value, 1000000000)
        nanos = value - seconds * 1000000000
        if self._kind == TimeKind.SQL_TIMESTAMP:
            seconds = seconds * 1000 + nanos // 1000000
        put64(<uint8_t*> buffer_append(out, 8), <uint64_t> seconds if is_there else <uint64_t> 1 << 63)
        if not is_there:
            nanos = 0 if self._kind == TimeKind.SQL_TIMESTAMP else -0x80000000
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> nanos)
        return 0


cdef inline int64_t floor_div(int64_t value, int64_t divisor) noexcept nogil:
    cdef int64_t quotient = value // divisor
    return quotient - (quotient * divisor > value)


cdef int write_day(Buffer* out, int64_t days, bint is_there) except -1:
    # Year, month and day of days since 1970-01-01 in the proleptic Gregorian calendar.
    cdef uint8_t* place = <uint8_t*> buffer_append(out, 6)
    cdef int64_t day = days + 719468
    cdef int64_t era = floor_div(day, 146097)
    cdef int64_t of_era = day - era * 146097
    cdef int64_t year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * year + year // 4 - year // 100)
    cdef int64_t shifted = (5 * of_year + 2) // 153
    cdef int64_t month = shifted + 3 if shifted < 10 else shifted - 9
    if not is_there:
        put32(place, 0x80000000)
        place[4], place[5] = 0x80, 0
        return 0
    put32(place, <uint32_t> (year + era * 400 + (month <= 2)))
    place[4], place[5] = <uint8_t> month, <uint8_t> (of_year - (153 * shifted + 2) // 5 + 1)
    return 0


cdef int write_time_of_day(Buffer* out, int64_t nanos, bint is_there) except -1:
    cdef uint8_t* place = <uint8_t*> buffer_append(out, 7)
    cdef int64_t seconds = nanos // 1000000000
    if not is_there:
        place[0], place[1], place[2] = 0x80, 0x80, 0
        put32(place + 3, 0x80000000)
        return 0
    place[0], place[1], place[2] = seconds // 3600, seconds // 60 % 60, seconds % 60
    put32(place + 3, <uint32_t> (nanos - seconds * 1000000000))
    return 0


cdef enum Flags:
    NO_FLAG = 0
    NULL_FLAG = 1   # a byte before each element: 0, or 1 if it is null
    THERE_FLAG = 2  # the other way around


cdef class ListColumn(StateColumn):
    """Lists, sets and arrays: how many elements, then the elements.

    Parameters
    ----------
    child : StateColumn
    flags : int
        1 if a byte before each element is 1 for null, 2 if it is 0 for null, 0 if there is none.
    """

    def __init__(self, StateColumn child not None, int flags=0):
        self.child = child
        self.flags = flags

    cdef int close(self, int64_t items) except -1:
        if not self.values.size:
            (<int32_t*> buffer_append(&self.values, 4))[0] = 0
        self.items += items
        (<int32_t*> buffer_append(&self.values, 4))[0] = <int32_t> self.items
        return bits_append(&self.validity, True)

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t count = read_count(cursor), i
        if self.items + count > 0x7FFFFFFF:
            no_place(cursor, "a batch has more than 2,147,483,647 elements of lists")
        spend(cursor)
        for i in range(count):
            if self.flags != Flags.NO_FLAG and (take(cursor, 1)[0] != 0) == (self.flags == Flags.NULL_FLAG):
                self.child.append_null(cursor)
            else:
                self.child.read(cursor)
        return self.close(count)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        self.close(0)
        # The last bit is that of the list: it is null.
        self.validity.bytes.data[(self.validity.length - 1) >> 3] &= ~(1 << ((self.validity.length - 1) & 7))
        self.validity.zeros += 1
        return 0

    cdef NativeArray take_array(self):
        self.items = 0
        return native_array(
            "+l", self.validity.length, &self.validity, &self.values, NULL, [self.child.take_array()], ["item"]
        )

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        bind_values(&self.source, schema, array, offset, "+l")
        return self.child.bind(schema.children[0], array.children[0], array.children[0].offset)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t begin = 0, end = 0, i
        cdef bint is_there
        elements_at(&self.source, row, &begin, &end)
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> (end - begin))
        for i in range(begin, end):
            if self.flags != Flags.NO_FLAG:
                is_there = not self.child.is_null(i)
                (<uint8_t*> buffer_append(out, 1))[0] = is_there == (self.flags == Flags.THERE_FLAG)
                if not is_there:
                    continue
            self.child.write(i, out)
        return 0

    cdef int64_t size_bytes(self):
        return self.values.size + self.child.size_bytes()


cdef class MapColumn(StateColumn):
    """Maps: how many entries, then each key, a byte that is 1 for null, and the value.

    Parameters
    ----------
    key, value : StateColumn
    exact : bool
        Make lists of structs, whose keys may be null, as they may in Java.
    """

    def __init__(self, StateColumn key not None, StateColumn value not None, bint exact=False):
        self.key = key
        self.value = value
        self._exact = exact

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t count = read_count(cursor), i
        for i in range(count):
            self.key.read(cursor)
            if take(cursor, 1)[0]:
                self.value.append_null(cursor)
            else:
                self.value.read(cursor)
        return self.close(cursor, count)

    cdef int close(self, Cursor* cursor, int64_t entries) except -1:
        if not self._exact and self.key.validity.zeros:
            no_place(cursor, "a map has a null key, which Arrow's maps do not have" + EXACT)
        if self.items + entries > 0x7FFFFFFF:
            no_place(cursor, "a batch has more than 2,147,483,647 entries of maps")
        self.items += entries
        return self.end_map(cursor, True)

    cdef int end_map(self, Cursor* cursor, bint is_valid) except -1:
        spend(cursor)
        if not self.values.size:
            (<int32_t*> buffer_append(&self.values, 4))[0] = 0
        (<int32_t*> buffer_append(&self.values, 4))[0] = <int32_t> self.items
        return bits_append(&self.validity, is_valid)

    cdef int append_null(self, Cursor* cursor) except -1:
        return self.end_map(cursor, False)

    cdef NativeArray take_array(self):
        cdef NativeArray entries = native_array(
            "+s", self.items, NULL, NULL, NULL, [self.key.take_array(), self.value.take_array()], ["key", "value"]
        )
        self.items = 0
        if not self._exact:
            entries.schema.flags = 0
            entries.schema.children[0].flags = 0
        return native_array(
            "+l" if self._exact else "+m",
            self.validity.length,
            &self.validity,
            &self.values,
            NULL,
            [entries],
            ["item" if self._exact else "entries"],
        )

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        cdef const ArrowArray* entries = array.children[0]
        cdef const ArrowSchema* of_entries = schema.children[0]
        bind_values(&self.source, schema, array, offset, "+l" if self._exact else "+m")
        self.key.bind(of_entries.children[0], entries.children[0], entries.offset + entries.children[0].offset)
        return self.value.bind(of_entries.children[1], entries.children[1], entries.offset + entries.children[1].offset)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t begin = 0, end = 0, i
        cdef bint is_null
        elements_at(&self.source, row, &begin, &end)
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> (end - begin))
        for i in range(begin, end):
            self.key.write(i, out)
            is_null = self.value.is_null(i)
            (<uint8_t*> buffer_append(out, 1))[0] = is_null
            if not is_null:
                self.value.write(i, out)
        return 0

    cdef int64_t size_bytes(self):
        return self.values.size + self.key.size_bytes() + self.value.size_bytes()


cdef class StructColumn(StateColumn):
    """Tuples, and whatever else is one value after the other.

    Parameters
    ----------
    names : list of str
    children : list of StateColumn
    """

    def __init__(self, list names, list children):
        self._names = names
        self._children = children
        self._width = len(children)

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t i
        spend(cursor)
        for i in range(self._width):
            (<StateColumn> self._children[i]).read(cursor)
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        cdef int64_t i
        spend(cursor)
        for i in range(self._width):
            (<StateColumn> self._children[i]).append_null(cursor)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        cdef int64_t length = self.validity.length
        cdef list arrays = [(<StateColumn> child).take_array() for child in self._children]
        return native_array("+s", length, &self.validity, NULL, NULL, arrays, self._names)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        cdef int64_t i
        bind_values(&self.source, schema, array, offset, "+s")
        if schema.n_children != len(self._children):
            unwritable(f"a struct has {schema.n_children} fields instead of {len(self._children)}")
        for i in range(schema.n_children):
            (<StateColumn> self._children[i]).bind(schema.children[i], array.children[i], offset + array.children[i].offset)
        return 0

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t i
        if self.is_null(row):
            return null_value()
        for i in range(self._width):
            (<StateColumn> self._children[i]).write(row, out)
        return 0

    cdef int64_t size_bytes(self):
        cdef int64_t size = self.validity.bytes.size
        for child in self._children:
            size += (<StateColumn> child).size_bytes()
        return size


@cython.final
cdef class RowColumn(StructColumn):
    """Flink's Row: a mask of the kind's two bits and one for each null, then the fields; the last child is the kind.

    Parameters
    ----------
    names : list of str
    children : list of StateColumn
    has_kind : bool
        Whether the mask has the bits of the kind.
    """

    cdef bint _has_kind

    def __init__(self, list names, list children, bint has_kind=True):
        super().__init__(names, children)
        self._has_kind = has_kind
        if has_kind:
            self._width -= 1

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t skipped = 2 if self._has_kind else 0, i, bit
        cdef const uint8_t* mask = take(cursor, (self._width + skipped + 7) >> 3)
        spend(cursor)
        for i in range(self._width):
            bit = i + skipped
            if mask[bit >> 3] >> (7 - (bit & 7)) & 1:
                (<StateColumn> self._children[i]).append_null(cursor)
            else:
                (<StateColumn> self._children[i]).read(cursor)
        if self._has_kind:
            (<ChoiceColumn> self._children[self._width]).append_choice(cursor, mask[0] >> 7 | (mask[0] >> 6 & 1) << 1)
        return bits_append(&self.validity, True)

    cdef int append_null(self, Cursor* cursor) except -1:
        if self._has_kind:
            (<StateColumn> self._children[self._width]).append_null(cursor)
        return StructColumn.append_null(self, cursor)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t skipped = 2 if self._has_kind else 0, i, bit, kind
        cdef int64_t begin = out.size, size = (self._width + skipped + 7) >> 3
        if self.is_null(row):
            return null_value()
        memset(buffer_append(out, size), 0, size)
        if self._has_kind:
            kind = (<ChoiceColumn> self._children[self._width]).choice_at(row)
            out.data[begin] = (kind & 1) << 7 | (kind >> 1) << 6
        for i in range(self._width):
            if (<StateColumn> self._children[i]).is_null(row):
                bit = i + skipped
                out.data[begin + (bit >> 3)] |= 1 << (7 - (bit & 7))
            else:
                (<StateColumn> self._children[i]).write(row, out)
        return 0


cdef enum PojoFlags:
    IS_NULL = 1
    IS_EXACT = 2
    IS_SUBCLASS = 4
    IS_REGISTERED = 8


@cython.final
cdef class PojoColumn(StructColumn):
    """POJOs of a class and its subclasses; each field has a byte that is 1 for null.

    Parameters
    ----------
    names : list of str
    children : list of StateColumn
        The fields of all classes; the last one is the name of the class if there are subclasses.
    fields : list of list of int
        For each class the numbers of its fields' children in the order in which they are written; the class itself is first.
    classes : list of str
        Names of the classes.
    registered : list of int
        Number of the class of each tag, or -1 if its serializer is not known.
    """

    cdef list _fields
    cdef list _absent
    cdef dict _subclasses
    cdef list _registered
    cdef bint _has_class

    def __init__(self, list names, list children, list fields, list classes, list registered):
        super().__init__(names, children)
        self._has_class = len(classes) > 1
        self._fields = fields
        of_fields = set(range(len(children) - self._has_class))
        self._absent = [sorted(of_fields.difference(each)) for each in fields]
        self._subclasses = {name: number for number, name in enumerate(classes)}
        self._registered = registered

    cdef int read(self, Cursor* cursor) except -1:
        cdef uint8_t flags = take(cursor, 1)[0]
        cdef int64_t number = 0, tag, child
        if flags & PojoFlags.IS_NULL:
            return self.append_null(cursor)
        if flags & PojoFlags.IS_SUBCLASS:
            name = read_java_text(cursor)
            found = self._subclasses.get(name)
            if found is None:
                no_place(cursor, f"the savepoint has no serializer of the subclass {name}")
            number = found
        elif flags & PojoFlags.IS_REGISTERED:
            tag = take(cursor, 1)[0]
            if tag >= len(self._registered):
                damaged(cursor, f"no subclass is registered with the tag {tag}")
            number = self._registered[tag]
            if number < 0:
                no_place(cursor, f"the savepoint has no serializer of the subclass with the tag {tag}")
        elif not flags & PojoFlags.IS_EXACT:
            damaged(cursor, f"a POJO does not have the flags {flags}")
        if number and take(cursor, 1)[0] != PojoFlags.IS_EXACT:
            damaged(cursor, "a subclass of a POJO is not of that class")
        spend(cursor)
        for child in self._fields[number]:
            if take(cursor, 1)[0]:
                (<StateColumn> self._children[child]).append_null(cursor)
            else:
                (<StateColumn> self._children[child]).read(cursor)
        for child in self._absent[number]:
            (<StateColumn> self._children[child]).append_null(cursor)
        if self._has_class:
            (<ChoiceColumn> self._children[self._width - 1]).append_choice(cursor, number)
        return bits_append(&self.validity, True)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t number = 0, child
        cdef bytes name
        cdef uint8_t* place
        cdef bint is_null
        if self.is_null(row):
            (<uint8_t*> buffer_append(out, 1))[0] = PojoFlags.IS_NULL
            return 0
        if self._has_class:
            number = (<ChoiceColumn> self._children[self._width - 1]).choice_at(row)
        if number and number in self._registered:
            place = <uint8_t*> buffer_append(out, 2)
            place[0], place[1] = PojoFlags.IS_REGISTERED, self._registered.index(number)
        elif number:
            name = (<ChoiceColumn> self._children[self._width - 1])._texts[number]
            place = <uint8_t*> buffer_append(out, 3)
            place[0], place[1], place[2] = PojoFlags.IS_SUBCLASS, len(name) >> 8, len(name) & 0xFF
            buffer_append_bytes(out, <const char*> name, len(name))
        (<uint8_t*> buffer_append(out, 1))[0] = PojoFlags.IS_EXACT
        for child in self._fields[number]:
            is_null = (<StateColumn> self._children[child]).is_null(row)
            (<uint8_t*> buffer_append(out, 1))[0] = is_null
            if not is_null:
                (<StateColumn> self._children[child]).write(row, out)
        return 0


cdef str read_java_text(Cursor* cursor):
    # Java's modified UTF-8, of ASCII: names of classes.
    cdef int64_t size = be16(take(cursor, 2))
    cdef const uint8_t* place = take(cursor, size)
    return (<const char*> place)[:size].decode("utf-8", "backslashreplace")


@cython.final
cdef class EitherColumn(StructColumn):
    """Flink's Either and the elements of co-groups: a byte that is 1 for the first of two columns, then the value.

    Parameters
    ----------
    names, children : list
    second : int
        The byte that is written for the second column.
    """

    cdef uint8_t _second

    def __init__(self, list names, list children, int second):
        super().__init__(names, children)
        self._second = second

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef StateColumn first = self._children[0], second = self._children[1]
        if self.is_null(row) or first.is_null(row) == second.is_null(row):
            unwritable("one of two values is there, and not both or neither")
        (<uint8_t*> buffer_append(out, 1))[0] = self._second if first.is_null(row) else 1
        return second.write(row, out) if first.is_null(row) else first.write(row, out)

    cdef int read(self, Cursor* cursor) except -1:
        cdef bint is_left = take(cursor, 1)[0] == 1
        spend(cursor)
        (<StateColumn> self._children[not is_left]).read(cursor)
        (<StateColumn> self._children[is_left]).append_null(cursor)
        return bits_append(&self.validity, True)


@cython.final
cdef class RecordColumn(StructColumn):
    """Stream records in windows with an evictor: a byte that is 0 if a timestamp follows, the timestamp, the value."""

    cdef int read(self, Cursor* cursor) except -1:
        cdef uint8_t tag = take(cursor, 1)[0]
        if tag > 1:
            damaged(cursor, f"an element of a window is a record, which does not have the tag {tag}")
        spend(cursor)
        if tag == 0:
            (<StateColumn> self._children[0]).read(cursor)
        else:
            (<StateColumn> self._children[0]).append_null(cursor)
        (<StateColumn> self._children[1]).read(cursor)
        return bits_append(&self.validity, True)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef StateColumn timestamp = self._children[0]
        cdef bint has_none = timestamp.is_null(row)
        (<uint8_t*> buffer_append(out, 1))[0] = has_none
        if not has_none:
            timestamp.write(row, out)
        return (<StateColumn> self._children[1]).write(row, out)


cdef class WrappingColumn(StateColumn):
    """Values of another column, which are written in another way.

    Parameters
    ----------
    child : StateColumn
    """

    def __init__(self, StateColumn child not None):
        self.child = child

    cdef int append_null(self, Cursor* cursor) except -1:
        return self.child.append_null(cursor)

    cdef NativeArray take_array(self):
        return self.child.take_array()

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return self.child.bind(schema, array, offset)

    cdef bint is_null(self, int64_t row) noexcept:
        return self.child.is_null(row)

    cdef int64_t size_bytes(self):
        return self.child.size_bytes()


@cython.final
cdef class NullableColumn(WrappingColumn):
    """Values of NullableSerializer: a byte that is 1 for null and then padding, or the value.

    Parameters
    ----------
    child : StateColumn
    padding : int
        Bytes that follow the flag of a null.
    """

    cdef int64_t _padding

    def __init__(self, StateColumn child not None, int64_t padding):
        super().__init__(child)
        self._padding = padding

    cdef int read(self, Cursor* cursor) except -1:
        if take(cursor, 1)[0] == 0:
            return self.child.read(cursor)
        take(cursor, self._padding)
        return self.child.append_null(cursor)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef bint is_null = self.child.is_null(row)
        (<uint8_t*> buffer_append(out, 1))[0] = is_null
        if is_null:
            memset(buffer_append(out, self._padding), 0, self._padding)
            return 0
        return self.child.write(row, out)


@cython.final
cdef class NothingColumn(StateColumn):
    """Values that have one value only: null in Arrow.

    Parameters
    ----------
    size : int
        Bytes of a value.
    byte : int
        Each of these bytes.
    """

    cdef int64_t _size
    cdef uint8_t _byte
    cdef int64_t _length

    def __init__(self, int64_t size=1, int byte=0):
        self._size = size
        self._byte = byte

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, "n")

    cdef int write(self, int64_t row, Buffer* out) except -1:
        memset(buffer_append(out, self._size), self._byte, self._size)
        return 0

    cdef int read(self, Cursor* cursor) except -1:
        take(cursor, self._size)
        return self.append_null(cursor)

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        self._length += 1
        return 0

    cdef NativeArray take_array(self):
        cdef int64_t length = self._length
        cdef NativeArray made = native_array("n", length, NULL, NULL, NULL)
        made.array.null_count = length
        self._length = 0
        return made

"""Columns of Avro's values as Flink's serializer writes them: as Avro does, but numbers and sizes big endian, of a fixed size."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, NativeArray, native_array
from flinkcore._native.memory cimport Buffer, bits_append, buffer_append, buffer_append_bytes
from flinkcore._native.state_columns cimport (
    BytesColumn,
    Cursor,
    ListColumn,
    MapColumn,
    StateColumn,
    StructColumn,
    WrappingColumn,
    be32,
    bind_values,
    damaged,
    elements_at,
    no_place,
    null_value,
    put32,
    read_count,
    spend,
    take,
    there,
    unwritable,
)


cdef int64_t read_block_count(Cursor* cursor, int64_t items) except -1:
    # Returns how many items the next block of a list or map has, 0 after the last one; none is shorter than a byte.
    cdef int64_t count = 0
    cdef uint8_t byte
    cdef int i
    for i in range(5):
        byte = take(cursor, 1)[0]
        count |= <int64_t> (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    else:
        damaged(cursor, "the number of items of a block is too long")
    if count > cursor.end - cursor.at:
        damaged(cursor, f"{count:,} items cannot be in {cursor.end - cursor.at:,} bytes")
    if items + count > 0x7FFFFFFF:
        no_place(cursor, "a batch has more than 2,147,483,647 items of lists")
    return count


cdef int write_block_count(Buffer* out, int64_t count) except -1:
    while count >= 0x80:
        (<uint8_t*> buffer_append(out, 1))[0] = count & 0x7F | 0x80
        count >>= 7
    (<uint8_t*> buffer_append(out, 1))[0] = <uint8_t> count
    return 0


@cython.final
cdef class BlockListColumn(ListColumn):
    """Arrays of Avro: blocks of items, each after their number, and 0.

    Parameters
    ----------
    child : StateColumn
    """

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t count, total = 0, i
        spend(cursor)
        while True:
            count = read_block_count(cursor, self.items + total)
            if count == 0:
                return self.close(total)
            for i in range(count):
                self.child.read(cursor)
            total += count

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t begin = 0, end = 0, i
        elements_at(&self.source, row, &begin, &end)
        if end > begin:
            write_block_count(out, end - begin)
        for i in range(begin, end):
            self.child.write(i, out)
        return write_block_count(out, 0)


@cython.final
cdef class BlockMapColumn(MapColumn):
    """Maps of Avro: blocks of keys with their values, each after their number, and 0.

    Parameters
    ----------
    key, value : StateColumn
    exact : bool
        Make lists of structs.
    """

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t count, total = 0, i
        while True:
            count = read_block_count(cursor, self.items + total)
            if count == 0:
                return self.close(cursor, total)
            for i in range(count):
                self.key.read(cursor)
                self.value.read(cursor)
            total += count

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t begin = 0, end = 0, i
        elements_at(&self.source, row, &begin, &end)
        if end > begin:
            write_block_count(out, end - begin)
        for i in range(begin, end):
            self.key.write(i, out)
            self.value.write(i, out)
        return write_block_count(out, 0)


@cython.final
cdef class OptionalColumn(WrappingColumn):
    """Unions of one type, and null: the number of the branch, then the value.

    Parameters
    ----------
    child : StateColumn
    branch : int
        Number of the type in the union.
    null_branch : int
        Number of null, or -1 if the union does not have it.
    """

    cdef int32_t _branch
    cdef int32_t _null_branch

    def __init__(self, StateColumn child not None, int32_t branch, int32_t null_branch):
        super().__init__(child)
        self._branch = branch
        self._null_branch = null_branch

    cdef int read(self, Cursor* cursor) except -1:
        cdef int32_t branch = <int32_t> be32(take(cursor, 4))
        if branch == self._branch:
            return self.child.read(cursor)
        if branch < 0 or branch != self._null_branch:
            damaged(cursor, f"a union does not have a branch {branch}")
        return self.child.append_null(cursor)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef bint is_null = self.child.is_null(row)
        if is_null and self._null_branch < 0:
            return null_value()
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> (self._null_branch if is_null else self._branch))
        return 0 if is_null else self.child.write(row, out)


@cython.final
cdef class UnionColumn(StructColumn):
    """Unions of several types: the number of the branch, then the value, as a struct with a field for each type but null.

    Parameters
    ----------
    names : list of str
    children : list of StateColumn
    null_branch : int
        Number of null in the union, or -1 if it does not have it.
    """

    cdef int32_t _null_branch

    def __init__(self, list names, list children, int32_t null_branch):
        super().__init__(names, children)
        self._null_branch = null_branch

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t branch = <int32_t> be32(take(cursor, 4)), i
        if branch == self._null_branch and branch >= 0:
            return self.append_null(cursor)
        # Null has no child.
        if 0 <= self._null_branch < branch:
            branch -= 1
        if branch < 0 or branch >= self._width:
            damaged(cursor, "a union does not have such a branch")
        spend(cursor)
        for i in range(self._width):
            if i == branch:
                (<StateColumn> self._children[i]).read(cursor)
            else:
                (<StateColumn> self._children[i]).append_null(cursor)
        return bits_append(&self.validity, True)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t branch = -1, i
        if not self.is_null(row):
            for i in range(self._width):
                if not (<StateColumn> self._children[i]).is_null(row):
                    if branch >= 0:
                        unwritable("a value of a union has several types at once")
                    branch = i
        if branch < 0:
            if self._null_branch < 0:
                return null_value()
            put32(<uint8_t*> buffer_append(out, 4), <uint32_t> self._null_branch)
            return 0
        put32(<uint8_t*> buffer_append(out, 4), <uint32_t> (branch + (0 <= self._null_branch <= branch)))
        return (<StateColumn> self._children[branch]).write(row, out)


@cython.final
cdef class FixedBytesColumn(BytesColumn):
    """Values of a fixed number of bytes.

    Parameters
    ----------
    size : int
    """

    cdef int64_t _size

    def __init__(self, int64_t size):
        self.format = "z"
        self._size = size

    cdef int read(self, Cursor* cursor) except -1:
        return self.append_bytes(cursor, take(cursor, self._size), self._size)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef int64_t size = 0
        cdef const uint8_t* place = self.value_at(row, &size)
        if size < 0:
            return null_value()
        if size != self._size:
            unwritable(f"a value has {size:,} bytes instead of {self._size:,}")
        return buffer_append_bytes(out, place, size)


cdef enum Widths:
    NARROW = 16
    WIDE = 32


@cython.final
cdef class DecimalColumn(StateColumn):
    """Decimals: the unscaled value, big endian.

    Parameters
    ----------
    precision, scale : int
        Up to 76 digits.
    size : int
        Bytes of every value, or -1 if their number comes first.
    """

    cdef str _format
    cdef object _limit
    cdef bint _is_short
    cdef int64_t _short_limit
    cdef int64_t _width
    cdef int64_t _size

    def __init__(self, object precision, object scale, int64_t size):
        # Powers of Python's integers: those of C would be floating-point numbers.
        self._width = Widths.NARROW if precision <= 38 else Widths.WIDE
        self._format = f"d:{precision},{scale}" + ("" if precision <= 38 else ",256")
        self._limit = 10**precision
        self._is_short = precision <= 18  # so that a value of 8 bytes may be too large
        self._short_limit = 10 ** min(precision, 18)
        self._size = size

    cdef int read(self, Cursor* cursor) except -1:
        cdef int64_t size = self._size if self._size >= 0 else read_count(cursor), value, i
        cdef const uint8_t* place = take(cursor, size)
        cdef uint8_t* little
        cdef uint8_t sign
        spend(cursor)
        if size == 0:
            damaged(cursor, "a decimal has no bytes")
        sign = 0xFF if place[0] >> 7 else 0
        while size > 1 and place[0] == sign and (place[1] ^ sign) < 0x80:
            place += 1
            size -= 1
        if size <= 8:
            value = -1 if sign else 0
            for i in range(size):
                value = <int64_t> (<uint64_t> value << 8 | place[i])
            if self._is_short and (value >= self._short_limit or value <= -self._short_limit):
                self.refuse(cursor)
        elif abs(int.from_bytes((<const char*> place)[:size], "big", signed=True)) >= self._limit:
            self.refuse(cursor)
        little = <uint8_t*> buffer_append(&self.values, self._width)
        memset(little, sign, self._width)
        for i in range(size):
            little[i] = place[size - 1 - i]
        return bits_append(&self.validity, True)

    cdef int refuse(self, Cursor* cursor) except -1:
        return no_place(cursor, "a decimal has more digits than the precision of its schema")

    cdef int append_null(self, Cursor* cursor) except -1:
        spend(cursor)
        memset(buffer_append(&self.values, self._width), 0, self._width)
        return bits_append(&self.validity, False)

    cdef NativeArray take_array(self):
        return native_array(self._format, self.validity.length, &self.validity, &self.values, NULL)

    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1:
        return bind_values(&self.source, schema, array, offset, self._format)

    cdef int write(self, int64_t row, Buffer* out) except -1:
        cdef const uint8_t* little
        cdef uint8_t* place
        cdef int64_t size = self._width, i
        cdef uint8_t sign
        row += self.source.offset
        if not there(&self.source, row):
            return null_value()
        little = self.source.data + row * self._width
        sign = 0xFF if little[size - 1] >> 7 else 0
        while size > 1 and little[size - 1] == sign and (little[size - 2] ^ sign) < 0x80:
            size -= 1
        if self._size < 0:
            put32(<uint8_t*> buffer_append(out, 4), <uint32_t> size)
        elif size > self._size:
            unwritable(f"a decimal needs {size} bytes, and its type has {self._size}")
        else:
            memset(buffer_append(out, self._size - size), sign, self._size - size)
        place = <uint8_t*> buffer_append(out, size)
        for i in range(size):
            place[i] = little[size - 1 - i]
        return 0

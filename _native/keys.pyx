"""Keys in a form that kernels hash and compare: equal where Java finds them equal.

Every NaN is one key; -0.0 and 0.0 are two.

Keys of batches have one of two uniform forms. A single column of at most 8 bytes is its values as int64; a single string or binary
column is its own bytes, borrowed. A composite key is one run of bytes per row:

    flags         fixed part                                      varying part
    | 1 bit per | value or, of all varying fields but the last, | bytes of the varying |
    | field     | uint32 length                                 | fields, end to end   |

A flag is set where the field is not null; the fixed part of a null field is zero. So equal keys have equal bytes. A single column has this
form, too, where null is a key like others.

Keys that are Python objects have a canonical form (`canonical_key`).
"""

import pickle
from datetime import datetime, timezone
from decimal import Decimal
from io import BytesIO
from numbers import Rational, Real

import cython
from libc.math cimport signbit
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from flinkcore.errors import DataError, SchemaError

from flinkcore._native.arrow cimport (
    ArrowSchema,
    Column,
    ColumnType,
    NativeArray,
    RecordBatch,
    advise_large,
    bool_value,
    bytes_value,
    checked_schema,
    field_name,
    find_column_type,
    is_valid,
    native_array,
    record_batch_of,
)
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.memory cimport BitBuffer, Buffer, buffer_free, buffer_reserve, buffer_resize, grow


cdef extern from "Python.h":
    bint Py_EnterRecursiveCall(const char* where) noexcept  # any number but 0: an exception is set
    void Py_LeaveRecursiveCall()


cdef enum:
    MILLISECONDS_OF_DAY = 86_400_000

cdef int64_t FIRST_DATE = -9_223_372_036_828_800_000  # the first midnight that int64 holds, in milliseconds

cdef dict _LAST_TIMES = {"tts": 86_399, "ttm": 86_399_999, "ttu": 86_399_999_999, "ttn": 86_399_999_999_999}


# ---- columns to keys ---------------------------------------------------------------------------------------------


cdef inline int64_t _whole_day(int64_t milliseconds) noexcept nogil:
    # A date64 is a date, whatever its time of day.
    cdef int64_t rest = milliseconds % MILLISECONDS_OF_DAY  # truncates
    if rest < 0:
        rest += MILLISECONDS_OF_DAY
    return <int64_t> (<uint64_t> milliseconds - <uint64_t> rest)  # `_check_day` has refused what wraps around


cdef void _widen_values(const Column* column, int64_t* out) noexcept nogil:
    # Values of a column of at most 8 bytes as int64; floats as canonical bits, as Java compares them, a date64 as its day.
    cdef ColumnType t = column.type
    cdef int64_t row, n = column.length
    if t == ColumnType.BOOL:
        for row in range(n):
            out[row] = bool_value(column, row)
    elif t == ColumnType.FLOAT64:
        for row in range(n):
            out[row] = <int64_t> double_key_bits((<const uint64_t*> column.values)[row])
    elif t == ColumnType.FLOAT32:
        for row in range(n):
            out[row] = float_key_bits((<const uint32_t*> column.values)[row])
    elif t == ColumnType.DATE64:
        for row in range(n):
            out[row] = _whole_day((<const int64_t*> column.values)[row])
    elif t == ColumnType.UINT32:
        for row in range(n):
            out[row] = (<const uint32_t*> column.values)[row]
    elif t == ColumnType.UINT16:
        for row in range(n):
            out[row] = (<const uint16_t*> column.values)[row]
    elif t == ColumnType.UINT8:
        for row in range(n):
            out[row] = (<const uint8_t*> column.values)[row]
    elif column.byte_width == 4:
        for row in range(n):
            out[row] = (<const int32_t*> column.values)[row]
    elif column.byte_width == 2:
        for row in range(n):
            out[row] = (<const int16_t*> column.values)[row]
    else:
        for row in range(n):
            out[row] = (<const int8_t*> column.values)[row]


cdef inline bint _is_null(const KeyField* fields, int64_t field, int64_t row) noexcept nogil:
    while field >= 0:
        if not is_valid(fields[field].column, row):
            return True
        field = fields[field].parent
    return False


cdef inline void _copy_short(uint8_t* to, const uint8_t* start, int64_t length) noexcept nogil:
    # Most keys are short: a call of memcpy would cost more than the bytes.
    cdef uint64_t low, high
    cdef int64_t i
    if length > 16:
        memcpy(to, start, length)
    elif length >= 8:  # two words, which overlap if there are less than 16 bytes
        memcpy(&low, start, 8)
        memcpy(&high, start + length - 8, 8)
        memcpy(to, &low, 8)
        memcpy(to + length - 8, &high, 8)
    else:
        for i in range(length):
            to[i] = start[i]


cdef void _write_words(
    const uint8_t* values, int64_t width, int64_t n, const int64_t* offsets, uint8_t* to
) noexcept nogil:
    # With a constant width, a memcpy is one instruction.
    cdef int64_t row
    if width == 8:
        for row in range(n):
            memcpy(to + offsets[row], values + row * 8, 8)
    elif width == 4:
        for row in range(n):
            memcpy(to + offsets[row], values + row * 4, 4)
    elif width == 16:
        for row in range(n):
            memcpy(to + offsets[row], values + row * 16, 16)
    elif width == 2:
        for row in range(n):
            memcpy(to + offsets[row], values + row * 2, 2)
    elif width == 1:
        for row in range(n):
            to[offsets[row]] = values[row]
    else:
        for row in range(n):
            memcpy(to + offsets[row], values + row * width, width)


cdef void _write_fixed(const KeyField* field, int64_t n, const int64_t* offsets, uint8_t* data) noexcept nogil:
    cdef const Column* column = field.column
    cdef uint8_t* to = data + field.position
    cdef uint64_t double_bits
    cdef uint32_t float_bits
    cdef int64_t row, day
    if field.type == ColumnType.FLOAT64:
        for row in range(n):
            double_bits = double_key_bits((<const uint64_t*> column.values)[row])
            memcpy(to + offsets[row], &double_bits, 8)
    elif field.type == ColumnType.FLOAT32:
        for row in range(n):
            float_bits = float_key_bits((<const uint32_t*> column.values)[row])
            memcpy(to + offsets[row], &float_bits, 4)
    elif field.type == ColumnType.DATE64:
        for row in range(n):
            day = _whole_day((<const int64_t*> column.values)[row])
            memcpy(to + offsets[row], &day, 8)
    elif field.type == ColumnType.BOOL:
        for row in range(n):
            to[offsets[row]] = bool_value(column, row)
    else:
        _write_words(<const uint8_t*> column.values, field.width, n, offsets, to)


cdef void _write_varying(
    const KeyField* fields, int64_t f, int64_t n, const int64_t* offsets, int64_t* cursors, uint8_t* data
) noexcept nogil:
    cdef const KeyField* field = &fields[f]
    cdef const uint8_t* start
    cdef int64_t row, length
    cdef uint32_t length_bits
    for row in range(n):
        if field.nullable and _is_null(fields, f, row):
            length = 0
        else:
            length = bytes_value(field.column, row, &start)
            _copy_short(data + cursors[row], start, length)
            cursors[row] += length
        if field.width:
            length_bits = <uint32_t> length
            memcpy(data + offsets[row] + field.position, &length_bits, 4)


cdef int64_t _row_beyond_day(
    const KeyField* fields, int64_t field, int64_t n, int64_t least, int64_t last
) noexcept nogil:
    # Returns the first row whose time is not in [least, last], or -1.
    cdef const Column* column = fields[field].column
    cdef int64_t row, value
    for row in range(n):
        if column.byte_width == 4:
            value = (<const int32_t*> column.values)[row]
        else:
            value = (<const int64_t*> column.values)[row]
        if not least <= value <= last and not (fields[field].nullable and _is_null(fields, field, row)):
            return row
    return -1


cdef void _write_nulls(
    const KeyField* fields, int64_t f, int64_t n, const int64_t* offsets, uint8_t* data
) noexcept nogil:
    # Arrow leaves open what lies under a null: zeros make bytes of equal keys equal.
    cdef int64_t row
    for row in range(n):
        if _is_null(fields, f, row):
            data[offsets[row] + (f >> 3)] &= <uint8_t> ~(1 << (f & 7))
            memset(data + offsets[row] + fields[f].position, 0, fields[f].width)


cdef int64_t _measure_composite(
    const KeyField* fields, int64_t n_fields, int64_t fixed_size, int64_t n, int64_t* offsets
) noexcept nogil:
    # Fills the offsets (n + 1,) of composite keys; -1, or the field that has a value too long for its length.
    cdef const uint8_t* start
    cdef int64_t f, row, length
    offsets[0] = 0
    for row in range(n):
        offsets[row + 1] = fixed_size
    for f in range(n_fields):
        if not fields[f].varying:
            continue
        for row in range(n):
            if fields[f].nullable and _is_null(fields, f, row):
                continue
            length = bytes_value(fields[f].column, row, &start)
            if fields[f].width and length > <int64_t> 0xFFFFFFFF:
                return f
            offsets[row + 1] += length
    for row in range(n):
        offsets[row + 1] += offsets[row]
    return -1


cdef void _write_composite(
    const KeyField* fields,
    int64_t n_fields,
    int64_t fixed_size,
    int64_t n,
    const int64_t* offsets,
    int64_t* cursors,
    uint8_t* data,
) noexcept nogil:
    # Writes n composite keys; the cursors (n,) are scratch.
    cdef int64_t f, row
    cdef uint8_t flags
    # Flags are all set, and those of nulls cleared afterwards: most fields are not null.
    for f in range(0, n_fields, 8):
        flags = 0xFF if n_fields - f >= 8 else (1 << (n_fields - f)) - 1
        for row in range(n):
            data[offsets[row] + (f >> 3)] = flags
    for row in range(n):
        cursors[row] = offsets[row] + fixed_size
    for f in range(n_fields):
        if fields[f].varying:
            _write_varying(fields, f, n, offsets, cursors, data)
        elif fields[f].width:
            _write_fixed(&fields[f], n, offsets, data)
        if fields[f].nullable:
            _write_nulls(fields, f, n, offsets, data)


# ---- keys to columns ---------------------------------------------------------------------------------------------


cdef int _pack_bits(
    const uint8_t* bytes, const int64_t* offsets, int64_t stride, uint8_t mask, int64_t n, BitBuffer* bits
) except -1 nogil:
    # Bit i is set where the byte at offsets[i] (or i * stride) has a bit of the mask. `bits` is empty before.
    cdef int64_t i, zeros = 0
    cdef bint value
    buffer_reserve(&bits.bytes, (n + 7) >> 3)
    bits.bytes.size = (n + 7) >> 3
    if n:
        memset(bits.bytes.data, 0, bits.bytes.size)
    for i in range(n):
        value = (bytes[offsets[i] if offsets != NULL else i * stride] & mask) != 0
        bits.bytes.data[i >> 3] |= <uint8_t> (value << (i & 7))
        zeros += not value
    bits.length = n
    bits.zeros = zeros
    return 0


cdef int _narrow_values(const int64_t* values, int64_t width, int64_t n, Buffer* out) except -1 nogil:
    # The reverse of _widen_values, to values of 4, 2 or 1 bytes.
    cdef int64_t i
    buffer_reserve(out, n * width)
    out.size = n * width
    if width == 4:
        for i in range(n):
            (<uint32_t*> out.data)[i] = <uint32_t> values[i]
    elif width == 2:
        for i in range(n):
            (<uint16_t*> out.data)[i] = <uint16_t> values[i]
    else:
        for i in range(n):
            out.data[i] = <uint8_t> values[i]
    return 0


cdef int _read_fixed(
    const uint8_t* source, const int64_t* offsets, int64_t width, int64_t n, Buffer* out
) except -1 nogil:
    # A field's fixed values, from `source`, where that of the key at offset 0 would lie.
    cdef int64_t i
    buffer_reserve(out, n * width)
    out.size = n * width
    if width == 8:
        for i in range(n):
            memcpy(out.data + i * 8, source + offsets[i], 8)
    elif width == 4:
        for i in range(n):
            memcpy(out.data + i * 4, source + offsets[i], 4)
    else:
        for i in range(n):
            memcpy(out.data + i * width, source + offsets[i], width)
    return 0


cdef int _read_varying(
    const KeyField* field,
    const uint8_t* data,
    const int64_t* offsets,
    int64_t n,
    int64_t* cursors,
    Buffer* starts,
    Buffer* bytes,
) except -1 nogil:
    # Reads the offsets of a varying field as int64 from 0, and its bytes; moves the cursors (n,) past them.
    cdef int64_t i, length
    cdef uint32_t length_bits
    cdef int64_t* out
    buffer_reserve(starts, (n + 1) * 8)
    starts.size = (n + 1) * 8
    out = <int64_t*> starts.data
    out[0] = 0
    for i in range(n):
        if field.width:
            memcpy(&length_bits, data + offsets[i] + field.position, 4)
            length = length_bits
        else:
            length = offsets[i + 1] - cursors[i]
        out[i + 1] = out[i] + length
    buffer_reserve(bytes, out[n])
    bytes.size = out[n]
    for i in range(n):
        length = out[i + 1] - out[i]
        _copy_short(bytes.data + out[i], data + cursors[i], length)
        cursors[i] += length
    return 0


# ---- keys of batches ---------------------------------------------------------------------------------------------


cdef tuple _type_of(str format, str name):
    # Column type and width in bytes, 0 where it varies.
    cdef ColumnType type
    cdef int32_t width
    if not find_column_type(format.encode(), &type, &width) or type == ColumnType.NULL_TYPE or format == "w:0":
        raise SchemaError(
            f"key column {name!r}: a column of Arrow format {format!r} cannot be a key; cast it to a plain type "
            "(dictionary and view types to their values), or take parts of it (elements of a list)"
        )
    return type, 1 if type == ColumnType.BOOL else width


cdef void _hash_values(const int64_t* values, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = mix_int64(<uint64_t> values[row])


cdef void _hash_rows(const uint8_t* data, const int64_t* offsets, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = hash_bytes(data + offsets[row], offsets[row + 1] - offsets[row])


cdef NativeArray _varying_array(
    str format, str name, int64_t length, BitBuffer* validity, Buffer* offsets, Buffer* bytes
):
    # Makes the column from int64 offsets, and takes ownership of the buffers.
    cdef Buffer narrow
    cdef int64_t size = (<int64_t*> offsets.data)[length] if length else 0
    if format in "UZ":
        return native_array(format, length, validity, offsets, bytes)
    if size > INT32_MAX:
        raise DataError(
            f"key column {name!r}: {length:,} keys take {size:,} bytes, more than a column of its type holds; "
            f"{advise_large(name, format == 'u')}",
            column=name,
        )
    memset(&narrow, 0, sizeof(Buffer))
    try:
        if length:
            with nogil:
                _narrow_values(<const int64_t*> offsets.data, 4, length + 1, &narrow)
        buffer_free(offsets)
        return native_array(format, length, validity, &narrow, bytes)
    finally:
        buffer_free(&narrow)


@cython.final
cdef class KeyEncoder:
    """Key columns of batches in a uniform form that kernels hash and compare, and back.

    Keys are equal where Java finds them equal: every NaN is one key, -0.0 and 0.0 are two. Fields of a composite key
    may be null.

    Parameters
    ----------
    schema
        Schema with the key columns, or an example batch: any object of the Arrow PyCapsule protocol, or a native
        RecordBatch.
    names : list of str
        Key columns, in order, or None if all rows have the same key. A struct column is a composite key of its own.
    null_keys : bool
        Whether null is a key like others in a single column. If not, it is the caller who refuses null keys.

    Raises
    ------
    SchemaError
        If a column is missing, or its type cannot be a key.
    """

    def __cinit__(self, object schema, list names, bint null_keys=False):
        cdef ArrowSchema* found
        cdef int64_t i
        if isinstance(schema, RecordBatch):
            capsule = (<RecordBatch> schema)._schema_capsule
        elif hasattr(schema, "__arrow_c_schema__"):
            capsule = schema.__arrow_c_schema__()
        elif hasattr(schema, "__arrow_c_array__"):
            capsule = schema.__arrow_c_array__()[0]
        else:
            raise TypeError(f"{type(schema).__name__} has no __arrow_c_schema__; pass an Arrow schema or record batch")
        found = checked_schema(capsule, schema)
        columns = [field_name(found.children[i]) for i in range(found.n_children)]
        self._names = list(names)
        self._null_keys = null_keys
        self._field_names = []
        self._formats = []
        for name in names:
            if name not in columns:
                raise SchemaError(f"no key column {name!r}; the columns are {', '.join(columns)}")
            i = columns.index(name)
            self._add_field(found.children[i], name, -1)
        self.n_columns = len(names)
        self._lay_out()

    def __dealloc__(self):
        free(self.fields)
        buffer_free(&self._values)
        buffer_free(&self._data)
        buffer_free(&self._offsets)
        buffer_free(&self._cursors)
        buffer_free(&self._hashes)
        buffer_free(&self._nulls)

    cdef int64_t _add_field(self, ArrowSchema* schema, str name, int64_t parent) except -1:
        cdef int64_t number = self.n_fields, i
        cdef str format = schema.format.decode()
        if schema.dictionary != NULL:
            raise SchemaError(f"key column {name!r}: a dictionary column cannot be a key; cast it to its values' type")
        type, width = _type_of(format, name)
        self.fields = <KeyField*> grow(self.fields, (number + 1) * sizeof(KeyField), b"the fields of keys")
        memset(&self.fields[number], 0, sizeof(KeyField))
        self.n_fields = number + 1
        self.fields[number].type = type
        self.fields[number].width = width
        self.fields[number].parent = parent
        self.fields[number].n_children = schema.n_children
        self.fields[number].varying = type != ColumnType.STRUCT and width == 0
        self._formats.append(format)
        self._field_names.append(name)
        for i in range(schema.n_children):
            self._add_field(schema.children[i], field_name(schema.children[i]), number)
        return number

    cdef int _lay_out(self) except -1:
        cdef int64_t f, last = -1
        cdef ColumnType first = self.fields[0].type if self.n_columns else ColumnType.STRUCT
        self.composite = self.n_columns != 1 or first == ColumnType.STRUCT or self._null_keys
        self.batch.kind = KEY_BYTES
        if not self.composite:
            if not self.fields[0].varying and first not in (ColumnType.DECIMAL128, ColumnType.FIXED_BINARY):
                self.batch.kind = KEY_INT64
            return 0
        self.fixed_size = max(1, (self.n_fields + 7) >> 3)
        for f in range(self.n_fields):
            if self.fields[f].varying:
                self.fields[f].width = 4
                last = f
        # The last varying field reaches to the end of the key, and needs no length.
        if last >= 0:
            self.fields[last].width = 0
        for f in range(self.n_fields):
            self.fields[f].position = self.fixed_size
            self.fixed_size += self.fields[f].width
        return 0

    cdef int64_t _bind(self, const Column* column, int64_t field, str name) except -1:
        # Number of the field after this one and its children.
        cdef KeyField* bound = &self.fields[field]
        cdef int64_t i, next = field + 1
        if column.format != (<str> self._formats[field]).encode() or column.n_children != bound.n_children:
            raise SchemaError(
                f"key column {name!r} was of Arrow format {self._formats[field]!r} and is of "
                f"{column.format.decode()!r} in this batch; cast it to one type"
            )
        bound.column = column
        bound.nullable = column.validity != NULL or (bound.parent >= 0 and self.fields[bound.parent].nullable)
        for i in range(column.n_children):
            next = self._bind(&column.children[i], next, name)
        return next

    cdef int encode(self, RecordBatch batch) except -1:
        cdef int64_t field = 0, n = batch.num_rows, row
        cdef const Column* column
        self.batch.length = 0
        self.batch.is_null = NULL
        for name in self._names:
            field = self._bind(&batch.columns[batch.index_of(name)], field, name)
        self._source = batch
        for field in range(self.n_fields):
            self._check_day(field, n)
        buffer_resize(&self._hashes, n * 8)
        column = self.fields[0].column if self.n_columns else NULL
        if self.n_columns == 1 and column.validity != NULL and not self._null_keys:
            buffer_resize(&self._nulls, n)
            for row in range(n):
                self._nulls.data[row] = not is_valid(column, row)
            self.batch.is_null = self._nulls.data
        if self.composite:
            self._encode_composite(n)
        elif self.batch.kind == KEY_INT64:
            self._encode_int64(column)
        else:
            self._encode_single(column)
        self.batch.hashes = <uint64_t*> self._hashes.data
        self.batch.length = n
        return 0

    cdef int _check_day(self, int64_t field, int64_t n) except -1:
        # A time that is not within a day cannot be stored in a file, and so not in a checkpoint; and a date before the first
        # one does not have a midnight.
        cdef const Column* column = self.fields[field].column
        cdef int64_t row, least = 0, last
        if column.type == ColumnType.DATE64:
            least, last = FIRST_DATE, INT64_MAX
        elif column.type == ColumnType.TIME32 or column.type == ColumnType.TIME64:
            last = _LAST_TIMES[self._formats[field]]
        else:
            return 0
        with nogil:
            row = _row_beyond_day(self.fields, field, n, least, last)
        if row >= 0:
            value = (<const int32_t*> column.values)[row] if column.byte_width == 4 else (<const int64_t*> column.values)[row]
            raise DataError(
                f"key column {self._field_names[field]!r}: {value} in row {row} of a batch (from 0) is not from {least} to "
                f"{last}, as values of its type are; filter such rows out, or cast the column to int{8 * column.byte_width}",
                column=self._field_names[field],
                row=row,
            )
        return 0

    cdef int _encode_int64(self, const Column* column) except -1:
        # Columns of 8 bytes are borrowed, unless several values of theirs are one key.
        if column.byte_width == 8 and column.type != ColumnType.FLOAT64 and column.type != ColumnType.DATE64:
            self.batch.values = <const int64_t*> column.values
        else:
            buffer_resize(&self._values, column.length * 8)
            with nogil:
                _widen_values(column, <int64_t*> self._values.data)
            self.batch.values = <const int64_t*> self._values.data
        with nogil:
            _hash_values(self.batch.values, column.length, <uint64_t*> self._hashes.data)
        return 0

    cdef int _encode_single(self, const Column* column) except -1:
        cdef int64_t row, n = column.length
        cdef int64_t* offsets
        self.batch.data = <const uint8_t*> column.values
        if column.type == ColumnType.LARGE_STRING or column.type == ColumnType.LARGE_BINARY:
            self.batch.offsets = <const int64_t*> column.offsets
        else:
            # Kernels read offsets of 64 bits alone: so there is one loop for all types.
            buffer_resize(&self._offsets, (n + 1) * 8)
            offsets = <int64_t*> self._offsets.data
            self.batch.offsets = offsets
            with nogil:
                if column.byte_width:
                    for row in range(n + 1):
                        offsets[row] = row * column.byte_width
                else:
                    for row in range(n + 1):
                        offsets[row] = (<const int32_t*> column.offsets)[row]
        with nogil:
            _hash_rows(self.batch.data, self.batch.offsets, n, <uint64_t*> self._hashes.data)
        return 0

    cdef int _encode_composite(self, int64_t n) except -1:
        cdef int64_t* offsets
        cdef int64_t long_field
        buffer_resize(&self._offsets, (n + 1) * 8)
        buffer_resize(&self._cursors, n * 8)
        offsets = <int64_t*> self._offsets.data
        with nogil:
            long_field = _measure_composite(self.fields, self.n_fields, self.fixed_size, n, offsets)
        if long_field >= 0:
            raise DataError(
                f"key column {self._field_names[long_field]!r} has a value of more than 4,294,967,295 bytes, which "
                "only the last string column of a composite key may have",
                column=self._field_names[long_field],
            )
        buffer_resize(&self._data, offsets[n])
        if self.n_fields == 0 and n:
            memset(self._data.data, 0, offsets[n])
        with nogil:
            _write_composite(
                self.fields,
                self.n_fields,
                self.fixed_size,
                n,
                offsets,
                <int64_t*> self._cursors.data,
                self._data.data,
            )
            _hash_rows(self._data.data, offsets, n, <uint64_t*> self._hashes.data)
        self.batch.data = self._data.data
        self.batch.offsets = offsets
        return 0

    cdef list decode(self, Buffer* values, Buffer* offsets, int64_t length):
        cdef Buffer cursors
        cdef int64_t row, field
        cdef list columns = []
        if not self.composite:
            return [self._decode_single(values, offsets, length)]
        memset(&cursors, 0, sizeof(Buffer))
        try:
            buffer_resize(&cursors, length * 8)
            for row in range(length):
                (<int64_t*> cursors.data)[row] = (<int64_t*> offsets.data)[row] + self.fixed_size
            for field in range(self.n_fields):
                if self.fields[field].parent < 0:
                    columns.append(
                        self._decode_field(
                            field, values.data, <int64_t*> offsets.data, length, <int64_t*> cursors.data
                        )
                    )
        finally:
            buffer_free(&cursors)
        buffer_free(values)
        buffer_free(offsets)
        return columns

    cdef NativeArray _decode_single(self, Buffer* values, Buffer* offsets, int64_t length):
        cdef KeyField* field = &self.fields[0]
        cdef str format = self._formats[0]
        cdef Buffer narrow
        cdef BitBuffer bits
        if field.varying:
            return _varying_array(format, self._names[0], length, NULL, offsets, values)
        buffer_free(offsets)
        if self.batch.kind == KEY_BYTES or field.width == 8:
            return native_array(format, length, NULL, values, NULL)
        memset(&narrow, 0, sizeof(Buffer))
        memset(&bits, 0, sizeof(BitBuffer))
        try:
            with nogil:
                if field.type == ColumnType.BOOL:
                    _pack_bits(values.data, NULL, 8, 1, length, &bits)
                    narrow = bits.bytes
                    memset(&bits, 0, sizeof(BitBuffer))
                else:
                    _narrow_values(<const int64_t*> values.data, field.width, length, &narrow)
            buffer_free(values)
            return native_array(format, length, NULL, &narrow, NULL)
        finally:
            buffer_free(&narrow)
            buffer_free(&bits.bytes)

    cdef NativeArray _decode_field(
        self, int64_t field, const uint8_t* data, const int64_t* offsets, int64_t length, int64_t* cursors
    ):
        cdef const KeyField* f = &self.fields[field]
        cdef str format = self._formats[field]
        cdef BitBuffer validity, bits
        cdef Buffer values, starts
        cdef int64_t child
        cdef list children = [], names = []
        memset(&validity, 0, sizeof(BitBuffer))
        memset(&bits, 0, sizeof(BitBuffer))
        memset(&values, 0, sizeof(Buffer))
        memset(&starts, 0, sizeof(Buffer))
        try:
            with nogil:
                _pack_bits(data + (field >> 3), offsets, 0, <uint8_t> (1 << (field & 7)), length, &validity)
            if f.type == ColumnType.STRUCT:
                for child in range(field + 1, self.n_fields):
                    if self.fields[child].parent == field:
                        children.append(self._decode_field(child, data, offsets, length, cursors))
                        names.append(self._field_names[child])
                return native_array(format, length, &validity, NULL, NULL, children, names)
            if f.varying:
                with nogil:
                    _read_varying(f, data, offsets, length, cursors, &starts, &values)
                return _varying_array(format, self._field_names[field], length, &validity, &starts, &values)
            with nogil:
                if f.type == ColumnType.BOOL:
                    _pack_bits(data + f.position, offsets, 0, 1, length, &bits)
                else:
                    _read_fixed(data + f.position, offsets, f.width, length, &values)
            return native_array(format, length, &validity, &bits.bytes if f.type == ColumnType.BOOL else &values, NULL)
        finally:
            buffer_free(&validity.bytes)
            buffer_free(&bits.bytes)
            buffer_free(&values)
            buffer_free(&starts)

    def encode_batch(self, batch):
        """Encode the keys of a batch, for the kernels that get this encoder next.

        Parameters
        ----------
        batch
            Native RecordBatch, or any object with `__arrow_c_array__`, with the key columns.

        Raises
        ------
        SchemaError
            If a key column is missing or its type is not that of the schema.
        DataError
            If a composite key has a string longer than 4 GiB that is not its last.
        """
        cdef Call call = begin_call(&self.guard, self)
        self.encode(record_batch_of(batch))


cdef bint keys_are_alike(KeyEncoder a, KeyEncoder b):
    # By types and nesting: streams that are joined may give their keys other names.
    cdef int64_t field
    if a is b:
        return True
    if a.n_columns != b.n_columns or a._formats != b._formats or a.composite != b.composite:
        return False
    for field in range(a.n_fields):
        if a.fields[field].parent != b.fields[field].parent:
            return False
    return True


# ---- keys that are Python objects --------------------------------------------------------------------------------
# Python's `==` would join 1, 1.0 and True, 0.0 and -0.0, and decimals of different scale, and separate every NaN from itself;
# and mutable objects cannot be hashed. Most keys are their own form. The form of others is a tuple that begins with a class of
# this module, which is never a key, so that it equals no other key.


class Float:
    """Begins the forms of floats."""


class Truth:
    """Begins the forms of bools."""


class BigDecimal:
    """Begins the forms of decimals."""


class OfClass:
    """Begins the forms of what a class has an own form for, such as rows."""


class Items:
    """Begins the forms of lists."""


class Entries:
    """Begins the forms of dictionaries."""


class Members:
    """Begins the forms of sets."""


class Content:
    """Begins the forms of what is compared by its bytes."""


cdef tuple NAN = (Float, "NaN")
cdef tuple NEGATIVE_ZERO = (Float, "-0.0")
cdef tuple FALSE = (Truth, False)
cdef tuple TRUE = (Truth, True)


cpdef object canonical_key(object key):
    """Return the canonical form of a key, which is hashable.

    Parameters
    ----------
    key : object
        The key. If its class has a method `__canonical_key__`, its result is used instead. Tuples, lists, dictionaries and sets
        have the forms of their parts.

    Raises
    ------
    TypeError
        If it can be neither hashed nor pickled; or contains itself, or too many levels of others.

    Notes
    -----
    Dictionaries with the same entries in another order are different keys, as in PyFlink, which compares pickled bytes.
    Objects of other classes are compared by their own `==` and hash, or by their :func:`key_bytes` if they cannot be hashed.

    Examples
    --------
    >>> canonical_key([1, {"a": 2}]) == canonical_key([1, {"a": 2}])
    True
    >>> canonical_key(("ada", 36))
    ('ada', 36)
    >>> canonical_key(float("nan")) == canonical_key(-float("nan")), canonical_key(0.0) == canonical_key(-0.0)
    (True, False)
    """
    cdef object kind = type(key)
    if kind is str or kind is int or kind is bytes or key is None:
        return key
    if kind is tuple:
        return _of_tuple(<tuple> key)
    if kind is float:
        return _of_float(key)
    if kind is bool:
        return TRUE if key else FALSE
    return _of_other(key, kind)


@cython.final
cdef class CanonicalKey:
    """A key that dictionaries compare by its canonical form, which is another object than the key.

    Attributes
    ----------
    key : object
        The original key.
    form : hashable
        The :func:`canonical_key` of the key.
    """

    cdef readonly object key
    cdef readonly object form

    def __cinit__(self, key, form):
        self.key = key
        self.form = form

    def __hash__(self):
        return hash(self.form)

    def __eq__(self, other):
        return self.form == ((<CanonicalKey> other).form if type(other) is CanonicalKey else other)

    def __reduce__(self):
        return dictionary_key, (self.key,)

    def __repr__(self):
        return repr(self.key)


cpdef object dictionary_key(object key):
    """Return the representative of a key in a dictionary: keys of equal canonical form are one.

    :func:`given_keys` returns the key again.

    Returns
    -------
    hashable
        The key itself if it is its canonical form, or a CanonicalKey.

    Raises
    ------
    TypeError
        As :func:`canonical_key`.
    """
    return dictionary_key_as(key, key)


cdef object dictionary_key_as(object key, object converted):
    # Returns a key as the representative of its conversion to a type.
    cdef object form = canonical_key(converted)
    return key if form is key else CanonicalKey(key, form)


cpdef list given_keys(object keys):
    """Return the original keys, in a new list, of their representatives in a dictionary."""
    cdef list found = list(keys)
    cdef Py_ssize_t i
    for i in range(len(found)):
        if type(found[i]) is CanonicalKey:
            found[i] = (<CanonicalKey> found[i]).key
    return found


cpdef list given_items(dict entries):
    """Return the entries of a dictionary as pairs of the original key and the value, in a new list."""
    cdef list found = list(entries.items())
    cdef tuple entry
    cdef Py_ssize_t i
    for i in range(len(found)):
        entry = <tuple> found[i]
        if type(entry[0]) is CanonicalKey:
            found[i] = ((<CanonicalKey> entry[0]).key, entry[1])
    return found


cdef object _of_float(double number):
    if number != number:
        return NAN
    if number == 0 and signbit(number):
        return NEGATIVE_ZERO
    return Float, number


_TOO_DEEP = "it contains itself, or too many levels of others"


cdef inline int _enter() except -1:
    # A level is counted, as the stack of C ends without an exception.
    return -1 if Py_EnterRecursiveCall(b" while comparing a key") else 0


cdef object _of_tuple(tuple key):
    cdef object part, form
    cdef list forms = None
    cdef Py_ssize_t i
    _enter()
    try:
        for i in range(len(key)):
            part = key[i]
            form = canonical_key(part)
            if form is not part and forms is None:
                forms = list(key)
            if forms is not None:
                forms[i] = form
    except RecursionError as failure:
        raise TypeError(_TOO_DEEP) from failure
    finally:
        Py_LeaveRecursiveCall()
    return key if forms is None else tuple(forms)


cdef tuple _forms(object parts):
    return tuple([canonical_key(part) for part in parts])


cdef object _of_other(object key, object kind):
    _enter()
    try:
        return _of_class(key, kind)
    except RecursionError as failure:
        raise TypeError(_TOO_DEEP) from failure
    finally:
        Py_LeaveRecursiveCall()


cdef object _of_class(object key, object kind):
    own = getattr(kind, "__canonical_key__", None)
    if own is not None:
        return OfClass, canonical_key(own(key))
    if isinstance(key, tuple):
        return _of_tuple(tuple(key))
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, float):
        return _of_float(float.__float__(key))
    if isinstance(key, int):
        return int.__int__(key)
    if isinstance(key, Decimal):
        # A BigDecimal has digits and a scale; its zero is unsigned.
        return BigDecimal, str(key if key else abs(key))
    if isinstance(key, datetime):
        return _of_moment(key)
    if isinstance(key, Real) and not isinstance(key, Rational):
        return _of_real(key, kind)
    if isinstance(key, (list, dict, set, frozenset)):
        return _of_container(key)
    if isinstance(key, bytearray):
        return Content, bytes(key)
    if kind.__hash__ is None or (kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__):
        return Content, _content(key, kind)
    if (isinstance(key, complex) or kind.__module__ == "numpy") and key != key:  # such as numpy's NaT
        return Content, _content(key, kind)
    return key


cdef tuple _of_container(object key):
    cdef object kind = Items if isinstance(key, list) else Entries
    if isinstance(key, (set, frozenset)):
        return Members, isinstance(key, set), frozenset(_forms(key))
    return kind, _forms(key.items() if kind is Entries else key)


cdef bytes _content(object key, object kind):
    try:
        return key_bytes(key)
    except Exception as failure:
        raise TypeError(f"a {kind.__qualname__} has no hash, and cannot be pickled: {failure}") from failure


cdef object _of_moment(object key):
    # In other zones than UTC, the two moments of an hour that comes twice are equal.
    if key.tzinfo is None:
        return key
    try:
        return key.astimezone(timezone.utc)
    except (OverflowError, ValueError):
        return key


cdef object _of_real(object key, object kind):
    # Types such as numpy's float32, which is a Float in Java.
    if key != key:
        return kind, "NaN"
    if key == 0 and signbit(<double> float(key)):
        return kind, "-0.0"
    return kind, key


def key_bytes(key):
    """Return the bytes of a key: the same for equal keys of the same types, in every process.

    Parameters
    ----------
    key : object
        Any object that can be pickled.

    Notes
    -----
    Unlike the bytes of pickle they do not depend on which parts of the key are the same object, nor on the order of
    sets. Classes are written by name, so that they need not be importable.
    """
    file = BytesIO()
    _KeyPickler(file).dump(key)
    return file.getvalue()


class _KeyPickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, 4)
        self.fast = True  # a memo would write a part that comes twice as a reference, and its copy in full

    def persistent_id(self, value):
        if isinstance(value, type):
            return value.__module__, value.__qualname__
        if isinstance(value, (set, frozenset)):
            return "set", sorted(map(key_bytes, value))
        return None

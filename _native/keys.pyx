"""Keys of a batch in one of two uniform forms, and back; the dictionary from key to dense id.

A single column of at most 8 bytes is its values as int64; a single string or binary column is its own bytes, borrowed.
A composite key is one run of bytes per row:

    flags         fixed part                                      varying part
    | 1 bit per | value or, of all varying fields but the last, | bytes of the varying |
    | field     | uint32 length                                 | fields, end to end   |

A flag is set where the field is not null; the fixed part of a null field is zero. So equal keys have equal bytes.
"""

import numpy as np

import cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport (
    ArrowSchema,
    BitBuffer,
    Buffer,
    Column,
    ColumnType,
    NativeArray,
    RecordBatch,
    bool_value,
    buffer_append_int64,
    buffer_free,
    buffer_reserve,
    bytes_value,
    is_valid,
    native_array,
)
from flinkcore._native.key_groups cimport key_groups_of

cdef extern from *:
    """
    #define FLINKCORE_PREFETCH(address) __builtin_prefetch((address), 0, 3)
    """
    void prefetch "FLINKCORE_PREFETCH"(const void* address) noexcept nogil
    ctypedef unsigned long long uint128_t "unsigned __int128"

cdef enum:
    LOOK_AHEAD = 8
    GROUPED_AT_ONCE = 65536

cdef dict _TYPES = {
    "b": (ColumnType.BOOL, 1),
    "c": (ColumnType.INT8, 1),
    "C": (ColumnType.UINT8, 1),
    "s": (ColumnType.INT16, 2),
    "S": (ColumnType.UINT16, 2),
    "i": (ColumnType.INT32, 4),
    "I": (ColumnType.UINT32, 4),
    "l": (ColumnType.INT64, 8),
    "L": (ColumnType.UINT64, 8),
    "f": (ColumnType.FLOAT32, 4),
    "g": (ColumnType.FLOAT64, 8),
    "tdD": (ColumnType.DATE32, 4),
    "tdm": (ColumnType.DATE64, 8),
    "tts": (ColumnType.TIME32, 4),
    "ttm": (ColumnType.TIME32, 4),
    "ttu": (ColumnType.TIME64, 8),
    "ttn": (ColumnType.TIME64, 8),
    "u": (ColumnType.STRING, 0),
    "U": (ColumnType.LARGE_STRING, 0),
    "z": (ColumnType.BINARY, 0),
    "Z": (ColumnType.LARGE_BINARY, 0),
    "+s": (ColumnType.STRUCT, 0),
}


cdef tuple _type_of(str format, str name):
    # Column type and width in bytes, 0 where it varies.
    found = _TYPES.get(format)
    if found is not None:
        return found
    if format.startswith("ts"):
        return ColumnType.TIMESTAMP, 8
    if format.startswith("tD"):
        return ColumnType.DURATION, 8
    if format.startswith("w:") and format != "w:0":
        return ColumnType.FIXED_BINARY, int(format[2:])
    if format.startswith("d:") and format.count(",") == 1:
        return ColumnType.DECIMAL128, 16
    raise SchemaError(
        f"key column {name!r}: a column of Arrow format {format!r} cannot be a key; cast it to a plain type "
        "(dictionary and view types to their values, lists to strings)"
    )


# ---- hashes ------------------------------------------------------------------------------------------------------


cdef inline uint64_t _mix(uint64_t bits) noexcept nogil:
    # A bijection: distinct keys have distinct hashes.
    bits = (bits ^ (bits >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
    bits = (bits ^ (bits >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
    return bits ^ (bits >> 32)


cdef inline uint64_t _fold(uint64_t a, uint64_t b) noexcept nogil:
    cdef uint128_t product = <uint128_t> a * b
    return <uint64_t> product ^ <uint64_t> (product >> 64)


cdef inline uint64_t _hash_bytes(const uint8_t* at, int64_t length) noexcept nogil:
    # 16 bytes a step; the last step's words may overlap what was taken before.
    cdef uint64_t hash = <uint64_t> length ^ <uint64_t> 0x6A09E667F3BCC909
    cdef uint64_t low = 0, high = 0
    cdef uint32_t half_low, half_high
    cdef int64_t left = length
    while left > 16:
        memcpy(&low, at, 8)
        memcpy(&high, at + 8, 8)
        hash = _fold(low ^ <uint64_t> 0xBB67AE8584CAA73B, high ^ hash)
        at += 16
        left -= 16
    if left >= 8:
        memcpy(&low, at, 8)
        memcpy(&high, at + left - 8, 8)
    elif left >= 4:
        memcpy(&half_low, at, 4)
        memcpy(&half_high, at + left - 4, 4)
        low = half_low
        high = half_high
    elif left > 0:
        low = <uint64_t> at[0] << 16 | <uint64_t> at[left >> 1] << 8 | at[left - 1]
        high = 0
    hash = _fold(low ^ <uint64_t> 0x3C6EF372FE94F82B, high ^ hash)
    return _fold(hash ^ <uint64_t> 0xA54FF53A5F1D36F1, <uint64_t> length ^ <uint64_t> 0x510E527FADE682D1)


cdef void _hash_values(const int64_t* values, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = _mix(<uint64_t> values[row])


cdef void _hash_rows(const uint8_t* data, const int64_t* offsets, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = _hash_bytes(data + offsets[row], offsets[row + 1] - offsets[row])


# ---- columns to keys ---------------------------------------------------------------------------------------------


cdef inline uint32_t _float_bits(uint32_t bits) noexcept nogil:
    return <uint32_t> 0x7FC00000 if (bits & <uint32_t> 0x7FFFFFFF) > <uint32_t> 0x7F800000 else bits


cdef inline uint64_t _double_bits(uint64_t bits) noexcept nogil:
    if (bits & <uint64_t> 0x7FFFFFFFFFFFFFFF) > <uint64_t> 0x7FF0000000000000:
        return <uint64_t> 0x7FF8000000000000
    return bits


cdef void _widen(const Column* column, int64_t* out) noexcept nogil:
    # Values as int64; doubles and floats as canonical bits.
    cdef ColumnType t = column.type
    cdef int64_t row, n = column.length
    if t == ColumnType.BOOL:
        for row in range(n):
            out[row] = bool_value(column, row)
    elif t == ColumnType.FLOAT64:
        for row in range(n):
            out[row] = <int64_t> _double_bits((<const uint64_t*> column.values)[row])
    elif t == ColumnType.FLOAT32:
        for row in range(n):
            out[row] = _float_bits((<const uint32_t*> column.values)[row])
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
    elif length >= 8:
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
    cdef int64_t row
    if field.type == ColumnType.FLOAT64:
        for row in range(n):
            double_bits = _double_bits((<const uint64_t*> column.values)[row])
            memcpy(to + offsets[row], &double_bits, 8)
    elif field.type == ColumnType.FLOAT32:
        for row in range(n):
            float_bits = _float_bits((<const uint32_t*> column.values)[row])
            memcpy(to + offsets[row], &float_bits, 4)
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


cdef void _write_nulls(
    const KeyField* fields, int64_t f, int64_t n, const int64_t* offsets, uint8_t* data
) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        if _is_null(fields, f, row):
            data[offsets[row] + (f >> 3)] &= <uint8_t> ~(1 << (f & 7))
            memset(data + offsets[row] + fields[f].position, 0, fields[f].width)


cdef int64_t _measure(
    const KeyField* fields, int64_t n_fields, int64_t fixed_size, int64_t n, int64_t* offsets
) noexcept nogil:
    # Fills the offsets; -1, or the field that has a value too long for its length.
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
    cdef int64_t f, row
    cdef uint8_t flags
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


cdef int _narrow(const int64_t* values, int64_t width, int64_t n, Buffer* out) except -1 nogil:
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
    # Offsets as int64 from 0, and the values' bytes; the cursors move behind them.
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


cdef NativeArray _varying_array(
    str format, str name, int64_t length, BitBuffer* validity, Buffer* offsets, Buffer* bytes
):
    # From int64 offsets; takes the buffers.
    cdef Buffer narrow
    cdef int64_t size = (<int64_t*> offsets.data)[length] if length else 0
    if format in "UZ":
        return native_array(format, length, validity, offsets, bytes)
    if size > INT32_MAX:
        raise DataError(
            f"key column {name!r}: {length:,} keys take {size:,} bytes, more than a column of its type holds; "
            f"cast it to {'large_string' if format == 'u' else 'large_binary'}"
        )
    memset(&narrow, 0, sizeof(Buffer))
    try:
        if length:
            with nogil:
                _narrow(<const int64_t*> offsets.data, 4, length + 1, &narrow)
        buffer_free(offsets)
        return native_array(format, length, validity, &narrow, bytes)
    finally:
        buffer_free(&narrow)


cdef int _resize(Buffer* buffer, int64_t size) except -1 nogil:
    # For new content: what is there is not kept.
    buffer.size = 0
    buffer_reserve(buffer, size)
    buffer.size = size
    return 0


@cython.final
cdef class KeyEncoder:
    """Key columns of batches in a uniform form that kernels hash and compare, and back.

    Keys are equal where Java finds them equal: every NaN is one key, -0.0 and 0.0 are two. Fields of a composite key
    may be null; whether a single-column key may be is the caller's decision.

    Parameters
    ----------
    schema
        Schema with the key columns, or an example batch: any object of the Arrow PyCapsule protocol, or a native
        RecordBatch.
    names : list of str
        Key columns, in order; a struct column is a composite key of its own.

    Raises
    ------
    SchemaError
        If a column is missing, or its type cannot be a key.
    ConfigurationError
        If there are no names.
    """

    def __cinit__(self, object schema, list names):
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
        found = <ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema")
        if not names:
            raise ConfigurationError("a key needs at least one column")
        columns = [found.children[i].name.decode() for i in range(found.n_children)]
        self._names = list(names)
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
        cdef KeyField* grown
        cdef str format = schema.format.decode()
        if schema.dictionary != NULL:
            raise SchemaError(f"key column {name!r}: a dictionary column cannot be a key; cast it to its values' type")
        type, width = _type_of(format, name)
        grown = <KeyField*> realloc(self.fields, (number + 1) * sizeof(KeyField))
        if grown == NULL:
            raise MemoryError()
        self.fields = grown
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
            self._add_field(schema.children[i], schema.children[i].name.decode(), number)
        return number

    cdef int _lay_out(self) except -1:
        cdef int64_t f, last = -1
        cdef ColumnType first = self.fields[0].type
        self.composite = self.n_columns > 1 or first == ColumnType.STRUCT
        self.batch.kind = KEY_BYTES
        if not self.composite:
            if not self.fields[0].varying and first not in (ColumnType.DECIMAL128, ColumnType.FIXED_BINARY):
                self.batch.kind = KEY_INT64
            return 0
        self.fixed_size = (self.n_fields + 7) >> 3
        for f in range(self.n_fields):
            if self.fields[f].varying:
                self.fields[f].width = 4
                last = f
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
        _resize(&self._hashes, n * 8)
        column = self.fields[0].column
        if self.n_columns == 1 and column.validity != NULL:
            _resize(&self._nulls, n)
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

    cdef int _encode_int64(self, const Column* column) except -1:
        if column.byte_width == 8 and column.type != ColumnType.FLOAT64:
            self.batch.values = <const int64_t*> column.values
        else:
            _resize(&self._values, column.length * 8)
            with nogil:
                _widen(column, <int64_t*> self._values.data)
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
            _resize(&self._offsets, (n + 1) * 8)
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
        _resize(&self._offsets, (n + 1) * 8)
        _resize(&self._cursors, n * 8)
        offsets = <int64_t*> self._offsets.data
        with nogil:
            long_field = _measure(self.fields, self.n_fields, self.fixed_size, n, offsets)
        if long_field >= 0:
            raise DataError(
                f"key column {self._field_names[long_field]!r} has a value of more than 4,294,967,295 bytes, which "
                "only the last string column of a composite key may have"
            )
        _resize(&self._data, offsets[n])
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
            _resize(&cursors, length * 8)
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
                    _narrow(<const int64_t*> values.data, field.width, length, &narrow)
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
        """Encode the keys of a batch, for the kernels that this encoder is given to next.

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
        self.encode(batch if isinstance(batch, RecordBatch) else RecordBatch(batch))


# ---- dictionary --------------------------------------------------------------------------------------------------


cdef int _resize_index(KeyTable* table, uint64_t n_slots) except -1 nogil:
    cdef KeyTableSlot* slots = <KeyTableSlot*> calloc(n_slots, sizeof(KeyTableSlot))
    cdef uint64_t mask = n_slots - 1, at, code, hash
    cdef uint32_t k
    if slots == NULL:
        with gil:
            raise MemoryError(f"{n_slots * sizeof(KeyTableSlot)} bytes for the index of a key dictionary")
    for k in range(table.n_keys):
        if table.bytes_keys:
            code = hash = (<uint64_t*> table.hashes.data)[k]
        else:
            code = <uint64_t> (<int64_t*> table.values.data)[k]
            hash = _mix(code)
        at = hash & mask
        while slots[at].number:
            at = (at + 1) & mask
        slots[at].code = code
        slots[at].number = k + 1
    free(table.slots)
    table.slots = slots
    table.mask = mask
    return 0


cdef inline bint _is_key(const KeyTable* table, uint32_t id, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef const int64_t* offsets = <const int64_t*> table.offsets.data
    cdef int64_t length = keys.offsets[row + 1] - keys.offsets[row]
    return offsets[id + 1] - offsets[id] == length and (
        length == 0 or memcmp(table.data.data + offsets[id], keys.data + keys.offsets[row], length) == 0
    )


cdef inline uint64_t _code(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    return keys.hashes[row] if table.bytes_keys else <uint64_t> keys.values[row]


cdef inline uint64_t _slot(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Slot of the row's key, or the empty one where it would go. There always is an empty one.
    cdef uint64_t at = keys.hashes[row] & table.mask, code = _code(table, keys, row)
    while table.slots[at].number:
        if table.slots[at].code == code and (
            not table.bytes_keys or _is_key(table, table.slots[at].number - 1, keys, row)
        ):
            break
        at = (at + 1) & table.mask
    return at


cdef int64_t _append_key(KeyTable* table, const KeyBatch* keys, int64_t row, uint64_t at) except -1 nogil:
    cdef uint32_t id = table.n_keys
    cdef int64_t length
    if id == KEY_NOT_FOUND:
        with gil:
            raise MemoryError("a key dictionary holds at most 4,294,967,295 keys; use more partitions")
    if (<uint64_t> id + 1) * 3 > (table.mask + 1) * 2:
        _resize_index(table, (table.mask + 1) * 2)
        at = _slot(table, keys, row)
    if table.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        buffer_reserve(&table.data, length)
        buffer_reserve(&table.hashes, 8)
        buffer_reserve(&table.offsets, 16)
        if length:
            memcpy(table.data.data + table.data.size, keys.data + keys.offsets[row], length)
        table.data.size += length
        if id == 0:
            buffer_append_int64(&table.offsets, 0)
        buffer_append_int64(&table.offsets, table.data.size)
        buffer_append_int64(&table.hashes, <int64_t> keys.hashes[row])
    else:
        buffer_append_int64(&table.values, keys.values[row])
    table.slots[at].code = _code(table, keys, row)
    table.slots[at].number = id + 1
    table.n_keys = id + 1
    return id


cdef int64_t key_table_add(KeyTable* table, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef uint64_t at
    if table.slots == NULL:
        _resize_index(table, 64)
    at = _slot(table, keys, row)
    if table.slots[at].number:
        return table.slots[at].number - 1
    return _append_key(table, keys, row, at)


cdef inline void _look_ahead(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Three dependent reads, each asked for some rows before it is needed: slot, offset, bytes.
    cdef const int64_t* offsets = <const int64_t*> table.offsets.data
    cdef uint32_t number
    if row + 3 * LOOK_AHEAD < keys.length:
        prefetch(&table.slots[keys.hashes[row + 3 * LOOK_AHEAD] & table.mask])
        if table.bytes_keys:
            number = table.slots[keys.hashes[row + 2 * LOOK_AHEAD] & table.mask].number
            if number:
                prefetch(&offsets[number - 1])
            number = table.slots[keys.hashes[row + LOOK_AHEAD] & table.mask].number
            if number:
                prefetch(table.data.data + offsets[number - 1])


cdef int key_table_add_all(KeyTable* table, const KeyBatch* keys, uint32_t* ids) except -1 nogil:
    cdef int64_t row
    if table.slots == NULL:
        _resize_index(table, 64)
    for row in range(keys.length):
        _look_ahead(table, keys, row)
        ids[row] = <uint32_t> key_table_add(table, keys, row)
    return 0


cdef uint32_t key_table_find(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef uint64_t at
    if table.slots == NULL:
        return KEY_NOT_FOUND
    at = _slot(table, keys, row)
    return table.slots[at].number - 1  # of an empty slot: KEY_NOT_FOUND


cdef void key_table_find_all(const KeyTable* table, const KeyBatch* keys, uint32_t* ids) noexcept nogil:
    cdef int64_t row
    for row in range(keys.length):
        if table.slots != NULL:
            _look_ahead(table, keys, row)
        ids[row] = key_table_find(table, keys, row)
        if keys.is_null != NULL and keys.is_null[row]:
            ids[row] = KEY_NOT_FOUND


cdef void key_table_free(KeyTable* table) noexcept nogil:
    buffer_free(&table.values)
    buffer_free(&table.data)
    buffer_free(&table.offsets)
    buffer_free(&table.hashes)
    free(table.slots)
    table.slots = NULL
    table.n_keys = 0


@cython.final
cdef class KeyDictionary:
    """Dense ids of keys, from 0 by first appearance.

    Look-ups and insertions take amortised constant time per key; a batch prefetches the index ahead of its rows.

    Parameters
    ----------
    schema, names
        As for `KeyEncoder`.
    max_parallelism : int
        Number of key groups.

    Raises
    ------
    SchemaError, ConfigurationError
        As `KeyEncoder` does, and if the maximum parallelism is not positive.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"user": ["b", "a", "b"]})
    >>> users = KeyDictionary(batch.schema, ["user"])
    >>> users.ids(batch)
    array([0, 1, 0], dtype=uint32)
    >>> pa.record_batch(users.keys())["user"].to_pylist()
    ['b', 'a']
    """

    def __cinit__(self, object schema, list names, object max_parallelism=128):
        if not 0 < max_parallelism <= INT32_MAX:
            raise ConfigurationError(f"max_parallelism must be between 1 and {INT32_MAX:,}, not {max_parallelism:,}")
        self.max_parallelism = max_parallelism
        self.encoder = KeyEncoder(schema, names)
        self.table.bytes_keys = self.encoder.batch.kind == KEY_BYTES

    def __dealloc__(self):
        key_table_free(&self.table)
        buffer_free(&self.groups)

    def __len__(self):
        return self.table.n_keys

    cdef int _encode(self, object batch) except -1:
        self.encoder.encode(batch if isinstance(batch, RecordBatch) else RecordBatch(batch))
        return 0

    def ids(self, batch):
        """Ids of a batch's keys; new keys are added.

        Parameters
        ----------
        batch
            Native RecordBatch, or any object with `__arrow_c_array__`, of n rows with the key columns.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)

        Raises
        ------
        DataError
            If a single-column key is null; nothing is added then. Fields of a composite key may be null.
        SchemaError
            If a key column is missing or its type is not that of the schema.
        """
        cdef const KeyBatch* keys = &self.encoder.batch
        cdef uint32_t[::1] out
        cdef int64_t row = 0
        self._encode(batch)
        if keys.is_null != NULL:
            while not keys.is_null[row]:
                row += 1
            raise DataError(f"row {row}: the key is null; filter such rows out, or key by several columns")
        result = np.empty(keys.length, dtype=np.uint32)
        if keys.length:
            out = result
            with nogil:
                key_table_add_all(&self.table, keys, &out[0])
        return result

    def find(self, batch):
        """Ids of a batch's keys; nothing is added.

        Parameters
        ----------
        batch
            As for `ids`.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)
            0xFFFFFFFF where the key is unknown or null.

        Raises
        ------
        SchemaError
            If a key column is missing or its type is not that of the schema.
        """
        cdef const KeyBatch* keys = &self.encoder.batch
        cdef uint32_t[::1] out
        self._encode(batch)
        result = np.empty(keys.length, dtype=np.uint32)
        if keys.length:
            out = result
            with nogil:
                key_table_find_all(&self.table, keys, &out[0])
        return result

    cdef list _columns(self, int64_t start, int64_t stop):
        cdef Buffer values, offsets
        cdef const int64_t* from_offsets = <const int64_t*> self.table.offsets.data
        cdef int64_t id, length = stop - start
        memset(&values, 0, sizeof(Buffer))
        memset(&offsets, 0, sizeof(Buffer))
        try:
            if length and self.table.bytes_keys:
                _resize(&values, from_offsets[stop] - from_offsets[start])
                if values.size:
                    memcpy(values.data, self.table.data.data + from_offsets[start], values.size)
                _resize(&offsets, (length + 1) * 8)
                for id in range(length + 1):
                    (<int64_t*> offsets.data)[id] = from_offsets[start + id] - from_offsets[start]
            elif length:
                _resize(&values, length * 8)
                memcpy(values.data, self.table.values.data + start * 8, length * 8)
            return self.encoder.decode(&values, &offsets, length)
        finally:
            buffer_free(&values)
            buffer_free(&offsets)

    def keys(self, start=0, stop=None):
        """Keys of the ids from `start` to `stop`, exclusive, as columns of the original names and types.

        Parameters
        ----------
        start : int
        stop : int, optional
            By default all ids so far.

        Returns
        -------
        NativeArray
            A record batch: `pyarrow.record_batch(dictionary.keys())`.

        Raises
        ------
        ConfigurationError
            If the range is not within the ids.
        DataError
            If the keys are too long for the column's type; take fewer at once.
        """
        if stop is None:
            stop = self.table.n_keys
        if not 0 <= start <= stop <= self.table.n_keys:
            raise ConfigurationError(f"ids {start:,} to {stop:,} are not within the dictionary's {len(self):,} keys")
        return native_array("+s", stop - start, NULL, NULL, NULL, self._columns(start, stop), self.encoder._names)

    cdef int assign_key_groups(self) except -1:
        cdef int64_t done = self.groups.size // 4, stop
        cdef int64_t[::1] indexes = np.arange(len(self.encoder._names), dtype=np.int64)
        cdef RecordBatch added
        buffer_reserve(&self.groups, (self.table.n_keys - done) * 4)
        while done < self.table.n_keys:
            stop = min(done + GROUPED_AT_ONCE, <int64_t> self.table.n_keys)
            added = RecordBatch(self.keys(done, stop))
            key_groups_of(
                added, &indexes[0], added.num_columns, self.max_parallelism, <int32_t*> self.groups.data + done
            )
            self.groups.size = stop * 4
            done = stop
        return 0

    def key_group(self, const uint32_t[::1] ids not None):
        """Key groups of keys, by id.

        Parameters
        ----------
        ids : numpy.ndarray of uint32, shape (n,)

        Returns
        -------
        numpy.ndarray of int32, shape (n,)

        Raises
        ------
        ConfigurationError
            If an id is not one of the dictionary's.
        """
        cdef int64_t n = ids.shape[0], i
        cdef int32_t[::1] out
        result = np.empty(n, dtype=np.int32)
        self.assign_key_groups()
        out = result
        for i in range(n):
            if ids[i] >= self.table.n_keys:
                raise ConfigurationError(f"id {ids[i]:,} is not one of the dictionary's {len(self):,} keys")
            out[i] = (<int32_t*> self.groups.data)[ids[i]]
        return result

    def _check(self):
        """Assert every invariant of the index and of the keys' storage."""
        cdef KeyTable* table = &self.table
        cdef const int64_t* offsets = <const int64_t*> table.offsets.data
        cdef uint64_t at, code, hash
        cdef int64_t occupied = 0, k
        if table.slots == NULL:
            assert table.n_keys == 0
            return
        assert table.mask & (table.mask + 1) == 0, "the number of slots is no power of two"
        for at in range(table.mask + 1):
            occupied += table.slots[at].number != 0
        assert occupied == table.n_keys, f"{occupied} slots for {table.n_keys} keys"
        assert <uint64_t> occupied * 3 <= (table.mask + 1) * 2, "the index is too full"
        for k in range(table.n_keys):
            if table.bytes_keys:
                assert offsets[0] == 0 and offsets[k] <= offsets[k + 1], f"offsets of key {k}"
                code = hash = _hash_bytes(table.data.data + offsets[k], offsets[k + 1] - offsets[k])
                assert (<uint64_t*> table.hashes.data)[k] == hash, f"hash of key {k}"
            else:
                code = <uint64_t> (<int64_t*> table.values.data)[k]
                hash = _mix(code)
            at = hash & table.mask
            while table.slots[at].number != <uint32_t> (k + 1):
                assert table.slots[at].number, f"key {k} is not found from its slot"
                at = (at + 1) & table.mask
            assert table.slots[at].code == code, f"code of key {k}"
        if table.bytes_keys:
            assert table.offsets.size == (8 * (<int64_t> table.n_keys + 1) if table.n_keys else 0)
            assert table.n_keys == 0 or offsets[table.n_keys] == table.data.size
        else:
            assert table.values.size == 8 * <int64_t> table.n_keys

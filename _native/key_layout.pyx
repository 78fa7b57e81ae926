"""Composite keys as bytes, written and read column by column.

A composite key is one run of bytes per row:

    flags         fixed part                                      varying part
    | 1 bit per | value or, of all varying fields but the last, | bytes of the varying |
    | field     | uint32 length                                 | fields, end to end   |

A flag is set where the field is not null; the fixed part of a null field is zero. So equal keys have equal bytes.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore._native.arrow cimport (
    BitBuffer,
    Buffer,
    Column,
    ColumnType,
    bool_value,
    buffer_reserve,
    bytes_value,
    is_valid,
)


cdef enum:
    MILLISECONDS_OF_DAY = 86_400_000


# ---- columns to keys ------------------------------------------------------------------------------------------------


cdef inline uint32_t _float_bits(uint32_t bits) noexcept nogil:
    return <uint32_t> 0x7FC00000 if (bits & <uint32_t> 0x7FFFFFFF) > <uint32_t> 0x7F800000 else bits


cdef inline uint64_t _double_bits(uint64_t bits) noexcept nogil:
    if (bits & <uint64_t> 0x7FFFFFFFFFFFFFFF) > <uint64_t> 0x7FF0000000000000:
        return <uint64_t> 0x7FF8000000000000
    return bits


cdef inline int64_t _whole_day(int64_t milliseconds) noexcept nogil:
    # A date64 is a date, whatever its time of day.
    cdef int64_t rest = milliseconds % MILLISECONDS_OF_DAY  # truncates
    if rest < 0:
        rest += MILLISECONDS_OF_DAY
    return <int64_t> (<uint64_t> milliseconds - <uint64_t> rest)


cdef void widen_values(const Column* column, int64_t* out) noexcept nogil:
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
    cdef int64_t row, day
    if field.type == ColumnType.FLOAT64:
        for row in range(n):
            double_bits = _double_bits((<const uint64_t*> column.values)[row])
            memcpy(to + offsets[row], &double_bits, 8)
    elif field.type == ColumnType.FLOAT32:
        for row in range(n):
            float_bits = _float_bits((<const uint32_t*> column.values)[row])
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


cdef void _write_nulls(
    const KeyField* fields, int64_t f, int64_t n, const int64_t* offsets, uint8_t* data
) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        if _is_null(fields, f, row):
            data[offsets[row] + (f >> 3)] &= <uint8_t> ~(1 << (f & 7))
            memset(data + offsets[row] + fields[f].position, 0, fields[f].width)


cdef int64_t measure_composite(
    const KeyField* fields, int64_t n_fields, int64_t fixed_size, int64_t n, int64_t* offsets
) noexcept nogil:
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


cdef void write_composite(
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


cdef int pack_bits(
    const uint8_t* bytes, const int64_t* offsets, int64_t stride, uint8_t mask, int64_t n, BitBuffer* bits
) except -1 nogil:
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


cdef int narrow_values(const int64_t* values, int64_t width, int64_t n, Buffer* out) except -1 nogil:
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


cdef int read_fixed(
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


cdef int read_varying(
    const KeyField* field,
    const uint8_t* data,
    const int64_t* offsets,
    int64_t n,
    int64_t* cursors,
    Buffer* starts,
    Buffer* bytes,
) except -1 nogil:
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


cdef int buffer_resize(Buffer* buffer, int64_t size) except -1 nogil:
    buffer.size = 0
    buffer_reserve(buffer, size)
    buffer.size = size
    return 0

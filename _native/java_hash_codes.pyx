"""Java hash codes of Arrow values: the `hashCode` of the Java class that Flink has for a type.

| Arrow type                     | Java                                                                      |
|--------------------------------|---------------------------------------------------------------------------|
| int8, int16, int32, int64      | Byte, Short, Integer, Long                                                |
| uint8, uint16, uint32          | the next wider signed type                                                |
| uint64                         | Long of the same bits, as `Long.parseUnsignedLong` gives                  |
| bool                           | Boolean                                                                   |
| float, double                  | Float, Double: every NaN alike, -0.0 unlike 0.0                           |
| decimal128                     | BigDecimal with the column's scale                                        |
| string, large_string           | String: over UTF-16 units                                                 |
| binary of any kind             | byte[], by `Arrays.hashCode` (as in a Row; Flink has no byte[] keys)      |
| date32, date64                 | LocalDate; date64 is floored to its day                                   |
| timestamp, zoned or not        | Instant                                                                   |
| time32, time64                 | LocalTime                                                                 |
| duration                       | Duration                                                                  |
| struct                         | `Row.of(fields)` of kind INSERT; nulls inside are allowed                 |

Rows are hashed in blocks: one loop per type without branches, then nulls and composites on what it left in the cache.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport atoi
from libc.string cimport memcpy, memset, strchr

from flinkcore._native.arrow cimport Column, ColumnType, bool_value, bytes_value, is_valid

cdef uint64_t ALL_SIGNS = <uint64_t> 0x8080808080808080

# 31^k, and 31^(k-1) + ... + 31 + 1
cdef uint32_t[9] _POWERS
cdef uint32_t[9] _SUMS
_POWERS[0] = 1
_SUMS[0] = 0
for _k in range(1, 9):
    _POWERS[_k] = <uint32_t> (31 * <uint64_t> _POWERS[_k - 1])
    _SUMS[_k] = <uint32_t> (31 * <uint64_t> _SUMS[_k - 1] + 1)


# ---- strings and bytes -------------------------------------------------------------------------------------------


cdef inline uint32_t _polynomial(uint64_t word) noexcept nogil:
    # b0 * 31^7 + ... + b6 * 31 + b7 of the word's bytes in memory order: neighbours, then pairs, then fours at once.
    cdef uint64_t lanes = (word & <uint64_t> 0x00FF00FF00FF00FF) * 31 + ((word >> 8) & <uint64_t> 0x00FF00FF00FF00FF)
    lanes = (lanes & <uint64_t> 0x0000FFFF0000FFFF) * 961 + ((lanes >> 16) & <uint64_t> 0x0000FFFF0000FFFF)
    return <uint32_t> lanes * <uint32_t> 923521 + <uint32_t> (lanes >> 32)


cdef inline uint64_t _last_bytes(const uint8_t* base, const uint8_t* at, int64_t k, uint64_t flip) noexcept nogil:
    # The k < 8 bytes at `at`, xored with `flip`, behind 8 - k zero bytes. Memory is readable from `base` on.
    cdef uint64_t word = 0
    if k == 0:
        return 0
    if at - base >= 8 - k:
        memcpy(&word, at + k - 8, 8)
    else:
        memcpy(<uint8_t*> &word + (8 - k), at, k)
    return ((word ^ flip) >> (64 - 8 * k)) << (64 - 8 * k)


cdef uint32_t _utf16_hash(uint32_t hash, const uint8_t* at, const uint8_t* end) noexcept nogil:
    # Goes on with a hash, over the UTF-16 units of UTF-8 bytes. Bytes that are cut off count as U+FFFD.
    cdef uint32_t code
    while at < end:
        code = at[0]
        if code < 0x80:
            at += 1
        elif code < 0xE0 and end - at >= 2:
            code = (code & 0x1F) << 6 | (at[1] & 0x3F)
            at += 2
        elif code < 0xF0 and end - at >= 3:
            code = (code & 0x0F) << 12 | (<uint32_t> at[1] & 0x3F) << 6 | (at[2] & 0x3F)
            at += 3
        elif end - at >= 4:
            code = (code & 0x07) << 18 | (<uint32_t> at[1] & 0x3F) << 12
            code |= (<uint32_t> at[2] & 0x3F) << 6 | (at[3] & 0x3F)
            at += 4
            hash = hash * 31 + (0xD7C0 + (code >> 10))
            code = 0xDC00 + (code & 0x3FF)
        else:
            code = 0xFFFD
            at += 1
        hash = hash * 31 + code
    return hash


cdef inline uint32_t _text_hash(const uint8_t* base, const uint8_t* at, int64_t length) noexcept nogil:
    cdef const uint8_t* end = at + length
    cdef uint32_t hash = 0
    cdef uint64_t word
    while end - at >= 8:
        memcpy(&word, at, 8)
        if word & ALL_SIGNS:
            return _utf16_hash(hash, at, end)
        hash = hash * _POWERS[8] + _polynomial(word)
        at += 8
    word = _last_bytes(base, at, end - at, 0)
    if word & ALL_SIGNS:
        return _utf16_hash(hash, at, end)
    return hash * _POWERS[end - at] + _polynomial(word)


cdef inline uint32_t _bytes_hash(const uint8_t* base, const uint8_t* at, int64_t length) noexcept nogil:
    # Java's bytes are signed: 128 is added to each, and its share subtracted again.
    cdef const uint8_t* end = at + length
    cdef uint32_t hash = 1
    cdef uint64_t word
    while end - at >= 8:
        memcpy(&word, at, 8)
        hash = hash * _POWERS[8] + _polynomial(word ^ ALL_SIGNS) - 128 * _SUMS[8]
        at += 8
    word = _last_bytes(base, at, end - at, ALL_SIGNS)
    return hash * _POWERS[end - at] + _polynomial(word) - 128 * _SUMS[end - at]


# ---- fixed widths ------------------------------------------------------------------------------------------------


cdef inline uint32_t _fold(uint64_t bits) noexcept nogil:
    return <uint32_t> (bits ^ (bits >> 32))


cdef inline int64_t _floor_div(int64_t value, int64_t divisor) noexcept nogil:
    cdef int64_t quotient = value / divisor
    return quotient - (quotient * divisor > value)


cdef inline uint32_t _local_date_hash(int64_t epoch_day) noexcept nogil:
    # Years here begin in March, in eras of 400 years, so that the leap day comes last.
    cdef int64_t day = epoch_day + 719468
    cdef int64_t era = _floor_div(day, 146097)
    cdef uint32_t day_of_era = <uint32_t> (day - era * 146097)
    cdef uint32_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365
    cdef uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100)
    cdef uint32_t shifted_month = (5 * day_of_year + 2) / 153
    cdef uint32_t day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1
    cdef uint32_t month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    cdef uint32_t year = <uint32_t> (era * 400) + year_of_era + (month <= 2)
    return (year & <uint32_t> 0xFFFFF800) ^ ((year << 11) + (month << 6) + day_of_month)


cdef inline void _instants(
    const int64_t* values, int64_t n, int64_t per_second, uint32_t nanos_each, uint32_t* out
) noexcept nogil:
    cdef int64_t i, seconds
    cdef uint32_t rest
    for i in range(n):
        seconds = _floor_div(values[i], per_second)
        rest = <uint32_t> (<uint64_t> values[i] - <uint64_t> seconds * <uint64_t> per_second)
        out[i] = _fold(<uint64_t> seconds) + 51 * (rest * nanos_each)


cdef void _instants_of_unit(const int64_t* values, int64_t n, char unit, uint32_t* out) noexcept nogil:
    if unit == b"s":
        _instants(values, n, 1, 0, out)
    elif unit == b"m":
        _instants(values, n, 1000, 1000000, out)
    elif unit == b"u":
        _instants(values, n, 1000000, 1000, out)
    else:
        _instants(values, n, 1000000000, 1, out)


cdef void _big_decimals(const uint64_t* values, int64_t n, uint32_t scale, uint32_t* out) noexcept nogil:
    # BigInteger hashes its magnitude in 32-bit words, high ones first, and gives the hash its sign.
    cdef uint64_t low, high
    cdef uint32_t hash
    cdef bint negative
    cdef int64_t i
    for i in range(n):
        low = values[2 * i]
        high = values[2 * i + 1]
        negative = high >> 63
        if negative:
            low = 0 - low
            high = ~high + (low == 0)
        hash = <uint32_t> (high >> 32) * <uint32_t> 31 + <uint32_t> high
        hash = (hash * 31 + <uint32_t> (low >> 32)) * 31 + <uint32_t> low
        out[i] = 31 * (0 - hash if negative else hash) + scale


cdef inline uint32_t _float_hash(uint32_t bits) noexcept nogil:
    return <uint32_t> 0x7FC00000 if (bits & <uint32_t> 0x7FFFFFFF) > <uint32_t> 0x7F800000 else bits


cdef inline uint32_t _double_hash(uint64_t bits) noexcept nogil:
    if (bits & <uint64_t> 0x7FFFFFFFFFFFFFFF) > <uint64_t> 0x7FF0000000000000:
        bits = <uint64_t> 0x7FF8000000000000
    return _fold(bits)


# ---- columns -----------------------------------------------------------------------------------------------------


cdef void _hash_structs(const Column* column, int64_t first, int64_t n, uint32_t* out) noexcept nogil:
    # RowUtils.deepHashCodeRow: a field counts 31 + its hash code, a null field 0.
    cdef uint32_t[HASH_BLOCK] field
    cdef Column* child
    cdef int64_t c, i
    for i in range(n):
        out[i] = 1
    for c in range(column.n_children):
        child = &column.children[c]
        hash_block(child, first, n, field)
        if child.null_count == 0:
            for i in range(n):
                out[i] = out[i] * 31 + (31 + field[i])
        else:
            for i in range(n):
                out[i] = out[i] * 31 + (31 + field[i]) * is_valid(child, first + i)


cdef void hash_block(const Column* column, int64_t first, int64_t n, uint32_t* out) noexcept nogil:
    cdef ColumnType t = column.type
    cdef const uint8_t* start
    cdef int64_t i, length
    if t == ColumnType.INT64 or t == ColumnType.UINT64:
        for i in range(n):
            out[i] = _fold((<const uint64_t*> column.values + first)[i])
    elif t == ColumnType.INT32 or t == ColumnType.UINT32:
        memcpy(out, <const uint32_t*> column.values + first, n * 4)
    elif t == ColumnType.INT16:
        for i in range(n):
            out[i] = <uint32_t> (<const short*> column.values + first)[i]
    elif t == ColumnType.UINT16:
        for i in range(n):
            out[i] = (<const unsigned short*> column.values + first)[i]
    elif t == ColumnType.INT8:
        for i in range(n):
            out[i] = <uint32_t> (<const signed char*> column.values + first)[i]
    elif t == ColumnType.UINT8:
        for i in range(n):
            out[i] = (<const uint8_t*> column.values + first)[i]
    elif t == ColumnType.BOOL:
        for i in range(n):
            out[i] = 1231 if bool_value(column, first + i) else 1237
    elif t == ColumnType.FLOAT32:
        for i in range(n):
            out[i] = _float_hash((<const uint32_t*> column.values + first)[i])
    elif t == ColumnType.FLOAT64:
        for i in range(n):
            out[i] = _double_hash((<const uint64_t*> column.values + first)[i])
    elif t == ColumnType.DATE32:
        for i in range(n):
            out[i] = _local_date_hash((<const int32_t*> column.values + first)[i])
    elif t == ColumnType.DATE64:
        for i in range(n):
            out[i] = _local_date_hash(_floor_div((<const int64_t*> column.values + first)[i], 86400000))
    elif t == ColumnType.TIME32:
        for i in range(n):
            out[i] = _fold(
                <uint64_t> (<const int32_t*> column.values + first)[i]
                * <uint64_t> (1000000000 if column.format[2] == b"s" else 1000000)
            )
    elif t == ColumnType.TIME64:
        for i in range(n):
            out[i] = _fold(
                (<const uint64_t*> column.values + first)[i] * <uint64_t> (1000 if column.format[2] == b"u" else 1)
            )
    elif t == ColumnType.TIMESTAMP or t == ColumnType.DURATION:
        _instants_of_unit(<const int64_t*> column.values + first, n, column.format[2], out)
    elif t == ColumnType.DECIMAL128:
        _big_decimals(
            <const uint64_t*> column.values + 2 * first, n, <uint32_t> atoi(strchr(column.format, b",") + 1), out
        )
    elif t == ColumnType.STRING or t == ColumnType.LARGE_STRING:
        for i in range(n):
            length = bytes_value(column, first + i, &start)
            out[i] = _text_hash(<const uint8_t*> column.values, start, length)
    elif t == ColumnType.BINARY or t == ColumnType.LARGE_BINARY or t == ColumnType.FIXED_BINARY:
        for i in range(n):
            length = bytes_value(column, first + i, &start)
            out[i] = _bytes_hash(<const uint8_t*> column.values, start, length)
    elif t == ColumnType.STRUCT:
        _hash_structs(column, first, n, out)
    else:
        memset(out, 0, n * 4)


cdef void hash_column(const Column* column, uint32_t* out) noexcept nogil:
    cdef int64_t first = 0, row
    while first < column.length:
        hash_block(column, first, min(HASH_BLOCK, column.length - first), out + first)
        first += HASH_BLOCK
    if column.null_count:
        for row in range(column.length):
            out[row] *= is_valid(column, row)

"""Flink's key groups: the Java hash code of a key, mixed by murmur, modulo the maximum parallelism.

Follows `KeyGroupRangeAssignment` and `MathUtils.murmurHash`. The hash code of a value is `hashCode` of the Java class that Flink has
for its type:

| Arrow type                     | Java                                                                      |
|--------------------------------|---------------------------------------------------------------------------|
| int8, int16, int32, int64      | Byte, Short, Integer, Long                                                |
| uint8, uint16, uint32          | the next wider signed type                                                |
| uint64                         | Long of the same bits, as `Long.parseUnsignedLong` returns                |
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

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport atoi, free, malloc
from libc.string cimport memcpy, memset, strchr

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport Column, ColumnArray, ColumnType, RecordBatch, bool_value, bytes_value, is_valid
from flinkcore._native.keys cimport double_key_bits, float_key_bits


cdef enum:
    HASH_BLOCK = 1024


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
    # Returns the k < 8 bytes at `at`, xored with `flip`, after 8 - k zero bytes. Memory is readable from `base` on.
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
    # BigInteger hashes its magnitude in 32-bit words, high ones first, and multiplies the hash by its sign.
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
        _hash_block(child, first, n, field)
        if child.null_count == 0:
            for i in range(n):
                out[i] = out[i] * 31 + (31 + field[i])
        else:
            for i in range(n):
                out[i] = out[i] * 31 + (31 + field[i]) * is_valid(child, first + i)


cdef void _hash_block(const Column* column, int64_t first, int64_t n, uint32_t* out) noexcept nogil:
    # Hash codes of rows first..first+n; those of null rows mean nothing. n is at most HASH_BLOCK.
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
            out[i] = float_key_bits((<const uint32_t*> column.values + first)[i])
    elif t == ColumnType.FLOAT64:
        for i in range(n):
            out[i] = _fold(double_key_bits((<const uint64_t*> column.values + first)[i]))
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


cdef void _hash_column(const Column* column, uint32_t* out) noexcept nogil:
    # Objects.hashCode of every row: 0 for null.
    cdef int64_t first = 0, row
    while first < column.length:
        _hash_block(column, first, min(HASH_BLOCK, column.length - first), out + first)
        first += HASH_BLOCK
    if column.null_count:
        for row in range(column.length):
            out[row] *= is_valid(column, row)


# ---- key groups --------------------------------------------------------------------------------------------------


cdef int64_t UPPER_BOUND_MAX_PARALLELISM = 1 << 15
cdef int64_t DEFAULT_LOWER_BOUND_MAX_PARALLELISM = 1 << 7


cdef inline uint32_t _murmur(uint32_t code) noexcept nogil:
    cdef uint32_t sign
    code *= <uint32_t> 0xCC9E2D51
    code = code << 15 | code >> 17
    code *= <uint32_t> 0x1B873593
    code = code << 13 | code >> 19
    code = code * 5 + <uint32_t> 0xE6546B64
    code ^= 4
    code ^= code >> 16
    code *= <uint32_t> 0x85EBCA6B
    code ^= code >> 13
    code *= <uint32_t> 0xC2B2AE35
    code ^= code >> 16
    sign = 0 - (code >> 31)
    code = (code ^ sign) - sign
    return code & <uint32_t> 0x7FFFFFFF  # -Integer.MIN_VALUE, the only one that stays negative, counts as 0


cdef void _group_codes(const uint32_t* codes, int64_t n, uint32_t max_parallelism, uint32_t* out) noexcept nogil:
    cdef double inverse = 1.0 / max_parallelism
    cdef uint32_t code, quotient, beyond
    cdef int64_t i
    if max_parallelism & (max_parallelism - 1) == 0:
        for i in range(n):
            out[i] = _murmur(codes[i]) & (max_parallelism - 1)
        return
    for i in range(n):
        # The remainder through doubles, which vectorises. Codes have 31 bits: the quotient is exact or, if the division leaves
        # no remainder, possibly one too small.
        code = _murmur(codes[i])
        quotient = <uint32_t> <int32_t> (<double> <int32_t> code * inverse)
        beyond = code - quotient * max_parallelism - max_parallelism
        out[i] = beyond + (max_parallelism & (0 - (beyond >> 31)))


cdef void _assign_groups(const Column* column, int32_t max_parallelism, int32_t* out) noexcept nogil:
    cdef uint32_t[HASH_BLOCK] codes
    cdef int64_t first = 0, n, row
    while first < column.length:
        n = min(HASH_BLOCK, column.length - first)
        _hash_block(column, first, n, codes)
        if column.null_count:
            for row in range(n):
                codes[row] *= is_valid(column, first + row)
        _group_codes(codes, n, <uint32_t> max_parallelism, <uint32_t*> out + first)
        first += HASH_BLOCK


cdef int refuse_null_key(int64_t row) except -1:
    raise DataError(f"row {row}: the key is null; filter such rows out, or key by several columns", row=row)


cdef int _refuse_null_keys(const Column* column) except -1:
    cdef int64_t row = 0
    if column.null_count:
        while is_valid(column, row):
            row += 1
        refuse_null_key(row)
    return 0


cdef int32_t checked_max_parallelism(object max_parallelism) except -1:
    if not 0 < max_parallelism <= INT32_MAX:
        raise ConfigurationError(f"max_parallelism must be between 1 and {INT32_MAX:,}, not {max_parallelism:,}")
    return max_parallelism


cdef int key_groups_of(
    RecordBatch batch, const int64_t* indexes, int64_t n, int32_t max_parallelism, int32_t* out
) except -1:
    cdef Column row
    cdef int64_t i
    checked_max_parallelism(max_parallelism)
    if n == 1:
        with nogil:
            _assign_groups(&batch.columns[indexes[0]], max_parallelism, out)
        return 0
    memset(&row, 0, sizeof(Column))
    row.type = ColumnType.STRUCT
    row.length = batch.num_rows
    row.n_children = n
    row.children = <Column*> malloc((n + 1) * sizeof(Column))
    if row.children == NULL:
        raise MemoryError()
    for i in range(n):
        row.children[i] = batch.columns[indexes[i]]
    with nogil:
        _assign_groups(&row, max_parallelism, out)
    free(row.children)
    return 0


cdef const Column* _key_column(ColumnArray array) except NULL:
    # To the Arrow protocol, a record batch is a struct array. One of one column is that column.
    if array.column.type != ColumnType.STRUCT:
        return &array.column
    if array.column.null_count:
        raise SchemaError("a record batch (or struct array) with null rows is not supported; drop them first")
    return &array.column.children[0] if array.column.n_children == 1 else &array.column


def hash_codes(array):
    """Java hash codes of keys.

    Parameters
    ----------
    array
        Arrow array or record batch of n rows, any object with `__arrow_c_array__`; nulls are allowed. A record batch
        of one column is that column, one of several columns is Flink's `Row.of` them. A struct array is taken as a
        record batch, so a Row of one field is a record batch with one struct column.

    Returns
    -------
    numpy.ndarray of int32, shape (n,)
        `hashCode()` of each key, 0 for null.

    Raises
    ------
    SchemaError
        If a column's type is not supported, or a struct array has null rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> hash_codes(pa.array(["flink", None]))
    array([97520992,        0], dtype=int32)
    """
    import numpy as np

    cdef ColumnArray keys = ColumnArray(array)
    cdef const Column* column = _key_column(keys)
    cdef int32_t[::1] out
    result = np.empty(column.length, dtype=np.int32)
    if column.length:
        out = result
        with nogil:
            _hash_column(column, <uint32_t*> &out[0])
    return result


def key_groups(array, max_parallelism, *, null_keys=False):
    """Key groups of keys, as Flink assigns them.

    Follows `KeyGroupRangeAssignment.assignToKeyGroup`. Like there, a maximum parallelism above 32,768 is
    accepted; unlike there, a negative one is an error, as 0 is.

    Parameters
    ----------
    array
        Arrow array or record batch of n rows, as for `hash_codes`; keys are not null, but fields of a composite key
        may be.
    max_parallelism : int
        Number of key groups, positive.
    null_keys : bool
        Whether null is a key like others, of the hash code 0.

    Returns
    -------
    numpy.ndarray of int32, shape (n,)
        From 0 to max_parallelism - 1.

    Raises
    ------
    DataError
        If a key is null, unless `null_keys`.
    ConfigurationError
        If the maximum parallelism is not positive.

    Examples
    --------
    >>> import pyarrow as pa
    >>> key_groups(pa.array([0, 1, 2]), 128)
    array([ 94,  86, 127], dtype=int32)
    """
    import numpy as np

    cdef ColumnArray keys = ColumnArray(array)
    cdef const Column* column = _key_column(keys)
    cdef int32_t groups = checked_max_parallelism(max_parallelism)
    cdef int32_t[::1] out
    if not null_keys:
        _refuse_null_keys(column)
    result = np.empty(column.length, dtype=np.int32)
    if column.length:
        out = result
        with nogil:
            _assign_groups(column, groups, &out[0])
    return result


def key_group(key, max_parallelism):
    """Return the key group of one Python value, as Flink assigns it to the corresponding Java object; about 0.1 µs.

    Parameters
    ----------
    key : int, float, str, bytes or bool
        A value of exactly one of these types; Long, Double, String, byte[] or Boolean in Java.
    max_parallelism : int
        Number of key groups, positive.

    Returns
    -------
    int or None
        The key group from 0 to max_parallelism - 1, or None for a value of another type or an int beyond 64 bits: for these,
        use a column of one row.

    Raises
    ------
    UnicodeEncodeError
        If a str has lone surrogates.
    ConfigurationError
        If the maximum parallelism is not positive.

    Examples
    --------
    >>> key_group(0, 128)
    94
    """
    cdef int32_t groups = checked_max_parallelism(max_parallelism), group
    cdef int64_t integer
    cdef double number
    cdef uint8_t truth
    cdef int64_t[2] offsets
    cdef bytes text
    cdef Column column
    memset(&column, 0, sizeof(Column))
    column.length = 1
    kind = type(key)
    if kind is str or kind is bytes:
        text = key.encode() if kind is str else key
        offsets[0] = 0
        offsets[1] = len(text)
        column.type = ColumnType.LARGE_STRING if kind is str else ColumnType.LARGE_BINARY
        column.values = <const char*> text
        column.offsets = offsets
    elif kind is int:
        try:
            integer = key
        except OverflowError:
            return None
        column.type = ColumnType.INT64
        column.values = &integer
    elif kind is float:
        number = key
        column.type = ColumnType.FLOAT64
        column.values = &number
    elif kind is bool:
        truth = key
        column.type = ColumnType.BOOL
        column.values = &truth
    else:
        return None
    _assign_groups(&column, groups, &group)
    return group


def assign_key_to_parallel_operator(array, max_parallelism, parallelism):
    """Indexes of the parallel operators that handle keys.

    Follows `KeyGroupRangeAssignment.assignKeyToParallelOperator`.

    Parameters
    ----------
    array
        Arrow array or record batch of n rows, as for `key_groups`.
    max_parallelism, parallelism : int

    Returns
    -------
    numpy.ndarray of int32, shape (n,)

    Raises
    ------
    DataError
        If a key is null.
    ConfigurationError
        If the maximum parallelism is not positive.
    """
    import numpy as np

    groups = key_groups(array, max_parallelism).astype(np.int64)
    return (groups * parallelism // max_parallelism).astype(np.int32)


cdef int _check_parallelism(parallelism) except -1:
    if not 0 < parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise ConfigurationError(
            f"operator parallelism must be between 1 and {UPPER_BOUND_MAX_PARALLELISM:,}, not {parallelism:,}"
        )
    return 0


def compute_key_group_range_for_operator_index(max_parallelism, parallelism, operator_index):
    """First and last key group of one of several parallel operators.

    Follows `KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex`; unlike there, an index that no operator
    has is an error.

    Parameters
    ----------
    max_parallelism, parallelism : int
        From 1 to 32,768; the maximum is not below the parallelism.
    operator_index : int
        From 0 to parallelism - 1.

    Returns
    -------
    tuple of int
        Both inclusive.

    Raises
    ------
    ConfigurationError
        If a number is out of its bounds.

    Examples
    --------
    >>> compute_key_group_range_for_operator_index(128, 3, 1)
    (43, 85)
    """
    _check_parallelism(parallelism)
    _check_parallelism(max_parallelism)
    if max_parallelism < parallelism:
        raise ConfigurationError(
            f"the maximum parallelism {max_parallelism:,} must not be smaller than the parallelism {parallelism:,}"
        )
    if not 0 <= operator_index < parallelism:
        raise ConfigurationError(f"operator index {operator_index:,} is not in 0..{parallelism - 1:,}")
    first = (operator_index * max_parallelism + parallelism - 1) // parallelism
    return first, ((operator_index + 1) * max_parallelism - 1) // parallelism


def compute_operator_index_for_key_group(max_parallelism, parallelism, key_group_id):
    """Index of the parallel operator that handles a key group.

    Follows `KeyGroupRangeAssignment.computeOperatorIndexForKeyGroup`, which checks nothing but division by zero.

    Parameters
    ----------
    max_parallelism, parallelism : int
    key_group_id : int
        From 0 to max_parallelism - 1.

    Returns
    -------
    int

    Raises
    ------
    ConfigurationError
        If the maximum parallelism is not positive.
    """
    return key_group_id * parallelism // checked_max_parallelism(max_parallelism)


def compute_default_max_parallelism(operator_parallelism):
    """The maximum parallelism that Flink chooses where none is set: a power of two from 128 to 32,768.

    Follows `KeyGroupRangeAssignment.computeDefaultMaxParallelism`.

    Parameters
    ----------
    operator_parallelism : int
        From 1 to 32,768.

    Returns
    -------
    int

    Raises
    ------
    ConfigurationError
        If the parallelism is out of its bounds.

    Examples
    --------
    >>> compute_default_max_parallelism(100)
    256
    """
    _check_parallelism(operator_parallelism)
    wanted = 1 << (operator_parallelism + operator_parallelism // 2 - 1).bit_length()
    return min(max(wanted, DEFAULT_LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)

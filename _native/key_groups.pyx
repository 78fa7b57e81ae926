"""Key groups: the Java hash code of a key, mixed by Flink's murmur, modulo the maximum parallelism.

Follows `KeyGroupRangeAssignment` and `MathUtils.murmurHash`.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from flinkcore.errors import ConfigurationError, DataError, SchemaError

from flinkcore._native.arrow cimport Column, ColumnArray, ColumnType, RecordBatch, is_valid
from flinkcore._native.java_hash_codes cimport HASH_BLOCK, hash_block, hash_column

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
        # The remainder by way of doubles, which vectorises. Codes have 31 bits: the quotient is exact or, where the
        # division leaves no remainder, possibly one too small.
        code = _murmur(codes[i])
        quotient = <uint32_t> <int32_t> (<double> <int32_t> code * inverse)
        beyond = code - quotient * max_parallelism - max_parallelism
        out[i] = beyond + (max_parallelism & (0 - (beyond >> 31)))


cdef void _assign_groups(const Column* column, int32_t max_parallelism, int32_t* out) noexcept nogil:
    cdef uint32_t[HASH_BLOCK] codes
    cdef int64_t first = 0, n
    while first < column.length:
        n = min(HASH_BLOCK, column.length - first)
        hash_block(column, first, n, codes)
        _group_codes(codes, n, <uint32_t> max_parallelism, <uint32_t*> out + first)
        first += HASH_BLOCK


cdef int _refuse_null_key(const Column* column) except -1:
    cdef int64_t row = 0
    if column.null_count:
        while is_valid(column, row):
            row += 1
        raise DataError(f"row {row}: the key is null; filter such rows out, or key by several columns")
    return 0


cdef int64_t _check_max_parallelism(max_parallelism) except -1:
    if not 0 < max_parallelism <= INT32_MAX:
        raise ConfigurationError(f"max_parallelism must be between 1 and {INT32_MAX:,}, not {max_parallelism:,}")
    return max_parallelism


cdef int key_groups_of(
    RecordBatch batch, const int64_t* indexes, int64_t n, int32_t max_parallelism, int32_t* out
) except -1:
    cdef Column row
    cdef int64_t i
    _check_max_parallelism(max_parallelism)
    if n == 1:
        _refuse_null_key(&batch.columns[indexes[0]])
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
            hash_column(column, <uint32_t*> &out[0])
    return result


def key_groups(array, max_parallelism):
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

    Returns
    -------
    numpy.ndarray of int32, shape (n,)
        From 0 to max_parallelism - 1.

    Raises
    ------
    DataError
        If a key is null.
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
    cdef int32_t groups = <int32_t> _check_max_parallelism(max_parallelism)
    cdef int32_t[::1] out
    _refuse_null_key(column)
    result = np.empty(column.length, dtype=np.int32)
    if column.length:
        out = result
        with nogil:
            _assign_groups(column, groups, &out[0])
    return result


def key_group(key, max_parallelism):
    """Key group of one Python value, as Flink assigns it to the Java object that stands for it; about 0.1 µs.

    Parameters
    ----------
    key : int, float, str, bytes or bool
        Of just this type; Long, Double, String, byte[] or Boolean in Java.
    max_parallelism : int
        Number of key groups, positive.

    Returns
    -------
    int or None
        From 0 to max_parallelism - 1; None for a value of another type, and for an int beyond 64 bits: a column of
        one row has its key group.

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
    cdef int32_t groups = <int32_t> _check_max_parallelism(max_parallelism), group
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
    return key_group_id * parallelism // _check_max_parallelism(max_parallelism)


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

"""Growing result columns of any type, written from words or bytes."""

from libc.stdint cimport INT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from flinkcore.errors import DataError

from flinkcore._native.arrow cimport advise_large, native_array
from flinkcore._native.column_blocks cimport ValueState
from flinkcore._native.memory cimport bits_append, bits_append_many, buffer_free, buffer_reserve

ctypedef fused narrow:
    int8_t
    int16_t
    int32_t


cdef inline bint _has_int32_offsets(const ResultColumn* result) noexcept nogil:
    return result.type == ColumnType.STRING or result.type == ColumnType.BINARY


cdef inline bint _has_int64_offsets(const ResultColumn* result) noexcept nogil:
    return result.type == ColumnType.LARGE_STRING or result.type == ColumnType.LARGE_BINARY


cdef int _reserve_bits(BitBuffer* bits, int64_t length) except -1 nogil:
    # A whole byte more: an append may open the next one.
    return buffer_reserve(&bits.bytes, (length >> 3) + 2 - bits.bytes.size)


cdef int _refuse_size(const ResultColumn* result) except -1 with gil:
    # On its own: a function with an object of Python's takes the GIL each time that it is left.
    name = result.name.decode()
    raise DataError(
        f"the values of column {name!r} in one batch of results take more than 2 GiB; "
        f"{advise_large(name, result.type == ColumnType.STRING)}"
    )


cdef int result_reserve(ResultColumn* result, int64_t n, int64_t data_bytes) except -1 nogil:
    cdef int32_t width = result.width
    if _has_int32_offsets(result):
        width = 4
        if result.data.size + data_bytes > INT32_MAX:
            _refuse_size(result)
    elif _has_int64_offsets(result):
        width = 8
    _reserve_bits(&result.validity, result.length + n)
    if result.type == ColumnType.BOOL:
        return _reserve_bits(&result.bits, result.length + n)
    buffer_reserve(&result.values, n * width if result.width else (n + 1) * width)
    if result.width == 0 and result.values.size == 0:  # the first offset
        memset(result.values.data, 0, width)
        result.values.size = width
    return buffer_reserve(&result.data, data_bytes)


cdef int result_append_states(ResultColumn* result, const uint8_t* states, int64_t n) except -1 nogil:
    # After the values: result.length counts them already.
    cdef int64_t i, with_value = 0
    for i in range(n):
        with_value += states[i] == ValueState.SOME_VALUE
    if with_value == n:
        if result.validity.length:
            bits_append_many(&result.validity, True, n)
        return 0
    if result.validity.length == 0:
        bits_append_many(&result.validity, True, result.length - n)
    for i in range(n):
        bits_append(&result.validity, states[i] == ValueState.SOME_VALUE)
    return 0


cdef void _narrow(const uint64_t* words, int64_t n, narrow* out) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = <narrow> words[i]


cdef void _narrow_floats(const uint64_t* words, int64_t n, float* out) noexcept nogil:
    cdef int64_t i
    cdef double value
    for i in range(n):
        memcpy(&value, &words[i], 8)
        out[i] = <float> value


cdef int result_append_words(ResultColumn* result, const uint64_t* words, int64_t n) except -1 nogil:
    cdef int64_t i
    cdef uint8_t* out
    result.length += n
    if result.type == ColumnType.BOOL:
        for i in range(n):
            bits_append(&result.bits, words[i] != 0)
        return 0
    out = result.values.data + result.values.size
    if result.width == 8:
        memcpy(out, words, n * 8)
    elif result.type == ColumnType.FLOAT32:
        _narrow_floats(words, n, <float*> out)
    elif result.width == 4:
        _narrow(words, n, <int32_t*> out)
    elif result.width == 2:
        _narrow(words, n, <int16_t*> out)
    else:
        _narrow(words, n, <int8_t*> out)
    result.values.size += n * result.width
    return 0


cdef int result_append_bytes(ResultColumn* result, ByteView view) except -1 nogil:
    cdef uint8_t* out
    result.length += 1
    if result.width:
        out = result.values.data + result.values.size
        if view.length:
            memcpy(out, view.data, result.width)
        else:
            memset(out, 0, result.width)
        result.values.size += result.width
        return 0
    if view.length:
        memcpy(result.data.data + result.data.size, view.data, view.length)
        result.data.size += view.length
    if _has_int32_offsets(result):
        (<int32_t*> (result.values.data + result.values.size))[0] = <int32_t> result.data.size
        result.values.size += 4
    else:
        (<int64_t*> (result.values.data + result.values.size))[0] = result.data.size
        result.values.size += 8
    return 0


cdef NativeArray result_take(ResultColumn* result, str format):
    cdef NativeArray taken
    cdef Buffer* data = &result.data if _has_int32_offsets(result) or _has_int64_offsets(result) else NULL
    cdef Buffer* values = &result.bits.bytes if result.type == ColumnType.BOOL else &result.values
    taken = native_array(format, result.length, &result.validity, values, data)
    result.bits.length = result.bits.zeros = 0
    result.length = 0
    return taken


cdef void result_free(ResultColumn* result) noexcept nogil:
    buffer_free(&result.validity.bytes)
    buffer_free(&result.bits.bytes)
    buffer_free(&result.values)
    buffer_free(&result.data)
    result.validity.length = result.validity.zeros = 0
    result.bits.length = result.bits.zeros = 0
    result.length = 0


cdef int64_t result_memory(const ResultColumn* result) noexcept nogil:
    return (
        result.validity.bytes.capacity + result.bits.bytes.capacity + result.values.capacity + result.data.capacity
    )

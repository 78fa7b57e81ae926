"""Blocks of rows gathered from the columns of a batch: nulls left out, values widened to words or borrowed as bytes.

The loops here are the only ones that know a column's type. What they leave behind lies side by side in a few kilobytes:
an aggregate's own loop has neither a null to test nor a type to ask for, and aggregates over one column share it.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from flinkcore._native.arrow cimport bool_value, is_valid

ctypedef fused integer:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused floating:
    float
    double

ctypedef fused offset:
    int32_t
    int64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define FLINKCORE_SIGN_BIT UINT64_C(0x8000000000000000)
    #define FLINKCORE_INFINITY UINT64_C(0x7FF0000000000000)
    #define FLINKCORE_NAN UINT64_C(0x7FF8000000000000)
    """
    const uint64_t SIGN_BIT "FLINKCORE_SIGN_BIT"
    const uint64_t INFINITY_BITS "FLINKCORE_INFINITY"
    const uint64_t NAN_BITS "FLINKCORE_NAN"


cdef bint is_word(ColumnType type) noexcept nogil:
    return ColumnType.BOOL <= type <= ColumnType.DURATION


cdef bint is_float(ColumnType type) noexcept nogil:
    return type == ColumnType.FLOAT32 or type == ColumnType.FLOAT64


cdef void selection_fill(
    Selection* selection, const Column* column, const uint32_t* entries, const uint32_t* rows, int64_t n
) noexcept nogil:
    cdef int64_t i, kept = 0
    if column == NULL or column.null_count == 0:
        selection.n = n
        selection.entries = entries
        selection.rows = rows
        return
    for i in range(n):
        selection.kept_entries[kept] = entries[i]
        selection.kept_rows[kept] = rows[i]
        kept += is_valid(column, rows[i])
    selection.n = kept
    selection.entries = selection.kept_entries
    selection.rows = selection.kept_rows


cdef int value_block_allocate(ValueBlock* block) except -1:
    if block.representation == Representation.BYTES:
        block.views = <ByteView*> malloc(BLOCK_ROWS * sizeof(ByteView))
    else:
        block.words = <uint64_t*> malloc(BLOCK_ROWS * sizeof(uint64_t))
    if block.views == NULL and block.words == NULL:
        raise MemoryError("a block of values")
    return 0


cdef void value_block_free(ValueBlock* block) noexcept nogil:
    free(block.words)
    free(block.views)
    block.words = NULL
    block.views = NULL


cdef void _gather_integers(const integer* values, const uint32_t* rows, int64_t n, uint64_t* words) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        words[i] = <uint64_t> <int64_t> values[rows[i]]


cdef void _gather_floats(const floating* values, const uint32_t* rows, int64_t n, uint64_t* words) noexcept nogil:
    cdef int64_t i
    cdef double value
    for i in range(n):
        value = values[rows[i]]
        memcpy(&words[i], &value, 8)


cdef void _gather_bools(const Column* column, const uint32_t* rows, int64_t n, uint64_t* words) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        words[i] = bool_value(column, rows[i])


cdef void _gather_words(const Column* column, const uint32_t* rows, int64_t n, uint64_t* words) noexcept nogil:
    cdef ColumnType type = column.type
    if type == ColumnType.BOOL:
        _gather_bools(column, rows, n, words)
    elif type == ColumnType.FLOAT32:
        _gather_floats(<const float*> column.values, rows, n, words)
    elif type == ColumnType.FLOAT64:
        _gather_floats(<const double*> column.values, rows, n, words)
    elif type == ColumnType.UINT8:
        _gather_integers(<const uint8_t*> column.values, rows, n, words)
    elif type == ColumnType.UINT16:
        _gather_integers(<const uint16_t*> column.values, rows, n, words)
    elif type == ColumnType.UINT32:
        _gather_integers(<const uint32_t*> column.values, rows, n, words)
    elif type == ColumnType.UINT64:
        _gather_integers(<const uint64_t*> column.values, rows, n, words)
    elif column.byte_width == 8:
        _gather_integers(<const int64_t*> column.values, rows, n, words)
    elif column.byte_width == 4:
        _gather_integers(<const int32_t*> column.values, rows, n, words)
    elif column.byte_width == 2:
        _gather_integers(<const int16_t*> column.values, rows, n, words)
    else:
        _gather_integers(<const int8_t*> column.values, rows, n, words)


cdef void _gather_strings(
    const offset* offsets, const uint8_t* data, const uint32_t* rows, int64_t n, ByteView* views
) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        views[i].data = data + offsets[rows[i]]
        views[i].length = offsets[rows[i] + <int64_t> 1] - offsets[rows[i]]


cdef void _gather_views(const Column* column, const uint32_t* rows, int64_t n, ByteView* views) noexcept nogil:
    cdef ColumnType type = column.type
    cdef const uint8_t* data = <const uint8_t*> column.values
    cdef int64_t i, width = column.byte_width
    if type == ColumnType.LARGE_STRING or type == ColumnType.LARGE_BINARY:
        _gather_strings(<const int64_t*> column.offsets, data, rows, n, views)
    elif type == ColumnType.STRING or type == ColumnType.BINARY:
        _gather_strings(<const int32_t*> column.offsets, data, rows, n, views)
    else:
        for i in range(n):
            views[i].data = data + rows[i] * width
            views[i].length = width


cdef void value_block_fill(ValueBlock* block, const Column* column, const Selection* selection) noexcept nogil:
    cdef int64_t i, n = selection.n
    cdef bint valid
    if n == 0:
        return
    if block.representation == Representation.BYTES:
        _gather_views(column, selection.rows, n, block.views)
    else:
        _gather_words(column, selection.rows, n, block.words)
        if block.representation == Representation.ORDERED_WORDS:
            to_ordered_words(column.type, block.words, n)
    if block.with_states:
        if column.null_count == 0:
            memset(block.states, ValueState.SOME_VALUE, n)
        else:
            for i in range(n):
                valid = is_valid(column, selection.rows[i])
                block.states[i] = ValueState.SOME_VALUE if valid else ValueState.NULL_VALUE


cdef inline uint64_t _reflect_negative(uint64_t bits) noexcept nogil:
    # Its own inverse: the bits of negative doubles rise as the doubles fall.
    return bits ^ ((<uint64_t> 0 - (bits >> 63)) >> 1)


cdef void to_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil:
    # The order of Double.compare: -0.0 below 0.0, and NaN, of which there is one, above all.
    cdef int64_t i
    cdef uint64_t magnitude
    if type == ColumnType.UINT64:
        for i in range(n):
            words[i] ^= SIGN_BIT
    elif is_float(type):
        for i in range(n):
            magnitude = words[i] & ~SIGN_BIT
            words[i] = _reflect_negative(words[i]) if magnitude <= INFINITY_BITS else NAN_BITS


cdef void from_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil:
    cdef int64_t i
    if type == ColumnType.UINT64:
        for i in range(n):
            words[i] ^= SIGN_BIT
    elif is_float(type):
        for i in range(n):
            words[i] = _reflect_negative(words[i])

"""Values of columns: gathered from a batch in blocks, kept per entry, and written to result columns.

A value is a word, if its type has at most 8 bytes, or a byte string. Only the loops that gather blocks and write results know a
column's type. A block's values lie side by side in a few kilobytes: an aggregate's own loop tests neither nulls nor types, and
aggregates over one column share the block.
"""

from libc.math cimport ceil, fabs, floor, sqrt
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memmove, memset

from flinkcore.errors import DataError, SchemaError

from flinkcore._native.arrow cimport (
    ArrowArray,
    ArrowSchema,
    Column,
    ColumnType,
    NativeArray,
    advise_large,
    bool_value,
    field_name,
    is_valid,
    layout_of,
    native_array,
)
from flinkcore._native.memory cimport (
    BitBuffer,
    Buffer,
    bits_append,
    bits_append_many,
    buffer_append,
    buffer_append_bytes,
    buffer_append_int64,
    buffer_free,
    buffer_reserve,
    grow,
    prefetch,
)


# ---- decimals ----------------------------------------------------------------------------------------------------


cdef extern from *:
    """
    typedef unsigned __int128 flinkcore_uint128;
    typedef __int128 flinkcore_int128;
    """
    ctypedef uint64_t uint128 "flinkcore_uint128"
    ctypedef int64_t int128 "flinkcore_int128"


cdef enum:
    QUOTIENT_WORDS = 4


cdef double decimal_to_double(const uint8_t* value) noexcept nogil:
    cdef int128 number
    memcpy(&number, value, 16)
    return <double> number


cdef bint decimal_quotient(
    const DecimalSum* total, int shift, int64_t count, int precision, uint8_t* value
) noexcept nogil:
    cdef uint64_t[QUOTIENT_WORDS] words
    cdef uint64_t factor = 1, remainder, sign = <uint64_t> 0 - (total.high >> 63)
    cdef uint128 carried, limit = 1, found
    cdef int i
    words[0] = total.low ^ sign
    words[1] = total.middle ^ sign
    words[2] = total.high ^ sign
    words[3] = 0
    for i in range(shift):
        factor *= 10
    carried = (sign & 1) * factor  # the magnitude is the complement, and one more
    for i in range(QUOTIENT_WORDS):
        carried += <uint128> words[i] * factor
        words[i] = <uint64_t> carried
        carried >>= 64
    carried = 0
    for i in range(QUOTIENT_WORDS - 1, -1, -1):
        carried = (carried << 64) | words[i]
        found = carried / <uint128> count  # a variable: a cast around it would be one of the operands
        words[i] = <uint64_t> found
        carried -= found * <uint128> count
    remainder = <uint64_t> carried
    if words[2] or words[3] or words[1] >> 63:
        return False
    found = (<uint128> words[1] << 64 | words[0]) + (remainder >= <uint64_t> count - remainder)
    for i in range(precision):
        limit *= 10
    if found >= limit:
        return False
    if sign:
        found = 0 - found
    memcpy(value, &found, 16)
    return True


# ---- values of any type ------------------------------------------------------------------------------------------


# The contents of a value follow it: a struct's fields, a list's number of elements and the elements, a text's length and bytes.
# Each inner value has a byte before it that marks whether it is there or null.


cdef enum Kind:
    NOTHING     # of the type null
    BIT
    FIXED       # bytes
    TEXT        # or binary
    LIST        # or map
    FIXED_LIST
    STRUCT


cdef inline Kind _kind(const ValueType* type) noexcept nogil:
    if type.layout.bits == 1:
        return Kind.BIT
    if type.layout.has_bytes:
        return Kind.TEXT
    if type.layout.offset_width:
        return Kind.LIST
    if type.layout.list_size >= 0:
        return Kind.FIXED_LIST
    if type.layout.rows_are_childrens:
        return Kind.STRUCT
    return Kind.FIXED if type.layout.has_validity else Kind.NOTHING


cdef int value_type_set(ValueType* type, const ArrowSchema* field) except -1:
    cdef int64_t i
    cdef bytes format = field.format
    memset(type, 0, sizeof(ValueType))
    layout_of(field.format, &type.layout)
    type.field = field
    if field.dictionary != NULL:
        raise SchemaError("a dictionary within values is not supported here; cast it to the type of its values")
    if type.layout.has_views or type.layout.has_sizes or format.startswith((b"+u", b"+r")):
        raise SchemaError(
            f"values of Arrow format {format.decode()!r} are not supported here; cast views and run-end-encoded values to plain "
            "ones, and take unions apart"
        )
    type.children = <ValueType*> calloc(field.n_children + 1, sizeof(ValueType))
    if type.children == NULL:
        raise MemoryError()
    try:
        for i in range(field.n_children):
            value_type_set(&type.children[i], field.children[i])
            type.n_children = i + 1
    except BaseException:
        value_type_free(type)
        raise
    return 0


cdef void value_type_free(ValueType* type) noexcept:
    cdef int64_t i
    for i in range(type.n_children):
        value_type_free(&type.children[i])
    free(type.children)
    memset(type, 0, sizeof(ValueType))


# ---- bytes of values ---------------------------------------------------------------------------------------------


cdef inline int64_t _offset(const ArrowArray* array, int32_t width, int64_t i) noexcept nogil:
    return (<const int32_t*> array.buffers[1])[i] if width == 4 else (<const int64_t*> array.buffers[1])[i]


cdef int _append_inner(Buffer* out, const ValueType* type, const ArrowArray* array, int64_t row) except -1 nogil:
    cdef const uint8_t* validity
    cdef int64_t bit = array.offset + row
    cdef bint is_there = type.layout.has_validity
    if is_there and array.buffers[0] != NULL:
        validity = <const uint8_t*> array.buffers[0]
        is_there = (validity[bit >> 3] >> (bit & 7)) & 1
    (<uint8_t*> buffer_append(out, 1))[0] = is_there
    if is_there:
        value_append(out, type, array, row)
    return 0


cdef int value_append(Buffer* out, const ValueType* type, const ArrowArray* array, int64_t row) except -1 nogil:
    cdef Kind kind = _kind(type)
    cdef int64_t at = array.offset + row, width = type.layout.bits >> 3, i, begin, end, length
    if kind == Kind.BIT:
        (<uint8_t*> buffer_append(out, 1))[0] = ((<const uint8_t*> array.buffers[1])[at >> 3] >> (at & 7)) & 1
    elif kind == Kind.FIXED:
        buffer_append_bytes(out, <const uint8_t*> array.buffers[1] + at * width, width)
    elif kind == Kind.TEXT or kind == Kind.LIST:
        begin = _offset(array, type.layout.offset_width, at)
        end = _offset(array, type.layout.offset_width, at + 1)
        length = end - begin
        buffer_append_bytes(out, &length, 8)
        if kind == Kind.TEXT:
            return buffer_append_bytes(out, <const uint8_t*> array.buffers[2] + begin, length)
        for i in range(begin, end):
            _append_inner(out, &type.children[0], array.children[0], i)
    elif kind == Kind.FIXED_LIST:
        for i in range(at * type.layout.list_size, (at + 1) * type.layout.list_size):
            _append_inner(out, &type.children[0], array.children[0], i)
    elif kind == Kind.STRUCT:
        for i in range(type.n_children):
            _append_inner(out, &type.children[i], array.children[i], at)
    return 0


cdef inline int64_t _read_length(const uint8_t* data) noexcept nogil:
    cdef int64_t length
    memcpy(&length, data, 8)
    return length


cdef int64_t _after_inner(const ValueType* type, const uint8_t* data, int64_t length) except -2:
    if length < 1 or data[0] > 1 or (data[0] and _kind(type) == Kind.NOTHING):
        return -1
    if data[0] == 0:
        return 1
    after = _after_value(type, data + 1, length - 1)
    return after + 1 if after >= 0 else -1


cdef int64_t _after_value(const ValueType* type, const uint8_t* data, int64_t length) except -2:
    # Returns how many of the bytes are those of the value, or -1 if they are not a value. They may come from a damaged checkpoint:
    # no length is followed unchecked.
    cdef Kind kind = _kind(type)
    cdef int64_t at = 0, i, n, inner
    if kind == Kind.BIT:
        return 1 if length >= 1 and data[0] <= 1 else -1
    if kind == Kind.FIXED:
        return type.layout.bits >> 3 if length >= type.layout.bits >> 3 else -1
    n = type.layout.list_size if kind == Kind.FIXED_LIST else type.n_children
    if kind == Kind.TEXT or kind == Kind.LIST:
        if length < 8:
            return -1
        n = _read_length(data)
        at = 8
        if not 0 <= n <= length - at:  # an element has at least a byte
            return -1
    if kind == Kind.TEXT:
        if type.field.format[0] in (b"u", b"U"):
            try:
                (<const char*> data)[at:at + n].decode()
            except UnicodeDecodeError:
                return -1
        return at + n
    for i in range(n):
        inner = _after_inner(&type.children[i if kind == Kind.STRUCT else 0], data + at, length - at)
        if inner < 0:
            return -1
        at += inner
    return at


cdef bint is_value(const ValueType* type, const uint8_t* data, int64_t length):
    return _after_value(type, data, length) == length


# ---- columns -----------------------------------------------------------------------------------------------------


cdef int value_column_set(ValueColumn* column, const ValueType* type, const char* name) except -1:
    cdef int64_t i
    memset(column, 0, sizeof(ValueColumn))
    column.type = type
    column.name = name
    column.children = <ValueColumn*> calloc(type.n_children + 1, sizeof(ValueColumn))
    if column.children == NULL:
        raise MemoryError()
    for i in range(type.n_children):
        value_column_set(&column.children[i], &type.children[i], name)
    return 0


cdef void value_column_free(ValueColumn* column) noexcept:
    cdef int64_t i
    if column.children == NULL:
        return
    for i in range(column.type.n_children):
        value_column_free(&column.children[i])
    free(column.children)
    buffer_free(&column.validity.bytes)
    buffer_free(&column.bits.bytes)
    buffer_free(&column.values)
    buffer_free(&column.data)
    memset(column, 0, sizeof(ValueColumn))


cdef int64_t value_column_memory(const ValueColumn* column) noexcept nogil:
    cdef int64_t i, size = column.validity.bytes.capacity + column.bits.bytes.capacity
    size += column.values.capacity + column.data.capacity
    for i in range(column.type.n_children):
        size += value_column_memory(&column.children[i])
    return size


cdef const uint8_t* _measure_inner(ValueColumn* column, const uint8_t* data) noexcept nogil:
    return _measure(column, data + 1 if data[0] else NULL, data + 1)


cdef const uint8_t* _measure(ValueColumn* column, const uint8_t* data, const uint8_t* after) noexcept nogil:
    # Returns the end of the value, or `after` if it is null.
    cdef const ValueType* type = column.type
    cdef Kind kind = _kind(type)
    cdef int64_t i, n
    column.more_rows += 1
    if data == NULL:
        if kind == Kind.STRUCT:
            for i in range(type.n_children):
                _measure(&column.children[i], NULL, NULL)
        elif kind == Kind.FIXED_LIST:
            for i in range(type.layout.list_size):
                _measure(&column.children[0], NULL, NULL)
        return after
    if kind == Kind.BIT:
        return data + 1
    if kind == Kind.FIXED:
        return data + (type.layout.bits >> 3)
    n = type.layout.list_size if kind == Kind.FIXED_LIST else type.n_children
    if kind == Kind.TEXT or kind == Kind.LIST:
        n = _read_length(data)
        data += 8
    if kind == Kind.TEXT:
        column.more_data += n
        return data + n
    for i in range(n):
        data = _measure_inner(&column.children[i if kind == Kind.STRUCT else 0], data)
    return data


cdef void value_column_measure(ValueColumn* column, const uint8_t* data) noexcept nogil:
    _measure(column, data, NULL)


cdef int _refuse_column_size(const ValueColumn* column) except -1 with gil:
    name = column.name.decode()
    raise DataError(
        f"the values of column {name!r} in one batch of results hold lists or texts with more than "
        "2,147,483,647 elements or bytes; let fewer values come together, or cast them to large lists and large texts",
        column=name,
    )


cdef int value_column_reserve(ValueColumn* column) except -1 nogil:
    cdef const ValueType* type = column.type
    cdef Kind kind = _kind(type)
    cdef int64_t i, rows = column.more_rows, bits = ((column.length + rows) >> 3) + 2
    cdef int32_t width = type.layout.offset_width
    buffer_reserve(&column.validity.bytes, bits - column.validity.bytes.size)
    if kind == Kind.BIT:
        buffer_reserve(&column.bits.bytes, bits - column.bits.bytes.size)
    elif kind == Kind.FIXED:
        buffer_reserve(&column.values, rows * (type.layout.bits >> 3))
    elif kind == Kind.TEXT or kind == Kind.LIST:
        if width == 4 and (
            column.data.size + column.more_data > INT32_MAX
            or (kind == Kind.LIST and column.children[0].length + column.children[0].more_rows > INT32_MAX)
        ):
            _refuse_column_size(column)
        buffer_reserve(&column.values, (rows + 1) * width)
        if column.values.size == 0:
            memset(column.values.data, 0, width)
            column.values.size = width
        buffer_reserve(&column.data, column.more_data)
    for i in range(type.n_children):
        value_column_reserve(&column.children[i])
    column.more_rows = column.more_data = 0
    return 0


cdef int _append_end(ValueColumn* column, int64_t end) except -1 nogil:
    if column.type.layout.offset_width == 4:
        (<int32_t*> buffer_append(&column.values, 4))[0] = <int32_t> end
    else:
        buffer_append_int64(&column.values, end)
    return 0


cdef const uint8_t* _append_to(ValueColumn* column, const uint8_t* data, const uint8_t* after) except? NULL nogil:
    # Returns the end of the value, or `after` if it is null.
    cdef const ValueType* type = column.type
    cdef Kind kind = _kind(type)
    cdef int64_t i, n, width = type.layout.bits >> 3
    column.length += 1
    bits_append(&column.validity, data != NULL)
    if kind == Kind.NOTHING:
        return after
    if kind == Kind.BIT:
        bits_append(&column.bits, data != NULL and data[0] != 0)
        return after if data == NULL else data + 1
    if kind == Kind.FIXED:
        if data == NULL:
            if width:
                memset(buffer_append(&column.values, width), 0, width)
            return after
        buffer_append_bytes(&column.values, data, width)
        return data + width
    if kind == Kind.TEXT or kind == Kind.LIST:
        n = 0
        if data != NULL:
            n = _read_length(data)
            data += 8
        if kind == Kind.TEXT:
            buffer_append_bytes(&column.data, data, n)
            _append_end(column, column.data.size)
            return after if data == NULL else data + n
        _append_end(column, column.children[0].length + n)
    else:
        n = type.layout.list_size if kind == Kind.FIXED_LIST else type.n_children
    for i in range(n):
        if data == NULL:
            _append_to(&column.children[i if kind == Kind.STRUCT else 0], NULL, NULL)
        else:
            data = _append_to(
                &column.children[i if kind == Kind.STRUCT else 0], data + 1 if data[0] else NULL, data + 1
            )
    return after if data == NULL else data


cdef int value_column_append(ValueColumn* column, const uint8_t* data) except -1 nogil:
    _append_to(column, data, NULL)
    return 0


cdef NativeArray value_column_take(ValueColumn* column):
    cdef const ValueType* type = column.type
    cdef Kind kind = _kind(type)
    cdef NativeArray taken
    cdef int64_t i
    cdef Buffer* second = &column.values
    children = [value_column_take(&column.children[i]) for i in range(type.n_children)]
    names = [field_name(type.children[i].field) for i in range(type.n_children)]
    if kind == Kind.BIT:
        second = &column.bits.bytes
    elif kind == Kind.STRUCT or kind == Kind.FIXED_LIST or kind == Kind.NOTHING:
        second = NULL
    if kind == Kind.NOTHING:
        buffer_free(&column.validity.bytes)
    taken = native_array(
        type.field.format.decode(),
        column.length,
        &column.validity if kind != Kind.NOTHING else NULL,
        second,
        &column.data if kind == Kind.TEXT else NULL,
        children,
        names,
    )
    taken.schema.flags = type.field.flags
    column.length = 0
    column.validity.length = column.validity.zeros = 0
    column.bits.length = column.bits.zeros = 0
    return taken


# ---- byte strings ------------------------------------------------------------------------------------------------


cdef int owned_bytes_set(OwnedBytes* owned, ByteView view) except -1 nogil:
    cdef int64_t capacity
    if view.length > owned.capacity:
        # Rounded up, so that values of about one length that follow each other need no new memory.
        capacity = (view.length + 15) & ~<int64_t> 15
        owned.data = <uint8_t*> grow(owned.data, capacity, b"a value")
        owned.capacity = capacity
    if view.length:
        memcpy(owned.data, view.data, view.length)
    owned.length = view.length
    return 0


cdef void owned_bytes_free(OwnedBytes* owned) noexcept nogil:
    free(owned.data)
    owned.data = NULL
    owned.length = owned.capacity = 0


cdef uint64_t bytes_hash(ByteView view) noexcept nogil:
    # Eight bytes at a time. The length counts, as zeros fill up the last word.
    cdef uint64_t hash = <uint64_t> view.length * <uint64_t> 0x9E3779B97F4A7C15, word
    cdef const uint8_t* at = view.data
    cdef int64_t left = view.length
    while left > 0:
        word = 0
        memcpy(&word, at, 8 if left > 8 else left)
        hash = (hash ^ word) * <uint64_t> 0xFF51AFD7ED558CCD
        hash ^= hash >> 32
        at += 8
        left -= 8
    return hash


# ---- blocks of rows ----------------------------------------------------------------------------------------------


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
    # Each row is written, and stays if the place moves on: nulls anywhere in the column cost no mispredicted branch.
    for i in range(n):
        selection.kept_entries[kept] = entries[i]
        selection.kept_rows[kept] = rows[i]
        kept += is_valid(column, rows[i])
    selection.n = kept
    selection.entries = selection.kept_entries
    selection.rows = selection.kept_rows


cdef int value_block_allocate(ValueBlock* block) except -1:
    if block.representation >= Representation.BYTES:
        block.views = <ByteView*> malloc(BLOCK_ROWS * sizeof(ByteView))
    else:
        block.words = <uint64_t*> malloc(BLOCK_ROWS * sizeof(uint64_t))
    if block.views == NULL and block.words == NULL:
        raise MemoryError("a block of values")
    return 0


cdef void value_block_free(ValueBlock* block) noexcept nogil:
    free(block.words)
    free(block.views)
    buffer_free(&block.encoded)
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


cdef int _encode_values(ValueBlock* block, const Column* column, const uint32_t* rows, int64_t n) except -1 nogil:
    cdef Buffer* encoded = &block.encoded
    cdef int64_t i, start = 0
    encoded.size = 0
    for i in range(n):
        if is_valid(column, rows[i]):
            value_append(encoded, block.type, column.array, column.parent_offset + rows[i])
        block.views[i].length = encoded.size - start
        start = encoded.size
    start = 0
    for i in range(n):  # the buffer has moved while it grew
        block.views[i].data = encoded.data + start
        start += block.views[i].length
    return 0


cdef int value_block_fill(ValueBlock* block, const Column* column, const Selection* selection) except -1 nogil:
    cdef int64_t i, n = selection.n
    cdef bint valid
    if n == 0:
        return 0
    if block.representation == Representation.BYTES:
        _gather_views(column, selection.rows, n, block.views)
    elif block.representation == Representation.ENCODED:
        _encode_values(block, column, selection.rows, n)
    else:
        _gather_words(column, selection.rows, n, block.words)
        if block.representation == Representation.ORDERED_WORDS:
            _to_ordered_words(column.type, block.words, n)
    if block.with_states:
        if column.null_count == 0:
            memset(block.states, ValueState.SOME_VALUE, n)
        else:
            for i in range(n):
                valid = is_valid(column, selection.rows[i])
                block.states[i] = ValueState.SOME_VALUE if valid else ValueState.NULL_VALUE
    return 0


cdef inline uint64_t _reflect_negative(uint64_t bits) noexcept nogil:
    # Its own inverse: the bits of negative doubles rise as the doubles fall.
    return bits ^ ((<uint64_t> 0 - (bits >> 63)) >> 1)


cdef void _to_ordered_words(ColumnType type, uint64_t* words, int64_t n) noexcept nogil:
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


# ---- result columns ----------------------------------------------------------------------------------------------


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
        f"{advise_large(name, result.type == ColumnType.STRING)}",
        column=name,
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
    # A column has a bitmap from its first null on, and none without nulls.
    if with_value == n:
        if result.validity.length:
            bits_append_many(&result.validity, True, n)
        return 0
    if result.validity.length == 0:
        bits_append_many(&result.validity, True, result.length - n)
    for i in range(n):
        bits_append(&result.validity, states[i] == ValueState.SOME_VALUE)
    return 0


cdef void _narrow_words(const uint64_t* words, int64_t n, narrow* out) noexcept nogil:
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
        _narrow_words(words, n, <int32_t*> out)
    elif result.width == 2:
        _narrow_words(words, n, <int16_t*> out)
    else:
        _narrow_words(words, n, <int8_t*> out)
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


# ---- lists of values ---------------------------------------------------------------------------------------------


cdef int word_lists_add(
    ValueList* lists, const uint32_t* entries, const uint64_t* words, const uint8_t* states, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef ValueList* values
    for i in range(n):
        values = &lists[entries[i]]
        buffer_reserve(&values.values, 8)  # first: without memory, no null is noted either
        if states[i] == ValueState.NULL_VALUE:
            buffer_append_int64(&values.nulls, values.length)
            buffer_append_int64(&values.values, 0)
        else:
            buffer_append_int64(&values.values, <int64_t> words[i])
        values.length += 1
    return 0


cdef int byte_lists_add(
    ValueList* lists, const uint32_t* entries, const ByteView* views, const uint8_t* states, int64_t n
) except -1 nogil:
    cdef int64_t i
    cdef ValueList* values
    for i in range(n):
        values = &lists[entries[i]]
        buffer_reserve(&values.ends, 8)  # first, as above
        if states[i] == ValueState.NULL_VALUE:
            buffer_append_int64(&values.nulls, values.length)
        else:
            buffer_append_bytes(&values.values, views[i].data, views[i].length)
        buffer_append_int64(&values.ends, values.values.size)
        values.length += 1
    return 0


cdef void _append_shifted(Buffer* into, const Buffer* other, int64_t shift) noexcept nogil:
    # The room is there.
    cdef int64_t i
    cdef int64_t* out = <int64_t*> (into.data + into.size)
    for i in range(other.size >> 3):
        out[i] = (<const int64_t*> other.data)[i] + shift
    into.size += other.size


cdef int value_list_merge(ValueList* into, ValueList* other) except -1 nogil:
    cdef ValueList taken
    # Elements of `into` come first, so that the two change places only if it is empty. Then nothing is copied.
    if into.length == 0:
        taken = other[0]
        other[0] = into[0]
        into[0] = taken
    if other.length == 0:
        return 0
    buffer_reserve(&into.values, other.values.size)
    buffer_reserve(&into.ends, other.ends.size)
    buffer_reserve(&into.nulls, other.nulls.size)
    _append_shifted(&into.ends, &other.ends, into.values.size)
    _append_shifted(&into.nulls, &other.nulls, into.length)
    if other.values.size:
        memcpy(into.values.data + into.values.size, other.values.data, other.values.size)
    into.values.size += other.values.size
    into.length += other.length
    return 0


cdef int value_list_copy(ValueList* into, const ValueList* other) except -1 nogil:
    buffer_append_bytes(&into.values, other.values.data, other.values.size)
    buffer_append_bytes(&into.ends, other.ends.data, other.ends.size)
    buffer_append_bytes(&into.nulls, other.nulls.data, other.nulls.size)
    into.length = other.length
    return 0


cdef void value_list_free(ValueList* values) noexcept nogil:
    buffer_free(&values.values)
    buffer_free(&values.ends)
    buffer_free(&values.nulls)
    memset(values, 0, sizeof(ValueList))


cdef int64_t value_list_memory(const ValueList* values) noexcept nogil:
    return values.values.capacity + values.ends.capacity + values.nulls.capacity


cdef bint value_list_is_sound(const ValueList* values, bint words) noexcept nogil:
    cdef int64_t i, previous = 0
    cdef const int64_t* numbers = <const int64_t*> values.ends.data
    if words:
        if values.values.size != values.length * 8 or values.ends.size:
            return False
    else:
        if values.ends.size != values.length * 8:
            return False
        for i in range(values.length):
            if numbers[i] < previous:
                return False
            previous = numbers[i]
        if previous != values.values.size:
            return False
    previous = -1
    numbers = <const int64_t*> values.nulls.data
    for i in range(values.nulls.size >> 3):
        if numbers[i] <= previous or numbers[i] >= values.length:
            return False
        previous = numbers[i]
    return True


# ---- sets of distinct values -------------------------------------------------------------------------------------


cdef enum:
    FIRST_SLOTS = 8
    MAX_SLOTS = 0x80000000
    LEAST_IN_PAGES = 24  # words: fewer fit into a few lines of a cache
    WORDS_OF_PAGE = 4    # on average, at least: a table of pages then takes less than half of one of words
    PAGES_OF_RANGE = 4   # for each that is taken, at most: a range then takes about as much as a table of pages
    WORDS_AHEAD = 8


cdef void* _new_slots(uint64_t n_slots, size_t size) except NULL nogil:
    cdef void* slots = NULL
    if n_slots <= <uint64_t> MAX_SLOTS:
        slots = calloc(n_slots + 1, size)
    if slots == NULL:
        with gil:
            raise MemoryError(f"a set of distinct values with {n_slots} places for one key and window")
    return slots


cdef inline uint64_t _word_hash(uint64_t word) noexcept nogil:
    cdef uint64_t hash = (word ^ (word >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    return hash ^ (hash >> 32)


cdef inline uint64_t* _word_slot(const WordSet* words, uint64_t word) noexcept nogil:
    # Returns the slot of the word, or the empty slot for it. 0 marks an empty slot, so that whether 0 is a member stands in one more
    # slot after all others.
    cdef uint64_t at = _word_hash(word) & words.mask
    while words.slots[at] != 0 and words.slots[at] != word:
        at = (at + 1) & words.mask
    return &words.slots[at]


cdef inline uint64_t* _page_slot(const WordSet* words, uint64_t page) noexcept nogil:
    # Returns the slot of a page, or the empty slot for it: the page, and a bit for each of its words.
    cdef uint64_t at = _word_hash(page) & words.mask
    while words.slots[2 * at + 1] != 0 and words.slots[2 * at] != page:
        at = (at + 1) & words.mask
    return &words.slots[2 * at]


cdef uint64_t _slots_for(uint64_t count) noexcept nogil:
    # So many values take three quarters of them at most.
    cdef uint64_t n_slots = FIRST_SLOTS
    while count * 4 > n_slots * 3:
        n_slots *= 2
    return n_slots


cdef inline int64_t _slot_words(const WordSet* words) noexcept nogil:
    if words.is_range:
        return <int64_t> words.mask + 1
    return 2 * (<int64_t> words.mask + 1) if words.pages else <int64_t> words.mask + 2


cdef bint _put_in_range(WordSet* words) except -1 nogil:
    # Puts a table of pages in a range, if they lie close together. Returns whether they do.
    cdef uint64_t low = <uint64_t> -1, high = 0, span, at
    cdef WordSet ranged = words[0]
    for at in range(<uint64_t> words.mask + 1):
        if words.slots[2 * at + 1]:
            low = min(low, words.slots[2 * at])
            high = max(high, words.slots[2 * at])
    span = high - low + 1
    if span > PAGES_OF_RANGE * <uint64_t> words.pages:
        return False
    span += span >> 1  # ids grow
    ranged.slots = <uint64_t*> _new_slots(span, sizeof(uint64_t))
    ranged.only = low
    ranged.mask = <uint32_t> (span - 1)
    ranged.is_range = True
    for at in range(<uint64_t> words.mask + 1):
        if words.slots[2 * at + 1]:
            ranged.slots[words.slots[2 * at] - low] = words.slots[2 * at + 1]
    free(words.slots)
    words[0] = ranged
    return True


cdef int _leave_range(WordSet* words, uint64_t pages) except -1 nogil:
    # Puts a range in a table with room for so many pages.
    cdef uint64_t n_slots = _slots_for(pages), at
    cdef WordSet table = words[0]
    cdef uint64_t* slot
    table.slots = <uint64_t*> _new_slots(n_slots, 2 * sizeof(uint64_t))
    table.only = 0
    table.mask = <uint32_t> (n_slots - 1)
    table.is_range = False
    for at in range(<uint64_t> words.mask + 1):
        if words.slots[at]:
            slot = _page_slot(&table, words.only + at)
            slot[0] = words.only + at
            slot[1] = words.slots[at]
    free(words.slots)
    words[0] = table
    return 0


cdef int _range_reach(WordSet* words, uint64_t page) except -1 nogil:
    # Makes a range longer, so that it has a page; or a table, if too many pages would be empty.
    cdef uint64_t first = min(words.only, page)
    cdef uint64_t span = max(words.only + words.mask, page) - first + 1, room = span >> 1
    cdef uint64_t* slots
    if span > PAGES_OF_RANGE * (<uint64_t> words.pages + 1):
        return _leave_range(words, <uint64_t> words.pages + 1)
    if page < words.only:
        first -= min(first, room)
    slots = <uint64_t*> _new_slots(span + room, sizeof(uint64_t))
    memcpy(slots + (words.only - first), words.slots, (<uint64_t> words.mask + 1) * sizeof(uint64_t))
    free(words.slots)
    words.slots = slots
    words.only = first
    words.mask = <uint32_t> (span + room - 1)
    return 0


cdef inline bint _range_add(WordSet* words, uint64_t word) noexcept nogil:
    # Adds a word to a range. Returns false if it lies outside.
    cdef uint64_t at = (word >> 6) - words.only, bit = <uint64_t> 1 << (word & 63)
    if at > words.mask:
        return False
    if not words.slots[at] & bit:
        words.pages += words.slots[at] == 0
        words.slots[at] |= bit
        words.count += 1
    return True


cdef int _pages_reserve(WordSet* words, uint64_t pages) except -1 nogil:
    # Room in a table for so many pages, unless it becomes a range.
    cdef uint64_t n_slots = _slots_for(pages), at
    cdef WordSet grown = words[0]
    cdef uint64_t* slot
    if n_slots <= <uint64_t> words.mask + 1 or _put_in_range(words):
        return 0
    grown.slots = <uint64_t*> _new_slots(n_slots, 2 * sizeof(uint64_t))
    grown.mask = <uint32_t> (n_slots - 1)
    for at in range(<uint64_t> words.mask + 1):
        if words.slots[2 * at + 1]:
            slot = _page_slot(&grown, words.slots[2 * at])
            slot[0] = words.slots[2 * at]
            slot[1] = words.slots[2 * at + 1]
    free(words.slots)
    words[0] = grown
    return 0


cdef int _page_add(WordSet* words, uint64_t word) except -1 nogil:
    cdef uint64_t* slot
    cdef uint64_t bit = <uint64_t> 1 << (word & 63)
    if words.is_range:
        if _range_add(words, word):
            return 0
        _range_reach(words, word >> 6)
        return _page_add(words, word)
    slot = _page_slot(words, word >> 6)
    if slot[1] & bit:
        return 0
    if slot[1] == 0:
        if (<uint64_t> words.pages + 1) * 4 > (<uint64_t> words.mask + 1) * 3:
            _pages_reserve(words, 2 * <uint64_t> words.pages)
            if words.is_range:
                return _page_add(words, word)
            slot = _page_slot(words, word >> 6)
        slot[0] = word >> 6
        words.pages += 1
    slot[1] |= bit
    words.count += 1
    return 0


cdef bint _put_in_pages(WordSet* words) except -1 nogil:
    # Puts the words of a table in pages, if they lie close together. Returns whether they do.
    cdef uint64_t most = words.count // WORDS_OF_PAGE, n_slots = _slots_for(words.count // WORDS_OF_PAGE + 1), word
    cdef WordPlace place
    cdef WordSet paged
    memset(&place, 0, sizeof(WordPlace))
    memset(&paged, 0, sizeof(WordSet))
    paged.slots = <uint64_t*> _new_slots(n_slots, 2 * sizeof(uint64_t))
    paged.mask = <uint32_t> (n_slots - 1)
    while word_set_next(words, &place, &word):
        _page_add(&paged, word)
        if paged.pages > most:
            free(paged.slots)
            return False
    free(words.slots)
    words[0] = paged
    return True


cdef int _word_set_grow(WordSet* words, uint64_t count) except -1 nogil:
    cdef WordSet grown
    cdef uint64_t n_slots = _slots_for(count), at
    if words.count >= LEAST_IN_PAGES and _put_in_pages(words):
        return 0
    memset(&grown, 0, sizeof(WordSet))
    grown.slots = <uint64_t*> _new_slots(n_slots, sizeof(uint64_t))
    grown.mask = <uint32_t> (n_slots - 1)
    grown.count = words.count
    if words.slots == NULL:
        if words.count and words.only == 0:
            grown.slots[n_slots] = 1
        elif words.count:
            _word_slot(&grown, words.only)[0] = words.only
    else:
        for at in range(<uint64_t> words.mask + 1):
            if words.slots[at]:
                _word_slot(&grown, words.slots[at])[0] = words.slots[at]
        grown.slots[n_slots] = words.slots[<uint64_t> words.mask + 1]
        free(words.slots)
    words[0] = grown
    return 0


cdef int word_set_reserve(WordSet* words, uint64_t count) except -1 nogil:
    if words.pages == 0 and count > 1 and (words.slots == NULL or count * 4 > (<uint64_t> words.mask + 1) * 3):
        _word_set_grow(words, count)
    return 0


cdef int _word_set_add(WordSet* words, uint64_t word) except -1 nogil:
    cdef uint64_t* slot
    if words.pages:
        return _page_add(words, word)
    if words.slots == NULL:
        if words.count == 0:
            words.only = word
            words.count = 1
            return 0
        if words.only == word:
            return 0
        _word_set_grow(words, 2)
    if word == 0:
        slot = &words.slots[<uint64_t> words.mask + 1]
        words.count += slot[0] == 0
        slot[0] = 1
        return 0
    slot = _word_slot(words, word)
    if slot[0] == word:
        return 0
    if (<uint64_t> words.count + 1) * 4 > (<uint64_t> words.mask + 1) * 3:
        _word_set_grow(words, <uint64_t> words.count + 1)
        if words.pages:
            return _page_add(words, word)
        slot = _word_slot(words, word)
    slot[0] = word
    words.count += 1
    return 0


cdef inline void _fetch_slot(const WordSet* words, uint64_t word) noexcept nogil:
    # Fetches the slot of a word before its turn: small tables, too, since there may be many.
    if words.slots == NULL:
        return
    if words.is_range:
        prefetch(&words.slots[(word >> 6) - words.only])
    elif words.pages:
        prefetch(&words.slots[2 * (_word_hash(word >> 6) & words.mask)])
    else:
        prefetch(&words.slots[_word_hash(word) & words.mask])


cdef int word_sets_add(
    WordSet* sets, const uint32_t* entries, const uint64_t* words, int64_t n, uint32_t* counts
) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        if i + 2 * WORDS_AHEAD < n:
            prefetch(&sets[entries[i + 2 * WORDS_AHEAD]])
            _fetch_slot(&sets[entries[i + WORDS_AHEAD]], words[i + WORDS_AHEAD])
        if not (sets[entries[i]].is_range and _range_add(&sets[entries[i]], words[i])):
            _word_set_add(&sets[entries[i]], words[i])
        if counts != NULL:
            counts[i] = sets[entries[i]].count
    return 0


cdef int word_set_merge(WordSet* into, WordSet* other) except -1 nogil:
    cdef WordSet larger
    cdef WordPlace place
    cdef uint64_t word
    # Members of the smaller set go into the larger one: n merges take O(m log m) for m members.
    if other.count > into.count:
        larger = other[0]
        other[0] = into[0]
        into[0] = larger
    word_set_reserve(into, <uint64_t> into.count + other.count)
    if into.pages and other.pages and not other.is_range:
        # A range might become a table on the way, which its pages, in the order of another table, would crowd.
        if into.is_range:
            _leave_range(into, <uint64_t> into.pages + other.pages)
        else:
            _pages_reserve(into, <uint64_t> into.pages + other.pages)
    memset(&place, 0, sizeof(WordPlace))
    while word_set_next(other, &place, &word):
        _word_set_add(into, word)
    return 0


cdef int word_set_copy(WordSet* into, const WordSet* other) except -1 nogil:
    cdef uint64_t* slots = NULL
    if other.slots != NULL:
        slots = <uint64_t*> _new_slots(_slot_words(other), sizeof(uint64_t))
        memcpy(slots, other.slots, _slot_words(other) * sizeof(uint64_t))
    into[0] = other[0]
    into.slots = slots
    return 0


cdef void word_set_free(WordSet* words) noexcept nogil:
    free(words.slots)
    memset(words, 0, sizeof(WordSet))


cdef int64_t word_set_memory(const WordSet* words) noexcept nogil:
    return 0 if words.slots == NULL else _slot_words(words) * <int64_t> sizeof(uint64_t)


cdef bint word_set_is_sound(const WordSet* words) noexcept nogil:
    cdef uint64_t at, word, count = 0, pages = 0
    cdef WordPlace place
    if words.slots == NULL:
        return words.count <= 1 and words.mask == 0 and words.pages == 0
    for at in range(<uint64_t> words.mask + 1):
        if words.is_range:
            pages += words.slots[at] != 0
        elif words.pages:
            if words.slots[2 * at + 1]:
                pages += 1
                if _page_slot(words, words.slots[2 * at]) != &words.slots[2 * at]:
                    return False
        elif words.slots[at] and _word_slot(words, words.slots[at]) != &words.slots[at]:
            return False
    memset(&place, 0, sizeof(WordPlace))
    while word_set_next(words, &place, &word):
        count += 1
    return count == words.count and pages == words.pages


cdef inline ByteView _stored(const ByteSet* strings, const ByteSlot* slot) noexcept nogil:
    cdef const uint8_t* place = strings.data.data + (slot.place - 1)
    cdef ByteView view
    memcpy(&view.length, place, sizeof(int64_t))
    view.data = place + sizeof(int64_t)
    return view


cdef ByteSlot* _byte_slot(const ByteSet* strings, uint64_t hash, ByteView view) noexcept nogil:
    # Returns the slot of the byte string, or the empty slot for it.
    cdef uint64_t at = hash & strings.mask
    cdef ByteSlot* slot
    cdef ByteView stored
    while True:
        slot = &strings.slots[at]
        if slot.place == 0:
            return slot
        # Most other strings differ in the hash, so that their bytes are not fetched.
        if slot.hash == hash:
            stored = _stored(strings, slot)
            if stored.length == view.length and (
                view.length == 0 or memcmp(stored.data, view.data, view.length) == 0
            ):
                return slot
        at = (at + 1) & strings.mask


cdef int _byte_set_grow(ByteSet* strings, uint64_t count) except -1 nogil:
    cdef uint64_t n_slots = _slots_for(count), old, at
    cdef ByteSlot* slots = <ByteSlot*> _new_slots(n_slots, sizeof(ByteSlot))
    if strings.slots != NULL:
        for old in range(<uint64_t> strings.mask + 1):
            if strings.slots[old].place:
                at = strings.slots[old].hash & (n_slots - 1)
                while slots[at].place:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = strings.slots[old]
        free(strings.slots)
    strings.slots = slots
    strings.mask = <uint32_t> (n_slots - 1)
    return 0


cdef int byte_set_reserve(ByteSet* strings, uint64_t count) except -1 nogil:
    if count and (strings.slots == NULL or count * 4 > (<uint64_t> strings.mask + 1) * 3):
        _byte_set_grow(strings, count)
    return 0


cdef int _byte_set_add(ByteSet* strings, uint64_t hash, ByteView view) except -1 nogil:
    cdef ByteSlot* slot
    if strings.slots == NULL or (<uint64_t> strings.count + 1) * 4 > (<uint64_t> strings.mask + 1) * 3:
        _byte_set_grow(strings, <uint64_t> strings.count + 1)
    slot = _byte_slot(strings, hash, view)
    if slot.place:
        return 0
    buffer_reserve(&strings.data, <int64_t> sizeof(int64_t) + view.length)
    memcpy(strings.data.data + strings.data.size, &view.length, sizeof(int64_t))
    if view.length:
        memcpy(strings.data.data + strings.data.size + sizeof(int64_t), view.data, view.length)
    slot.hash = hash
    slot.place = <uint64_t> strings.data.size + 1
    strings.data.size += <int64_t> sizeof(int64_t) + view.length
    strings.count += 1
    return 0


cdef int byte_sets_add(
    ByteSet* sets, const uint32_t* entries, const ByteView* views, int64_t n, uint32_t* counts
) except -1 nogil:
    cdef int64_t i
    for i in range(n):
        _byte_set_add(&sets[entries[i]], bytes_hash(views[i]), views[i])
        if counts != NULL:
            counts[i] = sets[entries[i]].count
    return 0


cdef int byte_set_merge(ByteSet* into, ByteSet* other) except -1 nogil:
    cdef ByteSet larger
    cdef uint64_t at
    if other.count > into.count:
        larger = other[0]
        other[0] = into[0]
        into[0] = larger
    if other.count == 0:
        return 0
    byte_set_reserve(into, <uint64_t> into.count + other.count)
    for at in range(<uint64_t> other.mask + 1):
        if other.slots[at].place:
            _byte_set_add(into, other.slots[at].hash, _stored(other, &other.slots[at]))
    return 0


cdef void byte_set_free(ByteSet* strings) noexcept nogil:
    free(strings.slots)
    buffer_free(&strings.data)
    memset(strings, 0, sizeof(ByteSet))


cdef int64_t byte_set_memory(const ByteSet* strings) noexcept nogil:
    if strings.slots == NULL:
        return 0
    return (<int64_t> strings.mask + 2) * <int64_t> sizeof(ByteSlot) + strings.data.capacity


cdef bint byte_set_is_sound(const ByteSet* strings) noexcept nogil:
    cdef uint64_t at, count = 0
    cdef const ByteSlot* slot
    if strings.slots == NULL:
        return strings.count == 0
    for at in range(<uint64_t> strings.mask + 1):
        slot = &strings.slots[at]
        if slot.place:
            count += 1
            if _byte_slot(strings, slot.hash, _stored(strings, slot)) != slot:
                return False
    return count == strings.count


# ---- sketches ----------------------------------------------------------------------------------------------------


# HyperLogLog (Flajolet et al. 2007) with the estimator of Ertl (2017), which needs no table of corrections: 4,096 registers, each the
# greatest rank of the hashes that chose it, of a standard error of 1.6 %. As long as there are few values their hashes are kept
# instead, and counted exactly. Either form follows from the set of hashes alone: the order of values and of merges does not matter.


cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long word) noexcept nogil

cdef enum:
    MOST_HASHES = 512  # in as much memory as registers take
    CHOOSING_BITS = 12

cdef double ALPHA = 0.7213475204444817  # 1 / (2 ln 2)


cdef inline void _register(OwnedBytes* registers, uint64_t hash) noexcept nogil:
    cdef uint64_t rest = hash << CHOOSING_BITS
    cdef uint8_t rank = <uint8_t> (leading_zeros(rest) + 1) if rest else MOST_RANK
    cdef uint8_t* place = &registers.data[hash >> (64 - CHOOSING_BITS)]
    if rank > place[0]:
        place[0] = rank


cdef void _register_all(OwnedBytes* registers, const WordSet* hashes) noexcept nogil:
    cdef WordPlace place
    cdef uint64_t hash
    memset(&place, 0, sizeof(WordPlace))
    while word_set_next(hashes, &place, &hash):
        _register(registers, hash)


cdef int _make_registers(WordSet* hashes, OwnedBytes* registers) except -1 nogil:
    cdef uint8_t[SKETCH_REGISTERS] none
    cdef ByteView view
    memset(none, 0, SKETCH_REGISTERS)
    view.data = none
    view.length = SKETCH_REGISTERS
    owned_bytes_set(registers, view)
    _register_all(registers, hashes)
    word_set_free(hashes)
    return 0


cdef int sketch_add(WordSet* hashes, OwnedBytes* registers, uint64_t hash) except -1 nogil:
    cdef uint32_t only = 0
    if registers.length:
        _register(registers, hash)
        return 0
    word_sets_add(hashes, &only, &hash, 1, NULL)
    if hashes.count > MOST_HASHES:
        _make_registers(hashes, registers)
    return 0


cdef int sketch_merge(
    WordSet* into, OwnedBytes* into_registers, WordSet* other, OwnedBytes* other_registers
) except -1 nogil:
    cdef WordPlace place
    cdef uint64_t hash
    cdef int64_t i
    if other_registers.length:
        if into_registers.length == 0:
            _make_registers(into, into_registers)
        for i in range(SKETCH_REGISTERS):
            if other_registers.data[i] > into_registers.data[i]:
                into_registers.data[i] = other_registers.data[i]
        return 0
    if into_registers.length:
        _register_all(into_registers, other)
        return 0
    memset(&place, 0, sizeof(WordPlace))
    while word_set_next(other, &place, &hash):
        sketch_add(into, into_registers, hash)
    return 0


cdef double _sigma(double x) noexcept nogil:
    # x + the sum of x**(2**k) * 2**(k - 1), k from 1; x < 1.
    cdef double y = 1, z = x, before = -1
    while z != before:
        before = z
        x *= x
        z += x * y
        y += y
    return z


cdef double _tau(double x) noexcept nogil:
    # (1 - x - the sum of (1 - x**(2**-k))**2 * 2**-k, k from 1) / 3; 0 <= x <= 1.
    cdef double y = 1, z = 1 - x, before = -1
    if x == 0 or x == 1:
        return 0
    while z != before:
        before = z
        x = sqrt(x)
        y *= 0.5
        z -= (1 - x) * (1 - x) * y
    return z / 3


cdef int64_t sketch_estimate(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil:
    cdef int64_t[MOST_RANK + 1] counts
    cdef int64_t i
    cdef double z, m = SKETCH_REGISTERS
    if registers.length == 0:
        return hashes.count
    memset(counts, 0, sizeof(counts))
    for i in range(SKETCH_REGISTERS):
        counts[registers.data[i]] += 1
    z = m * _tau(1 - <double> counts[MOST_RANK] / m)
    for i in range(MOST_RANK - 1, 0, -1):
        z = 0.5 * (z + <double> counts[i])
    z += m * _sigma(<double> counts[0] / m)
    return <int64_t> (ALPHA * m * m / z + 0.5)


cdef bint sketch_is_sound(const WordSet* hashes, const OwnedBytes* registers) noexcept nogil:
    cdef int64_t i
    cdef bint is_some = False
    if registers.length == 0:
        return hashes.count <= MOST_HASHES
    if registers.length != SKETCH_REGISTERS or hashes.count:
        return False
    for i in range(SKETCH_REGISTERS):
        if registers.data[i] > MOST_RANK:
            return False
        is_some = is_some or registers.data[i] != 0
    return is_some


# ---- distributions -----------------------------------------------------------------------------------------------


# Ordered words of doubles in buckets that share their high bits, each with the count of its numbers; ascending. If there are
# more buckets than wanted, low bits are dropped one by one, down to 8 of a double's 52 bits of precision: a bucket is then 0.4
# % wide. The number of dropped bits follows from the set of numbers, so that the order of numbers and of merges does not
# matter.


cdef struct Bucket:
    int64_t high_bits  # of the ordered words of its numbers
    int64_t count


cdef struct Distribution:
    int64_t dropped_bits
    int64_t count     # of all numbers
    int64_t least     # ordered words of numbers; the buckets follow
    int64_t greatest


cdef enum:
    WANTED_BUCKETS = 1024
    MOST_DROPPED = 44


cdef inline Distribution* _head(const OwnedBytes* distribution) noexcept nogil:
    return <Distribution*> distribution.data


cdef inline Bucket* _buckets(const OwnedBytes* distribution) noexcept nogil:
    return <Bucket*> (distribution.data + sizeof(Distribution))


cdef inline int64_t _n_buckets(const OwnedBytes* distribution) noexcept nogil:
    return (distribution.length - <int64_t> sizeof(Distribution)) // <int64_t> sizeof(Bucket)


cdef int _reserve_buckets(OwnedBytes* distribution, int64_t n) except -1 nogil:
    cdef int64_t capacity, needed = <int64_t> sizeof(Distribution) + n * <int64_t> sizeof(Bucket)
    if needed > distribution.capacity:
        capacity = max(needed, 2 * distribution.capacity)
        distribution.data = <uint8_t*> grow(distribution.data, capacity, b"a distribution")
        distribution.capacity = capacity
    if distribution.length == 0:
        distribution.length = sizeof(Distribution)
        memset(distribution.data, 0, sizeof(Distribution))
        _head(distribution).least = INT64_MAX
        _head(distribution).greatest = INT64_MIN
    return 0


cdef inline int64_t _ordered_word(double number) noexcept nogil:
    cdef uint64_t bits = word_of_double(number)
    return <int64_t> (_reflect_negative(bits) if bits & ~SIGN_BIT <= INFINITY_BITS else NAN_BITS)


cdef void _drop_bits(OwnedBytes* distribution, int64_t dropped_bits) noexcept nogil:
    # More than are dropped so far.
    cdef Distribution* head = _head(distribution)
    cdef Bucket* buckets = _buckets(distribution)
    cdef int64_t i, n = 0, high_bits, by = dropped_bits - head.dropped_bits
    for i in range(_n_buckets(distribution)):
        high_bits = buckets[i].high_bits >> by
        if n and buckets[n - 1].high_bits == high_bits:
            buckets[n - 1].count += buckets[i].count
        else:
            buckets[n].count = buckets[i].count
            buckets[n].high_bits = high_bits
            n += 1
    head.dropped_bits = dropped_bits
    distribution.length = <int64_t> sizeof(Distribution) + n * <int64_t> sizeof(Bucket)


cdef inline void _limit_buckets(OwnedBytes* distribution) noexcept nogil:
    while _n_buckets(distribution) > WANTED_BUCKETS and _head(distribution).dropped_bits < MOST_DROPPED:
        _drop_bits(distribution, _head(distribution).dropped_bits + 1)


cdef int distribution_add(OwnedBytes* distribution, double number) except -1 nogil:
    cdef int64_t high_bits, middle, first = 0, stop = 0, word = _ordered_word(number)
    cdef Distribution* head
    cdef Bucket* buckets
    if distribution.length:
        stop = _n_buckets(distribution)
    _reserve_buckets(distribution, stop + 1)
    head, buckets = _head(distribution), _buckets(distribution)
    high_bits = word >> head.dropped_bits
    head.count += 1
    head.least = min(head.least, word)
    head.greatest = max(head.greatest, word)
    while first < stop:
        middle = (first + stop) >> 1
        if buckets[middle].high_bits < high_bits:
            first = middle + 1
        else:
            stop = middle
    if first < _n_buckets(distribution):
        if buckets[first].high_bits == high_bits:
            buckets[first].count += 1
            return 0
        memmove(&buckets[first + 1], &buckets[first], (_n_buckets(distribution) - first) * sizeof(Bucket))
    buckets[first].high_bits = high_bits
    buckets[first].count = 1
    distribution.length += sizeof(Bucket)
    _limit_buckets(distribution)
    return 0


cdef int distribution_merge(OwnedBytes* into, OwnedBytes* other) except -1 nogil:
    # Merges from the last bucket to the first, in the room after those of `into`, so that nothing is overwritten unread.
    cdef Bucket* merged
    cdef const Bucket* others
    cdef int64_t i, j, at, n, dropped_bits
    if other.length == 0:
        return 0
    if into.length == 0:
        return owned_bytes_set(into, owned_bytes_view(other))
    dropped_bits = max(_head(into).dropped_bits, _head(other).dropped_bits)
    _drop_bits(into, dropped_bits)
    _drop_bits(other, dropped_bits)
    i, j = _n_buckets(into) - 1, _n_buckets(other) - 1
    n = at = i + j + 2
    _reserve_buckets(into, n)
    merged, others = _buckets(into), _buckets(other)
    while j >= 0:
        at -= 1
        if i >= 0 and merged[i].high_bits >= others[j].high_bits:
            merged[at] = merged[i]
            if merged[i].high_bits == others[j].high_bits:
                merged[at].count += others[j].count
                j -= 1
            i -= 1
        else:
            merged[at] = others[j]
            j -= 1
    # As many places are free between as there were equal buckets.
    memmove(&merged[i + 1], &merged[at], (n - at) * sizeof(Bucket))
    into.length = <int64_t> sizeof(Distribution) + (n - at + i + 1) * <int64_t> sizeof(Bucket)
    _head(into).count += _head(other).count
    _head(into).least = min(_head(into).least, _head(other).least)
    _head(into).greatest = max(_head(into).greatest, _head(other).greatest)
    _limit_buckets(into)
    return 0


cdef double distribution_quantile(const OwnedBytes* distribution, double fraction) noexcept nogil:
    # Returns the number of a bucket that is nearest to zero, so that short numbers come out unchanged.
    cdef const Distribution* head = _head(distribution)
    cdef const Bucket* buckets = _buckets(distribution)
    cdef int64_t i = 0, word, dropped_bits = head.dropped_bits
    cdef double place = fraction * <double> head.count, whole = floor(place + 0.5)
    # 0.07 * 100 is above 7, and a count of more than 53 bits below what it becomes.
    cdef int64_t rank = min(<int64_t> (whole if fabs(place - whole) <= 1e-12 * whole else ceil(place)), head.count)
    cdef int64_t before = buckets[0].count
    while before < rank:
        i += 1
        before += buckets[i].count
    word = buckets[i].high_bits
    if word < 0:
        word = (word + 1) * (<int64_t> 1 << dropped_bits) - 1
    else:
        word <<= dropped_bits
    if rank <= 1:
        word = head.least
    elif rank >= head.count:
        word = head.greatest
    return double_of_word(_reflect_negative(<uint64_t> word))


cdef bint distribution_is_sound(const OwnedBytes* distribution) noexcept nogil:
    cdef const Distribution* head = _head(distribution)
    cdef const Bucket* buckets
    cdef int64_t i, infinite, none, least, n, count = 0
    if distribution.length == 0:
        return True
    n = _n_buckets(distribution)
    if n < 1 or distribution.length != <int64_t> sizeof(Distribution) + n * <int64_t> sizeof(Bucket):
        return False
    if not 0 <= head.dropped_bits <= MOST_DROPPED or (n > WANTED_BUCKETS and head.dropped_bits < MOST_DROPPED):
        return False
    buckets = _buckets(distribution)
    infinite = <int64_t> INFINITY_BITS >> head.dropped_bits
    none = <int64_t> NAN_BITS >> head.dropped_bits
    least = <int64_t> _reflect_negative(INFINITY_BITS | SIGN_BIT) >> head.dropped_bits
    for i in range(n):
        if buckets[i].high_bits < least or (buckets[i].high_bits > infinite and buckets[i].high_bits != none):
            return False
        if i and buckets[i].high_bits <= buckets[i - 1].high_bits:
            return False
        if not 0 < buckets[i].count <= INT64_MAX - count:
            return False
        count += buckets[i].count
    return (
        count == head.count
        and head.least >> head.dropped_bits == buckets[0].high_bits
        and head.greatest >> head.dropped_bits == buckets[n - 1].high_bits
        and head.least <= head.greatest
        and head.greatest <= <int64_t> NAN_BITS
        and (head.least <= <int64_t> INFINITY_BITS or head.least == <int64_t> NAN_BITS)
        and (head.greatest <= <int64_t> INFINITY_BITS or head.greatest == <int64_t> NAN_BITS)
    )

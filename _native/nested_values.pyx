"""Values of any type as bytes, and columns made of such values again.

What is within a value follows it: a struct's fields, a list's number of elements and the elements, a text's length and bytes. Each
value within another has a byte before it that says whether it is there or null.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from flinkcore.errors import DataError, SchemaError

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, NativeArray, field_name, layout_of, native_array
from flinkcore._native.memory cimport (
    Buffer,
    bits_append,
    buffer_append,
    buffer_append_int64,
    buffer_free,
    buffer_reserve,
)


# ---- types -------------------------------------------------------------------------------------------------------


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
            f"values of Arrow format {format.decode()!r} are not supported here; cast views to plain text and lists, and take "
            "unions and run-end-encoded values apart"
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


cdef int _append_bytes(Buffer* out, const uint8_t* data, int64_t length) except -1 nogil:
    if length:
        memcpy(buffer_append(out, length), data, length)
    return 0


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
    cdef int64_t at = array.offset + row, width = type.layout.bits >> 3, i, begin, end
    if kind == Kind.BIT:
        (<uint8_t*> buffer_append(out, 1))[0] = ((<const uint8_t*> array.buffers[1])[at >> 3] >> (at & 7)) & 1
    elif kind == Kind.FIXED:
        _append_bytes(out, <const uint8_t*> array.buffers[1] + at * width, width)
    elif kind == Kind.TEXT or kind == Kind.LIST:
        begin = _offset(array, type.layout.offset_width, at)
        end = _offset(array, type.layout.offset_width, at + 1)
        buffer_append_int64(out, end - begin)
        if kind == Kind.TEXT:
            return _append_bytes(out, <const uint8_t*> array.buffers[2] + begin, end - begin)
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
    # How many of the bytes are those of the value; -1 where it is none.
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
    # Where the value ends; `after`, if it is null.
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


cdef int _refuse_size(const ValueColumn* column) except -1 with gil:
    raise DataError(
        f"the values of column {column.name.decode()!r} in one batch of results hold lists or texts with more than "
        "2,147,483,647 elements or bytes; let fewer values come together, or cast them to large lists and large texts"
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
            _refuse_size(column)
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
    # Where the value ends; `after`, if it is null.
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
        _append_bytes(&column.values, data, width)
        return data + width
    if kind == Kind.TEXT or kind == Kind.LIST:
        n = 0
        if data != NULL:
            n = _read_length(data)
            data += 8
        if kind == Kind.TEXT:
            if n:
                _append_bytes(&column.data, data, n)
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

"""Arrow data of other libraries in, once it has been checked, and arrays made here out, through the Arrow PyCapsule protocol.

The structs of the C data interface are bare pointers. A producer that fills them wrongly lets a reader walk out of its memory, so
whoever takes a capsule takes it through here. A pass over the offsets of strings and the bits of nulls is part of it, for the rows
that are read.

Two things cannot be checked through the interface, and are trusted: the sizes of buffers and of lists of children, and that
nobody changes them as long as the capsules live.
"""

import cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from libc.stdint cimport UINT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strchr

from flinkcore.errors import DataError, SchemaError, SourceError

from flinkcore._native.call_guard cimport Call, CallGuard, begin_call
from flinkcore._native.memory cimport BitBuffer, Buffer, block_free, buffer_free, buffer_reserve


cdef extern from *:
    int popcount "__builtin_popcountll"(unsigned long long word) noexcept nogil

cdef enum:
    MOST_DEPTH = 64  # as in Arrow's own import
    MOST_NAMED = 4   # fields within fields, in messages
    ANY_CHILDREN = -1

cdef int64_t MOST_BITS = <int64_t> 1 << 50  # of one buffer: what a process can address


cdef struct Place:
    # A place in an array, for messages.
    const Place* outer
    const ArrowSchema* field
    int depth


cdef str field_name(const ArrowSchema* field):
    return "" if field.name == NULL else field.name.decode()


# ---- formats -----------------------------------------------------------------------------------------------------


cdef bint _take_number(const char** at, int64_t* number) noexcept nogil:
    # Reads a number of at most nine digits, and moves past it. Returns false without one.
    cdef int digits = 0
    number[0] = 0
    while b"0" <= at[0][0] <= b"9" and digits < 10:
        number[0] = number[0] * 10 + (at[0][0] - <char> b"0")
        at[0] += 1
        digits += 1
    return 0 < digits < 10


cdef bint _is_decimal(const char* at, int64_t* bits) noexcept nogil:
    # Reads the bits of a decimal after "d:", which are 128 by default. Returns false if the text is malformed.
    cdef int64_t number
    bits[0] = 128
    if not _take_number(&at, &number) or at[0] != b",":
        return False
    at += 1
    if at[0] == b"-":
        at += 1
    if not _take_number(&at, &number):
        return False
    if at[0] == b",":
        at += 1
        if not _take_number(&at, bits) or bits[0] not in (32, 64, 128, 256):
            return False
    return at[0] == 0


cdef int64_t _temporal_bits(const char* format) noexcept nogil:
    # Returns the bits of a format that begins with "t", or 0 if there is no such format.
    cdef char kind = format[1], unit = format[2] if format[1] else <char> 0
    if unit == 0:
        return 0
    if kind == b"s":
        return 64 if strchr(b"smun", unit) != NULL and format[3] == b":" else 0
    if format[3]:
        return 0
    if kind == b"d":
        return 32 if unit == b"D" else 64 if unit == b"m" else 0
    if kind == b"t":
        return 32 if unit in (b"s", b"m") else 64 if unit in (b"u", b"n") else 0
    if kind == b"D":
        return 64 if strchr(b"smun", unit) != NULL else 0
    if kind == b"i":
        return 32 if unit == b"M" else 64 if unit == b"D" else 128 if unit == b"n" else 0
    return 0


cdef bint _nested_layout(const char* format, Layout* layout) noexcept nogil:
    # Finds the layout of a format that begins with "+". Returns false if there is no such format.
    cdef const char* at = format + 3
    cdef char kind = format[1]
    layout.n_buffers = 1
    if kind == b"s":
        layout.n_children = ANY_CHILDREN
        layout.rows_are_childrens = True
    elif kind in (b"l", b"m", b"L"):
        layout.n_buffers = 2
        layout.n_children = 1
        layout.offset_width = 8 if kind == b"L" else 4
    elif kind == b"r":
        layout.n_buffers = 0
        layout.n_children = 2
        layout.has_validity = False
    elif kind == b"v":
        layout.n_buffers = 3
        layout.n_children = 1
        layout.has_sizes = True
        layout.offset_width = 4 if format[2] == b"l" else 8
        return format[2] in (b"l", b"L") and format[3] == 0
    elif kind == b"w":
        layout.n_children = 1
        return format[2] == b":" and _take_number(&at, &layout.list_size) and at[0] == 0
    elif kind == b"u":
        layout.n_buffers = 2 if format[2] == b"d" else 1
        layout.rows_are_childrens = format[2] == b"s"
        layout.n_children = ANY_CHILDREN
        layout.has_validity = False
        return format[2] in (b"d", b"s") and format[3] == b":"
    else:
        return False
    return format[2] == 0


cdef bint layout_of(const char* format, Layout* layout) noexcept nogil:
    cdef const char* at = format + 2
    cdef char kind = format[0]
    layout[0] = Layout(
        n_buffers=2, n_children=0, bits=0, list_size=-1, offset_width=0, has_validity=True,
        is_integer=False, has_bytes=False, has_sizes=False, has_views=False, rows_are_childrens=False,
    )
    if kind == 0:
        return False
    if kind == b"+":
        return _nested_layout(format, layout)
    if kind == b"t":
        layout.bits = _temporal_bits(format)
        return layout.bits != 0
    if kind == b"w":
        if format[1] != b":" or not _take_number(&at, &layout.bits):
            return False
        layout.bits *= 8
        return at[0] == 0
    if kind == b"d":
        return format[1] == b":" and _is_decimal(at, &layout.bits)
    if kind == b"v":
        layout.n_buffers = 3
        layout.bits = 128
        layout.has_views = True
        return format[1] in (b"u", b"z") and format[2] == 0
    if format[1]:
        return False
    if kind == b"n":
        layout.n_buffers = 0
        layout.has_validity = False
    elif kind == b"b":
        layout.bits = 1
    elif kind in (b"c", b"C"):
        layout.bits = 8
        layout.is_integer = True
    elif kind in (b"s", b"S", b"e"):
        layout.bits = 16
        layout.is_integer = kind != b"e"
    elif kind in (b"i", b"I", b"f"):
        layout.bits = 32
        layout.is_integer = kind != b"f"
    elif kind in (b"l", b"L", b"g"):
        layout.bits = 64
        layout.is_integer = kind != b"g"
    elif kind in (b"u", b"z", b"U", b"Z"):
        layout.n_buffers = 3
        layout.offset_width = 4 if kind in (b"u", b"z") else 8
        layout.has_bytes = True
    else:
        return False
    return True


# ---- errors ------------------------------------------------------------------------------------------------------


cdef str _where(const Place* place, object exporter):
    cdef list fields = []
    while place.outer != NULL:
        try:
            fields.append(repr(field_name(place.field)) if place.field != NULL else "without a schema")
        except UnicodeDecodeError:
            fields.append("with a name that is not UTF-8")
        place = place.outer
    if not fields:
        return f"Arrow data from {_class_of(exporter)}"
    column = f"column {fields.pop()} from {_class_of(exporter)}"
    if len(fields) > MOST_NAMED:
        fields[1:len(fields)] = ["..."]
    return " of ".join([*(field if field == "..." else f"field {field}" for field in fields), column])


cdef str _class_of(object exporter):
    made_by = type(exporter)
    return f"{made_by.__module__}.{made_by.__qualname__}"


cdef int _broken(const Place* place, object exporter, str fault) except -1:
    raise DataError(f"{_where(place, exporter)} is broken: {fault}; this is a defect of what has made the data")


cdef int _broken_schema(const Place* place, object exporter, str fault) except -1:
    raise SchemaError(f"{_where(place, exporter)} has a broken schema: {fault}; this is a defect of what has made the data")


# ---- schemas -----------------------------------------------------------------------------------------------------


cdef int _check_schema_at(const ArrowSchema* schema, const Place* place, object exporter) except -1:
    cdef Layout layout
    cdef Place inner
    cdef int64_t i
    if schema == NULL:
        _broken_schema(place, exporter, "there is none")
    if schema.release == NULL:
        _broken_schema(place, exporter, "it was released, or has been taken over before")
    # A schema may contain itself: the stack of C would end without an exception.
    if place.depth == MOST_DEPTH:
        _broken_schema(place, exporter, f"more than {MOST_DEPTH} levels of fields within fields")
    if schema.format == NULL:
        _broken_schema(place, exporter, "it has no format")
    try:
        field_name(schema)
    except UnicodeDecodeError:
        _broken_schema(place, exporter, "its name is not UTF-8")
    if not layout_of(schema.format, &layout):
        _broken_schema(place, exporter, f"{(<bytes> schema.format)!r} is no format of the Arrow C data interface")
    if schema.n_children < 0 or (layout.n_children != ANY_CHILDREN and schema.n_children != layout.n_children):
        _broken_schema(place, exporter, f"{(<bytes> schema.format)!r} with {schema.n_children} children")
    if schema.n_children and schema.children == NULL:
        _broken_schema(place, exporter, f"none of its {schema.n_children} children is there")
    inner.outer = place
    inner.depth = place.depth + 1
    for i in range(schema.n_children):
        inner.field = schema.children[i]
        _check_schema_at(schema.children[i], &inner, exporter)
    if schema.dictionary != NULL:
        if not layout.is_integer:
            _broken_schema(place, exporter, f"indices of a dictionary that are {(<bytes> schema.format)!r}")
        inner.field = schema
        _check_schema_at(schema.dictionary, &inner, exporter)
    return 0


# ---- arrays ------------------------------------------------------------------------------------------------------


cdef int64_t _count_nulls(const uint8_t* validity, int64_t offset, int64_t length) noexcept nogil:
    cdef int64_t at = offset, end = offset + length, valid = 0
    cdef uint64_t word
    while at < end and at & 7:
        valid += (validity[at >> 3] >> (at & 7)) & 1
        at += 1
    while end - at >= 64:
        memcpy(&word, validity + (at >> 3), 8)
        valid += popcount(word)
        at += 64
    while at < end:
        valid += (validity[at >> 3] >> (at & 7)) & 1
        at += 1
    return length - valid


ctypedef fused Offset:
    int32_t
    int64_t


cdef int64_t _first_wrong(const Offset* offsets, int64_t n) noexcept nogil:
    # Returns the first of n + 1 offsets that is negative or less than the one before it, or -1.
    cdef Offset signs = offsets[0]
    cdef int64_t i
    # One pass without a branch: a sign bit is set where something is wrong, and only then is the row searched for.
    for i in range(n):  # a difference of two that are not negative cannot overflow
        signs |= offsets[i + 1] | <Offset> (<uint64_t> offsets[i + 1] - <uint64_t> offsets[i])
    if signs >= 0:
        return -1
    if offsets[0] < 0:
        return 0
    i = 1
    while offsets[i] >= offsets[i - 1]:
        i += 1
    return i


cdef inline int64_t _offset_at(const void* offsets, int32_t width, int64_t i) noexcept nogil:
    return (<const int32_t*> offsets)[i] if width == 4 else (<const int64_t*> offsets)[i]


cdef int _check_validity(const ArrowArray* array, int64_t first, int64_t n, const Place* place, object exporter) except -1:
    cdef int64_t nulls
    if array.null_count < -1 or array.null_count > array.length:
        _broken(place, exporter, f"its null count is {array.null_count} of {array.length} rows")
    if array.buffers[0] == NULL:
        if array.null_count > 0:
            _broken(place, exporter, f"its null count is {array.null_count}, but it does not say which rows are null")
    # -1 means that the nulls were not counted. Of a part of the rows the count says nothing.
    elif array.null_count >= 0 and first == 0 and n == array.length:
        nulls = _count_nulls(<const uint8_t*> array.buffers[0], array.offset, n)
        if nulls != array.null_count:
            _broken(place, exporter, f"its null count is {array.null_count}, but {nulls} rows are null")
    return 0


cdef int _check_offsets(
    const Layout* layout, const ArrowArray* array, int64_t start, int64_t n, const Place* place, object exporter
) except -1:
    # Checks offsets of strings and lists, for the n rows from `start` on in the buffers.
    cdef const void* offsets = <const uint8_t*> array.buffers[1] + start * layout.offset_width
    cdef int64_t wrong, reach
    if layout.offset_width == 4:
        wrong = _first_wrong(<const int32_t*> offsets, n)
    else:
        wrong = _first_wrong(<const int64_t*> offsets, n)
    if wrong >= 0:
        _broken(
            place, exporter,
            f"the values of row {max(wrong - 1, 0)} lie from {_offset_at(offsets, layout.offset_width, max(wrong - 1, 0))} "
            f"to {_offset_at(offsets, layout.offset_width, max(wrong, 1))}"
        )
    reach = _offset_at(offsets, layout.offset_width, n)
    if layout.has_bytes:
        if reach > MOST_BITS >> 3:
            _broken(place, exporter, f"its values have {reach:,} bytes")
        if array.buffers[2] == NULL and reach != _offset_at(offsets, layout.offset_width, 0):
            _broken(place, exporter, "the bytes of its values are missing")
    elif reach > array.children[0].length:
        _broken(place, exporter, f"its lists have {reach:,} elements, of which {array.children[0].length:,} are there")
    return 0


cdef int _check_sizes(
    const Layout* layout, const ArrowArray* array, int64_t start, int64_t n, const Place* place, object exporter
) except -1:
    # Checks list views, which may lie anywhere among the elements.
    cdef int64_t i, offset, size, length = array.children[0].length
    if array.buffers[2] == NULL:
        _broken(place, exporter, "the sizes of its lists are missing")
    for i in range(start, start + n):
        offset = _offset_at(array.buffers[1], layout.offset_width, i)
        size = _offset_at(array.buffers[2], layout.offset_width, i)
        if not (0 <= offset <= length and 0 <= size <= length - offset):
            _broken(place, exporter, f"row {i - start} has {size} elements from {offset} on, of {length} that are there")
    return 0


cdef int _check_view_buffers(const ArrowArray* array, const Place* place, object exporter) except -1:
    cdef const int64_t* sizes = <const int64_t*> array.buffers[array.n_buffers - 1]
    cdef int64_t i
    for i in range(array.n_buffers - 3):
        if sizes == NULL or sizes[i] < 0 or (sizes[i] and array.buffers[i + 2] == NULL):
            _broken(place, exporter, f"buffer {i + 2} of the bytes of its values has no size, or is missing")
    return 0


cdef int _check_children(
    const ArrowSchema* schema,
    const Layout* layout,
    const ArrowArray* array,
    int64_t start,
    int64_t n,
    const Place* place,
    object exporter,
) except -1:
    # Before anything of the children is read.
    cdef int64_t i
    if array.n_children != schema.n_children:
        _broken(place, exporter, f"{array.n_children} children where its schema has {schema.n_children}")
    if array.n_children and array.children == NULL:
        _broken(place, exporter, f"none of its {array.n_children} children is there")
    for i in range(array.n_children):
        if array.children[i] == NULL:
            _broken(place, exporter, f"child {i} is missing")
    if layout.list_size > 0 and start + n > array.children[0].length // layout.list_size:
        _broken(
            place, exporter,
            f"{start + n:,} lists of {layout.list_size:,} elements, of which {array.children[0].length:,} are there"
        )
    return 0


cdef bint _may_have_buffers(const ArrowSchema* schema, const Layout* layout, int64_t number) noexcept nogil:
    # Returns true if an array may have another number of buffers than its layout: views have buffers of bytes, and old Arrow
    # and polars add a validity to nulls.
    return number > layout.n_buffers if layout.has_views else schema.format[0] == b"n" and number == 1


cdef int _check_array_at(
    const ArrowSchema* schema, const ArrowArray* array, int64_t first, int64_t n, const Place* place, object exporter
) except -1:
    # Checks the n rows from `first` on that are read, of an array that agrees with its schema as far as its parent can check.
    cdef Layout layout
    cdef Place inner
    cdef int64_t i, start
    if array.release == NULL:
        _broken(place, exporter, "it was released, or has been taken over before")
    if array.length < 0:
        _broken(place, exporter, f"its length is {array.length}")
    if array.offset < 0:
        _broken(place, exporter, f"its offset is {array.offset}")
    # Not `first + n`, which may overflow.
    if first > array.length - n:
        _broken(place, exporter, f"it has {array.length:,} rows where {first + n:,} are needed")
    layout_of(schema.format, &layout)
    # From here on, products of rows and bits do not overflow.
    if array.length > MOST_BITS // max(layout.bits, 8 * layout.offset_width, 1) - array.offset:
        _broken(place, exporter, f"{array.length} rows from row {array.offset} on are more than memory can hold")
    if array.n_buffers != layout.n_buffers and not _may_have_buffers(schema, &layout, array.n_buffers):
        _broken(place, exporter, f"{array.n_buffers} buffers where its type has {layout.n_buffers}")
    if array.n_buffers and array.buffers == NULL:
        _broken(place, exporter, f"none of its {array.n_buffers} buffers is there")
    if layout.has_validity:
        _check_validity(array, first, n, place, exporter)
    start = array.offset + first
    _check_children(schema, &layout, array, start, n, place, exporter)
    for i in range(layout.has_validity, 2 if layout.n_buffers > 1 else layout.n_buffers):
        # An array without rows may leave buffers out, and so may values of no width.
        if n and array.buffers[i] == NULL and (layout.bits or layout.offset_width or not layout.has_validity):
            _broken(place, exporter, f"{'the offsets of ' if layout.offset_width else ''}its values are missing")
    if n and layout.has_sizes:
        _check_sizes(&layout, array, start, n, place, exporter)
    elif n and layout.offset_width:
        _check_offsets(&layout, array, start, n, place, exporter)
    if layout.has_views:
        _check_view_buffers(array, place, exporter)
    if (schema.dictionary == NULL) != (array.dictionary == NULL):
        _broken(place, exporter, f"it has {'a' if array.dictionary != NULL else 'no'} dictionary, unlike its schema")
    inner.outer = place
    inner.depth = place.depth + 1
    for i in range(array.n_children):
        inner.field = schema.children[i]
        # Rows of a struct are those of its fields; elements of lists may lie anywhere in the child, which is checked as a whole.
        if layout.rows_are_childrens:
            _check_array_at(schema.children[i], array.children[i], start, n, &inner, exporter)
        else:
            _check_array_at(schema.children[i], array.children[i], 0, max(array.children[i].length, 0), &inner, exporter)
    if array.dictionary != NULL:
        inner.field = schema
        _check_array_at(schema.dictionary, array.dictionary, 0, max(array.dictionary.length, 0), &inner, exporter)
    return 0


# ---- capsules ----------------------------------------------------------------------------------------------------


cdef int _check_schema(const ArrowSchema* schema, object exporter) except -1:
    cdef Place place = Place(outer=NULL, field=NULL, depth=0)
    return _check_schema_at(schema, &place, exporter)


cdef int _check_array(const ArrowSchema* schema, const ArrowArray* array, object exporter) except -1:
    cdef Place place = Place(outer=NULL, field=NULL, depth=0)
    return _check_array_at(schema, array, 0, max(array.length, 0), &place, exporter)


cdef ArrowSchema* checked_schema(object capsule, object exporter) except NULL:
    cdef ArrowSchema* schema
    if not PyCapsule_IsValid(capsule, "arrow_schema"):
        raise TypeError(f"{_class_of(exporter)} gave a {type(capsule).__name__} where an Arrow schema capsule was asked for")
    schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema")
    _check_schema(schema, exporter)
    return schema


cdef ArrowArray* _checked_array(object capsule, const ArrowSchema* schema, object exporter) except NULL:
    cdef ArrowArray* array
    if not PyCapsule_IsValid(capsule, "arrow_array"):
        raise TypeError(f"{_class_of(exporter)} gave a {type(capsule).__name__} where an Arrow array capsule was asked for")
    array = <ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array")
    _check_array(schema, array, exporter)
    return array


cdef tuple _checked_capsules(object exporter):
    export = getattr(exporter, "__arrow_c_array__", None)
    if export is None:
        raise TypeError(
            f"{type(exporter).__name__} has no __arrow_c_array__; pass a pyarrow array or record batch, "
            "or another object of the Arrow PyCapsule protocol"
        )
    capsules = export()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        raise TypeError(f"__arrow_c_array__ of {_class_of(exporter)} did not return a pair of Arrow capsules")
    _checked_array(capsules[1], checked_schema(capsules[0], exporter), exporter)
    return capsules


# ---- columns -----------------------------------------------------------------------------------------------------


# The formats of one letter and, in the same order, their types.
cdef const char* _LETTERS = b"nbcCsSiIlLfguUzZ"
cdef ColumnType[16] _TYPES = [
    ColumnType.NULL_TYPE,
    ColumnType.BOOL,
    ColumnType.INT8,
    ColumnType.UINT8,
    ColumnType.INT16,
    ColumnType.UINT16,
    ColumnType.INT32,
    ColumnType.UINT32,
    ColumnType.INT64,
    ColumnType.UINT64,
    ColumnType.FLOAT32,
    ColumnType.FLOAT64,
    ColumnType.STRING,
    ColumnType.LARGE_STRING,
    ColumnType.BINARY,
    ColumnType.LARGE_BINARY,
]


cdef bint find_column_type(const char* format, ColumnType* type, int32_t* byte_width) noexcept nogil:
    cdef Layout layout
    cdef const char* letter
    if not layout_of(format, &layout):
        return False
    byte_width[0] = <int32_t> (layout.bits >> 3)
    if format[1] == 0:
        letter = strchr(_LETTERS, format[0])
        if letter == NULL:
            return False
        type[0] = _TYPES[letter - _LETTERS]
    elif format[0] == b"t" and format[1] == b"d":
        type[0] = ColumnType.DATE32 if layout.bits == 32 else ColumnType.DATE64
    elif format[0] == b"t" and format[1] == b"t":
        type[0] = ColumnType.TIME32 if layout.bits == 32 else ColumnType.TIME64
    elif format[0] == b"t" and format[1] == b"s":
        type[0] = ColumnType.TIMESTAMP
    elif format[0] == b"t" and format[1] == b"D":
        type[0] = ColumnType.DURATION
    elif format[0] == b"w":
        type[0] = ColumnType.FIXED_BINARY
    elif format[0] == b"d" and layout.bits == 128:
        type[0] = ColumnType.DECIMAL128
    elif format[0] == b"+" and format[1] == b"s":
        type[0] = ColumnType.STRUCT
    else:
        return False
    return True


cdef int column_type(const char* format, ColumnType* type, int32_t* byte_width) except -1:
    if find_column_type(format, type, byte_width):
        return 0
    raise SchemaError(
        f"a column of Arrow format {format.decode()!r} is not supported here; cast it to a plain type "
        "(dictionary and view types to their values, other decimals to decimal128)"
    )


cdef str advise_large(str name, bint is_text):
    large = "large_string" if is_text else "large_binary"
    return (
        f"cast it to {large} after it is read, by with_columns({name}=pyarrow.compute.field({name!r}).cast({large!r})), "
        "or let fewer values come together"
    )


cdef int _read_column(
    ArrowSchema* schema, ArrowArray* array, int64_t parent_offset, int64_t length, bint any_type, Column* column
) except -1:
    # Reads a column from structs that have been checked.
    cdef int64_t offset = parent_offset + array.offset, i
    if schema.dictionary != NULL:
        raise SchemaError("a dictionary column is not supported here; cast it to the type of its values")
    if not any_type:
        column_type(schema.format, &column.type, &column.byte_width)
    elif not find_column_type(schema.format, &column.type, &column.byte_width):
        column.type = ColumnType.OTHER_TYPE
    column.format = schema.format
    column.field = schema
    column.array = array
    column.parent_offset = parent_offset
    column.length = length
    column.bit_offset = offset
    column.validity = NULL
    column.null_count = 0
    if column.type == ColumnType.NULL_TYPE:
        # In the format, a column of type null does not have a bitmap. This one is freed as children are.
        column.null_count = length
        column.bit_offset = 0
        if length:
            column.children = <Column*> calloc((length + 7) >> 3, 1)
            if column.children == NULL:
                raise MemoryError()
            column.validity = <const uint8_t*> column.children
        return 0
    if column.type == ColumnType.OTHER_TYPE and not _has_validity(schema.format):
        return 0
    # Counted again, as the exporter's count may be -1, or that of all rows of an array of which this is a part.
    if array.null_count != 0 and array.buffers[0] != NULL:
        column.null_count = _count_nulls(<const uint8_t*> array.buffers[0], offset, length)
        if column.null_count:
            column.validity = <const uint8_t*> array.buffers[0]
    if column.type == ColumnType.OTHER_TYPE:
        return 0
    if column.type == ColumnType.STRUCT:
        column.children = <Column*> calloc(schema.n_children + 1, sizeof(Column))
        if column.children == NULL:
            raise MemoryError()
        column.n_children = schema.n_children
        for i in range(schema.n_children):
            _read_column(schema.children[i], array.children[i], offset, length, any_type, &column.children[i])
    elif column.type == ColumnType.BOOL:
        column.values = array.buffers[1]
    elif column.byte_width or column.type == ColumnType.FIXED_BINARY:  # whose values may be empty
        column.values = <const uint8_t*> array.buffers[1] + offset * column.byte_width
    else:
        column.values = array.buffers[2]
        if column.type == ColumnType.LARGE_STRING or column.type == ColumnType.LARGE_BINARY:
            column.offsets = <const uint8_t*> array.buffers[1] + offset * 8
        else:
            column.offsets = <const uint8_t*> array.buffers[1] + offset * 4
        if length == 0:  # the format allows an empty array without offsets
            column.offsets = <const void*> _NO_OFFSETS
    return 0


cdef bint _has_validity(const char* format) noexcept nogil:
    cdef Layout layout
    return layout_of(format, &layout) and layout.has_validity


cdef int64_t[2] _NO_OFFSETS
_NO_OFFSETS[0] = _NO_OFFSETS[1] = 0


cdef void _free_children(Column* column) noexcept:
    cdef int64_t i
    for i in range(column.n_children):
        _free_children(&column.children[i])
    free(column.children)
    column.children = NULL
    column.n_children = 0


cdef tuple _capsules(object exporter):
    # Returns the checked capsules of an object, with as many rows as kernels can number.
    capsules = _checked_capsules(exporter)
    cdef const ArrowArray* array = <const ArrowArray*> PyCapsule_GetPointer(capsules[1], "arrow_array")
    if array.length > UINT32_MAX:
        raise DataError(f"{array.length:,} rows at once; give at most {UINT32_MAX:,}, as slices")
    return capsules


@cython.final
cdef class RecordBatch:
    """Borrowed columns of a record batch (or struct array) that speaks the Arrow PyCapsule protocol.

    Parameters
    ----------
    batch
        An object with `__arrow_c_array__` whose type is a struct without null rows.
    any_type : bool
        True if columns may have types that no kernel reads, such as lists: their values can be kept unread.

    Raises
    ------
    SchemaError
        If a column's type is not supported, or the batch has null rows.
    DataError
        If the structs of the Arrow C data interface contradict themselves, or hold more than 4,294,967,295 rows.
    """

    def __cinit__(self, object batch, bint any_type=False):
        cdef ArrowSchema* schema
        cdef ArrowArray* array
        cdef int64_t i
        self._schema_capsule, self._array_capsule = _capsules(batch)
        schema = <ArrowSchema*> PyCapsule_GetPointer(self._schema_capsule, "arrow_schema")
        array = <ArrowArray*> PyCapsule_GetPointer(self._array_capsule, "arrow_array")
        if schema.format != b"+s":
            raise SchemaError(f"expected a record batch, got an array of Arrow format {schema.format.decode()!r}")
        self.num_rows = array.length
        if array.null_count != 0 and array.buffers[0] != NULL and _count_nulls(
            <const uint8_t*> array.buffers[0], array.offset, array.length
        ):
            raise SchemaError("a record batch with null rows is not supported; drop them first")
        self.columns = <Column*> calloc(schema.n_children + 1, sizeof(Column))
        if self.columns == NULL:
            raise MemoryError()
        self.num_columns = schema.n_children
        for i in range(schema.n_children):
            try:
                _read_column(
                    schema.children[i], array.children[i], array.offset, array.length, any_type, &self.columns[i]
                )
            except SchemaError as error:
                raise SchemaError(f"column {field_name(schema.children[i])!r}: {error}") from None

    def __dealloc__(self):
        cdef int64_t i
        if self.columns != NULL:
            for i in range(self.num_columns):
                _free_children(&self.columns[i])
            free(self.columns)

    cdef int64_t index_of(self, str name) except -1:
        cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(self._schema_capsule, "arrow_schema")
        cdef int64_t i
        names = [field_name(schema.children[i]) for i in range(self.num_columns)]
        for i in range(self.num_columns):
            if names[i] == name:
                return i
        raise SchemaError(f"no column {name!r}; the columns are {', '.join(names)}")


cdef RecordBatch record_batch_of(object batch):
    return batch if isinstance(batch, RecordBatch) else RecordBatch(batch)


@cython.final
cdef class ColumnArray:
    """Borrowed view of one array that speaks the Arrow PyCapsule protocol.

    Raises
    ------
    SchemaError
        If the array's type is not supported.
    DataError
        As for `RecordBatch`.
    """

    def __cinit__(self, object array):
        self._schema_capsule, self._array_capsule = _capsules(array)
        cdef ArrowArray* imported = <ArrowArray*> PyCapsule_GetPointer(self._array_capsule, "arrow_array")
        _read_column(
            <ArrowSchema*> PyCapsule_GetPointer(self._schema_capsule, "arrow_schema"),
            imported,
            0,
            imported.length,
            False,
            &self.column,
        )

    def __dealloc__(self):
        _free_children(&self.column)

    def __len__(self):
        return self.column.length


# ---- arrays made here --------------------------------------------------------------------------------------------


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        free(schema.children[i])
    free(schema.children)
    free(<void*> schema.format)
    free(<void*> schema.name)
    schema.release = NULL


cdef void _release_array(ArrowArray* array) noexcept nogil:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        free(array.children[i])
    free(array.children)
    for i in range(array.n_buffers):
        block_free(<void*> array.buffers[i])
    free(array.buffers)
    array.release = NULL


cdef void _schema_capsule_destructor(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void _array_capsule_destructor(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef char* _copy_text(bytes text) except NULL:
    cdef char* copy = <char*> malloc(len(text) + 1)
    if copy == NULL:
        raise MemoryError()
    memcpy(copy, <const char*> text, len(text) + 1)
    return copy


@cython.final
cdef class NativeArray:
    """An Arrow array of a native kernel; `pyarrow.array(x)` or any other importer takes it over, once.

    A struct array is also a record batch: `pyarrow.record_batch(x)`.
    """

    def __init__(self):
        raise TypeError("NativeArray is made by native kernels only")

    def __dealloc__(self):
        if self.schema != NULL:
            if self.schema.release != NULL:
                self.schema.release(self.schema)
            free(self.schema)
        if self.array != NULL:
            if self.array.release != NULL:
                self.array.release(self.array)
            free(self.array)

    def __len__(self):
        if self.array == NULL:
            raise ValueError("this array was already taken over")
        return self.array.length

    def __arrow_c_array__(self, requested_schema=None):
        """Hand the array over as a pair of capsules (Arrow PyCapsule protocol); a second call is a ValueError."""
        if self.array == NULL or self.schema == NULL:
            raise ValueError("this array was already taken over; keep the importer's array instead")
        schema_capsule = PyCapsule_New(self.schema, "arrow_schema", _schema_capsule_destructor)
        self.schema = NULL
        array_capsule = PyCapsule_New(self.array, "arrow_array", _array_capsule_destructor)
        self.array = NULL
        return schema_capsule, array_capsule


cdef NativeArray _unfilled_array():
    cdef NativeArray made = NativeArray.__new__(NativeArray)
    made.schema = <ArrowSchema*> calloc(1, sizeof(ArrowSchema))
    made.array = <ArrowArray*> calloc(1, sizeof(ArrowArray))
    if made.schema == NULL or made.array == NULL:
        raise MemoryError()
    return made


cdef void* _give(Buffer* buffer) noexcept nogil:
    cdef void* data = buffer.data
    memset(buffer, 0, sizeof(Buffer))
    return data


cdef NativeArray native_array(
    str format,
    int64_t length,
    BitBuffer* validity,
    Buffer* second,
    Buffer* third,
    list children=None,
    list names=None,
):
    cdef NativeArray made = _unfilled_array()
    cdef NativeArray child
    cdef int64_t n_children = len(children) if children is not None else 0, i
    made.schema.release = _release_schema
    made.array.release = _release_array
    made.schema.format = _copy_text(format.encode())
    made.schema.name = _copy_text(b"")
    made.schema.flags = 2  # nullable
    made.array.length = length
    made.array.buffers = <const void**> calloc(3, sizeof(void*))
    if made.array.buffers == NULL:
        raise MemoryError()
    if validity != NULL:
        if validity.zeros:
            made.array.null_count = validity.zeros
            made.array.buffers[0] = _give(&validity.bytes)
        else:
            buffer_free(&validity.bytes)
        validity.length = validity.zeros = 0
    made.array.n_buffers = 0 if format == "n" else 1
    if second != NULL:
        if second.data == NULL:
            buffer_reserve(second, 8)
            memset(second.data, 0, 8)
        made.array.buffers[1] = _give(second)
        made.array.n_buffers = 2
    if third != NULL:
        if third.data == NULL:
            buffer_reserve(third, 8)
        made.array.buffers[2] = _give(third)
        made.array.n_buffers = 3
    if n_children:
        made.schema.children = <ArrowSchema**> calloc(n_children, sizeof(ArrowSchema*))
        made.array.children = <ArrowArray**> calloc(n_children, sizeof(ArrowArray*))
        if made.schema.children == NULL or made.array.children == NULL:
            raise MemoryError()
        for i in range(n_children):
            child = children[i]
            if child.schema == NULL:
                raise ValueError("a child array was already taken over")
            free(<void*> child.schema.name)
            child.schema.name = NULL
            child.schema.name = _copy_text((<str> names[i]).encode())
            made.schema.children[i] = child.schema
            made.schema.n_children = i + 1
            child.schema = NULL
            made.array.children[i] = child.array
            made.array.n_children = i + 1
            child.array = NULL
    return made


# ---- what is passed on -------------------------------------------------------------------------------------------


def checked_batch(batch):
    """Take over a record batch of another library once it has been checked; importers, such as pyarrow, trust what they get.

    Parameters
    ----------
    batch
        Any object with `__arrow_c_array__`.

    Returns
    -------
    NativeArray
        The same memory.

    Raises
    ------
    SchemaError, DataError
        If a column is broken; names the column and the fault.
    """
    capsules = _checked_capsules(batch)
    cdef NativeArray taken = _unfilled_array()
    cdef ArrowSchema* schema = <ArrowSchema*> PyCapsule_GetPointer(capsules[0], "arrow_schema")
    cdef ArrowArray* array = <ArrowArray*> PyCapsule_GetPointer(capsules[1], "arrow_array")
    taken.schema[0] = schema[0]
    schema.release = NULL
    taken.array[0] = array[0]
    array.release = NULL
    return taken


@cython.final
cdef class CheckedStream:
    """Record batches of a stream of another library, each checked before it is returned.

    Iterating yields a NativeArray per batch, once. The schema of the stream can be requested before.

    Parameters
    ----------
    data
        Any object with `__arrow_c_stream__`.

    Raises
    ------
    TypeError
        If the object does not return an Arrow stream.
    DataError
        If the stream was taken over before, or a batch contradicts itself.
    SchemaError
        If the schema is broken, or not that of a table.
    SourceError
        If the stream fails.
    """

    cdef CallGuard guard
    cdef object _exporter
    cdef object _capsule
    cdef ArrowArrayStream* _stream

    def __cinit__(self, data):
        self._exporter = data
        self._capsule = data.__arrow_c_stream__()
        if not PyCapsule_IsValid(self._capsule, "arrow_array_stream"):
            raise TypeError(
                f"{_class_of(data)} gave a {type(self._capsule).__name__} where an Arrow stream capsule was asked for"
            )
        self._stream = <ArrowArrayStream*> PyCapsule_GetPointer(self._capsule, "arrow_array_stream")
        if self._stream.release == NULL or self._stream.get_schema == NULL or self._stream.get_next == NULL:
            raise DataError(f"the Arrow stream from {_class_of(data)} was released, or has been taken over before")

    cdef int _fail(self, int code) except -1:
        cdef const char* text = NULL
        if self._stream.get_last_error != NULL:
            text = self._stream.get_last_error(self._stream)
        said = f"error {code}" if text == NULL else (<bytes> text).decode("utf-8", "replace")
        raise SourceError(f"the Arrow stream from {_class_of(self._exporter)} failed: {said}")

    cdef int _read_schema(self, ArrowSchema* schema) except -1:
        cdef int code
        with nogil:
            code = self._stream.get_schema(self._stream, schema)
        if code:
            self._fail(code)
        _check_schema(schema, self._exporter)
        if schema.format != b"+s":
            raise SchemaError(
                f"expected a table, got arrays of Arrow format {schema.format.decode()!r} from {_class_of(self._exporter)}"
            )
        return 0

    def __arrow_c_schema__(self):
        """Return the schema of all batches as a capsule (Arrow PyCapsule protocol)."""
        cdef Call call = begin_call(&self.guard, self)
        cdef NativeArray made = _unfilled_array()
        self._read_schema(made.schema)
        capsule = PyCapsule_New(made.schema, "arrow_schema", _schema_capsule_destructor)
        made.schema = NULL
        return capsule

    def __iter__(self):
        return self

    def __next__(self):
        cdef Call call = begin_call(&self.guard, self)
        cdef NativeArray made = _unfilled_array()
        cdef int code
        self._read_schema(made.schema)
        with nogil:
            code = self._stream.get_next(self._stream, made.array)
        if code:
            self._fail(code)
        if made.array.release == NULL:
            raise StopIteration
        _check_array(made.schema, made.array, self._exporter)
        return made

"""The Arrow C data interface: whether what another library hands over holds together.

Its structs are bare pointers. A producer that fills them wrongly lets a reader walk out of its memory, so whoever takes a capsule
takes it through here. A pass over the offsets of strings and the bits of nulls is part of it, for the rows that are read.

What the interface does not say has to be trusted: the sizes of buffers and of lists of children, and that nobody changes them as
long as the capsules live.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, strchr

from flinkcore.errors import DataError, SchemaError

cdef extern from *:
    int popcount "__builtin_popcountll"(unsigned long long word) noexcept nogil

cdef enum:
    MOST_DEPTH = 64  # as in Arrow's own import
    MOST_NAMED = 4   # fields within fields, in messages
    ANY_CHILDREN = -1

cdef int64_t MOST_BITS = <int64_t> 1 << 50  # of one buffer: what a process can address


cdef struct Layout:
    # What arrays of a format consist of.
    int64_t n_buffers
    int64_t n_children
    int64_t bits          # of a value, where values are of one size
    int64_t list_size     # of a fixed-size list
    int32_t offset_width  # of strings and lists; 0: none
    bint has_validity
    bint is_integer
    bint has_bytes        # the third buffer is what the offsets point into
    bint has_sizes        # the third buffer has the sizes of lists, which may lie anywhere
    bint has_views        # there are buffers of bytes, and their sizes in a further one
    bint rows_are_childrens  # row i is row i of each child


cdef struct Place:
    # Where in an array something is.
    const Place* outer
    const ArrowSchema* field
    int depth


cdef str field_name(const ArrowSchema* field):
    return "" if field.name == NULL else field.name.decode()


# ---- formats -----------------------------------------------------------------------------------------------------


cdef bint _take_number(const char** at, int64_t* number) noexcept nogil:
    # Of at most nine digits.
    cdef int digits = 0
    number[0] = 0
    while b"0" <= at[0][0] <= b"9" and digits < 10:
        number[0] = number[0] * 10 + (at[0][0] - <char> b"0")
        at[0] += 1
        digits += 1
    return 0 < digits < 10


cdef bint _is_decimal(const char* at, int64_t* bits) noexcept nogil:
    # What follows "d:".
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
    # Of the formats that begin with "t"; 0 of others.
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
    # Of the formats that begin with "+".
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


cdef bint _layout_of(const char* format, Layout* layout) noexcept nogil:
    # False where there is no such format.
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
        return f"Arrow data from {class_of(exporter)}"
    column = f"column {fields.pop()} from {class_of(exporter)}"
    if len(fields) > MOST_NAMED:
        fields[1:len(fields)] = ["..."]
    return " of ".join([*(field if field == "..." else f"field {field}" for field in fields), column])


cdef str class_of(object exporter):
    made_by = type(exporter)
    return f"{made_by.__module__}.{made_by.__qualname__}"


cdef int _broken(const Place* place, object exporter, str fault) except -1:
    raise DataError(f"{_where(place, exporter)} is broken: {fault}; this is a defect of what has made the data")


cdef int _broken_schema(const Place* place, object exporter, str fault) except -1:
    raise SchemaError(f"{_where(place, exporter)} has a broken schema: {fault}; this is a defect of what has made the data")


# ---- schemas -----------------------------------------------------------------------------------------------------


cdef int _check_schema(const ArrowSchema* schema, const Place* place, object exporter) except -1:
    cdef Layout layout
    cdef Place inner
    cdef int64_t i
    if schema == NULL:
        _broken_schema(place, exporter, "there is none")
    if schema.release == NULL:
        _broken_schema(place, exporter, "it was released, or has been taken over before")
    if place.depth == MOST_DEPTH:
        _broken_schema(place, exporter, f"more than {MOST_DEPTH} levels of fields within fields")
    if schema.format == NULL:
        _broken_schema(place, exporter, "it has no format")
    try:
        field_name(schema)
    except UnicodeDecodeError:
        _broken_schema(place, exporter, "its name is not UTF-8")
    if not _layout_of(schema.format, &layout):
        _broken_schema(place, exporter, f"{(<bytes> schema.format)!r} is no format of the Arrow C data interface")
    if schema.n_children < 0 or (layout.n_children != ANY_CHILDREN and schema.n_children != layout.n_children):
        _broken_schema(place, exporter, f"{(<bytes> schema.format)!r} with {schema.n_children} children")
    if schema.n_children and schema.children == NULL:
        _broken_schema(place, exporter, f"none of its {schema.n_children} children is there")
    inner.outer = place
    inner.depth = place.depth + 1
    for i in range(schema.n_children):
        inner.field = schema.children[i]
        _check_schema(schema.children[i], &inner, exporter)
    if schema.dictionary != NULL:
        if not layout.is_integer:
            _broken_schema(place, exporter, f"indices of a dictionary that are {(<bytes> schema.format)!r}")
        inner.field = schema
        _check_schema(schema.dictionary, &inner, exporter)
    return 0


# ---- arrays ------------------------------------------------------------------------------------------------------


cdef int64_t count_nulls(const uint8_t* validity, int64_t offset, int64_t length) noexcept nogil:
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
    # The first of n + 1 offsets that is negative or less than the one before it; -1 where there is none.
    cdef Offset signs = offsets[0]
    cdef int64_t i
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
    elif array.null_count >= 0 and first == 0 and n == array.length:
        nulls = count_nulls(<const uint8_t*> array.buffers[0], array.offset, n)
        if nulls != array.null_count:
            _broken(place, exporter, f"its null count is {array.null_count}, but {nulls} rows are null")
    return 0


cdef int _check_offsets(
    const Layout* layout, const ArrowArray* array, int64_t start, int64_t n, const Place* place, object exporter
) except -1:
    # Of strings and lists, for the n rows from `start` on in the buffers.
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
    # Of lists that may lie anywhere among the elements.
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


cdef int _check_array(
    const ArrowSchema* schema, const ArrowArray* array, int64_t first, int64_t n, const Place* place, object exporter
) except -1:
    # For the n rows from `first` on that are read, of an array that agrees with its schema as far as its parent can tell.
    cdef Layout layout
    cdef Place inner
    cdef int64_t i, start
    if array.release == NULL:
        _broken(place, exporter, "it was released, or has been taken over before")
    if array.length < 0:
        _broken(place, exporter, f"its length is {array.length}")
    if array.offset < 0:
        _broken(place, exporter, f"its offset is {array.offset}")
    if first > array.length - n:
        _broken(place, exporter, f"it has {array.length:,} rows where {first + n:,} are needed")
    _layout_of(schema.format, &layout)
    if array.length > MOST_BITS // max(layout.bits, 8 * layout.offset_width, 1) - array.offset:
        _broken(place, exporter, f"{array.length} rows from row {array.offset} on are more than memory can hold")
    if array.n_buffers != layout.n_buffers and not (layout.has_views and array.n_buffers > layout.n_buffers):
        _broken(place, exporter, f"{array.n_buffers} buffers where its type has {layout.n_buffers}")
    if array.n_buffers and array.buffers == NULL:
        _broken(place, exporter, f"none of its {array.n_buffers} buffers is there")
    if layout.has_validity:
        _check_validity(array, first, n, place, exporter)
    start = array.offset + first
    _check_children(schema, &layout, array, start, n, place, exporter)
    for i in range(layout.has_validity, 2 if layout.n_buffers > 1 else layout.n_buffers):
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
        if layout.rows_are_childrens:
            _check_array(schema.children[i], array.children[i], start, n, &inner, exporter)
        else:
            _check_array(schema.children[i], array.children[i], 0, max(array.children[i].length, 0), &inner, exporter)
    if array.dictionary != NULL:
        inner.field = schema
        _check_array(schema.dictionary, array.dictionary, 0, max(array.dictionary.length, 0), &inner, exporter)
    return 0


# ---- capsules ----------------------------------------------------------------------------------------------------


cdef int check_schema(const ArrowSchema* schema, object exporter) except -1:
    cdef Place place = Place(outer=NULL, field=NULL, depth=0)
    return _check_schema(schema, &place, exporter)


cdef int check_array(const ArrowSchema* schema, const ArrowArray* array, object exporter) except -1:
    cdef Place place = Place(outer=NULL, field=NULL, depth=0)
    return _check_array(schema, array, 0, max(array.length, 0), &place, exporter)


cdef ArrowSchema* checked_schema(object capsule, object exporter) except NULL:
    cdef ArrowSchema* schema
    if not PyCapsule_IsValid(capsule, "arrow_schema"):
        raise TypeError(f"{class_of(exporter)} gave a {type(capsule).__name__} where an Arrow schema capsule was asked for")
    schema = <ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema")
    check_schema(schema, exporter)
    return schema


cdef ArrowArray* checked_array(object capsule, const ArrowSchema* schema, object exporter) except NULL:
    cdef ArrowArray* array
    if not PyCapsule_IsValid(capsule, "arrow_array"):
        raise TypeError(f"{class_of(exporter)} gave a {type(capsule).__name__} where an Arrow array capsule was asked for")
    array = <ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array")
    check_array(schema, array, exporter)
    return array


cdef tuple checked_capsules(object exporter):
    export = getattr(exporter, "__arrow_c_array__", None)
    if export is None:
        raise TypeError(
            f"{type(exporter).__name__} has no __arrow_c_array__; pass a pyarrow array or record batch, "
            "or another object of the Arrow PyCapsule protocol"
        )
    capsules = export()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        raise TypeError(f"__arrow_c_array__ of {class_of(exporter)} did not return a pair of Arrow capsules")
    checked_array(capsules[1], checked_schema(capsules[0], exporter), exporter)
    return capsules

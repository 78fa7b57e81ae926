"""Columns in through the Arrow PyCapsule protocol, arrays out the same way."""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset, strchr

import cython

from flinkcore.errors import DataError, SchemaError, SourceError

from flinkcore._native.arrow_c_data cimport (
    ArrowArrayStream,
    check_array,
    check_schema,
    checked_capsules,
    class_of,
    count_nulls,
    field_name,
)
from flinkcore._native.call_guard cimport Call, CallGuard, begin_call
from flinkcore._native.memory_blocks cimport block_free, block_new, block_take


# ---- in ----------------------------------------------------------------------------------------------------------


# Of the formats of one letter; a width of 0: not fixed, or of bits.
cdef const char* _FORMATS = b"nbcCsSiIlLfguUzZ"
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
cdef int32_t[16] _WIDTHS = [0, 0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 0, 0, 0, 0]


cdef int column_type(const char* format, ColumnType* type, int32_t* byte_width) except -1:
    cdef char c = format[0]
    cdef const char* at
    byte_width[0] = 0
    if c == 0 or format[1] == 0:
        at = strchr(_FORMATS, c)
        if at == NULL or at[0] == 0:
            return _unsupported(format)
        type[0] = _TYPES[at - _FORMATS]
        byte_width[0] = _WIDTHS[at - _FORMATS]
        return 0
    if c == b"t":
        if format[1] == b"d":
            type[0] = ColumnType.DATE32 if format[2] == b"D" else ColumnType.DATE64
            byte_width[0] = 4 if format[2] == b"D" else 8
        elif format[1] == b"t":
            type[0] = ColumnType.TIME32 if format[2] in b"sm" else ColumnType.TIME64
            byte_width[0] = 4 if format[2] in b"sm" else 8
        elif format[1] == b"s":
            type[0] = ColumnType.TIMESTAMP
            byte_width[0] = 8
        elif format[1] == b"D":
            type[0] = ColumnType.DURATION
            byte_width[0] = 8
        else:
            return _unsupported(format)
        return 0
    if c == b"w":
        type[0] = ColumnType.FIXED_BINARY
        byte_width[0] = int((<bytes> format)[2:])
        return 0
    if c == b"d" and (<bytes> format).count(b",") == 1:
        type[0] = ColumnType.DECIMAL128
        byte_width[0] = 16
        return 0
    if format == b"+s":
        type[0] = ColumnType.STRUCT
        return 0
    return _unsupported(format)


cdef int _unsupported(const char* format) except -1:
    raise SchemaError(
        f"a column of Arrow format {format.decode()!r} is not supported here; cast it to a plain type "
        "(dictionary and view types to their values, decimals to double or int64)"
    )


cdef str advise_large(str name, bint is_text):
    large = "large_string" if is_text else "large_binary"
    return (
        f"cast it to {large} after it is read, by with_columns({name}=pyarrow.compute.field({name!r}).cast({large!r})), "
        "or let fewer values come together"
    )


cdef int _read_column(
    ArrowSchema* schema, ArrowArray* array, int64_t parent_offset, int64_t length, Column* column
) except -1:
    # Of structs that have been checked.
    cdef int64_t offset = parent_offset + array.offset, i
    if schema.dictionary != NULL:
        raise SchemaError("a dictionary column is not supported here; cast it to the type of its values")
    column_type(schema.format, &column.type, &column.byte_width)
    column.format = schema.format
    column.length = length
    column.bit_offset = offset
    column.validity = NULL
    column.null_count = 0
    if column.type == ColumnType.NULL_TYPE:
        # The format has no bitmap for what is always null. This one is freed as children are.
        column.null_count = length
        column.bit_offset = 0
        if length:
            column.children = <Column*> calloc((length + 7) >> 3, 1)
            if column.children == NULL:
                raise MemoryError()
            column.validity = <const uint8_t*> column.children
        return 0
    if array.null_count != 0 and array.buffers[0] != NULL:
        column.null_count = count_nulls(<const uint8_t*> array.buffers[0], offset, length)
        if column.null_count:
            column.validity = <const uint8_t*> array.buffers[0]
    if column.type == ColumnType.STRUCT:
        column.children = <Column*> calloc(schema.n_children + 1, sizeof(Column))
        if column.children == NULL:
            raise MemoryError()
        column.n_children = schema.n_children
        for i in range(schema.n_children):
            _read_column(schema.children[i], array.children[i], offset, length, &column.children[i])
    elif column.type == ColumnType.BOOL:
        column.values = array.buffers[1]
    elif column.byte_width or column.type == ColumnType.FIXED_BINARY:  # whose values may have no bytes at all
        column.values = <const uint8_t*> array.buffers[1] + offset * column.byte_width
    else:
        column.values = array.buffers[2]
        if column.type == ColumnType.LARGE_STRING or column.type == ColumnType.LARGE_BINARY:
            column.offsets = <const uint8_t*> array.buffers[1] + offset * 8
        else:
            column.offsets = <const uint8_t*> array.buffers[1] + offset * 4
        if length == 0:  # the format lets an empty array have no offset at all
            column.offsets = <const void*> _NO_OFFSETS
    return 0


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
    # Of as many rows as kernels can number.
    capsules = checked_capsules(exporter)
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
        Any object with `__arrow_c_array__` whose type is a struct without null rows.

    Raises
    ------
    SchemaError
        If a column's type is not supported, or the batch has null rows.
    DataError
        If the structs of the Arrow C data interface contradict themselves, or hold more than 4,294,967,295 rows.
    """

    def __cinit__(self, object batch):
        cdef ArrowSchema* schema
        cdef ArrowArray* array
        cdef int64_t i
        self._schema_capsule, self._array_capsule = _capsules(batch)
        schema = <ArrowSchema*> PyCapsule_GetPointer(self._schema_capsule, "arrow_schema")
        array = <ArrowArray*> PyCapsule_GetPointer(self._array_capsule, "arrow_array")
        if schema.format != b"+s":
            raise SchemaError(f"expected a record batch, got an array of Arrow format {schema.format.decode()!r}")
        self.num_rows = array.length
        if array.null_count != 0 and array.buffers[0] != NULL and count_nulls(
            <const uint8_t*> array.buffers[0], array.offset, array.length
        ):
            raise SchemaError("a record batch with null rows is not supported; drop them first")
        self.columns = <Column*> calloc(schema.n_children + 1, sizeof(Column))
        if self.columns == NULL:
            raise MemoryError()
        self.num_columns = schema.n_children
        for i in range(schema.n_children):
            try:
                _read_column(schema.children[i], array.children[i], array.offset, array.length, &self.columns[i])
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
            &self.column,
        )

    def __dealloc__(self):
        _free_children(&self.column)

    def __len__(self):
        return self.column.length


# ---- growable memory ---------------------------------------------------------------------------------------------


cdef int buffer_reserve(Buffer* buffer, int64_t extra) except -1 nogil:
    # Makes room for `extra` more bytes.
    cdef int64_t needed = buffer.size + extra, capacity
    cdef size_t taken = 0
    cdef uint8_t* data
    if needed <= buffer.capacity:
        return 0
    capacity = buffer.capacity * 2 if buffer.capacity > 32 else 64
    if capacity < needed:
        capacity = (needed + 63) & ~<int64_t> 63
    data = <uint8_t*> block_take(capacity, &taken)
    if data != NULL:
        capacity = <int64_t> taken
        if buffer.size:
            memcpy(data, buffer.data, buffer.size)
        block_free(buffer.data)
    elif buffer.data == NULL:
        data = <uint8_t*> block_new(capacity)
    else:
        data = <uint8_t*> realloc(buffer.data, capacity)
    if data == NULL:
        with gil:
            raise MemoryError(f"{capacity} bytes")
    buffer.data = data
    buffer.capacity = capacity
    return 0


cdef void buffer_free(Buffer* buffer) noexcept nogil:
    block_free(buffer.data)
    memset(buffer, 0, sizeof(Buffer))


cdef int bits_append(BitBuffer* bits, bint value) except -1 nogil:
    cdef int64_t length = bits.length
    if (length & 7) == 0:
        buffer_reserve(&bits.bytes, 1)
        bits.bytes.data[length >> 3] = 0
        bits.bytes.size = (length >> 3) + 1
    bits.bytes.data[length >> 3] |= value << (length & 7)
    bits.zeros += not value
    bits.length = length + 1
    return 0


cdef int bits_append_many(BitBuffer* bits, bint value, int64_t count) except -1 nogil:
    cdef int64_t whole
    while count and bits.length & 7:
        bits_append(bits, value)
        count -= 1
    whole = count >> 3
    if whole:
        buffer_reserve(&bits.bytes, whole)
        memset(bits.bytes.data + bits.bytes.size, 0xFF if value else 0, whole)
        bits.bytes.size += whole
        bits.length += whole * 8
        if not value:
            bits.zeros += whole * 8
        count -= whole * 8
    while count:
        bits_append(bits, value)
        count -= 1
    return 0


# ---- out ---------------------------------------------------------------------------------------------------------


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


# ---- through ----------------------------------------------------------------------------------------------------


cdef NativeArray _unfilled_array():
    cdef NativeArray made = NativeArray.__new__(NativeArray)
    made.schema = <ArrowSchema*> calloc(1, sizeof(ArrowSchema))
    made.array = <ArrowArray*> calloc(1, sizeof(ArrowArray))
    if made.schema == NULL or made.array == NULL:
        raise MemoryError()
    return made


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
        Which column is broken, and how.
    """
    capsules = checked_capsules(batch)
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
    """Record batches of a stream of another library, each checked before it is given.

    Iterating gives a NativeArray per batch, once; the stream can be asked for its schema before.

    Parameters
    ----------
    data
        Any object with `__arrow_c_stream__`.

    Raises
    ------
    TypeError
        If that does not give an Arrow stream.
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
                f"{class_of(data)} gave a {type(self._capsule).__name__} where an Arrow stream capsule was asked for"
            )
        self._stream = <ArrowArrayStream*> PyCapsule_GetPointer(self._capsule, "arrow_array_stream")
        if self._stream.release == NULL or self._stream.get_schema == NULL or self._stream.get_next == NULL:
            raise DataError(f"the Arrow stream from {class_of(data)} was released, or has been taken over before")

    cdef int _fail(self, int code) except -1:
        cdef const char* text = NULL
        if self._stream.get_last_error != NULL:
            text = self._stream.get_last_error(self._stream)
        said = f"error {code}" if text == NULL else (<bytes> text).decode("utf-8", "replace")
        raise SourceError(f"the Arrow stream from {class_of(self._exporter)} failed: {said}")

    cdef int _read_schema(self, ArrowSchema* schema) except -1:
        cdef int code
        with nogil:
            code = self._stream.get_schema(self._stream, schema)
        if code:
            self._fail(code)
        check_schema(schema, self._exporter)
        if schema.format != b"+s":
            raise SchemaError(
                f"expected a table, got arrays of Arrow format {schema.format.decode()!r} from {class_of(self._exporter)}"
            )
        return 0

    def __arrow_c_schema__(self):
        """Give the schema of all batches as a capsule (Arrow PyCapsule protocol)."""
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
        check_array(made.schema, made.array, self._exporter)
        return made


# ---- made here ---------------------------------------------------------------------------------------------------


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

# Arrow data of other libraries in, once it has been checked, and arrays made here out, through the Arrow PyCapsule protocol.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from flinkcore._native.memory cimport BitBuffer, Buffer


cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    #include <stdint.h>
    struct ArrowSchema {
        const char* format;
        const char* name;
        const char* metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema** children;
        struct ArrowSchema* dictionary;
        void (*release)(struct ArrowSchema*);
        void* private_data;
    };
    struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void** buffers;
        struct ArrowArray** children;
        struct ArrowArray* dictionary;
        void (*release)(struct ArrowArray*);
        void* private_data;
    };
    #endif
    #ifndef ARROW_C_STREAM_INTERFACE
    #define ARROW_C_STREAM_INTERFACE
    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
        int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
        const char* (*get_last_error)(struct ArrowArrayStream*);
        void (*release)(struct ArrowArrayStream*);
        void* private_data;
    };
    #endif
    """
    cdef struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil
        void* private_data

    cdef struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil
        void* private_data

    cdef struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema* out) noexcept nogil
        int (*get_next)(ArrowArrayStream*, ArrowArray* out) noexcept nogil
        const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
        void (*release)(ArrowArrayStream*) noexcept nogil
        void* private_data


# Returns the struct in a schema capsule of `exporter`, after all in it has been checked; a SchemaError names the column at
# fault.
cdef ArrowSchema* checked_schema(object capsule, object exporter) except NULL
# Returns the name of a field, which is empty if the producer leaves it out, as the format allows.
cdef str field_name(const ArrowSchema* field)


cdef struct Layout:
    # The parts of arrays of a format.
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


# Finds the parts of arrays of a format. Returns false if the format does not exist.
cdef bint layout_of(const char* format, Layout* layout) noexcept nogil


cdef enum ColumnType:
    NULL_TYPE = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6
    UINT16 = 7
    UINT32 = 8
    UINT64 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    DATE32 = 12        # int32 days
    DATE64 = 13        # int64 ms
    TIME32 = 14        # int32
    TIME64 = 15        # int64
    TIMESTAMP = 16     # int64
    DURATION = 17      # int64
    STRING = 18        # int32 offsets, UTF-8
    LARGE_STRING = 19  # int64 offsets, UTF-8
    BINARY = 20
    LARGE_BINARY = 21
    FIXED_BINARY = 22  # byte_width bytes
    DECIMAL128 = 23    # 16 bytes, little endian
    STRUCT = 24
    OTHER_TYPE = 25    # lists, maps and whatever no kernel reads: values that are kept as they are


cdef struct Column:
    # Borrowed view of one Arrow array; valid while its RecordBatch lives.
    ColumnType type
    int64_t length
    int64_t null_count       # never negative; 0 exactly when validity is NULL
    const uint8_t* validity  # bitmap, or NULL if no value is null; bit of row i is at bit_offset + i
    int64_t bit_offset       # for validity, and for values where type is BOOL
    const void* values       # fixed width: first row's value (offset applied; bitmap for BOOL); else the bytes
    const void* offsets      # int32 or int64 by type, first row's offset (offset applied); NULL for fixed width
    int32_t byte_width       # of fixed-width types, else 0
    const char* format       # the Arrow format string, for units and zones
    int64_t n_children       # STRUCT only
    Column* children         # already shifted: row i of the parent is row i of each child
    const ArrowSchema* field
    const ArrowArray* array
    int64_t parent_offset    # row i is row parent_offset + i of the array, without the array's own offset


# The type of a format's values, and their bytes; 0 where these are bits or not of one size. False if columns of the format are not
# supported.
cdef bint find_column_type(const char* format, ColumnType* type, int32_t* byte_width) noexcept nogil
# The same; raises SchemaError if they are not supported.
cdef int column_type(const char* format, ColumnType* type, int32_t* byte_width) except -1
# Advice for a string or binary column that is too small for its values: a log's own large columns are read as small ones.
cdef str advise_large(str name, bint is_text)


cdef inline bint is_valid(const Column* column, int64_t row) noexcept nogil:
    cdef int64_t bit
    if column.validity == NULL:
        return True
    bit = column.bit_offset + row
    return (column.validity[bit >> 3] >> (bit & 7)) & 1


cdef inline bint bool_value(const Column* column, int64_t row) noexcept nogil:
    cdef int64_t bit = column.bit_offset + row
    return ((<const uint8_t*> column.values)[bit >> 3] >> (bit & 7)) & 1


cdef inline int64_t bytes_value(const Column* column, int64_t row, const uint8_t** start) noexcept nogil:
    # Length of a string or binary value; *start points at its first byte.
    cdef int64_t begin, end
    if column.type == ColumnType.LARGE_STRING or column.type == ColumnType.LARGE_BINARY:
        begin = (<const int64_t*> column.offsets)[row]
        end = (<const int64_t*> column.offsets)[row + 1]
    elif column.type == ColumnType.FIXED_BINARY or column.type == ColumnType.DECIMAL128:
        begin = row * column.byte_width
        end = begin + column.byte_width
    else:
        begin = (<const int32_t*> column.offsets)[row]
        end = (<const int32_t*> column.offsets)[row + 1]
    start[0] = <const uint8_t*> column.values + begin
    return end - begin


cdef inline int64_t integer_value(const Column* column, int64_t row) noexcept nogil:
    # Value of any integer or temporal type, sign-extended (uint64 bit for bit).
    cdef ColumnType t = column.type
    if t == ColumnType.UINT8:
        return (<const uint8_t*> column.values)[row]
    if t == ColumnType.UINT32:
        return (<const uint32_t*> column.values)[row]
    if column.byte_width == 8:
        return (<const int64_t*> column.values)[row]
    if column.byte_width == 4:
        return (<const int32_t*> column.values)[row]
    if t == ColumnType.UINT16:
        return (<const unsigned short*> column.values)[row]
    if column.byte_width == 2:
        return (<const short*> column.values)[row]
    return (<const signed char*> column.values)[row]


cdef class RecordBatch:
    # Owns the capsules that the columns point into.
    cdef object _schema_capsule
    cdef object _array_capsule
    cdef readonly int64_t num_rows
    cdef readonly int64_t num_columns
    cdef Column* columns
    cdef int64_t index_of(self, str name) except -1


# Returns the batch itself, or the array of an object with `__arrow_c_array__`.
cdef RecordBatch record_batch_of(object batch)


cdef class ColumnArray:
    # One array, as a column.
    cdef object _schema_capsule
    cdef object _array_capsule
    cdef Column column


cdef class NativeArray:
    # An array made here; hands its memory over once, through __arrow_c_array__.
    cdef ArrowSchema* schema
    cdef ArrowArray* array


# Takes the buffers (they are left empty). A NULL or empty validity means no nulls. `second` holds the values or the
# offsets; `third` the bytes of strings. `children` are NativeArrays, which are consumed; field names are `names`.
cdef NativeArray native_array(
    str format,
    int64_t length,
    BitBuffer* validity,
    Buffer* second,
    Buffer* third,
    list children=*,
    list names=*,
)

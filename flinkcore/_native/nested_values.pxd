# Values of any type as bytes, and columns made of such values again.
from libc.stdint cimport int64_t, uint8_t

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, Layout, NativeArray
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef struct ValueType:
    # A type and the types within it; free with value_type_free.
    const ArrowSchema* field  # borrowed
    Layout layout
    int64_t n_children
    ValueType* children       # (n_children,)


# The type of a field. SchemaError where values of such a type, or of one within it, cannot be kept; nothing is to be freed then.
cdef int value_type_set(ValueType* type, const ArrowSchema* field) except -1
cdef void value_type_free(ValueType* type) noexcept
# Appends the bytes of a value that is not null; `row` counts without the array's own offset.
cdef int value_append(Buffer* out, const ValueType* type, const ArrowArray* array, int64_t row) except -1 nogil
# Whether bytes are those of one value; of a text that is UTF-8.
cdef bint is_value(const ValueType* type, const uint8_t* data, int64_t length)


cdef struct ValueColumn:
    # Zero-initialise, then set type and name with value_column_set; free with value_column_free.
    const ValueType* type
    const char* name       # of the column that the values came from, for messages
    int64_t length
    BitBuffer validity
    BitBuffer bits         # of bools
    Buffer values          # fixed width, or offsets (length + 1,)
    Buffer data            # of strings
    ValueColumn* children  # as of the type
    int64_t more_rows      # measured
    int64_t more_data


cdef int value_column_set(ValueColumn* column, const ValueType* type, const char* name) except -1
cdef void value_column_free(ValueColumn* column) noexcept
cdef int64_t value_column_memory(const ValueColumn* column) noexcept nogil
# Counts what a value, or a null where `data` is NULL, will take.
cdef void value_column_measure(ValueColumn* column, const uint8_t* data) noexcept nogil
# Makes room for all that was measured: what is appended then does not fail. DataError where it is more than Arrow's offsets reach.
cdef int value_column_reserve(ValueColumn* column) except -1 nogil
cdef int value_column_append(ValueColumn* column, const uint8_t* data) except -1 nogil
# The column so far; it starts anew.
cdef NativeArray value_column_take(ValueColumn* column)

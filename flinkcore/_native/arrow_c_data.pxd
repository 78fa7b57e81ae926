# The structs of the Arrow C data interface, and whether what another library has put into them holds together.
from libc.stdint cimport int64_t, uint8_t


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


# The struct in a capsule of `exporter`, after all in it has been checked: SchemaError or DataError say which column is at fault.
cdef ArrowSchema* checked_schema(object capsule, object exporter) except NULL
cdef ArrowArray* checked_array(object capsule, const ArrowSchema* schema, object exporter) except NULL
# The same of structs that lie elsewhere.
cdef int check_schema(const ArrowSchema* schema, object exporter) except -1
cdef int check_array(const ArrowSchema* schema, const ArrowArray* array, object exporter) except -1
# The capsules of an object's `__arrow_c_array__`, checked.
cdef tuple checked_capsules(object exporter)
# For messages: the class of an object.
cdef str class_of(object exporter)
# Name of a field; empty where the producer gives none, which the format allows.
cdef str field_name(const ArrowSchema* field)
cdef int64_t count_nulls(const uint8_t* validity, int64_t offset, int64_t length) noexcept nogil

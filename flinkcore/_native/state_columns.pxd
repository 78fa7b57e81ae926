# Columns of values as Flink's serializers write them: each reads values from bytes into an Arrow array, or writes those of one.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport ArrowArray, ArrowSchema, Column, NativeArray
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef extern from *:
    """
    #include <string.h>
    static inline uint16_t flinkcore_be16(const uint8_t* p) { return (uint16_t) (p[0] << 8 | p[1]); }
    static inline uint32_t flinkcore_be32(const uint8_t* p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
    static inline uint64_t flinkcore_be64(const uint8_t* p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
    static inline void flinkcore_put32(uint8_t* p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
    static inline void flinkcore_put64(uint8_t* p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }
    """
    uint32_t be16 "flinkcore_be16"(const uint8_t* bytes) noexcept nogil
    uint32_t be32 "flinkcore_be32"(const uint8_t* bytes) noexcept nogil
    uint64_t be64 "flinkcore_be64"(const uint8_t* bytes) noexcept nogil
    void put32 "flinkcore_put32"(uint8_t* bytes, uint32_t value) noexcept nogil
    void put64 "flinkcore_put64"(uint8_t* bytes, uint64_t value) noexcept nogil


cdef struct Cursor:
    # Bytes that are being read. `values_left` bounds how many values they may become: a byte can stand for many nulls.
    const uint8_t* data
    int64_t at
    int64_t end
    int64_t values_left


# Raises an EntryError: the bytes are damaged.
cdef int damaged(Cursor* cursor, str message) except -1
# Raises an EntryError: the value is right, and has no place in the type of the column.
cdef int no_place(Cursor* cursor, str message) except -1
cdef int too_short(Cursor* cursor, int64_t size) except -1


cdef inline const uint8_t* take(Cursor* cursor, int64_t size) except NULL:
    # Returns the place of the next bytes, and moves past them.
    cdef const uint8_t* place = cursor.data + cursor.at
    if size > cursor.end - cursor.at:
        too_short(cursor, size)
    cursor.at += size
    return place


cdef inline int spend(Cursor* cursor) except -1:
    cursor.values_left -= 1
    if cursor.values_left < 0:
        no_place(cursor, "the entry has more values than max_values_per_entry allows")
    return 0


cdef struct Values:
    # An array whose values are written. `offset` is added to the number of a row.
    const uint8_t* validity
    const uint8_t* data
    const uint8_t* bytes
    int64_t offset


cdef inline bint there(const Values* source, int64_t row) noexcept nogil:
    # Whether the value in a row of the buffers is not null.
    return source.validity == NULL or source.validity[row >> 3] >> (row & 7) & 1


# Refers to an array of a format, whose rows are `offset` after those that will be given.
cdef int bind_values(Values* source, const ArrowSchema* schema, const ArrowArray* array, int64_t offset, str format) except -1

# Raises a ValueError: the serializer cannot write a value.
cdef int unwritable(str message) except -1
cdef int null_value() except -1
# Finds the elements of the list, or the entries of the map, in a row; refuses a null.
cdef int elements_at(const Values* source, int64_t row, int64_t* begin, int64_t* end) except -1

# Returns how many elements follow; none is shorter than a byte.
cdef int64_t read_count(Cursor* cursor) except -1


cdef class StateColumn:
    cdef BitBuffer validity
    cdef Buffer values
    cdef Values source
    # Refers to an array, whose rows are `offset` after those that are written; the caller keeps it.
    cdef int bind(self, const ArrowSchema* schema, const ArrowArray* array, int64_t offset) except -1
    cdef int bind_column(self, const Column* column) except -1
    cdef bint is_null(self, int64_t row) noexcept
    # Appends the bytes of the value in a row.
    cdef int write(self, int64_t row, Buffer* out) except -1
    # Appends the value at the cursor, or one that is null.
    cdef int read(self, Cursor* cursor) except -1
    cdef int append_null(self, Cursor* cursor) except -1
    # Returns the values as an array, and is empty afterwards.
    cdef NativeArray take_array(self)
    cdef int64_t size_bytes(self)


cdef class BytesColumn(StateColumn):
    cdef Buffer bytes
    cdef str format
    # Appends bytes, or a null, whose bytes lie behind those before it.
    cdef int append_bytes(self, Cursor* cursor, const uint8_t* place, int64_t size) except -1
    cdef int append_text(self, Cursor* cursor, bytes text) except -1
    cdef int end_value(self, Cursor* cursor, bint is_valid) except -1
    cdef const uint8_t* value_at(self, int64_t row, int64_t* size) except? NULL


cdef class ChoiceColumn(BytesColumn):
    cdef list _texts
    cdef int append_choice(self, Cursor* cursor, int64_t number) except -1
    cdef int64_t choice_at(self, int64_t row) except -1


cdef class MapColumn(StateColumn):
    cdef StateColumn key
    cdef StateColumn value
    cdef bint _exact
    cdef int64_t items
    # Appends a map of the entries that were appended to its columns.
    cdef int close(self, Cursor* cursor, int64_t entries) except -1
    cdef int end_map(self, Cursor* cursor, bint is_valid) except -1


cdef class ListColumn(StateColumn):
    cdef StateColumn child
    cdef int flags
    cdef int64_t items
    # Appends a list of the items that were appended to the child since the list before it.
    cdef int close(self, int64_t items) except -1


cdef class StructColumn(StateColumn):
    cdef list _names
    cdef list _children
    cdef int64_t _width


cdef class WrappingColumn(StateColumn):
    cdef StateColumn child

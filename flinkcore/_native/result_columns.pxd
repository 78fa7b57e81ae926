# Growing result columns of any type, written from words or bytes.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from flinkcore._native.arrow cimport ColumnType, NativeArray
from flinkcore._native.byte_values cimport ByteView
from flinkcore._native.memory cimport BitBuffer, Buffer


cdef struct ResultColumn:
    # Zero-initialise, then set type, width and name.
    ColumnType type
    int32_t width        # bytes per value of fixed-width types, else 0
    const char* name     # of the column that the values came from, for messages; NULL where there is none: not of strings
    int64_t length
    BitBuffer validity   # empty until the first null
    BitBuffer bits       # BOOL
    Buffer values        # fixed width; or int32 or int64 offsets (length + 1,)
    Buffer data          # strings


# Room for n more values with so many bytes of strings: what is appended into it does not fail.
cdef int result_reserve(ResultColumn* result, int64_t n, int64_t data_bytes) except -1 nogil
# States say which values are null; a column gets the values first, then their states (or none, where nothing is null).
cdef int result_append_states(ResultColumn* result, const uint8_t* states, int64_t n) except -1 nogil
cdef int result_append_words(ResultColumn* result, const uint64_t* words, int64_t n) except -1 nogil
cdef int result_append_bytes(ResultColumn* result, ByteView view) except -1 nogil
# The column so far; it starts anew.
cdef NativeArray result_take(ResultColumn* result, str format)
cdef void result_free(ResultColumn* result) noexcept nogil
cdef int64_t result_memory(const ResultColumn* result) noexcept nogil

# Composite keys as bytes, written and read column by column.
from libc.stdint cimport int64_t, uint8_t

from flinkcore._native.arrow cimport BitBuffer, Buffer, Column, ColumnType


cdef struct KeyField:
    # One column of a composite key, or a field of a struct column, in depth-first order.
    ColumnType type
    int64_t parent        # the struct's number, -1 for a column
    int64_t n_children
    int64_t width         # in the fixed part; 0 of structs and of the last varying field
    int64_t position      # in the fixed part
    bint varying
    bint nullable         # in this batch: itself or a struct around it has nulls
    const Column* column  # of this batch


# Values of a column of at most 8 bytes as int64; floats as canonical bits, as Java compares them, a date64 as its day.
cdef void widen_values(const Column* column, int64_t* out) noexcept nogil
# And back, to values of 4, 2 or 1 bytes.
cdef int narrow_values(const int64_t* values, int64_t width, int64_t n, Buffer* out) except -1 nogil
# Fills the offsets (n + 1,) of composite keys; -1, or the field that has a value too long for its length.
cdef int64_t measure_composite(
    const KeyField* fields, int64_t n_fields, int64_t fixed_size, int64_t n, int64_t* offsets
) noexcept nogil
# Writes n composite keys; the cursors (n,) are scratch.
cdef void write_composite(
    const KeyField* fields,
    int64_t n_fields,
    int64_t fixed_size,
    int64_t n,
    const int64_t* offsets,
    int64_t* cursors,
    uint8_t* data,
) noexcept nogil
# Bit i is set where the byte at offsets[i] (or i * stride) has a bit of the mask. `bits` is empty before.
cdef int pack_bits(
    const uint8_t* bytes, const int64_t* offsets, int64_t stride, uint8_t mask, int64_t n, BitBuffer* bits
) except -1 nogil
# A field's fixed values, from `source`, where that of the key at offset 0 would lie.
cdef int read_fixed(
    const uint8_t* source, const int64_t* offsets, int64_t width, int64_t n, Buffer* out
) except -1 nogil
# Offsets of a varying field as int64 from 0, and its bytes; the cursors (n,) move behind them.
cdef int read_varying(
    const KeyField* field,
    const uint8_t* data,
    const int64_t* offsets,
    int64_t n,
    int64_t* cursors,
    Buffer* starts,
    Buffer* bytes,
) except -1 nogil
# Makes room for new content: what is there is not kept.
cdef int buffer_resize(Buffer* buffer, int64_t size) except -1 nogil

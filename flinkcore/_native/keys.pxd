# Keys of a batch in one of two uniform forms, and back; the dictionary from key to dense id.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport ArrowSchema, Buffer, Column, ColumnType, NativeArray, RecordBatch


cdef enum KeyKind:
    KEY_INT64 = 0  # one column of at most 8 bytes: integer, bool, float, date, time, timestamp or duration
    KEY_BYTES = 1  # everything else: strings, binary, decimals, composites; equal keys have equal bytes


cdef struct KeyBatch:
    # Borrowed from the encoder, valid until its next encode.
    KeyKind kind
    int64_t length
    const int64_t* values    # KEY_INT64: (length,); floats as the bits that Java compares
    const uint8_t* data      # KEY_BYTES: row i has the bytes from offsets[i] to offsets[i + 1]
    const int64_t* offsets   # KEY_BYTES: (length + 1,), not necessarily from 0
    const uint64_t* hashes   # (length,), well mixed in all bits; not Java's hash
    const uint8_t* is_null   # (length,) 1 where a single-column key is null, or NULL where none is; a null row's
                             # value and hash mean nothing


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


cdef class KeyEncoder:
    cdef KeyBatch batch
    cdef KeyField* fields
    cdef int64_t n_fields
    cdef int64_t n_columns
    cdef bint composite
    cdef int64_t fixed_size
    cdef list _names         # of the columns
    cdef list _field_names
    cdef list _formats       # of the fields
    cdef RecordBatch _source
    cdef Buffer _values
    cdef Buffer _data
    cdef Buffer _offsets
    cdef Buffer _cursors
    cdef Buffer _hashes
    cdef Buffer _nulls
    # Encodes the key columns of all rows; owns all that self.batch points to.
    cdef int encode(self, RecordBatch batch) except -1
    # Columns in their original Arrow types from `length` keys in the same form: int64 values in `values`, or bytes in
    # `values` with int64 `offsets` (length + 1, from 0). Takes both buffers (they are left empty). List of NativeArray.
    cdef list decode(self, Buffer* values, Buffer* offsets, int64_t length)

    cdef int64_t _add_field(self, ArrowSchema* schema, str name, int64_t parent) except -1
    cdef int _lay_out(self) except -1
    cdef int64_t _bind(self, const Column* column, int64_t field, str name) except -1
    cdef int _encode_int64(self, const Column* column) except -1
    cdef int _encode_single(self, const Column* column) except -1
    cdef int _encode_composite(self, int64_t n) except -1
    cdef NativeArray _decode_single(self, Buffer* values, Buffer* offsets, int64_t length)
    cdef NativeArray _decode_field(
        self, int64_t field, const uint8_t* data, const int64_t* offsets, int64_t length, int64_t* cursors
    )


cdef struct KeyTableSlot:
    # `code` is the key itself (KEY_INT64) or its hash (KEY_BYTES).
    uint64_t code
    uint32_t number  # the key's id plus one; 0: empty slot


cdef struct KeyTable:
    # Keys by id, and an open-addressing index over them. Zero-initialise, set bytes_keys; free with key_table_free.
    bint bytes_keys
    uint32_t n_keys
    Buffer values        # KEY_INT64: int64 (n_keys,)
    Buffer data          # KEY_BYTES
    Buffer offsets       # KEY_BYTES: int64 (n_keys + 1,), or empty
    Buffer hashes        # KEY_BYTES: uint64 (n_keys,)
    KeyTableSlot* slots
    uint64_t mask


cdef enum:
    KEY_NOT_FOUND = 0xFFFFFFFF


# Id of the row's key, which is added where it is new. Null keys are the caller's to refuse.
cdef int64_t key_table_add(KeyTable* table, const KeyBatch* keys, int64_t row) except -1 nogil
# The same for all rows (ids: (length,)).
cdef int key_table_add_all(KeyTable* table, const KeyBatch* keys, uint32_t* ids) except -1 nogil
# Id of the row's key, or KEY_NOT_FOUND.
cdef uint32_t key_table_find(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil
cdef void key_table_find_all(const KeyTable* table, const KeyBatch* keys, uint32_t* ids) noexcept nogil
cdef void key_table_free(KeyTable* table) noexcept nogil


cdef class KeyDictionary:
    cdef KeyTable table
    cdef KeyEncoder encoder
    cdef Buffer groups         # int32: key groups of the first keys, see assign_key_groups
    cdef readonly int32_t max_parallelism
    # Makes `groups` cover all keys, at the cost of the new ones.
    cdef int assign_key_groups(self) except -1
    cdef int _encode(self, object batch) except -1
    cdef list _columns(self, int64_t start, int64_t stop)

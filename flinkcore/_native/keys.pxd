# Keys in a form that kernels hash and compare: equal where Java finds them equal.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from flinkcore._native.arrow cimport ArrowSchema, Column, ColumnType, NativeArray, RecordBatch
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.memory cimport Buffer


cdef extern from *:
    ctypedef unsigned long long uint128_t "unsigned __int128"


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
    const uint8_t* is_null   # (length,) 1 if a single-column key is null that must not be, or NULL if none is; a
                             # null row's value and hash mean nothing


cdef inline uint32_t float_key_bits(uint32_t bits) noexcept nogil:
    # Returns the bits of a float, the same for every NaN, as Float.floatToIntBits.
    return <uint32_t> 0x7FC00000 if (bits & <uint32_t> 0x7FFFFFFF) > <uint32_t> 0x7F800000 else bits


cdef inline uint64_t double_key_bits(uint64_t bits) noexcept nogil:
    # Returns the bits of a double, as Double.doubleToLongBits.
    if (bits & <uint64_t> 0x7FFFFFFFFFFFFFFF) > <uint64_t> 0x7FF0000000000000:
        return <uint64_t> 0x7FF8000000000000
    return bits


cdef inline uint64_t mix_int64(uint64_t bits) noexcept nogil:
    # A bijection: distinct keys have distinct hashes.
    bits = (bits ^ (bits >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
    bits = (bits ^ (bits >> 32)) * <uint64_t> 0xD6E8FEB86659FD93
    return bits ^ (bits >> 32)


cdef inline uint64_t fold_product(uint64_t a, uint64_t b) noexcept nogil:
    cdef uint128_t product = <uint128_t> a * b
    return <uint64_t> product ^ <uint64_t> (product >> 64)


cdef inline uint64_t hash_bytes(const uint8_t* at, int64_t length) noexcept nogil:
    # 16 bytes a step; the last step's words may overlap what was taken before.
    cdef uint64_t hash = <uint64_t> length ^ <uint64_t> 0x6A09E667F3BCC909
    cdef uint64_t low = 0, high = 0
    cdef uint32_t half_low, half_high
    cdef int64_t left = length
    while left > 16:
        memcpy(&low, at, 8)
        memcpy(&high, at + 8, 8)
        hash = fold_product(low ^ <uint64_t> 0xBB67AE8584CAA73B, high ^ hash)
        at += 16
        left -= 16
    if left >= 8:
        memcpy(&low, at, 8)
        memcpy(&high, at + left - 8, 8)
    elif left >= 4:
        memcpy(&half_low, at, 4)
        memcpy(&half_high, at + left - 4, 4)
        low = half_low
        high = half_high
    elif left > 0:
        low = <uint64_t> at[0] << 16 | <uint64_t> at[left >> 1] << 8 | at[left - 1]
        high = 0
    hash = fold_product(low ^ <uint64_t> 0x3C6EF372FE94F82B, high ^ hash)
    return fold_product(hash ^ <uint64_t> 0xA54FF53A5F1D36F1, <uint64_t> length ^ <uint64_t> 0x510E527FADE682D1)


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
    cdef CallGuard guard
    cdef KeyBatch batch
    cdef KeyField* fields
    cdef int64_t n_fields
    cdef int64_t n_columns
    cdef bint composite
    cdef bint _null_keys
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
    cdef int _check_day(self, int64_t field, int64_t n) except -1
    cdef int _encode_int64(self, const Column* column) except -1
    cdef int _encode_single(self, const Column* column) except -1
    cdef int _encode_composite(self, int64_t n) except -1
    cdef NativeArray _decode_single(self, Buffer* values, Buffer* offsets, int64_t length)
    cdef NativeArray _decode_field(
        self, int64_t field, const uint8_t* data, const int64_t* offsets, int64_t length, int64_t* cursors
    )


# Returns true if keys of one encoder can be compared with those of the other, and decoded by it: their fields have the same
# types.
cdef bint keys_are_alike(KeyEncoder a, KeyEncoder b)


# The canonical form of a key that is a Python object.
cpdef object canonical_key(object key)

# Representatives of keys in a dictionary, so that keys of equal canonical form are one; and the original keys.
cpdef object dictionary_key(object key)
cdef object dictionary_key_as(object key, object converted)
cpdef list given_keys(object keys)
cpdef list given_items(dict entries)

# Keys of a batch in one of two uniform forms, and back; the dictionary from key to dense id.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport Buffer, RecordBatch


cdef enum KeyKind:
    KEY_INT64 = 0  # one column of an integer, bool, date, time, timestamp or duration type
    KEY_BYTES = 1  # everything else: strings, floats, decimals, composites; equal keys have equal bytes


cdef struct KeyBatch:
    # Borrowed from the encoder, valid until its next encode.
    KeyKind kind
    int64_t length
    const int64_t* values    # KEY_INT64: (length,)
    const uint8_t* data      # KEY_BYTES: the keys' bytes, end to end
    const int64_t* offsets   # KEY_BYTES: (length + 1,)
    const uint64_t* hashes   # (length,), well mixed in all bits; not Java's hash
    const uint8_t* is_null   # (length,) 1 where a single-column key is null, or NULL where none is


cdef class KeyEncoder:
    cdef KeyBatch batch
    # Encodes the key columns of all rows; owns all that self.batch points to.
    cdef int encode(self, RecordBatch batch) except -1
    # Columns in their original Arrow types from `length` keys in the same form: int64 values in `values`, or bytes in
    # `values` with int64 `offsets` (length + 1). Takes both buffers (they are left empty). List of NativeArray.
    cdef list decode(self, Buffer* values, Buffer* offsets, int64_t length)

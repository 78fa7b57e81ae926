# The dictionary from key to dense id: an index over encoded keys, for whole batches and for kernels row by row.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from flinkcore._native.arrow cimport NativeArray, RecordBatch
from flinkcore._native.call_guard cimport CallGuard
from flinkcore._native.keys cimport KeyBatch, KeyEncoder
from flinkcore._native.memory cimport Buffer


cdef struct KeyTable:
    # Keys by id, and an open-addressing index over them. Zero-initialise, set bytes_keys; free with key_table_free.
    bint bytes_keys
    uint32_t n_keys
    Buffer values        # KEY_INT64: int64 (n_keys,)
    Buffer data          # KEY_BYTES
    Buffer offsets       # KEY_BYTES: int64 (n_keys + 1,), or empty
    Buffer hashes        # KEY_BYTES: uint64 (n_keys,)
    # Small, since a slot is read from memory that the processor's caches do not hold. A taken slot has the key's id plus one in its lower
    # half; KEY_BYTES: in its upper half that of the key's hash; KEY_INT64: in a second word the key itself.
    uint64_t* slots
    uint64_t mask        # number of slots minus one


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


cdef inline int64_t key_table_memory(const KeyTable* table) noexcept nogil:
    # Returns the bytes held.
    cdef int64_t size = table.values.capacity + table.data.capacity + table.offsets.capacity + table.hashes.capacity
    return size + (<int64_t> (table.mask + 1) * (8 if table.bytes_keys else 16) if table.slots != NULL else 0)


cdef class KeyDictionary:
    cdef CallGuard guard
    cdef KeyTable table
    cdef KeyEncoder encoder
    cdef Buffer groups  # int32: key groups of the first keys, see key_groups
    cdef readonly int32_t max_parallelism
    # Like the Python methods `ids` and `find`, into memory of the caller (num_rows,): ids of a batch's keys, to which new ones
    # are added (a DataError if a key is null), or KEY_NOT_FOUND. The loops run without the GIL.
    cdef int add_all(self, RecordBatch batch, uint32_t* ids) except -1
    cdef int find_all(self, RecordBatch batch, uint32_t* ids) except -1
    # The key groups of all keys by id (n_keys,), found for those that are new; valid until the next call.
    cdef const int32_t* key_groups(self) except? NULL
    cdef NativeArray _batch(self, int64_t start, int64_t stop)
    cdef list _columns(self, int64_t start, int64_t stop)

"""The dictionary from key to dense id: open addressing with linear probing over encoded keys."""

import numpy as np

import cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from flinkcore.errors import ConfigurationError

from flinkcore._native.arrow cimport NativeArray, RecordBatch, native_array, record_batch_of
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.key_groups cimport checked_max_parallelism, key_groups_of, refuse_null_key
from flinkcore._native.keys cimport KEY_BYTES, KeyBatch, KeyEncoder, hash_bytes, mix_int64
from flinkcore._native.memory cimport Buffer, buffer_append_int64, buffer_free, buffer_reserve, buffer_resize, grow_zeros, prefetch


cdef enum:
    LOOK_AHEAD = 8
    GROUPED_AT_ONCE = 65536


cdef inline uint64_t* _slot_at(const KeyTable* table, uint64_t at) noexcept nogil:
    return &table.slots[at if table.bytes_keys else 2 * at]


cdef inline uint32_t _number(uint64_t slot) noexcept nogil:
    # Returns the id plus one that a slot has; 0: it is empty.
    return <uint32_t> slot


cdef inline void _fill(const KeyTable* table, uint64_t* slot, uint32_t id, uint64_t hash) noexcept nogil:
    slot[0] = <uint64_t> id + 1
    if table.bytes_keys:
        slot[0] |= hash >> 32 << 32
    else:
        slot[1] = (<const uint64_t*> table.values.data)[id]


cdef inline uint64_t _hash_of(const KeyTable* table, uint32_t id) noexcept nogil:
    if table.bytes_keys:
        return (<const uint64_t*> table.hashes.data)[id]
    return mix_int64((<const uint64_t*> table.values.data)[id])


cdef int _resize_index(KeyTable* table, uint64_t n_slots) except -1 nogil:
    cdef uint64_t* old = table.slots
    cdef uint64_t at, hash
    cdef uint32_t id
    table.slots = <uint64_t*> grow_zeros(n_slots * (8 if table.bytes_keys else 16), b"the index of a key dictionary")
    table.mask = n_slots - 1
    free(old)
    for id in range(table.n_keys):
        hash = _hash_of(table, id)
        at = hash & table.mask
        while _slot_at(table, at)[0]:
            at = (at + 1) & table.mask
        _fill(table, _slot_at(table, at), id, hash)
    return 0


cdef inline bint _has_bytes(const KeyTable* table, uint32_t id, const KeyBatch* keys, int64_t row) noexcept nogil:
    cdef const int64_t* offsets = <const int64_t*> table.offsets.data
    cdef int64_t length = keys.offsets[row + 1] - keys.offsets[row]
    return offsets[id + 1] - offsets[id] == length and (
        length == 0 or memcmp(table.data.data + offsets[id], keys.data + keys.offsets[row], length) == 0
    )


cdef inline uint64_t* _slot(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Slot of the row's key, or the empty one where it would go. There always is an empty one.
    cdef uint64_t hash = keys.hashes[row], value
    cdef uint64_t at = hash & table.mask
    if table.bytes_keys:
        while table.slots[at]:
            if table.slots[at] >> 32 == hash >> 32 and _has_bytes(table, _number(table.slots[at]) - 1, keys, row):
                break
            at = (at + 1) & table.mask
        return &table.slots[at]
    value = <uint64_t> keys.values[row]
    while table.slots[2 * at] and table.slots[2 * at + 1] != value:
        at = (at + 1) & table.mask
    return &table.slots[2 * at]


cdef int64_t _append_key(KeyTable* table, const KeyBatch* keys, int64_t row, uint64_t* slot) except -1 nogil:
    cdef uint32_t id = table.n_keys
    cdef int64_t length
    if id == KEY_NOT_FOUND:
        with gil:
            raise MemoryError("a key dictionary holds at most 4,294,967,295 keys; use more partitions")
    if (<uint64_t> id + 1) * 3 > (table.mask + 1) * 2:
        _resize_index(table, (table.mask + 1) * 2)
        slot = _slot(table, keys, row)
    if table.bytes_keys:
        length = keys.offsets[row + 1] - keys.offsets[row]
        buffer_reserve(&table.data, length)
        buffer_reserve(&table.hashes, 8)
        buffer_reserve(&table.offsets, 16)
        if length:
            memcpy(table.data.data + table.data.size, keys.data + keys.offsets[row], length)
        table.data.size += length
        if id == 0:
            buffer_append_int64(&table.offsets, 0)
        buffer_append_int64(&table.offsets, table.data.size)
        buffer_append_int64(&table.hashes, <int64_t> keys.hashes[row])
    else:
        buffer_append_int64(&table.values, keys.values[row])
    _fill(table, slot, id, keys.hashes[row])
    table.n_keys = id + 1
    return id


cdef int64_t key_table_add(KeyTable* table, const KeyBatch* keys, int64_t row) except -1 nogil:
    cdef uint64_t* slot
    if table.slots == NULL:
        _resize_index(table, 64)
    slot = _slot(table, keys, row)
    if slot[0]:
        return _number(slot[0]) - 1
    return _append_key(table, keys, row, slot)


cdef inline void _look_ahead(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    # Three dependent reads, each asked for some rows before it is needed: slot, offset, bytes.
    cdef const int64_t* offsets = <const int64_t*> table.offsets.data
    cdef uint32_t number
    if row + 3 * LOOK_AHEAD < keys.length:
        prefetch(_slot_at(table, keys.hashes[row + 3 * LOOK_AHEAD] & table.mask))
        if table.bytes_keys:
            number = _number(table.slots[keys.hashes[row + 2 * LOOK_AHEAD] & table.mask])
            if number:
                prefetch(&offsets[number - 1])
            number = _number(table.slots[keys.hashes[row + LOOK_AHEAD] & table.mask])
            if number:
                prefetch(table.data.data + offsets[number - 1])


cdef int key_table_add_all(KeyTable* table, const KeyBatch* keys, uint32_t* ids) except -1 nogil:
    cdef int64_t row
    if table.slots == NULL:
        _resize_index(table, 64)
    for row in range(keys.length):
        _look_ahead(table, keys, row)
        ids[row] = <uint32_t> key_table_add(table, keys, row)
    return 0


cdef uint32_t key_table_find(const KeyTable* table, const KeyBatch* keys, int64_t row) noexcept nogil:
    if table.slots == NULL:
        return KEY_NOT_FOUND
    return _number(_slot(table, keys, row)[0]) - 1  # of an empty slot: KEY_NOT_FOUND


cdef void key_table_find_all(const KeyTable* table, const KeyBatch* keys, uint32_t* ids) noexcept nogil:
    cdef int64_t row
    for row in range(keys.length):
        if table.slots != NULL:
            _look_ahead(table, keys, row)
        ids[row] = key_table_find(table, keys, row)
        if keys.is_null != NULL and keys.is_null[row]:
            ids[row] = KEY_NOT_FOUND


cdef void key_table_free(KeyTable* table) noexcept nogil:
    buffer_free(&table.values)
    buffer_free(&table.data)
    buffer_free(&table.offsets)
    buffer_free(&table.hashes)
    free(table.slots)
    table.slots = NULL
    table.n_keys = 0


@cython.final
cdef class KeyDictionary:
    """Dense ids of keys, from 0 by first appearance.

    Look-ups and insertions take amortised constant time per key; a batch prefetches the index ahead of its rows.

    Parameters
    ----------
    schema, names
        As for `KeyEncoder`.
    max_parallelism : int
        Number of key groups.
    null_keys : bool
        Whether null is a key like others in a single column.

    Raises
    ------
    SchemaError, ConfigurationError
        As `KeyEncoder` does, and if the maximum parallelism is not positive.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"user": ["b", "a", "b"]})
    >>> users = KeyDictionary(batch.schema, ["user"])
    >>> users.ids(batch)
    array([0, 1, 0], dtype=uint32)
    >>> pa.record_batch(users.keys())["user"].to_pylist()
    ['b', 'a']
    """

    def __cinit__(self, object schema, list names, object max_parallelism=128, bint null_keys=False):
        self.max_parallelism = checked_max_parallelism(max_parallelism)
        self.encoder = KeyEncoder(schema, names, null_keys)
        self.table.bytes_keys = self.encoder.batch.kind == KEY_BYTES

    def __dealloc__(self):
        key_table_free(&self.table)
        buffer_free(&self.groups)

    def __len__(self):
        return self.table.n_keys

    def memory_bytes(self):
        """Bytes that the keys and their index take."""
        cdef Call call = begin_call(&self.guard, self)
        return key_table_memory(&self.table) + self.groups.capacity

    cdef int add_all(self, RecordBatch batch, uint32_t* ids) except -1:
        cdef const KeyBatch* keys = &self.encoder.batch
        cdef int64_t row = 0
        self.encoder.encode(batch)
        if keys.is_null != NULL:
            while not keys.is_null[row]:
                row += 1
            refuse_null_key(row)
        with nogil:
            key_table_add_all(&self.table, keys, ids)
        return 0

    cdef int find_all(self, RecordBatch batch, uint32_t* ids) except -1:
        self.encoder.encode(batch)
        with nogil:
            key_table_find_all(&self.table, &self.encoder.batch, ids)
        return 0

    def ids(self, batch):
        """Ids of a batch's keys; new keys are added.

        Parameters
        ----------
        batch
            Native RecordBatch, or any object with `__arrow_c_array__`, of n rows with the key columns.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)

        Raises
        ------
        DataError
            If a single-column key is null, unless `null_keys`; nothing is added then. Fields of a composite key may be
            null.
        SchemaError
            If a key column is missing or its type is not that of the schema.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch rows = record_batch_of(batch)
        cdef uint32_t[::1] out = np.empty(rows.num_rows, dtype=np.uint32)
        self.add_all(rows, &out[0] if rows.num_rows else NULL)
        return out.base

    def find(self, batch):
        """Ids of a batch's keys; nothing is added.

        Parameters
        ----------
        batch
            As for `ids`.

        Returns
        -------
        numpy.ndarray of uint32, shape (n,)
            0xFFFFFFFF where the key is unknown, or is null and must not be.

        Raises
        ------
        SchemaError
            If a key column is missing or its type is not that of the schema.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef RecordBatch rows = record_batch_of(batch)
        cdef uint32_t[::1] out = np.empty(rows.num_rows, dtype=np.uint32)
        self.find_all(rows, &out[0] if rows.num_rows else NULL)
        return out.base

    cdef list _columns(self, int64_t start, int64_t stop):
        cdef Buffer values, offsets
        cdef const int64_t* from_offsets = <const int64_t*> self.table.offsets.data
        cdef int64_t id, length = stop - start
        memset(&values, 0, sizeof(Buffer))
        memset(&offsets, 0, sizeof(Buffer))
        try:
            if length and self.table.bytes_keys:
                buffer_resize(&values, from_offsets[stop] - from_offsets[start])
                if values.size:
                    memcpy(values.data, self.table.data.data + from_offsets[start], values.size)
                buffer_resize(&offsets, (length + 1) * 8)
                for id in range(length + 1):
                    (<int64_t*> offsets.data)[id] = from_offsets[start + id] - from_offsets[start]
            elif length:
                buffer_resize(&values, length * 8)
                memcpy(values.data, self.table.values.data + start * 8, length * 8)
            return self.encoder.decode(&values, &offsets, length)
        finally:
            buffer_free(&values)
            buffer_free(&offsets)

    cdef NativeArray _batch(self, int64_t start, int64_t stop):
        return native_array("+s", stop - start, NULL, NULL, NULL, self._columns(start, stop), self.encoder._names)

    def keys(self, start=0, stop=None):
        """Keys of the ids from `start` to `stop`, exclusive, as columns of the original names and types.

        Parameters
        ----------
        start : int
        stop : int, optional
            By default all ids so far.

        Returns
        -------
        NativeArray
            A record batch: `pyarrow.record_batch(dictionary.keys())`.

        Raises
        ------
        ConfigurationError
            If the range is not within the ids.
        DataError
            If the keys are too long for the column's type; take fewer at once.
        """
        cdef Call call = begin_call(&self.guard, self)
        if stop is None:
            stop = self.table.n_keys
        if not 0 <= start <= stop <= self.table.n_keys:
            raise ConfigurationError(f"ids {start:,} to {stop:,} are not within the dictionary's {len(self):,} keys")
        return self._batch(start, stop)

    cdef const int32_t* key_groups(self) except? NULL:
        cdef int64_t done = self.groups.size // 4, stop
        cdef int64_t[::1] indexes
        cdef RecordBatch added
        if done < self.table.n_keys:
            indexes = np.arange(len(self.encoder._names), dtype=np.int64)
            buffer_reserve(&self.groups, (self.table.n_keys - done) * 4)
            if len(indexes) == 0:  # without columns there is one key, in the first group
                memset(self.groups.data, 0, 4)
                self.groups.size = 4
                done = 1
            while done < self.table.n_keys:
                stop = min(done + GROUPED_AT_ONCE, <int64_t> self.table.n_keys)
                added = RecordBatch(self._batch(done, stop))
                key_groups_of(
                    added, &indexes[0], added.num_columns, self.max_parallelism, <int32_t*> self.groups.data + done
                )
                self.groups.size = stop * 4
                done = stop
        return <const int32_t*> self.groups.data

    def key_group(self, const uint32_t[::1] ids not None):
        """Key groups of keys, by id.

        Parameters
        ----------
        ids : numpy.ndarray of uint32, shape (n,)

        Returns
        -------
        numpy.ndarray of int32, shape (n,)

        Raises
        ------
        ConfigurationError
            If an id is not one of the dictionary's.
        """
        cdef Call call = begin_call(&self.guard, self)
        cdef int64_t n = ids.shape[0], i
        cdef int32_t[::1] out
        result = np.empty(n, dtype=np.int32)
        cdef const int32_t* groups = self.key_groups()
        out = result
        for i in range(n):
            if ids[i] >= self.table.n_keys:
                raise ConfigurationError(f"id {ids[i]:,} is not one of the dictionary's {len(self):,} keys")
            out[i] = groups[ids[i]]
        return result

    def _check(self):
        """Assert every invariant of the index and of the keys' storage."""
        cdef Call call = begin_call(&self.guard, self)
        cdef KeyTable* table = &self.table
        cdef const int64_t* offsets = <const int64_t*> table.offsets.data
        cdef uint64_t at, hash
        cdef int64_t occupied = 0, k
        if table.slots == NULL:
            assert table.n_keys == 0
            return
        assert table.mask & (table.mask + 1) == 0, "the number of slots is no power of two"
        for at in range(table.mask + 1):
            occupied += _slot_at(table, at)[0] != 0
        assert occupied == table.n_keys, f"{occupied} slots for {table.n_keys} keys"
        assert <uint64_t> occupied * 3 <= (table.mask + 1) * 2, "the index is too full"
        for k in range(table.n_keys):
            if table.bytes_keys:
                assert offsets[0] == 0 and offsets[k] <= offsets[k + 1], f"offsets of key {k}"
                hash = hash_bytes(table.data.data + offsets[k], offsets[k + 1] - offsets[k])
                assert (<uint64_t*> table.hashes.data)[k] == hash, f"hash of key {k}"
            else:
                hash = _hash_of(table, <uint32_t> k)
            at = hash & table.mask
            while _number(_slot_at(table, at)[0]) != <uint32_t> (k + 1):
                assert _slot_at(table, at)[0], f"key {k} is not found from its slot"
                at = (at + 1) & table.mask
            if table.bytes_keys:
                assert table.slots[at] >> 32 == hash >> 32, f"hash in the slot of key {k}"
            else:
                assert table.slots[2 * at + 1] == <uint64_t> (<int64_t*> table.values.data)[k], f"value in the slot of key {k}"
        if table.bytes_keys:
            assert table.offsets.size == (8 * (<int64_t> table.n_keys + 1) if table.n_keys else 0)
            assert table.n_keys == 0 or offsets[table.n_keys] == table.data.size
        else:
            assert table.values.size == 8 * <int64_t> table.n_keys

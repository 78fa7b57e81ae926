"""Entries of keyed state in savepoints: read into tables of Arrow columns, and written from them."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from flinkcore._native.arrow cimport NativeArray, RecordBatch, native_array
from flinkcore._native.memory cimport Buffer, buffer_append, buffer_free
from flinkcore._native.state_columns cimport (
    Cursor,
    ListColumn,
    StateColumn,
    be16,
    be32,
    be64,
    damaged,
    elements_at,
    put32,
    put64,
    read_count,
    take,
    unwritable,
)

from flinkcore._native.state_columns import EntryError, FixedColumn


cdef enum Kind:
    VALUE = 0
    LIST = 1
    MAP = 2
    TIMERS = 3


cdef uint8_t LIST_DELIMITER = 44  # a comma
cdef uint64_t SIGN = <uint64_t> 1 << 63


@cython.final
cdef class EntryTable:
    """Entries of one keyed state, or its timers, as columns.

    Parameters
    ----------
    kind : int
        0 for a value, 1 for a list, 2 for a map, of which each entry is a row, 3 for timers.
    key : StateColumn
    namespace : StateColumn or None
        None if all entries have the same one, of a byte.
    map_key : StateColumn or None
        Key of the map's entries.
    value : StateColumn or None
        The value, or the lists of a list state; None for timers.
    last_access : StateColumn or None
        Times of last access, if the state has a time to live; lists of them for a list state.
    group_bytes : int
        Bytes of the key group before a key.
    has_lengths : bool
        Whether lengths follow the key and the namespace.
    rest_is_namespace : int
        Bytes of the namespace if the key takes all before it, because its serializer is not known; else -1.
    max_values_per_entry : int
    spare_key, spare_namespace : StateColumn or None
        Further columns of the key and the namespace, for maps of the heap backend, which have them once for all entries.
    """

    cdef StateColumn _spare_key
    cdef StateColumn _spare_namespace
    cdef Kind _kind
    cdef StateColumn _key
    cdef StateColumn _namespace
    cdef StateColumn _map_key
    cdef StateColumn _value
    cdef StateColumn _last_access
    cdef int _group_bytes
    cdef bint _has_lengths
    cdef int64_t _namespace_bytes
    cdef int64_t _max_values
    cdef StateColumn _timestamp
    cdef RecordBatch _bound
    cdef Buffer _groups
    cdef Buffer _times
    cdef readonly int64_t n_rows

    def __init__(
        self,
        int kind,
        StateColumn key not None,
        StateColumn namespace,
        StateColumn map_key,
        StateColumn value,
        StateColumn last_access,
        int group_bytes,
        bint has_lengths,
        int64_t rest_is_namespace,
        int64_t max_values_per_entry,
        StateColumn spare_key=None,
        StateColumn spare_namespace=None,
    ):
        self._spare_key = spare_key
        self._spare_namespace = spare_namespace
        self._kind = <Kind> kind
        self._key = key
        self._namespace = namespace
        self._map_key = map_key
        self._value = value
        self._last_access = last_access
        self._group_bytes = group_bytes
        self._has_lengths = has_lengths
        self._namespace_bytes = rest_is_namespace
        self._max_values = max_values_per_entry
        self._timestamp = FixedColumn("l", 8) if kind == Kind.TIMERS else None

    def __dealloc__(self):
        buffer_free(&self._groups)
        buffer_free(&self._times)

    @property
    def size_bytes(self):
        """Bytes of the columns, about."""
        cdef int64_t size = self._groups.size + self._times.size
        for column in (self._key, self._namespace, self._map_key, self._value, self._last_access):
            if column is not None:
                size += (<StateColumn> column).size_bytes()
        return size

    cdef int add_row(self, int64_t group) except -1:
        (<int32_t*> buffer_append(&self._groups, 4))[0] = <int32_t> group
        self.n_rows += 1
        return 0

    cdef int read_part(self, Cursor* key, StateColumn column) except -1:
        # Reads the key or the namespace, and the length that follows it where both are of any length.
        cdef int64_t begin = key.at, size, length = 0
        cdef int shift = 0
        if column is None:
            take(key, 1)
        else:
            column.read(key)
        if self._has_lengths:
            size = key.at - begin
            while True:
                length |= <int64_t> take(key, 1)[0] << shift
                shift += 8
                if size < <int64_t> 1 << shift:
                    break
            if length != size:
                damaged(key, f"a part of the key has {size:,} bytes, and {length:,} are noted after it")
        return 0

    cdef int append(self, Cursor* key, Cursor* value, int64_t group) except -1:
        # Appends an entry of the canonical format.
        cdef int64_t written = key.data[key.at] & 0x7F, end = key.end
        key.values_left = value.values_left = self._max_values
        if key.end - key.at < self._group_bytes:
            damaged(key, f"{key.end - key.at} bytes are too few for a key and its key group")
        if self._group_bytes == 2:
            written = written << 8 | key.data[key.at + 1]
        if written != group:
            damaged(key, f"an entry of key group {written} is in key group {group}")
        key.at += self._group_bytes
        if self._kind == Kind.TIMERS:
            (<uint64_t*> buffer_append(&self._times, 8))[0] = be64(take(key, 8)) ^ SIGN
        if self._namespace_bytes >= 0:
            key.end -= self._namespace_bytes
            self._key.read(key)
            key.end = end
            self.read_part(key, self._namespace)
        else:
            self.read_part(key, self._key)
            self.read_part(key, self._namespace)
        if self._kind == Kind.MAP:
            self._map_key.read(key)
            if take(value, 1)[0]:
                # Backends differ in what follows the flag of a null.
                value.at = value.end
                self.append_null(value)
            else:
                self.read_value(value)
        elif self._kind == Kind.LIST:
            self.read_list(value)
        elif self._kind == Kind.VALUE:
            self.read_value(value)
        if key.at != key.end:
            damaged(key, f"{key.end - key.at:,} bytes of a key are left over")
        if value.at != value.end:
            damaged(value, f"{value.end - value.at:,} bytes of a value are left over")
        return self.add_row(group)

    cdef int read_value(self, Cursor* value) except -1:
        if self._last_access is not None:
            self._last_access.read(value)
        return self._value.read(value)

    cdef int append_null(self, Cursor* value) except -1:
        if self._last_access is not None:
            self._last_access.append_null(value)
        return self._value.append_null(value)

    cdef int read_list(self, Cursor* value) except -1:
        # Elements with delimiters between them.
        cdef ListColumn elements, times
        cdef int64_t count = 0
        if type(self._value) is not ListColumn:
            return self._value.read(value)  # all bytes, as the elements are not known
        elements = <ListColumn> self._value
        times = <ListColumn> self._last_access
        while True:
            if times is not None:
                times.child.read(value)
            elements.child.read(value)
            count += 1
            if value.at == value.end:
                break
            if take(value, 1)[0] != LIST_DELIMITER:
                value.at -= 1
                damaged(value, "elements of a list are not divided by a comma")
        if times is not None:
            times.close(count)
        return elements.close(count)

    cdef int read_map(self, Cursor* cursor, int64_t group) except -1:
        # Reads a map of a heap table: namespace, key, and entries, each of which is a row.
        cdef Cursor again = cursor[0]
        cdef int64_t namespace_at = cursor.at, count, i
        self.read_heap_key(cursor, self._spare_key, self._spare_namespace)
        count = read_count(cursor)
        for i in range(count):
            again.at, again.values_left = namespace_at, self._max_values
            self.read_heap_key(&again, self._key, self._namespace)
            cursor.values_left = self._max_values
            self._map_key.read(cursor)
            if take(cursor, 1)[0]:
                self.append_null(cursor)
            else:
                self.read_value(cursor)
            self.add_row(group)
        return 0

    cdef inline int read_heap_key(self, Cursor* cursor, StateColumn key, StateColumn namespace) except -1:
        if namespace is None:
            take(cursor, 1)
        else:
            namespace.read(cursor)
        return key.read(cursor)

    def read_heap_table(self, const uint8_t[::1] data, int64_t at, int64_t group):
        """Append the table of a key group in a checkpoint of the heap backend.

        Parameters
        ----------
        data : bytes
        at : int
            Position of the table.
        group : int
            The key group.

        Returns
        -------
        int
            Position after the table.

        Raises
        ------
        EntryError
            If it is damaged, or a value has no place in its column.
        """
        cdef Cursor cursor
        cdef int64_t count, i, j, items
        cdef ListColumn elements, times
        cursor.data = &data[0] if data.shape[0] else NULL
        cursor.at, cursor.end, cursor.values_left = at, data.shape[0], self._max_values
        count = read_count(&cursor)
        for i in range(count):
            cursor.values_left = self._max_values
            if self._kind == Kind.MAP:
                self.read_map(&cursor, group)
                continue
            if self._kind == Kind.TIMERS:
                (<uint64_t*> buffer_append(&self._times, 8))[0] = be64(take(&cursor, 8)) ^ SIGN
                self._key.read(&cursor)
                if self._namespace is None:
                    take(&cursor, 1)
                else:
                    self._namespace.read(&cursor)
                self.add_row(group)
                continue
            self.read_heap_key(&cursor, self._key, self._namespace)
            if self._kind == Kind.LIST:
                elements = <ListColumn?> self._value
                times = <ListColumn> self._last_access
                items = read_count(&cursor)
                for j in range(items):
                    if times is not None:
                        times.child.read(&cursor)
                    elements.child.read(&cursor)
                if times is not None:
                    times.close(items)
                elements.close(items)
            else:
                self.read_value(&cursor)
            self.add_row(group)
        if self._spare_key is not None:
            self._spare_key.take_array()
        if self._spare_namespace is not None:
            self._spare_namespace.take_array()
        return cursor.at

    def bind(self, RecordBatch batch not None):
        """Refer to rows to write, in the columns that `take` returns.

        Raises
        ------
        SchemaError
            If a column is missing.
        ValueError
            If a column is not of the type that `take` returns.
        """
        self._bound = batch
        self._key.bind_column(&batch.columns[batch.index_of("key")])
        for name, column in (
            ("namespace", self._namespace),
            ("map_key", self._map_key),
            ("value", self._value),
            ("last_access_ms", self._last_access),
            ("timestamp_ms", self._timestamp),
        ):
            if column is not None:
                (<StateColumn> column).bind_column(&batch.columns[batch.index_of(name)])

    def write_blocks(self, int64_t number, const int32_t[::1] groups, int64_t first_group, int64_t n_groups):
        """Return the blocks of the rows of some key groups, in the canonical format.

        The rows are read in their order, and each is appended to the block of its key group: that is quicker than to
        sort them before.

        Parameters
        ----------
        number : int
            Number of the state in its file.
        groups : int32 array
            Key group of each row of the batch that the table is bound to.
        first_group : int
            First of the key groups.
        n_groups : int
            Number of key groups.

        Returns
        -------
        list of bytes
            By key group; empty where there are no rows.

        Raises
        ------
        EntryError
            If a value cannot be written; its position is the number of the row.
        ValueError
            If the table is not bound to as many rows, or a row has another key group.
        """
        cdef Buffer* blocks
        cdef Buffer* out
        cdef int64_t* key_at
        cdef int64_t i, group
        if self._bound is None or groups.shape[0] != self._bound.num_rows:
            raise ValueError(f"the table is not bound to {groups.shape[0]} rows")
        if n_groups < 0:
            raise ValueError(f"there are {n_groups} key groups")
        blocks = <Buffer*> calloc(n_groups + 1, sizeof(Buffer))
        key_at = <int64_t*> calloc(n_groups + 1, sizeof(int64_t))
        try:
            if blocks == NULL or key_at == NULL:
                raise MemoryError()
            for i in range(groups.shape[0]):
                group = groups[i] - first_group
                if not 0 <= group < n_groups:
                    raise ValueError(f"row {i} has the key group {groups[i]}")
                out = &blocks[group]
                if out.size == 0:
                    (<uint8_t*> buffer_append(out, 1))[0] = number >> 8
                    (<uint8_t*> buffer_append(out, 1))[0] = number & 0xFF
                key_at[group] = out.size + 4
                try:
                    self.write_entry(i, groups[i], out)
                except ValueError as failure:
                    raise EntryError(str(failure), i, False) from None
            found = []
            for i in range(n_groups):
                out = &blocks[i]
                if out.size:
                    out.data[key_at[i]] |= 0x80
                found.append((<const char*> out.data)[:out.size] if out.size else b"")
                buffer_free(out)
                out.data, out.size, out.capacity = NULL, 0, 0
            return found
        finally:
            if blocks != NULL:
                for i in range(n_groups):
                    buffer_free(&blocks[i])
            free(blocks)
            free(key_at)

    cdef int write_entry(self, int64_t row, int64_t group, Buffer* out) except -1:
        cdef int64_t at = out.size
        cdef StateColumn flagged
        cdef bint is_null
        buffer_append(out, 4)
        if self._group_bytes == 2:
            (<uint8_t*> buffer_append(out, 1))[0] = group >> 8
        (<uint8_t*> buffer_append(out, 1))[0] = group & 0xFF
        if self._kind == Kind.TIMERS:
            self._timestamp.write(row, out)
            out.data[out.size - 8] ^= 0x80
        self.write_part(row, self._key, out)
        self.write_part(row, self._namespace, out)
        if self._kind == Kind.MAP:
            self._map_key.write(row, out)
        put32(out.data + at, <uint32_t> (out.size - at - 4))
        at = out.size
        buffer_append(out, 4)
        if self._kind == Kind.LIST:
            self.write_list(row, out)
        elif self._kind == Kind.MAP:
            # With a time to live, what may be null is the pair of the value and its time.
            flagged = self._value if self._last_access is None else self._last_access
            is_null = flagged.is_null(row)
            (<uint8_t*> buffer_append(out, 1))[0] = is_null
            if not is_null:
                self.write_timed(row, out)
        elif self._kind == Kind.VALUE:
            self.write_timed(row, out)
        if out.size - at > 0x7FFFFFFF:
            unwritable("an entry has more than 2 GiB")
        put32(out.data + at, <uint32_t> (out.size - at - 4))
        return 0

    cdef int write_part(self, int64_t row, StateColumn column, Buffer* out) except -1:
        # Writes the key or the namespace, and its length where both are of any length.
        cdef int64_t begin = out.size, size
        if column is None:
            (<uint8_t*> buffer_append(out, 1))[0] = 0
        else:
            column.write(row, out)
        if self._has_lengths:
            size = out.size - begin
            while True:
                (<uint8_t*> buffer_append(out, 1))[0] = size & 0xFF
                size >>= 8
                if not size:
                    break
        return 0

    cdef int write_timed(self, int64_t row, Buffer* out) except -1:
        if self._last_access is not None:
            self._last_access.write(row, out)
        return self._value.write(row, out)

    cdef int write_list(self, int64_t row, Buffer* out) except -1:
        cdef ListColumn elements, times
        cdef int64_t begin = 0, end = 0, times_begin = 0, times_end = 0, i
        if type(self._value) is not ListColumn:
            return self._value.write(row, out)  # all bytes, as the elements are not known
        elements = <ListColumn> self._value
        times = <ListColumn> self._last_access
        elements_at(&elements.source, row, &begin, &end)
        if begin == end:
            unwritable("a list of a list state is empty, which Flink does not keep")
        if times is not None:
            elements_at(&times.source, row, &times_begin, &times_end)
            if times_end - times_begin != end - begin:
                unwritable(f"{end - begin} elements of a list have {times_end - times_begin} times of last access")
        for i in range(end - begin):
            if i:
                (<uint8_t*> buffer_append(out, 1))[0] = LIST_DELIMITER
            if times is not None:
                times.child.write(times_begin + i, out)
            elements.child.write(begin + i, out)
        return 0

    def take(self):
        """Return the rows as an array of structs, and forget them.

        Returns
        -------
        NativeArray
            Structs of ``key_group``, ``key``, ``namespace``, ``map_key``, ``timestamp_ms``, ``value`` and ``last_access_ms``, of
            which there are those that the state has.
        """
        cdef list names = ["key_group", "key"]
        cdef list arrays = [native_array("i", self.n_rows, NULL, &self._groups, NULL), self._key.take_array()]
        if self._namespace is not None:
            names.append("namespace")
            arrays.append(self._namespace.take_array())
        if self._kind == Kind.TIMERS:
            names.append("timestamp_ms")
            arrays.append(native_array("l", self.n_rows, NULL, &self._times, NULL))
        if self._map_key is not None:
            names.append("map_key")
            arrays.append(self._map_key.take_array())
        if self._value is not None:
            names.append("value")
            arrays.append(self._value.take_array())
        if self._last_access is not None:
            names.append("last_access_ms")
            arrays.append(self._last_access.take_array())
        made = native_array("+s", self.n_rows, NULL, NULL, NULL, arrays, names)
        self.n_rows = 0
        return made


@cython.final
cdef class EntryBlocks:
    """Entries of a key group in the canonical format, which come block by block.

    Parameters
    ----------
    tables : list of EntryTable or None
        For each state of the file where its entries go; None if they are only counted.
    group : int
        The key group.
    """

    cdef list _tables
    cdef int64_t _group
    cdef int64_t _state
    cdef readonly bint has_ended
    cdef list _counts

    def __init__(self, list tables, int64_t group):
        self._tables = tables
        self._group = group
        self._state = -1
        self._counts = [0] * len(tables)

    @property
    def state(self):
        """Number of the state of the entries that are being read; -1 before the first and between two states."""
        return self._state

    @property
    def counts(self):
        """How many entries of each state have been read."""
        return self._counts

    def feed(self, const uint8_t[::1] data, int64_t at, int64_t most_rows):
        """Read as many whole entries as there are.

        Parameters
        ----------
        data : bytes
        at : int
            Position of the first entry.
        most_rows : int
            Stop when a table has so many rows.

        Returns
        -------
        int
            Position after the entries that were read. An entry that is not whole begins there, if more is left.

        Raises
        ------
        EntryError
            If an entry is damaged, or a value has no place in its column.
        """
        cdef const uint8_t* bytes = &data[0] if data.shape[0] else NULL
        cdef int64_t end = data.shape[0], key_size, value_size, n_rows
        cdef int64_t counted = 0
        cdef bint is_last
        cdef Cursor key, value
        cdef EntryTable table
        key.data = value.data = bytes
        key.values_left = value.values_left = 0
        table = None if self._state < 0 else <EntryTable> self._tables[self._state]
        try:
            while not self.has_ended:
                key.at = key.end = at
                if self._state < 0:
                    if end - at < 2:
                        break
                    self._state = <int16_t> be16(bytes + at)
                    at += 2
                    if self._state == -1:
                        self.has_ended = True
                        break
                    if self._state < 0 or self._state >= len(self._tables):
                        damaged(&key, f"there is no state with number {self._state}")
                    table = <EntryTable> self._tables[self._state]
                    counted = 0
                if end - at < 4:
                    break
                key_size = <int32_t> be32(bytes + at)
                if key_size < 1:
                    damaged(&key, f"a key has {key_size:,} bytes")
                if end - at < key_size + 8:
                    break
                value.at = at + 4 + key_size
                value_size = <int32_t> be32(bytes + value.at)
                if value_size < 0:
                    value.end = value.at
                    damaged(&value, f"a value has {value_size:,} bytes")
                if end - value.at - 4 < value_size:
                    break
                key.at, key.end = at + 4, value.at
                is_last = bytes[key.at] >> 7
                value.at += 4
                value.end = value.at + value_size
                at = value.end
                if table is not None:
                    table.append(&key, &value, self._group)
                counted += 1
                n_rows = 0 if table is None else table.n_rows
                if is_last:
                    self._counts[self._state] += counted
                    counted = 0
                    self._state = -1
                if n_rows >= most_rows:
                    break
        finally:
            if counted and self._state >= 0:
                self._counts[self._state] += counted
        return at

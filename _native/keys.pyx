"""Keys of a batch in one of two uniform forms, and back.

A single column of at most 8 bytes is its values as int64; a single string or binary column is its own bytes, borrowed.
A composite key is one run of bytes per row (see `key_layout`).
"""

import cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from flinkcore.errors import DataError, SchemaError

from flinkcore._native.arrow cimport (
    BitBuffer,
    Buffer,
    Column,
    ColumnType,
    NativeArray,
    RecordBatch,
    advise_large,
    buffer_free,
    is_valid,
    native_array,
)
from flinkcore._native.arrow_c_data cimport ArrowSchema, checked_schema, field_name
from flinkcore._native.call_guard cimport Call, begin_call
from flinkcore._native.key_layout cimport (
    KeyField,
    buffer_resize,
    measure_composite,
    narrow_values,
    pack_bits,
    read_fixed,
    read_varying,
    widen_values,
    write_composite,
)

cdef dict _TYPES = {
    "b": (ColumnType.BOOL, 1),
    "c": (ColumnType.INT8, 1),
    "C": (ColumnType.UINT8, 1),
    "s": (ColumnType.INT16, 2),
    "S": (ColumnType.UINT16, 2),
    "i": (ColumnType.INT32, 4),
    "I": (ColumnType.UINT32, 4),
    "l": (ColumnType.INT64, 8),
    "L": (ColumnType.UINT64, 8),
    "f": (ColumnType.FLOAT32, 4),
    "g": (ColumnType.FLOAT64, 8),
    "tdD": (ColumnType.DATE32, 4),
    "tdm": (ColumnType.DATE64, 8),
    "tts": (ColumnType.TIME32, 4),
    "ttm": (ColumnType.TIME32, 4),
    "ttu": (ColumnType.TIME64, 8),
    "ttn": (ColumnType.TIME64, 8),
    "u": (ColumnType.STRING, 0),
    "U": (ColumnType.LARGE_STRING, 0),
    "z": (ColumnType.BINARY, 0),
    "Z": (ColumnType.LARGE_BINARY, 0),
    "+s": (ColumnType.STRUCT, 0),
}


cdef tuple _type_of(str format, str name):
    # Column type and width in bytes, 0 where it varies.
    found = _TYPES.get(format)
    if found is not None:
        return found
    if format.startswith("ts"):
        return ColumnType.TIMESTAMP, 8
    if format.startswith("tD"):
        return ColumnType.DURATION, 8
    if format.startswith("w:") and format != "w:0":
        return ColumnType.FIXED_BINARY, int(format[2:])
    if format.startswith("d:") and format.count(",") == 1:
        return ColumnType.DECIMAL128, 16
    raise SchemaError(
        f"key column {name!r}: a column of Arrow format {format!r} cannot be a key; cast it to a plain type "
        "(dictionary and view types to their values), or take parts of it (elements of a list)"
    )


cdef void _hash_values(const int64_t* values, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = mix_int64(<uint64_t> values[row])


cdef void _hash_rows(const uint8_t* data, const int64_t* offsets, int64_t n, uint64_t* hashes) noexcept nogil:
    cdef int64_t row
    for row in range(n):
        hashes[row] = hash_bytes(data + offsets[row], offsets[row + 1] - offsets[row])


cdef NativeArray _varying_array(
    str format, str name, int64_t length, BitBuffer* validity, Buffer* offsets, Buffer* bytes
):
    # From int64 offsets; takes the buffers.
    cdef Buffer narrow
    cdef int64_t size = (<int64_t*> offsets.data)[length] if length else 0
    if format in "UZ":
        return native_array(format, length, validity, offsets, bytes)
    if size > INT32_MAX:
        raise DataError(
            f"key column {name!r}: {length:,} keys take {size:,} bytes, more than a column of its type holds; "
            f"{advise_large(name, format == 'u')}"
        )
    memset(&narrow, 0, sizeof(Buffer))
    try:
        if length:
            with nogil:
                narrow_values(<const int64_t*> offsets.data, 4, length + 1, &narrow)
        buffer_free(offsets)
        return native_array(format, length, validity, &narrow, bytes)
    finally:
        buffer_free(&narrow)


@cython.final
cdef class KeyEncoder:
    """Key columns of batches in a uniform form that kernels hash and compare, and back.

    Keys are equal where Java finds them equal: every NaN is one key, -0.0 and 0.0 are two. Fields of a composite key
    may be null; whether a single-column key may be is the caller's decision.

    Parameters
    ----------
    schema
        Schema with the key columns, or an example batch: any object of the Arrow PyCapsule protocol, or a native
        RecordBatch.
    names : list of str
        Key columns, in order; a struct column is a composite key of its own. None: all rows have the same key.

    Raises
    ------
    SchemaError
        If a column is missing, or its type cannot be a key.
    """

    def __cinit__(self, object schema, list names):
        cdef ArrowSchema* found
        cdef int64_t i
        if isinstance(schema, RecordBatch):
            capsule = (<RecordBatch> schema)._schema_capsule
        elif hasattr(schema, "__arrow_c_schema__"):
            capsule = schema.__arrow_c_schema__()
        elif hasattr(schema, "__arrow_c_array__"):
            capsule = schema.__arrow_c_array__()[0]
        else:
            raise TypeError(f"{type(schema).__name__} has no __arrow_c_schema__; pass an Arrow schema or record batch")
        found = checked_schema(capsule, schema)
        columns = [field_name(found.children[i]) for i in range(found.n_children)]
        self._names = list(names)
        self._field_names = []
        self._formats = []
        for name in names:
            if name not in columns:
                raise SchemaError(f"no key column {name!r}; the columns are {', '.join(columns)}")
            i = columns.index(name)
            self._add_field(found.children[i], name, -1)
        self.n_columns = len(names)
        self._lay_out()

    def __dealloc__(self):
        free(self.fields)
        buffer_free(&self._values)
        buffer_free(&self._data)
        buffer_free(&self._offsets)
        buffer_free(&self._cursors)
        buffer_free(&self._hashes)
        buffer_free(&self._nulls)

    cdef int64_t _add_field(self, ArrowSchema* schema, str name, int64_t parent) except -1:
        cdef int64_t number = self.n_fields, i
        cdef KeyField* grown
        cdef str format = schema.format.decode()
        if schema.dictionary != NULL:
            raise SchemaError(f"key column {name!r}: a dictionary column cannot be a key; cast it to its values' type")
        type, width = _type_of(format, name)
        grown = <KeyField*> realloc(self.fields, (number + 1) * sizeof(KeyField))
        if grown == NULL:
            raise MemoryError()
        self.fields = grown
        memset(&self.fields[number], 0, sizeof(KeyField))
        self.n_fields = number + 1
        self.fields[number].type = type
        self.fields[number].width = width
        self.fields[number].parent = parent
        self.fields[number].n_children = schema.n_children
        self.fields[number].varying = type != ColumnType.STRUCT and width == 0
        self._formats.append(format)
        self._field_names.append(name)
        for i in range(schema.n_children):
            self._add_field(schema.children[i], field_name(schema.children[i]), number)
        return number

    cdef int _lay_out(self) except -1:
        cdef int64_t f, last = -1
        cdef ColumnType first = self.fields[0].type if self.n_columns else ColumnType.STRUCT
        self.composite = self.n_columns != 1 or first == ColumnType.STRUCT
        self.batch.kind = KEY_BYTES
        if not self.composite:
            if not self.fields[0].varying and first not in (ColumnType.DECIMAL128, ColumnType.FIXED_BINARY):
                self.batch.kind = KEY_INT64
            return 0
        self.fixed_size = max(1, (self.n_fields + 7) >> 3)
        for f in range(self.n_fields):
            if self.fields[f].varying:
                self.fields[f].width = 4
                last = f
        if last >= 0:
            self.fields[last].width = 0
        for f in range(self.n_fields):
            self.fields[f].position = self.fixed_size
            self.fixed_size += self.fields[f].width
        return 0

    cdef int64_t _bind(self, const Column* column, int64_t field, str name) except -1:
        # Number of the field after this one and its children.
        cdef KeyField* bound = &self.fields[field]
        cdef int64_t i, next = field + 1
        if column.format != (<str> self._formats[field]).encode() or column.n_children != bound.n_children:
            raise SchemaError(
                f"key column {name!r} was of Arrow format {self._formats[field]!r} and is of "
                f"{column.format.decode()!r} in this batch; cast it to one type"
            )
        bound.column = column
        bound.nullable = column.validity != NULL or (bound.parent >= 0 and self.fields[bound.parent].nullable)
        for i in range(column.n_children):
            next = self._bind(&column.children[i], next, name)
        return next

    cdef int encode(self, RecordBatch batch) except -1:
        cdef int64_t field = 0, n = batch.num_rows, row
        cdef const Column* column
        self.batch.length = 0
        self.batch.is_null = NULL
        for name in self._names:
            field = self._bind(&batch.columns[batch.index_of(name)], field, name)
        self._source = batch
        buffer_resize(&self._hashes, n * 8)
        column = self.fields[0].column if self.n_columns else NULL
        if self.n_columns == 1 and column.validity != NULL:
            buffer_resize(&self._nulls, n)
            for row in range(n):
                self._nulls.data[row] = not is_valid(column, row)
            self.batch.is_null = self._nulls.data
        if self.composite:
            self._encode_composite(n)
        elif self.batch.kind == KEY_INT64:
            self._encode_int64(column)
        else:
            self._encode_single(column)
        self.batch.hashes = <uint64_t*> self._hashes.data
        self.batch.length = n
        return 0

    cdef int _encode_int64(self, const Column* column) except -1:
        if column.byte_width == 8 and column.type != ColumnType.FLOAT64 and column.type != ColumnType.DATE64:
            self.batch.values = <const int64_t*> column.values
        else:
            buffer_resize(&self._values, column.length * 8)
            with nogil:
                widen_values(column, <int64_t*> self._values.data)
            self.batch.values = <const int64_t*> self._values.data
        with nogil:
            _hash_values(self.batch.values, column.length, <uint64_t*> self._hashes.data)
        return 0

    cdef int _encode_single(self, const Column* column) except -1:
        cdef int64_t row, n = column.length
        cdef int64_t* offsets
        self.batch.data = <const uint8_t*> column.values
        if column.type == ColumnType.LARGE_STRING or column.type == ColumnType.LARGE_BINARY:
            self.batch.offsets = <const int64_t*> column.offsets
        else:
            buffer_resize(&self._offsets, (n + 1) * 8)
            offsets = <int64_t*> self._offsets.data
            self.batch.offsets = offsets
            with nogil:
                if column.byte_width:
                    for row in range(n + 1):
                        offsets[row] = row * column.byte_width
                else:
                    for row in range(n + 1):
                        offsets[row] = (<const int32_t*> column.offsets)[row]
        with nogil:
            _hash_rows(self.batch.data, self.batch.offsets, n, <uint64_t*> self._hashes.data)
        return 0

    cdef int _encode_composite(self, int64_t n) except -1:
        cdef int64_t* offsets
        cdef int64_t long_field
        buffer_resize(&self._offsets, (n + 1) * 8)
        buffer_resize(&self._cursors, n * 8)
        offsets = <int64_t*> self._offsets.data
        with nogil:
            long_field = measure_composite(self.fields, self.n_fields, self.fixed_size, n, offsets)
        if long_field >= 0:
            raise DataError(
                f"key column {self._field_names[long_field]!r} has a value of more than 4,294,967,295 bytes, which "
                "only the last string column of a composite key may have"
            )
        buffer_resize(&self._data, offsets[n])
        if self.n_fields == 0 and n:
            memset(self._data.data, 0, offsets[n])
        with nogil:
            write_composite(
                self.fields,
                self.n_fields,
                self.fixed_size,
                n,
                offsets,
                <int64_t*> self._cursors.data,
                self._data.data,
            )
            _hash_rows(self._data.data, offsets, n, <uint64_t*> self._hashes.data)
        self.batch.data = self._data.data
        self.batch.offsets = offsets
        return 0

    cdef list decode(self, Buffer* values, Buffer* offsets, int64_t length):
        cdef Buffer cursors
        cdef int64_t row, field
        cdef list columns = []
        if not self.composite:
            return [self._decode_single(values, offsets, length)]
        memset(&cursors, 0, sizeof(Buffer))
        try:
            buffer_resize(&cursors, length * 8)
            for row in range(length):
                (<int64_t*> cursors.data)[row] = (<int64_t*> offsets.data)[row] + self.fixed_size
            for field in range(self.n_fields):
                if self.fields[field].parent < 0:
                    columns.append(
                        self._decode_field(
                            field, values.data, <int64_t*> offsets.data, length, <int64_t*> cursors.data
                        )
                    )
        finally:
            buffer_free(&cursors)
        buffer_free(values)
        buffer_free(offsets)
        return columns

    cdef NativeArray _decode_single(self, Buffer* values, Buffer* offsets, int64_t length):
        cdef KeyField* field = &self.fields[0]
        cdef str format = self._formats[0]
        cdef Buffer narrow
        cdef BitBuffer bits
        if field.varying:
            return _varying_array(format, self._names[0], length, NULL, offsets, values)
        buffer_free(offsets)
        if self.batch.kind == KEY_BYTES or field.width == 8:
            return native_array(format, length, NULL, values, NULL)
        memset(&narrow, 0, sizeof(Buffer))
        memset(&bits, 0, sizeof(BitBuffer))
        try:
            with nogil:
                if field.type == ColumnType.BOOL:
                    pack_bits(values.data, NULL, 8, 1, length, &bits)
                    narrow = bits.bytes
                    memset(&bits, 0, sizeof(BitBuffer))
                else:
                    narrow_values(<const int64_t*> values.data, field.width, length, &narrow)
            buffer_free(values)
            return native_array(format, length, NULL, &narrow, NULL)
        finally:
            buffer_free(&narrow)
            buffer_free(&bits.bytes)

    cdef NativeArray _decode_field(
        self, int64_t field, const uint8_t* data, const int64_t* offsets, int64_t length, int64_t* cursors
    ):
        cdef const KeyField* f = &self.fields[field]
        cdef str format = self._formats[field]
        cdef BitBuffer validity, bits
        cdef Buffer values, starts
        cdef int64_t child
        cdef list children = [], names = []
        memset(&validity, 0, sizeof(BitBuffer))
        memset(&bits, 0, sizeof(BitBuffer))
        memset(&values, 0, sizeof(Buffer))
        memset(&starts, 0, sizeof(Buffer))
        try:
            with nogil:
                pack_bits(data + (field >> 3), offsets, 0, <uint8_t> (1 << (field & 7)), length, &validity)
            if f.type == ColumnType.STRUCT:
                for child in range(field + 1, self.n_fields):
                    if self.fields[child].parent == field:
                        children.append(self._decode_field(child, data, offsets, length, cursors))
                        names.append(self._field_names[child])
                return native_array(format, length, &validity, NULL, NULL, children, names)
            if f.varying:
                with nogil:
                    read_varying(f, data, offsets, length, cursors, &starts, &values)
                return _varying_array(format, self._field_names[field], length, &validity, &starts, &values)
            with nogil:
                if f.type == ColumnType.BOOL:
                    pack_bits(data + f.position, offsets, 0, 1, length, &bits)
                else:
                    read_fixed(data + f.position, offsets, f.width, length, &values)
            return native_array(format, length, &validity, &bits.bytes if f.type == ColumnType.BOOL else &values, NULL)
        finally:
            buffer_free(&validity.bytes)
            buffer_free(&bits.bytes)
            buffer_free(&values)
            buffer_free(&starts)

    def encode_batch(self, batch):
        """Encode the keys of a batch, for the kernels that this encoder is given to next.

        Parameters
        ----------
        batch
            Native RecordBatch, or any object with `__arrow_c_array__`, with the key columns.

        Raises
        ------
        SchemaError
            If a key column is missing or its type is not that of the schema.
        DataError
            If a composite key has a string longer than 4 GiB that is not its last.
        """
        cdef Call call = begin_call(&self.guard, self)
        self.encode(batch if isinstance(batch, RecordBatch) else RecordBatch(batch))


cdef bint keys_are_alike(KeyEncoder a, KeyEncoder b):
    cdef int64_t field
    if a is b:
        return True
    if a.n_columns != b.n_columns or a._formats != b._formats:
        return False
    for field in range(a.n_fields):
        if a.fields[field].parent != b.fields[field].parent:
            return False
    return True

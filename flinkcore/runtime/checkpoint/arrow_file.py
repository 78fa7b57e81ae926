"""The record batch of an Arrow file that comes from outside: what it takes in memory is bounded by the file.

Arrow's own checks, `validate(full=True)`, see what contradicts itself; not what unpacks to thousands of times its size:
compressed buffers, nulls and structs that take no bytes, views that all show the same bytes.
"""

import struct

import pyarrow as pa

from flinkcore.errors import SchemaError

_MAGIC = b"ARROW1\0\0"
_HEADER, _DATA, _COMPRESSION = 2, 1, 3
"""Numbers of fields in Arrow's Message.fbs: of a Message, a DictionaryBatch and a RecordBatch."""

MOST_FREE_OBJECTS = 1 << 20
"""How many structs and lists a batch may have, beyond one for each byte of its file."""

MOST_FREE_NULLS = 1 << 24
"""How many values may take no byte, beyond one for each byte of the file; nothing else says how many there are."""


def read_batch(data: pa.Buffer) -> pa.RecordBatch:
    """Return the one batch of a file, which refers to the data.

    Raises
    ------
    SchemaError, pyarrow.ArrowException
        If it is no Arrow file with one batch, that batch contradicts itself, or it takes more memory than a file of its
        size may.
    """
    if data.size < len(_MAGIC) or data.slice(0, len(_MAGIC)).to_pybytes() != _MAGIC:
        raise SchemaError("it does not begin as an Arrow file")
    # What a footer says counts nothing: a file has a stream in it, and there each message is seen once.
    stream = data.slice(len(_MAGIC))
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)):
        if message.type != "schema" and _is_compressed(message):
            raise SchemaError("its buffers are compressed, which those of a checkpoint never are")
    with pa.ipc.open_stream(pa.BufferReader(stream)) as reader:
        for field in reader.schema:
            _require_plain_type(field.type, field.name)
        batches = list(reader)
    if len(batches) != 1:
        raise SchemaError(f"it has {len(batches)} batches, not 1")
    (batch,) = batches
    batch.validate(full=True)
    require_modest(batch, data.size)
    return batch


def require_modest(batch: pa.RecordBatch, n_bytes: int) -> None:
    """Accept a batch unless it makes many more Python objects than its file has bytes.

    Raises
    ------
    SchemaError
        If it does.
    """
    objects = nulls = 0
    for column in batch.columns:
        of_column, null = _weightless(column)
        objects, nulls = objects + of_column, nulls + null
    if objects > MOST_FREE_OBJECTS + n_bytes or nulls > MOST_FREE_NULLS + n_bytes:
        raise SchemaError(
            f"a table of {n_bytes:,} bytes has {objects:,} tuples and lists and {nulls:,} times None; a checkpoint has "
            f"{MOST_FREE_OBJECTS:,} and {MOST_FREE_NULLS:,} at most, and one more for each byte"
        )


def _weightless(array: pa.Array) -> tuple[int, int]:
    kind = array.type
    if pa.types.is_null(kind):
        return 0, len(array)
    if pa.types.is_dictionary(kind):
        return _weightless(array.dictionary)
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        children = [array.field(number) for number in range(kind.num_fields)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = [array.values]
    else:
        return 0, 0
    found = [_weightless(child) for child in children]
    return len(array) + sum(objects for objects, _ in found), sum(nulls for _, nulls in found)


def _require_plain_type(kind: pa.DataType, name: str) -> None:
    types = pa.types
    if types.is_dictionary(kind):
        parts = [kind.index_type, kind.value_type]
    elif types.is_struct(kind) or types.is_union(kind) or types.is_list(kind) or types.is_large_list(kind):
        parts = [kind.field(number).type for number in range(kind.num_fields)]
    elif types.is_primitive(kind) or any(is_kind(kind) for is_kind in _FLAT):
        return
    else:
        raise SchemaError(f"its column {name!r} has the type {kind}, which no column of a checkpoint has")
    for part in parts:
        _require_plain_type(part, name)


_FLAT = (
    pa.types.is_null,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal,
)


def _is_compressed(message: pa.ipc.Message) -> bool:
    # Flatbuffers, which Arrow has verified: a table begins with the distance back to the list of its fields.
    data = memoryview(message.metadata)

    def field(table: int, number: int) -> int:
        """Return where a field of a table is; 0 where there is none."""
        (back,) = struct.unpack_from("<i", data, table)
        vtable = table - back
        size, _ = struct.unpack_from("<HH", data, vtable)
        at = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", data, vtable + at) if at < size else (0,)
        return table + offset if offset else 0

    def referred(at: int) -> int:
        (offset,) = struct.unpack_from("<I", data, at)
        return at + int(offset)

    header = referred(field(referred(0), _HEADER))
    if message.type == "dictionary":
        header = referred(field(header, _DATA))
    return field(header, _COMPRESSION) != 0

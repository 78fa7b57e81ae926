"""Tables of a checkpoint as Arrow IPC files with a checksum, and what such a file from outside may hold."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.errors import CheckpointError, FlinkcoreError, LifecycleError, SchemaError, in_words


@dataclass(frozen=True)
class TableFile:
    """The entry of a table's file in the manifest.

    Parameters
    ----------
    kind : TableKind
    name : str
        Name of the state or the timer service, or the number of a table of rows that wait; empty for other kinds.
    file : str
        Relative to the checkpoint's directory.
    size : int
        In bytes.
    sha256 : str
        Digest of the whole file.
    n_rows : int
    shapes : dict of str to Shape
    attributes : dict of str to object
    """

    kind: TableKind
    name: str
    file: str
    size: int
    sha256: str
    n_rows: int
    shapes: dict[str, Any]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind.value.replace('_', ' ')} {self.name!r}" if self.name else self.kind.value


def write_table(
    storage: CheckpointDirectory, file: str, kind: TableKind, name: str, table: CheckpointTable
) -> TableFile:
    """Write a table to a new file, and flush it to the disk.

    Raises
    ------
    SchemaError
        If the table has too many values without bytes to be read again; see :func:`require_modest`.
    """
    with storage.open_output(file) as stream:
        sink = _HashingSink(stream)
        with (
            pa.PythonFile(sink, mode="w") as hashed,
            pa.ipc.new_file(hashed, table.batch.schema) as writer,
        ):
            writer.write_batch(table.batch)
    storage.sync(file)
    require_modest(table.batch, sink.size)
    digest = sink.digest.hexdigest()
    return TableFile(
        kind,
        name,
        file,
        sink.size,
        digest,
        table.batch.num_rows,
        dict(table.shapes),
        dict(table.attributes),
    )


def read_table(storage: CheckpointDirectory, entry: TableFile) -> CheckpointTable:
    """Return the table of a file.

    Raises
    ------
    CheckpointError
        If the file is missing, or is not as it was written.
    """
    path = f"{storage.path}/{entry.file}"
    where = f"{path} ({entry})"
    try:
        data = storage.read(entry.file, entry.size)
    except FileNotFoundError as failure:
        raise CheckpointError(
            f"{where} is missing: the checkpoint is incomplete, take another one", file=path
        ) from failure
    if data.size != entry.size:
        raise CheckpointError(
            f"{where} has {data.size} bytes, not {entry.size}: it is truncated or another file", file=path
        )
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise CheckpointError(f"{where} is damaged: its checksum is not the one in the manifest", file=path)
    with refused_as(f"{where} is no Arrow file of one batch", path):
        batch = read_batch(data)
    if batch.num_rows != entry.n_rows:
        raise CheckpointError(f"{where} has {batch.num_rows} rows, not {entry.n_rows}", file=path)
    return CheckpointTable(batch, entry.shapes, entry.attributes)


@contextmanager
def refused_as(where: str, file: str | None = None) -> Iterator[None]:
    """Raise errors of a block that interprets a checkpoint as faults of the checkpoint.

    Parameters
    ----------
    where : str
        Names the file and the table.
    file : str or None
        Path or URI of the file, if it is a single one.

    Raises
    ------
    CheckpointError
        If the block fails.
    """
    try:
        yield
    except (CheckpointError, LifecycleError):
        raise
    except (
        FlinkcoreError,
        pa.ArrowException,
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        RecursionError,
        OSError,
        struct.error,
    ) as failure:
        reason = str(failure) if isinstance(failure, FlinkcoreError) else f"{in_words(failure)}"
        raise CheckpointError(f"{where}: {reason}. Restore from another checkpoint", file=file) from failure


class _HashingSink:
    """A file for pyarrow to write to, with size and checksum of what was written."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        n_bytes = memoryview(data).nbytes
        self._stream.write(data)
        self.digest.update(data)
        self.size += n_bytes
        return n_bytes

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True


_MAGIC = b"ARROW1\0\0"
_HEADER, _DATA, _COMPRESSION = 2, 1, 3
"""Numbers of fields in Arrow's Message.fbs: of a Message, a DictionaryBatch and a RecordBatch."""

MOST_FREE_OBJECTS = 1 << 20
"""Most structs and lists of a batch, in addition to one for each byte of its file."""

MOST_FREE_NULLS = 1 << 24
"""Most values that take no byte, in addition to one for each byte of the file."""


def read_batch(data: pa.Buffer) -> pa.RecordBatch:
    """Return the only batch of a file from outside, which refers to the data; its memory is bounded by the file's size.

    Arrow's own `validate(full=True)` sees contradictions, but not data that unpack to thousands of times their size:
    compressed buffers, nulls and structs that take no bytes, views of the same bytes.

    Raises
    ------
    SchemaError, pyarrow.ArrowException
        If it is not an Arrow file with one batch, that batch contradicts itself, or takes too much memory for the size
        of its file.
    """
    if data.size < len(_MAGIC) or data.slice(0, len(_MAGIC)).to_pybytes() != _MAGIC:
        raise SchemaError("it does not begin as an Arrow file")
    # The footer is not trusted: a file contains a stream, in which each message is seen once.
    stream = data.slice(len(_MAGIC))
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)):
        if message.type != "schema" and _is_compressed(message):
            raise SchemaError("its buffers are compressed, which those of a checkpoint never are")
    with pa.ipc.open_stream(pa.BufferReader(stream)) as reader:
        for field in reader.schema:
            require_plain_type(field.type, field.name)
        batches = list(reader)
    if len(batches) != 1:
        raise SchemaError(f"it has {len(batches)} batches, not 1")
    (batch,) = batches
    batch.validate(full=True)
    require_modest(batch, data.size)
    return batch


def require_modest(batch: pa.RecordBatch, n_bytes: int) -> None:
    """Check that a batch makes not many more Python objects than its file has bytes.

    Raises
    ------
    SchemaError
        If it makes more.
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
    elif pa.types.is_map(kind):
        children = [array.keys, array.items]
    elif pa.types.is_nested(kind):
        children = [array.values]
    else:
        return 0, 0
    found = [_weightless(child) for child in children]
    return len(array) + sum(objects for objects, _ in found), sum(nulls for _, nulls in found)


def require_plain_type(kind: pa.DataType, name: str) -> None:
    """Check that a column can have a type.

    Raises
    ------
    SchemaError
        If no column of a checkpoint has it.
    """
    types = pa.types
    if types.is_dictionary(kind):
        parts = [kind.index_type, kind.value_type]
    elif types.is_nested(kind) and not any(is_kind(kind) for is_kind in _PACKED):
        parts = [kind.field(number).type for number in range(kind.num_fields)]
    elif types.is_primitive(kind) or any(is_kind(kind) for is_kind in _FLAT):
        return
    else:
        raise SchemaError(f"the column {name!r} has the type {kind}, which no column of a checkpoint has")
    for part in parts:
        require_plain_type(part, name)


_PACKED = (pa.types.is_run_end_encoded, pa.types.is_list_view, pa.types.is_large_list_view)
"""Nested types in which the same bytes may be those of many values."""

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
        """Return the offset of a field of a table, or 0 if it is missing."""
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

"""Tables of a checkpoint as Arrow IPC files with a checksum."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.errors import CheckpointError, FlinkcoreError, LifecycleError
from flinkcore.runtime.checkpoint.arrow_file import read_batch, require_modest
from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableKind


@dataclass(frozen=True)
class TableFile:
    """What the manifest says about the file of a table.

    Parameters
    ----------
    kind : TableKind
    name : str
        Of the state or the timer service; empty for splits.
    file : str
        Relative to the checkpoint's directory.
    size : int
        In bytes.
    sha256 : str
        Of the whole file.
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
    storage: CheckpointStorage, file: str, kind: TableKind, name: str, table: CheckpointTable
) -> TableFile:
    """Write a table to a new file, which the disk then keeps.

    Raises
    ------
    SchemaError
        If the table has so many values that take no byte that it would not be read again.
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


def read_table(storage: CheckpointStorage, entry: TableFile) -> CheckpointTable:
    """Return the table of a file.

    Raises
    ------
    CheckpointError
        If the file is missing, or not the one that was written.
    """
    where = f"{storage.path}/{entry.file} ({entry})"
    try:
        data = storage.read(entry.file, entry.size)
    except FileNotFoundError as failure:
        raise CheckpointError(
            f"{where} is missing: the checkpoint is incomplete, take another one"
        ) from failure
    if data.size != entry.size:
        raise CheckpointError(
            f"{where} has {data.size} bytes, not {entry.size}: it is truncated or another file"
        )
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise CheckpointError(f"{where} is damaged: its checksum is not the one in the manifest")
    with refused_as(f"{where} is no Arrow file of one batch"):
        batch = read_batch(data)
    if batch.num_rows != entry.n_rows:
        raise CheckpointError(f"{where} has {batch.num_rows} rows, not {entry.n_rows}")
    return CheckpointTable(batch, entry.shapes, entry.attributes)


@contextmanager
def refused_as(where: str) -> Iterator[None]:
    """Let what fails in the block, which understands what a checkpoint has, be a fault of the checkpoint.

    Parameters
    ----------
    where : str
        Names file and table.

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
        told = str(failure) if isinstance(failure, FlinkcoreError) else f"{type(failure).__name__}: {failure}"
        raise CheckpointError(f"{where}: {told}. Restore from another checkpoint") from failure


class _HashingSink:
    """What pyarrow writes to, with the checksum of it."""

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

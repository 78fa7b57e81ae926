"""Bytes that all tasks of a job share: few of them in each task, many once for each executor.

Many bytes are a broadcast of Spark. The first worker of an executor that needs them writes them to a file in the
executor's local directory, which Spark removes with the executor, and all workers map that file. So a worker has the
pages in memory that it has read, and shares them with the others.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from flinkcore.errors import SourceError

if TYPE_CHECKING:
    from pyspark.broadcast import Broadcast

INLINE_BYTES: Final = 64 << 10
"""Up to so many bytes travel within each task."""

_PREFIX: Final = "flinkcore-sent-"
_UNUSED_SECONDS: Final = 3600.0
"""Files that no task has opened for so long are removed when another one is written; a task may write them again."""


@dataclass(frozen=True)
class SentBytes:
    """Bytes as a task receives them; picklable.

    Attributes
    ----------
    what : str
        Name of the content, for an error.
    content : bytes or pyspark.Broadcast of memoryview
        A broadcast must also be among the `broadcasts` of `portable`.
    name : str or None
        Name of the file that workers map, which depends on the content; None without a broadcast.
    """

    what: str
    content: bytes | Broadcast[Any]
    name: str | None = None

    @classmethod
    def of(cls, what: str, data: Any, context: Any, inline_bytes: int = INLINE_BYTES) -> SentBytes:
        """Send bytes.

        Parameters
        ----------
        what : str
        data : object with the buffer protocol
        context : pyspark.SparkContext or None
            None if the session has none that Python may use: then each task holds the bytes.
        inline_bytes : int
            Most bytes that travel within each task.
        """
        view = memoryview(data).cast("B")
        if context is None or view.nbytes <= inline_bytes:
            return cls(what, bytes(view))
        digest = blake2b(view, digest_size=16).hexdigest()
        return cls(what, context.broadcast(_MappedWhereUnpickled(what, view, digest)), digest)

    @property
    def broadcasts(self) -> tuple[Any, ...]:
        """The broadcast that they need, if they need one."""
        return () if self.name is None else (self.content,)

    @property
    def buffer(self) -> memoryview:
        """The bytes, in a task.

        Raises
        ------
        SourceError
            If the file cannot be written.
        """
        if isinstance(self.content, bytes):
            return memoryview(self.content)
        assert self.name is not None
        with suppress(FileNotFoundError):
            return _mapped(_local_directory() / f"{_PREFIX}{self.name}")
        found: memoryview = self.content.value
        return found


@dataclass(frozen=True)
class _MappedWhereUnpickled:
    """Bytes that are written to a file and mapped where they are unpickled: there, a broadcast does not hold them."""

    what: str
    view: memoryview
    digest: str

    def __reduce__(self) -> tuple[Any, ...]:
        return mapped_copy, (self.what, PickleBuffer(self.view), self.digest)


def mapped_copy(what: str, data: bytes | bytearray, name: str, directory: Path | None = None) -> memoryview:
    """Write bytes to a file that all workers of an executor map, and map it.

    Parameters
    ----------
    what : str
    data : bytes or bytearray
    name : str
        Name for these bytes, and no others.
    directory : Path or None
        Directory of the file, or None for the executor's own.

    Raises
    ------
    SourceError
        If the file cannot be written.
    """
    directory = _local_directory() if directory is None else directory
    path = directory / f"{_PREFIX}{name}"
    _remove_unused(directory)
    try:
        # Workers that write it at the same time write the same.
        with tempfile.NamedTemporaryFile(dir=directory, prefix=f".{_PREFIX}", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise SourceError(
            f"{what}, {len(data):,} bytes, cannot be written to {directory} on the executor: "
            f"{error}. Free space there, or let spark.local.dir name directories with more",
            file=str(path),
        ) from error
    return _mapped(path)


_MAPPED: Final[WeakValueDictionary[Path, mmap.mmap]] = WeakValueDictionary()
"""Files that this worker has mapped: its tasks share the pages."""


def _mapped(path: Path) -> memoryview:
    mapped = _MAPPED.get(path)
    if mapped is None:
        with path.open("rb") as file:
            mapped = _MAPPED[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with suppress(OSError):
        os.utime(path)
    return memoryview(mapped)


def _local_directory() -> Path:
    """Return the first of the directories that Spark gives its workers for their files, or the one for all programs."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir())


def _remove_unused(directory: Path) -> None:
    # Workers that have mapped a file keep its content; one that died has left a part of it.
    for path in chain(directory.glob(f"{_PREFIX}*"), directory.glob(f".{_PREFIX}*")):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                path.unlink()

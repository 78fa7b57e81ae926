"""A checkpoint that is being written: nobody can read it before it is complete."""

import os
import time
import uuid
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from flinkcore._native.timers import MAX_KEY_GROUPS
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.runtime.checkpoint.checkpoint_manifest import (
    MANIFEST_NAME,
    CheckpointManifest,
    OperatorPart,
    newest_manifest,
)
from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage
from flinkcore.runtime.checkpoint.checkpoint_writer import CheckpointWriter
from flinkcore.runtime.checkpoint.table_content import DATA_FOLDER


@dataclass(frozen=True)
class PendingCheckpoint:
    """A checkpoint in the making, which tasks write at the same time and a driver completes.

    The driver begins it, and sends it to the tasks; each writes with a :meth:`writer` and sends back what that gave;
    the driver commits. Tasks may be tried again or run twice: parts that are not committed are removed. As a
    context manager it is aborted by an error.

    A directory has one checkpoint. Until `commit` returns, that is the one before; a crash at any moment leaves
    that one or the new one. Only one job at a time may write to a directory.

    Parameters
    ----------
    storage : CheckpointStorage
    folder : str
        Of its files, in the directory.
    number : int
        Greater than that of the checkpoint before.
    max_parallelism : int

    Examples
    --------
    >>> import tempfile
    >>> from flinkcore.runtime.checkpoint import Checkpoint, OperatorSnapshot
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with PendingCheckpoint.begin(path, max_parallelism=128) as pending:
    ...         part = pending.writer().write("count", 0, OperatorSnapshot((0, 127), watermark_ms=7))
    ...         pending.commit([part])
    ...     Checkpoint.open(path).restore("count", (0, 63), max_parallelism=128)[0].watermark_ms
    7

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.PendingCheckpoint``.
    """

    storage: CheckpointStorage
    folder: str
    number: int
    max_parallelism: int

    @classmethod
    def begin(cls, path: str | os.PathLike[str], max_parallelism: int) -> "PendingCheckpoint":
        """Begin a checkpoint in a directory, which is made if it is missing.

        Parameters
        ----------
        path : path
            Local, or a URI that pyarrow.fs knows.
        max_parallelism : int
            Number of key groups, 1 to 32,768: it stays, wherever the checkpoint is restored.

        Raises
        ------
        ConfigurationError
            If max_parallelism is not possible, or the directory has something in it that belongs to no checkpoint.
        CheckpointError
            If the directory cannot be made or written.
        """
        if not 1 <= max_parallelism <= MAX_KEY_GROUPS:
            raise ConfigurationError(
                f"max_parallelism is {max_parallelism}; it must be from 1 to {MAX_KEY_GROUPS}"
            )
        storage = CheckpointStorage.at(path)
        with storage.writing(""):
            names = storage.names()
        for name in names:
            if not MANIFEST_NAME.fullmatch(name) and not DATA_FOLDER.fullmatch(name.rstrip("/")):
                raise ConfigurationError(
                    f"{storage.path} has {name.rstrip('/')!r} in it, which belongs to no checkpoint: give a directory "
                    "of its own"
                )
        newest = newest_manifest(names)
        pending = cls(
            storage, f"data-{uuid.uuid4().hex}", 1 if newest is None else newest[0] + 1, max_parallelism
        )
        with storage.writing(pending.folder):
            storage.create_folder(pending.folder)
        return pending

    def writer(self) -> CheckpointWriter:
        """Return what writes the parts of a task."""
        return CheckpointWriter(self.storage, self.folder, self.max_parallelism)

    def commit(self, parts: Iterable[OperatorPart], job: Mapping[str, Any] | None = None) -> None:
        """Complete the checkpoint, and remove the one before.

        Parameters
        ----------
        parts : iterable of OperatorPart
            One for each subtask of each operator.
        job : mapping of str to object, optional
            What the job says of itself; a JSON object.

        Raises
        ------
        DataError
            If there is no part, a subtask or a key group is missing or there twice, or a file is not what was
            written. The checkpoint before stays.
        ConfigurationError
            If another job has completed a checkpoint in the directory meanwhile. That one stays.
        CheckpointError
            If the manifest cannot be written. The checkpoint before stays.
        """
        written_ms = time.time_ns() // 1_000_000
        manifest = CheckpointManifest(self.max_parallelism, written_ms, tuple(parts), dict(job or {}))
        if not manifest.parts:
            raise DataError("a checkpoint without a part of any operator cannot be completed")
        manifest.refuse_gaps()
        with self.storage.writing(self.folder):
            sizes = self.storage.sizes(self.folder)
        for part in manifest.parts:
            for table in part.tables:
                if sizes.get(table.file) != table.size:
                    raise DataError(
                        f"{self.storage.path}/{table.file}, {table} of the operator {part.uid!r}, has "
                        f"{sizes.get(table.file, 'no')} bytes, not {table.size}: was it written by another checkpoint?"
                    )
        name = self._manifest_name
        staged = f"{self.folder}/{name}"
        content = manifest.to_json()
        with self.storage.writing(name):
            with self.storage.open_output(staged) as stream:
                stream.write(content)
            self.storage.sync(staged, self.folder)
            newest = newest_manifest(self.storage.names())
            if newest is not None and newest[0] >= self.number:
                raise ConfigurationError(
                    f"{self.storage.path} has got another checkpoint since this one was begun; give every job a "
                    "directory of its own"
                )
            self.storage.move(staged, name)
            self.storage.sync("")
        with _Warning(f"{self.storage.path} is complete, but has files of older checkpoints"):
            self._remove_others({table.file for part in manifest.parts for table in part.tables})

    def abort(self) -> None:
        """Remove what was written, unless it was committed."""
        if self._manifest_name not in self.storage.names():
            self.storage.delete_folder(self.folder)

    @property
    def _manifest_name(self) -> str:
        return f"manifest-{self.number:06d}.json"

    def _remove_others(self, files: set[str]) -> None:
        for name in self.storage.names():
            if name.endswith("/"):
                if name != f"{self.folder}/" and DATA_FOLDER.fullmatch(name[:-1]):
                    self.storage.delete_folder(name[:-1])
            elif MANIFEST_NAME.fullmatch(name) and name != self._manifest_name:
                self.storage.delete_file(name)
        for file in self.storage.sizes(self.folder).keys() - files:
            self.storage.delete_file(file)

    def __enter__(self) -> "PendingCheckpoint":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with _Warning(f"{self.storage.path} has files of a failed checkpoint"):
                self.abort()


class _Warning:
    """Warns of an error of the clean-up, which would hide another one, or deny a result that is there."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, OSError):
            warnings.warn(f"{self._what}, which the next one removes ({error})", RuntimeWarning, stacklevel=3)
        return error is None or isinstance(error, OSError)

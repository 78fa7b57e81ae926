"""A checkpoint that is being written: it can be read once it is complete."""

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final

import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.io.stores import ENVIRONMENT, Stores
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._native.timers import MAX_KEY_GROUPS
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_manifest import (
    DATA_FOLDER,
    MANIFEST_NAME,
    CheckpointManifest,
    OperatorPart,
    newest_manifest,
    table_file_name,
)
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable, snapshot_tables
from flinkcore.checkpoint.table_file import write_table
from flinkcore.checkpoint.table_kinds import OF_KEYS, TableKind
from flinkcore.errors import CheckpointError, ConfigurationError, DataError

_OF_KEYS: Final = {
    TableKind.TIMERS: "timers {!r}",
    TableKind.KEYED_STATE: "state {!r}",
    TableKind.WINDOWS: "windows",
    TableKind.RELATION: "rows {!r}",
}
"""Names of the content of tables of keys, in messages."""


class CheckpointWriter:
    """Writes the parts of one attempt of a task, under file names that no other attempt uses.

    Parameters
    ----------
    storage : CheckpointDirectory
    folder : str
        For the files; it must exist.
    max_parallelism : int
    """

    def __init__(self, storage: CheckpointDirectory, folder: str, max_parallelism: int) -> None:
        self._storage = storage
        self._folder = folder
        self._max_parallelism = max_parallelism

    def write(self, uid: str, subtask: int, snapshot: OperatorSnapshot) -> OperatorPart:
        """Write the snapshot of a subtask, before the user's code runs again.

        Parameters
        ----------
        uid : str
            Identifier of the operator, by which it finds its state again.
        subtask : int
            Index of the subtask.
        snapshot : OperatorSnapshot

        Returns
        -------
        OperatorPart
            For ``PendingCheckpoint.commit``.

        Raises
        ------
        SchemaError
            If no column can hold a value; the error names its state.
        DataError
            If a key group is outside of the subtask's.
        CheckpointError
            If a file cannot be written. After any error, the files written before are removed.
        """
        with self.part(uid, subtask, snapshot.watermark_ms, snapshot.key_group_range) as part:
            for kind, name, table in self._tables(uid, snapshot):
                part.add(kind, name, table)
        return part.written()

    def part(
        self, uid: str, subtask: int, watermark_ms: int, key_group_range: tuple[int, int] | None = None
    ) -> "PendingPart":
        """Begin the part of a subtask, whose tables come one by one; parameters as of :class:`OperatorPart`."""
        return PendingPart(self._storage, self._folder, uid, subtask, watermark_ms, key_group_range)

    def _tables(self, uid: str, snapshot: OperatorSnapshot) -> Iterator[SnapshotTable]:
        for state in snapshot_tables(snapshot):
            if state.kind in OF_KEYS:
                groups = state.table.numbers("key_group", pa.int32())
                self._refuse_others(
                    uid, _OF_KEYS[state.kind].format(state.name), groups, snapshot.key_group_range
                )
            yield state

    def _refuse_others(
        self, uid: str, what: str, groups: npt.NDArray[Any], own: tuple[int, int] | None
    ) -> None:
        if own is None:
            raise DataError(f"the operator {uid!r} has the {what}, so its snapshot needs a key_group_range")
        first, last = own
        if not 0 <= first <= last < self._max_parallelism:
            raise DataError(
                f"the key groups {first} to {last} of the operator {uid!r} are not within the "
                f"{self._max_parallelism} of the checkpoint (max_parallelism)"
            )
        if len(groups) and not first <= groups.min() <= groups.max() <= last:
            raise DataError(
                f"the {what} of the operator {uid!r} have key groups from {groups.min()} to {groups.max()}, beyond "
                f"the subtask's own {first} to {last}"
            )


class PendingPart:
    """The part of a subtask in the making; as a context manager, after any error what was written is removed.

    Parameters
    ----------
    storage : CheckpointDirectory
    folder : str
        For the files; it must exist.
    uid, subtask, watermark_ms, key_group_range
        As of :class:`OperatorPart`.
    """

    def __init__(
        self,
        storage: CheckpointDirectory,
        folder: str,
        uid: str,
        subtask: int,
        watermark_ms: int,
        key_group_range: tuple[int, int] | None,
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._part = OperatorPart(uid, subtask, key_group_range, watermark_ms, ())
        self._attempt = uuid.uuid4().hex
        self._files: list[str] = []

    def add(self, kind: TableKind, name: str, table: CheckpointTable) -> None:
        """Write the next table, before the user's code runs again.

        Raises
        ------
        SchemaError, CheckpointError
            As of :meth:`CheckpointWriter.write`.
        """
        file = f"{self._folder}/{table_file_name(self._part.subtask, len(self._files), self._attempt)}"
        self._files.append(file)
        with self._storage.writing(file):
            written = write_table(self._storage, file, kind, name, table)
        self._part = replace(self._part, tables=(*self._part.tables, written))

    def written(self) -> OperatorPart:
        """Return the part, with the tables so far."""
        return self._part

    def __enter__(self) -> "PendingPart":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for file in self._files:
                with suppress(OSError):
                    self._storage.delete_file(file)


@dataclass(frozen=True)
class PendingCheckpoint:
    """A checkpoint in the making, which tasks write at the same time and a driver completes.

    The driver begins it and sends it to the tasks; each task writes parts with a :meth:`writer` and returns them; the
    driver commits them. Tasks may be retried or run twice: parts that are not committed are removed. As a context
    manager it is aborted by an error.

    A directory has one checkpoint: until `commit` returns the previous one, and after a crash either that or the new
    one. Only one job at a time may write to a directory.

    Parameters
    ----------
    storage : CheckpointDirectory
    folder : str
        Folder of its files, within the directory.
    number : int
        Greater than that of the previous checkpoint.
    max_parallelism : int

    Examples
    --------
    >>> import tempfile
    >>> from flinkcore.checkpoint import Checkpoint, OperatorSnapshot
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

    storage: CheckpointDirectory
    folder: str
    number: int
    max_parallelism: int

    @classmethod
    def begin(
        cls, path: str | os.PathLike[str], max_parallelism: int, stores: Stores = ENVIRONMENT
    ) -> "PendingCheckpoint":
        """Begin a checkpoint in a directory, which is created if it is missing.

        Parameters
        ----------
        path : path
            Local, or a URI of a store.
        max_parallelism : int
            Number of key groups, 1 to 32,768; it is fixed for all jobs that are restored from the checkpoint.
        stores : Stores
            Settings of stores, by default those of the environment.

        Raises
        ------
        ConfigurationError
            If max_parallelism is invalid, or a file in the directory belongs to no checkpoint.
        CheckpointError
            If the directory cannot be created or written.
        """
        if not 1 <= max_parallelism <= MAX_KEY_GROUPS:
            raise ConfigurationError(
                f"max_parallelism is {max_parallelism}; it must be from 1 to {MAX_KEY_GROUPS}"
            )
        storage = CheckpointDirectory.at(path, stores)
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
        """Return the writer of a task's parts."""
        return CheckpointWriter(self.storage, self.folder, self.max_parallelism)

    def commit(self, parts: Iterable[OperatorPart], job: Mapping[str, Any] | None = None) -> None:
        """Complete the checkpoint, and remove the previous one.

        Parameters
        ----------
        parts : iterable of OperatorPart
            One for each subtask of each operator.
        job : mapping of str to object, optional
            Settings that a resumed job must have, too; a JSON object.

        Raises
        ------
        DataError
            If there is no part, a subtask or a key group is missing or there twice, or a file is not as it was
            written. The previous checkpoint is kept.
        ConfigurationError
            If another job has completed a checkpoint in the directory meanwhile. That one is kept.
        CheckpointError
            If the manifest cannot be written. The previous checkpoint is kept.
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
                        f"{sizes.get(table.file, 'no')} bytes, not {table.size}: was it written by another checkpoint?",
                        file=f"{self.storage.path}/{table.file}",
                    )
        name = self._manifest_name
        staged = f"{self.folder}/{name}"
        content = manifest.to_json()
        with self.storage.writing(name):
            newest = newest_manifest(self.storage.names())
            if newest is not None and newest[0] >= self.number:
                raise ConfigurationError(
                    f"{self.storage.path} has got another checkpoint since this one was begun; give every job a "
                    "directory of its own"
                )
            self.storage.publish(name, content, by=staged)
        with _Warning(f"{self.storage.path} is complete, but has files of older checkpoints"):
            self._remove_others({table.file for part in manifest.parts for table in part.tables})

    def may_be_complete(self) -> bool:
        """Return whether the checkpoint was, or may have been, committed."""
        try:
            return self._is_complete()
        except CheckpointError:
            return True

    def abort(self) -> None:
        """Remove the written files, unless they were committed."""
        if not self._is_complete():
            self.storage.delete_folder(self.folder)

    def _is_complete(self) -> bool:
        return self._manifest_name in self.storage.names()

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
    """Turns an error of the clean-up, which would hide another error or a result, into a warning."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, OSError):
            warn_user(f"{self._what}, which the next one removes ({error})", RuntimeWarning)
        return error is None or isinstance(error, OSError)

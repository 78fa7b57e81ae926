"""A savepoint that is being written: files of states first, and `_metadata` last."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.io.store_errors import reason_of, store_remedy
from flinkcore._internal.io.stores import ENVIRONMENT, Stores
from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.errors import ConfigurationError, FlinkcoreError, SavepointError
from flinkcore.savepoints.handles import KeyGroupsHandle, OperatorStateHandle, StreamHandle
from flinkcore.savepoints.metadata import Metadata, OperatorMetadata, SubtaskState, written_metadata
from flinkcore.savepoints.operator_ids import operator_id
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.state_files import (
    KeyedStateContent,
    OperatorStateContent,
    write_keyed_states,
    write_operator_states,
)

METADATA: Final = "_metadata"
_CHECKPOINT_ID: Final = 1
_STATE_FILE: Final = re.compile(r"[0-9a-f]{32}-\d{5,}-(?P<run>[0-9a-f]{16})[0-9a-f]{16}-(keyed|operator)")


@dataclass(frozen=True)
class OperatorContent:
    """An operator to be written.

    Attributes
    ----------
    uid : str
        Its uid, or its id as 32 hexadecimal digits if it has none.
    max_parallelism : int
        Number of key groups, which is fixed for the job that is restored.
    parallelism : int
        Number of subtasks, each of which gets files of its own.
    key : StateSerializer or None
        Serializer of the keys; None if the operator has no keyed state.
    keyed : sequence of KeyedStateContent
    operator_states : sequence of sequence of OperatorStateContent
        By subtask; empty without any.
    coordinator : bytes or None
        State of the coordinator of a source.
    """

    uid: str
    max_parallelism: int
    parallelism: int = 1
    key: StateSerializer | None = None
    keyed: Sequence[KeyedStateContent] = ()
    operator_states: Sequence[Sequence[OperatorStateContent]] = ()
    coordinator: bytes | None = None

    @property
    def operator_id(self) -> str:
        """The id by which Flink finds the operator."""
        is_id = len(self.uid) == 32 and all(digit in "0123456789abcdef" for digit in self.uid)
        return self.uid if is_id else operator_id(self.uid)


@dataclass(frozen=True)
class SavepointWriter:
    """Writes the files of a savepoint; it can be pickled, to be sent to tasks.

    Parameters
    ----------
    storage : CheckpointDirectory
    run : str
        Part of the names of all its files, which no other run has.
    is_compressed : bool
        Whether states are compressed with Snappy.
    exact : bool
        Whether rows are as `flinkcore.savepoints.open` returns them with ``exact=True``.
    """

    storage: CheckpointDirectory
    run: str
    is_compressed: bool = False
    exact: bool = False

    @classmethod
    def begin(
        cls,
        path: str | os.PathLike[str],
        *,
        is_compressed: bool = False,
        exact: bool = False,
        stores: Stores = ENVIRONMENT,
    ) -> SavepointWriter:
        """Create the directory of a savepoint.

        Raises
        ------
        ConfigurationError
            If the path is empty, or the directory has a savepoint.
        SavepointError
            If the directory cannot be made.
        """
        storage = directory_without_savepoint(path, stores)
        with _writing(storage, ""):
            storage.place.filesystem.create_dir(storage.place.path, recursive=True)
        return cls(storage, _token(), is_compressed, exact)

    def subtask(self, operator: OperatorContent, index: int) -> SubtaskState:
        """Write the files of a subtask, under names that no other attempt uses.

        Raises
        ------
        DataError
            If a value is one that its serializer cannot write.
        SavepointError
            If a file cannot be written, or a serializer is one that flinkcore cannot write.
        """
        keyed, listed = [], []
        name = f"{operator.operator_id}-{index:05d}-{self.run}{_token()}"
        if operator.key is not None:
            first, last = compute_key_group_range_for_operator_index(
                operator.max_parallelism, operator.parallelism, index
            )
            groups = range(first, last + 1)
            with self._file(f"{name}-keyed") as file:
                offsets, size = write_keyed_states(
                    file,
                    operator.key,
                    operator.keyed,
                    groups,
                    operator.max_parallelism,
                    is_compressed=self.is_compressed,
                    exact=self.exact,
                )
            stream = StreamHandle(None, 0, f"{name}-keyed", True, size)
            keyed.append(KeyGroupsHandle(first, tuple(offsets), stream, True))
        if operator.operator_states and operator.operator_states[index]:
            with self._file(f"{name}-operator") as file:
                found, size = write_operator_states(
                    file,
                    operator.operator_states[index],
                    is_compressed=self.is_compressed,
                    exact=self.exact,
                )
            stream = StreamHandle(None, 0, f"{name}-operator", True, size)
            places = {state: (mode, tuple(offsets)) for state, (mode, offsets) in found.items()}
            listed.append(OperatorStateHandle(places, stream))
        return SubtaskState(index, listed, keyed, 0)

    def commit(self, operators: Sequence[OperatorMetadata]) -> bool:
        """Write `_metadata`, which completes the savepoint. A savepoint that another run has completed stays.

        If it fails, the files of this run are removed, unless the store may have completed the savepoint.

        If two runs complete one at the same time in a store, the later one counts.

        Returns
        -------
        bool
            Whether it is certain that no other run has completed one.

        Raises
        ------
        ConfigurationError
            If the directory has a savepoint.
        SavepointError
            If it cannot be written.
        """
        try:
            content = written_metadata(Metadata(3, _CHECKPOINT_ID, list(operators)))
            _refuse_savepoint(self.storage)  # a store cannot write a file only if it is not there
            with _writing(self.storage, METADATA):
                try:
                    by = f".{METADATA}-{self.run}"
                    return self.storage.publish(METADATA, content, by=by, replaces=False)
                except FileExistsError:
                    self.storage.delete_file(by)
                    self.remove_others(())
                    _refuse_savepoint(self.storage)
                    raise
        except ConfigurationError:  # another run has completed a savepoint
            self.remove_others(())
            raise
        except BaseException:
            with suppress(OSError):
                if METADATA not in self.storage.names():  # else the store has completed this one
                    self.remove_others(())
            raise

    def remove_others(self, subtasks: Iterable[SubtaskState], *, of_all_runs: bool = False) -> None:
        """Remove files of states that are not in the savepoint: of other attempts, and maybe of other runs.

        A savepoint of another run, which may have replaced this one in a store, has files of its own.
        """
        kept: set[str | None] = set()
        for subtask in subtasks:
            kept.update(handle.stream.location for handle in subtask.operator_states)
            kept.update(handle.stream.location for handle in subtask.keyed_states)
        for name in self.storage.names():
            found = _STATE_FILE.fullmatch(name)
            if found and name not in kept and (of_all_runs or found["run"] == self.run):
                self.storage.delete_file(name)

    @contextmanager
    def _file(self, name: str) -> Iterator[Any]:
        with _writing(self.storage, name):
            try:
                with self.storage.open_output(name) as file:
                    yield file
                self.storage.sync(name)
            except BaseException:
                with suppress(OSError):
                    self.storage.delete_file(name)
                raise


def directory_without_savepoint(path: str | os.PathLike[str], stores: Stores) -> CheckpointDirectory:
    """Return the directory of a savepoint to be written.

    Raises
    ------
    ConfigurationError
        If the path is empty, or the directory has a savepoint.
    """
    if not os.fspath(path):
        raise ConfigurationError("the path of a savepoint is empty; give a directory")
    storage = CheckpointDirectory.at(path, stores)
    _refuse_savepoint(storage)
    return storage


def _refuse_savepoint(storage: CheckpointDirectory) -> None:
    if METADATA in storage.names():
        raise ConfigurationError(
            f"{storage.path} has a savepoint already, which may be in use. Give a new directory"
        )


def _token() -> str:
    return uuid.uuid4().hex[:16]


def operator_metadata(operator: OperatorContent, subtasks: Sequence[SubtaskState]) -> OperatorMetadata:
    """Return what `_metadata` says of an operator whose subtasks have been written."""
    state = operator.coordinator
    coordinator = None if state is None else StreamHandle(state, 0, None, False, len(state))
    return OperatorMetadata(
        None,
        None,
        operator.operator_id,
        operator.parallelism,
        operator.max_parallelism,
        coordinator,
        False,
        list(subtasks),
    )


def text_of_subtask(subtask: SubtaskState) -> str:
    """Return the handles of a written subtask as text, which a task sends to its driver."""
    return json.dumps(asdict(subtask))


def subtask_of_text(text: str) -> SubtaskState:
    """Return the handles of a written subtask."""
    content = json.loads(text)
    listed = [
        OperatorStateHandle(
            {name: (mode, tuple(offsets)) for name, (mode, offsets) in each["offsets"].items()},
            StreamHandle(**each["stream"]),
        )
        for each in content["operator_states"]
    ]
    keyed = [
        KeyGroupsHandle(
            each["first_group"], tuple(each["offsets"]), StreamHandle(**each["stream"]), each["is_canonical"]
        )
        for each in content["keyed_states"]
    ]
    return SubtaskState(content["index"], listed, keyed, content["raw_states"])


@contextmanager
def _writing(storage: CheckpointDirectory, name: str) -> Iterator[None]:
    """Raise errors of the block as those of a savepoint's file."""
    try:
        yield
    except FlinkcoreError:
        raise
    except (OSError, pa.ArrowException) as failure:
        where = f"{storage.path}/{name}".rstrip("/")
        remedy = store_remedy(failure)
        raise SavepointError(
            f"a savepoint cannot be written to {where}: {reason_of(failure)}. "
            f"{remedy or 'Make room, or give another directory'}",
            file=where,
        ) from failure

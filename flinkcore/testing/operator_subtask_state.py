"""Snapshots of operators under test."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flinkcore.checkpoint import (
    Checkpoint,
    CheckpointManifest,
    CheckpointWriter,
    OperatorBackends,
    OperatorPart,
    OperatorSnapshot,
    PendingCheckpoint,
)
from flinkcore.checkpoint.checkpoint_directory import MemoryCheckpointDirectory
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.operators.streaming_runtime_context import TaskInfo

FOLDER = "data"


@dataclass(frozen=True)
class OperatorSubtaskState:
    """The state of one subtask of an operator, or of several, as the bytes of a job's checkpoint.

    Harnesses take it (`snapshot`) and restore it (`initialize_state`). It is immutable, and is in memory or in the
    directory that it was read from.

    Parameters
    ----------
    checkpoint : Checkpoint
    uid : str
        Identifier of the operator.
    parallelism : int
        The parallelism of the operator when the snapshot was taken.
    assigned_to : (int, int), optional
        Subtask and parallelism that `repartition_operator_state` assigned it to.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.OperatorSubtaskState``.
    """

    checkpoint: Checkpoint
    uid: str
    parallelism: int
    assigned_to: tuple[int, int] | None = None

    @classmethod
    def of_snapshot(cls, snapshot: OperatorSnapshot, task: TaskInfo) -> "OperatorSubtaskState":
        """Return the state of a subtask.

        Raises
        ------
        SchemaError
            If a value, key or namespace is of a type that no checkpoint supports.
        """
        storage = MemoryCheckpointDirectory()
        part = CheckpointWriter(storage, FOLDER, task.max_parallelism).write(task.name, task.index, snapshot)
        manifest = CheckpointManifest(task.max_parallelism, 0, (part,))
        return cls(Checkpoint(storage, manifest), task.name, task.parallelism)

    @classmethod
    def read(cls, path: str | os.PathLike[str], uid: str | None = None) -> "OperatorSubtaskState":
        """Return the state in a directory, from `write` or from a checkpoint of a job.

        Parameters
        ----------
        path : path
            Local, or a URI of a store.
        uid : str, optional
            Identifier of the operator; required if the checkpoint has several.

        Raises
        ------
        SourceError
            If the path is not a checkpoint, or it is damaged.
        ConfigurationError
            If it has no such operator, or several and none was named.
        """
        checkpoint = Checkpoint.open(path)
        uids = checkpoint.uids
        if uid is None and len(uids) == 1:
            (uid,) = uids
        if uid not in uids:
            raise ConfigurationError(
                f"{os.fspath(path)} has the operators {uids}: name one of them as uid, not {uid!r}"
            )
        return cls(checkpoint, uid, len(checkpoint.manifest.parts_by_operator()[uid]))

    @classmethod
    def repackage(cls, states: Sequence["OperatorSubtaskState"]) -> "OperatorSubtaskState":
        """Join the states of subtasks; see `AbstractStreamOperatorTestHarness.repackage_state`."""
        if not states:
            raise ConfigurationError("there is no state to join: give the snapshots of all subtasks")
        first = states[0]
        for other in states[1:]:
            if (other.parallelism, other.max_parallelism) != (first.parallelism, first.max_parallelism):
                raise ConfigurationError(
                    f"states of {first.parallelism} subtasks (max_parallelism {first.max_parallelism}) and of "
                    f"{other.parallelism} ({other.max_parallelism}) are not those of one operator"
                )
        subtasks = [part.subtask for state in states for part in state.parts]
        if len(set(subtasks)) < len(subtasks):
            raise ConfigurationError(f"these are states of the subtasks {subtasks}; each is to be there once")
        joined = MemoryCheckpointDirectory()
        parts: list[OperatorPart] = []
        for state in states:
            for part in state.parts:
                parts.append(replace(part, uid=first.uid))
                for table in part.tables:
                    joined.files[table.file] = state.checkpoint.storage.read(
                        table.file, table.size
                    ).to_pybytes()
        manifest = CheckpointManifest(first.max_parallelism, 0, tuple(parts))
        return cls(Checkpoint(joined, manifest), first.uid, first.parallelism)

    @property
    def max_parallelism(self) -> int:
        """The number of key groups."""
        return self.checkpoint.max_parallelism

    @property
    def parts(self) -> list[OperatorPart]:
        """The parts, by subtask."""
        return self.checkpoint.manifest.parts_by_operator()[self.uid]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a directory, as a checkpoint for `read` and for `flinkcore checkpoint show`.

        Parameters
        ----------
        path : path
            Local, or a URI of a store. It is created if it is missing; a checkpoint in it is replaced.

        Raises
        ------
        DataError
            If subtasks are missing.
        ConfigurationError
            If a file in the directory belongs to no checkpoint.
        """
        with PendingCheckpoint.begin(path, self.max_parallelism) as pending:
            parts = []
            for part in self.parts:
                tables = []
                for table in part.tables:
                    written = replace(table, file=f"{pending.folder}/{table.file.partition('/')[2]}")
                    with pending.storage.open_output(written.file) as stream:
                        stream.write(self.checkpoint.storage.read(table.file, table.size))
                    pending.storage.sync(written.file)
                    tables.append(written)
                parts.append(replace(part, tables=tuple(tables)))
            pending.commit(parts)

    def assign(self, subtask_index: int, parallelism: int) -> "OperatorSubtaskState":
        """Assign it to one subtask; see `AbstractStreamOperatorTestHarness.repartition_operator_state`."""
        if not 0 <= subtask_index < parallelism:
            raise ConfigurationError(
                f"the subtask index {subtask_index} is out of range for the parallelism {parallelism}"
            )
        return replace(self, assigned_to=(subtask_index, parallelism))

    def elements_by_subtask(self, name: str) -> list[list[Any]]:
        """Return the elements of a state of `own_state`, of each subtask that has a part here.

        Raises
        ------
        SchemaError
            If the operator has no such state.
        """
        (states,) = self.checkpoint.operator_states(self.uid, 1)
        if name not in states:
            raise SchemaError(f"the state of the operator {self.uid!r} has no {name!r}")
        return [own[1:] for own in sorted(map(list, states[name].elements))]

    def restore(self, backends: OperatorBackends, task: TaskInfo) -> int:
        """Restore the share of a subtask into its backends; return the operator's watermark in ms since the epoch.

        Raises
        ------
        ConfigurationError
            If the number of key groups differs, the state is assigned to another subtask, or subtasks with a part of
            the share are missing.
        SourceError
            If the files that it was read from are missing or damaged.
        """
        if self.max_parallelism != task.max_parallelism:
            raise ConfigurationError(
                f"the state has {self.max_parallelism} key groups, the harness {task.max_parallelism}: give it "
                f"TaskInfo(..., max_parallelism={self.max_parallelism})"
            )
        own = task.index, task.parallelism
        if self.assigned_to not in (None, own):
            raise ConfigurationError(
                f"the state was given to subtask {_of(self.assigned_to)}, the harness is subtask {_of(own)}"
            )
        parts = self.parts
        if backends.keyed_state is None and any(part.key_group_range is not None for part in parts):
            raise ConfigurationError("the state is that of an operator with keys, and the harness has none")
        if len(parts) == self.parallelism:
            return backends.restore(self.checkpoint, self.uid, *own)
        if [(part.subtask, self.parallelism) for part in parts] != [own]:
            there = [part.subtask for part in parts]
            raise ConfigurationError(
                f"the state is that of the subtasks {there} of {self.parallelism} only, and cannot be restored into "
                f"subtask {_of(own)}: join the snapshots of all subtasks with repackage_state"
            )
        return backends.restore(self.checkpoint, self.uid, 0, 1)


def _of(subtask: tuple[int, int] | None) -> str:
    return "" if subtask is None else f"{subtask[0]} of {subtask[1]}"

"""A checkpoint that is complete, to be restored from."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from flinkcore.errors import CheckpointError, ConfigurationError, DataError
from flinkcore.runtime.checkpoint.checkpoint_manifest import (
    MAX_MANIFEST_BYTES,
    CheckpointManifest,
    OperatorPart,
    newest_manifest,
)
from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableKind
from flinkcore.runtime.checkpoint.keyed_state_table import keyed_state_of_table
from flinkcore.runtime.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.runtime.checkpoint.operator_state_table import operator_state_of_table
from flinkcore.runtime.checkpoint.splits_table import splits_of_table
from flinkcore.runtime.checkpoint.table_content import DATA_FOLDER
from flinkcore.runtime.checkpoint.table_file import TableFile, read_table, refused_as
from flinkcore.runtime.checkpoint.timers_table import timers_of_table
from flinkcore.runtime.checkpoint.value_decoding import EqualColumnsOnce
from flinkcore.runtime.state import KeyedStateSnapshot, OperatorStateSnapshot, redistribute

T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """The manifest of a checkpoint, and where it is; small, to be sent to tasks, which read what they need.

    Nothing is read from a file whose checksum is not the manifest's.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.CompletedCheckpoint``; restoring follows
    ``StateAssignmentOperation``.
    """

    storage: CheckpointStorage
    manifest: CheckpointManifest

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Checkpoint":
        """Return the checkpoint in a directory.

        Parameters
        ----------
        path : path
            Local, or a URI that pyarrow.fs knows.

        Raises
        ------
        CheckpointError
            If there is none, or it is damaged, incomplete or of a newer version.
        """
        storage = CheckpointStorage.at(path)
        names = storage.names()
        newest = newest_manifest(names)
        if newest is None:
            if any(DATA_FOLDER.fullmatch(name.rstrip("/")) for name in names):
                raise CheckpointError(f"{storage.path} has a checkpoint that was never completed")
            raise CheckpointError(
                f"{storage.path} is no checkpoint: there is no manifest-000001.json, or the like, in it"
            )
        where = f"{storage.path}/{newest[1]}"
        try:
            data = storage.read(newest[1], MAX_MANIFEST_BYTES).to_pybytes()
        except FileNotFoundError as failure:
            raise CheckpointError(
                f"{where} has just been replaced by another checkpoint: open that"
            ) from failure
        manifest = CheckpointManifest.of_json(data, where)
        tables = [table for part in manifest.parts for table in part.tables]
        sizes = storage.sizes(tables[0].file.partition("/")[0]) if tables else {}
        for table in tables:
            if table.file not in sizes:
                raise CheckpointError(
                    f"{storage.path}/{table.file} ({table}) is missing: the checkpoint is incomplete, take another one"
                )
        try:
            manifest.refuse_left_out_files(sizes)
        except DataError as failure:
            raise CheckpointError(f"{where} describes no complete checkpoint: {failure}") from failure
        return cls(storage, manifest)

    def was_replaced(self) -> bool:
        """Whether another checkpoint has been completed in the directory since."""
        newest = newest_manifest(self.storage.names())
        if newest is None:
            return False
        try:
            data = self.storage.read(newest[1], MAX_MANIFEST_BYTES).to_pybytes()
        except FileNotFoundError:
            return True
        return CheckpointManifest.of_json(data, f"{self.storage.path}/{newest[1]}") != self.manifest

    @property
    def max_parallelism(self) -> int:
        """The number of key groups, which stays."""
        return self.manifest.max_parallelism

    @property
    def uids(self) -> list[str]:
        """The uids of all operators."""
        return list(self.manifest.parts_by_operator())

    def restore(
        self, uid: str, key_group_range: tuple[int, int], max_parallelism: int
    ) -> list[OperatorSnapshot]:
        """Return what an operator had in some key groups: its timers, its keyed state and its watermarks.

        Parameters
        ----------
        uid : str
            Of the operator.
        key_group_range : (int, int)
            First and last key group, inclusive.
        max_parallelism : int
            The number of key groups of the job.

        Returns
        -------
        list of OperatorSnapshot
            One for each subtask that had any of the key groups; all of them are to be restored, in their order. Where
            a watermark is not theirs all, the least of them counts.

        Raises
        ------
        ConfigurationError
            If the checkpoint has another number of key groups, or no such operator, or the range is not possible.
        CheckpointError
            If a file is missing, damaged or not what the manifest says.
        """
        if max_parallelism != self.max_parallelism:
            raise ConfigurationError(
                f"the checkpoint {self.storage.path} has {self.max_parallelism} key groups, but the job has "
                f"max_parallelism {max_parallelism}: set it to {self.max_parallelism}, or start without the checkpoint"
            )
        first, last = key_group_range
        if not 0 <= first <= last < max_parallelism:
            raise ConfigurationError(
                f"key_group_range is ({first}, {last}); it must lie within 0 and {max_parallelism - 1} "
                "(max_parallelism - 1), both ends included"
            )
        snapshots = []
        for part in self._parts(uid):
            if part.key_group_range is None:
                continue
            own = max(first, part.key_group_range[0]), min(last, part.key_group_range[1])
            if own[0] <= own[1]:
                snapshots.append(self._keyed_snapshot(part, own))
        return snapshots

    def keyed_state(self, uid: str, name: str) -> Iterator[KeyedStateSnapshot]:
        """Yield the entries of one keyed state, by subtask, in all key groups.

        Raises
        ------
        ConfigurationError
            If there is no such operator.
        CheckpointError
            If a file is missing, damaged or not what the manifest says.
        """
        for part in self._parts(uid):
            for table in part.tables_of(TableKind.KEYED_STATE):
                if table.name == name:
                    yield self._read(table, keyed_state_of_table, part.key_group_range)

    def operator_states(self, uid: str, parallelism: int) -> list[dict[str, OperatorStateSnapshot]]:
        """Return what the subtasks of an operator get of its operator and broadcast states.

        Parameters
        ----------
        uid : str
        parallelism : int
            The number of subtasks from now on.

        Returns
        -------
        list of dict of str to OperatorStateSnapshot
            By subtask, and state name.

        Raises
        ------
        ConfigurationError
            If there is no such operator, or to be no subtask.
        CheckpointError
            If a file is missing, damaged or not what the manifest says.
        """
        snapshots = [
            {
                table.name: self._read(table, operator_state_of_table)
                for table in part.tables_of(TableKind.OPERATOR_STATE)
            }
            for part in self._parts(uid)
        ]
        return redistribute(snapshots, parallelism)

    def splits(self, uid: str) -> list[SplitPosition]:
        """Return how far a source had read its splits, those of all its subtasks.

        Raises
        ------
        ConfigurationError
            If there is no such operator.
        CheckpointError
            If a file is missing, damaged or not what the manifest says.
        """
        return [
            split
            for part in self._parts(uid)
            for table in part.tables_of(TableKind.SPLITS)
            for split in self._read(table, splits_of_table)
        ]

    def time_plane(self, uid: str) -> CheckpointTable:
        """Return where the splits of a replay's log stood, and their watermark generators.

        Raises
        ------
        ConfigurationError
            If there is no such operator, or it is none that makes watermarks.
        CheckpointError
            If a file is missing, damaged or not what the manifest says.
        """
        tables = [table for part in self._parts(uid) for table in part.tables_of(TableKind.TIME_PLANE)]
        if len(tables) != 1:
            raise ConfigurationError(
                f"the operator {uid!r} of the checkpoint {self.storage.path} makes no watermarks: give operators the "
                "uids they had"
            )
        return self._read(tables[0], lambda table: table)

    def watermark_ms(self, uid: str) -> int:
        """Return an operator's watermark, the least of its subtasks'; a ConfigurationError where there is none."""
        return min(part.watermark_ms for part in self._parts(uid))

    def _parts(self, uid: str) -> list[OperatorPart]:
        parts = self.manifest.parts_by_operator()
        if uid not in parts:
            raise ConfigurationError(
                f"the checkpoint {self.storage.path} has no operator {uid!r}; it has {list(parts)}: give operators the "
                "uids they had"
            )
        return parts[uid]

    def _keyed_snapshot(self, part: OperatorPart, own: tuple[int, int]) -> OperatorSnapshot:
        decode_keys = EqualColumnsOnce().decode
        timers_of = partial(timers_of_table, decode_keys=decode_keys)
        keyed_state_of = partial(keyed_state_of_table, decode_keys=decode_keys)

        def read(kind: TableKind, of_table: Callable[[CheckpointTable], T]) -> list[tuple[str, T]]:
            return [
                (table.name, self._read(table, of_table, part.key_group_range, own))
                for table in part.tables_of(kind)
            ]

        return OperatorSnapshot(
            own,
            part.watermark_ms,
            dict(read(TableKind.TIMERS, timers_of)),
            dict(read(TableKind.KEYED_STATE, keyed_state_of)),
            windows=[table for _, table in read(TableKind.WINDOWS, lambda found: found)],
        )

    def _read(
        self,
        entry: TableFile,
        of_table: Callable[[CheckpointTable], T],
        key_groups: tuple[int, int] | None = None,
        own: tuple[int, int] | None = None,
    ) -> T:
        """Return what a table is, whose rows are all of some key groups; of some of these only, if they are given."""
        table = read_table(self.storage, entry)
        with refused_as(f"{self.storage.path}/{entry.file} ({entry})"):
            if key_groups is not None:
                table.check_key_groups(*key_groups)
            return of_table(table if own is None else table.of_key_groups(*own))

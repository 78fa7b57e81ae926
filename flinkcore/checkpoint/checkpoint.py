"""A complete checkpoint, from which operators are restored."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from flinkcore._internal.io.stores import ENVIRONMENT, Stores
from flinkcore._internal.show.html import html_lines, html_table
from flinkcore._internal.show.times import format_timestamp
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_manifest import (
    DATA_FOLDER,
    MAX_MANIFEST_BYTES,
    CheckpointManifest,
    OperatorPart,
    newest_manifest,
)
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.checkpoint.state_tables import (
    keyed_state_of_table,
    operator_state_of_table,
    splits_of_table,
    timers_of_table,
)
from flinkcore.checkpoint.table_file import TableFile, read_table, refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_decoding import EqualColumnsOnce
from flinkcore.errors import CheckpointError, ConfigurationError, DataError
from flinkcore.operators.state import KeyedStateSnapshot, OperatorStateSnapshot, redistribute

T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's manifest and its storage: small, to be sent to tasks, which read the tables that they need.

    All methods that read an operator's tables raise a ConfigurationError if there is no such operator, and a
    CheckpointError if a file is missing, damaged or not what the manifest says.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.checkpoint.CompletedCheckpoint``; restoring follows
    ``StateAssignmentOperation``.
    """

    storage: CheckpointDirectory
    manifest: CheckpointManifest

    @classmethod
    def open(cls, path: str | os.PathLike[str], stores: Stores = ENVIRONMENT) -> "Checkpoint":
        """Return the checkpoint in a directory.

        Parameters
        ----------
        path : path
            Local, or a URI of a store.
        stores : Stores
            Settings of stores, by default those of the environment.

        Raises
        ------
        CheckpointError
            If there is no checkpoint, or it is damaged, incomplete or of a newer version.
        """
        storage = CheckpointDirectory.at(path, stores)
        names = storage.names()
        newest = newest_manifest(names)
        if newest is None:
            if any(DATA_FOLDER.fullmatch(name.rstrip("/")) for name in names):
                raise CheckpointError(
                    f"{storage.path} has a checkpoint that was never completed", file=storage.path
                )
            if not names:
                raise CheckpointError(
                    f"{storage.path} is not a checkpoint: it does not exist, or is empty. Give the directory that a "
                    "job has written",
                    file=storage.path,
                )
            raise CheckpointError(
                f"{storage.path} is not a checkpoint: there is no manifest-000001.json, or the like, in it",
                file=storage.path,
            )
        where = f"{storage.path}/{newest[1]}"
        try:
            data = storage.read(newest[1], MAX_MANIFEST_BYTES).to_pybytes()
        except FileNotFoundError as failure:
            raise CheckpointError(
                f"{where} has just been replaced by another checkpoint: open that", file=where
            ) from failure
        manifest = CheckpointManifest.of_json(data, where)
        tables = [table for part in manifest.parts for table in part.tables]
        sizes = storage.sizes(tables[0].file.partition("/")[0]) if tables else {}
        for table in tables:
            if table.file not in sizes:
                raise CheckpointError(
                    f"{storage.path}/{table.file} ({table}) is missing: the checkpoint is incomplete, take another one",
                    file=f"{storage.path}/{table.file}",
                )
        try:
            manifest.refuse_left_out_files(sizes)
        except DataError as failure:
            raise CheckpointError(
                f"{where} describes no complete checkpoint: {failure}", file=where
            ) from failure
        return cls(storage, manifest)

    def __repr__(self) -> str:
        manifest = self.manifest
        operators = ", ".join(map(repr, self.uids)) or "none"
        return (
            f"Checkpoint({self.storage.path!r}, written {format_timestamp(manifest.written_ms)}, "
            f"{manifest.max_parallelism} key groups, operators: {operators})"
        )

    def _repr_html_(self) -> str:
        manifest = self.manifest
        sizes: dict[tuple[str, str], list[int]] = {}
        for part in manifest.parts:
            for table in part.tables:
                sizes.setdefault((part.uid, str(table)), []).append(table.n_rows)
        rows = [(*names, f"{len(parts):,}", f"{sum(parts):,}") for names, parts in sorted(sizes.items())]
        columns = [(name, "") for name in ("operator", "table", "parts", "rows")]
        return html_lines(
            f"checkpoint {self.storage.path}\nwritten {format_timestamp(manifest.written_ms)}, "
            f"{manifest.max_parallelism} key groups"
        ) + html_table(columns, rows, [False, False, True, True])

    @property
    def path(self) -> str:
        """Its directory, as a local path or a URI."""
        return self.storage.path

    def was_replaced(self) -> bool:
        """Return whether another checkpoint has been completed in the directory since this one was opened."""
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
        """The number of key groups, the same for all jobs that are restored from it."""
        return self.manifest.max_parallelism

    @property
    def uids(self) -> list[str]:
        """The uids of all operators."""
        return list(self.manifest.parts_by_operator())

    def restore(
        self, uid: str, key_group_range: tuple[int, int], max_parallelism: int
    ) -> list[OperatorSnapshot]:
        """Return the timers, keyed state and watermarks of an operator in a range of key groups.

        Parameters
        ----------
        uid : str
            Identifier of the operator.
        key_group_range : (int, int)
            First and last key group, inclusive.
        max_parallelism : int
            Maximum parallelism of the job.

        Returns
        -------
        list of OperatorSnapshot
            One for each subtask that had any of the key groups, all to be restored in this order; the least of their
            watermarks counts.

        Raises
        ------
        ConfigurationError
            If the checkpoint has another number of key groups, or the range is invalid.
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
        """Yield the entries of a keyed state in all key groups, by subtask."""
        for part in self._parts(uid):
            for table in part.tables_of(TableKind.KEYED_STATE):
                if table.name == name:
                    yield self._read(table, keyed_state_of_table, part.key_group_range)

    def dealt(self, uid: str) -> None:
        """Return nothing to deal out, as tasks find the state of their key groups."""

    def operator_states(self, uid: str, parallelism: int) -> list[dict[str, OperatorStateSnapshot]]:
        """Return the operator states of an operator, including broadcast states, redistributed to its subtasks.

        Parameters
        ----------
        uid : str
        parallelism : int
            The number of subtasks after the restore.

        Returns
        -------
        list of dict of str to OperatorStateSnapshot
            By subtask, then by name of the state.
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
        """Return the positions of a source in its splits, of all subtasks."""
        return [
            split
            for part in self._parts(uid)
            for table in part.tables_of(TableKind.SPLITS)
            for split in self._read(table, splits_of_table)
        ]

    def time_plane(self, uid: str) -> CheckpointTable:
        """Return the positions in the splits of a replay's log; a ConfigurationError if it generates no watermarks."""
        tables = [table for part in self._parts(uid) for table in part.tables_of(TableKind.TIME_PLANE)]
        if len(tables) != 1:
            raise ConfigurationError(
                f"the operator {uid!r} of the checkpoint {self.storage.path} makes no watermarks: give operators the "
                "uids they had"
            )
        return self._read(tables[0], lambda table: table)

    def waiting_rows(self, uid: str) -> list[TableFile]:
        """Return the tables of events that wait for paused splits of a replay's log, in their order."""
        return [table for part in self._parts(uid) for table in part.tables_of(TableKind.WAITING_ROWS)]

    def parallelism(self, uid: str) -> int:
        """Return how many subtasks an operator had."""
        return len(self._parts(uid))

    def watermarks_ms(self, uid: str) -> list[int]:
        """Return the watermarks of an operator's subtasks in ms since the epoch."""
        return [part.watermark_ms for part in self._parts(uid)]

    def watermark_ms(self, uid: str, subtask: int = 0, parallelism: int = 0) -> int:
        """Return the watermark of an operator in ms since the epoch.

        Parameters
        ----------
        uid : str
        subtask, parallelism : int
            Index of a subtask, and the number of subtasks after the restore. If there were as many, its own watermark;
            else, as by default, the least of all.
        """
        watermarks_ms = self.watermarks_ms(uid)
        return watermarks_ms[subtask] if len(watermarks_ms) == parallelism else min(watermarks_ms)

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
            relations=dict(read(TableKind.RELATION, lambda found: found)),
        )

    def _read(
        self,
        entry: TableFile,
        of_table: Callable[[CheckpointTable], T],
        key_groups: tuple[int, int] | None = None,
        own: tuple[int, int] | None = None,
    ) -> T:
        """Return the content of a table, whose rows must be of `key_groups`; if `own` is given, its rows only."""
        table = read_table(self.storage, entry)
        with refused_as(f"{self.storage.path}/{entry.file} ({entry})"):
            if key_groups is not None:
                table.check_key_groups(*key_groups)
            return of_table(table if own is None else table.of_key_groups(*own))

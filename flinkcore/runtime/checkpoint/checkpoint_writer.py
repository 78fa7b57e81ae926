"""Writes what the subtasks in one task hold into a checkpoint that is not complete yet."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from flinkcore.errors import DataError
from flinkcore.runtime.checkpoint.checkpoint_manifest import OperatorPart, table_file_name
from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable, TableKind
from flinkcore.runtime.checkpoint.keyed_state_table import keyed_state_to_table
from flinkcore.runtime.checkpoint.operator_snapshot import OperatorSnapshot
from flinkcore.runtime.checkpoint.operator_state_table import operator_state_to_table
from flinkcore.runtime.checkpoint.splits_table import splits_to_table
from flinkcore.runtime.checkpoint.table_file import TableFile, write_table
from flinkcore.runtime.checkpoint.timers_table import timers_to_table
from flinkcore.runtime.checkpoint.value_encoding import EqualValuesOnce


class CheckpointWriter:
    """Writes the parts of one attempt of a task, whose files have names of their own.

    Parameters
    ----------
    storage : CheckpointStorage
    folder : str
        For the files; it is there.
    max_parallelism : int
    """

    def __init__(self, storage: CheckpointStorage, folder: str, max_parallelism: int) -> None:
        self._storage = storage
        self._folder = folder
        self._max_parallelism = max_parallelism

    def write(self, uid: str, subtask: int, snapshot: OperatorSnapshot) -> OperatorPart:
        """Write what a subtask of an operator holds; to be called before the user's code runs again.

        Parameters
        ----------
        uid : str
            Of the operator, which finds its state again by it.
        subtask : int
            From 0 on.
        snapshot : OperatorSnapshot

        Returns
        -------
        OperatorPart
            For ``PendingCheckpoint.commit``.

        Raises
        ------
        SchemaError
            If a column cannot hold a value, which then names its state.
        DataError
            If a key group is outside of the subtask's.
        CheckpointError
            If a file cannot be written. What was written before is removed after any error.
        """
        attempt = uuid.uuid4().hex
        written: list[str] = []
        tables: list[TableFile] = []
        try:
            for kind, name, table in self._tables(uid, snapshot):
                written.append(f"{self._folder}/{table_file_name(subtask, len(written), attempt)}")
                with self._storage.writing(written[-1]):
                    tables.append(write_table(self._storage, written[-1], kind, name, table))
        except BaseException:
            for file in written:
                with suppress(OSError):
                    self._storage.delete_file(file)
            raise
        return OperatorPart(uid, subtask, snapshot.key_group_range, snapshot.watermark_ms, tuple(tables))

    def _tables(
        self, uid: str, snapshot: OperatorSnapshot
    ) -> Iterator[tuple[TableKind, str, CheckpointTable]]:
        encode_keys = EqualValuesOnce().encode
        for name, timers in snapshot.timers.items():
            for domain in (timers.event_time_timers, timers.processing_time_timers):
                self._refuse_others(uid, f"timers {name!r}", domain.key_groups, snapshot.key_group_range)
            yield TableKind.TIMERS, name, timers_to_table(name, timers, encode_keys)
        for name, state in snapshot.keyed_state.items():
            self._refuse_others(uid, f"state {name!r}", state.key_groups, snapshot.key_group_range)
            yield TableKind.KEYED_STATE, name, keyed_state_to_table(name, state, encode_keys)
        for name, operator_state in snapshot.operator_state.items():
            yield TableKind.OPERATOR_STATE, name, operator_state_to_table(name, operator_state)
        if snapshot.splits:
            yield TableKind.SPLITS, "", splits_to_table(snapshot.splits)
        if snapshot.time_plane is not None:
            yield TableKind.TIME_PLANE, "", snapshot.time_plane
        for windows in snapshot.windows:
            groups = windows.numbers("key_group", pa.int32())
            self._refuse_others(uid, "windows", groups, snapshot.key_group_range)
            yield TableKind.WINDOWS, "", windows

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

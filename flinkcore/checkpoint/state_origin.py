"""Origins of the state that operators are restored from: a checkpoint of flinkcore, or a savepoint of Flink."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from flinkcore._internal.io.stores import Stores
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.datastream.graph.pipeline_executor import RestoreFrom, SavepointStart
from flinkcore.operators.state import OperatorStateSnapshot

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_METADATA: Final = "_metadata"


class DealtState(Protocol):
    """State of an operator whose keys have other key groups in a savepoint than in the job; picklable."""

    @property
    def n_key_groups(self) -> int:
        """Number of key groups of the savepoint."""

    def deal(self, key_groups: range) -> Iterator[tuple[str, pa.RecordBatch, npt.NDArray[np.int32] | None]]:
        """Yield the entries of some key groups of the savepoint, and read no others.

        Returns
        -------
        iterator of (str, pyarrow.RecordBatch, numpy.ndarray of int32 or None)
            Name of the state, entries, and their key groups in the job; None if every task needs them.
        """

    def received(self, entries: Mapping[str, Sequence[pa.RecordBatch]]) -> StateOrigin:
        """Return the state as a task has it that has received the entries of its key groups, by state."""


class StateOrigin(Protocol):
    """State of the operators of a job; picklable, and read by tasks."""

    @property
    def path(self) -> str:
        """Its directory, for messages."""

    def was_replaced(self) -> bool:
        """Return whether its directory has another state since it was opened."""

    def restore(
        self, uid: str, key_group_range: tuple[int, int], max_parallelism: int
    ) -> list[OperatorSnapshot]:
        """Return the timers, keyed state and windows of an operator in a range of key groups, both ends included."""

    def dealt(self, uid: str) -> DealtState | None:
        """Return the state of an operator if it has to be dealt out, or None if tasks find their key groups in it."""

    def operator_states(self, uid: str, parallelism: int) -> list[dict[str, OperatorStateSnapshot]]:
        """Return the operator states of an operator, redistributed to its subtasks."""

    def watermark_ms(self, uid: str, subtask: int = 0, parallelism: int = 0) -> int:
        """Return the watermark of an operator, or of a subtask of it, in ms since the epoch."""


@dataclass(frozen=True)
class JobOperator:
    """An operator of a job that begins with a savepoint of Flink; picklable.

    Attributes
    ----------
    uid : str
    tables : tuple of TableKind
        Kinds of state that it has.
    max_parallelism : int
        Number of key groups.
    key_fields : tuple of pyarrow.Field or None
        Columns that make up its key, or None if it has single elements.
    key_groups_of : callable or None
        Returns the key groups of keys that are Python objects; for single elements.
    row_names : tuple of tuple of str
        Names of the columns of its rows, by input; empty for single elements.
    windows : object
        Windows over columns as a `flinkcore.columnar.operator_plans.window_contents.WindowTable`, or None without any.
    aggregates : object
        Aggregates of all rows of a key as an `AggregateContents` of the same folder, or None without any.
    keeps_frame_rows : bool
        Whether it keeps the rows in bounded frames beside their aggregates.
    flink_state : str or None
        Text of a `flinkcore.sql.plan.flink_state.FlinkState`, if it is an operator of a compiled plan.
    """

    uid: str
    tables: tuple[TableKind, ...]
    max_parallelism: int
    key_fields: tuple[pa.Field, ...] | None = None
    key_groups_of: Callable[[Sequence[Any]], npt.NDArray[np.int32]] | None = None
    row_names: tuple[tuple[str, ...], ...] = ()
    windows: Any = None
    aggregates: Any = None
    keeps_frame_rows: bool = False
    flink_state: str | None = None


def is_savepoint(path: str | os.PathLike[str], stores: Stores) -> bool:
    """Return whether a directory has a savepoint or checkpoint of Flink, which may be named by its metadata."""
    folder = os.fspath(path).removesuffix(f"/{_METADATA}")
    return bool(folder) and _METADATA in CheckpointDirectory.at(folder, stores).names()


def savepoint_start(restore_from: RestoreFrom, stores: Stores) -> SavepointStart | None:
    """Return the savepoint of Flink from which a job is restored, or None if it is a checkpoint.

    Parameters
    ----------
    restore_from : path or SavepointStart
        A path is that of a savepoint if it has a file ``_metadata``.
    stores : Stores
        Settings of stores.
    """
    if not isinstance(restore_from, str | os.PathLike):
        return restore_from
    if not is_savepoint(restore_from, stores):
        return None
    path = os.fspath(restore_from).removesuffix(f"/{_METADATA}")
    # By its name, so that jobs without savepoints do not import what reads them.
    return cast("SavepointStart", import_module("flinkcore.savepoints").SavepointSource(path))

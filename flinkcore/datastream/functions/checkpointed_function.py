"""Functions with state of their own, which a checkpoint asks them for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkcore.datastream.state import OperatorStateStore


@dataclass(frozen=True)
class FunctionSnapshotContext:
    """Context of a checkpoint that asks a function for its state.

    Parameters
    ----------
    checkpoint_id : int
        Id of the checkpoint; a job takes one when it stops.

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.FunctionSnapshotContext``.
    """

    checkpoint_id: int

    def get_checkpoint_id(self) -> int:
        """Return the id of the checkpoint."""
        return self.checkpoint_id


@dataclass(frozen=True)
class FunctionInitializationContext:
    """Context from which a function gets its states before it is opened.

    Parameters
    ----------
    restored : bool
    store : OperatorStateStore

    Notes
    -----
    Flink's ``org.apache.flink.runtime.state.FunctionInitializationContext``.
    """

    restored: bool
    store: OperatorStateStore

    def is_restored(self) -> bool:
        """Return whether the job resumes from a checkpoint, so that states have the values of that time."""
        return self.restored

    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store that returns states by their descriptors."""
        return self.store


class CheckpointedFunction(ABC):
    """Source function that saves its position in checkpoints, and resumes from there.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.checkpoint.CheckpointedFunction``. Deliberate difference: of source
    functions only; state of other functions is that of their keys, or broadcast.

    Examples
    --------
    >>> class Lines(SourceFunction, CheckpointedFunction):
    ...     def __init__(self, path):
    ...         self.path, self.offset = path, 0
    ...
    ...     def initialize_state(self, context):
    ...         store = context.get_operator_state_store()
    ...         self.offsets = store.get_list_state(ListStateDescriptor("offset", Types.LONG()))
    ...         for offset in self.offsets.get():
    ...             self.offset = offset
    ...
    ...     def run(self, ctx):
    ...         with open(self.path) as file:
    ...             file.seek(self.offset)
    ...             while line := file.readline():
    ...                 ctx.collect(line)
    ...             self.offset = file.tell()
    ...
    ...     def cancel(self): ...
    ...
    ...     def snapshot_state(self, context):
    ...         self.offsets.update([self.offset])
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Update the states, which then go into the checkpoint, to all that the function has emitted so far."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Get the states from the store of the context; called before `open`, in each run of the job."""

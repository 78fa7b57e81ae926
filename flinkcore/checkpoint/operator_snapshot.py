"""The snapshot of one subtask of an operator for a checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.operators.state import KeyedStateSnapshot, OperatorStateSnapshot
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot


@dataclass(frozen=True, slots=True)
class SplitPosition:
    """The position of a source in one of its splits.

    Parameters
    ----------
    split : object
        Identifies the split, such as its id, or the value of the split column.
    position : object
        The place to read on from, such as the number of records read.
    state : object
        Further state of the split, such as that of its watermark generator.

    Notes
    -----
    All three are values that a column can hold (see ``flinkcore.common.serializer.Serializer``).
    """

    split: Any
    position: Any
    state: Any = None


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """The state of one subtask of an operator.

    Parameters
    ----------
    key_group_range : (int, int), optional
        First and last key group of the subtask, inclusive; None for an operator without keys.
    watermark_ms : int
        The operator's watermark in ms since the epoch; -2**63 before the first.
    timers : mapping of str to InternalTimersSnapshot
        By name of the timer service.
    keyed_state : mapping of str to KeyedStateSnapshot
        By name of the state.
    operator_state : mapping of str to OperatorStateSnapshot
        By name of the state, including broadcast states.
    splits : sequence of SplitPosition
        Splits of a source.
    time_plane : CheckpointTable, optional
        Positions in the splits of a replay's log, and their watermark generators.
    windows : sequence of CheckpointTable
        The live windows of a native operator, with their key groups.
    relations : mapping of str to CheckpointTable
        Rows and timers of a relational operator with their keys and key groups, by name of the table.
    """

    key_group_range: tuple[int, int] | None = None
    watermark_ms: int = MIN_TIMESTAMP
    timers: Mapping[str, InternalTimersSnapshot] = field(default_factory=dict)
    keyed_state: Mapping[str, KeyedStateSnapshot] = field(default_factory=dict)
    operator_state: Mapping[str, OperatorStateSnapshot] = field(default_factory=dict)
    splits: Sequence[SplitPosition] = ()
    time_plane: CheckpointTable | None = None
    windows: Sequence[CheckpointTable] = ()
    relations: Mapping[str, CheckpointTable] = field(default_factory=dict)

"""What a function over batches is opened with."""

from __future__ import annotations

from typing import Any, NoReturn

from flinkcore.datastream.state import ColumnState, StateDescriptor
from flinkcore.errors import ConfigurationError
from flinkcore.replay.batch_functions.column_states import ColumnStates
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo


class ColumnRuntimeContext(StreamingRuntimeContext):
    """The task, and columns by dense key id in place of states of a current key.

    Parameters
    ----------
    task : TaskInfo
    states : ColumnStates
    """

    def __init__(self, task: TaskInfo, states: ColumnStates) -> None:
        super().__init__(task)
        self._states = states

    def get_column_state(self, name: str, dtype: Any, default: Any = 0) -> ColumnState:
        """Return the column of this name."""
        return self._states.add(name, dtype, default)

    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> NoReturn:
        raise ConfigurationError(
            f"the state {descriptor.name!r}: a function over batches has no current key; take a column with a value "
            "per key, get_column_state(name, dtype, default)"
        )

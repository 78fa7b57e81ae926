"""State of windows that merge: there is none."""

from typing import Any

from flinkcore.datastream.state import StateDescriptor
from flinkcore.errors import UnsupportedOperationError
from flinkcore.runtime.state import DefaultKeyedStateStore


class MergingWindowStateStore(DefaultKeyedStateStore):
    """Refuses every state.

    Notes
    -----
    Flink's ``WindowOperator.MergingWindowStateStore``.
    """

    def _state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        raise UnsupportedOperationError(
            f"the per-window state {descriptor.name!r} is not possible with windows that merge; use global_state()"
        )

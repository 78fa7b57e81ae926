"""What an operator of a process function needs around it."""

from typing import Any

from models.recorders import OutputRecorder

from flinkcore.datastream.functions import KeyedProcessFunction, RuntimeContext
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import KeyedProcessOperator
from flinkcore.runtime.processing_time import DrivenProcessingTimeService
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo


class Surroundings:
    """A clock, an output that records, and state."""

    def __init__(self, key_groups: tuple[int, int] | None = None) -> None:
        self.clock = DrivenProcessingTimeService(0)
        self.output = OutputRecorder()
        self.key_context = KeyContext(128, key_groups)
        self.keyed_state = KeyedStateBackend(self.key_context, self.clock)
        self.operator_state = OperatorStateBackend()

    @property
    def runtime_context(self) -> RuntimeContext:
        return StreamingRuntimeContext(TaskInfo("task"), DefaultKeyedStateStore(self.keyed_state))

    def keyed(self, function: KeyedProcessFunction, key_selector: Any = None) -> KeyedProcessOperator:
        """Return an operator, not open, of elements that are pairs of a key and a value, or otherwise keyed."""
        return KeyedProcessOperator(
            function,
            key_selector or (lambda element: element[0]),
            self.output,
            self.keyed_state,
            self.clock,
        )

    def opened(self, function: KeyedProcessFunction, key_selector: Any = None) -> KeyedProcessOperator:
        operator = self.keyed(function, key_selector)
        operator.open(self.runtime_context)
        return operator


def record(key: Any, value: Any, timestamp: int | None = None) -> StreamRecord[Any]:
    return StreamRecord((key, value), timestamp)

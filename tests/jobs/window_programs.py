"""Functions over windows, and operations with them, for tests."""

from collections.abc import Callable, Iterable
from typing import Any

from equipment.recorders import OutputRecorder

from flinkcore.common import OutputTag
from flinkcore.datastream.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowContext,
)
from flinkcore.datastream.window import (
    TumblingEventTimeWindows,
    WindowAssigner,
    WindowOperation,
)
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.windowing import WindowOperator, make_window_operator

TEN = TumblingEventTimeWindows(10)
SIDE = OutputTag("side")


class Surroundings:
    """A clock, an output that records, and state."""

    def __init__(self) -> None:
        self.clock = DrivenProcessingTimeService(0)
        self.output = OutputRecorder()
        self.keyed_state = KeyedStateBackend(KeyContext(), self.clock)
        self.runtime_context = StreamingRuntimeContext(
            TaskInfo("task"), DefaultKeyedStateStore(self.keyed_state)
        )

    def windows(self, operation: WindowOperation) -> WindowOperator:
        """Return an open operator of elements that are pairs of a key and a value."""
        operator = make_window_operator(
            operation, lambda element: element[0], self.output, self.keyed_state, self.clock
        )
        operator.open(self.runtime_context)
        return operator


def record(key: Any, value: Any, timestamp: int | None = None) -> StreamRecord[Any]:
    return StreamRecord((key, value), timestamp)


class Elements(ProcessWindowFunction[Any, Any, Any, Any]):
    """Gives the window and the values in it."""

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        yield key, context.window(), [value for _, value in elements]


class Given(ProcessWindowFunction[Any, Any, Any, Any]):
    """Runs a function given by a test."""

    def __init__(self, body: Callable[[WindowContext[Any], list[Any]], Any]) -> None:
        self.body = body

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        return self.body(context, list(elements))


class Sum(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def windows_of(assigner: WindowAssigner[Any, Any], **settings: Any) -> WindowOperation:
    functions = (
        {"window_function": Elements()}
        if not settings.keys() & {"pre_aggregation", "window_function"}
        else {}
    )
    return WindowOperation(
        assigner, **{"trigger": assigner.get_default_trigger(None), **functions, **settings}
    )


def values(around: Surroundings) -> list[Any]:
    return [value for kind, _, value in (entry[:3] for entry in around.output.take() if entry[0] == "record")]

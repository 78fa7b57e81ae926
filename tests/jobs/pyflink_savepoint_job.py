"""The program whose savepoints PyFlink has left, `pyflink_*`: its types, states and windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import flinkcore as fc
from flinkcore.common import Types
from flinkcore.common.timestamp_assigner import TimestampAssigner
from flinkcore.datastream.functions import AggregateFunction, KeyedProcessFunction, ProcessWindowFunction
from flinkcore.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

CASES = Path(__file__).parents[1] / "golden" / "savepoints" / "cases"
RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        timestamp: int = value[2]
        return timestamp


class CountSum(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[1] / accumulator[0]

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


DESCRIPTORS: list[StateDescriptor] = [
    ValueStateDescriptor("count", Types.LONG()),
    ValueStateDescriptor("pickled", Types.PICKLED_BYTE_ARRAY()),
    ListStateDescriptor("seen", Types.STRING()),
    MapStateDescriptor("sums", Types.STRING(), Types.LONG()),
    ReducingStateDescriptor("max", lambda a, b: max(a, b), Types.LONG()),
    AggregatingStateDescriptor("avg", CountSum(), Types.TUPLE([Types.LONG(), Types.LONG()])),
]


class WithAllKinds(KeyedProcessFunction):
    """Base of functions with a state of each kind."""

    def open(self, runtime_context: Any) -> None:
        count, pickled, seen, sums, most, average = DESCRIPTORS
        self.count = runtime_context.get_state(count)
        self.pickled = runtime_context.get_state(pickled)
        self.seen = runtime_context.get_list_state(seen)
        self.sums = runtime_context.get_map_state(sums)
        self.max = runtime_context.get_reducing_state(most)
        self.avg = runtime_context.get_aggregating_state(average)


class Listing(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield str(list(elements))


def add(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1], max(a[2], b[2])


def environment() -> fc.StreamExecutionEnvironment:
    env = fc.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_max_parallelism(128)
    return env


def timed(env: fc.StreamExecutionEnvironment, records: Sequence[tuple[str, int, int]]) -> Any:
    """Records of user, number and time as a stream with watermarks."""
    strategy = fc.WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    return env.from_collection(list(records), RECORD).assign_timestamps_and_watermarks(strategy)

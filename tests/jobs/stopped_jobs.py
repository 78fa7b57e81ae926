"""Jobs on the system clock that are stopped amid their sources, and go on behind what these have emitted.

They give the same in each run: timestamps ascend, and what comes out is ordered.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flinkcore.common import Time, TimestampAssigner, Types, WatermarkStrategy
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    ParallelSourceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.state import ListStateDescriptor, ValueStateDescriptor

HALF, WHOLE = 20, 40


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


ASCENDING = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())


@dataclass(frozen=True)
class ListSplit(SourceSplit):
    """Numbers of a list."""

    split_id: str
    numbers: tuple[int, ...]

    def elements(self) -> Iterator[int]:
        return iter(self.numbers)


@dataclass(frozen=True)
class ListSource(Source):
    """The numbers up to one, in three splits."""

    stop: int

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[ListSplit]:
        return [ListSplit(f"split {first}", tuple(range(first, self.stop, 3))) for first in range(3)]


class Numbers(ParallelSourceFunction, CheckpointedFunction):
    """Emits the numbers of each subtask that it has not emitted yet."""

    def __init__(self, stop: int) -> None:
        self.stop = stop
        self.next = -1

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.subtasks = runtime_context.get_number_of_parallel_subtasks()

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("next"))
        for number in self.state.get():
            self.next = number

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.next])

    def run(self, ctx: Any) -> None:
        if self.next < 0:
            self.next = self.subtask
        while self.next < self.stop:
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp(self.next, self.next)
                self.next += self.subtasks

    def cancel(self) -> None:
        """It ends by itself."""


class Reminded(KeyedProcessFunction):
    """Gives how many numbers of a key there were, and when timers for each of them fire."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(value + 7)
        yield f"{value} is the {count}."

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield f"timer of {ctx.get_current_key()} at {timestamp}"


def _windows(numbers: DataStream) -> DataStream:
    timed = numbers.assign_timestamps_and_watermarks(ASCENDING)
    windows = timed.key_by(lambda number: number % 2).window(
        TumblingEventTimeWindows.of(Time.milliseconds(9))
    )
    return windows.reduce(lambda left, right: left + right).map(str)


def _timers(numbers: DataStream) -> DataStream:
    return numbers.key_by(lambda number: number % 3).process(Reminded())


STOPPED_JOBS: dict[str, Callable[[StreamExecutionEnvironment, int], DataStream]] = {
    "stopped_collection": lambda env, stop: _windows(env.from_collection(list(range(stop)), Types.LONG())),
    "stopped_splits": lambda env, stop: _timers(
        env.from_source(ListSource(stop), ASCENDING, "splits", Types.LONG())
    ),
    "stopped_function": lambda env, stop: _timers(env.add_source(Numbers(stop), type_info=Types.LONG())),
}


def run_stopped(name: str, half: int, **checkpoints: Any) -> dict[str, Any]:
    """What comes of a job over half of the numbers, or over all."""
    env = StreamExecutionEnvironment().set_parallelism(2).set_clock("system")
    results = STOPPED_JOBS[name](env, WHOLE if half else HALF).execute_and_collect(**checkpoints)
    return {"": sorted(map(str, results))}

"""Functions that give results without end, in every place: a replay takes them as they come."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from jobs.window_programs import Count

from flinkcore.columnar.batch_functions import batch_process_outputs
from flinkcore.columnar.local.partition_threads import RESULTS_AHEAD
from flinkcore.columnar.stages import process_output, result_batches
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import DataStream, KeyedBatchProcessFunction, StreamExecutionEnvironment
from flinkcore.datastream.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from flinkcore.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkcore.elements import element_run
from flinkcore.errors import UserCodeError

BATCH_ROWS = 100
NUMBERS = pa.schema({"n": pa.int64()})
EVENTS = pa.table({"key": ["a", "a", "a"], "ts": [1, 2, 30], "at": [1, 2, 30]})
TEN = TumblingEventTimeWindows(10)


class Shared:
    """Is the same object in every copy of a function."""

    def __init__(self) -> None:
        self.last = -1

    def __deepcopy__(self, memo: Any) -> "Shared":
        return self

    def numbers(self) -> Iterator[tuple[int]]:
        for self.last in count():
            assert self.last < 200 * BATCH_ROWS, "nobody takes them"
            yield (self.last,)


class WithNumbers:
    def __init__(self, shared: Shared) -> None:
        self.shared = shared


class AtElements(WithNumbers, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield from self.shared.numbers()


class AtEventTime(WithNumbers, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(self.due(value))

    def due(self, value: Any) -> int:
        return value.ts + 5  # type: ignore[no-any-return]

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        for number in self.shared.numbers():
            assert (ctx.timestamp(), ctx.get_current_key()) == (timestamp, "a")
            yield number


class AtTheEnd(AtEventTime):
    def due(self, value: Any) -> int:
        return 1000


class AtProcessingTime(AtEventTime):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(value.ts + 5)


class AtTimersOfTwoStreams(WithNumbers, KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value.ts + 5)

    def process_element2(self, value: Any, ctx: Any) -> None:
        pass

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield from self.shared.numbers()


class OfWindow(WithNumbers, ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for number in self.shared.numbers():
            assert context.window() is not None
            yield number


class OfAll(WithNumbers, ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        yield from self.shared.numbers()


class Apply(WithNumbers, WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return self.shared.numbers()


class ApplyAll(WithNumbers, AllWindowFunction):
    def apply(self, window: Any, inputs: Any) -> Any:
        return self.shared.numbers()


class OfPairs(WithNumbers, ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        for number in self.shared.numbers():
            assert ctx.get_left_timestamp() == left.ts
            yield number


class OfJoin(WithNumbers, FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        yield from self.shared.numbers()


class OfGroups(WithNumbers, CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Any:
        yield from self.shared.numbers()


def log(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return env.from_event_log(EVENTS, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(strategy)


def keyed(env: StreamExecutionEnvironment) -> Any:
    return log(env).key_by("key")


def in_windows_of_two(env: StreamExecutionEnvironment, join: str) -> Any:
    return getattr(log(env), join)(log(env)).where("key").equal_to("key").window(TEN)


PLACES: dict[str, Callable[[StreamExecutionEnvironment, Shared], DataStream]] = {
    "elements": lambda env, shared: keyed(env).process(AtElements(shared), NUMBERS),
    "event-time timers": lambda env, shared: keyed(env).process(AtEventTime(shared), NUMBERS),
    "timers at the end": lambda env, shared: keyed(env).process(AtTheEnd(shared), NUMBERS),
    "processing-time timers": lambda env, shared: keyed(env).process(AtProcessingTime(shared), NUMBERS),
    "timers of two streams": lambda env, shared: (
        keyed(env).connect(keyed(env)).process(AtTimersOfTwoStreams(shared), NUMBERS)
    ),
    "windows": lambda env, shared: keyed(env).window(TEN).process(OfWindow(shared), NUMBERS),
    "windows with lateness": lambda env, shared: (
        keyed(env).window(TEN).allowed_lateness(5).process(OfWindow(shared), NUMBERS)
    ),
    "sliding windows": lambda env, shared: (
        keyed(env).window(SlidingEventTimeWindows(10, 5)).apply(Apply(shared), NUMBERS)
    ),
    "sessions": lambda env, shared: (
        keyed(env).window(EventTimeSessionWindows(5)).process(OfWindow(shared), NUMBERS)
    ),
    "windows of processing time": lambda env, shared: (
        keyed(env).window(TumblingProcessingTimeWindows(10)).process(OfWindow(shared), NUMBERS)
    ),
    "windows that elements fire": lambda env, shared: (
        keyed(env).window(TEN).trigger(CountTrigger.of(2)).process(OfWindow(shared), NUMBERS)
    ),
    "windows with an evictor": lambda env, shared: (
        keyed(env).window(TEN).evictor(CountEvictor.of(1)).process(OfWindow(shared), NUMBERS)
    ),
    "aggregated windows": lambda env, shared: (
        keyed(env).window(TEN).aggregate(Count(), OfWindow(shared), output_type=NUMBERS)
    ),
    "windows of all": lambda env, shared: log(env).window_all(TEN).process(OfAll(shared), NUMBERS),
    "apply of all": lambda env, shared: log(env).window_all(TEN).apply(ApplyAll(shared), NUMBERS),
    "interval joins": lambda env, shared: (
        keyed(env).interval_join(keyed(env)).between(-1, 1).process(OfPairs(shared), NUMBERS)
    ),
    "window joins": lambda env, shared: in_windows_of_two(env, "join").apply(OfJoin(shared), NUMBERS),
    "co-groups": lambda env, shared: in_windows_of_two(env, "co_group").apply(OfGroups(shared), NUMBERS),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("parallelism", "batches_ahead"), [(1, 1), (2, RESULTS_AHEAD + 1)])
def test_results_without_end_are_taken_as_they_come(place: str, parallelism: int, batches_ahead: int) -> None:
    shared = Shared()
    stream = PLACES[place](StreamExecutionEnvironment().set_parallelism(parallelism), shared)
    found: list[int] = []
    with patch.object(result_batches, "BATCH_ROWS", BATCH_ROWS):
        batches = stream.to_batches()
        while len(found) < 10 * BATCH_ROWS:
            found += next(batches)["n"].to_pylist()
            assert shared.last <= len(found) + batches_ahead * BATCH_ROWS
        batches.close()
    assert found == list(range(len(found)))


class PassOn(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield (value.n,)


@pytest.mark.parametrize("place", PLACES)
def test_a_call_without_end_whose_results_another_operator_takes_is_an_error(place: str) -> None:
    stream: Any = PLACES[place](StreamExecutionEnvironment().set_parallelism(1), Shared())
    with (
        patch.object(result_batches, "BATCH_ROWS", BATCH_ROWS),
        patch.object(process_output, "CALL_BYTES", 20 * BATCH_ROWS * 80),
        pytest.raises(
            UserCodeError, match=r"gave more than \d+ MiB in one call, for .*: results that another"
        ),
    ):
        stream.key_by("n").process(PassOn(), NUMBERS).to_arrow()


def test_many_calls_may_give_more_than_one_whose_results_another_operator_takes() -> None:
    class Ten(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield from ((value.n,) for _ in range(10))

    env = StreamExecutionEnvironment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    events = pa.table({"n": range(1000), "at": [1] * 1000})
    stream: Any = env.from_event_log(events, timestamp="at", arrival="at").assign_timestamps_and_watermarks(
        strategy
    )
    with (
        patch.object(result_batches, "BATCH_ROWS", 3),
        patch.object(process_output, "CALL_BYTES", 20 * 80),
    ):
        results = (
            stream.key_by("at").process(Ten(), NUMBERS).key_by("n").process(PassOn(), NUMBERS).to_arrow()
        )
    assert results.num_rows == 10_000


def test_a_call_without_end_over_batches_is_an_error() -> None:
    class Endless(KeyedBatchProcessFunction):
        def process_batch(self, elements: Any, ctx: Any) -> Any:
            while True:
                yield {"n": [1, 2, 3]}

    job = keyed(StreamExecutionEnvironment().set_parallelism(1)).process(Endless(), NUMBERS)
    with (
        patch.object(batch_process_outputs, "CALL_BYTES", 1 << 20),
        pytest.raises(
            UserCodeError, match=r"Endless\.process_batch failed at .*one call gave more than 1 MiB"
        ),
    ):
        job.to_arrow()


class Same(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class EachTwice(FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return [value, value]


class Endless(WithNumbers, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        return (number for (number,) in self.shared.numbers())


class EndlessOfAll(WithNumbers, ProcessAllWindowFunction):
    def process(self, context: Any, elements: Any) -> Any:
        return (number for (number,) in self.shared.numbers())


class EndlessAtTimer(WithNumbers, KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(0)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        return (number for (number,) in self.shared.numbers())


ELEMENT_PLACES: dict[str, Callable[[DataStream, Shared], DataStream]] = {
    "flat_map": lambda stream, shared: stream.flat_map(Endless(shared)),
    "before others": lambda stream, shared: (
        stream.flat_map(Endless(shared)).map(Same()).key_by(lambda value: value).map(Same())
    ),
    "before other tasks": lambda stream, shared: (
        stream.flat_map(Endless(shared)).rebalance().map(Same()).set_parallelism(2)
    ),
    "timers": lambda stream, shared: stream.key_by(lambda value: value).process(EndlessAtTimer(shared)),
    "windows": lambda stream, shared: stream.count_window_all(3).process(EndlessOfAll(shared)),
}


@pytest.mark.parametrize("place", ELEMENT_PLACES)
def test_elements_without_end_are_collected_as_they_come(place: str) -> None:
    shared = Shared()
    stream = ELEMENT_PLACES[place](StreamExecutionEnvironment().from_collection([1, 2, 3]), shared)
    with patch.object(element_run, "MOST_COLLECTED", 50), stream.execute_and_collect() as elements:
        for number in range(500):
            assert next(elements) == number
            assert shared.last < number + 50
    assert shared.last < 550


def test_some_of_elements_without_end_are_collected() -> None:
    stream = (
        StreamExecutionEnvironment().from_collection([1]).flat_map(Endless(Shared())).flat_map(EachTwice())
    )
    assert stream.execute_and_collect(limit=5) == [0, 0, 1, 1, 2]

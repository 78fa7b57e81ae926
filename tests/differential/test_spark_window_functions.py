"""Functions over windows in tasks of Spark give the rows that they give embedded."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.rows_by_key import rows_by_key
from jobs.random_logs import in_files, random_log

pytest.importorskip("pyspark")

from flinkcore.common import Duration, OutputTag, Row, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.aggregates import collect, count, count_distinct, last, sum_
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
)
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
)
from flinkcore.errors import UserCodeError

LATE = OutputTag("late")
SIDE = OutputTag("side", pa.schema({"user": pa.string(), "firing": pa.int64()}))
RESULT = pa.schema({"user": pa.string(), "start": pa.int64(), "n": pa.int64(), "rows": pa.list_(pa.int64())})


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_files(random_log(11, 2000, latest_ms=200, users=30), tmp_path_factory.mktemp("log"))


def firings() -> ProcessWindowFunction[Row, Any, str, Any]:
    """With state of the key; its class travels by value, as that of a notebook does."""

    class Firings(ProcessWindowFunction[Row, Any, str, Any]):
        def process(self, key: str, context: WindowContext[Any], elements: Iterable[Row]) -> Iterator[Any]:
            state = context.global_state().get_state(ValueStateDescriptor("firings"))
            state.update((state.value() or 0) + 1)
            rows = [element.row for element in elements]
            yield key, getattr(context.window(), "start", None), state.value(), rows
            if state.value() % 3 == 0:
                yield SIDE, (key, state.value())

    return Firings()


def counter(failing: bool = False) -> AggregateFunction[Row, int, int]:
    class Count(AggregateFunction[Row, int, int]):
        def create_accumulator(self) -> int:
            return 0

        def add(self, value: Row, accumulator: int) -> int:
            return accumulator + 1

        def get_result(self, accumulator: int) -> int:
            if failing:
                raise ValueError("unlucky")
            return accumulator

        def merge(self, acc_a: int, acc_b: int) -> int:
            return acc_a + acc_b

    return Count()


def of_elements() -> AllWindowFunction[Row, Any, Any]:
    class OfAll(AllWindowFunction[Row, Any, Any]):
        def apply(self, window: Any, inputs: Iterable[Row]) -> Any:
            rows = [element.row for element in inputs]
            return [("", window.start, len(rows), rows)]

    return OfAll()


def stream(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    env.get_config().set_auto_watermark_interval(10)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
    return env.from_event_log(
        str(log), timestamp="ts", integer_times=True, arrival="at", split="part"
    ).assign_timestamps_and_watermarks(strategy)


def tumbling(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(TumblingEventTimeWindows(50)).allowed_lateness(30)
    return windows.side_output_late_data(LATE).process(firings(), RESULT, side_outputs=[SIDE])


def sessions(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(EventTimeSessionWindows(40))
    return windows.side_output_late_data(LATE).process(firings(), RESULT, side_outputs=[SIDE])


def last_three(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    return windows.evictor(CountEvictor.of(3)).process(firings(), RESULT, side_outputs=[SIDE])


def on_the_clock(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(TumblingProcessingTimeWindows(100))
    return windows.process(firings(), RESULT, side_outputs=[SIDE])


def staggered(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = TumblingEventTimeWindows(50, 0, WindowStagger.NATURAL)
    return stream(env, log).key_by("user").window(windows).process(firings(), RESULT)


def counts(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(SlidingEventTimeWindows(60, 20))
    return windows.aggregate(counter(), output_type=pa.schema({"n": pa.int64()}), timestamp_column="end")


def of_all(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).window_all(TumblingEventTimeWindows(50))
    return windows.side_output_late_data(LATE).apply(of_elements(), RESULT)


def columns_of_all(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    return stream(env, log).window_all(TumblingEventTimeWindows(50)).aggregate(n=count())


def columns_of_counts(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").count_window(5, 2)
    return windows.aggregate(n=count(), rows=collect("row"), names=count_distinct("user"))


def columns_of_the_last_three(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    windows = stream(env, log).key_by("user").window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    return windows.evictor(CountEvictor.of(3)).aggregate(rows=collect("row"), last=last("user"))


def columns_of_counts_of_all(env: StreamExecutionEnvironment, log: Path) -> DataStream:
    """They share slices."""
    return stream(env, log).count_window_all(40, 4).aggregate(n=count(), total=sum_("row"))


def rows(found: pa.Table, parallelism: int) -> list[str]:
    if parallelism > 1 and "user" not in found.column_names:
        return sorted(map(repr, found.to_pylist()))
    return rows_by_key(found, ["user"] if parallelism > 1 else [])


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "job",
    [
        tumbling,
        sessions,
        last_three,
        on_the_clock,
        staggered,
        counts,
        of_all,
        columns_of_all,
        columns_of_counts,
        columns_of_the_last_three,
        columns_of_counts_of_all,
    ],
)
def test_rows_late_rows_and_report_are_those_of_an_embedded_replay(
    tasks_here: Callable[[int], Any], log: Path, job: Any, parallelism: int
) -> None:
    embedded = job(StreamExecutionEnvironment().set_parallelism(1), log).execute()
    result = job(tasks_here(parallelism), log).execute()
    assert rows(result.to_arrow(), parallelism) == rows(embedded.to_arrow(), parallelism)
    assert result.to_arrow().schema == embedded.to_arrow().schema
    assert embedded.to_arrow().num_rows > 20
    for tag in job(StreamExecutionEnvironment(), log)._transformation.side_outputs():
        side, expected = (found.get_side_output(tag).to_arrow() for found in (result, embedded))
        assert rows(side, parallelism) == rows(expected, parallelism)
        assert side.schema == expected.schema
        assert expected.num_rows > 2
    assert result.report == embedded.report
    assert str(result.report) == str(embedded.report)


def test_a_failing_window_function_is_told_as_embedded(tasks_here: Callable[[int], Any], log: Path) -> None:
    windows = stream(tasks_here(2), log).key_by("user").window(TumblingEventTimeWindows(50))
    failing = windows.aggregate(counter(failing=True), output_type=pa.schema({"n": pa.int64()}))
    with pytest.raises(
        UserCodeError, match=r"Count.* failed at the window TimeWindow.* of the key 'u.*: unlucky$"
    ):
        failing.to_arrow()

"""Rows of a DataFrame that arrive together are put in order where results depend on it, and not where none does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark")

from fuzz.local_spark import LocalFrame, local_spark_environment, without_jvm

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.columnar.plans.tied_events import without_order_of_ties
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, first, max_, sum_
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.datastream.window import CountTrigger, CumulativeEventTimeWindows, SlidingEventTimeWindows
from flinkcore.spark.logs import spark_log

MS = Time.milliseconds
TUMBLING = TumblingEventTimeWindows.of(MS(50))
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
N = 400

Job = Callable[[KeyedStream], DataStream]


def log(seed: int) -> pa.Table:
    """The same rows in any order, ten of an arrival."""
    at = np.arange(N) // 10
    rows = {"ts": at * 5 - np.arange(N) * 7 % 90, "at": at, "key": np.arange(N) % 3, "v": np.arange(N) % 11}
    table = pa.table(rows | {"x": np.arange(N) / 7})
    return table.take(np.random.default_rng(seed).permutation(N))


def keyed(env: StreamExecutionEnvironment, rows: Any, strategy: WatermarkStrategy = BOUNDED) -> KeyedStream:
    stream = env.from_event_log(rows, timestamp="ts", arrival="at").assign_timestamps_and_watermarks(strategy)
    env.get_config().set_auto_watermark_interval(1)
    return stream.key_by("key")


def orders_ties(job: Job, strategy: WatermarkStrategy = BOUNDED) -> bool:
    env = StreamExecutionEnvironment()
    stream = job(keyed(env, log(0), strategy))
    plan = make_plan(StreamGraph(stream._transformation), env.get_config())
    return without_order_of_ties(plan).logs[0].orders_ties


def sums(windows: Any) -> DataStream:
    stream: DataStream = windows.aggregate(n=count(), total=sum_("v"), top=max_("v"))
    return stream


class First(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return [(value["v"],)]


@pytest.mark.parametrize(
    "window",
    [TUMBLING, SlidingEventTimeWindows.of(MS(50), MS(10)), CumulativeEventTimeWindows.of(MS(50), MS(10))],
)
def test_sums_of_windows_that_fire_once_take_events_in_any_order(window: Any) -> None:
    assert not orders_ties(lambda stream: sums(stream.window(window)))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(lambda stream: sums(stream.window(TUMBLING).allowed_lateness(1)), id="late firings"),
        pytest.param(
            lambda stream: sums(stream.window(TUMBLING).side_output_late_data(OutputTag("late"))),
            id="late rows",
        ),
        pytest.param(
            lambda stream: sums(stream.window(TUMBLING).trigger(CountTrigger.of(2))), id="a trigger"
        ),
        pytest.param(lambda stream: stream.window(TUMBLING).aggregate(head=first("v")), id="first"),
        pytest.param(lambda stream: stream.window(TUMBLING).aggregate(all=collect("v")), id="collect"),
        pytest.param(lambda stream: stream.window(TUMBLING).aggregate(total=sum_("x")), id="sums that round"),
        pytest.param(lambda stream: stream.process(First(), pa.schema({"v": pa.int64()})), id="a function"),
        pytest.param(
            lambda stream: sums(
                sums(stream.window(TUMBLING)).with_columns(v=pc.field("n")).key_by("key").window(TUMBLING)
            ),
            id="two operators",
        ),
    ],
)
def test_what_depends_on_the_order_of_events_gets_them_in_order(job: Job) -> None:
    assert orders_ties(job)


def test_splits_that_wait_for_each_other_are_read_in_order() -> None:
    aligned = BOUNDED.with_watermark_alignment("group", Duration.of_millis(20), Duration.of_millis(5))
    assert orders_ties(lambda stream: sums(stream.window(TUMBLING)), aligned)


@pytest.mark.parametrize("lateness", [0, 100])
def test_the_rows_are_the_same_however_those_of_a_dataframe_lie(lateness: int) -> None:
    def rows(seed: int, partitions: int) -> list[Any]:
        env = local_spark_environment(2)
        windows = keyed(env, LocalFrame.of(log(seed), partitions)).window(TUMBLING).allowed_lateness(lateness)
        with without_jvm():
            found = sums(windows).to_arrow().to_pylist()
        return sorted(found, key=lambda row: (row["key"], row["window_end"], row["watermark"], row["n"]))

    expected = rows(1, 1)
    assert len(expected) > 12
    assert any(row["late_firing"] for row in expected) is bool(lateness)
    for seed, partitions in ((2, 1), (3, 2), (4, 5)):
        assert rows(seed, partitions) == expected


def test_files_are_put_in_the_order_of_a_column_only_where_ties_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_order(job: Job, env: StreamExecutionEnvironment) -> list[str]:
        stream = env.from_event_log(log(1), timestamp="ts", arrival="at", position="x")
        env.get_config().set_auto_watermark_interval(1)
        rows = job(stream.assign_timestamps_and_watermarks(BOUNDED).key_by("key")).to_arrow().to_pylist()
        return sorted(map(str, rows))

    def firsts(stream: KeyedStream) -> DataStream:
        return stream.window(TUMBLING).aggregate(first=first("x"))

    def counts(stream: KeyedStream) -> DataStream:
        return sums(stream.window(TUMBLING))

    ranked: list[Any] = []
    kept_ranks = spark_log.kept_ranks
    monkeypatch.setattr(spark_log, "kept_ranks", lambda *log: [ranked.append(log), kept_ranks(*log)][1])
    with without_jvm():
        for job, expected in ((counts, 0), (firsts, 1)):
            found = in_order(job, local_spark_environment(2))
            assert found == in_order(job, StreamExecutionEnvironment())
            assert len(ranked) == expected

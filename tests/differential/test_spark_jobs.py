"""Jobs of several logs and operators give on Spark the rows that they give embedded, also where a task dies."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.sampling import sampled
from equipment.spark_sessions import dataframe_of
from equipment.unordered_rows import UnorderedRows
from jobs.random_logs import in_files, random_log

pytest.importorskip("pyspark")

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, sum_
from flinkcore.datastream.functions import CoGroupFunction, ProcessJoinFunction
from flinkcore.datastream.state import MapStateDescriptor, ValueStateDescriptor
from flinkcore.spark import SparkExecutionEnvironment

pytestmark = pytest.mark.spark_session("local[2,4]")  # a task may fail three times

SIDE = OutputTag("side", pa.schema({"user": pa.string(), "row": pa.int64()}))
LATE = OutputTag("late")
BAD = OutputTag("bad"), OutputTag("bad, too")
RULES: MapStateDescriptor[str, int] = MapStateDescriptor("rules")
SEEN = pa.schema(
    {
        "user": pa.string(),
        "what": pa.string(),
        "number": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
        "held": pa.int64(),
    }
)


def log_with_a_null(seed: int, n: int) -> pa.Table:
    log = random_log(seed, n)
    times = log["ts"].to_pylist()
    return log.set_column(0, "ts", [pa.array([*times[:70], None, *times[71:]], pa.int64())])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """Files, and another log in memory that ends earlier."""
    return in_files(log_with_a_null(7, 3000), tmp_path_factory.mktemp("log")), log_with_a_null(8, 400)


def streams(env: StreamExecutionEnvironment, logs: tuple[Path, Any]) -> tuple[DataStream, DataStream]:
    env.get_config().set_auto_watermark_interval(20)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    first, second = (
        env.from_event_log(
            log, timestamp="ts", integer_times=True, arrival="at", split="part", on_bad_row=bad
        )
        for log, bad in zip(logs, BAD, strict=True)
    )
    return (
        first.filter(pc.field("row") != 77).assign_timestamps_and_watermarks(strategy),
        second.assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_millis(100))),
    )


def connected(marker: str | None = None) -> Callable[[DataStream, DataStream], DataStream]:
    """Both streams keyed; the function's class travels by value, as that of a notebook does."""

    class Both(KeyedCoProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_state(ValueStateDescriptor("held"))

        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            if marker is not None and value.row == 1500:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os._exit(9)
                except FileExistsError:
                    pass
            timers = ctx.timer_service()
            timers.register_event_time_timer(value.ts + 40)
            if value.row % 5 == 0:
                timers.register_processing_time_timer(timers.current_processing_time() + 25)
                yield SIDE, {"user": value.user, "row": value.row}

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.held.update((self.held.value() or 0) + value.row)
            yield self._seen("element", value.row, ctx)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield self._seen(ctx.time_domain().name, timestamp, ctx)

        def _seen(self, what: str, number: int, ctx: Any) -> tuple[Any, ...]:
            timers = ctx.timer_service()
            times = timers.current_watermark(), timers.current_processing_time()
            return ctx.get_current_key(), what, number, *times, self.held.value()

    def job(first: DataStream, second: DataStream) -> DataStream:
        renamed = second.select("row", who=pc.field("user"))
        return first.connect(renamed).key_by("user", "who").process(Both(), SEEN, side_outputs=[SIDE])

    return job


def broadcast(first: DataStream, second: DataStream) -> DataStream:
    class Rules(KeyedBroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            known = ctx.get_broadcast_state(RULES).get(value.user)
            times = ctx.current_watermark(), ctx.current_processing_time()
            yield value.user, "element", value.row, *times, known

        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.get_broadcast_state(RULES).put(value.user, value.row)
            yield value.user, "rule", value.row, ctx.current_watermark(), None, None

    return first.key_by("user").connect(second.broadcast(RULES)).process(Rules(), SEEN)


def top() -> KeyedProcessFunction:
    class Top(KeyedProcessFunction):
        """The users with the most rows of each window, as often as it fires."""

        def open(self, runtime_context: Any) -> None:
            self.users = runtime_context.get_map_state(MapStateDescriptor("users"))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.users.put(value.user, value.n)
            ctx.timer_service().register_event_time_timer(value.window_end)
            if value.late_firing:
                times = ctx.timer_service().current_watermark(), ctx.timer_service().current_processing_time()
                yield value.user, "late", value.window_end, *times, value.n

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            times = ctx.timer_service().current_watermark(), ctx.timer_service().current_processing_time()
            ranked = sorted(self.users.items(), key=lambda entry: (-entry[1], entry[0]))
            for rank, (user, n) in enumerate(ranked[:3]):
                yield user, f"top {rank}", timestamp, *times, n

    return Top()


def top_users(first: DataStream, second: DataStream) -> DataStream:
    windows = first.union(second).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(15)))
    counted = windows.allowed_lateness(9).side_output_late_data(LATE).aggregate(n=count())
    return counted.filter(pc.field("n") < 3).key_by("window_end").process(top(), SEEN)


def three_operators(first: DataStream, second: DataStream) -> DataStream:
    seen = connected()(first, second)
    kinds = (
        seen.filter(pc.field("what") != "PROCESSING_TIME").with_columns(kind=pc.field("what")).key_by("kind")
    )
    counted = kinds.window(TumblingEventTimeWindows.of(Time.milliseconds(40))).aggregate(n=count())
    return (
        counted.select("window_end", "late_firing", "n", user=pc.field("kind"))
        .key_by("user")
        .process(top(), SEEN)
    )


def interval_join(first: DataStream, second: DataStream) -> DataStream:
    class Near(ProcessJoinFunction[Any, Any]):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
            yield (
                left.user,
                right.who,
                left.row,
                ctx.get_left_timestamp(),
                ctx.get_right_timestamp(),
                right.row,
            )

    right = second.with_columns(who=pc.field("user")).key_by("who")
    near = first.key_by("user").interval_join(right).between(Time.milliseconds(-40), 90)
    return near.side_output_left_late_data(LATE).process(Near(), SEEN)


def counted(stream: DataStream) -> DataStream:
    windows = stream.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
    return windows.allowed_lateness(9).aggregate(row=count()).filter(pc.field("row") > 1)


def windows_and_log(first: DataStream, second: DataStream) -> DataStream:
    """What windows give, joined in windows with a log."""

    class Sizes(CoGroupFunction[Any, Any]):
        def co_group(self, first: Any, second: Any) -> Iterator[Any]:
            user = (first or second)[0].user
            yield user, "sizes", len(first), len(second), sum(row.row for row in second), None

    grouped = counted(first).co_group(second).where("user").equal_to("user")
    return grouped.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).apply(Sizes(), SEEN)


def in_order() -> KeyedCoProcessFunction:
    class InOrder(KeyedCoProcessFunction):
        """Tells what comes on either side, and how much had come before."""

        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

        def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield self._told("first", value, ctx)

        def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield self._told("second", value, ctx)

        def _told(self, what: str, value: Any, ctx: Any) -> Any:
            self.seen.update((self.seen.value() or 0) + 1)
            timers = ctx.timer_service()
            times = timers.current_watermark(), timers.current_processing_time()
            return str(ctx.get_current_key()), what, value.n, *times, self.seen.value()

    return InOrder()


def results_of_both(first: DataStream, second: DataStream) -> DataStream:
    """What windows give for one log, and a function, also when timers of both kinds are due, for the other."""

    class Delays(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            timers = ctx.timer_service()
            timers.register_event_time_timer(value.ts + 20)
            timers.register_processing_time_timer(timers.current_processing_time() + 15)
            yield value.user, "element", value.row, timers.current_watermark(), None, None
            yield SIDE, {"user": value.user, "row": value.row}

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield ctx.get_current_key(), ctx.time_domain().name, timestamp, None, None, None

    delayed = second.key_by("user").process(Delays(), SEEN, side_outputs=[SIDE])
    sizes = counted(first).select("user", n=pc.field("row"))
    numbers = delayed.select("user", n=pc.field("number"))
    return sizes.connect(numbers).key_by("user", "user").process(in_order(), SEEN)


def shared_results(first: DataStream, second: DataStream) -> DataStream:
    """Results of one operator by two ways, and those of one way also directly."""
    windows = first.union(second).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(15)))
    sizes = windows.allowed_lateness(9).side_output_late_data(LATE).aggregate(n=count())
    ranked = sizes.key_by("window_end").process(top(), SEEN, side_outputs=[SIDE])
    by_user = ranked.select("user", n=pc.field("held")).key_by("user")
    both = sizes.key_by("user").connect(by_user).process(in_order(), SEEN)
    other = ranked.select(end=pc.field("number") + 0, n=pc.field("held")).filter(pc.field("n") > 1)
    again = both.select(end=pc.field("watermark"), n=pc.field("number"))
    return other.connect(again).key_by("end", "end").process(in_order(), SEEN)


def union_with_results(first: DataStream, second: DataStream) -> DataStream:
    rows = counted(first).select("user", "row").union(second.select("row", "user"))
    windows = rows.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    return windows.aggregate(n=count(), rows=sum_("row"))


def interval_join_of_results(first: DataStream, second: DataStream) -> DataStream:
    class Near(ProcessJoinFunction[Any, Any]):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
            times = ctx.get_left_timestamp(), ctx.get_right_timestamp()
            yield left.user, right.user, left.row, *times, right.row

    near = counted(first).key_by("user").interval_join(counted(second).key_by("user")).between(-60, 60)
    return near.process(Near(), SEEN)


def steps_at_the_end(first: DataStream, second: DataStream) -> DataStream:
    windows = first.union(second).key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    rows = windows.side_output_late_data(LATE).aggregate(n=count(), rows=sum_("row"))
    return rows.filter(pc.field("n") > 1).select("user", mean=pc.field("rows") / pc.field("n"))


def rows_as_they_come(first: DataStream, second: DataStream) -> DataStream:
    return (
        first.union(second)
        .filter(pc.bit_wise_and(pc.field("row"), 1) == 0)
        .with_columns(late=pc.field("at") - pc.field("ts"))
    )


def rows_and_results_as_they_come(first: DataStream, second: DataStream) -> DataStream:
    return (
        counted(first).select("user", "row").union(second.select("row", "user")).filter(pc.field("row") > 2)
    )


def batches_before_windows(first: DataStream, second: DataStream) -> DataStream:
    class Pauses(KeyedBatchProcessFunction):
        min_event_time_delay_ms = 6

        def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
            ctx.timer_service().register_event_time_timers(elements.key_ids, elements.timestamps + 6)
            yield elements.results({"user": elements["user"], "row": elements["row"]})

        def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
            yield timers.results({"user": timers.keys["user"], "row": -timers.timestamps})

    given = pa.schema({"user": pa.string(), "row": pa.int64()})
    paused = first.union(second).key_by("user").process(Pauses(), given)
    windows = paused.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    return windows.aggregate(n=count(), rows=collect("row"))


JOBS: dict[str, Callable[[DataStream, DataStream], DataStream]] = {
    "connected": connected(),
    "broadcast": broadcast,
    "top users": top_users,
    "three operators": three_operators,
    "interval join": interval_join,
    "windows and log": windows_and_log,
    "results broadcast": lambda first, second: broadcast(first, counted(second)),
    "results of both": results_of_both,
    "shared results": shared_results,
    "union with results": union_with_results,
    "interval join of results": interval_join_of_results,
    "batches before windows": batches_before_windows,
    "steps at the end": steps_at_the_end,
    "rows as they come": rows_as_they_come,
    "rows and results as they come": rows_and_results_as_they_come,
}


SIDES = {
    "top users": [LATE],
    "connected": [SIDE],
    "three operators": [SIDE],
    "interval join": [LATE],
    "results of both": [SIDE],
    "shared results": [LATE],
    "steps at the end": [LATE],
}


def ordered(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("name", sampled(JOBS, 3))
def test_jobs_give_on_spark_what_they_give_embedded(
    name: str, spark: Any, logs: tuple[Path, pa.Table]
) -> None:
    rows = UnorderedRows(logs[1])
    embedded = JOBS[name](*streams(StreamExecutionEnvironment(), (logs[0], rows))).execute()
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    second = spark.createDataFrame(logs[1].to_pylist(), "ts long, at long, part long, user string, row long")
    on_spark = JOBS[name](*streams(env, (logs[0], second.repartition(3)))).execute()
    assert ordered(on_spark.to_arrow()) == ordered(embedded.to_arrow())
    for bad in BAD:
        rejected = [each.get_side_output(bad).to_arrow() for each in (on_spark, embedded)]
        assert ordered(rejected[0]) == ordered(rejected[1])
        assert rejected[0].num_rows == 1
    for tag in SIDES.get(name, []):
        sides = [each.get_side_output(tag).to_arrow() for each in (on_spark, embedded)]
        assert ordered(sides[0]) == ordered(sides[1])
        assert sides[0].num_rows > 0
        assert name != "top users" or embedded.report.late_firings > 0
    assert embedded.to_arrow().num_rows > 0
    reports = [on_spark.report, *on_spark.report.later_operators]
    assert any(report.repeated > 0 for report in reports) == ("broadcast" in name)
    for report in reports:
        report.repeated = 0
    assert on_spark.report == embedded.report


def test_an_operator_whose_results_go_several_ways_runs_once(
    spark: Any, logs: tuple[Path, pa.Table], tmp_path: Path
) -> None:
    def job(env: StreamExecutionEnvironment, opened: Path) -> Any:
        class Noted(KeyedProcessFunction):
            def open(self, runtime_context: Any) -> None:
                mkstemp(dir=opened)

            def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
                yield value.user, value.row

        opened.mkdir()
        kind = pa.schema({"user": pa.string(), "row": pa.int64()})
        noted = streams(env, logs)[0].key_by("user").process(Noted(), kind)
        sizes = noted.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        # To the next operator, past it to the one behind, and to its other input, too.
        again = noted.select("user", n=pc.field("row")).union(sizes.aggregate(n=count()).select("user", "n"))
        directly = noted.select("user", n=pc.field("row") + 1)
        return again.connect(directly).key_by("user", "user").process(in_order(), SEEN).execute()

    embedded = job(StreamExecutionEnvironment(), tmp_path / "embedded")
    on_spark = job(SparkExecutionEnvironment(spark).set_parallelism(3), tmp_path / "spark")
    assert ordered(on_spark.to_arrow()) == ordered(embedded.to_arrow())
    assert on_spark.report == embedded.report
    assert len(list((tmp_path / "spark").iterdir())) == 3


def test_a_log_used_on_several_ways_is_read_by_one_task_for_each_part(
    spark: Any, logs: tuple[Path, pa.Table]
) -> None:
    def job(env: StreamExecutionEnvironment) -> Any:
        # The log's rows come to operators of two levels.
        log = env.from_event_log(
            logs[0], timestamp="ts", integer_times=True, arrival="at", split="part", on_bad_row="drop"
        )
        bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
        log = log.assign_timestamps_and_watermarks(bounded)
        sizes = log.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        counts = sizes.aggregate(n=count()).select("user", "n")
        rows = log.filter(pc.field("row") > 100).select("user", n=pc.field("row"))
        return counts.connect(rows).key_by("user", "user").process(in_order(), SEEN).execute()

    embedded = job(StreamExecutionEnvironment())
    on_spark = job(SparkExecutionEnvironment(spark).set_parallelism(3))
    assert ordered(on_spark.to_arrow()) == ordered(embedded.to_arrow())
    assert on_spark.report == embedded.report
    plan = on_spark.to_dataframe()._jdf.queryExecution().executedPlan().toString()
    assert plan.count("flinkcore.MapTask(") == 1


def test_a_dataframe_used_on_several_ways_is_evaluated_once(spark: Any, tmp_path: Path) -> None:
    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mkstemp(dir=tmp_path)
        for batch in batches:
            draws = np.random.default_rng().integers(0, 5, batch.num_rows)  # others at each evaluation
            yield pa.record_batch({"ts": batch.column("id"), "user": draws.astype(str), "n": draws})

    stream = SparkExecutionEnvironment(spark).from_event_log(
        spark.range(0, 200, 1, 2).mapInArrow(noted, "ts long, user string, n long"),
        timestamp="ts",
        integer_times=True,
    )
    rows = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    windows = rows.key_by("user").window(TumblingEventTimeWindows(1000)).aggregate(m=count())
    sums = rows.filter(pc.field("n") > 0).key_by("user").window(TumblingEventTimeWindows(1000))
    both = windows.select("user", n=pc.field("m")).union(
        sums.aggregate(m=sum_("n")).select("user", n=pc.field("m"))
    )
    result = both.key_by("user").window(TumblingEventTimeWindows(1000)).aggregate(m=sum_("n")).execute()
    found = {int(row["user"]): row["m"] for row in result.to_arrow().to_pylist()}
    assert sorted(found) == list(range(5))
    assert [user for user, total in found.items() if total % (user + 1)] == []
    assert len(list(tmp_path.iterdir())) == 2


def test_a_job_of_two_logs_reads_small_dataframes_of_several_partitions(spark: Any) -> None:
    table = pa.table({"user": list("abcab"), "ts": range(5), "amount": [1, 2, 3, 4, 5]})

    def job(*logs: DataStream) -> DataStream:
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        first, second = (log.assign_timestamps_and_watermarks(strategy) for log in logs)
        windows = first.union(second).key_by("user").window(TumblingEventTimeWindows(10))
        return windows.aggregate(n=count(), total=sum_("amount"))

    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    # Spark computes columns of such DataFrames on the driver, where all rows are of one partition.
    on_spark = job(
        *(
            env.from_event_log(dataframe_of(spark, table), timestamp="ts", integer_times=True)
            for _ in range(2)
        )
    )
    embedded = StreamExecutionEnvironment()
    here = job(*(embedded.from_event_log(table, timestamp="ts", integer_times=True) for _ in range(2)))
    columns = ["user", "window_start", "n", "total"]
    assert ordered(on_spark.to_arrow().select(columns)) == ordered(here.to_arrow().select(columns))


def test_a_worker_that_dies_amid_a_job_of_two_logs_changes_nothing(
    spark: Any, logs: tuple[Path, pa.Table], tmp_path: Path
) -> None:
    embedded = connected()(*streams(StreamExecutionEnvironment(), logs)).execute()
    marker = tmp_path / "died"
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    on_spark = connected(str(marker))(*streams(env, logs)).execute()
    assert ordered(on_spark.to_arrow()) == ordered(embedded.to_arrow())
    assert marker.exists()
    sides = [ordered(each.get_side_output(SIDE).to_arrow()) for each in (on_spark, embedded)]
    assert sides[0] == sides[1]

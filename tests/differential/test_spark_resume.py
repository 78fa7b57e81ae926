"""Jobs on Spark over two parts of a log, with a checkpoint between them: the rows of the whole, though tasks die."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from equipment.spark_sessions import dataframe_of
from jobs.random_logs import random_log

pytest.importorskip("pyspark")

from flinkcore.checkpoint import Checkpoint
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, count_distinct, max_, sum_
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkcore.datastream.window import CountSlidingWindowAssigner
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.task_outputs import CountsOutput

pytestmark = pytest.mark.spark_session("local[2,4]")  # a task may fail three times

LATE = OutputTag("late")
RATES: MapStateDescriptor[int, int] = MapStateDescriptor("rates")
RATED = pa.schema({"user": pa.string(), "row": pa.int64(), "rate": pa.int64(), "n": pa.int64()})
RANKING = pa.schema({"end": pa.int64(), "clock": pa.int64(), "users": pa.list_(pa.string())})
SEEN = pa.schema(
    {
        "user": pa.string(),
        "number": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
        "held": pa.list_(pa.int64()),
    }
)


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return random_log(11, 3000).sort_by([("at", "ascending"), ("part", "ascending")])


@pytest.fixture(scope="module")
def days(log: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    path = tmp_path_factory.mktemp("days")
    for day, (start, stop) in enumerate(((0, 1700), (1700, 3000))):
        (path / str(day)).mkdir()
        rows = log.slice(start, stop - start)
        for part in range(2):
            half = -(-len(rows) // 2)
            pq.write_table(
                rows.slice(part * half, half), path / str(day) / f"{part}.parquet", row_group_size=300
            )
    return [path / "0", path / "1"]


def function(marker: str | None = None) -> KeyedProcessFunction:
    """Timers of both kinds and state; its class travels by value, as that of a notebook does."""

    class Sessions(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_list_state(ListStateDescriptor("held"))
            self.last = runtime_context.get_state(ValueStateDescriptor("last"))

        def process_element(self, value: Any, ctx: Any) -> None:
            if marker is not None and value.row % 700 == 0:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os._exit(9)
                except FileExistsError:
                    pass
            timers = ctx.timer_service()
            if (last := self.last.value()) is not None:
                timers.delete_event_time_timer(last + 300)
            self.last.update(value.ts)
            timers.register_event_time_timer(value.ts + 300)
            self.held.add(value.row)
            if value.row % 5 == 0:
                timers.register_processing_time_timer(timers.current_processing_time() + 250)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            timers = ctx.timer_service()
            times = timers.current_watermark(), timers.current_processing_time()
            yield ctx.get_current_key(), timestamp, *times, list(self.held)
            self.held.clear()

    return Sessions()


def keyed(env: StreamExecutionEnvironment, log: Any) -> Any:
    return (
        env.from_event_log(log, timestamp="ts", integer_times=True, arrival="at", split="part")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20)).with_idleness(
                Duration.of_millis(40)
            )
        )
        .key_by("user")
    )


def processed(env: StreamExecutionEnvironment, log: Any, marker: str | None = None) -> DataStream:
    env.get_config().set_auto_watermark_interval(7)
    return keyed(env, log).process(function(marker), SEEN)


def windowed(env: StreamExecutionEnvironment, log: Any, window: Any = None) -> DataStream:
    env.get_config().set_auto_watermark_interval(7)
    return (
        keyed(env, log)
        .window(window or EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
        .allowed_lateness(15)
        .side_output_late_data(LATE)
        .aggregate(n=count(), rows=collect("row"), parts=count_distinct("part"), least=max_("user"))
    )


def rows(*tables: pa.Table) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


def test_functions_on_spark_go_on_from_a_checkpoint_though_workers_die(
    spark: Any, log: pa.Table, days: list[Path], tmp_path: Path
) -> None:
    env = SparkExecutionEnvironment(spark)
    whole = processed(StreamExecutionEnvironment().set_parallelism(1), log).to_arrow()
    env.set_parallelism(3)
    first = processed(env, str(days[0]), str(tmp_path / "killed"))
    first.write_parquet(tmp_path / "first", stop_with_checkpoint=tmp_path / "checkpoint")
    assert (tmp_path / "killed").exists()
    manifest = Checkpoint.open(tmp_path / "checkpoint").manifest
    assert manifest.job["results"] == [str(tmp_path / "first")]
    written = {name for _, _, names in os.walk(tmp_path / "checkpoint") for name in names}
    tables = {table.file.partition("/")[2] for part in manifest.parts for table in part.tables}
    assert tables < written
    assert len(written) == len(tables) + 1  # nothing of the task that died is left
    env.set_parallelism(2)
    second = processed(env, str(days[1]), str(tmp_path / "killed again"))
    result = second.execute(restore_from=tmp_path / "checkpoint")
    assert rows(ds.dataset(tmp_path / "first").to_table(), result.to_arrow()) == rows(whole)
    assert (tmp_path / "killed again").exists()


@pytest.mark.parametrize(
    "window",
    [
        None,
        SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(30)),
        CountSlidingWindowAssigner(7, 3),
    ],
    ids=["sessions", "sliding", "counts"],
)
def test_windows_on_spark_and_embedded_go_on_from_checkpoints_of_each_other(
    spark: Any, log: pa.Table, days: list[Path], tmp_path: Path, window: Any
) -> None:
    embedded = StreamExecutionEnvironment().set_parallelism(2)
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    whole = windowed(embedded, log, window).execute()
    first = windowed(env, str(days[0]), window).execute(stop_with_checkpoint=tmp_path / "spark")
    late = first.get_side_output(LATE).to_arrow()
    second = windowed(embedded, str(days[1]), window).execute(restore_from=tmp_path / "spark")
    assert rows(first.to_arrow(), second.to_arrow()) == rows(whole.to_arrow())
    assert rows(late, second.get_side_output(LATE).to_arrow()) == rows(whole.get_side_output(LATE).to_arrow())

    windowed(embedded, str(days[0]), window).execute(stop_with_checkpoint=tmp_path / "embedded").to_arrow()
    dataframe = windowed(env, str(days[1]), window).execute(restore_from=tmp_path / "embedded").to_dataframe()
    assert dataframe.count() == second.to_arrow().num_rows


def top_of_two_logs(
    env: StreamExecutionEnvironment, clicks: Any, rates: Any, marker: str | None = None
) -> DataStream:
    """Two logs, one of them broadcast, into windows, of which a function makes a ranking."""
    env.get_config().set_auto_watermark_interval(7)

    class Rated(KeyedBroadcastProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.n = runtime_context.get_state(ValueStateDescriptor("n"))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            self.n.update((self.n.value() or 0) + 1)
            yield (
                value.user,
                value.row,
                ctx.get_broadcast_state(RATES).get(value.part % 2) or 0,
                self.n.value(),
            )

        def process_broadcast_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            ctx.get_broadcast_state(RATES).put(value.part % 2, value.row)
            return iter(())

    class Ranking(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.found = runtime_context.get_list_state(ListStateDescriptor("found"))

        def process_element(self, value: Any, ctx: Any) -> None:
            if marker is not None and value.n > 3:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os._exit(9)
                except FileExistsError:
                    pass
            self.found.add((value.total, value.user))
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            best = sorted(self.found, reverse=True)[:3]
            yield timestamp, ctx.timer_service().current_processing_time(), [user for _, user in best]

    logs = [
        env.from_event_log(
            log, timestamp="ts", integer_times=True, arrival="at", split="part"
        ).assign_timestamps_and_watermarks(strategy)
        for log, strategy in (
            (clicks, WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_millis(9), 0.9, 20)),
            (rates, WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(30))),
        )
    ]
    rated = logs[0].key_by("user").connect(logs[1].broadcast(RATES)).process(Rated(), RATED)
    windows = rated.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(400)))
    counted = windows.side_output_late_data(LATE).aggregate(n=count(), total=sum_("rate"))
    return counted.key_by("window_end").process(Ranking(), RANKING)


def test_jobs_of_several_logs_and_operators_on_spark_go_on_though_workers_die(
    spark: Any, log: pa.Table, days: list[Path], tmp_path: Path
) -> None:
    all_rates, cut = log.take(pa.array(range(0, len(log), 10))), log["at"][1700]
    rates = [all_rates.filter(pc.field("at") < cut), all_rates.filter(pc.field("at") >= cut)]
    embedded = StreamExecutionEnvironment().set_parallelism(1)
    whole = top_of_two_logs(embedded, log, all_rates).execute()
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    first = top_of_two_logs(env, str(days[0]), rates[0], str(tmp_path / "killed"))
    first.write_parquet(
        tmp_path / "first",
        side_outputs={LATE: tmp_path / "late"},
        stop_with_checkpoint=tmp_path / "checkpoint",
    )
    assert (tmp_path / "killed").exists()
    manifest = Checkpoint.open(tmp_path / "checkpoint").manifest
    assert {uid: len(parts) for uid, parts in manifest.parts_by_operator().items()} == {
        "process-1": 3,
        "process-3": 3,
        "watermarks-1": 1,
        "watermarks-2": 1,
        "window-2": 3,
    }
    written = {name for _, _, names in os.walk(tmp_path / "checkpoint") for name in names}
    tables = {table.file.partition("/")[2] for part in manifest.parts for table in part.tables}
    assert len(written) == len(tables) + 1  # nothing of the task that died is left
    for going_on in (env.set_parallelism(2), embedded):
        second = top_of_two_logs(going_on, str(days[1]), rates[1]).execute(
            restore_from=tmp_path / "checkpoint"
        )
        assert rows(ds.dataset(tmp_path / "first").to_table(), second.to_arrow()) == rows(whole.to_arrow())
        late = ds.dataset(tmp_path / "late").to_table(), second.get_side_output(LATE).to_arrow()
        assert rows(*late) == rows(whole.get_side_output(LATE).to_arrow())


def counted_and_joined(env: StreamExecutionEnvironment, log: Any) -> DataStream:
    """Events near the ends of the sessions of their users."""

    class Near(ProcessJoinFunction[Any, Any]):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
            yield left.user, left.n, right.row

    env.get_config().set_auto_watermark_interval(7)
    sessions = keyed(env, log).window(EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
    counted = sessions.aggregate(n=count()).key_by("user")
    columns = pa.schema({"user": pa.string(), "n": pa.int64(), "row": pa.int64()})
    return counted.interval_join(keyed(env, log)).between(-90, 90).process(Near(), columns)


def test_a_later_operator_that_takes_a_log_goes_on_on_spark(
    spark: Any, log: pa.Table, tmp_path: Path
) -> None:
    cut = log["at"][1700]
    parts = [log.filter(pc.field("at") < cut), log.filter(pc.field("at") >= cut)]
    embedded = StreamExecutionEnvironment().set_parallelism(1)
    whole = counted_and_joined(embedded, log).to_arrow()
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    first = counted_and_joined(env, parts[0]).execute(stop_with_checkpoint=tmp_path / "c").to_arrow()
    for going_on in (env.set_parallelism(2), embedded):
        second = counted_and_joined(going_on, parts[1]).execute(restore_from=tmp_path / "c").to_arrow()
        assert rows(first, second) == rows(whole)
    assert whole.num_rows > 500


def test_tasks_that_run_twice_leave_one_checkpoint(
    spark: Any, log: pa.Table, days: list[Path], tmp_path: Path
) -> None:
    """As speculative duplicates do: both write whole parts, of which those count that come back."""
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    result = windowed(env, str(days[0])).execute(stop_with_checkpoint=tmp_path / "checkpoint")
    replay = result._replay
    with replay.begin() as stopping:
        replay.collect(CountsOutput(), stopping)
        result._complete(replay.collect(CountsOutput(), stopping), stopping)
        stopping.commit()
    assert len(list((tmp_path / "checkpoint").glob("data-*/*.arrow"))) == 3
    embedded = StreamExecutionEnvironment().set_parallelism(1)
    first = windowed(embedded, str(days[0])).execute(stop_with_checkpoint=tmp_path / "embedded").to_arrow()
    second = windowed(embedded, str(days[1])).execute(restore_from=tmp_path / "checkpoint").to_arrow()
    assert rows(first, second) == rows(windowed(embedded, log).to_arrow())


def test_a_dataframe_cannot_stop_with_a_checkpoint(spark: Any, days: list[Path], tmp_path: Path) -> None:
    result = windowed(SparkExecutionEnvironment(spark), str(days[0])).execute(
        stop_with_checkpoint=tmp_path / "checkpoint"
    )
    with pytest.raises(ConfigurationError, match=r"to_dataframe\(\) cannot stop with a checkpoint"):
        result.to_dataframe()
    assert not (tmp_path / "checkpoint").exists()


def test_a_damaged_part_fails_the_job_and_leaves_no_results(
    spark: Any, days: list[Path], tmp_path: Path
) -> None:
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    list(windowed(env, str(days[0])).execute(stop_with_checkpoint=tmp_path / "checkpoint").to_batches())
    part = next((tmp_path / "checkpoint").glob("data-*/00001-*.arrow"))
    part.write_bytes(part.read_bytes()[:-9] + b"123456789")
    again = windowed(env, str(days[1])).execute(
        restore_from=tmp_path / "checkpoint", stop_with_checkpoint=tmp_path / "next"
    )
    with pytest.raises(SourceError, match="is damaged: its checksum"):
        again.write_parquet(tmp_path / "results")
    assert not list((tmp_path / "results").glob("*"))
    assert not list((tmp_path / "next").glob("*"))


@pytest.mark.parametrize("logs", [1, 2])
def test_a_day_without_events_is_a_dataframe_without_rows(spark: Any, tmp_path: Path, logs: int) -> None:
    first = pa.table({"user": ["a", "b", "a"], "ts": [1, 5, 12]})
    last = pa.table({"user": ["a", "b"], "ts": [13, 40]})

    def job(days: list[pa.Table]) -> DataStream:
        env = SparkExecutionEnvironment(spark).set_parallelism(2)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        streams = [
            env.from_event_log(
                dataframe_of(spark, pa.concat_tables(days)).repartition(1),
                timestamp="ts",
                integer_times=True,
                arrival="ts",
            ).assign_timestamps_and_watermarks(strategy)
            for _ in range(logs)
        ]
        events = streams[0] if logs == 1 else streams[0].union(streams[1])
        return events.key_by("user").window(TumblingEventTimeWindows(10)).aggregate(n=count())

    days = [[first], [first.slice(0, 0)], [last]]
    found = []
    for number, day in enumerate(days):
        checkpoints = {"stop_with_checkpoint": tmp_path / str(number)} if number < 2 else {}
        if number:
            checkpoints["restore_from"] = tmp_path / str(number - 1)
        result = job(day).execute(**checkpoints)
        assert result.report.events_read == logs * day[0].num_rows
        found += result.to_arrow().select(["user", "window_start", "n"]).to_pylist()
    whole = job([first, last]).execute().to_arrow().select(["user", "window_start", "n"]).to_pylist()
    by_window = sorted(whole, key=lambda row: (row["user"], row["window_start"]))
    assert sorted(found, key=lambda row: (row["user"], row["window_start"])) == by_window

"""Replays on Spark whose strategy has a watermark generator of its own give the rows that they give embedded."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.rows_by_key import rows_by_key
from equipment.unordered_rows import UnorderedRows

pytest.importorskip("pyspark")

from flinkcore.common import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Duration,
    OutputTag,
    Time,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count
from flinkcore.errors import UserCodeError
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.element_pass import deal_out

LATE = OutputTag("late")


def even_timestamps(*, failing_at: int | None = None) -> WatermarkStrategy:
    """A punctuated generator; its class travels by value, as that of a notebook does."""

    class EvenTimestamps(WatermarkGenerator[Any]):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            if event_timestamp == failing_at:
                raise ValueError("unlucky")
            if event_timestamp % 2 == 0:
                output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: Any) -> None:
            pass

    return WatermarkStrategy.for_generator(EvenTimestamps).with_idleness(Duration.of_millis(300))


def table() -> pa.Table:
    """Five splits of unequal size, many events with one arrival, and splits that pause."""
    random = np.random.default_rng(5)
    n = 3000
    arrival = np.cumsum(random.choice([0, 0, 0, 1, 2], n)) + np.where(np.arange(n) % 700 > 500, 400, 0)
    return pa.table(
        {
            "ts": arrival + random.integers(-60, 8, n),
            "at": arrival,
            "part": random.choice([7, 7, 7, 7, 1, 2, 3, 4], n),
            "user": [f"u{i % 7}" for i in range(n)],
            "row": range(n),
        }
    )


def job(stream: DataStream, strategy: WatermarkStrategy) -> DataStream:
    return (
        stream.filter(pc.field("row") != 77)
        .assign_timestamps_and_watermarks(strategy)
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
        .allowed_lateness(Time.milliseconds(5))
        .side_output_late_data(LATE)
        .aggregate(n=count(), rows=collect("row"))
    )


def rows(found: pa.Table, key: str = "user") -> list[str]:
    return rows_by_key(found, [key])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log")
    for part in range(3):
        pq.write_table(table().slice(part * 1000, 1000), path / f"{part}.parquet", row_group_size=300)
    return path


@pytest.mark.parametrize("arrival", ["at", None])
def test_punctuated_replays_of_files_give_the_rows_and_the_report_of_embedded_ones(
    spark: Any, log: Path, arrival: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flinkcore.spark.columnar.element_pass.PART_ROWS", 100)
    monkeypatch.setattr("flinkcore.spark.columnar.element_pass.RUN_ROWS", 50)
    monkeypatch.setattr("flinkcore.spark.exchange.collecting.SMALL_PAYLOAD_BYTES", 2000)
    options = {"timestamp": "ts", "arrival": arrival, "split": "part"}
    embedded = job(
        StreamExecutionEnvironment().set_parallelism(1).from_event_log(str(log), **options), even_timestamps()
    ).execute()
    result = job(
        SparkExecutionEnvironment(spark).set_parallelism(3).from_event_log(str(log), **options),
        even_timestamps(),
    ).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    late = result.get_side_output(LATE).to_arrow()
    assert rows(late) == rows(embedded.get_side_output(LATE).to_arrow())
    assert late.num_rows > 10
    assert result.report == embedded.report
    assert sorted(result.report.split_watermarks) == [1, 2, 3, 4, 7]
    assert [result.report.idle_spans(split) for split in (1, 7)] == [
        embedded.report.idle_spans(split) for split in (1, 7)
    ]


def test_punctuated_replay_of_a_dataframe_gives_the_rows_of_an_embedded_one(spark: Any) -> None:
    options: dict[str, Any] = {"timestamp": "ts", "arrival": "at", "split": "part"}
    embedded = job(
        StreamExecutionEnvironment().from_event_log(UnorderedRows(table()), **options), even_timestamps()
    ).execute()
    dataframe = spark.createDataFrame(
        [tuple(row.values()) for row in table().to_pylist()],
        "ts long, at long, part long, user string, row long",
    )
    result = job(
        SparkExecutionEnvironment(spark).set_parallelism(2).from_event_log(dataframe, **options),
        even_timestamps(),
    ).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.report == embedded.report


def test_percentile_generator_of_one_split_runs_on_spark(spark: Any, log: Path) -> None:
    strategy = WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_millis(10), 0.95, 100)
    streams = [
        job(environment.from_event_log(str(log), timestamp="ts", arrival="at"), strategy)
        for environment in (StreamExecutionEnvironment(), SparkExecutionEnvironment(spark))
    ]
    embedded, result = (stream.execute() for stream in streams)
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.report == embedded.report
    assert result.report.late > 0


def test_failing_generator_is_named_with_split_position_and_timestamp(spark: Any) -> None:
    failing = int(table()["ts"][77 + 1000].as_py())
    streams = [
        job(
            environment.from_event_log(table(), timestamp="ts", arrival="at"),
            even_timestamps(failing_at=failing),
        )
        for environment in (StreamExecutionEnvironment(), SparkExecutionEnvironment(spark))
    ]
    told = []
    for stream in streams:
        with pytest.raises(UserCodeError, match=rf"timestamp {failing}: ValueError: unlucky \(pos") as caught:
            stream.to_arrow()
        told.append(str(caught.value))
    assert told[0] == told[1]


def ending_early(at_tick: bool) -> WatermarkStrategy:
    """A generator that emits the maximum watermark in the middle of the log."""

    class EndsEarly(WatermarkGenerator[Any]):
        def __init__(self) -> None:
            self.seen = MIN_TIMESTAMP

        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            self.seen = max(self.seen, MAX_TIMESTAMP if event_timestamp > 1500 else event_timestamp - 30)
            if not at_tick:
                output.emit_watermark(Watermark(self.seen))

        def on_periodic_emit(self, output: Any) -> None:
            if at_tick:
                output.emit_watermark(Watermark(self.seen))

    return WatermarkStrategy.for_generator(EndsEarly)


def following() -> KeyedProcessFunction:
    """A function with timers of both kinds; its class travels by value."""

    class Follows(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            timers = ctx.timer_service()
            timers.register_event_time_timer((ctx.timestamp() or timers.current_processing_time()) + 90)
            timers.register_processing_time_timer(timers.current_processing_time() + 35)
            yield self._seen("element", ctx)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield self._seen(ctx.time_domain().name, ctx)

        def _seen(self, what: str, ctx: Any) -> tuple[Any, ...]:
            timers = ctx.timer_service()
            times = timers.current_watermark(), timers.current_processing_time()
            return ctx.get_current_key(), what, *times

    return Follows()


@pytest.mark.parametrize("at_tick", [False, True])
def test_behind_the_maximum_watermark_a_replay_on_spark_goes_on_as_embedded(
    spark: Any, log: Path, at_tick: bool
) -> None:
    seen = pa.schema({"key": pa.string(), "what": pa.string(), "watermark": pa.int64(), "clock": pa.int64()})
    options: dict[str, Any] = {"timestamp": "ts", "arrival": "at", "split": "part"}

    def run(env: StreamExecutionEnvironment, operators: int) -> Any:
        stream = env.from_event_log(str(log), **options)
        stream = stream.assign_timestamps_and_watermarks(ending_early(at_tick))
        stream = stream.key_by("user").process(following(), seen)
        if operators == 2:
            stream = stream.key_by("key").process(following(), seen)
        return stream.execute()

    for operators in (1, 2):
        embedded = run(StreamExecutionEnvironment().set_parallelism(1), operators)
        result = run(SparkExecutionEnvironment(spark).set_parallelism(3), operators)
        assert rows(result.to_arrow(), "key") == rows(embedded.to_arrow(), "key")
        assert result.report == embedded.report
        assert result.report.watermark_ms == MAX_TIMESTAMP
        behind = {row["what"] for row in embedded.to_arrow().to_pylist() if row["watermark"] == MAX_TIMESTAMP}
        assert behind == {"element", "EVENT_TIME", "PROCESSING_TIME"}


def test_splits_are_dealt_out_by_size() -> None:
    partition_of = deal_out(np.array([5, 100, 0, 40, 60]), 2)
    assert partition_of.tolist() == [0, 0, 1, 1, 1]

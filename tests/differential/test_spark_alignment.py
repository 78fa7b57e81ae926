"""Replays on Spark whose splits are aligned with each other give the rows that they give embedded."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.rows_by_key import rows_by_key
from equipment.spark_sessions import dataframe_of

pytest.importorskip("pyspark")

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect
from flinkcore.spark import SparkExecutionEnvironment

LATE = OutputTag("late")
STRATEGY = (
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
    .with_idleness(Duration.of_millis(400))
    .with_watermark_alignment("clicks", Time.milliseconds(100), Time.milliseconds(150))
)


def table() -> pa.Table:
    """Four splits, the event time of two of which runs faster."""
    random = np.random.default_rng(5)
    n = 3000
    arrival = np.cumsum(random.choice([0, 0, 0, 1, 2], n)) + np.where(np.arange(n) % 700 > 500, 500, 0)
    part = random.choice([7, 1, 2, 3], n)
    return pa.table(
        {
            "ts": arrival * np.where(part < 3, part + 1, 1) - random.integers(0, 60, n),
            "at": arrival,
            "part": part,
            "user": [f"u{i % 7}" for i in range(n)],
            "row": range(n),
        }
    )


def job(stream: DataStream) -> DataStream:
    return (
        stream.assign_timestamps_and_watermarks(STRATEGY)
        .key_by("user")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        .allowed_lateness(Time.milliseconds(5))
        .side_output_late_data(LATE)
        .aggregate(rows=collect("row"))
    )


def rows(found: pa.Table) -> list[str]:
    return rows_by_key(found, ["user"])


@pytest.mark.parametrize("arrival", ["at", None])
def test_aligned_replays_of_files_give_the_rows_and_the_report_of_embedded_ones(
    spark: Any, arrival: str | None, tmp_path: Path
) -> None:
    for number in range(3):
        pq.write_table(table().slice(number * 1000, 1000), tmp_path / f"{number}.parquet", row_group_size=300)
    options: dict[str, Any] = {"timestamp": "ts", "arrival": arrival, "split": "part"}
    embedded, result = (
        job(environment.from_event_log(str(tmp_path), **options)).execute()
        for environment in (
            StreamExecutionEnvironment().set_parallelism(1),
            SparkExecutionEnvironment(spark).set_parallelism(3),
        )
    )
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    late = result.get_side_output(LATE).to_arrow()
    assert rows(late) == rows(embedded.get_side_output(LATE).to_arrow())
    assert result.report == embedded.report
    assert result.report.paused_ms
    for split in (1, 2, 3, 7):
        assert result.report.paused_spans(split) == embedded.report.paused_spans(split)


@pytest.mark.parametrize("kind", ["files", "dataframe"])
def test_aligned_splits_stop_and_go_on_in_turn_on_spark_and_embedded(
    spark: Any, kind: str, tmp_path: Path
) -> None:
    whole = table().sort_by([("at", "ascending"), ("part", "ascending")])
    options: dict[str, Any] = {"timestamp": "ts", "arrival": "at", "split": "part"}
    at = whole["at"].to_pylist()
    bounds = [0, *(sum(arrival <= cut for arrival in at) for cut in (1_100, 1_600)), len(at)]

    def run(number: int, environment: StreamExecutionEnvironment) -> Any:
        part = whole.slice(bounds[number], bounds[number + 1] - bounds[number])
        path = tmp_path / f"{kind}-{number}"
        path.mkdir()
        for file in range(2):
            half = -(-len(part) // 2)
            pq.write_table(part.slice(file * half, half), path / f"{file}.parquet", row_group_size=300)
        checkpoints: dict[str, Any] = {}
        if number > 0:
            checkpoints["restore_from"] = tmp_path / str(number - 1)
        if number < 2:
            checkpoints["stop_with_checkpoint"] = tmp_path / str(number)
        data: Any = str(path)
        if kind == "dataframe":
            data = spark.read.parquet(str(path)).repartition(3)
        stream = environment.from_event_log(data, **options)
        result = job(stream).execute(**checkpoints)
        result.to_arrow()
        return result

    on_spark = [SparkExecutionEnvironment(spark).set_parallelism(tasks) for tasks in (3, 2, 1)]
    if kind == "dataframe":  # whose events of one arrival are in the order of their content
        environments = on_spark
        expected = job(on_spark[0].from_event_log(dataframe_of(spark, whole), **options)).execute()
    else:
        environments = [on_spark[0], StreamExecutionEnvironment().set_parallelism(2), on_spark[2]]
        embedded = StreamExecutionEnvironment().set_parallelism(1)
        expected = job(embedded.from_event_log(whole, **options)).execute()
    parts = [run(number, environment) for number, environment in enumerate(environments)]
    found = [part.to_arrow() for part in parts]
    assert rows(pa.concat_tables(found)) == rows(expected.to_arrow())
    late = [part.get_side_output(LATE).to_arrow() for part in parts]
    assert rows(pa.concat_tables(late)) == rows(expected.get_side_output(LATE).to_arrow())
    waiting = [part.report.waiting for part in parts]
    assert waiting[0] > 0 < waiting[1]
    assert sum(part.report.events_read - part.report.waiting for part in parts) == len(at)

"""Lateness under every bound on Spark is that of the embedded engine, of files and of DataFrames."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.examples.flights import LOG, hourly_flights
from flinkcore.spark import SparkExecutionEnvironment

WINDOWS = [
    TumblingEventTimeWindows.of(Time.hours(1)),
    SlidingEventTimeWindows.of(Time.hours(3), Time.minutes(40)),
]
LATENESS = [Time.hours(0), Time.minutes(20)]


def frontier_of(env: StreamExecutionEnvironment, log: Any, split: str | None, **settings: Any) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
    return (
        env.from_event_log(log, timestamp="date", split=split, **settings)
        .assign_timestamps_and_watermarks(strategy.with_idleness(Duration.of_minutes(20)))
        .lateness(WINDOWS, LATENESS)
    )


def files(directory: Path) -> str:
    """Three files of the flights, in order of arrival."""
    flights = pq.read_table(LOG).sort_by("arrival")
    flights = flights.append_column("region", pa.array([row % 3 for row in range(flights.num_rows)]))
    for number, start in enumerate(range(0, flights.num_rows, 12_000)):
        pq.write_table(flights.slice(start, 12_000), directory / f"{number}.parquet", row_group_size=5_000)
    return str(directory)


@pytest.mark.parametrize("split", [None, "region"])
def test_figures_of_files_are_those_of_the_embedded_engine(
    spark: Any, tmp_path: Path, split: str | None
) -> None:
    log = files(tmp_path)
    expected = frontier_of(
        StreamExecutionEnvironment.get_execution_environment(), log, split, arrival="arrival"
    )
    found = frontier_of(SparkExecutionEnvironment(spark), log, split, arrival="arrival")
    assert expected.largest_disorder_ms > 0
    assert found.to_arrow() == expected.to_arrow()
    assert found.by_split() == expected.by_split()
    assert str(found) == str(expected)


def test_figures_of_a_dataframe_are_those_of_its_rows_in_order_of_arrival(spark: Any, tmp_path: Path) -> None:
    log = files(tmp_path)
    expected = frontier_of(
        StreamExecutionEnvironment.get_execution_environment(), log, "region", arrival="arrival"
    )
    rows = spark.read.parquet(log)
    env = SparkExecutionEnvironment(spark)
    for dataframe in (rows, rows.repartition(5, "origin")):
        found = frontier_of(env, dataframe, "region", arrival="arrival")
        assert found.to_arrow() == expected.to_arrow()
        unordered = expected.by_split().drop_columns(["silence_ms"])
        assert found.by_split().drop_columns(["silence_ms"]) == unordered


def test_figures_without_arrivals_are_those_of_the_embedded_engine(spark: Any, tmp_path: Path) -> None:
    log = files(tmp_path)
    expected = frontier_of(StreamExecutionEnvironment.get_execution_environment(), log, None, rate=20.0)
    assert (
        frontier_of(SparkExecutionEnvironment(spark), log, None, rate=20.0).to_arrow() == expected.to_arrow()
    )


def test_other_strategies_are_compared_as_by_the_embedded_engine(spark: Any) -> None:
    others = [
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(3)),
        WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_minutes(30), 0.95, 100),
    ]
    expected = hourly_flights(StreamExecutionEnvironment.get_execution_environment()).what_if(others)
    found = hourly_flights(SparkExecutionEnvironment(spark)).what_if(others)
    assert found.to_arrow() == expected.to_arrow()
    assert found.differences(2) == expected.differences(2)

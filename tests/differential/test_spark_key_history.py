"""The history of a key on Spark is that of this process, for logs of files and for DataFrames."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.examples.flights import LOG, hourly_flights
from flinkcore.spark import SparkExecutionEnvironment


def test_the_history_of_a_key_of_files_is_the_same(spark: Any) -> None:
    expected = hourly_flights(StreamExecutionEnvironment.get_execution_environment()).why("ATL")
    found = hourly_flights(SparkExecutionEnvironment(spark)).why("ATL")
    assert found.events.equals(expected.events)
    assert found.firings.equals(expected.firings)


def test_the_history_of_a_key_of_a_dataframe_is_the_same_however_it_is_partitioned(
    spark: Any, tmp_path: Path
) -> None:
    rows = pq.read_table(LOG).slice(0, 2000)
    pq.write_table(rows, tmp_path / "log.parquet")
    dataframe = spark.read.parquet(str(tmp_path / "log.parquet"))

    def history(log: Any) -> Any:
        from flinkcore.common import Duration, Time, WatermarkStrategy
        from flinkcore.datastream import TumblingEventTimeWindows
        from flinkcore.datastream.aggregates import count

        stream: DataStream = (
            SparkExecutionEnvironment(spark)
            .from_event_log(log, timestamp="date", arrival="arrival", split="origin")
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
            )
            .key_by("origin")
            .window(TumblingEventTimeWindows.of(Time.hours(1)))
            .aggregate(n=count())
        )
        return stream.why("DEN")

    expected = history(dataframe)
    assert expected.events.num_rows > 10
    assert expected.events.column("position").null_count == expected.events.num_rows
    assert "of split 'DEN'" in str(expected)
    assert "position" not in str(expected)
    kept = history(dataframe.repartition(3, "destination"))
    assert kept.events.equals(expected.events)
    assert kept.firings.equals(expected.firings)


def test_the_history_of_a_key_of_a_join_is_the_same(spark: Any) -> None:
    def history(environment: Any) -> Any:
        from flinkcore.common import Time, WatermarkStrategy

        flights = environment.from_event_log(LOG, timestamp="date", arrival="arrival", split="origin")
        flights = flights.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        leaving, landing = flights.key_by("origin"), flights.select("destination").key_by("destination")
        return leaving.join_interval(landing, Time.minutes(-5), Time.minutes(5)).why("RNO")

    expected = history(StreamExecutionEnvironment.get_execution_environment())
    assert {"in result", "in no result"} == set(expected.events["fate"].to_pylist())
    found = history(SparkExecutionEnvironment(spark))
    assert found.events.equals(expected.events)
    assert found.firings.equals(expected.firings)

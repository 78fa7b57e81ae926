"""DataFrames and tables of Spark as event logs."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from models.spark_sessions import spark_session

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.errors import ConfigurationError
from flinkcore.spark import SparkExecutionEnvironment, replay

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session("local[2]") as session:
        yield session


def rides(n: int = 600) -> pa.Table:
    """Rides that are reported 3 s apart, up to 40 s after they have ended."""
    return pa.table(
        {
            "ended": pa.array([i * 3 - i * 7 % 41 for i in range(n)], pa.int64()),
            "received": pa.array([i * 3000 for i in range(n)], pa.int64()),
            "meter": [("a", "b", "c")[i % 3] for i in range(n)],
            "distance": pa.array([i * 37 % 1000 for i in range(n)], pa.int64()),
        }
    )


def per_minute(stream: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by("meter")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.minutes(1))).allowed_lateness(Time.seconds(15))
    return windows.aggregate(rides=count(), metres=sum_("distance"))


def content(rows: Any) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def expected(table: pa.Table) -> list[str]:
    ended = pa.array([value * 1000 for value in table["ended"].to_pylist()], pa.int64())
    log = table.set_column(0, "ended", ended)
    stream = StreamExecutionEnvironment().from_event_log(log, timestamp="ended", arrival="received")
    return content(per_minute(stream).to_arrow())


def test_columns_of_spark_name_times_and_compute_and_filter_events(spark: Any) -> None:
    log = spark.createDataFrame(rides()).withColumn("km", F.col("distance") / 1000).drop("distance")
    stream = (
        SparkExecutionEnvironment(spark)
        .from_event_log(log, timestamp=F.col("ended") * 1000, arrival=F.col("received"))
        .with_columns(distance=(F.col("km") * 1000).cast("long"))
        .filter("distance > 500")
        .filter(F.col("meter") != "c")
    )
    far = [row for row in rides().to_pylist() if row["distance"] > 500 and row["meter"] != "c"]
    assert content(per_minute(stream).to_arrow()) == expected(pa.Table.from_pylist(far, rides().schema))
    assert "timestamp __flinkcore_computed timestamp: (ended * 1000)" in stream.explain()


def test_a_computed_timestamp_is_no_column_of_the_events(spark: Any) -> None:
    env = SparkExecutionEnvironment(spark)
    stream = env.from_event_log(
        spark.createDataFrame(rides(20)),
        timestamp=F.col("ended") * 1000,
        arrival="received",
        split=F.lit("all"),
    )
    seen = list(stream.map(lambda row: sorted(row.as_dict())).execute_and_collect())
    assert seen == [["distance", "ended", "meter", "received"]] * 20


def test_replay_is_a_function_for_transform(spark: Any) -> None:
    log = spark.createDataFrame(rides()).withColumn("ended", F.col("ended") * 1000)
    results = log.transform(replay, per_minute, timestamp="ended", arrival="received")
    assert content(results.toArrow()) == expected(rides())
    with pytest.raises(ConfigurationError, match="replay takes a Spark DataFrame, not Table"):
        replay(rides(), per_minute, timestamp="ended")
    with pytest.raises(ConfigurationError, match="gives the stream of its results, not 7"):
        log.transform(replay, lambda stream: 7, timestamp="ended")


def test_columns_of_spark_behind_other_steps_are_refused(spark: Any) -> None:
    log = spark.createDataFrame(rides(3))
    stream = SparkExecutionEnvironment(spark).from_event_log(log, timestamp="ended")
    assigned = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    with pytest.raises(ConfigurationError, match=r"filter takes a pyarrow expression.*before any other step"):
        assigned.filter(F.col("distance") > 5)
    with pytest.raises(ConfigurationError, match=r"filter takes a pyarrow expression.*before any other step"):
        assigned.filter("distance > 5")
    with pytest.raises(ConfigurationError, match=r"format= is of files; this log is a Spark DataFrame"):
        SparkExecutionEnvironment(spark).from_event_log(log, timestamp="ended", format="csv")

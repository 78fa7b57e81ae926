"""Windows of local days in tasks of Spark: the rows of embedded jobs, and of Spark's own group by local date."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as f

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import DataStream, LogStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.spark import SparkExecutionEnvironment

pytestmark = pytest.mark.spark_session(
    "local[2]", spark_sql_shuffle_partitions="2", spark_sql_session_timeZone="UTC"
)

ZONE = "Australia/Lord_Howe"
RESULT = pa.schema({"user": pa.string(), "start": pa.int64(), "n": pa.int64()})


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files around the nights on which clocks change by half an hour, with few keys, so that tasks merge rows."""
    folder = tmp_path_factory.mktemp("log")
    random = np.random.default_rng(3)
    for number, night in enumerate((datetime(2026, 4, 1), datetime(2026, 9, 29))):
        begin = int(night.replace(tzinfo=timezone.utc).timestamp() * 1000)
        times = begin + np.sort(random.integers(0, 9 * 86_400_000, 4000))
        table = pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("ms", "UTC")),
                "user": pa.array(random.integers(0, 5, 4000).astype(str)),
                "spent": pa.array(random.integers(0, 100, 4000)),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def read(env: StreamExecutionEnvironment, source: Any) -> LogStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(3_600_000)
    return env.from_event_log(source, timestamp="ts", arrival="ts").assign_timestamps_and_watermarks(strategy)


def aggregated(stream: LogStream) -> DataStream | LogStream:
    windows = stream.key_by("user").window(TumblingEventTimeWindows.of_local_days(ZONE))
    return windows.aggregate(n=count(), spent=sum_("spent"))


def counter() -> ProcessWindowFunction[Any, Any, Any, Any]:
    class Count(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
            yield key, context.window().start, len(list(elements))

    return Count()


def processed(stream: LogStream) -> DataStream | LogStream:
    return (
        stream.key_by("user").window(TumblingEventTimeWindows.of_local_days(ZONE)).process(counter(), RESULT)
    )


def rows(result: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in result.to_arrow().to_pylist())


@pytest.mark.parametrize("job", [aggregated, processed])
@pytest.mark.parametrize("as_dataframe", [False, True], ids=["path", "DataFrame"])
def test_spark_gives_the_rows_of_the_embedded_engine(
    spark: Any, log: Path, job: Callable[[LogStream], Any], as_dataframe: bool
) -> None:
    embedded = job(read(StreamExecutionEnvironment.get_execution_environment(), str(log))).execute()
    source = spark.read.parquet(str(log)) if as_dataframe else str(log)
    assert rows(job(read(SparkExecutionEnvironment(spark), source)).execute()) == rows(embedded)


def test_days_are_those_of_a_group_by_local_date_in_spark(spark: Any, log: Path) -> None:
    stream = aggregated(read(SparkExecutionEnvironment(spark), str(log)))
    assert "events of a key and local day are merged before the shuffle" in stream.explain()
    found = stream.execute().to_arrow().to_pylist()
    utc = f.col("ts").cast("timestamp_ntz")
    day = f.to_date(f.from_utc_timestamp(utc.cast("string"), ZONE))
    grouped = spark.read.parquet(str(log)).groupBy("user", day.alias("day")).agg(f.count("*"), f.sum("spent"))
    assert sorted(
        (row["user"], row["window_start"].astimezone(ZoneInfo(ZONE)).date(), row["n"], row["spent"])
        for row in found
    ) == sorted(map(tuple, grouped.collect()))
    lengths = {(row["window_end"] - row["window_start"]).total_seconds() / 3600 for row in found}
    assert lengths == {23.5, 24, 24.5}

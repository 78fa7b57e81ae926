"""Results join with what Spark makes of the same times, whatever the time zone of the session."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.sampling import sampled

pytest.importorskip("pyspark")

from pyspark.sql import functions as f
from pyspark.sql import types

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.spark import SparkExecutionEnvironment

pytestmark = pytest.mark.spark_session("local[2]", spark_sql_shuffle_partitions="1")

ZONES = ["America/New_York", "Asia/Kolkata"]
# Clocks in New York are set back on this night.
MOMENTS = [datetime(2001, 10, 28, 4) + timedelta(minutes=7 * number, seconds=30) for number in range(30)]
NAIVE = pa.array(MOMENTS, pa.timestamp("us"))
INSTANTS = NAIVE.cast(pa.timestamp("us", "UTC"))


def with_offset(moment: datetime) -> str:
    return f"{(moment + timedelta(hours=5, minutes=30)).isoformat()}+05:30"


def parquet(path: Path, times: pa.Array, **options: Any) -> str:
    pq.write_table(pa.table({"ts": times}), path / "log.parquet", **options)
    return str(path / "log.parquet")


def csv(path: Path, times: list[str]) -> str:
    (path / "log.csv").write_text("\n".join(["n,ts", *(f"1,{text}" for text in times)]) + "\n")
    return str(path / "log.csv")


def of_parquet(spark: Any, path: str) -> Any:
    return spark.read.parquet(path)


def of_csv(spark: Any, path: str) -> Any:
    return spark.read.csv(path, header=True, schema="n INT, ts STRING").where("ts <> '?'")


Written = Callable[[Path], str]
Read = Callable[[Any, str], Any]
UTC_TEXT = [f"{moment.isoformat()}Z" for moment in MOMENTS]
KINDS: dict[str, tuple[Written, Read, str, type[types.DataType]]] = {
    "text with Z": (
        lambda path: parquet(path, pa.array(UTC_TEXT)),
        of_parquet,
        "to_timestamp(ts)",
        types.TimestampType,
    ),
    "text with an offset": (
        lambda path: parquet(path, pa.array(list(map(with_offset, MOMENTS)))),
        of_parquet,
        "to_timestamp(ts)",
        types.TimestampType,
    ),
    "instants": (lambda path: parquet(path, INSTANTS), of_parquet, "ts", types.TimestampType),
    "naive": (lambda path: parquet(path, NAIVE), of_parquet, "ts", types.TimestampNTZType),
    "INT96": (
        lambda path: parquet(path, NAIVE, use_deprecated_int96_timestamps=True),
        of_parquet,
        "ts",
        types.TimestampType,
    ),
    "CSV": (lambda path: csv(path, UTC_TEXT), of_csv, "to_timestamp(ts)", types.TimestampType),
    "CSV with a bad row": (
        lambda path: csv(path, [*UTC_TEXT, "?"]),
        of_csv,
        "to_timestamp(ts)",
        types.TimestampType,
    ),
    "integers": (
        lambda path: parquet(path, NAIVE.cast(pa.timestamp("ms")).cast(pa.int64())),
        of_parquet,
        "timestamp_millis(ts)",
        types.TimestampType,
    ),
    "seconds": (
        lambda path: parquet(path, NAIVE.cast(pa.timestamp("s")).cast(pa.int64())),
        of_parquet,
        "timestamp_seconds(ts)",
        types.TimestampType,
    ),
    "dates": (
        lambda path: parquet(path, NAIVE.cast(pa.date32())),
        of_parquet,
        "ts",
        types.TimestampNTZType,
    ),
}


@pytest.mark.parametrize("kind", sampled(KINDS, 3))
def test_window_starts_join_with_those_of_spark(spark: Any, tmp_path: Path, kind: str) -> None:
    written, read, expression, expected_type = KINDS[kind]
    moment = f.expr(expression)
    path = written(tmp_path)

    def minutes(log: Any) -> Any:
        unit = {"timestamp_unit": "s"} if kind == "seconds" else {}
        events = SparkExecutionEnvironment(spark).from_event_log(
            log, timestamp="ts", on_bad_row="drop", **unit
        )
        events = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        windows = events.window_all(TumblingEventTimeWindows.of(Time.minutes(1)))
        return windows.aggregate(events=count()).execute().to_dataframe()

    of_path = minutes(path).persist()
    for zone in ZONES:
        spark.conf.set("spark.sql.session.timeZone", zone)
        log = read(spark, path)
        own = log.select(
            f.date_trunc("minute", moment).alias("truncated"),
            f.window(moment, "1 minute").start.alias("start"),
        )
        of_frame = minutes(log)
        for results in (of_path, of_frame):
            assert isinstance(results.schema["window_start"].dataType, expected_type)
            assert isinstance(results.schema["window_end"].dataType, expected_type)
            is_start = (own["truncated"] == results["window_start"]) & (
                own["start"] == results["window_start"]
            )
            assert own.join(results, is_start).count() == len(MOMENTS), zone

"""DataFrames that Spark cannot read or compute: errors say what is wrong there, and what to do."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import TumblingEventTimeWindows
from flinkcore.datastream.aggregates import max_
from flinkcore.errors import DataError, SourceError
from flinkcore.spark import SparkExecutionEnvironment, compare


def job(spark: Any, frame: Any) -> Any:
    log = SparkExecutionEnvironment(spark).from_event_log(frame, timestamp="ts", arrival="ts")
    assigned = log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    windows = assigned.key_by("ts").window(TumblingEventTimeWindows(5))
    return windows.aggregate(most=max_("n")).execute().to_dataframe().collect()


def compared(spark: Any, frame: Any, upserts: bool | None) -> Any:
    other = spark.range(3).selectExpr("id as ts", "id as n")
    return compare(frame, other, keys="ts", columns="n", upserts=upserts)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "a job": job,
    "compare": lambda spark, frame: compared(spark, frame, None),
    "compare with upserts": lambda spark, frame: compared(spark, frame, True),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fault", ["damaged", "missing"])
def test_a_file_that_spark_cannot_read_is_named(spark: Any, tmp_path: Path, use: str, fault: str) -> None:
    path = tmp_path / "log"
    spark.range(100).selectExpr("id as ts", "id as n").write.parquet(str(path))
    frame = spark.read.parquet(str(path)).selectExpr("ts", "n + 0 * rand() as n")
    if fault == "missing":
        shutil.rmtree(path)
    else:
        for file in path.glob(".*.crc"):
            file.unlink()
        for file in path.glob("*.parquet"):
            file.write_bytes(b"no Parquet")
    with pytest.raises(SourceError, match=r"Spark cannot read .*/log/part-\S+, of a DataFrame: \S") as failed:
        USES[use](spark, frame)
    text = str(failed.value)
    assert len(text) < 600
    assert "\n" not in text
    assert "make the DataFrame again" in text
    assert failed.value.__cause__ is not None


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("number", "condition"),
    [
        ("1 / (id - 5)", "DIVIDE_BY_ZERO"),
        ("cast(concat('x', id) as double)", "CAST_INVALID_INPUT"),
        ("array(1D, 2D)[id]", "INVALID_ARRAY_INDEX"),
        ("cast(date(concat('x', id)) as string)", "CAST_INVALID_INPUT"),
        ("raise_error('no ' || id)", "USER_RAISED_EXCEPTION"),
    ],
)
def test_a_row_that_spark_cannot_compute_is_an_error_of_the_data(
    spark: Any, use: str, number: str, condition: str
) -> None:
    frame = spark.range(10).selectExpr("id as ts", f"cast({number} as double) as n")
    with pytest.raises(
        DataError, match=rf"Spark cannot compute a row of a DataFrame: \[{condition}\] \S"
    ) as failed:
        USES[use](spark, frame)
    assert len(str(failed.value)) < 600
    assert "\n" not in str(failed.value)
    assert "SQLSTATE" not in str(failed.value)

"""`over` and `aggregate` give on Spark what they give embedded, from files and DataFrames."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count, count_distinct, max_, mean, sum_
from flinkcore.spark import SparkExecutionEnvironment

JOBS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda keyed: keyed.over(3).aggregate(
        total=sum_("v"), highest=max_("v"), seen=count_distinct("v")
    ),
    "time": lambda keyed: keyed.over(Time.milliseconds(400)).aggregate(mean=mean("v"), n=count()),
    "arrivals": lambda keyed: keyed.over(2, by="arrival").aggregate(total=sum_("v")),
    "changes": lambda keyed: keyed.aggregate(n=count(), total=sum_("v"), changes=True),
    "final": lambda keyed: keyed.aggregate(n=count(), highest=max_("v")),
}


def keyed(environment: Any, log: Any) -> Any:
    bound = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(300))
    events = environment.from_event_log(
        log, timestamp="ts", arrival="at", timestamp_unit="ms", arrival_unit="ms"
    )
    return events.assign_timestamps_and_watermarks(bound).key_by("user")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of two files, out of order by up to half a second."""
    folder = tmp_path_factory.mktemp("frames")
    n, random = 4_000, np.random.default_rng(3)
    arrivals = np.arange(n) * 5
    table = pa.table(
        {
            "user": pa.array([f"user {number}" for number in random.integers(0, 20, n)]),
            "v": random.integers(0, 50, n),
            "ts": arrivals - random.integers(0, 500, n) + 1_000,
            "at": arrivals,
        }
    )
    for part in range(2):
        pq.write_table(table.slice(part * n // 2, n // 2), folder / f"{part}.parquet")
    return folder


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_gives_in_tasks_of_spark_what_it_gives_embedded(
    tasks_here: Callable[[int], Any], folder: Path, job: str
) -> None:
    embedded = JOBS[job](keyed(StreamExecutionEnvironment(), folder)).to_arrow()
    on_spark = JOBS[job](keyed(tasks_here(3), folder)).to_arrow()
    assert embedded.num_rows >= 20
    assert in_order(on_spark) == in_order(embedded)


def test_a_dataframe_gives_what_its_files_give(spark: Any, folder: Path) -> None:
    frame = spark.read.parquet(str(folder)).selectExpr("reverse(reverse(user)) AS user", "v", "ts", "at")
    environment = SparkExecutionEnvironment(spark).set_parallelism(2)
    for job in ("rows", "changes"):
        embedded = JOBS[job](keyed(StreamExecutionEnvironment(), folder)).to_arrow()
        on_spark = JOBS[job](keyed(environment, frame)).to_arrow()
        assert in_order(on_spark) == in_order(embedded), job

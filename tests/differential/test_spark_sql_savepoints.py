"""Jobs of Flink SQL on Spark begin with savepoints of Flink: tasks deal their entries out."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyspark")

from jobs.sql_savepoint_jobs import GOLDEN, changes, replay, rows_as_flink_shows_them

from flinkcore.spark import SparkExecutionEnvironment


@pytest.mark.parametrize("job", ["rank_of_sums", "group_hop"])
@pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")
def test_spark_begins_with_a_savepoint_of_flink_sql(job: str, spark: Any) -> None:
    rest = replay(job, "rest", parallelism=3, env=SparkExecutionEnvironment(spark))
    found = rows_as_flink_shows_them(rest.execute(restore_from=GOLDEN / job / "savepoint"))
    expected = (GOLDEN / job / "rest.jsonl").read_text().splitlines()
    assert changes(job, found) == changes(job, list(map(json.loads, expected)))

"""Nested fields by dotted names on Spark: the rows of an embedded job over the same log with columns for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from equipment.spark_sessions import dataframe_of
from jobs.nested_logs import SETTINGS, flattened, outputs, random_log
from pyspark.sql import functions as F

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.spark import SparkExecutionEnvironment, as_of, compare

LOG = random_log(seed=5, n=400)
OF_ARRIVALS = SETTINGS[2]


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(LOG, tmp_path / "log.parquet", row_group_size=60)
    return str(tmp_path / "log.parquet")


def expected(job: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    found = outputs(StreamExecutionEnvironment(), flattened(LOG), job, settings)
    assert len(found["results"]) > 4
    return found


@pytest.mark.parametrize(
    ("job", "settings"),
    [("windows", OF_ARRIVALS), ("by two", SETTINGS[0]), ("windows", SETTINGS[3]), ("selected", SETTINGS[4])],
    ids=["windows", "by two", "by position", "selected"],
)
def test_a_log_by_path_gives_the_rows_of_its_flattened_log(
    spark: Any, path: str, job: str, settings: Mapping[str, Any]
) -> None:
    assert outputs(SparkExecutionEnvironment(spark), path, job, settings) == expected(job, settings)


@pytest.mark.parametrize("settings", [OF_ARRIVALS, SETTINGS[3]], ids=["by arrival", "by position"])
def test_a_dataframe_that_spark_evaluates_gives_the_rows_of_its_flattened_log(
    spark: Any, settings: Mapping[str, Any]
) -> None:
    frame = dataframe_of(spark, LOG).withColumn("n", F.col("n") + F.lit(0))

    assert outputs(SparkExecutionEnvironment(spark), frame, "windows", settings) == expected(
        "windows", settings
    )


def test_a_dataframe_of_files_is_read_as_these_files_field_by_field(spark: Any, path: str) -> None:
    env = SparkExecutionEnvironment(spark)
    frame = spark.read.parquet(path)

    stream = env.from_event_log(
        frame, timestamp="payload.source.ts_ms", arrival="kafka.at", on_bad_row="drop"
    )

    assert "read as 1 Parquet file" in stream.select("payload.after.user_id").explain()
    assert outputs(env, frame, "windows", OF_ARRIVALS) == expected("windows", OF_ARRIVALS)


def test_a_column_of_spark_may_replace_a_struct_whose_fields_are_named(spark: Any) -> None:
    frame = dataframe_of(spark, LOG.filter(LOG["kafka"].is_valid()))
    stream = SparkExecutionEnvironment(spark).from_event_log(frame, timestamp="kafka.at")

    replaced = stream.with_columns(kafka=F.struct((F.col("kafka.at") * 2).alias("at")))

    assert replaced.select("n", "kafka.at").to_arrow().sort_by("n").to_pydict() == {
        "n": list(range(400)),
        "kafka.at": [20 * at for at in range(400)],
    }


def test_a_results_dotted_column_is_read_back_from_parquet_by_spark(
    spark: Any, path: str, tmp_path: Path
) -> None:
    env = SparkExecutionEnvironment(spark)
    stream = env.from_event_log(path, timestamp="payload.source.ts_ms", on_bad_row="drop")

    stream.select("payload.after.user_id", user=pa.compute.field("payload.after.user_id")).write_parquet(
        tmp_path / "out"
    )

    frame = spark.read.parquet(str(tmp_path / "out"))
    assert frame.columns == ["payload.after.user_id", "user"]
    assert frame.where("`payload.after.user_id` <=> user").count() == frame.count() > 100


def test_a_sink_with_structs_is_compared_with_columns_of_a_replay(spark: Any) -> None:
    sink = dataframe_of(spark, pa.table({"key": [{"user": "a"}, {"user": "b"}], "n": [1, 2]}))
    replay = dataframe_of(spark, pa.table({"key.user": ["a", "b"], "n": [1, 3]}))

    with compare(sink, replay, keys="key.user") as found:
        assert found.equal == 1
        assert [row["key.user"] for row in found.to_arrow().to_pylist()] == ["b"]


def test_questions_are_answered_by_nested_keys_and_times(spark: Any) -> None:
    questions = dataframe_of(spark, pa.table({"q": [{"user": "a", "at": 5}, {"user": "b", "at": 1}]}))
    features = dataframe_of(
        spark,
        pa.table({"q": [{"user": "a"}, {"user": "b"}], "f": [{"v": 7}, {"v": 8}], "emitted_at": [1, 2]}),
    )

    answers = as_of(questions, features, at="q.at", keys="q.user", columns="f.v")

    assert answers.columns == ["q", "f.v"]
    assert sorted((row["q"]["user"], row["f.v"]) for row in answers.collect()) == [("a", 7), ("b", None)]

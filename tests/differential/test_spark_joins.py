"""Joins over columns give the same rows embedded, with little memory, and in tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.spark_sessions import evaluated

pytest.importorskip("pyspark")

from flinkcore.common import Configuration, Duration, Time, WatermarkStrategy
from flinkcore.datastream import (
    KeyedLogStream,
    LogStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.spark import SparkExecutionEnvironment

pytestmark = pytest.mark.spark_session("local[2]", spark_sql_shuffle_partitions="2")

CHEAPER = pc.field("price") < pc.field("price_right")
MINUTES = TumblingEventTimeWindows.of(Time.minutes(1))

Joining = Callable[[KeyedLogStream, KeyedLogStream], LogStream]

JOINS: dict[str, Joining] = {
    "interval": lambda a, b: a.join_interval(b, Time.seconds(-30), Time.seconds(60), "full", where=CHEAPER),
    "window": lambda a, b: a.join_window(b, MINUTES, "full", where=CHEAPER),
    "temporal": lambda a, b: a.join_temporal(b, "left"),
    "regular": lambda a, b: a.join_regular(b, "left", where=CHEAPER),
    "changes": lambda a, b: a.join_regular(b, "full", changes=True),
    "chained": lambda a, b: (
        a.join_interval(b, Time.seconds(0), Time.seconds(9), "left")
        .key_by("user")
        .join_temporal(b, "left", suffix="_then")
    ),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    random, folders = np.random.default_rng(5), []
    for name in ("orders", "payments"):
        folder = tmp_path_factory.mktemp(name)
        for part in range(2):
            seconds = 600 * part + np.sort(random.integers(0, 600, 400))
            columns = {
                "user": random.integers(0, 60, 400).astype(str),
                "price": random.integers(0, 100, 400),
                "ts": (seconds - random.integers(0, 9, 400)) * 1000 + 1_700_000_000_000,
                "at": seconds * 1000 + 1_700_000_000_000,
            }
            table = pa.table(columns)
            for column in ("ts", "at"):
                times = table[column].cast(pa.timestamp("ms", "UTC"))
                table = table.set_column(table.schema.get_field_index(column), column, times)
            pq.write_table(table, folder / f"{part}.parquet")
        folders.append(folder)
    return folders


def joined(environment: StreamExecutionEnvironment, join: Joining, inputs: list[Any]) -> list[Any]:
    bound = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    streams = [
        environment.from_event_log(each, timestamp="ts", arrival="at")
        .assign_timestamps_and_watermarks(bound)
        .key_by("user")
        for each in inputs
    ]
    return sorted(map(str, join(*streams).execute().to_arrow().to_pylist()))


@pytest.mark.parametrize("name", JOINS)
def test_a_join_gives_in_tasks_what_it_gives_embedded(
    tasks_here: Callable[[int], Any], logs: list[Path], name: str
) -> None:
    expected = joined(StreamExecutionEnvironment(), JOINS[name], [*map(str, logs)])
    assert len(expected) > 100
    assert joined(tasks_here(3), JOINS[name], [*map(str, logs)]) == expected


@pytest.mark.parametrize("name", JOINS)
def test_a_join_gives_with_little_memory_what_it_gives_with_much(logs: list[Path], name: str) -> None:
    expected = joined(StreamExecutionEnvironment(), JOINS[name], [*map(str, logs)])
    little = StreamExecutionEnvironment()
    little.configure(Configuration().set_string("taskmanager.memory.managed.size", "4 kb"))
    assert joined(little, JOINS[name], [*map(str, logs)]) == expected


def test_a_join_of_dataframes_gives_what_it_gives_embedded(spark: Any, logs: list[Path]) -> None:
    join = JOINS["interval"]
    expected = joined(StreamExecutionEnvironment(), join, [*map(str, logs)])
    frames = [evaluated(spark.read.parquet(str(folder))) for folder in logs]
    environment = SparkExecutionEnvironment(spark)
    assert joined(environment, join, frames) == expected
    assert joined(environment, join, [*map(str, logs)]) == expected

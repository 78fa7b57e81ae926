"""Deduplication and highest rows give on Spark the rows that they give embedded, from files and DataFrames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.spark_sessions import dataframe_of
from jobs.random_logs import in_files, random_log

pytest.importorskip("pyspark")

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, max_
from flinkcore.spark import SparkExecutionEnvironment

LATE = OutputTag("late")
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(40))


def without_some_users(rows: Any) -> Any:
    return rows.with_columns(user=pc.if_else(pc.bit_wise_and(pc.field("ts"), 3) == 0, None, pc.field("user")))


CALLS: dict[str, Callable[[Any], DataStream]] = {
    "first": lambda keyed: keyed.deduplicate(),
    "last, as changes": lambda keyed: keyed.deduplicate("last", changes=True),
    "highest": lambda keyed: keyed.top(3, ["part", "ts"], descending=[False, True]),
    "highest, as changes": lambda keyed: keyed.top(2, "ts", changes=True),
    "of changes": lambda keyed: (
        keyed.top(3, "ts", rank_column=None, changes=True)
        .key_by("part")
        .top(2, ["at", "user"], rank_column=None, changes=False)
    ),
    "joined changes": lambda keyed: (
        keyed.aggregate(n=count(), latest=max_("ts"), changes=True)
        .key_by("user")
        .join_regular(keyed.top(2, "ts", rank_column=None, changes=True).key_by("user"), "full", changes=True)
    ),
    "of windows": lambda keyed: keyed.window(WINDOWS).top(2, "ts", rank="dense_rank"),
    "of null keys": lambda keyed: without_some_users(keyed).key_by("user", null_keys=True).top(2, "ts"),
    "windows of null keys": lambda keyed: (
        without_some_users(keyed).key_by("user", null_keys=True).window(WINDOWS).aggregate(n=count())
    ),
    "of results": lambda keyed: (
        keyed.window(WINDOWS)
        .aggregate(n=count())
        .key_by("window_end")
        .top(1, "n", rank="rank", window_end="window_end")
    ),
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    table = random_log(11, 2000)
    return in_files(table, tmp_path_factory.mktemp("log")), table


def stream(env: StreamExecutionEnvironment, data: Any, **order: str) -> Any:
    env.get_config().set_auto_watermark_interval(20)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))
    rows = env.from_event_log(data, timestamp="ts", integer_times=True, arrival="at", split="part", **order)
    return rows.assign_timestamps_and_watermarks(strategy).key_by("user")


def shown(result: Any) -> list[str]:
    return sorted(map(str, result.to_arrow().to_pylist()))


@pytest.mark.parametrize("call", CALLS)
def test_rows_are_those_of_the_embedded_run(
    tasks_here: Callable[[int], Any], log: tuple[Path, pa.Table], call: str
) -> None:
    path, _ = log
    embedded = shown(CALLS[call](stream(StreamExecutionEnvironment().set_parallelism(2), path)))
    assert len(embedded) > 3
    assert shown(CALLS[call](stream(tasks_here(3), path))) == embedded


@pytest.mark.parametrize(
    "call",
    [
        lambda keyed: (
            keyed.window(WINDOWS)
            .side_output_late_data(LATE)
            .top(2, "ts", rank_column=None)
            .key_by("part")
            .top(1, "ts")
        ),
        lambda keyed: keyed.deduplicate(late_to=LATE),
        lambda keyed: keyed.join_window(keyed, WINDOWS, "semi", right_late_to=LATE),
    ],
)
def test_late_rows_are_those_of_the_embedded_run(
    tasks_here: Callable[[int], Any], log: tuple[Path, pa.Table], call: Callable[[Any], DataStream]
) -> None:
    path, _ = log
    embedded, on_spark = (
        call(stream(env, path)).execute().get_side_output(LATE)
        for env in (StreamExecutionEnvironment().set_parallelism(2), tasks_here(3))
    )
    assert len(shown(embedded)) > 3
    assert shown(on_spark) == shown(embedded)


@pytest.mark.parametrize("call", ["last, as changes", "joined changes", "of windows"])
def test_a_session_gives_the_rows_of_the_embedded_run(
    spark: Any, log: tuple[Path, pa.Table], call: str
) -> None:
    path, table = log
    embedded = shown(CALLS[call](stream(StreamExecutionEnvironment(), path)))
    env = SparkExecutionEnvironment(spark).set_parallelism(2)
    assert shown(CALLS[call](stream(env, path))) == embedded
    # Rows of a DataFrame have an order by a column alone.
    ordered = shown(CALLS[call](stream(StreamExecutionEnvironment(), table, position="row")))
    assert shown(CALLS[call](stream(env, dataframe_of(spark, table), position="row"))) == ordered

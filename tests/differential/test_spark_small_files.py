"""Logs of many small files on Spark: rows as embedded, however files and partitions are packed into tasks."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.rows_by_key import rows_by_key
from equipment.sampling import at_night

pytest.importorskip("pyspark")

from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.common import Duration, ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.common.split_origin import FILE
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.operator_levels import PACKED, PartitionPacking
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.logs import spark_log
from flinkcore.spark.logs.log_input import INLINE_BYTES, FileInput
from flinkcore.spark.logs.spark_log import SparkLog
from flinkcore.spark.logs.task_packing import UNPACKED, TaskPacking

FILES, ROWS = 40, 25
BAD = OutputTag("bad")
LATE = OutputTag("late")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        table = pa.table(
            {
                "ts": [None if row % 31 == 7 else 40 * row - 977 * (row % 5) for row in rows],
                "arrival": [40 * row + 3 * (row % 2) for row in rows],
                "key": [f"k{row * 7 % 11}" for row in rows],
                "row": list(rows),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def windows(env: StreamExecutionEnvironment, folder: Path, settings: dict[str, Any]) -> DataStream:
    log = env.from_event_log(str(folder), timestamp="ts", on_bad_row=BAD, **settings)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(900))
    windowed = log.assign_timestamps_and_watermarks(strategy).key_by("key")
    tumbling = windowed.window(TumblingEventTimeWindows.of(Time.seconds(2))).side_output_late_data(LATE)
    return tumbling.aggregate(n=count(), rows=collect("row"))


def plan_of(folder: Path, settings: dict[str, Any]) -> JobPlan:
    stream = windows(StreamExecutionEnvironment(), folder, settings)
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


def outputs(result: Any) -> list[list[str]]:
    tables = [result.to_arrow(), *(result.get_side_output(tag).to_arrow() for tag in (LATE, BAD))]
    return [rows_by_key(table, ["key"]) for table in tables[:2]] + [sorted(map(repr, tables[2].to_pylist()))]


TINY = PartitionPacking(task_events=1, least_tasks=2)


@pytest.mark.parametrize(
    ("settings", "packing", "inline_bytes", "partitions"),
    [
        pytest.param({"arrival": "arrival"}, UNPACKED, INLINE_BYTES, PACKED, marks=at_night),
        ({"arrival": "arrival"}, TaskPacking(7 << 20, 1 << 20), 0, PartitionPacking(400, 2)),
        ({"rate": 25, "split": FILE}, TaskPacking(13 << 20, 1 << 20), 0, TINY),
        ({"rate": 25}, TaskPacking(1 << 40, 1 << 20), INLINE_BYTES, PartitionPacking(1 << 40, 1)),
    ],
    ids=["a task for each file", "7 files by rows", "splits by rows", "one task"],
)
def test_rows_do_not_depend_on_the_packing(
    spark: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    packing: TaskPacking,
    inline_bytes: int,
    partitions: PartitionPacking,
) -> None:
    # The driver would read the times of so small a log.
    monkeypatch.setattr(spark_log, "SHORT_LOG_BYTES", 0)
    monkeypatch.setattr(spark_log, "SMALL_LOG_BYTES", 0)
    expected = windows(StreamExecutionEnvironment().set_parallelism(1), folder, settings).execute()
    plan = plan_of(folder, settings)
    files = FileInput(tuple(plan.logs[0].log.chunks(1)), packing, inline_bytes)
    replay = SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 5, packing=partitions)
    result = SparkResult(replay)
    assert outputs(result) == outputs(expected)
    assert result.report == expected.report


def test_files_are_packed_as_the_session_packs_them(spark: Any, folder: Path) -> None:
    expected = windows(StreamExecutionEnvironment(), folder, {"arrival": "arrival"}).execute()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20m")
    try:
        result = windows(SparkExecutionEnvironment(spark), folder, {"arrival": "arrival"}).execute()
        assert outputs(result) == outputs(expected)
        (log,) = result._replay._given_logs
        files = [len(chunk.parts) for chunk in log.log.all_chunks]
        assert {sum(files[task.start : task.stop]) for task in log.log.tasks} == {5}
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")

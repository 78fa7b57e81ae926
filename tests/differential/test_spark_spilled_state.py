"""State that does not fit into the memory of Spark's workers: the same rows as in one process with enough of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs.random_logs import in_files, random_log

pytest.importorskip("pyspark")

from flinkcore.common import Configuration, Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect, count, sum_
from flinkcore.spark import SparkExecutionEnvironment

LATE = OutputTag("late")
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_files(random_log(5, 3000), tmp_path_factory.mktemp("log"))


def keyed(env: StreamExecutionEnvironment, files: Path) -> Any:
    log = env.from_event_log(files, timestamp="ts", integer_times=True, arrival="at", split="part")
    return log.assign_timestamps_and_watermarks(BOUNDED).key_by("user")


def merged_windows(env: StreamExecutionEnvironment, files: Path) -> DataStream:
    windows = keyed(env, files).window(TumblingEventTimeWindows.of(Time.milliseconds(2000)))
    return windows.side_output_late_data(LATE).aggregate(n=count(), total=sum_("row"))


def windows_of_windows(env: StreamExecutionEnvironment, files: Path) -> DataStream:
    sessions = keyed(env, files).window(EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
    counts = sessions.allowed_lateness(15).aggregate(n=count(), rows=collect("row"))
    again = counts.key_by("n").window(TumblingEventTimeWindows.of(Time.milliseconds(400)))
    return again.aggregate(users=collect("user"), total=sum_("n"))


@pytest.mark.parametrize("job", [merged_windows, windows_of_windows], ids=lambda job: job.__name__)
def test_workers_without_memory_for_state_give_the_same_rows(
    job: Callable[[StreamExecutionEnvironment, Path], DataStream], files: Path, spark: Any
) -> None:
    whole = job(StreamExecutionEnvironment(), files).execute()
    env = SparkExecutionEnvironment(spark).set_parallelism(2).set_max_parallelism(128)
    env.configure(Configuration().set_string("taskmanager.memory.managed.size", "20 kb"))
    parts = job(env, files).execute()

    def rows(result: Any) -> list[str]:
        return sorted(map(str, result.to_arrow().to_pylist()))

    assert rows(parts) == rows(whole)
    names = "windowed", "late", "results"
    assert [getattr(parts.report, name) for name in names] == [getattr(whole.report, name) for name in names]

"""Replays on Spark warn of late events, also where Spark runs the DataFrame of their results."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import EventTimeSessionWindows, OutputTag, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import LateEventsWarning
from flinkcore.spark import SparkExecutionEnvironment

DAY_MS = 1_704_067_200_000  # 2024-01-01
WINDOWS = TumblingEventTimeWindows.of(Time.seconds(10))


def _log(folder: Path, seconds: list[float]) -> str:
    times = pa.array([int(DAY_MS + 1000 * each) for each in seconds], pa.timestamp("ms", "UTC"))
    pq.write_table(
        pa.table({"ts": times, "user": [at % 7 for at in range(len(times))]}), folder / "log.parquet"
    )
    return str(folder / "log.parquet")


def _stream(spark: Any, log: Any, windows: Any = WINDOWS, late: OutputTag | None = None) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    env = SparkExecutionEnvironment(spark)
    events = env.from_event_log(log, timestamp="ts", rate=1.0).assign_timestamps_and_watermarks(strategy)
    keyed = events.key_by("user").window(windows)
    return (keyed if late is None else keyed.side_output_late_data(late)).aggregate(n=count())


def _warnings(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    found = [each for each in caught if each.category is LateEventsWarning]
    assert [each.filename for each in found] == [__file__] * len(found)
    return [str(each.message) for each in found]


def test_a_run_for_the_driver_warns_with_the_cause(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [*map(float, range(400)), 1e8, *map(float, range(400, 800))])
    (warning,) = _warnings(_stream(spark, log).execute().to_arrow)
    assert warning.startswith("50 % of the events are late and are dropped: 400 of 801. ")
    assert f"A clock was ahead: row 400 (from 0) of {log}" in warning


@pytest.mark.parametrize(
    "action",
    [
        lambda rows: rows.collect(),
        lambda rows: rows.count(),
        lambda rows: rows.show(),
        lambda rows: rows.limit(1).collect(),
        lambda rows: rows.toPandas(),
    ],
)
def test_each_action_on_a_dataframe_warns_once(
    spark: Any, tmp_path: Path, action: Callable[[Any], Any]
) -> None:
    log = _log(tmp_path, [float(second) for second in reversed(range(800))])
    rows = _stream(spark, log).to_dataframe()
    (warning,) = _warnings(lambda: action(rows))
    assert "of the events are late and are dropped: " in warning
    assert "The log has no arrival=" in warning
    assert _warnings(lambda: action(rows)) == []


def test_a_dataframe_of_late_events_warns_too(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [float(second) for second in reversed(range(800))])
    late = OutputTag("late")
    result = _stream(spark, log, late=late).execute()
    (warning,) = _warnings(result.get_side_output(late).to_dataframe().collect)
    assert "are late and go to the side output 'late': " in warning


def test_windows_that_depend_on_other_events_warn_after_a_whole_run(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [*map(float, range(0, 8000, 20)), *map(float, range(0, 800, 20))])
    rows = _stream(spark, log, EventTimeSessionWindows.with_gap(Time.seconds(5))).to_dataframe()
    (warning,) = _warnings(rows.collect)
    assert warning.startswith("9.1 % of the events are late and are dropped: 40 of 440. ")


def test_a_dataframe_of_few_late_events_does_not_warn(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [*map(float, range(800)), 0.0])
    assert _warnings(_stream(spark, log).to_dataframe().collect) == []
    stream = _stream(spark, _log(tmp_path, [float(second) for second in reversed(range(800))]))
    stream._environment.get_config().set_late_share_warning(1)
    assert _warnings(stream.to_dataframe().collect) == []


def test_a_sample_of_a_large_log_estimates_the_share(spark: Any, tmp_path: Path) -> None:
    log = _log(tmp_path, [second / 10 for second in range(100_000)] + [0.0] * 100_000)
    rows = _stream(spark, log).to_dataframe()
    (warning,) = _warnings(rows.show)
    assert warning.startswith("About 50 % of the events are late and are dropped: ")
    assert "in a sample." in warning

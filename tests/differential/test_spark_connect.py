"""Replays through Spark Connect: same rows, reports, errors and progress as embedded."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from equipment.connect_server import connect_session
from equipment.standalone_cluster import bare_interpreter

pytest.importorskip("pyspark")
pytest.importorskip("grpc", reason='Spark Connect needs grpcio: pip install "pyspark[connect]"')
pytest.importorskip("grpc_status", reason='Spark Connect needs grpcio-status: pip install "pyspark[connect]"')
pytest.importorskip("zstandard", reason='Spark Connect needs zstandard: pip install "pyspark[connect]"')

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.columnar.results.progress import Progress
from flinkcore.common import Duration, ExecutionConfig, Time, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, max_
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError, UserCodeError
from flinkcore.examples.flights import LATE, LOG, hourly_flights
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar import progress
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.result import SparkResult
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.spark.logs.spark_log import SparkLog
from flinkcore.spark.shipping.wheel import installed_wheel


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("connect")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with connect_session(folder, bare_interpreter(folder / "bare")) as session:
            # No setting is sent that a client cannot set.
            assert [str(each.message) for each in warned if "Failed to set" in str(each.message)] == []
            yield session


@pytest.fixture(scope="module")
def embedded() -> Any:
    return hourly_flights(StreamExecutionEnvironment().set_parallelism(1)).execute()


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_rows_late_rows_and_report_are_those_of_an_embedded_replay(spark: Any, embedded: Any) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert rows(result.get_side_output(LATE).to_arrow()) == rows(embedded.get_side_output(LATE).to_arrow())
    assert result.report == embedded.report


def test_dataframes_and_files_have_the_rows_of_an_embedded_replay(
    spark: Any, embedded: Any, tmp_path: Path
) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute()
    late = embedded.get_side_output(LATE).to_arrow().num_rows
    assert result.get_side_output(LATE).to_dataframe().count() == late
    report = result.write_parquet(tmp_path / "hourly", {LATE: tmp_path / "late"})
    assert report == embedded.report
    assert rows(ds.dataset(tmp_path / "hourly").to_table()) == rows(embedded.to_arrow())
    assert ds.dataset(tmp_path / "late").count_rows() == late


def test_chunks_come_to_tasks_as_rows(spark: Any, embedded: Any) -> None:
    stream = hourly_flights(StreamExecutionEnvironment())
    plan = make_plan(StreamGraph(stream._transformation), ExecutionConfig())
    files = FileInput(tuple(plan.logs[0].log.chunks(5)), inline_bytes=0)
    result = SparkResult(SparkReplay(spark, plan, [SparkLog(plan.logs[0], files)], 3))
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.report == embedded.report


def test_executors_that_lack_flinkcore_are_sent_it(spark: Any) -> None:
    from pyspark.sql.functions import udf

    def folder_of_flinkcore(_: int) -> str:
        import flinkcore

        return flinkcore.__file__

    doubled = SparkExecutionEnvironment(spark).from_collection([1, 2]).map(lambda value: 2 * value)
    assert list(doubled.execute_and_collect()) == [2, 4]
    (found,) = spark.range(1).select(udf(folder_of_flinkcore, useArrow=False)("id")).collect()
    assert f"flinkcore-{installed_wheel().build}" in found[0]


def flights_per_airport(log: DataStream) -> DataStream:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30))
    windows = log.assign_timestamps_and_watermarks(strategy).key_by("origin")
    return windows.window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(
        n=count(), longest=max_("delay")
    )


def test_log_may_be_a_remote_dataframe(spark: Any) -> None:
    times = {"timestamp": "date", "arrival": "arrival", "split": "origin"}
    here = StreamExecutionEnvironment().from_event_log(LOG, **times)
    there = SparkExecutionEnvironment(spark).from_event_log(spark.read.parquet(str(LOG)), **times)
    assert rows(flights_per_airport(there).to_arrow()) == rows(flights_per_airport(here).to_arrow())


def test_job_goes_on_from_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    flights = pq.read_table(LOG).sort_by("arrival")
    whole = flights_per_airport(_logged(StreamExecutionEnvironment(), flights)).to_arrow()
    env = SparkExecutionEnvironment(spark)
    cut = flights.num_rows // 2
    while flights["arrival"][cut] == flights["arrival"][cut - 1]:
        cut += 1
    first = flights_per_airport(_logged(env, flights.slice(0, cut)))
    second = flights_per_airport(_logged(env, flights.slice(cut)))
    checkpoint = str(tmp_path / "checkpoint")
    before = first.execute(stop_with_checkpoint=checkpoint).to_arrow()
    after = second.execute(restore_from=checkpoint).to_arrow()
    assert 0 < before.num_rows < whole.num_rows
    assert rows(pa.concat_tables([before, after])) == rows(whole)


def _logged(env: StreamExecutionEnvironment, table: pa.Table) -> DataStream:
    return env.from_event_log(table, timestamp="date", arrival="arrival")


def test_to_dataframe_refuses_to_stop_with_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    result = hourly_flights(SparkExecutionEnvironment(spark)).execute(
        stop_with_checkpoint=str(tmp_path / "checkpoint")
    )
    with pytest.raises(ConfigurationError, match="write_parquet"):
        result.to_dataframe()


def test_error_of_a_function_comes_whole(spark: Any) -> None:
    def fail(value: int) -> float:
        return value / 0

    stream = SparkExecutionEnvironment(spark).from_collection([1, 2]).map(fail)
    with pytest.raises(UserCodeError, match="fail") as caught:
        list(stream.execute_and_collect())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_modules_of_the_user_are_sent(spark: Any, tmp_path: Path) -> None:
    module = tmp_path / "shipped_by_connect.py"
    module.write_text("def double(value):\n    return 2 * value\n")
    env = SparkExecutionEnvironment(spark)
    env.add_python_file(str(module))

    def double(value: int) -> Any:
        from shipped_by_connect import double  # type: ignore[import-not-found]

        return double(value)

    assert sorted(env.from_collection([1, 2]).map(double).execute_and_collect()) == [2, 4]


def test_progress_comes_from_the_server(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[Progress] = []
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0)
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    env = SparkExecutionEnvironment(spark).set_parallelism(8)
    result = hourly_flights(env).execute(progress=states.append)
    result.to_arrow()
    done = [state.events_done for state in states if not state.is_of_times]
    assert done == sorted(done)
    assert 0 < done[0] < done[-1] == result.report.events_read

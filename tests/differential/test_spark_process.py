"""Process functions on Spark give the rows that they give embedded, also where tasks die."""

import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from equipment.rows_by_key import rows_by_key
from jobs import keyed_logs
from jobs.random_logs import in_files, random_log

pytest.importorskip("pyspark")

from pyspark import cloudpickle
from pyspark.errors import PythonException

from flinkcore.common import Duration, OutputTag, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedBatchProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    StreamExecutionEnvironment,
)
from flinkcore.datastream.state import ListStateDescriptor, ValueStateDescriptor
from flinkcore.errors import UserCodeError, WorkerLostError
from flinkcore.examples import flight_inactivity, flight_inactivity_batches
from flinkcore.spark import SparkExecutionEnvironment

pytestmark = pytest.mark.spark_session("local[2,4]")  # a task may fail three times

NEVER = np.iinfo(np.int64).min
SIDE = OutputTag("side", pa.schema({"user": pa.string(), "row": pa.int64()}))
SEEN = pa.schema(
    {
        "user": pa.string(),
        "what": pa.string(),
        "number": pa.int64(),
        "watermark": pa.int64(),
        "clock": pa.int64(),
        "held": pa.list_(pa.int64()),
    }
)


def function(marker: str | None = None, *, failing_at: int | None = None) -> KeyedProcessFunction:
    """Timers of both kinds and state; its class travels by value, as that of a notebook does."""

    class Sessions(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_list_state(ListStateDescriptor("held"))
            self.last = runtime_context.get_state(ValueStateDescriptor("last"))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            if marker is not None and value.row == 1500:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os._exit(9)
                except FileExistsError:
                    pass
            timers = ctx.timer_service()
            if (last := self.last.value()) is not None:
                timers.delete_event_time_timer(last + 40)
            self.last.update(value.ts)
            timers.register_event_time_timer(value.ts + 40)
            self.held.add(value.row)
            if value.row % 5 == 0:
                timers.register_processing_time_timer(timers.current_processing_time() + 25)
                yield SIDE, {"user": value.user, "row": value.row}

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            timers = ctx.timer_service()
            if timestamp == failing_at:
                raise ValueError("unlucky")
            times = timers.current_watermark(), timers.current_processing_time()
            yield ctx.get_current_key(), ctx.time_domain().name, timestamp, *times, list(self.held)
            if ctx.time_domain().name == "EVENT_TIME":
                self.held.clear()
                self.last.clear()

    return Sessions()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_files(random_log(7, 3000), tmp_path_factory.mktemp("log"))


def job_by_user(env: StreamExecutionEnvironment, log: Any) -> KeyedStream:
    return (
        env.from_event_log(log, timestamp="ts", integer_times=True, arrival="at", split="part")
        .filter(pc.field("row") != 77)
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
        )
        .key_by("user")
    )


def job(env: StreamExecutionEnvironment, log: Any, function: KeyedProcessFunction) -> DataStream:
    return job_by_user(env, log).process(function, SEEN, side_outputs=[SIDE], timestamp_column="record_time")


def rows(found: pa.Table) -> list[str]:
    return rows_by_key(found, ["user" if "user" in found.column_names else "origin"])


@pytest.fixture(scope="module")
def embedded(log: Path) -> Any:
    result = job(StreamExecutionEnvironment().set_parallelism(1), log, function()).execute()
    assert result.report.event_time_timers > 100
    assert result.report.processing_time_timers > 100
    return result


@pytest.mark.parametrize("parallelism", [1, 3])
def test_rows_and_report_are_those_of_an_embedded_replay(
    spark: Any, log: Path, embedded: Any, parallelism: int
) -> None:
    result = job(SparkExecutionEnvironment(spark).set_parallelism(parallelism), log, function()).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert result.to_arrow().schema == embedded.to_arrow().schema
    side = result.get_side_output(SIDE).to_arrow()
    assert rows(side) == rows(embedded.get_side_output(SIDE).to_arrow())
    assert result.report == embedded.report
    assert str(result.report) == str(embedded.report)


def test_outputs_are_dataframes_and_files(spark: Any, log: Path, embedded: Any, tmp_path: Path) -> None:
    stream = job(SparkExecutionEnvironment(spark), log, function())
    found = [repr(row.asDict()) for row in stream.to_dataframe().collect()]
    assert sorted(found) == sorted(rows(embedded.to_arrow()))
    side = stream.get_side_output(SIDE).to_dataframe()
    assert [field.dataType.simpleString() for field in side.schema] == ["string", "bigint", "bigint"]
    assert side.count() == embedded.report.side_results
    report = stream.write_parquet(tmp_path / "main", {SIDE: tmp_path / "side"})
    assert report == embedded.report
    assert rows(ds.dataset(tmp_path / "main").to_table()) == rows(embedded.to_arrow())
    assert ds.dataset(tmp_path / "side").to_table().num_rows == report.side_results


def test_a_failing_function_is_told_as_embedded(spark: Any, log: Path, embedded: Any) -> None:
    fired = embedded.to_arrow().filter(pc.field("what") == "EVENT_TIME").column("number")[17].as_py()
    message = f"Sessions.on_timer failed at the timer at {fired} ms of the key 'u.*': ValueError: unlucky$"
    with pytest.raises(UserCodeError, match=message) as caught:
        job(SparkExecutionEnvironment(spark), log, function(failing_at=fired)).to_arrow()
    assert isinstance(caught.value.__cause__, ValueError)
    places = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert (places[-1].filename, places[-1].name) == (__file__, "on_timer")
    stream = job(SparkExecutionEnvironment(spark), log, function(failing_at=fired))
    with pytest.raises(
        PythonException, match=rf"ValueError: unlucky\nin on_timer \({re.escape(__file__)}, line \d+\)"
    ) as of_user:
        stream.to_dataframe().collect()
    assert "packed error" not in str(of_user.value)


def test_a_function_that_cannot_be_pickled_is_refused(spark: Any, log: Path) -> None:
    holding = function()
    holding.session = spark  # type: ignore[attr-defined]
    with pytest.raises(UserCodeError, match=r"cannot be sent to Spark's workers: .* in open\(\)"):
        job(SparkExecutionEnvironment(spark), log, holding).to_arrow()


def test_a_reduce_task_whose_worker_dies_is_done_again(
    spark: Any, log: Path, embedded: Any, tmp_path: Path
) -> None:
    marker = str(tmp_path / "died")
    env = SparkExecutionEnvironment(spark).set_parallelism(3)
    result = job(env, log, function(marker)).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow())
    assert os.path.exists(marker)
    assert rows(result.get_side_output(SIDE).to_arrow()) == rows(embedded.get_side_output(SIDE).to_arrow())
    assert result.report == embedded.report


@pytest.mark.parametrize("example", [flight_inactivity, flight_inactivity_batches])
def test_the_examples_give_the_same_rows_on_spark_and_say_when(spark: Any, example: Any) -> None:
    local = example.silent_airports(StreamExecutionEnvironment()).with_emitted_at().execute()
    by_element = flight_inactivity.silent_airports(StreamExecutionEnvironment()).with_emitted_at()
    alerts = example.silent_airports(SparkExecutionEnvironment(spark).set_parallelism(2))
    result = alerts.with_emitted_at().execute()
    assert local.report.results > 10
    assert rows(result.to_arrow()) == rows(local.to_arrow()) == rows(by_element.to_arrow())
    side, local_side = (found.get_side_output(example.RESUMED).to_arrow() for found in (result, local))
    assert rows(side) == rows(local_side)
    assert 0 < local.to_arrow().column("emitted_at").null_count < local.report.results
    assert local_side.column("emitted_at").null_count == 0
    assert result.report == local.report


def batch_function(marker: str) -> KeyedBatchProcessFunction:
    """What `function` does, over batches; its class travels by value, and its worker dies once."""

    class SessionsOfBatches(KeyedBatchProcessFunction):
        min_event_time_delay_ms = 40
        min_processing_time_delay_ms = 25

        def open(self, runtime_context: Any) -> None:
            self.held = runtime_context.get_column_state("held", object, None)
            self.last = runtime_context.get_column_state("last", np.int64, NEVER)

        def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
            numbers = elements["row"].to_numpy()
            if 1500 in numbers:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os._exit(9)
                except FileExistsError:
                    pass
            timers, ids = ctx.timer_service(), elements.key_ids
            last = elements.last_of_keys()
            held = ids[last][self.last[ids[last]] != NEVER]
            timers.delete_event_time_timers(held, self.last[held] + 40)
            self.last[ids] = elements.timestamps
            timers.register_event_time_timers(ids[last], elements.timestamps[last] + 40)
            for key_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
                self.held.array[key_id] = [*(self.held.array[key_id] or []), number]
            fifth = numbers % 5 == 0
            timers.register_processing_time_timers(ids[fifth], elements.processing_times[fifth] + 25)
            yield SIDE, elements.batch.select(["user", "row"]).filter(pa.array(fifth))

        def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
            ids = timers.key_ids
            yield {
                "user": timers.keys["user"],
                "what": [timers.time_domain.name] * len(ids),
                "number": timers.timestamps,
                "watermark": timers.watermarks,
                "clock": timers.processing_times,
                "held": [list(held or []) for held in self.held[ids]],
            }
            if timers.time_domain.name == "EVENT_TIME":
                self.held.clear(ids)
                self.last.clear(ids)

    return SessionsOfBatches()


def test_a_function_over_batches_gives_the_rows_of_the_one_by_element_also_where_its_worker_dies(
    spark: Any, log: Path, embedded: Any, tmp_path: Path
) -> None:
    marker = str(tmp_path / "died")
    keyed = job_by_user(SparkExecutionEnvironment(spark).set_parallelism(3), log)
    result = keyed.process(batch_function(marker), SEEN, side_outputs=[SIDE]).execute()
    assert rows(result.to_arrow()) == rows(embedded.to_arrow().drop_columns("record_time"))
    assert os.path.exists(marker)
    side = embedded.get_side_output(SIDE).to_arrow().drop_columns("record_time")
    assert rows(result.get_side_output(SIDE).to_arrow()) == rows(side)
    assert result.report == embedded.report


@pytest.fixture
def shipped_models() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(keyed_logs)
    yield
    cloudpickle.unregister_pickle_by_value(keyed_logs)


@pytest.mark.parametrize(
    ("job", "kinds"),
    [
        (keyed_logs.function_behind_windows, ["double", "nested"]),
        (keyed_logs.batches_of_function, ["float"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.usefixtures("shipped_models")
def test_keys_that_are_hard_to_tell_apart_are_those_of_an_embedded_replay_also_where_that_goes_on(
    spark: Any, tmp_path: Path, job: Any, kinds: list[str]
) -> None:
    rows = 3 * [((value, value // 2, 0), 0) for value in range(9)]
    whole = keyed_logs.table_of(kinds, rows, 0)
    for name, table in (("whole", whole), ("first", whole[:14])):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    environment = SparkExecutionEnvironment(spark)
    expected = keyed_logs.results_of(job, kinds, whole, 1)
    assert keyed_logs.results_of(job, kinds, str(tmp_path / "whole.parquet"), 3, environment) == expected
    first = str(tmp_path / "first.parquet")
    parts = keyed_logs.results_of(
        job, kinds, first, 3, environment, stop_with_checkpoint=str(tmp_path / "checkpoint")
    )
    parts += keyed_logs.results_of(job, kinds, whole[14:], 2, restore_from=tmp_path / "checkpoint")
    assert parts == expected


def exiting(how: str) -> KeyedProcessFunction:
    class Exit(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            if how == "sys.exit":
                sys.exit(3)
            os._exit(3)
            yield

    return Exit()


@pytest.mark.parametrize(("how", "error"), [("sys.exit", UserCodeError), ("os._exit", WorkerLostError)])
def test_a_function_that_ends_its_process_is_an_error_in_plain_words(
    spark: Any, how: str, error: type[Exception]
) -> None:
    events = pa.table({"user": ["a"], "ts": [1]})
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = (
        SparkExecutionEnvironment(spark)
        .from_event_log(events, timestamp="ts", integer_times=True, arrival="ts")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("user")
        .process(exiting(how), pa.schema({"n": pa.int64()}))
    )
    with pytest.raises(error, match=r"sys\.exit\(3\)|os\._exit\(\)"):
        stream.execute().to_arrow()


def test_a_column_of_unions_goes_to_functions_and_is_left_out_elsewhere(spark: Any) -> None:
    class Show(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value.user, repr(value.either)

    either = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    log = pa.table({"user": ["ada", "bob"], "ts": [1, 2], "either": either})
    schema = pa.schema({"user": pa.string(), "shown": pa.string()})
    for env in (SparkExecutionEnvironment(spark), StreamExecutionEnvironment()):
        stream = env.from_event_log(log, timestamp="ts", integer_times=True).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps()
        )
        shown = stream.key_by("user").process(Show(), schema).to_arrow().sort_by("user")
        assert shown["shown"].to_pylist() == ["1", "'b'"]
        selected = stream.select("user", "ts", either=pc.scalar(0)).key_by("user").process(Show(), schema)
        assert selected.to_arrow()["shown"].to_pylist() == ["0", "0"]

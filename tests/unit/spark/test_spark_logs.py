"""Logs of jobs on Spark: whether the driver reads their times, or tasks do."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, get_ident
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

pytest.importorskip("pyspark")

from fuzz.local_spark import LocalFrame, local_spark_environment, without_jvm

from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.common import Duration, ExecutionConfig, Time, WatermarkGenerator, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark import SparkExecutionEnvironment
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.time_pass import run_time_passes
from flinkcore.spark.logs import kept_rows, spark_log
from flinkcore.spark.logs.dataframe_log import DataFrameLog
from flinkcore.spark.logs.kept_rows import KeptRows
from flinkcore.spark.logs.log_input import FileInput
from flinkcore.spark.logs.spark_log import (
    SHORT_LOG_BYTES,
    SMALL_LOG_BYTES,
    SparkLog,
    UnreadDataFrame,
    chunks_with_times_here,
)
from flinkcore.time_plane.chunk_times import TimeColumns
from flinkcore.time_plane.kept_times import KeptChunk

ROWS = pa.table({"ts": [0, 5, 9, 30], "key": ["a", "b", "a", "b"]})
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3))

ON_THIS_MACHINE = SimpleNamespace(_jsparkSession=None, sparkContext=SimpleNamespace(master="local[2]"))
ON_A_CLUSTER = SimpleNamespace(_jsparkSession=None, sparkContext=SimpleNamespace(master="spark://host:7077"))
CONNECT = SimpleNamespace()


def plan_of(data: Any, strategy: WatermarkStrategy = BOUNDED) -> JobPlan:
    stream = (
        StreamExecutionEnvironment()
        .from_event_log(data, timestamp="ts")
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )
    return make_plan(StreamGraph(stream._transformation), ExecutionConfig())


def log_of(data: Any, size_bytes: int | None = None, strategy: WatermarkStrategy = BOUNDED) -> SparkLog:
    """A log, whose size may be another than it is."""
    (plan,) = plan_of(data, strategy).logs
    chunks = plan.log.chunks(2)
    if size_bytes is not None:
        chunks = [replace(chunk, size_bytes=size_bytes // len(chunks)) for chunk in chunks]
    return SparkLog(plan, FileInput(tuple(chunks)))


def chunks_of(log: SparkLog) -> tuple[Chunk, ...]:
    assert isinstance(log.log, FileInput)
    return log.log.all_chunks


@pytest.fixture
def parquet(tmp_path: Path) -> str:
    pq.write_table(ROWS, tmp_path / "log.parquet", row_group_size=2)
    return str(tmp_path / "log.parquet")


@pytest.fixture
def text(tmp_path: Path) -> str:
    csv.write_csv(ROWS, tmp_path / "log.csv")
    return str(tmp_path / "log.csv")


def test_the_driver_reads_times_in_columns_of_a_short_log_where_executors_share_its_machine(
    parquet: str,
) -> None:
    log = log_of(parquet, SHORT_LOG_BYTES)
    assert chunks_with_times_here(ON_THIS_MACHINE, [log, log]) == [chunks_of(log)] * 2
    assert chunks_with_times_here(ON_A_CLUSTER, [log]) is None
    assert chunks_with_times_here(ON_THIS_MACHINE, [log_of(parquet, SHORT_LOG_BYTES + 2)]) is None


def test_the_driver_reads_times_in_columns_of_files_too_small_to_be_cut(tmp_path: Path) -> None:
    for number in range(2):
        pq.write_table(ROWS, tmp_path / f"{number}.parquet")
    log = log_of(str(tmp_path), SHORT_LOG_BYTES)
    assert chunks_with_times_here(ON_THIS_MACHINE, [log]) == [chunks_of(log)]


def test_the_driver_reads_times_of_a_small_log_wherever_the_executors_are(parquet: str, text: str) -> None:
    for path in (parquet, text):
        log = log_of(path, SMALL_LOG_BYTES)
        for spark in (ON_THIS_MACHINE, ON_A_CLUSTER):
            assert chunks_with_times_here(spark, [log]) == [chunks_of(log)]
    for spark in (ON_THIS_MACHINE, ON_A_CLUSTER):
        assert chunks_with_times_here(spark, [log_of(text, SMALL_LOG_BYTES + 2)]) is None


def test_the_driver_reads_times_of_a_table_which_it_has(parquet: str) -> None:
    log = log_of(ROWS, SHORT_LOG_BYTES + 2)
    assert chunks_with_times_here(ON_A_CLUSTER, [log]) == [chunks_of(log)]


def test_workers_read_the_times_of_all_logs_where_they_do_of_one(parquet: str) -> None:
    log = log_of(parquet)
    long = log_of(parquet, SHORT_LOG_BYTES + 2)
    rows = UnreadDataFrame(log.plan, SimpleNamespace(), "its plan has the step Sort")  # type: ignore[arg-type]
    by_function = log_of(parquet, strategy=WatermarkStrategy.for_generator(WatermarkGenerator))
    for other in (long, rows, by_function):
        assert chunks_with_times_here(ON_THIS_MACHINE, [log, other]) is None


def test_workers_read_times_behind_spark_connect_whose_client_may_be_far_from_the_files(
    parquet: str,
) -> None:
    assert chunks_with_times_here(CONNECT, [log_of(parquet)]) is None


def test_a_log_of_unknown_size_is_read_by_workers(parquet: str) -> None:
    log = log_of(parquet)
    chunks = tuple(replace(chunk, size_bytes=None) for chunk in chunks_of(log))
    assert chunks_with_times_here(ON_THIS_MACHINE, [replace(log, log=FileInput(chunks))]) is None


class Streaming:
    isStreaming = True

    def mapInArrow(self) -> None: ...


def test_a_streaming_dataframe_is_no_log() -> None:
    environment = SparkExecutionEnvironment(SimpleNamespace(range=None, conf=None))
    with pytest.raises(ConfigurationError, match=r"spark\.readStream.*spark\.read, or"):
        environment.from_event_log(Streaming(), timestamp="ts")


class Evaluated:
    """A DataFrame that is evaluated, and whose rows cannot be collected."""

    columns = ("ts", "key")

    def toDF(self, *names: str) -> "Evaluated":
        return self

    def mapInArrow(self, *arguments: Any) -> "Evaluated":
        return self

    def localCheckpoint(self) -> "Evaluated":
        return self

    def where(self, condition: str) -> "Evaluated":
        raise ZeroDivisionError


def test_what_spark_keeps_is_released_where_the_first_pass_fails(
    parquet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = []
    monkeypatch.setattr(KeptRows, "release", lambda self: released.append(self))
    monkeypatch.setattr(kept_rows, "portable", lambda spark, task: task)
    monkeypatch.setattr(spark_log, "rows_read", lambda data, *ways: data.dataframe)
    frame: Any = Evaluated()
    log = UnreadDataFrame(log_of(parquet).plan, DataFrameLog(frame), "its plan has the step Sort")
    with pytest.raises(ZeroDivisionError):
        run_time_passes(None, [log])
    assert released == [KeptRows(frame)]


def replay_of(data: Any) -> SparkReplay:
    """Of a session in which nothing can run."""
    plan = plan_of(data)
    chunks = FileInput(tuple(plan.logs[0].log.chunks(2)))
    return SparkReplay(ON_THIS_MACHINE, plan, [SparkLog(plan.logs[0], chunks)], 2)


def test_times_that_the_driver_reads_need_no_spark_job(parquet: str) -> None:
    (time_plane,) = replay_of(parquet).time_planes
    assert time_plane.events == 4
    assert time_plane.starts.chunks.tolist() == [0, 1]


def test_what_is_wrong_with_times_that_the_driver_reads_is_told_as_of_a_task(parquet: str) -> None:
    pq.write_table(pa.table({"ts": [1, None], "key": ["a", "b"]}), parquet)
    with pytest.raises(DataError, match="null timestamp"):
        _ = replay_of(parquet).time_planes


@dataclass(frozen=True)
class Times:
    """Gives the timestamps of a chunk, and where they come from."""

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        for batch in chunk.read(["ts"], 100):
            yield f"{chunk.index} read {batch.column('ts').to_pylist()}".encode()

    def of_kept(self, index: int, kept: KeptChunk) -> Iterator[bytes]:
        for batch in kept.batches:
            yield f"{index} kept {batch.times(TimeColumns()).timestamp_ms.tolist()}".encode()


def test_an_analysis_takes_the_times_that_the_driver_keeps(parquet: str, monkeypatch: Any) -> None:
    replay = replay_of(parquet)
    assert list(replay.on_times(Times())) == [b"0 read [0, 5]", b"1 read [9, 30]"]
    kept = replay_of(parquet)
    monkeypatch.setattr(type(kept.plan.logs[0]), "takes_all_events", True)
    kept.keep_times()
    assert [each.events for each in kept.time_planes] == [4]
    assert list(kept.on_times(Times())) == [b"0 kept [0, 5]", b"1 kept [9, 30]"]


@dataclass(frozen=True)
class Kept(KeptRows):
    """Notes which threads release it."""

    released: list[int] = field(default_factory=list)
    done: Event = field(default_factory=Event)

    def release(self) -> None:
        self.released.append(get_ident())
        self.done.set()


def test_what_spark_keeps_is_released_in_another_thread_once_the_replay_is_not_used(parquet: str) -> None:
    plan = plan_of(parquet)
    kept, log = Kept(None), log_of(parquet)
    kept_rows.release_in_a_thread()
    replay = SparkReplay(ON_THIS_MACHINE, plan, [log], 2)
    replay._release_with_this([replace(log, kept=kept)])
    assert kept.released == []
    del replay
    assert kept.done.wait(60)
    assert len(kept.released) == 1
    assert kept.released != [get_ident()]


def test_rows_of_a_dataframe_are_kept_as_long_as_its_result_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    released = Event()
    monkeypatch.setattr(KeptRows, "release", lambda self: released.set())
    frame = LocalFrame.of(ROWS, 2)
    with without_jvm():
        stream = local_spark_environment(2).from_event_log(frame, timestamp="ts", arrival="ts")
        result = (
            stream.assign_timestamps_and_watermarks(BOUNDED)
            .key_by("key")
            .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
            .aggregate(n=count())
            .execute()
        )
        assert result.to_arrow().num_rows == 3
        gc.collect()
        assert not released.wait(0.1)
        del result
        gc.collect()
        assert released.wait(60)

"""Jobs on Spark over object stores, whose settings are those of the session alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from equipment.s3_server import SECRET, S3Server
from jobs.stored_logs import EVENTS, expected, put_log, sorted_rows, windows

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import SourceError
from flinkcore.spark import SparkExecutionEnvironment


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server.started() as server:
        yield server


@pytest.fixture
def session(spark: Any, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session with settings of Hadoop, in a process whose environment has none."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    settings = {
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": server.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in settings.items():
        hadoop.set(name, value)
    yield spark
    for name in settings:
        hadoop.unset(name)
        spark.conf.unset(name)


def test_tasks_read_and_write_with_the_settings_of_the_session(session: Any, server: S3Server) -> None:
    log = put_log(server, server.bucket("logs")).replace("s3://", "s3a://")
    result = windows(log, SparkExecutionEnvironment(session))
    result.write_parquet("s3a://logs/out")
    found = pq.read_table("logs/out", filesystem=server.files())
    assert sorted_rows(found) == expected()
    assert all(name.startswith("part-") for name in server.names("s3://logs/out"))
    assert SECRET not in result.explain()
    assert sorted_rows(result.to_arrow()) == expected()


def test_a_job_resumes_from_a_checkpoint_in_a_store(session: Any, server: S3Server) -> None:
    log = put_log(server, server.bucket("resumed"))
    env = SparkExecutionEnvironment(session)
    first = windows(f"{log}/day=0", env).execute(stop_with_checkpoint="s3a://resumed/c").to_arrow()
    second = windows(f"{log}/day=1", env).execute(restore_from="s3a://resumed/c").to_arrow()
    assert sum(row["n"] for row in first.to_pylist() + second.to_pylist()) == EVENTS.num_rows


def test_a_file_source_reads_with_the_settings_of_the_session(session: Any, server: S3Server) -> None:
    log = put_log(server, server.bucket("lines"), "json")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), log).build()
    env = SparkExecutionEnvironment(session)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    assert len(list(stream.execute_and_collect())) == EVENTS.num_rows


def test_a_delta_table_is_written_and_read_with_the_settings_of_the_session(
    session: Any, server: S3Server
) -> None:
    pytest.importorskip("deltalake")
    server.bucket("tables")
    env = SparkExecutionEnvironment(session)
    windows(EVENTS, env).write_delta("s3a://tables/windows")
    stream = env.from_delta("s3a://tables/windows", timestamp="window_start")
    assert sorted_rows(stream.to_arrow()) == expected()


def test_a_setting_that_is_changed_later_counts(session: Any, server: S3Server) -> None:
    log = put_log(server, server.bucket("changed"))
    env = SparkExecutionEnvironment(session)
    session.conf.set("fs.s3a.endpoint", "http://127.0.0.1:1")
    with pytest.raises(SourceError, match=r"s3://changed/log.*fs\.s3a\.endpoint") as told:
        windows(log, env).to_arrow()
    assert SECRET not in str(told.value)
    session.conf.set("fs.s3a.bucket.changed.endpoint", server.endpoint)
    try:
        assert sorted_rows(windows(log, env).to_arrow()) == expected()
    finally:
        session.conf.unset("fs.s3a.bucket.changed.endpoint")

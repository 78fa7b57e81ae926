"""Logs, results and checkpoints in S3, of a server that speaks its protocol, with the settings of the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from equipment.s3_server import S3Server
from jobs.stored_logs import EVENTS, FORMATS, HALVES, expected, parquet, put, put_log, sorted_rows, windows

from flinkcore import savepoints
from flinkcore.checkpoint import Checkpoint, CheckpointDirectory
from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import ConfigurationError, SourceError


@pytest.mark.parametrize("ending", FORMATS)
def test_a_log_of_any_format_gives_the_rows_that_it_gives_locally(
    store: S3Server, bucket: str, ending: str
) -> None:
    log = put_log(store, bucket, ending)
    assert sorted_rows(windows(log).to_arrow()) == expected()


def test_files_are_named_by_directories_globs_and_lists_under_each_scheme(
    store: S3Server, bucket: str
) -> None:
    log = put_log(store, bucket)
    other = log.replace("s3://", "s3a://")
    for paths in (f"{log}/", other, f"{other}/*/*.parquet", f"{log}/**", f"{log}/day=[01]/part-?.parquet"):
        assert sorted_rows(windows(paths).to_arrow()) == expected(), paths
    assert sorted_rows(windows([f"{other}/day=1", f"{other}/day=0/part-0.parquet"]).to_arrow()) == expected(
        pa.concat_tables(reversed(HALVES))
    )


def test_directories_of_partitions_give_their_columns(store: S3Server, bucket: str) -> None:
    stream = StreamExecutionEnvironment().from_event_log(put_log(store, bucket), timestamp="ts")
    assert set(stream.to_arrow().column("day").to_pylist()) == {0, 1}


def test_a_file_source_reads_the_same_files(store: S3Server, bucket: str) -> None:
    log = put_log(store, bucket, "json")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), log).build()
    env = StreamExecutionEnvironment()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").execute_and_collect()
    assert [json.loads(line) for line in lines] == EVENTS.to_pylist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "bucket-[0-9]+/nothing' does not exist"),
        ("log/day=7/*", "no file matches 's3://bucket-[0-9]+/log/day=7/"),
        ("empty", "holds no file to read"),
    ],
)
def test_a_location_without_files_is_an_error_that_names_it(
    store: S3Server, bucket: str, name: str, message: str
) -> None:
    put_log(store, bucket)
    put(store, f"{bucket}/empty/_SUCCESS", b"")
    with pytest.raises(SourceError, match=message):
        windows(f"{bucket}/{name}").to_arrow()


def test_results_appear_in_a_directory_of_the_store_at_once(store: S3Server, bucket: str) -> None:
    env_rows = expected()
    out = f"{bucket}/out"
    windows(EVENTS).write_parquet(out)
    names = store.names(out)
    assert names
    assert all(name.startswith("part-") and name.endswith(".parquet") for name in names)
    found = pq.read_table(out.removeprefix("s3://"), filesystem=store.files())
    assert sorted_rows(found) == env_rows


def test_results_in_a_store_are_replaced_only_if_that_is_asked_for(store: S3Server, bucket: str) -> None:
    out = f"{bucket}/out"
    windows(EVENTS).write_parquet(out)
    with pytest.raises(ConfigurationError, match=r"is not empty.*mode='overwrite'"):
        windows(HALVES[0]).write_parquet(out)
    windows(HALVES[0]).write_parquet(out, mode="overwrite")
    found = pq.read_table(out.removeprefix("s3://"), filesystem=store.files())
    assert sorted_rows(found) == expected(HALVES[0])
    assert not [name for name in store.names(out) if "_temporary" in name]


def test_the_log_of_a_job_is_not_overwritten_whichever_scheme_names_it(store: S3Server, bucket: str) -> None:
    log = put_log(store, bucket)
    with pytest.raises(ConfigurationError, match="would delete a log that the job reads"):
        windows(log).write_parquet(log.replace("s3://", "s3a://") + "/day=0", mode="overwrite")


def test_a_job_that_fails_leaves_nothing_in_the_store(store: S3Server, bucket: str) -> None:
    bad = pa.table({"ts": pa.array([1, None]), "user": ["a", "b"], "n": [1, 2]})
    put(store, f"{bucket}/log/a.parquet", parquet(bad))
    with pytest.raises(Exception, match="null"):
        windows(f"{bucket}/log").write_parquet(f"{bucket}/out")
    assert store.names(f"{bucket}/out") == []


def test_a_checkpoint_in_a_store_is_resumed(store: S3Server, bucket: str) -> None:
    log, checkpoint = put_log(store, bucket), f"{bucket}/checkpoints/job"
    first = windows(f"{log}/day=0").execute(stop_with_checkpoint=checkpoint).to_arrow()
    assert Checkpoint.open(checkpoint.replace("s3://", "s3a://")).max_parallelism == 128
    manifests = [name for name in store.names(checkpoint) if name.startswith("manifest")]
    assert manifests == ["manifest-000001.json"]
    second = windows(f"{log}/day=1", rate=1000).execute(restore_from=checkpoint).to_arrow()
    assert {row["n"] for row in first.to_pylist() + second.to_pylist()} <= set(range(200))
    total = sum(row["n"] for row in first.to_pylist() + second.to_pylist())
    assert total == EVENTS.num_rows


def test_the_next_checkpoint_in_a_store_replaces_the_one_before(store: S3Server, bucket: str) -> None:
    log, checkpoint = put_log(store, bucket), f"{bucket}/checkpoints/job"
    windows(f"{log}/day=0").execute(stop_with_checkpoint=checkpoint).to_arrow()
    before = store.names(checkpoint)
    windows(f"{log}/day=1").execute(restore_from=checkpoint, stop_with_checkpoint=checkpoint).to_arrow()
    after = store.names(checkpoint)
    assert [name for name in after if name.startswith("manifest")] == ["manifest-000002.json"]
    assert not set(after) & set(before)


def test_a_checkpoint_is_there_only_once_its_manifest_is(
    store: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, checkpoint = put_log(store, bucket), f"{bucket}/checkpoints/job"
    windows(f"{log}/day=0").execute(stop_with_checkpoint=checkpoint).to_arrow()
    before = store.names(checkpoint)
    works = CheckpointDirectory.open_output

    def failing(self: CheckpointDirectory, name: str) -> Any:
        if name.startswith("manifest"):
            raise OSError("the network is down")
        return works(self, name)

    monkeypatch.setattr(CheckpointDirectory, "open_output", failing)
    with pytest.raises(OSError, match="the network is down"):
        windows(f"{log}/day=1").execute(restore_from=checkpoint, stop_with_checkpoint=checkpoint).to_arrow()
    assert store.names(checkpoint) == before


def test_a_savepoint_in_a_store_is_written_once_and_begun_with(store: S3Server, bucket: str) -> None:
    log, path = put_log(store, bucket), f"{bucket}/savepoints/live"
    first = windows(f"{log}/day=0").execute(stop_with_savepoint=path).to_arrow()
    names = store.names(path)
    assert "_metadata" in names
    assert not [name for name in names if name.startswith("checkpoint")]
    (operator,) = savepoints.open(path.replace("s3://", "s3a://")).operators
    halves = [operator.state("window-contents").batches(groups) for groups in (range(64), range(64, 128))]
    n_open = operator.state("window-contents").count()
    assert sum(batch.num_rows for half in halves for batch in half) == n_open > 0
    with pytest.raises(ConfigurationError, match="has a savepoint already"):
        windows(f"{log}/day=0").execute(stop_with_savepoint=path).to_arrow()
    assert store.names(path) == names
    second = windows(f"{log}/day=1", rate=1000).execute(restore_from=path).to_arrow()
    assert sum(row["n"] for row in first.to_pylist() + second.to_pylist()) == EVENTS.num_rows


def test_a_delta_table_in_a_store_is_written_and_read(store: S3Server, bucket: str) -> None:
    pytest.importorskip("deltalake")
    table = f"{bucket}/table"
    windows(EVENTS).write_delta(table)
    for location in (table, table.replace("s3://", "s3a://")):
        stream = StreamExecutionEnvironment().from_delta(location, timestamp="window_start")
        assert sorted_rows(stream.to_arrow()) == expected()
    stream = StreamExecutionEnvironment().from_event_log(table, timestamp="window_start")
    assert sorted_rows(stream.to_arrow()) == expected()


def test_files_of_a_table_in_a_store_are_refused(store: S3Server, bucket: str, tmp_path: Path) -> None:
    put(store, f"{bucket}/lake/t/_delta_log/00000000000000000000.json", b"{}")
    put(store, f"{bucket}/lake/t/a.parquet", parquet(EVENTS))
    message = rf"(lies in|holds) a Delta table, '{bucket}/lake/t', .*from_delta\('{bucket}/lake/t'\)"
    for path in ("lake", "lake/t/*.parquet"):
        with pytest.raises(SourceError, match=message):
            windows(f"{bucket}/{path}").to_arrow()
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{bucket}/lake").build()
    with pytest.raises(SourceError, match=message):
        source.create_splits(1)

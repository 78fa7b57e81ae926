"""Errors of a store: they name the location and the setting, show no secret, and come within bounded time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from equipment.s3_server import SECRET, BreakingNetwork, S3Server
from jobs.stored_logs import EVENTS, expected, put, put_log, sorted_rows, windows

from flinkcore.datastream.connectors.file_system import FileSource, StreamFormat
from flinkcore.errors import CheckpointError, SourceError

KEYS = r"fs\.s3a\.access\.key.*AWS_ACCESS_KEY_ID"
ENDPOINT = r"fs\.s3a\.endpoint.*AWS_ENDPOINT_URL.*three times"

USES: dict[str, Callable[[str], Any]] = {
    "a log": lambda bucket: windows(f"{bucket}/log").to_arrow(),
    "a glob": lambda bucket: windows(f"{bucket}/*/*/*.parquet").to_arrow(),
    "results": lambda bucket: windows(EVENTS).write_parquet(f"{bucket}/out"),
    "a checkpoint": lambda bucket: windows(EVENTS).execute(stop_with_checkpoint=f"{bucket}/c").to_arrow(),
    "a restored checkpoint": lambda bucket: windows(EVENTS).execute(restore_from=f"{bucket}/c").to_arrow(),
    "a file source": lambda bucket: (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{bucket}/log")
        .build()
        .create_splits(1)
    ),
}


@pytest.fixture
def refusing(store: S3Server) -> Iterator[S3Server]:
    yield store
    store.accept_any_key()


@pytest.mark.parametrize("use", USES)
def test_a_wrong_key_is_an_error_that_names_the_settings_and_no_secret(
    refusing: S3Server, bucket: str, use: str
) -> None:
    put_log(refusing, bucket)
    refusing.check_keys()
    with pytest.raises((SourceError, CheckpointError), match=f"{bucket}.*{KEYS}") as told:
        USES[use](bucket)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize("use", USES)
def test_a_wrong_endpoint_is_an_error_that_names_the_settings_within_bounded_time(
    store: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    begun = time.monotonic()
    with pytest.raises((SourceError, CheckpointError), match=f"{bucket}.*{ENDPOINT}"):
        USES[use](bucket)
    assert time.monotonic() - begun < 60


def test_a_plan_shows_no_secret_of_a_uri(store: S3Server, bucket: str) -> None:
    name = bucket.partition("://")[2]
    host = store.endpoint.partition("://")[2]
    put_log(store, bucket)
    log = f"s3://test:{SECRET}@{name}/log?endpoint_override={host}&scheme=http&region=us-east-1"
    for paths in (log, [log]):
        stream = windows(paths)
        assert f"{bucket}/log" in stream.explain()
        assert SECRET not in stream.explain() + str(stream.execute().report)
        assert sorted_rows(stream.to_arrow()) == expected()


def test_a_bucket_that_is_missing_is_an_error_that_names_it(store: S3Server) -> None:
    with pytest.raises(SourceError, match=r"s3://no-such-bucket/out.*Check the name of the bucket"):
        windows(EVENTS).write_parquet("s3://no-such-bucket/out")
    with pytest.raises(
        SourceError,
        match=r"'s3://no-such-bucket/log' does not exist\. There is no bucket 'no-such-bucket'\. Check",
    ):
        windows("s3://no-such-bucket/log").to_arrow()


@pytest.fixture
def network(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[BreakingNetwork]:
    network = BreakingNetwork(store)
    monkeypatch.setenv("AWS_ENDPOINT_URL", network.endpoint)
    yield network
    network.close()


def many_events(store: S3Server, bucket: str) -> str:
    line = b'{"ts": %d, "user": "a", "n": 1, "text": "' + b"x" * 200 + b'"}\n'
    put(store, f"{bucket}/log/a.json", b"".join(line % number for number in range(10_000)))
    return f"{bucket}/log"


def test_a_connection_that_always_breaks_is_an_error_that_names_the_file(
    store: S3Server, bucket: str, network: BreakingNetwork
) -> None:
    log = many_events(store, bucket)
    network.most_bytes = 20_000
    begun = time.monotonic()
    with pytest.raises(SourceError, match=rf"{log}/a\.json cannot be read: .*{ENDPOINT}") as told:
        windows(log).to_arrow()
    assert "damaged" not in str(told.value)
    assert network.broken >= 3
    assert time.monotonic() - begun < 120


def test_a_connection_that_breaks_midway_and_comes_back_loses_no_row(
    store: S3Server, bucket: str, network: BreakingNetwork
) -> None:
    log = many_events(store, bucket)
    network.most_bytes, network.most_broken = 20_000, 2
    assert sum(windows(log).to_arrow()["n"].to_pylist()) == 10_000
    assert network.broken == 2


def test_a_connection_that_breaks_while_results_are_written_leaves_no_part_of_them(
    store: S3Server, bucket: str, network: BreakingNetwork
) -> None:
    result = windows(EVENTS)
    result.to_arrow()
    network.close()
    network.most_bytes = 0
    with pytest.raises(
        SourceError, match=rf"results cannot be written to {re.escape(bucket)}/out: .*{ENDPOINT}"
    ):
        result.write_parquet(f"{bucket}/out")
    assert store.names(f"{bucket}/out") == []

"""Commands over object stores, with the settings of the environment."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from equipment.s3_server import SECRET, S3Server
from jobs.stored_logs import EVENTS, expected, put_log, windows

from flinkcore.cli import main

WINDOWS = ["--timestamp", "ts", "--key", "user", "--window", "tumbling:10s", "--one-split"]
AGGREGATES = ["--aggregate", "n=count()", "--aggregate", "total=sum(n)"]


def test_a_replay_reads_and_writes_a_store(
    store: S3Server, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = put_log(store, bucket)
    options = [*WINDOWS, *AGGREGATES, "--engine", "embedded", "--quiet"]
    checkpoint = ["--checkpoint", f"{bucket}/c"]
    assert main(["replay", f"{log}/*/*.parquet", *options, "--output", f"{bucket}/out", *checkpoint]) == 0
    found = pq.read_table(f"{bucket}/out".removeprefix("s3://"), filesystem=store.files())
    rows = {(row["user"], row["window_start"]) for row in expected()}
    assert {(row["user"], row["window_start"]) for row in found.to_pylist()} < rows
    assert f"results: {bucket}/out" in capsys.readouterr().out
    assert main(["checkpoint", "show", f"{bucket}/c"]) == 0
    assert f"checkpoint {bucket}/c" in capsys.readouterr().out


def test_results_in_a_store_are_compared(
    store: S3Server, bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    windows(EVENTS).write_parquet(f"{bucket}/sink")
    windows(EVENTS.slice(1)).write_parquet(f"{bucket}/replay")
    keys = ["--key", "user", "--key", "window_start"]
    assert main(["compare", f"{bucket}/sink", f"{bucket}/sink", *keys]) == 0
    differences = f"{bucket}/differences.parquet"
    assert main(["compare", f"{bucket}/sink", f"{bucket}/replay", *keys, "--output", differences]) == 1
    assert store.names(bucket).count("differences.parquet") == 1
    assert main(["compare", f"{bucket}/sink", f"{bucket}/replay", *keys, "--output", differences]) == 2
    assert f"--output {differences} exists" in capsys.readouterr().err


def test_figures_of_lateness_are_written_to_a_store(store: S3Server, bucket: str) -> None:
    log = put_log(store, bucket)
    options = ["--timestamp", "ts", "--engine", "embedded", "--quiet", "--output", f"{bucket}/figures"]
    assert main(["lateness", log, *options]) == 0
    assert store.names(f"{bucket}/figures") == ["frontier.parquet", "splits.parquet"]


def test_an_error_of_a_store_is_a_line_without_secrets(
    store: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    log = f"s3://key:{SECRET}@no-bucket/log?region=us-east-1&endpoint_override=127.0.0.1:1&scheme=http"
    for location in (f"{bucket}/log", log):
        options = [*WINDOWS, *AGGREGATES, "--engine", "embedded"]
        assert main(["replay", location, *options]) != 0
        error = capsys.readouterr().err
        assert "AWS_ENDPOINT_URL" in error
        assert "Traceback" not in error
        assert SECRET not in error

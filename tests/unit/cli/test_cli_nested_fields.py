"""Commands over a log with nested fields, such as one of Debezium."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main

LOG = ["--timestamp", "payload.source.ts_ms", "--arrival", "kafka.at", "--split", "kafka.partition"]
WINDOW = ["--window", "tumbling:1s"]


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "changes.json"
    rows = [
        {
            "payload": {
                "after": {"user_id": "ab"[n % 2], "amount": n},
                "source": {"ts_ms": 1_700_000_000_000 + 100 * n - 3000 * (n == 25)},
            },
            "kafka": {"at": 1_700_000_000_050 + 100 * n, "partition": n % 2, "offset": n // 2},
        }
        for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_replay_names_fields_in_its_settings_keys_and_aggregates(log: str, tmp_path: Path) -> None:
    options = ["--key", "payload.after.user_id", "--aggregate", "total=sum(payload.after.amount)", *WINDOW]
    options += ["--position", "kafka.offset", "--engine", "embedded", "--quiet"]

    main(["replay", log, *LOG, *options, "--output", str(tmp_path / "out")])

    results = pq.read_table(tmp_path / "out")
    assert results.column_names[0] == "payload.after.user_id"
    assert sum(results.column("total").to_pylist()) == sum(range(40)) - 25


def test_replay_asks_for_the_field_where_its_last_name_alone_is_given(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*WINDOW, "--aggregate", "n=count()", "--engine", "embedded", "--quiet"]

    assert main(["replay", log, *LOG, "--key", "user_id", *options]) == 1

    assert "Did you mean 'payload.after.user_id'?" in capsys.readouterr().err


def test_lateness_and_why_tell_of_fields(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lateness", log, *LOG, *WINDOW, "--engine", "embedded", "--quiet"])
    assert "40 events of 2 splits" in capsys.readouterr().out

    main(["why", log, *LOG, *WINDOW, "--key", "payload.after.user_id=b", "--quiet"])
    told = capsys.readouterr().out
    assert "payload.after.user_id = 'b'" in told
    assert "late" in told


def test_why_looks_for_keys_that_are_near(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["why", log, *LOG, *WINDOW, "--key", "payload.after.user_id=B", "--quiet"])

    assert "no row has this key" in capsys.readouterr().out


def test_races_are_found_over_fields(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "nested_job.py"
    program.write_text(
        "from flinkcore.common import Time, WatermarkStrategy\n"
        "from flinkcore.datastream import TumblingEventTimeWindows\n"
        "from flinkcore.datastream.aggregates import count\n"
        "def job(events):\n"
        "    events = events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())\n"
        "    windows = events.key_by('payload.after.user_id').window(TumblingEventTimeWindows.of(Time.days(1)))\n"
        "    return windows.aggregate(n=count())\n"
    )

    main(["races", f"{program}:job", log, *LOG, "--history", "parallelism", "--history", "delay"])

    assert "parallelism" in capsys.readouterr().out


def test_compare_takes_the_field_of_a_sink_for_the_column_of_a_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"key": [{"user": "a"}, {"user": "b"}], "n": [1, 2]}), tmp_path / "sink.parquet")
    pq.write_table(pa.table({"key.user": ["a", "b"], "n": [1, 3]}), tmp_path / "replay.parquet")

    assert (
        main(
            ["compare", str(tmp_path / "sink.parquet"), str(tmp_path / "replay.parquet"), "--key", "key.user"]
        )
        == 1
    )

    told = capsys.readouterr()
    assert "warning" not in told.err
    assert "key.user=b: sink n 2; replay n 3" in told.out

"""Recorded scripts of SQL, which run without Flink, and records of Kafka for their tables."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.sql.planner import planned_script
from flinkcore.sql.planner.flink_process import FlinkLibraries

SCRIPTS = Path(__file__).parents[1] / "golden" / "scripts"


class Recorded:
    """Gives the answer of Flink that was recorded for a script."""

    def __init__(self, name: str) -> None:
        self.text = (SCRIPTS / f"{name}.sql").read_text()
        self.json = json.loads((SCRIPTS / f"{name}.json").read_text())

    def answer(self, *_: Any) -> Any:
        return json.loads(json.dumps(self.json))

    def stand_for_flink(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        """Let the recorded answer be that of Flink's planner."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
        monkeypatch.setattr(FlinkLibraries, "found", lambda: FlinkLibraries("2.3.0", ()))
        monkeypatch.setattr(planned_script, "PROCESS", self)


def records(values: list[Any], keys: list[Any] | None = None) -> pa.Table:
    """Return records of Kafka as Spark dumps them."""
    count = len(values)
    messages = [
        each if each is None or isinstance(each, bytes) else json.dumps(each).encode() for each in values
    ]
    written = [1_704_067_200_000_000 + 1_000_000 * number for number in range(count)]
    return pa.table(
        {
            "key": pa.array(
                [None if key is None else json.dumps(key).encode() for key in keys or [None] * count],
                pa.binary(),
            ),
            "value": pa.array(messages, pa.binary()),
            "topic": ["clicks"] * count,
            "partition": pa.array([number % 2 for number in range(count)], pa.int32()),
            "offset": pa.array([number // 2 for number in range(count)], pa.int64()),
            "timestamp": pa.array(written, pa.timestamp("us", "UTC")),
        }
    )


CLICKS = records(
    [
        {"price": 1.5, "item": {"id": 7, "tags": ["new", "red"]}, "ts": "2024-01-01 00:00:01Z"},
        {"price": 2, "item": {"id": 8, "tags": []}, "ts": "2024-01-01T00:00:02.500Z"},
        {"price": None, "ts": "2024-01-01 00:01:00Z", "other": 1},
        {"price": 4.25, "item": None, "ts": "2024-01-01 00:00:59.999Z"},
    ],
    [{"user": "ada"}, {"user": "bob"}, {"user": "ada"}, {"user": "ada"}],
)

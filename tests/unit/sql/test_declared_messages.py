"""Tables of Kafka over logs of its records: messages, metadata, keys and changes as the DDL declares them."""

import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import DataError, RejectedRowsWarning, UnsupportedOperationError
from flinkcore.sql.planner import planned_script
from flinkcore.sql.planner.flink_process import FlinkLibraries

SCRIPTS = Path(__file__).parents[2] / "golden" / "scripts"


class Recorded:
    """Gives the answer of Flink that was recorded for a script."""

    def __init__(self, name: str) -> None:
        self.text = (SCRIPTS / f"{name}.sql").read_text()
        self.json = json.loads((SCRIPTS / f"{name}.json").read_text())

    def answer(self, *_: Any) -> Any:
        return json.loads(json.dumps(self.json))


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    recorded = Recorded(request.param)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(FlinkLibraries, "found", lambda: FlinkLibraries("2.3.0", ()))
    monkeypatch.setattr(planned_script, "PROCESS", recorded)
    return recorded


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


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
@pytest.mark.parametrize("form", ["arrow", "path", "stream"])
def test_messages_keys_and_metadata_are_columns_of_a_table(
    script: Recorded, form: str, tmp_path: Path
) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    log: Any = CLICKS
    if form == "path":
        log = str(tmp_path / "dump.parquet")
        pq.write_table(CLICKS, log)
    elif form == "stream":
        log = environment.from_event_log(CLICKS, arrival="timestamp")
    rows = environment.from_sql(script.text, {"clicks": log}, sink="select").to_arrow().to_pylist()
    first = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert sorted(rows, key=lambda row: row["written"])[:2] == [
        {
            "user": "ada",
            "doubled": Decimal("3.00"),
            "item": {"id": 7, "tags": ["new", "red"]},
            "partition": 0,
            "written": first,
        },
        {
            "user": "bob",
            "doubled": Decimal("4.00"),
            "item": {"id": 8, "tags": []},
            "partition": 1,
            "written": first.replace(second=1),
        },
    ]
    assert [row["user"] for row in rows].count("ada") == 3
    spent = environment.from_sql(script.text, {"clicks": log}, sink="select_2").to_arrow().to_pylist()
    assert sorted((row["user"], row["window_end"].minute, row["spent"]) for row in spent) == [
        ("ada", 1, Decimal("5.75")),
        ("ada", 2, None),
        ("bob", 1, Decimal("2.00")),
    ]


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_log_with_the_columns_of_the_table_is_not_decoded(script: Recorded) -> None:
    rows = pa.table(
        {
            "user": ["ada"],
            "price": ["1.50"],
            "item": pa.array([None], pa.struct([("id", pa.int64()), ("tags", pa.list_(pa.string()))])),
            "ts": ["2024-01-01 00:00:01Z"],
            "partition": [3],
            "timestamp": [datetime(2024, 1, 1, tzinfo=timezone.utc)],
        }
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    (row,) = environment.from_sql(script.text, {"clicks": rows}, sink="select").to_arrow().to_pylist()
    assert (row["user"], row["doubled"], row["partition"]) == ("ada", Decimal("3.00"), 3)


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_message_that_cannot_be_read_is_an_error_unless_the_table_ignores_it(script: Recorded) -> None:
    bad = records([{"price": 1, "ts": "2024-01-01 00:00:01Z"}, b"{"], [{"user": "a"}, {"user": "b"}])
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(DataError, match="value"):
        environment.from_sql(script.text, {"clicks": bad}, sink="select").to_arrow()
    for step in script.json["steps"]:
        for node in step["plan"]["nodes"]:
            if "scanTableSource" in node:
                node["scanTableSource"]["table"]["resolvedTable"]["options"][
                    "value.json.ignore-parse-errors"
                ] = "true"
    text = script.text + "-- once more\nSELECT 1;"
    with pytest.warns(RejectedRowsWarning):
        rows = environment.from_sql(text, {"clicks": bad}, sink="select").to_arrow()
    assert rows.num_rows == 1


@pytest.mark.parametrize("script", ["kafka"], indirect=True)
def test_a_format_without_a_decoder_is_refused_by_name(script: Recorded) -> None:
    for step in script.json["steps"]:
        for node in step["plan"]["nodes"]:
            if "scanTableSource" in node:
                node["scanTableSource"]["table"]["resolvedTable"]["options"]["value.format"] = "csv"
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="messages of the format 'csv' are not decoded"):
        environment.from_sql(script.text, {"clicks": CLICKS}, sink="select").to_arrow()


@pytest.mark.parametrize("script", ["debezium"], indirect=True)
def test_changes_of_a_database_are_changes_of_results(script: Recorded) -> None:
    changes = (
        records(
            [
                {"op": "c", "before": None, "after": {"id": 1, "city": "Ulm"}},
                {"op": "u", "before": {"id": 1, "city": "Ulm"}, "after": {"id": 1, "city": "Bern"}},
                {"op": "d", "before": {"id": 1, "city": "Bern"}, "after": None},
            ]
        )
        .set_column(3, "partition", pa.array([0, 0, 0], pa.int32()))
        .set_column(4, "offset", pa.array([0, 1, 2], pa.int64()))
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    rows = environment.from_sql(script.text, {"users": changes}).to_arrow().to_pylist()
    assert [(row["row_kind"], row["city"], row["people"]) for row in rows] == [
        ("+I", "Ulm", 1),
        ("-D", "Ulm", 1),
        ("+I", "Bern", 1),
        ("-D", "Bern", 1),
    ]

"""A replay that rejects many rows warns of it, with the reasons, and with the keys that messages have."""

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from equipment.kafka_messages import kafka_table

import flinkcore as fc
from flinkcore.errors import DataError, RejectedRowsWarning


def events(log: Any, **settings: Any) -> Any:
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_event_log(log, **settings)
    stream = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    windows = stream.key_by("user").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5)))
    return windows.aggregate(n=fc.count())


def clicks(schema: str, **settings: Any) -> Any:
    messages = [
        json.dumps({"user": f"u{n % 2}", "ts": 1_000 * n, "at": {"x": n}}).encode() for n in range(20)
    ]
    log = kafka_table(messages)
    given = {
        "timestamp": "value.tss",
        "split": "partition",
        "decode": {"value": fc.json_values(schema)},
        **settings,
    }
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream = env.from_event_log(log, **given)
    stream = stream.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
    return (
        stream.key_by("value.user")
        .window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(5)))
        .aggregate(n=fc.count())
    )


def warning(stream: Any) -> str:
    result = stream.execute()
    with pytest.warns(RejectedRowsWarning) as caught:
        assert result.to_arrow().num_rows == 0 or result.report.rejected
    (message,) = [str(each.message) for each in caught]
    assert message in result.report.warnings
    return message


def test_messages_without_a_field_of_the_schema_are_warned_of_with_their_keys() -> None:
    told = warning(clicks("user STRING, tss BIGINT", on_bad_row="drop"))
    assert told.startswith(
        "100 % of the rows are rejected and are dropped: 20 of 20, for null timestamp (20). Null timestamp: none of "
        "the first 20 messages has the key 'tss': keys are user, ts, at. Correct the schema of 'value' in "
        "decode=, as in "
    )


def test_the_error_of_such_a_message_points_at_the_schema() -> None:
    with pytest.raises(
        DataError, match=r"null timestamp: none of the first 20 .* has the key 'tss': keys are user"
    ):
        clicks("user STRING, tss BIGINT").to_arrow()
    with pytest.raises(DataError, match=r"values of 'at' has the key 'y': keys are x\. Correct the schema"):
        clicks("user STRING, at STRUCT<y: BIGINT>", timestamp="value.at.y").to_arrow()


def test_a_field_that_some_messages_have_is_not_taken_for_a_wrong_name() -> None:
    env = fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    log = kafka_table([b'{"t": null}', b'{"u": 1}'])
    stream = env.from_event_log(log, timestamp="value.t", decode={"value": fc.json_values("t BIGINT")})
    with pytest.raises(DataError, match=r"null timestamp \(column 'value\.t'\); repair"):
        stream.to_arrow()


def test_a_file_without_the_column_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1, 2], "user": ["a", "b"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"user": ["a", "b"]}), tmp_path / "2.parquet")
    told = warning(events(str(tmp_path), timestamp="ts", on_bad_row=fc.OutputTag("bad")))
    assert (
        "50 % of the rows are rejected and go to the side output 'bad': 2 of 4, for null timestamp (2). "
        in told
    )
    assert "Null timestamp: the file lacks column 'ts', which other files of the log have, as in " in told
    assert "2.parquet" in told


def test_a_small_share_of_rejected_rows_is_not_warned_of() -> None:
    log = pa.table({"ts": [None, *range(199)], "user": ["a"] * 200})
    stream = events(log, timestamp="ts", on_bad_row="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.to_arrow()
        stream._environment.get_config().set_late_share_warning(0.004)
        with pytest.raises(
            RejectedRowsWarning, match=r"0\.5 % of the rows .* an OutputTag instead of .* collects them"
        ):
            stream.to_arrow()

"""Nested fields of Delta and Iceberg tables, in logs and in results."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import LogStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import SchemaError

ROWS = pa.Table.from_pylist(
    [
        {
            "payload": {"op": "cu"[n % 2], "after": {"user": "ab"[n % 3 % 2], "note": "x"}, "ts": 100 * n},
            "kafka": {"at": 100 * n, "offset": n},
        }
        for n in range(12)
    ]
)
TIMES: dict[str, Any] = {"timestamp": "payload.ts", "arrival": "kafka.at", "position": "kafka.offset"}


def counts(stream: LogStream) -> LogStream:
    created = stream.filter(pc.field("payload.op") == "c").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps()
    )
    windows = created.key_by("payload.after.user").window(TumblingEventTimeWindows.of(Time.seconds(60)))
    return windows.aggregate(n=count())


RIGHT = {"payload.after.user": ["a", "b"], "n": [4, 2]}


def test_a_delta_table_is_read_and_written_by_fields(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "log", ROWS)
    env = StreamExecutionEnvironment()

    results = counts(env.from_delta(tmp_path / "log", **TIMES))
    results.write_delta(tmp_path / "out", partition_by="payload.after.user")

    written = deltalake.DeltaTable(tmp_path / "out").to_pyarrow_table().sort_by("payload.after.user")
    assert written.select(list(RIGHT)).to_pydict() == RIGHT
    again = env.from_delta(tmp_path / "out", timestamp="window_end").select(*RIGHT)
    assert again.to_arrow().sort_by("payload.after.user").to_pydict() == RIGHT


def test_an_iceberg_table_is_read_and_written_by_fields(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    from equipment.iceberg_tables import catalog_at

    catalog = catalog_at(tmp_path)
    catalog.create_namespace_if_not_exists("a")
    log = catalog.create_table("a.log", schema=ROWS.schema)
    log.append(ROWS)

    results = counts(StreamExecutionEnvironment().from_iceberg(log, **TIMES))
    table = catalog.create_table("a.results", schema=results.to_arrow().schema)
    results.write_iceberg(table)

    written = table.scan().to_arrow().sort_by("payload.after.user")
    assert written.select(list(RIGHT)).to_pydict() == RIGHT


def test_a_condition_on_a_field_that_a_table_lacks_is_an_error_with_the_right_name(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "log", ROWS)

    stream = StreamExecutionEnvironment().from_delta(tmp_path / "log", **TIMES)

    with pytest.raises(
        SchemaError, match=r"The struct 'payload' has no field 'opp'.*Did you mean 'payload\.op'\?"
    ):
        stream.filter(pc.field("payload.opp") == "c").to_arrow()

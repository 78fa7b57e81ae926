"""A log of several files in a store, and a job over it."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from equipment.s3_server import S3Server

from flinkcore.common import Time, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, sum_

EVENTS = pa.table(
    {
        "ts": pa.array(range(0, 60_000, 100), pa.int64()),
        "user": [f"user {number % 7}" for number in range(600)],
        "n": pa.array(range(600), pa.int64()),
    }
)
HALVES = (EVENTS.slice(0, 300), EVENTS.slice(300))


def windows(log: Any, env: StreamExecutionEnvironment | None = None, **settings: Any) -> Any:
    """Return the windows of ten seconds over a log, in this process unless there is another environment."""
    env = env or StreamExecutionEnvironment()
    stream = env.from_event_log(log, timestamp="ts", split=None, **settings)
    stream = stream.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
    window = TumblingEventTimeWindows.of(Time.seconds(10))
    return stream.key_by("user").window(window).aggregate(n=count(), total=sum_("n"))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


def expected(table: pa.Table = EVENTS) -> list[dict[str, Any]]:
    return sorted_rows(windows(table).to_arrow())


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=100)
    return sink.getvalue().to_pybytes()


def csv_gz(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink)
    return gzip.compress(sink.getvalue().to_pybytes())


def json_lines(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def avro(table: pa.Table) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    fields = [
        {"name": "ts", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "n", "type": "long"},
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "event", "fields": fields}, table.to_pylist())
    return sink.getvalue()


FORMATS = {"parquet": parquet, "csv.gz": csv_gz, "json": json_lines, "avro": avro}


def put(server: S3Server, uri: str, content: bytes) -> None:
    with server.files().open_output_stream(uri.partition("://")[2], compression=None) as file:
        file.write(content)


def put_log(server: S3Server, bucket: str, ending: str = "parquet") -> str:
    for number, half in enumerate(HALVES):
        put(server, f"{bucket}/log/day={number}/part-{number}.{ending}", FORMATS[ending](half))
    put(server, f"{bucket}/log/_SUCCESS", b"")
    return f"{bucket}/log"

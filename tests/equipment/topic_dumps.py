"""Dumps of topics, and the jobs that read them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flinkcore.common import SimpleStringSchema, TimestampAssigner, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder

PROGRAMS = Path(__file__).parent / "kafka_programs"


def lines(path: Path, values: Iterable[Any]) -> Path:
    """Write a line for each value, as JSON unless it is a text, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values)
    )
    return path


def records(path: Path, rows: Sequence[tuple[int, int, int, Any]], topic: str | None = None) -> Path:
    """Write rows of partition, offset, timestamp in ms and value as Spark's Kafka DataFrame has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partitions, offsets, times, values = zip(*rows, strict=True)
    columns = {
        "value": pa.array(
            [value if value is None or isinstance(value, bytes) else str(value).encode() for value in values],
            pa.binary(),
        ),
        "partition": pa.array(partitions, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("ms")).cast(pa.timestamp("us", "UTC")),
    }
    if topic is not None:
        columns["topic"] = pa.repeat(topic, len(rows))
    pq.write_table(pa.table(columns), path)
    return path


def builder(*topics: str) -> KafkaSourceBuilder:
    """Return the builder of a source of texts."""
    source = KafkaSource.builder().set_bootstrap_servers("broker:9092").set_group_id("group")
    source.set_value_only_deserializer(SimpleStringSchema())
    return source.set_topics(*topics) if topics else source


def stream_of(source: KafkaSource, strategy: WatermarkStrategy | None = None, **dumps: Any) -> DataStream:
    """Return the stream of a source over dumps by topic."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.replace_source(KafkaSource, dumps)
    return environment.from_source(source, strategy or WatermarkStrategy.no_watermarks(), "topics")


def collected(source: KafkaSource, **dumps: Any) -> list[Any]:
    """Return the elements of a source over dumps by topic."""
    return list(stream_of(source, **dumps).execute_and_collect())


class FirstField(TimestampAssigner):
    """Takes the first field of a text as the timestamp in ms."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.split()[0])

"""Messages as producers of Kafka write them, in Avro and Protobuf, and tables of Kafka records."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

KAFKA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
"""Columns of Spark's DataFrames of Kafka."""

CLICK = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
        },
    ],
}


def kafka_table(values: Iterable[bytes | None], partitions: int = 2, topic: str = "clicks") -> pa.Table:
    """Return records with some values, dealt out to partitions in turn, a second apart."""
    rows = [
        {
            "key": b"k%d" % number,
            "value": value,
            "topic": topic,
            "partition": number % partitions,
            "offset": number // partitions,
            "timestamp": 1_000_000 * number,
            "timestampType": 0,
        }
        for number, value in enumerate(values)
    ]
    return pa.Table.from_pylist(rows, KAFKA)


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a message with the header of a schema registry."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


def avro(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Return a record of Avro, without its schema."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(dict(schema)), dict(record))
    return stream.getvalue()


_LABELS = {"": 1, "repeated ": 3}
_TYPES = {"double": 1, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12}


def descriptor_set() -> bytes:
    """Return the set of a file with messages ``shop.Other``, ``shop.Click`` and ``shop.Click.Place``."""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.message_type.add(name="Other").field.add(name="x", number=1, type=5, label=1)
    click = file.message_type.add(name="Click")
    for number, (name, kind, label) in enumerate(
        [
            ("user", "string", ""),
            ("at", ".google.protobuf.Timestamp", ""),
            ("tags", "string", "repeated "),
            ("kind", ".shop.Click.Kind", ""),
            ("place", ".shop.Click.Place", ""),
            ("big", "uint64", ""),
            ("raw", "bytes", ""),
            ("counts", ".shop.Click.CountsEntry", "repeated "),
        ],
        1,
    ):
        field = click.field.add(name=name, number=number, label=_LABELS[label])
        if kind.startswith("."):
            field.type, field.type_name = (14 if kind.endswith("Kind") else 11), kind
        else:
            field.type = _TYPES[kind]
    note = click.field.add(name="note", number=20, type=9, label=1, proto3_optional=True, oneof_index=0)
    assert note.proto3_optional
    click.oneof_decl.add(name="_note")
    kinds = click.enum_type.add(name="Kind")
    for number, name in enumerate(("VIEW", "BUY")):
        kinds.value.add(name=name, number=number)
    place = click.nested_type.add(name="Place")
    place.field.add(name="x", number=1, type=1, label=1)
    counts = click.nested_type.add(name="CountsEntry")
    counts.options.map_entry = True
    counts.field.add(name="key", number=1, type=9, label=1)
    counts.field.add(name="value", number=2, type=5, label=1)
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[timestamp, file]).SerializeToString())


def protobuf(name: str, **fields: Any) -> bytes:
    """Return a message of a type of `descriptor_set`; ``at`` is a number of milliseconds."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set()).file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
    for field, value in fields.items():
        if field == "at":
            made.at.FromMilliseconds(value)
        elif field in ("tags", "counts"):
            (made.tags.extend if field == "tags" else made.counts.update)(value)
        elif field == "place":
            made.place.x = value
        else:
            setattr(made, field, value)
    return bytes(made.SerializeToString())

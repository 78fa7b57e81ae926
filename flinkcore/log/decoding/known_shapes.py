"""Logs whose columns say where Kafka had each record: recognised by their names, they need no settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import COMPUTED_PREFIX
from flinkcore._internal.arrow.nested_fields import with_nested_fields
from flinkcore.log.decoding.decoded_chunk import BadRows, DecodedRows
from flinkcore.log.files.topic_paths import split_names
from flinkcore.log.sources.chunks import Chunk


@dataclass(frozen=True)
class RecordColumns:
    """Columns of a shape of logs; fields of structs by their dotted names.

    Attributes
    ----------
    name : str
        Name of the shape in messages.
    partition, offset, timestamp : str
    topic : str or None
        None if a log has one topic.
    others : tuple of str
        Further columns by which the shape is recognised.
    """

    name: str
    partition: str
    offset: str
    timestamp: str
    topic: str | None = None
    others: tuple[str, ...] = ()

    def fits(self, schema: pa.Schema) -> bool:
        """Return whether a log has these columns, with integers as partitions and offsets."""
        named = [self.timestamp, *self.others, *([] if self.topic is None else [self.topic])]
        fields = with_nested_fields(schema, [self.partition, self.offset, *named])
        return all(fields.names.count(name) == 1 for name in named) and all(
            fields.names.count(name) == 1 and pa.types.is_integer(fields.field(name).type)
            for name in (self.partition, self.offset)
        )

    def __str__(self) -> str:
        split = self.partition if self.topic is None else f"{self.topic} and {self.partition}"
        return f"{self.name}: split by {split}, in the order of {self.offset}, at {self.timestamp}"


SHAPES: Final = (
    RecordColumns("Spark's DataFrame of Kafka", "partition", "offset", "timestamp", "topic", ("value",)),
    RecordColumns(
        "an Iceberg topic of Redpanda", "redpanda.partition", "redpanda.offset", "redpanda.timestamp"
    ),
    RecordColumns("Confluent's Tableflow", "$$partition", "$$offset", "$$timestamp", "$$topic"),
)
"""Shapes that are recognised; the first one that fits counts."""

SPLIT: Final = f"{COMPUTED_PREFIX}split: topic and partition"


def known_shape(schema: pa.Schema) -> RecordColumns | None:
    """Return the shape that a log has by its columns, or None."""
    return next((shape for shape in SHAPES if shape.fits(schema)), None)


@dataclass(frozen=True)
class TopicAndPartition:
    """A step that makes one split of topic and partition, such as ``clicks/3``: the column `SPLIT`.

    Attributes
    ----------
    topic, partition : str
        Columns of the log.
    """

    keeps_rows: ClassVar[bool] = True
    is_columnar: ClassVar[bool] = True

    topic: str
    partition: str

    def schema(self, before: pa.Schema) -> pa.Schema:
        return before.append(pa.field(SPLIT, pa.string()))

    def inputs(self, names: Sequence[str]) -> list[str]:
        read: list[str] = []
        for name in names:
            read += [self.topic, self.partition] if name == SPLIT else [name]
        return list(dict.fromkeys(read))

    def makes(self, name: str) -> bool:
        return name == SPLIT

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        return None if self.makes(name) else chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        return DecodedRows([self._split(batch) if name == SPLIT else batch.column(name) for name in names])

    def _split(self, batch: pa.RecordBatch) -> pa.Array:
        topic, partition = batch.column(self.topic), batch.column(self.partition)
        if pa.types.is_dictionary(topic.type):
            topic = topic.dictionary_decode()
        return split_names(topic.cast(pa.string()), partition)

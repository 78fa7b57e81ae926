"""Logs whose columns say where Kafka had each record: recognised by their names, they need no settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import COMPUTED_PREFIX
from flinkcore.log.decoding.decoded_chunk import BadRows, DecodedRows


@dataclass(frozen=True)
class RecordColumns:
    """Columns of a shape of logs: names, or the name of a column of structs, a dot and a field.

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
        types = [_type_at(schema, path) for path in (self.partition, self.offset)]
        named = [self.timestamp, *self.others, *([] if self.topic is None else [self.topic])]
        return all(kind is not None and pa.types.is_integer(kind) for kind in types) and all(
            _type_at(schema, path) is not None for path in named
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


def column_of(path: str) -> str:
    """Return the column that has the values of a path: a hidden one for a field of a struct."""
    return f"{COMPUTED_PREFIX}{path}" if "." in path else path


@dataclass(frozen=True)
class RecordPlaces:
    """A step that makes columns of the fields of a shape, and of topic and partition one split, such as ``clicks/3``.

    Attributes
    ----------
    shape : RecordColumns
    """

    keeps_rows: ClassVar[bool] = True
    is_columnar: ClassVar[bool] = True

    shape: RecordColumns

    @property
    def split(self) -> str:
        """The column with the split."""
        return column_of(self.shape.partition) if self.shape.topic is None else SPLIT

    def schema(self, before: pa.Schema) -> pa.Schema:
        made = [
            pa.field(name, pa.string() if name == SPLIT else _type_at(before, self._paths[name]))
            for name in self._paths
        ]
        return pa.schema([*before, *made])

    @property
    def _paths(self) -> dict[str, str]:
        """Paths of the columns that the step makes."""
        shape = self.shape
        paths = {
            column_of(path): path for path in (shape.partition, shape.offset, shape.timestamp) if "." in path
        }
        return paths if shape.topic is None else paths | {SPLIT: shape.topic}

    def inputs(self, names: Sequence[str]) -> list[str]:
        read: list[str] = []
        for name in names:
            if name == SPLIT and self.shape.topic is not None:
                read += [self.shape.topic, self.shape.partition]
            else:
                read.append(self._paths[name].partition(".")[0] if name in self._paths else name)
        return list(dict.fromkeys(read))

    def makes(self, name: str) -> bool:
        return name in self._paths

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        return DecodedRows([self._column(batch, name) for name in names])

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        if name == SPLIT and self.shape.topic is not None:
            topic, partition = (batch.column(each) for each in (self.shape.topic, self.shape.partition))
            if pa.types.is_dictionary(topic.type):
                topic = topic.dictionary_decode()
            return pc.binary_join_element_wise(topic.cast(pa.string()), partition.cast(pa.string()), "/")
        if name not in self._paths:
            return batch.column(name)
        column, _, field = self._paths[name].partition(".")
        return pc.struct_field(batch.column(column), field)


def _type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Return the type of a column, or of a field of a column of structs; None if there is not one."""
    column, _, field = path.partition(".")
    if schema.names.count(column) != 1:
        return None
    kind = schema.field(column).type
    if not field:
        return kind
    fields = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
    return fields.get(field)

"""Fields of structs that are decoded, as columns of their dotted names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.nested_fields import NestedField, named_columns
from flinkcore.log.decoding.decoded_chunk import BadRows, DecodedRows
from flinkcore.log.sources.chunks import Chunk


@dataclass(frozen=True)
class DecodedFields:
    """A step that makes columns of fields of decoded structs; the source of a log reads fields of its own columns.

    Attributes
    ----------
    fields : mapping of str to NestedField
        By dotted name.
    """

    keeps_rows: ClassVar[bool] = True
    is_columnar: ClassVar[bool] = True

    fields: Mapping[str, NestedField]

    def schema(self, before: pa.Schema) -> pa.Schema:
        return before  # fields follow from the structs

    def inputs(self, names: Sequence[str]) -> list[str]:
        read = [self.fields[name].column if name in self.fields else name for name in names]
        return list(dict.fromkeys(read))

    def makes(self, name: str) -> bool:
        return name in self.fields

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        return chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        return DecodedRows(named_columns(batch, names, self.fields).columns)

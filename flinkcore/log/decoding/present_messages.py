"""Messages that are there: a record without a value is not a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from flinkcore.log.decoding.decoded_chunk import BadMessage, BadRows, DecodedRows, passed_on
from flinkcore.log.sources.chunks import Chunk

_IS_DELETE: Final = (
    "it is null, which deletes the row of the record's key, and deletions of upsert-kafka are not decoded: leave these "
    "records out, or record the changes in a format of changes such as debezium-json"
)


@dataclass(frozen=True)
class PresentMessages:
    """A step that leaves out the rows whose decoded message is null, as Flink's deserialization schemas do.

    Attributes
    ----------
    column : str
        Column with the decoded messages.
    is_upsert : bool
        Whether a null message deletes a row, which fails.
    """

    is_columnar: ClassVar[bool] = False

    column: str
    is_upsert: bool

    @property
    def keeps_rows(self) -> bool:
        return self.is_upsert

    def schema(self, before: pa.Schema) -> pa.Schema:
        return before

    def inputs(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys((*names, self.column)))

    def makes(self, name: str) -> bool:
        return False

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        return chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        is_row = batch.column(self.column).is_valid().to_numpy(zero_copy_only=False)
        if bad is not None:
            is_row = is_row | bad
        if self.is_upsert:
            deletes = np.flatnonzero(~is_row).tolist()
            faults = {row: BadMessage(self.column, _IS_DELETE, "null") for row in deletes}
            return DecodedRows([batch.column(name) for name in names], faults)
        rows = None if is_row.all() else np.flatnonzero(is_row)
        return DecodedRows([passed_on(batch, name, rows) for name in names], rows=rows)

"""Columns of a log that are computed of those of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import NamedExpressions, Select, expression_columns
from flinkcore.errors import InternalError
from flinkcore.log.decoding.decoded_chunk import BadRows, DecodedRows
from flinkcore.log.sources.chunks import Chunk


@dataclass(frozen=True)
class ComputedColumns:
    """A step that gives the columns of a log, of which expressions over the source's columns compute some.

    Attributes
    ----------
    columns : pyarrow.Schema
        Columns of the log: those that no expression computes are columns of the source.
    expressions : tuple of (str, pyarrow.compute.Expression)
        Names and what to compute.
    """

    keeps_rows: ClassVar[bool] = True
    is_columnar: ClassVar[bool] = True

    columns: pa.Schema
    expressions: NamedExpressions

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The source's columns of each expression."""
        inputs = {}
        for name, expression in self.expressions:
            read = expression_columns(expression)
            if read is None:
                raise InternalError(f"the columns of {name} = {expression} are not known")
            inputs[name] = sorted(read)
        return inputs

    def schema(self, before: pa.Schema) -> pa.Schema:
        return self.columns

    def inputs(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(each for name in names for each in self._by_name.get(name, [name])))

    def makes(self, name: str) -> bool:
        return name in self._by_name

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        return None if self.makes(name) else chunk.why_null(name)

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        """Return the columns of a batch; a DataError names an expression that fails, and its row."""
        wanted = tuple(each for each in self.expressions if each[0] in names)
        made = Select((), wanted).apply(batch)[0] if wanted else batch
        return DecodedRows([(made if self.makes(name) else batch).column(name) for name in names])

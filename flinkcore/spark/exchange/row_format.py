"""Formats of the rows that tasks give to Spark, and to each other through a shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

_ARROW_TYPES: Final = {
    "int": pa.int32(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
}


class RowFormat:
    """Columns of rows, as Spark and as Arrow name their types.

    Parameters
    ----------
    ddl : str
        Names and types as Spark writes them, such as `slot int, payload binary`.

    Attributes
    ----------
    schema : pyarrow.Schema
    """

    def __init__(self, ddl: str) -> None:
        columns = [column.split() for column in ddl.split(",")]
        self.schema = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in columns])

    @cached_property
    def struct_type(self) -> StructType:
        """The same for Spark, which need not parse it; tasks have no use for it."""
        return from_arrow_schema(self.schema)

    def batch(self, *columns: Sequence[Any]) -> pa.RecordBatch:
        """Return rows, given as one sequence of shape (n_rows,) per column."""
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def row(self, *values: Any) -> pa.RecordBatch:
        """Return a single row; the bytes of an Arrow buffer are not copied."""
        arrays = [_array_of(value, field.type) for value, field in zip(values, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array_of(value: Any, kind: pa.DataType) -> pa.Array:
    if not isinstance(value, pa.Buffer):
        return pa.array([value], kind)
    offsets = pa.py_buffer(np.array([0, value.size], np.int32))
    return pa.Array.from_buffers(kind, 1, [None, offsets, value])


def row_values(batches: Iterator[pa.RecordBatch], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns, row by row."""
    for batch in batches:
        found = [batch.column(name) for name in columns]
        for row in range(batch.num_rows):
            yield tuple(column[row].as_py() for column in found)

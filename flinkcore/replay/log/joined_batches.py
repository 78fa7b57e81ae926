"""Batches joined and taken, whatever their types: pyarrow has `concat_batches` from 19 on, and no `take` of views."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema, at least one, one batch after the other."""
    table = pa.Table.from_batches(batches)
    if len(batches) == 1 or table.num_rows == 0:
        return batches[0]
    (batch,) = table.combine_chunks().to_batches()
    return batch


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a batch in memory of their own: that of the batch may change, or be that of many more rows."""
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def taken(batch: pa.RecordBatch, rows: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return the given rows of a batch, in the given order."""
    try:
        return batch.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        return joined([batch.slice(row, 1) for row in rows.tolist()] or [batch.slice(0, 0)])

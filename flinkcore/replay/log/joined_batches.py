"""One batch of several: pyarrow has `concat_batches` from 19 on."""

from collections.abc import Sequence

import pyarrow as pa


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches of one schema, at least one, one batch after the other."""
    table = pa.Table.from_batches(batches)
    if len(batches) == 1 or table.num_rows == 0:
        return batches[0]
    (batch,) = table.combine_chunks().to_batches()
    return batch

"""What native accumulators give over one batch, with their columns checked."""

from typing import Any

import numpy as np
import pyarrow as pa
from models.aggregates import Spec

from flinkcore._native.aggregates import Accumulators


def numbers(values: Any) -> Any:
    return np.array(values, dtype=np.uint32)


def results(accumulators: Accumulators) -> list[list[Any]]:
    columns = [pa.array(column) for column in accumulators.take()]
    for column in columns:
        column.validate(full=True)
    return [column.to_pylist() for column in columns]


def aggregate(batch: pa.RecordBatch, *specs: Spec) -> list[Any]:
    """One result per spec over all rows of the batch."""
    accumulators = Accumulators(batch.schema, specs)
    accumulators.reserve(1)
    accumulators.update(batch, numbers([0] * batch.num_rows))
    accumulators._check()
    accumulators.emit_range(0, 1)
    return [column[0] for column in results(accumulators)]

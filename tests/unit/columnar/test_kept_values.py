"""Values that aggregates over changes keep: they free those that no key holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.columnar.stages.kept_values_column import KeptValuesColumn

FIELD = pa.field("v", pa.int64())
ROWS = pa.record_batch({"v": pa.array([1, 2], pa.int64())})
KEYS = np.zeros(2, np.uint32)
NO, YES = np.zeros(2, np.uint8), np.ones(2, np.uint8)


@pytest.mark.parametrize("emits", [False, True])
def test_values_that_are_withdrawn_are_freed_whether_or_not_there_are_results(emits: bool) -> None:
    column = KeptValuesColumn("collect", FIELD, pa.list_(FIELD.type), dead_values=4)
    column.process(ROWS, KEYS, NO, emits)
    for _ in range(20):
        column.process(ROWS, KEYS, NO, emits)
        column.process(ROWS, KEYS, YES, emits)
        if emits:
            column.take()
    assert len(column._values) <= 2 * 2 + 4
    column.emit(KEYS[:1])
    assert column.take().to_pylist() == [[1, 2]]

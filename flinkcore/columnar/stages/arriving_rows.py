"""Rows that come up as they arrive, without waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.relational.immediate_kernel import NO_RESULTS, ImmediateKernel
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.errors import SchemaError

_NO_KEYS = np.empty(0, np.uint32)


class ArrivingRows(ImmediateKernel):
    """Counterpart of `PendingRows` for rows by arrival, with the same verbs."""

    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8] | None,
        rows: Int64s,
        timestamps: Int64s,
        steps: Int64s,
        first: int = 0,
    ) -> int:
        """Take in events from number `first` on, as many as results may wait; return the number of the next one."""
        part = slice(first, first + self._result_limit)
        events = np.arange(first, first + len(rows[part]))
        self._taken_in(steps[part])
        self._results = NO_RESULTS._replace(
            left=rows[part],
            events=events,
            steps=steps[part] - 1,
            fired=np.full(len(events), MIN_TIMESTAMP),
            key_ids=key_ids[part],
            timestamps=timestamps[part],
        )
        return first + len(events)

    def take_cleared(self) -> tuple[Int64s, npt.NDArray[np.uint32]]:
        return NO_RESULTS.left, _NO_KEYS

    def memory_bytes(self) -> int:
        return 0

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def restore(
        self,
        table: str,
        keys: Int64s,
        key_groups: npt.NDArray[np.int32],
        rows: dict[str, Int64s],
        columns: pa.RecordBatch,
    ) -> None:
        raise SchemaError(f"rows that come as they arrive do not wait, and the state has a table {table!r}")

"""Rows that come up as they arrive, without waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.relational import KernelResults
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.errors import SchemaError
from flinkcore.time_plane.timeline import Timeline

_NONE = np.empty(0, np.int64)
_NO_KEYS = np.empty(0, np.uint32)
NO_RESULTS = KernelResults(
    left=_NONE,
    right=None,
    kinds=None,
    values=None,
    events=_NONE,
    steps=_NONE,
    fired=_NONE,
    key_ids=_NO_KEYS,
    timestamps=_NONE,
)
"""Results of a kernel that has none."""


class ArrivingRows:
    """Counterpart of `PendingRows` for rows by arrival, with the same verbs.

    Parameters
    ----------
    timeline : Timeline
    steps_done : int
    result_limit : int
    """

    def __init__(self, timeline: Timeline, steps_done: int, result_limit: int) -> None:
        self._timeline = timeline
        self._steps_done = steps_done
        self._result_limit = result_limit
        self._results = NO_RESULTS
        self._processed = 0

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
        self._steps_done = int(steps[part][-1])
        self._processed += len(events)
        self._results = NO_RESULTS._replace(
            left=rows[part],
            events=events,
            steps=steps[part] - 1,
            fired=np.full(len(events), MIN_TIMESTAMP),
            key_ids=key_ids[part],
            timestamps=timestamps[part],
        )
        return first + len(events)

    def advance(self, steps_before: int) -> bool:
        self._steps_done = max(self._steps_done, steps_before)
        return True

    def finish(self) -> bool:
        return self.advance(len(self._timeline))

    @property
    def is_full(self) -> bool:
        return len(self._results.left) > 0

    def take(self) -> KernelResults:
        results, self._results = self._results, NO_RESULTS
        return results

    def take_cleared(self) -> tuple[Int64s, npt.NDArray[np.uint32]]:
        return _NONE, _NO_KEYS

    def counts(self) -> dict[str, int]:
        return {"processed": self._processed}

    @property
    def current_watermark(self) -> int:
        return int(self._timeline.reader().watermark_after(self._steps_done))

    def memory_bytes(self) -> int:
        return 0

    @property
    def live_count(self) -> int:
        return 0

    def live_rows(self) -> Int64s:
        return _NONE

    def renumber(self, rows: Int64s) -> None:
        """Do nothing: no row waits."""

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

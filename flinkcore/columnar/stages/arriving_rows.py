"""Rows that come up as they arrive, without waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_expiry import KeyExpiry
from flinkcore.columnar.relational.immediate_kernel import NO_RESULTS, ImmediateKernel
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.errors import SchemaError
from flinkcore.time_plane.timeline import Timeline

_NO_KEYS_CLEARED = NO_RESULTS.left, np.empty(0, np.uint32)

EXPIRY: Final = "expiry"
"""Name of the table of times at which keys expire, in the state of an operator."""


class ArrivingRows(ImmediateKernel):
    """Counterpart of `PendingRows` for rows by arrival, with the same verbs.

    Parameters
    ----------
    timeline, steps_done, result_limit
        As of `ImmediateKernel`.
    expiry : KeyExpiry, optional
        Times at which keys expire; by default they never do.
    """

    def __init__(
        self, timeline: Timeline, steps_done: int, result_limit: int, expiry: KeyExpiry | None = None
    ) -> None:
        super().__init__(timeline, steps_done, result_limit)
        self._expiry = expiry
        self._cleared = _NO_KEYS_CLEARED

    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8] | None,
        rows: Int64s,
        timestamps: Int64s,
        steps: Int64s,
        arrivals: Int64s | None = None,
        first: int = 0,
    ) -> int:
        """Take in events from number `first` on, as many as results may wait; return the number of the next one."""
        part = slice(first, first + self._result_limit)
        events = np.arange(first, first + len(rows[part]))
        self._taken_in(steps[part])
        if self._expiry is not None and arrivals is not None:
            numbers = np.flatnonzero(self._expiry.write(key_ids[part], arrivals[part]))
            self._cleared = numbers, key_ids[part][numbers]
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
        cleared, self._cleared = self._cleared, _NO_KEYS_CLEARED
        return cleared

    def expire(self, now_ms: int) -> npt.NDArray[np.uint32]:
        """Forget the keys that have expired at a processing time, and return them."""
        assert self._expiry is not None
        return self._expiry.expire(now_ms)

    def memory_bytes(self) -> int:
        return 0 if self._expiry is None else self._expiry.memory_bytes()

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        return {} if self._expiry is None else {EXPIRY: self._expiry.snapshot()}

    def restore(
        self,
        table: str,
        keys: Int64s,
        key_groups: npt.NDArray[np.int32],
        rows: dict[str, Int64s],
        columns: pa.RecordBatch,
    ) -> None:
        if self._expiry is not None and table == EXPIRY:
            self._expiry.restore(keys, columns.column("due").to_numpy())
            return
        raise SchemaError(f"rows that come as they arrive do not wait, and the state has a table {table!r}")

"""Kernels in Python whose results come with the call that has them: no row waits in them."""

from __future__ import annotations

from typing import Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.relational import KernelResults
from flinkcore.time_plane.timeline import Timeline

_NONE: Final = np.empty(0, np.int64)
NO_RESULTS: Final = KernelResults(
    left=_NONE,
    right=None,
    kinds=None,
    values=None,
    events=_NONE,
    steps=_NONE,
    fired=_NONE,
    key_ids=np.empty(0, np.uint32),
    timestamps=_NONE,
)
"""Results of a kernel that has none."""


class ImmediateKernel:
    """The verbs of a `RelationalKernel` that keeps no rows and sets no timers; a subclass takes in the events.

    Parameters
    ----------
    timeline : Timeline
    steps_done : int
        Number of steps before the first event.
    result_limit : int
        Most results that wait until they are taken.
    """

    def __init__(self, timeline: Timeline, steps_done: int, result_limit: int) -> None:
        self._timeline = timeline
        self._steps_done = steps_done
        self._result_limit = result_limit
        self._results = NO_RESULTS
        self._processed = 0

    def _taken_in(self, steps: Int64s) -> None:
        """Count events with these steps before them, at least one."""
        self._steps_done = int(steps[-1])
        self._processed += len(steps)

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

    def counts(self) -> dict[str, int]:
        return {"processed": self._processed}

    @property
    def current_watermark(self) -> int:
        return int(self._timeline.reader().watermark_after(self._steps_done))

    @property
    def live_count(self) -> int:
        return 0

    def live_rows(self) -> Int64s:
        return _NONE

    def renumber(self, rows: Int64s) -> None:
        """Do nothing: no row is kept."""

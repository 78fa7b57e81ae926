"""Where timers of many keys lie among the steps of a timeline."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flinkcore.replay.time_plane.timeline import Timeline

Int64s = npt.NDArray[np.int64]


class TimelineMoments:
    """Where timers lie among the steps of a timeline.

    Parameters
    ----------
    timeline : Timeline
    """

    def __init__(self, timeline: Timeline) -> None:
        self.watermarks = timeline.watermark_ms
        self.clocks = timeline.clock_ms.copy()
        self._timeline = timeline
        self._done = 0

    def end_at(self, clock_ms: int) -> None:
        """Let the log end at a time: all steps before that are done."""
        self._done = self._timeline.steps_before_end
        self.clocks[self._done] = clock_ms

    def steps_up_to(self, watermarks_ms: Int64s) -> Int64s:
        """How many steps are done or have a watermark that is not higher; the next one is the first above it."""
        return np.maximum(np.searchsorted(self.watermarks, watermarks_ms, side="right"), self._done)

"""The timeline as it travels to reduce tasks: a step takes some three bytes instead of sixteen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.replay.timeline import Timeline
from flinkcore.spark.narrow import NarrowIntegers


@dataclass(frozen=True)
class PackedTimeline:
    """A timeline in few bytes; picklable.

    Attributes
    ----------
    steps
        Number of steps before the last, which is the end of time for every timeline.
    clock_ms, watermark_ms
        Of these steps; None if there are none.
    """

    steps: int
    clock_ms: NarrowIntegers | None
    watermark_ms: NarrowIntegers | None

    @classmethod
    def of(cls, timeline: Timeline) -> PackedTimeline:
        """Pack a timeline."""
        clock_ms, watermark_ms = timeline.clock_ms[:-1], timeline.watermark_ms[:-1]
        if len(clock_ms) == 0:
            return cls(0, None, None)
        return cls(len(clock_ms), NarrowIntegers.of(clock_ms), NarrowIntegers.of(watermark_ms))

    def unpacked(self) -> Timeline:
        """The timeline again."""
        if self.clock_ms is None or self.watermark_ms is None:
            return Timeline(np.array([MAX_TIMESTAMP]), np.array([MAX_TIMESTAMP]))
        return Timeline(
            np.append(self.clock_ms.values(self.steps), MAX_TIMESTAMP),
            np.append(self.watermark_ms.values(self.steps), MAX_TIMESTAMP),
        )

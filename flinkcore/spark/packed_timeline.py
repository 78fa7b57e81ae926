"""The timeline as it travels to reduce tasks: a step takes some three bytes instead of sixteen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.replay.step_order import AFTER_ALL_SPLITS
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
    split, position
        Of these steps; None if none of them was made by an event.
    """

    steps: int
    clock_ms: NarrowIntegers | None
    watermark_ms: NarrowIntegers | None
    split: NarrowIntegers | None = None
    position: NarrowIntegers | None = None

    @classmethod
    def of(cls, timeline: Timeline) -> PackedTimeline:
        """Pack a timeline."""
        clock_ms, watermark_ms = timeline.clock_ms[:-1], timeline.watermark_ms[:-1]
        if len(clock_ms) == 0:
            return cls(0, None, None)
        packed = cls(len(clock_ms), NarrowIntegers.of(clock_ms), NarrowIntegers.of(watermark_ms))
        if not timeline.is_punctuated:
            return packed
        return replace(
            packed,
            split=NarrowIntegers.of(timeline.split[:-1]),
            position=NarrowIntegers.of(timeline.position[:-1]),
        )

    def unpacked(self) -> Timeline:
        """The timeline again."""
        if self.clock_ms is None or self.watermark_ms is None:
            return Timeline(np.array([MAX_TIMESTAMP]), np.array([MAX_TIMESTAMP]))
        timeline = Timeline(
            np.append(self.clock_ms.values(self.steps), MAX_TIMESTAMP),
            np.append(self.watermark_ms.values(self.steps), MAX_TIMESTAMP),
        )
        if self.split is None or self.position is None:
            return timeline
        return replace(
            timeline,
            split=np.append(self.split.values(self.steps), AFTER_ALL_SPLITS),
            position=np.append(self.position.values(self.steps), 0),
        )

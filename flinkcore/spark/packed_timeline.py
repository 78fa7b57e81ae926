"""The timeline as it travels to reduce tasks: a step takes some three bytes instead of sixteen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.replay.time_plane.job_time import ReplayTime
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.spark.narrow import NarrowIntegers


@dataclass(frozen=True)
class PackedTimeline:
    """A timeline in few bytes; picklable.

    Attributes
    ----------
    steps
        Number of steps before that at clock 2**63 - 1, the end of time, which follows from them.
    clock_ms, watermark_ms
        Of these steps; None if there are none.
    split, position
        Of these steps; None if none of them was made by an event.
    ends
        Whether the end of time follows: not where the job stops with a checkpoint.
    """

    steps: int
    clock_ms: NarrowIntegers | None
    watermark_ms: NarrowIntegers | None
    split: NarrowIntegers | None = None
    position: NarrowIntegers | None = None
    ends: bool = True

    @classmethod
    def of(cls, timeline: Timeline) -> PackedTimeline:
        """Pack a timeline."""
        ends = MAX_TIMESTAMP in timeline.watermark_ms[-1:]
        steps = len(timeline.clock_ms) - int(ends and timeline.clock_ms[-1] == MAX_TIMESTAMP)
        if steps == 0:
            return cls(0, None, None, ends=ends)
        packed = cls(
            steps,
            NarrowIntegers.of(timeline.clock_ms[:steps]),
            NarrowIntegers.of(timeline.watermark_ms[:steps]),
            ends=ends,
        )
        if not timeline.is_punctuated:
            return packed
        return replace(
            packed,
            split=NarrowIntegers.of(timeline.split[:steps]),
            position=NarrowIntegers.of(timeline.position[:steps]),
        )

    def unpacked(self) -> Timeline:
        """The timeline again."""
        none = np.empty(0, np.int64)
        clock_ms = none if self.clock_ms is None else self.clock_ms.values(self.steps)
        watermark_ms = none if self.watermark_ms is None else self.watermark_ms.values(self.steps)
        split = None if self.split is None else self.split.values(self.steps)
        position = None if self.position is None else self.position.values(self.steps)
        if self.ends:
            return Timeline.to_end_of_time(clock_ms, watermark_ms, split, position)
        if split is None or position is None:
            return Timeline(clock_ms, watermark_ms)
        return Timeline(clock_ms, watermark_ms, split, position)


@dataclass(frozen=True)
class PackedTime:
    """The time of a replay in few bytes; picklable.

    Attributes
    ----------
    timeline
        The watermarks of all inputs combined.
    last_arrival_ms
        Of all logs; None if there are no events.
    second_from
        Splits from this number on belong to the second input of the operator, if it has one.
    """

    timeline: PackedTimeline
    last_arrival_ms: int | None
    second_from: int = 0

    @classmethod
    def of(cls, time: ReplayTime) -> PackedTime:
        """Pack the time of a replay."""
        return cls(PackedTimeline.of(time.timeline), time.last_arrival_ms, time.second_from)

    def unpacked(self) -> ReplayTime:
        """The time again, but for the numbers of the splits of each log."""
        return ReplayTime(self.timeline.unpacked(), self.last_arrival_ms, [], self.second_from)

"""The timeline as it is sent to reduce tasks: a step takes some three bytes instead of 32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flinkcore.spark.exchange.narrow import NarrowIntegers
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import Timeline


@dataclass(frozen=True)
class PackedTimeline:
    """A timeline in few bytes; picklable.

    Attributes
    ----------
    steps : int
        Number of steps before the end of the log.
    clock_ms, watermark_ms, split, position : NarrowIntegers
        One value per step.
    ends : bool
        Whether the end of the log follows; False where the job stops with a checkpoint.
    """

    steps: int
    clock_ms: NarrowIntegers
    watermark_ms: NarrowIntegers
    split: NarrowIntegers
    position: NarrowIntegers
    ends: bool

    @classmethod
    def of(cls, timeline: Timeline) -> PackedTimeline:
        """Pack a timeline."""
        steps = timeline.steps_before_end
        return cls(
            steps,
            _packed(timeline.clock_ms[:steps]),
            _packed(timeline.watermark_ms[:steps]),
            _packed(timeline.split[:steps]),
            _packed(timeline.position[:steps]),
            steps < len(timeline.clock_ms),
        )

    def unpacked(self) -> Timeline:
        """Return the timeline."""
        packed = self.clock_ms, self.watermark_ms, self.split, self.position
        columns = [column.values(self.steps) for column in packed]
        return Timeline.to_end_of_time(*columns) if self.ends else Timeline(*columns)


def _packed(values: npt.NDArray[np.int64]) -> NarrowIntegers:
    return NarrowIntegers.of(values) if len(values) else NarrowIntegers(0, False, None)


@dataclass(frozen=True)
class PackedTime:
    """The time of a replay in few bytes; picklable.

    Attributes
    ----------
    timeline : PackedTimeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Last arrival of all logs; None if there are no events.
    second_from : int
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
        """Return the time without the first split of each log, which reduce tasks do not need."""
        return ReplayTime(self.timeline.unpacked(), self.last_arrival_ms, [], self.second_from)

"""Timelines for tasks of Spark: packed bytes, which a task searches in place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flinkcore._native.packed_steps import PackedSteps
from flinkcore.spark.exchange.sent_bytes import INLINE_BYTES, SentBytes
from flinkcore.time_plane.job_time import ReplayTime
from flinkcore.time_plane.timeline import Timeline


@dataclass(frozen=True)
class SentTimeline:
    """A timeline as a task receives it; picklable.

    Attributes
    ----------
    steps : SentBytes
        The packed steps.
    """

    steps: SentBytes

    @classmethod
    def of(cls, timeline: Timeline, context: Any, inline_bytes: int = INLINE_BYTES) -> SentTimeline:
        """Send a timeline; parameters as of `SentBytes.of`."""
        return cls(SentBytes.of("the timeline of the log", timeline.steps.buffer, context, inline_bytes))

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline, in a task; a SourceError if its file cannot be written."""
        return Timeline(PackedSteps(self.steps.buffer))


@dataclass(frozen=True)
class SentTime:
    """The time of a replay as a task receives it; picklable.

    Attributes
    ----------
    timeline : SentTimeline
        The watermarks of all inputs combined.
    last_arrival_ms : int or None
        Last arrival of all logs; None if there are no events.
    second_from : int
        Splits from this number on belong to the second input of the operator, if it has one.
    """

    timeline: SentTimeline
    last_arrival_ms: int | None
    second_from: int = 0

    def replay_time(self) -> ReplayTime:
        """Return the time without the first split of each log, which reduce tasks do not need."""
        return ReplayTime(self.timeline.timeline, self.last_arrival_ms, [], self.second_from)

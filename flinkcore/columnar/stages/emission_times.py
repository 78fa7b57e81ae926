"""Times at which operators emit results: those of the replay clock, as far as they are known from the log.

An event's results have its arrival, those of a watermark the time of the step that brings it, those of a
processing-time timer the time at which it fires. What comes only because the log ends has no time: with a later
event it might have come later, or be something else. That is all that a job which stops with a checkpoint leaves to
the next log, so both ways of cutting a log give the same times.
"""

from __future__ import annotations

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS, Timeline
from flinkcore.time_plane.total_order import Events

NOT_KNOWN = MIN_TIMESTAMP
"""In place of a time, where only the end of the log has made something come."""


class EmissionTimes:
    """Times of an operator's events and results, in ms since the epoch; `NOT_KNOWN` after the last event of the log.

    Parameters
    ----------
    timeline
        Timeline of the operator.
    last_arrival_ms
        Last arrival of all logs, or None without events.

    Attributes
    ----------
    steps_known : int
        Number of steps whose times are known: only the end of the log has brought the later ones.
    """

    def __init__(self, timeline: Timeline, last_arrival_ms: int | None) -> None:
        self._end_ms = MIN_TIMESTAMP if last_arrival_ms is None else last_arrival_ms
        self._timeline = timeline
        self._reader = timeline.reader()
        self.steps_known = self._reader.steps_before(self._end_ms, AFTER_ALL_SPLITS, 0)

    def of_step(self, step: int) -> int:
        """Return the time of a step of the timeline."""
        return self._reader.clock(step) if step < self.steps_known else NOT_KNOWN

    def of_steps(self, steps: Int64s) -> Int64s:
        """Return the times of steps of the timeline, best ascending."""
        times, known = np.full(len(steps), NOT_KNOWN), steps < self.steps_known
        times[known] = self._timeline.clock_at(steps[known])
        return times

    def of_events(self, events: Events) -> Int64s:
        """Return the times of events, or of results of an operator before, which were emitted at theirs."""
        if not isinstance(events, PlacedEvents):
            return events.arrivals
        arrivals, steps, split = events.order[:3]
        behind = (arrivals >= self._end_ms) & (split == AFTER_ALL_SPLITS) & (steps >= self.steps_known)
        return np.where(behind, NOT_KNOWN, arrivals)

    def of_timer(self, due_ms: int) -> int:
        """Return the time of a processing-time timer that fires then."""
        return due_ms if due_ms < self._end_ms else NOT_KNOWN

    def of_timers(self, due_ms: Int64s) -> Int64s:
        """Return the times of processing-time timers that fire then."""
        return np.where(due_ms < self._end_ms, due_ms, NOT_KNOWN)

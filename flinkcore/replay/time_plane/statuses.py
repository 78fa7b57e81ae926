"""When the merged stream of a log turned idle, and active again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flinkcore.replay.time_plane.step_order import AFTER_ALL_SPLITS

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Statuses:
    """Watermark statuses of all splits of a log taken together, among the steps of its timeline.

    Parameters
    ----------
    clock_ms : numpy.ndarray of int64, shape (n_statuses,)
        Non-decreasing.
    steps : numpy.ndarray of int64, shape (n_statuses,)
        How many steps of the timeline come before.
    idle : numpy.ndarray of int64, shape (n_statuses,)
        1: all splits are idle, 0: one is active again.
    split, position : numpy.ndarray of int64, shape (n_statuses,)
        The event that was the cause; split `AFTER_ALL_SPLITS`, position 0: a tick.
    """

    clock_ms: Int64s
    steps: Int64s
    idle: Int64s
    split: Int64s
    position: Int64s

    @classmethod
    def none(cls) -> Statuses:
        """The log was always active."""
        return cls(*(np.empty(0, np.int64) for _ in range(5)))

    @classmethod
    def at_ticks(cls, clock_ms: Int64s, steps: Int64s, idle: Int64s) -> Statuses:
        """Statuses none of which was made by an event."""
        return cls(clock_ms, steps, idle, np.full_like(clock_ms, AFTER_ALL_SPLITS), np.zeros_like(clock_ms))

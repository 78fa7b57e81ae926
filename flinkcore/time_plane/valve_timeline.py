"""The timeline that the valve makes of what the operators of all splits emit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore._native.valve import IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve
from flinkcore.time_plane.emissions import Emissions
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS, Statuses, Timeline


class ValveTimeline:
    """A valve with a channel for each split, and what it has emitted.

    Parameters
    ----------
    splits : int
        Number of splits.

    Attributes
    ----------
    final_watermark_ms : numpy.ndarray of int64, shape (n_splits,)
        The last watermark of each split so far, -2**63 if it had none.
    """

    def __init__(self, splits: int) -> None:
        self._valve = StatusWatermarkValve(splits)
        self.final_watermark_ms = np.full(splits, MIN_TIMESTAMP)
        self._statuses: list[tuple[Int64s, Int64s, npt.NDArray[np.bool_]]] = []
        self._steps = Timeline.packer(None)
        self._merged_statuses: list[tuple[Int64s, Int64s, Int64s, Int64s, Int64s]] = []

    def restore(self, cut: TimeCut, columns: Mapping[str, Int64s]) -> None:
        """Go on from a cut, before the first emission.

        Parameters
        ----------
        cut : TimeCut
        columns : mapping of str to numpy.ndarray of int64, shape (n_splits,)
            Its columns for these splits.
        """
        self._steps = Timeline.packer(cut.step)
        self.final_watermark_ms = columns["watermark_ms"].copy()
        self._valve.restore(columns["channel_ms"], columns["channel_idle"].astype(np.uint8), cut.watermark_ms)
        idle = np.flatnonzero(columns["operator_idle"])
        self._statuses.append((idle, columns["idle_since_ms"][idle], np.ones(len(idle), np.bool_)))

    def state(self) -> tuple[int, dict[str, Int64s]]:
        """Return the watermark that it has emitted last, and what is known of each split, as columns of a `TimeCut`."""
        channels, idle, watermark_ms = self._valve.state()
        idle_since_ms = np.zeros(len(channels), np.int64)
        for split, clock_ms, is_idle in self._statuses:
            idle_since_ms[split[is_idle]] = clock_ms[is_idle]
        columns = {
            "channel_ms": channels,
            "channel_idle": idle.astype(np.int64),
            "idle_since_ms": idle_since_ms,
        }
        return watermark_ms, columns

    def add(self, emissions: Emissions) -> None:
        """Take in the next emissions in order."""
        split, kind, timestamp_ms = emissions.split, emissions.kind, emissions.timestamp_ms
        marks = kind == WATERMARK_KIND
        np.maximum.at(self.final_watermark_ms, split[marks], timestamp_ms[marks])
        if not marks.all():
            self._statuses.append(
                (split[~marks].astype(np.int64), emissions.clock_ms[~marks], kind[~marks] == IDLE_KIND)
            )
        causes, kinds, watermarks = self._valve.input_batch(split, kind, timestamp_ms)
        merged = kinds == WATERMARK_KIND
        if not merged.all():
            caused = Emissions(emissions.rows[causes[~merged]])
            steps_before = len(self._steps) + np.cumsum(merged)[~merged]
            idle = (kinds[~merged] == IDLE_KIND).astype(np.int64)
            self._merged_statuses.append(
                (caused.clock_ms.copy(), steps_before, idle, _split_or_none(caused), caused.position)
            )
        if not merged.any():
            return
        steps = Emissions(emissions.rows[causes[merged]])
        self._steps.add(steps.clock_ms.copy(), watermarks[merged], _split_or_none(steps), steps.position)

    def timeline(self, *, stops: bool = False) -> Timeline:
        """Return all steps, and the end of time unless the job stops with a checkpoint; once."""
        return Timeline.ended(self._steps, stops=stops)

    def statuses(self) -> Statuses:
        """Return when all splits were idle."""
        none = (np.empty(0, np.int64),) * 5
        return Statuses(*(np.concatenate(parts) for parts in zip(none, *self._merged_statuses, strict=True)))

    def idle_spans(self, end_ms: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return when which split was idle, up to this end of the log: (split, from, to), by split and clock."""
        none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
        split, clock_ms, is_idle = (
            np.concatenate(parts) for parts in zip(none, *self._statuses, strict=True)
        )
        order = np.argsort(split, kind="stable")
        split, clock_ms, begins = split[order], clock_ms[order], np.flatnonzero(is_idle[order])
        # A split is idle until its next status, which is active; after that of the last split nothing follows.
        next_split, until = np.append(split, -1)[begins + 1], np.append(clock_ms, end_ms)[begins + 1]
        return split[begins], clock_ms[begins], np.where(next_split == split[begins], until, end_ms)


def _split_or_none(emissions: Emissions) -> Int64s:
    # numpy 1 makes int32 of int32 and a number that fits.
    return np.where(emissions.by_event, emissions.split.astype(np.int64), np.int64(AFTER_ALL_SPLITS))

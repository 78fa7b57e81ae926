"""Watermark alignment of the splits of a log, on the replay clock: when which split is not read.

One log is one source of one group, and each of its splits a subtask of it, aligned with the others:

- At each multiple of the update interval, after the events and the watermark tick of that time, every split
  that is ahead is paused, and every other is read (again).
- A split is ahead if its watermark, as it was two updates ago, is above the maximum allowed: the least current
  watermark of the splits plus the maximum drift; no limit, if that is beyond 2**63 - 1. Idle splits, and those
  without a watermark so far, are left out of the least. That an older watermark is compared is Flink's
  ``pipeline.watermark-alignment.buffer-size``, of which a replay takes the default, 3 samples.
- What arrives while its split is paused waits. It is read 1 ms after the update that resumes the split, all at
  once and in its order, as if it had arrived then. With the last arrival of the log everything is read.
- The generator of a paused split is called at ticks as ever, so that a watermark may come of what was read
  before. The clock by which it measures idleness stands still.
- A split that has no more events is not idle by that: it holds the others back until its idle timeout is over.
- Where the job stops with a checkpoint, paused splits stay paused. What waits is in the checkpoint, and the next log
  reads it when it resumes the split.

The lead of a split depends only on the log and the settings, and so does every result.

Notes
-----
Flink's ``SourceCoordinator``, ``SourceOperator`` and ``WatermarkSampler``. Deliberate differences: updates lie on
the multiples of the interval; all splits report, get the maximum and obey it at one time, where Flink may
announce a report an interval later, as threads and messages go; a paused split is not read at all, where Flink
emits the rest of a batch that was fetched before; and a split whose idle timeout was over by its pause, which the
next tick finds, is resumed like others, where Flink, which leaves idle splits as they are, resumes it no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np

from flinkcore._internal.arrow.arrays import Int32s, Int64s
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.event_log import hold_back
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams

NOT_READ: Final = MAX_TIMESTAMP
"""In place of the time at which an event is read: it waits for another log."""


def summary_interval_ms(interval_ms: int, alignment: WatermarkAlignmentParams | None) -> int:
    """Return the interval of chunk summaries, which ends at every tick and at every update.

    Parameters
    ----------
    interval_ms : int
        The auto-watermark interval; 0: there are no ticks, and nothing to align.
    alignment : WatermarkAlignmentParams or None
    """
    if alignment is None or interval_ms == 0:
        return interval_ms
    return gcd(interval_ms, alignment.update_interval_ms)


@dataclass(frozen=True, eq=False)
class PausedSpans:
    """Spans for which splits were paused, by split and clock.

    Parameters
    ----------
    split : numpy.ndarray of int64, shape (n_spans,)
    from_ms, to_ms : numpy.ndarray of int64, shape (n_spans,)
        The updates that paused and resumed it; one that is paused at the end is so up to the last arrival.
    read_ms : numpy.ndarray of int64, shape (n_spans,)
        When that is read which arrives after the one and up to the other; `NOT_READ`: it waits for another log.
    """

    split: Int64s
    from_ms: Int64s
    to_ms: Int64s
    read_ms: Int64s

    @property
    def are_none(self) -> bool:
        """Return whether no split was paused."""
        return not len(self.split)

    @property
    def outlast_log(self) -> bool:
        """Return whether some split is still paused where the log ends, and its events wait for another one."""
        return NOT_READ in self.read_ms

    @classmethod
    def none(cls) -> PausedSpans:
        """No split was paused."""
        return cls(*(np.empty(0, np.int64) for _ in range(4)))

    def of(self, split: int) -> list[tuple[int, int]]:
        """Return when the split of this number was paused: (from, to) in ms of the replay clock."""
        spans = np.flatnonzero(self.split == split)
        return list(zip(self.from_ms[spans].tolist(), self.to_ms[spans].tolist(), strict=True))

    def total_ms(self, splits: int) -> Int64s:
        """Return how long each of so many splits was paused in all."""
        total = np.zeros(splits, np.int64)
        np.add.at(total, self.split, self.to_ms - self.from_ms)
        return total

    def held_back(self, arrivals_ms: Int64s, splits: Int32s, n_splits: int) -> Int64s:
        """Return when events are read: their arrivals, or a copy where splits have been paused.

        Parameters
        ----------
        arrivals_ms : numpy.ndarray of int64, shape (n_rows,)
        splits : numpy.ndarray of int32, shape (n_rows,)
        n_splits : int
            Splits of the log.
        """
        if self.are_none:
            return arrivals_ms
        offsets = np.searchsorted(self.split, np.arange(n_splits + 1))
        read_ms = arrivals_ms.copy()
        hold_back(read_ms, splits, offsets, self.from_ms, self.to_ms, self.read_ms)
        return read_ms

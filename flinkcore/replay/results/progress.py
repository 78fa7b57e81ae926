"""How far a replay has come: event time reached, events done, and an estimate of what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from flinkcore.common import MIN_TIMESTAMP
from flinkcore.common.shown_times import format_timestamp


@dataclass(frozen=True)
class Progress:
    """State of a running replay.

    Attributes
    ----------
    events_done, events_total
        Events of the log that the data plane has taken, and all.
    watermark_ms
        Event time reached: the watermark in force, ms since the epoch.
    seconds
        Since the data plane began.
    """

    events_done: int
    events_total: int
    watermark_ms: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time to the end; None before the first event."""
        if self.events_done == 0:
            return None
        return self.seconds * (self.events_total - self.events_done) / self.events_done

    def __str__(self) -> str:
        share = 100 * self.events_done / self.events_total if self.events_total else 100
        line = (
            f"{share:5.1f} %  {self.events_done:,} of {self.events_total:,} events"
            f"  event time {format_timestamp(self.watermark_ms)}"
        )
        if self.seconds_left is not None:
            line += f"  about {self.seconds_left:,.0f} s left"
        return line


ProgressListener = Callable[[Progress], None]
"""Called in the thread that takes the rows, except on Spark: there, in another while that one waits."""


class ProgressLine:
    """Shows progress on one line of a terminal.

    Parameters
    ----------
    stream
        Where to write; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        line = str(progress)
        end = "\n" if progress.events_done == progress.events_total else ""
        self._stream.write("\r" + line.ljust(self._width) + end)
        self._stream.flush()
        self._width = len(line)


class ProgressMeter:
    """Tells a listener about progress, at most every half second and at the end.

    Parameters
    ----------
    events_total
        Events that the data plane will take.
    listener
        Called in the thread that drives the replay; None: nobody listens.
    """

    INTERVAL_SECONDS = 0.5

    def __init__(self, events_total: int, listener: ProgressListener | None) -> None:
        self._total = events_total
        self._listener = listener
        self._done = 0
        self._started = self._reported = time.monotonic()

    def advance(self, events: int, watermark_ms: int = MIN_TIMESTAMP) -> None:
        """Count events that were taken; `watermark_ms` is the event time reached."""
        self._done += events
        if self._listener is None:
            return
        now = time.monotonic()
        if now - self._reported >= self.INTERVAL_SECONDS or self._done == self._total:
            self._reported = now
            self._listener(Progress(self._done, self._total, watermark_ms, now - self._started))

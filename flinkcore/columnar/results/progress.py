"""Progress of a replay: event time reached, events done, and an estimate of what is left."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

from flinkcore._internal.show.times import format_timestamp
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.graph.pipeline_executor import ProgressChoice
from flinkcore.log.sources.chunks import Chunk


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
        Since the pass began.
    files_done, files_total
        While the first pass reads the times of the log, and no number of events is known: files, or parts of large
        ones, that it has read, and all. Both are 0 afterwards.
    """

    events_done: int
    events_total: int
    watermark_ms: int
    seconds: float
    files_done: int = 0
    files_total: int = 0

    @property
    def is_of_times(self) -> bool:
        """Return whether the first pass still reads the times of the log."""
        return self.files_total > 0

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is left."""
        return not self.is_of_times and self.events_done == self.events_total

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the time to the end of the pass; None before its first event or file."""
        if self._done == 0:
            return None
        return self.seconds * (self._total - self._done) / self._done

    @property
    def _done(self) -> int:
        return self.files_done if self.is_of_times else self.events_done

    @property
    def _total(self) -> int:
        return self.files_total if self.is_of_times else self.events_total

    def __str__(self) -> str:
        share = 100 * self._done / self._total if self._total else 100
        line = f"{share:5.1f} %  {self._done:,} of {self._total:,} "
        if self.is_of_times:
            line += "files: times of the log"
        else:
            line += f"events  event time {format_timestamp(self.watermark_ms)}"
        if self.seconds_left is not None:
            line += f"  about {self.seconds_left:,.0f} s left"
        return line


ProgressListener = Callable[[Progress], None]
"""Called in the thread that takes the rows, except on Spark: there, in another while that one waits."""


class ProgressLine:
    """Shows progress on one line of a terminal; where the stream is none, as a line every ten seconds.

    A replay that ends before it has reported anything leaves no line.

    Parameters
    ----------
    stream
        Where to write; standard error by default.
    """

    SECONDS_BETWEEN_LINES = 10

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = _is_terminal(self._stream)
        self._width = 0
        self._shown_after = 0.0

    def __call__(self, progress: Progress) -> None:
        is_first = self._width == 0
        if progress.is_complete and is_first:
            return
        line = str(progress)
        if self._is_terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            self._stream.write("\r" + line.ljust(self._width))
        elif is_first or progress.is_complete or self._is_due(progress):
            self._stream.write(line + "\n")
            self._shown_after = progress.seconds
        self._stream.flush()
        self._width = len(line)
        if progress.is_complete:
            self.close()

    def _is_due(self, progress: Progress) -> bool:
        return progress.seconds - self._shown_after >= self.SECONDS_BETWEEN_LINES

    def close(self) -> None:
        """End the line; what is shown next begins another one."""
        if self._width and self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0


class ProgressBar:
    """Shows progress by a bar of tqdm's; in a notebook, by a widget.

    A replay that ends before it has reported anything leaves no bar.

    Parameters
    ----------
    tqdm
        The class of bars.
    """

    def __init__(self, tqdm: Callable[..., Any]) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._is_of_times = False

    def __call__(self, progress: Progress) -> None:
        if self._is_of_times and not progress.is_of_times:
            self.close()
        if self._bar is None:
            if progress.is_complete:
                return
            self._is_of_times = progress.is_of_times
            total, unit = progress.events_total, " events"
            if progress.is_of_times:
                total, unit = progress.files_total, " files"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a notebook without widgets gets a bar of text
                self._bar = self._tqdm(total=total, unit=unit, unit_scale=True)
            if not self._bar.disable:  # by TQDM_DISABLE; then it has no clock
                self._bar.start_t -= progress.seconds
        reached = "times" if progress.is_of_times else f"event time {format_timestamp(progress.watermark_ms)}"
        self._bar.set_postfix_str(reached, refresh=False)
        self._bar.n = progress.files_done if progress.is_of_times else progress.events_done
        self._bar.refresh()

    def close(self) -> None:
        """End the bar, which stays as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class ProgressDisplay:
    """Shows progress by a bar or a line, and nothing more once that has failed: a job continues without."""

    def __init__(self) -> None:
        self._shown: ProgressLine | ProgressBar | None = None
        with suppress(Exception):
            self._shown = _bar_or_line()

    def __call__(self, progress: Progress) -> None:
        if self._shown is not None:
            try:
                self._shown(progress)
            except Exception:
                self._shown = None

    def close(self) -> None:
        """End what is shown."""
        if self._shown is not None:
            with suppress(Exception):
                self._shown.close()


@contextmanager
def listener_of_run(choice: ProgressChoice) -> Iterator[ProgressListener | None]:
    """Yield the receiver of the progress of one run: a listener, a display, or None.

    Parameters
    ----------
    choice
        As of `LogStream.execute`; a mode of `ExecutionConfig.set_progress`.
    """
    if callable(choice):
        yield choice
    elif choice == "off" or (choice == "auto" and not _somebody_looks()):
        yield None
    else:
        with closing(ProgressDisplay()) as display:
            yield display


def while_rows_are_taken(choice: ProgressChoice) -> ProgressChoice:
    """Return the choice for a run that gives its rows one batch at a time: whoever takes them may print them."""
    return "off" if choice == "auto" else choice


def _somebody_looks() -> bool:
    return _is_notebook() or _is_terminal(sys.stderr)


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody sees it: not if it is closed, or an object that can only be written to."""
    with suppress(Exception):
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    return False


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return "ipykernel" in sys.modules and shell is not None and shell() is not None


def _bar_or_line() -> ProgressLine | ProgressBar:
    if _somebody_looks():
        with suppress(ModuleNotFoundError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ProgressBar(importlib.import_module("tqdm.auto").tqdm)
    return ProgressLine()


class ProgressMeter:
    """Reports progress to a listener, at most every half second and at the end.

    Parameters
    ----------
    events_total
        Events that the data plane will take.
    listener
        Called in the thread that drives the replay, or None.

    Attributes
    ----------
    total, done
        Numbers of events that the data plane will take, and has taken.
    watermark_ms
        The event time reached.
    """

    INTERVAL_SECONDS = 0.5

    def __init__(self, events_total: int, listener: ProgressListener | None) -> None:
        self.total = events_total
        self.done = 0
        self.watermark_ms = MIN_TIMESTAMP
        self._listener = listener
        self._started = self._reported = time.monotonic()

    def advance(self, events: int, watermark_ms: int = MIN_TIMESTAMP) -> None:
        """Count events that were taken; `watermark_ms` is the event time reached."""
        self.done += events
        self.watermark_ms = watermark_ms
        if self._listener is None:
            return
        now = time.monotonic()
        if now - self._reported >= self.INTERVAL_SECONDS or self.done == self.total:
            self._reported = now
            self._listener(Progress(self.done, self.total, watermark_ms, now - self._started))


def files_read(plan: JobPlan, chunks: Sequence[Sequence[Chunk]]) -> int:
    """Return how many files the first pass reads, or parts of large ones; logs that are read together count once."""
    return sum(len(chunk.parts) for together in plan.ways for chunk in chunks[together[0]])


class FilesMeter:
    """Reports the progress of the first pass to a listener, at most every half second.

    Parameters
    ----------
    files_total
        Files that it reads, or parts of large ones.
    listener
        Called in the thread that drives the replay, or None.
    """

    def __init__(self, files_total: int, listener: ProgressListener | None) -> None:
        self._total = files_total
        self._done = 0
        self._listener = listener
        self._started = self._reported = time.monotonic()

    def advance(self, files: int) -> None:
        """Count files whose times were read."""
        self._done += files
        now = time.monotonic()
        if self._listener is not None and now - self._reported >= ProgressMeter.INTERVAL_SECONDS:
            self._reported = now
            seconds = now - self._started
            self._listener(Progress(0, 0, MIN_TIMESTAMP, seconds, self._done, self._total))

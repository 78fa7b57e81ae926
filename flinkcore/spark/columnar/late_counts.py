"""Late events of a DataFrame of results: its runs are Spark's, and an accumulator brings their counts to the driver."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.columnar.operator_plans.native_windows import last_moments
from flinkcore.columnar.operator_plans.operator_plan import OperatorWindows
from flinkcore.columnar.results.late_events import LossWarning
from flinkcore.errors import LateEventsWarning
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import LogEvents

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

_SAMPLED: Final = 16
"""One of so many events of a large batch is looked at."""

_ALL_UP_TO: Final = 1 << 13
_MOST_STEPS: Final = 1 << 16

CHUNKS: Final = "chunks"
PARTITION: Final = "partition"

Counts: TypeAlias = dict[tuple[str, int, int], tuple[int, int, int]]
"""Late events, all events, and the number of chunks or partitions, by `CHUNKS` or `PARTITION`, operator, and the number
of the first chunk of a task, or of the partition."""


class CountsListener:
    """Parameter of an accumulator: merges counts, and on the driver calls a listener with all that have come.

    A task that runs again reports the same counts again, which take the place of the first ones.

    Parameters
    ----------
    listener : callable, optional
        Called in the thread in which Spark brings counts of tasks.
    """

    def __init__(self, listener: Callable[[Counts], None] | None = None) -> None:
        self._listener = listener

    def zero(self, value: Counts) -> Counts:
        """Return no counts."""
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:
        """Add the second counts to the first."""
        value1.update(value2)
        if self._listener is not None:
            self._listener(value1)
        return value1

    def __reduce__(self) -> tuple[Any, ...]:
        return CountsListener, ()


@dataclass(frozen=True)
class LateSample:
    """Estimates on the map side how many events of a log are late; picklable.

    Attributes
    ----------
    number : int
        Number of the operator that the events come to.
    windows : OperatorWindows
        Its windows.
    timeline : Timeline
        Timeline of the operator, thinned out.
    """

    number: int
    windows: OperatorWindows
    timeline: Timeline

    @classmethod
    def of(cls, number: int, windows: OperatorWindows | None, timeline: Timeline) -> LateSample | None:
        """Return the sample of events that come to an operator, or None if only the operator knows which are late."""
        if windows is None or last_moments(windows.assigner, np.zeros(1, np.int64)) is None:
            return None
        steps = timeline.steps_before_end
        every = -(-steps // _MOST_STEPS) or 1
        chosen = np.arange(0, steps, every)
        return cls(
            number, windows, Timeline.of(timeline.clock_at(chosen), timeline.watermark_after(chosen + 1))
        )

    def counts(self, events: LogEvents) -> tuple[int, int]:
        """Return how many events of a sample of a batch are late, and how many the sample has."""
        every = 1 if len(events.timestamps) <= _ALL_UP_TO else _SAMPLED
        lasts = last_moments(self.windows.assigner, events.timestamps[::every])
        assert lasts is not None
        arrivals = np.ascontiguousarray(events.arrivals[::every])
        watermark_ms = self.timeline.watermark_after(self.timeline.steps_before_arrivals(arrivals))
        # Watermark less lateness: a sum with the last moment may overflow.
        lateness_ms = self.windows.allowed_lateness_ms
        behind = np.maximum(watermark_ms, MIN_TIMESTAMP + lateness_ms) - lateness_ms
        return int(np.count_nonzero((lasts <= behind) & (watermark_ms > MIN_TIMESTAMP))), len(lasts)


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts that come of an operator, and the warning if too many events of them are late.

    Attributes
    ----------
    warning : LossWarning
    chunks : int
        Number of chunks whose samples come; 0 if there are no samples.
    partitions : int
        Number of partitions whose counts come.
    """

    warning: LossWarning
    chunks: int
    partitions: int


class LateWarnings:
    """Warns once of each operator whose runs lose many events as late.

    Spark keeps an accumulator, and so this, until the process ends.

    Parameters
    ----------
    operators : mapping of int to ExpectedCounts
        By number of the operator.
    most_share : float
        Share of late events above which to warn.
    """

    def __init__(self, operators: Mapping[int, ExpectedCounts], most_share: float) -> None:
        self._open = dict(operators)
        self._most_share = most_share

    def accumulator(self, context: Any) -> Accumulator[Counts]:
        """Return an accumulator that tasks add counts to.

        Parameters
        ----------
        context : pyspark.SparkContext
        """
        counts: Accumulator[Counts] = context.accumulator({}, CountsListener(self._listen))
        return counts

    def _listen(self, counts: Counts) -> None:
        for number, operator in list(self._open.items()):
            of_chunks, of_partitions = (
                [each for place, each in counts.items() if place[:2] == (kind, number)]
                for kind in (CHUNKS, PARTITION)
            )
            is_sample = len(of_partitions) < operator.partitions
            if is_sample and sum(chunks for _, _, chunks in of_chunks) < (operator.chunks or 1):
                continue
            late, events, _ = map(sum, zip(*(of_chunks if is_sample else of_partitions), strict=True))
            # A sample may by chance have three standard deviations more late events than the log.
            margin = 3 * (self._most_share * events) ** 0.5 if is_sample else 0.0
            is_large = late > self._most_share * events + margin
            if is_large:
                _warn(operator.warning.text(late, events, is_sample))
            if is_large or not is_sample:
                del self._open[number]


def _warn(warning: str) -> None:
    try:
        warn_user(warning, LateEventsWarning)
    except LateEventsWarning:  # warnings are errors, and Spark's thread has nobody to raise them to
        print(f"{LateEventsWarning.__name__}: {warning}", file=sys.stderr)

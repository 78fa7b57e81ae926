"""The records of a source with splits on their way into a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from flinkcore.common.timestamp_assigner import NO_TIMESTAMP
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.datastream.connectors.base import InputStatus
from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader
from flinkcore.replay.elements.element_arrivals import (
    ELEMENTS_AT_ONCE,
    OrderedArrivals,
    Origin,
    arrival_times,
)
from flinkcore.replay.elements.job_clock import JobClock
from flinkcore.runtime.sources.source_operator import SourceOperator
from flinkcore.runtime.sources.source_outputs import Emit

if TYPE_CHECKING:
    from flinkcore.runtime.checkpoint import OperatorSnapshot

WATERMARKS: Final = "flinkcore.source watermarks"
"""State of a source with splits: its `SourceWatermarks`."""


class SourceArrivals(Origin):
    """The polls of a source's subtask, which come at a rate, each time one for each split that is read.

    Parameters
    ----------
    number : int
        Of the origin in the job.
    operator : SourceOperator
        Open, with its splits.
    rate : float
        Polls per second and split. The first one comes an interval after the start.
    start_ms : int
    is_bounded : bool
        False: what the job has collected is passed on before each poll, which may wait.
    finish : callable
        Called when the last watermark has gone.
    position : int
        How many polls there were in an earlier run, from whose checkpoint this one goes on.
    """

    def __init__(
        self,
        number: int,
        operator: SourceOperator[Any],
        rate: float,
        start_ms: int,
        is_bounded: bool,
        finish: Callable[[], None],
        position: int = 0,
    ) -> None:
        self.number = number
        self._operator = operator
        self._is_bounded = is_bounded
        self._finish = finish
        self._arrival_ms = arrival_times(rate, start_ms)
        self._position = position
        self.next_arrival_ms: int | None = start_ms
        self._schedule_next(self._arrival_ms(position), InputStatus.MORE_AVAILABLE)

    def _schedule_next(self, now_ms: int, status: InputStatus) -> None:
        """Set the time of the next poll: that of a further record, or, if there may be none, 1 ms later."""
        operator = self._operator
        self.at_end = operator.is_at_end
        may_read = status is InputStatus.MORE_AVAILABLE or operator.is_waiting_for_alignment
        if self.at_end or not may_read:
            self.next_arrival_ms = now_ms + 1
            return
        self._position += 1
        while (next_ms := self._arrival_ms(self._position)) < now_ms:
            self._position += 1
        self.next_arrival_ms = next_ms

    def emit(self) -> None:
        """Poll once for each split that is read, unless there is nothing before."""
        assert self.next_arrival_ms is not None
        operator, now_ms = self._operator, self.next_arrival_ms
        status, polls = operator.emit_next(), 1
        while status is InputStatus.MORE_AVAILABLE and polls < operator.readable_splits:
            status, polls = operator.emit_next(), polls + 1
        if status is InputStatus.END_OF_INPUT:
            self.next_arrival_ms = None
            self._finish()
            return
        self._schedule_next(now_ms, status)
        self.found_nothing = status is InputStatus.NOTHING_AVAILABLE
        self.is_waiting = not self._is_bounded or self.found_nothing

    def wait(self) -> None:
        """Go on: the next poll waits by itself."""
        self.is_waiting = False

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Let all records go on their way, each at its time, and stop now and then."""
        only = self._operator.only_split() if self._is_bounded and not self.at_end else None
        if only is not None:
            yield from self._emit_elements(clock, *only)
        yield from OrderedArrivals([self]).emit_all(clock)

    def _emit_elements(
        self, clock: JobClock, reader: IteratorSourceReader, conversion: Conversion | None, emit: Emit
    ) -> Iterator[None]:
        while chunk := reader.take(ELEMENTS_AT_ONCE):
            first = self._position
            self._position += len(chunk)
            arrivals = map(self._arrival_ms, range(first, first + len(chunk)))
            values = chunk if conversion is None else map(conversion, chunk)
            for value, arrival_ms in zip(values, arrivals, strict=True):
                if clock.next_due_ms < arrival_ms:
                    clock.fire_before(arrival_ms)
                clock.now_ms = arrival_ms
                emit(value, NO_TIMESTAMP)
            yield
        self._schedule_next(self._arrival_ms(self._position - 1), InputStatus.MORE_AVAILABLE)

    def snapshot(self) -> OperatorSnapshot:
        from flinkcore.runtime.checkpoint import OperatorSnapshot, SplitPosition  # loads pyarrow
        from flinkcore.runtime.tasks.subtask_state import broadcast_state

        (watermark_ms, self.is_idle), watermarks = self._operator.snapshot_watermarks()
        return OperatorSnapshot(
            watermark_ms=watermark_ms,
            operator_state={WATERMARKS: broadcast_state(watermarks or ())},
            splits=[SplitPosition(0, self._position)],
        )

    def close(self) -> None:
        """Close the reader."""
        self._operator.close()

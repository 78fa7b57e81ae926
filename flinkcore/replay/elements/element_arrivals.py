"""Elements of sources in the order of their arrival, on their way into a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from flinkcore._native.element_calls import emit_elements
from flinkcore.common.constants import MAX_TIMESTAMP
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.errors import ConfigurationError
from flinkcore.replay.elements.job_clock import JobClock
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.tasks.task_output import ElementCall, TaskOutput

ELEMENTS_AT_ONCE = 256
"""After so many the program may get what has been collected."""

if TYPE_CHECKING:
    from flinkcore.runtime.checkpoint import OperatorSnapshot
    from flinkcore.runtime.sources.source_contexts import LockedSourceContext

CONTEXT: Final = "flinkcore.source context"
"""State of a source in a checkpoint: the `snapshot_state` of the context that it emits to."""

_NONE_LEFT: Final = object()


class Arrivals(ABC):
    """Elements that come one after the other, each at its time."""

    @abstractmethod
    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Let all elements go on their way, each at its time, and stop now and then."""

    def cancel(self) -> None:  # noqa: B027
        """Stop what emits by itself, without waiting for it; `close` follows."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is read."""


class Origin(Arrivals):
    """Arrivals that can wait for others.

    The end comes, as an arrival of its own, when all that is due at the last arrival has been done.

    Attributes
    ----------
    number : int
        Of the origin in the job.
    next_arrival_ms : int or None
        When the next element arrives, or the end; None: the end has come.
    at_end : bool
        Whether what comes next is the end.
    is_idle : bool
        Whether its output is.
    is_waiting : bool
        Whether `wait` must be called before it is known what comes next.
    found_nothing : bool
        Whether there was nothing to go on its way at the last `emit`.
    """

    number: int
    next_arrival_ms: int | None
    at_end: bool
    is_waiting: bool = False
    is_idle: bool = False
    found_nothing: bool = False

    def wait(self) -> None:
        """Wait until it is known what comes next."""

    def is_available(self) -> bool:
        """Return whether it is known what comes next, without waiting for it."""
        return True

    @abstractmethod
    def emit(self) -> None:
        """Let the next element go on its way, or the end come."""

    def snapshot(self) -> OperatorSnapshot:
        """Return where it stands, all of its elements having gone.

        Raises
        ------
        ConfigurationError
            If it has no place from which it could go on.
        """
        raise ConfigurationError(f"{type(self).__name__} has no checkpoints")


class SplitArrivals(Origin):
    """The elements of a split, which arrive at a rate.

    Parameters
    ----------
    number : int
        Of the origin in the job.
    split : SourceSplit
    conversion : callable, optional
        Of each element to its declared type.
    rate : float
        Elements per second. The first one arrives an interval after the start.
    start_ms : int
    process : callable
        Takes a record, which it may change.
    finish : callable
        Called when the last element has gone.
    position : int
        How many elements have gone in an earlier run, from whose checkpoint this one goes on.
    context : LockedSourceContext, optional
        What the records go through, if watermarks are made there.
    """

    def __init__(
        self,
        number: int,
        split: SourceSplit,
        conversion: Conversion | None,
        rate: float,
        start_ms: int,
        process: ElementCall,
        finish: Any,
        position: int = 0,
        context: LockedSourceContext[Any] | None = None,
    ) -> None:
        self.number = number
        elements = split.elements()
        self._source = elements
        self._elements = elements if conversion is None else map(conversion, elements)
        self._process = process
        self._finish = finish
        self._context = context
        self._arrival_ms = arrival_times(rate, start_ms)
        self._position = position
        self._record: StreamRecord[Any] = StreamRecord(None)
        self._held: Any = None
        self.next_arrival_ms: int | None = 0
        self.at_end = False
        self._take()

    def _take(self) -> None:
        self._held = element = next(self._elements, _NONE_LEFT)
        if element is _NONE_LEFT:
            self.at_end = True
            self.next_arrival_ms = self._arrival_ms(self._position) + 1
        else:
            self._position += 1
            self.next_arrival_ms = self._arrival_ms(self._position)

    def emit(self) -> None:
        """Let the next element go on its way, or the end come."""
        if self.at_end:
            self.next_arrival_ms = None
            self._finish()
            return
        record = self._record
        record.value, record.timestamp = self._held, None
        self._process(record)
        self._take()

    def snapshot(self) -> OperatorSnapshot:
        from flinkcore.runtime.checkpoint import OperatorSnapshot, SplitPosition  # loads pyarrow

        splits = [SplitPosition(0, self._position)]
        if self._context is None:
            return OperatorSnapshot(splits=splits)
        from flinkcore.runtime.tasks.subtask_state import broadcast_state

        state = {CONTEXT: broadcast_state(self._context.snapshot_state())}
        return OperatorSnapshot(watermark_ms=self._context.watermark_ms, operator_state=state, splits=splits)

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Let all elements go on their way, each at its time, and stop now and then."""
        if not self.at_end:
            yield from self._emit_elements(clock)
        end_ms = self._arrival_ms(self._position) + 1
        clock.fire_before(end_ms)
        clock.end(end_ms, self.number)
        self.next_arrival_ms = None
        self._finish()

    def _emit_elements(self, clock: JobClock) -> Iterator[None]:
        chunk = [self._held]
        self._position -= 1
        while chunk:
            first = self._position + 1
            self._position += len(chunk)
            arrivals = map(self._arrival_ms, range(first, first + len(chunk)))
            emit_elements(chunk, arrivals, clock, self._process)
            yield
            chunk = list(islice(self._elements, ELEMENTS_AT_ONCE))

    def close(self) -> None:
        """Close what reads the split, if it can be closed."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


class OrderedArrivals(Arrivals):
    """Elements of several origins in the order of their arrival.

    Those of one moment come in the order of the origins, ends before all others.

    Parameters
    ----------
    origins : sequence of Origin
    stops : bool
        Whether no origin comes to its end: what they have left goes on in another run.

    Attributes
    ----------
    last_origin : int
        Number of the origin of the last element; -1 if there was none.
    """

    def __init__(self, origins: Sequence[Origin], stops: bool = False) -> None:
        self._origins = origins
        self._stops = stops
        self.last_origin = -1

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Let all elements go on their way, each at its time, and stop now and then."""
        for origin in self._origins:
            origin.wait()
        waiting = [
            (origin.next_arrival_ms, not origin.at_end, origin.number, origin)
            for origin in self._origins
            if origin.next_arrival_ms is not None
        ]
        heapify(waiting)
        until_stop = ELEMENTS_AT_ONCE
        while waiting:
            arrival_ms, is_element, number, origin = waiting[0]
            if self._stops:
                if not is_element:
                    heappop(waiting)
                    continue
                self.last_origin = number
            if clock.next_due_ms < arrival_ms:
                clock.fire_before(arrival_ms)
            if is_element:
                clock.arrive(arrival_ms, number)
            else:
                clock.end(arrival_ms, number)
            origin.emit()
            if origin.is_waiting:
                yield
                origin.wait()
            next_ms = origin.next_arrival_ms
            if next_ms is None:
                heappop(waiting)
            else:
                heapreplace(waiting, (next_ms, not origin.at_end, number, origin))
            until_stop -= 1
            if until_stop == 0:
                yield
                until_stop = ELEMENTS_AT_ONCE

    def cancel(self) -> None:
        """Cancel all origins."""
        for origin in self._origins:
            origin.cancel()

    def close(self) -> None:
        """Close all origins, even after an error, and none before all are cancelled."""
        self.cancel()
        with ExitStack() as closing:
            for origin in reversed(self._origins):
                closing.callback(origin.close)


def arrival_times(rate: float, start_ms: int) -> Callable[[int], int]:
    """Return what gives the arrival of the element of a number, from 1 on, in ms since the epoch."""
    if rate == 1000:
        return start_ms.__add__
    if rate == int(rate):
        whole = int(rate)
        return lambda number: start_ms + number * 1000 // whole
    return lambda number: start_ms + int(number * 1000 // rate)


def end_input(output: TaskOutput) -> None:
    """Tell all that read a source that nothing comes any more."""
    output.emit_watermark(Watermark(MAX_TIMESTAMP))

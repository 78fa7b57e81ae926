"""Elements of sources in the order of their arrival at a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from heapq import heapify, heappop, heapreplace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP
from flinkcore._native.element_calls import emit_elements
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.common.watermark import Watermark
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.elements.arrivals.job_clock import JobClock
from flinkcore.elements.arrivals.restored_sources import ENDED, first_position
from flinkcore.elements.tasks.task_output import ElementCall, TaskOutput
from flinkcore.operators.records.stream_elements import StreamRecord

ELEMENTS_AT_ONCE = 256
"""After so many the program may get what has been collected."""

if TYPE_CHECKING:
    from flinkcore.checkpoint import OperatorSnapshot
    from flinkcore.elements.sources.source_contexts import LockedSourceContext

CONTEXT: Final = "flinkcore.source context"
"""State of a source in a checkpoint: the `snapshot_state` of the context that it emits to."""

_NONE_LEFT: Final = object()


class SourceSnapshot(NamedTuple):
    """Position of an origin in a checkpoint.

    Attributes
    ----------
    snapshot : OperatorSnapshot
    is_idle : bool
        Whether its output is.
    has_ended : bool
        Whether its end has come.
    """

    snapshot: OperatorSnapshot
    is_idle: bool
    has_ended: bool


class Arrivals(ABC):
    """Elements that come one after the other, each at its time."""

    @abstractmethod
    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all elements, each at its time, and pause now and then."""

    def wake(self) -> None:  # noqa: B027
        """Wake what waits, so that it checks whether to continue; may be called in any thread."""

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
        Number of the origin in the job.
    next_arrival_ms : int or None
        Arrival of the next element, or of the end; None after the end.
    at_end : bool
        Whether what comes next is the end.
    is_waiting : bool
        Whether it is not known what comes next until `wait` was called.
    found_nothing : bool
        Whether the last `emit` had nothing to emit.
    had_ended : bool
        Whether it came to its end in an earlier run, from whose checkpoint this one resumes.
    """

    number: int
    next_arrival_ms: int | None
    at_end: bool
    is_waiting: bool = False
    found_nothing: bool = False
    had_ended: bool = False

    @property
    def has_ended(self) -> bool:
        """Return whether the end has come."""
        return self.next_arrival_ms is None

    @property
    def comes_to_end(self) -> bool:
        """Return whether there is nothing but the end to come, as far as that is known without waiting."""
        return self.at_end

    def stop(self) -> None:
        """Let what emits by itself come to a place from which it can go on; what it emits until then counts."""

    @property
    def has_stopped(self) -> bool:
        """Return whether it is at such a place, after `stop`."""
        return True

    @property
    def continuation(self) -> tuple[int, int] | None:
        """Return the arrival and the origin of the next element to be added, or None if unknown."""
        return None

    def goes_beyond(self, place: tuple[int, int]) -> bool:
        """Return whether an element follows a place (a time and the number of an origin); False if unknown."""
        return False

    def wait(self) -> None:
        """Wait until it is known what comes next, or until it is woken."""

    def is_available(self) -> bool:
        """Return whether it is known what comes next, without waiting for it."""
        return True

    @abstractmethod
    def emit(self) -> None:
        """Emit the next element, or the end."""

    @abstractmethod
    def end(self) -> None:
        """Emit the end, whatever is left."""

    @abstractmethod
    def snapshot(self, is_amid: bool) -> SourceSnapshot:
        """Return where it stands.

        Parameters
        ----------
        is_amid : bool
            Whether it is to resume after what it has emitted; otherwise all of its elements were emitted, and the next
            run has others.
        """


class SplitArrivals(Origin):
    """The elements of a split, which arrive at a rate.

    Parameters
    ----------
    number : int
        Number of the origin in the job.
    split : SourceSplit
    conversion : callable, optional
        Conversion of each element to its declared type.
    rate : float
        Elements per second. The first one arrives an interval after the start.
    start_ms : int
    process : callable
        Takes a record, which it may change.
    finish : callable
        Called when the last element has gone.
    position : int
        Number of elements that earlier runs emitted, from whose checkpoint this one resumes.
    left_out : int
        Number of elements of the collection that are not in the split, as they were emitted before; `ENDED`: all, and
        its end, too.
    context : LockedSourceContext, optional
        Context that the records pass through, if it makes watermarks.
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
        left_out: int = 0,
        context: LockedSourceContext[Any] | None = None,
    ) -> None:
        self.number = number
        self.had_ended = left_out == ENDED
        self._left_out_before = position - left_out
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

    @property
    def continuation(self) -> tuple[int, int]:
        return self._arrival_ms(self._position + 1), self.number

    def goes_beyond(self, place: tuple[int, int]) -> bool:
        if self.at_end:
            return False
        ahead = positions_ahead(self._arrival_ms, self._position, self.number, place)
        taken = list(islice(self._elements, ahead))
        self._elements = chain(taken, self._elements)
        return len(taken) == ahead

    def emit(self) -> None:
        """Emit the next element, or the end."""
        if self.at_end:
            self.end()
            return
        record = self._record
        record.value, record.timestamp = self._held, None
        self._process(record)
        self._take()

    def end(self) -> None:
        self.next_arrival_ms = None
        self._finish()

    def snapshot(self, is_amid: bool) -> SourceSnapshot:
        from flinkcore.checkpoint import OperatorSnapshot, SplitPosition  # loads pyarrow

        gone = self._position if self.at_end else self._position - 1
        left_out = ENDED if self.next_arrival_ms is None else gone - self._left_out_before
        splits = [SplitPosition(0, gone, left_out if is_amid else 0)]
        if self._context is None:
            return SourceSnapshot(OperatorSnapshot(splits=splits), False, self.has_ended)
        from flinkcore.elements.tasks.subtask_state import own_state

        state = {CONTEXT: own_state(0, self._context.snapshot_state())}
        snapshot = OperatorSnapshot(
            watermark_ms=self._context.watermark_ms, operator_state=state, splits=splits
        )
        return SourceSnapshot(snapshot, self._context.is_idle, self.has_ended)

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all elements, each at its time, and pause now and then."""
        if not self.at_end:
            yield from self._emit_elements(clock)
        end_ms = self._arrival_ms(self._position) + 1
        clock.fire_before(end_ms)
        clock.end(end_ms, self.number)
        self.end()

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

    Elements of one moment come in the order of the origins, ends before all others.

    Parameters
    ----------
    origins : sequence of Origin
    stops : bool
        Whether another run continues with the origins: then only those end whose next element would have to arrive
        before the last one of all.

    Attributes
    ----------
    last_origin : int
        Number of the origin of the last element; -1 before the first.
    """

    def __init__(self, origins: Sequence[Origin], stops: bool = False) -> None:
        self._origins = origins
        self._stops = stops
        self._is_stopping = False
        self._is_woken = False
        self._held: list[Origin] = []
        self.last_origin = -1

    def stop(self) -> None:
        """Let no origin come to its end any more, and those that emit by themselves stop."""
        self._stops = self._is_stopping = True
        for origin in self._origins:
            origin.stop()

    @property
    def has_stopped(self) -> bool:
        """Return whether all origins can go on from where they are."""
        return all(origin.has_stopped for origin in self._origins)

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all elements, each at its time, and pause now and then."""
        for origin in self._origins:
            origin.wait()
            yield from _waited(origin)
        waiting = [
            (origin.next_arrival_ms, not origin.at_end, origin.number, origin)
            for origin in self._origins
            if origin.next_arrival_ms is not None
        ]
        heapify(waiting)
        until_stop = ELEMENTS_AT_ONCE
        while waiting:
            arrival_ms, is_element, number, origin = waiting[0]
            if is_element:
                self.last_origin = number
                if self._held:
                    self._end_held(clock, arrival_ms, number)
            elif self._stops and not self._has_surely_ended(origin):
                self._held.append(heappop(waiting)[-1])
                continue
            if clock.next_due_ms < arrival_ms:
                clock.fire_before(arrival_ms)
            if is_element:
                clock.arrive(arrival_ms, number)
            else:
                clock.end(arrival_ms, number)
            origin.emit()
            yield from _waited(origin)
            next_ms = origin.next_arrival_ms
            if next_ms is None:
                heappop(waiting)
            else:
                heapreplace(waiting, (next_ms, not origin.at_end, number, origin))
            until_stop -= 1
            if until_stop == 0 or self._is_woken:
                self._is_woken = False
                yield
                until_stop = ELEMENTS_AT_ONCE

    def _has_surely_ended(self, origin: Origin) -> bool:
        """Return whether further elements of an origin would have to arrive before others."""
        place = origin.continuation
        if place is None or self._is_stopping:
            return False
        return any(other.goes_beyond(place) for other in self._origins if other is not origin)

    def _end_held(self, clock: JobClock, arrival_ms: int, number: int) -> None:
        """End those of which it turns out only now that they have ended."""
        if self._is_stopping or arrival_ms <= clock.now_ms:
            return
        for origin in [
            each for each in self._held if (each.continuation or (arrival_ms, number)) < (arrival_ms, number)
        ]:
            clock.fire_before(arrival_ms)
            clock.end(arrival_ms, origin.number)
            origin.emit()
            self._held.remove(origin)

    def wake(self) -> None:
        self._is_woken = True
        for origin in self._origins:
            origin.wake()

    def cancel(self) -> None:
        """Cancel all origins."""
        self._is_woken = True
        for origin in self._origins:
            origin.cancel()

    def close(self) -> None:
        """Close all origins, even after an error, and none before all are cancelled."""
        self.cancel()
        with ExitStack() as closing:
            for origin in reversed(self._origins):
                closing.callback(origin.close)


def _waited(origin: Origin) -> Iterator[None]:
    """Wait until it is known what an origin has next, and stop before each wait."""
    while origin.is_waiting:
        yield
        origin.wait()


def arrival_times(rate: float, start_ms: int) -> Callable[[int], int]:
    """Return a function from the number of an element, from 1 on, to its arrival in ms since the epoch."""
    if rate == 1000:
        return start_ms.__add__
    if rate == int(rate):
        whole = int(rate)
        return lambda number: start_ms + number * 1000 // whole
    return lambda number: start_ms + int(number * 1000 // rate)


def positions_ahead(
    arrival_ms: Callable[[int], int], position: int, number: int, place: tuple[int, int]
) -> int:
    """Return how many elements after `position` the first one lies whose (arrival, origin) is greater than `place`."""
    return first_position(position, lambda at: (arrival_ms(at), number) > place) - position


def end_input(output: TaskOutput) -> None:
    """Announce the end of a source to all that read it."""
    output.emit_watermark(Watermark(MAX_TIMESTAMP))

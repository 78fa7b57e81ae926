"""Emissions of a source function in the order of their arrival at a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.elements.arrivals.element_arrivals import (
    CONTEXT,
    OrderedArrivals,
    Origin,
    SourceSnapshot,
    arrival_times,
)
from flinkcore.elements.arrivals.job_clock import JobClock
from flinkcore.elements.arrivals.restored_sources import ARRIVALS, RestoredFunction
from flinkcore.elements.sources.stream_source import Emission, StreamSource

if TYPE_CHECKING:
    from flinkcore.operators.state import OperatorStateSnapshot


class FunctionArrivals(Origin):
    """Emissions of a source function; its elements arrive at a rate, and later by as long as it sleeps.

    Parameters
    ----------
    number : int
        Number of the origin in the job.
    source : StreamSource
    rate : float
        Elements per second. The first one arrives an interval after the start.
    start_ms : int
    finish : callable
        Called when the last watermark has gone.
    index : int
        Index of the subtask.
    states : callable, optional
        Function that returns the source function's own states once it has ended, or None if it has none and begins
        again.
    restored : RestoredFunction, optional
        State from which the function resumes, or None at its beginning.
    """

    def __init__(
        self,
        number: int,
        source: StreamSource,
        rate: float,
        start_ms: int,
        finish: Callable[[], None],
        index: int = 0,
        states: Callable[[], Mapping[str, OperatorStateSnapshot]] | None = None,
        restored: RestoredFunction | None = None,
    ) -> None:
        self.number = number
        self._index = index
        self._source = source
        self._finish = finish
        self._arrival_ms = arrival_times(rate, start_ms)
        self._states = states
        self._position, self._last_ms, self._slept_before_ms = (
            (0, MIN_TIMESTAMP, 0) if restored is None else restored[:3]
        )
        self._next: Emission | None = None
        self._is_stopping = False
        self._ended_by_itself = False
        self.next_arrival_ms: int | None = start_ms
        self.at_end = self.had_ended = restored is not None and restored.has_ended
        self.is_waiting = not self.at_end

    def wait(self) -> None:
        """Wait for the next emission, or the end, or until it is woken."""
        if self.is_waiting:
            self._take(wait=True)

    def is_available(self) -> bool:
        """Return whether the next emission, or the end, has come."""
        if self.is_waiting and self._source.is_available:
            self._take(wait=True)
        return not self.is_waiting

    @property
    def comes_to_end(self) -> bool:
        return self.is_available() and self.at_end

    @property
    def continuation(self) -> tuple[int, int]:
        return self._arrival_ms(self._position + 1) + self._slept_ms, self.number

    def goes_beyond(self, place: tuple[int, int]) -> bool:
        self.wait()
        if self.is_waiting or self.at_end or self.next_arrival_ms is None:
            return False
        arrival_ms, position, ahead = self.next_arrival_ms, self._position, 0
        while (arrival_ms, self.number) <= place:
            emission = self._source.peek(ahead)
            if emission is None:
                return False
            ahead, position = ahead + 1, position + emission.has_elements
            arrival_ms = self._arrival_ms(position) + self._slept_before_ms + emission.slept_ms
        return True

    def stop(self) -> None:
        """Cancel the function; what it emits until it returns still arrives."""
        self._is_stopping = True
        if not self.at_end and not self._source.stop():
            self.at_end, self.is_waiting = True, False

    @property
    def has_stopped(self) -> bool:
        if self.comes_to_end:
            return True
        self._source.check_stopped()
        return False

    def emit(self) -> None:
        """Emit the next emission, or the end."""
        if self.at_end:
            self.end()
            return
        assert self._next is not None
        assert self.next_arrival_ms is not None
        self._last_ms = self.next_arrival_ms
        for method, arguments in self._next.calls:
            method(*arguments)
        self._take(wait=False)

    def end(self) -> None:
        self.next_arrival_ms = None
        self._source.finish()
        self._finish()

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all emissions, each at its time, and pause now and then, and before each wait."""
        yield from OrderedArrivals([self]).emit_all(clock)

    def run_through(self) -> int | None:
        """Let the function run to its end, drop what it emits, and return the arrival of the last emission, if any."""
        last_ms = None
        self.wait()
        while not self.at_end:
            last_ms = self.next_arrival_ms
            self._take(wait=True)
        return last_ms

    def _take(self, wait: bool) -> None:
        self._next = emission = self._source.next_emission(wait)
        has_ended = wait and emission is None and self._source.has_ended
        self.is_waiting = emission is None and not has_ended
        if emission is not None:
            self._position += emission.has_elements
            self.next_arrival_ms = (
                self._arrival_ms(self._position) + self._slept_before_ms + emission.slept_ms
            )
        elif has_ended:
            self.at_end = True
            self._ended_by_itself = not self._is_stopping
            self.next_arrival_ms = self._arrival_ms(self._position) + self._slept_ms + 1

    @property
    def _slept_ms(self) -> int:
        return self._slept_before_ms + self._source.slept_ms

    def snapshot(self, is_amid: bool) -> SourceSnapshot:
        from flinkcore.checkpoint import OperatorSnapshot  # loads pyarrow
        from flinkcore.elements.tasks.subtask_state import own_state

        context, states = self._source.context, self._states
        has_ended = self.next_arrival_ms is None or (states is None and self._ended_by_itself)
        arrivals = self._position, self._last_ms, self._slept_ms, int(is_amid and has_ended)
        snapshot = OperatorSnapshot(
            watermark_ms=context.watermark_ms,
            operator_state={
                **({} if states is None else states()),
                ARRIVALS: own_state(self._index, arrivals),
                CONTEXT: own_state(self._index, context.snapshot_state()),
            },
        )
        return SourceSnapshot(snapshot, context.is_idle, self.has_ended)

    def wake(self) -> None:
        self._source.wake()

    def cancel(self) -> None:
        """Cancel the function, unless it has ended."""
        self._source.cancel()

    def close(self) -> None:
        """Cancel the function, unless it has ended, and wait until it returns."""
        self._source.close()

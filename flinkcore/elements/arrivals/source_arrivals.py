"""Records of a source with splits in the order of their arrival at a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkcore.common.serializer import Serializer
from flinkcore.common.timestamp_assigner import NO_TIMESTAMP
from flinkcore.common.typeinfo.type_information import Conversion
from flinkcore.datastream.connectors.base import InputStatus, SourceSplit
from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader
from flinkcore.elements.arrivals.element_arrivals import (
    ELEMENTS_AT_ONCE,
    OrderedArrivals,
    Origin,
    SourceSnapshot,
    arrival_times,
    positions_ahead,
)
from flinkcore.elements.arrivals.job_clock import JobClock
from flinkcore.elements.arrivals.restored_sources import FIRST_PLACE, PLACE, WATERMARKS, SourcePlace
from flinkcore.elements.sources.source_operator import SourceOperator
from flinkcore.elements.sources.source_outputs import Emit
from flinkcore.errors import UserCodeError, in_words

if TYPE_CHECKING:
    from flinkcore.checkpoint import SplitPosition


class SourceArrivals(Origin):
    """The polls of a source's subtask, which come at a rate, each time one for each split that is read.

    Parameters
    ----------
    number : int
        Number of the origin in the job.
    operator : SourceOperator
        Open, with its splits.
    rate : float
        Polls per second and split. The first one comes an interval after the start.
    start_ms : int
    is_bounded : bool
        False: what the job has collected is passed on before each poll, which may wait.
    finish : callable
        Called when the last watermark has gone.
    index : int
        Index of the subtask.
    holds_end : bool
        Whether its splits may go on in another run, so that no round of polls ends with them.
    serializer : Serializer, optional
        Serializer of splits that the source's own reader snapshots, or None if splits are saved by their positions.
    created_for : int
        The number of subtasks that the splits were created for.
    place : SourcePlace, optional
        Place of an earlier run, from whose checkpoint this one resumes.
    end_ms : int, optional
        Time of the end if that run has read everything; by default 1 ms after the poll of the place.
    """

    def __init__(
        self,
        number: int,
        operator: SourceOperator[Any],
        rate: float,
        start_ms: int,
        is_bounded: bool,
        finish: Callable[[], None],
        *,
        index: int = 0,
        holds_end: bool = False,
        serializer: Serializer | None = None,
        created_for: int = 1,
        place: SourcePlace = FIRST_PLACE,
        end_ms: int | None = None,
    ) -> None:
        self.number = number
        self._operator = operator
        self._is_bounded = is_bounded
        self._finish = finish
        self._arrival_ms = arrival_times(rate, start_ms)
        self._index = index
        self._holds_end = holds_end
        self._serializer = serializer
        self._created_for = created_for
        self._position, self._last_ms, self._polls, *_ = place
        self._next_position = self._position
        self.next_arrival_ms: int | None = start_ms
        now_ms = self._arrival_ms(self._position)
        self._schedule_next(now_ms, InputStatus.MORE_AVAILABLE)
        if self.at_end and end_ms is not None:
            self.next_arrival_ms = end_ms
        elif self._round_goes_on:
            self._next_position, self.next_arrival_ms = self._position, now_ms

    @property
    def _round_goes_on(self) -> bool:
        """Return whether splits are left of the last round of polls, and something in them."""
        return 0 < self._polls < self._operator.readable_splits and not self._operator.is_at_end

    def _schedule_next(self, now_ms: int, status: InputStatus) -> None:
        """Set the time of the next poll: that of a further record, or, if there may be none, 1 ms later."""
        operator = self._operator
        self.at_end = operator.is_at_end
        may_read = status is InputStatus.MORE_AVAILABLE or operator.is_waiting_for_alignment
        self._next_position = self._position
        if self.at_end or not may_read:
            self.next_arrival_ms = now_ms + 1
            return
        self._next_position += 1
        while (next_ms := self._arrival_ms(self._next_position)) < now_ms:
            self._next_position += 1
        self.next_arrival_ms = next_ms

    @property
    def comes_to_end(self) -> bool:
        return self._operator.is_at_end

    @property
    def continuation(self) -> tuple[int, int]:
        position = self._position if self._round_goes_on else self._position + 1
        return self._arrival_ms(position), self.number

    def goes_beyond(self, place: tuple[int, int]) -> bool:
        ahead = positions_ahead(self._arrival_ms, self._next_position, self.number, place)
        return self._operator.has_left(ahead + 1)

    def emit(self) -> None:
        """Poll once for each split that is read, unless there is nothing before."""
        assert self.next_arrival_ms is not None
        operator, now_ms = self._operator, self.next_arrival_ms
        if self._holds_end and operator.is_at_end:
            self.end()
            return
        self._position, self._last_ms = self._next_position, now_ms
        status, polls = InputStatus.MORE_AVAILABLE, self._polls if self._round_goes_on else 0
        while status is InputStatus.MORE_AVAILABLE and (polls == 0 or polls < operator.readable_splits):
            if polls and operator.is_at_end:
                break  # the end comes after the round, as if another run continued
            status, polls = operator.emit_next(), polls + 1
        may_go_on = status is InputStatus.MORE_AVAILABLE and self._holds_end and operator.is_at_end
        self._polls = polls if may_go_on else 0  # splits that the next run has besides come in this round
        if status is InputStatus.END_OF_INPUT and not self._holds_end:
            self._note_end()
            return
        self._schedule_next(now_ms, status)
        self.found_nothing = status is InputStatus.NOTHING_AVAILABLE
        self.is_waiting = not self._is_bounded or self.found_nothing

    def end(self) -> None:
        self._operator.end_input()
        self._note_end()

    def _note_end(self) -> None:
        self.next_arrival_ms = None
        self._finish()

    def wait(self) -> None:
        """Go on: the next poll waits by itself."""
        self.is_waiting = False

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all records, each at its time, and pause now and then."""
        only = self._operator.only_split() if self._is_bounded and not self.at_end else None
        if only is not None:
            yield from self._emit_elements(clock, *only)
        yield from OrderedArrivals([self]).emit_all(clock)

    def _emit_elements(
        self, clock: JobClock, reader: IteratorSourceReader, conversion: Conversion | None, emit: Emit
    ) -> Iterator[None]:
        while chunk := reader.take(ELEMENTS_AT_ONCE):
            first = self._next_position
            self._position = first + len(chunk) - 1
            self._next_position = first + len(chunk)
            arrivals = map(self._arrival_ms, range(first, first + len(chunk)))
            values = chunk if conversion is None else map(conversion, chunk)
            for value, arrival_ms in zip(values, arrivals, strict=True):
                if clock.next_due_ms < arrival_ms:
                    clock.fire_before(arrival_ms)
                clock.now_ms = arrival_ms
                emit(value, NO_TIMESTAMP)
            yield
        self._schedule_next(self._arrival_ms(self._position), InputStatus.MORE_AVAILABLE)

    def snapshot(self, is_amid: bool) -> SourceSnapshot:
        from flinkcore.checkpoint import OperatorSnapshot  # loads pyarrow
        from flinkcore.elements.tasks.subtask_state import own_state

        (watermark_ms, is_idle), watermarks = self._operator.snapshot_watermarks()
        created_for = self._created_for if is_amid else 0
        place = SourcePlace(self._position, self._last_ms, self._polls, created_for, self._operator.turn)
        snapshot = OperatorSnapshot(
            watermark_ms=watermark_ms,
            operator_state={
                WATERMARKS: own_state(self._index, watermarks or ()),
                PLACE: own_state(self._index, place),
            },
            splits=self._positions() if is_amid and self.next_arrival_ms is not None else (),
        )
        return SourceSnapshot(snapshot, is_idle, self.has_ended)

    def _positions(self) -> list[SplitPosition]:
        """Return where the splits are that have not ended."""
        from flinkcore.checkpoint import SplitPosition  # loads pyarrow

        return [
            SplitPosition(
                split.split_id,
                split.position if self._serializer is None else _serialized(split, self._serializer),
            )
            for split in self._operator.snapshot_state(1)
        ]

    def close(self) -> None:
        """Close the reader."""
        self._operator.close()


def _serialized(split: SourceSplit, serializer: Serializer) -> bytes:
    try:
        data = serializer.serialize(split)
    except Exception as failure:
        raise UserCodeError(
            f"the split_serializer() of the split {split.split_id!r} failed: {in_words(failure)}"
        ) from failure
    if type(data) is not bytes:
        raise UserCodeError(
            f"the split_serializer() of the split {split.split_id!r} gave {data!r:.80}, no bytes"
        )
    return data

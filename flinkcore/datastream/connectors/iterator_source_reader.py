"""The reader of splits that give their elements by themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final

from flinkcore.datastream.connectors.base import InputStatus, ReaderOutput, SourceReader, SourceSplit

_NONE_LEFT: Final = object()

_FETCHED_AHEAD: Final = 1024
"""Number of elements of a split that are fetched ahead."""

_CLOSE_SECONDS: Final = 1.0
"""Time for which a closing reader waits for the threads that read its splits."""


@dataclass(frozen=True)
class ResumedSplit(SourceSplit):
    """A split that was read up to a position.

    Attributes
    ----------
    split : SourceSplit
    position : int
        Number of its elements that were emitted.
    """

    split: SourceSplit
    position: int

    @property
    def split_id(self) -> str:  # type: ignore[override]
        """The id of the split."""
        return self.split.split_id

    def elements(self) -> Iterator[Any]:
        """Yield the elements from the position on."""
        return islice(self.split.elements(), self.position, None)


class _OpenSplit(ABC):
    """A split that is being read.

    Attributes
    ----------
    split : SourceSplit
    position : int
        Number of its elements that were emitted.
    """

    def __init__(self, split: SourceSplit) -> None:
        resumed = split if isinstance(split, ResumedSplit) else ResumedSplit(split, 0)
        self.split, self.position = resumed.split, resumed.position

    @property
    @abstractmethod
    def has_element(self) -> bool:
        """Return whether there is an element to take."""

    def has_left(self, count: int) -> bool:
        """Return whether it is known that there are so many elements left; at least one."""
        return count == 1 and self.has_element

    @property
    @abstractmethod
    def is_at_end(self) -> bool:
        """Return whether there will be no further element; raises what the split raised after its last one."""

    @abstractmethod
    def take(self) -> Any:
        """Return the next element."""

    def stop(self) -> None:  # noqa: B027
        """Let what reads ahead end, without waiting for it."""

    @abstractmethod
    def close(self, until_s: float) -> None:
        """Close what reads the split, if it can be closed; wait for it until a time of the monotonic clock."""


class _ReadSplit(_OpenSplit):
    """A split that is read one element ahead."""

    def __init__(self, split: SourceSplit) -> None:
        super().__init__(split)
        self._elements = split.elements()
        self.source = self._elements
        self.held = next(self.source, _NONE_LEFT)

    @property
    def has_element(self) -> bool:
        return self.held is not _NONE_LEFT

    @property
    def is_at_end(self) -> bool:
        return self.held is _NONE_LEFT

    def has_left(self, count: int) -> bool:
        if self.held is _NONE_LEFT:
            return False
        taken = list(islice(self.source, count - 1))
        self.source = chain(taken, self.source)
        return len(taken) == count - 1

    def take(self) -> Any:
        element, self.held = self.held, next(self.source, _NONE_LEFT)
        self.position += 1
        return element

    def close(self, until_s: float) -> None:
        _close(self._elements)


def _close(elements: Iterator[Any]) -> None:
    """Close what reads a split, if it can be closed."""
    close = getattr(elements, "close", None)
    if close is not None:
        close()


class _FetchedSplit(_OpenSplit):
    """A split whose elements a thread of its own fetches, since they may be long in coming."""

    def __init__(self, split: SourceSplit, wake: Callable[[], None]) -> None:
        super().__init__(split)
        self._elements = split.elements
        self._wake = wake
        self._fetched: deque[Any] = deque()
        self._room = Condition()
        self._ended = False
        self._closed = False
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._fetch, name=f"split {split.split_id}", daemon=True)
        self._thread.start()

    @property
    def has_element(self) -> bool:
        return bool(self._fetched)

    @property
    def is_at_end(self) -> bool:
        if not self._ended or self._fetched:
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def take(self) -> Any:
        element = self._fetched.popleft()
        if len(self._fetched) == _FETCHED_AHEAD - 1:
            with self._room:
                self._room.notify()
        self.position += 1
        return element

    def stop(self) -> None:
        with self._room:
            self._closed = True
            self._room.notify()

    def close(self, until_s: float) -> None:
        self.stop()
        self._thread.join(max(0.0, until_s - monotonic()))

    def _fetch(self) -> None:
        try:
            elements = self._elements()
            try:
                self._fetch_all(elements)
            finally:
                _close(elements)
        except BaseException as failure:  # a thread would swallow even SystemExit
            self._failure = failure
        finally:
            self._ended = True
            self._wake()

    def _fetch_all(self, elements: Iterator[Any]) -> None:
        for element in elements:
            with self._room:
                self._room.wait_for(lambda: self._closed or len(self._fetched) < _FETCHED_AHEAD)
            if self._closed:
                return
            self._fetched.append(element)
            if len(self._fetched) == 1:
                self._wake()


class IteratorSourceReader(SourceReader[Any, SourceSplit]):
    """Emits an element of each of its splits in turn; those that are paused are left out.

    Parameters
    ----------
    wake : callable, optional
        On the system clock: threads fetch the elements of splits, and call this when one is available
        again. By default elements are read as they are emitted, one ahead.
    turn : sequence of str
        Ids of the splits whose turn it is first; then it is that of all, in the order in which they were added.
    holds_end : bool
        Whether there is no end: the splits that come to theirs last may go on in another run.

    Notes
    -----
    Stands where Flink has ``IteratorSourceReaderBase``. Deliberate difference: splits take turns, an element each,
    where Flink reads them one after the other, so that alignment between them has an effect.
    """

    def __init__(
        self, wake: Callable[[], None] | None = None, turn: Sequence[str] = (), holds_end: bool = False
    ) -> None:
        self._wake = wake
        self._holds_end = holds_end
        self._splits: dict[str, _OpenSplit] = {}
        self._paused: set[str] = set()
        self._turn = deque(turn)
        self._no_more_splits = False

    def start(self) -> None:
        """Do nothing: splits are opened when they are added."""

    @property
    def is_at_end(self) -> bool:
        return self._no_more_splits and all(split.is_at_end for split in self._splits.values())

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        """Emit the next element of the split whose turn it is.

        Returns
        -------
        InputStatus
            ``MORE_AVAILABLE`` also where the last splits of a round have ended, with nothing emitted: the next element
            is another round's.
        """
        for _ in range(2):  # what is left of this round, and a new one
            has_released = False
            while self._turn:
                split_id = self._turn.popleft()
                split = self._splits.get(split_id)
                if split is None or split_id in self._paused:
                    continue
                if not split.has_element:
                    if split.is_at_end and not (self._holds_end and self.is_at_end):
                        self._release(split_id, output)
                        has_released = True
                    continue
                output.create_output_for_split(split_id).collect(split.take())
                return InputStatus.MORE_AVAILABLE
            if has_released and any(self._can_emit(split_id) for split_id in self._splits):
                return InputStatus.MORE_AVAILABLE
            self._turn.extend(self._splits)
        ended = self._no_more_splits and not (self._splits or self._holds_end)
        return InputStatus.END_OF_INPUT if ended else InputStatus.NOTHING_AVAILABLE

    def take(self, count: int) -> list[Any]:
        """Return the next elements of the only split, to be emitted to its output; none at its end."""
        (split,) = self._splits.values()
        assert isinstance(split, _ReadSplit)
        if split.is_at_end:
            return []
        taken = [split.held, *islice(split.source, count - 1)]
        split.held = next(split.source, _NONE_LEFT)
        split.position += len(taken)
        return taken

    def snapshot_state(self, checkpoint_id: int) -> list[ResumedSplit]:
        """Return the splits that have not ended, each with the number of its elements that were emitted."""
        return [ResumedSplit(split.split, split.position) for split in self._splits.values()]

    def has_left(self, count: int) -> bool:
        """Return whether it is known that a split has so many elements left; at least one."""
        return any(split.has_left(count) for split in self._splits.values())

    @property
    def turn(self) -> list[str]:
        """The splits that are left of this round."""
        return list(self._turn)

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            wake = self._wake
            self._splits[split.split_id] = _ReadSplit(split) if wake is None else _FetchedSplit(split, wake)

    def notify_no_more_splits(self) -> None:
        self._no_more_splits = True

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)

    def close(self) -> None:
        """Close what reads the splits, if it can be closed."""
        splits, until_s = self._splits.values(), monotonic() + _CLOSE_SECONDS
        for split in splits:
            split.stop()
        for split in splits:
            split.close(until_s)

    def _can_emit(self, split_id: str) -> bool:
        return split_id not in self._paused and self._splits[split_id].has_element

    def _release(self, split_id: str, output: ReaderOutput[Any]) -> None:
        self._splits.pop(split_id).close(monotonic() + _CLOSE_SECONDS)
        output.release_output_for_split(split_id)

"""Readers that are made of a split reader, which fetches records, and a record emitter."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from flinkcore.datastream.connectors.base import (
    InputStatus,
    ReaderOutput,
    SourceOutput,
    SourceReader,
    SplitT,
)
from flinkcore.errors import LifecycleError, UnsupportedOperationError

E = TypeVar("E")
E_in = TypeVar("E_in", contravariant=True)
SplitState_in = TypeVar("SplitState_in", contravariant=True)
SplitStateT = TypeVar("SplitStateT")


@dataclass(frozen=True)
class RecordsBySplits(Generic[E]):
    """The result of a fetch.

    Parameters
    ----------
    records : mapping of str to iterable
        By split id, in the order in which they are emitted.
    finished_splits : collection of str
        Splits that end with this fetch, or have ended before it.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.RecordsBySplits``.
    """

    records: Mapping[str, Iterable[E]] = field(default_factory=dict)
    finished_splits: Collection[str] = ()


class SplitReader(ABC, Generic[E, SplitT]):
    """Fetches records of its splits, those of a split in order.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.splitreader.SplitReader``. Deliberate difference: a fetch
    does not block, so there is no ``wakeUp``.
    """

    @abstractmethod
    def fetch(self) -> RecordsBySplits[E]:
        """Return the next records, which may be none."""

    @abstractmethod
    def handle_splits_additions(self, splits: Sequence[SplitT]) -> None:
        """Add splits to be read."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Pause some splits, and resume others.

        Raises
        ------
        UnsupportedOperationError
            If splits cannot be paused independently; so by default.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} cannot pause and resume single splits")

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""


class RecordEmitter(Protocol, Generic[E_in, SplitState_in]):
    """Emits fetched elements, and updates the state of their split.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.RecordEmitter``.
    """

    def emit_record(self, element: E_in, output: SourceOutput[Any], split_state: SplitState_in) -> None:
        """Emit the record of an element to the output of its split, and advance the position in the state."""


@dataclass
class _SplitContext(Generic[SplitStateT]):
    state: SplitStateT
    output: SourceOutput[Any] | None = None


class SourceReaderBase(SourceReader[Any, SplitT], Generic[E, SplitT, SplitStateT]):
    """Fetches by a split reader, emits one element per poll, and holds a state per split.

    Elements that were fetched before their split was paused are still emitted, as in Flink.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.SourceReaderBase``. Deliberate difference: a poll
    fetches what it needs, where Flink's threads fetch ahead. With threads the order of splits, and the elements fetched
    before a pause, would depend on the speed of the machine.
    """

    def __init__(
        self, split_reader: SplitReader[E, SplitT], record_emitter: RecordEmitter[E, SplitStateT]
    ) -> None:
        self._split_reader = split_reader
        self._record_emitter = record_emitter
        self._splits: dict[str, _SplitContext[SplitStateT]] = {}
        self._no_more_splits = False
        self._fetch: RecordsBySplits[E] | None = None
        self._fetch_was_empty = True
        self._split_ids: Iterator[str] = iter(())
        self._elements: Iterator[E] = iter(())
        self._current: _SplitContext[SplitStateT]
        self._current_output: SourceOutput[Any]

    @abstractmethod
    def initialized_state(self, split: SplitT) -> SplitStateT:
        """Return the initial state of a split that was added."""

    @abstractmethod
    def to_split_type(self, split_id: str, split_state: SplitStateT) -> SplitT:
        """Return the split at the position of its state."""

    @abstractmethod
    def on_split_finished(self, finished_splits: Collection[str]) -> None:
        """Called when splits have ended, and their states are dropped."""

    def start(self) -> None:
        """Do nothing: the first poll fetches."""

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        """Emit the next element, after a fetch if none is left; an unknown split in a fetch is a LifecycleError."""
        while True:
            for element in self._elements:
                self._fetch_was_empty = False
                self._record_emitter.emit_record(element, self._current_output, self._current.state)
                return InputStatus.MORE_AVAILABLE
            if self._move_to_next_split(output):
                continue
            if self._fetch is not None:
                gave_nothing = self._fetch_was_empty and not self._fetch.finished_splits
                self._finish_fetch(self._fetch, output)
                if gave_nothing:
                    ended = self._no_more_splits and not self._splits
                    return InputStatus.END_OF_INPUT if ended else InputStatus.NOTHING_AVAILABLE
            self._fetch = self._split_reader.fetch()
            self._fetch_was_empty = True
            self._split_ids = iter(self._fetch.records)

    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """Return the splits that have not ended, as far as they were emitted."""
        return [self.to_split_type(split_id, context.state) for split_id, context in self._splits.items()]

    def add_splits(self, splits: Sequence[SplitT]) -> None:
        for split in splits:
            self._splits[split.split_id] = _SplitContext(self.initialized_state(split))
        self._split_reader.handle_splits_additions(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more_splits = True

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self._split_reader.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def close(self) -> None:
        self._split_reader.close()

    def _move_to_next_split(self, output: ReaderOutput[Any]) -> bool:
        for split_id in self._split_ids:
            assert self._fetch is not None
            self._current = self._context(split_id)
            if self._current.output is None:
                self._current.output = output.create_output_for_split(split_id)
            self._current_output = self._current.output
            self._elements = iter(self._fetch.records[split_id])
            return True
        return False

    def _finish_fetch(self, fetch: RecordsBySplits[E], output: ReaderOutput[Any]) -> None:
        self._fetch = None
        for split_id in fetch.finished_splits:
            self._context(split_id)
            del self._splits[split_id]
            output.release_output_for_split(split_id)
        if fetch.finished_splits:
            self.on_split_finished(fetch.finished_splits)

    def _context(self, split_id: str) -> _SplitContext[SplitStateT]:
        context = self._splits.get(split_id)
        if context is None:
            raise LifecycleError(
                f"{type(self._split_reader).__name__} gave records or the end of the split {split_id!r}, which was not "
                "added to its reader, or has ended before"
            )
        return context

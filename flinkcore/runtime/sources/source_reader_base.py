"""A reader made of a split reader and a record emitter."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkcore.errors import LifecycleError
from flinkcore.runtime.sources.source import SplitT
from flinkcore.runtime.sources.source_output import ReaderOutput, SourceOutput
from flinkcore.runtime.sources.source_reader import InputStatus, SourceReader
from flinkcore.runtime.sources.split_reader import RecordEmitter, RecordsBySplits, SplitReader

E = TypeVar("E")
SplitStateT = TypeVar("SplitStateT")


@dataclass
class _SplitContext(Generic[SplitStateT]):
    state: SplitStateT
    output: SourceOutput[Any] | None = None


class SourceReaderBase(SourceReader[Any, SplitT], Generic[E, SplitT, SplitStateT]):
    """Fetches by a split reader, emits one element per poll, and keeps a state per split.

    What was fetched of a split before it was paused is still emitted, as in Flink: how exactly a pause holds is up
    to how much the split reader fetches at once.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.SourceReaderBase``. Deliberate difference: fetches are made
    by the poll that needs them, not by threads ahead of it. With threads, which split comes first, and what was
    fetched when a split was paused, would depend on the speed of the machine.
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
        """Return the state of a split that was added."""

    @abstractmethod
    def to_split_type(self, split_id: str, split_state: SplitStateT) -> SplitT:
        """Return a split that begins where the state stands."""

    @abstractmethod
    def on_split_finished(self, finished_splits: Collection[str]) -> None:
        """Hear that splits have ended, and that their state is gone."""

    def start(self) -> None:
        """Do nothing: the first poll fetches."""

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        """Emit the next element, and fetch if there is none.

        Raises
        ------
        LifecycleError
            If the split reader gives elements of a split that it was not given.
        """
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
        """Make a state for each split, and hand them to the split reader."""
        for split in splits:
            self._splits[split.split_id] = _SplitContext(self.initialized_state(split))
        self._split_reader.handle_splits_additions(splits)

    def notify_no_more_splits(self) -> None:
        """Come to the end after the splits that were added."""
        self._no_more_splits = True

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Have the split reader do it."""
        self._split_reader.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def close(self) -> None:
        """Close the split reader."""
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

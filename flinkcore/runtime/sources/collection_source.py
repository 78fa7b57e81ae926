"""A source of elements that are in memory, or come from iterators, in splits and with timestamps."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from flinkcore.errors import ConfigurationError
from flinkcore.runtime.sources.source import Boundedness, Source, SourceReaderContext
from flinkcore.runtime.sources.source_output import SourceOutput
from flinkcore.runtime.sources.source_reader_base import SourceReaderBase
from flinkcore.runtime.sources.split_reader import RecordsBySplits, SplitReader

Element = tuple[Any, int | None]
"""A value and its timestamp in ms since the epoch; None: it has none."""


@dataclass(frozen=True)
class CollectionSplit:
    """Elements that are read in their order.

    Parameters
    ----------
    split_id : str
    elements : iterable of (object, int or None)
        Values with their timestamps in ms since the epoch (None: none). To be read again after a failure, it must
        give the same elements each time it is iterated over; a list does.
    position : int
        How many elements have been read.
    """

    split_id: str
    elements: Iterable[Element]
    position: int = 0


class CollectionSource(Source[Any, CollectionSplit]):
    """A bounded source of one or several collections, each a split.

    Parameters
    ----------
    splits : mapping of str to iterable of (object, int or None)
        By split id, values with their timestamps in ms since the epoch (None: none).

    Raises
    ------
    ConfigurationError
        If there is no split.

    Notes
    -----
    Stands where Flink has ``IteratorSourceReader`` for sequences and collections. Deliberate difference: splits take
    turns, an element each, where Flink reads one after the other, so that what depends on several splits at once,
    such as alignment, can be seen.
    """

    def __init__(self, splits: Mapping[str, Iterable[Element]]) -> None:
        if not splits:
            raise ConfigurationError("a collection source needs at least one split, which may be empty")
        self._splits = splits

    @property
    def boundedness(self) -> Boundedness:
        """Bounded: it ends with its collections."""
        return Boundedness.BOUNDED

    def create_splits(self) -> list[CollectionSplit]:
        """Return the splits, from their beginning."""
        return [CollectionSplit(split_id, elements) for split_id, elements in self._splits.items()]

    def create_reader(self, context: SourceReaderContext) -> "CollectionSourceReader":
        """Return a reader whose splits take turns."""
        return CollectionSourceReader()


@dataclass
class _SplitState:
    split: CollectionSplit
    position: int


class CollectionSourceReader(SourceReaderBase[Element, CollectionSplit, _SplitState]):
    """Emits an element of each split in turn; those that are paused miss their turn."""

    def __init__(self) -> None:
        super().__init__(_CollectionSplitReader(), _ElementEmitter())

    def initialized_state(self, split: CollectionSplit) -> _SplitState:
        """Begin where the split does."""
        return _SplitState(split, split.position)

    def to_split_type(self, split_id: str, split_state: _SplitState) -> CollectionSplit:
        """Return the split from the first element that was not emitted."""
        return CollectionSplit(split_id, split_state.split.elements, split_state.position)

    def on_split_finished(self, finished_splits: Collection[str]) -> None:
        """Nothing is left to drop."""


class _CollectionSplitReader(SplitReader[Element, CollectionSplit]):
    def __init__(self) -> None:
        self._iterators: dict[str, Iterator[Element]] = {}
        self._paused: set[str] = set()

    def fetch(self) -> RecordsBySplits[Element]:
        records: dict[str, list[Element]] = {}
        finished = []
        for split_id, elements in self._iterators.items():
            if split_id in self._paused:
                continue
            fetched = list(islice(elements, 1))
            if fetched:
                records[split_id] = fetched
            else:
                finished.append(split_id)
        for split_id in finished:
            del self._iterators[split_id]
        return RecordsBySplits(records, finished)

    def handle_splits_additions(self, splits: Sequence[CollectionSplit]) -> None:
        for split in splits:
            self._iterators[split.split_id] = islice(iter(split.elements), split.position, None)

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)

    def close(self) -> None:
        self._iterators.clear()


class _ElementEmitter:
    def emit_record(self, element: Element, output: SourceOutput[Any], split_state: _SplitState) -> None:
        value, timestamp_ms = element
        output.collect(value, timestamp_ms)
        split_state.position += 1

"""A source of elements with timestamps, in memory or from iterators, in one or several splits."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from flinkcore.datastream.connectors.base import Source, SourceOutput, SourceReaderContext, SourceSplit
from flinkcore.datastream.connectors.source_reader_base import RecordsBySplits, SourceReaderBase, SplitReader
from flinkcore.errors import ConfigurationError

Element = tuple[Any, int | None]
"""A value and its timestamp in ms since the epoch; None for none."""


@dataclass(frozen=True)
class TimestampedSplit(SourceSplit):
    """Elements with timestamps.

    Parameters
    ----------
    split_id : str
    collection : iterable of (object, int or None)
        Values with their timestamps in ms since the epoch, or None. To be read again after a failure, each iteration
        must give the same elements, as that of a list does.
    position : int
        The number of elements that have been read.
    """

    split_id: str
    collection: Iterable[Element]
    position: int = 0


class TimestampedSource(Source):
    """A bounded source of collections of elements with timestamps, each of them a split.

    Parameters
    ----------
    splits : mapping of str to iterable of (object, int or None)
        By split id, values with their timestamps in ms since the epoch, or None.

    Raises
    ------
    ConfigurationError
        If there is no split.

    Notes
    -----
    Stands where Flink has ``IteratorSourceReader`` for sequences and collections. Deliberate difference: splits take
    turns, an element each, where Flink reads them one after the other, so that alignment between them has an effect.
    """

    def __init__(self, splits: Mapping[str, Iterable[Element]]) -> None:
        if not splits:
            raise ConfigurationError("a collection source needs at least one split, which may be empty")
        self._splits = splits

    def create_splits(self, parallelism: int = 1) -> list[TimestampedSplit]:
        return [TimestampedSplit(split_id, elements) for split_id, elements in self._splits.items()]

    def create_reader(self, context: SourceReaderContext) -> "TimestampedSourceReader":
        return TimestampedSourceReader()


@dataclass
class _SplitState:
    split: TimestampedSplit
    position: int


class TimestampedSourceReader(SourceReaderBase[Element, TimestampedSplit, _SplitState]):
    """Emits an element of each split in turn; paused splits are skipped."""

    def __init__(self) -> None:
        super().__init__(_SplitReader(), _ElementEmitter())

    def initialized_state(self, split: TimestampedSplit) -> _SplitState:
        return _SplitState(split, split.position)

    def to_split_type(self, split_id: str, split_state: _SplitState) -> TimestampedSplit:
        return TimestampedSplit(split_id, split_state.split.collection, split_state.position)

    def on_split_finished(self, finished_splits: Collection[str]) -> None:
        pass


class _SplitReader(SplitReader[Element, TimestampedSplit]):
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

    def handle_splits_additions(self, splits: Sequence[TimestampedSplit]) -> None:
        for split in splits:
            self._iterators[split.split_id] = islice(iter(split.collection), split.position, None)

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

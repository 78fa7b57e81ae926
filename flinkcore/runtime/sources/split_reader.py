"""What is left to write for most sources: to fetch records by split, and to emit one."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from flinkcore.errors import UnsupportedOperationError
from flinkcore.runtime.sources.source import SplitT
from flinkcore.runtime.sources.source_output import SourceOutput

E = TypeVar("E")
E_in = TypeVar("E_in", contravariant=True)
SplitStateT = TypeVar("SplitStateT", contravariant=True)


@dataclass(frozen=True)
class RecordsBySplits(Generic[E]):
    """What one fetch gave.

    Parameters
    ----------
    records : mapping of str to iterable
        By split id, in the order in which they are emitted.
    finished_splits : collection of str
        Splits that have ended; the last records of each are in this fetch, if they were not in one before.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.RecordsBySplits``.
    """

    records: Mapping[str, Iterable[E]] = field(default_factory=dict)
    finished_splits: Collection[str] = ()


class SplitReader(ABC, Generic[E, SplitT]):
    """Fetches records of the splits it was given, in the order of each split.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.splitreader.SplitReader``. Deliberate difference: a fetch
    does not block, so there is no ``wakeUp``.
    """

    @abstractmethod
    def fetch(self) -> RecordsBySplits[E]:
        """Return the next records; none, if there are none now."""

    @abstractmethod
    def handle_splits_additions(self, splits: Sequence[SplitT]) -> None:
        """Take splits to read."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Fetch no more of some splits, and go on with others.

        Raises
        ------
        UnsupportedOperationError
            If splits cannot be read independently, as is assumed where this is not overridden.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} cannot pause and resume single splits")

    @abstractmethod
    def close(self) -> None:
        """Release what is held."""


class RecordEmitter(Protocol, Generic[E_in, SplitStateT]):
    """Emits what was fetched, and keeps account of it in the state of the split.

    Notes
    -----
    Flink's ``org.apache.flink.connector.base.source.reader.RecordEmitter``.
    """

    def emit_record(self, element: E_in, output: SourceOutput[Any], split_state: SplitStateT) -> None:
        """Emit the record of an element to the output of its split, and note how far the split is read."""

"""A source of records: its splits, and what reads them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from flinkcore.runtime.processing_time import ProcessingTimeService

if TYPE_CHECKING:
    from flinkcore.runtime.sources.source_reader import SourceReader


class Boundedness(Enum):
    """Whether a source ends by itself.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.Boundedness``.
    """

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous unbounded"


class SourceSplit(Protocol):
    """A part of a source that is read in order, such as a file or a Kafka partition.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceSplit``.
    """

    @property
    def split_id(self) -> str:
        """Unique within the source; it names the split in reports and messages."""


T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)


@dataclass(frozen=True)
class SourceReaderContext:
    """What a reader may know of where it runs.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
        The clock of the job, which a replay drives.
    subtask_index : int
        Which of the source's parallel readers it is, from 0.
    parallelism : int
        How many there are.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReaderContext``. Deliberate difference: splits are not
    requested one by one; :meth:`Source.create_splits` lists them.
    """

    processing_time_service: ProcessingTimeService
    subtask_index: int = 0
    parallelism: int = 1


class Source(ABC, Generic[T, SplitT]):
    """Where records come from, in splits that are read independently.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.Source``. Deliberate difference: the splits of a log are known
    when the job starts, so :meth:`create_splits` stands for the enumerator that discovers and hands them out.
    """

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""

    @abstractmethod
    def create_splits(self) -> Sequence[SplitT]:
        """Return the splits, in the order in which equal arrivals are read; their ids are unique."""

    @abstractmethod
    def create_reader(self, context: SourceReaderContext) -> "SourceReader[Any, SplitT]":
        """Return a new reader, without splits."""

"""Interfaces of the sources and sinks of elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.errors import UnsupportedOperationError


class SourceSplit:
    """A part of a source whose elements are read in order, such as a file or a Kafka partition.

    Attributes
    ----------
    split_id : str
        Unique within the source; names the split in reports and messages.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceSplit``.
    """

    split_id: str

    def elements(self) -> Iterator[Any]:
        """Yield the elements; the same ones each time.

        Raises
        ------
        UnsupportedOperationError
            If they are read by a reader of the source only.
        """
        raise UnsupportedOperationError(
            f"the split {self.split_id!r} does not give its elements by itself: implement elements() in "
            f"{type(self).__name__}"
        )


class Source(ABC):
    """Where elements come from, in splits that are read independently.

    The elements of a split arrive at a stated rate on the job's clock, the first one an interval after its start.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.Source`` and Flink's ``org.apache.flink.api.connector.source.Source``.
    Deliberate difference: the splits of a log are known when the job starts, so that :meth:`create_splits` stands for
    the enumerator that discovers and assigns them.
    """

    @property
    def boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""
        return Boundedness.BOUNDED

    @abstractmethod
    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Return the splits, in the order in which equal arrivals are read.

        Parameters
        ----------
        parallelism : int
            How many subtasks read the source.
        """

    def produced_type(self) -> TypeInformation:
        """Return the type of the elements; any Python object by default."""
        return Types.PICKLED_BYTE_ARRAY()

    def is_parallel(self) -> bool:
        """Return whether several subtasks can read the source."""
        return True


@dataclass(frozen=True)
class WriterContext:
    """The subtask of a writer.

    Attributes
    ----------
    subtask_index : int
        From 0.
    parallelism : int
    type_info : TypeInformation
        Type of the elements.
    current_processing_time : callable
        Returns the time of the job's clock, in ms since the epoch.
    print_line : callable
        Writes a line to the standard output of the program, in whichever process the writer runs.
    """

    subtask_index: int
    parallelism: int
    type_info: TypeInformation
    current_processing_time: Callable[[], int]
    print_line: Callable[[str], None] = print


class SinkWriter(ABC):
    """Writes the elements of one subtask.

    Notes
    -----
    Follows Flink's ``SinkWriter``.
    """

    @abstractmethod
    def write(self, element: Any) -> None:
        """Write an element."""

    def prepare_commit(self) -> list[Any]:
        """Return the committables, after the last element."""
        return []

    def close(self) -> None:  # noqa: B027
        """Release all resources; what was not prepared for a commit is discarded."""


class Sink(ABC):
    """The end of a stream.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.Sink`` and Flink's ``Sink`` with ``SupportsCommitter``.
    """

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Return the writer of a subtask; called when the job is opened."""

    def commit(self, committables: Sequence[Any]) -> None:  # noqa: B027
        """Make the committables of all writers visible; called once, at the end of the job."""

    def discard(self, committables: Sequence[Any]) -> None:  # noqa: B027
        """Remove the committables of a job that was cancelled after its writers had prepared them."""

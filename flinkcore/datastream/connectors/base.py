"""What sources and sinks of elements are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flinkcore.common.typeinfo import TypeInformation, Types


class SourceSplit(ABC):
    """Elements that are read in their order.

    Attributes
    ----------
    split_id : str
    """

    split_id: str

    @abstractmethod
    def elements(self) -> Iterator[Any]:
        """Yield the elements; the same ones each time."""


class Source(ABC):
    """A bounded set of elements in splits.

    The elements of a split arrive at a stated rate on the job's clock, the first one an interval after its start.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.Source``.
    """

    @abstractmethod
    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Return the splits; `parallelism` tells how many are read at once."""

    def produced_type(self) -> TypeInformation:
        """Return the type of the elements; any Python object unless the source knows better."""
        return Types.PICKLED_BYTE_ARRAY()

    def is_parallel(self) -> bool:
        """Return whether several subtasks can read the source."""
        return True


@dataclass(frozen=True)
class WriterContext:
    """Where a writer works.

    Attributes
    ----------
    subtask_index : int
        From 0 on.
    parallelism : int
    type_info : TypeInformation
        Of the elements.
    current_processing_time : callable
        Returns what the job's clock shows, in ms since the epoch.
    print_line : callable
        Writes a line to the standard output of the program, wherever the writer works.
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
        """Return what is to be committed, after the last element."""
        return []

    def close(self) -> None:  # noqa: B027
        """Let go of everything; what was not prepared for a commit is lost."""


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
        """Make visible what all writers have prepared; called once, when the whole job has come to its end."""

    def discard(self, committables: Sequence[Any]) -> None:  # noqa: B027
        """Remove what writers have prepared in a job that was cancelled when their work was done."""

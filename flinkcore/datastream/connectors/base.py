"""Interfaces of the sources and sinks of elements."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.serializer import Serializer
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.common.watermark_generators import WatermarkOutput
from flinkcore.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from flinkcore._internal.io.stores import Stores

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)


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


SplitT = TypeVar("SplitT", bound=SourceSplit)


@dataclass(frozen=True)
class SourceReaderContext:
    """Context of a reader.

    Parameters
    ----------
    current_processing_time : callable
        Returns the time of the job's clock, in ms since the epoch.
    subtask_index : int
        Index of the reader among the source's parallel readers.
    parallelism : int
        The number of readers.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReaderContext``. Deliberate difference: splits are not
    requested one by one; ``Source.create_splits`` lists them.
    """

    current_processing_time: Callable[[], int]
    subtask_index: int = 0
    parallelism: int = 1


class SourceOutput(WatermarkOutput, Protocol, Generic[T_in]):
    """Takes records, and watermarks and idleness if the source knows more than generators.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceOutput``.
    """

    def collect(self, record: T_in, timestamp_ms: int | None = None) -> None:
        """Emit a record.

        Parameters
        ----------
        record : object
        timestamp_ms : int or None
            The source's timestamp of the record, such as Kafka's, in ms since the epoch; None if it has none, for which
            the timestamp assigner is passed -2**63.
        """


class ReaderOutput(SourceOutput[T_in], Protocol, Generic[T_in]):
    """The main output of a reader, which creates an output for each split.

    Records of a split go to the output of that split, which has its own watermark generator and idleness; records of no
    split go to the main output.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.ReaderOutput``.
    """

    def create_output_for_split(self, split_id: str) -> SourceOutput[T_in]:
        """Return the output of a split, which the first call creates."""

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split that has ended; its watermark no longer counts."""


class DeliveryGuarantee(Enum):
    """Guarantee of a sink for the elements of a repeated job: here exactly once, since they are committed once.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.DeliveryGuarantee``.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class InputStatus(Enum):
    """Expectation of the next poll of a reader.

    Notes
    -----
    Flink's ``org.apache.flink.core.io.InputStatus``.
    """

    MORE_AVAILABLE = "more available"
    NOTHING_AVAILABLE = "nothing available"
    END_OF_INPUT = "end of input"


class SourceReader(ABC, Generic[T, SplitT]):
    """Reads splits and emits some of their records at each poll.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReader``. Deliberate difference: there is no
    ``isAvailable``, whose future wakes a waiting task; the reader is polled again when the clock has moved, on the
    system clock after 5 ms.
    """

    @property
    def is_at_end(self) -> bool:
        """Return whether the next poll is known to be the end, which then comes 1 ms after the last record."""
        return False

    @abstractmethod
    def start(self) -> None:
        """Start; restored splits have been added before."""

    @abstractmethod
    def poll_next(self, output: ReaderOutput[T]) -> InputStatus:
        """Emit the next records, preferably one.

        Parameters
        ----------
        output : ReaderOutput
            The same at each call.

        Returns
        -------
        InputStatus
            ``MORE_AVAILABLE``: poll again at once. ``NOTHING_AVAILABLE``: there is no record now. ``END_OF_INPUT``:
            the reader has ended, is not polled again, and must not emit.
        """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Sequence[SplitT]:
        """Return the splits at their current positions, from which reading can be resumed."""

    @abstractmethod
    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Add splits to be read."""

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """Note that no further split will be added: the reader ends with the splits that it has."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Pause some splits, and resume others; may be called while the reader emits.

        Parameters
        ----------
        splits_to_pause, splits_to_resume : collection of str
            Ids of splits; no id is in both.

        Raises
        ------
        UnsupportedOperationError
            If the reader cannot pause splits independently; so by default.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} cannot pause and resume single splits")

    @abstractmethod
    def close(self) -> None:
        """Release all resources; the reader may not have reached its end."""


class Source(ABC):
    """Source of elements, in splits that are read independently.

    The elements of a split arrive at a stated rate on the job's clock, the first one an interval after its start: so
    often is a reader polled, once for each split that it reads. A reader that has nothing is polled again 1 ms later.

    Attributes
    ----------
    is_of_cluster : bool
        Whether it reads a cluster, which files replace.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.Source`` and Flink's ``org.apache.flink.api.connector.source.Source`` with
    its ``SourceReaderFactory``. Deliberate difference: the splits of a log are known when the job starts, so that
    :meth:`create_splits` stands for the enumerator that discovers and assigns them.
    """

    is_of_cluster: ClassVar[bool] = False

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself; an unbounded one cannot run in batch mode."""
        return Boundedness.BOUNDED

    @abstractmethod
    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Return the splits, in the order in which equal arrivals are read.

        Parameters
        ----------
        parallelism : int
            Number of subtasks that read the source.
        """

    def in_stores(self, stores: Stores) -> Source:
        """Return the source that finds its locations in the stores of an executor; by default it has no locations."""
        return self

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, Any]:
        """Return a new reader, without splits; by default it emits the `elements` of its splits, which take turns."""
        from flinkcore.datastream.connectors.iterator_source_reader import IteratorSourceReader

        return IteratorSourceReader()

    def split_serializer(self) -> Serializer | None:
        """Return the serializer of the splits that the source's own reader saves in checkpoints, or None.

        Splits that give their elements by themselves need none: they are created again, and read on.

        Notes
        -----
        Flink's ``Source.getSplitSerializer``.
        """
        return None

    def produced_type(self) -> TypeInformation:
        """Return the type of the elements; any Python object by default."""
        return Types.PICKLED_BYTE_ARRAY()

    def is_parallel(self) -> bool:
        """Return whether several subtasks can read the source."""
        return True


def new_run_id() -> str:
    """Return a `run_id`."""
    return os.urandom(8).hex()


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
    run_id : str
        16 hexadecimal digits that all writers of a run of the job have, and those of no other run.
    """

    subtask_index: int
    parallelism: int
    type_info: TypeInformation
    current_processing_time: Callable[[], int]
    print_line: Callable[[str], None] = print
    run_id: str = field(default_factory=new_run_id)


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
        """Return the committables since the last call: after the last element, and at each savepoint before."""
        return []

    def close(self) -> None:  # noqa: B027
        """Release all resources; what was not prepared for a commit is discarded."""


class Sink(ABC):
    """The end of a stream.

    Attributes
    ----------
    is_of_cluster : bool
        Whether it writes to a cluster, which files replace.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.Sink`` and Flink's ``Sink`` with ``SupportsCommitter``.
    """

    is_of_cluster: ClassVar[bool] = False

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Return the writer of a subtask; called when the job is opened."""

    def commit(self, committables: Sequence[Any]) -> None:  # noqa: B027
        """Make the committables of all writers visible; called once, at the end of the job.

        A job that is restored from a checkpoint first commits what the job that wrote it had prepared, which that has
        mostly done already: what is visible stays as it is.
        """

    def committable_serializer(self) -> Serializer | None:
        """Return the serializer of committables in checkpoints, or None if checkpoints hold their types.

        Notes
        -----
        Flink's ``SupportsCommitter.getCommittableSerializer``.
        """
        return None

    def discard(self, committables: Sequence[Any]) -> None:  # noqa: B027
        """Remove the committables of a job that was cancelled after its writers had prepared them."""

    def clean_up(self, run_id: str) -> None:  # noqa: B027
        """Remove leftovers that will not be committed, of writers whose tasks were killed or repeated.

        Called after a run on Spark, when all is committed, or when it has failed.

        Parameters
        ----------
        run_id : str
            Identifier of the run, as in the writers' contexts.
        """


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)

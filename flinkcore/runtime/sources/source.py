"""Sources with readers of their own: the interfaces of the source, of its readers, and of their outputs."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from flinkcore.common.watermark_generators import WatermarkOutput
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.errors import UnsupportedOperationError
from flinkcore.runtime.processing_time import ProcessingTimeService

T = TypeVar("T")
SplitT = TypeVar("SplitT", bound=SourceSplit)
T_in = TypeVar("T_in", contravariant=True)


@dataclass(frozen=True)
class SourceReaderContext:
    """The surroundings of a reader.

    Parameters
    ----------
    processing_time_service : ProcessingTimeService
        The clock of the job.
    subtask_index : int
        Index of the reader among the source's parallel readers.
    parallelism : int
        The number of readers.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReaderContext``. Deliberate difference: splits are not
    requested one by one; ``Source.create_splits`` lists them.
    """

    processing_time_service: ProcessingTimeService
    subtask_index: int = 0
    parallelism: int = 1


class ReaderSource(Source, Generic[T, SplitT]):
    """A source whose splits are read by readers of its own.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.Source`` with its ``SourceReaderFactory``.
    """

    @abstractmethod
    def create_splits(self, parallelism: int = 1) -> Sequence[SplitT]: ...

    @abstractmethod
    def create_reader(self, context: SourceReaderContext) -> "SourceReader[T, SplitT]":
        """Return a new reader, without splits."""


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


class InputStatus(Enum):
    """What to expect of the next poll.

    Notes
    -----
    Flink's ``org.apache.flink.core.io.InputStatus``.
    """

    MORE_AVAILABLE = "more available"
    NOTHING_AVAILABLE = "nothing available"
    END_OF_INPUT = "end of input"


class SourceReader(ABC, Generic[T, SplitT]):
    """Reads splits and emits their records, at each poll some.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReader``. Deliberate difference: there is no
    ``isAvailable``, whose future wakes a waiting task; the reader is polled again when the clock has moved.
    """

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

"""What reads the splits that a task is given."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Generic, TypeVar

from flinkcore.errors import UnsupportedOperationError
from flinkcore.runtime.sources.source import SplitT
from flinkcore.runtime.sources.source_output import ReaderOutput

T = TypeVar("T")


class InputStatus(Enum):
    """What may be expected of the next poll.

    Notes
    -----
    Flink's ``org.apache.flink.core.io.InputStatus``.
    """

    MORE_AVAILABLE = "more available"
    NOTHING_AVAILABLE = "nothing available"
    END_OF_INPUT = "end of input"


class SourceReader(ABC, Generic[T, SplitT]):
    """Reads splits and emits their records, some at each poll.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceReader``. Deliberate difference: there is no
    ``isAvailable``, whose future wakes a waiting task; who drives a replay's clock polls again when it has moved.
    """

    @abstractmethod
    def start(self) -> None:
        """Begin; splits that were restored have been added before."""

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
            ``MORE_AVAILABLE``: poll again at once. ``NOTHING_AVAILABLE``: there is nothing now. ``END_OF_INPUT``:
            there will never be anything again; the reader is not polled any more, and must not emit.
        """

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> Sequence[SplitT]:
        """Return the splits as they are now, such that reading could go on from them."""

    @abstractmethod
    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Take splits to read."""

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """State that no further split will be added, so that the reader ends after those it has."""

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Read no more of some splits, and go on with others; may be called while the reader emits.

        Parameters
        ----------
        splits_to_pause, splits_to_resume : collection of str
            Ids of splits; no split is in both.

        Raises
        ------
        UnsupportedOperationError
            If the reader cannot read splits independently, as is assumed of one that does not override this.
        """
        raise UnsupportedOperationError(f"{type(self).__name__} cannot pause and resume single splits")

    @abstractmethod
    def close(self) -> None:
        """Release what is held; the reader may not have come to its end."""

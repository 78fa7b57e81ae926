"""The reader of splits that give their elements by themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from flinkcore.datastream.connectors.base import InputStatus, ReaderOutput, SourceReader, SourceSplit

_NONE_LEFT: Final = object()


@dataclass(frozen=True)
class ResumedSplit(SourceSplit):
    """A split that was read up to a position.

    Attributes
    ----------
    split : SourceSplit
    position : int
        How many of its elements were emitted.
    """

    split: SourceSplit
    position: int

    @property
    def split_id(self) -> str:  # type: ignore[override]
        """The id of the split."""
        return self.split.split_id

    def elements(self) -> Iterator[Any]:
        """Yield the elements from the position on."""
        return islice(self.split.elements(), self.position, None)


class _ReadSplit:
    """A split that is being read, one element ahead."""

    def __init__(self, split: SourceSplit) -> None:
        self.split, self.position = (
            (split.split, split.position) if isinstance(split, ResumedSplit) else (split, 0)
        )
        self.source = split.elements()
        self.held = next(self.source, _NONE_LEFT)

    @property
    def is_at_end(self) -> bool:
        return self.held is _NONE_LEFT

    def take(self) -> Any:
        element, self.held = self.held, next(self.source, _NONE_LEFT)
        self.position += 1
        return element

    def close(self) -> None:
        close = getattr(self.source, "close", None)
        if close is not None:
            close()


class IteratorSourceReader(SourceReader[Any, SourceSplit]):
    """Emits an element of each of its splits in turn; those that are paused are left out.

    Notes
    -----
    Stands where Flink has ``IteratorSourceReaderBase``. Deliberate difference: splits take turns, an element each,
    where Flink reads them one after the other, so that alignment between them has an effect.
    """

    def __init__(self) -> None:
        self._splits: dict[str, _ReadSplit] = {}
        self._paused: set[str] = set()
        self._turn: Iterator[str] = iter(())
        self._no_more_splits = False

    def start(self) -> None:
        """Do nothing: splits are opened when they are added."""

    @property
    def is_at_end(self) -> bool:
        return self._no_more_splits and all(split.is_at_end for split in self._splits.values())

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        """Emit the next element of the split whose turn it is."""
        for _ in range(2):  # what is left of this round, and a new one
            for split_id in self._turn:
                split = self._splits.get(split_id)
                if split is None or split_id in self._paused:
                    continue
                if split.is_at_end:
                    self._release(split_id, output)
                    continue
                output.create_output_for_split(split_id).collect(split.take())
                return InputStatus.MORE_AVAILABLE
            self._turn = iter(list(self._splits))
        ended = self._no_more_splits and not self._splits
        return InputStatus.END_OF_INPUT if ended else InputStatus.NOTHING_AVAILABLE

    def take(self, count: int) -> list[Any]:
        """Return the next elements of the only split, to be emitted to its output; none at its end."""
        (split,) = self._splits.values()
        if split.is_at_end:
            return []
        taken = [split.held, *islice(split.source, count - 1)]
        split.held = next(split.source, _NONE_LEFT)
        split.position += len(taken)
        return taken

    def snapshot_state(self, checkpoint_id: int) -> list[ResumedSplit]:
        """Return the splits that have not ended, each with the number of its elements that were emitted."""
        return [ResumedSplit(split.split, split.position) for split in self._splits.values()]

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            self._splits[split.split_id] = _ReadSplit(split)

    def notify_no_more_splits(self) -> None:
        self._no_more_splits = True

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)

    def close(self) -> None:
        """Close what reads the splits, if it can be closed."""
        for split in self._splits.values():
            split.close()

    def _release(self, split_id: str, output: ReaderOutput[Any]) -> None:
        del self._splits[split_id]
        output.release_output_for_split(split_id)

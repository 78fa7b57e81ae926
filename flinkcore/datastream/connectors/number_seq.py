"""The source of a sequence of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class NumberSequenceSplit(SourceSplit):
    """A part of the sequence, both bounds inclusive."""

    split_id: str
    start: int
    end: int

    def elements(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))


class NumberSequenceSource(Source):
    """The whole numbers from `start` to `end`, in as many splits of about equal length as there are subtasks.

    Parameters
    ----------
    start, end : int
        Both inclusive.

    Raises
    ------
    ConfigurationError
        If they are not whole numbers, or the end is below the start.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.number_seq.NumberSequenceSource``.
    """

    def __init__(self, start: int, end: int) -> None:
        if not isinstance(start, int) or not isinstance(end, int) or start > end:
            raise ConfigurationError(
                f"a sequence goes from a whole number to a larger one, not {start!r} to {end!r}"
            )
        self._start = start
        self._end = end

    def create_splits(self, parallelism: int) -> Sequence[NumberSequenceSplit]:
        count = self._end - self._start + 1
        n_splits = min(parallelism, count)
        bounds = [self._start + count * index // n_splits for index in range(n_splits + 1)]
        return [
            NumberSequenceSplit(str(index), bounds[index], bounds[index + 1] - 1) for index in range(n_splits)
        ]

    def produced_type(self) -> TypeInformation:
        return Types.LONG()

    def __str__(self) -> str:
        return f"of the numbers {self._start} to {self._end}"

"""Rows brought into order that need not fit into memory.

Rows in memory are sorted when they exceed a limit, and go to a temporary file as a run of pieces. The runs are
merged a piece of each at a time::

    run 1   1 4 6 │ 7 8 9        the first pieces have all rows up to 5, the least of their last rows:
    run 2   2 3 5 │ 5 6 9        1 2 3 4 5 are given, and the next piece of run 2 is read
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.io.spilled_batches import BatchPlace, SpilledBatches

RowsT = TypeVar("RowsT")

HELD_BYTES: Final = 32 << 20
"""Rows that take more memory go to a file."""

PIECE_BYTES: Final = 1 << 20
"""About so many bytes of each run are in memory while the runs are merged."""


@dataclass
class _Run(Generic[RowsT]):
    """Sorted rows: the first of them that are still to come, and the pieces after them."""

    head: RowsT
    pieces: int
    rest: Iterator[RowsT]


class ExternalSort(ABC, Generic[RowsT]):
    """Sorts rows, by a stable order, as they are added and taken by turns.

    Parameters
    ----------
    what : str
        Name of the rows in errors.
    held_bytes : int
        Most bytes of rows in memory before they are merged.
    piece_bytes : int
        About the size of a piece of a run.
    """

    def __init__(self, what: str, held_bytes: int = HELD_BYTES, piece_bytes: int = PIECE_BYTES) -> None:
        self._what = what
        self._held_bytes = held_bytes
        self._piece_bytes = piece_bytes
        self._held: list[RowsT] = []
        self._bytes = 0
        self._runs: list[_Run[RowsT]] = []
        self._file: SpilledBatches | None = None

    @abstractmethod
    def n_rows(self, rows: RowsT) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def nbytes(self, rows: RowsT) -> int:
        """Return about how many bytes of memory they take."""

    @abstractmethod
    def concatenated(self, parts: Sequence[RowsT]) -> RowsT:
        """Return the rows of at least one part, one part after the other."""

    @abstractmethod
    def order(self, rows: RowsT) -> npt.NDArray[np.intp]:
        """Return the numbers of the rows in their order."""

    @abstractmethod
    def taken(self, rows: RowsT, numbers: RowNumbers) -> RowsT:
        """Return the rows of these numbers."""

    @abstractmethod
    def sliced(self, rows: RowsT, start: int, stop: int) -> RowsT:
        """Return a range of rows."""

    @abstractmethod
    def packed(self, rows: RowsT) -> pa.RecordBatch:
        """Return the rows as a batch."""

    @abstractmethod
    def unpacked(self, batch: pa.RecordBatch) -> RowsT:
        """Return the rows that were packed."""

    def add(self, rows: RowsT) -> None:
        """Add rows.

        Raises
        ------
        SourceError
            If the temporary file cannot be written.
        """
        if not self.n_rows(rows):
            return
        self._held.append(rows)
        self._bytes += self.nbytes(rows)
        if self._bytes > self._held_bytes:
            self._spill()

    def take(self) -> RowsT | None:
        """Return the first rows of all present ones, as many as suit, or None.

        Raises
        ------
        SourceError
            If the temporary file cannot be read.
        """
        if self._held and not self._runs:
            return self._take_held()
        if self._held:
            pieces = list(self._pieces(self._take_held()))
            self._add_run(len(pieces), iter(pieces))
        if not self._runs:
            self.close()
            return None
        return self._merged()

    def put_back(self, rows: RowsT) -> None:
        """Return the last of the rows that `take` has given, which are taken again before their equals."""
        if self._runs:
            self._runs.insert(0, _Run(rows, 0, iter(())))
        else:
            self._held.insert(0, rows)
            self._bytes += self.nbytes(rows)

    def close(self) -> None:
        """Release memory and file; rows may be added again."""
        self._held, self._bytes, self._runs = [], 0, []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take_held(self) -> RowsT:
        rows = self.concatenated(self._held)
        self._held, self._bytes = [], 0  # before the rows are copied again
        order = self.order(rows)
        if (order == np.arange(len(order))).all():
            return rows
        return self.taken(rows, order.astype(np.uint32))

    def _spill(self) -> None:
        rows = self._take_held()
        file = self._file = SpilledBatches(self._what) if self._file is None else self._file
        places = [file.append(self.packed(piece)) for piece in self._pieces(rows)]
        self._add_run(len(places), self._read(file, places))

    def _pieces(self, rows: RowsT) -> Iterator[RowsT]:
        n_rows = self.n_rows(rows)
        step = max(1, n_rows * self._piece_bytes // max(1, self.nbytes(rows)))
        for start in range(0, n_rows, step):
            yield self.sliced(rows, start, min(start + step, n_rows))

    def _read(self, file: SpilledBatches, places: list[BatchPlace]) -> Iterator[RowsT]:
        return (self.unpacked(file.read(place)) for place in places)

    def _add_run(self, pieces: int, rest: Iterator[RowsT]) -> None:
        self._runs.append(_Run(next(rest), pieces - 1, rest))

    def _merged(self) -> RowsT:
        """Take all rows that no row after the heads can precede."""
        heads = self.concatenated([run.head for run in self._runs])
        ends = np.cumsum([self.n_rows(run.head) for run in self._runs])
        order = self.order(heads)
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order))
        lasts = [int(places[end - 1]) for end, run in zip(ends, self._runs, strict=True) if run.pieces]
        order = order[: min(lasts, default=len(order) - 1) + 1]
        counts = np.bincount(np.searchsorted(ends, order, side="right"), minlength=len(ends))
        self._advance(counts.tolist())
        return self.taken(heads, order.astype(np.uint32))

    def _advance(self, counts: list[int]) -> None:
        left = []
        for run, count in zip(self._runs, counts, strict=True):
            n_rows = self.n_rows(run.head)
            if count < n_rows:
                run.head = self.sliced(run.head, count, n_rows)
            elif run.pieces:
                run.head, run.pieces = next(run.rest), run.pieces - 1
            else:
                continue
            left.append(run)
        self._runs = left

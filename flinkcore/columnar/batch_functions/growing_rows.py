"""Rows that grow by batches, and are taken by their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.joined_batches import copied, joined, taken
from flinkcore.errors import DataError

PIECE_BYTES = 1 << 28
"""Joined pieces have no more: offsets of text end at 2 GiB."""


class GrowingRows:
    """Rows of one schema in pieces, of which small ones are joined as more come: O(log n) copies of a row.

    Parameters
    ----------
    rows : pyarrow.RecordBatch
        The first rows, 0 or more.
    """

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._pieces = [rows]
        self._begins = [0]
        self._n_rows: int = rows.num_rows

    def __len__(self) -> int:
        return self._n_rows

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take."""
        return sum(piece.nbytes for piece in self._pieces)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add a copy of rows after the others."""
        if not rows.num_rows:
            return
        kept, n_rows, n_bytes = len(self._pieces), rows.num_rows, rows.nbytes
        while kept:
            piece = self._pieces[kept - 1]
            n_bytes += piece.nbytes
            if piece.num_rows >= 2 * n_rows or n_bytes > PIECE_BYTES:
                break
            n_rows += piece.num_rows
            kept -= 1
        small = self._pieces[kept:]
        self._pieces[kept:] = [joined([*small, rows]) if small else copied(rows)]
        self._n_rows += rows.num_rows
        self._begins[kept:] = [self._n_rows - n_rows]

    def take(self, rows: Int64s) -> pa.RecordBatch:
        """Return rows by their numbers, in the given order.

        Parameters
        ----------
        rows : int64 array (n,)
            Each below the number of rows.

        Raises
        ------
        DataError
            If they have more text, or elements of lists, than a column of one batch can count.
        """
        if len(self._pieces) == 1:
            return taken(self._pieces[0], rows)
        begins = np.array(self._begins)
        pieces = np.searchsorted(begins, rows, side="right") - 1
        order = np.argsort(pieces, kind="stable")
        bounds = np.searchsorted(pieces[order], np.arange(len(begins) + 1))
        parts = [
            taken(piece, rows[order[first:last]] - begin)
            for piece, begin, first, last in zip(
                self._pieces, self._begins, bounds[:-1], bounds[1:], strict=True
            )
            if first < last
        ]
        if len(parts) <= 1:
            return parts[0] if parts else self._pieces[0].slice(0, 0)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return taken(joined(parts), places)

    def parts(self, rows: Int64s, most: int) -> Iterator[pa.RecordBatch]:
        """Yield rows by their numbers, in the given order, in batches of at most so many, or of what one can hold."""
        for begin in range(0, len(rows), most):
            part = rows[begin : begin + most]
            try:
                yield self.take(part)
            except DataError:
                if len(part) == 1:
                    raise
                yield from self.parts(part, len(part) // 2)

"""Rows that operators keep by number, without a copy until a result leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.joined_batches import copied, empty_batch, joined, taken, too_long
from flinkcore._native.arrow import ColumnArray
from flinkcore._native.row_places import RowPlaces
from flinkcore.errors import DataError

SMALL_ROWS: Final = 1 << 12
"""Batches with fewer rows are copied into larger ones: else a gather would have to look at too many."""

JOINED_ROWS: Final = 1 << 14
"""Pieces with so many rows are not joined any more: that would cost copies, and save little in a gather."""

JOINED_BYTES: Final = 1 << 22
"""Nor are those with so many bytes: pieces of wide rows would be in memory twice while they are joined."""

ALL_COPIED: Final = 1 << 62
"""As the rows of a small batch: whoever adds rows may change them, or they are part of many more."""

PIECE_BYTES: Final = 1 << 28
"""Joined pieces have no more: offsets of text end at 2 GiB."""


class NumberedRows:
    """Rows of one schema, which are numbered from 0 on as they are added.

    Batches stay as they are, and their memory must not change: a gather of results is the first copy of a row, but for
    small batches, which are joined in O(log n) copies, and for what `keep` moves together.

    Parameters
    ----------
    schema : pyarrow.Schema
    small_rows, piece_bytes : int
        Batches with fewer rows are copied, and joined to pieces of at most so many bytes. With `ALL_COPIED` all are.
    """

    def __init__(
        self, schema: pa.Schema, small_rows: int = SMALL_ROWS, piece_bytes: int = PIECE_BYTES
    ) -> None:
        self.schema = schema
        self._small_rows = small_rows
        self._piece_bytes = piece_bytes
        self._pieces: list[pa.RecordBatch] = []
        self._bytes: list[int] = []
        self._begins: list[int] = []
        # By name of the column: those of the first pieces, as they are asked for.
        self._columns: dict[str, list[ColumnArray]] = {}
        self._is_plain = {field.name: _is_plain(field.type) for field in schema}
        self._n_rows = 0
        self.nbytes = 0

    def __len__(self) -> int:
        """Return the number of rows that were added, including those that nobody asks for any more."""
        return self._n_rows

    def add(self, rows: pa.RecordBatch) -> int:
        """Keep rows, and return the number of the first one."""
        first = self._n_rows
        if rows.num_rows:
            self._append(rows)
            if rows.num_rows < self._small_rows:
                self._join_last()
        return first

    def _append(self, rows: pa.RecordBatch) -> None:
        n_bytes = int(rows.nbytes)
        self._pieces.append(rows)
        self._bytes.append(n_bytes)
        self._begins.append(self._n_rows)
        self._n_rows += rows.num_rows
        self.nbytes += n_bytes

    def _join_last(self) -> None:
        """Join the last pieces as long as the one before is small, and not twice as large as all after it."""
        kept = len(self._pieces) - 1
        n_rows, n_bytes = self._pieces[kept].num_rows, self._bytes[kept]
        while kept:
            before, bytes_before = self._pieces[kept - 1].num_rows, self._bytes[kept - 1]
            joins_on = before < max(JOINED_ROWS, self._small_rows) and bytes_before < JOINED_BYTES
            if not joins_on or before >= 2 * n_rows or n_bytes + bytes_before > self._piece_bytes:
                break
            n_rows, n_bytes, kept = n_rows + before, n_bytes + bytes_before, kept - 1
        last = self._pieces[kept:]
        self._drop_from(kept)
        self._append(joined(last) if len(last) > 1 else copied(last[0]))

    def _drop_from(self, piece: int) -> None:
        self._n_rows = self._begins[piece]
        self.nbytes -= sum(self._bytes[piece:])
        del self._pieces[piece:], self._bytes[piece:], self._begins[piece:]
        for columns in self._columns.values():
            del columns[piece:]

    def take(self, numbers: Int64s, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return rows in the given order, as a copy.

        Parameters
        ----------
        numbers : int64 array (n,)
            A negative one gives a row of nulls.
        names : sequence of str, optional
            Columns; all by default.

        Raises
        ------
        DataError
            If they have more text, or elements of lists, than a column of one batch can count.
        """
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        if not len(numbers):
            return empty_batch(schema)
        if not self._pieces:
            return self._of_piece(0, numbers, schema)
        others = [field for field in schema if not self._is_plain[field.name]]
        by_arrow = self._taken_by_arrow(numbers, pa.schema(others)) if others else None
        if by_arrow is not None and len(others) == len(schema):
            return by_arrow
        places = RowPlaces(np.array([*self._begins, self._n_rows]), np.ascontiguousarray(numbers))
        columns = [
            self._gathered(places, field)
            if self._is_plain[field.name] or by_arrow is None
            else by_arrow.column(field.name)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _gathered(self, places: RowPlaces, field: pa.Field) -> pa.Array:
        """Gather a column of rows, each value of which is copied once."""
        pieces = self._columns.setdefault(field.name, [])
        pieces += [ColumnArray(piece.column(field.name)) for piece in self._pieces[len(pieces) :]]
        try:
            return pa.array(places.gathered(pieces))
        except OverflowError as failure:
            raise too_long(field.name, field.type) from failure

    def _taken_by_arrow(self, numbers: Int64s, schema: pa.Schema) -> pa.RecordBatch:
        if len(self._pieces) == 1:
            return self._of_piece(0, numbers, schema)
        begins = np.array(self._begins)
        pieces = np.searchsorted(begins, numbers, side="right") - 1
        if (pieces[1:] >= pieces[:-1]).all():
            return joined(self._parts(numbers, pieces, begins, schema))
        order = np.argsort(pieces, kind="stable")
        parts = self._parts(numbers[order], pieces[order], begins, schema)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return taken(joined(parts), places)

    def _parts(
        self, numbers: Int64s, pieces: Int64s, begins: Int64s, schema: pa.Schema
    ) -> list[pa.RecordBatch]:
        """Gather rows from each piece; the pieces ascend, -1 for rows of nulls."""
        bounds = np.append(np.flatnonzero(np.diff(pieces, prepend=-2)), len(pieces))
        return [
            self._of_piece(
                max(int(pieces[first]), 0), numbers[first:last] - begins[max(int(pieces[first]), 0)], schema
            )
            for first, last in pairwise(bounds.tolist())
        ]

    def _of_piece(self, piece: int, rows: Int64s, schema: pa.Schema) -> pa.RecordBatch:
        is_null = rows < 0
        if is_null.all():
            return pa.RecordBatch.from_arrays(
                [pa.nulls(len(rows), field.type) for field in schema], schema=schema
            )
        kept = self._pieces[piece]
        if schema is not self.schema:
            kept = kept.select(schema.names)
        if not is_null.any():
            return taken(kept, rows)
        some = taken(kept, rows[~is_null])
        padded = joined([some, self._of_piece(piece, rows[is_null], schema)])
        places = np.empty(len(rows), np.int64)
        places[~is_null] = np.arange(some.num_rows)
        places[is_null] = np.arange(some.num_rows, len(rows))
        return taken(padded, places)

    def parts(self, numbers: Int64s, most: int) -> Iterator[pa.RecordBatch]:
        """Yield rows in the given order, in batches of at most so many, or of what one can hold."""
        for begin in range(0, len(numbers), most):
            part = numbers[begin : begin + most]
            try:
                yield self.take(part)
            except DataError:
                if len(part) == 1:
                    raise
                yield from self.parts(part, len(part) // 2)

    def keep(self, live: Int64s) -> Int64s:
        """Free all rows but some, and return the new numbers of those, in the same order.

        Pieces with few live rows are copied; others stay as they are, with the rows in them that are free.

        Parameters
        ----------
        live : int64 array (n,)
            Numbers of rows, some maybe more than once.
        """
        is_live = np.zeros(self._n_rows, np.bool_)
        is_live[live] = True
        kept = NumberedRows(self.schema, self._small_rows, self._piece_bytes)
        renumbered = np.empty(len(is_live), np.int64)
        few: list[Int64s] = []
        n_few = few_bytes = 0
        for piece, begin, n_bytes in zip(self._pieces, self._begins, self._bytes, strict=True):
            own = np.flatnonzero(is_live[begin : begin + piece.num_rows])
            if not len(own):
                continue
            is_thin = 2 * len(own) < piece.num_rows
            if few and (not is_thin or n_few >= JOINED_ROWS or few_bytes > self._piece_bytes):
                kept._append(self.take(np.concatenate(few)))
                few, n_few, few_bytes = [], 0, 0
            if is_thin:
                renumbered[begin + own] = kept._n_rows + n_few + np.arange(len(own))
                few.append(begin + own)
                n_few += len(own)
                few_bytes += n_bytes * len(own) // piece.num_rows
            else:
                renumbered[begin + own] = kept._n_rows + own
                kept._append(piece)
        if few:
            kept._append(self.take(np.concatenate(few)))
        self._pieces, self._bytes, self._begins, self._columns = kept._pieces, kept._bytes, kept._begins, {}
        self._n_rows, self.nbytes = kept._n_rows, kept.nbytes
        return renumbered[live]


def _is_plain(kind: pa.DataType) -> bool:
    """Return true if values of a type are of one size, or strings of bytes."""
    of_one_size = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    return of_one_size or kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())

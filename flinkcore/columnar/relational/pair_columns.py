"""Columns of pairs of rows that are kept by number."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ops import Columns
from flinkcore.columnar.relational.numbered_rows import NumberedRows


class PairColumns:
    """Gathers some columns of pairs: of the left row by its names, then of the right row under the names of the pair.

    Parameters
    ----------
    left, right : pyarrow.Schema
        Columns of the rows of each input.
    pairs : pyarrow.Schema
        Columns of the pairs: those of the left row, then those of the right one, one for each.
    wanted : frozenset of str or None
        Columns of the pairs to gather; None for all. If it names none, the first column is gathered: a batch without
        columns has no rows.
    """

    def __init__(self, left: pa.Schema, right: pa.Schema, pairs: pa.Schema, wanted: Columns) -> None:
        names = pairs.names if wanted is None else [name for name in pairs.names if name in wanted]
        places = [pairs.get_field_index(name) for name in names or pairs.names[:1]]
        self.left = [left.names[place] for place in places if place < len(left)]
        self.right = [right.names[place - len(left)] for place in places if place >= len(left)]
        self._schema = pa.schema([pairs.field(place) for place in places])

    def take(self, kept: Sequence[NumberedRows], left: Int64s, right: Int64s) -> pa.RecordBatch:
        """Return the columns of pairs of rows, as a copy; a negative number gives nulls."""
        columns: list[pa.Array] = []
        for rows, numbers, names in zip(kept, (left, right), (self.left, self.right), strict=True):
            if names:
                columns += rows.take(numbers, names).columns
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

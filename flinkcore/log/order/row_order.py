"""The order of rows that lie in none: each gets its position in its split by columns that `position=` names.

Rows stay where they are. Only what orders them is read and sorted, each row by::

    split, position= column, further ones, content of the row (only if some rows are the same up to here)

and its rank in its split goes with it as a hidden column, wherever the row is read. What is compared are integers of 64
bits and binaries without nulls, ascending, so that whoever sorts them finds the same order: NumPy here, or Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_ops import COMPUTED_PREFIX
from flinkcore._internal.arrow.nested_fields import named_field
from flinkcore._internal.arrow.ordered_values import (
    has_order,
    inverted_binaries,
    is_integral,
    ordered_binaries,
    ordered_integers,
)
from flinkcore._internal.arrow.sort_keys import SortKey
from flinkcore.common.split_origin import SplitOrigin
from flinkcore.errors import SchemaError, SourceError
from flinkcore.log.formats.bad_records import BAD_RECORD
from flinkcore.log.order.content_order import content_numbers
from flinkcore.log.sources.chunks import Chunk

POSITION: Final = f"{COMPUTED_PREFIX}position"
"""Hidden column with the positions of rows in the order of `position=`."""

Ranks: TypeAlias = npt.NDArray[np.integer[Any]]

_BATCH_ROWS: Final = 1 << 17


def check_position_type(kind: pa.DataType, column: str) -> None:
    """Check that a column can order rows.

    Raises
    ------
    SchemaError
        If its values have no order: only numbers, text, binaries, booleans and times do.
    """
    if not has_order(kind):
        raise SchemaError(
            f"position= names column {column!r}, which is {kind}: numbers, text, binaries, booleans and "
            "times order rows. Convert the column first"
        )


@dataclass(frozen=True)
class RowOrder:
    """Order of the rows of each split; picklable.

    Attributes
    ----------
    keys : tuple of SortKey
        The first one counts most.
    split : str, SplitOrigin or None
        As of `EventLog`.
    source : pyarrow.Schema
        Columns of the rows, with plain types.
    by_content : bool
        Whether rows that are the same in all keys are ordered by the content of all of their columns.
    is_lenient : bool
        Whether records that cannot be read are rejected later, and not an error.
    """

    keys: tuple[SortKey, ...]
    split: str | SplitOrigin | None
    source: pa.Schema
    by_content: bool = False
    is_lenient: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The schema of compared columns, in the order in which they count: first the two columns of the split."""
        kinds = {"split": pa.int64() if self.split is None else pa.binary()}
        if isinstance(self.split, str):
            kinds["split"] = _compared_type(named_field(self.source, self.split).type)
        for number, key in enumerate(self.keys):
            kinds[f"key_{number}"] = _compared_type(named_field(self.source, key.column).type)
        fields = [[(f"{name}_is_set", pa.bool_()), (name, kind)] for name, kind in kinds.items()]
        content = [("content", pa.int64())] if self.by_content else []
        return pa.schema([*(each for pair in fields for each in pair), *content])

    def read(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Yield what is compared of the rows of a chunk, in their order there."""
        names = sorted(self.source.names) if self.by_content else []
        names += [key.column for key in self.keys]
        if isinstance(self.split, str):
            names.append(self.split)
        names = list(dict.fromkeys(names))
        asked = [*names, BAD_RECORD] if self.is_lenient else names
        for batch in chunk.read(asked, _BATCH_ROWS):
            columns = self._split_columns(chunk, batch)
            for key in self.keys:
                columns += _compared(batch.column(key.column), key.is_descending)
            if self.by_content:
                columns.append(pa.array(content_numbers(batch.select(sorted(self.source.names)))))
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _split_columns(self, chunk: Chunk, batch: pa.RecordBatch) -> list[pa.Array]:
        if isinstance(self.split, str):
            return _compared(batch.column(self.split), is_descending=False)
        _, split = chunk.only_split(self.split)
        value = 0 if split is None else str(split).encode()
        return [pa.repeat(True, batch.num_rows), pa.repeat(pa.scalar(value), batch.num_rows)]


def ranks_of_sorted(columns: Sequence[npt.NDArray[Any]], first_rank: int = 0) -> tuple[Int64s, bool]:
    """Return the rank of each row in its split, and whether some rows of a split compare equal.

    Parameters
    ----------
    columns : sequence of numpy.ndarray, each of shape (n,)
        As of `codes_of`, of rows that are in order.
    first_rank : int
        Rank of the first row, if other rows of its split came before.
    """
    rows = len(columns[0])
    starts_split = np.append(True, _changes(columns[:2]))[:rows]
    has_ties = not (starts_split[1:] | _changes(columns[2:])).all()
    firsts = np.flatnonzero(starts_split)
    ranks = np.arange(rows) - np.repeat(firsts, np.diff(firsts, append=rows))
    ranks[: firsts[1] if len(firsts) > 1 else rows] += first_rank
    return ranks, has_ties


def _changes(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Return whether each row but the first one differs from that before it."""
    changes = np.zeros(max(0, len(columns[0]) - 1), np.bool_)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return changes


def codes_of(compared: pa.Table) -> list[npt.NDArray[Any]]:
    """Return numbers in the order of the values of each column of what is compared, as of `RowOrder.read`."""
    return [_codes(column) for column in compared.columns]


def _codes(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Numbers in the order of the values."""
    if pa.types.is_binary(column.type):
        ranks: npt.NDArray[Any] = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
        return ranks
    values: npt.NDArray[Any] = column.to_numpy()
    return values


class LogRanks:
    """The ranks of all rows of a log in their splits, found out in this process when they are first asked for.

    Takes some 60 bytes for each row of the log while they are ordered, and 4 (8 beyond 2**32 rows) from then on.

    Parameters
    ----------
    order : RowOrder
    chunks : sequence of Chunk
        All of the log.
    """

    def __init__(self, order: RowOrder, chunks: Sequence[Chunk]) -> None:
        self._order = order
        self._chunks = chunks
        self._ranks: list[Ranks] | None = None
        self._lock = Lock()

    def of(self, number: int) -> Ranks:
        """Return the ranks of the rows of chunk `number`."""
        with self._lock:
            if self._ranks is None:
                self._ranks = self._found()
            return self._ranks[number]

    def _found(self) -> list[Ranks]:
        ranks, ends, has_ties = self._ranked(self._order)
        if has_ties:
            ranks, ends, _ = self._ranked(replace(self._order, by_content=True))
        return np.split(ranks, ends[:-1])

    def _ranked(self, order: RowOrder) -> tuple[Ranks, list[int], bool]:
        """Return the ranks of all rows, where those of each chunk end, and whether rows compare equal."""
        batches: list[pa.RecordBatch] = []
        ends, rows = [], 0
        for chunk in self._chunks:
            for batch in order.read(chunk):
                batches.append(batch)
                rows += batch.num_rows
            ends.append(rows)
        columns = codes_of(pa.Table.from_batches(batches, order.schema))
        batches.clear()
        in_order = np.lexsort(columns[::-1])
        of_sorted, has_ties = ranks_of_sorted([column[in_order] for column in columns])
        ranks: Ranks = np.empty(rows, np.uint32 if rows <= 1 << 32 else np.int64)
        ranks[in_order] = of_sorted
        return ranks, ends, has_ties


@dataclass(frozen=True)
class RankedChunk(Chunk):
    """A chunk whose rows know their ranks, which are its column `POSITION`.

    Attributes
    ----------
    chunk : Chunk
        The rows.
    order : RowOrder
        Order of the log.
    ranks : callable
        Gives the rank of each row of the chunk.
    """

    chunk: Chunk
    order: RowOrder
    ranks: Callable[[], Ranks]

    @classmethod
    def of(cls, chunk: Chunk, order: RowOrder, ranks: Callable[[], Ranks]) -> RankedChunk:
        """Return a chunk with ranks; parameters as the attributes."""
        return cls(
            chunk.index, chunk.label, chunk.rows, chunk.size_bytes, chunk.first_row, chunk, order, ranks
        )

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        if columns is None or POSITION not in columns:
            yield from self.chunk.read(columns, batch_rows, encoded, warnings, batch_bytes)
            return
        ranks, first_row = self.ranks(), 0
        # Without a column, a batch would not have as many rows.
        names = [name for name in columns if name != POSITION] or [self.order.keys[0].column]
        for batch in self.chunk.read(names, batch_rows, encoded, warnings, batch_bytes):
            of_batch = ranks[first_row : first_row + batch.num_rows].astype(np.int64)
            if len(of_batch) < batch.num_rows:
                raise self._changed()
            first_row += batch.num_rows
            yield batch.append_column(POSITION, pa.array(of_batch)).select(list(columns))
        if first_row < len(ranks):
            raise self._changed()

    def _changed(self) -> SourceError:
        return SourceError(
            f"{self.label} has other rows than when they were put in order by position=; the log has changed during "
            "the replay"
        )

    @property
    def finds_bad_records(self) -> bool:
        return self.chunk.finds_bad_records

    @property
    def is_checked(self) -> bool:
        return self.chunk.is_checked

    def looked_up_rows(self) -> int | None:
        return self.chunk.looked_up_rows()

    @property
    def growth(self) -> int:
        return self.chunk.growth

    def constant(self, column: str) -> tuple[bool, Any]:
        return self.chunk.constant(column)

    def row_name(self, row: int) -> str:
        return self.chunk.row_name(row)

    def place(self, row: int) -> dict[str, Any]:
        return self.chunk.place(row)

    def part_of(self, row: int) -> tuple[Chunk, int]:
        return self.chunk.part_of(row)

    @property
    def parts(self) -> Sequence[Chunk]:
        return self.chunk.parts

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        return self.chunk.files_of(rows)

    @property
    def path(self) -> str | None:
        return self.chunk.path

    @property
    def file_name(self) -> str:
        return self.chunk.file_name

    @property
    def path_partition(self) -> int | str | None:
        return self.chunk.path_partition


def ranked_chunks(order: RowOrder, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks of a log with the ranks of their rows, which are found out in this process."""
    ranks = LogRanks(order, chunks)
    return [RankedChunk.of(chunk, order, partial(ranks.of, number)) for number, chunk in enumerate(chunks)]


def _compared_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if is_integral(kind) else pa.binary()


def _compared(column: pa.Array, is_descending: bool) -> list[pa.Array]:
    """Return whether there is a value, and values that sort as those of a column do; nulls sort first."""
    is_set = column.is_valid()
    if is_integral(column.type):
        integers = ordered_integers(column)
        values = pa.array(~integers if is_descending else integers)
    else:
        values = ordered_binaries(column)
        values = inverted_binaries(values) if is_descending else values
    return [pc.invert(is_set) if is_descending else is_set, values]

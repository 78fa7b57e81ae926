"""Pieces of an event log that any worker can read alone: a file or a part of it, a slice of a table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import bytes_of, cut
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.nested_fields import column_of
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.locations import naming_file
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.common.split_origin import FILE, PARTITION, SplitOrigin
from flinkcore.log.formats.bad_records import BAD_RECORD, BAD_RECORD_TYPE
from flinkcore.log.schemas.given_schema import GivenSchema
from flinkcore.log.sources.read_plan import ReadPlan


@dataclass(frozen=True)
class LogSchema:
    """The columns of a log. A file may lack some, which are null there, and have others of narrower types.

    Parameters
    ----------
    schema : pyarrow.Schema
        Plain types; partition columns come last.
    origins : mapping of str to str
        Column name to the file that gave its type.
    given : GivenSchema
        The columns and fields whose types the user has given.
    changes : tuple of str
        Differences between the files that have been looked at, a sentence each.
    converted : frozenset of str
        Columns that have another type in some of these files.
    stored : StoredColumns or None
        Names and types of a table's columns in its files; None if these are the log's.
    of_conditions : pyarrow.Schema
        Columns of the table that only conditions read: the log does not have them.
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    given: GivenSchema = field(default_factory=GivenSchema)
    changes: tuple[str, ...] = ()
    converted: frozenset[str] = frozenset()
    stored: StoredColumns | None = None
    of_conditions: pa.Schema = field(default_factory=lambda: pa.schema([]))
    plans: dict[Any, ReadPlan] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Plans by which chunks of the log read columns; each process makes its own."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "plans": {}}

    @property
    def given_columns(self) -> frozenset[str]:
        """The columns of which the user has given the type, or that of a field."""
        return frozenset(column_of(self.schema, name) for name in self.given.types)

    @property
    def read(self) -> pa.Schema:
        """The columns that reading may take: those of the log, and of conditions."""
        return pa.schema([*self.schema, *self.of_conditions])


@dataclass(frozen=True)
class Chunk(ABC):
    """A self-contained, picklable piece of an event log.

    Parameters
    ----------
    index : int
        Place in the log's order.
    label : str
        Names the file and the part of it in messages.
    rows : int or None
        If known without reading.
    size_bytes : int or None
        About how much is read, if known; a share of the file for a part of it.
    first_row : int or None
        Row number in the file (from 0) of the chunk's first row; None if not known without reading.
    """

    index: int
    label: str
    rows: int | None
    size_bytes: int | None
    first_row: int | None

    @property
    def is_columnar(self) -> bool:
        """Return whether some columns are read without decoding the others."""
        return True

    @property
    def is_checked(self) -> bool:
        """Return whether reading it again may give other rows unnoticed by `read`, so that a replay compares them."""
        return False

    def read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        dictionary_columns: Sequence[str] = (),
        warnings: list[str] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the chunk's rows in order.

        Parameters
        ----------
        columns : sequence of str or None
            Which columns, in which order; None for all. `BAD_RECORD` as the last one says which rows are not events.
        batch_rows : int
            Rows of a batch at most.
        dictionary_columns : sequence of str
            Columns that may stay dictionary-encoded.
        warnings : list of str, optional
            Takes what is suspicious of the file and yet no error, by the end of the reading.
        batch_bytes : int
            Bytes of a batch at most, unless it has only one row.

        Yields
        ------
        pyarrow.RecordBatch
            With plain types, except that a dictionary column may be a dictionary of a plain type.

        Raises
        ------
        SourceError
            If the file cannot be read to its end, or, after the last row, if a chunk that compares its rows itself has
            others than in the first pass.
        SchemaError
            If a column has values in the file that its type in the log does not hold.
        """
        is_asked = columns is not None and BAD_RECORD in columns
        knows = not is_asked or self.finds_bad_records
        names = columns if columns is None or knows else list(columns)[:-1]
        with naming_file(self.path):
            for batch in self._read(names, batch_rows, dictionary_columns, warnings, batch_bytes):
                if not knows:
                    batch = batch.append_column(BAD_RECORD, pa.nulls(batch.num_rows, BAD_RECORD_TYPE))
                yield from cut(batch, batch_bytes)
                if batch.num_rows < batch_rows and bytes_of(batch) > batch_bytes // 2:
                    # Arrow's allocator would keep as much of large buffers that come and go as is in use.
                    del batch
                    pa.default_memory_pool().release_unused()

    @property
    def finds_bad_records(self) -> bool:
        """Return whether `_read` knows the column `BAD_RECORD`."""
        return False

    @abstractmethod
    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        """As `read`, which has the defaults."""

    def constant(self, column: str) -> tuple[bool, Any]:
        """Return (True, value) if the column has one value in all rows, known without reading, else (False, None)."""
        return False, None

    def only_split(self, split: str | SplitOrigin | None) -> tuple[bool, Any]:
        """Return (True, value) if all rows are of one split, known without reading, else (False, None).

        Parameters
        ----------
        split : str, SplitOrigin or None
            As of `EventLog`.
        """
        if split is None:
            return True, None
        if split is FILE:
            return True, self.file_name
        if split is PARTITION:
            return True, self.path_partition
        known, value = self.constant(str(split))
        return known and value is not None, value

    @property
    def path_partition(self) -> int | str | None:
        """The partition that the file's path names, where the log is split so."""
        return None

    def looked_up_rows(self) -> int | None:
        """Return how many rows there are, as its file says if it does, or None."""
        return self.rows

    @property
    def growth(self) -> int:
        """Factor by which rows may be larger in memory than `size_bytes`."""
        return 8

    def why_null(self, column: str) -> str | None:
        """Return why a column is null in all rows of the file, which is looked up in it; None if that is not known."""
        return None

    def extremes(self, column: str) -> pa.Array | None:
        """Return the least and the greatest value of a column, as reading gives them, or None if that is not known."""
        return None

    def before(self) -> Iterator["Chunk"]:
        """Yield chunks of the rows that lie before it in its file, the nearest ones first."""
        return iter(())

    def after(self) -> Iterator["Chunk"]:
        """Yield chunks of the rows that lie after it in its file, the nearest ones first."""
        return iter(())

    def rows_where(self, conditions: Sequence[Expression]) -> "Chunk":
        """Return a chunk of those rows for which all conditions are true, read as far as statistics do not decide."""
        return self

    def held(self, columns: Sequence[str]) -> "Chunk":
        """Return a chunk of the same rows, with these columns at least, that can be read more than once."""
        return self

    def row_name(self, row: int) -> str:
        """Name a row, given by its number in the chunk, as a user would look for it."""
        if self.first_row is None:
            return f"row {row} (from 0) of {self.label}"
        return f"row {self.first_row + row} (from 0) of {self.file_name}"

    def part_of(self, row: int) -> tuple["Chunk", int]:
        """Return a chunk of the file of a row, given by its number in the chunk, and the row's number there."""
        return self, row

    @property
    def parts(self) -> "Sequence[Chunk]":
        """Chunks of its files, one after the other."""
        return (self,)

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        """Return the path of the file of each row, given by its number in the chunk, and the row's number there.

        Both are null where they are not known, or where cutting the file otherwise would make them unknown.
        """
        files = pa.repeat(pa.scalar(self.path, pa.string()), len(rows))
        return files, pa.nulls(len(rows), pa.int64())

    def place(self, row: int) -> dict[str, Any]:
        """Return the attributes of an error about a row, given by its number in the chunk."""
        return {"file": self.path, "row": None if self.first_row is None else self.first_row + row}

    @property
    def path(self) -> str | None:
        """Path or URI of the file, or None if the rows are not of a file."""
        return None

    @property
    def file_name(self) -> str:
        """Name of the file or of what else has the rows, for messages."""
        return self.path or self.label


ChunkTask: TypeAlias = Callable[[Chunk], Iterable[bytes]]
"""Work on one chunk of a log; picklable, so that it runs anywhere."""

"""Chunks whose rows are decoded as they are read, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore.errors import DataError
from flinkcore.log.formats.bad_records import BAD_RECORD, BAD_RECORD_TYPE
from flinkcore.log.sources.chunks import Chunk

_SHOWN_BYTES = 80


BadRows: TypeAlias = npt.NDArray[np.bool_] | None
"""Rows of a batch that are not events; None if all are."""


class BadMessage(NamedTuple):
    """A message that cannot be decoded.

    Attributes
    ----------
    column : str
    reason : str
    text : str
        The message as text, with escapes for bytes that are not.
    """

    column: str
    reason: str
    text: str


@dataclass
class DecodedRows:
    """Rows that a step of decoding has made of a batch.

    Attributes
    ----------
    columns : list of pyarrow.Array
        As they were asked for.
    faults : dict of int to BadMessage
        Rows of the batch that cannot be decoded.
    rows : numpy.ndarray of int64, shape (n_decoded,), or None
        For each decoded row, the row of the batch that it is made of; None if they are the same.
    """

    columns: list[pa.Array]
    faults: dict[int, BadMessage] = field(default_factory=dict)
    rows: Int64s | None = None


class DecodingStep(Protocol):
    """A step of decoding; picklable."""

    @property
    def keeps_rows(self) -> bool:
        """Return whether each row of a batch becomes one row."""

    @property
    def is_columnar(self) -> bool:
        """Return whether columns are made without much more work than reading them."""

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns that the step makes of some, of which it may lack those that it decodes."""

    def inputs(self, names: Sequence[str]) -> list[str]:
        """Return the columns that the step reads for some of those that it makes."""

    def makes(self, name: str) -> bool:
        """Return whether the step makes a column, and does not only pass it on."""

    def why_null(self, name: str, chunk: Chunk) -> str | None:
        """Return why a column is null in all rows that the step makes of a chunk; None if that is not known."""

    def decode(self, batch: pa.RecordBatch, names: Sequence[str], bad: BadRows) -> DecodedRows:
        """Return the rows of a batch with these columns; rows that are bad already stay, and have no fault."""


Decoding: TypeAlias = tuple[DecodingStep, ...]
"""Steps from the columns of a log's source to those of the log."""


def decoded_schema(decoding: Decoding, source: pa.Schema) -> pa.Schema:
    """Return the columns of a log whose source has some."""
    return reduce(lambda schema, step: step.schema(schema), decoding, source)


def source_columns(decoding: Decoding, names: Sequence[str]) -> list[str]:
    """Return the columns of the source that are read for columns of a log."""
    return reduce(lambda wanted, step: step.inputs(wanted), reversed(decoding), list(names))


def decoded_chunk(decoding: Decoding, chunk: Chunk, is_lenient: bool) -> Chunk:
    """Return a chunk with decoded rows.

    Parameters
    ----------
    decoding : Decoding
    chunk : Chunk
        Rows of the source.
    is_lenient : bool
        Whether messages that cannot be decoded are rows with `BAD_RECORD`, and not an error.
    """
    for step in decoding:
        chunk = DecodedChunk.of(chunk, step, is_lenient)
    return chunk


@dataclass(frozen=True)
class DecodedChunk(Chunk):
    """A chunk whose rows a step decodes.

    Attributes
    ----------
    chunk : Chunk
        The rows before.
    step : DecodingStep
    is_lenient : bool
        As of `decoded_chunk`.
    """

    chunk: Chunk
    step: DecodingStep
    is_lenient: bool

    @classmethod
    def of(cls, chunk: Chunk, step: DecodingStep, is_lenient: bool) -> DecodedChunk:
        """Return a chunk with decoded rows; parameters as the attributes."""
        rows, first_row = (chunk.rows, chunk.first_row) if step.keeps_rows else (None, None)
        return cls(chunk.index, chunk.label, rows, chunk.size_bytes, first_row, chunk, step, is_lenient)

    def _read(
        self,
        columns: Sequence[str] | None,
        batch_rows: int,
        encoded: Sequence[str],
        warnings: list[str] | None,
        batch_bytes: int,
    ) -> Iterator[pa.RecordBatch]:
        assert columns is not None, "what reads a log names the columns"
        is_asked = BAD_RECORD in columns
        names = [name for name in columns if name != BAD_RECORD]
        read = self.step.inputs(names)
        encoded = [name for name in encoded if name in read and not self.step.makes(name)]
        asked = [*read, BAD_RECORD] if self.is_lenient else read
        first_row = 0
        for batch in self.chunk.read(asked, batch_rows, encoded, warnings, batch_bytes):
            bad = None
            if self.is_lenient and batch.column(BAD_RECORD).null_count < batch.num_rows:
                bad = batch.column(BAD_RECORD).is_valid().to_numpy(zero_copy_only=False)
            decoded = self.step.decode(batch.select(read), names, bad)
            arrays = dict(zip(names, decoded.columns, strict=True))
            if self.is_lenient and is_asked:
                arrays[BAD_RECORD] = _bad_records(batch.column(BAD_RECORD), decoded)
            if decoded.faults and not self.is_lenient:
                row = min(decoded.faults)
                raise self._fault(first_row + row, decoded.faults[row])
            first_row += batch.num_rows
            made = pa.RecordBatch.from_arrays([arrays[name] for name in columns], list(columns))
            for start in range(0, made.num_rows, batch_rows):
                yield made.slice(start, batch_rows)

    def _fault(self, row: int, fault: BadMessage) -> DataError:
        text = fault.text if len(fault.text) <= _SHOWN_BYTES else f"{fault.text[:_SHOWN_BYTES]}..."
        return DataError(
            f"{self.chunk.row_name(row)}: column {fault.column!r} cannot be decoded: {fault.reason}. It has {text!r}. "
            'Repair the log, or let on_bad_row="drop" count such rows, or an OutputTag collect them',
            column=fault.column,
            **self.chunk.place(row),
        )

    @property
    def finds_bad_records(self) -> bool:
        return self.is_lenient

    @property
    def is_columnar(self) -> bool:
        return self.chunk.is_columnar and self.step.is_columnar

    @property
    def is_checked(self) -> bool:
        return self.chunk.is_checked

    def constant(self, column: str) -> tuple[bool, Any]:
        return (False, None) if self.step.makes(column) else self.chunk.constant(column)

    def why_null(self, column: str) -> str | None:
        return self.step.why_null(column, self.chunk)

    def looked_up_rows(self) -> int | None:
        return self.chunk.looked_up_rows() if self.step.keeps_rows else None

    def before(self) -> Iterator[Chunk]:
        return (replace(self, chunk=chunk) for chunk in self.chunk.before())

    def after(self) -> Iterator[Chunk]:
        return (replace(self, chunk=chunk) for chunk in self.chunk.after())

    def held(self, columns: Sequence[str]) -> Chunk:
        return replace(self, chunk=self.chunk.held(self.step.inputs(columns)))

    def row_name(self, row: int) -> str:
        if self.step.keeps_rows:
            return self.chunk.row_name(row)
        return f"row {row} (from 0) of the rows decoded from {self.label}"

    def part_of(self, row: int) -> tuple[Chunk, int]:
        if not self.step.keeps_rows:
            return self, row
        part, row_of_part = self.chunk.part_of(row)
        return DecodedChunk.of(part, self.step, self.is_lenient), row_of_part

    @property
    def parts(self) -> Sequence[Chunk]:
        return [DecodedChunk.of(part, self.step, self.is_lenient) for part in self.chunk.parts]

    def files_of(self, rows: Int64s) -> tuple[pa.Array, pa.Array]:
        return self.chunk.files_of(rows) if self.step.keeps_rows else super().files_of(rows)

    @property
    def path_partition(self) -> int | str | None:
        return self.chunk.path_partition

    @property
    def path(self) -> str | None:
        return self.chunk.path

    @property
    def file_name(self) -> str:
        return self.chunk.file_name


def _bad_records(found: pa.StructArray, decoded: DecodedRows) -> pa.Array:
    """Return `BAD_RECORD` of decoded rows: those that were bad before, and those that cannot be decoded."""
    if decoded.faults:
        records = found.to_pylist()
        for row, fault in decoded.faults.items():
            reason = f"column {fault.column!r} cannot be decoded: {fault.reason}"
            records[row] = records[row] or {"line": None, "text": fault.text, "reason": reason}
        found = pa.array(records, BAD_RECORD_TYPE)
    return found if decoded.rows is None else found.take(pa.array(decoded.rows))


def passed_on(batch: pa.RecordBatch, name: str, rows: Int64s | None) -> pa.Array:
    """Return a column that a step only passes on, with a value for each decoded row."""
    column = batch.column(name)
    return column if rows is None else column.take(pa.array(rows, pa.int64()))

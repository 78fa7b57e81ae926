"""Integers in as few bytes as their range needs.

Every byte that Spark shuffles or keeps is copied several times from Python through the JVM and back. Times and
positions of one block are close together, so that a base and one, two or four bytes per row are enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.exchange import narrow_integers, widen_integers

_NARROWED: Final = b"narrowed"
"""Metadata of a batch: for each column how its integers are stored, and nothing for one that is as it was."""

_SCHEMA: Final = b"schema"
"""Metadata of a batch: the schema that it had before it was narrowed."""


@dataclass(frozen=True)
class NarrowIntegers:
    """int64 values as a base and small unsigned steps from it.

    Attributes
    ----------
    base : int
    running : bool
        Whether each step is added to the value before it, and not to the base.
    steps : numpy.ndarray or None
        Shape (n_rows,), unsigned integers of 1, 2, 4 or 8 bytes. None if all values equal the base.
    """

    base: int
    running: bool
    steps: npt.NDArray[Any] | None

    @classmethod
    def of(
        cls, values: npt.NDArray[np.int64] | npt.NDArray[np.int32], rows: npt.NDArray[np.uint32] | None = None
    ) -> NarrowIntegers:
        """Narrow integers, with running steps or without, whichever takes fewer bytes.

        Parameters
        ----------
        values : numpy.ndarray
            Shape (n,), int32 or int64, n > 0.
        rows : numpy.ndarray of uint32, optional
            Shape (n_rows,), the values to take, in this order. By default all.

        Examples
        --------
        >>> NarrowIntegers.of(np.array([1_000_000, 1_000_300, 1_000_301])).steps
        array([  0, 300,   1], dtype=uint16)
        """
        return cls(*narrow_integers(values, rows))

    def values(self, n_rows: int) -> npt.NDArray[np.int64]:
        """Return the values again, as a new array of shape (n_rows,)."""
        if self.steps is None:
            return np.full(n_rows, self.base, np.int64)
        return widen_integers(self.steps, self.base, self.running)


NarrowColumn: TypeAlias = "pa.Array | NarrowIntegers"


def can_be_narrowed(column: pa.Array) -> bool:
    """Return whether the values of a column are integers of 64 bits, none of them null."""
    types = pa.types
    wide = (
        types.is_int64(column.type)
        or types.is_timestamp(column.type)
        or types.is_duration(column.type)
        or types.is_time64(column.type)
        or types.is_date64(column.type)
    )
    return bool(wide) and column.null_count == 0


def narrow_columns(
    names: Sequence[str],
    columns: Iterable[NarrowColumn],
    n_rows: int,
    metadata: dict[bytes, bytes] | None = None,
) -> pa.RecordBatch:
    """Return a batch of columns, some of them narrowed, as `wide_columns` reads it.

    Parameters
    ----------
    names : sequence of str
    columns : iterable of pyarrow.Array or NarrowIntegers
        One for each name, of `n_rows` values.
    n_rows : int
    metadata : dict, optional
        Further metadata of the batch.
    """
    arrays: list[pa.Array] = []
    how: list[tuple[int, bool] | tuple[()]] = []
    for column in columns:
        if isinstance(column, NarrowIntegers):
            arrays.append(pa.nulls(n_rows) if column.steps is None else pa.array(column.steps))
            how.append((column.base, column.running))
        else:
            arrays.append(column)
            how.append(())
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    schema = pa.schema(fields, {_NARROWED: json.dumps(how).encode(), **(metadata or {})})
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def wide_columns(batch: pa.RecordBatch) -> list[pa.Array | Int64s]:
    """Return the columns of a batch of `narrow_columns`: narrowed ones as integers of 64 bits."""
    how = json.loads(batch.schema.metadata[_NARROWED])
    return [_wide_column(column, *each) for column, each in zip(batch.columns, how, strict=True)]


def _wide_column(column: pa.Array, base: int | None = None, running: bool = False) -> pa.Array | Int64s:
    if base is None:
        return column
    steps = None if pa.types.is_null(column.type) else column.to_numpy()
    return NarrowIntegers(base, running, steps).values(len(column))


def narrow_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of at least one row with its integers narrowed, as `wide_batch` reads it."""
    columns = (
        NarrowIntegers.of(column.view(pa.int64()).to_numpy()) if can_be_narrowed(column) else column
        for column in batch.columns
    )
    schema = batch.schema.serialize().to_pybytes()
    return narrow_columns(batch.schema.names, columns, batch.num_rows, {_SCHEMA: schema})


def wide_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch that `narrow_batch` was given."""
    schema = ipc.read_schema(pa.py_buffer(batch.schema.metadata[_SCHEMA]))
    return pa.RecordBatch.from_arrays(as_columns(wide_columns(batch), schema), schema=schema)


def as_columns(columns: Iterable[pa.Array | Int64s], schema: pa.Schema) -> list[pa.Array]:
    """Return what `wide_columns` returned as the columns of a schema; further ones are left out."""
    return [
        column if isinstance(column, pa.Array) else pa.array(column).view(field.type)
        for column, field in zip(columns, schema, strict=False)
    ]

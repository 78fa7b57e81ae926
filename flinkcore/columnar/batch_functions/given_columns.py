"""Columns that a function over batches gives, as a batch of the schema that they are to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.exact_columns import exact_cast, exact_column
from flinkcore._internal.arrow.required_values import refused_null
from flinkcore.errors import DataError, SchemaError
from flinkcore.operators.records.shown_values import shown


class GivenColumns:
    """Columns by their names.

    Parameters
    ----------
    given : object
        A ``pyarrow.RecordBatch`` or ``Table``, or a dict from names to Arrow or numpy columns or lists.
    taker : str
        Name of the taker in messages.

    Attributes
    ----------
    n_rows : int

    Raises
    ------
    SchemaError
        If they are not columns.
    DataError
        If they are not equally long.
    """

    def __init__(self, given: Any, taker: str) -> None:
        if isinstance(given, pa.RecordBatch | pa.Table):
            given = dict(zip(given.schema.names, given.columns, strict=True))
        if not isinstance(given, Mapping):
            raise SchemaError(
                f"{taker} got {shown(given)}, which is not a RecordBatch, Table or dict from names to columns"
            )
        self._columns: Mapping[str, Any] = given
        self._taker = taker
        self.n_rows = self._length()

    def _length(self) -> int:
        lengths = {}
        for name, column in self._columns.items():
            if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
                raise SchemaError(
                    f"{self._taker} got {shown(column)} as the column {name!r}: that is not a column"
                )
            lengths[name] = len(column)
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise DataError(f"{self._taker} got columns that are not equally long: {found} rows")
        return next(iter(lengths.values()), 0)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return them as a batch of a schema.

        Raises
        ------
        SchemaError
            If columns are missing, unknown, or have values of other types.
        DataError
            If there is a null where none may be.
        """
        missing = [name for name in schema.names if name not in self._columns]
        unknown = [str(name) for name in self._columns if name not in schema.names]
        if missing or unknown:
            faults = [
                f"{what} {', '.join(names)}"
                for what, names in (
                    ("it lacks the columns", missing),
                    ("it has the unknown columns", unknown),
                )
                if names
            ]
            raise SchemaError(f"{self._taker} got a batch whose columns do not fit: {'; '.join(faults)}")
        arrays = [self._array(self._columns[field.name], field) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _array(self, column: Any, field: pa.Field) -> pa.Array:
        try:
            if isinstance(column, pa.ChunkedArray):
                if column.type != field.type:  # dictionaries of the chunks may have no common one
                    column = column.cast(field.type)
                column = column.combine_chunks()
            if isinstance(column, pa.Array):
                array = column
            elif isinstance(column, np.ndarray) and not column.dtype.hasobject:
                array = pa.array(column.copy())  # Arrow would go on reading what the function may change
            elif hasattr(column, "to_arrow"):  # as of Polars
                array = column.to_arrow()
            elif hasattr(column, "notna") and column.dtype != object:  # as of pandas
                array = pa.array(column)
            else:
                values = column.where(column.notna(), None) if hasattr(column, "notna") else column
                array = exact_column(values, field.type)
            if array.type != field.type:
                array = exact_cast(array, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
            raise SchemaError(
                f"{self._taker} got values for the column {field.name!r} that are not {field.type}: {failure}; give "
                "such values, or declare another type"
            ) from failure
        place = refused_null(array, field)
        if place == field.name:
            row = array.is_null().index(True).as_py()
            raise DataError(
                f"{self._taker} got a null in row {row} of the column {place!r}, which cannot be null",
                column=place,
                row=row,
            )
        if place is not None:
            raise DataError(f"{self._taker} got a null in {place!r}, which cannot be null", column=place)
        return array

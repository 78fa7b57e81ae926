"""Splits of a chunk's rows: dense codes, and each row's position in its split."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._native.event_log import integer_codes, split_positions
from flinkcore.errors import SchemaError

MOST_INTEGER_RANGE = 1 << 16
"""Splits whose numbers lie no further apart are looked up in a table, which fits into the caches."""


def check_split_type(arrow_type: pa.DataType, column: str) -> None:
    """Check that a column can name splits.

    Raises
    ------
    SchemaError
        If its values have no order that is the same everywhere: only integers, strings, binaries, booleans
        and dates do.
    """
    types = pa.types
    if not (
        types.is_integer(arrow_type)
        or types.is_string(arrow_type)
        or types.is_binary(arrow_type)
        or types.is_boolean(arrow_type)
        or types.is_date(arrow_type)
    ):
        raise SchemaError(
            f"split column {column!r} is {arrow_type}; a split is named by an integer, a string, a binary, "
            "a boolean or a date. Convert the column first"
        )


@dataclass(frozen=True)
class SplitRows:
    """The splits of a batch.

    Parameters
    ----------
    codes : numpy.ndarray, shape (n,), int32
        Indices into ``values``; -1 where the split is null.
    values : list, length k
        The distinct splits of the batch, as Python values.
    positions : numpy.ndarray, shape (n,), int64
        The row's position in its split, counted from the chunk's first row; -1 where the split is null.
    rows : numpy.ndarray, shape (k,), int64
        Rows of each split in this batch.
    """

    codes: npt.NDArray[np.int32]
    values: list[Any]
    positions: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


class SplitCounter:
    """Numbers the rows of each split over the batches of one chunk."""

    def __init__(self) -> None:
        self._rows: dict[Any, int] = {}
        self._zeros = np.zeros(0, np.int32)

    def one_split(self, value: Any, rows: int) -> SplitRows:
        """Number the rows of a batch that is all of one split."""
        start = self._rows.get(value, 0)
        self._rows[value] = start + rows
        positions = np.arange(start, start + rows, dtype=np.int64)
        if len(self._zeros) < rows:
            self._zeros = np.zeros(rows, np.int32)
            self._zeros.flags.writeable = False
        return SplitRows(self._zeros[:rows], [value], positions, np.array([rows], np.int64))

    def number(self, column: pa.Array) -> SplitRows:
        """Number the rows of a batch.

        Parameters
        ----------
        column : pyarrow.Array, shape (n,)
            The split column, plain or a dictionary, nullable.

        Returns
        -------
        SplitRows
        """
        indices, dictionary = _encoded(column)
        known = [None if value is None else self._rows.get(value, 0) for value in dictionary]
        if None in known or len(set(dictionary)) < len(dictionary):
            # A dictionary may hold a value twice, or null: one code for each value, none for null.
            distinct = {value: None for value in dictionary if value is not None}
            place = {value: code for code, value in enumerate(distinct)}
            indices = np.array([place.get(value, -1) for value in dictionary] + [-1], np.int32)[indices]
            dictionary = list(distinct)
            known = [self._rows.get(value, 0) for value in dictionary]
        before = np.array(known, np.int64)
        after = before.copy()
        positions = split_positions(indices, after)
        counts = after - before
        occurring = counts > 0
        for code in np.flatnonzero(occurring).tolist():
            self._rows[dictionary[code]] = int(after[code])
        if occurring.all():
            return SplitRows(indices, dictionary, positions, counts)
        # A value of the dictionary that no row has is not a split: nothing would ever arrive on it.
        dense = np.append(np.cumsum(occurring, dtype=np.int32) - 1, np.int32(-1))
        values = [dictionary[code] for code in np.flatnonzero(occurring)]
        return SplitRows(dense[indices], values, positions, counts[occurring])


def _encoded(column: pa.Array) -> tuple[npt.NDArray[np.int32], list[Any]]:
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        values = column.to_numpy()
        close = integer_codes(values, MOST_INTEGER_RANGE)
        if close is not None:
            codes, first_rows = close
            return codes, values[first_rows].tolist()
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    # Some writers number a dictionary with unsigned codes, which have no room for -1.
    indices = column.indices.cast(pa.int32())
    if column.null_count:
        indices = indices.fill_null(-1)
    return indices.to_numpy(), column.dictionary.to_pylist()

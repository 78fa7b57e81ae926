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
    """The splits of a batch, numbered in the chunk.

    Parameters
    ----------
    codes : numpy.ndarray, shape (n,), int32
        Indices into ``values``; -1 where the split is null.
    values : list, length k
        The distinct splits of the chunk so far, as Python values; the same list as before if there is no new one.
    positions : numpy.ndarray, shape (n,), int64
        The row's position in its split, counted from the chunk's first row; -1 where the split is null.
    rows : numpy.ndarray, shape (k,), int64
        Rows of each split in this batch, some of which may have none.
    """

    codes: npt.NDArray[np.int32]
    values: list[Any]
    positions: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


class SplitCounter:
    """Numbers the splits of one chunk, and the rows of each, batch by batch."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._rows = np.empty(0, np.int64)
        self._zeros = np.zeros(0, np.int32)

    def one_split(self, value: Any, rows: int) -> SplitRows:
        """Number the rows of a batch; all batches of the chunk are of this split alone."""
        if not self._values:
            self._values, self._rows = [value], np.zeros(1, np.int64)
        start = int(self._rows[0])
        self._rows[0] += rows
        positions = np.arange(start, start + rows, dtype=np.int64)
        if len(self._zeros) < rows:
            self._zeros = np.zeros(rows, np.int32)
            self._zeros.flags.writeable = False
        return SplitRows(self._zeros[:rows], self._values, positions, np.array([rows], np.int64))

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
        indices, values = _encoded(column)
        numbers = [self._codes.get(value, -1) for value in values]
        if -1 in numbers:
            self._add_new(values, numbers, indices)
            numbers = [self._codes.get(value, -1) for value in values]
        codes = indices
        if numbers != list(range(len(numbers))):
            # The last one is that of null, at which -1 points.
            codes = np.array([*numbers, -1], np.int32)[indices]
        before = self._rows.copy()
        positions = split_positions(codes, self._rows)
        return SplitRows(codes, self._values, positions, self._rows - before)

    def _add_new(self, values: list[Any], numbers: list[int], indices: npt.NDArray[np.int32]) -> None:
        """Number the values of a dictionary that have no number yet.

        A dictionary may hold a value twice, and null. A value that no row has is not a split: nothing would ever arrive
        on it.
        """
        occurs = np.zeros(len(values) + 1, np.bool_)
        occurs[indices] = True
        known = len(self._codes)
        for value, number, is_there in zip(values, numbers, occurs[:-1].tolist(), strict=True):
            if number < 0 and is_there and value is not None:
                self._codes.setdefault(value, len(self._codes))
        if len(self._codes) > known:
            self._values = list(self._codes)
            self._rows = np.append(self._rows, np.zeros(len(self._codes) - known, np.int64))


def _encoded(column: pa.Array) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Return indices into values, -1 where the column is null, and the values."""
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

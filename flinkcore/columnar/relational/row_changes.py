"""Rows that are changes: their kinds, and what makes a row that is withdrawn equal to one that came before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import DataError
from flinkcore.log.order.content_order import content_identities

_LETTERS: Final = np.frombuffer(b"+I-U+U-D", np.uint16)
"""Row kinds in words, by Flink's number; each as one number of two bytes."""

Kinds = npt.NDArray[np.uint8]
Identities = npt.NDArray[np.uint64]


def kind_column(kinds: Kinds) -> pa.Array:
    """Return the words of row kinds."""
    ends = np.arange(0, 2 * len(kinds) + 1, 2, dtype=np.int32)
    return pa.StringArray.from_buffers(len(kinds), pa.py_buffer(ends), pa.py_buffer(_LETTERS[kinds]))


# pa.array would import pandas, for which most of what imports this module has no use.
ROW_KINDS: Final = kind_column(np.arange(4, dtype=np.uint8))
"""Row kinds in words, by Flink's number."""


def kinds_of(rows: pa.RecordBatch) -> Kinds:
    """Return Flink's number of the kind of each row.

    Raises
    ------
    DataError
        If one is null or no kind.
    """
    column = rows.column(ROW_KIND)
    kinds = pc.index_in(column, ROW_KINDS)
    if kinds.null_count:
        row = pc.index(kinds.is_null(), True).as_py()
        raise DataError(
            f"row {row} of a batch has {ROW_KIND} = {column[row].as_py()!r}; a change is one of +I, -U, +U and -D. "
            "Filter such rows out first, or rename the column if the rows are not changes",
            column=ROW_KIND,
        )
    numbers: Kinds = kinds.to_numpy().astype(np.uint8)
    return numbers


def identities_of(rows: pa.RecordBatch, names: Sequence[str] | None = None) -> Identities:
    """Return the identities of rows: equal where the rows are equal in these columns.

    Parameters
    ----------
    rows : pyarrow.RecordBatch, n rows
    names : sequence of str, optional
        Columns of a unique key, maybe none, with which all rows of a key are one; by default all but the row kind.

    Returns
    -------
    numpy.ndarray of uint64, shape (n, 2)
    """
    columns = [name for name in rows.schema.names if name != ROW_KIND] if names is None else list(names)
    if not columns:
        return np.zeros((rows.num_rows, 2), np.uint64)
    return content_identities(rows.select(columns))

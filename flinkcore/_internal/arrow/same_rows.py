"""Equality of rows as Flink's record equalisers have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s


def are_same_rows(columns: Sequence[pa.Array], before: Int64s, after: Int64s) -> npt.NDArray[np.bool_]:
    """Return which of some rows equal others: values or nulls. As in Flink, a NaN differs from itself,
    and so does an array with a null.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
    before, after : int64 array (n,)
        Numbers of the rows that are compared.
    """
    same = np.ones(len(before), np.bool_)
    for column in columns:
        own, other = column.take(pa.array(before)), column.take(pa.array(after))
        if pa.types.is_nested(column.type):
            pairs = zip(own.to_pylist(), other.to_pylist(), strict=True)
            is_list = pa.types.is_list(column.type)
            same &= np.array([a == b and not (is_list and a and None in a) for a, b in pairs], np.bool_)
            continue
        equal = pc.fill_null(pc.equal(own, other), False)
        nulls = pc.and_(own.is_null(), other.is_null())
        same &= pc.or_(equal, nulls).to_numpy(zero_copy_only=False)
    return same

"""Equality of rows as Flink's record equalisers have it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s


def are_same_rows(columns: Iterable[pa.Array], before: Int64s, after: Int64s) -> npt.NDArray[np.bool_]:
    """Return which of some rows equal others: values or nulls. As in Flink, a NaN differs from itself,
    and so does an array with a null.

    Parameters
    ----------
    columns : iterable of pyarrow.Array
        Taken one by one, as long as rows are the same in all before.
    before, after : int64 array (n,)
        Numbers of the rows that are compared.
    """
    left = np.arange(len(before))
    for column in columns:
        left = left[_are_same(column, before[left], after[left])]
        if not len(left):
            break
    same = np.zeros(len(before), np.bool_)
    same[left] = True
    return same


def _are_same(column: pa.Array, before: Int64s, after: Int64s) -> npt.NDArray[np.bool_]:
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy()
        found: npt.NDArray[np.bool_] = numbers[before] == numbers[after]
        return found
    own, other = column.take(pa.array(before)), column.take(pa.array(after))
    if pa.types.is_nested(column.type):
        pairs = zip(own.to_pylist(), other.to_pylist(), strict=True)
        is_list = pa.types.is_list(column.type)
        return np.array([a == b and not (is_list and a and None in a) for a, b in pairs], np.bool_)
    equal = pc.equal(own, other)
    if column.null_count:
        equal = pc.or_(pc.fill_null(equal, False), pc.and_(own.is_null(), other.is_null()))
    same: npt.NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return same

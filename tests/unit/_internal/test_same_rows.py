"""Which rows equal others, column by column."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.same_rows import are_same_rows


def test_nulls_are_equal_and_differ_from_values() -> None:
    before, after = np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])
    for values in ([1, None, 1, None], ["a", None, "a", None], [0.5, None, 0.5, None]):
        assert are_same_rows([pa.array(values)], before, after).tolist() == [True, False, False, True]


def test_rows_are_the_same_if_all_columns_are() -> None:
    columns = [pa.array([1, 1, 1, 2]), pa.array(["a", "b", "a", "a"])]
    assert are_same_rows(columns, np.array([0, 0, 0]), np.array([1, 2, 3])).tolist() == [False, True, False]


def test_a_column_is_taken_only_if_rows_are_the_same_in_those_before() -> None:
    def columns() -> Iterator[pa.Array]:
        yield pa.array([1, 1, 2])
        yield pa.array([1, 2, 2])
        raise AssertionError("no rows are left to compare")

    assert are_same_rows(columns(), np.array([0, 0]), np.array([1, 2])).tolist() == [False, False]

"""Orders of rows by packed words."""

import numpy as np
import pytest

from flinkcore._internal.arrow.packed_order import rows_in_order

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("n_rows", [0, 1, 2, 300])
@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 5)],
        [(0, 0), (0, 3), (-4, 9)],
        [(7, 9), (0, 1 << 40), (-(1 << 30), 0)],
        [(LEAST, MOST), (0, 2)],
        [(0, 1), (LEAST, MOST), (LEAST, MOST)],
    ],
    ids=str,
)
@pytest.mark.parametrize("n_sorted", [0, 1, 2])
def test_rows_are_in_order_of_all_columns_and_equal_rows_as_given(
    n_rows: int, ranges: list[tuple[int, int]], n_sorted: int
) -> None:
    random = np.random.default_rng(n_rows + n_sorted)
    columns = [random.integers(low, high, n_rows, np.int64, endpoint=True) for low, high in ranges]
    if n_sorted:  # as results of windows come: in the order of the first columns
        order = np.lexsort(columns[n_sorted - 1 :: -1])
        columns = [column[order] if number < n_sorted else column for number, column in enumerate(columns)]
    assert rows_in_order(columns).tolist() == np.lexsort(columns[::-1]).tolist()


def test_a_column_that_follows_from_those_before_it_orders_nothing() -> None:
    ends = np.repeat(np.arange(0, 1 << 60, 1 << 56), 20)
    keys = np.tile(np.arange(20)[::-1], 16)
    assert rows_in_order([ends, keys, -ends]).tolist() == np.lexsort([keys, ends]).tolist()

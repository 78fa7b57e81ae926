"""Integers stored narrowly: gathered, and the same again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.narrow_integers import narrow_integers, widen_integers
from flinkcore.errors import DataError

FAR = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(2**40, 2**40 + 70_000)


@settings(deadline=None)
@given(
    st.one_of(st.lists(NEAR, min_size=1), st.lists(NEAR, min_size=1).map(sorted), st.lists(FAR, min_size=1)),
    st.data(),
)
def test_chosen_integers_come_back_in_their_order(values: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1))
    base, running, steps = narrow_integers(np.array(values, np.int64), np.array(rows, np.uint32))
    chosen = [values[row] for row in rows]
    if steps is None:
        assert set(chosen) == {base}
    else:
        assert widen_integers(steps, base, running).tolist() == chosen


def test_integers_of_four_bytes_are_taken_as_they_are() -> None:
    base, running, steps = narrow_integers(np.array([7, -2, 7], np.int32))
    assert (base, running) == (-2, False)
    assert steps is not None
    assert steps.tolist() == [9, 0, 9]


def test_a_row_beyond_the_values_is_refused() -> None:
    with pytest.raises(DataError, match="row 2 is beyond the 2 values"):
        narrow_integers(np.array([7, 8]), np.array([0, 2], np.uint32))


def test_no_integers_cannot_be_stored() -> None:
    with pytest.raises(DataError, match="no integers"):
        narrow_integers(np.empty(0, np.int64))
    with pytest.raises(DataError, match="no integers"):
        narrow_integers(np.array([1]), np.empty(0, np.uint32))

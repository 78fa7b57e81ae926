"""Dense codes of integers that lie close together."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.event_log import integer_codes

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@settings(deadline=None)
@given(
    dtype=st.sampled_from(TYPES),
    at_the_end=st.booleans(),
    offsets=st.lists(st.integers(0, 100), min_size=1, max_size=50),
)
def test_codes_are_numbered_in_order_of_appearance(dtype: Any, at_the_end: bool, offsets: list[int]) -> None:
    limits = np.iinfo(dtype)
    numbers = [limits.max - offset if at_the_end else limits.min + offset for offset in offsets]
    encoded = integer_codes(np.array(numbers, dtype), 100)
    assert encoded is not None
    codes, first_rows = encoded
    distinct = list(dict.fromkeys(numbers))
    assert codes.tolist() == [distinct.index(number) for number in numbers]
    assert first_rows.tolist() == [numbers.index(number) for number in distinct]


@pytest.mark.parametrize("dtype", TYPES)
def test_integers_too_far_apart_have_no_codes(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    assert integer_codes(np.array([limits.min, limits.max], dtype), 254) is None
    assert integer_codes(np.array([limits.min, limits.min + 100], dtype), 99) is None


def test_a_read_only_column_is_taken() -> None:
    column = np.arange(3)
    column.flags.writeable = False
    encoded = integer_codes(column, 10)
    assert encoded is not None
    assert encoded[0].tolist() == [0, 1, 2]

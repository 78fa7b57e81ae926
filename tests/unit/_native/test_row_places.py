"""RowPlaces: rows of several pieces, gathered into one array."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkcore._native.arrow import ColumnArray
from flinkcore._native.row_places import RowPlaces

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [1, -2, None]),
    (pa.uint16(), [1, 65_535, None]),
    (pa.float32(), [1.5, -0.0, None]),
    (pa.int64(), [1, -(1 << 63), None]),
    (pa.timestamp("us", "Europe/Zurich"), [datetime.fromisoformat("2026-01-05T09:00:00+00:00"), None]),
    (pa.date32(), [datetime(2026, 1, 5).date(), None]),
    (pa.duration("s"), [1, None]),
    (pa.decimal128(20, 2), [Decimal("1.25"), None]),
    (pa.binary(3), [b"abc", b"\0\0\1", None]),
    (pa.binary(0), [b"", None]),
    (pa.string(), ["", "é", "a longer text", None]),
    (pa.large_string(), ["", "é", "a longer text", None]),
    (pa.binary(), [b"", b"\0", b"bytes", None]),
    (pa.large_binary(), [b"", b"\0", b"bytes", None]),
]


def gathered(pieces: list[pa.Array], numbers: list[int]) -> pa.Array:
    begins = np.cumsum([0, *map(len, pieces)])
    return pa.array(
        RowPlaces(begins, np.array(numbers, np.int64)).gathered([ColumnArray(piece) for piece in pieces])
    )


@given(st.data())
def test_rows_are_those_that_arrow_takes_from_the_joined_pieces(data: st.DataObject) -> None:
    kind, values = data.draw(st.sampled_from(VALUES))
    if data.draw(st.booleans()):
        values = values[:-1]
    pieces = []
    for drawn in data.draw(st.lists(st.lists(st.sampled_from(values), max_size=20), min_size=1, max_size=4)):
        skipped = data.draw(st.integers(0, len(drawn)))
        pieces.append(pa.array(drawn, kind).slice(skipped))
    whole = pa.concat_arrays(pieces)
    numbers = data.draw(st.lists(st.integers(-1, len(whole) - 1), max_size=40))
    taken = whole.take(pa.array([None if number < 0 else number for number in numbers], pa.int64()))
    found = gathered(pieces, numbers)
    found.validate(full=True)
    assert found.type == kind
    assert found.equals(taken)
    assert found.null_count == taken.null_count


def test_a_number_that_no_row_has_is_refused() -> None:
    with pytest.raises(IndexError, match="no row 2: there are 2"):
        gathered([pa.array([1, 2])], [0, 2])


def test_pieces_that_are_not_those_of_the_places_are_refused() -> None:
    places = RowPlaces(np.array([0, 2, 3]), np.array([2]))
    one, two, text = ColumnArray(pa.array([1])), ColumnArray(pa.array([1, 2])), ColumnArray(pa.array(["a"]))
    for pieces, message in [
        ([two], "1 pieces, of 2"),
        ([one, two], "piece 0 has 1 rows"),
        ([two, text], "piece 1 has another type"),
    ]:
        with pytest.raises(ValueError, match=message):
            places.gathered(pieces)
    nested = ColumnArray(pa.array([{"a": 1}]))
    with pytest.raises(ValueError, match="are not gathered"):
        RowPlaces(np.array([0, 1]), np.array([0])).gathered([nested])


@pytest.mark.parametrize("begins", [[], [1, 2], [0, 2, 1], [0, 1 << 32]])
def test_pieces_that_do_not_follow_each_other_are_refused(begins: list[int]) -> None:
    with pytest.raises(ValueError, match="piece"):
        RowPlaces(np.array(begins, np.int64), np.array([0]))


def test_text_that_offsets_cannot_count_is_refused() -> None:
    text = pa.array(["x" * (1 << 20)])
    with pytest.raises(OverflowError, match="more bytes"):
        gathered([text], [0] * (1 << 11))
    assert len(gathered([text], [0] * 3)[2].as_py()) == 1 << 20

"""Numbers of rows by their content."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.event_log import mix_lists
from flinkcore.log.order.content_order import content_numbers


def numbers(column: pa.Array) -> list[int]:
    found: list[int] = content_numbers(pa.record_batch({"x": column})).tolist()
    return found


@pytest.mark.parametrize(
    "values",
    [
        [1, None, 0, 3, -1],
        ["a", "bc", None, "", "ab", "abcdefgh", "abcdefghi"],
        [b"a", None, b"", b"\0", b"\0\0"],
        [True, None, False],
        [1.5, None, 0.0, 2.5, float("nan"), float("inf")],
        [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 1, "b": None}],
        [["x", "y"], [], None, ["xy"], [None], ["y", "x"], [""]],
        [[[1], [2]], [[1, 2]], [[], [1, 2]], [[1, 2], []], [None], [], None],
        [[{"a": 1, "b": [0]}], [{"a": 1, "b": None}], [{"a": None, "b": [0]}], [None], None],
        [Decimal("1.10"), None, Decimal("2.00"), Decimal("-1.10"), Decimal(2**70)],
    ],
    ids=str,
)
def test_different_values_have_different_numbers_wherever_they_lie(values: list[Any]) -> None:
    column = pa.array(values)
    found = numbers(column)
    assert len(set(found)) == len(values)
    assert min(found) >= 0
    assert max(found) < 2**59
    assert [numbers(column.slice(at, 1))[0] for at in range(len(values))] == found
    assert numbers(pa.concat_arrays([column, column]).slice(1, len(values))) == [*found[1:], found[0]]
    assert numbers(column.take(pa.array(range(len(values) - 1, -1, -1)))) == found[::-1]


def test_maps_times_and_dictionaries_have_the_numbers_of_their_values() -> None:
    maps = pa.array(
        [[("a", 1)], [("a", 2)], None, [], [("a", 1), ("b", None)], [("b", None), ("a", 1)]],
        pa.map_(pa.string(), pa.int64()),
    )
    found = numbers(maps)
    assert len(set(found)) == 6
    assert [numbers(maps.slice(at, 1))[0] for at in range(6)] == found
    assert numbers(pa.concat_arrays([maps, maps]).slice(4, 4)) == [*found[4:], *found[:2]]
    lists = pa.array([[1, 2], None, []])
    assert numbers(lists.cast(pa.large_list(pa.int64()))) == numbers(lists)
    assert numbers(pa.array([5, 7, None], pa.timestamp("us", "UTC"))) == numbers(
        pa.array([5, 7, None], pa.int64())
    )
    text = pa.array(["a", None, "b", "a"])
    found = numbers(text.dictionary_encode())
    assert found[0] == found[3]
    assert len(set(found)) == 3


def test_items_under_a_null_list_do_not_count() -> None:
    bounds = pa.py_buffer(np.array([0, 2, 3, 5], np.int32))
    valid = pa.py_buffer(b"\2")
    hidden = pa.Array.from_buffers(
        pa.list_(pa.int64()), 3, [valid, bounds], children=[pa.array([1, 2, 3, 4, 5])]
    )
    assert hidden.to_pylist() == [None, [3], None]
    assert numbers(hidden) == numbers(pa.array([None, [3], None], pa.list_(pa.int64())))


def test_lists_that_do_not_fit_are_refused() -> None:
    words = np.zeros(2, np.uint64)
    for starts, lengths in (
        ([0], [1, 1]),
        ([0, 1], [1]),
        ([0, -1], [1, 1]),
        ([0, 1], [1, 2]),
        ([0, 1], [1, -1]),
    ):
        with pytest.raises(ValueError, match=r"numbers|items from"):
            mix_lists(words, np.array(starts, np.int64), np.array(lengths, np.int64), words)


def test_what_lies_under_a_null_does_not_count() -> None:
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\0"), pa.py_buffer(bytes(8) + b"\7" * 8)], null_count=2
    )
    first, second = numbers(hidden)
    assert first == second


def test_all_columns_count_in_their_order() -> None:
    batch = pa.record_batch({"x": [1, 2], "y": [2, 1]})
    first, second = content_numbers(batch).tolist()
    assert first != second
    assert content_numbers(batch.select(["y", "x"])).tolist() == [second, first]
    assert content_numbers(batch.select([])).tolist() == [0, 0]


def test_an_empty_column_need_not_have_memory() -> None:
    assert numbers(pa.Array.from_buffers(pa.decimal128(5, 2), 0, [None, None])) == []

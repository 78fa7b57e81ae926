"""Rows in bounded frames that are kept for a savepoint."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkcore.columnar.relational import frame_rows
from flinkcore.columnar.relational.frame_rows import RowsInFrames

NONE_CLEARED: Any = (np.zeros(0, np.int64), np.zeros(0, np.uint32))


def added(
    rows: RowsInFrames, numbers: list[int], keys: list[int], times: list[int], cleared: Any = NONE_CLEARED
) -> None:
    rows.add(np.array(numbers, np.int64), np.array(keys, np.uint32), np.array(times, np.int64), cleared)


def shown(rows: RowsInFrames) -> dict[int, list[tuple[int, int]]]:
    """Return number and time of the rows of each key."""
    found = defaultdict(list)
    table = rows.snapshot()
    for key, row, time in zip(table["key"], table["row"], table["timestamp"], strict=True):
        found[int(key)].append((int(row), int(time)))
    return dict(found)


def test_a_frame_of_rows_has_the_last_ones_of_its_key() -> None:
    rows = RowsInFrames(rows=2, range_ms=None)
    added(rows, [0, 1, 2, 3], [7, 7, 8, 7], [1, 1, 1, 2])
    assert shown(rows) == {7: [(1, 1), (3, 2)], 8: [(2, 1)]}


def test_a_frame_of_time_has_the_rows_at_both_of_its_ends() -> None:
    rows = RowsInFrames(rows=None, range_ms=10)
    added(rows, [0, 1, 2], [0, 0, 0], [9, 10, 20])
    assert shown(rows) == {0: [(1, 10), (2, 20)]}


def test_a_key_is_forgotten_between_the_rows_that_come_up() -> None:
    rows = RowsInFrames(rows=9, range_ms=None)
    added(rows, [0, 1, 2], [3, 4, 3], [1, 1, 2], (np.array([2]), np.array([3], np.uint32)))
    assert shown(rows) == {3: [(2, 2)], 4: [(1, 1)]}
    rows.clear(np.array([4], np.uint32))
    assert shown(rows) == {3: [(2, 2)]}


def test_rows_take_new_numbers() -> None:
    rows = RowsInFrames(rows=1, range_ms=None)
    added(rows, [5, 6], [0, 0], [1, 2])
    assert rows.live_rows().tolist() == [6]
    rows.renumber(np.array([0]))
    assert shown(rows) == {0: [(0, 2)]}


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 5)), max_size=5), max_size=8
    ),
    st.one_of(st.tuples(st.integers(1, 3), st.none()), st.tuples(st.none(), st.integers(0, 6))),
)
def test_rows_are_those_of_a_small_model(batches: list[list[tuple[int, int, int]]], bound: Any) -> None:
    size, range_ms = bound
    rows = RowsInFrames(rows=size, range_ms=range_ms)
    model: dict[int, list[tuple[int, int]]] = defaultdict(list)
    now: dict[int, int] = defaultdict(int)
    number = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_rows, "LEAST_ROWS", 2)
        for batch in batches:
            numbers = list(range(number, number + len(batch)))
            number += len(batch)
            times = []
            cleared = [(place, each) for place, (_, _, each) in enumerate(batch) if each < 3]
            for row, (key, step, forgotten) in zip(numbers, batch, strict=True):
                model.pop(forgotten, None)
                now[key] += step
                times.append(now[key])
                kept = [*model[key], (row, now[key])]
                model[key] = (
                    kept[-size:] if size else [each for each in kept if now[key] - each[1] <= range_ms]
                )
            befores, keys = np.array(cleared, np.int64).reshape(-1, 2).T
            added(rows, numbers, [key for key, *_ in batch], times, (befores, keys.astype(np.uint32)))
            assert len(rows) >= sum(map(len, model.values()))
    assert shown(rows) == {key: found for key, found in model.items() if found}

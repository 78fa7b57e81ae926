"""Times of rows by split, and arrivals that never go back within a split."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native import event_log
from flinkcore._native.event_log import rows_by_split, running_maxima
from flinkcore.errors import DataError

NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(st.integers(0, 4), NUMBERS, NUMBERS), max_size=40)


@settings(deadline=None)
@given(ROWS)
def test_rows_of_a_split_come_together_in_their_order(rows: list[tuple[int, int, int]]) -> None:
    codes, arrivals, timestamps = np.array(rows, object).reshape(-1, 3).T
    columns = arrivals.astype(np.int64), timestamps.astype(np.int64)
    offsets, *found = rows_by_split(codes.astype(np.int32), 6, *columns, None)
    for split in range(6):
        of_split = slice(offsets[split], offsets[split + 1])
        expected = [row[1:] for row in rows if row[0] == split]
        assert list(zip(*(column[of_split].tolist() for column in found), strict=True)) == expected
    alone = rows_by_split(codes.astype(np.int32), 6, columns[0], None, None)
    assert [alone[0].tolist(), alone[1].tolist(), alone[2]] == [offsets.tolist(), found[0].tolist(), None]


@settings(deadline=None)
@given(ROWS, st.lists(NUMBERS, min_size=6, max_size=6))
def test_arrivals_are_the_running_maxima_of_their_splits(
    rows: list[tuple[int, int, int]], before: list[int]
) -> None:
    codes = np.array([row[0] for row in rows], np.int32)
    offsets, arrivals, _ = rows_by_split(codes, 5, np.array([row[1] for row in rows], np.int64), None, None)
    running = np.array(before)
    found = running_maxima(arrivals, offsets, np.array([3, 0, 5, 1, 2], np.int32), running)
    expected = list(before)
    for code, place in enumerate([3, 0, 5, 1, 2]):
        of_split = slice(offsets[code], offsets[code + 1])
        values = np.maximum.accumulate([expected[place], *arrivals[of_split].tolist()])
        assert found[of_split].tolist() == values[1:].tolist()
        expected[place] = values[-1]
    assert running.tolist() == expected


def test_arrivals_that_never_go_back_are_not_copied() -> None:
    arrivals, offsets = np.array([5, 5, 3, 9]), np.array([0, 2, 4])
    places, running = np.array([0, 1], np.int32), np.array([5, 3])
    assert running_maxima(arrivals, offsets, places, running) is arrivals
    assert running.tolist() == [5, 9]


def test_times_are_written_where_there_is_room_for_them() -> None:
    codes, times = np.array([1, 0], np.int32), np.array([5, 6])
    there = np.zeros((2, 3), np.int64)
    _, arrivals, timestamps = rows_by_split(codes, 2, times, times + 2, there)
    assert there.tolist() == [[6, 5, 0], [8, 7, 0]]
    assert np.shares_memory(arrivals, there)
    assert (arrivals.tolist(), timestamps.tolist()) == ([6, 5], [8, 7])
    for bad in (there[:1], there[:, :1].copy()):
        with pytest.raises(DataError, match="2 rows do not fit into"):
            rows_by_split(codes, 2, times, times, bad)


def test_columns_that_do_not_fit_together_are_refused() -> None:
    times, codes = np.zeros(2, np.int64), np.array([0, 1], np.int32)
    with pytest.raises(DataError, match="1 timestamps, 2 arrivals and 2 split codes"):
        rows_by_split(codes, 2, times, times[:1], None)
    with pytest.raises(DataError, match="no timestamps, 1 arrivals and 2 split codes"):
        rows_by_split(codes, 2, times[:1], None, None)
    for bad in ([0, 2], [0, -1]):
        with pytest.raises(DataError, match=f"row 1: split code {bad[1]}, but there are 2 splits"):
            rows_by_split(np.array(bad, np.int32), 2, times, times, None)
    with pytest.raises(DataError, match="2 offsets of 2 groups of 2 rows"):
        running_maxima(times, np.array([0, 2]), codes, times)
    with pytest.raises(DataError, match="row 1: split code 1, but there are 1 splits"):
        running_maxima(times, np.array([0, 1, 2]), codes, times[:1])


def test_examples_in_docstrings_are_right() -> None:
    for function in (rows_by_split, running_maxima):
        (test,) = doctest.DocTestFinder().find(function, globs=vars(event_log).copy())
        assert test.examples
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0

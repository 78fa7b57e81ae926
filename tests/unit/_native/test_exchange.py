"""What goes from partition to partition: rows by key group, integers packed narrowly, runs merged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.exchange import narrow_integers, partition_rows, total_order, widen_integers
from flinkcore.errors import ConfigurationError, DataError

FAR = st.integers(-(2**63), 2**63 - 1)
FAR_APART = (2**63 - 1, -(2**63))
NEAR = st.integers(2**40, 2**40 + 70_000)


def order_of(rows: list[tuple[int, int, int]]) -> list[int]:
    arrivals, splits, positions = (np.array(column) for column in zip(*rows, strict=True))
    found = total_order(arrivals.astype(np.int64), splits.astype(np.int32), positions.astype(np.int64))
    return list(range(len(rows))) if found is None else found.tolist()


def test_rows_that_lie_in_order_need_no_order() -> None:
    assert total_order(np.array([1, 1, 2]), np.array([0, 1, 0], np.int32), np.array([0, 0, 1])) is None


def test_arrival_comes_before_split_and_split_before_position() -> None:
    assert order_of([(2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 0)]) == [3, 2, 1, 0]


def test_an_empty_batch_is_in_order() -> None:
    empty = np.array([], np.int64)
    assert total_order(empty, empty.astype(np.int32), empty) is None


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=80))
def test_the_order_is_that_of_a_stable_sort(rows: list[tuple[int, int, int]]) -> None:
    assert order_of(rows) == sorted(range(len(rows)), key=lambda row: rows[row])


@pytest.mark.parametrize("together", [2, 32, 33, 300])
def test_rows_that_arrive_together_are_ordered_by_position(together: int) -> None:
    positions = [row * 7919 % 101 - 50 for row in range(3 * together)]
    in_groups = [(row // together, 0, positions[row]) for row in range(3 * together)]
    assert order_of(in_groups) == sorted(range(3 * together), key=lambda row: in_groups[row])
    overlapping = in_groups[: 2 * together] + in_groups[together:]
    assert order_of(overlapping) == sorted(range(4 * together), key=lambda row: overlapping[row])
    far = [(0, 0, FAR_APART[row % 2]) for row in range(together)]
    assert order_of(far) == sorted(range(together), key=lambda row: far[row])


def test_columns_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="same length"):
        total_order(np.array([1, 2]), np.array([0], np.int32), np.array([0, 1]))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 127), max_size=60),
    st.integers(1, 9),
)
def test_partitions_are_ranges_of_key_groups_and_keep_the_order(groups: list[int], partitions: int) -> None:
    order, bounds = partition_rows(np.array(groups, np.int32), 128, partitions)
    for partition in range(partitions):
        rows = order[bounds[partition] : bounds[partition + 1]].tolist()
        assert rows == [row for row, group in enumerate(groups) if group * partitions // 128 == partition]


def test_only_the_rows_given_are_distributed_in_their_order() -> None:
    groups = np.array([0, 127, 0, 127], np.int32)
    order, bounds = partition_rows(groups, 128, 2, np.array([3, 2, 0], np.uint32))
    assert (order.tolist(), bounds.tolist()) == ([2, 0, 3], [0, 2, 3])


def test_more_partitions_than_key_groups_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="maximum parallelism is 4"):
        partition_rows(np.array([0], np.int32), 4, 5)


@pytest.mark.parametrize("group", [-1, 128])
def test_a_key_group_out_of_range_is_named(group: int) -> None:
    with pytest.raises(ValueError, match="row 1"):
        partition_rows(np.array([0, group], np.int32), 128, 2)


def test_a_row_number_out_of_range_is_an_error() -> None:
    with pytest.raises(ValueError, match="row 7"):
        partition_rows(np.array([0, 1], np.int32), 128, 2, np.array([7], np.uint32))


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

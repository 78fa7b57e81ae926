"""Packing of chunks into tasks: by bytes and the cost of opening a file."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from flinkcore.spark.logs.task_packing import MOST_BYTES, OPEN_BYTES, UNPACKED, TaskPacking


def session_with(**settings: str) -> Any:
    named = {f"spark.sql.files.{name}": value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=named.get))


@given(
    sizes=st.lists(st.none() | st.integers(0, 50), max_size=60),
    most_bytes=st.integers(1, 60),
    open_bytes=st.integers(0, 20),
    least_tasks=st.integers(1, 9),
)
def test_every_chunk_is_in_one_task_in_the_order_of_the_log(
    sizes: list[int | None], most_bytes: int, open_bytes: int, least_tasks: int
) -> None:
    tasks = TaskPacking(most_bytes, open_bytes, least_tasks).tasks(sizes)
    assert [place for task in tasks for place in task] == list(range(len(sizes)))
    assert all(len(task) for task in tasks)
    assert len(tasks) >= min(least_tasks, len(sizes))


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    most_bytes=st.integers(20, 60),
    open_bytes=st.integers(0, 20),
)
def test_no_task_costs_more_than_the_most_and_one_chunk(
    sizes: list[int], most_bytes: int, open_bytes: int
) -> None:
    costs = [size + open_bytes for size in sizes]
    for task in TaskPacking(most_bytes, open_bytes).tasks(sizes):
        assert sum(costs[task.start : task.stop]) <= most_bytes + max(costs)


def test_small_files_share_a_task_as_far_as_opening_them_costs_little() -> None:
    packing = TaskPacking(most_bytes=128, open_bytes=4, least_tasks=4)
    assert {len(task) for task in packing.tasks([0] * 320)} == {32}
    assert [len(task) for task in packing.tasks([0] * 6)] == [2, 1, 2, 1]
    assert [len(task) for task in packing.tasks([124, 124, 124, 0, 0, 120])] == [1, 1, 1, 2, 1]


def test_a_chunk_of_many_files_costs_what_opening_all_of_them_does() -> None:
    packing = TaskPacking(most_bytes=128, open_bytes=4)
    assert packing.most_files == 32
    assert {len(task) for task in packing.tasks([0] * 40, [8] * 40)} == {4}
    assert [len(task) for task in packing.tasks([0] * 4, [32, 1, 1, 30])] == [1, 3]
    assert TaskPacking(most_bytes=3, open_bytes=4).most_files == 1
    assert TaskPacking(open_bytes=0).most_files is None


def test_a_chunk_of_unknown_size_fills_a_task() -> None:
    packing = TaskPacking(most_bytes=128, open_bytes=1)
    assert len(packing.tasks([None, None, None])) == 3
    assert [len(task) for task in packing.tasks([1, 1, None, 1])] == [3, 1]


def test_chunks_that_are_not_packed_have_a_task_each_whatever_their_sizes() -> None:
    assert [len(task) for task in UNPACKED.tasks([0, None, 7, 1 << 40, 0])] == [1] * 5


def test_the_settings_of_spark_decide() -> None:
    assert TaskPacking.of(session_with(), 3) == TaskPacking(MOST_BYTES, OPEN_BYTES, 6)
    given = session_with(maxPartitionBytes="64MB", openCostInBytes="1k", minPartitionNum="5")
    assert TaskPacking.of(given, 3) == TaskPacking(64 << 20, 1 << 10, 5)
    given = session_with(maxPartitionBytes="134217728b", openCostInBytes="0")
    assert TaskPacking.of(given, 1) == TaskPacking(128 << 20, 0, 2)
    # What Spark itself refuses is left to Spark.
    assert TaskPacking.of(session_with(maxPartitionBytes="much"), 1).most_bytes == MOST_BYTES

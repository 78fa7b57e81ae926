"""OperatorLevels: which operators of a job run in one stage of Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.spark.columnar.operator_levels import OperatorLevels, PartitionPacking
from flinkcore.spark.exchange.partitioning import spark_hash


def plan_of(*taken: list[int], partitions: int = 2, calls_functions: bool = False) -> Any:
    """A job whose operators take the results of these others."""

    def stage(results: list[int]) -> Any:
        return SimpleNamespace(
            takes_rows_anywhere=False,
            operator=SimpleNamespace(calls_functions=calls_functions),
            results=[(0, SimpleNamespace(stage=each)) for each in results],
            partitions=lambda parallelism: min(parallelism, partitions),
        )

    return SimpleNamespace(stages=[stage(results) for results in taken])


def levels_of(*taken: list[int], partitions: int = 2) -> OperatorLevels:
    return OperatorLevels.of(plan_of(*taken, partitions=partitions), 8)


@pytest.mark.parametrize(
    ("taken", "levels"),
    [
        ([[]], ((0,),)),
        ([[], [0], [1]], ((0,), (1,), (2,))),
        # An operator before the last one runs just before it, and not as soon as it could.
        ([[], [0], [], [1, 2]], ((0,), (1, 2), (3,))),
        ([[], [0], [0, 1], [1, 0, 2]], ((0,), (1,), (2,), (3,))),
    ],
)
def test_an_operator_runs_once_behind_all_whose_results_it_takes(
    taken: list[list[int]], levels: tuple[tuple[int, ...], ...]
) -> None:
    assert levels_of(*taken).levels == levels


@pytest.mark.parametrize("by_id", [True, False])
def test_a_block_comes_to_its_partition_or_passes_through_another(by_id: bool) -> None:
    found = levels_of([], [0], [], [1, 2, 0], partitions=3)
    assert found.first_partitions == (0, 3, 6, 9)
    assert found.partitions_of(1) == [3, 4, 5, 6, 7, 8]
    slots = found.slots(1, 6, by_id)
    reached = [slot if by_id else spark_hash(slot) % 6 for slot in slots]
    assert reached[3:9] == [0, 1, 2, 3, 4, 5]
    assert len(slots) == 12
    assert set(reached[9:]) <= set(range(6))


@pytest.mark.parametrize("by_id", [True, False])
def test_partitions_that_share_tasks_are_neighbours_and_each_task_has_some(by_id: bool) -> None:
    found = levels_of([], [0], [], [1, 2, 0], partitions=4)
    reached = [slot if by_id else spark_hash(slot) % 3 for slot in found.slots(1, 3, by_id)]
    assert reached[4:12] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert set(reached[:4] + reached[12:]) <= set(range(3))


def test_few_events_come_to_few_tasks_and_never_to_more_than_there_are_partitions() -> None:
    packing = PartitionPacking(task_events=100, least_tasks=3)
    assert [packing.tasks(8, events) for events in (0, 300, 301, 799, 10_000)] == [3, 3, 4, 8, 8]
    assert packing.tasks(2, 0) == 2


def test_partitions_of_operators_that_call_functions_have_a_task_each() -> None:
    packing = PartitionPacking(task_events=100, least_tasks=1)
    for calls_functions, tasks in ((False, 1), (True, 8)):
        plan = plan_of([], [0], partitions=8, calls_functions=calls_functions)
        assert OperatorLevels.of(plan, 8).tasks(0, plan, 50, packing) == tasks

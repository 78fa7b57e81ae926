"""OperatorLevels: which operators of a job run in one stage of Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.spark.columnar.operator_levels import OperatorLevels
from flinkcore.spark.exchange.partitioning import spark_hash


def levels_of(*taken: list[int], partitions: int = 2) -> OperatorLevels:
    """Of a job whose operators take the results of these others."""

    def stage(results: list[int]) -> Any:
        return SimpleNamespace(
            takes_rows_anywhere=False,
            results=[(0, SimpleNamespace(stage=each)) for each in results],
            partitions=lambda parallelism: min(parallelism, partitions),
        )

    plan: Any = SimpleNamespace(stages=[stage(results) for results in taken])
    return OperatorLevels.of(plan, 8)


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
    slots = found.slots(1, by_id)
    reached = [slot if by_id else spark_hash(slot) % 6 for slot in slots]
    assert reached[3:9] == [0, 1, 2, 3, 4, 5]
    assert len(slots) == 12
    assert set(reached[9:]) <= set(range(6))

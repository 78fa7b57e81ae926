"""Levels of a job's operators: those that run in one stage of Spark, and the rows of the shuffle before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.spark.exchange.partitioning import partition_slots


@dataclass(frozen=True)
class PartitionPacking:
    """Rule by which Spark tasks run several partitions of operators: where events are few, a task costs more than they.

    Parameters
    ----------
    task_events : int
        Partitions share tasks as long as a task has no more events than this, on average.
    least_tasks : int
        Least number of tasks, as far as there are so many partitions.
    """

    task_events: int = 1 << 16
    least_tasks: int = 32

    def tasks(self, partitions: int, events: int) -> int:
        """Return the number of tasks that run so many partitions, to which so many events come together."""
        return min(partitions, max(self.least_tasks, -(-events // self.task_events)))


PACKED: Final = PartitionPacking()


@dataclass(frozen=True)
class OperatorLevels:
    """The operators of a job by the stages of Spark that run them, each operator once.

    ::

        log ──▶ 1 ──┬─────────▶ 4        level 0   1
                    └──▶ 2 ──▶ 3 ──▶ 4   level 1   2, and blocks from 1 to 4 pass through
        log ───────────▶ 3               level 2   3, and the same blocks
                                         level 3   4

    An operator runs as late as those that take its results allow, so that few blocks pass through a level. Blocks are
    for a partition of the job: its number counts the partitions of all operators, one after the other.

    Attributes
    ----------
    levels : tuple of tuple of int
        Numbers of the operators of each level; the last level has the last operator alone.
    partitions : tuple of int
        Number of partitions of each operator.
    """

    levels: tuple[tuple[int, ...], ...]
    partitions: tuple[int, ...]

    @classmethod
    def of(cls, plan: JobPlan, parallelism: int) -> OperatorLevels:
        """Return the levels of a plan, each of whose operators has at most so many partitions."""
        behind = [0] * len(plan.stages)
        for number, stage in reversed(list(enumerate(plan.stages))):
            for _, results in stage.results:
                behind[results.stage] = max(behind[results.stage], behind[number] + 1)
        levels = (
            tuple(number for number, found in enumerate(behind) if found == wanted)
            for wanted in range(max(behind), -1, -1)
        )
        partitions = (
            parallelism if stage.takes_rows_anywhere else stage.partitions(parallelism)
            for stage in plan.stages
        )
        return cls(tuple(levels), tuple(partitions))

    @property
    def first_partitions(self) -> tuple[int, ...]:
        """For each operator the number of its first partition among those of the job."""
        return tuple(accumulate(self.partitions[:-1], initial=0))

    def partitions_of(self, level: int) -> list[int]:
        """Return the partitions of a level among those of the job."""
        first = self.first_partitions
        return [
            first[number] + partition
            for number in self.levels[level]
            for partition in range(self.partitions[number])
        ]

    def tasks(self, level: int, plan: JobPlan, events: int, packing: PartitionPacking = PACKED) -> int:
        """Return the number of Spark tasks that run the partitions of a level.

        Parameters
        ----------
        level : int
        plan : JobPlan
        events : int
            Events of all logs of the job.
        packing : PartitionPacking
            Rule for operators that call no functions of the user's: of the time that these take nothing is known.
        """
        partitions = len(self.partitions_of(level))
        if any(plan.stages[number].operator.calls_functions for number in self.levels[level]):
            return partitions
        return packing.tasks(partitions, events)

    def slots(self, level: int, tasks: int, by_id: bool) -> tuple[int, ...]:
        """Return for each partition of the job the slot by which a block for it comes to a level.

        Blocks for later levels are spread over the tasks of this one.

        Parameters
        ----------
        level : int
        tasks : int
            Number of tasks that run the partitions of the level.
        by_id : bool
            As of `partition_slots`.
        """
        here: Sequence[int] = self.partitions_of(level)
        slots = partition_slots(tasks, by_id)
        of_tasks = {partition: place * tasks // len(here) for place, partition in enumerate(here)}
        return tuple(
            slots[of_tasks.get(partition, partition % tasks)] for partition in range(sum(self.partitions))
        )

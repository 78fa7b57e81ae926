"""The tasks of one level of a job that runs element by element, as tasks of a Spark stage."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from flinkcore.spark.element_messages import DRIVER, RunRow, merged, read_runs, run_batch
from flinkcore.spark.element_task import ElementTask
from flinkcore.spark.shipped_job import ShippedJob, shipped_job


@dataclass(frozen=True)
class ElementStage:
    """Runs the tasks of a level; what is for tasks of later levels, or for the driver, goes on as it is; picklable.

    Every attempt of a task sends the same messages, as far as the functions of the job are deterministic.

    Attributes
    ----------
    job : bytes
        A pickled `ShippedJob`.
    level : int
    slots : tuple of int
        What stands for each partition of the next level in the shuffle; empty: this is the last one.
    """

    job: bytes
    level: int
    slots: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle for those of this level, whose targets are together and in order."""
        job = shipped_job(self.job)
        here = set(job.levels[self.level])
        partitions = partitions_of(job, self.level + 1)
        for target, rows in groupby(read_runs(batches), key=lambda row: row.target):
            for sent in _runs(job, target, rows) if target in here else ([row] for row in rows):
                if sent:
                    yield run_batch(sent, [self._slot(row.target, partitions) for row in sent])

    def _slot(self, target: int, partitions: dict[int, int]) -> int:
        if not self.slots:
            return 0
        return self.slots[partitions.get(target, target - DRIVER) % len(self.slots)]


def partitions_of(job: ShippedJob, level: int) -> dict[int, int]:
    """Return the partition of each task of a level; there is no level behind the last one."""
    tasks = job.levels[level] if level < len(job.levels) else []
    return {task: partition for partition, task in enumerate(tasks)}


def _runs(job: ShippedJob, target: int, rows: Iterator[RunRow]) -> Iterator[list[RunRow]]:
    task = ElementTask(job, target)
    if task.is_source:
        (row,) = rows
        return task.read(pickle.loads(row.payload))
    return task.receive(merged(rows))

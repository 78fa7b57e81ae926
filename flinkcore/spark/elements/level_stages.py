"""The tasks of one level of a job of single elements, as tasks of a Spark stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa

from flinkcore.spark.elements.element_task import ElementTask, last_arrival_of
from flinkcore.spark.elements.messages import RunRow, merged, pieces, read_runs, run_batch
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.shipping.tasks import unpickled


@dataclass(frozen=True)
class ElementStage:
    """Runs the tasks of a level, and passes on messages to later levels and to the driver; picklable.

    Every attempt of a task sends the same messages if the functions of the job are deterministic.

    Attributes
    ----------
    job : bytes
        A pickled `ShippedJob`.
    level : int
    slots : tuple of int
        For each partition of the next level, its slot in the shuffle; empty for the last level.
    checkpoints : bytes or None
        A pickled `TaskCheckpoints`, or None if the job has none.
    """

    job: bytes
    level: int
    slots: tuple[int, ...]
    checkpoints: bytes | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the next shuffle for those of this level, which are ordered by target and key."""
        job = shipped_job(self.job)
        here = set(job.levels[self.level])
        following = following_partitions(job, self.level)
        for target, rows in groupby(read_runs(batches), key=lambda row: row.target):
            if target in here:
                yield from self._sent(self._task(job, target).receive(merged(rows)), following)
            else:
                yield from self._sent(([row] for row in rows), following)

    def _task(self, job: ShippedJob, number: int) -> ElementTask:
        return ElementTask(job, number, None if self.checkpoints is None else unpickled(self.checkpoints))

    def _sent(self, all_rows: Iterable[list[RunRow]], following: dict[int, int]) -> Iterator[pa.RecordBatch]:
        for rows in all_rows:
            for some in pieces(rows):
                yield run_batch(some, [self._slot(row.target, following) for row in some])

    def _slot(self, target: int, following: dict[int, int]) -> int:
        if not self.slots:
            return 0
        return self.slots[following.get(target, target) % len(self.slots)]


@dataclass(frozen=True)
class SourceStage(ElementStage):
    """Runs the tasks that read sources; picklable.

    Attributes
    ----------
    sources : dict of int to bytes
        For each task a pickled `TaskSource`.
    last_arrivals : dict of int to int or None
        Arrival of each task's last element, or None without elements, if the job stops with a checkpoint.
    """

    sources: dict[int, bytes]
    last_arrivals: dict[int, int | None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the shuffle for the batches' numbers of source tasks."""
        job = shipped_job(self.job)
        following = following_partitions(job, self.level)
        tasks = list(self.sources)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = tasks[number]
                source = unpickled(self.sources[task])
                read = self._task(job, task).read(source, self.last_arrivals.get(task))
                yield from self._sent(read, following)


LAST_ARRIVALS: Final = RowFormat("task int, last_arrival_ms long")
"""Arrival of the last element of a source, by the task that reads it; null without elements."""


@dataclass(frozen=True)
class LastArrivalsStage:
    """Reads sources to their ends, to know when these are; picklable.

    Attributes
    ----------
    job : bytes
        A pickled `ShippedJob`.
    sources : dict of int to bytes
        For each task a pickled `TaskSource`.
    """

    job: bytes
    sources: dict[int, bytes]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each of the batches' numbers of source tasks."""
        job = shipped_job(self.job)
        tasks = list(self.sources)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = tasks[number]
                yield LAST_ARRIVALS.row(task, last_arrival_of(job, task, unpickled(self.sources[task])))


def following_partitions(job: ShippedJob, level: int) -> dict[int, int]:
    """Return the partition of each task of the next level; empty for the last level."""
    tasks = job.levels[level + 1] if level + 1 < len(job.levels) else []
    return {task: partition for partition, task in enumerate(tasks)}

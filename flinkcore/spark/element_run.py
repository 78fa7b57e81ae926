"""Jobs that run element by element, on Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pyspark import cloudpickle

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.datastream.element_job import ElementJob
from flinkcore.errors import FlinkcoreError
from flinkcore.replay.elements.element_run import commit
from flinkcore.replay.elements.job_sources import JobSources
from flinkcore.runtime.task_metrics import values_of_tasks
from flinkcore.runtime.tasks.job_vertex import job_vertices
from flinkcore.runtime.tasks.stream_graph import StreamGraphGenerator, StreamNode
from flinkcore.spark.element_messages import DRIVER, RUNS_ORDER, RUNS_SCHEMA, RunRow, merged
from flinkcore.spark.element_stage import ElementStage, partitions_of
from flinkcore.spark.element_task import ToDriver
from flinkcore.spark.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.shipped_job import ShippedJob
from flinkcore.spark.shipping import portable
from flinkcore.spark.task_errors import told_plainly


class SparkElementRun:
    """A run of a job on Spark, whose tasks give what they give embedded.

    Each task of the job is a task of Spark's, behind an exchange of what the tasks before it send. Messages have the
    place that they have in the one thread of the embedded run, and every task takes them in that order.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    job : ElementJob
    configuration : ExecutionConfig

    Raises
    ------
    ConfigurationError
        If the job has no meaning.
    SchemaError, SourceError, DataError
        If an event log cannot be read.
    UserCodeError
        If a function cannot be sent to workers.
    """

    def __init__(self, spark: Any, job: ElementJob, configuration: ExecutionConfig) -> None:
        self._spark = spark
        self._started_ns = time.monotonic_ns()
        vertices = job_vertices(StreamGraphGenerator(job, configuration).generate())
        self._sources = JobSources(vertices, configuration)
        self._job = ShippedJob(job, configuration, self._sources.start_ms)
        self._pickled = self._job.pickled()
        self._metrics: dict[str, Any] = {}
        self._elements = self._run()

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; at their end sinks are committed."""
        return self._elements

    def run_to_end(self) -> JobExecutionResult:
        """Run what is left of the job; its collected elements are dropped."""
        for _ in self._elements:
            pass
        runtime_ms = (time.monotonic_ns() - self._started_ns) // 1_000_000
        return JobExecutionResult(runtime_ms, self._job.job.name, self._metrics)

    def close(self) -> None:
        """Leave what has not been taken, and commit nothing; may be called again."""
        self._elements.close()  # type: ignore[attr-defined]

    def _run(self) -> Iterator[Any]:
        with told_plainly():
            rows = self._dataframe().collect()
        runs = [
            RunRow(row.target, bytes(row.first_key), bytes(row.payload))
            for row in rows
            if row.target == DRIVER
        ]
        del rows
        runs.sort(key=lambda run: run.first_key)
        done: dict[int, Any] = {}
        for _, kind, value, _ in merged(iter(runs)):
            if kind == ToDriver.COLLECTED:
                yield value
            elif kind == ToDriver.PRINTED:
                print(value)
            else:
                number, *told = value
                done[number] = told
        self._end(done)

    def _end(self, done: dict[int, Any]) -> None:
        tasks = sum(map(len, self._job.levels))
        if len(done) != tasks:
            raise FlinkcoreError(
                f"{len(done)} of {tasks} tasks came back from Spark; this is a defect of flinkcore, the result must "
                "not be used"
            )
        in_order = [done[number] for number in range(tasks)]
        self._metrics = values_of_tasks(metrics for _, metrics in in_order)
        prepared: dict[StreamNode, list[Any]] = {}
        for committables, _ in in_order:
            for number, given in committables:
                prepared.setdefault(self._job.nodes[number], []).extend(given)
        commit(prepared)

    def _dataframe(self) -> Any:
        """What the tasks send to the driver, as a DataFrame."""
        runs = self._source_rows
        for level, tasks in enumerate(self._job.levels):
            runs = to_partitions(runs, len(tasks), "slot")
            if level:
                runs = runs.sortWithinPartitions(*RUNS_ORDER)
            slots = self._slots(level + 1) if level + 1 < len(self._job.levels) else ()
            stage = ElementStage(self._pickled, level, tuple(slots))
            runs = runs.mapInArrow(portable(self._spark, stage), RUNS_SCHEMA)
        return runs

    def _slots(self, level: int) -> list[int]:
        partitions = len(self._job.levels[level])
        return list(partition_slots(partitions, chooses_partitions(self._spark.range(0))))

    @cached_property
    def _source_rows(self) -> Any:
        """What each task of a source reads, as rows of the shuffle."""
        slots, partitions = self._slots(0), partitions_of(self._job, 0)
        rows = [
            (slots[partitions[task]], task, b"", cloudpickle.dumps(source))
            for task, source in self._sources.of_tasks().items()
        ]
        return self._spark.createDataFrame(rows, RUNS_SCHEMA)

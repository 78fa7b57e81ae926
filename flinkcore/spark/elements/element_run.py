"""A run of a job of single elements on Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final

from pyspark import cloudpickle

from flinkcore.checkpoint import PendingCheckpoint
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.graph.element_transformations import SinkTransformation
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings, ElementJob
from flinkcore.elements.arrivals.task_sources import TaskFunction, TaskSource, TaskSplits
from flinkcore.elements.element_checkpoint import ElementCheckpoints
from flinkcore.elements.element_run import commit, discard
from flinkcore.elements.started_job import StartedJob
from flinkcore.elements.tasks.operator_makers import check_operators
from flinkcore.elements.tasks.stream_graph import StreamGraphGenerator, StreamNode, job_vertices
from flinkcore.errors import InternalError
from flinkcore.operators.late_records import LateRecords, late_records_by_operator
from flinkcore.operators.metrics.task_metrics import TaskMetric, values_of_tasks
from flinkcore.spark.elements.element_task import PRINTED, TaskReport, last_arrival_of
from flinkcore.spark.elements.job_sources import Execute, SparkJobSources
from flinkcore.spark.elements.level_stages import (
    LAST_ARRIVALS,
    ElementStage,
    LastArrivalsStage,
    SourceStage,
)
from flinkcore.spark.elements.messages import PROGRAM, RUNS, RUNS_ORDER, RunRow, merged
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job
from flinkcore.spark.elements.shipped_sources import ShippedSources
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.sessions.spark_jobs import SparkJobs
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

_TOLD_BY_TASKS: Final = TaskSplits, TaskFunction
"""Sources whose end is known only after reading them."""


class SparkElementRun(StartedJob):
    """A run of a job on Spark, with the results of an embedded run.

    Each task of the job is a Spark task, after a shuffle of the messages from the tasks before it. The key of a
    message is its place in the order in which the single thread of an embedded run would process it, and every task
    processes its messages in that order. When all tasks have ended, what the program collects comes to the driver some
    of it at a time, and at its end sinks are committed.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    job : ElementJob
    configuration : ExecutionConfig
    execute : callable
        Plans a columnar job on Spark, and returns its result.
    checkpoints : CheckpointSettings
        Checkpoint from which the job resumes, and the one with which it stops.

    Raises
    ------
    ConfigurationError
        If the job is not valid, or something in it has no checkpoints, and it takes one.
    SchemaError, SourceError, DataError
        If an event log cannot be read.
    UserCodeError
        If a function cannot be pickled. Elements that cannot be pickled are found when the job runs.
    """

    def __init__(
        self,
        spark: Any,
        job: ElementJob,
        configuration: ExecutionConfig,
        execute: Execute,
        checkpoints: CheckpointSettings = NO_CHECKPOINTS,
    ) -> None:
        super().__init__(job.name, configuration)
        self._spark = spark
        vertices = job_vertices(StreamGraphGenerator(job, configuration).generate())
        self._checkpoints: ElementCheckpoints | None = None
        if checkpoints != NO_CHECKPOINTS:
            self._checkpoints = ElementCheckpoints(vertices, job, configuration, checkpoints)
        self._sources = SparkJobSources(
            vertices, configuration, job.time_characteristic, execute, self._checkpoints
        )
        self._job = ShippedJob(job, configuration, self._sources.start_ms)
        check_operators(self._job.nodes, configuration)
        self._pickled = self._job.pickled()
        self._metric_values: dict[str, Any] = {}
        self._late: dict[StreamNode, LateRecords] = {}

    def _late_records(self) -> Mapping[StreamNode, LateRecords]:
        return self._late

    def _metrics(self) -> dict[str, Any]:
        return self._metric_values

    def _run(self) -> Generator[Any, None, None]:
        checkpoints = self._checkpoints
        if checkpoints is None:
            yield from self._results(None)
            return
        checkpoints.commit_prepared()
        if not checkpoints.stops:
            yield from self._results(None)
            return
        with checkpoints.begin() as pending:
            yield from self._results(pending)

    def _results(self, pending: PendingCheckpoint | None) -> Generator[Any, None, None]:
        jobs = SparkJobs(self._spark)
        try:
            prepared = yield from self._prepared(jobs, pending)
        except BaseException as failure:
            if pending is None or not pending.may_be_complete():
                if not isinstance(failure, KeyboardInterrupt):
                    jobs.wait_for_tasks()
                self._clean_up()
            raise
        commit(prepared)
        self._clean_up()

    def _clean_up(self) -> None:
        for node in self._job.nodes:
            step = node.transformation
            if isinstance(step, SinkTransformation) and isinstance(step.sink, Sink):
                with suppress(Exception):
                    step.sink.clean_up(self._job.run_id)

    def _prepared(
        self, jobs: SparkJobs, pending: PendingCheckpoint | None
    ) -> Generator[Any, None, dict[StreamNode, list[Any]]]:
        """Yield what the program collects, and return what sinks have prepared to commit."""
        of_tasks = self._sources.of_tasks()
        sources = ShippedSources.of(of_tasks)
        with sources.shows_unread_elements(), jobs.described(f"{self._job.job.name}"):
            ends = {} if pending is None else self._last_arrivals(of_tasks, sources.pickled)
            stop = None if pending is None else self._last_element(of_tasks, ends)
            checkpoints = self._shipped_checkpoints(pending, stop)
            rows = collected_in_parts(self._dataframe(sources.pickled, ends, checkpoints), *RUNS_ORDER)
            first = next(rows, None)
        del sources
        with closing(rows), jobs.cancelled_on_interrupt():
            found = rows if first is None else chain([first], rows)
            runs = (RunRow(row.target, bytes(row.first_key), bytes(row.payload)) for row in found)
            return (yield from self._emitted(runs, pending, stop))

    def _last_arrivals(
        self, sources: Mapping[int, TaskSource], pickled: Mapping[int, bytes]
    ) -> dict[int, int | None]:
        """Return the arrival of each source's last element, or None, by the task that reads it.

        Tasks of a Spark job read those of which the driver does not know it: it is when the job stops, and every task
        must know that before it ends.
        """
        job = shipped_job(self._pickled)
        unknown = {task: pickled[task] for task, each in sources.items() if isinstance(each, _TOLD_BY_TASKS)}
        ends = {
            task: last_arrival_of(job, task, each) for task, each in sources.items() if task not in unknown
        }
        if unknown:
            rows = self._spark.range(0, len(unknown), 1, len(unknown))
            stage = LastArrivalsStage(self._pickled, unknown)
            with task_errors_raised():
                told = rows.mapInArrow(portable(self._spark, stage), LAST_ARRIVALS.struct_type).collect()
            ends |= {row.task: row.last_arrival_ms for row in told}
        return ends

    def _last_element(
        self, sources: Mapping[int, TaskSource], ends: Mapping[int, int | None]
    ) -> tuple[int, int]:
        """Return the arrival and origin of the last element of all sources, with which the job stops."""
        assert self._checkpoints is not None
        clock = self._checkpoints.clock
        last = (self._sources.start_ms, -1) if clock is None else (clock.now_ms, clock.last_origin)
        found = [(last_ms, sources[task].origin) for task, last_ms in ends.items() if last_ms is not None]
        return max([last, *found])

    def _shipped_checkpoints(
        self, pending: PendingCheckpoint | None, stop: tuple[int, int] | None
    ) -> bytes | None:
        if self._checkpoints is None:
            return None
        of_tasks = self._checkpoints.of_tasks(pending, stop)
        pickled: bytes = cloudpickle.dumps(of_tasks)
        return pickled

    def _emitted(
        self, runs: Iterator[RunRow], pending: PendingCheckpoint | None, stop: tuple[int, int] | None
    ) -> Generator[Any, None, dict[StreamNode, list[Any]]]:
        """Yield what the program collects, which comes after the reports; return what these have prepared."""
        reports: list[TaskReport] = []
        for_program: Iterator[RunRow] = iter(())
        for target, of_target in groupby(runs, key=attrgetter("target")):
            if target == PROGRAM:
                for_program = of_target
                break
            reports += [report for run in of_target for _, _, report, _ in run.messages()]
        reports = self._complete(reports)
        prepared: dict[StreamNode, list[Any]] = {}
        for report in reports:
            for number, given in report.committables:
                prepared.setdefault(self._job.nodes[number], []).extend(given)
        try:
            self._metric_values = values_of_tasks(self._metrics_of(reports))
            self._late = late_records_by_operator(
                (self._job.nodes[number], late) for report in reports for number, late in report.late_records
            )
            for _, kind, value, _ in merged(for_program):
                if kind == PRINTED:
                    print(value)
                else:
                    yield value
            if pending is not None and stop is not None and self._checkpoints is not None:
                parts = [part for report in reports for part in report.parts]
                self._checkpoints.complete(pending, parts, (self._sources.start_ms, *stop))
        except BaseException:
            # Once the checkpoint is complete, the next run commits what this one cannot.
            if pending is None or not pending.may_be_complete():
                discard(prepared)
            raise
        return prepared

    def _complete(self, reports: list[TaskReport]) -> list[TaskReport]:
        """Return the reports of all tasks, in the order of the tasks."""
        tasks = sorted(number for level in self._job.levels for number in level)
        if sorted(report.task for report in reports) != tasks:
            raise InternalError(f"{len(reports)} of {len(tasks)} tasks came back from Spark")
        return sorted(reports, key=attrgetter("task"))

    def _metrics_of(self, reports: list[TaskReport]) -> Iterator[dict[str, TaskMetric]]:
        """Metrics of the tasks, in the order in which an embedded run opens them."""
        by_task = {report.task: report.metrics for report in reports}
        for vertex in reversed(self._job.vertices):
            yield from (by_task[task] for task in vertex.tasks if task in by_task)

    def _dataframe(
        self, sources: dict[int, bytes], ends: dict[int, int | None], checkpoints: bytes | None
    ) -> Any:
        """Return a DataFrame of the messages to the driver."""
        rows = self._spark.range(0, len(sources), 1, len(sources))
        runs = self._stage(rows, SourceStage(self._pickled, 0, self._slots(1), checkpoints, sources, ends))
        for level, tasks in list(enumerate(self._job.levels))[1:]:
            ordered = to_partitions(runs, len(tasks), "slot").sortWithinPartitions(*RUNS_ORDER)
            runs = self._stage(
                ordered, ElementStage(self._pickled, level, self._slots(level + 1), checkpoints)
            )
        # If an executor is lost, tasks are done again and may send other bytes (names of a sink's files): Spark then
        # does all over again what has read them, but not a last stage of which the driver has got some partitions.
        return to_partitions(runs, 1, "slot").sortWithinPartitions(*RUNS_ORDER)

    def _stage(self, dataframe: Any, stage: ElementStage) -> Any:
        return dataframe.mapInArrow(portable(self._spark, stage), RUNS.struct_type)

    def _slots(self, level: int) -> tuple[int, ...]:
        if level == len(self._job.levels):
            return ()
        partitions = len(self._job.levels[level])
        return tuple(partition_slots(partitions, chooses_partitions(self._spark.range(1))))

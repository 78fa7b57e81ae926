"""Jobs of single elements whose tasks only exchange messages, each for itself, as on Spark, but in this process."""

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.checkpoint import OperatorPart
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings, ElementJob
from flinkcore.elements.element_checkpoint import ElementCheckpoints, TaskCheckpoints
from flinkcore.elements.job_sources import JobSources
from flinkcore.elements.tasks.stream_graph import StreamGraphGenerator, job_vertices
from flinkcore.spark.elements.element_task import ElementTask, last_arrival_of
from flinkcore.spark.elements.messages import PROGRAM, REPORTS, RunRow, merged
from flinkcore.spark.elements.shipped_job import ShippedJob, shipped_job


def collected_by_messages(
    stream: DataStream, env: StreamExecutionEnvironment, settings: CheckpointSettings = NO_CHECKPOINTS
) -> list[Any]:
    """Run every task of a job for itself, and merge what they send to the program."""
    configuration = env.get_config()
    job = ElementJob("job", (), stream._transformation, env.get_stream_time_characteristic())
    vertices = job_vertices(StreamGraphGenerator(job, configuration).generate())
    checkpoints = None
    if settings != NO_CHECKPOINTS:
        checkpoints = ElementCheckpoints(vertices, job, configuration, settings)
    time_characteristic = job.time_characteristic
    sources = JobSources(vertices, configuration, time_characteristic, WorkingDirectory(), checkpoints)
    shipped = shipped_job(ShippedJob(job, configuration, sources.start_ms).pickled())
    if checkpoints is None:
        return _collected(_sent(shipped, sources.of_tasks(), None))
    if not checkpoints.stops:
        return _collected(_sent(shipped, sources.of_tasks(), checkpoints.of_tasks()))
    of_tasks = sources.of_tasks()
    clock = checkpoints.clock
    before = (sources.start_ms, -1) if clock is None else (clock.now_ms, clock.last_origin)
    ends = {task: last_arrival_of(shipped, task, source) for task, source in of_tasks.items()}
    stop = max([before, *((end, of_tasks[task].origin) for task, end in ends.items() if end is not None)])
    with checkpoints.begin() as pending:
        rows = _sent(shipped, of_tasks, checkpoints.of_tasks(pending, stop), ends)
        parts: list[OperatorPart] = []
        for row in rows:
            if row.target == REPORTS:
                parts += [part for _, _, report, _ in row.messages() for part in report.parts]
        checkpoints.complete(pending, parts, (sources.start_ms, *stop))
    return _collected(rows)


def _sent(
    job: ShippedJob,
    sources: Any,
    checkpoints: TaskCheckpoints | None,
    ends: dict[int, int | None] | None = None,
) -> list[RunRow]:
    rows: list[RunRow] = []
    for level in job.levels:
        sent = []
        for task in level:
            given_rows = sorted(
                (row for row in rows if row.target == task), key=lambda row: (row.first_key, row.payload)
            )
            if task not in sources and not given_rows:
                continue  # as a stage on Spark, which knows tasks by their messages
            running = ElementTask(job, task, pickle.loads(cloudpickle.dumps(checkpoints)))
            runs = (
                running.read(sources[task], (ends or {}).get(task))
                if task in sources
                else running.receive(merged(iter(given_rows)))
            )
            sent += [row for some in runs for row in some]
        rows += sent
    return rows


def _collected(rows: list[RunRow]) -> list[Any]:
    for_program = sorted((row for row in rows if row.target == PROGRAM), key=lambda row: row.first_key)
    return [value for _, _, value, _ in merged(iter(for_program))]

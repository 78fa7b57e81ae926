"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from flinkcore.replay.log.chunks import Chunk
from flinkcore.replay.log.log_sources import TableSource
from flinkcore.replay.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.replay.time_plane.time_cut import TimeCut
from flinkcore.replay.time_plane.time_pass import TimePass, combine_logs, time_passes
from flinkcore.replay.time_plane.timeline import TimePlane
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.logs.fingerprint import Fingerprint
from flinkcore.spark.logs.log_input import DataFrameChunk, DataFrameInput, FileInput, LogInput, partition_new
from flinkcore.spark.logs.spark_log import SparkLog
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

ONE_JOB_BYTES = 512 << 20
"""Up to this size of the log all summaries come with the job that makes them, which saves the driver a second one."""

_SUMMARIES = RowFormat("chunk long, payload binary, fingerprint string")


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            yield _SUMMARIES.row(chunk.index, self.time_pass.count(chunk).to_ipc(), None)


@dataclass(frozen=True)
class SummariseTask:
    """Summarises the times of the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput
    bases: dict[int, dict[object, int]] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            if self.bases is not None and chunk.index not in self.bases:
                raise partition_new(chunk.index, len(self.bases))
            times = self.time_pass.summarise(chunk, self.bases)
            fingerprint = chunk.fingerprint if isinstance(chunk, DataFrameChunk) else None
            told = json.dumps(asdict(fingerprint)) if fingerprint else None
            yield _SUMMARIES.row(chunk.index, times.to_ipc(), told)


def run_time_passes(
    spark: Any, logs: Sequence[SparkLog], cuts: Sequence[TimeCut] = (), stops: bool = False
) -> list[tuple[TimePlane, SparkLog]]:
    """Run the first pass.

    Parameters
    ----------
    spark
        The session.
    logs
        All logs of the job.
    cuts
        Where each log goes on from a checkpoint; none: from the start.
    stops
        Whether the job stops with a checkpoint.

    Returns
    -------
    list of tuple
        The time plane of each log, and the log as the second pass reads it: with the fingerprint of each chunk that has
        one. A DataFrame that Spark runs no task for, as it has no rows, is a chunk without rows from then on, and
        the second pass checks that it still has none.
    """
    passes = time_passes([log.plan for log in logs], cuts, stops)
    fingerprints: list[dict[int, Fingerprint]] = [{} for _ in logs]
    with ExitStack() as reading:
        times = [
            reading.enter_context(closing(_summaries(spark, time_pass, log, found)))
            for time_pass, log, found in zip(passes, logs, fingerprints, strict=True)
        ]
        time_planes = combine_logs(passes, times)
    second = [_in_second_pass(spark, log, found) for log, found in zip(logs, fingerprints, strict=True)]
    return list(zip(time_planes, second, strict=True))


def _in_second_pass(spark: Any, log: SparkLog, fingerprints: dict[int, Fingerprint]) -> SparkLog:
    if not isinstance(log.checked, DataFrameInput):
        return log
    if fingerprints:
        return replace(log, log=replace(log.checked, fingerprints=fingerprints))
    no_rows = FileInput((_chunk_without_rows(log),))
    return replace(log, log=no_rows, dataframe=no_rows.dataframe(spark), without_rows=log.read_dataframe)


def _chunk_without_rows(log: SparkLog) -> Chunk:
    (chunk,) = TableSource(log.plan.log.schema.empty_table()).chunks(1)
    return chunk


def _summaries(
    spark: Any, time_pass: TimePass, log: SparkLog, fingerprints: dict[int, Fingerprint]
) -> Generator[ChunkTimes, None, None]:
    """Summaries of all chunks of a log; notes their fingerprints."""

    def run(task: Any) -> Any:
        return log.read_dataframe.mapInArrow(portable(spark, task), _SUMMARIES.ddl)

    log_input = log.checked
    bases = None
    if time_pass.rate is not None:
        counts = _known_counts(time_pass, log_input)
        if counts is None:
            with task_errors_raised():
                counted = run(CountTask(time_pass, log_input)).collect()
            counts = [ChunkCounts.from_ipc(bytes(row.payload)) for row in counted]
        bases = time_pass.position_bases(counts)
    summarised = run(SummariseTask(time_pass, log_input, bases))
    is_small = log_input.size_bytes is not None and log_input.size_bytes <= ONE_JOB_BYTES
    with closing(
        _rows_of_one_job(summarised) if is_small else collected_in_parts(summarised, "chunk")
    ) as rows:
        for row in rows:
            if row.fingerprint is not None:
                fingerprints[row.chunk] = Fingerprint(**json.loads(row.fingerprint))
            yield ChunkTimes.from_ipc(bytes(row.payload))
    if isinstance(log_input, DataFrameInput) and not fingerprints:
        yield time_pass.summarise(_chunk_without_rows(log), None if bases is None else {0: {}})


def _known_counts(time_pass: TimePass, log: LogInput) -> list[ChunkCounts] | None:
    """Rows of each split of all chunks, where the driver knows them without a job."""
    if not isinstance(log, FileInput):
        return None
    counts = [time_pass.known_counts(chunk) for chunk in log.all_chunks]
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def _rows_of_one_job(summaries: Any) -> Generator[Any, None, None]:
    with task_errors_raised():
        rows = summaries.collect()
    yield from rows

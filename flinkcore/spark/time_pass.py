"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from flinkcore.replay.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.replay.time_pass import TimePass
from flinkcore.replay.timeline import TimePlane
from flinkcore.spark.gradual_rows import rows_by_and_by
from flinkcore.spark.log_input import DataFrameChunk, FileInput, Fingerprint, LogInput, partition_new
from flinkcore.spark.shipping import portable
from flinkcore.spark.task_errors import told_plainly

ONE_JOB_BYTES = 512 << 20
"""Up to this size of the log all summaries come with the job that makes them, which saves the driver a second one."""

_SUMMARY_SCHEMA = "chunk long, payload binary, fingerprint string"


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            yield _summary(chunk.index, self.time_pass.count(chunk).to_ipc(), None)


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
            yield _summary(chunk.index, times.to_ipc(), told)


def _summary(chunk: int, payload: bytes, fingerprint: str | None) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "chunk": pa.array([chunk], pa.int64()),
            "payload": pa.array([payload], pa.binary()),
            "fingerprint": pa.array([fingerprint], pa.string()),
        }
    )


def run_time_pass(
    spark: Any, time_pass: TimePass, log: LogInput, dataframe: Any
) -> tuple[TimePlane, dict[int, Fingerprint]]:
    """Run the first pass.

    Parameters
    ----------
    spark
        The session.
    time_pass
        What is done with a chunk.
    log
        Chunks of each task.
    dataframe
        A row per task, or the rows themselves; see `LogInput`.

    Returns
    -------
    tuple
        The time plane, and the fingerprint of each chunk that has one.
    """

    def run(task: Any) -> Any:
        return dataframe.mapInArrow(portable(spark, task), _SUMMARY_SCHEMA)

    bases = None
    if time_pass.rate is not None:
        counts = _known_counts(time_pass, log)
        if counts is None:
            with told_plainly():
                counted = run(CountTask(time_pass, log)).collect()
            counts = [ChunkCounts.from_ipc(bytes(row.payload)) for row in counted]
        bases = time_pass.position_bases(counts)
    fingerprints: dict[int, Fingerprint] = {}

    def summaries(rows: Iterator[Any]) -> Iterator[ChunkTimes]:
        for row in rows:
            if row.fingerprint is not None:
                fingerprints[row.chunk] = Fingerprint(**json.loads(row.fingerprint))
            yield ChunkTimes.from_ipc(bytes(row.payload))

    summarised = run(SummariseTask(time_pass, log, bases))
    is_small = log.size_bytes is not None and log.size_bytes <= ONE_JOB_BYTES
    with closing(_rows_of_one_job(summarised) if is_small else rows_by_and_by(summarised, "chunk")) as rows:
        return time_pass.combine(summaries(rows)), fingerprints


def _known_counts(time_pass: TimePass, log: LogInput) -> list[ChunkCounts] | None:
    """Rows of each split of all chunks, where the driver knows them without a job."""
    if not isinstance(log, FileInput):
        return None
    counts = [time_pass.known_counts(chunk) for chunk in log.all_chunks]
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def _rows_of_one_job(summaries: Any) -> Generator[Any, None, None]:
    with told_plainly():
        rows = summaries.collect()
    yield from rows

"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from flinkcore.replay.chunk_times import ChunkCounts, ChunkTimes, position_bases
from flinkcore.replay.time_pass import TimePass
from flinkcore.replay.timeline import TimePlane
from flinkcore.spark.log_input import DataFrameChunk, Fingerprint, LogInput
from flinkcore.spark.shipping import portable
from flinkcore.spark.task_errors import told_plainly

_SUMMARY_SCHEMA = "payload binary, fingerprint string"


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            counts = self.time_pass.known_counts(chunk) or self.time_pass.count(chunk)
            yield _summary(counts.to_ipc(), None)


@dataclass(frozen=True)
class SummariseTask:
    """Summarises the times of the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput
    bases: dict[int, dict[object, int]] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            times = self.time_pass.summarise(chunk, self.bases)
            fingerprint = chunk.fingerprint if isinstance(chunk, DataFrameChunk) else None
            yield _summary(times.to_ipc(), json.dumps(asdict(fingerprint)) if fingerprint else None)


def _summary(payload: bytes, fingerprint: str | None) -> pa.RecordBatch:
    return pa.record_batch(
        {"payload": pa.array([payload], pa.binary()), "fingerprint": pa.array([fingerprint], pa.string())}
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

    def run(task: Any) -> list[Any]:
        with told_plainly():
            rows: list[Any] = dataframe.mapInArrow(portable(spark, task), _SUMMARY_SCHEMA).collect()
        return rows

    bases = None
    if time_pass.rate is not None:
        counted = [ChunkCounts.from_ipc(bytes(row.payload)) for row in run(CountTask(time_pass, log))]
        bases = position_bases(counted)
    rows = run(SummariseTask(time_pass, log, bases))
    times = [ChunkTimes.from_ipc(bytes(row.payload)) for row in rows]
    fingerprints = {
        summary.index: Fingerprint(**json.loads(row.fingerprint))
        for summary, row in zip(times, rows, strict=True)
        if row.fingerprint is not None
    }
    return time_pass.combine(times), fingerprints

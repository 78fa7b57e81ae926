"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.replay.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.replay.time_plane.time_cut import TimeCut
from flinkcore.replay.time_plane.time_pass import TimePass, combine_logs, time_passes
from flinkcore.replay.time_plane.timeline import TimePlane
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.logs.dataframe_log import DataFrameLog
from flinkcore.spark.logs.log_input import FileInput, LogInput
from flinkcore.spark.logs.spark_log import SparkLog, UnreadDataFrame
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable

_SUMMARIES = RowFormat("chunk long, payload binary")


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            yield _SUMMARIES.row(chunk.index, self.time_pass.count(chunk).to_ipc())


@dataclass(frozen=True)
class SummariseTask:
    """Summarises the times of the task's chunks; picklable."""

    time_pass: TimePass
    log: LogInput
    bases: dict[int, dict[object, int]] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row per chunk."""
        for chunk in self.log.chunks(batches):
            yield _SUMMARIES.row(chunk.index, self.time_pass.summarise(chunk, self.bases).to_ipc())


def run_time_passes(
    spark: Any, logs: Sequence[SparkLog | UnreadDataFrame], cuts: Sequence[TimeCut] = (), stops: bool = False
) -> list[tuple[TimePlane, SparkLog]]:
    """Run the first pass.

    Parameters
    ----------
    spark
        The session.
    logs
        All logs of the job.
    cuts
        Where each log is resumed from a checkpoint; none: from its start.
    stops
        Whether the job stops with a checkpoint.

    Returns
    -------
    list of tuple
        The time plane of each log, and the log as the second pass reads it: of a DataFrame what Spark keeps.
    """
    passes = time_passes([log.plan for log in logs], cuts, stops)
    read: list[SparkLog] = []
    evaluated: list[tuple[DataFrameLog, SparkLog]] = []
    with ExitStack() as reading:
        times = []
        for log, time_pass in zip(logs, passes, strict=True):
            told: Iterator[bytes] | None = None
            if isinstance(log, UnreadDataFrame):
                data = log.data
                known = next((each for given, each in evaluated if data.has_rows_of(given)), None)
                if known is not None:
                    log = known.on_another_way(log.plan)
                else:
                    ways = [each.plan for each in logs if _is_of(each, data)]
                    log, told = log.kept(spark, time_pass, ways)
                    evaluated.append((data, log))
            read.append(log)
            times.append(reading.enter_context(closing(_summaries(spark, time_pass, log, told))))
        time_planes = combine_logs(passes, times)
    return list(zip(time_planes, read, strict=True))


def _is_of(log: SparkLog | UnreadDataFrame, data: DataFrameLog) -> bool:
    return isinstance(log, UnreadDataFrame) and log.data.has_rows_of(data)


def _summaries(
    spark: Any, time_pass: TimePass, log: SparkLog, told: Iterator[bytes] | None
) -> Generator[ChunkTimes, None, None]:
    """Summaries of all chunks of a log, of which a DataFrame has already told times or counts."""

    def run(task: Any) -> Any:
        return log.dataframe.mapInArrow(portable(spark, task), _SUMMARIES.ddl)

    if told is not None and time_pass.rate is None:
        yield from map(ChunkTimes.from_ipc, told)
        return
    bases = None
    if time_pass.rate is not None:
        counts = _known_counts(time_pass, log.log) if told is None else list(map(ChunkCounts.from_ipc, told))
        if counts is None:
            with task_errors_raised():
                counted = run(CountTask(time_pass, log.log)).collect()
            counts = [ChunkCounts.from_ipc(bytes(row.payload)) for row in counted]
        bases = time_pass.position_bases(counts)
    summarised = run(SummariseTask(time_pass, log.log, bases))
    with closing(
        _rows_of_one_job(summarised) if log.is_short else collected_in_parts(summarised, "chunk")
    ) as rows:
        for row in rows:
            yield ChunkTimes.from_ipc(bytes(row.payload))


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

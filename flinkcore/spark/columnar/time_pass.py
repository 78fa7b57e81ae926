"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.columnar.task_summaries import CollectedRows, TaskSummaries
from flinkcore.spark.exchange.collecting import KeptPayloads
from flinkcore.spark.exchange.summary_rows import (
    SUMMARIES,
    SUMMARIES_ORDER,
    TIMES,
    packed_block,
    summary_rows,
    times_row,
)
from flinkcore.spark.logs.dataframe_log import DataFrameLog
from flinkcore.spark.logs.log_input import ChunkSource, FileInput, LogInput, TaskInput
from flinkcore.spark.logs.spark_log import SparkLog, UnrankedFiles, UnreadDataFrame, UnreadLog
from flinkcore.spark.logs.task_packing import TaskPacking
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.record_blocks import RecordBlock
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.time_pass import (
    LogSummaries,
    TimePass,
    combine_logs,
    summarised_together,
    time_passes,
)
from flinkcore.time_plane.timeline import TimePlane

SHARE_OF_CHUNK: Final = 8
"""The summary of a chunk may have one byte for so many of the chunk to come with the job of a short log."""

_TOO_MANY: Final = -1
"""In place of a way: the summary of the chunk is larger."""


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    source: ChunkSource

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per chunk."""
        for group in self.source.of_task(batches):
            for chunk in group.chunks:
                yield times_row(self.time_pass.count(chunk))


@dataclass(frozen=True)
class RowsBefore:
    """Rows of the splits of chunks in the chunks before, by which arrivals follow from positions; see `AboutChunks`.

    Attributes
    ----------
    bases
        For each way on which the log is used, as of `TimePass.summarise`.
    """

    bases: tuple[dict[int, dict[object, int]] | None, ...]

    def of_chunks(self, chunks: Sequence[int]) -> RowsBefore:
        """Return the same of some chunks; see `AboutChunks`."""
        return RowsBefore(
            tuple(None if each is None else {chunk: each[chunk] for chunk in chunks} for each in self.bases)
        )


@dataclass(frozen=True)
class SummariseTask:
    """Summarises the times of the task's chunks, for each way that the log is used on; picklable.

    Attributes
    ----------
    passes
        Over the log, one for each way.
    source
        Gives the task its chunks, with the `RowsBefore` them.
    is_short
        Whether a chunk is given up if its summary is too large to come with the job.
    """

    passes: tuple[TimePass, ...]
    source: ChunkSource
    is_short: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each chunk."""
        intervals_ms = [time_pass.summary_interval_ms for time_pass in self.passes]
        for group in self.source.of_task(batches):
            for chunk in group.chunks:
                found = summarised_together(self.passes, chunk, group.about.bases)
                room = max(self.passes[0].limits.short_bytes, (chunk.size_bytes or 0) // SHARE_OF_CHUNK)
                for row in summary_rows(chunk.index, found, intervals_ms):
                    room -= row.nbytes
                    if self.is_short and room < 0:
                        yield SUMMARIES.row(_TOO_MANY, TIMES, chunk.index, 0, TIMES, b"")
                        break
                    yield row


def run_time_passes(
    spark: Any,
    logs: Sequence[SparkLog | UnreadLog],
    cuts: Sequence[TimeCut] = (),
    stops: bool = False,
    ways: Sequence[Sequence[int]] = (),
    waiting: Sequence[Sequence[Chunk]] = (),
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
    ways
        Numbers of the logs that are read together, as of `JobPlan`; none: each is read by itself.
    waiting
        For each log the events of paused splits that wait in the checkpoint; none: of none.

    Returns
    -------
    list of tuple
        The time plane of each log, and the log as the second pass reads it: of a DataFrame what Spark keeps.
    """
    passes = time_passes([log.plan for log in logs], cuts, stops)
    read: dict[int, SparkLog] = {}
    summaries: dict[int, LogSummaries] = {}
    evaluated: list[tuple[DataFrameLog, SparkLog]] = []
    with ExitStack() as failing, ExitStack() as reading:
        for together in ways or [(number,) for number in range(len(logs))]:
            of_ways = [passes[number] for number in together]
            log, told = logs[together[0]], None
            if isinstance(log, UnreadDataFrame):
                data = log.data
                known = next((each for given, each in evaluated if data.has_rows_of(given)), None)
                if known is not None:
                    log = known.on_another_way(log.plan)
                else:
                    plans = [each.plan for each in logs if _is_of(each, data)]
                    kept = log.evaluated(spark, of_ways[0], plans)
                    failing.callback(kept.release)
                    payloads = KeptPayloads(kept.told, *SUMMARIES_ORDER, is_kept=True)
                    reported = reading.enter_context(closing(payloads))
                    log = log.as_kept(kept, bool(reported.index))
                    told = TaskSummaries(reported) if reported.index else None
                    evaluated.append((data, log))
            elif isinstance(log, UnrankedFiles):
                log = log.ranked(spark)
                assert log.kept is not None
                failing.callback(log.kept.release)
            read[together[0]] = log
            read |= {number: log.on_another_way(logs[number].plan) for number in together[1:]}
            found: list[LogSummaries] = []
            if told is not None:
                of_first = reading.enter_context(closing(_told_summaries(spark, of_ways[0], log, told)))
                found, of_ways = [_of_way(of_first, of_ways[0], 0)], of_ways[1:]
            if of_ways:
                of_tasks = reading.enter_context(closing(_summaries(spark, of_ways, log)))
                found += [_of_way(of_tasks, time_pass, way) for way, time_pass in enumerate(of_ways)]
            summaries |= zip(together, found, strict=True)
        for number, chunks in enumerate(waiting):
            summaries[number] = _with_waiting(spark, passes[number], chunks, summaries[number])
        numbers = range(len(logs))
        time_planes = combine_logs(passes, [summaries[number] for number in numbers])
        failing.pop_all()
    return list(zip(time_planes, [read[number] for number in numbers], strict=True))


def _is_of(log: SparkLog | UnreadLog, data: DataFrameLog) -> bool:
    return isinstance(log, UnreadDataFrame) and log.data.has_rows_of(data)


def _of_way(found: TaskSummaries, time_pass: TimePass, way: int) -> LogSummaries:
    return LogSummaries(map(ChunkTimes.from_ipc, found.times(way)), found.records(time_pass, way))


def _told_summaries(spark: Any, time_pass: TimePass, log: SparkLog, told: TaskSummaries) -> TaskSummaries:
    """Summaries of all chunks of a DataFrame, which has already reported them, or counts of rows."""
    if time_pass.rate is None:
        return told
    with closing(told):
        counts = list(map(ChunkCounts.from_ipc, told.times()))
    return _summaries(spark, [time_pass], log, counts)


def _summaries(
    spark: Any, passes: Sequence[TimePass], log: SparkLog, counts: list[ChunkCounts] | None = None
) -> TaskSummaries:
    """Summaries of all chunks of a log, each for all ways; `counts` are the rows of the chunks if they are known."""

    bases: list[dict[int, dict[Any, int]] | None] = [None for _ in passes]
    if passes[0].counts_rows:
        counts = _known_counts(passes[0], log.log) if counts is None else counts
        if counts is None:
            given = log.log.for_tasks(spark)
            counted = _collected(_summarised(spark, CountTask(passes[0], given.source), given))
            counts = [ChunkCounts.from_ipc(bytes(row.payload)) for row in counted]
        bases = [time_pass.position_bases(counts) for time_pass in passes]
    given = log.log.for_tasks(spark, RowsBefore(tuple(bases)))
    task = SummariseTask(tuple(passes), given.source)
    if log.is_short:
        rows = _collected(_summarised(spark, replace(task, is_short=True), given))
        if all(row.way != _TOO_MANY for row in rows):
            return TaskSummaries(CollectedRows(rows))
    return TaskSummaries(KeptPayloads(_summarised(spark, task, given), *SUMMARIES_ORDER))


def _with_waiting(
    spark: Any, time_pass: TimePass, chunks: Sequence[Chunk], summaries: LogSummaries
) -> LogSummaries:
    """Add those of events that wait in the checkpoint."""
    if not chunks:
        return summaries
    given = FileInput(tuple(chunks), TaskPacking()).for_tasks(spark, RowsBefore((None,)))
    summarised = _summarised(spark, SummariseTask((time_pass,), given.source), given)
    times = []
    for row in _collected(summarised):
        if row.first_ms == TIMES:
            times.append(ChunkTimes.from_ipc(bytes(row.payload)))
        else:
            summaries.records.add(row.chunk, RecordBlock.unpacked(packed_block(row.payload)))
    return LogSummaries(chain(times, summaries.times), summaries.records)


def _summarised(spark: Any, task: CountTask | SummariseTask, given: TaskInput) -> Any:
    return given.dataframe.mapInArrow(portable(spark, task), SUMMARIES.struct_type)


def _known_counts(time_pass: TimePass, log: LogInput) -> list[ChunkCounts] | None:
    """Rows of each split of all chunks, where the driver knows them without a job."""
    if not isinstance(log, FileInput):
        return None
    counts = [time_pass.known_counts(chunk) for chunk in log.all_chunks]
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def _collected(summaries: Any) -> list[Any]:
    with task_errors_raised():
        rows: list[Any] = summaries.collect()
    return rows

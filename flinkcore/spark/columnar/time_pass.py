"""The first pass of a replay, as Spark tasks: the time columns of each chunk to the timeline of the log."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.row_format import RowFormat
from flinkcore.spark.logs.dataframe_log import DataFrameLog
from flinkcore.spark.logs.log_input import ChunkSource, FileInput, LogInput, TaskInput
from flinkcore.spark.logs.spark_log import SparkLog, UnrankedFiles, UnreadDataFrame, UnreadLog
from flinkcore.spark.logs.task_packing import TaskPacking
from flinkcore.spark.shipping.task_errors import task_errors_raised
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.chunk_times import ChunkCounts, ChunkTimes
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.time_pass import (
    TimePass,
    by_way,
    combine_logs,
    summarised_together,
    time_passes,
)
from flinkcore.time_plane.timeline import TimePlane

_SUMMARIES = RowFormat("chunk long, way int, payload binary")


@dataclass(frozen=True)
class CountTask:
    """Counts the rows of each split in the task's chunks; picklable."""

    time_pass: TimePass
    source: ChunkSource

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per chunk."""
        for group in self.source.of_task(batches):
            for chunk in group.chunks:
                yield _SUMMARIES.row(chunk.index, 0, self.time_pass.count(chunk).to_ipc())


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
    """Summarises the times of the task's chunks, for each way that the log is used on; picklable."""

    passes: tuple[TimePass, ...]
    source: ChunkSource

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row per chunk and way."""
        for group in self.source.of_task(batches):
            for chunk in group.chunks:
                for way, times in enumerate(summarised_together(self.passes, chunk, group.about.bases)):
                    yield _SUMMARIES.row(chunk.index, way, times.to_ipc())


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
    times: dict[int, Iterable[ChunkTimes]] = {}
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
                    log, told = log.as_kept(kept)
                    evaluated.append((data, log))
            elif isinstance(log, UnrankedFiles):
                log = log.ranked(spark)
                assert log.kept is not None
                failing.callback(log.kept.release)
            read[together[0]] = log
            read |= {number: log.on_another_way(logs[number].plan) for number in together[1:]}
            found: list[Iterable[ChunkTimes]] = []
            if told is not None:
                of_first = reading.enter_context(closing(_told_times(spark, of_ways[0], log, told)))
                found, of_ways = [of_first], of_ways[1:]
            if of_ways:
                summaries = reading.enter_context(closing(_summaries(spark, of_ways, log)))
                found += by_way(summaries, len(of_ways))
            times |= zip(together, found, strict=True)
        for number, chunks in enumerate(waiting):
            times[number] = chain(_waiting_times(spark, passes[number], chunks), times[number])
        numbers = range(len(logs))
        time_planes = combine_logs(passes, [times[number] for number in numbers])
        failing.pop_all()
    return list(zip(time_planes, [read[number] for number in numbers], strict=True))


def _is_of(log: SparkLog | UnreadLog, data: DataFrameLog) -> bool:
    return isinstance(log, UnreadDataFrame) and log.data.has_rows_of(data)


def _told_times(
    spark: Any, time_pass: TimePass, log: SparkLog, told: Iterator[bytes]
) -> Generator[ChunkTimes, None, None]:
    """Summaries of all chunks of a DataFrame, which has already reported times or counts."""
    if time_pass.rate is None:
        yield from map(ChunkTimes.from_ipc, told)
        return
    counts = list(map(ChunkCounts.from_ipc, told))
    with closing(_summaries(spark, [time_pass], log, counts)) as summaries:
        for (times,) in summaries:
            yield times


def _summaries(
    spark: Any, passes: Sequence[TimePass], log: SparkLog, counts: list[ChunkCounts] | None = None
) -> Generator[list[ChunkTimes], None, None]:
    """Summaries of all chunks of a log, each for all ways; `counts` are the rows of the chunks if they are known."""

    bases: list[dict[int, dict[Any, int]] | None] = [None for _ in passes]
    if passes[0].counts_rows:
        counts = _known_counts(passes[0], log.log) if counts is None else counts
        if counts is None:
            given = log.log.for_tasks(spark)
            with task_errors_raised():
                counted = _summarised(spark, CountTask(passes[0], given.source), given).collect()
            counts = [ChunkCounts.from_ipc(bytes(row.payload)) for row in counted]
        bases = [time_pass.position_bases(counts) for time_pass in passes]
    given = log.log.for_tasks(spark, RowsBefore(tuple(bases)))
    summarised = _summarised(spark, SummariseTask(tuple(passes), given.source), given)
    with closing(
        _rows_of_one_job(summarised) if log.is_short else collected_in_parts(summarised, "chunk", "way")
    ) as rows:
        for _, of_chunk in groupby(rows, key=attrgetter("chunk")):
            yield [ChunkTimes.from_ipc(bytes(row.payload)) for row in of_chunk]


def _waiting_times(spark: Any, time_pass: TimePass, chunks: Sequence[Chunk]) -> Iterator[ChunkTimes]:
    """Summaries of events that wait in the checkpoint."""
    if not chunks:
        return
    given = FileInput(tuple(chunks), TaskPacking()).for_tasks(spark, RowsBefore((None,)))
    summarised = _summarised(spark, SummariseTask((time_pass,), given.source), given)
    with closing(_rows_of_one_job(summarised)) as found:
        for row in found:
            yield ChunkTimes.from_ipc(bytes(row.payload))


def _summarised(spark: Any, task: CountTask | SummariseTask, given: TaskInput) -> Any:
    return given.dataframe.mapInArrow(portable(spark, task), _SUMMARIES.struct_type)


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

"""A log of a job on Spark, and what its tasks read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

from flinkcore._internal.arrow.joined_batches import empty_table
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.log.event_log import EventLog
from flinkcore.log.order.row_order import POSITION, RowOrder
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.log_sources import TableSource
from flinkcore.log.sources.table_chunks import TableChunk
from flinkcore.spark.logs.dataframe_log import DataFrameLog
from flinkcore.spark.logs.kept_rows import KeptInput, KeptRows, kept_schema
from flinkcore.spark.logs.log_input import FileInput, LogInput
from flinkcore.spark.logs.loose_tables import warn_of_loose_tables
from flinkcore.spark.logs.parquet_scan import ScannedFiles, parquet_files
from flinkcore.spark.logs.plan_nodes import NotJustFiles
from flinkcore.spark.logs.ranked_rows import RankedInput, kept_ranks
from flinkcore.spark.logs.task_packing import TaskPacking
from flinkcore.spark.sessions.session import is_classic, is_local
from flinkcore.time_plane.time_pass import TimePass

SHORT_LOG_BYTES: Final = 512 << 20
"""Up to this size of a log, its summaries come with the job that makes them, and no code is compiled for the jobs."""

SMALL_LOG_BYTES: Final = 32 << 20
"""Up to this size of a log, the driver reads its times in about the time in which a Spark job begins."""


def _is_short(log: LogInput) -> bool:
    size = log.size_bytes
    return size is not None and size <= SHORT_LOG_BYTES


@dataclass(frozen=True)
class SparkLog:
    """A log and its input.

    Attributes
    ----------
    plan
        Plan of the log in the job.
    log
        Input of the tasks.
    kept
        Rows that Spark keeps for it.
    """

    plan: LogPlan
    log: LogInput
    kept: KeptRows | None = None

    def on_another_way(self, plan: LogPlan) -> SparkLog:
        """Return the same log where its rows are also used otherwise; the first of both has what Spark keeps for it."""
        return replace(self, plan=plan, kept=None)

    @property
    def is_short(self) -> bool:
        """Return whether the log is in files, of up to `SHORT_LOG_BYTES`."""
        return _is_short(self.log)

    def chunks_with_times_here(self, executors_are_here: bool) -> Sequence[Chunk] | None:
        """Return the chunks if the driver reads their times sooner than a Spark job; else None.

        Parameters
        ----------
        executors_are_here
            Whether they run on the driver's machine, which so is as near to the files, and has their cores.
        """
        # A generator of the user's is a function, and functions run on workers.
        if self.plan.is_by_element or not isinstance(self.log, FileInput):
            return None
        chunks, size = self.log.all_chunks, self.log.size_bytes
        if all(isinstance(chunk, TableChunk) for chunk in chunks):
            return chunks
        reads_times_alone = all(chunk.is_columnar for chunk in chunks)
        most = SHORT_LOG_BYTES if executors_are_here and reads_times_alone else SMALL_LOG_BYTES
        return chunks if size is not None and size <= most else None


@dataclass(frozen=True)
class UnreadDataFrame:
    """A log that is a DataFrame, which Spark has not evaluated yet.

    Attributes
    ----------
    plan
        Plan of the log in the job.
    data
        The DataFrame, and the order of its rows.
    why
        Why tasks do not read files in its place.
    """

    is_short: ClassVar[bool] = False

    plan: LogPlan
    data: DataFrameLog
    why: str

    def evaluated(self, spark: Any, time_pass: TimePass, ways: Sequence[LogPlan]) -> KeptRows:
        """Evaluate it once.

        Parameters
        ----------
        spark
            The session.
        time_pass
            Over the log.
        ways
            All that is done with its rows.
        """
        decoded = [name for plan in ways for name in plan.data_reader().columns_read]
        return KeptRows.of(spark, rows_read(self.data, *ways), time_pass, tuple(dict.fromkeys(decoded)))

    def as_kept(self, kept: KeptRows, has_partitions: bool) -> SparkLog:
        """Return the log as tasks read it once it is evaluated."""
        if has_partitions:
            return SparkLog(self.plan, KeptInput(kept_schema(self.plan.log), kept.rows), kept)
        # Spark runs no task where there is no partition.
        none = FileInput(tuple(TableSource(empty_table(self.plan.log.schema)).chunks(1)))
        return SparkLog(self.plan, none)


@dataclass(frozen=True)
class UnrankedFiles:
    """A log in files whose rows columns order, and which Spark has not put in order yet.

    Attributes
    ----------
    plan
        Plan of the log in the job.
    files
        Its chunks.
    order
        Order of its rows.
    """

    plan: LogPlan
    files: FileInput
    order: RowOrder

    @property
    def is_short(self) -> bool:
        """As of `SparkLog`."""
        return _is_short(self.files)

    def ranked(self, spark: Any) -> SparkLog:
        """Return the log as tasks read it, each chunk with the ranks of its rows."""
        kept = kept_ranks(spark, self.files, self.order)
        return SparkLog(self.plan, RankedInput(self.files, self.order, kept.dataframe), kept)


UnreadLog: TypeAlias = UnreadDataFrame | UnrankedFiles
"""A log that Spark has to do something with before tasks can read it."""


def chunks_with_times_here(spark: Any, logs: Sequence[SparkLog | UnreadLog]) -> list[Sequence[Chunk]] | None:
    """Return the chunks of all logs of a job if the driver reads their times sooner than Spark jobs; else None.

    With Spark Connect the client may be far from the files.

    Parameters
    ----------
    spark
        The session.
    logs
        All logs of the job.
    """
    if not is_classic(spark):
        return None
    executors_are_here = is_local(spark)
    found = [
        log.chunks_with_times_here(executors_are_here) if isinstance(log, SparkLog) else None for log in logs
    ]
    chunks = [each for each in found if each is not None]
    return chunks if len(chunks) == len(logs) else None


def logs_of_dataframe(
    spark: Any, plans: Sequence[LogPlan], data: DataFrameLog, cores: int
) -> Sequence[SparkLog | UnreadLog]:
    """Return the log that a DataFrame is: in files, if it is just these, and where that orders rows no otherwise.

    Parameters
    ----------
    spark
        The session.
    plans
        Plan of the log in the job, for each use of the log.
    data
        The DataFrame, and the order of its rows.
    cores
        Cores of the session.
    """
    warn_of_loose_tables(data.dataframe)
    try:
        scanned = unordered_files(data, columns_read(*plans), plans[0].log.arrival is not None)
    except NotJustFiles as reason:
        return [UnreadDataFrame(plan, data, str(reason)) for plan in plans]
    of_files = [replace(plan, log=_scanned(plan.log, scanned)) for plan in plans]
    return logs_of_files(spark, of_files, cores)


def logs_of_files(spark: Any, plans: Sequence[LogPlan], cores: int) -> Sequence[SparkLog | UnrankedFiles]:
    """Return a log that tasks read, for each of its ways; parameters as of `logs_of_dataframe`."""
    log = plans[0].log
    chunks = FileInput.of(log, TaskPacking.of(spark, cores), plans[0].packed_bytes)
    if POSITION in columns_read(*plans):
        return [UnrankedFiles(plan, chunks, log.row_order) for plan in plans]
    return [SparkLog(plan, chunks) for plan in plans]


def _scanned(log: EventLog, scanned: ScannedFiles) -> EventLog:
    return replace(log, source=scanned.files, decoding=(*scanned.decoding, *log.decoding))


def unordered_files(data: DataFrameLog, columns: Iterable[str], has_arrival: bool) -> ScannedFiles:
    """Return the files that a DataFrame is; raise NotJustFiles if it is more, or Spark's order of rows counts."""
    if data.ordered_by:
        raise NotJustFiles("Spark puts its rows into the order of their positions")
    if not has_arrival:
        raise NotJustFiles("there is no arrival, and its rows have the order in which Spark gives them")
    return parquet_files(data.whole_columns(columns))


def columns_read(*ways: LogPlan) -> Iterator[str]:
    """Yield the columns that a job reads of the source of a log, whatever it does with the rows."""
    for plan in ways:
        yield from plan.log.source_columns(plan.data_reader().columns_read)


def rows_read(data: DataFrameLog, *ways: LogPlan) -> Any:
    """Return a DataFrame with the columns that a job reads, in the order of the log."""
    return data.rows(columns_read(*ways))


def how_read(
    data: DataFrameLog, columns: Iterable[str], has_arrival: bool, otherwise: str, *, needs_rows: bool
) -> str:
    """Return how tasks read a DataFrame, and why so, in words.

    Parameters
    ----------
    data
        The DataFrame, and the order of its rows.
    columns
        Those that the job reads.
    has_arrival
        Whether the log has arrivals.
    otherwise
        Treatment of logs that are not just files, in words.
    needs_rows
        Whether the job takes single elements.
    """
    try:
        scanned = unordered_files(data, columns, has_arrival)
        files = len((scanned.without_computed_columns() if needs_rows else scanned.files).files)
    except NotJustFiles as reason:
        return f"{otherwise}, for {reason}"
    computed = (
        f", of which tasks compute {', '.join(map(repr, scanned.computed))}" if scanned.computed else ""
    )
    return f"read as {files} Parquet {'file' if files == 1 else 'files'}{computed}"

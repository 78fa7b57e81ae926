"""Results of a job over columns: batches, a table, or Parquet files."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from weakref import finalize, ref

import pyarrow as pa

from flinkcore._internal.io.stores import ENVIRONMENT, Stores, stores_of
from flinkcore._internal.python.missing_features import MissingMethodError
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints
from flinkcore.columnar.outputs.output_rows import OutputRows, TakenRows
from flinkcore.columnar.outputs.parquet_directory import ParquetOutput
from flinkcore.columnar.outputs.parquet_outputs import ParquetOutputs
from flinkcore.columnar.outputs.result_files import PartNames, ResultFiles, TaskFiles
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.results.progress import while_rows_are_taken
from flinkcore.columnar.results.report import ReplayReport, ReportSource
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import OutputTag
from flinkcore.datastream.graph.pipeline_executor import ProgressChoice
from flinkcore.errors import ConfigurationError, LifecycleError
from flinkcore.log.sources.log_sources import LogFiles

if TYPE_CHECKING:  # it describes plans, which know what outputs are
    from flinkcore.columnar.checkpoint.job_checkpoint import StoppingJob


class Replay(Protocol):
    """One run of a plan."""

    report: ReplayReport
    stopping: StoppingJob

    def run(self) -> Iterator[StageOutput]:
        """Run; the report is complete when the outputs are."""


class TakenBatches(TakenRows):
    """Batches that a replay makes as they are taken; `close` ends a replay of which nobody wants more.

    Parameters
    ----------
    batches
        Runs the replay.

    Raises
    ------
    LifecycleError
        If two threads take batches at once.
    """

    def __init__(self, batches: Generator[pa.RecordBatch, None, None]) -> None:
        self._batches = batches
        self._lock = Lock()

    def __next__(self) -> pa.RecordBatch:
        with self._alone():
            return next(self._batches)

    def close(self) -> None:
        """End the replay; it may have ended already."""
        with self._alone():
            self._batches.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise LifecycleError(
                "another thread is taking a batch of the same to_batches(): let one thread take all and hand them on"
            )
        try:
            yield
        finally:
            self._lock.release()


def _tell_that_nothing_ran() -> None:
    logging.getLogger(__name__).warning(
        "flinkcore: nothing asked for the rows of stream.execute(), so its job did not run: call to_arrow(), "
        "to_batches(), write_parquet(path) or report of what it returned"
    )


class JobResult(OutputRows):
    """Results and side outputs of a job over columns, which runs when a form of them is asked for.

    If nothing ever is, that is logged once this has gone, or the program ends.

    Parameters
    ----------
    plan
        The job.
    checkpoints
        The one that it is restored from, and the one with which it stops.
    planned
        Function that plans it once more, for the pictures of its report, or None if it has none.
    """

    def __init__(self, plan: JobPlan, checkpoints: JobCheckpoints, planned: Callable[[], Any] | None) -> None:
        self._plan = plan
        self._checkpoints = checkpoints
        self._planned = planned
        self._written: ParquetOutput | None = None
        self._collected: dict[str | None, pa.Table] | None = None
        self._report: ReplayReport | None = None
        self._warned: set[str] = set()
        self._untaken = finalize(self, _tell_that_nothing_ran)

    def discard(self) -> None:
        """Declare that the results are not needed, as the job was only to be checked."""
        self._untaken.detach()

    @property
    def report(self) -> ReplayReport:
        """Return the counts of the last complete run; without one, run the job."""
        self._untaken.detach()
        if self._report is None:
            self._run_for_report()
        return self._last_report()

    def to_arrow(self) -> pa.Table:
        """All results as a table, those of each partition in the order in which they fired."""
        return self._collect()[None]

    def to_batches(self) -> TakenRows:
        """The results as batches, as the job makes them; the first may be empty, for the schema.

        They are taken by one thread at a time: LifecycleError if another one is taking the next.
        """
        self._untaken.detach()
        return TakenBatches(self._batches(None))

    def to_dataframe(self) -> Any:
        """The results as a Spark DataFrame, which runs the job each time that it is evaluated, unless it is persisted.

        Raises
        ------
        ConfigurationError
            If the job does not run on Spark, or stops with a checkpoint.
        """
        return self._dataframe(None)

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
    ) -> ReplayReport:
        """Write the results as a directory of Parquet files, in bounded memory; all files appear at the end, or none.

        On Spark the tasks write: rows do not pass through the JVM, and a retried or speculative task never doubles any.

        Parameters
        ----------
        path
            A directory: a local path, on Spark one that driver and executors share, or a URI of a store.
        side_outputs
            A directory for each side output that is wanted.
        mode
            "error": the directories are new or empty. "overwrite": all Parquet files in them are replaced, of all
            partitions, once all of the new ones are complete; whatever fails before, the old ones stay. "append": files
            are added. A run that stops with a checkpoint replaces what the same run added before: one that stopped in
            the same directory, began where this one begins, and had the same `until`. Any other run adds its rows,
            whether it is repeated or not.
        partition_by
            Columns of integers, text, dates or booleans, by whose values the files of the results are in directories
            ``name=value``, as Spark writes them. Side outputs are not partitioned.

        Returns
        -------
        ReplayReport
            Report that accounts for every event.

        Raises
        ------
        ConfigurationError
            If a directory has what is not to be replaced, such as the log of the job, or is within that of another
            output, or a tag is unknown.
        SchemaError
            If Parquet has no type for a column, or rows to which others are added have other columns.
        DataError
            If a text has no directory: an empty one, or the name that stands for null.
        """
        self._untaken.detach()
        run = self._checkpoints.run_name
        outputs = ParquetOutputs.of(self._plan, path, side_outputs, mode, self._stores, partition_by, run)
        outputs.require_apart_from(self._read_files())
        self._write(outputs)
        self._written = outputs.directories[None]
        return self._last_report()

    def write_delta(
        self,
        path: str | PathLike[str],
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
    ) -> ReplayReport:
        """Write the results into a Delta table, in one commit: if anything fails before, the table has none of them.

        Parameters
        ----------
        path
            Path or URI; on Spark one that driver and executors share.
        mode
            "error": the table is new. "append", which a repeated run with a checkpoint to stop with does once (see
            :meth:`write_parquet`), and warns; "overwrite": the results replace all rows; "overwrite_partitions":
            those of the partitions that results fall into. These create the table if it does not exist. Existing rows
            are replaced only if nobody else has committed to the table since the call.
        partition_by
            Columns by which a new table is partitioned.
        storage_options
            Options of deltalake, for the table's log.
        filesystem
            A ``pyarrow.fs.FileSystem`` for the data files; by default that of the table's URI.

        Returns
        -------
        ReplayReport
            Report that accounts for every event.

        Raises
        ------
        ConfigurationError
            If deltalake is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no type for a column, or no such column.
        """
        from flinkcore.columnar.outputs.delta_output import DeltaOutput

        self._untaken.detach()
        schema = self._plan.result_schema()
        stores = self._stores if filesystem is None else stores_of(filesystem)
        run = self._checkpoints.run_name
        self._write(DeltaOutput(path, schema, mode, partition_by, storage_options, stores, run))
        return self._last_report()

    def write_iceberg(self, table: Any, mode: str = "append") -> ReplayReport:
        """Write the results into an Iceberg table, in one commit: if anything fails before, the table has none of them.

        Parameters
        ----------
        table
            A ``pyiceberg.table.Table``, or the name of a table in the default catalog.
        mode
            "append", as of :meth:`write_delta`; "overwrite": the results replace all rows; "overwrite_partitions":
            those of the partitions that results fall into.

        Returns
        -------
        ReplayReport
            Report that accounts for every event.

        Raises
        ------
        ConfigurationError
            If pyiceberg is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no such column, or another type for it.
        """
        from flinkcore.columnar.outputs.iceberg_output import IcebergOutput

        self._untaken.detach()
        self._write(IcebergOutput(table, self._plan.result_schema(), mode, self._checkpoints.run_name))
        return self._last_report()

    @property
    def _stores(self) -> Stores:
        """File systems of locations, with their settings."""
        return ENVIRONMENT

    def _read_files(self) -> Iterator[str]:
        """Paths or URIs of the files that the job reads."""
        for log in self._plan.logs:
            if isinstance(log.log.source, LogFiles):
                yield from (file.location for file in log.log.source.files)

    def get_side_output(self, output_tag: OutputTag) -> SideOutput:
        """Rows of a side output.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
        self._plan.side_output_schema(output_tag)
        return SideOutput(self, output_tag)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results with their types; nothing runs."""
        return self._plan.result_schema()

    def _kept_rows(self) -> pa.Table | None:
        return None if self._collected is None else self._collected[None]

    def _take_report(self, report: ReplayReport) -> None:
        """Keep the report of a run that has ended, and warn of what no run before has found."""
        self._report = report
        report.warn_of_run(self._warned)

    def _last_report(self) -> ReplayReport:
        assert self._report is not None
        if self._planned is not None:
            results = partial(_result_rows, ref(self), self._written)
            self._report._source = ReportSource(self._planned, results)
        return self._report

    def _collect(self) -> dict[str | None, pa.Table]:
        """All outputs by the id of their tag, of one run; results under None."""
        self._untaken.detach()
        if self._collected is None:
            schemas = self._plan.output_schemas()
            batches: dict[str | None, list[pa.RecordBatch]] = {tag_id: [] for tag_id in schemas}
            for tag_id, found in self._run():
                batches[tag_id] += found
            self._collected = {
                tag_id: pa.Table.from_batches(batches[tag_id], schema) for tag_id, schema in schemas.items()
            }
        return self._collected

    def _batches(self, tag_id: str | None) -> Generator[pa.RecordBatch, None, None]:
        if self._collected is not None:
            yield from self._collected[tag_id].to_batches()
        else:
            yield from self._stream(tag_id)

    @abstractmethod
    def _run_for_report(self) -> None:
        """Run the job for its report."""

    @abstractmethod
    def _run(self) -> Iterator[tuple[str | None, Sequence[pa.RecordBatch]]]:
        """Run the job; batches of all outputs, with the ids of their tags."""

    @abstractmethod
    def _stream(self, tag_id: str | None) -> Iterator[pa.RecordBatch]:
        """Run the job for one output."""

    @abstractmethod
    def _write(self, outputs: ResultFiles) -> None:
        """Run the job, and write its outputs."""

    @abstractmethod
    def _dataframe(self, tag_id: str | None) -> Any:
        """A DataFrame of one output."""


def _result_rows(
    result: ref[JobResult], written: ParquetOutput | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch] | None:
    """Columns of the rows that a result keeps, as long as it is used, or has written."""
    kept = result()
    rows = None if kept is None else kept._kept_rows()
    if rows is not None:
        batches: Iterator[pa.RecordBatch] = iter(rows.select(columns).to_batches())
        return batches
    return None if written is None else written.read(columns)


class SideOutput(OutputRows):
    """Rows of one side output of a job over columns."""

    def __init__(self, result: JobResult, tag: OutputTag) -> None:
        self._result = result
        self._tag = tag

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> NoReturn:
            if not name.startswith("_") and hasattr(JobResult, name):
                raise MissingMethodError(
                    f"SideOutput has no {name}, which the result of the job has. Write a side output by the result's "
                    "write_parquet(path, side_outputs={tag: another_path}), or take its to_arrow() or, on Spark, its "
                    "to_dataframe()"
                )
            super().__getattr__(name)

    def to_arrow(self) -> pa.Table:
        """All rows as a table; one run serves this and the results' `to_arrow`."""
        return self._result._collect()[self._tag.tag_id]

    def to_batches(self) -> TakenRows:
        """The rows as batches."""
        self._result._untaken.detach()
        return TakenBatches(self._result._batches(self._tag.tag_id))

    def to_dataframe(self) -> Any:
        """The rows as a Spark DataFrame, as those of the results."""
        return self._result._dataframe(self._tag.tag_id)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows with their types; nothing runs."""
        return self._result._plan.output_schemas()[self._tag.tag_id]

    def discard(self) -> None:
        """Say that nothing is to be asked for; see :meth:`JobResult.discard`."""
        self._result.discard()

    def _kept_rows(self) -> pa.Table | None:
        kept = self._result._collected
        return None if kept is None else kept[self._tag.tag_id]


class EmbeddedResult(JobResult):
    """Results and side outputs of an embedded job.

    `to_arrow` runs the replay once and keeps all outputs; `to_batches` and
    `write_parquet` stream, and keep nothing. Where the job stops with a checkpoint, that is complete when the rows are.
    """

    def __init__(
        self,
        plan: JobPlan,
        checkpoints: JobCheckpoints,
        start: Callable[[ProgressChoice], Replay],
        progress: ProgressChoice = "off",
        planned: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(plan, checkpoints, planned)
        self._start = start
        self._progress = progress

    @contextmanager
    def _started(self, progress: ProgressChoice) -> Iterator[Replay]:
        replay = self._start(progress)
        with replay.stopping:
            yield replay
        self._take_report(replay.report)

    def _run(self) -> Iterator[tuple[str | None, Sequence[pa.RecordBatch]]]:
        return self._outputs(self._progress)

    def _outputs(self, progress: ProgressChoice) -> Iterator[tuple[str | None, Sequence[pa.RecordBatch]]]:
        with self._started(progress) as replay:
            for output in replay.run():
                yield output.tag_id, output.batches
            replay.stopping.commit()

    def _run_for_report(self) -> None:
        self._collect()

    def _stream(self, tag_id: str | None) -> Iterator[pa.RecordBatch]:
        if tag_id is not None:  # one run gives all side outputs
            yield from self._collect()[tag_id].to_batches()
            return
        for output, batches in self._outputs(while_rows_are_taken(self._progress)):
            if output is None:
                yield from batches

    def _dataframe(self, tag_id: str | None) -> NoReturn:
        self._untaken.detach()
        raise ConfigurationError(
            "to_dataframe() needs Spark: build the job on flinkcore.spark.SparkExecutionEnvironment, or take to_arrow()"
        )

    def _write(self, outputs: ResultFiles) -> None:
        with self._started(self._progress) as replay:
            outputs.write(
                lambda: self._write_parts(outputs, replay),
                lambda: replay.stopping.commit(outputs.paths),
            )

    def _write_parts(self, outputs: ResultFiles, replay: Replay) -> PartNames:
        parts: TaskFiles
        with outputs.for_tasks.open_parts(0) as parts:
            parts.open_all(self._plan.output_schemas())
            for output in replay.run():
                parts.write(output.tag_id, output.batches)
        return parts.names

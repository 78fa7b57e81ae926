"""Results of a job on Spark: a DataFrame, Parquet files that the tasks write, or Arrow data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from flinkcore._internal.io.stores import Stores
from flinkcore.columnar.checkpoint.job_checkpoint import StoppingJob
from flinkcore.columnar.outputs.result_files import PartNames, ResultFiles
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.results.result import JobResult
from flinkcore.errors import ConfigurationError
from flinkcore.spark.columnar.replay import PASS_2, SparkReplay
from flinkcore.spark.columnar.task_outputs import (
    BATCH,
    CHECKPOINT,
    COUNTS,
    PART,
    TASK_ROWS,
    BlocksOutput,
    CountsOutput,
    FilesOutput,
    RowsOutput,
    read_batch,
    read_part,
)
from flinkcore.spark.columns.job_columns import NotJustColumns
from flinkcore.spark.columns.spark_types import SparkSchema
from flinkcore.spark.shipping.task_errors import task_errors_raised


class SparkResult(JobResult):
    """Results and side outputs of a job.

    The job runs when they are asked for. `to_arrow` runs it once, and keeps all outputs in the driver, with the types
    of an embedded run; `spark.driver.maxResultSize` limits their size. `to_batches` and `write_parquet` run it once per
    call, and `to_batches` holds a few partitions at a time in the driver; a DataFrame runs it each time that Spark
    evaluates the DataFrame. The first pass runs once for all of them. Rows are the same each time.

    A job without an operator needs no watermark: where Spark has the functions of its columns, a DataFrame of its
    results is columns that Spark computes, in the order in which Spark reads the log.

    Runs of a DataFrame leave no report, since Spark decides when and how often they happen. Each attempt of each of
    their tasks checks by itself that it reads the rows of the first pass, or has all events that were sent to it.

    Parameters
    ----------
    replay
        The planned job.
    columns
        Function that returns the DataFrame of the results if Spark alone computes it, or raises NotJustColumns; None if
        a replay makes all.
    """

    def __init__(self, replay: SparkReplay, columns: Callable[[], Any] | None = None) -> None:
        super().__init__(replay.plan, replay.checkpoints, replay.again())
        self._replay = replay
        self._columns = columns

    @property
    def _stores(self) -> Stores:
        return self._replay.stores

    def _complete(self, rows: list[Any], stopping: StoppingJob) -> None:
        counts = [bytes(row.payload) for row in rows if row.kind == COUNTS]
        report = self._replay.report(counts)
        self._take_report(report)
        stopping.add(read_part(row.payload) for row in rows if row.kind == CHECKPOINT)
        if stopping.pending is not None:
            stopping.add(self._replay.parts_before(counts, stopping))
        self._replay.jobs.show_counts(
            {
                "events": report.events_read,
                "results": report.by_operator[-1].results,
                "late": sum(each.late for each in report.by_operator),
                "dropped": self._dropped(report),
                "rejected": report.rejected.total(),
            }
        )

    def _dropped(self, report: ReplayReport) -> int:
        """Late events, and rows of functions, that no side output took."""
        stages = zip(report.by_operator, self._plan.stages, strict=True)
        late = sum(each.late for each, stage in stages if not any(stage.operator.late_tags))
        return late + sum(each.dropped_side_results for each in report.by_operator)

    def _rows(self, output: BlocksOutput | CountsOutput) -> list[Any]:
        with self._replay.shown(), self._replay.begin() as stopping:
            rows = self._replay.collect(output, stopping)
            self._complete(rows, stopping)
            stopping.commit()
        return rows

    def _run_for_report(self) -> None:
        self._rows(CountsOutput())

    def _run(self) -> Iterator[tuple[str | None, Sequence[pa.RecordBatch]]]:
        for row in self._rows(BlocksOutput()):
            if row.kind == BATCH:
                yield row.output, read_batch(row.payload)

    def _stream(self, tag_id: str | None) -> Iterator[pa.RecordBatch]:
        last_rows = []
        with task_errors_raised(), self._replay.begin() as stopping:
            with self._replay.jobs.described(PASS_2):
                dataframe = self._replay.dataframe(BlocksOutput(), TASK_ROWS.struct_type, stopping=stopping)
                rows = dataframe.toLocalIterator(prefetchPartitions=True)
            with self._replay.jobs.cancelled_on_interrupt():
                for row in rows:
                    if row.kind == BATCH and row.output == tag_id:
                        yield from read_batch(row.payload)
                    elif row.kind in (CHECKPOINT, COUNTS):
                        last_rows.append(row)
            self._complete(last_rows, stopping)
            stopping.commit()

    def _dataframe(self, tag_id: str | None) -> Any:
        return self.dataframe(tag_id)

    def dataframe(self, tag_id: str | None, for_user: bool = True) -> Any:
        """Return an output as a DataFrame.

        Parameters
        ----------
        tag_id : str or None
            Id of the side output, or None for the results.
        for_user : bool
            As of `SparkReplay.dataframe`.
        """
        self._untaken.detach()
        if self._replay.checkpoints.stops:
            raise ConfigurationError(
                "to_dataframe() cannot stop with a checkpoint, since Spark may run a DataFrame never or several times: "
                "call write_parquet(path) or to_arrow() after execute(stop_with_checkpoint=...), and read the files "
                "with spark.read.parquet(path)"
            )
        if tag_id is None and self._columns is not None:
            with suppress(NotJustColumns):
                return self._columns()
        schema = self._plan.tight_result_schema() if tag_id is None else self._plan.output_schemas()[tag_id]
        self._replay.outlive()
        output, columns = RowsOutput(tag_id, schema), SparkSchema(schema).struct_type
        return self._replay.dataframe(output, columns, for_user=for_user)

    def _read_files(self) -> Iterator[str]:
        yield from super()._read_files()
        yield from self._replay.files_of_dataframes()

    def _write(self, outputs: ResultFiles) -> None:
        with self._replay.shown(), self._replay.begin() as stopping:
            outputs.write(
                lambda: self._write_parts(outputs, stopping), lambda: stopping.commit(outputs.paths)
            )

    def _write_parts(self, outputs: ResultFiles, stopping: StoppingJob) -> PartNames:
        rows = self._replay.collect(FilesOutput(outputs.for_tasks), stopping)
        self._complete(rows, stopping)
        names: dict[str | None, list[str]] = {tag_id: [] for tag_id in self._plan.output_schemas()}
        for row in rows:
            if row.kind == PART:
                names[row.output].append(bytes(row.payload).decode())
        return names

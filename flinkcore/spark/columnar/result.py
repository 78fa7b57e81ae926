"""Results of a job on Spark: a DataFrame, Parquet files that the tasks write, or Arrow data."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError
from flinkcore.replay.results.job_checkpoint import StoppingJob
from flinkcore.replay.results.parquet_outputs import ParquetOutputs, PartNames
from flinkcore.replay.results.report import ReplayReport
from flinkcore.replay.results.result import TakenBatches
from flinkcore.spark.columnar.replay import SparkReplay
from flinkcore.spark.columnar.spark_types import SparkSchema
from flinkcore.spark.columnar.task_outputs import (
    BATCH,
    CHECKPOINT,
    COUNTS,
    PART,
    TASK_ROW_SCHEMA,
    BlocksOutput,
    CountsOutput,
    FilesOutput,
    RowsOutput,
    read_batch,
    read_part,
)
from flinkcore.spark.shipping.task_errors import task_errors_raised


class SparkResult:
    """Results and side outputs of a job.

    The job runs when they are asked for. `to_arrow` runs it once, and keeps all outputs in the driver; `to_batches` and
    `write_parquet` run it once per call; a DataFrame runs it each time that Spark evaluates the DataFrame. The first
    pass runs once for all of them. Rows are the same each time.
    """

    def __init__(self, replay: SparkReplay) -> None:
        self._replay = replay
        self._collected: dict[str | None, pa.Table] | None = None
        self._report: ReplayReport | None = None

    @property
    def report(self) -> ReplayReport:
        """The report of the last run; if there was none, the job runs to make it.

        Runs of a DataFrame leave no report, since Spark decides when and how often they happen. Each attempt of each of
        their tasks checks by itself that it reads the rows of the first pass, or has all events that were sent to it.
        """
        if self._report is None:
            with self._replay.begin() as stopping:
                self._complete(self._replay.collect(CountsOutput(), stopping), stopping)
                stopping.commit()
        assert self._report is not None
        return self._report

    def _complete(self, rows: list[Any], stopping: StoppingJob) -> None:
        counts = [bytes(row.payload) for row in rows if row.kind == COUNTS]
        self._report = self._replay.report(counts)
        stopping.add(read_part(row.payload) for row in rows if row.kind == CHECKPOINT)
        if stopping.pending is not None:
            stopping.add(self._replay.parts_before(counts))

    def _schema(self, tag_id: str | None) -> pa.Schema:
        if tag_id is None:
            return self._replay.plan.result_schema()
        return self._replay.plan.side_output_schema(OutputTag(tag_id))

    def _collect(self) -> dict[str | None, pa.Table]:
        if self._collected is None:
            with self._replay.begin() as stopping:
                rows = self._replay.collect(BlocksOutput(), stopping)
                self._complete(rows, stopping)
                stopping.commit()
            tags = [tag.tag_id for tag in self._replay.plan.side_outputs()]
            batches: dict[str | None, list[pa.RecordBatch]] = {tag_id: [] for tag_id in (None, *tags)}
            for row in rows:
                if row.kind == BATCH:
                    batches[row.output] += read_batch(row.payload)
            self._collected = {
                tag_id: pa.Table.from_batches(found, self._schema(tag_id))
                for tag_id, found in batches.items()
            }
        return self._collected

    def to_arrow(self) -> pa.Table:
        """Return all results as a table in the driver, each partition's in the order in which they fired.

        They have the types of an embedded run. Their size is limited by `spark.driver.maxResultSize`.
        """
        return self._collect()[None]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the results as batches, partition by partition; the driver holds a few partitions at a time."""
        return TakenBatches(self._batches(None))

    def _batches(self, tag_id: str | None) -> Generator[pa.RecordBatch, None, None]:
        if self._collected is not None:
            yield from self._collected[tag_id].to_batches()
            return
        last_rows = []
        with task_errors_raised(), self._replay.begin() as stopping:
            rows = self._replay.dataframe(BlocksOutput(), TASK_ROW_SCHEMA, pending=stopping.pending)
            for row in rows.toLocalIterator(prefetchPartitions=True):
                if row.kind == BATCH and row.output == tag_id:
                    yield from read_batch(row.payload)
                elif row.kind in (CHECKPOINT, COUNTS):
                    last_rows.append(row)
            self._complete(last_rows, stopping)
            stopping.commit()

    def to_dataframe(self) -> Any:
        """Return the results as a Spark DataFrame; each evaluation replays the log, unless it is persisted."""
        return self._dataframe(None)

    def _dataframe(self, tag_id: str | None) -> Any:
        if self._replay.checkpoints.stops:
            raise ConfigurationError(
                "to_dataframe() cannot stop with a checkpoint, since Spark may run a DataFrame never or several times: "
                "call write_parquet(path) or to_arrow() after execute(stop_with_checkpoint=...), and read the files "
                "with spark.read.parquet(path)"
            )
        schema = self._schema(tag_id)
        return self._replay.dataframe(RowsOutput(tag_id, schema), SparkSchema(schema).struct_type)

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
    ) -> ReplayReport:
        """Let the tasks write the results as a directory of Parquet files; all files appear at the end, or none.

        Rows do not pass through the JVM. A retried or speculative task never doubles rows.

        Parameters
        ----------
        path : path
            A directory that does not exist or is empty: a path that driver and executors share, or a URI of pyarrow.fs.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs; others are not written.

        Returns
        -------
        ReplayReport

        Raises
        ------
        ConfigurationError
            If a directory is not empty or within that of another output, or a tag is unknown.
        """
        outputs = ParquetOutputs.of(self._replay.plan, path, side_outputs)
        with self._replay.begin() as stopping:
            outputs.write(
                lambda: self._write_parts(outputs, stopping), lambda: stopping.commit(outputs.paths)
            )
        assert self._report is not None
        return self._report

    def _write_parts(self, outputs: ParquetOutputs, stopping: StoppingJob) -> PartNames:
        rows = self._replay.collect(FilesOutput(outputs), stopping)
        self._complete(rows, stopping)
        names: dict[str | None, list[str]] = {tag_id: [] for tag_id in outputs.directories}
        for row in rows:
            if row.kind == PART:
                names[row.output].append(bytes(row.payload).decode())
        return names

    def get_side_output(self, output_tag: OutputTag) -> SparkSideOutput:
        """Return the rows of a side output.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
        self._replay.plan.side_output_schema(output_tag)
        return SparkSideOutput(self, output_tag)


class SparkSideOutput:
    """Rows of one side output of a replay on Spark."""

    def __init__(self, result: SparkResult, tag: OutputTag) -> None:
        self._result = result
        self._tag = tag

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table in the driver; one run serves this and the results' `to_arrow`."""
        return self._result._collect()[self._tag.tag_id]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches, partition by partition."""
        return TakenBatches(self._result._batches(self._tag.tag_id))

    def to_dataframe(self) -> Any:
        """Return the rows as a Spark DataFrame; each evaluation replays the log, unless it is persisted."""
        return self._result._dataframe(self._tag.tag_id)

"""Results of a replay on Spark: a DataFrame, Parquet files written by the workers, or Arrow data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError
from flinkcore.replay.job_checkpoint import StoppingJob
from flinkcore.replay.results.parquet_outputs import ParquetOutputs, PartNames
from flinkcore.replay.results.report import ReplayReport
from flinkcore.spark.replay import SparkReplay
from flinkcore.spark.shipping.task_errors import told_plainly
from flinkcore.spark.spark_types import SparkSchema
from flinkcore.spark.task_outputs import (
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


class SparkResult:
    """What a job gives: results and side outputs, in whichever form is asked for.

    Nothing runs before a form is asked for. `to_arrow` runs the replay once and keeps all outputs in the
    driver; `to_batches` and `write_parquet` run it once each; a DataFrame runs it whenever Spark evaluates
    the DataFrame. The first pass runs once for all of them. Rows are the same each time.
    """

    def __init__(self, replay: SparkReplay) -> None:
        self._replay = replay
        self._collected: dict[str | None, pa.Table] | None = None
        self._report: ReplayReport | None = None

    @property
    def report(self) -> ReplayReport:
        """Counts of the last replay that ran to its end through this object; runs one, for its counts, if
        there was none.

        A DataFrame's own runs leave none here: Spark runs them when and how often it likes. Each of its tasks, and
        each attempt of one, checks by itself: that it reads the rows of the first pass, or that all events that were
        sent to it have come.
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
            return self._replay.result_schema
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
        """All results as a table in the driver, in the order in which they fired within each partition.

        They come as Arrow data, not as rows, and with the types that they have embedded; Spark's limit is
        `spark.driver.maxResultSize`.
        """
        return self._collect()[None]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The results as batches, partition by partition: the driver holds those of some at a time."""
        yield from self._batches(None)

    def _batches(self, tag_id: str | None) -> Iterator[pa.RecordBatch]:
        if self._collected is not None:
            yield from self._collected[tag_id].to_batches()
            return
        last_rows = []
        with told_plainly(), self._replay.begin() as stopping:
            rows = self._replay.dataframe(BlocksOutput(), TASK_ROW_SCHEMA, pending=stopping.pending)
            for row in rows.toLocalIterator(prefetchPartitions=True):
                if row.kind == BATCH and row.output == tag_id:
                    yield from read_batch(row.payload)
                elif row.kind in (CHECKPOINT, COUNTS):
                    last_rows.append(row)
            self._complete(last_rows, stopping)
            stopping.commit()

    def to_dataframe(self) -> Any:
        """The results as a Spark DataFrame; each evaluation replays the log, unless it is persisted."""
        return self._dataframe(None)

    def _dataframe(self, tag_id: str | None) -> Any:
        if self._replay.checkpoints.stops:
            raise ConfigurationError(
                "to_dataframe() cannot stop with a checkpoint: Spark runs a DataFrame when, and how often, it likes. "
                "Take write_parquet(path) or to_arrow() of execute(stop_with_checkpoint=...), and read the files with "
                "spark.read.parquet(path)"
            )
        schema = self._schema(tag_id)
        return self._replay.dataframe(RowsOutput(tag_id, schema), SparkSchema(schema).struct_type)

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
    ) -> ReplayReport:
        """Let the tasks write the results as a directory of Parquet files; all files appear at the end, or
        none.

        Rows do not pass through the JVM. A task that is tried twice, or runs twice at once, never doubles
        rows.

        Parameters
        ----------
        path
            Directory that does not exist or is empty: a path that driver and executors share, or a URI of
            pyarrow.fs.
        side_outputs
            A directory for each side output that is wanted.

        Returns
        -------
        ReplayReport
            What became of every event.

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
        """Rows of a side output.

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
        """All rows as a table in the driver; the replay runs once for this and the results' `to_arrow`."""
        return self._result._collect()[self._tag.tag_id]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as batches, one partition after the other."""
        yield from self._result._batches(self._tag.tag_id)

    def to_dataframe(self) -> Any:
        """The rows as a Spark DataFrame; each evaluation replays the log, unless it is persisted."""
        return self._result._dataframe(self._tag.tag_id)

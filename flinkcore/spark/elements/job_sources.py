"""Sources of a job of single elements on Spark, where they differ from those of an embedded run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_column
from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.element_transformations import SideOutputTransformation, SourceTransformation
from flinkcore.datastream.graph.transformations import EventLogSource, StreamGraph, Transformation
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.elements.job_sources import JobSources
from flinkcore.elements.tasks.stream_graph import JobVertex, is_source_node, strategy_of
from flinkcore.errors import ConfigurationError
from flinkcore.operators.keys.element_rows import element_rows
from flinkcore.spark.logs.dataframe_log import DataFrameLog, log_schema
from flinkcore.spark.logs.plan_nodes import NotJustFiles
from flinkcore.spark.logs.spark_log import unordered_files

if TYPE_CHECKING:
    from flinkcore.elements.element_checkpoint import ElementCheckpoints

Execute = Callable[[StreamGraph, ExecutionConfig], Any]
"""Plans a columnar job, and returns its result."""


class SparkJobSources(JobSources):
    """Sources of a job's tasks on Spark.

    An event log in files, also those of a DataFrame, is read by its source task. The rows of other DataFrames, and the
    results of a columnar job, which itself runs on Spark, are collected by the driver and sent to the task.

    Parameters
    ----------
    vertices : sequence of JobVertex
    configuration : ExecutionConfig
    time_characteristic : TimeCharacteristic
    execute : callable
    checkpoints : ElementCheckpoints, optional

    Raises
    ------
    ConfigurationError, SchemaError, SourceError, DataError
        If a log cannot be read.
    """

    def __init__(
        self,
        vertices: Sequence[JobVertex],
        configuration: ExecutionConfig,
        time_characteristic: TimeCharacteristic,
        execute: Execute,
        checkpoints: ElementCheckpoints | None = None,
    ) -> None:
        self._execute = execute
        _refuse_unbounded(vertices)
        _refuse_alignment_between_tasks(vertices)
        super().__init__(vertices, configuration, time_characteristic, WorkingDirectory(), checkpoints)

    def _log_of(self, step: Transformation) -> EventLogSource | None:
        log = next(iter(step.in_order()))
        assert isinstance(log, EventLogSource)
        if not isinstance(log.data, DataFrameLog):
            return None
        columns = log.data.schema.names
        try:
            scanned = unordered_files(log.data, columns, log.log.arrival is not None)
            data: Any = scanned.without_computed_columns()
        except NotJustFiles:
            data = ArrowData(collected_rows(log.data.rows(columns)))
        return replace(log, data=data)

    def _columnar_job(self, step: Transformation) -> SourceSplit:
        side = step if isinstance(step, SideOutputTransformation) else None
        result = self._execute(StreamGraph(step if side is None else side.input), self._configuration)
        rows = result if side is None else result.get_side_output(side.output_tag)
        return TableRows("job", rows.to_arrow())


def _refuse_unbounded(vertices: Sequence[JobVertex]) -> None:
    """Raise a ConfigurationError if a source says that it never ends."""
    for vertex in vertices:
        step = vertex.head.transformation
        if isinstance(step, SourceTransformation) and step.source.boundedness is not Boundedness.BOUNDED:
            raise ConfigurationError(
                f"{step}: this source is unbounded, and on Spark a task sends its elements on when it has ended. Let "
                "its boundedness be BOUNDED if it ends by itself, or run the job embedded"
            )


def _refuse_alignment_between_tasks(vertices: Sequence[JobVertex]) -> None:
    """Raise a ConfigurationError if tasks would have to wait for each other's watermarks."""
    groups: set[str] = set()
    for vertex in vertices:
        step = vertex.head.transformation
        strategy = strategy_of(step) if is_source_node(vertex.head) else None
        aligned = None if strategy is None else strategy.alignment_parameters
        if aligned is None:
            continue
        n_tasks = vertex.parallelism if isinstance(step, SourceTransformation) else 1  # a log has one
        if n_tasks > 1 or aligned.watermark_group in groups:
            raise ConfigurationError(
                f"{step}: on Spark tasks run each for itself, and do not see how far others have read, so only the "
                "splits of one task can be aligned. Give the source set_parallelism(1) and a group of its own, or run "
                "the job embedded"
            )
        groups.add(aligned.watermark_group)


def collected_rows(dataframe: Any) -> pa.Table:
    """Return the rows of a DataFrame, partition by partition, with the types that a log of it has."""
    schema = log_schema(dataframe)
    is_spark_4 = hasattr(dataframe, "toArrow")
    batches = dataframe.toArrow().to_batches() if is_spark_4 else dataframe._collect_as_arrow()
    plain = [
        pa.RecordBatch.from_arrays(
            [plain_column(*each) for each in zip(batch.columns, schema.types, strict=True)], schema=schema
        )
        for batch in batches
    ]
    return pa.Table.from_batches(plain, schema)


@dataclass(frozen=True)
class TableRows(SourceSplit):
    """The rows of a table, without timestamps.

    Attributes
    ----------
    table : pyarrow.Table
    """

    split_id: str
    table: pa.Table

    def elements(self) -> Iterator[Any]:
        for batch in self.table.to_batches():
            yield from element_rows(batch)

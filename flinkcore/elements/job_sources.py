"""The sources of a job that runs element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from flinkcore._internal.python.working_directory import WorkingDirectory
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import SourceSplit
from flinkcore.datastream.graph.element_transformations import (
    LegacySourceTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.transformations import EventLogSource, Transformation
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.elements.arrivals.restored_sources import (
    RestoredFunction,
    RestoredSource,
    reads_by_itself,
    without_emitted,
)
from flinkcore.elements.arrivals.task_sources import (
    ColumnarJob,
    TaskElements,
    TaskFunction,
    TaskLog,
    TaskSource,
    TaskSplits,
)
from flinkcore.elements.tasks.stream_graph import JobVertex, StreamNode, is_of_log, is_source_node

if TYPE_CHECKING:
    from flinkcore.elements.element_checkpoint import ElementCheckpoints

_IN_PYTHON: Final = (SourceTransformation, LegacySourceTransformation)
"""Sources whose elements come when they come; those of others have arrivals."""


class JobSources:
    """Sources of the tasks of a job.

    Collections, files and the like begin to arrive when the job's clock starts: at 0; or, if there are logs, as in a
    replay of them, an auto-watermark interval before the first tick that sees an event.

    Parameters
    ----------
    vertices : sequence of JobVertex
        Vertices of the whole job.
    configuration : ExecutionConfig
    time_characteristic : TimeCharacteristic
        Time characteristic of the job.
    directory : WorkingDirectory
        Working directory of functions in this process.
    checkpoints : ElementCheckpoints, optional
        Checkpoints from which sources resume, and with which they stop; by default they begin afresh and run to their
        ends.

    Attributes
    ----------
    start_ms : int
        Initial time of the job's clock.

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
        directory: WorkingDirectory,
        checkpoints: ElementCheckpoints | None = None,
    ) -> None:
        self._directory = directory
        self._checkpoints = checkpoints
        self._vertices = [vertex for vertex in vertices if is_source_node(vertex.head)]
        self._configuration = configuration
        self._time_characteristic = time_characteristic
        nodes = [vertex.head for vertex in self._vertices]
        if not all(isinstance(node.transformation, _IN_PYTHON) for node in nodes):
            configuration.require_arrival_clock(
                "a job with an event log or a columnar job", "processing time is the arrival of its events"
            )
        logs = [node for node in nodes if is_of_log(node.transformation)]
        for node in logs:
            self._refuse(node.transformation)
        self._readings: dict[StreamNode, Any] = {node: self._reading(node.transformation) for node in logs}
        ranges = [
            found for reading in self._readings.values() if (found := reading.arrival_range) is not None
        ]
        self.start_ms = 0
        self._end_of_logs_ms = 1
        if ranges:
            from flinkcore.time_plane.tick_clock import TickClock  # loads numpy

            first, last = min(first for first, _ in ranges), max(last for _, last in ranges)
            self.start_ms = TickClock(configuration.get_auto_watermark_interval(), first, last).opened_ms
            self._end_of_logs_ms = last + 1
        restored = None if checkpoints is None else checkpoints.clock
        if restored is not None:
            self.start_ms = restored.start_ms
            self._end_of_logs_ms = max(self._end_of_logs_ms, restored.now_ms + 1)

    def _refuse(self, step: Transformation) -> None:
        """Refuse what cannot be planned, which no row of another log may forestall."""
        from flinkcore.elements.arrivals.log_arrivals import LogReading  # loads pyarrow

        LogReading.plan_of(step, self._configuration)

    def _reading(self, step: Transformation) -> Any:
        from flinkcore.elements.arrivals.log_arrivals import LogReading  # loads pyarrow

        cut, stops = None, False
        if self._checkpoints is not None:
            cut, stops = self._checkpoints.cut_of(step), self._checkpoints.stops
        return LogReading.of(step, self._configuration, self._log_of(step), cut=cut, stops=stops)

    def _log_of(self, step: Transformation) -> EventLogSource | None:
        """Return the log to read in place of the one with which a step begins, or None for that one."""
        return None

    def of_tasks(self) -> dict[int, TaskSource]:
        """Return what each task of a source reads, by its number in the job; splits are made now."""
        sources: dict[int, TaskSource] = {}
        origins = 0
        for vertex in self._vertices:
            node = vertex.head
            if node in self._readings:
                is_batch, reading = self._configuration.is_batch(), self._readings[node]
                restored = None
                if self._checkpoints is not None:
                    values = reading.time_plane.split_values
                    restored = self._checkpoints.splits_of(node.transformation, values)
                sources[vertex.first_task] = TaskLog(
                    origins, reading, self._end_of_logs_ms, is_batch, restored
                )
                origins += 1
                continue
            step = node.transformation
            if isinstance(step, LegacySourceTransformation):
                functions: Sequence[RestoredFunction | None] = [None] * node.parallelism
                if self._checkpoints is not None:
                    functions = self._checkpoints.functions_of(step, node.parallelism) or functions
                for task, function in zip(vertex.tasks, functions, strict=True):
                    sources[task] = TaskFunction(
                        origins,
                        step,
                        self._time_characteristic,
                        self._configuration,
                        self.start_ms,
                        function,
                    )
                    origins += 1
                continue
            if isinstance(step, SourceTransformation) and step.strategy is not None:
                source, strategy = step.source, step.strategy
                goes_on = None
                if self._checkpoints is not None:
                    goes_on = self._checkpoints.source_of(step, source, node.parallelism)
                if goes_on is None:
                    splits = source.create_splits(node.parallelism)
                    created_for = node.parallelism
                    parts: Sequence[tuple[Sequence[SourceSplit], RestoredSource | None]] = [
                        (splits[index :: node.parallelism], None) for index in range(node.parallelism)
                    ]
                else:
                    created_for, parts = goes_on
                holds_end = self._checkpoints is not None and self._checkpoints.stops
                for task, (of_task, restored_source) in zip(vertex.tasks, parts, strict=True):
                    sources[task] = TaskSplits(
                        origins,
                        tuple(of_task),
                        created_for,
                        source if reads_by_itself(source) else None,
                        source.boundedness is Boundedness.BOUNDED,
                        _converted_to(step),
                        strategy,
                        self._configuration,
                        self.start_ms,
                        holds_end,
                        restored_source,
                    )
                    origins += 1
                continue
            in_ingestion_time = (
                isinstance(step, SourceTransformation)
                and self._time_characteristic is TimeCharacteristic.IngestionTime
            )
            context = None
            if in_ingestion_time and self._checkpoints is not None:
                context = self._checkpoints.context_of(step)
            position, left_out = (0, 0) if self._checkpoints is None else self._checkpoints.position_of(step)
            sources[vertex.first_task] = TaskElements(
                origins,
                without_emitted(self._split(step), left_out),
                _converted_to(step),
                self._configuration,
                self.start_ms,
                in_ingestion_time,
                position,
                left_out,
                context,
            )
            origins += 1
        return sources

    def _split(self, step: Transformation) -> SourceSplit:
        if not isinstance(step, SourceTransformation):
            return self._columnar_job(step)
        (split,) = step.source.create_splits(1)
        return split

    def _columnar_job(self, step: Transformation) -> SourceSplit:
        return ColumnarJob("job", step, self._configuration, self._directory)


def _converted_to(step: Transformation) -> TypeInformation | None:
    """Return what elements are made to be, unless the source has seen to that."""
    if isinstance(step, SourceTransformation) and step.source.produced_type() is step.type_info:
        return None
    return step.element_type

"""A job of single elements as it is sent to its tasks on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Any, ClassVar

from pyspark import cloudpickle

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connectors.base import Source, SourceSplit, new_run_id
from flinkcore.datastream.functions import PacedSourceContext, SourceFunction, function_name
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.datastream.graph.transformations import EventLogSource, OperatorSettings
from flinkcore.elements.tasks.stream_graph import JobVertex, StreamGraphGenerator, StreamNode, job_vertices
from flinkcore.errors import InternalError
from flinkcore.spark.shipping.tasks import IN_OPEN, unpickled, unsendable


@dataclass(frozen=True)
class ShippedJob:
    """The operators of a job, without what its sources read: that is sent to their tasks alone.

    Attributes
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    start_ms : int
        Time of the job's clock when it starts, ms since the epoch.
    run_id : str
        Identifier of the run, by which the driver's sinks clean up after their writers.
    """

    job: ElementJob
    configuration: ExecutionConfig
    start_ms: int
    run_id: str = field(default_factory=new_run_id)

    @cached_property
    def nodes(self) -> list[StreamNode]:
        """The operators, each after those whose output it reads."""
        return StreamGraphGenerator(self.job, self.configuration).generate()

    @cached_property
    def vertices(self) -> list[JobVertex]:
        """The chains of operators, in the same order."""
        return job_vertices(self.nodes)

    @cached_property
    def levels(self) -> list[list[int]]:
        """Numbers of the tasks of each level; what the program collects needs no task."""
        run = [vertex for vertex in self.vertices if not vertex.head.collects]
        levels: list[list[int]] = [[] for _ in range(max(vertex.level for vertex in run) + 1)]
        for vertex in run:
            levels[vertex.level] += vertex.tasks
        return levels

    def vertex_of_task(self, number: int) -> JobVertex:
        """Return the vertex of a task."""
        return next(vertex for vertex in self.vertices if number in vertex.tasks)

    def vertex_of_head(self, node: StreamNode) -> JobVertex:
        """Return the vertex whose first operator is given."""
        return next(vertex for vertex in self.vertices if vertex.head is node)

    def pickled(self) -> bytes:
        """Return the pickled job.

        Raises
        ------
        UserCodeError
            If a function cannot be pickled.
        """
        target = BytesIO()
        try:
            _WithoutSources(target).dump(replace(self))
        except Exception as failure:
            raise unsendable(f"the job {self.job.name!r}", failure, IN_OPEN) from failure
        return target.getvalue()


class _WithoutSources(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Source):
            return SourceElsewhere, (str(value),)
        if isinstance(value, SourceFunction):
            return FunctionElsewhere, (function_name(value),)
        if isinstance(value, EventLogSource) and value.gives_elements:
            return ElementsElsewhere, (None, value.log, value.element_type, value.settings)
        if isinstance(value, EventLogSource):
            return _log_elsewhere, (value.log.on_bad_row, value.settings)
        return super().reducer_override(value)


@dataclass(frozen=True)
class SourceElsewhere(Source):
    """Stands for a source in the jobs of tasks that do not read it."""

    description: str

    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Raise InternalError: the driver has made the splits."""
        raise InternalError(f"the splits of the source {self.description} are made by the driver")

    def __str__(self) -> str:
        return self.description


class FunctionElsewhere(SourceFunction):
    """Stands for a source function in the jobs of tasks that do not run it.

    Parameters
    ----------
    name : str
        Name of the function.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, ctx: PacedSourceContext[Any]) -> None:
        """Raise InternalError: the tasks of the source have a function of their own."""
        raise InternalError(f"the source function {self._name} is run by its own tasks")

    def cancel(self) -> None:
        """Do nothing."""


class ElementsElsewhere(EventLogSource):
    """Stands for a log of single elements in the jobs of tasks that do not read it.

    Parameters
    ----------
    data : None
    log : LogSettings
    type_info : TypeInformation
        Type of the elements.
    settings : OperatorSettings
    """

    gives_elements: ClassVar[bool] = True

    def __init__(
        self, data: None, log: LogSettings, type_info: TypeInformation, settings: OperatorSettings
    ) -> None:
        super().__init__(data, log, settings=settings)
        self._type_info = type_info

    @property
    def element_type(self) -> TypeInformation:
        return self._type_info


def _log_elsewhere(on_bad_row: Any, settings: OperatorSettings) -> EventLogSource:
    log = LogSettings(timestamp="timestamp", on_bad_row=on_bad_row)
    return EventLogSource(None, log, settings=settings)


def shipped_job(pickled: bytes) -> ShippedJob:
    """Return the job that the driver has pickled; see `unpickled`."""
    job: ShippedJob = unpickled(pickled)
    return job

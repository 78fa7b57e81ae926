"""A job that runs element by element, as its tasks on Spark get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from typing import Any

from pyspark import cloudpickle

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.element_job import ElementJob
from flinkcore.datastream.operator_settings import OperatorSettings
from flinkcore.datastream.transformations import EventLogSource
from flinkcore.errors import FlinkcoreError, UserCodeError
from flinkcore.runtime.tasks.job_vertex import JobVertex, job_vertices
from flinkcore.runtime.tasks.stream_graph import StreamGraphGenerator, StreamNode
from flinkcore.spark.shipping.tasks import unpickled


@dataclass(frozen=True)
class ShippedJob:
    """The operators of a job; what its sources read is not in it, but goes to the tasks that read it.

    Attributes
    ----------
    job : ElementJob
    configuration : ExecutionConfig
    start_ms : int
        What the job's clock shows at first.
    """

    job: ElementJob
    configuration: ExecutionConfig
    start_ms: int

    @cached_property
    def nodes(self) -> list[StreamNode]:
        """The operators, those that others read before them."""
        return StreamGraphGenerator(self.job, self.configuration).generate()

    @cached_property
    def vertices(self) -> list[JobVertex]:
        """Their chains, likewise."""
        return job_vertices(self.nodes)

    @cached_property
    def levels(self) -> list[list[int]]:
        """Numbers of the tasks of each level; what the program collects goes to it directly, without a task."""
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
        """Return the job as `pickle.loads` reads it.

        Raises
        ------
        UserCodeError
            If a function holds what cannot be pickled.
        """
        target = BytesIO()
        try:
            _WithoutSources(target).dump(replace(self))
        except Exception as failure:
            raise UserCodeError(
                f"the job {self.job.name!r} cannot be sent to Spark's workers: {type(failure).__name__}: {failure}. "
                "Let functions make what cannot be pickled (connections, locks, the Spark session) in open()"
            ) from failure
        return target.getvalue()


class _WithoutSources(cloudpickle.CloudPickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Source):
            return SourceElsewhere, (str(value),)
        if isinstance(value, EventLogSource):
            return _log_elsewhere, (value.on_bad_row, value.settings)
        return super().reducer_override(value)


@dataclass(frozen=True)
class SourceElsewhere(Source):
    """A source that a task does not read."""

    description: str

    def create_splits(self, parallelism: int) -> Sequence[SourceSplit]:
        """Raise a FlinkcoreError: splits are made by the driver."""
        raise FlinkcoreError(f"the splits of the source {self.description} are made by the driver")

    def __str__(self) -> str:
        return self.description


def _log_elsewhere(on_bad_row: Any, settings: OperatorSettings) -> EventLogSource:
    return EventLogSource(None, "timestamp", on_bad_row=on_bad_row, settings=settings)


def shipped_job(pickled: bytes) -> ShippedJob:
    """Return the job that a driver has pickled; see `unpickled`."""
    job: ShippedJob = unpickled(pickled)
    return job

"""Jobs that run element by element, in this process and thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.element_job import ElementJob
from flinkcore.datastream.element_transformations import SinkTransformation
from flinkcore.replay.elements.element_arrivals import Arrivals, OrderedArrivals
from flinkcore.replay.elements.job_sources import JobSources
from flinkcore.replay.stages.copied_function import copied_function
from flinkcore.replay.time_plane.replay_clock import ReplayClock
from flinkcore.runtime.operators.sink_writer_operator import SinkWriterOperator
from flinkcore.runtime.tasks.job_tasks import JobTasks
from flinkcore.runtime.tasks.operator_setup import JobContext
from flinkcore.runtime.tasks.stream_graph import StreamGraphGenerator, sources_of


class ElementRun:
    """A run of a job: its sources are read in the order of arrivals, and each element goes as far as it gets.

    The clock of the job shows when elements arrive, and does not depend on how fast the job runs. A record, and all
    that it leads to, is dealt with before the next one: whatever the parallelism, there is one thread.

    Parameters
    ----------
    job : ElementJob
    configuration : ExecutionConfig

    Raises
    ------
    ConfigurationError
        If the job has no meaning.
    SchemaError, SourceError, DataError
        If an event log cannot be read.
    UserCodeError
        If a function fails to open.

    Notes
    -----
    Stands where Flink has ``MiniCluster``, ``StreamTask`` and ``MailboxProcessor``.
    """

    def __init__(self, job: ElementJob, configuration: ExecutionConfig) -> None:
        self._job = job
        self._started_ns = time.monotonic_ns()
        self._collected: list[Any] = []
        self._clock = ReplayClock()
        nodes = StreamGraphGenerator(job, configuration).generate()
        sources = sources_of(nodes)
        self._sources = JobSources(sources, configuration)
        self._clock.now_ms = self._sources.start_ms
        self._context = JobContext(configuration, self._clock, self._collected.append, copied_function)
        self._tasks = JobTasks(nodes, self._context)
        self._arrivals: Arrivals = OrderedArrivals([])
        self._has_ended = False
        self._tasks.open(sources)
        self._elements = self._run()

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; at their end the job has come to its own."""
        return self._elements

    def run_to_end(self) -> JobExecutionResult:
        """Run what is left of the job; its collected elements are dropped."""
        for _ in self._elements:
            pass
        runtime_ms = (time.monotonic_ns() - self._started_ns) // 1_000_000
        return JobExecutionResult(runtime_ms, self._job.name, self._context.metrics.values())

    def close(self) -> None:
        """Cancel the job if it has not come to its end; may be called again."""
        self._elements.close()  # type: ignore[attr-defined]
        self._cancel()

    def _run(self) -> Iterator[Any]:
        collected = self._collected
        try:
            self._arrivals = self._sources.arrivals(self._tasks, self._clock)
            for _ in self._arrivals.emit_all(self._clock):
                if collected:
                    yield from collected
                    collected.clear()
            self._tasks.finish()
            self._clock.quiesce()
            self._end()
            yield from collected
            collected.clear()
        finally:
            self._cancel()

    def _end(self) -> None:
        """Close all operators, and make visible what the sinks have written."""
        committables: dict[int, list[Any]] = {}
        sinks: dict[int, Sink] = {}
        for subtask in self._tasks.subtasks():
            operator, step = subtask.operator, subtask.setup.node.transformation
            if isinstance(operator, SinkWriterOperator) and isinstance(step, SinkTransformation):
                assert isinstance(step.sink, Sink)
                sinks[id(step)] = step.sink
                committables.setdefault(id(step), []).extend(operator.writer.prepare_commit())
        self._tasks.close()
        for key, sink in sinks.items():
            sink.commit(committables[key])
        self._has_ended = True

    def _cancel(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._tasks.cancel()
        self._sources.close()
        with suppress(Exception):
            self._arrivals.close()

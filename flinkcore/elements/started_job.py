"""Started jobs of single elements, as their programs see them, wherever they run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.elements.late_warnings import warn_of_late_records
from flinkcore.elements.tasks.stream_graph import StreamNode
from flinkcore.operators.late_records import LateRecords


class StartedJob(ABC):
    """Job that has started, and advances as its elements are taken; at its end it warns of late records.

    Parameters
    ----------
    name : str
        Name of the job.
    configuration : ExecutionConfig
    """

    def __init__(self, name: str, configuration: ExecutionConfig) -> None:
        self._name = name
        self._late_share_warning = configuration.get_late_share_warning()
        self._started_ns = time.monotonic_ns()
        self._elements = self._run_and_warn()

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; at their end the job has come to its own, and sinks are committed."""
        return self._elements

    def run_to_end(self) -> JobExecutionResult:
        """Run what is left of the job; its collected elements are dropped."""
        for _ in self._elements:
            pass
        runtime_ms = (time.monotonic_ns() - self._started_ns) // 1_000_000
        return JobExecutionResult(runtime_ms, self._name, self._metrics())

    def close(self) -> None:
        """Leave what has not been taken, and commit nothing if the job has not come to its end; may be called again."""
        self._elements.close()

    def _run_and_warn(self) -> Generator[Any, None, None]:
        yield from self._run()
        warn_of_late_records(self._late_records(), self._late_share_warning)

    @abstractmethod
    def _run(self) -> Generator[Any, None, None]:
        """Run the job as its elements are taken."""

    @abstractmethod
    def _late_records(self) -> Mapping[StreamNode, LateRecords]:
        """Return the late records of each operator that drops such, once the job has ended."""

    @abstractmethod
    def _metrics(self) -> dict[str, Any]:
        """Values of the metrics of the functions, once the job has ended."""

"""The result of a job without collected elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkcore.common.job_id import JobID
from flinkcore.errors import UnsupportedOperationError


class JobExecutionResult:
    """The result of a job that has ended.

    Parameters
    ----------
    net_runtime : int
        Duration of the run, in ms.
    job_name : str
    metrics : mapping of str to object, optional
        Values of the metrics of its functions by their names.
    job_id : JobID, optional
        By default a new one.

    Notes
    -----
    Follows ``pyflink.common.JobExecutionResult``. Functions of PyFlink have no accumulators; metrics take their place.
    """

    def __init__(
        self,
        net_runtime: int,
        job_name: str,
        metrics: Mapping[str, Any] | None = None,
        job_id: JobID | None = None,
    ) -> None:
        self._job_id = JobID.generate() if job_id is None else job_id
        self._net_runtime = net_runtime
        self.job_name = job_name
        self.metrics: dict[str, Any] = dict(metrics or {})

    def get_job_id(self) -> JobID:
        """Return the unique id of the job."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return how long the job ran, in ms."""
        return self._net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Raise an UnsupportedOperationError: functions in Python have metrics."""
        raise UnsupportedOperationError(
            f"there is no accumulator {accumulator_name!r}: functions in Python have none; use a metric, "
            "runtime_context.get_metrics_group().counter(name), and the result's metrics"
        )

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return nothing: there are no accumulators."""
        return {}

    def __str__(self) -> str:
        metrics = "".join(f"\n- {name}: {value}" for name, value in self.metrics.items())
        return f"Job {self.job_name!r} has ended after {self._net_runtime:,} ms{metrics}"

"""A job that runs while its program goes on."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from flinkcore.common.completable_future import CompletableFuture
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.job_id import JobID
from flinkcore.common.job_status import JobStatus
from flinkcore.errors import UnsupportedOperationError


class RunningJob(Protocol):
    """A job that runs on a thread of its own."""

    @property
    def job_id(self) -> JobID:
        """The unique id of the job."""

    @property
    def status(self) -> JobStatus:
        """What has become of the job."""

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the job, or its error."""

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job unless it has ended; the future is done when it has."""


class JobClient:
    """Asks for the state of a job, cancels it, and waits for its result.

    Parameters
    ----------
    job : RunningJob

    Notes
    -----
    Follows ``pyflink.common.JobClient``.
    """

    def __init__(self, job: RunningJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        """Return the unique id of the job."""
        return self._job.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return what has become of the job."""
        return CompletableFuture.completed(self._job.status)

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job: its sources are cancelled, and nothing is committed; no effect if it has ended.

        Returns
        -------
        CompletableFuture
            Done when the job has ended.
        """
        return self._job.cancel()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the job, once it has ended; a `JobCancelledError` if it was cancelled."""
        return self._job.result()

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return nothing: functions in Python have metrics instead, which the result of the job has."""
        return CompletableFuture.completed({})

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> NoReturn:
        """Raise an UnsupportedOperationError: there are no savepoints of running jobs."""
        _refuse_savepoint("stop_with_savepoint")

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> NoReturn:
        """Raise an UnsupportedOperationError: there are no savepoints of running jobs."""
        _refuse_savepoint("trigger_savepoint")


def _refuse_savepoint(method: str) -> NoReturn:
    raise UnsupportedOperationError(
        f"there is no {method}(): a job that runs element by element has no savepoints while it runs; cancel() it"
    )

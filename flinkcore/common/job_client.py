"""Clients of jobs that run in the background of their program."""

from __future__ import annotations

import uuid
from typing import Any, Protocol

from flinkcore.common.completable_future import CompletableFuture
from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.common.job_id import JobID
from flinkcore.common.job_status import JobStatus
from flinkcore.errors import ConfigurationError


class RunningJob(Protocol):
    """A job that runs on a thread of its own."""

    @property
    def job_id(self) -> JobID:
        """The unique id of the job."""

    @property
    def status(self) -> JobStatus:
        """Current status of the job."""

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the job, or its error."""

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job unless it has ended; the future is done when it has."""

    def stop_with_savepoint(self, path: str, drains: bool = False) -> CompletableFuture[str]:
        """Stop the job with a checkpoint in a directory, whose path the future has when the job has ended."""

    def trigger_savepoint(self, path: str) -> CompletableFuture[str]:
        """Write a checkpoint to a directory, whose path the future has when it is complete; the job continues."""


class JobClient:
    """Asks for the state of a job, cancels it, and waits for its result.

    Parameters
    ----------
    job : RunningJob
    savepoint_directory : str, optional
        For savepoints of which none is given.

    Notes
    -----
    Follows ``pyflink.common.JobClient``.
    """

    def __init__(self, job: RunningJob, savepoint_directory: str | None = None) -> None:
        self._job = job
        self._savepoint_directory = savepoint_directory

    def get_job_id(self) -> JobID:
        """Return the unique id of the job."""
        return self._job.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the status of the job."""
        return CompletableFuture.completed(self._job.status)

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job: its sources are cancelled, and nothing is committed; no effect if it has ended.

        One that was started with `stop_with_checkpoint` stops with that checkpoint, and commits what is in it, unless
        it is cancelled again meanwhile.

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
    ) -> CompletableFuture[str]:
        """Stop the job between two elements, with a checkpoint: the next run resumes from it (`restore_from`).

        Parameters
        ----------
        advance_to_end_of_event_time : bool
            False: open windows and timers are in the checkpoint. True: windows and event-time timers fire before, as
            at the end of all sources; should another run go on from there, its watermarks begin again, and windows that
            have fired may fire again, with what has come since.
        savepoint_directory : str, optional
            In which a directory is made for the checkpoint; by default that of
            ``execution.checkpointing.savepoint-dir``.

        Returns
        -------
        CompletableFuture of str
            The path of the checkpoint, when the job has ended; or the reason why it was not written. The job continues
            if something in it does not support checkpoints.

        Raises
        ------
        ConfigurationError
            If no directory is known.

        Notes
        -----
        Follows ``pyflink.common.JobClient.stop_with_savepoint``, which in PyFlink 2.3 calls a method that Java has not.
        The path is that of a checkpoint of flinkcore.
        """
        path = self._new_path("stop_with_savepoint", savepoint_directory)
        return self._job.stop_with_savepoint(path, advance_to_end_of_event_time)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a checkpoint of the job between two elements, from which another run can resume; this one continues.

        Sinks commit nothing for it. What their writers have prepared is committed by a run from there as it begins, and
        by this job at its end; it is kept should this job fail.

        Parameters
        ----------
        savepoint_directory : str, optional
            In which a directory is made for the checkpoint; by default that of
            ``execution.checkpointing.savepoint-dir``.

        Returns
        -------
        CompletableFuture of str
            The path of the checkpoint, when it is complete; or the reason why it was not written. The job
            continues if something in it does not support checkpoints, or one of its sources is a source function, whose
            position is ahead of its job.

        Raises
        ------
        ConfigurationError
            If no directory is known.

        Notes
        -----
        Follows ``pyflink.common.JobClient.trigger_savepoint``. The path is that of a
        checkpoint of flinkcore.
        """
        return self._job.trigger_savepoint(self._new_path("trigger_savepoint", savepoint_directory))

    def _new_path(self, method: str, savepoint_directory: str | None) -> str:
        directory = self._savepoint_directory if savepoint_directory is None else savepoint_directory
        if directory is None:
            raise ConfigurationError(
                f"{method} has no directory. Give savepoint_directory, or set execution.checkpointing.savepoint-dir"
            )
        return f"{directory.rstrip('/')}/savepoint-{str(self._job.job_id)[:6]}-{uuid.uuid4().hex[:12]}"

"""The state of a job."""

from enum import Enum


class JobStatus(Enum):
    """Status of a job.

    Notes
    -----
    Follows ``pyflink.common.JobStatus``. A job of flinkcore is never in one of the states that only a cluster has:
    RESTARTING, SUSPENDED and RECONCILING.
    """

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9

    def is_globally_terminal_state(self) -> bool:
        """Return whether the job has ended: FAILED, CANCELED or FINISHED."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_terminal_state(self) -> bool:
        """Return whether the job has ended, or was suspended."""
        return self.is_globally_terminal_state() or self is JobStatus.SUSPENDED

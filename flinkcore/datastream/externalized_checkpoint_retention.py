"""What becomes of checkpoints when a job is cancelled."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Whether checkpoints are deleted or kept when a job is cancelled, or not kept for others at all.

    Notes
    -----
    Follows ``pyflink.datastream.ExternalizedCheckpointRetention``.
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2

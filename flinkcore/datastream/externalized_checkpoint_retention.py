"""Retention of the checkpoints of cancelled jobs."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Retention of checkpoints: deleted or kept when a job is cancelled, or not kept for other jobs at all.

    Notes
    -----
    Follows ``pyflink.datastream.ExternalizedCheckpointRetention``.
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2

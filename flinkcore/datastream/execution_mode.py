"""The execution mode of jobs."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Mode of execution: results are emitted as elements arrive, or after the end of the input.

    Notes
    -----
    Follows ``pyflink.datastream.RuntimeExecutionMode``.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2

"""How a job treats its input."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Whether results come as the input does, or when all of it is there.

    Notes
    -----
    Follows ``pyflink.datastream.RuntimeExecutionMode``.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2

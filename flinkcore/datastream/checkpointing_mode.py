"""How often an element may count after a failure."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """Modes of checkpoints.

    Notes
    -----
    Follows ``pyflink.datastream.CheckpointingMode``.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1

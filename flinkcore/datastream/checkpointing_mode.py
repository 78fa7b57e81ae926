"""The guarantees of checkpoints."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """Guarantee after a failure: elements count exactly once, or at least once.

    Notes
    -----
    Follows ``pyflink.datastream.CheckpointingMode``.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1

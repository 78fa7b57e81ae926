"""When a sink begins another file."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class RollingPolicy:
    """Ends a file when it is large, old, or has not been written to for long, by the job's clock.

    Parameters
    ----------
    part_size : int
        Bytes.
    rollover_interval, inactivity_interval : int
        Milliseconds.

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.RollingPolicy``.
    """

    part_size: int
    rollover_interval: int
    inactivity_interval: int

    def __post_init__(self) -> None:
        if min(self.part_size, self.rollover_interval, self.inactivity_interval) < 1:
            raise ConfigurationError(f"size and intervals of a rolling policy are above 0, not {self}")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> RollingPolicy:
        """Return a policy by size, age and inactivity."""
        return RollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        """Return a policy that ends files at checkpoints only: here, at the end of the job."""
        return RollingPolicy(sys.maxsize, sys.maxsize, sys.maxsize)

    def ends(self, size: int, begun_ms: int, written_ms: int, now_ms: int) -> bool:
        """Return whether a file is not to be written to any more.

        Parameters
        ----------
        size : int
            Bytes of the file.
        begun_ms, written_ms, now_ms : int
            When it was begun and last written to, and the time now.
        """
        return (
            size >= self.part_size
            or now_ms - begun_ms >= self.rollover_interval
            or now_ms - written_ms >= self.inactivity_interval
        )

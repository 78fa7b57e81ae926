"""Settings of checkpoints that a program states for a cluster."""

from __future__ import annotations

from flinkcore.datastream.checkpointing_mode import CheckpointingMode


class CheckpointConfig:
    """Settings of checkpoints; they are kept, and have no effect on a job that runs in one go.

    Notes
    -----
    Follows ``pyflink.datastream.CheckpointConfig``.
    """

    def __init__(self) -> None:
        self._interval = -1
        self._mode = CheckpointingMode.EXACTLY_ONCE
        self._timeout = 600_000
        self._min_pause = 0
        self._max_concurrent = 1
        self._tolerable_failures = 0
        self._unaligned = False

    def is_checkpointing_enabled(self) -> bool:
        """Return whether an interval is set."""
        return self._interval > 0

    def get_checkpoint_interval(self) -> int:
        """Return the interval in ms; -1 if there is none."""
        return self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the interval in ms."""
        self._interval = checkpoint_interval
        return self

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode."""
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the mode."""
        self._mode = checkpointing_mode
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return after how many ms a checkpoint has failed."""
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set after how many ms a checkpoint has failed."""
        self._timeout = checkpoint_timeout
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return how many ms there are at least between checkpoints."""
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set how many ms there are at least between checkpoints."""
        self._min_pause = min_pause_between_checkpoints
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return how many checkpoints there may be at once."""
        return self._max_concurrent

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set how many checkpoints there may be at once."""
        self._max_concurrent = max_concurrent_checkpoints
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many checkpoints may fail."""
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Set how many checkpoints may fail."""
        self._tolerable_failures = tolerable_checkpoint_failure_number
        return self

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether barriers overtake elements."""
        return self._unaligned

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Set whether barriers overtake elements."""
        self._unaligned = enabled
        return self

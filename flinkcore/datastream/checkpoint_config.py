"""Settings of periodic checkpoints on a cluster, which have no effect here."""

from __future__ import annotations

from flinkcore.common.time import Duration
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention


class CheckpointConfig:
    """Settings of periodic checkpoints, in ms where they are times; they are stored without an effect.

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
        self._retention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        self._unaligned = False
        self._unaligned_forced = False
        self._alignment_timeout = Duration.of_millis(0)

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
        """Return the timeout of a checkpoint in ms."""
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the timeout of a checkpoint in ms."""
        self._timeout = checkpoint_timeout
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the minimum pause between checkpoints in ms."""
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the minimum pause between checkpoints in ms."""
        self._min_pause = min_pause_between_checkpoints
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the maximum number of concurrent checkpoints."""
        return self._max_concurrent

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the maximum number of concurrent checkpoints."""
        self._max_concurrent = max_concurrent_checkpoints
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many consecutive checkpoints may fail."""
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Set how many consecutive checkpoints may fail."""
        self._tolerable_failures = tolerable_checkpoint_failure_number
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether no checkpoint may fail."""
        return self._tolerable_failures == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether no checkpoint may fail, or any number of them."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return what becomes of checkpoints when a job is cancelled."""
        return self._retention

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set what becomes of checkpoints when a job is cancelled."""
        self._retention = retention_mode
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints outlive their job."""
        return self._retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints are unaligned."""
        return self._unaligned

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Set whether checkpoints are unaligned."""
        self._unaligned = enabled
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Set that checkpoints are aligned."""
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether checkpoints are unaligned also where custom partitioners forbid it."""
        return self._unaligned_forced

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Set whether checkpoints are unaligned also where custom partitioners forbid it."""
        self._unaligned_forced = force_unaligned_checkpoints
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return after how long an aligned checkpoint becomes unaligned."""
        return self._alignment_timeout

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set after how long an aligned checkpoint becomes unaligned."""
        self._alignment_timeout = alignment_timeout
        return self

    def get_alignment_timeout(self) -> Duration:
        """Return the same as `get_aligned_checkpoint_timeout`, which is its newer name."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set the same as `set_aligned_checkpoint_timeout`, which is its newer name."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

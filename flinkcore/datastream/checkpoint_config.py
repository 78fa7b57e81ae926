"""Settings of periodic checkpoints on a cluster, which have no effect here."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from flinkcore._internal.python.missing_features import WithFormerMethods, refuse_name
from flinkcore.common.configuration import Configuration
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.time import Duration
from flinkcore.datastream.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from flinkcore.errors import ArgumentTypeError


class CheckpointConfig(WithFormerMethods):
    """Settings of periodic checkpoints, in ms where they are times; getters return them, but they have no effect.

    Parameters
    ----------
    configuration : Configuration, optional
        Holds the settings by their keys; a new one by default.

    Notes
    -----
    Follows ``pyflink.datastream.CheckpointConfig``; the storage of checkpoints as up to Flink 1.20.
    """

    DEFAULT_MODE: ClassVar[CheckpointingMode] = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT: ClassVar[int] = 600_000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: ClassVar[int] = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: ClassVar[int] = 1

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._storage: CheckpointStorage | None = None

    def is_checkpointing_enabled(self) -> bool:
        """Return whether an interval is set."""
        return self.get_checkpoint_interval() > 0

    def get_checkpoint_interval(self) -> int:
        """Return the interval in ms, or -1 without one."""
        interval = self._configuration.get(settings.CHECKPOINTING_INTERVAL)
        return -1 if interval is None else interval.to_millis()

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the interval in ms; ConfigurationError if it is below 10."""
        return self._set(settings.CHECKPOINTING_INTERVAL, checkpoint_interval)

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode; AT_LEAST_ONCE where no interval is set."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return CheckpointingMode[self._configuration.get(settings.CHECKPOINTING_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the mode; ConfigurationError if it is not a CheckpointingMode."""
        if not isinstance(checkpointing_mode, CheckpointingMode):
            raise ArgumentTypeError(
                f"a mode of checkpoints is one of CheckpointingMode, not {checkpointing_mode!r}"
            )
        self._configuration.set(settings.CHECKPOINTING_MODE, checkpointing_mode.name)
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return the timeout of a checkpoint in ms."""
        return self._configuration.get(settings.CHECKPOINTING_TIMEOUT).to_millis()

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the timeout of a checkpoint in ms."""
        return self._set(settings.CHECKPOINTING_TIMEOUT, checkpoint_timeout)

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the minimum pause between checkpoints in ms."""
        return self._configuration.get(settings.MIN_PAUSE_BETWEEN_CHECKPOINTS).to_millis()

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the minimum pause between checkpoints in ms."""
        return self._set(settings.MIN_PAUSE_BETWEEN_CHECKPOINTS, min_pause_between_checkpoints)

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the maximum number of concurrent checkpoints."""
        return self._configuration.get(settings.MAX_CONCURRENT_CHECKPOINTS)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the maximum number of concurrent checkpoints."""
        return self._set(settings.MAX_CONCURRENT_CHECKPOINTS, max_concurrent_checkpoints)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many consecutive checkpoints may fail."""
        return self._configuration.get(settings.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(
        self, tolerable_checkpoint_failure_number: int
    ) -> CheckpointConfig:
        """Set how many consecutive checkpoints may fail."""
        return self._set(settings.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether no checkpoint may fail."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether no checkpoint may fail, or any number of them."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return whether checkpoints are kept when a job is cancelled."""
        return ExternalizedCheckpointRetention[self._configuration.get(settings.CHECKPOINT_RETENTION)]

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set the retention of checkpoints of cancelled jobs; ConfigurationError for a value of another class."""
        if not isinstance(retention_mode, ExternalizedCheckpointRetention):
            raise ArgumentTypeError(
                f"a retention of checkpoints is one of ExternalizedCheckpointRetention, not {retention_mode!r}"
            )
        self._configuration.set(settings.CHECKPOINT_RETENTION, retention_mode.name)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints outlive their job."""
        retention = self.get_externalized_checkpoint_retention()
        return retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints are unaligned, which only those of mode EXACTLY_ONCE can be."""
        unaligned = self._configuration.get(settings.UNALIGNED_CHECKPOINTS)
        return unaligned and self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Set whether checkpoints are unaligned."""
        return self._set(settings.UNALIGNED_CHECKPOINTS, enabled)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Set that checkpoints are aligned."""
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether checkpoints are unaligned even if custom partitioners forbid it."""
        return self._configuration.get(settings.FORCE_UNALIGNED_CHECKPOINTS)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Set whether checkpoints are unaligned even if custom partitioners forbid it."""
        return self._set(settings.FORCE_UNALIGNED_CHECKPOINTS, force_unaligned_checkpoints)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return after how long an aligned checkpoint becomes unaligned."""
        return self._configuration.get(settings.ALIGNED_CHECKPOINT_TIMEOUT)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set after how long an aligned checkpoint becomes unaligned."""
        return self._set(settings.ALIGNED_CHECKPOINT_TIMEOUT, alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """Return the same as `get_aligned_checkpoint_timeout`, which is its newer name."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set the same as `set_aligned_checkpoint_timeout`, which is its newer name."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the storage of checkpoints, or None if none was set."""
        configured = self._configuration.get(settings.CHECKPOINT_STORAGE)
        directory = self._configuration.get(settings.CHECKPOINTS_DIRECTORY)
        if configured == "jobmanager":
            return JobManagerCheckpointStorage(directory)
        if directory is not None:
            return FileSystemCheckpointStorage(directory)
        return self._storage

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set the storage of checkpoints."""
        self._configuration.remove_config(settings.CHECKPOINT_STORAGE.name)
        self._configuration.remove_config(settings.CHECKPOINTS_DIRECTORY.name)
        self._storage = storage
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Set the directory that checkpoints are to be stored in."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def _set(self, setting: settings.Setting[Any], value: Any) -> CheckpointConfig:
        self._configuration.set(setting, setting.type.argument(setting.name, value))
        return self


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has or had here and flinkcore does not."""
    refuse_name(__name__, name)

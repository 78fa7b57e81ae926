"""What programs tell an environment about a cluster."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NoReturn, TypeVar

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.checkpoint_config import CheckpointConfig
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.execution_mode import RuntimeExecutionMode
from flinkcore.datastream.missing_features import MISSING_METHODS, MissingMethodError
from flinkcore.errors import ConfigurationError

S = TypeVar("S", bound="ClusterSettings")


class ClusterSettings:
    """The part of :class:`StreamExecutionEnvironment` that is about checkpoints, buffers and workers.

    What has no meaning in one process is accepted, so that programs need not be changed; what a program would rely on
    is refused.
    """

    @abstractmethod
    def get_config(self) -> ExecutionConfig:
        """Return the settings of jobs."""

    def __init__(self) -> None:
        self._checkpoint_config = CheckpointConfig()
        self._buffer_timeout_ms = 100

    def set_runtime_mode(self: S, execution_mode: RuntimeExecutionMode) -> S:
        """Set whether a job of Python functions gives results as its input comes, or final ones only.

        Parameters
        ----------
        execution_mode : RuntimeExecutionMode
            STREAMING and AUTOMATIC: for each element. BATCH: no watermark before the end of the input, and a reduce
            gives one result for each key, at that end. Elements of a key come as they arrive, where Flink sorts
            them by time. Columnar jobs are replays of streams in any mode.

        Raises
        ------
        ConfigurationError
            If it is something else.
        """
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ConfigurationError(f"a mode is one of RuntimeExecutionMode, not {execution_mode!r}")
        self.get_config().set_batch(execution_mode is RuntimeExecutionMode.BATCH)
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accept a timeout, which has no effect: elements are never buffered."""
        self._buffer_timeout_ms = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        """Return the timeout that was set, 100 ms unless it was."""
        return self._buffer_timeout_ms

    def enable_checkpointing(self: S, interval: int, mode: CheckpointingMode | None = None) -> S:
        """Accept checkpoints, which are not made: a job runs in one go."""
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the settings of checkpoints."""
        return self._checkpoint_config

    def get_checkpoint_interval(self) -> int:
        """Return the interval of checkpoints that was set, in ms; -1 unless it was."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode of checkpoints."""
        return self._checkpoint_config.get_checkpointing_mode()

    def register_slot_sharing_group(self: S, slot_sharing_group: Any) -> S:
        """Accept a group, which has no effect: there are no slots."""
        return self

    @abstractmethod
    def add_python_file(self, file_path: str) -> None:
        """Let the functions of jobs import a module."""

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Accept an archive, which has no effect: functions run in this process."""

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Accept requirements, which have no effect: functions run in this process, with what it can import."""

    def set_python_executable(self, python_exec: str) -> None:
        """Accept an executable, which has no effect: functions run in this process."""

    def __getattr__(self, name: str) -> NoReturn:
        instead = MISSING_METHODS.get(name)
        if instead is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise MissingMethodError(f"flinkcore has no {name}(), which PyFlink has: {instead}")

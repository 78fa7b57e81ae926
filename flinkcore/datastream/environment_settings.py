"""The settings of an environment's jobs, by PyFlink's methods and by Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flinkcore._internal.io.locations import path_text
from flinkcore._internal.python.missing_features import WithFormerMethods
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.common.configuration import Configuration
from flinkcore.common.execution_config import ExecutionConfig, JobClockName
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.settings.flink_settings import (
    Setting,
    settings_of,
    unknown_settings,
)
from flinkcore.datastream.checkpoint_config import CheckpointConfig
from flinkcore.datastream.checkpointing_mode import CheckpointingMode
from flinkcore.datastream.execution_mode import RuntimeExecutionMode
from flinkcore.datastream.graph.pipeline_executor import PipelineExecutor, load_executor
from flinkcore.datastream.job_dependencies import JobDependencies
from flinkcore.datastream.state_backend import StateBackend
from flinkcore.errors import ArgumentTypeError

if TYPE_CHECKING:
    from flinkcore._internal.io.stores import Stores
    from flinkcore.common.restart_strategy import RestartStrategyConfiguration
    from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

S = TypeVar("S", bound="EnvironmentSettings")


class EnvironmentSettings(JobDependencies, WithFormerMethods):
    """Environment as the settings of its jobs, and the executor that runs them.

    Parameters
    ----------
    executor : PipelineExecutor, optional
        Runs the jobs; the embedded executor by default.
    """

    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, executor: PipelineExecutor | None = None) -> None:
        self._executor = executor
        self._configuration = Configuration()
        self._config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        if executor is None and self._default_local_parallelism is not None:
            self._config.set_parallelism(self._default_local_parallelism)
        self._state_backend: StateBackend | None = None
        self._restart_strategy: RestartStrategyConfiguration | None = None

    @property
    def _stores(self) -> Stores | None:
        """Return file systems with the settings of the executor, or None for those of the environment."""
        return None if self._executor is None else self._executor.stores

    @property
    def executor(self) -> PipelineExecutor:
        """The executor of this environment's jobs."""
        if self._executor is None:
            self._executor = load_executor("embedded")
        return self._executor

    def configure(self, configuration: Configuration | Mapping[str, str]) -> None:
        """Apply settings.

        Parameters
        ----------
        configuration : Configuration or mapping of str to str
            Flink's settings by their keys, in Flink's spellings: docs/settings.md says which have an effect, which have
            no meaning here, and which are refused; with a warning, others are ignored.

        Raises
        ------
        ConfigurationError
            If a value is invalid, or is refused.
        SourceError
            If there is no such file of Python.
        """
        self._configure(configuration)

    def _configure(self, configuration: Configuration | Mapping[str, str]) -> None:
        """Apply settings, and warn of unknown ones."""
        if isinstance(configuration, Mapping):
            configuration = Configuration.from_dict(configuration)
        elif not isinstance(configuration, Configuration):
            raise ArgumentTypeError(
                f"settings are a Configuration or a dictionary of texts, not {configuration!r}"
            )
        changed = list(settings_of(configuration))
        for warning in unknown_settings(configuration).values():
            warn_user(warning)
        for setting, value in changed:
            if setting is settings.CACHED_FILES:
                self._add_cached_files(value)
                continue
            if setting is settings.RESTART_STRATEGY:
                self._restart_strategy = None
            self._configuration.set(setting, value)
            self._add_python_dependencies(setting, value)

    def _add_python_dependencies(self, setting: Setting[Any], value: Any) -> None:
        if setting is settings.PYTHON_FILES:
            for path in _listed(value):
                self.add_python_file(path)
        elif setting is settings.PYTHON_ARCHIVES:
            for path, _, folder in (archive.partition("#") for archive in _listed(value)):
                self.add_python_archive(path, folder or None)
        elif setting is settings.PYTHON_REQUIREMENTS:
            path, _, cache = value.partition("#")
            self.set_python_requirements(path, cache or None)
        elif setting is settings.PYTHON_EXECUTABLE:
            self.set_python_executable(value)

    def get_config(self) -> ExecutionConfig:
        """Return the settings, to be read and changed."""
        return self._config

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; -1 leaves it to the executor (embedded: one per processor)."""
        return self._config.get_parallelism()

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set the number of parallel tasks (embedded: threads), and return this environment.

        Results do not depend on it.
        """
        self._config.set_parallelism(parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups."""
        return self._config.get_max_parallelism()

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """Set the number of key groups, from 1 to 32,768 (default 128), and return this environment."""
        self._config.set_max_parallelism(max_parallelism)
        return self

    def set_clock(self: S, clock: JobClockName) -> S:
        """Set which clock shows the processing time of jobs of Python functions.

        Parameters
        ----------
        clock : {"arrival", "system"}
            ``arrival``, the default: when elements arrive, which does not depend on how fast the job runs. ``system``:
            the time of this machine, as in PyFlink. Processing-time timers and windows, periodic watermarks, idleness
            and times to live follow it, and sources may go on without end. Such a job runs by itself in one thread,
            which calls functions and, between elements, timers. It ends with its sources, by Ctrl-C, by the end of
            ``with stream.execute_and_collect() as results``, or by ``execute_async().cancel()``.

        Raises
        ------
        ConfigurationError
            If it is neither of these. Jobs on Spark, columnar jobs and event logs refuse the system clock when they are
            executed.
        """
        self._config.set_clock(clock)
        return self

    def get_clock(self) -> JobClockName:
        """Return which clock shows the processing time of jobs of Python functions."""
        return self._config.get_clock()

    def set_runtime_mode(self: S, execution_mode: RuntimeExecutionMode) -> S:
        """Set whether a job emits results for each element, or final ones only.

        Parameters
        ----------
        execution_mode : RuntimeExecutionMode
            STREAMING: for each element. BATCH: no watermark before the end of the input; a keyed step gets its elements
            key by key, those of a key in the order of their timestamps, and after them the timers of the key fire, also
            those of processing time; a reduce emits one result per key; elements wait for what is broadcast. They are
            sorted in memory. Columnar jobs take windows whose aggregates do not depend on the order of rows. AUTOMATIC:
            as BATCH if all sources are bounded, otherwise as STREAMING, and so if one of them is an event log, which is
            the record of a stream.

        Raises
        ------
        ConfigurationError
            If it is not a RuntimeExecutionMode.
        """
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ArgumentTypeError(f"a mode is one of RuntimeExecutionMode, not {execution_mode!r}")
        self._configuration.set(settings.RUNTIME_MODE, execution_mode.name)
        return self

    def disable_operator_chaining(self: S) -> S:
        """Disable operator chaining; results stay the same."""
        self._config.set_chaining_enabled(False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators are chained: call the next one directly where they can."""
        return self._config.is_chaining_enabled()

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators with different maximum parallelisms are chained."""
        return self._config.is_chaining_of_operators_with_different_max_parallelism_enabled()

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism of new environments of this process; -1 leaves it to the executor.

        Notes
        -----
        Flink's default is the number of processors.
        """
        return self._default_local_parallelism or ExecutionConfig.PARALLELISM_DEFAULT

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism that new environments of this process begin with."""
        ExecutionConfig().set_parallelism(parallelism)
        EnvironmentSettings._default_local_parallelism = parallelism

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Set after how long buffers are sent, in ms; -1: when they are full. Elements are never buffered here."""
        has_timeout = not isinstance(timeout_millis, Integral) or timeout_millis != -1
        if has_timeout:
            timeout = settings.BUFFER_TIMEOUT
            self._configuration.set(timeout, timeout.type.argument(timeout.name, timeout_millis))
        self._configuration.set(settings.BUFFER_TIMEOUT_ENABLED, has_timeout)
        return self

    def get_buffer_timeout(self) -> int:
        """Return the timeout in ms, 100 by default, or -1 without one."""
        if not self._configuration.get(settings.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(settings.BUFFER_TIMEOUT).to_millis()

    def set_state_backend(self: S, state_backend: StateBackend) -> S:
        """Set where state is to be held, which has no meaning here: it is held in memory.

        Raises
        ------
        ConfigurationError
            If it is not a StateBackend.

        Notes
        -----
        Follows Flink 1.20.
        """
        if not isinstance(state_backend, StateBackend):
            raise ArgumentTypeError(
                f"a state backend is one such as HashMapStateBackend(), not {state_backend!r}"
            )
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return what `set_state_backend` has set, or None; as in Flink, whatever ``state.backend.type`` is."""
        return self._state_backend

    def enable_changelog_state_backend(self: S, enabled: bool) -> S:
        """Set whether changes of state are logged for checkpoints, which has no meaning here."""
        self._configuration.set(settings.STATE_CHANGELOG, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return whether changes of state are to be logged; None if that was not set."""
        return self._configuration.get(settings.STATE_CHANGELOG)

    def set_default_savepoint_directory(self: S, directory: str) -> S:
        """Set where a `JobClient` writes savepoints if it is given no directory."""
        self._configuration.set(settings.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory of savepoints, or None."""
        directory = self._configuration.get(settings.SAVEPOINT_DIRECTORY)
        return None if directory is None else path_text(directory)

    def set_restart_strategy(self: S, restart_strategy_configuration: RestartStrategyConfiguration) -> S:
        """Set how a job is run again after a failure, which has no meaning here.

        Raises
        ------
        ConfigurationError
            If it is none of :class:`RestartStrategies`.

        Notes
        -----
        Follows Flink 1.20.
        """
        from flinkcore.common.restart_strategy import RestartStrategyConfiguration

        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise ArgumentTypeError(
                f"a restart strategy is one of RestartStrategies, not {restart_strategy_configuration!r}"
            )
        self._restart_strategy = restart_strategy_configuration
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return what `set_restart_strategy` has set since ``restart-strategy.type`` was; else that of the cluster."""
        from flinkcore.common.restart_strategy import RestartStrategies

        return self._restart_strategy or RestartStrategies.fall_back_restart()

    def enable_checkpointing(self: S, interval: int, mode: CheckpointingMode | None = None) -> S:
        """Accept checkpoint settings, which have no effect: jobs do not write periodic checkpoints.

        Parameters
        ----------
        interval : int
            Milliseconds, at least 10.
        mode : CheckpointingMode, optional

        Raises
        ------
        ConfigurationError
            If the interval is less, or the mode is none.
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the settings of checkpoints."""
        return self._checkpoint_config

    def get_checkpoint_interval(self) -> int:
        """Return the interval of checkpoints in ms, -1 by default."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the mode of checkpoints."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the same as `get_checkpointing_mode`, of which it is the newer name."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints are unaligned."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether checkpoints are unaligned even if custom partitioners forbid it."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def register_slot_sharing_group(self: S, slot_sharing_group: SlotSharingGroup) -> S:
        """Accept a group without an effect, as there are no slots; ConfigurationError if it is none."""
        from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise ArgumentTypeError(
                f"a slot sharing group is made by SlotSharingGroup.builder(name), not {slot_sharing_group!r}"
            )
        return self


def _listed(paths: str) -> list[str]:
    return [path.strip() for path in paths.split(",") if path.strip()]

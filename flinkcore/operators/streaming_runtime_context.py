"""The runtime context that a function is opened with: its task, keyed state and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkcore.datastream.functions import RuntimeContext
from flinkcore.datastream.state import StateDescriptor
from flinkcore.errors import ConfigurationError
from flinkcore.metrics import MetricGroup
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.state.keyed_state_store import AbstractKeyedStateStore


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A subtask, and the parameters of its job.

    Parameters
    ----------
    name : str
    parallelism, max_parallelism : int
    index : int
        Index of the subtask.
    attempt_number : int
        The number of previous attempts.
    job_parameters : mapping of str to str

    Notes
    -----
    Flink's ``TaskInfo`` and ``JobInfo``.
    """

    name: str
    parallelism: int = 1
    max_parallelism: int = 128
    index: int = 0
    attempt_number: int = 0
    job_parameters: Mapping[str, str] = field(default_factory=dict)


class StreamingRuntimeContext(AbstractKeyedStateStore, RuntimeContext):
    """The runtime context of an operator's function.

    Parameters
    ----------
    task : TaskInfo
    keyed_state_store : AbstractKeyedStateStore, optional
        State store of a keyed operator; without it, asking for keyed state is a ConfigurationError.
    metric_group : MetricGroup, optional
        By default a group of its own, which is not reported.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamingRuntimeContext``.
    """

    def __init__(
        self,
        task: TaskInfo,
        keyed_state_store: AbstractKeyedStateStore | None = None,
        metric_group: MetricGroup | None = None,
    ) -> None:
        self._task = task
        self._keyed_state_store = keyed_state_store
        self._metric_group = metric_group or TaskMetricGroup()

    def get_task_name(self) -> str:
        return self._task.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._task.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._task.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._task.index

    def get_attempt_number(self) -> int:
        return self._task.attempt_number

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._task.name} ({self._task.index + 1}/{self._task.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._task.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self._metric_group

    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> Any:
        if self._keyed_state_store is None:
            raise ConfigurationError(
                f"the keyed state {descriptor.name!r} needs a keyed stream. Use key_by first, and a keyed function"
            )
        return self._keyed_state_store.state(descriptor, kind)

"""What a function is opened with: its task, and its keyed state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flinkcore.datastream.functions import KeyedStateStore, RuntimeContext
from flinkcore.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from flinkcore.errors import ConfigurationError
from flinkcore.metrics import MetricGroup
from flinkcore.runtime.task_metrics import TaskMetricGroup

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A subtask and its job.

    Parameters
    ----------
    name : str
    parallelism, max_parallelism : int
    index : int
        Of the subtask, from 0 on.
    attempt_number : int
        How often it was tried before.
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


class StreamingRuntimeContext(RuntimeContext):
    """The runtime context of an operator's function.

    Parameters
    ----------
    task : TaskInfo
    keyed_state_store : KeyedStateStore, optional
        That of a keyed operator; without it, asking for keyed state is a ConfigurationError.
    metric_group : MetricGroup, optional
        One that nobody sees unless given.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamingRuntimeContext``.
    """

    def __init__(
        self,
        task: TaskInfo,
        keyed_state_store: KeyedStateStore | None = None,
        metric_group: MetricGroup | None = None,
    ) -> None:
        self._task = task
        self._keyed_state_store = keyed_state_store
        self._metric_group = metric_group or TaskMetricGroup()

    def get_task_name(self) -> str:
        """Return the name of the task."""
        return self._task.name

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism."""
        return self._task.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the number of key groups."""
        return self._task.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        """Return the number of the subtask, from 0 on."""
        return self._task.index

    def get_attempt_number(self) -> int:
        """Return how often the subtask was tried before."""
        return self._task.attempt_number

    def get_task_name_with_subtasks(self) -> str:
        """Return the name with subtask, from 1 on, and parallelism."""
        return f"{self._task.name} ({self._task.index + 1}/{self._task.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of the job, or the default."""
        return self._task.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        """Return the task's group of metrics."""
        return self._metric_group

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state of one value per key."""
        return self._store(state_descriptor).get_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state of one list per key."""
        return self._store(state_descriptor).get_list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state of one map per key."""
        return self._store(state_descriptor).get_map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the state of one reduced value per key."""
        return self._store(state_descriptor).get_reducing_state(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, Any, OUT]
    ) -> AggregatingState[IN, OUT]:
        """Return the state of one aggregate per key."""
        return self._store(state_descriptor).get_aggregating_state(state_descriptor)

    def _store(self, descriptor: StateDescriptor) -> KeyedStateStore:
        if self._keyed_state_store is None:
            raise ConfigurationError(
                f"the keyed state {descriptor.name!r} needs a keyed stream: use key_by first, and a keyed function"
            )
        return self._keyed_state_store

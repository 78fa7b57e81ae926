"""What a function can ask about where it runs."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.functions.keyed_state_store import KeyedStateStore
from flinkcore.errors import ConfigurationError
from flinkcore.metrics import MetricGroup

if TYPE_CHECKING:
    from flinkcore.datastream.state import ColumnState


class RuntimeContext(KeyedStateStore):
    """The task that a function runs in, and the keyed state of the function.

    Notes
    -----
    Follows ``pyflink.datastream.RuntimeContext``.
    """

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the name of the task, as the plan gives it."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the task."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the maximum parallelism of the task: the number of key groups."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the number of this subtask, from 0 on."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return how often this subtask was tried before."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the task with subtask and parallelism, such as ``"visits (3/6)"``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of the job, or the default where it has none of this name."""

    def get_column_state(self, name: str, dtype: Any, default: Any = 0) -> "ColumnState":
        """Return the column of this name, with a value per key; of a `KeyedBatchProcessFunction` only, in its `open`.

        Parameters
        ----------
        name : str
        dtype : numpy dtype
            One number, time, text of fixed length or ``object`` per key.
        default : object
            Value of a key that has none yet.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the type or the default cannot be those of a column; or if the function is not one
            over batches.
        LifecycleError
            If the function has been opened already.

        Notes
        -----
        PyFlink has no counterpart.
        """
        raise ConfigurationError(
            f"the column state {name!r} is for a KeyedBatchProcessFunction; this function has a current key: take "
            "get_state(ValueStateDescriptor(...))"
        )

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group of metrics of the function's task."""

"""The task that a function runs in, and the store of its keyed state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from flinkcore.errors import ConfigurationError
from flinkcore.metrics import MetricGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from flinkcore.datastream.aggregates import Aggregate
    from flinkcore.datastream.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ColumnAggregateState,
        ColumnListState,
        ColumnState,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class KeyedStateStore(ABC):
    """Store of the states of a function on a keyed stream, by their descriptors.

    A state is asked for once, in ``open``, and always holds the value of the current key.

    Notes
    -----
    Follows ``pyflink.datastream.functions.KeyedStateStore``.
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """Return the state of one value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return the state of one list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """Return the state of one map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """Return the state of one reduced value per key."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN, Any, OUT]
    ) -> AggregatingState[IN, OUT]:
        """Return the state of one aggregate per key."""


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
        """Return the index of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return how many attempts of this subtask came before this one."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the task with subtask and parallelism, such as ``"visits (3/6)"``."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of the job, or the default if the job has none of this name."""

    def get_column_state(self, name: str, dtype: Any, default: Any = 0) -> ColumnState:
        """Return the column of this name, with a value per key; only in the `open` of a `KeyedBatchProcessFunction`.

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
            If the name is taken, the type or the default cannot be those of a column, or the function is not one over
            batches.
        LifecycleError
            If the function has been opened already.

        Notes
        -----
        PyFlink has no counterpart.
        """
        raise ConfigurationError(
            f"the column state {name!r} is for a KeyedBatchProcessFunction; this function has a current key. Take "
            "get_state(ValueStateDescriptor(...))"
        )

    def get_column_list_state(self, name: str, schema: pa.Schema) -> ColumnListState:
        """Return the lists of this name, one of rows per key; only in the `open` of a `KeyedBatchProcessFunction`.

        Parameters
        ----------
        name : str
        schema : pyarrow.Schema
            Columns of the rows.

        Raises
        ------
        ConfigurationError
            If the name is taken, the schema is none or has a dictionary or another type that no lists have, or the
            function is not one over batches.
        LifecycleError
            If the function has been opened already.

        Notes
        -----
        PyFlink has no counterpart.
        """
        raise ConfigurationError(
            f"the column list state {name!r} is for a KeyedBatchProcessFunction; this function has a current key. Take "
            "get_list_state(ListStateDescriptor(...))"
        )

    def get_column_aggregate_state(
        self, name: str, aggregates: Mapping[str, Aggregate]
    ) -> ColumnAggregateState:
        """Return the aggregates of this name, one row per key; only in the `open` of a `KeyedBatchProcessFunction`.

        Parameters
        ----------
        name : str
        aggregates : mapping of str to Aggregate
            By the names of their columns, over columns of the elements.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the function is not one over batches.
        SchemaError
            If a column is missing, or an aggregate does not support its type.
        LifecycleError
            If the function has been opened already.

        Notes
        -----
        PyFlink has no counterpart.
        """
        raise ConfigurationError(
            f"the column aggregate state {name!r} is for a KeyedBatchProcessFunction; this function has a current key. "
            "Take get_aggregating_state(AggregatingStateDescriptor(...))"
        )

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group of metrics of the function's task."""

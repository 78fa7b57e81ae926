"""What an operator of a subtask is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream import functions
from flinkcore.datastream.element_transformations import KeyedTransformation
from flinkcore.datastream.functions import Function, FunctionOrCallable, function_call
from flinkcore.datastream.transformations import PartitionTransformation, Transformation
from flinkcore.errors import DataError
from flinkcore.runtime.key_context import NO_KEY, KeyContext
from flinkcore.runtime.messages import shown
from flinkcore.runtime.operators.function_calls import KeySelector
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.runtime.task_metrics import TaskMetricGroup
from flinkcore.runtime.tasks.stream_graph import StreamNode
from flinkcore.runtime.tasks.stream_partitioners import ElementKeyGroups, key_group_range

F = TypeVar("F")


@dataclass
class JobContext:
    """What all subtasks of a job share.

    Attributes
    ----------
    configuration : ExecutionConfig
    task_clock : callable
        Returns the clock of the task of a number.
    collect : callable
        Takes the elements that the program wants itself.
    copied : callable
        Returns a copy of a function: every subtask works on its own.
    print_line : callable
        Takes what goes to the program's standard output.
    serializes : bool
        Whether what is collected, and what goes from task to task, is turned into bytes at once: then nothing has to
        be copied first.
    metrics : TaskMetricGroup
    """

    configuration: ExecutionConfig
    task_clock: Callable[[int], ProcessingTimeService]
    collect: Callable[[Any], None]
    copied: Callable[[Any], Any]
    print_line: Callable[[str], None] = print
    serializes: bool = False
    metrics: TaskMetricGroup = field(default_factory=TaskMetricGroup)


@dataclass
class OperatorSetup:
    """An operator to be made.

    Attributes
    ----------
    node : StreamNode
    index : int
        Of the subtask, from 0 on.
    job : JobContext
    clock : ProcessingTimeService
        Of the task.
    further_functions : list of Function
        Key selectors and the like, to be opened before the operator.
    """

    node: StreamNode
    index: int
    job: JobContext
    clock: ProcessingTimeService
    further_functions: list[Function] = field(default_factory=list)

    @cached_property
    def keyed_state_backend(self) -> KeyedStateBackend:
        """The operator's keyed state, of the key groups of its subtask."""
        node = self.node
        key_group_of = (lambda key: 0) if node.parallelism == 1 else ElementKeyGroups(node.max_parallelism)
        key_groups = key_group_range(node.max_parallelism, node.parallelism, self.index)
        return KeyedStateBackend(KeyContext(node.max_parallelism, key_groups, key_group_of), self.clock)

    @cached_property
    def operator_state_backend(self) -> OperatorStateBackend:
        """The operator's state without keys."""
        return OperatorStateBackend()

    @cached_property
    def metric_group(self) -> TaskMetricGroup:
        """The metrics of the subtask."""
        group = self.job.metrics.add_group(self.node.name)
        return group if self.node.parallelism == 1 else group.add_group(str(self.index))

    def copied(self, function: F) -> F:
        """Return the subtask's own copy of a function."""
        copied: F = self.job.copied(function)
        return copied

    def further(self, function: FunctionOrCallable, kind: type[Function], method: str) -> Callable[..., Any]:
        """Return the method of a copy of a function that is no operator's, and let that be opened and closed."""
        copied = self.copied(function)
        if isinstance(copied, Function):
            self.further_functions.append(copied)
        return function_call(copied, kind, method)

    def key_selector(self, step: Transformation) -> KeySelector:
        """Return what gives the key of elements that a step has partitioned."""
        if isinstance(step, KeyedTransformation):
            select = self.further(step.key_selector, functions.KeySelector, "get_key")
            conversion = step.key_type.conversion()
            return select if conversion is None else lambda element: conversion(select(element))
        assert isinstance(step, PartitionTransformation)
        return field_key(step.key_columns)

    def told_key(self) -> str:
        """Return what messages say of the key at hand; nothing where there is none."""
        if "keyed_state_backend" not in self.__dict__:
            return ""
        key_context = self.keyed_state_backend.key_context
        return (
            "" if key_context.current_key_id == NO_KEY else f" for the key {shown(key_context.current_key)}"
        )

    def runtime_context(self) -> StreamingRuntimeContext:
        """Return what the operator's function is opened with."""
        task = TaskInfo(
            name=self.node.name,
            parallelism=self.node.parallelism,
            max_parallelism=self.node.max_parallelism,
            index=self.index,
            job_parameters=self.job.configuration.get_global_job_parameters(),
        )
        has_keys = "keyed_state_backend" in self.__dict__
        store = DefaultKeyedStateStore(self.keyed_state_backend) if has_keys else None
        return StreamingRuntimeContext(task, store, self.metric_group)


def field_key(names: tuple[str, ...]) -> KeySelector:
    """Return what gives the values of named fields as the key: of one field itself, of several a tuple.

    A missing field raises a DataError. So does None as the one field, as Flink refuses it.
    """
    if len(names) != 1:

        def keys_of(element: Any) -> Any:
            try:
                return tuple([element[name] for name in names])
            except (LookupError, TypeError, ValueError):
                raise _no_fields(names, element) from None

        return keys_of
    (name,) = names

    def key_of(element: Any) -> Any:
        try:
            key = element[name]
        except (LookupError, TypeError, ValueError):
            raise _no_fields(names, element) from None
        if key is None:
            raise DataError(f"the key {name!r} is null; filter such elements out before key_by")
        return key

    return key_of


def _no_fields(names: tuple[str, ...], element: Any) -> DataError:
    called = f"key_by({', '.join(map(repr, names))})"
    given = getattr(element, "_fields", None)
    if given is None:
        return DataError(
            f"{called} takes elements with named fields: let the step before give Rows by "
            "Types.ROW_NAMED([...], [...]), or take a function, key_by(lambda element: ...)"
        )
    return DataError(f"{called}: the fields of the element are {list(given)}")

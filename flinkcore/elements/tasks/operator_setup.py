"""The surroundings of an operator: its job, its subtask, its state, and the functions that it is opened with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream import functions
from flinkcore.datastream.connectors.base import new_run_id
from flinkcore.datastream.functions import Function, FunctionOrCallable, function_call
from flinkcore.datastream.graph.element_transformations import KeyedTransformation
from flinkcore.datastream.graph.transformations import PartitionTransformation, Transformation
from flinkcore.elements.tasks.stream_graph import StreamEdge, StreamNode
from flinkcore.elements.tasks.stream_partitioners import ElementKeyGroups
from flinkcore.errors import DataError
from flinkcore.operators.function_calls import KeySelector
from flinkcore.operators.keys.key_context import NO_KEY, KeyContext
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend, OperatorStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.operators.timers.processing_time import ProcessingTimeService

if TYPE_CHECKING:
    from flinkcore.elements.sources.watermark_alignment import SourceCoordinators
    from flinkcore.elements.tasks.mailbox import TaskMailbox
    from flinkcore.elements.tasks.subtask_state import RestoredSubtasks
    from flinkcore.elements.tasks.task_output import InputChannel
    from flinkcore.operators.async_wait_operator import AsyncElementQueue

F = TypeVar("F")

_AFTER_ALL_TASKS: Final = 2**32 - 1


@dataclass
class JobContext:
    """The surroundings that all subtasks of a job share.

    Attributes
    ----------
    configuration : ExecutionConfig
    task_clock : callable
        From the number of a task to its clock.
    collect : callable
        Takes the elements that the program collects.
    copied : callable
        Returns a copy of a function: every subtask has its own.
    print_line : callable
        Writes a line to the program's standard output.
    serializes : bool
        Whether collected elements, and those between tasks, are serialized at once, so that they need no copy.
    metrics : TaskMetricGroup
    mailbox_of : callable or None
        Function from the number of a task to its mailbox, or None if callbacks of its clock need none.
    has_checkpoint : bool
        Whether the job is restored from a checkpoint, or may stop with one.
    downtime_ms : int
        Time for which the job did not run before it was restored, by its clock.
    restored : RestoredSubtasks or None
        Restores subtasks before they are opened; None if they begin again.
    async_queue_of : callable or None
        From the number of a task, a capacity, and whether results keep the order of elements, to the queue of an
        operator of an AsyncFunction; None if no such operator is opened.
    run_id : str
        Identifier of the run, for the writers of sinks.
    placed_channel : callable or None
        From an edge and a channel of it to one that takes elements at another time; None if they are taken at once.
    """

    configuration: ExecutionConfig
    task_clock: Callable[[int], ProcessingTimeService]
    collect: Callable[[Any], None]
    copied: Callable[[Any], Any]
    print_line: Callable[[str], None] = print
    serializes: bool = False
    metrics: TaskMetricGroup = field(default_factory=TaskMetricGroup)
    mailbox_of: Callable[[int], TaskMailbox] | None = None
    has_checkpoint: bool = False
    downtime_ms: int = 0
    restored: RestoredSubtasks | None = None
    async_queue_of: Callable[[int, int, bool], AsyncElementQueue] | None = None
    placed_channel: Callable[[StreamEdge, InputChannel], InputChannel] | None = None
    run_id: str = field(default_factory=new_run_id)

    @cached_property
    def source_coordinators(self) -> SourceCoordinators:
        """The coordinators of sources that are aligned; their timers come after those of all tasks."""
        from flinkcore.elements.sources.watermark_alignment import SourceCoordinators

        return SourceCoordinators(self.task_clock(_AFTER_ALL_TASKS))


@dataclass
class OperatorSetup:
    """The surroundings of an operator that is to be created.

    Attributes
    ----------
    node : StreamNode
    index : int
        Index of the subtask, from 0 on.
    job : JobContext
    clock : ProcessingTimeService
        Clock of the task.
    task : int
        Its number.
    further_functions : list of Function
        Key selectors and partitioners, which are opened before the operator.
    """

    node: StreamNode
    index: int
    job: JobContext
    clock: ProcessingTimeService
    task: int = 0
    further_functions: list[Function] = field(default_factory=list)

    @cached_property
    def keyed_state_backend(self) -> KeyedStateBackend:
        """The operator's keyed state, of the key groups of its subtask."""
        node = self.node
        groups = None
        if node.parallelism > 1 or self.job.has_checkpoint:
            groups = ElementKeyGroups(node.max_parallelism)
        key_groups = compute_key_group_range_for_operator_index(
            node.max_parallelism, node.parallelism, self.index
        )
        context = KeyContext(
            node.max_parallelism,
            key_groups,
            (lambda key: 0) if groups is None else groups,
            key_groups_of=None if groups is None else groups.of_all,
        )
        return KeyedStateBackend(context, self.clock)

    @cached_property
    def operator_state_backend(self) -> OperatorStateBackend:
        """The operator's state without keys."""
        return OperatorStateBackend()

    @cached_property
    def metric_group(self) -> TaskMetricGroup:
        """The metrics of the subtask."""
        group = self.job.metrics.add_group(self.node.metric_name)
        return group if self.node.parallelism == 1 else group.add_group(str(self.index))

    def copied(self, function: F) -> F:
        """Return the subtask's own copy of a function."""
        copied: F = self.job.copied(function)
        return copied

    def further(self, function: FunctionOrCallable, kind: type[Function], method: str) -> Callable[..., Any]:
        """Return the method of a copy of a further function, which is opened and closed with the operator."""
        copied = self.copied(function)
        if isinstance(copied, Function):
            self.further_functions.append(copied)
        return function_call(copied, kind, method)

    def key_selector(self, step: Transformation) -> KeySelector:
        """Return the key selector of a step that partitions by key."""
        if isinstance(step, KeyedTransformation):
            select = self.further(step.key_selector, functions.KeySelector, "get_key")
            conversion = step.key_type.conversion()
            return select if conversion is None else lambda element: conversion(select(element))
        assert isinstance(step, PartitionTransformation)
        return field_key(step.key.names)

    def shown_key(self) -> str:
        """Return the current key in words, or an empty text."""
        if "keyed_state_backend" not in self.__dict__:
            return ""
        key_context = self.keyed_state_backend.key_context
        return (
            "" if key_context.current_key_id == NO_KEY else f" for the key {shown(key_context.current_key)}"
        )

    def runtime_context(self) -> StreamingRuntimeContext:
        """Return the runtime context of the operator's function."""
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
    """Return the key selector of named fields: the value of one field, or a tuple of several.

    It raises a DataError for a missing field, and for None as the value of a single field, as Flink does.
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
            f"{called} takes elements with named fields. Let the step before give Rows by "
            "Types.ROW_NAMED([...], [...]), or take a function, key_by(lambda element: ...)"
        )
    return DataError(f"{called}: the fields of the element are {list(given)}")

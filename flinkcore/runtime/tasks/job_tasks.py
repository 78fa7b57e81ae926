"""The subtasks of a job: made and opened from its ends to its sources, closed from its sources to its ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from flinkcore.datastream.element_transformations import (
    CustomPartitionTransformation,
    KeyedTransformation,
    Partitioning,
)
from flinkcore.datastream.functions import Function, KeySelector, Partitioner, function_name
from flinkcore.datastream.transformations import PartitionTransformation
from flinkcore.runtime.chaining_output import ChainingOutput
from flinkcore.runtime.operators import AbstractStreamOperator, OneInputStreamOperator
from flinkcore.runtime.operators.input import FirstInput, Input, SecondInput
from flinkcore.runtime.operators.stream_operator import TwoInputStreamOperator
from flinkcore.runtime.stream_input_processor import StreamOneInputProcessor
from flinkcore.runtime.tasks import stream_partitioners as partitioners
from flinkcore.runtime.tasks.operator_makers import make_operator
from flinkcore.runtime.tasks.operator_setup import JobContext, OperatorSetup
from flinkcore.runtime.tasks.stream_graph import StreamEdge, StreamNode
from flinkcore.runtime.tasks.task_output import (
    Edge,
    ElementCall,
    InputChannel,
    RecordWriterOutput,
    TaskOutput,
    broadcasting,
    detaching,
    selecting,
)


class Subtask:
    """An operator that is open, and the ways into it.

    Parameters
    ----------
    setup : OperatorSetup
    operator : AbstractStreamOperator
    """

    def __init__(self, setup: OperatorSetup, operator: AbstractStreamOperator) -> None:
        self.setup = setup
        self.operator = operator
        self._opened: list[Function | AbstractStreamOperator] = []

    def open(self) -> None:
        """Open what the operator calls, and itself; then its inputs."""
        context = self.setup.runtime_context()
        to_open: list[Function | AbstractStreamOperator] = [*self.setup.further_functions, self.operator]
        for opened in to_open:
            self._opened.append(opened)
            opened.open(context)
        self._inputs = self._opened_inputs()

    def _opened_inputs(self) -> list[tuple[Input, ElementCall, StreamOneInputProcessor]]:
        operator = self.operator
        inputs: list[tuple[Input, ElementCall]] = []
        if isinstance(operator, OneInputStreamOperator):
            inputs = [(operator, operator.element_call)]
        elif isinstance(operator, TwoInputStreamOperator):
            first, second = FirstInput(operator), SecondInput(operator)
            inputs = [(first, first.process_element), (second, second.process_element)]
        return [
            (given, call, StreamOneInputProcessor(given, self._channels(number)))
            for number, (given, call) in enumerate(inputs)
        ]

    def _channels(self, input_index: int) -> int:
        edges = self.setup.node.inputs[input_index]
        return sum(len(source_indices(edge, self.setup.index)) for edge in edges)

    def chained(self) -> Edge:
        """Return the direct way into the operator."""
        given, call, _ = self._inputs[0]
        return Edge(call, ChainingOutput(given))

    def channel(self, input_index: int, number: int) -> InputChannel:
        """Return a channel of an input."""
        _, call, processor = self._inputs[input_index]
        return InputChannel(call, processor.process_element, number)

    def close(self) -> None:
        """Close what was opened, the operator first; the first error counts."""
        failure: BaseException | None = None
        while self._opened:
            try:
                self._opened.pop().close()
            except BaseException as raised:
                failure = failure or raised
        if failure is not None:
            raise failure


def source_indices(edge: StreamEdge, target_index: int) -> range:
    """Return the subtasks of an edge's source that lead to a subtask of its target.

    Notes
    -----
    Flink's distribution patterns: all to all, or pointwise.
    """
    sources, targets = edge.source.parallelism, edge.target.parallelism
    if not edge.is_pointwise:
        return range(sources)
    if sources >= targets:
        return range(target_index * sources // targets, (target_index + 1) * sources // targets)
    first = target_index * sources // targets
    return range(first, first + 1)


class JobTasks:
    """All subtasks of a job.

    Parameters
    ----------
    nodes : sequence of StreamNode
        Those that others read before them.
    job : JobContext
    """

    def __init__(self, nodes: Sequence[StreamNode], job: JobContext) -> None:
        self._nodes = nodes
        self._job = job
        self._subtasks: dict[StreamNode, list[Subtask]] = {}
        self._source_outputs: dict[StreamNode, list[TaskOutput]] = {}
        self._further: list[Function] = []

    def open(self, sources: Sequence[StreamNode]) -> None:
        """Make and open all operators, from the ends of the job to its sources; those that fail are closed.

        Parameters
        ----------
        sources : sequence of StreamNode
            Those that have no operator.
        """
        try:
            for node in reversed(self._nodes):
                if node in sources:
                    self._source_outputs[node] = [
                        self._source_output(node, index) for index in range(node.parallelism)
                    ]
                else:
                    self._subtasks[node] = [self._opened(node, index) for index in range(node.parallelism)]
        except BaseException:
            self.cancel()
            raise

    def _opened(self, node: StreamNode, index: int) -> Subtask:
        setup = OperatorSetup(node, index, self._job)
        operator = make_operator(setup, lambda conversion: self._output(setup, conversion))
        subtask = Subtask(setup, operator)
        self._subtasks.setdefault(node, []).append(subtask)  # closed, too, if it fails to open
        subtask.open()
        return subtask

    def _source_output(self, node: StreamNode, index: int) -> TaskOutput:
        setup = OperatorSetup(node, index, self._job)
        output = self._output(setup, None)
        for function in setup.further_functions:
            self._further.append(function)
            function.open(setup.runtime_context())
        return output

    def source_output(self, node: StreamNode, index: int) -> TaskOutput:
        """Return where a subtask of a source puts its elements."""
        return self._source_outputs[node][index]

    def finish(self) -> None:
        """Let all operators emit what they hold back, those first that others read."""
        for subtask in self.subtasks():
            subtask.operator.finish()

    def subtasks(self) -> list[Subtask]:
        """Return all that have an operator, those first that others read."""
        return [subtask for node in self._nodes for subtask in self._subtasks.get(node, ())]

    def close(self) -> None:
        """Close all; the first error counts."""
        failure: BaseException | None = None
        to_close: list[Function | Subtask] = [*self._further, *self.subtasks()]
        for closed in to_close:
            try:
                closed.close()
            except BaseException as raised:
                failure = failure or raised
        self._subtasks, self._further = {}, []
        if failure is not None:
            raise failure

    def cancel(self) -> None:
        """Close all after a failure, which is what counts."""
        with suppress(Exception):
            self.close()

    def _output(self, setup: OperatorSetup, conversion: Callable[[Any], Any] | None) -> TaskOutput:
        main: list[Edge] = []
        sides = []
        for edge in setup.node.outputs:
            way = self._edge(edge, setup)
            if edge.output_tag is None:
                main.append(way)
            else:
                sides.append((edge.output_tag, way))
        return TaskOutput(main, sides, conversion)

    def _edge(self, edge: StreamEdge, setup: OperatorSetup) -> Edge:
        targets = self._subtasks[edge.target]
        if edge.chained:
            return targets[setup.index].chained()
        channels = [
            targets[index].channel(*self._place(edge, setup.index, index))
            for index in range(edge.target.parallelism)
            if setup.index in source_indices(edge, index)
        ]
        return Edge(self._collect(edge, setup, channels), RecordWriterOutput(channels))

    @staticmethod
    def _place(edge: StreamEdge, source_index: int, target_index: int) -> tuple[int, int]:
        """The input of the target that an edge leads to, and the channel there of a subtask of its source."""
        for input_index, edges in enumerate(edge.target.inputs):
            channel = 0
            for other in edges:
                indices = source_indices(other, target_index)
                if other is edge:
                    return input_index, channel + indices.index(source_index)
                channel += len(indices)
        raise AssertionError(f"{edge} leads nowhere")

    @staticmethod
    def _collect(edge: StreamEdge, setup: OperatorSetup, channels: list[InputChannel]) -> ElementCall:
        values_change = not edge.element_type.is_immutable()
        if edge.partitioning is Partitioning.BROADCAST:
            return broadcasting(channels, values_change)
        select = _selector(edge, setup, len(channels))
        collect = channels[0].collect if select is None else selecting(channels, select)
        return detaching(collect) if values_change else collect


def _selector(edge: StreamEdge, setup: OperatorSetup, count: int) -> partitioners.ChannelSelector | None:
    """What chooses one of so many channels; None: there is nothing to choose."""
    partition, partitioning = edge.partition, edge.partitioning
    if isinstance(partition, CustomPartitionTransformation):
        return partitioners.custom(
            setup.further(partition.partitioner, Partitioner, "partition"),
            setup.further(partition.key_selector, KeySelector, "get_key"),
            count,
            function_name(partition.partitioner),
        )
    if count == 1 or partitioning is Partitioning.GLOBAL:
        return None
    if isinstance(partition, KeyedTransformation | PartitionTransformation):
        max_parallelism = edge.target.max_parallelism
        groups = partitioners.ElementKeyGroups(max_parallelism)
        return partitioners.by_key_group(setup.key_selector(partition), groups, max_parallelism, count)
    if partitioning is Partitioning.SHUFFLE:
        return partitioners.shuffled(count, setup.index)
    return partitioners.round_robin(count, setup.index if partitioning is Partitioning.REBALANCE else 0)

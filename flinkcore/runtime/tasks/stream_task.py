"""A task: one subtask of each operator of a chain, on one clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flinkcore.datastream.element_transformations import (
    CustomPartitionTransformation,
    KeyedTransformation,
    Partitioning,
)
from flinkcore.datastream.functions import Function, KeySelector, Partitioner, function_name
from flinkcore.datastream.transformations import PartitionTransformation
from flinkcore.runtime.operators.sink_operators import SinkWriterOperator
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.tasks import stream_partitioners as partitioners
from flinkcore.runtime.tasks.job_vertex import JobVertex, source_indices
from flinkcore.runtime.tasks.operator_makers import make_operator
from flinkcore.runtime.tasks.operator_setup import JobContext, OperatorSetup
from flinkcore.runtime.tasks.stream_graph import StreamEdge, StreamNode, is_source_node
from flinkcore.runtime.tasks.subtask import Subtask
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

ChannelMaker = Callable[[StreamEdge, int, int], InputChannel]
"""Returns the channel that leads along an edge from a subtask of its source to one of its target."""


class StreamTask:
    """A task of a vertex: its operators, the ways into the first of them, and out of them all.

    Its input has ended when all channels have. Then the operators finish, no timer fires any more, and whoever reads
    the task is told.

    Parameters
    ----------
    vertex : JobVertex
    index : int
        Of the task in the vertex, from 0 on.
    job : JobContext
    channel_of : callable
        Gives the channels to other tasks.

    Notes
    -----
    Flink's ``StreamTask`` with its ``OperatorChain``.
    """

    def __init__(self, vertex: JobVertex, index: int, job: JobContext, channel_of: ChannelMaker) -> None:
        self.vertex = vertex
        self.index = index
        self._job = job
        self._channel_of = channel_of
        self._clock = job.task_clock(vertex.first_task + index)
        self._subtasks: dict[StreamNode, Subtask] = {}
        self._further: list[Function] = []
        self._source_output: TaskOutput | None = None
        self._channels_out: list[InputChannel] = []
        self._open_channels = vertex.channels(index)

    @property
    def clock(self) -> ProcessingTimeService:
        """The clock of the task."""
        return self._clock

    @property
    def source_output(self) -> TaskOutput:
        """Where the task of a source puts its elements."""
        assert self._source_output is not None
        return self._source_output

    @property
    def has_ended(self) -> bool:
        """Whether all channels have ended."""
        return self._open_channels <= 0

    def open(self) -> None:
        """Make and open the operators, from the ends of the chain to its head; those that fail are closed."""
        try:
            for node in reversed(self.vertex.nodes):
                setup = OperatorSetup(node, self.index, self._job, self._clock)
                if is_source_node(node):
                    self._open_source(setup)
                else:
                    self._open_operator(setup)
        except BaseException:
            self.cancel()
            raise

    def _open_operator(self, setup: OperatorSetup) -> None:
        operator = make_operator(setup, lambda conversion: self._output(setup, conversion))
        subtask = self._subtasks[setup.node] = Subtask(setup, operator)  # closed, too, if it fails to open
        subtask.open()

    def _open_source(self, setup: OperatorSetup) -> None:
        self._source_output = self._output(setup, None)
        for function in setup.further_functions:
            self._further.append(function)
            function.open(setup.runtime_context())

    def channel(self, input_index: int, number: int) -> InputChannel:
        """Return a channel of an input of the first operator."""
        collect, process = self._subtasks[self.vertex.head].input(input_index)
        return InputChannel(collect, process, number, self.end_channel)

    def end_channel(self) -> None:
        """Take note that a channel has ended."""
        self._open_channels -= 1
        if self._open_channels == 0:
            self._end()

    def end_source(self) -> None:
        """Take note that there is nothing more to be read from the source; the last watermark has been emitted."""
        self._end()

    def _end(self) -> None:
        for subtask in self._in_order():
            subtask.operator.finish()
        self._clock.quiesce()
        for channel in self._channels_out:
            channel.end()

    def _in_order(self) -> list[Subtask]:
        return [self._subtasks[node] for node in self.vertex.nodes if node in self._subtasks]

    def prepare_commit(self) -> list[tuple[StreamNode, list[Any]]]:
        """Return what the writers of each sink want to be committed."""
        prepared = []
        for subtask in self._in_order():
            if isinstance(subtask.operator, SinkWriterOperator):
                prepared.append((subtask.setup.node, subtask.operator.writer.prepare_commit()))
        return prepared

    def close(self) -> None:
        """Close all, the head first; the first error counts."""
        failure: BaseException | None = None
        to_close: list[Function | Subtask] = [*self._further, *self._in_order()]
        self._subtasks, self._further = {}, []
        for closed in to_close:
            try:
                closed.close()
            except BaseException as raised:
                failure = failure or raised
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
        if edge.chained:
            return self._subtasks[edge.target].chained()
        channels = [
            self._channel_of(edge, setup.index, index)
            for index in range(edge.target.parallelism)
            if setup.index in source_indices(edge, index)
        ]
        self._channels_out += channels
        return Edge(self._collect(edge, setup, channels), RecordWriterOutput(channels))

    def _collect(self, edge: StreamEdge, setup: OperatorSetup, channels: list[InputChannel]) -> ElementCall:
        values_change = not (self._job.serializes or edge.element_type.is_immutable())
        if edge.partitioning is Partitioning.BROADCAST:
            return broadcasting(channels, values_change, edge.source.giver)
        select = _selector(edge, setup, len(channels))
        collect = channels[0].collect if select is None else selecting(channels, select)
        return detaching(collect, edge.source.giver) if values_change else collect


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

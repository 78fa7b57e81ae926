"""The tasks of a job: each runs one subtask of every operator of a chain, on one clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from flinkcore.datastream.functions import (
    CheckpointedFunction,
    Function,
    KeySelector,
    Partitioner,
    SourceFunction,
    function_name,
)
from flinkcore.datastream.graph.element_transformations import (
    CustomPartitionTransformation,
    KeyedTransformation,
    Partitioning,
)
from flinkcore.datastream.graph.transformations import PartitionTransformation
from flinkcore.elements.tasks import stream_partitioners as partitioners
from flinkcore.elements.tasks.batch_inputs import BatchInputs, batch_key_selectors
from flinkcore.elements.tasks.operator_makers import make_operator
from flinkcore.elements.tasks.operator_setup import JobContext, OperatorSetup
from flinkcore.elements.tasks.stream_graph import (
    JobVertex,
    StreamEdge,
    StreamNode,
    channel_place,
    is_async,
    is_source_node,
    source_indices,
)
from flinkcore.elements.tasks.stream_input_processor import StreamOneInputProcessor
from flinkcore.elements.tasks.task_output import (
    ChainingOutput,
    Edge,
    ElementCall,
    InputChannel,
    RecordWriterOutput,
    TaskOutput,
    broadcasting,
    detaching,
    selecting,
)
from flinkcore.operators.function_calls import KeySelector as KeySelectorCall
from flinkcore.operators.late_records import LateRecords
from flinkcore.operators.metrics.gauges import WatermarkGauge
from flinkcore.operators.metrics.latency import Granularity, LatencyMarkerEmitter, LatencyStats
from flinkcore.operators.metrics.task_metrics import TaskMetricGroup
from flinkcore.operators.records.stream_elements import StreamElement
from flinkcore.operators.sink_operators import SinkWriterOperator
from flinkcore.operators.stream_operator import (
    AbstractStreamOperator,
    Input,
    OneInputStreamOperator,
    OneOfTwoInputs,
    TwoInputStreamOperator,
)
from flinkcore.operators.timers.processing_time import ProcessingTimeService

if TYPE_CHECKING:
    from flinkcore.elements.sources.watermark_alignment import SourceCoordinators
    from flinkcore.elements.tasks.mailbox import TaskMailbox
    from flinkcore.operators.state import OperatorStateSnapshot


class Closeable(Protocol):
    """A function, an operator or a task."""

    def close(self) -> None:
        """Close it."""


def close_all(closeables: Iterable[Closeable]) -> None:
    """Close all in order, even after an error; the first error is raised."""
    failure: BaseException | None = None
    for closeable in closeables:
        try:
            closeable.close()
        except BaseException as raised:
            failure = failure or raised
    if failure is not None:
        raise failure


def _register_watermark(group: TaskMetricGroup, name: str, gauge: WatermarkGauge) -> None:
    group.gauge(name, lambda: gauge.value)


class Subtask:
    """An operator of a task, and its inputs."""

    def __init__(self, setup: OperatorSetup, operator: AbstractStreamOperator) -> None:
        self.setup = setup
        self.operator = operator
        self._batch_key_selectors = batch_key_selectors(setup)
        self._opened: list[Function | AbstractStreamOperator] = []

    def open(self) -> None:
        """Open the further functions and the operator, and create its inputs."""
        restored = self.setup.job.restored
        if restored is not None:
            restored.restore(self.setup, self.operator)
        context = self.setup.runtime_context()
        to_open: list[Function | AbstractStreamOperator] = [*self.setup.further_functions, self.operator]
        for opened in to_open:
            self._opened.append(opened)
            opened.open(context)
        self._inputs = self._opened_inputs()
        self._register_metrics()
        if restored is not None:
            if self.is_head:
                restored.restore_inputs(self.setup, self.input_processors)
            if restored.is_idle(self):
                # Readers of the output are idle, too, and must be notified when that ends.
                self.operator.announce_idleness()

    @property
    def is_head(self) -> bool:
        """Return whether it has input channels, and is not called by another operator of its chain."""
        return not any(edge.chained for edges in self.setup.node.inputs for edge in edges)

    @property
    def input_processors(self) -> list[StreamOneInputProcessor]:
        """Return what takes the elements of the channels of each input."""
        return [processor for _, _, processor in self._inputs]

    def _opened_inputs(self) -> list[tuple[Input, ElementCall, StreamOneInputProcessor]]:
        operator = self.operator
        inputs: list[tuple[Input, ElementCall]] = []
        if isinstance(operator, OneInputStreamOperator):
            inputs = [(operator, operator.element_call)]
        elif isinstance(operator, TwoInputStreamOperator):
            first, second = OneOfTwoInputs(operator, 1), OneOfTwoInputs(operator, 2)
            inputs = [(first, first.process_element), (second, second.process_element)]
        if self._batch_key_selectors is not None:
            inputs = self._batch_inputs(inputs, self._batch_key_selectors)
        return [
            (given, call, StreamOneInputProcessor(given, self._channels(number)))
            for number, (given, call) in enumerate(inputs)
        ]

    def _batch_inputs(
        self, inputs: list[tuple[Input, ElementCall]], selectors: Sequence[KeySelectorCall | None]
    ) -> list[tuple[Input, ElementCall]]:
        is_keyed = any(selector is not None for selector in selectors)
        backend = self.setup.keyed_state_backend if is_keyed else None
        return BatchInputs(self.operator, inputs, selectors, backend).inputs()

    def _register_metrics(self) -> None:
        """Register the metrics that Flink registers for every operator, by its names."""
        operator, setup = self.operator, self.setup
        configuration = setup.job.configuration
        if configuration.get_latency_tracking_interval() > 0:
            operator.latency_stats = LatencyStats(
                setup.job.metrics.add_group("latency"),
                setup.clock,
                configuration.get_latency_history_size(),
                setup.node.operator_id,
                setup.index,
                Granularity(configuration.get_latency_granularity()),
            )
        if setup.node.collects:
            return
        group = setup.metric_group
        operator.register_metrics(group)
        gauges = [processor.watermark_gauge for _, _, processor in self._inputs]
        if isinstance(operator, TwoInputStreamOperator):
            group.gauge("currentInputWatermark", lambda: operator.combined_watermark)
            for number, gauge in enumerate(gauges, 1):
                _register_watermark(group, f"currentInput{number}Watermark", gauge)
        else:
            _register_watermark(group, "currentInputWatermark", gauges[0])

    def _channels(self, input_index: int) -> int:
        edges = self.setup.node.inputs[input_index]
        return sum(len(source_indices(edge, self.setup.index)) for edge in edges)

    def chained(self) -> Edge:
        """Return the edge that calls the operator directly."""
        given, call, _ = self._inputs[0]
        output = ChainingOutput(given)
        if not self.setup.node.collects:
            _register_watermark(self.setup.metric_group, "currentInputWatermark", output.watermark_gauge)
        return Edge(call, output)

    def input(self, input_index: int) -> tuple[ElementCall, Callable[[StreamElement[Any], int], None]]:
        """Return the calls that take the records of an input, and its other elements with their channel."""
        _, call, processor = self._inputs[input_index]
        return call, processor.process_element

    def close(self) -> None:
        """Close what was opened, the operator first."""
        opened, self._opened = self._opened[::-1], []
        close_all(opened)


ChannelMaker = Callable[[StreamEdge, int, int], InputChannel]
"""Returns the channel of an edge from a subtask of its source to one of its target, by their indexes."""


class StreamTask:
    """A task of a vertex: one subtask of each operator, the input channels of the head, and all output channels.

    When all input channels have ended, the operators finish, no timer fires any more, and the output channels end.

    Parameters
    ----------
    vertex : JobVertex
    index : int
        Index of the task in the vertex.
    job : JobContext
    channel_of : callable
        Returns the channels to other tasks.

    Notes
    -----
    Flink's ``StreamTask`` with its ``OperatorChain``.
    """

    def __init__(self, vertex: JobVertex, index: int, job: JobContext, channel_of: ChannelMaker) -> None:
        self.vertex = vertex
        self.index = index
        self._job = job
        self._channel_of = channel_of
        number = vertex.first_task + index
        self._number = number
        self._clock = job.task_clock(number)
        self._mailbox = None if job.mailbox_of is None else job.mailbox_of(number)
        self._subtasks: dict[StreamNode, Subtask] = {}
        self._further: list[Function] = []
        self._source_output: TaskOutput | None = None
        self._source_setup: OperatorSetup | None = None
        self._channels_out: list[InputChannel] = []
        self._selectors: dict[StreamNode, list[partitioners.CountingSelector]] = {}
        self._open_channels = vertex.channels(index)

    @property
    def clock(self) -> ProcessingTimeService:
        """The clock of the task."""
        return self._clock

    @property
    def mailbox(self) -> TaskMailbox | None:
        """Return what callbacks of the clock wait in; None if they are called directly."""
        return self._mailbox

    @property
    def downtime_ms(self) -> int:
        """Return how long the job did not run before it was restored."""
        return self._job.downtime_ms

    @property
    def source_coordinators(self) -> SourceCoordinators:
        """The coordinators of the job's sources that are aligned."""
        return self._job.source_coordinators

    @property
    def source_output(self) -> TaskOutput:
        """The output of a task that reads a source."""
        assert self._source_output is not None
        return self._source_output

    @property
    def has_ended(self) -> bool:
        """Return whether all channels have ended."""
        return self._open_channels <= 0

    def counting_selectors(self, node: StreamNode) -> list[partitioners.CountingSelector]:
        """Return what deals out the records of an operator, or of the source, by how many there were."""
        return self._selectors.get(node, [])

    def open(self) -> None:
        """Create and open the operators, from the ends of the chain to its head; close all after an error."""
        try:
            for node in reversed(self.vertex.nodes):
                setup = OperatorSetup(node, self.index, self._job, self._clock, self._number)
                if is_source_node(node):
                    self._open_source(setup)
                else:
                    self._open_operator(setup)
        except BaseException:
            self.cancel()
            raise

    def _open_operator(self, setup: OperatorSetup) -> None:
        operator = make_operator(setup, lambda conversion: self._output(setup, conversion))
        subtask = self._subtasks[setup.node] = Subtask(
            setup, operator
        )  # to be closed even if it fails to open
        subtask.open()

    def opened_source_function(
        self, function: SourceFunction, states: Mapping[str, OperatorStateSnapshot] | None = None
    ) -> SourceFunction:
        """Return the task's own copy of a function that emits to the source's output; it is closed with the task.

        Parameters
        ----------
        function : SourceFunction
        states : mapping of str to OperatorStateSnapshot, optional
            States from which it resumes, if it has any.
        """
        setup = self._source_setup
        assert setup is not None
        copied = setup.copied(function)
        self._further.append(copied)
        if isinstance(copied, CheckpointedFunction):
            from flinkcore.elements.sources.stream_source import initialize_states

            initialize_states(copied, setup.operator_state_backend, states)
        copied.open(setup.runtime_context())
        return copied

    def source_states(self, function: CheckpointedFunction) -> dict[str, OperatorStateSnapshot]:
        """Return the states of an opened source function, as it brings them up to date."""
        assert self._source_setup is not None
        from flinkcore.elements.sources.stream_source import snapshot_states

        return snapshot_states(function, self._source_setup.operator_state_backend)

    @property
    def source_metric_group(self) -> TaskMetricGroup:
        """The metrics of a task's source."""
        assert self._source_setup is not None
        return self._source_setup.metric_group

    @property
    def source_id(self) -> str:
        """The name of a task's source in latencies."""
        assert self._source_setup is not None
        return self._source_setup.node.operator_id

    def emit_latency_markers(self) -> None:
        """Let a source emit latency markers until the task ends, if the job has an interval for them."""
        interval_ms = self._job.configuration.get_latency_tracking_interval()
        if interval_ms > 0:
            LatencyMarkerEmitter(self._clock, self.source_output, interval_ms, self.source_id, self.index)

    def _open_source(self, setup: OperatorSetup) -> None:
        self._source_setup = setup
        self._source_output = self._output(setup, None)
        for function in setup.further_functions:
            self._further.append(function)
            function.open(setup.runtime_context())

    def channel(self, input_index: int, number: int) -> InputChannel:
        """Return a channel of an input of the first operator."""
        collect, process = self._subtasks[self.vertex.head].input(input_index)
        channel = InputChannel(collect, process, number, partial(self.end_channel, input_index, number))
        return channel if self._mailbox is None else self._mailbox.before(channel)

    def end_channel(self, input_index: int, number: int) -> None:
        """Note that a channel of an input of the first operator has ended."""
        self._subtasks[self.vertex.head].input_processors[input_index].ended.add(number)
        self._open_channels -= 1
        if self._open_channels == 0:
            self._end()

    def end_source(self) -> None:
        """End the task of a source, whose last watermark has been emitted."""
        self._end()

    def _end(self) -> None:
        for subtask in self._in_order():
            subtask.operator.finish()
        self._clock.quiesce()
        for channel in self._channels_out:
            channel.end()

    def _in_order(self) -> list[Subtask]:
        return [self._subtasks[node] for node in self.vertex.nodes if node in self._subtasks]

    def subtasks(self) -> list[Subtask]:
        """Return the operators, the head first."""
        return self._in_order()

    def finish_calls(self) -> None:
        """Wait for the calls of asynchronous functions, and emit their results."""
        for subtask in self._in_order():
            if is_async(subtask.setup.node):
                subtask.operator.finish()

    def prepare_commit(self) -> Iterator[tuple[StreamNode, list[Any]]]:
        """Yield the committables of each sink's writer."""
        for subtask in self._in_order():
            if isinstance(subtask.operator, SinkWriterOperator):
                yield subtask.setup.node, subtask.operator.writer.prepare_commit()

    def late_records(self) -> Iterator[tuple[StreamNode, LateRecords]]:
        """Yield the late records of each operator that drops such."""
        for subtask in self._in_order():
            late = subtask.operator.late_records
            if late is not None:
                yield subtask.setup.node, late

    def close(self) -> None:
        """Close all functions and operators, the head first."""
        to_close: list[Closeable] = [*self._further, *self._in_order()]
        self._subtasks, self._further = {}, []
        close_all(to_close)

    def cancel(self) -> None:
        """Close after a failure, which is raised instead of any error here."""
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
        selectors = self.counting_selectors(setup.node)
        if selectors and self._job.restored is not None:
            self._job.restored.restore_selectors(setup, selectors)
        output = TaskOutput(main, sides, conversion)
        if not setup.node.collects:
            _register_watermark(setup.metric_group, "currentOutputWatermark", output.watermark_gauge)
        return output

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
        if isinstance(select, partitioners.CountingSelector):
            self._selectors.setdefault(setup.node, []).append(select)
        collect = channels[0].collect if select is None else selecting(channels, select)
        return detaching(collect, edge.source.giver) if values_change else collect


def _selector(edge: StreamEdge, setup: OperatorSetup, count: int) -> partitioners.ChannelSelector | None:
    """Return the selector of a channel; None if all records go to the first one."""
    partition, partitioning = edge.partition, edge.partitioning
    if isinstance(partition, CustomPartitionTransformation):
        return partitioners.custom(
            setup.further(partition.partitioner, Partitioner, "partition"),
            setup.further(partition.key_selector, KeySelector, "get_key"),
            count,
            function_name(partition.partitioner),
        )
    if isinstance(partition, KeyedTransformation | PartitionTransformation):
        if count == 1:
            asked_later = edge.target.asks_for_keys
            return None if asked_later else partitioners.only_channel_of_key(setup.key_selector(partition))
        max_parallelism = edge.target.max_parallelism
        groups = partitioners.ElementKeyGroups(max_parallelism)
        return partitioners.by_key_group(setup.key_selector(partition), groups, max_parallelism, count)
    if count == 1 or partitioning is Partitioning.GLOBAL:
        return None
    if partitioning is Partitioning.SHUFFLE:
        return partitioners.Shuffle(count, setup.index)
    return partitioners.RoundRobin(count, setup.index if partitioning is Partitioning.REBALANCE else 0)


class JobTasks:
    """All tasks of a job in one process: channels are direct calls.

    Parameters
    ----------
    vertices : sequence of JobVertex
        Each after those that it reads.
    job : JobContext
    """

    def __init__(self, vertices: Sequence[JobVertex], job: JobContext) -> None:
        self._vertices = vertices
        self._job = job
        self._tasks: dict[StreamNode, list[StreamTask]] = {}

    def open(self) -> None:
        """Create and open all tasks, from the ends of the job to its sources; close all after an error."""
        try:
            for vertex in reversed(self._vertices):
                opened = self._tasks[vertex.head] = list[StreamTask]()
                for index in range(vertex.parallelism):
                    task = StreamTask(vertex, index, self._job, self._channel)
                    task.open()
                    opened.append(task)
        except BaseException:
            self.cancel()
            raise

    def _channel(self, edge: StreamEdge, source_index: int, target_index: int) -> InputChannel:
        task = self._tasks[edge.target][target_index]
        channel = task.channel(*channel_place(edge, source_index, target_index))
        placed = self._job.placed_channel
        return channel if placed is None else placed(edge, channel)

    def tasks(self) -> list[StreamTask]:
        """Return all tasks, each after those that it reads."""
        return [task for vertex in self._vertices for task in self._tasks.get(vertex.head, ())]

    def close(self) -> None:
        """Close all tasks."""
        tasks = self.tasks()
        self._tasks = {}
        close_all(tasks)

    def cancel(self) -> None:
        """Close after a failure, which is raised instead of any error here."""
        with suppress(Exception):
            self.close()

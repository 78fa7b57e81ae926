"""The operators of a job, the edges between them, and their chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.print_sink import PrintSink
from flinkcore.datastream.functions import Function, function_name
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.element_transformations import (
    AsyncWaitTransformation,
    ChoiceTransformation,
    ConnectedTransformation,
    CustomPartitionTransformation,
    ElementTransformation,
    ElementWindowTransformation,
    FlatMapTransformation,
    KeyedTransformation,
    LegacySourceTransformation,
    MapTransformation,
    Partitioning,
    RepartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.datastream.graph.topic_records import TopicSource
from flinkcore.datastream.graph.transformations import (
    BroadcastTransformation,
    ChainingStrategy,
    EventLogSource,
    FilterTransformation,
    OperatorTransformation,
    PartitionTransformation,
    ProcessTransformation,
    SelectTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
    UnionTransformation,
    WithColumnsTransformation,
)
from flinkcore.errors import ConfigurationError

Partition = (
    RepartitionTransformation
    | KeyedTransformation
    | PartitionTransformation
    | CustomPartitionTransformation
    | BroadcastTransformation
)
"""A step that says how elements are distributed to the next operator."""

_COLUMN_STEPS = (FilterTransformation, SelectTransformation, WithColumnsTransformation)
_ELEMENT_SOURCES = (SourceTransformation, LegacySourceTransformation)
_KEYED = (KeyedTransformation, PartitionTransformation)


@dataclass(eq=False)
class StreamNode:
    """An operator, with all its subtasks.

    Attributes
    ----------
    transformation : Transformation
        The step that it runs.
    collects : bool
        If true, it does not run the step, but collects the step's elements for the program.
    parallelism, max_parallelism : int
    inputs : list of list of StreamEdge
        By input of the operator.
    outputs : list of StreamEdge
    metric_name : str
        The name of the operator in metrics, which no other one of the job has.
    operator_id : str
        Likewise in latencies: its uid if it has one.
    """

    transformation: Transformation
    collects: bool
    parallelism: int
    max_parallelism: int
    inputs: list[list[StreamEdge]] = field(default_factory=list)
    outputs: list[StreamEdge] = field(default_factory=list)
    metric_name: str = ""
    operator_id: str = ""

    @property
    def name(self) -> str:
        """The name of the operator in messages."""
        return "Collect" if self.collects else self.transformation.settings.name or str(self.transformation)

    @property
    def passes_results_on(self) -> bool:
        """Return whether its results go to the next function of the chain alone, which takes them as they are.

        Notes
        -----
        Follows PyFlink's ``PythonOperatorChainingOptimizer``: between the Python functions of a chain values are not
        serialized, and so of no type.
        """
        return isinstance(self._only_follower, ElementTransformation | ProcessTransformation)

    @property
    def is_printed_as_given(self) -> bool:
        """Return whether results go to `print` alone, in the same chain, which shows the fields of a Row as they are.

        Notes
        -----
        PyFlink's ``print`` makes texts of Rows by a Python function of the chain, before they are of their type.
        """
        step = self._only_follower
        return isinstance(step, SinkTransformation) and isinstance(step.sink, PrintSink)

    @property
    def _only_follower(self) -> Transformation | None:
        """The step in the same chain that alone takes its results, or None."""
        if len(self.outputs) != 1 or self.collects:
            return None
        (edge,) = self.outputs
        is_in_chain = edge.chained and edge.output_tag is None and not edge.target.collects
        return edge.target.transformation if is_in_chain else None

    @property
    def asks_for_keys(self) -> bool:
        """Return whether its operator asks for the keys of keyed elements, which plain functions do not use."""
        step = self.transformation
        if isinstance(step, MapTransformation | FlatMapTransformation | ChoiceTransformation):
            return isinstance(step.function, Function)
        return not isinstance(step, AsyncWaitTransformation)

    @property
    def uid(self) -> str | None:
        """The uid that the program gives the operator."""
        return None if self.collects else self.transformation.settings.uid

    @property
    def giver(self) -> str:
        """The name in messages of the function that gives the elements of the step, or else of the step."""
        step = self.transformation
        if isinstance(step, ElementTransformation | ConnectedTransformation):
            return function_name(step.function)
        if isinstance(step, ElementWindowTransformation):
            return function_name(step.operation.window_function or step.operation.pre_aggregation)
        return step.settings.name or str(step)


@dataclass(frozen=True, eq=False)
class StreamEdge:
    """An edge from an operator to an input of another one.

    Attributes
    ----------
    source, target : StreamNode
    partition : Partition or Partitioning
        Distribution of elements to subtasks.
    output_tag : OutputTag or None
        The side output that is read; None for the main output.
    chained : bool
        Whether the target is called directly, by the subtask of the same index.
    """

    source: StreamNode
    target: StreamNode
    partition: Partition | Partitioning
    output_tag: OutputTag | None
    chained: bool

    @property
    def element_type(self) -> TypeInformation:
        """The declared type of its elements."""
        if self.output_tag is None:
            return self.source.transformation.element_type
        return declared_type(self.output_tag.type_info)

    @property
    def is_pointwise(self) -> bool:
        """Return whether a subtask sends to some subtasks of the target only."""
        return self.partitioning in (Partitioning.FORWARD, Partitioning.RESCALE)

    @property
    def partitioning(self) -> Partitioning | None:
        """Return how elements are distributed, if that does not depend on them."""
        if isinstance(self.partition, RepartitionTransformation):
            return self.partition.partitioning
        if isinstance(self.partition, BroadcastTransformation):
            return Partitioning.BROADCAST
        return self.partition if isinstance(self.partition, Partitioning) else None


@dataclass(frozen=True)
class _Read:
    """Input of a step: an operator, one of its outputs, and the distribution of elements."""

    node: StreamNode
    partition: Partition | None = None
    output_tag: OutputTag | None = None


class StreamGraphGenerator:
    """Generates the operators of a job from its steps.

    Notes
    -----
    Flink's ``StreamGraphGenerator`` and ``StreamingJobGraphGenerator``.
    """

    def __init__(self, job: ElementJob, configuration: ExecutionConfig) -> None:
        self._job = job
        self._configuration = configuration
        self._nodes: dict[int, StreamNode] = {}
        self._reads: dict[int, list[_Read]] = {}
        self._in_order: list[StreamNode] = []

    def generate(self) -> list[StreamNode]:
        """Return the operators, each after those that it reads.

        Raises
        ------
        ConfigurationError
            If steps do not fit together.
        """
        for step in _inputs_first(self._job.ends()):
            self._reads_of(step)
        if self._job.collected is not None:
            self._add(self._job.collected, [self._job.collected], collects=True)
        self._refuse_repeated_uids()
        self._name_for_metrics()
        return self._in_order

    def _reads_of(self, step: Transformation) -> list[_Read]:
        """Return what reading a step means; each step is looked at once."""
        if id(step) not in self._reads:
            self._reads[id(step)] = self._found_reads(step)
        return self._reads[id(step)]

    def _found_reads(self, step: Transformation) -> list[_Read]:
        if isinstance(step, UnionTransformation):
            return [read for united in step.united for read in self._reads_of(united)]
        if isinstance(step, SideOutputTransformation) and not is_source(step):
            return [_Read(read.node, None, step.output_tag) for read in self._reads_of(step.input)]
        if isinstance(step, Partition):
            return [_Read(read.node, step, read.output_tag) for read in self._reads_of(step.input)]
        return [_Read(self._add(step, () if is_source(step) else step.inputs()))]

    def _add(
        self, step: Transformation, inputs: Sequence[Transformation], collects: bool = False
    ) -> StreamNode:
        settings = step.settings
        if not collects:
            self._refuse_in_batch_mode(step)
            if step.is_of_program:
                self._configuration.require_uid(settings.uid, settings.name or str(step))
        alone_only = collects or (is_source(step) and not isinstance(step, _ELEMENT_SOURCES))
        parallelism = 1 if alone_only else settings.parallelism or self._unset_parallelism(step, inputs)
        max_parallelism = settings.max_parallelism or self._configuration.get_max_parallelism()
        if parallelism > 1 and settings.max_parallelism == 1 and isinstance(step, _ELEMENT_SOURCES):
            raise ConfigurationError(
                f"{step}: {parallelism} subtasks would each emit all elements, so the parallelism of this source "
                "must be 1"
            )
        is_set = settings.max_parallelism is not None or self._configuration.has_max_parallelism()
        if parallelism > max_parallelism and (is_set or isinstance(inputs[0] if inputs else None, _KEYED)):
            raise ConfigurationError(
                f"{step}: the parallelism {parallelism} is higher than the maximum parallelism {max_parallelism}: "
                "lower the parallelism, or set_max_parallelism to more"
            )
        node = StreamNode(step, collects, parallelism, max_parallelism)
        for number, given in enumerate(inputs):
            reads = self._reads_of(given)
            alone = len(inputs) == len(reads) == 1
            node.inputs.append([self._edge(read, node, alone) for read in reads])
            for edge in node.inputs[number]:
                edge.source.outputs.append(edge)
        self._in_order.append(node)
        return node

    def _unset_parallelism(self, step: Transformation, inputs: Sequence[Transformation]) -> int:
        """Return the parallelism of a step that sets none: the environment's, or for an assigner that of its input.

        Steps without an operator (partitionings, side outputs, unions) have the parallelism of their first input, as in
        Flink.
        """
        if isinstance(step, TimestampsAndWatermarksTransformation) and inputs:
            return self._reads_of(inputs[0])[0].node.parallelism
        parallelism = self._configuration.get_parallelism()
        return 1 if parallelism == ExecutionConfig.PARALLELISM_DEFAULT else parallelism

    def _edge(self, read: _Read, target: StreamNode, alone: bool) -> StreamEdge:
        source = read.node
        same = source.parallelism == target.parallelism
        partition: Partition | Partitioning = read.partition or (
            Partitioning.FORWARD if same else Partitioning.REBALANCE
        )
        edge = StreamEdge(source, target, partition, read.output_tag, False)
        if edge.partitioning is not Partitioning.FORWARD:
            return edge
        if not same:
            raise ConfigurationError(
                f"forward leads from {source.parallelism} subtasks of {source.name!r} to {target.parallelism} of "
                f"{target.name!r}: give both the same parallelism, or take rebalance or rescale"
            )
        return StreamEdge(
            source, target, partition, read.output_tag, alone and self._may_chain(source, target)
        )

    def _may_chain(self, source: StreamNode, target: StreamNode) -> bool:
        configuration = self._configuration
        if not configuration.is_chaining_enabled() or is_async(source) or is_async(target):
            return False
        if (
            source.max_parallelism != target.max_parallelism
            and not configuration.is_chaining_of_operators_with_different_max_parallelism_enabled()
        ):
            return False
        before, after = (node.transformation.settings.chaining for node in (source, target))
        return before is not ChainingStrategy.NEVER and (target.collects or after is ChainingStrategy.ALWAYS)

    def _refuse_in_batch_mode(self, step: Transformation) -> None:
        if not self._configuration.is_batch() or not isinstance(step, (*_ELEMENT_SOURCES, TopicSource)):
            return
        strategy = None if isinstance(step, LegacySourceTransformation) else step.strategy
        if strategy is not None and strategy.alignment_parameters is not None:
            raise ConfigurationError(
                f"{step}: the execution mode BATCH has no watermarks to align; leave with_watermark_alignment out"
            )
        if step.boundedness is not Boundedness.BOUNDED:
            raise ConfigurationError(
                f"{step} is unbounded, which the execution mode BATCH does not allow: set it to STREAMING or "
                "AUTOMATIC, or let its boundedness be BOUNDED if it ends by itself"
            )

    def _refuse_repeated_uids(self) -> None:
        uids: dict[str, StreamNode] = {}
        for node in self._in_order:
            uid = node.uid
            if uid is not None and uids.setdefault(uid, node) is not node:
                raise ConfigurationError(f"two steps have the uid {uid!r}: {uids[uid].name} and {node.name}")

    def _name_for_metrics(self) -> None:
        nodes = self._in_order
        for node, name in zip(nodes, _distinct([node.name for node in nodes]), strict=True):
            node.metric_name = name
        for node, name in zip(
            nodes, _distinct([node.uid or node.metric_name for node in nodes]), strict=True
        ):
            node.operator_id = name


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of which none is there twice: a number from 2 on is added to one that another has."""
    taken, distinct = set(names), dict[str, None]()
    for name in names:
        if name in distinct:
            name = next(each for number in count(2) if (each := f"{name}-{number}") not in taken)
            taken.add(name)
        distinct[name] = None
    return list(distinct)


def _inputs_first(ends: Sequence[Transformation]) -> list[Transformation]:
    """Return all steps that lead to the ends, each once and after its inputs; sources are not looked into."""
    ordered: list[Transformation] = []
    seen: set[int] = set()
    waiting = [(end, False) for end in reversed(ends)]
    while waiting:
        step, inputs_are_in = waiting.pop()
        if inputs_are_in:
            ordered.append(step)
        elif id(step) not in seen:
            seen.add(id(step))
            waiting.append((step, True))
            if not is_source(step):
                waiting += [(given, False) for given in reversed(step.inputs())]
    return ordered


def is_of_log(step: Transformation) -> bool:
    """Return whether a step is an event log, or a step on its columns before any operator."""
    return isinstance(step, EventLogSource) or _is_of_columns(step)


def _is_of_columns(step: Transformation) -> bool:
    """Return whether a step takes the columns of a log before any operator."""
    if isinstance(step, EventLogSource):
        return not step.gives_elements
    if isinstance(step, TimestampsAndWatermarksTransformation):
        return _is_of_columns(step.input) and not has_watermarks(step.input)
    return isinstance(step, _COLUMN_STEPS) and _is_of_columns(step.input)


def has_watermarks(step: Transformation) -> bool:
    """Return whether timestamps and watermarks are assigned between the log and a step."""
    return any(isinstance(before, TimestampsAndWatermarksTransformation) for before in step.in_order())


def strategy_of(step: Transformation) -> WatermarkStrategy | None:
    """Return the watermark strategy of a source, a log or a step that assigns one; None without one."""
    if isinstance(step, SourceTransformation | TopicSource | TimestampsAndWatermarksTransformation):
        return step.strategy
    if not is_of_log(step):
        return None
    found = [each for each in step.in_order() if isinstance(each, TimestampsAndWatermarksTransformation)]
    return found[0].strategy if found else None


def is_source(step: Transformation) -> bool:
    """Return whether a step is a source, an event log or a columnar job, whose elements no operator makes."""
    if isinstance(step, SideOutputTransformation):
        return _is_columnar_operator(step.input)
    return isinstance(step, _ELEMENT_SOURCES) or _is_columnar_operator(step) or is_of_log(step)


def _is_columnar_operator(step: Transformation) -> bool:
    return isinstance(step, OperatorTransformation) and step.path == "columnar"


def is_source_node(node: StreamNode) -> bool:
    """Return whether a node reads a source."""
    return not node.collects and is_source(node.transformation)


def is_async(node: StreamNode) -> bool:
    """Return whether a node emits results later than it takes elements; it is not a part of a longer chain."""
    return not node.collects and isinstance(node.transformation, AsyncWaitTransformation)


@dataclass(frozen=True, eq=False)
class JobVertex:
    """A chain: operators that call each other directly. A task runs one subtask of each.

    Attributes
    ----------
    nodes : tuple of StreamNode
        The head first; each after the node of the chain that it reads.
    first_task : int
        Number of its first task: the tasks of a job are numbered, each after those that it reads.
    level : int
        The number of vertices on the longest path from a source to it.

    Notes
    -----
    Flink's ``JobVertex``.
    """

    nodes: tuple[StreamNode, ...]
    first_task: int
    level: int

    @property
    def head(self) -> StreamNode:
        """The operator that elements of other vertices come to."""
        return self.nodes[0]

    @property
    def parallelism(self) -> int:
        """The number of its tasks."""
        return self.head.parallelism

    @property
    def tasks(self) -> range:
        """The numbers of its tasks."""
        return range(self.first_task, self.first_task + self.parallelism)

    def channels(self, index: int) -> int:
        """Return the number of input channels of a task, by its index in the vertex."""
        return sum(len(source_indices(edge, index)) for edges in self.head.inputs for edge in edges)


def job_vertices(nodes: Sequence[StreamNode]) -> list[JobVertex]:
    """Return the chains of a job, each after those that it reads.

    Parameters
    ----------
    nodes : sequence of StreamNode
        All operators of a job, each after those that it reads.

    Notes
    -----
    Flink's ``StreamingJobGraphGenerator``.
    """
    chains: dict[StreamNode, list[StreamNode]] = {}
    head_of: dict[StreamNode, StreamNode] = {}
    for node in nodes:
        chained = [edge for edges in node.inputs for edge in edges if edge.chained]
        head = head_of[node] = head_of[chained[0].source] if chained else node
        chains.setdefault(head, []).append(node)
    vertices: list[JobVertex] = []
    levels: dict[StreamNode, int] = {}
    first_task = 0
    for head, chain in chains.items():
        before = [levels[head_of[edge.source]] for edges in head.inputs for edge in edges]
        levels[head] = max(before, default=-1) + 1
        vertices.append(JobVertex(tuple(chain), first_task, levels[head]))
        first_task += head.parallelism
    return vertices


def source_indices(edge: StreamEdge, target_index: int) -> range:
    """Return the subtasks of an edge's source that send to a subtask of its target.

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


def channel_place(edge: StreamEdge, source_index: int, target_index: int) -> tuple[int, int]:
    """Return the index of an edge's input of its target, and of the input's channel from a subtask of its source."""
    for input_index, edges in enumerate(edge.target.inputs):
        channel = 0
        for other in edges:
            indices = source_indices(other, target_index)
            if other is edge:
                return input_index, channel + indices.index(source_index)
            channel += len(indices)
    raise AssertionError(f"{edge} leads nowhere")

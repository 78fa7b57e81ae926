"""The operators of a job as JSON, for Flink's plan visualizer."""

from __future__ import annotations

import json
from typing import Any, Final

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.graph.element_transformations import (
    CustomPartitionTransformation,
    ElementWindowTransformation,
    KeyedValuesTransformation,
    SinkTransformation,
)
from flinkcore.datastream.graph.pipeline_executor import ElementJob
from flinkcore.datastream.graph.transformations import PartitionTransformation, WindowProcessTransformation
from flinkcore.datastream.window import WindowOperation
from flinkcore.elements.tasks.stream_graph import StreamEdge, StreamGraphGenerator, StreamNode

_SINK: Final = "Data Sink"
_ALL_WINDOW_FUNCTIONS: Final = (AllWindowFunction, ProcessAllWindowFunction)


def execution_plan(job: ElementJob, configuration: ExecutionConfig) -> str:
    """Return the operators of a job, and how they are connected, as JSON.

    Raises
    ------
    ConfigurationError
        If steps do not fit together.

    Notes
    -----
    Flink's ``JSONGenerator``: sinks come last.
    """
    plan = _Plan(configuration)
    for node in StreamGraphGenerator(job, configuration).generate():
        plan.add(node)
    return plan.as_json()


class _Plan:
    """The nodes of a plan: the operators, and those that compute keys, which PyFlink has as operators of their own."""

    def __init__(self, configuration: ExecutionConfig) -> None:
        parallelism = configuration.get_parallelism()
        self._parallelism = 1 if parallelism == ExecutionConfig.PARALLELISM_DEFAULT else parallelism
        self._nodes: list[dict[str, Any]] = []
        self._of_operators: dict[int, dict[str, Any]] = {}
        self._of_partitions: dict[tuple[int, int], dict[str, Any]] = {}
        self._values: dict[tuple[int, int], dict[str, Any]] = {}

    def as_json(self) -> str:
        """Return the plan with the sinks last."""
        return json.dumps({"nodes": sorted(self._nodes, key=_is_sink)}, indent=2)

    def add(self, node: StreamNode) -> None:
        """Add an operator, whose inputs are there."""
        predecessors = [self._read(edge, node) for edges in node.inputs for edge in edges]
        step = node.transformation
        is_sink = isinstance(step, SinkTransformation)
        pact = _SINK if is_sink else "Operator" if node.inputs else "Data Source"
        prefix = "Sink: " if is_sink else "" if node.inputs else "Source: "
        name = prefix + (step.settings.name or step.operator_name)
        shown = self._add(name, pact, _described(node) or name, node.parallelism)
        self._of_operators[id(node)] = shown
        if predecessors:
            shown["predecessors"] = [
                read for n, read in enumerate(predecessors) if read not in predecessors[:n]
            ]

    def _add(self, name: str, pact: str, contents: str, parallelism: int) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": len(self._nodes) + 1,
            "type": name,
            "pact": pact,
            "contents": contents,
            "parallelism": parallelism,
        }
        self._nodes.append(shown)
        return shown

    def _read(self, edge: StreamEdge, node: StreamNode) -> dict[str, Any]:
        source = self._of_operators[id(edge.source)]
        if edge.partitioning is not None:
            return _edge(source, edge.partitioning.name)
        partition = edge.partition
        if isinstance(partition, CustomPartitionTransformation):
            keyed = self._computed(partition, source, "_partition_custom_map_operator")
            values = self._values.get(_of_stream(partition))
            if values is None:
                name = KeyedValuesTransformation.OPERATOR_NAME
                values = self._values[_of_stream(partition)] = self._add(
                    name, "Operator", name, self._parallelism
                )
                values["predecessors"] = [_edge(keyed, "CUSTOM")]
            return _edge(values, _forwarded(values, node.parallelism))
        if isinstance(partition, PartitionTransformation) and partition.key.names:
            return _edge(source, "HASH")
        return _edge(self._computed(partition, source, "_stream_key_by_map_operator"), "HASH")

    def _computed(self, partition: Any, source: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the node that computes the keys of a stream, which reads a source."""
        shown = self._of_partitions.get(_of_stream(partition))
        if shown is None:
            shown = self._add(name, "Operator", name, source["parallelism"])
            shown["predecessors"] = []
            self._of_partitions[_of_stream(partition)] = shown
        read = _edge(source, _forwarded(source, shown["parallelism"]))
        if read not in shown["predecessors"]:
            shown["predecessors"].append(read)
        return shown


def _of_stream(partition: Any) -> tuple[int, int]:
    """Return the identity of a partitioned stream: each of its readers has a partitioning of its own."""
    return id(partition.input), id(getattr(partition, "key_selector", None))


def _is_sink(shown: dict[str, Any]) -> bool:
    return bool(shown["pact"] == _SINK)


def _edge(source: dict[str, Any], strategy: str) -> dict[str, Any]:
    # Flink gives all inputs the same side.
    return {"id": source["id"], "ship_strategy": strategy, "side": "second"}


def _forwarded(source: dict[str, Any], parallelism: int) -> str:
    return "FORWARD" if source["parallelism"] == parallelism else "REBALANCE"


def _described(node: StreamNode) -> str | None:
    step = node.transformation
    if step.settings.description is not None:
        return step.settings.description
    if isinstance(step, ElementWindowTransformation):
        return _described_windows(step.operation, node)
    return _described_windows(step.function, node) if isinstance(step, WindowProcessTransformation) else None


def _described_windows(operation: WindowOperation, node: StreamNode) -> str:
    functions = [
        type(called_function(function)).__name__
        for function in (operation.pre_aggregation, operation.window_function)
        if function is not None
    ]
    partition = node.inputs[0][0].partition
    is_all = isinstance(partition, PartitionTransformation) and not partition.key.names
    kind = "AllWindow" if is_all or isinstance(operation.window_function, _ALL_WINDOW_FUNCTIONS) else "Window"
    parts = [str(operation.assigner), type(operation.trigger).__name__, *functions]
    return f"{kind}({', '.join(parts)})"

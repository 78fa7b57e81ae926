"""The operators of a job as JSON, for Flink's plan visualizer."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Final

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.element_transformations import (
    CustomPartitionTransformation,
    ElementWindowTransformation,
    SinkTransformation,
)
from flinkcore.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.pipeline_executor import ElementJob
from flinkcore.datastream.transformations import PartitionTransformation, WindowProcessTransformation
from flinkcore.datastream.window import WindowOperation
from flinkcore.runtime.tasks.stream_graph import StreamEdge, StreamGraphGenerator, StreamNode

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
    nodes = StreamGraphGenerator(job, configuration).generate()
    ids = {id(node): number for number, node in enumerate(nodes, 1)}
    shown = sorted(nodes, key=_is_sink)
    return json.dumps({"nodes": [_node(node, ids) for node in shown]}, indent=2)


def _is_sink(node: StreamNode) -> bool:
    return isinstance(node.transformation, SinkTransformation)


def _node(node: StreamNode, ids: dict[int, int]) -> dict[str, Any]:
    step = node.transformation
    kind = "Data Sink" if _is_sink(node) else "Operator" if node.inputs else "Data Source"
    prefix = {"Data Sink": "Sink: ", "Data Source": "Source: "}.get(kind, "")
    name = prefix + (step.settings.name or step.operator_name)
    shown: dict[str, Any] = {
        "id": ids[id(node)],
        "type": name,
        "pact": kind,
        "contents": _described(node) or name,
        "parallelism": node.parallelism,
    }
    if node.inputs:
        shown["predecessors"] = [
            # Flink gives all inputs the same side.
            {"id": ids[id(edge.source)], "ship_strategy": _ship_strategy(edge), "side": "second"}
            for edges in node.inputs
            for edge in edges
        ]
    return shown


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
    is_all = isinstance(partition, PartitionTransformation) and not partition.key_columns
    kind = "AllWindow" if is_all or isinstance(operation.window_function, _ALL_WINDOW_FUNCTIONS) else "Window"
    parts = [_shown_assigner(operation.assigner), type(operation.trigger).__name__, *functions]
    return f"{kind}({', '.join(parts)})"


def _shown_assigner(assigner: Any) -> str:
    """Return an assigner with its sizes, as PyFlink shows it: ``TumblingEventTimeWindows(5000, 0)``."""
    values = (
        [getattr(assigner, field.name) for field in fields(assigner)]
        if hasattr(assigner, "__dataclass_fields__")
        else []
    )
    sizes = ", ".join(str(value) for value in values if isinstance(value, int))
    return f"{type(assigner).__name__}({sizes})"


def _ship_strategy(edge: StreamEdge) -> str:
    if edge.partitioning is not None:
        return edge.partitioning.name
    return "CUSTOM" if isinstance(edge.partition, CustomPartitionTransformation) else "HASH"

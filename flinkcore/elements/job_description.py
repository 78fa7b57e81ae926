"""Description of a job over single elements in its checkpoints, so that no other job is restored from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from flinkcore.checkpoint.declared_types import TYPES, type_to_json
from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.columnar.plans.job_description import describe_log
from flinkcore.columnar.stages.restored_namespaces import check_namespaces, check_window_namespaces, is_void
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.graph.element_transformations import (
    ElementWindowTransformation,
    KeyedTransformation,
    LegacySourceTransformation,
    SourceTransformation,
)
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    PartitionTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
)
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.window import WindowOperation
from flinkcore.elements.arrivals.log_arrivals import LogReading
from flinkcore.elements.tasks.stream_graph import StreamNode, is_of_log
from flinkcore.elements.tasks.subtask_state import Check
from flinkcore.operators.function_calls import TIMER_SERVICE_NAME
from flinkcore.operators.interval_join_operator import (
    CLEANUP_NAMESPACE_LEFT,
    CLEANUP_NAMESPACE_RIGHT,
    CLEANUP_TIMER_NAME,
)

_WITH_CONTEXTS: Final = (LegacySourceTransformation, SourceTransformation)


def uid_of(node: StreamNode, number: int) -> str:
    """Return the uid of an operator, or one that is made of its kind and its number in the job."""
    if node.collects:
        return f"collect-{number}"
    step = node.transformation
    kind = type(step).__name__.removesuffix("Transformation").removeprefix("Element").lower()
    return step.uid or f"{'watermarks' if kind == 'timestampsandwatermarks' else kind}-{number}"


def described(
    uids: Mapping[StreamNode, str], configuration: ExecutionConfig, time_characteristic: TimeCharacteristic
) -> dict[str, str]:
    """Return what a job says of itself in a checkpoint, so that no other job is restored from it by mistake."""
    description = {
        "clock": configuration.get_clock(),
        "logs and operators": f"operators of single elements {', '.join(uids.values())}",
        "auto-watermark interval": f"{configuration.get_auto_watermark_interval()} ms",
        "arrival rate": f"{configuration.get_arrival_rate()!r} elements/s",
    }
    for node, uid in uids.items():
        settings = {} if node.collects else _settings_of(node.transformation, configuration)
        if not node.collects and isinstance(node.transformation, _WITH_CONTEXTS):
            settings["time"] = time_characteristic.name
        for number, edges in enumerate(node.inputs, start=1):
            settings[f"input {number}"] = ", ".join(
                f"{uids[edge.source]}{_keys_of(edge.partition)}" for edge in edges
            )
        if node.transformation.uid and not node.collects:
            settings[TYPES] = _declared_types(node)
        description |= {f"{uid}: {name}": value for name, value in settings.items()}
    return description


def _declared_types(node: StreamNode) -> str:
    """Return the types of an operator's keys and windows, which its program declares, as JSON."""
    partitions = [edge.partition for edges in node.inputs for edge in edges]
    keys = [each.key_type for each in partitions if isinstance(each, KeyedTransformation)]
    step = node.transformation
    contents = step.contents_type if isinstance(step, ElementWindowTransformation) else None
    shown = [type_to_json(each) for each in keys]
    key = shown[0] if shown and all(each == shown[0] for each in shown) else None
    return json.dumps({"key": key, "contents": type_to_json(contents)})


def _keys_of(partition: Any) -> str:
    if isinstance(partition, KeyedTransformation):
        return f" by {partition.key_type!r}"
    return f" by {', '.join(partition.key.names)}" if isinstance(partition, PartitionTransformation) else ""


def logs_of(node: StreamNode) -> list[LogSettings]:
    """Return the event log that an operator reads, if it reads one."""
    if node.collects or not is_of_log(node.transformation):
        return []
    source = next(node.transformation.in_order())
    assert isinstance(source, EventLogSource)
    return [source.log]


def _settings_of(step: Transformation, configuration: ExecutionConfig) -> dict[str, str]:
    if is_of_log(step):
        return describe_log(LogReading.plan_of(step, configuration))
    if isinstance(step, TimestampsAndWatermarksTransformation):
        return {"watermark strategy": str(step.strategy)}
    if isinstance(step, SourceTransformation) and step.strategy is not None:
        return {"step": type(step).__name__, "watermark strategy": str(step.strategy)}
    operation = _operation_of(step)
    if isinstance(operation, WindowOperation):
        of_windows = "assigner", "trigger", "evictor", "allowed_lateness_ms", "pre_aggregation"
        return shown_settings(operation, of_windows)
    if isinstance(operation, IntervalJoinOperation):
        names = "lower_bound_ms", "upper_bound_ms", "is_lower_bound_inclusive", "is_upper_bound_inclusive"
        return shown_settings(operation, names)
    return {"step": type(step).__name__}


def _operation_of(step: Transformation) -> Any:
    return (
        step.operation if isinstance(step, ElementWindowTransformation) else getattr(step, "function", None)
    )


def check_of(step: Transformation) -> Check | None:
    """Return what accepts a snapshot of the keyed state of a step."""
    operation = _operation_of(step)
    if isinstance(operation, WindowOperation):
        return lambda snapshot: check_window_namespaces(snapshot, operation)
    if isinstance(operation, IntervalJoinOperation):
        sides = CLEANUP_NAMESPACE_LEFT, CLEANUP_NAMESPACE_RIGHT
        return lambda snapshot: check_namespaces(
            snapshot, CLEANUP_TIMER_NAME, lambda namespace: namespace in sides, is_void
        )
    return lambda snapshot: check_namespaces(snapshot, TIMER_SERVICE_NAME, is_void, is_void)

"""Programs from compiled plans: a stream of a log for each sink."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from flinkcore.common.configuration import Configuration
from flinkcore.common.settings.flink_settings import AUTO_WATERMARK_INTERVAL
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.sql.nodes.kinds import NODES, REFUSED, needs_watermarks
from flinkcore.sql.nodes.rows import Program, Rows
from flinkcore.sql.nodes.windows import is_of_processing_time
from flinkcore.sql.plan.compiled_plan import CompiledPlan, PlanNode

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

_FOREVER: Final = "0 ms"


def plan_streams(
    environment: StreamExecutionEnvironment,
    plan: str | os.PathLike[str] | Mapping[str, Any],
    tables: Mapping[str, Any],
    settings: Mapping[str, str] | None = None,
    emitted_at: str | None = None,
) -> dict[str, LogStream]:
    """Return the rows that go into each sink of a compiled plan, by its name.

    Parameters and errors are those of :meth:`StreamExecutionEnvironment.from_plan`.
    """
    read = CompiledPlan.of(plan)
    if settings is not None and not all(isinstance(value, str) for value in settings.values()):
        raise ConfigurationError("settings= are texts by name, such as {'table.local-time-zone': 'UTC'}")
    interval = (settings or {}).get(AUTO_WATERMARK_INTERVAL.key())
    if interval is not None:
        configuration = Configuration().set(AUTO_WATERMARK_INTERVAL, interval)
        environment.get_config().set_auto_watermark_interval(
            configuration.get(AUTO_WATERMARK_INTERVAL).to_millis()
        )
    by_arrival = any(map(is_of_processing_time, read.nodes))
    program = Program(
        environment,
        tables,
        dict(settings or {}),
        emitted_at,
        any(map(needs_watermarks, read.nodes)),
        by_arrival,
        by_arrival or any(map(_reads_processing_time, read.nodes)),
    )
    rows: dict[int, Rows] = {}
    for node in read.nodes:
        rows[node.id] = _built(program, node, [rows[each.id] for each in node.inputs])
    return {_sink_name(node): rows[node.id].stream for node in read.sinks}


def _built(program: Program, node: PlanNode, inputs: list[Rows]) -> Rows:
    builder = NODES.get(node.kind)
    if builder is None:
        raise node.refuse(f"the node {node.kind} is not supported", REFUSED.get(node.kind, ""))
    for state in node.json.get("state") or ():
        if state.get("ttl", _FOREVER) != _FOREVER:
            raise node.refuse(
                f"its state {state.get('name', '')} expires after {state['ttl']}, which is not supported",
                "Compile the plan again with SET 'table.exec.state.ttl' = '0 ms', or write that in the plan",
            )
    try:
        return builder(program, node, *inputs)
    except UnsupportedOperationError as error:
        if str(error).startswith("node "):
            raise
        raise node.refuse(str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise node.refuse(f"it is not as Flink writes it ({error!r})", "Compile the plan again") from error


def _reads_processing_time(node: PlanNode) -> bool:
    return node.kind == "calc" and "$PROCTIME$" in json.dumps(node.json)


def _sink_name(node: PlanNode) -> str:
    table = node.json.get("dynamicTableSink", {}).get("table", {})
    identifier = str(table.get("identifier", f"sink {node.id}"))
    return identifier.rpartition("`.`")[2].strip("`") or identifier

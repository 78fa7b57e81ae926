"""Programs from compiled plans and scripts: a stream of a log for each sink."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from flinkcore.common.configuration import Configuration
from flinkcore.common.settings.flink_settings import AUTO_WATERMARK_INTERVAL
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.sql.expressions.user_functions import UserFunctions
from flinkcore.sql.nodes.kinds import EXPIRING, EXPIRY_REFUSED, NODES, REFUSED, WITHOUT_TTL, needs_watermarks
from flinkcore.sql.nodes.rows import OF_ARRIVALS, Program, Rows, Tables, zone_of
from flinkcore.sql.nodes.scans import names_of
from flinkcore.sql.nodes.windows import is_of_processing_time, needs_one_clock
from flinkcore.sql.plan.compiled_plan import CompiledPlan, PlanNode
from flinkcore.sql.plan.state_ttl import STATE_TTL, ttls_of
from flinkcore.sql.planner.planned_script import QUERY_SINK, planned
from flinkcore.sql.planner.statements import Statement, statements_of
from flinkcore.sql.sink_rows import SinkRows

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

_LEGACY_CAST: Final = "table.exec.legacy-cast-behaviour"


def plan_sinks(
    environment: StreamExecutionEnvironment,
    plan: str | os.PathLike[str] | Mapping[str, Any],
    tables: Mapping[str, Any] | Tables,
    settings: Mapping[str, str] | None = None,
    emitted_at: str | None = None,
    functions: Mapping[str, Any] | None = None,
) -> dict[str, SinkRows]:
    """Return the rows that go into each sink of a compiled plan, by its name.

    Parameters and errors are those of :meth:`StreamExecutionEnvironment.from_plan`.
    """
    read = CompiledPlan.of(plan)
    _check_settings(settings or {})
    interval = (settings or {}).get(AUTO_WATERMARK_INTERVAL.key())
    if interval is not None:
        configuration = Configuration().set(AUTO_WATERMARK_INTERVAL, interval)
        environment.get_config().set_auto_watermark_interval(
            configuration.get(AUTO_WATERMARK_INTERVAL).to_millis()
        )
    by_arrival = any(map(is_of_processing_time, read.nodes))
    program = Program(
        environment,
        tables if isinstance(tables, Tables) else Tables(tables),
        dict(settings or {}),
        emitted_at,
        any(map(needs_watermarks, read.nodes)),
        by_arrival,
        by_arrival or any(map(_reads_processing_time, read.nodes)),
        UserFunctions(functions),
        any(any(ttls_of(node, settings or {})) for node in read.nodes),
        any(map(needs_one_clock, read.nodes)),
    )
    rows: dict[int, Rows] = {}
    for node in read.nodes:
        rows[node.id] = _built(program, node, [rows[each.id] for each in node.inputs])
    return _by_name(SinkRows.of(node, rows[node.id], emitted_at) for node in read.sinks)


def script_sinks(
    environment: StreamExecutionEnvironment,
    script: str,
    tables: Mapping[str, Any] | Tables,
    settings: Mapping[str, str] | None = None,
    emitted_at: str | None = None,
    functions: Mapping[str, Any] | None = None,
) -> dict[str, SinkRows]:
    """Return the rows of each query and each sink of a script, by its name: queries are ``select``, ``select_2``, ....

    Parameters and errors are those of :meth:`StreamExecutionEnvironment.from_sql`.
    """
    logs = tables if isinstance(tables, Tables) else Tables(tables, reads_paths=True)
    found = statement_sinks(environment, statements_of(script), logs, settings or {}, emitted_at, functions)
    if not found:
        raise ConfigurationError(
            "the script has neither a query nor an INSERT INTO. Add the statement whose rows are wanted"
        )
    logs.check_read()
    return found


def statement_sinks(
    environment: StreamExecutionEnvironment,
    statements: Sequence[Statement],
    tables: Tables,
    settings: Mapping[str, str],
    emitted_at: str | None = None,
    functions: Mapping[str, Any] | None = None,
) -> dict[str, SinkRows]:
    """Return the rows of the queries and insertions among statements, as of `script_sinks`."""
    _check_settings(settings)
    found: list[SinkRows] = []
    queries = 0
    for job in planned(statements, settings, functions):
        sinks = plan_sinks(environment, job.plan, tables, job.settings, emitted_at, job.functions)
        if job.is_query:
            queries += 1
            name = QUERY_SINK if queries == 1 else f"{QUERY_SINK}_{queries}"
            found += [rows.of_query(name) for rows in sinks.values()]
        else:
            found += sinks.values()
    return _by_name(found)


def _check_settings(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if not isinstance(value, str):
            raise ConfigurationError(
                "settings= are texts by name, such as {'table.local-time-zone': 'UTC'}, and "
                f"{name!r} is {value!r}. Write '{value}'"
            )
    zone_of(settings)
    if settings.get(_LEGACY_CAST, "DISABLED").upper() != "DISABLED":
        raise UnsupportedOperationError(
            f"{_LEGACY_CAST} is not supported. Leave it out, and write TRY_CAST where a failed CAST is null"
        )


def _by_name(sinks: Iterable[SinkRows]) -> dict[str, SinkRows]:
    """Return sinks by their short names, or by longer ones where tables share these; insertions into a sink are one."""
    found: dict[str, SinkRows] = {}
    for each in sinks:
        before = found.get(each.identifier)
        found[each.identifier] = each if before is None else before.union(each)
    counts = Counter(name for identifier in found for name in set(names_of(identifier)))
    return {
        next((name for name in names_of(identifier) if counts[name] == 1), identifier): each
        for identifier, each in found.items()
    }


def _built(program: Program, node: PlanNode, inputs: list[Rows]) -> Rows:
    builder = NODES.get(node.kind)
    if builder is None:
        raise node.refuse(f"the node {node.kind} is not supported", REFUSED.get(node.kind, ""))
    if node.kind not in EXPIRING and any(program.ttls(node)):
        raise node.refuse(
            f"its state expires ({STATE_TTL.key()} or a STATE_TTL hint), which is not supported for a {node.kind}",
            EXPIRY_REFUSED.get(node.kind, WITHOUT_TTL),
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
    if node.kind != "calc":
        return False
    written = json.dumps(node.json)
    return any(f"${name}$" in written for name in OF_ARRIVALS)

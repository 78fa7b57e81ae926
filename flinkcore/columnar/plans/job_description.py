"""Description of a job in its checkpoints, so that no other job is restored from one by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import exact_text, expressions_behind, shown_column
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore.checkpoint.declared_types import TYPES
from flinkcore.columnar.operator_plans.aggregate_contents import is_contents
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.errors import ConfigurationError
from flinkcore.log.event_log import EventLog
from flinkcore.sql.plan.flink_state import SETTING as FLINK_STATE

_SHAPE: Final = "logs and operators"
_ADVICE: Final = "run the job with the setting that it had, or start without the checkpoint"


def describe_job(plan: JobPlan) -> dict[str, str]:
    """Return the settings of a job that what it holds depends on, in words.

    The code of a function may change from one job to the next, as in Flink: it must understand the state.

    Parameters
    ----------
    plan : JobPlan

    Returns
    -------
    dict of str to str
        Values by the names of the settings; of a job of several logs or operators, which of them comes first.
    """
    if plan.is_single:
        (log,), (stage,) = plan.logs, plan.stages
        return {
            **describe_log(log),
            "keys": _shown_keys(stage.keys, stage.data_schema()),
            **stage.operator.describe(stage.input_schemas),
            **_flink_state(stage),
        }
    description = {
        _SHAPE: f"{len(plan.logs)} {'log' if len(plan.logs) == 1 else 'logs'}, operators "
        f"{', '.join(plan.operator_uids)}"
    }
    for number, log in enumerate(plan.logs, start=1):
        description |= {f"log {number}: {name}": value for name, value in describe_log(log).items()}
    for stage in plan.stages:
        settings = {}
        for number, each in enumerate(stage.inputs, start=1):
            name = "keys" if len(stage.inputs) == 1 else f"keys of stream {number}"
            settings[name] = _shown_keys(each.key.names, each.schema)
            made = [expressions_behind(each.key.names, results.ops) for results in each.results]
            settings |= _computed(name, "; ".join(filter(None, made)))
            if each.logs and len(plan.logs) > 1:
                logs = ", ".join(str(log + 1) for log in each.logs)
                settings["logs" if len(stage.inputs) == 1 else f"logs of stream {number}"] = logs
            if each.results and not plan.is_chain:
                given = ", ".join(plan.operator_uids[results.stage] for results in each.results)
                settings["results" if len(stage.inputs) == 1 else f"results of stream {number}"] = given
        settings |= stage.operator.describe(stage.input_schemas)
        if stage.clock is not None:
            settings["clock"] = str(stage.clock)
        settings |= _flink_state(stage)
        description |= {f"{stage.uid}: {name}": value for name, value in settings.items()}
    return description


def _flink_state(stage: StagePlan) -> dict[str, str]:
    return {} if stage.flink_state is None else {FLINK_STATE: stage.flink_state}


def describe_log(plan: LogPlan) -> dict[str, str]:
    """Return the settings of a log, in words by their names."""
    log = plan.log
    timestamp, computed = shown_column(log.timestamp, plan.before)
    return {
        "watermark strategy": str(replace(plan.strategy, timestamp_column=None)),
        "auto-watermark interval": f"{plan.auto_watermark_interval_ms} ms",
        "timestamp": _in_unit(timestamp if computed else repr(timestamp), log.timestamp_unit),
        "arrivals": _describe_arrivals(log),
        "split": "none" if log.split is None else repr(log.split),
        **(
            {}
            if log.position is None
            else {"ties": f"by {', '.join(map(str, log.ordered_by)) or 'position='}"}
        ),
        **_computed("timestamp", expressions_behind([log.timestamp], plan.before)),
        **_computed("keys", expressions_behind(plan.key.names, (*plan.before, *plan.after))),
    }


def _computed(what: str, expressions: str) -> dict[str, str]:
    return {f"{what} computed": expressions} if expressions else {}


def _shown_keys(keys: tuple[str, ...], schema: pa.Schema) -> str:
    return ", ".join(f"{key}: {schema.field(key).type}" for key in keys) or "none"


def _describe_arrivals(log: EventLog) -> str:
    # repr: no digit of a rate is lost, and no column is taken for an expression.
    if log.arrival is None:
        return f"{float(log.rate)!r} records/s from {log.arrival_start_ms} ms"
    arrival = repr(log.arrival) if isinstance(log.arrival, str) else exact_text(log.arrival)
    return f"recorded as {_in_unit(arrival, log.arrival_unit)}"


def _in_unit(column: str, unit: TimeUnit | None) -> str:
    return column if unit in (None, "ms") else f"{column} in {unit}"


def _or_none(settings: Mapping[str, Any], name: str) -> Any:
    # To the reader, a setting that the operator lacks and one that is not set are the same.
    value = settings.get(name)
    return "none" if value in (None, "None") else value


def refuse_changes(before: Mapping[str, Any], now: Mapping[str, str], where: str) -> None:
    """Accept a job if it is the one that wrote a checkpoint, as far as its description says.

    Parameters
    ----------
    before, now : mapping of str to str
        Descriptions.
    where : str
        Names the checkpoint in messages.

    Raises
    ------
    ConfigurationError
        If a setting differs; names it.
    """
    if "operator" not in before and _SHAPE not in before:
        raise ConfigurationError(f"the checkpoint {where} was not written by a replay")
    if before.get(_SHAPE) != now.get(_SHAPE):
        shapes = (job.get(_SHAPE, "1 log with 1 operator") for job in (before, now))
        raise ConfigurationError(
            f"the checkpoint {where} is of another job. {'{} then, {} now'.format(*shapes)}: {_ADVICE}"
        )
    changed = [
        f"{name}: {_or_none(before, name)} then, {_or_none(now, name)} now"
        for name in dict.fromkeys([*now, *before])
        if name != "results" and not is_contents(name) and not name.endswith(f": {TYPES}")
        if _or_none(before, name) != _or_none(now, name)
    ]
    if changed:
        raise ConfigurationError(f"the checkpoint {where} is of another job. {'; '.join(changed)}: {_ADVICE}")

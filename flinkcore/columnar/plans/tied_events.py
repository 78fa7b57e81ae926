"""Ties: the dependence of a job on the order of events that arrive together."""

from __future__ import annotations

from dataclasses import replace

from flinkcore._native.aggregates import are_shareable
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.operators import WindowAggregation
from flinkcore.columnar.plans.partial_windows import PartialWindows, partial_windows


def without_order_of_ties(plan: JobPlan) -> JobPlan:
    """Return a plan that leaves out the order of events that arrive together, if no result depends on it.

    Watermarks come between arrivals, so that such events meet the same one. Windows that fire at their end alone then
    hold the same, if their aggregates are the same in whatever order elements are added up. Late firings and side
    outputs come in the order of the events.

    Parameters
    ----------
    plan : JobPlan

    Returns
    -------
    JobPlan
        Of logs whose rows have positions, as those of files, these stay.
    """
    windows = partial_windows(plan)
    if not isinstance(windows, PartialWindows) or _fires_late(windows.operator):
        return plan
    _, accumulators = windows.operator.native(windows.stage.data_schema())
    if not are_shareable(accumulators):
        return plan
    if any(log.is_by_element or log.strategy.alignment_parameters is not None for log in plan.logs):
        return plan
    return replace(plan, logs=tuple(replace(log, orders_ties=False) for log in plan.logs))


def _fires_late(operator: WindowAggregation) -> bool:
    return operator.allowed_lateness_ms > 0 or operator.late_tag is not None

"""Ties: the dependence of a job on the order of events that arrive together."""

from __future__ import annotations

from dataclasses import replace

from flinkcore._native.aggregates import are_shareable
from flinkcore.columnar.plans.job_plan import JobPlan


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
        The plan, in which rows that have positions, such as those of files, keep them.
    """
    windows = plan.partial_windows()
    if isinstance(windows, str) or windows.fires_late:
        return plan
    _, accumulators = windows.native()
    if not are_shareable(accumulators):
        return plan
    if any(log.is_by_element or log.strategy.alignment_parameters is not None for log in plan.logs):
        return plan
    return replace(plan, logs=tuple(replace(log, orders_ties=False) for log in plan.logs))

"""Which windows can be aggregated in part where events are read, before the exchange by key."""

from __future__ import annotations

from dataclasses import dataclass

from flinkcore._native.aggregates import inexact_merges
from flinkcore._native.window_operator import WindowKernel
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.native_windows import slide_of
from flinkcore.columnar.plans.operators import WindowAggregation
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)


@dataclass(frozen=True)
class PartialWindows:
    """The windows of an operator that takes in partial results; picklable.

    A partial result is what events of one key and one pane add up to, of those that one task reads and that come before
    the pane fires for the first time. It stands where the first of them does: in this order, operators merge them.

    Parameters
    ----------
    stage : StagePlan
    operator : WindowAggregation
        Its operator.
    pane_ms, offset_ms : int
        Length and offset of the panes: tumbling windows, or the slides of windows that share slices.
    """

    stage: StagePlan
    operator: WindowAggregation
    pane_ms: int
    offset_ms: int

    def kernel(self) -> WindowKernel:
        """Return native windows of the operator."""
        return self.operator.native(self.stage.data_schema())[0]


def partial_windows(plan: JobPlan) -> PartialWindows | str:
    """Return how events of a job are merged where they are read, or why they are not.

    Parameters
    ----------
    plan : JobPlan

    Returns
    -------
    PartialWindows or str
        With partial results a job gives the same rows, in the same order and to the last bit, and the same counts.
    """
    if len(plan.stages) > 1:
        return "the job has several operators"
    (stage,) = plan.stages
    operator = stage.operator
    if not isinstance(operator, WindowAggregation):
        return f"{operator.function_name} takes the events themselves"
    if not stage.keys:
        return "events have no key"
    kernel, accumulators = operator.native(stage.data_schema())
    window = operator.window
    if not kernel.takes_partials or not isinstance(
        window, TumblingEventTimeWindows | SlidingEventTimeWindows | CumulativeEventTimeWindows
    ):
        return "it is done for tumbling windows, and those that share slices, which fire at their end"
    inexact = inexact_merges(accumulators)
    if inexact:
        name, aggregate = operator.aggregates[inexact[0]]
        return f"{name} = {aggregate} depends on every event's place in the order"
    return PartialWindows(stage, operator, slide_of(window), window.offset_ms)

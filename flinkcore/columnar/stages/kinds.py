"""From an operator of a plan to the stages that run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pkgutil import resolve_name
from typing import Any, Final

from flinkcore.columnar.operator_plans.batch_process import BatchProcess
from flinkcore.columnar.operator_plans.connected_process import ConnectedProcess
from flinkcore.columnar.operator_plans.deduplication import Deduplication
from flinkcore.columnar.operator_plans.expansion import Expansion
from flinkcore.columnar.operator_plans.forward import Forward
from flinkcore.columnar.operator_plans.group_aggregation import GroupAggregation
from flinkcore.columnar.operator_plans.interval_join_process import IntervalJoinProcess
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.keyed_process import KeyedProcess
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.columnar.operator_plans.over import Over
from flinkcore.columnar.operator_plans.pattern_match import PatternMatch
from flinkcore.columnar.operator_plans.ranked_join import RankedJoin
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.operator_plans.window_join_process import WindowJoinProcess
from flinkcore.columnar.operator_plans.window_process import WindowProcess
from flinkcore.columnar.stages.stage import LocalBatches, PreparedBatches, Stage, StageContext

STAGES: Final[Mapping[type[OperatorPlan], str]] = {
    Forward: "flinkcore.columnar.stages.forward_stage:ForwardStage",
    Expansion: "flinkcore.columnar.stages.expand_stage:ExpandStage",
    WindowAggregation: "flinkcore.columnar.stages.window_stage:WindowStage",
    WindowProcess: "flinkcore.columnar.stages.window_process_stage:WindowProcessStage",
    KeyedProcess: "flinkcore.columnar.stages.keyed_process_stage:KeyedProcessStage",
    BatchProcess: "flinkcore.columnar.stages.batch_process_stage:BatchProcessStage",
    ConnectedProcess: "flinkcore.columnar.stages.connected_process_stage:ConnectedProcessStage",
    IntervalJoinProcess: "flinkcore.columnar.stages.interval_join_stage:IntervalJoinStage",
    WindowJoinProcess: "flinkcore.columnar.stages.window_join_stage:WindowJoinStage",
    Join: "flinkcore.columnar.stages.join_stage:JoinStage",
    Deduplication: "flinkcore.columnar.stages.deduplicate_stage:DeduplicateStage",
    Over: "flinkcore.columnar.stages.over_stage:OverStage",
    GroupAggregation: "flinkcore.columnar.stages.group_aggregate_stage:GroupAggregateStage",
    TopRows: "flinkcore.columnar.stages.top_stage:TopStage",
    RankedJoin: "flinkcore.columnar.stages.ranked_join_stage:RankedJoinStage",
    PatternMatch: "flinkcore.columnar.stages.match_stage:MatchStage",
}
"""Module and class of the stage that runs each kind of operator; a job imports only its own, with their kernels."""


def _stage_of(context: StageContext) -> type[Stage[Any]]:
    found: type[Stage[Any]] = resolve_name(STAGES[type(context.plan.operator)])
    return found


def prepared_batches(context: StageContext) -> PreparedBatches:
    """Return what prepares batches for the stages of an operator."""
    batches = _stage_of(context).batches(context, context.plan.operator)
    return batches if context.plan.clock is None else LocalBatches(batches, context.plan.clock)


def new_stage(context: StageContext, partition: int) -> Stage[Any]:
    """Return the stage that runs the operator of a context over a partition; to be closed."""
    return _stage_of(context)(context, context.plan.operator, partition)


@contextmanager
def opened_stage(context: StageContext, partition: int) -> Iterator[Stage[Any]]:
    """A stage that is closed with the block; an error in the block hides one of the closing."""
    stage = new_stage(context, partition)
    try:
        yield stage
    except BaseException:
        with suppress(Exception):
            stage.close()
        raise
    stage.close()

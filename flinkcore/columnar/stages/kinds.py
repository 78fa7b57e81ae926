"""From an operator of a plan to the stages that run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.operator_plans.window_join_process import WindowJoinProcess
from flinkcore.columnar.operator_plans.window_process import WindowProcess
from flinkcore.columnar.stages.batch_process_stage import BatchProcessStage
from flinkcore.columnar.stages.connected_process_stage import ConnectedProcessStage
from flinkcore.columnar.stages.deduplicate_stage import DeduplicateStage
from flinkcore.columnar.stages.expand_stage import ExpandStage
from flinkcore.columnar.stages.forward_stage import ForwardStage
from flinkcore.columnar.stages.group_aggregate_stage import GroupAggregateStage
from flinkcore.columnar.stages.interval_join_stage import IntervalJoinStage
from flinkcore.columnar.stages.join_stage import JoinStage
from flinkcore.columnar.stages.keyed_process_stage import KeyedProcessStage
from flinkcore.columnar.stages.match_stage import MatchStage
from flinkcore.columnar.stages.over_stage import OverStage
from flinkcore.columnar.stages.stage import PreparedBatches, Stage, StageContext
from flinkcore.columnar.stages.top_stage import TopStage
from flinkcore.columnar.stages.window_join_stage import WindowJoinStage
from flinkcore.columnar.stages.window_process_stage import WindowProcessStage
from flinkcore.columnar.stages.window_stage import WindowStage

STAGES: Final[Mapping[type[OperatorPlan], type[Stage[Any]]]] = {
    Forward: ForwardStage,
    Expansion: ExpandStage,
    WindowAggregation: WindowStage,
    WindowProcess: WindowProcessStage,
    KeyedProcess: KeyedProcessStage,
    BatchProcess: BatchProcessStage,
    ConnectedProcess: ConnectedProcessStage,
    IntervalJoinProcess: IntervalJoinStage,
    WindowJoinProcess: WindowJoinStage,
    Join: JoinStage,
    Deduplication: DeduplicateStage,
    Over: OverStage,
    GroupAggregation: GroupAggregateStage,
    TopRows: TopStage,
    PatternMatch: MatchStage,
}
"""The stage that runs each kind of operator."""


def _stage_of(context: StageContext) -> type[Stage[Any]]:
    return STAGES[type(context.plan.operator)]


def prepared_batches(context: StageContext) -> PreparedBatches:
    """Return what prepares batches for the stages of an operator."""
    return _stage_of(context).batches(context, context.plan.operator)


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

"""The kinds of operators, by the steps of a program that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
from flinkcore.datastream.graph.transformations import (
    BatchProcessTransformation,
    DeduplicateTransformation,
    ExpandTransformation,
    ForwardTransformation,
    GroupAggregateTransformation,
    IntervalJoinTransformation,
    JoinTransformation,
    MatchTransformation,
    OperatorTransformation,
    OverTransformation,
    ProcessTransformation,
    TopTransformation,
    TwoInputTransformation,
    WindowJoinTransformation,
    WindowProcessTransformation,
    WindowTransformation,
)

KINDS: Final[Mapping[type[OperatorTransformation], type[OperatorPlan]]] = {
    ForwardTransformation: Forward,
    ExpandTransformation: Expansion,
    WindowTransformation: WindowAggregation,
    WindowProcessTransformation: WindowProcess,
    ProcessTransformation: KeyedProcess,
    BatchProcessTransformation: BatchProcess,
    TwoInputTransformation: ConnectedProcess,
    IntervalJoinTransformation: IntervalJoinProcess,
    WindowJoinTransformation: WindowJoinProcess,
    JoinTransformation: Join,
    DeduplicateTransformation: Deduplication,
    OverTransformation: Over,
    GroupAggregateTransformation: GroupAggregation,
    TopTransformation: TopRows,
    MatchTransformation: PatternMatch,
}


def operator_of(step: OperatorTransformation) -> OperatorPlan:
    """Return the operator that does a step.

    Raises
    ------
    ConfigurationError
        If the step cannot run over columns.
    """
    return KINDS[type(step)].of(step)

"""Operators of a plan that are run as one, so that rows do not leave the first before the second has chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flinkcore._internal.arrow.column_ops import Filter, Select, WithColumns, column_behind
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.ranked_join import RankedJoin
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.plans.uids import generated_uid


def fused(stages: Sequence[StagePlan], with_state: bool) -> list[StagePlan]:
    """Return the operators of a job, in which a join and a rank of its pairs by the same key are one operator.

    Parameters
    ----------
    stages : sequence of StagePlan
    with_state : bool
        Whether the run restores or saves state: Flink keeps that of the operators of a compiled plan apart.
    """
    found = {number: _join_before(number, stages, with_state) for number in range(len(stages))}
    joins = {number: join for number, join in found.items() if join is not None}
    gone = {*joins.values()}
    numbers = {number: sum(before not in gone for before in range(number)) for number in range(len(stages))}
    left = []
    for number, stage in enumerate(stages):
        if number in gone:
            continue
        whole = _ranked_join(stage, stages) if number in joins else stage
        inputs = tuple(
            replace(each, results=tuple(replace(one, stage=numbers[one.stage]) for one in each.results))
            for each in whole.inputs
        )
        left.append(replace(whole, inputs=inputs))
    return left


def _ranked_join(rank: StagePlan, stages: Sequence[StagePlan]) -> StagePlan:
    (ranked,) = rank.inputs
    (results,) = ranked.results
    join = stages[results.stage]
    assert isinstance(join.operator, Join)
    assert isinstance(rank.operator, TopRows)
    operator = RankedJoin(join.operator, results.ops, ranked.schema, rank.operator)
    return replace(rank, inputs=join.inputs, operator=operator, event_time=join.event_time)


def _join_before(number: int, stages: Sequence[StagePlan], with_state: bool) -> int | None:
    """Return the number of the join that is one operator with this rank, or None."""
    rank = stages[number]
    if not isinstance(rank.operator, TopRows) or len(rank.inputs[0].results) != 1 or rank.logs:
        return None
    (results,) = rank.inputs[0].results
    join = stages[results.stage]
    if not isinstance(join.operator, Join) or not RankedJoin.takes(join.operator, rank.operator):
        return None
    uses = sum(one.stage == results.stage for stage in stages for _, one in stage.results)
    is_plain = join.emitted_at is None and join.clock is None and rank.clock is None
    # A checkpoint has the state of an operator that is named under its name.
    has_name = join.uid != generated_uid(join.operator, results.stage + 1)
    keeps_apart = has_name or (with_state and join.flink_state is not None)
    is_one = uses == 1 and is_plain and not keeps_apart and _has_key_of(rank, join)
    return results.stage if is_one else None


def _has_key_of(rank: StagePlan, join: StagePlan) -> bool:
    """Return whether a rank has the key of a join, perhaps under other names, and allows its nulls."""
    (results,) = rank.inputs[0].results
    if not all(isinstance(op, Filter | Select | WithColumns) for op in results.ops):
        return False
    keys = tuple(column_behind(name, results.ops) for name in rank.keys)
    types = [[field.type for field in each.key_fields] for each in (rank, join)]
    return keys == join.keys and types[0] == types[1] and (rank.key.nulls or not join.key.nulls)

"""Operators of a plan that are run as one, so that rows do not leave the first before the second has chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flinkcore._internal.arrow.column_ops import ColumnOp, Filter, Select, WithColumns
from flinkcore.columnar.operator_plans.join import Join
from flinkcore.columnar.operator_plans.ranked_join import RankedJoin
from flinkcore.columnar.operator_plans.top_rows import TopRows
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.plans.uids import generated_uid


def fused(stages: Sequence[StagePlan]) -> list[StagePlan]:
    """Return the operators of a job, in which a join and a rank of its pairs by the same key are one operator."""
    joins = {number for number in range(len(stages)) if _join_before(number, stages) is not None}
    gone = {_join_before(number, stages) for number in joins}
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


def _join_before(number: int, stages: Sequence[StagePlan]) -> int | None:
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
    is_alike = join.key == rank.key and _leave_alone(results.ops, rank.keys)
    # A checkpoint has the state of an operator that is named under its name.
    has_name = join.uid != generated_uid(join.operator, results.stage + 1)
    return results.stage if uses == 1 and is_plain and is_alike and not has_name else None


def _leave_alone(ops: Sequence[ColumnOp], names: Sequence[str]) -> bool:
    """Return whether operations pass on columns as they are."""
    for op in ops:
        match op:
            case Select():
                passed = all(name in op.names for name in names)
            case WithColumns():
                passed = not any(name in names for name, _ in op.expressions)
            case _:
                passed = isinstance(op, Filter)
        if not passed:
            return False
    return True

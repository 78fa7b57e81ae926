"""What runs the operators of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flinkcore.replay.plans.connected_inputs import ConnectedInputs
from flinkcore.replay.plans.connected_process import ConnectedProcess
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.plans.keyed_operator import WindowAggregation
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.stages.join_stage import connected_stages_class
from flinkcore.replay.stages.keyed_stage import KeyedStage, KeyedStages, keyed_stages, opened_stage
from flinkcore.replay.stages.placed_windows import JoinedWindowStages
from flinkcore.replay.stages.process_stage import ProcessStage
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.time_plane.job_time import ReplayTime


def connected_inputs(stage: StagePlan, second_from: int) -> ConnectedInputs | None:
    """Return how rows of connected streams are told apart; None: the operator has one input.

    Parameters
    ----------
    stage
        The operator and its inputs.
    second_from
        Splits from this number on belong to the second input.
    """
    if len(stage.inputs) == 1:
        return None
    first, second = stage.inputs
    return ConnectedInputs(first.schema, second.schema, second_from)


def stages_of(
    plan: JobPlan,
    time: ReplayTime,
    partitions: int,
    number: int = 0,
    restored: RestoredOperator | None = None,
) -> tuple[KeyedStages, ConnectedInputs | None]:
    """Return what makes the stages of one of a plan's operators, and how rows of connected streams are told apart.

    Parameters
    ----------
    plan
        The job.
    time
        Of all its logs.
    partitions
        Into how many ranges the key groups are divided.
    number
        Of the operator, from 0 on.
    restored
        What the operator goes on from.
    """
    stage = plan.stages[number]
    # Results tell of which input they are by themselves, and so do rows that are merged with them.
    inputs = connected_inputs(stage, 1 if stage.results else time.second_from)
    if inputs is not None:
        assert isinstance(stage.operator, ConnectedProcess)
        return connected_stages_class(stage.operator)(
            stage, stage.operator, inputs, time.timeline, time.last_arrival_ms, partitions, restored
        ), inputs
    if len(plan.stages) > 1 and isinstance(stage.operator, WindowAggregation):
        places_results = number + 1 < len(plan.stages)
        return JoinedWindowStages(
            stage,
            stage.operator,
            time.timeline,
            time.last_arrival_ms,
            partitions,
            number,
            places_results,
            restored,
        ), None
    return keyed_stages(stage, time.timeline, time.last_arrival_ms, partitions, restored), None


@contextmanager
def opened_stage_of(
    plan: JobPlan, stages: KeyedStages, partition: int, number: int = 0
) -> Iterator[KeyedStage]:
    """A stage of one of a plan's operators, that is closed with the block.

    Parameters
    ----------
    plan
        The job.
    stages
        Makes the stages of the operator.
    partition
        Number of the partition.
    number
        Of the operator, from 0 on.
    """
    with opened_stage(stages, partition) as stage:
        if isinstance(stage, ProcessStage) and len(plan.stages) > 1:
            stage.join(number, bool(plan.stages[number].results), number + 1 < len(plan.stages))
        yield stage

"""By which names a checkpoint knows the operators of a job, and the time planes of its logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    TimestampsAndWatermarksTransformation,
    Transformation,
)
from flinkcore.errors import ConfigurationError


def operator_uid(step: Transformation, operator: OperatorPlan, number: int = 1) -> str:
    """Return the uid of an operator, whose number in the job counts from 1 on."""
    return step.uid or generated_uid(operator, number)


def generated_uid(operator: OperatorPlan, number: int) -> str:
    """Return the uid of an operator that has none of its own."""
    return f"{operator.uid_prefix}-{number}"


def step_with_uid(source: EventLogSource, before_key: tuple[Transformation, ...]) -> Transformation | None:
    """Return the step that names the time plane of a log, or None."""
    assigned = [step for step in before_key if isinstance(step, TimestampsAndWatermarksTransformation)]
    return next((step for step in (*assigned, source) if step.uid is not None), None)


def watermarks_uids(named_by: Sequence[Transformation | None]) -> list[str]:
    """Return a uid for the time plane of each log, where `step_with_uid` found these."""
    uids = []
    for number, step in enumerate(named_by, start=1):
        if step is None or step.uid is None:
            uids.append(f"watermarks-{number}")
        else:  # one that follows a union is that of several logs
            is_shared = sum(other is step for other in named_by) > 1
            uids.append(f"{step.uid}-{number}" if is_shared else step.uid)
    return uids


def refuse_equal_uids(uids: Iterable[str]) -> None:
    """Raise a ConfigurationError if two of the uids are the same."""
    for uid, count in Counter(uids).items():
        if count > 1:
            raise ConfigurationError(f"two steps have the uid {uid!r}: give each one of its own")

"""One row of each key, over the key groups of one partition."""

from __future__ import annotations

from flinkcore._native.deduplication import DeduplicationKernel
from flinkcore.columnar.operator_plans.deduplication import Deduplication
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.stages.relational_stage import RelationalStage


class DeduplicateStage(RelationalStage):
    """Keeps one row of each key."""

    in_any_order = True

    def _made_kernel(self, operator: Deduplication, steps_done: int, result_limit: int) -> RelationalKernel:
        return DeduplicationKernel(
            self._timers,
            self._timeline.steps,
            steps_done=steps_done,
            result_limit=result_limit,
            keeps_last=operator.keeps_last,
            by_time=operator.by_time,
            changes=operator.changes,
        )

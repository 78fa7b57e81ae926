"""One row of each key, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.changing_top import ChangingTopKernel
from flinkcore._native.deduplication import DeduplicationKernel
from flinkcore.columnar.operator_plans.deduplication import Deduplication
from flinkcore.columnar.operator_plans.relational import without_kind
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.row_changes import identities_of, kinds_of
from flinkcore.columnar.stages.relational_stage import RelationalStage


class DeduplicateStage(RelationalStage):
    """Keeps one row of each key."""

    in_any_order = True

    def _made_kernel(self, operator: Deduplication, steps_done: int, result_limit: int) -> RelationalKernel:
        # With a time to live, an equal row changes the time at which the state expires: it is a change like others.
        self._of_changes = operator.of_changes
        self._skips_equal = operator.of_changes and not operator.ttl_ms
        if self._skips_equal:
            return ChangingTopKernel(
                self._keys,
                self._timeline.steps,
                steps_done=steps_done,
                result_limit=result_limit,
                n=1,
                skip=0,
                rank="row_number",
                n_words=0,
                has_tails=False,
                ranks_shown=False,
                changes=operator.changes,
                replaces=True,
                skips_equal=True,
            )
        return DeduplicationKernel(
            self._timers,
            self._timeline.steps,
            steps_done=steps_done,
            result_limit=result_limit,
            keeps_last=operator.keeps_last,
            by_time=operator.by_time,
            changes=operator.changes,
            ttl_ms=operator.ttl_ms,
            update_before=self._context.plan.update_before,
        )

    def _forget_expired(self, now_ms: int) -> None:
        assert isinstance(self._kernel, DeduplicationKernel)
        self._kernel.forget_expired(now_ms)

    def _kept_schemas(self, inputs: Sequence[pa.Schema], operator: Deduplication) -> list[pa.Schema]:
        return list(map(without_kind, inputs))

    def _kernel_arguments(self, batch: pa.RecordBatch, *events: Any) -> tuple[Any, ...]:
        """The arguments of all operators; of changes no sort keys, and one unique key for all rows of a key."""
        if not self._skips_equal:
            return (*events, self._arrivals, kinds_of(batch) if self._of_changes else None)
        return (
            *events,
            *_no_sort_keys(batch.num_rows).values(),
            kinds_of(batch),
            identities_of(batch, ()),
            identities_of(batch),
        )

    def _late_rows(self) -> Int64s:
        assert isinstance(self._kernel, DeduplicationKernel)
        return self._kernel.take_late()

    def _restored_columns(
        self, rows: pa.RecordBatch, columns: pa.RecordBatch
    ) -> Mapping[str, npt.NDArray[Any] | None]:
        return _no_sort_keys(rows.num_rows) if self._skips_equal else {}


def _no_sort_keys(n: int) -> dict[str, Any]:
    return {"words": np.empty((n, 0), np.uint64), "tail_ends": None, "tails": None}

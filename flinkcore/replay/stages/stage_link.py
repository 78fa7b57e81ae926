"""From the results of one operator to the rows of the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flinkcore.errors import DataError
from flinkcore.replay.plans.job_plan import StagePlan
from flinkcore.replay.stages.placed_events import PlacedEvents


@dataclass
class StageLink:
    """Does the column steps between two operators, and counts.

    Attributes
    ----------
    plan
        The next operator, and what comes to it.
    number
        Of that operator, from 0 on.
    rows
        Results that came.
    filtered
        Those that filters took out.
    """

    plan: StagePlan
    number: int
    rows: int = 0
    filtered: int = 0

    def passed_on(self, results: PlacedEvents) -> PlacedEvents:
        """The rows that the next operator gets for these results.

        Raises
        ------
        DataError
            If the key of a row is null.
        """
        self.rows += results.batch.num_rows
        (stage_input,) = self.plan.inputs
        for operation in stage_input.ops:
            batch, kept = operation.apply(results.batch)
            if kept is not None:
                self.filtered += results.batch.num_rows - batch.num_rows
                results = results.take(kept)
            results = results.with_batch(batch)
        self._refuse_null_keys(results)
        return results

    def _refuse_null_keys(self, results: PlacedEvents) -> None:
        # Flink's keyBy refuses a null key; a part of a composite key may be null.
        (stage_input,) = self.plan.inputs
        if len(stage_input.keys) != 1:
            return
        (name,) = stage_input.keys
        column = results.batch.column(name)
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"key column {name!r} of operator {self.number + 1} is null in a result of the one before: "
                f"{results.batch.slice(row, 1).to_pylist()[0]}; filter such rows out before key_by"
            )

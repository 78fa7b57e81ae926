"""From the results of one operator to the rows of the next."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from flinkcore.columnar.plans.stage_plan import StagePlan, StageResults
from flinkcore.columnar.stages.placed_events import PlacedEvents
from flinkcore.columnar.stages.read_counts import ReadCounts
from flinkcore.errors import DataError
from flinkcore.operators.keys.element_rows import exact_keys


@dataclass
class StageLink:
    """Does the column steps between two operators, and counts.

    Attributes
    ----------
    plan
        The next operator, and what comes to it.
    number
        Number of that operator, from 0 on.
    input_number
        To which of its inputs the results come, 0 or 1.
    between
        From which operator, and what is done with them.
    counts
        Counts of the results by what became of them.
    """

    plan: StagePlan
    number: int
    input_number: int
    between: StageResults
    counts: ReadCounts = field(default_factory=ReadCounts)

    def passed_on(self, results: PlacedEvents) -> PlacedEvents:
        """The rows that the next operator gets for these results.

        Raises
        ------
        DataError
            If the key of a row is null.
        """
        self.counts.read += results.n_events
        for operation in self.between.ops:
            batch, kept = operation.apply(results.batch)
            if kept is not None:
                self.counts.filtered += results.n_events - batch.num_rows
                results = results.take(kept)
            results = results.with_batch(batch)
        self._refuse_null_keys(results)
        return results

    def _refuse_null_keys(self, results: PlacedEvents) -> None:
        # Flink's keyBy refuses a null key.
        name = self.plan.inputs[self.input_number].key.never_null
        if name is None:
            return
        column = results.batch.column(name)
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            rows = results.batch.slice(row, 1)
            result = {other: exact_keys(rows, [other])[0] for other in rows.schema.names}
            raise DataError(
                f"key column {name!r} of operator {self.number + 1} is null in a result of operator "
                f"{self.between.stage + 1}: {result}; filter such rows out before key_by, or take "
                f"null as a key like others, as Flink SQL does: key_by({name!r}, null_keys=True)",
                column=name,
            )

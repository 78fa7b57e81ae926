"""The end of a job that ends with a log or a union: rows as they come."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.columnar.operator_plans.forward import Forward
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.columnar.stages.stateless_stage import StatelessStage
from flinkcore.time_plane.total_order import Events

SLICE_ROWS = 1 << 17
"""Most rows of a batch."""


class ForwardStage(StatelessStage):
    """Stage that emits rows in total order, and holds nothing.

    Parameters
    ----------
    context
        Context of the end of the job.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    def __init__(self, context: StageContext, operator: Forward, partition: int) -> None:
        super().__init__(context)

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        for part in events.pieces(rows, SLICE_ROWS):
            self._take_in(part)
            self._results += part.n_events
            columns = self._with_emission_times(part, self._schema.names).columns
            yield StageOutput(None, [pa.RecordBatch.from_arrays(columns, schema=self._schema)])

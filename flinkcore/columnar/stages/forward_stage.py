"""The end of a job that ends with a log or a union: rows as they come."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.operator_plans.forward import Forward
from flinkcore.columnar.stages.emission_times import NOT_KNOWN
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.time_plane.total_order import Events

SLICE_ROWS = 1 << 17
"""Most rows of a batch."""


class ForwardStage(Stage[Events]):
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
        self._timeline = context.timeline
        self._schema = context.plan.result_schema()
        self._times = context.emission_times()
        self._watermark_ms = MIN_TIMESTAMP
        self._processed = 0

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        for part in events.pieces(rows, SLICE_ROWS):
            self._processed += part.n_events
            self._watermark_ms = int(self._timeline.watermark_after(part.steps[-1:])[0])
            of_rows = self._schema.names if self._times is None else self._schema.names[:-1]
            columns = [part.batch.column(name) for name in of_rows]
            if self._times is not None:
                emitted_ms = self._times.of_events(part)
                emitted = pa.array(emitted_ms, mask=emitted_ms == NOT_KNOWN)
                columns.append(emitted.cast(self._schema.types[-1]))
            yield StageOutput(None, [pa.RecordBatch.from_arrays(columns, schema=self._schema)])

    def finish(self) -> Iterator[StageOutput]:
        self._watermark_ms = MAX_TIMESTAMP
        return iter(())

    def stop(self) -> Iterator[StageOutput]:
        self._watermark_ms = self._timeline.watermark_before_end
        return iter(())

    def snapshot(self) -> OperatorSnapshot:
        return OperatorSnapshot(watermark_ms=self._watermark_ms)

    def counts(self) -> dict[str, int]:
        return {"processed": self._processed, "results": self._processed}

    @property
    def current_watermark(self) -> int:
        return self._watermark_ms

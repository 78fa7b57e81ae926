"""Rows that become several."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.operator_plans.expansion import Expansion
from flinkcore.columnar.stages.emission_times import NOT_KNOWN
from flinkcore.columnar.stages.placed_events import PlacedEvents, order_of
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.time_plane.total_order import Events

SLICE_ROWS = 1 << 14
"""Most rows that are expanded at once."""


class ExpandStage(Stage[Events]):
    """Emits the rows that are made of each row, in total order, and holds nothing.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    def __init__(self, context: StageContext, operator: Expansion, partition: int) -> None:
        self._timeline, self._number = context.timeline, context.number
        self._expansion = operator.expansion
        self._places_results = context.places_results
        self._schema = context.plan.result_schema()
        self._times = context.emission_times()
        self._watermark_ms = MIN_TIMESTAMP
        self._processed = self._results = 0

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        for part in events.pieces(rows, SLICE_ROWS):
            self._processed += part.n_events
            self._watermark_ms = int(self._timeline.watermark_after(part.steps[-1:])[0])
            numbers, added = self._expansion.expand(part.batch)
            if not len(numbers):
                continue
            batch = self._batch(part, pa.array(numbers), added)
            if self._places_results:
                order = tuple(column[numbers] for column in order_of(part, self._number))
                sequence = np.arange(self._results + 1, self._results + 1 + len(numbers))
                placed = PlacedEvents.of(batch, part.timestamps[numbers], (*order, sequence))
                yield PlacedOutput(None, [], placed)
            else:
                yield StageOutput(None, [batch])
            self._results += len(numbers)

    def _batch(self, part: Events, numbers: pa.Array, added: list[pa.Array]) -> pa.RecordBatch:
        by_name = dict(zip((field.name for field in self._expansion.fields), added, strict=True))
        if self._times is not None:
            emitted_ms = self._times.of_events(part)
            emitted = pa.array(emitted_ms, mask=emitted_ms == NOT_KNOWN).cast(self._schema.types[-1])
            by_name[self._schema.names[-1]] = emitted.take(numbers)
        columns = [
            by_name[name] if name in by_name else part.batch.column(name).take(numbers)
            for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def finish(self) -> Iterator[StageOutput]:
        self._watermark_ms = MAX_TIMESTAMP
        return iter(())

    def stop(self) -> Iterator[StageOutput]:
        self._watermark_ms = self._timeline.watermark_before_end
        return iter(())

    def snapshot(self) -> OperatorSnapshot:
        return OperatorSnapshot(watermark_ms=self._watermark_ms)

    def counts(self) -> dict[str, int]:
        return {"processed": self._processed, "results": self._results}

    @property
    def current_watermark(self) -> int:
        return self._watermark_ms

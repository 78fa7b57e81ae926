"""Stages that hold no state: rows in total order, the watermark that they reach, and their numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.stages.emission_times import NOT_KNOWN
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.time_plane.total_order import Events


class StatelessStage(Stage[Events]):
    """Base of stages whose results come at once.

    Parameters
    ----------
    context
        Context of the operator.
    """

    def __init__(self, context: StageContext) -> None:
        self._timeline = context.timeline
        self._schema = context.plan.result_schema()
        self._times = context.emission_times()
        self._watermark_ms = MIN_TIMESTAMP
        self._processed = self._results = 0

    def _take_in(self, part: Events) -> None:
        """Count rows, and reach the watermark that they have."""
        self._processed += part.n_events
        self._watermark_ms = int(self._timeline.watermark_after(part.steps[-1:])[0])

    def _with_emission_times(self, part: Events, names: list[str]) -> pa.RecordBatch:
        """Return columns of rows; if results have a time of emission, which is the last column, with that."""
        if self._times is None:
            return part.batch.select(names)
        emitted_ms = self._times.of_events(part)
        emitted = pa.array(emitted_ms, mask=emitted_ms == NOT_KNOWN).cast(self._schema.types[-1])
        columns = part.batch.select(names[:-1]).columns
        return pa.RecordBatch.from_arrays([*columns, emitted], names)

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

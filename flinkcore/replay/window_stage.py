"""The keyed window operator of a plan, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import SessionWindowOperator
from flinkcore._native.windows import WindowOperator
from flinkcore.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError
from flinkcore.replay.plan import ReplayPlan
from flinkcore.replay.timeline import Timeline
from flinkcore.replay.total_order import Events, RowNumbers

RESULT_BATCH_ROWS = 1 << 18


def native_batch(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[RecordBatch, pa.RecordBatch]:
    """The columns that a native operator reads, borrowed, and their owner."""
    narrow = batch.select(list(columns)) if list(columns) != batch.schema.names else batch
    return RecordBatch(narrow), narrow


def _operator(
    plan: ReplayPlan, schema: pa.Schema, time_type: pa.DataType, timeline: Timeline
) -> WindowOperator | SessionWindowOperator:
    clocks, watermarks = timeline.clock_ms, timeline.watermark_ms
    keys = KeyEncoder(schema, list(plan.keys))
    accumulators = Accumulators(
        schema, [(aggregate.function, aggregate.column, aggregate.by) for _, aggregate in plan.aggregates]
    )
    key_names = list(plan.keys)
    aggregate_names = [name for name, _ in plan.aggregates]
    time_format = f"tsm:{time_type.tz or ''}" if pa.types.is_timestamp(time_type) else "l"
    window = plan.window
    if isinstance(window, EventTimeSessionWindows):
        return SessionWindowOperator(
            gap=window.gap_ms,
            allowed_lateness=plan.allowed_lateness_ms,
            keys=keys,
            accumulators=accumulators,
            key_names=key_names,
            aggregate_names=aggregate_names,
            clocks=clocks,
            watermarks=watermarks,
            time_format=time_format,
        )
    if not isinstance(window, TumblingEventTimeWindows | SlidingEventTimeWindows):
        raise ConfigurationError(f"{type(window).__name__} does not run over columns")
    return WindowOperator(
        size=window.size_ms,
        slide=window.slide_ms if isinstance(window, SlidingEventTimeWindows) else window.size_ms,
        offset=window.offset_ms,
        allowed_lateness=plan.allowed_lateness_ms,
        keys=keys,
        accumulators=accumulators,
        key_names=key_names,
        aggregate_names=aggregate_names,
        clocks=clocks,
        watermarks=watermarks,
        time_format=time_format,
    )


class WindowStage:
    """Runs the window operator of a plan over ordered events of one partition.

    Parameters
    ----------
    plan
        The job.
    schema
        Columns of the events, after all column operations.
    time_type
        Arrow type of the event time: a timestamp type makes the windows' bounds timestamps (ms), another int64.
    timeline
        The watermarks of the whole log.
    """

    def __init__(
        self, plan: ReplayPlan, schema: pa.Schema, time_type: pa.DataType, timeline: Timeline
    ) -> None:
        self._operator = _operator(plan, schema, time_type, timeline)
        self._schema: pa.Schema | None = None
        self._collect_late = plan.late_tag is not None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the results: keys, window_start, window_end, aggregates, late_firing, watermark."""
        if self._schema is None:
            if self._operator.rows_ready:
                raise ValueError("ask for the schema before the first event")
            self._schema = pa.record_batch(self._operator.take()).schema
        return self._schema

    def process(
        self,
        events: Events,
        columns: RecordBatch,
        keys: KeyEncoder,
        rows: RowNumbers | None,
    ) -> tuple[list[pa.RecordBatch], pa.RecordBatch | None]:
        """Take in events in total order.

        Parameters
        ----------
        events
            The batch and its times.
        columns
            The batch, borrowed, with the columns that keys and aggregates read.
        keys
            Has encoded the keys of this batch.
        rows
            Rows of this partition, in total order; None: all, as they lie.

        Returns
        -------
        tuple
            Results that are ready, and the rows that came too late for all their windows (None unless the plan has a
            late side output and there are some).
        """
        late_rows = self._operator.process(columns, keys, rows, events.timestamps, events.arrivals)
        late = None
        if self._collect_late and len(late_rows):
            late = events.batch.take(pa.array(late_rows))
        return self._ready(RESULT_BATCH_ROWS), late

    def finish(self) -> list[pa.RecordBatch]:
        """Let the end of the log fire everything; the last results."""
        self._operator.finish()
        return self._ready(1)

    def _ready(self, at_least: int) -> list[pa.RecordBatch]:
        if self._operator.rows_ready < at_least:
            return []
        return [pa.record_batch(self._operator.take())]

    def counts(self) -> dict[str, int]:
        """Counts of events and firings so far."""
        return self._operator.counts()

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return int(self._operator.current_watermark)

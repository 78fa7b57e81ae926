"""The places of the results of windows in the total order, where another operator takes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.datastream.columnar_windows import columnar_trigger
from flinkcore.datastream.window import TumblingEventTimeWindows, WindowStagger
from flinkcore.replay.log.arrays import Int64s
from flinkcore.replay.log.joined_batches import joined
from flinkcore.replay.plans.operators import WindowAggregation
from flinkcore.replay.stages.placed_events import FIXED_COLUMNS, Order, PlacedEvents
from flinkcore.replay.stages.stage import StageContext
from flinkcore.replay.stages.stage_output import PlacedOutput
from flinkcore.replay.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.runtime.element_rows import event_key_groups


class WindowPlaces:
    """Places the results of windows over the key groups of one partition.

    Parameters
    ----------
    context
        Of the operator.
    aggregation
        The operator.
    """

    def __init__(self, context: StageContext, aggregation: WindowAggregation) -> None:
        trigger = columnar_trigger(aggregation.window, aggregation.trigger)
        last_arrival_ms = context.last_arrival_ms
        self._counts_rows = trigger is not None and trigger.name == "count"
        self._window = aggregation.window
        self._allowed_lateness_ms = aggregation.allowed_lateness_ms
        self._timeline = context.timeline
        self._end_ms = 0 if last_arrival_ms is None else context.timeline.end_ms(last_arrival_ms)
        self._number = context.number
        self._keys = list(context.plan.keys)
        self._max_parallelism = context.plan.max_parallelism
        self._sequence = 1

    def rows_alone(self, timestamps: Int64s, steps: Int64s) -> list[int]:
        """Return which rows may fire a window: one with a count, or one that is over and still kept.

        Each is taken in alone, so that it is known which results are its own.
        """
        if self._counts_rows:
            return list(range(len(timestamps)))
        if self._allowed_lateness_ms == 0:
            return []
        watermarks = self._timeline.watermark_after(steps)
        late: list[int] = np.flatnonzero(self._first_firings_ms(timestamps) <= watermarks).tolist()
        return late

    def _first_firings_ms(self, timestamps: Int64s) -> Int64s:
        """A time that no window of each row is over before."""
        window = self._window
        if isinstance(window, TumblingEventTimeWindows) and window.window_stagger is WindowStagger.ALIGNED:
            return timestamps - np.mod(timestamps - window.offset_ms, window.size_ms) + (window.size_ms - 1)
        return timestamps

    def fired_by_event(self, batches: list[pa.RecordBatch], place: Order) -> Iterator[PlacedOutput]:
        """Results of an event, which have its place."""
        if not batches:
            return
        batch = joined(batches)
        places = tuple(np.repeat(column, batch.num_rows) for column in place)
        yield _placed(batch, _timestamps(batch), (*places, self._sequence_of(batch)))

    def fired_by_steps(self, batches: list[pa.RecordBatch]) -> Iterator[PlacedOutput]:
        """Results in an order that does not depend on what else is in the partition: by window and key."""
        if not batches:
            return
        batch = joined(batches)
        steps = np.searchsorted(self._timeline.watermark_ms, batch.column("watermark").to_numpy())
        clocks = np.minimum(self._timeline.clock_ms[steps], self._end_ms)
        fired = _timestamps(batch)
        groups = event_key_groups(batch, self._keys, self._max_parallelism).astype(np.int64)
        columns = {"steps": steps, "fired": fired, "group": groups}
        for name in ("window_start", *self._keys):
            columns[f"column {name}"] = batch.column(name)
        ordered = pa.table(columns)
        indices = pc.sort_indices(
            ordered, sort_keys=[(name, "ascending") for name in ordered.column_names]
        ).to_numpy()
        batch, steps, clocks, fired, groups = (
            batch.take(pa.array(indices)),
            *(column[indices] for column in (steps, clocks, fired, groups)),
        )
        n_rows = batch.num_rows
        zeros = np.zeros(n_rows, np.int64)
        order = (
            clocks,
            steps,
            np.full(n_rows, AFTER_ALL_SPLITS),
            np.full(n_rows, 2 * self._number + 1),
            fired,
            groups,
            self._sequence_of(batch),
            *(zeros for _ in range(self._number)),
        )
        assert len(order) == FIXED_COLUMNS + 1 + self._number
        yield _placed(batch, fired, order)

    def _sequence_of(self, batch: pa.RecordBatch) -> Int64s:
        sequence = np.arange(self._sequence, self._sequence + batch.num_rows)
        self._sequence += batch.num_rows
        return sequence


def _placed(batch: pa.RecordBatch, timestamps: Int64s, order: Order) -> PlacedOutput:
    return PlacedOutput(None, [], PlacedEvents.of(batch, timestamps, order))


def _timestamps(batch: pa.RecordBatch) -> Int64s:
    """The maximum timestamps of the windows, which are the timestamps of their results."""
    ends = batch.column("window_end").cast(pa.int64())
    of_global_windows = ends.is_null().to_numpy(zero_copy_only=False)
    timestamps: Int64s = np.where(of_global_windows, MAX_TIMESTAMP, ends.fill_null(0).to_numpy() - 1)
    return timestamps

"""The window operator of a job in which another operator follows: its results have places."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.datastream.columnar_windows import columnar_trigger
from flinkcore.datastream.window import TumblingEventTimeWindows, WindowStagger
from flinkcore.errors import DataError
from flinkcore.replay.plans.keyed_operator import WindowAggregation
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output, PlacedOutput
from flinkcore.replay.stages.element_rows import event_key_groups
from flinkcore.replay.stages.placed_events import (
    FIXED_COLUMNS,
    Order,
    PlacedEvents,
    order_of,
)
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.stages.window_stage import EncodedEvents, WindowStage, WindowStages
from flinkcore.replay.time_plane.step_order import AFTER_ALL_SPLITS
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Int64Array, RowNumbers


class JoinedWindowStage(WindowStage):
    """Runs the window operator of a job that has several operators.

    An event that may fire a window is taken in alone, so that it is known which results are its own.

    Parameters
    ----------
    plan
        The stage.
    aggregation
        Its operator.
    timeline
        The watermarks of the whole replay, each with its place.
    last_arrival_ms
        Of the whole replay; None if it has no events.
    number
        Of the operator, from 0 on.
    places_results
        Whether another one follows.
    key_group_range
        First and last key group of the partition, inclusive.
    restored
        What the operator goes on from.
    """

    def __init__(
        self,
        plan: StagePlan,
        aggregation: WindowAggregation,
        timeline: Timeline,
        last_arrival_ms: int | None,
        number: int,
        places_results: bool,
        key_group_range: tuple[int, int],
        restored: RestoredOperator | None,
    ) -> None:
        super().__init__(
            plan, aggregation, plan.data_schema(), plan.time_type(), timeline, key_group_range, restored
        )
        trigger = columnar_trigger(aggregation.window, aggregation.trigger)
        self._counts_rows = trigger is not None and trigger.name == "count"
        self._window = aggregation.window
        self._allowed_lateness_ms = aggregation.allowed_lateness_ms
        self._end_ms = 0 if last_arrival_ms is None else timeline.end_ms(last_arrival_ms)
        self._number = number
        self._places_results = places_results
        self._timestamp_range = aggregation.timestamp_range
        self._sequence = 1

    def process(self, prepared: EncodedEvents, rows: RowNumbers | None) -> Iterator[Output]:
        """Take in events in total order, and give what they make ready; see `WindowStage.process`."""
        events = prepared.events
        self._check_timestamps(events.timestamps if rows is None else events.timestamps[rows])
        if not self._places_results:
            yield from super().process(prepared, rows)
            return
        if rows is None:
            rows = np.arange(len(events.arrivals), dtype=np.uint32)
        order = order_of(events, self._timeline, self._number)
        steps = order[1]
        start = 0
        for alone in (*self._rows_alone(events.timestamps[rows], steps[rows]), len(rows)):
            if start < alone:
                yield from self._fired_by_steps(self._taken_in(prepared, rows[start:alone], steps))
            if alone < len(rows):
                row = rows[alone : alone + 1]
                yield from self._fired_by_steps(self._advanced(int(steps[row[0]])))
                places = tuple(column[row] for column in order)
                yield from self._fired_by_event(self._taken_in(prepared, row, steps), places)
            start = alone + 1
        late_rows = self._operator.take_late()
        if self._late_tag is not None and len(late_rows):
            yield Output(self._late_tag, [events.batch.take(pa.array(late_rows))])

    def advance(self, until_ms: int) -> Iterator[Output]:
        """Let everything fire that is due before a time, at which the next event comes at the earliest."""
        results = self._advanced(bisect_left(self._timeline.clock_ms, until_ms))
        if self._places_results:
            yield from self._fired_by_steps(results)
        else:
            yield from (Output(None, [batch]) for batch in results)

    def finish(self) -> Iterator[Output]:
        """Let the end of the log fire everything."""
        if self._places_results:
            yield from self._fired_by_steps(self._all_of(self._operator.finish))
        else:
            yield from super().finish()

    def _check_timestamps(self, timestamps: Int64Array) -> None:
        if self._number == 0 or len(timestamps) == 0:
            return
        lowest, highest = self._timestamp_range
        least, greatest = int(timestamps.min()), int(timestamps.max())
        if least < lowest or greatest > highest:
            outside = least if least < lowest else greatest
            raise DataError(
                f"a record with the timestamp {outside} comes to a window behind another operator, whose windows take "
                f"timestamps from {lowest} to {highest}: results of processing-time timers have none (-2**63)"
            )

    def _rows_alone(self, timestamps: Int64Array, steps: Int64Array) -> list[int]:
        """Which rows may fire a window: one with a count, or one that is over and still kept."""
        if self._counts_rows:
            return list(range(len(timestamps)))
        if self._allowed_lateness_ms == 0:
            return []
        watermarks = self._timeline.watermark_after(steps)
        late: list[int] = np.flatnonzero(self._first_firings_ms(timestamps) <= watermarks).tolist()
        return late

    def _first_firings_ms(self, timestamps: Int64Array) -> Int64Array:
        """A time that no window of each row is over before."""
        window = self._window
        if isinstance(window, TumblingEventTimeWindows) and window.window_stagger is WindowStagger.ALIGNED:
            return timestamps - np.mod(timestamps - window.offset_ms, window.size_ms) + (window.size_ms - 1)
        return timestamps

    def _taken_in(self, prepared: EncodedEvents, rows: RowNumbers, steps: Int64Array) -> list[pa.RecordBatch]:
        taken, batches = 0, list[pa.RecordBatch]()
        while taken < len(rows):
            taken = self._operator.process(
                prepared.columns, prepared.keys, rows, prepared.events.timestamps, steps, taken
            )
            self._take_into(batches)
        return batches

    def _advanced(self, steps: int) -> list[pa.RecordBatch]:
        # The native operator counts steps: where n are to be done, an event with n before it arrives.
        return self._all_of(lambda: self._operator.advance(steps))

    def _all_of(self, go_on: Callable[[], bool]) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        done = False
        while not done:
            done = go_on()
            self._take_into(batches)
        return batches

    def _take_into(self, batches: list[pa.RecordBatch]) -> None:
        if self._operator.rows_ready:
            batches.append(pa.record_batch(self._operator.take()))

    # ---- places of results ----

    def _fired_by_event(self, batches: list[pa.RecordBatch], place: Order) -> Iterator[Output]:
        if not batches:
            return
        batch = pa.concat_batches(batches)
        places = tuple(np.repeat(column, batch.num_rows) for column in place)
        yield _placed(batch, _timestamps(batch), (*places, self._sequence_of(batch)))

    def _fired_by_steps(self, batches: list[pa.RecordBatch]) -> Iterator[Output]:
        """Results in an order that does not depend on what else is in the partition: by window and key."""
        if not batches:
            return
        batch = pa.concat_batches(batches)
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

    def _sequence_of(self, batch: pa.RecordBatch) -> Int64Array:
        sequence = np.arange(self._sequence, self._sequence + batch.num_rows)
        self._sequence += batch.num_rows
        return sequence


def _placed(batch: pa.RecordBatch, timestamps: Int64Array, order: Order) -> PlacedOutput:
    return PlacedOutput(None, [], PlacedEvents.of(batch, timestamps, order))


def _timestamps(batch: pa.RecordBatch) -> Int64Array:
    """The maximum timestamps of the windows, which are the timestamps of their results."""
    ends = batch.column("window_end").cast(pa.int64())
    of_global_windows = ends.is_null().to_numpy(zero_copy_only=False)
    timestamps: Int64Array = np.where(of_global_windows, MAX_TIMESTAMP, ends.fill_null(0).to_numpy() - 1)
    return timestamps


class JoinedWindowStages(WindowStages):
    """Makes the window stages of a job that has several operators.

    Parameters
    ----------
    plan, aggregation, timeline, last_arrival_ms, number, places_results, restored
        As of :class:`JoinedWindowStage`.
    partitions
        Into how many ranges the key groups are divided.
    """

    def __init__(
        self,
        plan: StagePlan,
        aggregation: WindowAggregation,
        timeline: Timeline,
        last_arrival_ms: int | None,
        partitions: int,
        number: int,
        places_results: bool,
        restored: RestoredOperator | None,
    ) -> None:
        super().__init__(plan, aggregation, timeline, partitions, restored)
        self._last_arrival_ms = last_arrival_ms
        self._number = number
        self._places_results = places_results

    def stage(self, partition: int) -> JoinedWindowStage:
        """A stage for a range of key groups."""
        return JoinedWindowStage(
            self._plan,
            self._aggregation,
            self._timeline,
            self._last_arrival_ms,
            self._number,
            self._places_results,
            self._key_group_range(partition),
            self._restored,
        )

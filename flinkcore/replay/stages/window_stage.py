"""The keyed window operator of a plan, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.window_operator import WindowOperator
from flinkcore.replay.plans.keyed_operator import WindowAggregation
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.placed_events import PlacedEvents
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.stages.restored_windows import ExpectedWindows
from flinkcore.replay.stages.window_state import restore_windows, windows_to_table
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Events, Int64Array, RowNumbers
from flinkcore.runtime.checkpoint import OperatorSnapshot
from flinkcore.runtime.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.runtime.checkpoint.table_file import refused_as

RESULT_BATCH_ROWS = 1 << 18
RESULT_BATCH_BYTES = 1 << 28
"""Of keys, strings and lists; what has a fixed width is bounded by the rows."""


# The native operators walk a timeline by clock and arrival. Where events made steps, the clock they are given
# counts the steps: step i happens at clock i, and an event with n steps before it arrives at n.


def _operator_steps(timeline: Timeline) -> tuple[Int64Array, Int64Array]:
    """Clocks and watermarks, those alone that rise."""
    watermark_ms = timeline.watermark_ms
    if not timeline.is_punctuated:
        return timeline.clock_ms, watermark_ms
    rising = np.flatnonzero(watermark_ms > timeline.watermark_after(np.arange(len(watermark_ms))))
    return rising, watermark_ms[rising]


def _operator_arrivals(timeline: Timeline, events: Events, rows: RowNumbers | None) -> Int64Array:
    if not timeline.is_punctuated:
        return events.arrivals
    if isinstance(events, PlacedEvents):
        return events.steps
    if rows is None:
        return timeline.steps_before(events.arrivals, events.splits, events.positions)
    arrivals = np.zeros(len(events.arrivals), np.int64)
    places = events.arrivals[rows], events.splits[rows], events.positions[rows]
    arrivals[rows] = timeline.steps_before(*places)
    return arrivals


_COUNTS = ("windowed", "late", "in_no_window", "on_time_firings", "late_firings", "retractions")


@dataclass(frozen=True)
class EncodedEvents:
    """A batch of events with its keys encoded.

    Attributes
    ----------
    events
        The batch and its times.
    columns
        The batch, borrowed, with the columns that keys and aggregates read.
    keys
        Has encoded the keys of this batch.
    """

    events: Events
    columns: RecordBatch
    keys: KeyEncoder


class WindowStage:
    """Runs the window operator of a plan over ordered events of one partition.

    Results are cut into batches of limited size, however many rows one watermark fires.

    Parameters
    ----------
    plan
        The job.
    aggregation
        Its operator.
    schema
        Columns of the events, after all column operations.
    time_type
        Arrow type of the event time: a timestamp type makes the windows' bounds timestamps (ms), another int64.
    timeline
        The watermarks of the whole log.
    key_group_range
        First and last key group of the partition, inclusive.
    restored
        What the operator goes on from.
    """

    def __init__(
        self,
        plan: StagePlan,
        aggregation: WindowAggregation,
        schema: pa.Schema,
        time_type: pa.DataType,
        timeline: Timeline,
        key_group_range: tuple[int, int],
        restored: RestoredOperator | None,
    ) -> None:
        self._keys = list(plan.keys)
        self._max_parallelism = plan.max_parallelism
        self._key_group_range = key_group_range
        kernel, self._accumulators = aggregation.native(schema)
        clocks, watermarks = _operator_steps(timeline)
        self._operator = WindowOperator(
            kernel,
            keys=KeyEncoder(schema, list(plan.keys)),
            accumulators=self._accumulators,
            key_names=list(plan.keys),
            aggregate_names=[name for name, _ in aggregation.aggregates],
            clocks=clocks,
            watermarks=watermarks,
            row_limit=RESULT_BATCH_ROWS,
            byte_limit=RESULT_BATCH_BYTES,
            retracting=aggregation.is_retracting,
            time_format=f"tsm:{time_type.tz or ''}" if pa.types.is_timestamp(time_type) else "l",
            steps_done=timeline.steps_done(None if restored is None else restored.last_arrival_ms),
        )
        self._timeline = timeline
        self._late_tag = aggregation.late_tag
        if restored is not None:
            self._restore(restored, aggregation, schema)

    def _restore(self, restored: RestoredOperator, aggregation: WindowAggregation, schema: pa.Schema) -> None:
        expected = ExpectedWindows(
            aggregation,
            self._keys,
            self._max_parallelism,
            schema,
            self._windows(),
            self._operator.current_watermark,
        )
        for snapshot in restored.checkpoint.restore(
            restored.uid, self._key_group_range, self._max_parallelism
        ):
            for table in snapshot.windows:
                with refused_as(f"{restored.checkpoint.storage.path}, operator {restored.uid!r}"):
                    expected.check(table)
                    restore_windows(self._operator, self._accumulators, self._keys, table)

    def _windows(self) -> CheckpointTable:
        return windows_to_table(self._operator, self._accumulators, self._keys, self._max_parallelism)

    def process(
        self,
        prepared: EncodedEvents,
        rows: RowNumbers | None,
    ) -> Iterator[Output]:
        """Take in events in total order, and give what they make ready.

        Parameters
        ----------
        prepared
            The batch.
        rows
            Rows of this partition, in total order; None: all, as they lie.

        Yields
        ------
        Output
            Batches of results, each as soon as there are enough rows for one; at the end, where the plan has a
            late side output, the rows that came too late for all their windows.
        """
        events = prepared.events
        arrivals = _operator_arrivals(self._timeline, events, rows)
        taken, n = 0, events.batch.num_rows if rows is None else len(rows)
        while taken < n:
            taken = self._operator.process(
                prepared.columns, prepared.keys, rows, events.timestamps, arrivals, taken
            )
            if self._operator.is_full:
                yield self._results()
        late_rows = self._operator.take_late()
        if self._late_tag is not None and len(late_rows):
            yield Output(self._late_tag, [events.batch.take(pa.array(late_rows))])

    def finish(self) -> Iterator[Output]:
        """Let the end of the log fire everything, and give the last results batch by batch."""
        done = False
        while not done:
            done = self._operator.finish()
            if self._operator.rows_ready:
                yield self._results()

    def stop(self) -> Iterator[Output]:
        """Let everything fire that comes before the cut: the timeline ends there."""
        yield from self.finish()

    def snapshot(self) -> OperatorSnapshot:
        """The windows that are open, or kept for late events."""
        return OperatorSnapshot(self._key_group_range, self.current_watermark, windows=[self._windows()])

    def _results(self) -> Output:
        return Output(None, [pa.record_batch(self._operator.take())])

    def counts(self) -> dict[str, int]:
        """Counts of events and firings so far."""
        counts = self._operator.counts()
        results = sum(counts[name] for name in ("on_time_firings", "late_firings", "retractions"))
        return {**{name: counts[name] for name in _COUNTS}, "results": results}

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        return int(self._operator.current_watermark)

    def close(self) -> None:
        """Do nothing: the operator goes with the stage."""


class WindowStages:
    """Makes window stages, and prepares the batches that they share.

    Parameters
    ----------
    plan
        The job.
    aggregation
        Its operator.
    timeline
        The watermarks of the whole log.
    partitions
        Into how many ranges the key groups are divided.
    restored
        What the stages go on from.
    """

    def __init__(
        self,
        plan: StagePlan,
        aggregation: WindowAggregation,
        timeline: Timeline,
        partitions: int,
        restored: RestoredOperator | None,
    ) -> None:
        self._partitions = partitions
        self._restored = restored
        self._plan = plan
        self._aggregation = aggregation
        self._timeline = timeline
        self._events_schema = plan.data_schema()
        read = aggregation.columns or frozenset()
        self._columns = [name for name in self._events_schema.names if name in read.union(plan.keys)]
        self._idle_encoders: list[KeyEncoder] = []

    def _stage(self, partition: int, restored: RestoredOperator | None) -> WindowStage:
        return WindowStage(
            self._plan,
            self._aggregation,
            self._events_schema,
            self._plan.time_type(),
            self._timeline,
            self._key_group_range(partition),
            restored,
        )

    def _key_group_range(self, partition: int) -> tuple[int, int]:
        """First and last key group of a partition, inclusive."""
        return compute_key_group_range_for_operator_index(
            self._plan.max_parallelism, self._partitions, partition
        )

    def stage(self, partition: int) -> WindowStage:
        """A stage for a range of key groups."""
        return self._stage(partition, self._restored)

    def prepare(self, events: Events) -> EncodedEvents:
        """Encode the keys of a batch; may be called from several threads at once."""
        columns = RecordBatch(events.batch.select(self._columns))
        try:
            keys = self._idle_encoders.pop()
        except IndexError:
            keys = KeyEncoder(self._events_schema, list(self._plan.keys))
        keys.encode_batch(columns)
        return EncodedEvents(events, columns, keys)

    def release(self, prepared: EncodedEvents) -> None:
        """Take back what a batch was prepared with, once all stages have processed it."""
        self._idle_encoders.append(prepared.keys)

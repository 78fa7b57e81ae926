"""The keyed window operator of a plan, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.window_operator import WindowOperator
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.window_aggregation import WindowAggregation
from flinkcore.columnar.stages.partial_results import MergedPartials, PartialAccumulators
from flinkcore.columnar.stages.placed_events import order_of
from flinkcore.columnar.stages.restored_operator import RestoredOperator, StagePlace, SuspendedOperator
from flinkcore.columnar.stages.restored_windows import ExpectedWindows
from flinkcore.columnar.stages.stage import PreparedBatches, Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.columnar.stages.timestamp_range import WINDOWS_TAKE, require_timestamps
from flinkcore.columnar.stages.window_places import WindowPlaces
from flinkcore.columnar.stages.window_state import restore_windows, windows_to_table, windows_to_tables
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.time_plane.total_order import Events

RESULT_ROWS: Final = 1 << 16
"""Most results of windows that come together: their columns are in memory several times until they are used."""

GROWTH_SHARE = 8
"""The memory of windows is counted again once as many rows have come as an eighth of the entries that there are."""

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
        Has encoded the keys of this batch, and of the partial results.
    partials, partial_events
        Partial results, which are rows after those of the batch; see `WindowOperator.process`.
    """

    events: Events
    columns: RecordBatch
    keys: KeyEncoder
    partials: Accumulators | None = None
    partial_events: Int64s | None = None


class EncodedBatches(PreparedBatches):
    """Batches with their keys encoded, and with the partial results among them.

    Parameters
    ----------
    context
        Context of the operator.
    aggregation
        The operator.
    """

    def __init__(self, context: StageContext, aggregation: WindowAggregation) -> None:
        self._schema, self._key = context.plan.data_schema(), context.plan.key
        self._columns = aggregation.columns_read(self._schema, list(self._key.names))
        self._partials = PartialAccumulators(context.plan.key_fields, aggregation.native(self._schema)[1])
        self._idle_encoders: list[KeyEncoder] = []

    def prepare(self, events: Events | MergedPartials) -> EncodedEvents:
        """Return a batch with its keys encoded."""
        if isinstance(events, MergedPartials):
            return self._prepared_partials(events)
        columns = self._borrowed(events)
        keys = self._encoder()
        keys.encode_batch(columns)
        return EncodedEvents(events, columns, keys)

    def _prepared_partials(self, merged: MergedPartials) -> EncodedEvents:
        columns = self._borrowed(merged.events)
        keys = self._encoder()
        keys.encode_batch(RecordBatch(self._partials.keys(merged), any_type=True))
        partials = self._partials.restored(merged.partials)
        return EncodedEvents(merged.events, columns, keys, partials, merged.partial_events)

    def _borrowed(self, events: Events) -> RecordBatch:
        return RecordBatch(events.batch.select(self._columns), any_type=True)

    def _encoder(self) -> KeyEncoder:
        try:
            return self._idle_encoders.pop()
        except IndexError:
            return KeyEncoder(self._schema, list(self._key.names), self._key.nulls)

    def release(self, prepared: EncodedEvents) -> None:
        """Take back the encoder of a batch."""
        self._idle_encoders.append(prepared.keys)


class WindowStage(Stage[EncodedEvents]):
    """Runs the window operator of a plan over ordered events of one partition.

    Results are cut into batches of limited size, however many rows one watermark fires; where another operator takes
    them in order, they wait for that in a temporary file.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.
    """

    def __init__(self, context: StageContext, operator: WindowAggregation, partition: int) -> None:
        plan, timeline = context.plan, context.timeline
        schema, time_type = plan.data_schema(), plan.event_time
        self._key, self._keys = plan.key, list(plan.keys)
        self._max_parallelism = plan.max_parallelism
        self._key_group_range = context.key_group_range(partition)
        self._timeline = timeline
        self._number = context.number
        self._late_tag = operator.late_tag
        self._timestamp_range = operator.timestamp_range
        self._places = WindowPlaces(context, operator) if context.places_results else None
        kernel, self._accumulators = operator.native(schema)
        self._emissions = context.emission_times()
        self._bytes = self._rows_since_bytes = 0
        restored = context.restored
        place = None if restored is None else restored.place(timeline)
        self._steps_done = 0 if place is None else place.steps
        self._clock_ms = MIN_TIMESTAMP if place is None else place.clock_ms
        self._operator = WindowOperator(
            kernel,
            keys=KeyEncoder(schema, self._keys, self._key.nulls),
            accumulators=self._accumulators,
            key_names=self._keys,
            aggregate_names=[name for name, _ in operator.aggregates],
            timeline=timeline.steps,
            row_limit=RESULT_ROWS,
            byte_limit=plan.batch_bytes,  # of keys, strings and lists: the rows bound columns of fixed width
            retracting=operator.is_retracting,
            time_format=f"tsm:{time_type.tz or ''}" if pa.types.is_timestamp(time_type) else "l",
            steps_done=self._steps_done,
            least_watermark=operator.least_watermark_ms,
            emitted_at=plan.emitted_at,
            steps_dated=0 if self._emissions is None else self._emissions.steps_known,
        )
        if isinstance(restored, RestoredOperator):
            self._restore(restored, operator, schema)
        elif isinstance(restored, SuspendedOperator):
            for _, _, table in restored.tables():
                restore_windows(self._operator, self._accumulators, self._key, table)

    @classmethod
    def batches(cls, context: StageContext, operator: WindowAggregation) -> EncodedBatches:
        return EncodedBatches(context, operator)

    def _restore(self, restored: RestoredOperator, aggregation: WindowAggregation, schema: pa.Schema) -> None:
        expected = ExpectedWindows(
            aggregation,
            self._key,
            self._max_parallelism,
            schema,
            self._windows(),
            self._operator.current_watermark,
        )
        for snapshot in restored.snapshots(self._key_group_range, self._max_parallelism):
            for table in snapshot.windows:
                with refused_as(restored.origin):
                    expected.check(table)
                    restore_windows(self._operator, self._accumulators, self._key, table)

    def _windows(self) -> CheckpointTable:
        return windows_to_table(self._operator, self._accumulators, self._keys, self._max_parallelism)

    def process(self, prepared: EncodedEvents, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Take in events in total order, and give what they make ready.

        Yields
        ------
        StageOutput
            Batches of results, each as soon as there are enough rows for one; at the end, where the plan has a
            late side output, the rows that came too late for all their windows.

        Raises
        ------
        DataError
            If a result of an operator before has a timestamp that no window can have.
        """
        events = prepared.events
        if self._number > 0:
            timestamps = events.timestamps if rows is None else events.timestamps[rows]
            require_timestamps(timestamps, self._timestamp_range, WINDOWS_TAKE)
        if self._places is None:
            taken, n = 0, events.batch.num_rows if rows is None else len(rows)
            clocks = self._clocks(events)
            while taken < n:
                taken = self._operator.process(
                    prepared.columns,
                    prepared.keys,
                    rows,
                    events.timestamps,
                    events.steps,
                    taken,
                    prepared.partials,
                    prepared.partial_events,
                    clocks,
                )
                if self._operator.is_full:
                    yield StageOutput(None, [pa.record_batch(self._operator.take())])
        else:
            yield from self._process_placed(self._places, prepared, rows)
        n_rows = events.n_events if rows is None else len(rows)
        if n_rows:
            last = -1 if rows is None else int(rows[-1])
            self._steps_done, self._clock_ms = int(events.steps[last]), int(events.arrivals[last])
            self._rows_since_bytes += n_rows
        late_rows = self._operator.take_late()
        if self._late_tag is not None and len(late_rows):
            yield StageOutput(self._late_tag, [events.batch.take(pa.array(late_rows))])

    def _process_placed(
        self, places: WindowPlaces, prepared: EncodedEvents, rows: RowNumbers | None
    ) -> Iterator[StageOutput]:
        events = prepared.events
        steps, clocks = events.steps, self._clocks(events)
        timestamps = events.timestamps
        if rows is not None:
            timestamps = timestamps[rows]
        rows_alone = places.rows_alone(timestamps, steps if rows is None else steps[rows])
        if not rows_alone:
            yield from places.fired_by_steps(self._results_of_rows(prepared, rows, clocks))
            return
        if rows is None:
            rows = np.arange(events.n_events, dtype=np.uint32)
        order = order_of(events, self._number)
        start = 0
        for alone in (*rows_alone, len(rows)):
            if start < alone:
                yield from places.fired_by_steps(self._results_of_rows(prepared, rows[start:alone], clocks))
            if alone < len(rows):
                row = rows[alone : alone + 1]
                yield from places.fired_by_steps(self._results_up_to(int(steps[row[0]])))
                place = tuple(column[row] for column in order)
                yield from places.fired_by_event(self._results_of_rows(prepared, row, clocks), place)
            start = alone + 1

    def _results_of_rows(
        self, prepared: EncodedEvents, rows: RowNumbers | None, clocks: Int64s | None
    ) -> Iterator[pa.RecordBatch]:
        events = prepared.events
        taken, n = 0, events.n_events if rows is None else len(rows)
        while taken < n:
            taken = self._operator.process(
                prepared.columns, prepared.keys, rows, events.timestamps, events.steps, taken, clocks=clocks
            )
            yield from self._results_ready()

    def _clocks(self, events: Events) -> Int64s | None:
        return None if self._emissions is None else self._emissions.of_events(events)

    def _results_up_to(self, steps: int) -> Iterator[pa.RecordBatch]:
        return self._all_results(lambda: self._operator.advance(steps))

    def _all_results(self, go_on: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        done = False
        while not done:
            done = go_on()
            yield from self._results_ready()

    def _results_ready(self) -> Iterator[pa.RecordBatch]:
        if self._operator.rows_ready:
            yield pa.record_batch(self._operator.take())

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        if self._places is not None:
            steps = self._timeline.steps_before_arrival(until_ms)
            yield from self._places.fired_by_steps(self._results_up_to(steps))

    def finish(self) -> Iterator[StageOutput]:
        if self._places is not None:
            before = self._timeline.steps_before_end
            yield from self._places.fired_by_steps(self._results_up_to(before))
            yield from self._places.fired_by_steps(self._all_results(self._operator.finish), before)
            return
        for batch in self._all_results(self._operator.finish):
            yield StageOutput(None, [batch])

    def stop(self) -> Iterator[StageOutput]:
        """Let everything fire that comes before the cut: the timeline ends there."""
        yield from self.finish()

    def snapshot(self) -> OperatorSnapshot:
        """The windows that are open, or kept for late events."""
        return OperatorSnapshot(self._key_group_range, self.current_watermark, windows=[self._windows()])

    def memory_bytes(self) -> int:
        if self._bytes == 0 or self._rows_since_bytes * GROWTH_SHARE >= len(self._accumulators):
            self._bytes = self._operator.memory_bytes() + self._accumulators.memory_bytes()
            self._rows_since_bytes = 0
        return self._bytes

    def shown_state(self) -> str:
        return f"{len(self._accumulators):,} windows of keys, with space for further ones"

    def suspend(self) -> Iterator[StageOutput]:
        # Kernels leave out steps that fire nothing.
        results = self._results_up_to(self._steps_done)
        if self._places is not None:
            yield from self._places.fired_by_steps(results)
        else:
            for batch in results:
                yield StageOutput(None, [batch])

    def suspended(self) -> tuple[StagePlace, Iterator[SnapshotTable]]:
        place = StagePlace(self._steps_done, self._clock_ms, self.current_watermark)
        tables = windows_to_tables(self._operator, self._accumulators, self._keys, self._max_parallelism)
        return place, (SnapshotTable(TableKind.WINDOWS, "", table) for table in tables)

    def close(self) -> None:
        if self._places is not None:
            self._places.close()

    def counts(self) -> dict[str, int]:
        counts = self._operator.counts()
        results = sum(counts[name] for name in ("on_time_firings", "late_firings", "retractions"))
        return {**{name: counts[name] for name in _COUNTS}, "results": results}

    @property
    def current_watermark(self) -> int:
        return int(self._operator.current_watermark)

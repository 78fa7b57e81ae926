"""The function over batches of a plan, over the key groups of one partition.

The order is as for a function that is called for each element (:mod:`flinkcore.columnar.stages.function_stage`), key by
key. A slice of the events is taken at a time, in rounds::

    due before the slice                         ──▶ timers of all keys
    due before the first element of a key in it  ──▶ timers of those keys
    elements up to the first that must wait      ──▶ a batch of elements     ◀─┐
    due before the first that waits, of each key ──▶ timers of those keys   ───┘ while elements wait

A key waits where a timer of its own is due between its elements; the other keys do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from flinkcore._internal.arrow.arrays import Int64s, RowNumbers
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.columnar.batch_functions.batch_process_calls import BatchProcessCalls
from flinkcore.columnar.batch_functions.batch_process_columns import ElementColumns
from flinkcore.columnar.batch_functions.batch_process_outputs import BatchProcessOutputs
from flinkcore.columnar.batch_functions.batch_process_snapshot import BatchProcessSnapshots
from flinkcore.columnar.batch_functions.batch_state_tables import BatchStateTables
from flinkcore.columnar.operator_plans.batch_process import BatchProcess
from flinkcore.columnar.stages.batch_result_places import BatchResultPlaces
from flinkcore.columnar.stages.placed_events import PlacedEvents, order_of
from flinkcore.columnar.stages.restored_operator import StagePlace, SuspendedOperator
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream import TimeDomain
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.streaming_runtime_context import TaskInfo
from flinkcore.operators.timers.unending_timers import UnendingTimers
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import Events

SLICE_ROWS = 1 << 15
"""Most elements of a batch."""

FIRED_ROWS = 1 << 15
"""Most timers of a batch."""


class TimelineMoments:
    """Places of timers among the steps of a timeline.

    Parameters
    ----------
    timeline : Timeline
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._done = 0
        self._end_ms: int | None = None

    def end_at(self, clock_ms: int) -> None:
        """Let the log end at a time: all steps before that are done."""
        self._done, self._end_ms = self._timeline.steps_before_end, clock_ms

    def steps_up_to(self, watermarks_ms: Int64s) -> Int64s:
        """Return how many steps are done or have a watermark that is not higher; the next one is the first above it."""
        return np.maximum(self._timeline.steps_up_to(watermarks_ms), self._done)

    def clocks_at(self, steps: Int64s) -> Int64s:
        """Return the replay clock at steps, ascending; where the log ends it is the end's."""
        clocks = self._timeline.clock_at(steps)
        return clocks if self._end_ms is None else np.where(steps == self._done, self._end_ms, clocks)


class BatchProcessStage(Stage[Events]):
    """Runs a copy of the function over ordered events of one partition, on the replay clock.

    Parameters
    ----------
    context
        Context of the operator.
    operator
        Its plan.
    partition
        Number of the partition.

    Raises
    ------
    UserCodeError
        If the function cannot be copied, or its `open` raises.
    ConfigurationError
        If the function declares an invalid delay.
    """

    def __init__(self, context: StageContext, operator: BatchProcess, partition: int) -> None:
        plan, timeline = context.plan, context.timeline
        self._timeline = timeline
        self._moments = TimelineMoments(timeline)
        self._last_arrival_ms = context.last_arrival_ms
        self._watermark_ms = MIN_TIMESTAMP
        self._processed = 0
        self._fired = dict.fromkeys(TimeDomain, 0)
        self._number = context.number
        self._places = BatchResultPlaces(context.number) if context.places_results else None
        self._emissions = context.emission_times()
        self._outputs = BatchProcessOutputs(
            operator.output_type,
            operator.tags,
            None if self._places is None else self._places.add,
            None if plan.emitted_at is None else plan.result_schema().field(plan.emitted_at),
            plan.batch_bytes,
        )
        self._calls = BatchProcessCalls(
            copied_function(operator.function),
            plan.data_schema(),
            list(plan.keys),
            plan.max_parallelism,
            self._outputs,
        )
        self._cuts = self._calls.cuts
        self._event_time = self._calls.event_time_timers
        self._processing_time = self._calls.processing_time_timers
        groups = context.key_group_range(partition)
        self._snapshots = BatchProcessSnapshots(self._calls, plan.key_fields, groups)
        self._state_tables = BatchStateTables(self._calls, self._snapshots.not_asked_for)
        task = TaskInfo(operator.function_name, context.partitions, plan.max_parallelism, partition)
        try:
            self._calls.open(task)
        except Exception:
            with suppress(Exception):
                self._calls.close()
            raise
        self._steps_done, self._clock_ms = 0, MIN_TIMESTAMP
        restored = context.restored
        place = None if restored is None else restored.place(timeline)
        if place is not None:
            self._steps_done, self._clock_ms, self._watermark_ms = place
        if isinstance(restored, SuspendedOperator):
            at = restored.suspended_at
            self._state_tables.restore(restored.tables(), at.watermark_ms, at.clock_ms)
        elif restored is not None and place is not None:
            with refused_as(restored.origin):
                self.restore(
                    restored.snapshots(groups, plan.max_parallelism), place.watermark_ms, place.clock_ms
                )

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Call the function for events in total order, and for the timers that are due before them.

        Raises
        ------
        UserCodeError
            If the function raises, or gives what does not fit its type; names keys and timestamps.
        DataError
            If a key is null.
        """
        for part in events.pieces(rows, SLICE_ROWS):
            yield from self._process(part)
            yield from self._taken()

    def _process(self, events: Events) -> Iterator[StageOutput]:
        arrivals = events.arrivals
        watermarks = self._timeline.watermark_after(events.steps)
        self._watermark_ms = int(watermarks[-1])
        yield from self._fire_before(int(watermarks[0]), int(arrivals[0]))
        key_ids = self._calls.key_ids(events.batch)
        elements = self._calls.elements(events.batch, key_ids, events.timestamps, watermarks, arrivals)
        due = self._cuts.rows_with_due_timers(key_ids, watermarks, arrivals)
        yield from self._fire(key_ids[due], watermarks[due], arrivals[due])
        columns = key_ids, events.timestamps, watermarks, arrivals
        taken, waiting = self._cuts.take(*columns)
        if len(waiting):
            self._process_rows(events, elements, taken)
        else:
            self._place_elements(events, None)
            self._process_batch(elements)
        rows, begins, ends = _grouped(waiting, key_ids)
        while len(begins):
            due = rows[begins]
            yield from self._fire(key_ids[due], watermarks[due], arrivals[due])
            taken = self._cuts.take_waiting(*columns, rows, begins, ends)
            self._process_rows(events, elements, np.sort(taken))
            still = begins < ends
            begins, ends = begins[still], ends[still]
        self._processed += len(arrivals)
        self._steps_done, self._clock_ms = int(events.steps[-1]), int(arrivals[-1])

    def _process_rows(self, events: Events, elements: ElementColumns, rows: Int64s) -> None:
        self._place_elements(events, rows)
        self._process_batch(elements.take(rows))

    def _process_batch(self, elements: ElementColumns) -> None:
        self._outputs.emitted_ms = elements.processing_times
        self._calls.process_batch(elements)

    def _place_elements(self, events: Events, rows: Int64s | None) -> None:
        """Note where results for elements, or some rows of them, come in order."""
        if self._places is not None:
            order = order_of(events, self._number)
            if rows is None:
                self._places.of_elements(events.timestamps, order)
            else:
                self._places.of_elements(events.timestamps[rows], tuple(column[rows] for column in order))

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        steps = self._timeline.steps_before_arrival(until_ms)
        self._watermark_ms = max(self._watermark_ms, self._timeline.reader().watermark_after(steps))
        yield from self._fire_before(self._watermark_ms, until_ms)
        yield from self._taken()
        self._steps_done, self._clock_ms = (
            max(self._steps_done, steps),
            max(self._clock_ms, until_ms - 1),
        )

    def finish(self) -> Iterator[StageOutput]:
        """Let everything happen that is due by the end of the log, and fire all event-time timers."""
        if self._last_arrival_ms is not None:
            end_ms = self._timeline.end_ms(self._last_arrival_ms)
            self._watermark_ms = self._timeline.watermark_before_end
            yield from self._fire_before(self._watermark_ms, end_ms + 1)
            self._moments.end_at(end_ms)
        # The end of the log is an advance also where the maximum is in force already.
        self._cuts.lower_floors(MAX_TIMESTAMP - 1)
        self._watermark_ms = MAX_TIMESTAMP
        yield from self._fire_before(MAX_TIMESTAMP, MIN_TIMESTAMP)
        yield from self._taken()

    def stop(self) -> Iterator[StageOutput]:
        """Let everything happen that comes before the cut: what is due before the last arrival, not at it."""
        if self._last_arrival_ms is not None:
            self._watermark_ms = self._timeline.watermark_before_end
            yield from self._fire_before(self._watermark_ms, self._last_arrival_ms)
        yield from self._taken()

    def snapshot(self) -> OperatorSnapshot:
        """Timers and state of the function; after `stop`."""
        return self._snapshots.snapshot(self._watermark_ms)

    def memory_bytes(self) -> int:
        return self._calls.memory_bytes()

    def shown_state(self) -> str:
        timers = len(self._event_time) + len(self._processing_time)
        return f"{self._calls.n_keys:,} keys and {timers:,} timers"

    def suspend(self) -> Iterator[StageOutput]:
        yield from self._fire_before(self._watermark_ms, self._clock_ms)
        yield from self._taken()

    def suspended(self) -> tuple[StagePlace, Iterator[SnapshotTable]]:
        place = StagePlace(self._steps_done, self._clock_ms, self._watermark_ms)
        return place, self._state_tables.tables()

    def restore(self, snapshots: Iterable[OperatorSnapshot], watermark_ms: int, last_arrival_ms: int) -> None:
        """Go on from snapshots, of which those of this partition's key groups count; before the first event.

        Parameters
        ----------
        snapshots
            Snapshots of the stages of any number of partitions.
        watermark_ms, last_arrival_ms
            Where they stopped.

        Raises
        ------
        SchemaError
            If keys or values have other types now.
        """
        self._watermark_ms = watermark_ms
        self._snapshots.restore(snapshots, watermark_ms, last_arrival_ms)

    def close(self) -> None:
        """Close the function; a UserCodeError if its `close` raises."""
        self._calls.close()

    def counts(self) -> dict[str, int]:
        return {
            "processed": self._processed - self._calls.late,
            "late": self._calls.late,
            "event_time_timers": self._fired[TimeDomain.EVENT_TIME],
            "processing_time_timers": self._fired[TimeDomain.PROCESSING_TIME],
            "pending_processing_time_timers": len(self._processing_time),
            **self._outputs.counts(),
        }

    @property
    def current_watermark(self) -> int:
        return self._watermark_ms

    def _taken(self) -> Iterator[StageOutput]:
        begin = 0
        for tag, batch in self._outputs.take():
            if tag is None and self._places is not None:
                if begin == 0:
                    timestamps, order = self._places.take()
                rows = slice(begin, begin := begin + batch.num_rows)
                placed = PlacedEvents.of(batch, timestamps[rows], tuple(column[rows] for column in order))
                yield PlacedOutput(None, [], placed)
            else:
                yield StageOutput(tag, [batch])

    # ---- timers ----

    def _fire_before(self, watermark_ms: int, arrival_ms: int) -> Iterator[StageOutput]:
        """Fire the timers of all keys that are due before an element with this watermark and arrival."""
        due = self._event_time.due_keys(watermark_ms)
        if len(self._processing_time) and arrival_ms > MIN_TIMESTAMP:
            due = np.union1d(due, self._processing_time.due_keys(arrival_ms - 1))
        for start in range(0, len(due), FIRED_ROWS):
            key_ids = due[start : start + FIRED_ROWS]
            yield from self._fire(
                key_ids, np.full(len(key_ids), watermark_ms), np.full(len(key_ids), arrival_ms)
            )

    def _fire(self, key_ids: Int64s, watermarks: Int64s, arrivals: Int64s) -> Iterator[StageOutput]:
        """Fire the timers of keys that are due before an element of each with this watermark and arrival.

        One timer of each key at a time, the first that is due, as its call may delete the others.
        """
        is_end = self._watermark_ms == MAX_TIMESTAMP
        at_end = UnendingTimers(len(self._event_time)) if is_end else None
        while len(key_ids):
            floors, passed, clocks = self._cuts.seen(key_ids)
            times, exist = self._event_time.first(key_ids)
            reached = np.maximum(np.maximum(times, MIN_TIMESTAMP + 1) - 1, floors)
            by_watermark = exist & (reached < watermarks)
            steps = self._moments.steps_up_to(reached)
            by_clock = None
            if len(self._processing_time):
                clock_times, exist = self._processing_time.first(key_ids)
                due = np.maximum(clock_times, clocks)
                before = np.maximum(
                    self._timeline.steps_before_timers(due), self._moments.steps_up_to(passed)
                )
                by_clock = exist & (due < arrivals) & ~(by_watermark & (steps < before))
                by_watermark &= ~by_clock
                self._fire_by_clock(key_ids[by_clock], clock_times[by_clock], due[by_clock], before[by_clock])
            self._fire_by_watermark(key_ids[by_watermark], times[by_watermark], steps[by_watermark])
            if at_end is not None and by_watermark.any():
                first = int(np.argmax(by_watermark))
                key_id = int(key_ids[first])
                at_end.count(key_id, self._calls.key(key_id), int(times[first]), int(by_watermark.sum()))
            fired = by_watermark if by_clock is None else by_watermark | by_clock
            key_ids, watermarks, arrivals = key_ids[fired], watermarks[fired], arrivals[fired]
            if self._outputs.are_many:
                yield from self._taken()

    def _fire_by_watermark(self, key_ids: Int64s, times: Int64s, steps: Int64s) -> None:
        if len(key_ids):
            order = np.lexsort((times, steps))
            key_ids, times, steps = key_ids[order], times[order], steps[order]
            self._event_time.poll(key_ids)
            watermarks, clocks = self._timeline.watermark_after(steps + 1), self._moments.clocks_at(steps)
            self._place_timers(key_ids, times, clocks, steps, by_watermark=True)
            if self._emissions is not None:
                self._outputs.emitted_ms = self._emissions.of_steps(steps)
            # The step lasts until all that it reaches has fired: the floor stays below it.
            floors = np.minimum(self._timeline.watermark_after(steps), watermarks - 1)
            self._call_on_timers(TimeDomain.EVENT_TIME, key_ids, times, floors, watermarks, clocks)

    def _fire_by_clock(self, key_ids: Int64s, times: Int64s, due: Int64s, steps: Int64s) -> None:
        if len(key_ids):
            order = np.lexsort((times, due))
            key_ids, times, due, steps = key_ids[order], times[order], due[order], steps[order]
            self._processing_time.poll(key_ids)
            self._place_timers(key_ids, times, due, steps, by_watermark=False)
            if self._emissions is not None:
                self._outputs.emitted_ms = self._emissions.of_timers(due)
            watermarks = self._timeline.watermark_after(steps)
            self._call_on_timers(TimeDomain.PROCESSING_TIME, key_ids, times, watermarks, watermarks, due)

    def _place_timers(
        self, key_ids: Int64s, times: Int64s, clocks: Int64s, steps: Int64s, by_watermark: bool
    ) -> None:
        if self._places is not None:
            hashes = self._calls.key_hashes(key_ids)
            self._places.of_timers(key_ids, hashes, times, clocks, steps, by_watermark)

    def _call_on_timers(
        self,
        domain: TimeDomain,
        key_ids: Int64s,
        times: Int64s,
        floors: Int64s,
        watermarks: Int64s,
        clocks: Int64s,
    ) -> None:
        self._fired[domain] += len(key_ids)
        self._cuts.fire(key_ids, floors, watermarks, clocks)
        self._calls.on_timers(domain, key_ids, times, watermarks, clocks)


def _grouped(rows: Int64s, key_ids: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Rows key after key, and where each key begins and ends in them."""
    rows = rows[np.argsort(key_ids[rows], kind="stable")]
    ids = key_ids[rows]
    bounds = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1], [True]))) if len(rows) else rows
    return rows, bounds[:-1].copy(), bounds[1:].copy()

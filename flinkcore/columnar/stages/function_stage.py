"""Functions of a plan that are called row by row, over the key groups of one partition.

Ticks, watermarks and timers that come before an event with arrival ``a``::

    arrival ──▶  T                                                   a
    events       e e │                                               e
                 1 1 │ 2 ─▶ 3 ─▶ 2 again, for what 3 has registered for T or before

    1  watermarks that an event makes: they fire event-time timers
    2  processing-time timers due at T
    3  each watermark of a tick at T: they fire event-time timers

Everything due at T comes after all events with arrival T. A processing-time timer for a time that has passed is due
at once, which is after all events with the present arrival. Flink leaves the order of 2 and 3 open.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Generic, TypeVar

import numpy as np

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore._internal.values.row import Row
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.snapshot_tables import SnapshotTable, snapshot_tables, state_of_tables
from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents, order_of
from flinkcore.columnar.stages.process_output import NO_ROW, ProcessOutput
from flinkcore.columnar.stages.restored_operator import StagePlace, SuspendedOperator
from flinkcore.columnar.stages.result_places import ResultPlaces
from flinkcore.columnar.stages.row_operator import RowOperator, Surroundings
from flinkcore.columnar.stages.row_state_memory import RowStateMemory
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from flinkcore.errors import UserCodeError, in_words
from flinkcore.operators.keys.element_rows import groups_of_keys
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.copies import copied_function
from flinkcore.operators.records.output import OutputFullError
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.replay_clock import ReplayClock
from flinkcore.operators.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.time_plane.timeline import AFTER_ALL_SPLITS
from flinkcore.time_plane.total_order import Events

ProcessT = TypeVar("ProcessT", bound=UserProcess)

SLICE_ROWS = 1 << 12
"""So many events are Python objects at a time."""


class FunctionStage(Stage[Events], Generic[ProcessT]):
    """Runs a copy of the function over ordered events of one partition, on the replay clock.

    Results of one call are taken a batch at a time, however many they are: the call waits in between. If another
    operator follows, which takes results in order, all results of a step are held until the step is complete.

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

    Notes
    -----
    At the end of the log, everything due by the last arrival happens; then the watermark advances to its maximum and
    fires all event-time timers in order of time. Where a generator has emitted the maximum before, it is in force from
    there on, as any watermark: timers registered after it wait for the next advance, which is the end of the log
    (Flink's ``InternalTimerServiceImpl.advanceWatermark``). Processing-time timers that are due later do not fire:
    Flink's ``StreamTask`` stops its timer service when a bounded input has ended. The attempt number that the function
    can ask for is always 0: a task that is tried again does what it did before.
    """

    def __init__(self, context: StageContext, operator: ProcessT, partition: int) -> None:
        plan, timeline = context.plan, context.timeline
        self._timeline, self._steps = timeline, timeline.reader()
        self._last_arrival_ms = context.last_arrival_ms
        self._number = context.number
        self._takes_results = bool(plan.results)
        self._steps_done = 0
        self._processed = 0
        self._key_group = 0
        self._is_in_step = False
        self._elements_ms: list[int] = []
        self._clock = ReplayClock()
        # A new key is always that of the current element, whose group is known, and is that of the column's type.
        key_context = KeyContext(
            plan.max_parallelism,
            context.key_group_range(partition),
            lambda key: self._key_group,
            key_groups_of=lambda keys: groups_of_keys(keys, plan.key_fields, plan.max_parallelism),
        )
        backend = KeyedStateBackend(key_context, self._clock)
        self._emissions = context.emission_times()
        self._output = ProcessOutput(
            context, operator, key_context, None if self._emissions is None else self._emitted_ms
        )
        if context.places_results:
            self._output.places = ResultPlaces(context.number, key_context, self._now)
        self._name = operator.function_name
        own = replace(operator, function=copied_function(operator.function))
        self._function = self._row_operator(
            context, own, partition, Surroundings(self._output, backend, self._clock)
        )
        self._operator, self._timers = self._function.operator, self._function.timers
        self._memory = RowStateMemory(backend, self._timers)
        restored = context.restored
        place = None if restored is None else restored.place(timeline)
        if place is not None:
            # A timer whose time has passed is due at once, and that is after all events with this arrival.
            self._steps_done, self._clock.now_ms, _ = place
        backends = self._function.backends
        if isinstance(restored, SuspendedOperator):
            groups, watermark_ms = context.key_group_range(partition), restored.suspended_at.watermark_ms
            snapshot = state_of_tables(restored.tables(), groups, watermark_ms)
            backends.restore_keys(snapshot, watermark_ms)
            backends.restore_rest(snapshot.operator_state, watermark_ms)
        elif restored is not None:
            backends.restore(
                restored.state,
                restored.uid,
                partition,
                context.partitions,
                self._function.check_restored,
            )
        task = TaskInfo(self._name, context.partitions, plan.max_parallelism, partition)
        store = DefaultKeyedStateStore(backend) if self._function.is_keyed else None
        try:
            self._operator.open(StreamingRuntimeContext(task, store))
        except Exception as failure:
            with suppress(Exception):
                self._operator.close()
            raise self._failed("open", failure) from failure
        if not self._function.is_keyed and self._steps_done:
            # With keys the timers know it.
            self._operator.process_watermark(Watermark(self.current_watermark))

    @abstractmethod
    def _row_operator(
        self, context: StageContext, process: ProcessT, partition: int, around: Surroundings
    ) -> RowOperator:
        """Return what calls the function.

        Parameters
        ----------
        context
            Context of the operator.
        process
            Its plan, with the stage's own copy of the function.
        partition
            Number of the partition.
        around
            Everything else that the operator is given.
        """

    def _failed(self, method: str, failure: Exception) -> UserCodeError:
        return UserCodeError(f"{self._name}.{method} failed: {in_words(failure)}")

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        """Call the function for events in total order, and for the timers that are due before each.

        Raises
        ------
        UserCodeError
            If the function raises, or gives what does not fit its type; names key, timestamp and element.
        """
        for part in events.pieces(rows, SLICE_ROWS):
            yield from self._process(part)
            yield from self._take(part)

    def _take(self, events: Events | None = None) -> Iterator[StageOutput]:
        if self._output.places is None:
            return self._output.take()
        no_order = tuple(np.empty(0, np.int64) for _ in range(FIXED_COLUMNS + self._number))
        return self._output.take(no_order if events is None else order_of(events, self._number))

    def _rest_of(self, full: OutputFullError, events: Events | None = None) -> Iterator[StageOutput]:
        """Yield the results so far, and those that waiting calls still emit, a batch at a time."""
        waits: OutputFullError | None = full
        while waits is not None:
            yield from self._take(events)
            try:
                waits.resume()
            except OutputFullError as again:
                waits = again
            else:
                waits = None

    def _run_call(self, call: Callable[[], None]) -> Iterator[StageOutput]:
        """Make a call; each time that the output is full, give the results so far, and let the call continue."""
        try:
            call()
        except OutputFullError as full:
            yield from self._rest_of(full)

    def _process(self, events: Events) -> Iterator[StageOutput]:
        clock, output = self._clock, self._output
        record: StreamRecord[Row | None] = StreamRecord(None)
        output.elements, output.record = events.batch, record
        if self._emissions is not None:
            self._elements_ms = self._emissions.of_events(events).tolist()
        for row, element, key, key_group, process_element, timestamp, arrival, steps_before in zip(
            count(),
            *self._function.rows(events),
            record_timestamps(events),
            events.arrivals.tolist(),
            events.steps.tolist(),
            strict=False,
        ):
            if steps_before > self._steps_done or clock.next_due_ms < arrival:
                output.row = NO_ROW
                try:
                    self._advance(arrival, steps_before)
                except OutputFullError as full:
                    yield from self._rest_of(full, events)
            self._key_group = key_group
            clock.now_ms = arrival
            output.row, record.value, record.timestamp = row, element, timestamp
            try:
                process_element(key, record)
            except OutputFullError as full:
                yield from self._rest_of(full, events)
        output.row = NO_ROW
        self._processed += len(events.arrivals)

    def finish(self) -> Iterator[StageOutput]:
        """Let everything happen that is due by the end of the log, and fire all event-time timers."""
        end = self._timeline.steps_before_end
        if self._last_arrival_ms is not None:
            end_ms = self._timeline.end_ms(self._last_arrival_ms)
            yield from self._run_call(partial(self._advance, end_ms + 1, end))
            self._clock.now_ms = end_ms
        yield from self._run_call(partial(self._process_step, end))
        yield from self._take()

    def advance(self, until_ms: int) -> Iterator[StageOutput]:
        steps = self._timeline.steps_before_arrival(until_ms)
        yield from self._run_call(partial(self._advance, until_ms, steps))
        yield from self._take()

    def stop(self) -> Iterator[StageOutput]:
        """Let everything happen that comes before the cut: what is due before the last arrival, not at it."""
        if self._last_arrival_ms is not None:
            yield from self._run_call(partial(self._advance, self._last_arrival_ms, len(self._timeline)))
        yield from self._take()

    def snapshot(self) -> OperatorSnapshot:
        """Timers and state of the function."""
        return self._function.backends.snapshot(self.current_watermark)

    def memory_bytes(self) -> int:
        return self._memory.count(self._processed) if self._function.is_keyed else 0

    def shown_state(self) -> str:
        timers = self._timers.num_event_time_timers() + self._timers.num_processing_time_timers()
        return f"{self._memory.entries:,} keys and entries of states and {timers:,} timers"

    def suspended(self) -> tuple[StagePlace, Iterator[SnapshotTable]]:
        place = StagePlace(self._steps_done, self._clock.now_ms, self.current_watermark)
        return place, snapshot_tables(self.snapshot())

    def close(self) -> None:
        """Close the function.

        Raises
        ------
        UserCodeError
            If its `close` raises.
        """
        try:
            self._operator.close()
        except Exception as failure:
            raise self._failed("close", failure) from failure

    def counts(self) -> dict[str, int]:
        """Counts of events by what became of them, of timers and of results so far."""
        return {
            **self._function.fates(self._processed),
            "event_time_timers": self._timers.fired_event_time_timers(),
            "processing_time_timers": self._timers.fired_processing_time_timers(),
            "pending_processing_time_timers": self._timers.num_processing_time_timers(),
            **self._output.counts(),
        }

    @property
    def current_watermark(self) -> int:
        return self._steps.watermark_after(self._steps_done)

    # ---- what happens between events ----

    def _advance(self, end_ms: int, steps: int) -> None:
        """Process the first so many steps of the timeline, and fire the timers due before a time, in order."""
        clock = self._clock
        try:
            while True:
                step = self._next_step_that_fires(steps)
                due_ms = max(clock.next_due_ms, clock.now_ms)
                if clock.next_due_ms < MAX_TIMESTAMP and due_ms < end_ms:
                    before_due = self._steps_before_timers(due_ms, steps)
                    if step >= before_due:
                        self._pass_steps(before_due)
                        clock.fire_due(due_ms)
                        continue
                if step >= steps:
                    break
                clock.now_ms = self._steps.clock(step)
                self._process_step(step)
            self._pass_steps(steps)
        except OutputFullError as full:
            full.then(partial(self._advance, end_ms, steps))
            raise

    def _next_step_that_fires(self, steps: int) -> int:
        """The first step to come whose watermark reaches a timer; `steps` if it is none of the first so many."""
        done = self._steps_done
        if done == 0:
            return 0  # also starts the event time of times to live
        timer_ms = self._timers.next_event_time()
        if done >= steps or timer_ms is None or timer_ms > self._steps.watermark_after(steps):
            return steps
        # Timers that are registered behind the watermark wait until it rises.
        watermark_ms = self.current_watermark
        if watermark_ms == MAX_TIMESTAMP:
            return steps
        return min(steps, max(done, self._steps.steps_below(max(timer_ms, watermark_ms + 1))))

    def _steps_before_timers(self, time_ms: int, steps: int) -> int:
        """Return how many steps come before the processing-time timers due at a time."""
        # Results of an earlier operator at the steps of this time come before the timers.
        position = MAX_TIMESTAMP if self._takes_results else 0
        before = self._steps.steps_before(time_ms, AFTER_ALL_SPLITS, position)
        return min(steps, max(self._steps_done, before))

    def _pass_steps(self, steps: int) -> None:
        """Put the watermark after so many steps in force; none of them reaches a timer."""
        if steps > self._steps_done:
            if self._steps.watermark_after(steps) > self.current_watermark:
                self._process_step(steps - 1)
            self._steps_done = steps

    def _now(self) -> tuple[int, int, bool]:
        """The clock, the steps that have reached the next operator, and whether a step fires timers at present."""
        return self._clock.now_ms, self._steps_done - self._is_in_step, self._is_in_step

    def _emitted_ms(self) -> int:
        assert self._emissions is not None
        if self._output.row != NO_ROW:
            return self._elements_ms[self._output.row]
        if self._is_in_step:
            return self._emissions.of_step(self._steps_done - 1)
        return self._emissions.of_timer(self._clock.now_ms)

    def _process_step(self, step: int) -> None:
        self._steps_done = step + 1
        self._is_in_step = True
        try:
            self._operator.process_watermark(Watermark(self._steps.watermark_after(step + 1)))
        except OutputFullError as full:
            # The remaining timers fire within this step.
            full.then(self._end_step)
            raise
        self._end_step()

    def _end_step(self) -> None:
        self._is_in_step = False


def record_timestamps(events: Events) -> list[int | None]:
    """The timestamps of records; results of processing-time timers have none."""
    timestamps: list[int | None] = events.timestamps.tolist()
    if isinstance(events, PlacedEvents):
        return [None if timestamp == MIN_TIMESTAMP else timestamp for timestamp in timestamps]
    return timestamps

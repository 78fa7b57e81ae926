"""The process function of a plan, over the key groups of one partition.

What happens before an event with arrival ``a``, and when::

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

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, ClassVar, Protocol

import numpy as np

from flinkcore._native.key_groups import compute_key_group_range_for_operator_index
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from flinkcore.common.row import Row
from flinkcore.datastream.functions import RuntimeContext
from flinkcore.errors import UserCodeError, in_words
from flinkcore.replay.plans.keyed_operator import UserProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.copied_function import copied_function
from flinkcore.replay.stages.element_rows import element_keys, element_rows, event_key_groups, groups_of_keys
from flinkcore.replay.stages.function_stages import FunctionStages
from flinkcore.replay.stages.placed_events import FIXED_COLUMNS, PlacedEvents, order_of, steps_of
from flinkcore.replay.stages.process_output import NO_ROW, ProcessOutput
from flinkcore.replay.stages.restored_namespaces import check_namespaces, is_void
from flinkcore.replay.stages.restored_operator import RestoredOperator
from flinkcore.replay.stages.result_places import ResultPlaces
from flinkcore.replay.time_plane.replay_clock import ReplayClock
from flinkcore.replay.time_plane.step_order import AFTER_ALL_SPLITS
from flinkcore.replay.time_plane.timeline import Timeline
from flinkcore.replay.time_plane.total_order import Events, RowNumbers
from flinkcore.runtime.checkpoint import OperatorBackends, OperatorSnapshot
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import KeyedProcessOperator
from flinkcore.runtime.operators.function_calls import TIMER_SERVICE_NAME, KeyedElementCall
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.state import DefaultKeyedStateStore, KeyedStateBackend
from flinkcore.runtime.streaming_runtime_context import StreamingRuntimeContext, TaskInfo
from flinkcore.runtime.timers import InternalTimeServiceManager

SLICE_ROWS = 1 << 12
"""So many events are Python objects at a time."""


class KeyedOneInputOperator(Protocol):
    """The operator of functions for elements with keys."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the functions."""

    @property
    def process_element_of_key(self) -> KeyedElementCall:
        """What processes a record of a key."""

    @property
    def time_service_manager(self) -> InternalTimeServiceManager:
        """Its timers."""

    def process_watermark(self, watermark: Watermark) -> None:
        """Fire event-time timers."""

    def close(self) -> None:
        """Close the functions."""


class ProcessStage:
    """Runs a copy of the function over ordered events of one partition, on the replay clock.

    What a call of the function gives is taken a batch at a time, however much that is: the call waits in between. Not
    so where another operator follows, which takes results in order: those of a step are held until all of them are
    there.

    Parameters
    ----------
    plan
        The job.
    process
        Its operator.
    timeline
        The watermarks of the whole log.
    last_arrival_ms
        Of the whole log; None if it has no events. What is due by then happens in every partition.
    partition, partitions
        Number of the partition, and of all; its key groups are those that Flink gives to a subtask.
    restored
        What the function goes on from.

    Raises
    ------
    UserCodeError
        If the function cannot be copied, or its `open` raises.

    Notes
    -----
    At the end of the log, everything due by the last arrival happens; then the watermark advances to its maximum and
    fires all event-time timers in order of time. Where a generator has emitted the maximum before, it is in force from
    there on, as any watermark: timers registered behind it wait for the next advance, which is the end of the log
    (Flink's ``InternalTimerServiceImpl.advanceWatermark``). Processing-time timers that are due later do not fire:
    Flink's ``StreamTask`` stops its timer service when a bounded input has ended. The attempt number that the function
    can ask for is always 0: a task that is tried again does what it did before.
    """

    def __init__(
        self,
        plan: StagePlan,
        process: UserProcess,
        timeline: Timeline,
        last_arrival_ms: int | None,
        partition: int,
        partitions: int,
        restored: RestoredOperator | None = None,
    ) -> None:
        self._keys = list(plan.keys)
        self._max_parallelism = plan.max_parallelism
        self._timeline = timeline
        self._last_arrival_ms = last_arrival_ms
        self._steps_done = 0
        self._processed = 0
        self._key_group = 0
        self._number = 0
        self._takes_results = False
        self._is_in_step = False
        self._clock = ReplayClock()
        groups = compute_key_group_range_for_operator_index(plan.max_parallelism, partitions, partition)
        # A new key is always that of the element at hand, whose group is known, and is that of the column's type.
        self._key_context = key_context = KeyContext(
            plan.max_parallelism,
            groups,
            lambda key: self._key_group,
            key_groups_of=lambda keys: groups_of_keys(keys, plan.key_fields, plan.max_parallelism),
        )
        backend = KeyedStateBackend(key_context, self._clock)
        self._output = self._make_output(plan, process, key_context)
        self._name = process.function_name
        self._operator = self._make_operator(copied_function(process.function), backend)
        self._timers = self._timers_of(self._operator, backend)
        self._backends = self._backends_of(backend)
        if restored is not None and restored.last_arrival_ms is not None:
            # A timer whose time has passed is due at once, and that is after all events with this arrival.
            self._clock.now_ms = restored.last_arrival_ms
            self._steps_done = timeline.steps_done(restored.last_arrival_ms)
            self._backends.restore(
                restored.checkpoint, restored.uid, partition, partitions, self._check_restored
            )
        task = TaskInfo(self._name, partitions, plan.max_parallelism, partition)
        context = StreamingRuntimeContext(task, self._keyed_state_store(backend))
        try:
            self._operator.open(context)
        except Exception as failure:
            with suppress(Exception):
                self._operator.close()
            raise self._failed("open", failure) from failure

    def _make_output(self, plan: StagePlan, process: UserProcess, key_context: KeyContext) -> ProcessOutput:
        return ProcessOutput(plan, process, key_context)

    def _make_operator(self, function: Any, backend: KeyedStateBackend) -> KeyedOneInputOperator:
        """Return the operator that runs the copied function."""
        return KeyedProcessOperator(function, None, self._output, backend, self._clock)

    def _timers_of(
        self, operator: KeyedOneInputOperator, backend: KeyedStateBackend
    ) -> InternalTimeServiceManager:
        """Return the timers of the operator."""
        return operator.time_service_manager

    def _backends_of(self, backend: KeyedStateBackend) -> OperatorBackends:
        """Return what of the operator a checkpoint holds."""
        return OperatorBackends(backend, self._timers)

    def _check_restored(self, snapshot: OperatorSnapshot) -> None:
        """Raise a SchemaError if the operator cannot have what a snapshot has."""
        check_namespaces(snapshot, TIMER_SERVICE_NAME, is_void, is_void)

    def _keyed_state_store(self, backend: KeyedStateBackend) -> DefaultKeyedStateStore | None:
        """Return what the function asks for its state; None where there are no keys."""
        return DefaultKeyedStateStore(backend)

    def _failed(self, method: str, failure: Exception) -> UserCodeError:
        return UserCodeError(f"{self._name}.{method} failed: {in_words(failure)}")

    def process(self, events: Events, rows: RowNumbers | None) -> Iterator[Output]:
        """Call the function for events in total order, and for the timers that are due before each.

        Parameters
        ----------
        events
            The batch and its times.
        rows
            Rows of this partition, in total order; None: all, as they lie.

        Yields
        ------
        Output
            What the function gave.

        Raises
        ------
        UserCodeError
            If the function raises, or gives what does not fit its type; names key, timestamp and element.
        """
        for part in events.pieces(rows, SLICE_ROWS):
            yield from self._process(part)
            yield from self._take(part)

    def _take(self, events: Events | None = None) -> Iterator[Output]:
        if self._output.places is None:
            return self._output.take()
        no_order = tuple(np.empty(0, np.int64) for _ in range(FIXED_COLUMNS + self._number))
        return self._output.take(
            no_order if events is None else order_of(events, self._timeline, self._number)
        )

    def _rest_of(self, full: OutputFullError, events: Events | None = None) -> Iterator[Output]:
        """What has been given so far, and what calls that wait have still to give, a batch at a time."""
        waits: OutputFullError | None = full
        while waits is not None:
            yield from self._take(events)
            try:
                waits.resume()
            except OutputFullError as again:
                waits = again
            else:
                waits = None

    def _do(self, call: Callable[[], None]) -> Iterator[Output]:
        try:
            call()
        except OutputFullError as full:
            yield from self._rest_of(full)

    def _process(self, events: Events) -> Iterator[Output]:
        steps = steps_of(events, self._timeline)
        batch = events.batch
        groups = event_key_groups(batch, self._keys, self._max_parallelism)
        clock, output, process_element = self._clock, self._output, self._operator.process_element_of_key
        record: StreamRecord[Row | None] = StreamRecord(None)
        output.elements, output.record = batch, record
        for row, element, key, key_group, timestamp, arrival, steps_before in zip(
            count(),
            element_rows(batch),
            element_keys(batch, self._keys),
            groups.tolist(),
            record_timestamps(events),
            events.arrivals.tolist(),
            steps.tolist(),
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

    def finish(self) -> Iterator[Output]:
        """Let everything happen that is due by the end of the log, and fire all event-time timers."""
        end = self._timeline.steps_before_end
        if self._last_arrival_ms is not None:
            end_ms = self._timeline.end_ms(self._last_arrival_ms)
            yield from self._do(partial(self._advance, end_ms + 1, end))
            self._clock.now_ms = end_ms
        yield from self._do(partial(self._process_step, end))
        yield from self._take()

    def advance(self, until_ms: int) -> Iterator[Output]:
        """Let everything happen that is due before a time, at which the next event comes at the earliest."""
        steps = bisect_left(self._timeline.clock_ms, until_ms)
        yield from self._do(partial(self._advance, until_ms, steps))
        yield from self._take()

    def join(self, number: int, takes_results: bool, places_results: bool) -> None:
        """Be one of the operators of a job that has several; called before the first event.

        Parameters
        ----------
        number
            Of the operator, from 0 on.
        takes_results
            Whether results of others come to it.
        places_results
            Whether another one follows.
        """
        self._number = number
        self._takes_results = takes_results
        if places_results:
            self._output.places = ResultPlaces(number, self._key_context, self._now)

    def _now(self) -> tuple[int, int, bool]:
        return self._clock.now_ms, self._steps_done - self._is_in_step, self._is_in_step

    def stop(self) -> Iterator[Output]:
        """Let everything happen that comes before the cut: what is due before the last arrival, not at it."""
        if self._last_arrival_ms is not None:
            steps = len(self._timeline.clock_ms)
            yield from self._do(partial(self._advance, self._last_arrival_ms, steps))
        yield from self._take()

    def snapshot(self) -> OperatorSnapshot:
        """Timers and state of the function."""
        return self._backends.snapshot(self.current_watermark)

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
        """Counts of events, timers and results so far."""
        return {
            "processed": self._processed,
            "event_time_timers": self._timers.fired_event_time_timers(),
            "processing_time_timers": self._timers.fired_processing_time_timers(),
            "pending_processing_time_timers": self._timers.num_processing_time_timers(),
            **self._output.counts(),
        }

    @property
    def current_watermark(self) -> int:
        """Watermark in force, ms since the epoch."""
        done = self._steps_done
        return int(self._timeline.watermark_ms[done - 1]) if done else MIN_TIMESTAMP

    # ---- what happens between events ----

    def _advance(self, end_ms: int, steps: int) -> None:
        """Do the steps of the timeline up to so many, and fire the timers due before a time, in order."""
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
                clock.now_ms = int(self._timeline.clock_ms[step])
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
        watermarks = self._timeline.watermark_ms
        if done >= steps or timer_ms is None or timer_ms > watermarks[steps - 1]:
            return steps
        # Timers that are registered behind the watermark wait until it rises.
        rising = bisect_right(watermarks, watermarks[done - 1], done, steps)
        return bisect_left(watermarks, timer_ms, rising, steps)

    def _steps_before_timers(self, time_ms: int, steps: int) -> int:
        """How many steps come before the processing-time timers due at a time."""
        clocks = self._timeline.clock_ms
        if self._takes_results:
            # What an operator before this one emits at the steps of this time comes before the timers.
            return bisect_right(clocks, time_ms, self._steps_done, steps)
        before = bisect_left(clocks, time_ms, self._steps_done, steps)
        if self._timeline.is_punctuated:
            by_events = self._timeline.split
            while before < steps and clocks[before] == time_ms and by_events[before] != AFTER_ALL_SPLITS:
                before += 1
        return before

    def _pass_steps(self, steps: int) -> None:
        """Let the watermark after so many steps be in force; none of them reaches a timer."""
        if steps > self._steps_done:
            if self._timeline.watermark_ms[steps - 1] > self.current_watermark:
                self._process_step(steps - 1)
            self._steps_done = steps

    def _process_step(self, step: int) -> None:
        self._steps_done = step + 1
        self._is_in_step = True
        try:
            self._operator.process_watermark(Watermark(int(self._timeline.watermark_ms[step])))
        finally:
            self._is_in_step = False


def record_timestamps(events: Events) -> list[int | None]:
    """The timestamps of records; results of processing-time timers have none."""
    timestamps: list[int | None] = events.timestamps.tolist()
    if isinstance(events, PlacedEvents):
        return [None if timestamp == MIN_TIMESTAMP else timestamp for timestamp in timestamps]
    return timestamps


class ProcessStages(FunctionStages[UserProcess]):
    """Makes process stages; parameters as of :class:`FunctionStages`."""

    stage_class: ClassVar[type[ProcessStage]] = ProcessStage

    def stage(self, partition: int) -> ProcessStage:
        """A stage, with a copy of the function, which is opened."""
        return self.stage_class(
            self._plan,
            self._process,
            self._timeline,
            self._last_arrival_ms,
            partition,
            self._partitions,
            self._restored,
        )

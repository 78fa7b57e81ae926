"""Events of a log in the order of their arrival at a job that runs element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Final

import numpy as np

from flinkcore._internal.arrow.column_ops import ColumnOp
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.operator_plans.forward import Forward
from flinkcore.columnar.plans.batch_mode import refuse_alignment_in_batch_mode
from flinkcore.columnar.plans.log_plan import LogPlan, column_op, plan_of_log
from flinkcore.columnar.plans.nested_columns import with_nested_columns
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.replay.chunks_by_arrival import ChunksByArrival
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.timestamp_assigner import NO_TIMESTAMP
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.topic_records import TopicSource
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    TimestampsAndWatermarksTransformation,
    Transformation,
)
from flinkcore.elements.arrivals.aligned_splits import AlignedSplits
from flinkcore.elements.arrivals.element_arrivals import (
    ELEMENTS_AT_ONCE,
    Origin,
    SourceSnapshot,
    end_input,
)
from flinkcore.elements.arrivals.job_clock import JobClock
from flinkcore.elements.arrivals.split_watermarks import RestoredSplits, SplitWatermarks
from flinkcore.elements.arrivals.topic_values import LEFT_OUT, TopicValues
from flinkcore.elements.tasks.subtask_state import broadcast_state
from flinkcore.elements.tasks.task_output import ElementCall, TaskOutput
from flinkcore.errors import ConfigurationError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.log.sources.packed_files import Packing
from flinkcore.log.topics.topic_log import TopicLog
from flinkcore.operators.keys.element_rows import element_rows
from flinkcore.operators.records.stream_elements import StreamRecord, WatermarkStatus
from flinkcore.operators.timers.processing_time import ProcessingTimeService
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.time_pass import time_planes_of
from flinkcore.time_plane.timeline import TimePlane
from flinkcore.time_plane.total_order import TimelineEvents, TotalOrderMerge

SPLITS: Final = "flinkcore.splits"
"""Name of the state in a checkpoint that has, of each split, its value and its `SplitWatermark`."""

FILTERED: Final = object()
"""Value of an event that a filter behind the watermarks has taken out: it still moves them."""

Event = tuple[int, int, Any, int]
"""Arrival and split of an event, its row and its timestamp."""


@dataclass(frozen=True)
class LogReading:
    """Columnar reading of a log: planned, with its arrivals known.

    Attributes
    ----------
    plan : LogPlan
        To where watermarks are made.
    after : tuple of ColumnOp
        Operations on the columns afterwards.
    strategy : WatermarkStrategy or None
    time_plane : TimePlane
    values : TopicValues or None
        Makes elements of the records of a topic, or None where elements are rows.
    watermark_buffer_size : int
        Age of the watermarks that alignment compares, in updates.
    """

    plan: LogPlan
    after: tuple[ColumnOp, ...]
    strategy: WatermarkStrategy | None
    time_plane: TimePlane
    values: TopicValues | None = None
    watermark_buffer_size: int = 0

    @classmethod
    def of(
        cls,
        step: Transformation,
        configuration: ExecutionConfig,
        log: EventLogSource | None = None,
        *,
        cut: TimeCut | None = None,
        stops: bool = False,
    ) -> LogReading:
        """Plan the reading of a log up to a step, and read its times.

        Parameters
        ----------
        step : Transformation
        configuration : ExecutionConfig
        log : EventLogSource, optional
            Log that is read instead of the one with which the step begins.
        cut : TimeCut, optional
            Cut at which the log resumes from a checkpoint, or None for its start.
        stops : bool
            Whether the job stops with a checkpoint.

        Raises
        ------
        ConfigurationError, SchemaError, SourceError, DataError
            As for a replay of the log.
        """
        plan, after, strategy = cls._planned(step, configuration, log)
        plan = plan if cut is None else plan.resumed_from(cut)
        timed = replace(plan, strategy=WatermarkStrategy.no_watermarks())
        cuts = [] if cut is None else [cut]
        (time_plane,) = time_planes_of([timed], [_chunks(timed)], 1, cuts=cuts, stops=stops)
        values = None
        if isinstance(source := next(step.in_order()), TopicSource):
            is_declared = source.type_info != source.deserializer.get_produced_type()
            declared = source.type_info if is_declared else None
            values = TopicValues(source.shown_topics, source.deserializer, declared)
        buffer_size = configuration.get_watermark_alignment_buffer_size()
        return cls(plan, after, strategy, time_plane, values, buffer_size)

    @classmethod
    def plan_of(cls, step: Transformation, configuration: ExecutionConfig) -> LogPlan:
        """Return the plan of a log up to a step; errors as of `of`."""
        return cls._planned(step, configuration, None)[0]

    @staticmethod
    def _planned(
        step: Transformation, configuration: ExecutionConfig, log: EventLogSource | None
    ) -> tuple[LogPlan, tuple[ColumnOp, ...], WatermarkStrategy | None]:
        source, *steps = step.in_order()
        source = source if log is None else log
        assert isinstance(source, EventLogSource)
        of_topic = source if isinstance(source, TopicSource) else None
        if of_topic is not None:
            source, steps = of_topic.reading(configuration.get_arrival_rate())
        assigned = [
            at for at, each in enumerate(steps) if isinstance(each, TimestampsAndWatermarksTransformation)
        ]
        until = assigned[0] + 1 if assigned else len(steps)
        before, after = steps[:until], tuple(column_op(each) for each in steps[until:])
        strategy = None
        if assigned:
            assigning = before[-1]
            assert isinstance(assigning, TimestampsAndWatermarksTransformation)
            strategy = assigning.strategy
            _refuse(strategy, after)
            if configuration.is_batch():
                refuse_alignment_in_batch_mode(strategy)
            if strategy.timestamp_assigner is not None:
                source = replace(source, log=replace(source.log, checked_units=("arrival",)))
            # These concern single elements, and have no part in reading the log.
            read_with = replace(strategy, timestamp_assigner=None, alignment_parameters=None)
            before[-1] = replace(assigning, strategy=read_with)
        plan = plan_of_log(source, tuple(before), KeyColumns(), Forward(), configuration)
        if of_topic is not None and strategy is not None:
            _require_timestamps(plan, strategy)
        return plan, with_nested_columns(after, plan.data_schema()), strategy

    @property
    def arrival_range(self) -> tuple[int, int] | None:
        """The first and the last arrival; None if there is no event."""
        return self.time_plane.splits.arrival_range if self.time_plane.events else None

    def events(self, output: TaskOutput) -> Iterator[Event]:
        """Yield the events in total order; rejected rows go to their side output as they are found."""
        reader = ChunkReader(self.plan, self.time_plane)
        reading = ChunksByArrival([reader], _chunks(self.plan))
        merge = TotalOrderMerge(self.time_plane.timeline, held_bytes=self.plan.held_bytes)
        with closing(reading), closing(merge):
            rows_read = rows_held = 0
            for (read,) in reading.batches:
                rows_read += read.rows_read
                merge.add(read.events)
                for rejected in read.side_outputs:
                    assert rejected.tag is not None
                    for rows in rejected.batches:
                        for row in element_rows(rows):
                            output.collect_side(rejected.tag, StreamRecord(row))
                # Overlapping events are merged in large pieces: each costs a look at all events that are held.
                if rows_read >= rows_held or merge.is_full:
                    yield from self._ordered(merge, reading.floor_ms)
                    rows_read, rows_held = 0, merge.rows_in_memory
            yield from self._ordered(merge, None)

    def _ordered(self, merge: TotalOrderMerge, floor: int | None) -> Iterator[Event]:
        for events, rows in merge.release(floor):
            ordered = events if rows is None else events.take(rows)
            found = zip(
                ordered.arrivals.tolist(),
                ordered.splits.tolist(),
                self._values(ordered),
                self._timestamps(ordered),
                strict=True,
            )
            yield from (
                found if self.values is None else (event for event in found if event[2] is not LEFT_OUT)
            )

    def _timestamps(self, events: TimelineEvents) -> Iterable[int]:
        source = self.plan.log.source
        if isinstance(source, TopicLog) and source.without_timestamps is not None:
            return repeat(NO_TIMESTAMP, len(events.timestamps))
        timestamps: list[int] = events.timestamps.tolist()
        return timestamps

    def _values(self, events: TimelineEvents) -> Iterable[Any]:
        batch = events.batch
        if self.values is not None:
            splits = self.time_plane.split_values
            return self.values.elements(batch, [splits[split] for split in events.splits.tolist()])
        left = np.arange(batch.num_rows)
        for operation in self.after:
            batch, kept = operation.apply(batch)
            left = left if kept is None else left[kept]
        if len(left) == events.batch.num_rows:
            return element_rows(batch)
        values: list[Any] = [FILTERED] * events.batch.num_rows
        for at, row in zip(left.tolist(), element_rows(batch), strict=True):
            values[at] = row
        return values


def _chunks(plan: LogPlan) -> list[Chunk]:
    """The chunks of the log, which both passes read."""
    return plan.log.chunks(1, Packing(plan.packed_bytes))


def _require_timestamps(plan: LogPlan, strategy: WatermarkStrategy) -> None:
    """Accept a strategy that takes the timestamps of records if they have some."""
    source = plan.log.source
    assert isinstance(source, TopicLog)
    if source.without_timestamps is not None and plan.log.until_ms is not None:
        raise ConfigurationError(
            f"the dump of topic {source.without_timestamps!r} has no timestamps, and cannot be cut at one. Give a dump "
            "that ends where the job is to stop"
        )
    if source.without_timestamps is None or strategy.timestamp_assigner is not None:
        return
    if strategy.out_of_orderness_ms is not None or strategy.generator_supplier is not None:
        raise ConfigurationError(
            f"this strategy takes the timestamps of records: {strategy}. The dump of topic "
            f"{source.without_timestamps!r} has none. Give the strategy with_timestamp_assigner(...), or a dump with "
            "timestamps, such as Parquet with the columns value, partition, offset and timestamp"
        )


def _refuse(strategy: WatermarkStrategy, after: tuple[ColumnOp, ...]) -> None:
    if strategy.timestamp_assigner is not None and after:
        raise ConfigurationError(
            "steps over columns come after assign_timestamps_and_watermarks with a TimestampAssigner, which is called "
            "for rows: put select, with_columns and filters of expressions before it"
        )


class LogArrivals(Origin):
    """The events of a log, in total order.

    Parameters
    ----------
    number : int
        Number of the origin in the job.
    reading : LogReading
    output : TaskOutput
        Output of the log's operator.
    clock : ProcessingTimeService
        Clock of the task, showing the start of the job.
    end_ms : int
        When the log ends: all logs of a job do at the same time.
    finish : callable
        Called when the last watermark has gone.
    is_batch : bool
        Whether there is no watermark before the last.
    restored : RestoredSplits, optional
        State from which the watermarks of the splits resume, or None at their beginning.
    align : callable, optional
        Aligns the splits by their watermarks, if their strategy says so.
    """

    def __init__(
        self,
        number: int,
        reading: LogReading,
        output: TaskOutput,
        clock: ProcessingTimeService,
        end_ms: int,
        finish: Callable[[], None],
        is_batch: bool = False,
        restored: RestoredSplits | None = None,
        align: Callable[[SplitWatermarks, int], AlignedSplits | None] = lambda watermarks, n_splits: None,
    ) -> None:
        self.number = number
        self._output = output
        self._reading = reading
        self._finish = finish
        self._watermarks: SplitWatermarks | None = None
        self._aligned: AlignedSplits | None = None
        collect = _collect_kept(output.collect) if reading.after else output.collect
        splits = reading.time_plane.split_values
        self._processes: list[ElementCall] = [collect for _ in splits]
        if reading.strategy is not None:
            names = [None if value is None else str(value) for value in splits]
            self._watermarks = SplitWatermarks(
                replace(reading.strategy, timestamp_column=None),
                names,
                output,
                clock,
                reading.plan.auto_watermark_interval_ms,
                collect,
                is_batch,
                restored,
            )
            if restored is not None and restored.is_idle:
                # Readers of the output were restored as idle, and must be notified when that ends.
                output.emit_watermark_status(WatermarkStatus.IDLE)
                if not self._watermarks.is_idle:
                    output.emit_watermark_status(WatermarkStatus.ACTIVE)
            self._aligned = align(self._watermarks, len(splits))
            process = self._watermarks.process if self._aligned is None else self._aligned.process
            self._processes = [process(number) for number in range(len(splits))]
        self._record: StreamRecord[Any] = StreamRecord(None)
        self._end_ms = end_ms
        self._events = reading.events(output)
        self._next: Event | None = None
        self.next_arrival_ms: int | None = end_ms
        self.at_end = True
        self._take()

    def _take(self) -> None:
        self._next = next(self._events, None)
        self.at_end = self._next is None
        self.next_arrival_ms = self._end_ms if self._next is None else self._next[0]

    def goes_beyond(self, place: tuple[int, int]) -> bool:
        return self._next is not None and (self._next[0], self.number) > place

    def emit(self) -> None:
        """Emit the next event, or the end."""
        if self._next is None:
            self.end()
            return
        _, split, value, timestamp = self._next
        record = self._record
        record.value, record.timestamp = value, timestamp
        self._processes[split](record)
        self._take()
        if self._next is None and self._aligned is not None:
            self._aligned.finish()

    def snapshot(self, is_amid: bool) -> SourceSnapshot:
        cut = self._reading.time_plane.cut
        assert cut is not None
        if self._watermarks is None:
            return SourceSnapshot(OperatorSnapshot(time_plane=cut.to_table()), False, self.has_ended)
        splits, watermark_ms = self._watermarks.snapshot()
        values = self._reading.time_plane.split_values
        states = [
            [value, split.generator, split.watermark_ms, split.is_idle, *split.channel]
            for value, split in zip(values, splits, strict=True)
        ]
        snapshot = OperatorSnapshot(
            watermark_ms=watermark_ms,
            operator_state={SPLITS: broadcast_state(states)},
            time_plane=cut.to_table(),
        )
        return SourceSnapshot(snapshot, self._watermarks.is_idle, self.has_ended)

    def emit_all(self, clock: JobClock) -> Iterator[None]:
        """Emit all events, each at its time, and pause now and then."""
        if self._next is not None:
            yield from self._emit_events(clock)
            if self._aligned is not None:
                self._aligned.finish()
        clock.fire_before(self._end_ms)
        clock.end(self._end_ms, self.number)
        self.end()

    def _emit_events(self, clock: JobClock) -> Iterator[None]:
        record, processes = self._record, self._processes
        assert self._next is not None
        until_stop = ELEMENTS_AT_ONCE
        self._emit_first(clock)
        for arrival_ms, split, value, timestamp in self._events:
            if clock.next_due_ms < arrival_ms:
                clock.fire_before(arrival_ms)
            clock.now_ms = arrival_ms
            record.value = value
            record.timestamp = timestamp
            processes[split](record)
            until_stop -= 1
            if until_stop == 0:
                yield
                until_stop = ELEMENTS_AT_ONCE

    def _emit_first(self, clock: JobClock) -> None:
        assert self._next is not None
        arrival_ms, split, value, timestamp = self._next
        clock.fire_before(arrival_ms)
        clock.now_ms = arrival_ms
        self._record.value, self._record.timestamp = value, timestamp
        self._processes[split](self._record)
        self._next = None

    def end(self) -> None:
        if self._aligned is not None:
            self._aligned.finish()
        self.next_arrival_ms, self.at_end = None, False
        if self._watermarks is None or not self._processes:
            end_input(self._output)
        else:
            for split in range(len(self._processes)):
                self._watermarks.finish(split)
        self._finish()

    def close(self) -> None:
        """Close the files."""
        self._events.close()  # type: ignore[attr-defined]
        if self._aligned is not None:
            self._aligned.close()
        if self._watermarks is not None:
            self._watermarks.close()


def _collect_kept(collect: ElementCall) -> ElementCall:
    def collect_kept(record: StreamRecord[Any]) -> None:
        if record.value is not FILTERED:
            collect(record)

    return collect_kept

"""Replays in one process, without a JVM: threads over ranges of key groups; the kernels hold no GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.exchange import partition_rows
from flinkcore._native.key_groups import key_groups
from flinkcore._native.keys import KeyEncoder
from flinkcore.common import MIN_TIMESTAMP, ExecutionConfig, OutputTag
from flinkcore.datastream.transformations import StreamGraph
from flinkcore.replay.map_stage import MapStage
from flinkcore.replay.plan import ReplayPlan, make_plan
from flinkcore.replay.progress import ProgressListener, ProgressMeter
from flinkcore.replay.report import ReplayReport
from flinkcore.replay.result import EmbeddedResult, Output
from flinkcore.replay.time_pass import time_plane_of
from flinkcore.replay.timeline import TimePlane
from flinkcore.replay.total_order import Events, RowNumbers, TotalOrderMerge
from flinkcore.replay.window_stage import WindowStage

ITEMS_AHEAD = 4


@dataclass
class Prepared:
    """Ordered events with their keys encoded, and the rows of each partition."""

    events: Events
    columns: RecordBatch
    keys: KeyEncoder
    rows: list[RowNumbers | None]


class EmbeddedReplay:
    """One replay of a plan in this process.

    Parameters
    ----------
    plan
        The job.
    parallelism
        Number of threads, each with its range of key groups.
    progress
        Told how far the replay has come.
    """

    def __init__(self, plan: ReplayPlan, parallelism: int, progress: ProgressListener | None) -> None:
        self._plan = plan
        self._parallelism = min(parallelism, plan.max_parallelism)
        self._progress = progress
        self._chunks = plan.log.chunks(self._parallelism)
        self._schema = plan.data_schema()
        self._native_columns = plan.native_columns()
        self._idle_encoders: list[KeyEncoder] = []
        self.report = ReplayReport()

    def run(self) -> Iterator[Output]:
        """Run the replay; results and side outputs as they come, `report` is complete at the end.

        The order of the rows depends on the parallelism alone.
        """
        plan = self._plan
        time_plane = time_plane_of(plan, self._chunks, self._parallelism)
        self.report = ReplayReport()
        self.report.add_time_plane(plan, time_plane)
        stages = [
            WindowStage(plan, self._schema, plan.time_type(), time_plane.timeline)
            for _ in range(self._parallelism)
        ]
        meter = ProgressMeter(time_plane.rows_read, self._progress)
        refused: deque[Output] = deque()
        ordered = self._ordered(time_plane, refused, meter)
        yield Output(None, [_empty(stages[0].schema)])
        running = (
            self._threads(ordered, stages) if self._parallelism > 1 else self._one_thread(ordered, stages[0])
        )
        for output in running:
            yield output
            while refused:
                yield refused.popleft()
        for stage in stages:
            yield Output(None, stage.finish())
            self.report.add_windows(stage.counts())
        yield from refused
        self.report.check()

    def _ordered(
        self, time_plane: TimePlane, refused: deque[Output], meter: ProgressMeter
    ) -> Iterator[tuple[Events, RowNumbers | None]]:
        """All events in total order; what is still to come bounds what is held back."""
        stage = MapStage(self._plan, time_plane)
        merge = TotalOrderMerge()
        for chunk in self._chunks:
            rows_read = 0
            for mapped in stage.read(chunk):
                self.report.add_read(
                    events_read=mapped.events_read, filtered=mapped.filtered, rejected=mapped.rejected
                )
                if mapped.rejected_rows:
                    assert isinstance(self._plan.log.on_bad_row, OutputTag)
                    refused.append(Output(self._plan.log.on_bad_row, mapped.rejected_rows))
                rows_read += mapped.events_read
                merge.add(mapped.events)
                yield from merge.release(time_plane.floors.after(chunk.index, rows_read))
                meter.advance(mapped.events_read, self._event_time_reached(time_plane, mapped.events))
        yield from merge.release(None)

    @staticmethod
    def _event_time_reached(time_plane: TimePlane, events: Events) -> int:
        if len(events.arrivals) == 0:
            return MIN_TIMESTAMP
        return int(time_plane.current_watermark(events.arrivals[-1]))

    def _prepare(self, events: Events, rows: RowNumbers | None) -> Prepared:
        narrow = events.batch.select(self._native_columns)
        columns = RecordBatch(narrow)
        keys = (
            self._idle_encoders.pop()
            if self._idle_encoders
            else KeyEncoder(self._schema, list(self._plan.keys))
        )
        keys.encode_batch(columns)
        if self._parallelism == 1:
            return Prepared(events, columns, keys, [rows])
        groups = key_groups(narrow.select(list(self._plan.keys)), self._plan.max_parallelism)
        order, bounds = partition_rows(groups, self._plan.max_parallelism, self._parallelism, rows)
        return Prepared(
            events, columns, keys, [order[bounds[p] : bounds[p + 1]] for p in range(self._parallelism)]
        )

    def _outputs(self, done: tuple[list[pa.RecordBatch], pa.RecordBatch | None]) -> Iterator[Output]:
        results, late = done
        if results:
            yield Output(None, results)
        if late is not None:
            yield Output(self._plan.late_tag, [late])

    def _finished(self, item: Prepared, tasks: list[Future[Any]]) -> Iterator[Output]:
        done = [task.result() for task in tasks]
        self._idle_encoders.append(item.keys)
        for outputs in done:
            yield from self._outputs(outputs)

    def _one_thread(
        self, ordered: Iterable[tuple[Events, RowNumbers | None]], stage: WindowStage
    ) -> Iterator[Output]:
        for events, rows in ordered:
            item = self._prepare(events, rows)
            done = stage.process(item.events, item.columns, item.keys, item.rows[0])
            self._idle_encoders.append(item.keys)
            yield from self._outputs(done)

    def _threads(
        self, ordered: Iterable[tuple[Events, RowNumbers | None]], stages: list[WindowStage]
    ) -> Iterator[Output]:
        # One thread per partition keeps its events in order; outputs are taken batch by batch, partition by partition.
        workers = [ThreadPoolExecutor(1, thread_name_prefix=f"flinkcore-{p}") for p in range(len(stages))]
        in_flight: deque[tuple[Prepared, list[Future[Any]]]] = deque()
        try:
            for item in _ahead(self._prepare(events, rows) for events, rows in ordered):
                tasks = [
                    worker.submit(stage.process, item.events, item.columns, item.keys, rows)
                    for worker, stage, rows in zip(workers, stages, item.rows, strict=True)
                ]
                in_flight.append((item, tasks))
                if len(in_flight) > ITEMS_AHEAD:
                    yield from self._finished(*in_flight.popleft())
            while in_flight:
                yield from self._finished(*in_flight.popleft())
        finally:
            for worker in workers:
                worker.shutdown(wait=True, cancel_futures=True)


def _ahead(items: Iterator[Prepared]) -> Iterator[Prepared]:
    """The same items, made by a thread of their own, a few ahead."""
    queue: Queue[Prepared | BaseException | None] = Queue(ITEMS_AHEAD)
    stopped = Event()

    def put(item: Prepared | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                queue.put(item, timeout=0.1)
                return True
            except Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(None)
        except BaseException as error:  # raised again where the items are used
            put(error)

    thread = Thread(target=produce, name="flinkcore-reader", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class EmbeddedExecutor:
    """Runs jobs in this process; the executor of `StreamExecutionEnvironment` unless another is asked for."""

    name = "embedded"
    makes_dataframes = False

    def execute(
        self, graph: StreamGraph, configuration: ExecutionConfig, progress: ProgressListener | None = None
    ) -> EmbeddedResult:
        """Plan a job; it runs when its result is asked for.

        Parameters
        ----------
        graph
            The job.
        configuration
            Parallelism (threads; by default one per core), number of key groups, auto-watermark interval.
        progress
            Told how far the replay has come.
        """
        plan = make_plan(graph, configuration)
        parallelism = configuration.get_parallelism()
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            parallelism = os.cpu_count() or 1
        return EmbeddedResult(plan, lambda: EmbeddedReplay(plan, parallelism, progress))

"""The events of the logs of a job in one total order, read in one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints, StoppingJob
from flinkcore.columnar.local.partition_threads import STEPS_AHEAD
from flinkcore.columnar.local.stage_run import StageStep
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader
from flinkcore.columnar.replay.chunks_by_arrival import ChunksByArrival
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.total_order import MERGED_ROWS, LogEvents, TimelineEvents, TotalOrderMerge

_STEPS_IN_BATCH: Final = 8
"""Batches are joined to steps of at least this part of the rows of a full one: each step has its costs."""

_STEPS_OF_REPLAY: Final = 64
"""Steps have no more than this part of all rows only because batches are joined."""


class _Reading(ChunksByArrival):
    """Progress of reading a log, for all of its uses."""

    def __init__(
        self,
        logs: Sequence[int],
        readers: Sequence[ChunkReader],
        chunks: Sequence[Chunk],
        in_log_order: bool,
    ) -> None:
        super().__init__(readers, chunks, in_log_order)
        self.logs = logs
        self.readers = readers


class _Release(NamedTuple):
    """Events that an operator can take, and the lower bound of the arrivals that come to it later."""

    ready: list[tuple[TimelineEvents, RowNumbers | None]]
    until_ms: int


class LogMerge:
    """Reads the logs of a job, always the one that is least advanced; a log with several uses is read once.

    Parameters
    ----------
    plan
        The job.
    time
        Time of its logs.
    chunks
        Chunks of each log; those of logs that are read together are the same.
    inputs
        Columns of connected streams, for each operator; None for one with a single input.
    partitions
        Number of partitions of each operator.
    report
        Counts what is read.
    checkpoints
        The one that the replay is restored from, in which events of paused splits may wait.
    stopping
        The one with which it stops, which takes those that wait for the next run.
    """

    def __init__(
        self,
        plan: JobPlan,
        time: JobTime,
        chunks: Sequence[Sequence[Chunk]],
        inputs: Sequence[ConnectedInputs | None],
        partitions: Sequence[int],
        report: ReplayReport,
        checkpoints: JobCheckpoints,
        stopping: StoppingJob,
    ) -> None:
        self._plan = plan
        self._time = time
        self._stopping = stopping
        self._inputs = inputs
        self._report = report
        logs = range(len(plan.logs))
        planes = time.time_planes
        # Events of one split never go back: none that is still to come precedes those read.
        self._is_in_order = time.first_splits[-1] == 1 and not any(log.by_arrival for log in planes)
        # Events that wait for the next log are written in the order of their splits.
        in_log_order = self._is_in_order or any(log.paused.outlast_log for log in planes)
        writers = ((log, stopping.waiting_rows(log)) for log in logs)
        self._waiting = {log: writer.part(0) for log, writer in writers if writer is not None}
        # Waiting events come before the rest of their log.
        before = [((log,), of_log) for log in logs if (of_log := checkpoints.waiting_of(log))]
        self._readings = [
            _Reading(together, [self._reader(log) for log in together], of_logs, in_log_order)
            for together, of_logs in [*before, *((each, chunks[each[0]]) for each in plan.ways)]
        ]
        # So that threads may read several steps ahead of wide rows, too. One thread alone reads no step ahead.
        self._step_bytes = {
            number: max(1, stage.batch_bytes // (STEPS_AHEAD if partitions[number] > 1 else 1))
            for number, stage in enumerate(plan.stages)
            if stage.logs
        }
        self._merges = {
            number: TotalOrderMerge(
                time.timelines[number], most_bytes=most_bytes, held_bytes=plan.logs[0].held_bytes
            )
            for number, most_bytes in self._step_bytes.items()
        }
        all_rows = sum(log.rows_read for log in planes)
        self._least_rows = min(plan.logs[0].batch_rows // _STEPS_IN_BATCH, all_rows // _STEPS_OF_REPLAY)
        self._until_ms = dict.fromkeys(self._merges, MIN_TIMESTAMP)

    def _reader(self, log: int) -> ChunkReader:
        time, waiting = self._time, self._waiting.get(log)
        return ChunkReader(self._plan.logs[log], time.time_planes[log], time.first_splits[log], waiting)

    def steps(self) -> Generator[dict[int, StageStep[TimelineEvents]], None, None]:
        """Yield steps of all operators that take logs, by number; the first one's step has what was read and rejected.

        Events come in total order; what is still to come bounds what is held back.
        """
        with ExitStack() as opened:
            parts = [opened.enter_context(part) for part in self._waiting.values()]
            for reading in self._readings:
                opened.callback(reading.close)
            for merge in self._merges.values():
                opened.callback(merge.close)
            yield from self._steps()
            self._stopping.add(written for part in parts if (written := part.written()) is not None)
        for reading in self._readings:
            for log, reader in zip(reading.logs, reading.readers, strict=True):
                self._report.add_log(reader.counts, self._plan.stage_of_log(log))

    def _steps(self) -> Iterator[dict[int, StageStep[TimelineEvents]]]:
        reading = list(self._readings)
        side_outputs: list[StageOutput] = []
        rows_read = rows_held = 0
        while reading:
            behind = min(reading, key=attrgetter("floor_ms"))
            read = next(behind.batches, None)
            if read is None:
                reading.remove(behind)
                continue
            for log, of_way in zip(behind.logs, read, strict=True):
                self._add(log, of_way.events)
            side_outputs += [output for of_way in read for output in of_way.side_outputs]
            rows_read += sum(of_way.rows_read for of_way in read)
            # Overlapping events are merged in large pieces: each costs a look at all events that are held.
            if rows_read < max(rows_held, self._least_rows) and not self._is_full():
                continue
            until_ms = min(each.floor_ms for each in reading)
            yield from self._released(until_ms, self._is_in_order, side_outputs, rows_read)
            side_outputs, rows_read = [], 0
            rows_held = sum(merge.rows_in_memory for merge in self._merges.values())
        yield from self._released(MAX_TIMESTAMP, True, side_outputs, rows_read)
        yield {number: StageStep([], None) for number in self._merges}

    def _is_full(self) -> bool:
        return any(merge.is_full for merge in self._merges.values())

    def _released(
        self, until_ms: int, all_rows: bool, outputs: Sequence[StageOutput], rows_read: int
    ) -> Iterator[dict[int, StageStep[TimelineEvents]]]:
        """Yield steps with the events that arrive before a time, or all; the first one has the other outputs."""
        left = {
            number: self._releases(number, until_ms, None if all_rows else until_ms)
            for number in self._merges
        }
        first = min(left)
        while left:
            released = {number: next(releases, None) for number, releases in left.items()}
            left = {number: left[number] for number, release in released.items() if release is not None}
            if left:
                steps = {
                    number: StageStep([], self._until_ms[number])
                    if (release := released.get(number)) is None
                    else StageStep(release.ready, release.until_ms)
                    for number in self._merges
                }
                steps[first] = replace(steps[first], outputs=outputs, events_read=rows_read)
                yield steps
                outputs, rows_read = (), 0

    def _releases(self, number: int, until_ms: int, before_ms: int | None) -> Iterator[_Release]:
        """Yield what an operator can take, so many rows and bytes at once; the last one goes up to the time."""
        ready: list[tuple[TimelineEvents, RowNumbers | None]] = []
        n_rows = n_bytes = 0
        for events, rows in self._merges[number].release(before_ms):
            of_part = events.n_events if rows is None else len(rows)
            bytes_of_part = events.batch_bytes * of_part // events.n_events
            if ready and (
                n_rows + of_part > MERGED_ROWS or n_bytes + bytes_of_part > self._step_bytes[number]
            ):
                # Others may arrive together with the last one.
                last_events, last_rows = ready[-1]
                last = -1 if last_rows is None else int(last_rows[-1])
                yield _Release(ready, self._bound(number, int(last_events.arrivals[last])))
                ready, n_rows, n_bytes = [], 0, 0
            ready.append((events, rows))
            n_rows += of_part
            n_bytes += bytes_of_part
        yield _Release(ready, self._bound(number, until_ms))

    def _bound(self, number: int, until_ms: int) -> int:
        last_arrival_ms = self._time.last_arrival_ms
        if last_arrival_ms is not None:
            until_ms = min(until_ms, last_arrival_ms)  # the end has its own order
        self._until_ms[number] = max(self._until_ms[number], until_ms)
        return self._until_ms[number]

    def _add(self, log: int, events: LogEvents) -> None:
        taken_by = self._plan.stage_of_log(log)
        inputs = self._inputs[taken_by]
        if inputs is not None:
            events = inputs.widened(self._plan.stages[taken_by].input_of_log(log), events)
        self._merges[taken_by].add(events)

"""The events of the logs of a job in one total order, read in one process."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter

from flinkcore.columnar.checkpoint.job_checkpoint import JobCheckpoints, StoppingJob
from flinkcore.columnar.local.stage_run import StageStep
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.replay.chunk_reader import ChunkReader, ReadEvents, read_on_all_ways
from flinkcore.columnar.results.report import ReplayReport
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.log.sources.chunks import Chunk
from flinkcore.time_plane.job_time import JobTime
from flinkcore.time_plane.timeline import ArrivalFloors
from flinkcore.time_plane.total_order import LogEvents, TimelineEvents, TotalOrderMerge


class _Reading:
    """Progress of reading a log, for all of its uses; without floors, arrivals still to come are unknown."""

    def __init__(
        self,
        logs: Sequence[int],
        readers: Sequence[ChunkReader],
        chunks: Sequence[Chunk],
        floors: Sequence[ArrivalFloors],
    ) -> None:
        self.logs = logs
        self.readers = readers
        self.floor_ms = MIN_TIMESTAMP
        if floors:
            self.floor_ms = _least_floor(floors, chunks[0], 0) if chunks else MAX_TIMESTAMP
        self.batches = self._read(chunks, floors)

    def _read(
        self, chunks: Sequence[Chunk], floors: Sequence[ArrivalFloors]
    ) -> Iterator[tuple[ReadEvents, ...]]:
        for chunk in chunks:
            rows_read = 0
            for read in read_on_all_ways(self.readers, chunk):
                rows_read += read[0].rows_read
                if floors:
                    self.floor_ms = _least_floor(floors, chunk, rows_read)
                yield read


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
        # Events of one split never go back: none that is still to come precedes those read.
        self._is_in_order = time.first_splits[-1] == 1 and not any(log.by_arrival for log in time.time_planes)
        asks = not self._is_in_order or len(plan.logs) > 1 or len(plan.stages) > 1
        writers = ((log, stopping.waiting_rows(log)) for log in logs)
        self._waiting = {log: writer.part(0) for log, writer in writers if writer is not None}
        # Waiting events come before the rest of their log.
        before = [((log,), of_log) for log in logs if (of_log := checkpoints.waiting_of(log))]
        self._readings = [
            _Reading(
                together,
                [self._reader(log) for log in together],
                of_logs,
                [time.time_planes[log].floors for log in together] if asks else (),
            )
            for together, of_logs in [*before, *((each, chunks[each[0]]) for each in plan.ways)]
        ]

    def _reader(self, log: int) -> ChunkReader:
        time, waiting = self._time, self._waiting.get(log)
        return ChunkReader(self._plan.logs[log], time.time_planes[log], time.first_splits[log], waiting)

    def steps(self) -> Generator[dict[int, StageStep[TimelineEvents]], None, None]:
        """Yield steps of all operators that take logs, by number; the first one's step has what was read and rejected.

        Events come in total order; what is still to come bounds what is held back.
        """
        with ExitStack() as open_parts:
            parts = [open_parts.enter_context(part) for part in self._waiting.values()]
            yield from self._steps()
            self._stopping.add(written for part in parts if (written := part.written()) is not None)
        for reading in self._readings:
            for log, reader in zip(reading.logs, reading.readers, strict=True):
                self._report.add_log(reader.counts, self._plan.stage_of_log(log))

    def _steps(self) -> Iterator[dict[int, StageStep[TimelineEvents]]]:
        merges = {
            number: TotalOrderMerge(self._time.timelines[number], most_bytes=stage.batch_bytes)
            for number, stage in enumerate(self._plan.stages)
            if stage.logs
        }
        last_arrival_ms = self._time.last_arrival_ms
        reading = list(self._readings)
        while reading:
            behind = min(reading, key=attrgetter("floor_ms"))
            read = next(behind.batches, None)
            if read is None:
                reading.remove(behind)
                continue
            for log, of_way in zip(behind.logs, read, strict=True):
                self._add(log, of_way.events, merges)
            until = min(each.floor_ms for each in reading)
            until_ms = None if self._is_in_order else until
            if last_arrival_ms is not None:
                until = min(until, last_arrival_ms)  # the end has its own order
            steps = {
                number: StageStep(list(merge.release(until_ms)), until) for number, merge in merges.items()
            }
            side_outputs = [output for of_way in read for output in of_way.side_outputs]
            rows_read = sum(of_way.rows_read for of_way in read)
            first = min(steps)
            yield steps | {first: replace(steps[first], outputs=side_outputs, events_read=rows_read)}
        yield {number: StageStep(list(merge.release(None)), None) for number, merge in merges.items()}

    def _add(self, log: int, events: LogEvents, merges: dict[int, TotalOrderMerge]) -> None:
        taken_by = self._plan.stage_of_log(log)
        inputs = self._inputs[taken_by]
        if inputs is not None:
            events = inputs.widened(self._plan.stages[taken_by].input_of_log(log), events)
        merges[taken_by].add(events)


def _least_floor(floors: Sequence[ArrivalFloors], chunk: Chunk, rows_read: int) -> int:
    """Return the lower bound of the arrivals still to come, over all uses of a log."""
    found = [of_way.after(chunk.index, rows_read) for of_way in floors]
    return min([floor_ms for floor_ms in found if floor_ms is not None], default=MAX_TIMESTAMP)

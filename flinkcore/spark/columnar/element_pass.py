"""The element pass of a replay as Spark tasks: one task gets all times of a split, and calls its generator in order.

Rows of the shuffle, in the order in which a task reads them::

    slot      | partition | chunk  part | payload
    ----------+-----------+-------------+------------------------------------------
    where the | 3         | 0      0    | split, position, arrival, timestamp of the
    shuffle   | 3         | 0      1    | events of partition 3, as an Arrow stream
    puts it   | 3         | 1      0    | the last part of a chunk may have no events
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, fields, replace
from heapq import heapify, heapreplace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.column_ipc import read_columns, write_columns
from flinkcore.errors import InternalError
from flinkcore.log.sources.chunks import Chunk
from flinkcore.spark.exchange.collecting import collected_in_parts
from flinkcore.spark.exchange.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.exchange.row_format import RowFormat, row_values
from flinkcore.spark.logs.log_input import ChunkSource, LogInput, ReadingTimes
from flinkcore.spark.shipping.tasks import portable
from flinkcore.time_plane.element_pass import (
    ElementPass,
    PlacedTimes,
    read_placed_times,
    with_emissions,
)
from flinkcore.time_plane.element_pass import run_element_pass as element_pass_here
from flinkcore.time_plane.emissions import RUN_ROWS, EmissionRuns, Emissions
from flinkcore.time_plane.split_operator import SplitStates
from flinkcore.time_plane.time_cut import TimeCut
from flinkcore.time_plane.timed_log import TimedLog
from flinkcore.time_plane.timeline import TimePlane

PART_ROWS = 1 << 20
"""Events of a chunk that are sent at a time, in a row for each partition."""

_TIMES = RowFormat("slot int, partition int, chunk int, part int, payload binary")
_EMISSIONS = RowFormat("run long, partition int, last boolean, payload binary")


@dataclass(frozen=True)
class DealTask:
    """Reads the times of chunks, and distributes them by split; picklable.

    Attributes
    ----------
    timed
        The log.
    source
        Gives the task its chunks, and the times of the columnar pass.
    partition_of
        Shape (n_splits,): the partition of each split.
    slots
        For each partition, its slot in the shuffle.
    part_rows
        Least number of events that are sent at a time.
    """

    timed: TimedLog
    source: ChunkSource
    partition_of: npt.NDArray[np.int32]
    slots: tuple[int, ...]
    part_rows: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the shuffle for the chunks of the task."""
        for group in self.source.of_task(batches):
            (time_plane,) = group.about.time_planes
            for chunk in group.chunks:
                yield from self._of_chunk(chunk, time_plane)

    def _of_chunk(self, chunk: Chunk, time_plane: TimePlane) -> Iterator[pa.RecordBatch]:
        part, rows, held = 0, 0, list[PlacedTimes]()
        for times in read_placed_times(self.timed, time_plane, chunk):
            held.append(times)
            rows += len(times.split)
            if rows >= self.part_rows:
                yield self._dealt(chunk.index, part, held)
                part, rows, held = part + 1, 0, []
        yield self._dealt(chunk.index, part, held)

    def _dealt(self, chunk: int, part: int, held: list[PlacedTimes]) -> pa.RecordBatch:
        times = PlacedTimes.concatenate(held)
        partitions = self.partition_of[times.split]
        payloads = [
            _packed(times.take(np.flatnonzero(partitions == partition)))
            for partition in range(len(self.slots))
        ]
        n = len(self.slots)
        return _TIMES.batch(self.slots, range(n), [chunk] * n, [part] * n, payloads)


def _packed(times: PlacedTimes) -> bytes:
    columns = {column.name: getattr(times, column.name) for column in fields(times)}
    return write_columns("PlacedTimes", {}, columns)


def _unpacked(payload: bytes) -> PlacedTimes:
    _, columns = read_columns("PlacedTimes", payload)
    return PlacedTimes(**{name: column.to_numpy() for name, column in columns.items()})


@dataclass(frozen=True)
class GeneratorTask:
    """Calls the generators of the splits of a partition; picklable.

    Attributes
    ----------
    timed
        The log.
    time_plane
        Time plane of the columnar pass.
    partition_of
        Shape (n_splits,): the partition of each split.
    run_rows
        Most emissions of a row.
    cut
        Cut at which the log resumes from a checkpoint, or None for its start.
    stops
        Whether the job stops with a checkpoint.
    """

    timed: TimedLog
    time_plane: TimePlane
    partition_of: npt.NDArray[np.int32]
    run_rows: int
    cut: TimeCut | None = None
    stops: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with each partition's runs of emissions; its last row is marked, and has the splits' states."""
        for partition, rows in groupby(
            row_values(batches, "partition", "chunk", "payload"), key=lambda row: row[0]
        ):
            splits = np.flatnonzero(self.partition_of == partition)
            element_pass = ElementPass(
                self.timed.strategy,
                self.timed.auto_watermark_interval_ms,
                self.time_plane,
                splits.tolist(),
                self.run_rows,
                self.cut,
                self.stops,
            )
            number = partition << 32
            for emissions in self._runs(element_pass, splits, partition, rows):
                yield _EMISSIONS.row(number, partition, False, emissions.to_ipc())
                number += 1
            yield _EMISSIONS.row(number, partition, True, element_pass.states().to_ipc())

    def _runs(
        self,
        element_pass: ElementPass,
        splits: npt.NDArray[np.intp],
        partition: int,
        rows: Iterator[tuple[Any, ...]],
    ) -> Iterator[Emissions]:
        events, chunks = 0, set()
        for _, chunk, payload in rows:
            times = _unpacked(payload)
            yield from element_pass.add(times)
            events += len(times.split)
            chunks.add(chunk)
        expected = int(self.time_plane.splits.events[splits].sum())
        all_chunks = len(self.time_plane.starts.chunks)
        if events != expected or len(chunks) != all_chunks:
            raise InternalError(
                f"the times of {events:,} of {expected:,} events, from {len(chunks)} of {all_chunks} chunks, came "
                f"to partition {partition}"
            )
        yield from element_pass.finish()


def deal_out(events: npt.NDArray[np.int64], partitions: int) -> npt.NDArray[np.int32]:
    """Assign splits to partitions, so that all have about as many events.

    Parameters
    ----------
    events
        Shape (n_splits,): number of events of each split.
    partitions
        Number of partitions.

    Returns
    -------
    numpy.ndarray of int32, shape (n_splits,)
        The partition of each split. Starting with the largest split, each goes to the partition with the fewest events.
    """
    loads = [(0, partition) for partition in range(partitions)]
    heapify(loads)
    partition_of = np.zeros(len(events), np.int32)
    for split in np.argsort(-events, kind="stable").tolist():
        load, partition = loads[0]
        heapreplace(loads, (load + int(events[split]), partition))
        partition_of[split] = partition
    return partition_of


def run_element_pass(
    spark: Any,
    timed: TimedLog,
    time_plane: TimePlane,
    log: LogInput,
    partitions: int,
    cut: TimeCut | None = None,
) -> TimePlane:
    """Run the element pass; see `flinkcore.time_plane.element_pass.run_element_pass`.

    Parameters
    ----------
    spark
        The session.
    timed
        The log; its strategy has a generator of its own.
    time_plane
        Time plane of the columnar pass.
    log
        Input of the log's tasks.
    partitions
        Most tasks that call generators.
    cut
        Cut at which the log resumes from a checkpoint, or None for its start.

    Returns
    -------
    TimePlane
        With the timeline of the generators.
    """
    if time_plane.events == 0:  # but maybe in other logs of the replay
        return element_pass_here(timed, time_plane, (), cut)
    ends_at, time_plane = time_plane.cut, replace(time_plane, cut=None)
    partitions = min(partitions, len(time_plane.split_values))
    partition_of = deal_out(time_plane.splits.events, partitions)
    given = log.for_tasks(spark, ReadingTimes.of(time_plane))
    slots = tuple(partition_slots(partitions, chooses_partitions(given.dataframe)))
    deal = DealTask(timed, given.source, partition_of, slots, PART_ROWS)
    read = given.dataframe.mapInArrow(portable(spark, deal), _TIMES.struct_type)
    dealt = to_partitions(read, partitions, "slot")
    ordered = dealt.sortWithinPartitions("partition", "chunk", "part")
    stops = ends_at is not None
    task = GeneratorTask(timed, time_plane, partition_of, RUN_ROWS, cut, stops)
    emitted = ordered.mapInArrow(portable(spark, task), _EMISSIONS.struct_type)
    received, wanted, states = set[int](), set[int](), list[SplitStates]()
    with closing(EmissionRuns()) as runs, closing(collected_in_parts(emitted, "run")) as rows:
        for row in rows:
            received.add(row.run)
            if row.last:
                wanted.update(range(row.partition << 32, row.run + 1))
                states.append(SplitStates.from_ipc(bytes(row.payload)))
            else:
                runs.add(row.run, Emissions.from_ipc(bytes(row.payload)))
        complete = sum(run >> 32 << 32 == run for run in wanted)
        if complete != partitions or received != wanted:
            raise InternalError(
                f"{len(received)} of {len(wanted)} rows of {complete} of {partitions} partitions of the element pass "
                "came back from Spark"
            )
        return with_emissions(replace(time_plane, cut=ends_at), runs, cut, states)

"""One plan on Spark: the first pass once, then the data plane for each output that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore.errors import FlinkcoreError, SourceError
from flinkcore.replay.job_checkpoint import JobCheckpoints, StoppingJob
from flinkcore.replay.keyed_stage import keyed_stages
from flinkcore.replay.plan import ReplayPlan
from flinkcore.replay.progress import ProgressListener
from flinkcore.replay.report import ReplayReport
from flinkcore.replay.time_pass import TimePass
from flinkcore.replay.timeline import ArrivalFloors, Timeline, TimePlane
from flinkcore.runtime.checkpoint import PendingCheckpoint
from flinkcore.spark.blocks import SHUFFLE_ORDER, SHUFFLE_SCHEMA
from flinkcore.spark.element_pass import run_element_pass
from flinkcore.spark.log_input import DataFrameInput, FileInput, partitions_gone
from flinkcore.spark.map_task import BLOCK_ROWS, MapTask
from flinkcore.spark.packed_timeline import PackedTimeline
from flinkcore.spark.partitioning import chooses_partitions, partition_slots, to_partitions
from flinkcore.spark.progress import ProgressAddress, progress_of
from flinkcore.spark.reduce_task import ReduceTask, TaskOutput
from flinkcore.spark.shipping import portable
from flinkcore.spark.task_errors import told_plainly
from flinkcore.spark.task_outputs import TASK_ROW_SCHEMA
from flinkcore.spark.time_pass import run_time_pass


class SparkReplay:
    """A plan and the session that runs it.

    Parameters
    ----------
    spark
        The session.
    plan
        The job.
    log
        What the tasks read.
    dataframe
        Input of the tasks that read it: see `LogInput`.
    partitions
        Number of reduce tasks.
    progress
        Told how far the replay has come, while the driver waits for it.
    block_rows
        Most events of a block of the shuffle.
    checkpoints
        From which checkpoint it goes on, and with which it stops.
    """

    def __init__(
        self,
        spark: Any,
        plan: ReplayPlan,
        log: FileInput | DataFrameInput,
        dataframe: Any,
        partitions: int,
        progress: ProgressListener | None = None,
        block_rows: int = BLOCK_ROWS,
        checkpoints: JobCheckpoints | None = None,
    ) -> None:
        self.plan = plan
        self.checkpoints = JobCheckpoints(plan) if checkpoints is None else checkpoints
        self.partitions = partitions
        self._spark = spark
        self._log = log
        self._dataframe = dataframe
        self._progress = progress
        self._block_rows = block_rows

    @cached_property
    def _first_pass(self) -> tuple[TimePlane, FileInput | DataFrameInput]:
        time_pass = TimePass(self.plan, self.checkpoints.cut, self.checkpoints.stops)
        log, dataframe = self._log, self._read_dataframe
        if isinstance(log, DataFrameInput):
            log = replace(log, checked=tuple(self.plan.deciding_columns()))
        time_plane, fingerprints = run_time_pass(self._spark, time_pass, log, dataframe)
        if isinstance(log, DataFrameInput):
            log = replace(log, fingerprints=fingerprints)
        if time_pass.is_by_element:
            time_plane = run_element_pass(self._spark, self.plan, time_plane, log, dataframe, self.partitions)
        return time_plane, log

    @cached_property
    def _read_dataframe(self) -> Any:
        # Of a log that is a DataFrame both passes read the same columns, though the first needs fewer: of other columns
        # Spark makes another plan, which deals rows out otherwise (repartition(n) does, by a hash of the whole row).
        if not isinstance(self._log, DataFrameInput):
            return self._dataframe
        read = self.plan.reader(self.plan.data_columns()).columns_read
        return self._dataframe.select(*_quoted(dict.fromkeys([*self.plan.deciding_columns(), *read])))

    @property
    def time_plane(self) -> TimePlane:
        """The timeline of the log; runs the first pass when first asked for."""
        return self._first_pass[0]

    @property
    def result_schema(self) -> pa.Schema:
        """Columns of the results."""
        time_plane = self.time_plane
        return keyed_stages(
            self.plan, time_plane.timeline, time_plane.last_arrival_ms, self.partitions
        ).schema

    def begin(self) -> StoppingJob:
        """Begin the checkpoint of a run; see `JobCheckpoints.begin`."""
        stopping = self.checkpoints.begin()
        with ExitStack() as failing:
            failing.push(stopping)
            stopping.write_cut(self.time_plane.cut)
            failing.pop_all()
        return stopping

    def dataframe(
        self,
        output: TaskOutput,
        schema: Any,
        progress: ProgressAddress | None = None,
        pending: PendingCheckpoint | None = None,
    ) -> Any:
        """Return a DataFrame of what the reduce tasks make of their results; it runs when it is used."""
        time_plane, log = self._first_pass
        if not self._chunks and (self.checkpoints.operator is not None or pending is not None):
            raise SourceError(
                "the DataFrame has no partitions, so that no task can read or write the checkpoint: give it one, as "
                "with repartition(1)"
            )
        dataframe = self._read_dataframe
        map_task = MapTask(
            plan=self.plan,
            time_plane=_without_timeline(time_plane),
            log=log,
            partitions=self.partitions,
            slots=tuple(partition_slots(self.partitions, chooses_partitions(dataframe))),
            arrival_span_ms=_arrival_span_ms(time_plane),
            block_rows=self._block_rows,
            progress=progress,
        )
        blocks = dataframe.mapInArrow(portable(self._spark, map_task), SHUFFLE_SCHEMA)
        blocks = to_partitions(blocks, self.partitions, "slot").sortWithinPartitions(*SHUFFLE_ORDER)
        reduce_task = ReduceTask(
            self.plan,
            PackedTimeline.of(time_plane.timeline),
            time_plane.last_arrival_ms,
            self.partitions,
            self._chunks,
            self._recomputable,
            output,
            progress,
            self.checkpoints.operator,
            pending,
        )
        return blocks.mapInArrow(portable(self._spark, reduce_task), schema)

    def collect(self, output: TaskOutput, stopping: StoppingJob) -> list[Any]:
        """Run the data plane, and return the rows that tell what the reduce tasks did."""
        rows = self.time_plane.rows_read
        with told_plainly(), progress_of(self._spark, rows, self.partitions, self._progress) as progress:
            rows_of_tasks = self.dataframe(output, TASK_ROW_SCHEMA, progress, stopping.pending)
            collected: list[Any] = rows_of_tasks.collect()
        return collected

    @property
    def _recomputable(self) -> bool:
        return isinstance(self._log, DataFrameInput)

    @property
    def _chunks(self) -> int:
        return len(self.time_plane.starts.chunks)

    def report(self, counts: Iterable[bytes]) -> ReplayReport:
        """The checked report of a replay that ran to its end.

        Parameters
        ----------
        counts
            What the reduce tasks told at their ends.

        Raises
        ------
        SourceError
            If the log is a DataFrame that Spark has not computed alike each time.
        FlinkcoreError
            If not every event is accounted for.
        """
        report = ReplayReport()
        report.add_time_plane(self.plan, self.time_plane)
        told = {partition["partition"]: partition for partition in map(json.loads, counts)}
        chunks = set()
        for partition in told.values():
            report.add_counts(partition["counts"])
            for read in partition["read"]:
                chunks.add(read["chunk"])
                report.add_read(
                    events_read=read["events_read"], filtered=read["filtered"], rejected=read["rejected"]
                )
        # A DataFrame without partitions has no map tasks, and so nothing for any reduce task.
        partitions = self.partitions if self._chunks else 0
        if self._recomputable and not told and partitions:
            raise partitions_gone(0, self._chunks)
        if len(told) != partitions or len(chunks) != self._chunks:
            raise FlinkcoreError(
                f"{len(told)} of {partitions} partitions and {len(chunks)} of {self._chunks} chunks came "
                "back from Spark; this is a defect of flinkcore, the result must not be used"
            )
        report.check()
        return report


def _without_timeline(time_plane: TimePlane) -> TimePlane:
    # Map tasks place events in the total order; timeline and idle spans may be the larger part by far.
    none = np.empty(0, np.int64)
    return replace(
        time_plane,
        timeline=Timeline(none, none),
        splits=replace(time_plane.splits, idle_split=none, idle_from_ms=none, idle_to_ms=none),
        floors=ArrivalFloors(none, none, none),
        cut=None,
    )


def _arrival_span_ms(time_plane: TimePlane) -> float:
    splits = time_plane.splits
    live = splits.events > 0
    if not live.any():
        return 0.0
    span = float(np.max(splits.last_arrival_ms[live])) - float(np.min(splits.first_arrival_ms[live]))
    return span / time_plane.events


def _quoted(columns: Iterable[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in columns]

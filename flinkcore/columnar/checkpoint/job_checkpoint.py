"""The checkpoints of a replay: the one that it is restored from, and the one with which it stops."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from operator import attrgetter
from os import PathLike
from types import TracebackType
from typing import Any, Final

import numpy as np

from flinkcore._internal.io.stores import ENVIRONMENT, Stores, stores_of
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.checkpoint import Checkpoint, OperatorPart, OperatorSnapshot, PendingCheckpoint
from flinkcore.checkpoint.pending_checkpoint import PendingPart
from flinkcore.checkpoint.state_origin import JobOperator, StateOrigin, savepoint_start
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.columnar.operator_plans.operator_plan import OperatorTables
from flinkcore.columnar.operator_plans.window_contents import watermark_of_beginning
from flinkcore.columnar.plans.job_description import describe_job, refuse_changes
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.restored_operator import RestoredOperator
from flinkcore.common.generators.supplied_generators import supplied_generator
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.pipeline_executor import CheckpointSettings, RunTasks, SavepointStop
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.log.sources.log_sources import LogFiles
from flinkcore.log.topics.topic_log import TopicLog
from flinkcore.log.waiting_rows import PausedSplits, WaitingRows, waiting_table
from flinkcore.operators.records.copies import copied_strategy
from flinkcore.time_plane.stream_watermarks import held_back
from flinkcore.time_plane.time_cut import TimeCut, cuts_of_one_replay
from flinkcore.time_plane.total_order import LogEvents, concatenate

_TABLE_BYTES: Final = 32 << 20
"""A table of events that wait has about so many."""


@dataclass(frozen=True)
class JobCheckpoints:
    """The checkpoints of a job, the first of which has been read as far as the driver needs it.

    Parameters
    ----------
    plan : JobPlan
        The job, which reads its logs from the cut of the checkpoint on.
    restored : StateOrigin or None
        Checkpoint of flinkcore or savepoint of Flink that the job begins with.
    cuts : tuple of TimeCut
        Cuts of the checkpoint, by log; empty if the job begins with its logs.
    stop_path : path or None
        Where the job stops with a checkpoint.
    stores : Stores
        Settings of stores.
    waiting : tuple of tuple of WaitingRows
        For each log the events of paused splits that wait in the checkpoint: its first chunks.
    savepoint : SavepointStop or None
        Savepoint of Flink that is made of the checkpoint with which the job stops.
    """

    plan: JobPlan
    restored: StateOrigin | None = None
    cuts: tuple[TimeCut, ...] = ()
    stop_path: str | PathLike[str] | None = None
    waiting: tuple[tuple[WaitingRows, ...], ...] = ()
    stores: Stores = ENVIRONMENT
    savepoint: SavepointStop | None = None

    @classmethod
    def of(cls, plan: JobPlan, settings: CheckpointSettings) -> JobCheckpoints:
        """Open the checkpoint or the savepoint that a job is restored from.

        Raises
        ------
        ConfigurationError
            If the job is not the one of the checkpoint, or has a setting that checkpoints do not carry.
        CheckpointError
            If there is no checkpoint, or it is damaged, of a newer version, or contradicts itself or the job.
        """
        if settings.restore_from is None and settings.stop_with_checkpoint is None:
            return cls(plan)
        stores = stores_of(settings.stores)
        if settings.savepoint is not None:
            plan = _stopping_with_savepoint(plan)
        for log in plan.logs:
            _refuse_what_is_not_carried(log)
        refuse_different_cuts([log.log for log in plan.logs], settings)
        if settings.restore_from is None:
            return cls(
                plan, stop_path=settings.stop_with_checkpoint, stores=stores, savepoint=settings.savepoint
            )
        savepoint = savepoint_start(settings.restore_from, stores)
        if savepoint is not None:
            plan = _beginning_with_savepoint(plan, lambda stage: MIN_TIMESTAMP)
            origin = savepoint.origin([_job_operator(stage) for stage in plan.stages], stores)
            plan = _beginning_with_savepoint(plan, lambda stage: origin.watermark_ms(stage.uid))
            return cls(
                plan,
                origin,
                stop_path=settings.stop_with_checkpoint,
                stores=stores,
                savepoint=settings.savepoint,
            )
        assert isinstance(settings.restore_from, str | PathLike)
        checkpoint = Checkpoint.open(settings.restore_from, stores)
        job = checkpoint.manifest.job
        plan = _beginning_with_savepoint(plan, lambda stage: watermark_of_beginning(job, stage.uid))
        if checkpoint.max_parallelism != plan.max_parallelism:
            raise ConfigurationError(
                f"the checkpoint {checkpoint.storage.path} has {checkpoint.max_parallelism} key groups, but the job "
                f"has max_parallelism {plan.max_parallelism}: set it to {checkpoint.max_parallelism}, or start "
                "without the checkpoint"
            )
        refuse_changes(checkpoint.manifest.job, describe_job(plan), checkpoint.storage.path)
        for uid in (*plan.operator_uids, *(log.watermarks_uid for log in plan.logs)):
            checkpoint.watermark_ms(uid)
        with refused_as(checkpoint.storage.path):
            _refuse_other_tables(checkpoint, plan)
            tables = [checkpoint.time_plane(log.watermarks_uid) for log in plan.logs]
            cuts = cuts_of_one_replay([TimeCut.of_table(table) for table in tables])
            _refuse_other_watermarks(checkpoint, plan, cuts)
        logs = [log.resumed_from(cut) for log, cut in zip(plan.logs, cuts, strict=True)]
        plan = replace(plan, logs=tuple(logs))
        waiting = tuple(
            WaitingRows.of(checkpoint.storage, checkpoint.waiting_rows(log.watermarks_uid), _paused(log, cut))
            for log, cut in zip(plan.logs, cuts, strict=True)
        )
        return cls(plan, checkpoint, cuts, settings.stop_with_checkpoint, waiting, stores, settings.savepoint)

    @property
    def run_name(self) -> str | None:
        """Return a name that only a repetition of this run has; None without a checkpoint to stop with.

        A repetition is the same job over logs in the same places. It stops with a checkpoint in the same directory,
        begins at the same cut, and is cut alike.
        """
        if self.stop_path is None:
            return None
        place = self.stores.locate(self.stop_path).name
        begins: list[Any] = [[cut.until_ms, cut.last_arrival_ms] for cut in self.cuts]
        if self.restored is not None and not self.cuts:
            begins = [self.restored.path]
        logs = [[_place_of(log.log.source), log.log.until_ms] for log in self.plan.logs]
        run = [place, begins, logs, describe_job(self.plan)]
        return sha256(json.dumps(run).encode()).hexdigest()[:16]

    @property
    def stops(self) -> bool:
        """Return whether the job stops with a checkpoint."""
        return self.stop_path is not None

    def waiting_of(self, log: int) -> tuple[WaitingRows, ...]:
        """Return what waits in the checkpoint for paused splits of log `log`."""
        return self.waiting[log] if self.waiting else ()

    def operator(self, number: int = 0) -> RestoredOperator | None:
        """Return what the stages of operator `number`, from 0 on, are restored from, or None."""
        if self.restored is None:
            return None
        last_arrival_ms = self.cuts[0].last_arrival_ms if self.cuts else None
        return RestoredOperator(self.restored, self.plan.operator_uids[number], last_arrival_ms)

    def begin(self) -> StoppingJob:
        """Begin the checkpoint of a run; without one to write there is nothing to do.

        Raises
        ------
        ConfigurationError
            If something else is in the directory, the savepoint to write is there already, or the checkpoint that the
            job is restored from is no longer there.
        """
        if self.restored is not None and self.restored.was_replaced():
            raise ConfigurationError(
                f"the checkpoint {self.restored.path} that this result starts from has been replaced by a "
                "later one, as when the result has run and has stopped with a checkpoint in the same directory: it "
                "cannot run again. Take one form of a result: to_arrow(), which keeps its rows and side outputs, or "
                "write_parquet(path, side_outputs=...)"
            )
        if self.stop_path is None:
            return StoppingJob(self.plan, None)
        if self.savepoint is not None:
            self.savepoint.check(self.stores)
        pending = PendingCheckpoint.begin(self.stop_path, self.plan.max_parallelism, self.stores)
        return StoppingJob(self.plan, pending, self.savepoint, self.stores)


class StoppingJob(AbstractContextManager["StoppingJob"]):
    """The checkpoint of one run in the making; as a context manager it is aborted unless it was committed.

    Parameters
    ----------
    plan : JobPlan
    pending : PendingCheckpoint or None
        The checkpoint, or None if the job does not stop with one, so that nothing is written.
    savepoint : SavepointStop or None
        Savepoint of Flink to make of the checkpoint, after it and the results are complete.
    stores : Stores
        Settings of stores.

    Attributes
    ----------
    run_tasks : callable or None
        Runs the tasks that write the savepoint, or None if they run in this process.
    """

    def __init__(
        self,
        plan: JobPlan,
        pending: PendingCheckpoint | None,
        savepoint: SavepointStop | None = None,
        stores: Stores = ENVIRONMENT,
    ) -> None:
        self.pending = pending
        self._savepoint = savepoint
        self._stores = stores
        self._is_committed = False
        self.run_tasks: RunTasks | None = None
        self._plan = plan
        self._parts: list[OperatorPart] = []
        self._watermarks_ms: list[int] = []
        self._open = ExitStack()
        if pending is not None:
            self._open.enter_context(pending)

    def add(self, parts: Iterable[OperatorPart]) -> None:
        """Take what tasks have written."""
        self._parts += parts

    def write_cuts(self, cuts: Sequence[TimeCut]) -> None:
        """Write where the time plane of each log ends, if the job stops."""
        if self.pending is not None:
            self._watermarks_ms = [cut.watermark_ms for cut in cuts]
            for log, cut in zip(self._plan.logs, cuts, strict=True):
                snapshot = OperatorSnapshot(watermark_ms=cut.watermark_ms, time_plane=cut.to_table())
                self.add([self.pending.writer().write(log.watermarks_uid, 0, snapshot)])

    def waiting_rows(self, log: int) -> WaitingRowsWriter | None:
        """Return the writer of a log's events that wait for paused splits, or None.

        After `write_cuts`.
        """
        plan = self._plan.logs[log]
        if self.pending is None or plan.strategy.alignment_parameters is None:
            return None
        return WaitingRowsWriter(self.pending, plan.watermarks_uid, self._watermarks_ms[log])

    def commit(self, results: Iterable[str] = ()) -> None:
        """Complete the checkpoint, once all parts are there.

        Parameters
        ----------
        results : iterable of str
            The directories that the run has written.

        Raises
        ------
        DataError
            If a part is missing.
        ConfigurationError
            If another job has completed a checkpoint there meanwhile.
        """
        if self.pending is not None:
            job: dict[str, Any] = {**describe_job(self._plan), "results": list(results)}
            self.pending.commit(_numbered(self._parts), job)
            self._is_committed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
        if error is None and self._is_committed and self._savepoint is not None:
            assert self.pending is not None
            self._savepoint.complete(self.pending.storage.path, self._stores, self.run_tasks)


def _beginning_with_savepoint(plan: JobPlan, watermark_of: Callable[[StagePlan], int | None]) -> JobPlan:
    """Return the plan of a job whose operators have taken over state of a Flink job, where there is a watermark."""
    stages = tuple(
        replace(stage, operator=stage.operator.beginning_with_savepoint(watermark_ms))
        if (watermark_ms := watermark_of(stage)) is not None
        else stage
        for stage in plan.stages
    )
    return replace(plan, stages=stages)


def _stopping_with_savepoint(plan: JobPlan) -> JobPlan:
    """Return the plan of a job whose operators can write the state of those of Flink."""
    stages = tuple(
        stage
        if stage.flink_state is None
        else replace(stage, operator=stage.operator.stopping_with_savepoint())
        for stage in plan.stages
    )
    return replace(plan, stages=stages)


def _job_operator(stage: StagePlan) -> JobOperator:
    return JobOperator(
        stage.uid,
        stage.operator.tables.possible,
        stage.max_parallelism,
        tuple(stage.key_fields),
        row_names=tuple(tuple(schema.names) for schema in stage.input_schemas),
        windows=stage.operator.window_table(stage.input_schemas),
        aggregates=stage.operator.aggregate_contents(stage.input_schemas),
        keeps_frame_rows=stage.operator.keeps_frame_rows,
        flink_state=stage.flink_state,
    )


def _numbered(parts: Sequence[OperatorPart]) -> list[OperatorPart]:
    """Return parts with those of key groups numbered in order: of a partition there may be several."""
    keyed = [part for part in parts if part.key_group_range is not None]
    numbered = [part for part in parts if part.key_group_range is None]
    for uid in dict.fromkeys(part.uid for part in keyed):
        own = sorted((part for part in keyed if part.uid == uid), key=attrgetter("key_group_range"))
        numbered += [replace(part, subtask=number) for number, part in enumerate(own)]
    return numbered


@dataclass(frozen=True)
class WaitingRowsWriter:
    """Writes the events of a log that wait for paused splits; picklable.

    Parameters
    ----------
    pending : PendingCheckpoint
    uid : str
        Identifier of the log's watermarks.
    watermark_ms : int
        Watermark of the log.
    """

    pending: PendingCheckpoint
    uid: str
    watermark_ms: int

    def part(self, number: int) -> WaitingRowsPart:
        """Return a part, by the number from 0 on in the order of the log; it begins with its first events."""
        return WaitingRowsPart(lambda: self.pending.writer().part(self.uid, 1 + number, self.watermark_ms))

    def parts(self, written: Iterable[OperatorPart], n_parts: int) -> list[OperatorPart]:
        """All parts of so many, of which some had nothing to write."""
        by_subtask = {part.subtask: part for part in written}
        return [
            by_subtask.get(subtask, OperatorPart(self.uid, subtask, None, self.watermark_ms, ()))
            for subtask in range(1, n_parts + 1)
        ]


class WaitingRowsPart(AbstractContextManager["WaitingRowsPart"]):
    """Events that wait, written in tables of a bounded size; after an error what was written is removed.

    Parameters
    ----------
    begin : callable
        Begins the part of the checkpoint; called once there are events.
    """

    def __init__(self, begin: Callable[[], PendingPart]) -> None:
        self._begin = begin
        self._part: PendingPart | None = None
        self._held: list[LogEvents] = []
        self._held_bytes = self._tables = 0
        self._open = ExitStack()

    def add(self, events: LogEvents) -> None:
        """Add events of a batch, with the arrivals that they had."""
        self._held.append(events)
        self._held_bytes += events.nbytes
        if self._held_bytes >= _TABLE_BYTES:
            self._write()

    def written(self) -> OperatorPart | None:
        """Return the part, once all events have been added, or None if none was."""
        if self._held:
            self._write()
        return None if self._part is None else self._part.written()

    def _write(self) -> None:
        if self._part is None:
            self._part = self._open.enter_context(self._begin())
        events = concatenate(self._held) if len(self._held) > 1 else self._held[0]
        places = events.timestamps, events.arrivals, events.splits, events.positions
        self._part.add(TableKind.WAITING_ROWS, str(self._tables), waiting_table(events.batch, *places))
        self._held, self._held_bytes, self._tables = [], 0, self._tables + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def _refuse_other_watermarks(checkpoint: Checkpoint, plan: JobPlan, cuts: Sequence[TimeCut]) -> None:
    """Accept the watermarks of the parts if they are those of the time planes: operators stand where these do."""
    parts = checkpoint.manifest.parts_by_operator()
    expected = {log.watermarks_uid: cut.watermark_ms for log, cut in zip(plan.logs, cuts, strict=True)}
    of_operators = cuts[0].watermark_ms if len(cuts) == 1 else cuts[0].operator_watermark_ms
    expected |= dict.fromkeys(plan.operator_uids, of_operators)
    if not plan.streams.has_one_time:
        _refuse_other_inputs(plan, cuts)
        own = (watermarks_ms[0] for watermarks_ms in cuts[0].later_operators_ms)
        expected |= dict(zip(plan.operator_uids[1:], own, strict=True))
    for stage in plan.stages:
        if stage.clock is not None:
            expected[stage.uid] = int(stage.clock.passed(np.array([expected[stage.uid]]))[0])
        expected[stage.uid] = max(expected[stage.uid], stage.operator.least_watermark_ms)
    for uid, watermark_ms in expected.items():
        for part in parts[uid]:
            if part.watermark_ms != watermark_ms:
                raise SchemaError(
                    f"subtask {part.subtask} of the operator {uid!r} has the watermark {part.watermark_ms}, and the "
                    f"time plane has {watermark_ms} for it"
                )


def _refuse_other_inputs(plan: JobPlan, cuts: Sequence[TimeCut]) -> None:
    """Accept the watermarks of the inputs of later operators if they can come from what these take."""
    later = plan.streams.operators[1:]
    of_operators = [cuts[0].operator_watermark_ms, *(each[0] for each in cuts[0].later_operators_ms)]
    if len(of_operators) != 1 + len(later):
        raise SchemaError(
            f"it has the watermarks of {len(of_operators)} operators, and {1 + len(later)} take part"
        )
    passed_on = [
        held_back(each, streams.held_back_ms)
        for each, streams in zip(of_operators, plan.streams.operators, strict=True)
    ]
    for uid, streams, (own_ms, *inputs_ms) in zip(
        plan.operator_uids[1:], later, cuts[0].later_operators_ms, strict=True
    ):
        inputs = [
            [*(cuts[log].watermark_ms for log in each.logs), *(passed_on[each] for each in each.operators)]
            for each in streams.inputs
        ]
        if streams.unites_inputs:
            inputs = [[each for one in inputs for each in one]]
        # A valve never passes on more than one of its channels has; of one channel, all that this has.
        wrong = len(inputs) != len(inputs_ms) or any(
            input_ms > max(channels) or (len(channels) == 1 and input_ms != channels[0])
            for input_ms, channels in zip(inputs_ms, inputs, strict=True)
        )
        if wrong or own_ms > max(inputs_ms) or (len(inputs_ms) == 1 and own_ms != inputs_ms[0]):
            raise SchemaError(
                f"the operator {uid!r} has the watermark {own_ms} of inputs with {inputs_ms}, and to these come "
                f"{inputs}"
            )


def _refuse_other_tables(checkpoint: Checkpoint, plan: JobPlan) -> None:
    """Accept the parts if each has the tables that its operator always writes, and no kind that it never does."""
    parts = checkpoint.manifest.parts_by_operator()
    kinds = {log.watermarks_uid: _tables_of_log(log) for log in plan.logs}
    kinds |= {stage.uid: [stage.operator.tables] * len(parts[stage.uid]) for stage in plan.stages}
    for uid, of_parts in kinds.items():
        if len(parts[uid]) > 1 == len(of_parts):
            raise SchemaError(f"the operator {uid!r} has {len(parts[uid])} subtasks, and writes one")
        for part in parts[uid]:
            always, possible = of_parts[min(part.subtask, len(of_parts) - 1)]
            found = [table.kind for table in part.tables]
            for kind in always:
                if kind not in found:
                    raise SchemaError(
                        f"subtask {part.subtask} of the operator {uid!r} lacks its {kind.value.replace('_', ' ')}"
                    )
            for table in part.tables:
                if table.kind not in possible:
                    raise SchemaError(
                        f"subtask {part.subtask} of the operator {uid!r} has the {table}, and writes none"
                    )


def _tables_of_log(log: LogPlan) -> list[OperatorTables]:
    """Return the kinds of tables of the first part, and those of all others, if there can be others."""
    time_plane = OperatorTables((TableKind.TIME_PLANE,), (TableKind.TIME_PLANE,))
    if log.strategy.alignment_parameters is None:
        return [time_plane]
    return [time_plane, OperatorTables(possible=(TableKind.WAITING_ROWS,))]


def _place_of(source: object) -> str:
    """Return where a log is, as a later run finds it that has more of its files: empty if it is in memory."""
    if isinstance(source, TopicLog):
        return ", ".join(dump.topic for dump in source.dumps)
    if not isinstance(source, LogFiles):
        return ""
    if source.table_name is not None:
        return re.sub(r" at (version|snapshot) [^/]*$", "", source.table_name)
    if not source.files:
        return ""
    first = source.files[0]
    if len(source.files) == 1 and not first.partition:
        return first.location
    folder = first.location.rpartition("/")[0]
    for _ in takewhile(lambda name: "=" in name, reversed(folder.split("/"))):
        folder = folder.rpartition("/")[0]  # which partition comes first may change
    return folder


def _paused(log: LogPlan, cut: TimeCut) -> PausedSplits:
    columns = cut.columns
    until = np.where(columns["paused"] != 0, columns["last_arrival_ms"], MIN_TIMESTAMP)
    rows = np.full_like(until, -1) if log.log.by_arrival else columns["rows"]
    return PausedSplits(cut.split_values, columns["paused_since_ms"], until, rows)


def refuse_different_cuts(logs: Sequence[LogSettings], settings: CheckpointSettings) -> None:
    """Raise a ConfigurationError if a job stops with a checkpoint, and its logs are not cut at one time of arrival."""
    cuts = {log.until_ms for log in logs}
    if settings.stop_with_checkpoint is not None and len(cuts) > 1:
        shown = ", ".join("none" if ms is None else dated(ms, " ms") for ms in (log.until_ms for log in logs))
        raise ConfigurationError(
            "the logs of a job that stops with a checkpoint are cut at one time of arrival, and here until= is "
            f"{shown}: give all of them the same"
        )


def _refuse_what_is_not_carried(plan: LogPlan) -> None:
    supplier = copied_strategy(plan.strategy).generator_supplier
    if supplier is not None:
        supplied_generator(supplier).require_snapshots()

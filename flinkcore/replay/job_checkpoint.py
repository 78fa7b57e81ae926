"""The checkpoints of a replay: from which it goes on, and with which it stops."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any

from flinkcore.datastream.checkpoint_settings import CheckpointSettings
from flinkcore.errors import ConfigurationError, SchemaError, SourceError
from flinkcore.replay.plans.job_description import describe_job, refuse_changes
from flinkcore.replay.plans.replay_plan import ReplayPlan
from flinkcore.replay.time_plane.time_cut import TimeCut
from flinkcore.runtime.checkpoint import Checkpoint, OperatorPart, OperatorSnapshot, PendingCheckpoint


@dataclass(frozen=True)
class RestoredOperator:
    """What the stages of an operator go on from; picklable.

    Parameters
    ----------
    checkpoint : Checkpoint
    uid : str
        Of the operator.
    last_arrival_ms : int or None
        Of all that was before; None if there was no event.
    """

    checkpoint: Checkpoint
    uid: str
    last_arrival_ms: int | None


@dataclass(frozen=True)
class JobCheckpoints:
    """The checkpoints of a job, the first of which has been read as far as the driver needs it.

    Parameters
    ----------
    plan : ReplayPlan
    restored : Checkpoint or None
    cut : TimeCut or None
        That of the checkpoint.
    stop_path : path or None
        Where the job stops with a checkpoint.
    """

    plan: ReplayPlan
    restored: Checkpoint | None = None
    cut: TimeCut | None = None
    stop_path: str | PathLike[str] | None = None

    @classmethod
    def of(cls, plan: ReplayPlan, settings: CheckpointSettings) -> JobCheckpoints:
        """Open what a job goes on from.

        Raises
        ------
        ConfigurationError
            If the job is not the one of the checkpoint, or has a setting that checkpoints do not carry.
        SourceError
            If there is no checkpoint, or it is damaged or of a newer version.
        """
        if settings.restore_from is None and settings.stop_with_checkpoint is None:
            return cls(plan)
        _refuse_what_is_not_carried(plan)
        if settings.restore_from is None:
            return cls(plan, stop_path=settings.stop_with_checkpoint)
        checkpoint = Checkpoint.open(settings.restore_from)
        if checkpoint.max_parallelism != plan.max_parallelism:
            raise ConfigurationError(
                f"the checkpoint {checkpoint.storage.path} has {checkpoint.max_parallelism} key groups, but the job "
                f"has max_parallelism {plan.max_parallelism}: set it to {checkpoint.max_parallelism}, or start "
                "without the checkpoint"
            )
        refuse_changes(checkpoint.manifest.job, describe_job(plan), checkpoint.storage.path)
        checkpoint.watermark_ms(plan.operator_uid)
        table = checkpoint.time_plane(plan.watermarks_uid)
        try:
            cut = TimeCut.of_table(table)
        except SchemaError as failure:
            raise SourceError(f"{checkpoint.storage.path}: {failure}") from failure
        return cls(plan, checkpoint, cut, settings.stop_with_checkpoint)

    @property
    def stops(self) -> bool:
        """Whether the job stops with a checkpoint."""
        return self.stop_path is not None

    @property
    def operator(self) -> RestoredOperator | None:
        """What the stages of the operator go on from; None: from the start."""
        if self.restored is None or self.cut is None:
            return None
        return RestoredOperator(self.restored, self.plan.operator_uid, self.cut.last_arrival_ms)

    def begin(self) -> StoppingJob:
        """Begin the checkpoint of a run; without one to write there is nothing to do.

        Raises
        ------
        ConfigurationError
            If something else is in the directory, or the checkpoint that the job goes on from is no longer there.
        """
        if self.restored is not None and self.restored.was_replaced():
            raise ConfigurationError(
                f"the checkpoint {self.restored.storage.path}, from which this result goes on, has been replaced by a "
                "later one, as when the result has run and has stopped with a checkpoint in the same directory: it "
                "cannot run again. Take one form of a result: to_arrow(), which keeps its rows and side outputs, or "
                "write_parquet(path, side_outputs=...)"
            )
        if self.stop_path is None:
            return StoppingJob(self.plan, None)
        return StoppingJob(self.plan, PendingCheckpoint.begin(self.stop_path, self.plan.max_parallelism))


class StoppingJob(AbstractContextManager["StoppingJob"]):
    """The checkpoint of one run in the making; as a context manager it is aborted unless it was committed.

    Parameters
    ----------
    plan : ReplayPlan
    pending : PendingCheckpoint or None
        None: the job does not stop with one, and nothing is written.
    """

    def __init__(self, plan: ReplayPlan, pending: PendingCheckpoint | None) -> None:
        self.pending = pending
        self._plan = plan
        self._parts: list[OperatorPart] = []
        self._open = ExitStack()
        if pending is not None:
            self._open.enter_context(pending)

    def write(self, partition: int, snapshot: OperatorSnapshot) -> None:
        """Write what the operator holds in a partition."""
        if self.pending is not None:
            self.add([write_partition(self._plan, self.pending, partition, snapshot)])

    def add(self, parts: Iterable[OperatorPart]) -> None:
        """Take what tasks have written."""
        self._parts += parts

    def write_cut(self, cut: TimeCut | None) -> None:
        """Write where the time plane ends."""
        if self.pending is not None and cut is not None:
            snapshot = OperatorSnapshot(watermark_ms=cut.watermark_ms, time_plane=cut.to_table())
            self.add([self.pending.writer().write(self._plan.watermarks_uid, 0, snapshot)])

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
            self.pending.commit(self._parts, job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def write_partition(
    plan: ReplayPlan, pending: PendingCheckpoint, partition: int, snapshot: OperatorSnapshot
) -> OperatorPart:
    """Write what the operator of a plan holds in a partition, which a task does, too."""
    return pending.writer().write(plan.operator_uid, partition, snapshot)


def _refuse_what_is_not_carried(plan: ReplayPlan) -> None:
    if plan.strategy.alignment_parameters is not None:
        raise ConfigurationError(
            "a job whose splits are aligned neither stops with a checkpoint nor goes on from one, as paused splits "
            f"have events that wait: {plan.strategy}. Leave with_watermark_alignment out"
        )
    if plan.strategy.generator_supplier is not None:
        raise ConfigurationError(
            "a job whose watermark generator is called event by event neither stops with a checkpoint nor goes on "
            f"from one, as its state is not known: {plan.strategy}. Take for_bounded_out_of_orderness or "
            "for_monotonous_timestamps"
        )

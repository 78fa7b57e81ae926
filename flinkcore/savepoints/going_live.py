"""From a checkpoint of flinkcore to a savepoint, from which a Flink job continues."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from flinkcore._internal.io.stores import ENVIRONMENT, Stores, stores_of
from flinkcore.checkpoint import Checkpoint
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.datastream.graph.pipeline_executor import RunTasks
from flinkcore.errors import ArgumentTypeError, ConfigurationError, FlinkcoreError
from flinkcore.savepoints.flink_operators import FlinkOperator
from flinkcore.savepoints.kafka_source import READER_STATE, written_coordinator, written_readers
from flinkcore.savepoints.metadata import SubtaskState
from flinkcore.savepoints.next_offsets import NextOffsets
from flinkcore.savepoints.serializers import basic
from flinkcore.savepoints.writing.checkpoint_operator_states import operator_contents
from flinkcore.savepoints.writing.checkpoint_sql import sql_content
from flinkcore.savepoints.writing.checkpoint_states import (
    CheckpointOperator,
    JavaStates,
    has_state,
    keyed_contents,
)
from flinkcore.savepoints.writing.checkpoint_windows import window_contents
from flinkcore.savepoints.writing.pyflink_states import PythonStates
from flinkcore.savepoints.writing.savepoint_writer import (
    OperatorContent,
    SavepointWriter,
    directory_without_savepoint,
    operator_metadata,
    subtask_of_text,
    text_of_subtask,
)
from flinkcore.savepoints.writing.state_files import OperatorStateContent
from flinkcore.sql.plan.flink_state import FlinkState

_CHECKPOINT = "checkpoint"
_WITH_STATE = (
    TableKind.KEYED_STATE,
    TableKind.TIMERS,
    TableKind.WINDOWS,
    TableKind.OPERATOR_STATE,
    TableKind.RELATION,
)


@dataclass(frozen=True)
class SavepointTarget:
    """A savepoint with which a job of flinkcore stops, and from which a Flink job continues.

    Parameters
    ----------
    path : path
        New directory, local or a URI of a store.
    operators : sequence of FlinkOperator
        Operators of the Flink job. Without any, each operator with state keeps its uid, and types follow from the
        values.
    max_parallelism : int, optional
        Number of key groups of the Flink job, by default that of flinkcore's; Flink refuses a savepoint with another.
    leave_out : sequence of str
        Uids of operators of flinkcore's job whose state the Flink job does not have.
    compression : bool
        Whether states are compressed with Snappy, as ``execution.checkpointing.snapshot-compression`` does.
    execution_mode : {"process", "thread"}, optional
        ``python.execution-mode`` of the PyFlink program that continues, which has a format of its own in each; by
        default a Java job continues. The program is that of the replay: states have its declared types.
    sources : mapping of str to mapping of str to offsets
        For the uid of each KafkaSource of the Flink job the topics that it reads, each with the next offsets by
        partition, as `next_offsets` returns them: the job continues there, whatever its ``setStartingOffsets`` says.
        Partitions that are not listed are read from their earliest offset.

    Raises
    ------
    ConfigurationError
        If an argument is not of its type.
    """

    path: str | os.PathLike[str]
    operators: Sequence[FlinkOperator] = ()
    max_parallelism: int | None = None
    leave_out: Sequence[str] = ()
    compression: bool = False
    execution_mode: Literal["process", "thread"] | None = None
    sources: Mapping[str, Mapping[str, Mapping[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise ArgumentTypeError(
                f"a savepoint has the path of a directory, such as 'savepoints/live', not {self.path!r}"
            )
        object.__setattr__(self, "operators", tuple(self.operators))
        for operator in self.operators:
            if not isinstance(operator, FlinkOperator):
                raise ArgumentTypeError(f"operators is a list of FlinkOperator, not of {operator!r}")
        if self.execution_mode not in (None, "process", "thread"):
            raise ConfigurationError(
                f"execution_mode is 'process' or 'thread', as python.execution-mode of PyFlink, not "
                f"{self.execution_mode!r}"
            )
        if not isinstance(self.sources, Mapping):
            raise ArgumentTypeError(
                "sources has for the uid of each source the offsets by topic, such as {'clicks-source': {'clicks': "
                f"next_offsets(log)}}}}, not {self.sources!r}"
            )
        for uid, topics in self.sources.items():
            _check_source(uid, topics)
            if any(operator.uid == uid for operator in self.operators):
                raise ConfigurationError(f"{uid!r} is the uid of a source and of another operator")

    @property
    def checkpoint_path(self) -> str:
        """Directory of the checkpoint from which it is made, if the job has no other."""
        return f"{os.fspath(self.path).rstrip('/')}/{_CHECKPOINT}"

    def check(self, stores: Stores = ENVIRONMENT) -> None:
        """Check that the directory has no savepoint, before the job runs.

        Raises
        ------
        ConfigurationError
            If it has, or the path is empty.
        """
        directory_without_savepoint(self.path, stores)

    def complete(
        self,
        checkpoint: str | os.PathLike[str],
        stores: Stores = ENVIRONMENT,
        run_tasks: RunTasks | None = None,
    ) -> None:
        """Write the savepoint of a checkpoint with which a job has stopped, and remove that if it is temporary.

        Raises
        ------
        CheckpointError, ConfigurationError, DataError, SavepointError
            As of `write`. The checkpoint stays, and can be written again.
        """
        opened = Checkpoint.open(checkpoint, stores)
        try:
            self.write(opened, stores, run_tasks)
        except FlinkcoreError as failure:
            failure.args = (
                f"{failure}. The job has stopped with the checkpoint {opened.storage.path}: write the savepoint "
                f"from there with savepoints.write({opened.storage.path!r}, ...)",
            )
            raise
        if opened.storage.path == CheckpointDirectory.at(self.checkpoint_path, stores).path:
            opened.storage.delete_folder("")

    def write(self, checkpoint: Checkpoint, stores: Stores, run_tasks: RunTasks | None = None) -> None:
        """Write the savepoint of a checkpoint: the files of each subtask by a task, then `_metadata`.

        Parameters
        ----------
        checkpoint : Checkpoint
        stores : Stores
            Settings of stores.
        run_tasks : callable, optional
            Runs the tasks, such as on executors; by default they run here, one after the other.

        Raises
        ------
        ConfigurationError
            If an operator or the type of a state is not known, or the directory has a savepoint.
        DataError
            If a value has no place in its type.
        SavepointError
            If a file cannot be written.
        """
        _refuse_waiting_events(checkpoint)
        groups = self.max_parallelism or checkpoint.max_parallelism
        job = checkpoint.manifest.job
        of_plans = {uid: FlinkState.of_job(job, uid) for uid in checkpoint.manifest.parts_by_operator()}
        operators = tuple(
            CheckpointOperator(
                checkpoint,
                uid,
                target,
                _key_groups(of_plans[uid], groups),
                self.execution_mode,
                of_plans[uid],
            )
            for uid, target in self._pairs(checkpoint, of_plans)
        )
        contents = [_content(operator) for operator in operators]
        sources = [_source(uid, topics, groups) for uid, topics in self.sources.items()]
        taken = {operator.target.uid for operator in operators} & set(self.sources)
        if taken:
            raise ConfigurationError(f"{min(taken)!r} is the uid of a source and of an operator with state")
        writer = SavepointWriter.begin(self.path, is_compressed=self.compression, stores=stores)
        subtasks = tuple(
            (number, index) for number, content in enumerate(contents) for index in range(content.parallelism)
        )
        run = _one_after_the_other if run_tasks is None else run_tasks
        written: list[list[SubtaskState]] = [[] for _ in operators]
        try:
            texts = run(_WriteSubtask(writer, operators, subtasks, dict(enumerate(contents))), len(subtasks))
            for (number, _), text in zip(subtasks, texts, strict=True):
                written[number].append(subtask_of_text(text))
            contents += sources
            written += [[writer.subtask(source, 0)] for source in sources]
            metadata = [operator_metadata(*each) for each in zip(contents, written, strict=True)]
        except BaseException:
            with suppress(OSError):
                writer.remove_others(())
            raise
        is_alone = writer.commit(metadata)
        writer.remove_others(chain.from_iterable(written), of_all_runs=is_alone)

    def _pairs(
        self, checkpoint: Checkpoint, of_plans: Mapping[str, FlinkState | None]
    ) -> list[tuple[str, FlinkOperator]]:
        """Return the operators of the checkpoint with those of the Flink job."""
        where = checkpoint.storage.path
        parts = checkpoint.manifest.parts_by_operator()
        stateful = [
            uid
            for uid, of_uid in parts.items()
            if any(has_state(table, _WITH_STATE) for part in of_uid for table in part.tables)
        ]
        unknown = [uid for uid in self.leave_out if uid not in parts]
        if unknown:
            raise ConfigurationError(
                f"leave_out names the operator {unknown[0]!r}, and the checkpoint {where} has the operators "
                f"{', '.join(map(repr, parts))}. Name one of them"
            )
        if not self.operators:
            return [
                (uid, FlinkOperator(uid if state is None else state.uid))
                for uid in stateful
                for state in [of_plans[uid]]
                if uid not in self.leave_out
            ]
        pairs: list[tuple[str, FlinkOperator]] = []
        for operator in self.operators:
            uid = operator.of or (operator.uid if operator.uid in parts else None)
            if uid is None and len(stateful) == 1:
                (uid,) = stateful
            if uid not in parts:
                named = f"of={uid!r}" if uid is not None else f"uid {operator.uid!r} and no of="
                raise ConfigurationError(
                    f"an operator of the Flink job has {named}, and the checkpoint {where} has the operators "
                    f"{stateful}. Name one of them: FlinkOperator({operator.uid!r}, of=...)"
                )
            if any(uid == other for other, _ in pairs):
                raise ConfigurationError(f"two operators of the Flink job have the state of operator {uid!r}")
            pairs.append((uid, operator))
        missing = [
            uid for uid in stateful if uid not in self.leave_out and all(uid != other for other, _ in pairs)
        ]
        if missing:
            raise ConfigurationError(
                f"operator {missing[0]!r} of the checkpoint {where} has state, which no operator of the Flink job "
                f"would get. Declare one: FlinkOperator(uid, of={missing[0]!r}), or give leave_out=[{missing[0]!r}]"
            )
        return pairs


def _check_source(uid: str, topics: Mapping[str, Mapping[int, int]]) -> None:
    if not isinstance(topics, Mapping) or not topics:
        raise ArgumentTypeError(
            f"sources has for each uid the offsets by topic, such as {{{uid!r}: {{'clicks': next_offsets(log)}}}}, not "
            f"{topics!r}"
        )
    for topic, offsets in topics.items():
        if not isinstance(offsets, Mapping) or not offsets:
            raise ArgumentTypeError(
                f"source {uid!r}: topic {topic!r} has offsets by partition, such as {{0: 42}}, not {offsets!r}"
            )
        if isinstance(offsets, NextOffsets):
            offsets.check_starts()
        for partition, offset in offsets.items():
            for number, end in ((partition, 1 << 31), (offset, 1 << 63)):
                if type(number) is not int or not 0 <= number < end:
                    raise ConfigurationError(
                        f"source {uid!r}: partition {partition!r} of topic {topic!r} has the next offset {offset!r}; "
                        "both are whole numbers from 0"
                    )


def _source(uid: str, topics: Mapping[str, Mapping[int, int]], max_parallelism: int) -> OperatorContent:
    rows = pa.RecordBatch.from_arrays([pa.array(written_readers(topics), pa.binary())], ["value"])
    readers = OperatorStateContent(READER_STATE, "SPLIT_DISTRIBUTE", None, basic.BYTES, rows)
    return OperatorContent(
        uid, max_parallelism, operator_states=[[readers]], coordinator=written_coordinator(topics)
    )


def _refuse_waiting_events(checkpoint: Checkpoint) -> None:
    n_rows = sum(
        table.n_rows for part in checkpoint.manifest.parts for table in part.tables_of(TableKind.WAITING_ROWS)
    )
    if n_rows:
        raise ConfigurationError(
            f"in the checkpoint {checkpoint.storage.path} {n_rows:,} events wait for paused splits, for which a "
            "savepoint has no place. Replay without with_watermark_alignment"
        )


@dataclass(frozen=True)
class _WriteSubtask:
    """Writes the files of a subtask by its number; picklable."""

    writer: SavepointWriter
    operators: tuple[CheckpointOperator, ...]
    subtasks: tuple[tuple[int, int], ...]
    contents: dict[int, OperatorContent]

    def __getstate__(self) -> dict[str, Any]:
        # Another process finds the content of its operator again: functions that read rows are not pickled.
        return {**self.__dict__, "contents": {}}

    def __call__(self, number: int) -> str:
        operator, index = self.subtasks[number]
        if operator not in self.contents:
            self.contents[operator] = _content(self.operators[operator])
        return text_of_subtask(self.writer.subtask(self.contents[operator], index))


def _one_after_the_other(task: Callable[[int], str], n_tasks: int) -> list[str]:
    return [task(number) for number in range(n_tasks)]


def _key_groups(of_plan: FlinkState | None, groups: int) -> int:
    """Return the number of key groups of an operator: one, if a plan gives it no key."""
    return 1 if of_plan is not None and of_plan.is_in_one_task and not of_plan.refusal else groups


def _content(operator: CheckpointOperator) -> OperatorContent:
    if operator.of_plan is not None:
        return sql_content(operator, operator.of_plan)
    if operator.has(TableKind.RELATION):
        raise ConfigurationError(
            f"operator {operator.uid!r} keeps rows over columns, and no operator of Flink's DataStream API has such a "
            f"state. Leave it out: leave_out=[{operator.uid!r}]"
        )
    parts = operator.parts
    keyed = [part for part in parts if part.key_group_range is not None]
    states = []
    python = None
    if operator.execution_mode is not None:
        python = PythonStates(operator, operator.execution_mode == "thread")
        python.check()
    if operator.has(TableKind.WINDOWS):
        states = window_contents(operator)
    elif operator.has(TableKind.KEYED_STATE, TableKind.TIMERS):
        states = keyed_contents(operator, python or JavaStates(operator))
    groups = operator.max_parallelism
    key = states[0].types.key if states else None
    if key == basic.BYTE and operator.target.key is None:
        groups = 1  # as windowAll has it
    parallelism = max(1, min(len(keyed) or len(parts), groups))
    listed = operator_contents(operator, parallelism, python)
    return OperatorContent(operator.target.uid, groups, parallelism, key, states, listed)


def write_savepoint(
    checkpoint: str | os.PathLike[str],
    path: str | os.PathLike[str],
    operators: Sequence[FlinkOperator] = (),
    *,
    max_parallelism: int | None = None,
    leave_out: Sequence[str] = (),
    compression: bool = False,
    execution_mode: Literal["process", "thread"] | None = None,
    sources: Mapping[str, Mapping[str, Mapping[int, int]]] | None = None,
    filesystem: Any = None,
) -> None:
    """Write the state of a checkpoint as a savepoint, from which a Flink job continues with ``flink run -s``.

    Keyed states and timers, windows over columns and of functions, buffers of interval joins, operator and broadcast
    states are written in Flink's canonical format, which Flink 1.11 to 2.3 restore with any state backend and
    parallelism. One part of the checkpoint is in memory at a time; its number is the parallelism of the job.

    Parameters
    ----------
    checkpoint : path
        Directory of a checkpoint, as ``stop_with_checkpoint`` writes it.
    path : path
        New directory for the savepoint.
    operators, max_parallelism, leave_out, compression, execution_mode, sources
        As of :class:`SavepointTarget`.
    filesystem : pyarrow.fs.FileSystem, fsspec filesystem or None
        Where both are; by default the paths say it.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, or it is damaged.
    ConfigurationError
        If an operator or the type of a state is not known, or the directory has a savepoint.
    DataError
        If a value has no place in its type.
    SavepointError
        If a file cannot be written.
    """
    stores = stores_of(filesystem)
    target = SavepointTarget(
        path, operators, max_parallelism, leave_out, compression, execution_mode, sources or {}
    )
    target.write(Checkpoint.open(checkpoint, stores), stores)

"""From a savepoint of Flink to the state with which a job of flinkcore begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.io.stores import Stores
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.checkpoint.state_origin import JobOperator
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.operators.state import OperatorStateSnapshot, redistribute
from flinkcore.savepoints.flink_operators import FlinkOperator
from flinkcore.savepoints.java_types import serializer_of
from flinkcore.savepoints.kafka_source import READER_STATE
from flinkcore.savepoints.keyed_state import KeyedState, batches_of_states
from flinkcore.savepoints.operator_ids import operator_id
from flinkcore.savepoints.restoring.pyflink_values import PyFlinkStates, descriptors_by_name
from flinkcore.savepoints.restoring.restored_plans import RestoredPlanState
from flinkcore.savepoints.restoring.restored_states import RestoredOperatorStates
from flinkcore.savepoints.restoring.restored_windows import RestoredWindows
from flinkcore.savepoints.savepoint import Savepoint, SavepointOperator, savepoint_in
from flinkcore.sql.plan.flink_state import FlinkState


@dataclass(frozen=True)
class SavepointSource:
    """A savepoint of a Flink job with which a job of flinkcore begins, as Flink would with ``flink run -s``.

    Watermarks begin again, as no savepoint has them. State of sources is not restored: begin the log at the offsets of
    the savepoint, such as with `NextOffsets.unread`.

    Parameters
    ----------
    path : path
        Directory of the savepoint, local or a URI of a store.
    operators : sequence of FlinkOperator
        Operators of the Flink job, each of which is `of` an operator of flinkcore's job. The types are those of the
        savepoint; declared keys are compared with them, and a declared ``Types.ROW_NAMED`` names the fields of rows.
        An operator that is not declared continues as the operator of flinkcore with the same uid, or the only one.
    leave_out : sequence of str
        Uids of operators of the Flink job whose state is not restored.
    allow_pickle : bool
        Whether pickled values of a PyFlink program may be objects of any class: loading them runs code of their choice.
        Otherwise they may consist of numbers, texts, bytes and containers.

    Raises
    ------
    ConfigurationError
        If an argument is not of its type.

    Notes
    -----
    Flink's ``SavepointRestoreSettings``; `leave_out` names what ``--allowNonRestoredState`` allows in general.
    """

    path: str | os.PathLike[str]
    operators: Sequence[FlinkOperator] = ()
    leave_out: Sequence[str] = ()
    allow_pickle: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not os.fspath(self.path):
            raise ArgumentTypeError(
                f"a savepoint has the path of a directory, such as 'savepoints/live', not {self.path!r}"
            )
        object.__setattr__(self, "operators", tuple(self.operators))
        for operator in self.operators:
            if not isinstance(operator, FlinkOperator):
                raise ArgumentTypeError(f"operators is a list of FlinkOperator, not of {operator!r}")
        if isinstance(self.leave_out, str):
            raise ArgumentTypeError(f"leave_out is a list of uids, such as [{self.leave_out!r}]")
        object.__setattr__(self, "leave_out", tuple(self.leave_out))

    def origin(self, operators: Sequence[JobOperator], stores: Stores) -> RestoredSavepoint:
        """Return the state with which operators of a job begin.

        Parameters
        ----------
        operators : sequence of JobOperator
        stores : Stores
            Settings of stores.

        Raises
        ------
        ConfigurationError
            If state of the savepoint has no place in the job, or the savepoint lacks an operator that is left out;
            names the operator and the state.
        SavepointError
            If there is no savepoint, or it is damaged.
        """
        savepoint = savepoint_in(self.path, stores)
        restored: dict[str, RestoredOperatorStates | RestoredPlanState] = {}
        for found, target, operator in self._assigned(savepoint, operators):
            if operator.uid in restored:
                raise ConfigurationError(
                    f"two operators of the savepoint {savepoint.path} have state for operator {operator.uid!r}: "
                    f"{_name(restored[operator.uid].found)!r} and {_name(found)!r}. Leave one of them out"
                )
            if operator.flink_state is not None:
                of_plan = RestoredPlanState(
                    found.for_tasks(), operator, FlinkState.of_text(operator.flink_state)
                )
                of_plan.check(f"operator {_name(found)!r} of the savepoint {savepoint.path}")
                restored[operator.uid] = of_plan
                continue
            of_pyflink = PyFlinkStates(descriptors_by_name(target.descriptors), self.allow_pickle)
            states = RestoredOperatorStates(found.for_tasks(), target, operator, of_pyflink)
            _check(savepoint, states)
            restored[operator.uid] = states
        return RestoredSavepoint(savepoint.path, restored)

    def _assigned(
        self, savepoint: Savepoint, operators: Sequence[JobOperator]
    ) -> list[tuple[SavepointOperator, FlinkOperator, JobOperator]]:
        """Return the operators of the savepoint that have state, with their declarations and those of the job."""
        own = {operator.uid: operator for operator in operators}
        stateful = [each for each in own.values() if each.tables]
        left_out = {savepoint.operator(uid).operator_id for uid in self.leave_out}
        found = [
            each for each in savepoint.operators if _has_state(each) and each.operator_id not in left_out
        ]
        declared = {savepoint.operator(each.uid).operator_id: each for each in self.operators}
        assigned = []
        for each in found:
            target = declared.pop(each.operator_id, None) or FlinkOperator(each.uid or each.operator_id)
            uid = target.of
            if uid is None:
                uid = next((uid for uid in own if each.operator_id in _ids_of(own[uid])), None)
            if uid is None and len(stateful) == 1 and len(found) == 1:
                uid = stateful[0].uid
            if uid not in own:
                of = (
                    f"is declared to be of {uid!r}, which the job does not have"
                    if uid
                    else "has no operator in the job"
                )
                raise ConfigurationError(
                    f"operator {_name(each)!r} of the savepoint {savepoint.path} has state {sorted(each.states)}, and "
                    f"{of}; the job has {list(own)}. Give that operator uid({_name(each)!r}), or declare "
                    f"SavepointSource(path, [FlinkOperator({_name(each)!r}, of=...)]), or leave_out=[{_name(each)!r}]"
                )
            assigned.append((each, target, own[uid]))
        return assigned


def _ids_of(operator: JobOperator) -> tuple[str, ...]:
    """Return the ids by which a savepoint may name an operator."""
    if operator.flink_state is not None:
        return (operator_id(FlinkState.of_text(operator.flink_state).uid),)
    return (operator_id(operator.uid), operator.uid)


def _name(operator: SavepointOperator) -> str:
    return operator.uid or operator.operator_id


def _has_state(operator: SavepointOperator) -> bool:
    """Return whether an operator has keys or elements of states, those of sources left out."""
    return any(
        any(offsets for name, (_, offsets) in handle.offsets.items() if name != READER_STATE)
        for subtask in operator.metadata.subtasks
        for handle in subtask.operator_states
    ) or any(any(handle.offsets) for subtask in operator.metadata.subtasks for handle in subtask.keyed_states)


def _check(savepoint: Savepoint, states: RestoredOperatorStates) -> None:
    """Check that all states of an operator can be restored into an operator of the job."""
    found, operator = states.found, states.operator
    what = f"operator {_name(found)!r} of the savepoint {savepoint.path}"
    if found.unread:
        raise ConfigurationError(f"{what} has a state that cannot be read: {found.unread[0]}")
    for name, reason in states.obstacles():
        raise ConfigurationError(
            f"state {name!r} of {what} cannot be restored: {reason}. Leave out the operator: "
            f"leave_out=[{_name(found)!r}]"
        )
    keyed = [name for name, state in found.states.items() if isinstance(state, KeyedState)]
    others = [name for name in found.states if name not in keyed and name != READER_STATE]
    keyed_kinds = (TableKind.KEYED_STATE, TableKind.TIMERS, TableKind.WINDOWS)
    for names, kinds, kind in (
        (keyed, keyed_kinds, "keyed state"),
        (others, (TableKind.OPERATOR_STATE,), "operator state"),
    ):
        if names and not set(kinds) & set(operator.tables):
            raise ConfigurationError(
                f"state {names[0]!r} of {what} is {kind}, which operator {operator.uid!r} of the job cannot begin "
                f"with. Leave it out: leave_out=[{_name(found)!r}]"
            )
    if not keyed:
        return
    assert states.keys is not None
    declared = states.target.key
    if declared is not None and serializer_of(declared).name != states.keys.serializer.name:
        raise ConfigurationError(
            f"the keys of {what} are {states.keys.serializer.name}, and declared as {serializer_of(declared).name}"
        )
    states.keys.check(what)
    if operator.windows is not None:
        RestoredWindows(states).check(what)


@dataclass(frozen=True)
class RestoredSavepoint:
    """State of a savepoint for the operators of a job, read by the tasks that need it; picklable.

    Attributes
    ----------
    path : str
        Directory of the savepoint.
    restored : mapping of str to RestoredOperatorStates
        By uid of flinkcore's operator.
    """

    path: str
    restored: Mapping[str, RestoredOperatorStates | RestoredPlanState] = field(repr=False)

    def was_replaced(self) -> bool:
        """Return False: the files of a savepoint have names of their own."""
        return False

    def restore(
        self, uid: str, key_group_range: tuple[int, int], max_parallelism: int
    ) -> list[OperatorSnapshot]:
        """Return the timers, keyed state and windows of an operator in a range of key groups.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a key or a value has no place in the job.
        """
        states = self.restored.get(uid)
        if isinstance(states, RestoredPlanState):
            return [states.snapshot(*key_group_range)]
        if states is None or states.keys is None:
            return []
        if states.operator.windows is not None:
            tables = RestoredWindows(states).tables(*key_group_range)
            return [OperatorSnapshot(key_group_range, windows=tables)]
        timers, keyed = states.snapshots(*key_group_range)
        return [OperatorSnapshot(key_group_range, timers=timers, keyed_state=keyed)]

    def dealt(self, uid: str) -> DealtStates | None:
        """Return the state of an operator if its keys have other key groups in the savepoint than in the job."""
        states = self.restored.get(uid)
        if states is None or (
            isinstance(states, RestoredOperatorStates)
            and (states.keys is None or states.keys.has_groups_of_flink(states.found.max_parallelism))
        ):
            return None
        return DealtStates(self, uid)

    def operator_states(self, uid: str, parallelism: int) -> list[dict[str, OperatorStateSnapshot]]:
        """Return the operator states of an operator, redistributed to its subtasks."""
        states = self.restored.get(uid)
        if not isinstance(states, RestoredOperatorStates):
            return redistribute([{}], parallelism)
        return redistribute([states.operator_snapshots()], parallelism)

    def watermark_ms(self, uid: str, subtask: int = 0, parallelism: int = 0) -> int:
        """Return the watermark of windows of Flink SQL, and -2**63 of other operators, as a savepoint has no others."""
        states = self.restored.get(uid)
        return states.watermark_ms if isinstance(states, RestoredPlanState) else MIN_TIMESTAMP


@dataclass(frozen=True)
class DealtStates:
    """State of an operator whose keys have other key groups in the savepoint than in the job; picklable.

    Flink SQL hashes the bytes of a row, and so gives keys other key groups than the job, which hashes values. If each
    task looked for its own keys, it would read all of them.

    Attributes
    ----------
    savepoint : RestoredSavepoint
    uid : str
        Uid of flinkcore's operator.
    """

    savepoint: RestoredSavepoint
    uid: str

    @property
    def _states(self) -> RestoredOperatorStates | RestoredPlanState:
        return self.savepoint.restored[self.uid]

    @property
    def n_key_groups(self) -> int:
        """Number of key groups of the savepoint."""
        return self._states.found.max_parallelism

    def deal(self, key_groups: range) -> Iterator[tuple[str, pa.RecordBatch, npt.NDArray[np.int32] | None]]:
        """Yield the entries of some key groups of the savepoint, and read no others.

        Returns
        -------
        iterator of (str, pyarrow.RecordBatch, numpy.ndarray of int32 or None)
            Name of the state, entries, and their key groups in the job; None if every task needs them.

        Raises
        ------
        SavepointError
            If a file is damaged or missing.
        DataError
            If a key has no place in the job.
        """
        for state, batch in batches_of_states(self._states.dealt_states(), key_groups):
            yield state.name, batch, self._states.key_groups_of(batch.column("key"))
        for name, batch in self._states.first_timers(key_groups):
            yield name, batch, None

    def received(self, entries: Mapping[str, Sequence[pa.RecordBatch]]) -> RestoredSavepoint:
        """Return the savepoint as a task has it that has received the entries of its keys, by state."""
        states = self._states
        own = replace(states, found=replace(states.found, received=entries))
        return RestoredSavepoint(self.savepoint.path, {**self.savepoint.restored, self.uid: own})

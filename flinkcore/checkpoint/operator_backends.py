"""The backends of an operator's state: their snapshot for a checkpoint, and their restore from one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.checkpoint.state_origin import StateOrigin
from flinkcore.checkpoint.table_file import refused_as
from flinkcore.operators.state import KeyedStateBackend, OperatorStateBackend, OperatorStateSnapshot
from flinkcore.operators.timers.internal_timer_service import InternalTimeServiceManager


@dataclass(frozen=True)
class OperatorBackends:
    """The timers and states of one subtask of an operator.

    Parameters
    ----------
    keyed_state : KeyedStateBackend, optional
        State of an operator with keys.
    time_services : InternalTimeServiceManager, optional
        On the same key context.
    operator_state : OperatorStateBackend, optional

    Notes
    -----
    Flink's ``StreamOperatorStateHandler``.
    """

    keyed_state: KeyedStateBackend | None = None
    time_services: InternalTimeServiceManager | None = None
    operator_state: OperatorStateBackend | None = None

    def snapshot(self, watermark_ms: int, splits: Sequence[SplitPosition] = ()) -> OperatorSnapshot:
        """Return a snapshot of them, to be written before the user's code runs again.

        Parameters
        ----------
        watermark_ms : int
            The operator's watermark in ms since the epoch; -2**63 before the first.
        splits : sequence of SplitPosition
            Splits of a source.
        """
        return OperatorSnapshot(
            None if self.keyed_state is None else self.keyed_state.key_context.key_group_range,
            watermark_ms,
            {} if self.time_services is None else self.time_services.snapshot(),
            {} if self.keyed_state is None else self.keyed_state.snapshot(),
            {} if self.operator_state is None else self.operator_state.snapshot(),
            splits,
        )

    def restore(
        self,
        origin: StateOrigin,
        uid: str,
        subtask: int,
        parallelism: int,
        check: Callable[[OperatorSnapshot], None] | None = None,
    ) -> int:
        """Restore the share of this subtask from a checkpoint or savepoint; before the operator is opened.

        Parameters
        ----------
        origin : StateOrigin
        uid : str
            Identifier of the operator.
        subtask : int
            Index of the subtask.
        parallelism : int
            The number of subtasks after the restore.
        check : callable, optional
            Raises a FlinkcoreError for a snapshot that the operator cannot have.

        Returns
        -------
        int
            The operator's watermark in ms since the epoch, which timers and times to live take over; nothing fires.

        Raises
        ------
        ConfigurationError
            If the checkpoint has another number of key groups than the key context, or no such operator.
        CheckpointError
            If a file is missing, damaged or not what the manifest says (nothing is restored), or if rows contradict
            each other or the operator.
        """
        watermark_ms = origin.watermark_ms(uid, subtask, parallelism)
        # Everything is read before anything is restored, so that an error changes nothing.
        operator_states = (
            {} if self.operator_state is None else origin.operator_states(uid, parallelism)[subtask]
        )
        snapshots: Sequence[OperatorSnapshot] = ()
        if self.keyed_state is not None:
            context = self.keyed_state.key_context
            snapshots = origin.restore(uid, context.key_group_range, context.max_parallelism)
        for snapshot in snapshots:
            with refused_as(f"{origin.path}, operator {uid!r}"):
                if check is not None:
                    check(snapshot)
                self.restore_keys(snapshot, watermark_ms)
        self.restore_rest(operator_states, watermark_ms)
        return watermark_ms

    def restore_keys(self, snapshot: OperatorSnapshot, watermark_ms: int) -> None:
        """Restore the keyed state and the timers of a snapshot, at a watermark in ms since the epoch."""
        assert self.keyed_state is not None
        self.keyed_state.restore(snapshot.keyed_state)
        if self.time_services is not None:
            self.time_services.restore(snapshot.timers, watermark_ms)

    def restore_rest(self, operator_states: Mapping[str, OperatorStateSnapshot], watermark_ms: int) -> None:
        """Restore the states without keys, after all snapshots of keys, at a watermark in ms since the epoch."""
        if self.keyed_state is not None and watermark_ms > MIN_TIMESTAMP:
            self.keyed_state.advance_watermark(watermark_ms)
        if self.operator_state is not None:
            self.operator_state.restore(operator_states)

"""What an operator holds its state in, taken into a checkpoint and restored from one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.runtime.checkpoint.checkpoint import Checkpoint
from flinkcore.runtime.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.runtime.checkpoint.table_file import refused_as
from flinkcore.runtime.state import KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.timers.internal_timer_service import InternalTimeServiceManager


@dataclass(frozen=True)
class OperatorBackends:
    """Timers and state of one subtask of an operator.

    Parameters
    ----------
    keyed_state : KeyedStateBackend, optional
        Of an operator with keys.
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
        """Return all that they hold, to be written before the user's code runs again.

        Parameters
        ----------
        watermark_ms : int
            The operator's; -2**63 before the first.
        splits : sequence of SplitPosition
            Of a source.
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
        checkpoint: Checkpoint,
        uid: str,
        subtask: int,
        parallelism: int,
        check: Callable[[OperatorSnapshot], None] | None = None,
    ) -> int:
        """Take what a checkpoint has for this subtask; before the operator is opened.

        Parameters
        ----------
        checkpoint : Checkpoint
        uid : str
            Of the operator.
        subtask : int
            From 0 on.
        parallelism : int
            The number of subtasks from now on.
        check : callable, optional
            Raises a FlinkcoreError for what the operator cannot have.

        Returns
        -------
        int
            The operator's watermark, which timers and times to live know of; nothing fires.

        Raises
        ------
        ConfigurationError
            If the checkpoint has another number of key groups than the key context, or no such operator.
        CheckpointError
            If a file is missing, damaged or not what the manifest says: nothing is restored. Or if rows contradict each
            other or the operator.
        """
        watermark_ms = checkpoint.watermark_ms(uid)
        # All is read before anything is restored: an error leaves all as it was.
        operator_states = (
            None if self.operator_state is None else checkpoint.operator_states(uid, parallelism)
        )
        if self.keyed_state is not None:
            context = self.keyed_state.key_context
            for snapshot in checkpoint.restore(uid, context.key_group_range, context.max_parallelism):
                with refused_as(f"{checkpoint.storage.path}, operator {uid!r}"):
                    if check is not None:
                        check(snapshot)
                    self.keyed_state.restore(snapshot.keyed_state)
                    if self.time_services is not None:
                        self.time_services.restore(snapshot.timers, watermark_ms)
            if watermark_ms > MIN_TIMESTAMP:
                self.keyed_state.advance_watermark(watermark_ms)
        if self.operator_state is not None and operator_states is not None:
            self.operator_state.restore(operator_states[subtask])
        return watermark_ms

"""From which checkpoint a job goes on, and with which it stops."""

from dataclasses import dataclass
from os import PathLike
from typing import Final


@dataclass(frozen=True)
class CheckpointSettings:
    """What a call that runs a job says about checkpoints.

    Parameters
    ----------
    restore_from : path, optional
        Checkpoint of a job over an earlier log, from which this one goes on.
    stop_with_checkpoint : path, optional
        Directory for a checkpoint with which the job stops: the end of its log then fires nothing.

    Notes
    -----
    Flink's ``SavepointRestoreSettings``, and stop-with-savepoint without ``--drain``.
    """

    restore_from: str | PathLike[str] | None = None
    stop_with_checkpoint: str | PathLike[str] | None = None


NO_CHECKPOINTS: Final = CheckpointSettings()

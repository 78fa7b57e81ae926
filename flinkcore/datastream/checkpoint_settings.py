"""From which checkpoint a job goes on, and with which it stops."""

from dataclasses import dataclass
from os import PathLike
from typing import Final

from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class CheckpointSettings:
    """What a call that runs a job says about checkpoints.

    Parameters
    ----------
    restore_from : path, optional
        Checkpoint of a job over an earlier log, from which this one goes on.
    stop_with_checkpoint : path, optional
        Directory for a checkpoint with which the job stops: the end of its log then fires nothing.

    Raises
    ------
    ConfigurationError
        If one is no path.

    Notes
    -----
    Flink's ``SavepointRestoreSettings``, and stop-with-savepoint without ``--drain``.
    """

    restore_from: str | PathLike[str] | None = None
    stop_with_checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for setting in ("restore_from", "stop_with_checkpoint"):
            path = getattr(self, setting)
            if path is not None and not isinstance(path, str | PathLike):
                raise ConfigurationError(
                    f"{setting} takes the directory of a checkpoint, such as 'checkpoints/monday', not {path!r}"
                )


NO_CHECKPOINTS: Final = CheckpointSettings()

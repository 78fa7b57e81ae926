"""Storage of checkpoints: settings that are accepted without effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

from flinkcore._internal.io.locations import path_text
from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.errors import ConfigurationError

__all__ = [
    "CheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage:
    """Storage of periodic checkpoints, which jobs do not write.

    Notes
    -----
    Follows ``pyflink.datastream.CheckpointStorage``.
    """


@dataclass(frozen=True)
class JobManagerCheckpointStorage(CheckpointStorage):
    """Stores checkpoints in the memory of a cluster's JobManager.

    Parameters
    ----------
    checkpoint_path : str, optional
        Directory of the metadata.
    max_state_size : int, optional
        In bytes.
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    checkpoint_path: str | None = None
    max_state_size: int | None = None

    def get_checkpoint_path(self) -> str | None:
        """Return the directory of checkpoints, or None."""
        return None if self.checkpoint_path is None else path_text(self.checkpoint_path)

    def get_max_state_size(self) -> int:
        """Return the largest size of a state, in bytes."""
        return self.DEFAULT_MAX_STATE_SIZE if self.max_state_size is None else self.max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return None, as there is no directory of savepoints."""
        return None

    def __str__(self) -> str:
        path = "" if self.checkpoint_path is None else f"checkpoints: '{self.checkpoint_path}', "
        return (
            f"JobManagerCheckpointStorage (checkpoints to JobManager) ( {path}"
            f"maxStateSize: {self.get_max_state_size()})"
        )


@dataclass(frozen=True)
class FileSystemCheckpointStorage(CheckpointStorage):
    """Stores checkpoints in files.

    Parameters
    ----------
    checkpoint_path : str
    file_state_size_threshold : int, optional
        Smaller states are stored with the metadata, in bytes; -1 for the default.
    write_buffer_size : int
        In bytes; -1 for the default.

    Raises
    ------
    ConfigurationError
        If there is no path.
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    checkpoint_path: str | None = None
    file_state_size_threshold: int | None = None
    write_buffer_size: int = -1

    def __post_init__(self) -> None:
        if self.checkpoint_path is None:
            raise ConfigurationError("checkpoint_path must not be None. Give the directory of checkpoints")

    def get_checkpoint_path(self) -> str:
        """Return the directory of checkpoints."""
        return path_text(str(self.checkpoint_path))

    def get_savepoint_path(self) -> str | None:
        """Return None, as there is no directory of savepoints."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the size below which states are stored with the metadata, in bytes."""
        threshold = self.file_state_size_threshold
        return 20 * 1024 if threshold is None or threshold == -1 else threshold

    def get_write_buffer_size(self) -> int:
        """Return the size of the buffer of a file, in bytes."""
        return 4096 if self.write_buffer_size == -1 else self.write_buffer_size


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
